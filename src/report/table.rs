//! The numbers behind a report: how often each class of error was found, by the axes of the plan.
//!
//! A *frequency* is the share of runs that found the class among the runs that had a chance to. A
//! group without such a run was not reached, which is not the same as a frequency of zero.

use crate::finding::{Code, Severity};
use crate::stats::Rate;
use crate::sweep::cell::CellId;
use crate::sweep::plan::Plan;
use crate::sweep::summary::{CellSummary, Incidence};

/// Below so many runs a frequency is marked as uncertain.
pub const RUNS_FEW: u64 = 100;

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Any code that a sound system never produces.
    Defect,
    /// One code.
    Code(Code),
}

/// The runs of some cells, counted for one class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Group {
    /// Runs that found it, out of those that could.
    pub runs: Rate,
    /// Findings out of chances, all runs together. For defects these are runs.
    pub findings: Rate,
    /// Whether the cells were run.
    pub state: State,
    /// The first of the cells.
    pub first: Option<CellId>,
    /// A run to look at: the first that found it, or else the first of a cell that could.
    pub example: Option<Example>,
}

/// Whether any of some cells was run, or can be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// None of them can be run.
    #[default]
    Impossible,
    /// No run is done yet.
    NotRun,
    /// There are runs.
    Ran,
}

/// A run to look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Example {
    /// Its cell.
    pub cell: CellId,
    /// Its seed.
    pub seed: u64,
    /// Whether it found the class.
    pub found: bool,
}

/// A point of an axis, by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    /// The axis.
    pub axis: usize,
    /// The point of it.
    pub point: usize,
}

/// Groups by two axes, row by row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pivot {
    /// Names of the rows.
    pub rows: Vec<String>,
    /// Names of the columns.
    pub columns: Vec<String>,
    /// A group for each row and column.
    pub groups: Vec<Vec<Group>>,
}

/// Everything a report counts.
pub struct Table<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// What each cell's runs left.
    pub cells: Vec<CellSummary>,
}

impl Class {
    /// As reports spell it.
    pub fn name(self) -> &'static str {
        match self {
            Class::Defect => "any defect",
            Class::Code(code) => crate::finding::Named::name(code),
        }
    }

    fn incidence(self, cell: &CellSummary) -> Option<Incidence> {
        match self {
            Class::Defect => cell.defects,
            Class::Code(code) => cell.codes.get(&code).copied(),
        }
    }

    /// Runs of the cell that could have found it, and how often they could.
    fn chances(self, cell: &CellSummary) -> (u64, u64) {
        match self {
            Class::Defect => (cell.runs, cell.runs),
            Class::Code(code) => {
                (cell.runs_with_chance.get(code.chance()), cell.chances.get(code.chance()))
            }
        }
    }
}

impl State {
    fn of(cell: &CellSummary) -> State {
        match (&cell.impossible, cell.runs + cell.errors) {
            (Some(_), _) => State::Impossible,
            (None, 0) => State::NotRun,
            (None, _) => State::Ran,
        }
    }
}

impl Table<'_> {
    /// Runs that are not done yet, and how many there are in all.
    pub fn left(&self) -> (u64, u64) {
        let sum = |count: fn(&CellSummary) -> u64| self.cells.iter().map(count).sum::<u64>();
        let impossible = sum(|cell| u64::from(cell.impossible.is_some()));
        let due = (self.plan.cells() - impossible) * self.plan.seeds.count;
        (due.saturating_sub(sum(|cell| cell.runs + cell.errors)), due)
    }

    /// The codes found anywhere: defects first, each kind in the order of declaration.
    pub fn codes(&self) -> Vec<Code> {
        let mut codes: Vec<Code> = crate::finding::Named::ALL
            .iter()
            .copied()
            .filter(|code| self.cells.iter().any(|cell| cell.codes.contains_key(code)))
            .collect();
        codes.sort_by_key(|code| code.severity() == Severity::Expected);
        codes
    }

    /// What the runs of a cell left.
    pub fn cell(&self, id: CellId) -> &CellSummary {
        &self.cells[usize::try_from(id.0).expect("limits::SWEEP_RUNS")]
    }

    /// One cell as a group.
    pub fn of_cell(&self, class: Class, cell: CellId) -> Group {
        self.group(class, &[cell])
    }

    /// All cells as one group.
    pub fn all(&self, class: Class) -> Group {
        self.pivot(class, None, None, None).groups[0][0]
    }

    /// Groups by the axes of these numbers. Without an axis there is one row or column, "all". Only
    /// cells at the `level` are counted if there is one.
    pub fn pivot(
        &self,
        class: Class,
        rows: Option<usize>,
        columns: Option<usize>,
        level: Option<Level>,
    ) -> Pivot {
        let (row_names, column_names) = (self.names(rows), self.names(columns));
        let mut members: Vec<Vec<Vec<CellId>>> =
            vec![vec![Vec::new(); column_names.len()]; row_names.len()];
        for cell in (0..self.plan.cells()).map(CellId) {
            let indices = self.plan.indices(cell);
            if level.is_some_and(|level| indices[level.axis] != level.point) {
                continue;
            }
            let at = |axis: Option<usize>| axis.map_or(0, |axis| indices[axis]);
            members[at(rows)][at(columns)].push(cell);
        }
        let groups = members
            .iter()
            .map(|row| row.iter().map(|cells| self.group(class, cells)).collect())
            .collect();
        Pivot { rows: row_names, columns: column_names, groups }
    }

    /// The cells with a defect by falling share of runs, then by the lower end of its interval,
    /// then by the number of codes that are defects; of equal ones, the first in the plan.
    pub fn worst(&self) -> Vec<(CellId, Group)> {
        let mut cells: Vec<(CellId, Group)> = (0..self.plan.cells())
            .map(|cell| (CellId(cell), self.of_cell(Class::Defect, CellId(cell))))
            .filter(|(_, group)| group.runs.hits > 0)
            .collect();
        // Shares compared as fractions, without rounding.
        cells.sort_by(|(_, a), (_, b)| {
            let left = u128::from(b.runs.hits) * u128::from(a.runs.chances);
            let right = u128::from(a.runs.hits) * u128::from(b.runs.chances);
            let low = |group: &Group| group.runs.interval().map_or(0.0, |interval| interval.low);
            left.cmp(&right).then(low(b).total_cmp(&low(a)))
        });
        // A stable sort within equal rates keeps the order of the plan.
        for equals in cells.chunk_by_mut(|(_, a), (_, b)| a.runs == b.runs) {
            equals.sort_by_key(|&(cell, _)| std::cmp::Reverse(self.defect_codes(cell)));
        }
        cells
    }

    fn defect_codes(&self, cell: CellId) -> usize {
        let codes = self.cell(cell).codes.keys();
        codes.filter(|code| code.severity() == Severity::Defect).count()
    }

    fn names(&self, axis: Option<usize>) -> Vec<String> {
        match axis {
            None => vec!["all".to_owned()],
            Some(axis) => {
                let points = &self.plan.axes[axis].points;
                points.iter().map(|point| point.name.clone()).collect()
            }
        }
    }

    fn group(&self, class: Class, members: &[CellId]) -> Group {
        let mut group = Group { first: members.first().copied(), ..Group::default() };
        for &id in members {
            let cell = self.cell(id);
            group.state = group.state.max(State::of(cell));
            let (runs, chances) = class.chances(cell);
            let found = class.incidence(cell);
            // A run that found something had its chance, whatever was counted.
            group.runs.chances += runs.max(found.map_or(0, |found| found.runs));
            group.findings.chances += chances;
            if let Some(found) = found {
                group.runs.hits += found.runs;
                group.findings.hits += found.count;
            }
            let example = example(id, found, cell.seed.filter(|_| runs > 0));
            if example.is_some_and(|new| group.example.is_none_or(|old| new.found && !old.found)) {
                group.example = example;
            }
        }
        group
    }
}

fn example(cell: CellId, found: Option<Incidence>, first: Option<u64>) -> Option<Example> {
    match found {
        Some(found) => Some(Example { cell, seed: found.seed, found: true }),
        None => first.map(|seed| Example { cell, seed, found: false }),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::finding::Chance;
    use crate::sweep::plan::tests::small;

    /// Page sizes 16 and 64 × ranks 1 and 2 × sound and padded up, 100 runs a cell. Padded up fails
    /// on two ranks: 30 runs with 45 findings at page size 16, 10 with 10 at 64. One rank has no
    /// transfer; at 64 with one rank nothing can be run.
    pub(crate) fn cells() -> Vec<CellSummary> {
        let mut cells = vec![CellSummary::default(); 8];
        for (index, cell) in cells.iter_mut().enumerate() {
            let (wide, two_ranks) = (index >= 4, index % 4 >= 2);
            if wide && !two_ranks {
                cell.impossible = Some("does not fit".to_owned());
                continue;
            }
            cell.runs = 100;
            cell.seed = Some(5);
            cell.chances.add(Chance::Requests, 2_000);
            cell.runs_with_chance.add(Chance::Requests, 100);
            if two_ranks {
                cell.chances.add(Chance::Activated, 900);
                cell.runs_with_chance.add(Chance::Activated, 90);
            }
        }
        for (index, runs, count, seed) in [(3, 30, 45, 8), (7, 10, 10, 6)] {
            let found = Incidence { runs, count, seed };
            cells[index].codes.insert(Code::PlacedMissing, found);
            cells[index].defects = Some(Incidence { count: runs, ..found });
        }
        cells
    }

    fn rate(hits: u64, chances: u64) -> Rate {
        Rate { hits, chances }
    }

    #[test]
    fn groups_add_up_the_cells_of_the_other_axes() {
        let (plan, cells) = (small(), cells());
        let table = Table { plan: &plan, cells };
        let pivot = table.pivot(Class::Code(Code::PlacedMissing), Some(0), Some(1), None);
        assert_eq!(pivot.rows, ["16", "64"]);
        assert_eq!(pivot.columns, ["1", "2"]);
        // Page size 16 on two ranks: sound (0 of 90) and padded up (30 of 90).
        assert_eq!(pivot.groups[0][1].runs, rate(30, 180));
        assert_eq!(pivot.groups[0][1].findings, rate(45, 1_800));
        assert_eq!(pivot.groups[1][1].runs, rate(10, 180));
        let all = table.all(Class::Defect);
        assert_eq!(all.runs, rate(40, 600));
    }

    #[test]
    fn without_a_chance_a_group_is_not_reached_and_without_a_run_impossible() {
        let (plan, cells) = (small(), cells());
        let table = Table { plan: &plan, cells };
        let pivot = table.pivot(Class::Code(Code::PlacedMissing), Some(0), Some(1), None);
        let (one_rank, none) = (pivot.groups[0][0], pivot.groups[1][0]);
        assert_eq!((one_rank.runs, one_rank.state), (rate(0, 0), State::Ran));
        assert_eq!((none.runs, none.state), (rate(0, 0), State::Impossible));
        let defects = table.pivot(Class::Defect, Some(0), Some(1), None);
        assert_eq!(defects.groups[0][0].runs, rate(0, 200));
    }

    #[test]
    fn at_a_level_only_its_cells_count() {
        let (plan, cells) = (small(), cells());
        let table = Table { plan: &plan, cells };
        let class = Class::Code(Code::PlacedMissing);
        let level = |point| Some(Level { axis: 2, point });
        let [sound, padded] =
            [0, 1].map(|point| table.pivot(class, Some(0), Some(1), level(point)));
        assert_eq!(sound.groups[0][1].runs, rate(0, 90));
        assert_eq!(padded.groups[0][1].runs, rate(30, 90));
    }

    #[test]
    fn cells_without_any_run_are_not_run_yet_rather_than_not_reached() {
        let (plan, mut cells) = (small(), cells());
        cells[3] = CellSummary::default();
        let table = Table { plan: &plan, cells };
        let level = Some(Level { axis: 2, point: 1 });
        let pivot = table.pivot(Class::Code(Code::PlacedMissing), Some(0), Some(1), level);
        assert_eq!(pivot.groups[0][1].state, State::NotRun);
        assert_eq!(pivot.groups[0][0].state, State::Ran);
        assert_eq!(pivot.groups[1][0].state, State::Impossible);
    }

    #[test]
    fn equal_shares_are_sorted_by_certainty_and_then_by_codes() {
        let (plan, mut cells) = (small(), cells());
        let all = |runs| Incidence { runs, count: runs, seed: 5 };
        for (index, runs) in [(0, 3), (1, 100), (2, 100), (3, 50)] {
            cells[index].runs = runs;
            cells[index].defects = Some(all(runs));
            cells[index].codes = [(Code::PlacedMissing, all(runs))].into();
        }
        cells[2].codes.insert(Code::PlacedShifted, all(1));
        let table = Table { plan: &plan, cells };
        let worst: Vec<u64> = table.worst().iter().map(|(cell, _)| cell.0).collect();
        assert_eq!(worst, [2, 1, 3, 0, 7]);
    }

    #[test]
    fn examples_are_failing_runs_where_there_are_any() {
        let (plan, cells) = (small(), cells());
        let table = Table { plan: &plan, cells };
        let by_behaviour = table.pivot(Class::Defect, Some(2), None, None);
        let example = |cell, seed, found| {
            let cell = CellId(cell);
            Some(Example { cell, seed, found })
        };
        assert_eq!(by_behaviour.groups[0][0].example, example(0, 5, false));
        assert_eq!(by_behaviour.groups[1][0].example, example(3, 8, true));
    }

    #[test]
    fn the_worst_cell_has_the_highest_share() {
        let (plan, mut cells) = (small(), cells());
        cells[7].runs = 12;
        let table = Table { plan: &plan, cells };
        let worst: Vec<u64> = table.worst().iter().map(|(cell, _)| cell.0).collect();
        assert_eq!(worst, [7, 3]);
        assert_eq!(table.codes(), [Code::PlacedMissing]);
    }
}
