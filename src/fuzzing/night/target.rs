//! One fuzz target for its share of a night: rounds until the share is used up, a crash in each at
//! most, and then its corpus thinned.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::fuzzing::CampaignError;
use crate::fuzzing::build::Watch;
use crate::fuzzing::libfuzzer::{Coverage, End, Ended, Job, Limit, Said, artifact_prefix};

/// How many tenths of a share are for fuzzing; the rest is for thinning the corpus.
const TENTHS_FUZZED: u32 = 9;
/// How long a run may go on after its time is up before it is stopped.
const GRACE: Duration = Duration::from_secs(30);
/// The least time for thinning a corpus.
const MERGE_LEAST: Duration = Duration::from_secs(5);

/// What a target has done in a night.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Figures {
    /// Inputs executed.
    pub executions: u64,
    /// Wall time of its runs, in milliseconds.
    pub millis: u64,
    /// How far it got.
    pub coverage: Option<Coverage>,
    /// Runs that ended with a crash.
    pub crashes: u64,
    /// Inputs of its corpus at the end.
    pub corpus: u64,
}

/// A target and its folders.
pub struct Night<'a> {
    /// Its name.
    pub name: &'a str,
    /// The folder of the programs.
    pub programs: &'a Path,
    /// The folder of all nights.
    pub out: &'a Path,
    /// The folder of committed seeds, which may be absent.
    pub seeds: &'a Path,
    /// The number of the night, which makes its runs differ from those of other nights.
    pub number: u64,
}

impl Night<'_> {
    /// Runs for `share`, or until `stop` is set. `crashed` hears of each crash and says whether to
    /// go on after it.
    pub fn run(
        &self,
        share: Duration,
        stop: &AtomicBool,
        mut crashed: impl FnMut(&Path, &Said) -> Result<bool, CampaignError>,
    ) -> Result<Figures, CampaignError> {
        let began = Instant::now();
        let corpus = self.corpus()?;
        let mut figures = Figures::default();
        let mut artifacts = BTreeSet::new();
        for round in 1.. {
            let left = (share * TENTHS_FUZZED / 10).saturating_sub(began.elapsed());
            if left < Duration::from_secs(1) || stop.load(Ordering::Relaxed) {
                break;
            }
            let ended = self.round(round, left, &corpus, stop)?;
            figures.add(&ended);
            let End::Crash(artifact) = &ended.end else { break };
            figures.crashes += 1;
            forget(&corpus, artifact)?;
            // The same crash a second time comes from a committed seed, and would end every
            // round.
            if !artifacts.insert(artifact.clone()) || !crashed(artifact, &ended.said)? {
                break;
            }
        }
        if !stop.load(Ordering::Relaxed) {
            let left = share.saturating_sub(began.elapsed()).max(MERGE_LEAST);
            self.thin(&corpus, left, stop)?;
        }
        let inputs = std::fs::read_dir(&corpus).map_err(CampaignError::at(&corpus))?;
        figures.corpus = inputs.count() as u64;
        Ok(figures)
    }

    fn round(
        &self,
        round: u64,
        left: Duration,
        corpus: &Path,
        stop: &AtomicBool,
    ) -> Result<Ended, CampaignError> {
        // libFuzzer takes 32 bits; 0 would be a seed by the clock.
        let seed = (self.number * 1_000 + round) % u64::from(u32::MAX) + 1;
        let mut arguments: Vec<OsString> =
            vec![format!("-seed={seed}").into(), Limit::Seconds(left.as_secs()).argument().into()];
        arguments.extend(Watch::of(self.name).flags().iter().map(OsString::from));
        arguments.push("-print_final_stats=1".into());
        arguments.push(corpus.into());
        self.job(arguments, left + GRACE)?.run(stop)
    }

    fn job(&self, mut arguments: Vec<OsString>, patience: Duration) -> Result<Job, CampaignError> {
        if self.seeds.is_dir() {
            arguments.push(self.seeds.into());
        }
        // A merge, too, leaves an artifact of each input that a hunt crashes on.
        arguments.push(artifact_prefix(&self.folder("artifacts")?));
        let log = self.out.join("logs");
        std::fs::create_dir_all(&log).map_err(CampaignError::at(&log))?;
        let log = log.join(format!("{}.log", self.name));
        let program = self.programs.join(self.name);
        Ok(Job { program, arguments, planted: None, log, patience })
    }

    /// Keeps of the corpus what reaches anything, or all of it if there is no time to tell.
    fn thin(&self, corpus: &Path, left: Duration, stop: &AtomicBool) -> Result<(), CampaignError> {
        let (thinned, old) = (corpus.with_extension("thinned"), corpus.with_extension("old"));
        remove(&thinned)?;
        std::fs::create_dir(&thinned).map_err(CampaignError::at(&thinned))?;
        let mut arguments: Vec<OsString> = vec!["-merge=1".into()];
        arguments.extend(Watch::of(self.name).flags().iter().map(OsString::from));
        arguments.extend([thinned.clone().into(), corpus.into()]);
        let ended = self.job(arguments, left)?.run(stop)?;
        if ended.end == End::Limit {
            std::fs::rename(corpus, &old).map_err(CampaignError::at(corpus))?;
            std::fs::rename(&thinned, corpus).map_err(CampaignError::at(&thinned))?;
            remove(&old)?;
        }
        remove(&thinned)
    }

    /// The corpus, put back if a night died while it was being exchanged.
    fn corpus(&self) -> Result<PathBuf, CampaignError> {
        let corpus = self.out.join("corpus").join(self.name);
        let old = corpus.with_extension("old");
        if old.is_dir() && !corpus.is_dir() {
            std::fs::rename(&old, &corpus).map_err(CampaignError::at(&old))?;
        }
        self.folder("corpus")
    }

    fn folder(&self, kind: &str) -> Result<PathBuf, CampaignError> {
        let folder = self.out.join(kind).join(self.name);
        std::fs::create_dir_all(&folder).map_err(CampaignError::at(&folder))?;
        Ok(folder)
    }
}

impl Figures {
    fn add(&mut self, ended: &Ended) {
        self.executions += ended.said.executions.unwrap_or_default();
        self.millis += u64::try_from(ended.elapsed.as_millis()).unwrap_or(u64::MAX);
        let reached = [self.coverage, ended.said.coverage];
        self.coverage = reached.into_iter().flatten().max_by_key(|reached| reached.features);
    }
}

/// Drops the input of a crash from the corpus: what no longer means what it did when it was kept
/// would crash again at the start of every round.
fn forget(corpus: &Path, artifact: &Path) -> Result<(), CampaignError> {
    let name = artifact.file_name().unwrap_or_default().to_string_lossy();
    let input = corpus.join(name.rsplit('-').next().unwrap_or_default());
    if input.is_file() {
        std::fs::remove_file(&input).map_err(CampaignError::at(&input))
    } else {
        Ok(())
    }
}

fn remove(folder: &Path) -> Result<(), CampaignError> {
    if folder.is_dir() {
        std::fs::remove_dir_all(folder).map_err(CampaignError::at(folder))
    } else {
        Ok(())
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// A target that crashes in its first two rounds and keeps an input in each; thinned, its
    /// corpus is one input. As in a hunt, thinning crashes, too, and needs a place for what it
    /// crashed on.
    const SCRIPT: &str = r##"#!/bin/sh
for word in "$@"; do
    case $word in
        -artifact_prefix=*) artifacts=${word#*=} ;;
        -merge=1) merge=yes ;;
        -*) ;;
        *) folders="$folders $word" ;;
    esac
done
set -- $folders
if [ "$merge" ]; then echo x > "${artifacts:?}crash-merge" && cp "$2/0a" "$1/0a"; exit; fi
echo x > "$1/0a$(ls "$1" | wc -l)"
echo x > "$1/0a"
echo "#9 pulse cov: 5 ft: 7 corp: 1" >&2
echo "stat::number_of_executed_units: 9" >&2
number=$(ls "$artifacts" | wc -l)
[ "$number" -lt 2 ] || exit 0
echo x > "$artifacts/crash-$number"
echo "thread '<unnamed>' (1) panicked at src/x.rs:1:$number:" >&2
echo "Test unit written to ${artifacts}crash-$number" >&2
exit 77
"##;

    fn run(stop: &AtomicBool, go_on: bool) -> (Figures, Vec<String>, Vec<String>) {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("radix");
        fs::write(&program, SCRIPT).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let (programs, seeds) = (folder.path(), Path::new("no/such"));
        let out = folder.path().join("nights");
        let target = Night { name: "radix", programs, out: &out, seeds, number: 1 };
        let mut places = Vec::new();
        let figures = target.run(Duration::from_secs(20), stop, |artifact, said| {
            assert!(artifact.is_file());
            places.push(said.place.clone().unwrap());
            Ok(go_on)
        });
        let corpus = fs::read_dir(out.join("corpus/radix")).unwrap();
        let name = |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name();
        let corpus = corpus.map(|entry| name(entry).into_string().unwrap()).collect();
        (figures.unwrap(), places, corpus)
    }

    #[test]
    fn rounds_go_on_after_a_crash_and_the_corpus_is_thinned() {
        let (figures, places, corpus) = run(&AtomicBool::new(false), true);
        assert_eq!(places, ["src/x.rs:1:0", "src/x.rs:1:1"]);
        assert_eq!((figures.executions, figures.crashes, figures.corpus), (27, 2, 1));
        assert_eq!(figures.coverage, Some(Coverage { edges: 5, features: 7 }));
        assert_eq!(corpus, ["0a"]);
        let (figures, places, _) = run(&AtomicBool::new(false), false);
        assert_eq!((figures.executions, places.len()), (9, 1));
    }

    #[test]
    fn a_stopped_target_does_nothing() {
        let (figures, places, corpus) = run(&AtomicBool::new(true), true);
        assert_eq!((figures, places.len(), corpus.len()), (Figures::default(), 0, 0));
    }
}
