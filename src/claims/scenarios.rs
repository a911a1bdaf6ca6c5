//! Scenarios: what the lint calls sound has no defect; a hunt stops at the first finding of its kind.

use std::path::Path;
use std::sync::LazyLock;

use arbitrary::Unstructured;

use super::features::features;
use super::sizes;
use crate::finding::{Metric, Run};
use crate::minimize::import::Target;
use crate::scenario::Scenario;
use crate::scenario::generate::{Aim, draw};
use crate::scenario::lint::lint;
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
    }
    let goes_on = target.aim() == Aim::Any && sizes::are_asked_for();
    if let Some((_, kept)) = prey.filter(|_| !goes_on) {
        panic!("{:?}\n{scenario:?}", kept.first);
    }
}

/// Counts the scenario, its features, and whether it was sound before a repair.
fn tell_sizes(target: Target, bytes: &[u8], scenario: &Scenario, run: &Run, is_found: bool) {
    let drawn = draw(&mut Unstructured::new(bytes), target.known(), target.aim());
    let mut names = features(scenario, run);
    names.extend(lint(&drawn).is_empty().then(|| "sound as drawn".to_owned()));
    names.extend(is_found.then(|| "what is hunted".to_owned()));
    sizes::tell_all(&of(scenario, run), names);
}

/// How large a scenario is: requests that arrived, the pages of a prefill and a decode pool together,
/// and those of all servers.
pub fn of(scenario: &Scenario, run: &Run) -> [(&'static str, u64); 3] {
    let Scenario { prefill, decode, .. } = scenario;
    let (source, target) = (u64::from(prefill.pages), u64::from(decode.pages));
    let all = source * u64::from(prefill.workers) + target * u64::from(decode.workers);
    [
        ("requests", run.metrics.get(Metric::Requests)),
        ("pages of a prefill and a decode pool", source + target),
        ("pages of all pools", all),
    ]
}
