//! Scenarios: what the lint calls sound has no defect; a hunt stops at the first finding of its kind.

use std::path::Path;

use crate::minimize::import::Target;
use crate::world;

/// Runs the scenario that `target` draws from `bytes`, and panics on what it hunts: the bytes are
/// then the finding.
pub fn run(target: Target, bytes: &[u8]) {
    let scenario = target.scenario(bytes);
    let run = world::run(&scenario, Path::new("")).expect("a drawn scenario can be run");
    let prey = run.findings.iter().find(|&(code, _)| target.hunts(code));
    if let Some((_, kept)) = prey {
        panic!("{:?}\n{scenario:?}", kept.first);
    }
}
