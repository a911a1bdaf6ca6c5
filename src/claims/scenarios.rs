//! Scenarios: what the lint calls sound has no defect; a hunt stops at the first finding of its kind.

use std::path::Path;
use std::sync::OnceLock;

use super::{features, sizes};
use crate::finding::{Code, Finding, Run};
use crate::minimize::import::Target;
use crate::scenario::Scenario;
use crate::scenario::generate::{Aim, Endless, Plant, draw};
use crate::world;

/// The environment variable that plants a variant, as `SWITCH=VARIANT`, in every drawn scenario.
pub const PLANT: &str = "KVSEAM_PLANT";

/// Runs the scenario that `target` draws from `bytes`, and panics on what it hunts: the bytes are
/// then the finding. A hunt whose sizes are asked for counts its findings and goes on.
pub fn run(target: Target, bytes: &[u8]) {
    static PLANTED: OnceLock<Option<Plant>> = OnceLock::new();
    let plant = *PLANTED.get_or_init(planted);
    let scenario = target.scenario(bytes, plant);
    let run = ran(&scenario);
    let prey = prey_of(target, plant, &scenario, &run);
    if sizes::are_asked_for() {
        tell_sizes(target, bytes, &scenario, &run, prey.is_some());
        if target.aim() == Aim::Any {
            return;
        }
    }
    if let Some(finding) = prey {
        panic!("{finding:?}\n{scenario:?}");
    }
}

fn tell_sizes(target: Target, bytes: &[u8], scenario: &Scenario, run: &Run, is_found: bool) {
    let drawn = draw(&mut Endless::new(bytes), target.known(), target.aim(), None);
    let mut names = features::features(&drawn, scenario, run);
    names.extend(is_found.then(|| "what is hunted".to_owned()));
    sizes::tell_all(&features::sizes(scenario, run), names);
}

/// What the environment plants.
fn planted() -> Option<Plant> {
    let text = std::env::var_os(PLANT)?;
    let plant = Plant::parse(&text.to_string_lossy());
    Some(plant.unwrap_or_else(|error| panic!("{PLANT}: {error}")))
}

/// The earliest finding that `target` looks for in the scenario. Under a plant it counts only if the
/// same scenario without the plant lacks its code: the plant is then the cause.
pub fn prey(target: Target, plant: Option<Plant>, scenario: &Scenario) -> Option<Finding> {
    prey_of(target, plant, scenario, &ran(scenario))
}

fn ran(scenario: &Scenario) -> Run {
    world::run(scenario, Path::new("")).expect("a drawn scenario can be run")
}

fn prey_of(
    target: Target,
    plant: Option<Plant>,
    scenario: &Scenario,
    run: &Run,
) -> Option<Finding> {
    let first = target.first_prey(run)?;
    let Some(plant) = plant else { return Some(first.clone()) };
    // Where the plant's default cannot be run at all, there is nothing to tell the two apart by.
    let without = plant.without(scenario);
    let without = world::run(&without, Path::new("")).unwrap_or_default();
    caused(run, &without, |code| target.hunts(code)).cloned()
}

/// The earliest finding of `run` whose code is `wanted` and absent in the run without its cause.
pub fn caused<'a>(
    run: &'a Run,
    without: &Run,
    wanted: impl Fn(Code) -> bool,
) -> Option<&'a Finding> {
    run.findings.earliest(|code| wanted(code) && without.findings.count(code) == 0)
}
