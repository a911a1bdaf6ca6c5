//! Whole runs: a recorded run of real schedulers against the simulation of the same scenario.
//!
//! A line holds the configuration, the requests, and what the two schedulers did. The scenario is
//! run with the profile of the recorded release, and what each request and each server went through
//! is compared in [`Level`]s.

mod compare;
mod happening;
mod line;
mod modelled;
mod recorded;

pub use compare::Difference;
pub use happening::Level;

use super::{LineError, parse};
use crate::scenario::Scenario;
use crate::world::RunError;

/// How far a recorded run and the model's agree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agreement {
    /// The kind of run, as the recorder names it.
    pub kind: String,
    /// The last level up to which they agree; `None` if not even at the first.
    pub level: Option<Level>,
    /// The first difference, if there is one up to the level that was asked for.
    pub difference: Option<Difference>,
}

/// The scenario that a line of a whole run is of.
pub fn run_scenario(line: &str) -> Result<Scenario, LineError> {
    parse::<line::Line>(line)?.scenario()
}

/// Runs the scenario of a line and compares up to the level `most`.
pub(super) fn check(line: &str, most: Level) -> Result<Agreement, LineError> {
    let line: line::Line = parse(line)?;
    let recorded = recorded::happenings(&line)?;
    let scenario = line.scenario()?;
    let model = modelled::happenings(&scenario).map_err(|error| match error {
        RunError::Invalid(invalid) => {
            LineError::Malformed { path: "scenario".to_owned(), message: invalid.to_string() }
        }
        RunError::Workload(error) => LineError::Malformed {
            path: "scenario.requests".to_owned(),
            message: error.to_string(),
        },
    })?;
    let (level, difference) = compare::compare(&recorded, &model, most);
    Ok(Agreement { kind: line.kind, level, difference })
}
