//! Does the runs that a ledger lacks, on all cores.
//!
//! Runs are done in batches in the order of their numbers; a batch runs in parallel and is then
//! written in one transaction by the calling thread. Only `micros` depends on threads and batches.

use std::collections::BTreeMap;
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rayon::prelude::*;

use super::ledger::{Ledger, LedgerError, Record, unsigned};
use super::plan::{CellId, Plan, RunId};
use crate::finding::{Mark, Run};
use crate::scenario::Scenario;

/// The most runs of one batch: bounds the memory of what waits to be written.
const BATCH_RUNS_MAX: usize = 4_096;
/// Batches grow until one takes this long: a killed sweep loses no more, and the writes of shorter
/// ones would cost too much.
const BATCH_TIME: Duration = Duration::from_millis(500);

/// Why a sweep ended before its time.
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    /// The ledger cannot be read or written.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The threads cannot be started.
    #[error("threads: {0}")]
    Threads(#[from] rayon::ThreadPoolBuildError),
}

/// How far a sweep is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Runs in the ledger.
    pub done: u64,
    /// Runs of all possible cells.
    pub total: u64,
}

/// How a sweep ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Runs in the ledger; fewer than the total if the sweep was interrupted.
    pub progress: Progress,
    /// Cells that cannot be run, with the reason.
    pub impossible: BTreeMap<CellId, String>,
    /// Runs with a defect, those of earlier sittings included.
    pub defects: u64,
    /// Runs that could not be run, those of earlier sittings included.
    pub errors: u64,
    /// Marks that the plan must reach and that no run has.
    pub marks_missing: Vec<Mark>,
}

impl Outcome {
    /// Whether runs are left to do.
    pub fn is_interrupted(&self) -> bool {
        self.progress.done < self.progress.total
    }
}

/// Does every run that `ledger` lacks by `run`, on `threads` threads (0: all cores). `report` hears
/// of every batch. Once `stop` is set no further run is begun, and those that are done are kept.
pub fn execute<R, P>(
    ledger: &mut Ledger,
    threads: usize,
    stop: &AtomicBool,
    run: R,
    mut report: P,
) -> Result<Outcome, SweepError>
where
    R: Fn(&Scenario) -> Result<Run, String> + Sync,
    P: FnMut(Progress),
{
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build()?;
    let plan = ledger.plan.clone();
    let impossible = ledger.impossible()?;
    let done = ledger.done()?;
    let mut progress = Progress {
        done: done.iter().map(|&done| u64::from(done)).sum(),
        total: (plan.cells() - impossible.len() as u64) * plan.seeds.count,
    };
    report(progress);
    let mut left = (0..plan.runs())
        .map(RunId)
        .zip(done)
        .filter(|(run, done)| !done && !impossible.contains_key(&plan.place(*run).0))
        .map(|(run, _)| run);
    let mut batch_runs = 8 * pool.current_num_threads();
    while !stop.load(Ordering::Relaxed) {
        let batch: Vec<RunId> = left.by_ref().take(batch_runs).collect();
        if batch.is_empty() {
            break;
        }
        let began = Instant::now();
        let records: Vec<Record> = pool.install(|| {
            let scenarios = scenarios(&plan, &batch);
            let one = |&id: &RunId| {
                let (cell, seed) = plan.place(id);
                let go_on = !stop.load(Ordering::Relaxed);
                go_on.then(|| record(id, &scenarios[&cell], seed, &run))
            };
            batch.par_iter().filter_map(one).collect()
        });
        ledger.append(&records)?;
        progress.done += records.len() as u64;
        report(progress);
        if began.elapsed() < BATCH_TIME {
            batch_runs = (2 * batch_runs).min(BATCH_RUNS_MAX);
        }
    }
    Ok(Outcome {
        progress,
        impossible,
        defects: count(ledger, "defect")?,
        errors: count(ledger, "error")?,
        marks_missing: ledger.marks_missing()?,
    })
}

/// The scenarios of the batch's cells; consecutive runs share them.
fn scenarios(plan: &Plan, batch: &[RunId]) -> BTreeMap<CellId, Scenario> {
    let mut scenarios = BTreeMap::new();
    for &run in batch {
        let (cell, _) = plan.place(run);
        scenarios.entry(cell).or_insert_with(|| {
            plan.scenario(cell)
                .expect("a cell that does not parse is impossible, with its reason in the ledger")
        });
    }
    scenarios
}

fn record(
    id: RunId,
    cell: &Scenario,
    seed: u64,
    run: impl Fn(&Scenario) -> Result<Run, String>,
) -> Record {
    let scenario = Scenario { seed, ..cell.clone() };
    let began = Instant::now();
    // A run that breaks an invariant of ours is a failed run, not the end of the sweep.
    let outcome =
        panic::catch_unwind(AssertUnwindSafe(|| run(&scenario))).unwrap_or_else(|panic| {
            let message = panic.downcast_ref::<String>().map(String::as_str);
            let message = message.or_else(|| panic.downcast_ref::<&str>().copied());
            Err(format!("panicked: {}", message.unwrap_or("without a message")))
        });
    Record {
        run: id,
        outcome,
        micros: u64::try_from(began.elapsed().as_micros())
            .expect("no run takes half a million years"),
    }
}

fn count(ledger: &Ledger, verdict: &str) -> Result<u64, LedgerError> {
    let sql = format!("SELECT count(*) FROM runs WHERE verdict = '{verdict}'");
    ledger.one::<i64>(&sql).map(unsigned)
}

#[cfg(test)]
pub(crate) mod tests {
    use std::path::PathBuf;
    use std::sync::atomic::AtomicU64;

    use super::*;
    use crate::behaviour::DecodePrefixCut;
    use crate::finding::{Chance, Code, Finding, Metric};
    use crate::sweep::plan::tests::{PLAN, small, sources};
    use crate::units::Tick;

    /// A file of this test in the system's temporary folder, removed before and after.
    pub(crate) struct Scratch(pub(crate) PathBuf);

    impl Scratch {
        pub(crate) fn new(name: &str) -> Scratch {
            let name = format!("kvseam-{}-{name}", std::process::id());
            let scratch = Scratch(std::env::temp_dir().join(name));
            scratch.remove();
            scratch
        }

        fn remove(&self) {
            let gone = if self.0.is_dir() {
                std::fs::remove_dir_all(&self.0)
            } else {
                std::fs::remove_file(&self.0)
            };
            // Most often there is nothing to remove.
            drop(gone);
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            self.remove();
        }
    }

    /// Stands in for the world: a padded prefix loses positions on odd seeds where there are two
    /// ranks; with one rank no transfer is ever activated.
    pub(crate) fn fake(scenario: &Scenario) -> Result<Run, String> {
        let mut run = Run {
            digest: scenario.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15),
            ended: Tick(1_000 + scenario.seed),
            ..Run::default()
        };
        run.chances.add(Chance::Requests, 2);
        run.metrics.add(Metric::Requests, 2);
        if scenario.layout.ranks > 1 {
            run.chances.add(Chance::Activated, 2);
            run.marks.add(Mark::HitUnaligned, 1);
            let padded = scenario.behaviours().decode_prefix_cut == DecodePrefixCut::PaddedUp;
            for _ in 0..(scenario.seed % 2) * u64::from(padded) {
                run.findings.add(missing());
            }
        }
        Ok(run)
    }

    fn missing() -> Finding {
        Finding {
            code: Code::PlacedMissing,
            tick: Tick(1),
            request: None,
            rank: None,
            expected: "written".to_owned(),
            found: "never written".to_owned(),
        }
    }

    /// No engine has pages of 64 with two ranks here.
    pub(crate) fn check(scenario: &Scenario) -> Result<(), String> {
        if scenario.layout.page_size == 64 && scenario.layout.ranks == 2 {
            return Err("64 pages of 64 tokens on 2 ranks do not fit".to_owned());
        }
        Ok(())
    }

    /// A whole sweep of the small plan.
    pub(crate) fn swept(path: &Scratch, threads: usize) -> (Ledger, Outcome) {
        let mut ledger = Ledger::start(&path.0, &small(), check).unwrap();
        let go_on = AtomicBool::new(false);
        let outcome = execute(&mut ledger, threads, &go_on, fake, |_| {}).unwrap();
        (ledger, outcome)
    }

    #[test]
    fn the_number_of_threads_leaves_no_trace() {
        let (one, two) = (Scratch::new("one"), Scratch::new("two"));
        let (ledger_one, outcome_one) = swept(&one, 1);
        let (ledger_two, outcome_two) = swept(&two, 2);
        assert_eq!(ledger_one.content_digest().unwrap(), ledger_two.content_digest().unwrap());
        assert_eq!(outcome_one, outcome_two);
    }

    #[test]
    fn impossible_cells_are_kept_with_their_reason_and_not_run() {
        let path = Scratch::new("impossible");
        let (ledger, outcome) = swept(&path, 1);
        let cells: Vec<u64> = outcome.impossible.keys().map(|cell| cell.0).collect();
        assert_eq!(cells, [6, 7]);
        assert!(outcome.impossible[&CellId(6)].contains("do not fit"));
        assert_eq!((outcome.progress.done, outcome.progress.total), (18, 18));
        assert_eq!(ledger.done().unwrap()[18..], [false; 6]);
        // Cell 3 (pages of 16, two ranks, padded up) at the seeds 5 and 7 of 5, 6 and 7.
        assert_eq!(outcome.defects, 2);
        assert_eq!(outcome.marks_missing, []);
    }

    #[test]
    fn a_resumed_sweep_does_exactly_the_rest_and_ends_as_an_undisturbed_one() {
        let whole = Scratch::new("whole");
        let digest = swept(&whole, 1).0.content_digest().unwrap();
        for stop_after in 0..18 {
            let path = Scratch::new(&format!("stopped-{stop_after}"));
            let stop = AtomicBool::new(stop_after == 0);
            let calls = AtomicU64::new(0);
            let counted = |scenario: &Scenario| {
                if calls.fetch_add(1, Ordering::Relaxed) + 1 == stop_after {
                    stop.store(true, Ordering::Relaxed);
                }
                fake(scenario)
            };
            let mut ledger = Ledger::start(&path.0, &small(), check).unwrap();
            let first = execute(&mut ledger, 1, &stop, counted, |_| {}).unwrap();
            assert!(first.is_interrupted(), "{first:?}");
            assert_eq!(first.progress.done, stop_after);
            drop(ledger);
            stop.store(false, Ordering::Relaxed);
            let mut ledger = Ledger::start(&path.0, &small(), check).unwrap();
            let second = execute(&mut ledger, 2, &stop, counted, |_| {}).unwrap();
            assert!(!second.is_interrupted());
            assert_eq!(calls.load(Ordering::Relaxed), 18);
            assert_eq!(ledger.content_digest().unwrap(), digest);
        }
    }

    #[test]
    fn a_finished_sweep_has_nothing_left_to_do() {
        let path = Scratch::new("finished");
        drop(swept(&path, 1));
        let mut ledger = Ledger::start(&path.0, &small(), check).unwrap();
        let stop = AtomicBool::new(false);
        let never = |_: &Scenario| panic!("this run is in the ledger");
        let outcome = execute(&mut ledger, 1, &stop, never, |_| {}).unwrap();
        assert_eq!(outcome.progress.done, 18);
    }

    #[test]
    fn runs_that_cannot_be_run_are_counted_and_kept_apart() {
        let path = Scratch::new("errors");
        let mut ledger = Ledger::start(&path.0, &small(), check).unwrap();
        let stop = AtomicBool::new(false);
        let broken = |_: &Scenario| Err("no such trace".to_owned());
        let outcome = execute(&mut ledger, 1, &stop, broken, |_| {}).unwrap();
        assert_eq!((outcome.errors, outcome.defects), (18, 0));
        assert_eq!(outcome.marks_missing, [Mark::HitUnaligned]);
        let summary = &ledger.summaries().unwrap()[0];
        assert_eq!((summary.runs, summary.errors), (0, 3));
    }

    #[test]
    fn progress_is_reported_from_what_is_there_to_the_total() {
        let path = Scratch::new("progress");
        let mut ledger = Ledger::start(&path.0, &small(), check).unwrap();
        let stop = AtomicBool::new(false);
        let mut seen = Vec::new();
        execute(&mut ledger, 1, &stop, fake, |progress| {
            seen.push(progress.done);
        })
        .unwrap();
        assert_eq!((seen[0], seen[seen.len() - 1]), (0, 18));
        assert!(seen.is_sorted());
    }

    #[test]
    fn a_ledger_of_another_plan_or_another_kind_of_file_is_refused() {
        let path = Scratch::new("other");
        drop(swept(&path, 1));
        let other = PLAN.replace("count = 3", "count = 4");
        let other = Plan::parse(sources(&other)).unwrap();
        let error = Ledger::start(&path.0, &other, check).err().unwrap();
        assert!(matches!(error, LedgerError::OtherPlan { .. }), "{error}");
        assert!(error.to_string().contains("A small sweep"), "{error}");
        let text = Scratch::new("text");
        std::fs::write(&text.0, "a file of text that is long enough to be read as one").unwrap();
        for result in [Ledger::start(&text.0, &small(), check), Ledger::open(&text.0)] {
            let error = result.err().unwrap();
            assert!(matches!(error, LedgerError::NotALedger(_)), "{error}");
        }
    }

    #[test]
    fn a_ledger_of_another_release_is_refused() {
        let path = Scratch::new("release");
        drop(swept(&path, 1));
        let db = rusqlite::Connection::open(&path.0).unwrap();
        db.execute("UPDATE plan SET kvseam = '0.0.1'", []).unwrap();
        let error = Ledger::start(&path.0, &small(), check).err().unwrap();
        assert!(error.to_string().contains("got one of kvseam 0.0.1"), "{error}");
        assert!(Ledger::open(&path.0).is_ok());
        db.pragma_update(None, "user_version", 99).unwrap();
        let error = Ledger::open(&path.0).err().unwrap();
        assert!(error.to_string().contains("got one of schema 99"), "{error}");
    }

    #[test]
    fn runs_of_an_unknown_cell_are_an_error_of_the_ledger() {
        let path = Scratch::new("unknown-cell");
        let (ledger, _) = swept(&path, 1);
        let spoil = "PRAGMA foreign_keys = OFF; UPDATE runs SET cell = 99 WHERE id = 0";
        ledger.db.execute_batch(spoil).unwrap();
        let error = ledger.summaries().unwrap_err();
        assert!(matches!(error, LedgerError::Sqlite { .. }), "{error}");
        assert!(error.to_string().contains("cell: must be below 8"), "{error}");
    }

    #[test]
    fn summaries_are_the_sums_over_the_runs_of_a_cell() {
        let path = Scratch::new("summaries");
        let (ledger, _) = swept(&path, 2);
        let summaries = ledger.summaries().unwrap();
        let padded = &summaries[3];
        let found = padded.codes[&Code::PlacedMissing];
        assert_eq!((found.runs, found.count, found.seed), (2, 2, 5));
        assert_eq!(padded.defects, Some(found));
        assert_eq!(padded.chances.get(Chance::Activated), 6);
        assert_eq!(padded.runs_with_chance.get(Chance::Activated), 3);
        let one_rank = &summaries[0];
        assert_eq!((one_rank.runs, one_rank.defects), (3, None));
        assert_eq!(one_rank.runs_with_chance.get(Chance::Activated), 0);
        assert!(summaries[7].impossible.is_some());
        assert_eq!(ledger.marks().unwrap().get(Mark::HitUnaligned), 6);
    }
}
