//! Scenarios drawn at random: one generator, fed by a random stream or by the bytes of a fuzzer.
//!
//! What is drawn is always valid: numbers are clamped, never rejected. From one scenario to the
//! next whole features are switched off and the rest are weighted wildly differently (a *swarm*),
//! since scenarios that all hold a little of everything never reach the corner cases. Lengths lie
//! near pages, virtual pages and their multiples, and pools are sized by the largest request, so
//! that they are often nearly full.

use std::collections::BTreeSet;

use crate::behaviour::{
    AdmissionDemand, Behaviours, ChunkCut, Overrides, Retraction, SWITCHES, SendSplit, SwitchInfo,
};
use crate::engine::Profile;
use crate::engine::connection::KvPool;
use crate::finding::Side;
use crate::scenario::lint::lint;
use crate::scenario::validate::{BLOCK_HASH, KnownPolicies, LRU, NO_CACHE, TAIL_LRU};
use crate::scenario::{
    DecodeConfig, Fault, LayoutConfig, LinkConfig, Moment, PairingConfig, PrefillConfig, Scenario,
    VERSION,
};
use crate::units::{RequestId, Tick};

mod choices;
mod demand;
mod planted;

pub use choices::Choices;
#[cfg(feature = "arbitrary")]
pub use choices::Endless;
pub use planted::{PlantedVariant, PlantedVariantError};

use demand::Demand;

/// Rows of a page. The list begins with what shows most in few tokens.
const PAGE_SIZES: &[u32] = &[2, 4, 1, 16, 2, 4, 8, 3, 64, 16, 32, 256];
/// Ranks. One of them, 3, divides no page size that is a power of two.
const RANKS: &[u32] = &[2, 1, 2, 4, 3, 1, 2, 8, 2, 16];
/// Pages of a pool that has room for everything; a larger one shows nothing more.
const ROOMY_PAGES: u32 = 600;
/// Chunks that a prompt takes at most, and pieces that a chunk's send is split into at most: each
/// is a copy to every rank.
const CHUNKS_MAX: u32 = 8;
/// Durations of steps, copies and messages, in ticks: close together, so that they overlap.
const DURATIONS: &[u64] = &[10, 1, 0, 3, 30, 100, 1_000];

/// Variants that differ from the default and that no scenario makes unsound.
pub const HARMLESS: [(&str, &str); 25] = [
    ("decode_match_unit", "physical_page"),
    ("decode_match_unit", "token"),
    ("chunk_cut", "exact_budget"),
    ("prefill_start", "at_arrival"),
    ("early_send", "settled_cut"),
    ("early_send", "settled_skipped"),
    ("refused_request", "served_again"),
    ("retraction", "send_again"),
    ("packing", "none"),
    ("send_split", "crossings"),
    ("send_split", "no"),
    ("planner", "indexed"),
    ("decode_insert", "at_activation"),
    ("eviction_demand", "padded"),
    ("prompt_node", "own"),
    ("reservation_call", "extend"),
    ("last_running", "aborted"),
    ("split_stamp", "inherited"),
    ("hit_count", "once_per_request"),
    ("hit_count", "not_chunks"),
    ("output_limit", "clipped"),
    ("release_insert", "again"),
    ("aborted_chunk", "kept_if_last"),
    ("aborted_step", "counted"),
    ("retraction_order", "batch"),
];

/// Switches whose harmless variants keep pools from running out, and are drawn seldom for that.
const HIDING: [&str; 2] = ["last_running", "output_limit"];

/// The switch whose harmless variants act only where a decode hit ends inside a virtual page, and
/// are drawn often for that.
const FAVOURED: &str = "decode_match_unit";

/// Moments from which aborts count.
pub(crate) const MOMENTS: [Moment; 7] = [
    Moment::Copying,
    Moment::Reserved,
    Moment::Prefilling,
    Moment::Running,
    Moment::Arrived,
    Moment::Retracted,
    Moment::Start,
];

/// What a scenario is drawn for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aim {
    /// Any behaviour, sound or not.
    Any,
    /// One half of the time what is sound as it is; else any behaviour, and then switch after
    /// switch to which the lint objects is set back, until it has no objection left: what remains
    /// can have no defect, or the lint is wrong.
    Sound,
}

/// Draws a valid scenario that names policies of `known`.
pub fn generate(choices: &mut impl Choices, known: &KnownPolicies, aim: Aim) -> Scenario {
    let mut scenario = draw(choices, known, aim, None);
    match aim {
        Aim::Any => {}
        Aim::Sound => repair(choices, &mut scenario),
    }
    scenario
}

/// Draws a valid scenario with the variant `planted`, and sets back what else the lint objects to,
/// as far as `planted` can do without it. Where nothing makes `planted` act, the one switch that
/// would is set, too, if there is one.
pub fn generate_planted(
    choices: &mut impl Choices,
    known: &KnownPolicies,
    aim: Aim,
    planted: PlantedVariant,
) -> Scenario {
    let mut scenario = draw(choices, known, aim, Some(planted));
    planted.make_act(choices, known, &mut scenario);
    planted.repair_others(choices, &mut scenario);
    scenario
}

/// A valid scenario that is not repaired yet, with `planted` if there is one.
pub fn draw(
    choices: &mut impl Choices,
    known: &KnownPolicies,
    aim: Aim,
    planted: Option<PlantedVariant>,
) -> Scenario {
    let layout = LayoutConfig { page_size: *choices.pick(PAGE_SIZES), ranks: *choices.pick(RANKS) };
    let (profile, mut behaviour) = match aim == Aim::Sound && choices.chance(1, 2) {
        true => (Profile::SOUND, harmless(choices)),
        false => (profile(choices, aim), overrides(choices, aim)),
    };
    if let Some(planted) = planted {
        planted.put(&mut behaviour);
    }
    let behaviours = behaviour.over(profile.behaviours());
    let is_crowded = choices.chance(1, 3);
    let (workload, demand) = demand::draw(choices, layout, is_crowded);
    let mut scenario = Scenario {
        version: VERSION,
        title: "generated".to_owned(),
        seed: choices.below(1 << 16),
        profile,
        layout,
        prefill: prefill(choices, known, layout, behaviours, &demand),
        decode: decode(choices, known, layout, behaviours, &demand, is_crowded),
        link: link(choices, layout, behaviours, &demand),
        pairing: pairing(choices, layout),
        behaviour,
        workload,
        faults: Vec::new(),
        expect: None,
    };
    if profile.forbids_chunks_inside_pages() {
        let tokens = &mut scenario.prefill.chunk_tokens;
        *tokens = tokens.next_multiple_of(layout.page_size);
    }
    if planted.is_some_and(|planted| planted.switch == "resumption_demand") {
        fill_by_one(choices, &mut scenario, &demand);
    }
    scenario.faults = faults(choices, &scenario, demand.len(), is_crowded);
    if behaviours.admission_demand == AdmissionDemand::WithOutput {
        demand::allow_more_output(choices, &mut scenario.workload);
    }
    if profile.forbids_striped_decode_cache() && layout.ranks > 1 {
        scenario.decode.cache = NO_CACHE.to_owned();
    }
    scenario
}

fn profile(choices: &mut impl Choices, aim: Aim) -> Profile {
    let out_of_4 = match aim {
        Aim::Any => 2,
        Aim::Sound => 3,
    };
    match choices.chance(out_of_4, 4) {
        true => *choices.pick(Profile::all()),
        false => Profile::SOUND,
    }
}

/// Sizes the decode pool so that the longest request can fill it alone and lack what is kept back:
/// only then does a retracted request that asks for both never come back.
fn fill_by_one(choices: &mut impl Choices, scenario: &mut Scenario, demand: &[Demand]) {
    let virtual_page = scenario.layout.virtual_page();
    let reserved = *choices.pick(&[1, scenario.layout.page_size, virtual_page]);
    let pages = |one: &Demand| {
        let at_start = one.prompt.next_multiple_of(virtual_page) + reserved;
        at_start.max(one.stored()).div_ceil(virtual_page)
    };
    scenario.decode.reserved_tokens = reserved;
    scenario.decode.pages = largest(&demand.iter().map(pages).collect::<Vec<_>>());
}

/// Draws some of the variants that are sound in every scenario.
fn harmless(choices: &mut impl Choices) -> Overrides {
    let weight = *choices.pick(&[3, 1, 2, 4]);
    let mut pick = |switch: &SwitchInfo| {
        let is_harmless = |at: &usize| HARMLESS.contains(&(switch.name, switch.variants[*at].name));
        let variants: Vec<usize> = (1..switch.variants.len()).filter(is_harmless).collect();
        let out_of = match switch.name {
            FAVOURED => 2 + weight / 2,
            hiding if HIDING.contains(&hiding) => 32,
            _ => 4,
        };
        let is_unusual = !variants.is_empty() && choices.chance(weight, out_of);
        is_unusual.then(|| *choices.pick(&variants))
    };
    Overrides::draw(&mut pick)
}

/// Draws the switches that differ from the profile: none, a few or most of them.
fn overrides(choices: &mut impl Choices, aim: Aim) -> Overrides {
    // A sound scenario is repaired afterwards, so that more switches can be drawn for it.
    let (weights, out_of): (&[u64], _) = match aim {
        Aim::Any => (&[1, 0, 2, 4, 10], SWITCHES.len() as u64),
        Aim::Sound => (&[6, 0, 2, 12, 20], 20),
    };
    let weight = *choices.pick(weights);
    let mut pick = |switch: &SwitchInfo| {
        let is_unusual = choices.chance(weight, out_of);
        is_unusual.then(|| choices.within(0..=switch.variants.len() as u32 - 1) as usize)
    };
    Overrides::draw(&mut pick)
}

/// Sets switches back, one that the lint objects to after the other, until it has no objection.
pub fn repair(choices: &mut impl Choices, scenario: &mut Scenario) {
    loop {
        let objections = lint(scenario);
        if objections.is_empty() {
            return;
        }
        scenario.behaviour.reset(choices.pick(&objections).switch);
    }
}

fn prefill(
    choices: &mut impl Choices,
    known: &KnownPolicies,
    layout: LayoutConfig,
    behaviours: Behaviours,
    demand: &[Demand],
) -> PrefillConfig {
    let pages = |one: &Demand| {
        let computed = match behaviours.retraction {
            Retraction::HostCopy => one.prompt,
            Retraction::SendAgain => one.stored(),
        };
        computed.div_ceil(layout.page_size)
    };
    let needs: Vec<u32> = demand.iter().map(pages).collect();
    let cache = name(choices, known.caches.iter());
    let eviction = eviction(choices, known, &cache);
    PrefillConfig {
        workers: workers(choices),
        pages: pool_pages(choices, &needs),
        tail_tokens: tail_tokens(choices, &eviction, layout.page_size),
        eviction,
        cache,
        free_order: name(choices, known.free_orders.iter()),
        chunk_tokens: chunk_tokens(choices, layout, behaviours.chunk_cut, demand),
        admission: name(choices, known.admissions.iter()),
        step_ticks: *choices.pick(DURATIONS),
        token_ticks: *choices.pick(&[1, 0, 20]),
    }
}

/// Draws a step's token budget: whole virtual pages, whole pages, any number, or enough for all
/// prompts.
fn chunk_tokens(
    choices: &mut impl Choices,
    layout: LayoutConfig,
    cut: ChunkCut,
    demand: &[Demand],
) -> u32 {
    let longest = demand.iter().map(Demand::stored).max().unwrap_or(1);
    let drawn = match choices.below(6) {
        0 => layout.page_size * choices.within(1..=2 * layout.ranks),
        1 => layout.virtual_page() * choices.within(1..=3),
        2 => choices.within(1..=layout.virtual_page() + 1),
        3 => choices.within(1..=longest),
        4 => longest.next_multiple_of(layout.page_size) * choices.within(1..=3),
        _ => layout.page_size,
    };
    let least = match cut {
        ChunkCut::PageBoundary => layout.page_size,
        ChunkCut::ExactBudget => 1,
    };
    drawn.max(least).max(longest / CHUNKS_MAX)
}

fn decode(
    choices: &mut impl Choices,
    known: &KnownPolicies,
    layout: LayoutConfig,
    behaviours: Behaviours,
    demand: &[Demand],
    is_crowded: bool,
) -> DecodeConfig {
    let virtual_page = layout.virtual_page();
    let reserved_tokens = match is_crowded {
        true => 0,
        false => *choices.pick(&[0, 1, layout.page_size, 0, virtual_page, 512]),
    };
    let pages = |one: &Demand| {
        let at_start = one.prompt.next_multiple_of(virtual_page) + reserved_tokens;
        at_start.max(one.stored()).div_ceil(virtual_page)
    };
    let needs: Vec<u32> = demand.iter().map(pages).collect();
    let may_be_none = choices.chance(1, 2);
    let caches = known.caches.iter().rev().filter(|&name| may_be_none || name != NO_CACHE);
    let cache = name(choices, caches);
    let eviction = eviction(choices, known, &cache);
    DecodeConfig {
        workers: workers(choices),
        pages: match is_crowded {
            true => crowded_pages(choices, &needs),
            false => pool_pages(choices, &needs),
        },
        leftover_rows: match choices.chance(1, 4) {
            true => choices.within(0..=layout.page_size - 1),
            false => 0,
        },
        draft: known.draft_planners.contains(behaviours.planner.name()) && choices.chance(1, 2),
        tail_tokens: tail_tokens(choices, &eviction, virtual_page),
        eviction,
        cache,
        free_order: name(choices, known.free_orders.iter()),
        reserved_tokens,
        step_ticks: *choices.pick(DURATIONS),
        request_ticks: *choices.pick(&[0, 1, 20]),
        release_timeout_ticks: *choices.pick(&[10, 0, 1, 100, 10_000, 30_000_000]),
    }
}

/// Pages of a pool by what each request needs at its largest: enough for all, a little more than
/// for the largest one, just enough for it, or, seldom, one too few.
fn pool_pages(choices: &mut impl Choices, needs: &[u32]) -> u32 {
    let largest = largest(needs);
    let all: u32 = needs.iter().sum();
    let roomy = all.min(ROOMY_PAGES).max(largest);
    match choices.below(16) {
        0..=5 => roomy + choices.within(0..=4),
        6..=9 => choices.within(largest..=roomy),
        10..=12 => largest + choices.within(0..=largest),
        13 | 14 => largest + choices.within(0..=1),
        _ => largest.saturating_sub(1).max(1),
    }
}

/// Pages that the largest request fits into, and hardly a second one.
fn crowded_pages(choices: &mut impl Choices, needs: &[u32]) -> u32 {
    let largest = largest(needs);
    largest + choices.within(0..=largest / 2)
}

fn largest(needs: &[u32]) -> u32 {
    needs.iter().copied().max().unwrap_or(1)
}

fn link(
    choices: &mut impl Choices,
    layout: LayoutConfig,
    behaviours: Behaviours,
    demand: &[Demand],
) -> LinkConfig {
    let longest = demand.iter().map(Demand::stored).max().unwrap_or(1);
    let is_late = choices.chance(3, 8);
    let pack_tokens = match choices.below(4) {
        0 => LinkConfig::default().pack_tokens,
        1 => layout.page_size * choices.within(1..=layout.ranks),
        2 => choices.within(1..=layout.virtual_page()),
        _ => choices.within(1..=longest),
    };
    let pack_tokens = pack_tokens.max(longest / CHUNKS_MAX);
    LinkConfig {
        copy_ticks: *choices.pick(&[6, 0, 1, 50, 500]),
        bytes_per_tick: *choices.pick(&[70_272, 1_000_000_000, 25_000, 1_000]),
        message_ticks: *choices.pick(DURATIONS),
        delay_every: if is_late { choices.within(1..=4) } else { 0 },
        delay_ticks: if is_late { *choices.pick(DURATIONS) } else { 0 },
        pack_tokens: match behaviours.send_split {
            SendSplit::Yes | SendSplit::Crossings => pack_tokens.next_multiple_of(layout.page_size),
            SendSplit::No => pack_tokens,
        },
        ..LinkConfig::default()
    }
}

/// Peers that agree, and seldom one difference.
fn pairing(choices: &mut impl Choices, layout: LayoutConfig) -> PairingConfig {
    let mut pairing = PairingConfig::default();
    if choices.chance(1, 14) {
        match choices.below(6) {
            0 => pairing.prefill_page_size = Some(layout.page_size + 1),
            1 => pairing.prefill_attention_cp = 2,
            2 => pairing.decode_pool = KvPool::Mha,
            3 => pairing.prefill_entry_bytes = vec![1_153],
            4 => pairing.prefill_ranks = layout.ranks + 1,
            _ => {
                pairing.prefill_ranks = layout.ranks;
                pairing.prefill_rank = layout.ranks - 1;
            }
        }
    }
    pairing
}

/// Everything that goes wrong from outside, each kind in some scenarios.
fn faults(
    choices: &mut impl Choices,
    scenario: &Scenario,
    requests: usize,
    is_crowded: bool,
) -> Vec<Fault> {
    let mut faults = aborts(choices, requests, is_crowded);
    if choices.chance(1, 4) {
        let mut messages = BTreeSet::new();
        for _ in 0..choices.within(1..=4) {
            let request = RequestId(choices.within(0..=requests as u32 - 1));
            let message = choices.below(2 * u64::from(scenario.layout.ranks)) as u32;
            if messages.insert((request, message)) {
                faults.push(match choices.chance(1, 2) {
                    true => Fault::Double { request, message },
                    false => Fault::Lose { request, message },
                });
            }
        }
    }
    if choices.chance(1, 6) {
        for _ in 0..choices.within(1..=3) {
            let (side, servers) = *choices.pick(&[
                (Side::Decode, scenario.decode.workers),
                (Side::Prefill, scenario.prefill.workers),
            ]);
            let scale = *choices.pick(&[1_000, 100, 20_000]);
            let server = choices.within(0..=servers - 1);
            faults.push(Fault::Flush { side, server, at: Tick(choices.below(scale)) });
        }
    }
    faults
}

/// Aborts at any moment: of none, some or nearly all requests, now and then of one twice. Every
/// other one is at one moment, which in a crowd is mostly one that needs a crowd.
fn aborts(choices: &mut impl Choices, requests: usize, is_crowded: bool) -> Vec<Fault> {
    let (weights, favourites): (&[u64], _) = match is_crowded {
        true => (&[6, 7, 4], &[Moment::Retracted, Moment::Running, Moment::Retracted][..]),
        false => (&[0, 1, 0, 4, 7], &MOMENTS),
    };
    let weight = *choices.pick(weights);
    let favourite = *choices.pick(favourites);
    let mut faults = Vec::new();
    for request in (0..requests as u32).map(RequestId) {
        while faults.len() < 2 * requests && choices.chance(weight, 8) {
            let scale = *choices.pick(&[7, 1, 60, 600, 20_000]);
            let after = Tick(choices.below(scale));
            let when = match choices.chance(1, 2) {
                true => favourite,
                false => *choices.pick(&MOMENTS),
            };
            faults.push(Fault::Abort { request, after, when });
            if !choices.chance(1, 4) {
                break;
            }
        }
    }
    faults
}

fn workers(choices: &mut impl Choices) -> u32 {
    *choices.pick(&[1, 1, 2, 1, 3])
}

fn name<'a>(choices: &mut impl Choices, names: impl Iterator<Item = &'a String>) -> String {
    choices.pick(&names.collect::<Vec<_>>()).to_string()
}

/// An order of eviction that goes with `cache`.
fn eviction(choices: &mut impl Choices, known: &KnownPolicies, cache: &str) -> String {
    let drawn = name(choices, known.evictions.iter());
    if cache == BLOCK_HASH { LRU.to_owned() } else { drawn }
}

/// The number that goes with `eviction`: about a page.
fn tail_tokens(choices: &mut impl Choices, eviction: &str, page: u32) -> u32 {
    if eviction == TAIL_LRU { choices.within(1..=2 * page) } else { 0 }
}

#[cfg(test)]
mod tests;
