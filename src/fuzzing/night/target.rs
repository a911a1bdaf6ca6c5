//! One fuzz target for its share of a night: rounds until the share is used up, a crash in each at
//! most, and then its corpus thinned.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::fuzzing::CampaignError;
use crate::fuzzing::build::Watch;
use crate::fuzzing::libfuzzer::{Coverage, End, Ended, Job, Limit, Said, artifact_prefix};

/// Of a share, the tenth part is for thinning the corpus.
const TENTHS_FUZZED: u32 = 9;
/// What a run may take beyond its time before it is stopped.
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
    /// Runs for `share`, or until `stop` is set. `crashed` hears of each crash and says whether to go
    /// on after it.
    pub fn run(
        &self,
        share: Duration,
        stop: &AtomicBool,
        mut crashed: impl FnMut(&Path, &Said) -> Result<bool, CampaignError>,
    ) -> Result<Figures, CampaignError> {
        let began = Instant::now();
        let corpus = self.corpus()?;
        let mut figures = Figures::default();
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
            if !crashed(artifact, &ended.said)? {
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
        let artifacts = self.folder("artifacts")?;
        // libFuzzer takes 32 bits; 0 would be a seed by the clock.
        let seed = (self.number * 1_000 + round) % u64::from(u32::MAX) + 1;
        let mut arguments: Vec<OsString> =
            vec![format!("-seed={seed}").into(), Limit::Seconds(left.as_secs()).argument().into()];
        if Watch::of(self.name) == Watch::Edges {
            arguments.extend(["-len_control=0".into(), "-max_len=1024".into()]);
        }
        arguments.extend(["-print_final_stats=1".into(), artifact_prefix(&artifacts)]);
        arguments.push(corpus.into());
        self.job(arguments, left + GRACE)?.run(stop)
    }

    fn job(&self, mut arguments: Vec<OsString>, patience: Duration) -> Result<Job, CampaignError> {
        if self.seeds.is_dir() {
            arguments.push(self.seeds.into());
        }
        let log = self.out.join("logs");
        std::fs::create_dir_all(&log).map_err(CampaignError::at(&log))?;
        let log = log.join(format!("{}.log", self.name));
        let program = self.programs.join(self.name);
        Ok(Job { program, arguments, plant: None, log, patience })
    }

    /// Keeps of the corpus what reaches anything, or all of it if there is no time to tell.
    fn thin(&self, corpus: &Path, left: Duration, stop: &AtomicBool) -> Result<(), CampaignError> {
        let (thinned, old) = (corpus.with_extension("thinned"), corpus.with_extension("old"));
        remove(&thinned)?;
        std::fs::create_dir(&thinned).map_err(CampaignError::at(&thinned))?;
        let mut arguments: Vec<OsString> = vec!["-merge=1".into()];
        if Watch::of(self.name) == Watch::Edges {
            arguments.push("-max_len=1024".into());
        }
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

/// Drops the input of a crash from the corpus: what no longer means what it did when it was kept would
/// crash again at the start of every round.
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
