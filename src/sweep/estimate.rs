//! How long a sweep will take, measured on a few of its runs.

use std::time::{Duration, Instant};

use super::cell::CellId;
use super::due::DueRuns;
use super::plan::Plan;
use crate::finding::Run;
use crate::scenario::Scenario;

/// Runs that are measured at most, and cells that are tried.
const RUNS_MAX: u64 = 64;
/// No further run is measured after so long.
const TIME: Duration = Duration::from_secs(2);

/// The wall times of a few runs on one thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Estimate {
    /// Runs measured.
    pub runs: u64,
    /// Their time together.
    pub time: Duration,
    /// The shortest.
    pub min: Duration,
    /// The longest.
    pub max: Duration,
}

impl Estimate {
    /// Measures a few of the runs that are due, at least one: the first seed of cells that lie
    /// evenly among all, then their second, and so on. Whether a run finds anything, or cannot be
    /// run, is for the sweep to say.
    pub fn measure(
        plan: &Plan,
        due: &DueRuns,
        run: impl Fn(&Scenario) -> Result<Run, String>,
    ) -> Estimate {
        let cells: Vec<(CellId, u64)> = due.cells().filter(|(_, runs)| *runs > 0).collect();
        let tried: Vec<usize> = spread(cells.len()).collect();
        let mut estimate = Estimate::default();
        let rounds = cells.iter().map(|(_, runs)| *runs).max().unwrap_or(0);
        for ordinal in 0..rounds {
            let tried = tried.iter().map(|&index| &cells[index]);
            for &(cell, _) in tried.filter(|(_, runs)| ordinal < *runs) {
                if estimate.runs == RUNS_MAX || estimate.time >= TIME {
                    return estimate;
                }
                let Ok(scenario) = plan.scenario(cell) else { continue };
                let scenario = Scenario { seed: plan.seeds.first + ordinal, ..scenario };
                let began = Instant::now();
                drop(run(&scenario));
                estimate.add(began.elapsed());
            }
        }
        estimate
    }

    fn add(&mut self, time: Duration) {
        self.min = if self.runs == 0 { time } else { self.min.min(time) };
        self.max = self.max.max(time);
        self.time += time;
        self.runs += 1;
    }

    /// How long `runs` runs take on `threads` threads that do not slow each other down, without the
    /// writing of their ledger.
    pub fn of(&self, runs: u64, threads: usize) -> Duration {
        let (nanos, measured) = (self.time.as_nanos(), u128::from(self.runs.max(1)));
        let nanos = nanos * u128::from(runs) / (measured * threads.max(1) as u128);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

/// Indices below `cells` in an order that is spread over all of them wherever it ends: first the
/// middles of a few equal parts, as far apart as can be.
fn spread(cells: usize) -> impl Iterator<Item = usize> {
    let tried = u64::try_from(cells).unwrap_or(u64::MAX).min(RUNS_MAX);
    // The bits of a number in reverse order jump by halves, quarters, eighths.
    let bits = tried.next_power_of_two().trailing_zeros();
    let reversed = (0..1_u64 << bits).map(move |number| match bits {
        0 => 0,
        bits => number.reverse_bits() >> (u64::BITS - bits),
    });
    let parts = usize::try_from(tried).expect("RUNS_MAX");
    reversed.filter(move |&part| part < tried).map(move |part| {
        let part = usize::try_from(part).expect("RUNS_MAX");
        (2 * part + 1) * cells / (2 * parts)
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Mutex;

    use super::*;
    use crate::sweep::execute::tests::fake;
    use crate::sweep::plan::tests::small;
    use crate::sweep::shard::Shard;

    #[test]
    fn tried_cells_are_different_and_far_apart() {
        assert_eq!(spread(0).count(), 0);
        assert_eq!(spread(1).collect::<Vec<_>>(), [0]);
        assert_eq!(spread(4).collect::<Vec<_>>(), [0, 2, 1, 3]);
        for cells in [3, 64, 65, 1_000] {
            let tried: BTreeSet<usize> = spread(cells).collect();
            assert_eq!(tried.len(), cells.min(64), "{cells}");
            assert!(tried.iter().all(|&index| index < cells));
        }
        let first: Vec<usize> = spread(640).take(4).collect();
        assert_eq!(first, [5, 325, 165, 485]);
    }

    #[test]
    fn time_is_proportional_to_runs_and_shared_by_threads() {
        let mut estimate = Estimate::default();
        estimate.add(Duration::from_millis(30));
        estimate.add(Duration::from_millis(10));
        assert_eq!(
            (estimate.min, estimate.max),
            (Duration::from_millis(10), Duration::from_millis(30))
        );
        assert_eq!(estimate.of(100, 1), Duration::from_secs(2));
        assert_eq!(estimate.of(100, 4), Duration::from_millis(500));
        assert_eq!(Estimate::default().of(100, 1), Duration::ZERO);
    }

    #[test]
    fn every_run_of_a_small_plan_is_measured_once() {
        let plan = small();
        let due = DueRuns::new(&plan, (0..6).map(CellId).collect(), Shard::WHOLE);
        let seen = Mutex::new(Vec::new());
        let counted = |scenario: &Scenario| {
            seen.lock().unwrap().push(scenario.seed);
            fake(scenario)
        };
        assert_eq!(Estimate::measure(&plan, &due, counted).runs, 18);
        assert_eq!(seen.into_inner().unwrap(), [[5; 6], [6; 6], [7; 6]].concat());
    }
}
