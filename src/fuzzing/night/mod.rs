//! A nightly run of everything that takes long: replays, a sweep, every fuzz target for its share
//! of a budget, and one page that says what is new since the night before.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::finding::Code;
use crate::stats::Rate;

pub mod budget;
pub mod finds;
pub mod page;
pub mod state;
pub mod target;

use finds::{Defect, Explained};
use target::Figures;

/// What one night has done and found.
#[derive(Clone, Debug, Default)]
pub struct Night {
    /// Its number, from 1.
    pub number: u64,
    /// The time that it was given.
    pub budget: Duration,
    /// Whether it was stopped before its end.
    pub is_interrupted: bool,
    /// Defects, each with whether it is new.
    pub defects: Vec<(Defect, bool)>,
    /// Scenario files that were replayed, and how many of them do not show what they say.
    pub replayed: Option<(u64, u64)>,
    /// The sweep.
    pub sweep: Option<SweepFigures>,
    /// The fuzz targets in the order in which they ran.
    pub targets: Vec<(String, Figures)>,
    /// What hunts have found as they should, by name, each with how often.
    pub explained: BTreeMap<String, (Explained, u64)>,
    /// What could not be done, and why.
    pub remarks: Vec<String>,
}

impl Night {
    /// Whether replays and sweep were complete.
    fn looked_at_everything(&self) -> bool {
        let is_swept = self.sweep.as_ref().is_some_and(|sweep| sweep.done == sweep.total);
        !self.is_interrupted && self.replayed.is_some() && is_swept
    }
}

/// The figures of a night's sweep.
#[derive(Clone, Debug, Default)]
pub struct SweepFigures {
    /// The plan's title.
    pub title: String,
    /// Runs done.
    pub done: u64,
    /// Runs of the plan.
    pub total: u64,
    /// Runs that found a code, of those that had a chance to.
    pub rates: BTreeMap<Code, Rate>,
}

impl Night {
    /// New defects.
    pub fn new_defects(&self) -> impl Iterator<Item = &Defect> {
        self.defects.iter().filter(|(_, is_new)| *is_new).map(|(defect, _)| defect)
    }
}
