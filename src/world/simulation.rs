//! The one entry: a scenario, and with what and before whose eyes it is run.

use std::path::Path;

use thiserror::Error;

use super::arrival::{clip_output, pair};
use super::{Observer, Registry, World};
use crate::engine::connection::Pairing;
use crate::finding::Run;
use crate::scenario::Scenario;
use crate::scenario::validate::{self, Invalid};
use crate::workload::{self, WorkloadError};

/// Why a scenario could not be run.
#[derive(Debug, Error)]
pub enum RunError {
    /// A field of the scenario is out of its bounds.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The workload could not be read.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
}

/// A scenario about to be run: with the built-in policies, traces looked for in the current folder
/// and nobody looking on, unless it is said otherwise.
pub struct Simulation<'a> {
    scenario: &'a Scenario,
    folder: &'a Path,
    registry: &'a Registry,
    observer: Option<&'a mut dyn Observer>,
    is_valid: bool,
}

/// Runs a scenario with the built-in policies. Trace paths start at `folder`. For more choice there
/// is [`Simulation`].
pub fn run(scenario: &Scenario, folder: &Path) -> Result<Run, RunError> {
    Simulation::new(scenario).folder(folder).run()
}

impl<'a> Simulation<'a> {
    /// Of this scenario.
    pub fn new(scenario: &'a Scenario) -> Simulation<'a> {
        Simulation {
            scenario,
            folder: Path::new(""),
            registry: Registry::built_in(),
            observer: None,
            is_valid: false,
        }
    }

    /// Trace paths start at `folder`.
    #[must_use]
    pub fn folder(self, folder: &'a Path) -> Simulation<'a> {
        Simulation { folder, ..self }
    }

    /// The policies that the scenario names are those of `registry`.
    #[must_use]
    pub fn registry(self, registry: &'a Registry) -> Simulation<'a> {
        Simulation { registry, ..self }
    }

    /// Shows `observer` what happens. The run is the same as without.
    #[must_use]
    pub fn observer(self, observer: &'a mut dyn Observer) -> Simulation<'a> {
        Simulation { observer: Some(observer), ..self }
    }

    /// Leaves validation out: the scenario differs at most by its seed from one that
    /// [`validate`](validate::validate) accepted with this registry's names. A panic may follow if
    /// it does not.
    #[must_use]
    pub fn validated(self) -> Simulation<'a> {
        Simulation { is_valid: true, ..self }
    }

    /// Runs it.
    pub fn run(self) -> Result<Run, RunError> {
        let Simulation { scenario, folder, registry, observer, is_valid } = self;
        if !is_valid {
            validate::validate(scenario, &registry.names())?;
        }
        if pair(scenario) == Ok(Pairing::PageForPage) && scenario.layout.ranks > 1 {
            let problem = format!(
                "must be 1 to be simulated, or lead to a refusal; connections of equal size are \
                 only checked, got {}",
                scenario.pairing.prefill_ranks
            );
            let path = "pairing.prefill_ranks".to_owned();
            return Err(Invalid { path, problem }.into());
        }
        let mut requests = workload::requests(scenario, folder)?;
        clip_output(scenario, &mut requests);
        validate::faults(scenario, Some(requests.len()))?;
        let mut world = World::new(scenario, registry, &requests);
        if let Some(observer) = observer {
            world.context.log.watch(observer);
        }
        Ok(world.run())
    }
}
