//! Which runs a sweep has to do: those of the possible cells, within the plan's budget, of one
//! shard.

use super::cell::{CellId, RunId};
use super::plan::Plan;
use super::shard::Shard;

/// The runs of one sweep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueRuns {
    cells: Vec<CellId>,
    seeds: u64,
    /// How many seeds of each cell; the first `extra` cells have one more.
    each: u64,
    extra: u64,
    shard: Shard,
    is_by_seed: bool,
}

impl DueRuns {
    /// Of these possible cells of `plan`, in order. A budget of runs is shared out evenly: each
    /// cell has as many seeds as any other, or one more.
    pub fn new(plan: &Plan, cells: Vec<CellId>, shard: Shard) -> DueRuns {
        let count = cells.len() as u64;
        let seeds = plan.seeds.count;
        let budget = plan.budget.runs.filter(|&runs| count > 0 && runs < count * seeds);
        let (each, extra) = budget.map_or((seeds, 0), |runs| (runs / count, runs % count));
        let is_by_seed = plan.budget.seconds.is_some();
        DueRuns { cells, seeds, each, extra, shard, is_by_seed }
    }

    /// The same of another shard.
    pub fn of(&self, shard: Shard) -> DueRuns {
        DueRuns { shard, ..self.clone() }
    }

    /// How many.
    pub fn count(&self) -> u64 {
        self.cells().map(|(_, runs)| runs).sum()
    }

    /// The possible cells, each with how many of its runs are due.
    pub fn cells(&self) -> impl Iterator<Item = (CellId, u64)> {
        (0..).zip(&self.cells).map(|(index, &cell)| {
            let first = cell.0 * self.seeds;
            (cell, self.shard.count(first, first + self.each + u64::from(index < self.extra)))
        })
    }

    /// The runs. They go cell by cell, which is the least work; where the plan has a budget of time
    /// they go seed by seed, so that all cells have as many wherever it ends.
    pub fn runs(&self) -> impl Iterator<Item = RunId> + Send {
        let all = self.cells.len() as u64 * self.each + self.extra;
        (0..all).map(|place| self.run(place)).filter(|&run| self.shard.has(run))
    }

    /// The run at a place in the order, other shards' runs counted.
    fn run(&self, place: u64) -> RunId {
        let (cell, ordinal) = if self.is_by_seed {
            let cells = self.cells.len() as u64;
            (place % cells, place / cells)
        } else {
            let longer = self.extra * (self.each + 1);
            match place.checked_sub(longer) {
                None => (place / (self.each + 1), place % (self.each + 1)),
                Some(rest) => (self.extra + rest / self.each, rest % self.each),
            }
        };
        let cell = self.cells[usize::try_from(cell).expect("below the number of cells")];
        RunId(cell.0 * self.seeds + ordinal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::plan::tests::{PLAN, sources};

    /// Eight cells of three seeds, of which the cells 6 and 7 are impossible.
    fn due(budget: &str, shard: &str) -> DueRuns {
        let text = PLAN.replace("marks =", &format!("{budget}\nmarks ="));
        let plan = Plan::parse(sources(&text)).unwrap();
        DueRuns::new(&plan, (0..6).map(CellId).collect(), shard.parse().unwrap())
    }

    fn runs(due: &DueRuns) -> Vec<u64> {
        let runs: Vec<u64> = due.runs().map(|run| run.0).collect();
        assert_eq!(runs.len() as u64, due.count());
        runs
    }

    #[test]
    fn cell_by_cell_or_seed_by_seed() {
        assert_eq!(runs(&due("", "1/1")), (0..18).collect::<Vec<_>>());
        let by_seed = runs(&due("budget = { seconds = 60 }", "1/1"));
        assert_eq!(by_seed[..8], [0, 3, 6, 9, 12, 15, 1, 4]);
    }

    #[test]
    fn a_budget_of_runs_is_shared_out_evenly() {
        let eight = due("budget = { runs = 8 }", "1/1");
        assert_eq!(runs(&eight), [0, 1, 3, 4, 6, 9, 12, 15]);
        let counts: Vec<u64> = eight.cells().map(|(_, runs)| runs).collect();
        assert_eq!(counts, [2, 2, 1, 1, 1, 1]);
        let by_seed = due("budget = { runs = 8, seconds = 60 }", "1/1");
        assert_eq!(runs(&by_seed), [0, 3, 6, 9, 12, 15, 1, 4]);
        assert_eq!(runs(&due("budget = { runs = 4 }", "1/1")), [0, 3, 6, 9]);
        assert_eq!(due("budget = { runs = 100 }", "1/1").count(), 18);
    }

    #[test]
    fn shards_share_the_runs_out() {
        for budget in ["", "budget = { runs = 8 }", "budget = { seconds = 60 }"] {
            let mut all: Vec<u64> =
                (1..=4).flat_map(|number| runs(&due(budget, &format!("{number}/4")))).collect();
            all.sort_unstable();
            let mut whole = runs(&due(budget, "1/1"));
            whole.sort_unstable();
            assert_eq!(all, whole);
        }
    }
}
