//! Scenarios: what the lint calls sound has no defect; a hunt stops at the first finding of its
//! kind.

use std::path::Path;
use std::sync::OnceLock;

use super::{features, sizes};
use crate::finding::{Code, Finding, Run};
use crate::minimize::import::FuzzTarget;
use crate::scenario::Scenario;
use crate::scenario::generate::{Aim, Endless, PlantedVariant, draw};
use crate::world;

/// The environment variable that plants a variant, as `SWITCH=VARIANT`, in every drawn scenario.
pub const PLANT_VARIABLE: &str = "KVSEAM_PLANT";

/// Runs the scenario that `target` draws from `bytes`, and panics on what it hunts: the bytes are
/// then the finding. A hunt whose sizes are asked for counts its findings and goes on.
pub fn run(target: FuzzTarget, bytes: &[u8]) {
    static PLANTED: OnceLock<Option<PlantedVariant>> = OnceLock::new();
    let planted = *PLANTED.get_or_init(planted_by_environment);
    let scenario = target.scenario(bytes, planted);
    let run = ran(&scenario);
    let hunted_finding = hunted_finding_of(target, planted, &scenario, &run);
    if sizes::are_asked_for() {
        tell_sizes(target, bytes, &scenario, &run, hunted_finding.is_some());
        if target.aim() == Aim::Any {
            return;
        }
    }
    if let Some(finding) = hunted_finding {
        panic!("{finding:?}\n{scenario:?}");
    }
}

fn tell_sizes(target: FuzzTarget, bytes: &[u8], scenario: &Scenario, run: &Run, is_found: bool) {
    let drawn = draw(&mut Endless::new(bytes), target.known(), target.aim(), None);
    let mut names = features::features(&drawn, scenario, run);
    names.extend(is_found.then(|| "what is hunted".to_owned()));
    sizes::tell_all(&features::sizes(scenario, run), names);
}

/// The variant that the environment asks for.
fn planted_by_environment() -> Option<PlantedVariant> {
    let text = std::env::var_os(PLANT_VARIABLE)?;
    let planted = PlantedVariant::parse(&text.to_string_lossy());
    Some(planted.unwrap_or_else(|error| panic!("{PLANT_VARIABLE}: {error}")))
}

/// The earliest finding that `target` looks for in the scenario. Where a variant was planted, it
/// counts only if the same scenario without that variant lacks its code: the variant is then the
/// cause.
pub fn hunted_finding(
    target: FuzzTarget,
    planted: Option<PlantedVariant>,
    scenario: &Scenario,
) -> Option<Finding> {
    hunted_finding_of(target, planted, scenario, &ran(scenario))
}

fn ran(scenario: &Scenario) -> Run {
    world::run(scenario, Path::new("")).expect("a drawn scenario can be run")
}

fn hunted_finding_of(
    target: FuzzTarget,
    planted: Option<PlantedVariant>,
    scenario: &Scenario,
    run: &Run,
) -> Option<Finding> {
    let first = target.first_hunted(run)?;
    let Some(planted) = planted else { return Some(first.clone()) };
    // Where the switch's default cannot be run at all, there is nothing to compare with.
    let without = planted.without(scenario);
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
