//! Scenarios: what the lint calls sound has no defect; a hunt stops at the first finding of its kind.

use std::path::Path;
use std::sync::LazyLock;

use super::{features, sizes};
use crate::finding::Run;
use crate::minimize::import::Target;
use crate::scenario::Scenario;
use crate::scenario::generate::{Aim, Endless, draw};
use crate::world::{self, Registry};

/// Runs the scenario that `target` draws from `bytes`, and panics on what it hunts: the bytes are
/// then the finding. A hunt whose sizes are asked for counts its findings and goes on.
pub fn run(target: Target, bytes: &[u8]) {
    static REGISTRY: LazyLock<Registry> = LazyLock::new(Registry::default);
    let scenario = target.scenario(bytes);
    let run = world::run_with(&scenario, Path::new(""), &REGISTRY);
    let run = run.expect("a drawn scenario can be run");
    let prey = run.findings.iter().find(|&(code, _)| target.hunts(code));
    if sizes::are_asked_for() {
        tell_sizes(target, bytes, &scenario, &run, prey.is_some());
        if target.aim() == Aim::Any {
            return;
        }
    }
    if let Some((_, kept)) = prey {
        panic!("{:?}\n{scenario:?}", kept.first);
    }
}

fn tell_sizes(target: Target, bytes: &[u8], scenario: &Scenario, run: &Run, is_found: bool) {
    let drawn = draw(&mut Endless::new(bytes), target.known(), target.aim());
    let mut names = features::features(&drawn, scenario, run);
    names.extend(is_found.then(|| "what is hunted".to_owned()));
    sizes::tell_all(&features::sizes(scenario, run), names);
}
