//! A hunt shows that the fuzz targets find what they are for: every unsound behaviour is planted in
//! turn, and each fuzz target that draws scenarios looks for it.
//!
//! A *measurement* is one run of one target with one planted variant and one seed, up to the first
//! finding that this variant alone has caused. It is one line of the state file, so that a stopped
//! hunt goes on where it ended.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::hash::Hasher;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use siphasher::sip::SipHasher13;

use super::CampaignError;
use super::build::Watch;
use super::libfuzzer::{End, Ended, Job, Limit, artifact_prefix};
use crate::claims::scenarios::hunted_finding;
use crate::finding::Named;
use crate::minimize::import::FuzzTarget;
use crate::scenario::generate::PlantedVariant;

pub mod meant;
pub mod state;
pub mod table;

use state::{Measurement, SearchResult, State};

/// Seconds that a run may take beyond its limit before it is stopped and counts as endless.
const GRACE: u64 = 60;
/// Executions a second that the slowest target makes on the busiest machine.
const SLOWEST: u64 = 10;

/// How a hunt is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Seeds of each variant and target, from 1 on.
    pub seeds: u64,
    /// The limit of the target that is meant for a variant.
    pub meant: Limit,
    /// The limit of the others.
    pub others: Limit,
    /// Processes at a time, at least 1.
    pub jobs: usize,
}

/// A behaviour to look for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// What is planted.
    pub planted: PlantedVariant,
    /// The target that is meant to find it, if a hazard shows it.
    pub meant: Option<FuzzTarget>,
}

/// One measurement to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Task {
    planted: PlantedVariant,
    target: FuzzTarget,
    seed: u64,
    limit: Limit,
}

/// A hunt with all that it needs.
pub struct Hunt<'a> {
    /// How it is measured.
    pub settings: Settings,
    /// What is looked for.
    pub rows: &'a [Row],
    /// The folder of the targets' programs.
    pub programs: &'a Path,
}

impl Settings {
    /// The limit of `target` in this row.
    pub fn limit(&self, row: &Row, target: FuzzTarget) -> Limit {
        if row.meant == Some(target) { self.meant } else { self.others }
    }
}

impl Hunt<'_> {
    /// Makes every measurement that `state` lacks and hands each to `report`. Once `stop` is set no
    /// other is begun, and those under way are given up.
    pub fn run(
        &self,
        state: State,
        stop: &AtomicBool,
        report: impl Fn(&Measurement, usize) + Sync,
    ) -> Result<State, CampaignError> {
        let builds = self.builds()?;
        let mut left: Vec<Task> = self.tasks();
        left.retain(|task| state.find(&self.measurement_key(task, &builds)).is_none());
        left.reverse();
        let scratch = tempfile::tempdir().map_err(CampaignError::at(&std::env::temp_dir()))?;
        let (left, state) = (Mutex::new(left), Mutex::new(state));
        let give_up = AtomicBool::new(false);
        let next = || left.lock().expect("no thread panics with the list").pop();
        let work = || -> Result<(), CampaignError> {
            while !stop.load(Ordering::Relaxed) && !give_up.load(Ordering::Relaxed) {
                let Some(task) = next() else { return Ok(()) };
                let folder = tempfile::tempdir_in(scratch.path());
                let folder = folder.map_err(CampaignError::at(scratch.path()))?;
                let Some(made) = self.measure(&task, &builds, folder.path(), stop)? else {
                    continue;
                };
                state.lock().expect("no thread panics with the state").add(made.clone())?;
                report(&made, left.lock().expect("no thread panics with the list").len());
            }
            Ok(())
        };
        let one = || work().inspect_err(|_| give_up.store(true, Ordering::Relaxed));
        let pool = rayon::ThreadPoolBuilder::new().num_threads(self.settings.jobs).build();
        let ended = pool.map_err(CampaignError::Threads)?.broadcast(|_| one());
        ended.into_iter().collect::<Result<(), CampaignError>>()?;
        Ok(state.into_inner().expect("no thread panics with the state"))
    }

    /// Seed by seed, so that a stopped hunt has something of every row.
    fn tasks(&self) -> Vec<Task> {
        let mut tasks = Vec::new();
        for seed in 1..=self.settings.seeds {
            for row in self.rows {
                for &target in FuzzTarget::ALL {
                    let limit = self.settings.limit(row, target);
                    tasks.push(Task { planted: row.planted, target, seed, limit });
                }
            }
        }
        tasks
    }

    /// A digest of each target's program, since measurements of one build do not count for another.
    pub fn builds(&self) -> Result<BTreeMap<FuzzTarget, String>, CampaignError> {
        let digest = |&target: &FuzzTarget| {
            let path = self.program(target);
            let bytes = std::fs::read(&path).map_err(CampaignError::at(&path))?;
            let mut hasher = SipHasher13::new();
            hasher.write(&bytes);
            Ok((target, format!("{:016x}", hasher.finish())))
        };
        FuzzTarget::ALL.iter().map(digest).collect()
    }

    fn program(&self, target: FuzzTarget) -> PathBuf {
        self.programs.join(target.name())
    }

    fn measurement_key(&self, task: &Task, builds: &BTreeMap<FuzzTarget, String>) -> state::Key {
        state::Key {
            planted: task.planted.to_string(),
            target: task.target.name().to_owned(),
            seed: task.seed,
            limit: task.limit,
            build: builds[&task.target].clone(),
        }
    }

    /// `None` if it was stopped.
    fn measure(
        &self,
        task: &Task,
        builds: &BTreeMap<FuzzTarget, String>,
        folder: &Path,
        stop: &AtomicBool,
    ) -> Result<Option<Measurement>, CampaignError> {
        let corpus = folder.join("corpus");
        std::fs::create_dir(&corpus).map_err(CampaignError::at(&corpus))?;
        let mut arguments: Vec<OsString> =
            vec![format!("-seed={}", task.seed).into(), task.limit.argument().into()];
        arguments.extend(Watch::Edges.flags().iter().map(OsString::from));
        arguments.extend(["-print_final_stats=1".into(), artifact_prefix(folder), corpus.into()]);
        let seconds = match task.limit {
            Limit::Seconds(seconds) => seconds,
            Limit::Executions(executions) => executions / SLOWEST,
        };
        let job = Job {
            program: self.program(task.target),
            arguments,
            planted: Some(task.planted),
            log: folder.join("log"),
            patience: Duration::from_secs(seconds + GRACE),
        };
        let ended = job.run(stop)?;
        let outcome = match &ended.end {
            End::Stopped if stop.load(Ordering::Relaxed) => return Ok(None),
            End::Stopped => SearchResult::Endless,
            End::Limit => SearchResult::Nothing,
            End::Crash(artifact) => {
                let bytes = std::fs::read(artifact).map_err(CampaignError::at(artifact))?;
                judge(task.target, task.planted, &bytes, &ended)
            }
        };
        Ok(Some(Measurement {
            key: self.measurement_key(task, builds),
            outcome,
            executions: ended.said.executions.unwrap_or_default(),
            millis: u64::try_from(ended.elapsed.as_millis()).unwrap_or(u64::MAX),
        }))
    }
}

/// What a crash shows: a finding, if running its scenario again gives one, or else a panic of the
/// simulation itself.
fn judge(target: FuzzTarget, planted: PlantedVariant, bytes: &[u8], ended: &Ended) -> SearchResult {
    let again = || {
        let scenario = target.scenario(bytes, Some(planted));
        let finding = hunted_finding(target, Some(planted), &scenario)?;
        let is_objected_to = planted.is_objected_to(&scenario);
        Some(SearchResult::Found { code: finding.code.name().to_owned(), is_objected_to })
    };
    let found = panic::catch_unwind(AssertUnwindSafe(again)).unwrap_or(None);
    let place = || ended.said.place.clone().unwrap_or_else(|| "no known place".to_owned());
    found.unwrap_or_else(|| SearchResult::Panicked { place: place() })
}

#[cfg(all(test, unix))]
mod tests;
