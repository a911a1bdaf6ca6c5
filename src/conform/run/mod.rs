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
#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) mod told;

pub use compare::Difference;
use happening::Happening;
pub use happening::Level;

use serde_json::{Map, Value};

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
    let both = BothRuns::of(&line.scenario()?, &line.events)?;
    Ok(Agreement { kind: line.kind, ..both.compare(most) })
}

/// The happenings of one scenario on both sides.
pub struct BothRuns {
    recorded: Vec<Happening>,
    model: Vec<Happening>,
}

impl BothRuns {
    /// Reads the events of an engine, and runs `scenario`, whose requests must be written out.
    pub fn of(scenario: &Scenario, events: &[Map<String, Value>]) -> Result<BothRuns, LineError> {
        let recorded = recorded::happenings(events)?;
        let model = modelled::happenings(scenario).map_err(|error| match error {
            RunError::Invalid(invalid) => {
                LineError::Malformed { path: "scenario".to_owned(), message: invalid.to_string() }
            }
            RunError::Workload(error) => LineError::Malformed {
                path: "scenario.requests".to_owned(),
                message: error.to_string(),
            },
        })?;
        Ok(BothRuns { recorded, model })
    }

    /// Compares up to the level `most`; the kind of the answer is empty.
    pub fn compare(&self, most: Level) -> Agreement {
        let (level, difference) = compare::compare(&self.recorded, &self.model, most);
        Agreement { kind: String::new(), level, difference }
    }

    /// The engine's happenings, and the model's, a line each.
    pub fn lines(&self) -> [Vec<String>; 2] {
        [&self.recorded, &self.model].map(|side| side.iter().map(ToString::to_string).collect())
    }
}
