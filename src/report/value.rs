//! What a cell of a grid of runs has to show: a rate, or why there is none.

use crate::stats::Rate;

/// What one cell, one bar or one point of a line shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// Hits out of chances; without chances it was not reached.
    Share(Rate),
    /// It cannot be run.
    Impossible,
    /// None of its runs is done yet.
    NotRun,
}
