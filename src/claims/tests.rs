//! Every claim on random streams, and on bytes near what is valid.

use std::path::Path;

use super::features::{OTHERS, SOUND_AS_DRAWN};
use super::sizes::Sizes;
use super::*;
use crate::engine::Profile;
use crate::finding::{Mark, Named};
use crate::minimize::import::FuzzTarget;
use crate::rng::Stream;
use crate::scenario::generate::{Aim, Choices, HARMLESS, MOMENTS, draw, repair};
use crate::scenario::validate::KnownPolicies;
use crate::world::{self, Registry};

const CASES: u64 = 3_000;

fn try_on_streams(label: &str, claim: impl Fn(&mut Stream)) {
    for seed in 0..CASES {
        claim(&mut Stream::new(seed, label));
    }
}

#[test]
fn the_layout_places_every_position_once() {
    try_on_streams("layout", layout::places_every_position_once);
}

#[test]
fn the_planner_plans_as_defined() {
    try_on_streams("planner", planner::plans_as_defined);
}

#[test]
fn the_allocator_hands_out_free_pages_once() {
    try_on_streams("allocator", allocator::hands_out_free_pages_once);
}

#[test]
fn the_radix_tree_keeps_its_pages() {
    try_on_streams("radix", prefix_cache::radix_keeps_its_pages);
}

#[test]
fn the_block_hash_cache_keeps_its_pages() {
    try_on_streams("block hash", prefix_cache::block_hash_keeps_its_pages);
}

#[test]
fn a_handoff_ends_once_whatever_it_is_told() {
    try_on_streams("handoff", handoff::ends_once_whatever_it_is_told);
}

#[test]
fn sound_bytes_have_no_defect() {
    for seed in 0..200 {
        let mut stream = Stream::new(seed, "bytes");
        let bytes: Vec<u8> = (0..400).map(|_| stream.below(256) as u8).collect();
        scenarios::run(FuzzTarget::SoundScenarios, &bytes);
    }
}

#[test]
fn texts_with_a_few_bytes_changed_never_panic() {
    type Claim = fn(&[u8]);
    let seeds: [(&str, Claim); 5] = [
        (include_str!("../../sims/scenarios/padded-prefix.toml"), texts::scenario_file),
        (include_str!("../../sims/plans/demo.toml"), texts::plan_file),
        (concat!("0", include_str!("../../sims/traces/mooncake-tiny.jsonl")), texts::trace_file),
        (concat!("1", include_str!("../../sims/traces/azure-tiny.csv")), texts::trace_file),
        (include_str!("../../tests/vectors/radix.jsonl"), texts::vector_line),
    ];
    for (text, claim) in seeds {
        let text = text.lines().take(60).collect::<Vec<_>>().join("\n");
        claim(text.as_bytes());
        let mut stream = Stream::new(5, "bytes");
        for _ in 0..300 {
            let mut bytes = text.clone().into_bytes();
            for _ in 0..stream.within(1..=4) {
                let at = stream.below(bytes.len() as u64) as usize;
                bytes[at] = *stream.pick(b"019-\"{}[],.=\nae\xff");
            }
            claim(&bytes);
        }
    }
}

/// Draws whose sizes and features are counted.
const DRAWS: u64 = 1_500;

/// What must be in a twentieth of sound scenarios.
fn expected(known: &KnownPolicies) -> Vec<String> {
    // A padded prefix is never sound, and what is sound is never refused by the planner. Two
    // requests that hold each other's pages are a coincidence of three features, each of which is
    // asked for.
    const NEVER: [Mark; 3] = [Mark::PrefixPadded, Mark::RefusedServedAgain, Mark::CrossHeld];
    let mut names = Vec::new();
    for side in ["prefill", "decode"] {
        names.extend(known.caches.iter().map(|name| format!("{side} cache {name}")));
        names.extend(known.evictions.iter().map(|name| format!("{side} eviction {name}")));
        names.extend(known.free_orders.iter().map(|name| format!("{side} order {name}")));
    }
    names.extend(known.admissions.iter().map(|name| format!("admission {name}")));
    names.extend(Profile::all().iter().map(|profile| format!("profile {}", profile.name())));
    names.extend(HARMLESS.map(|(switch, variant)| format!("{switch} = {variant}")));
    names.extend(MOMENTS.iter().map(|moment| format!("abort {moment:?}")));
    let marks = Mark::ALL.iter().filter(|mark| !NEVER.contains(mark));
    names.extend(marks.map(|mark| format!("reached {}", mark.name())));
    names.extend(["lost message", "doubled message", "flush"].map(str::to_owned));
    names.extend(OTHERS.map(str::to_owned));
    names
}

#[test]
fn sound_scenarios_are_large_enough_and_have_everything_in_a_twentieth_of_them() {
    let known = Registry::built_in().names();
    let mut sizes = Sizes::default();
    for seed in 0..DRAWS {
        let mut stream = Stream::new(seed, "features");
        let drawn = draw(&mut stream, &known, Aim::Sound, None);
        let mut scenario = drawn.clone();
        repair(&mut stream, &mut scenario);
        let run = world::run(&scenario, Path::new("")).unwrap();
        sizes.add(&features::sizes(&scenario, &run), features::features(&drawn, &scenario, &run));
    }
    let names = expected(&known);
    let rare: Vec<_> = names.iter().filter(|name| sizes.with(name) * 20 < DRAWS).collect();
    assert!(rare.is_empty(), "{rare:?}\n{sizes}");
    assert!(sizes.with(SOUND_AS_DRAWN) * 2 >= DRAWS, "{sizes}");
    assert!(sizes.sum("requests") >= 10 * DRAWS, "{sizes}");
    assert!(sizes.sum("pages of all pools") >= 200 * DRAWS, "{sizes}");
}
