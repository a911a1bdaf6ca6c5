//! What a crash of a fuzz target is: a defect of the project, or what a hunt finds by design.

use std::collections::BTreeMap;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};

use crate::fuzzing::libfuzzer::Said;
use crate::fuzzing::{CampaignError, files};
use crate::limits::MINIMIZE_RUNS;
use crate::minimize::import::{FuzzTarget, Imported, digest, import};
use crate::scenario::file;
use crate::scenario::lint::lint;

/// Something that should not be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Defect {
    /// Its identity: the same whenever the defect is seen.
    pub id: String,
    /// One line.
    pub title: String,
    /// The file that shows it.
    pub file: Option<PathBuf>,
    /// Whether it would be seen every night until it is mended.
    pub is_looked_at_every_night: bool,
    /// Whether a kept regression is this one.
    pub is_kept: bool,
}

/// A hunt's find to which the lint has an objection: the hunt has found a hazard, as it should, and
/// no defect of this project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explained {
    /// One line: the code and the switches.
    pub title: String,
    /// The regression that is the same, if there is one.
    pub kept: Option<PathBuf>,
}

/// What a crash is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Find {
    /// A defect.
    Defect(Defect),
    /// What a hunt is for, with the name that every crash of one mistake gets.
    Explained(String, Explained),
}

/// Judges crashes and keeps what they show.
pub struct Judge {
    /// Kept regressions by digest.
    kept: BTreeMap<u32, PathBuf>,
    /// The folder for what defects show.
    defects: PathBuf,
    /// The folder for what hunts have found.
    explained: PathBuf,
}

impl Judge {
    /// A judge who knows the files of `regressions` and writes into folders of `out`.
    pub fn new(regressions: &Path, out: &Path) -> Result<Judge, CampaignError> {
        let mut kept = BTreeMap::new();
        for path in files(regressions, "toml")? {
            let scenario = file::load(&path);
            let scenario = scenario.map_err(|error| CampaignError::Scenario(error.to_string()))?;
            kept.insert(digest(&scenario), path);
        }
        Ok(Judge { kept, defects: out.join("new"), explained: out.join("finds") })
    }

    /// What the crash of `target` on the bytes of `artifact` is. The artifact of a hunt's find is
    /// deleted, since the scenario file that is kept says all that it does.
    pub fn judge(&self, target: &str, artifact: &Path, said: &Said) -> Result<Find, CampaignError> {
        let bytes = std::fs::read(artifact).map_err(CampaignError::at(artifact))?;
        // A panic of the simulation has printed its message, and shows up as one of the target's.
        let imported = FuzzTarget::parse(target).and_then(|target| {
            let folder =
                if target == FuzzTarget::SoundScenarios { &self.defects } else { &self.explained };
            let found = || import(target, &bytes, MINIMIZE_RUNS, folder).ok();
            Some((target, panic::catch_unwind(AssertUnwindSafe(found)).unwrap_or(None)?))
        });
        match imported {
            Some((target, imported)) => {
                let find = self.scenario(target, imported)?;
                if let Find::Explained(..) = find {
                    std::fs::remove_file(artifact).map_err(CampaignError::at(artifact))?;
                }
                Ok(find)
            }
            None => self.panic(target, artifact, said),
        }
    }

    fn scenario(&self, target: FuzzTarget, imported: Imported) -> Result<Find, CampaignError> {
        let Imported { name, text, minimized } = imported;
        let title = minimized.scenario.title.clone();
        let kept = self.kept.get(&digest(&minimized.scenario)).cloned();
        let is_unforeseen = lint(&minimized.scenario).is_empty();
        if target != FuzzTarget::SoundScenarios && !is_unforeseen {
            keep(&self.explained, &name, text.as_bytes())?;
            return Ok(Find::Explained(name, Explained { title, kept }));
        }
        let file = keep(&self.defects, &name, text.as_bytes())?;
        let what = "to which the lint has no objection";
        Ok(Find::Defect(Defect {
            id: name,
            title: format!("{title}, found by {} in a scenario {what}", target.name()),
            file: Some(file),
            is_looked_at_every_night: false,
            is_kept: kept.is_some(),
        }))
    }

    fn panic(&self, target: &str, artifact: &Path, said: &Said) -> Result<Find, CampaignError> {
        let bytes = std::fs::read(artifact).map_err(CampaignError::at(artifact))?;
        let name = artifact.file_name().unwrap_or_default().to_string_lossy();
        let file = keep(&self.defects, &format!("{target}-{name}"), &bytes)?;
        let title = match &said.place {
            Some(place) => format!("{target} panicked at {place}"),
            None => format!("{target} ended with {name}"),
        };
        let (is_looked_at_every_night, is_kept) = (false, false);
        Ok(Find::Defect(Defect {
            id: title.clone(),
            title,
            file: Some(file),
            is_looked_at_every_night,
            is_kept,
        }))
    }
}

fn keep(folder: &Path, name: &str, bytes: &[u8]) -> Result<PathBuf, CampaignError> {
    let path = folder.join(name);
    std::fs::create_dir_all(folder).map_err(CampaignError::at(folder))?;
    std::fs::write(&path, bytes).map_err(CampaignError::at(&path))?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Stream;

    /// Bytes on which the hunt crashes, and what they are imported as.
    fn crash(target: FuzzTarget) -> (Vec<u8>, Imported) {
        let draw = |seed| {
            let mut stream = Stream::new(seed, target.name());
            (0..600).map(|_| stream.below(256) as u8).collect::<Vec<u8>>()
        };
        let imported = |bytes: Vec<u8>| {
            let folder = Path::new("sims/regressions");
            import(target, &bytes, MINIMIZE_RUNS, folder).ok().map(|it| (bytes, it))
        };
        (0..1_000).map(draw).find_map(imported).expect("one of them crashes")
    }

    #[test]
    fn a_hunts_find_is_explained_and_known_again_under_another_name_and_title() {
        let folder = tempfile::tempdir().unwrap();
        let (regressions, artifact) = (folder.path().join("kept"), folder.path().join("crash-1"));
        std::fs::create_dir(&regressions).unwrap();
        let (bytes, imported) = crash(FuzzTarget::HuntShortfall);
        let judged = || {
            std::fs::write(&artifact, &bytes).unwrap();
            let judge = Judge::new(&regressions, folder.path()).unwrap();
            judge.judge("hunt_shortfall", &artifact, &Said::default()).unwrap()
        };
        let title = imported.minimized.scenario.title.clone();
        let explained = Explained { title: title.clone(), kept: None };
        assert_eq!(judged(), Find::Explained(imported.name.clone(), explained));
        assert!(folder.path().join("finds").join(&imported.name).is_file());

        let kept = regressions.join("renamed.toml");
        let text = imported.text.replace(&title, "another title");
        let (text, _) = text.split_once("[expect]").unwrap();
        std::fs::write(&kept, text).unwrap();
        let explained = Explained { title, kept: Some(kept) };
        assert_eq!(judged(), Find::Explained(imported.name, explained));
    }

    #[test]
    fn a_crash_that_is_no_finding_is_a_defect_known_by_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let judge = Judge::new(Path::new("sims/regressions"), folder.path()).unwrap();
        let place = Some("src/cache/radix.rs:10:5".to_owned());
        let said = Said { place, ..Said::default() };
        let judged = |target, name: &str| {
            let artifact = folder.path().join(name);
            std::fs::write(&artifact, name).unwrap();
            match judge.judge(target, &artifact, &said).unwrap() {
                Find::Defect(defect) => defect,
                Find::Explained(..) => panic!("{name} is a defect"),
            }
        };
        let first = judged("radix", "crash-1");
        assert_eq!(first.title, "radix panicked at src/cache/radix.rs:10:5");
        assert_eq!(first.file, Some(folder.path().join("new/radix-crash-1")));
        assert_eq!(judged("radix", "crash-2").id, first.id);
        // Too few bytes for a finding: it was the simulation that panicked.
        let hunt = judged("hunt_placement", "crash-3");
        assert_eq!(hunt.title, "hunt_placement panicked at src/cache/radix.rs:10:5");
    }
}
