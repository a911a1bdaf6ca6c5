use std::path::Path;

use super::*;
use crate::finding::{Code, FreeRun, Mark};
use crate::memory::Extent;
use crate::pool::order::Stack;
use crate::scenario::file;
use crate::units::{PageId, Pages, Rank, RequestId, Tokens};

pub(super) mod fixture;

fn scenario(text: &str) -> Scenario {
    file::parse(text, "test").unwrap()
}

/// Two conversations over two prefill and three decode servers, small pools, every cache on.
const BUSY: &str = r#"
version = 1
title = "sound: busy"
seed = 5

[layout]
page_size = 4
ranks = 3

[prefill]
workers = 2
pages = 60
chunk_tokens = 32

[decode]
workers = 3
pages = 14
reserved_tokens = 0

[workload.synthetic]
requests = 60
arrivals = { bursts = { size = 6, gap = 60_000 } }
prompt = { uniform = { min = 1, max = 60 } }
output = { uniform = { min = 1, max = 60 } }
prefix_groups = 3
prefix = { fixed = 30 }
turns = 2
"#;

#[test]
fn the_same_scenario_leaves_the_same_run() {
    let busy = scenario(BUSY);
    let first = run(&busy, Path::new(".")).unwrap();
    assert_eq!(first, run(&busy, Path::new(".")).unwrap());
    let other = Scenario { seed: 6, ..busy };
    assert_ne!(first.digest, run(&other, Path::new(".")).unwrap().digest);
}

#[test]
fn a_sound_system_under_pressure_ends_every_request_and_keeps_nothing() {
    let run = run(&scenario(BUSY), Path::new(".")).unwrap();
    assert!(run.findings.is_clean(), "{:?}", run.findings);
    for mark in [Mark::EvictPrefill, Mark::EvictDecode, Mark::Retracted, Mark::HitDecode] {
        assert!(run.marks.get(mark) > 0, "{mark:?} was not reached");
    }
    let ended = [Metric::Finished, Metric::Failed, Metric::Aborted].map(|it| run.metrics.get(it));
    assert_eq!(ended.iter().sum::<u64>(), 60);
    // Every activated transfer's L − S, counted by the oracle, against what the senders counted.
    assert_eq!(run.metrics.get(Metric::RowsJudged), run.metrics.get(Metric::SentTokens));
}

#[test]
fn every_cache_and_every_free_order_is_sound_under_pressure() {
    let names = Registry::built_in().names();
    for cache in &names.caches {
        for order in &names.free_orders {
            let policies = format!("cache = \"{cache}\"\nfree_order = \"{order}\"");
            let text = BUSY
                .replace("[prefill]", &format!("[prefill]\n{policies}"))
                .replace("[decode]", &format!("[decode]\n{policies}"));
            let run = run(&scenario(&text), Path::new(".")).unwrap();
            assert!(run.findings.is_clean(), "{text}{:?}", run.findings);
            let ended = [Metric::Finished, Metric::Failed, Metric::Aborted];
            assert_eq!(ended.map(|it| run.metrics.get(it)).iter().sum::<u64>(), 60, "{text}");
        }
    }
}

/// One request of 64 tokens over two ranks, run until just after its last copy has landed.
fn one_request(scenario: &Scenario, disturb: impl FnOnce(&mut World<'_>)) -> Run {
    let requests = crate::workload::requests(scenario, Path::new(".")).unwrap();
    let mut world = World::new(scenario, &Registry::default(), &requests);
    world.start();
    while world.decodes[0].running().is_empty() {
        assert!(world.step(), "the request activates");
    }
    disturb(&mut world);
    while world.step() {}
    world.close_run()
}

const ONE: &str = r#"
version = 1
title = "sound: one request"

[layout]
page_size = 8
ranks = 2

[prefill]
pages = 16

[decode]
pages = 8
reserved_tokens = 0

[[workload.requests]]
prompt = [{ content = 1, len = 60 }]
output = 4
"#;

#[test]
fn one_stamp_flipped_after_a_copy_is_found_and_nothing_else_is() {
    // Another request whose text a row can be of.
    let other = ONE
        .rfind("[[workload.requests]]")
        .map(|at| ONE[at..].replace("content = 1", "content = 2"));
    let scenario = scenario(&format!("{ONE}{}", other.unwrap()));
    let undisturbed = one_request(&scenario, |_| {});
    assert!(undisturbed.findings.is_clean());
    // Position 37 of 60: rank 1, its row 18, so row 2 of its third page.
    let flip = |change: fn(&mut crate::memory::Stamp)| {
        one_request(&scenario, move |world| {
            let page = world.decodes[0].table(RequestId(0))[2];
            let memory = &mut world.decodes[0].store.memory[1];
            let mut stamp = memory.row(page, 2).unwrap();
            assert_eq!(stamp.position, Tokens(37));
            change(&mut stamp);
            memory.write(page, Extent::new(2, 1, stamp, 1));
        })
    };
    let shifted = flip(|stamp| stamp.position = Tokens(35));
    let foreign = flip(|stamp| stamp.text = RequestId(1));
    for (run, code) in [(shifted, Code::PlacedShifted), (foreign, Code::PlacedForeign)] {
        let found: Vec<_> = run.findings.iter().map(|(code, kept)| (code, kept.count)).collect();
        assert_eq!(found, [(code, 1)]);
        let (_, kept) = run.findings.iter().next().unwrap();
        assert_eq!(kept.first[0].rank, Some(Rank(1)));
        assert!(kept.first[0].expected.starts_with("position 37 "), "{:?}", kept.first);
    }
}

#[test]
fn a_page_that_is_lost_drifts_the_count_and_one_that_is_kept_leaks() {
    let scenario = scenario(ONE);
    let lost = one_request(&scenario, |world| {
        world.decodes[0].store.pool.alloc(Pages(1)).unwrap();
    });
    assert!(lost.findings.count(Code::CountDrift) > 0);
    let kept = one_request(&scenario, |world| {
        let store = &mut world.decodes[0].store;
        let pages: Vec<PageId> = store.pool.alloc(Pages(1)).unwrap();
        store.taken(&mut world.context.log, RequestId(0), Pages(9), &pages);
    });
    let found: Vec<_> = kept.findings.iter().map(|(code, kept)| (code, kept.count)).collect();
    assert_eq!(found, [(Code::PageLeaked, 1)]);
}

#[test]
fn a_policy_from_outside_runs_under_its_own_name() {
    let mut registry = Registry::default();
    registry.free_order("mine", |_| Box::new(Stack::default()));
    let mine = scenario(&BUSY.replace("[prefill]", "[prefill]\nfree_order = \"mine\""));
    assert!(run(&mine, Path::new(".")).is_err());
    let run = Simulation::new(&mine).registry(&registry).run().unwrap();
    assert!(run.findings.is_clean());
}

#[test]
fn free_pages_are_sampled_at_each_quarter_of_the_arrivals() {
    let busy = run(&scenario(BUSY), Path::new(".")).unwrap();
    for (side, pages) in [(Side::Prefill, 2 * 60), (Side::Decode, 3 * 14)] {
        for part in 1..=4 {
            let free: u64 = busy.free_runs[&FreeSample { side, part }].iter().map(|it| it.1).sum();
            assert!(free < pages, "{side:?} {part}: {free}");
        }
    }
    assert_eq!(busy.free_runs.len(), 8);
}

/// A request alone is the last quarter at once, and takes nothing before its server looks for work.
#[test]
fn an_empty_pool_is_one_free_run() {
    let alone = BUSY
        .replace("requests = 60", "requests = 1")
        .replace("prefix_groups = 3", "prefix_groups = 1")
        .replace("turns = 2", "turns = 1");
    let run = run(&scenario(&alone), Path::new(".")).unwrap();
    let lengths = |side| {
        let sample = &run.free_runs[&FreeSample { side, part: 4 }];
        sample.iter().filter(|(_, pages)| *pages > 0).collect::<Vec<_>>()
    };
    assert_eq!(run.free_runs.len(), 2);
    assert_eq!(lengths(Side::Prefill), [(FreeRun::ThirtyTwo, 2 * 60)]);
    assert_eq!(lengths(Side::Decode), [(FreeRun::Eight, 3 * 14)]);
}

/// One request of one piece for two ranks: two messages, 0 and 1.
#[test]
fn a_fault_whose_moment_never_comes_is_named() {
    let text = r#"
version = 1
title = "sound: faults"
layout = { page_size = 4, ranks = 2 }
prefill = { pages = 60 }
decode = { pages = 14, reserved_tokens = 0 }
workload.requests = [
    { prompt = [{ content = 1, len = 7 }], output = 2 },
    { prompt = [{ content = 2, len = 7 }], output = 2, at = 9_000_000 },
]
faults = [
    { double = { request = 0, message = 1 } },
    { double = { request = 0, message = 7 } },
    { lose = { request = 0, message = 2 } },
    { abort = { request = 1, when = "retracted" } },
    { abort = { request = 1, when = "arrived" } },
    { abort = { request = 1, when = "arrived" } },
    { abort = { request = 0, when = "running", after = 8_000_000 } },
    { flush = { side = "decode", at = 20_000_000 } },
]
"#;
    let run = run(&scenario(text), Path::new(".")).unwrap();
    // The second abort finds a request that has given up, the fourth one that has ended.
    assert_eq!(run.faults_idle, [1, 2, 3, 5, 6]);
    assert_eq!(run.marks.get(Mark::MessageDoubled), 1);
}
