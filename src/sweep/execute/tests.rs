//! Tests of sweeps, and the stand-ins for the world that other tests run.

use std::path::PathBuf;
use std::sync::atomic::AtomicU64;

use super::*;
use crate::behaviour::DecodePrefixCut;
use crate::finding::{Chance, Code, Finding, Mark, Metric, Run};
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
pub(crate) fn swept(path: &Scratch, threads: usize) -> (Ledger, SweepEnd) {
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
    let done = ledger.done().unwrap();
    assert!((0..24).all(|run| done.contains(RunId(run)) == (run < 18)));
    // Cell 3 (pages of 16, two ranks, padded up) at the seeds 5 and 7 of 5, 6 and 7.
    assert_eq!(outcome.judged.defects, 2);
    assert_eq!(outcome.judged.marks_missing, []);
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
        assert!(first.is_interrupted, "{first:?}");
        assert_eq!(first.progress.done, stop_after);
        drop(ledger);
        stop.store(false, Ordering::Relaxed);
        let mut ledger = Ledger::start(&path.0, &small(), check).unwrap();
        let second = execute(&mut ledger, 2, &stop, counted, |_| {}).unwrap();
        assert!(!second.is_interrupted && second.progress.done == second.progress.total);
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
    assert_eq!((outcome.judged.errors, outcome.judged.defects), (18, 0));
    assert_eq!(outcome.judged.marks_missing, [Mark::HitUnaligned]);
    let summary = &ledger.summaries().unwrap()[0];
    assert_eq!((summary.runs, summary.errors), (0, 3));
}

/// Runs [`fake`] behind a check of its own.
struct Checked<C>(C);

impl<C: Fn(&Scenario) -> Result<(), String> + Sync> Runner for Checked<C> {
    fn check(&self, scenario: &Scenario) -> Result<(), String> {
        (self.0)(scenario)
    }

    fn run(&self, scenario: &Scenario) -> Result<Run, String> {
        fake(scenario)
    }
}

#[test]
fn a_panic_of_a_check_or_of_a_run_fails_the_runs_and_the_sweep_goes_on() {
    let has_one_rank = |scenario: &Scenario| scenario.layout.ranks == 1;
    let broken_check = |scenario: &Scenario| match has_one_rank(scenario) {
        true => panic!("a broken invariant of the check"),
        false => check(scenario),
    };
    let broken_run = |scenario: &Scenario| match has_one_rank(scenario) {
        true => panic!("a broken invariant of the run"),
        false => fake(scenario),
    };
    let stop = AtomicBool::new(false);
    let path = Scratch::new("panicking-check");
    let mut ledger = Ledger::start(&path.0, &small(), broken_check).unwrap();
    let of_check = execute(&mut ledger, 2, &stop, Checked(broken_check), |_| {}).unwrap();
    let path = Scratch::new("panicking-run");
    let mut ledger = Ledger::start(&path.0, &small(), check).unwrap();
    let of_run = execute(&mut ledger, 2, &stop, broken_run, |_| {}).unwrap();
    assert_eq!(of_run.judged.errors, 12, "four cells of one rank, of three seeds");
    assert_eq!(of_check, of_run);
}

#[test]
fn a_sweep_by_seconds_checks_each_cell_once() {
    let text = PLAN.replace("marks =", "budget = { seconds = 600 }\nmarks =");
    let plan = Plan::parse(sources(&text)).unwrap();
    let checks = AtomicU64::new(0);
    let counted = |scenario: &Scenario| {
        checks.fetch_add(1, Ordering::Relaxed);
        check(scenario)
    };
    let (path, stop) = (Scratch::new("by-seconds"), AtomicBool::new(false));
    let mut ledger = Ledger::start(&path.0, &plan, check).unwrap();
    let outcome = execute(&mut ledger, 1, &stop, Checked(counted), |_| {}).unwrap();
    assert_eq!((outcome.progress.done, checks.into_inner()), (18, 6));
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
    db.execute("UPDATE versions SET kvseam = '0.0.1'", []).unwrap();
    let error = Ledger::start(&path.0, &small(), check).err().unwrap();
    assert!(error.to_string().contains("got one of kvseam 0.0.1"), "{error}");
    assert!(Ledger::open(&path.0).is_ok());
    db.pragma_update(None, "user_version", 99).unwrap();
    let error = Ledger::open(&path.0).err().unwrap();
    assert!(error.to_string().contains("got one of schema 99"), "{error}");
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
