//! Does the runs that a ledger lacks, on all cores.
//!
//! Every thread takes a few runs at a time and does them. What they left waits until half a second
//! has passed or enough is there; then one of the threads writes all of it in one transaction,
//! while the others go on with runs. Only `micros` depends on threads and batches.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread;
use std::time::{Duration, Instant};

use super::cell::{CellId, RunId};
use super::judge::Judged;
use super::ledger::{Ledger, LedgerError, Record};
use super::plan::Plan;
use super::runner::{Runner, caught};
use crate::scenario::Scenario;

/// Records that make a batch even before its time.
const BATCH_RUNS: usize = 4_096;
/// Records that may wait at most: beyond them threads wait for the writer, so that memory is
/// bounded.
const WAITING_MAX: usize = 4 * BATCH_RUNS;
/// A batch is written after so long: a killed sweep loses no more, and the writes of shorter ones
/// would cost too much.
const BATCH_TIME: Duration = Duration::from_millis(500);
/// A thread takes as many runs at a time as last so long.
const TAKE_TIME: Duration = Duration::from_millis(10);
/// Runs that a thread takes at most at a time.
const TAKE_RUNS_MAX: usize = 256;
/// Cells that a thread keeps where it goes seed by seed, so that each is made and checked once. A
/// scenario is a few kilobytes unless it spells out its requests. Of more cells the first are kept.
const CELLS_KEPT: usize = 1_024;

/// Why a sweep ended before its time.
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    /// The ledger cannot be read or written.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The threads cannot be started.
    #[error("threads: {0}")]
    Threads(rayon::ThreadPoolBuildError),
}

/// How far a sweep is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Runs in the ledger.
    pub done: u64,
    /// Runs of all possible cells within the budget, of this shard.
    pub total: u64,
}

/// How a sweep ended.
#[derive(Clone, Debug, PartialEq)]
pub struct SweepEnd {
    /// Runs in the ledger; fewer than the total if the sweep was interrupted or its time was up.
    pub progress: Progress,
    /// Whether it was told to stop.
    pub is_interrupted: bool,
    /// Cells that cannot be run, with the reason.
    pub impossible: BTreeMap<CellId, String>,
    /// What all runs say, those of earlier calls included.
    pub judged: Judged,
}

/// Does every run that `ledger` lacks by `runner`, on `threads` threads (0: all cores), within the
/// plan's budget. `report` hears of every batch. Once `stop` is set no further run is begun, and
/// those that are done are kept.
pub fn execute<R, P>(
    ledger: &mut Ledger,
    threads: usize,
    stop: &AtomicBool,
    runner: R,
    report: P,
) -> Result<SweepEnd, SweepError>
where
    R: Runner,
    P: FnMut(Progress) + Send,
{
    let (plan, due, done) = (ledger.plan.clone(), ledger.due()?, ledger.done()?);
    let progress = Progress { done: done.len(), total: due.count() };
    let end = plan.budget.seconds.and_then(|seconds| {
        // A time that the clock cannot count to never comes.
        Instant::now().checked_add(Duration::from_secs(seconds))
    });
    let mut left = due.runs().filter(|&run| !done.contains(run));
    let writer = Writer { ledger, report, progress, written: Instant::now() };
    let execution = Execution {
        plan: &plan,
        runner,
        stop,
        end,
        left: Mutex::new(&mut left),
        waiting: Mutex::new(Vec::new()),
        writer: Mutex::new(writer),
        failed: AtomicBool::new(false),
    };
    lock(&execution.writer).report();
    execution.work_on(threads_of(threads))?;
    let progress = lock(&execution.writer).progress;
    let is_interrupted = progress.done < progress.total && stop.load(Ordering::Relaxed);
    drop(execution);
    Ok(SweepEnd {
        progress,
        is_interrupted,
        impossible: ledger.impossible()?,
        judged: ledger.judge()?,
    })
}

/// How many threads 0 stands for.
pub fn threads_of(threads: usize) -> usize {
    match threads {
        0 => thread::available_parallelism().map_or(1, usize::from),
        threads => threads,
    }
}

/// One call of [`execute`], shared by its threads.
struct Execution<'a, R, P> {
    plan: &'a Plan,
    runner: R,
    stop: &'a AtomicBool,
    end: Option<Instant>,
    left: Mutex<&'a mut (dyn Iterator<Item = RunId> + Send)>,
    waiting: Mutex<Vec<Record>>,
    writer: Mutex<Writer<'a, P>>,
    /// Nothing can be written any more.
    failed: AtomicBool,
}

/// The cells that a thread has at hand.
type Cells = BTreeMap<CellId, CheckedCell>;

/// A cell of which a thread does runs.
struct CheckedCell {
    scenario: Scenario,
    /// Why it cannot be run, if it cannot: another registry may have begun the ledger.
    checked: Result<(), String>,
}

/// What the thread that writes holds.
struct Writer<'a, P> {
    ledger: &'a mut Ledger,
    report: P,
    progress: Progress,
    written: Instant,
}

impl<R, P> Execution<'_, R, P>
where
    R: Runner,
    P: FnMut(Progress) + Send,
{
    /// Works on so many threads until nothing is left, or it is to stop.
    fn work_on(&self, threads: usize) -> Result<(), SweepError> {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        let ended = pool.map_err(SweepError::Threads)?.broadcast(|_| self.work());
        ended.into_iter().collect()
    }

    fn work(&self) -> Result<(), SweepError> {
        let mut cells = Cells::new();
        let mut take = 1;
        loop {
            let taken = self.take(take);
            let began = Instant::now();
            let records = self.records(&taken, &mut cells);
            let is_last = records.len() < taken.len() || taken.is_empty();
            take = match began.elapsed() {
                time if time < TAKE_TIME / 2 => (2 * take).min(TAKE_RUNS_MAX),
                time if time > TAKE_TIME => (take / 2).max(1),
                _ => take,
            };
            self.hand_in(records)?;
            if is_last {
                // Others may be at their last run for long.
                return self.write(&mut lock(&self.writer));
            }
        }
    }

    /// The next runs.
    fn take(&self, count: usize) -> Vec<RunId> {
        let mut left = lock(&self.left);
        std::iter::from_fn(|| left.next()).take(count).collect()
    }

    /// The records of these runs, or of the first of them if it is to stop.
    fn records(&self, runs: &[RunId], cells: &mut Cells) -> Vec<Record> {
        let mut records = Vec::with_capacity(runs.len());
        for &id in runs {
            if self.is_over() {
                break;
            }
            let (place, seed) = self.plan.place(id);
            let cell = self.cell(place, cells);
            cell.scenario.seed = seed;
            records.push(record(id, cell, &self.runner));
        }
        records
    }

    /// A cell, out of those at hand or put there.
    fn cell<'c>(&self, id: CellId, cells: &'c mut Cells) -> &'c mut CheckedCell {
        let kept = if self.plan.budget.seconds.is_some() { CELLS_KEPT } else { 1 };
        if cells.len() == kept && !cells.contains_key(&id) {
            cells.pop_last();
        }
        cells.entry(id).or_insert_with(|| {
            let scenario = self.plan.scenario(id);
            let scenario = scenario
                .expect("a cell that does not parse is impossible, with its reason in the ledger");
            let checked = caught(|| self.runner.check(&scenario)).unwrap_or_else(Err);
            CheckedCell { scenario, checked }
        })
    }

    fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
            || self.failed.load(Ordering::Relaxed)
            || self.end.is_some_and(|end| Instant::now() >= end)
    }

    /// Leaves records for the writer, and is the writer if a batch is due and nobody else is.
    fn hand_in(&self, records: Vec<Record>) -> Result<(), SweepError> {
        let waiting = {
            let mut waiting = lock(&self.waiting);
            waiting.extend(records);
            waiting.len()
        };
        let mut writer = match self.writer.try_lock() {
            Ok(writer) => writer,
            Err(TryLockError::WouldBlock) if waiting < WAITING_MAX => return Ok(()),
            Err(_) => lock(&self.writer),
        };
        if waiting >= BATCH_RUNS || writer.written.elapsed() >= BATCH_TIME {
            self.write(&mut writer)?;
        }
        Ok(())
    }

    /// Writes what waits.
    fn write(&self, writer: &mut Writer<P>) -> Result<(), SweepError> {
        let mut records = std::mem::take(&mut *lock(&self.waiting));
        // In order, as rows at a table's end take the least time and space.
        records.sort_unstable_by_key(|record| record.run);
        writer.ledger.append(&records).inspect_err(|_| {
            self.failed.store(true, Ordering::Relaxed);
        })?;
        writer.progress.done += records.len() as u64;
        writer.written = Instant::now();
        writer.report();
        Ok(())
    }
}

impl<P: FnMut(Progress)> Writer<'_, P> {
    fn report(&mut self) {
        (self.report)(self.progress);
    }
}

/// What a mutex guards. A thread that panics ends the whole sweep when it is joined.
fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn record(id: RunId, cell: &CheckedCell, runner: &impl Runner) -> Record {
    let began = Instant::now();
    let run = || cell.checked.clone().and_then(|()| runner.run(&cell.scenario));
    let outcome = caught(run).unwrap_or_else(Err);
    Record {
        run: id,
        outcome,
        micros: u64::try_from(began.elapsed().as_micros())
            .expect("no run takes half a million years"),
    }
}

#[cfg(test)]
pub(crate) mod tests;
