//! Simulated requests a second, on the whole Mooncake trace where `KVSEAM_MOONCAKE` names it, and
//! on drawn conversations.
//!
//! The trace is not part of the project: without it, only the drawn ones run.

use std::path::Path;

use divan::Bencher;
use divan::counter::ItemsCount;
use kvseam::scenario::{Scenario, file};
use kvseam::world;

fn main() {
    divan::main();
}

const SYSTEM: &str = r#"
version = 1
title = "sound: benchmark"

[layout]
page_size = 64
ranks = 8

[prefill]
pages = 16_384

[decode]
pages = 2_048
"#;

const CONVERSATIONS: &str = r#"
[workload.synthetic]
requests = 2_000
arrivals = { geometric = { slot = 10_000, numerator = 1, denominator = 30 } }
prompt = { uniform = { min = 100, max = 12_000 } }
output = { uniform = { min = 1, max = 600 } }
prefix_groups = 4
prefix = { fixed = 512 }
turns = 3
"#;

fn scenario(workload: &str) -> Scenario {
    file::parse(&format!("{SYSTEM}{workload}"), "benchmark").expect("the benchmark's scenario")
}

fn simulate(bencher: Bencher<'_, '_>, scenario: &Scenario) {
    let run = || world::run(scenario, Path::new(".")).expect("the benchmark's scenario runs");
    let requests = run().chances.get(kvseam::finding::Chance::Requests);
    let requests = usize::try_from(requests).expect("a count of requests");
    bencher.counter(ItemsCount::new(requests)).bench_local(run);
}

#[divan::bench(sample_count = 5, sample_size = 1)]
fn conversations(bencher: Bencher<'_, '_>) {
    simulate(bencher, &scenario(CONVERSATIONS));
}

#[divan::bench(sample_count = 3, sample_size = 1)]
fn mooncake(bencher: Bencher<'_, '_>) {
    let Some(path) = std::env::var_os("KVSEAM_MOONCAKE") else { return };
    let path = path.to_str().expect("the trace's path is Unicode");
    let trace = format!("[workload.trace]\nformat = \"mooncake\"\npath = {path:?}\n");
    simulate(bencher, &scenario(&trace));
}
