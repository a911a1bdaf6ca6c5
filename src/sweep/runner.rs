//! What a sweep runs its scenarios with.

use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};

use super::plan::Plan;
use crate::finding::Run;
use crate::scenario::Scenario;
use crate::scenario::validate::{KnownPolicies, validate};
use crate::world::{Registry, Simulation};

/// Runs scenarios; the real one is the [`Simulator`]. Any function of a scenario that needs no
/// check is one as well.
pub trait Runner: Sync {
    /// Says why the scenario cannot be run, whatever its seed, if it cannot. A thread asks before
    /// its first run of a cell.
    fn check(&self, scenario: &Scenario) -> Result<(), String>;

    /// Runs a scenario that was checked under some seed. The error says why it could not be run.
    fn run(&self, scenario: &Scenario) -> Result<Run, String>;
}

impl<F: Fn(&Scenario) -> Result<Run, String> + Sync> Runner for F {
    fn check(&self, _: &Scenario) -> Result<(), String> {
        Ok(())
    }

    fn run(&self, scenario: &Scenario) -> Result<Run, String> {
        self(scenario)
    }
}

/// What `call` says, or that it panicked. A check or a run that breaks an invariant of ours makes
/// its runs fail, with the panic's message; it does not end the sweep.
pub(super) fn caught<T>(call: impl FnOnce() -> T) -> Result<T, String> {
    panic::catch_unwind(AssertUnwindSafe(call)).map_err(|panic| {
        let message = panic.downcast_ref::<String>().map(String::as_str);
        let message = message.or_else(|| panic.downcast_ref::<&str>().copied());
        format!("panicked: {}", message.unwrap_or("without a message"))
    })
}

/// The simulated system with the policies of a registry, for the scenarios of one plan.
pub struct Simulator<'a> {
    registry: &'a Registry,
    known: KnownPolicies,
    /// Where the paths of traces start.
    folder: PathBuf,
}

impl<'a> Simulator<'a> {
    /// For `plan`, whose axes can name any policy of `registry`.
    pub fn new(plan: &Plan, registry: &'a Registry) -> Simulator<'a> {
        let folder = plan.sources.base_path.parent().unwrap_or(Path::new("")).to_owned();
        Simulator { registry, known: registry.names(), folder }
    }
}

impl Runner for Simulator<'_> {
    fn check(&self, scenario: &Scenario) -> Result<(), String> {
        validate(scenario, &self.known).map_err(|why| why.to_string())
    }

    fn run(&self, scenario: &Scenario) -> Result<Run, String> {
        let simulation = Simulation::new(scenario).folder(&self.folder).registry(self.registry);
        simulation.validated().run().map_err(|why| why.to_string())
    }
}
