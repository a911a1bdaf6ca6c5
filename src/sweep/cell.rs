//! A *cell*: one combination of points, run once for every seed.
//!
//! Cells are numbered with the last axis fastest, and runs with the seed faster still, so that a
//! run's number says its cell and its seed.

use super::axis::Point;
use super::plan::Plan;
use super::runner::caught;
use crate::scenario::Scenario;

/// The number of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CellId(pub u64);

/// The number of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RunId(pub u64);

impl Plan {
    /// How many cells.
    pub fn cells(&self) -> u64 {
        self.axes.iter().map(|axis| axis.points.len() as u64).product()
    }

    /// How many runs, those of impossible cells and those beyond the budget included.
    pub fn runs(&self) -> u64 {
        self.cells() * self.seeds.count
    }

    /// The cell and the seed of a run.
    pub fn place(&self, run: RunId) -> (CellId, u64) {
        let ordinal = run.0 % self.seeds.count;
        (CellId(run.0 / self.seeds.count), self.seeds.first + ordinal)
    }

    /// The first and the last run of a cell.
    pub fn runs_of(&self, cell: CellId) -> (RunId, RunId) {
        let first = cell.0 * self.seeds.count;
        (RunId(first), RunId(first + self.seeds.count - 1))
    }

    /// Where a cell lies: the index of a point on each axis.
    pub fn indices(&self, cell: CellId) -> Vec<usize> {
        let mut rest = cell.0;
        let mut indices: Vec<usize> = self
            .axes
            .iter()
            .rev()
            .map(|axis| {
                let points = axis.points.len() as u64;
                let index = rest % points;
                rest /= points;
                usize::try_from(index).expect("below the number of points")
            })
            .collect();
        indices.reverse();
        indices
    }

    /// Where a cell lies: a point on each axis.
    pub fn points(&self, cell: CellId) -> Vec<&Point> {
        self.indices(cell)
            .into_iter()
            .zip(&self.axes)
            .map(|(index, axis)| &axis.points[index])
            .collect()
    }

    /// The cell's settings in words: `layout.ranks = 2, behaviour = padded up`.
    pub fn describe(&self, cell: CellId) -> String {
        let settings: Vec<String> = self
            .axes
            .iter()
            .zip(self.points(cell))
            .map(|(axis, point)| format!("{} = {}", axis.name, point.name))
            .collect();
        settings.join(", ")
    }

    /// The base scenario with the cell's settings. The error says why they cannot stand together.
    pub fn scenario(&self, cell: CellId) -> Result<Scenario, String> {
        let points = self.points(cell);
        self.with(points.iter().flat_map(|point| &point.set))
    }

    /// Why a cell is not run, if it is not: the reason of a filter, or what `check` says of its
    /// scenario. Where `check` panics the cell is run, so that its runs fail and say so.
    pub fn impossible(
        &self,
        cell: CellId,
        check: impl Fn(&Scenario) -> Result<(), String>,
    ) -> Option<String> {
        let indices = self.indices(cell);
        let filter = self.filters.iter().find(|filter| filter.selection.has(&indices));
        match filter {
            Some(filter) => Some(filter.reason.clone()),
            None => {
                let checked = |scenario| caught(|| check(&scenario)).unwrap_or(Ok(()));
                self.scenario(cell).and_then(checked).err()
            }
        }
    }
}
