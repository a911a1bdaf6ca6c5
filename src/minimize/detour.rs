//! Detours: what no single step reaches, because two things must change at once.
//!
//! A detour begins at a scenario that differs from the best in its setting and may be larger, and
//! goes down from there by the usual passes. Where it ends below the best, it was worth it.

use super::search::Search;
use super::size::requests_of;
use super::{fields, layout, times};
use crate::scenario::{
    Fault, LayoutConfig, LinkConfig, Moment, RequestSpec, Scenario, WorkloadConfig,
};
use crate::units::{Tick, Tokens};

/// Time for a request of small numbers to end before the next one arrives.
const APART_TICKS: u64 = 1_000_000;

/// Offers short prompts in pools that just hold them. What goes wrong near the size of a pool stays
/// only if both shrink at once.
pub(super) fn shrink_prompts_and_pools(search: &mut Search) {
    let LayoutConfig { page_size, ranks } = search.best().layout;
    for length in [1, page_size, page_size * ranks] {
        search.offer(tight(&short(search.best(), length)));
    }
}

/// Where detours begin.
pub(super) fn starts(search: &Search) -> Vec<Scenario> {
    let best = search.best();
    let (apart, roomy) = (apart(best), roomy(best));
    let both = self::roomy(&apart);
    let mut list = vec![apart, page_chunks(&roomy), tight(best)];
    for (page_size, ranks) in [(1, 1), (2, 1), (1, 2), (2, 2)] {
        let layout = LayoutConfig { page_size, ranks };
        if page_size * ranks <= best.layout.page_size * best.layout.ranks {
            for from in [&roomy, &both] {
                list.extend(layout::scaled_up(from, layout));
                list.push(Scenario { layout, ..from.clone() });
            }
        }
    }
    list.extend([roomy, both]);
    if !best.faults.is_empty() {
        list.extend(times::MOMENTS.map(|moment| at_moment(best, moment)));
    }
    list
}

/// Faults follow `moment` at once, and every duration is the default.
fn at_moment(scenario: &Scenario, moment: Moment) -> Scenario {
    let mut usual = fields::with_usual_times(scenario);
    for fault in &mut usual.faults {
        match fault {
            Fault::Abort { request: _, after, when } => (*after, *when) = (Tick(0), moment),
            Fault::Lose { .. } | Fault::Double { .. } | Fault::Flush { .. } => {}
        }
    }
    usual
}

/// Each request arrives when those before it have ended.
fn apart(scenario: &Scenario) -> Scenario {
    let mut apart = scenario.clone();
    if let WorkloadConfig::Requests(list) = &mut apart.workload {
        for (spec, number) in list.iter_mut().zip(0..) {
            spec.at = Tick(number * APART_TICKS);
        }
    }
    apart
}

/// Pools with room to spare on a single server of each kind.
fn roomy(scenario: &Scenario) -> Scenario {
    let mut roomy = scenario.clone();
    for (workers, pages) in [
        (&mut roomy.prefill.workers, &mut roomy.prefill.pages),
        (&mut roomy.decode.workers, &mut roomy.decode.pages),
    ] {
        *workers = 1;
        *pages = pages.saturating_mul(4);
    }
    roomy
}

/// Every run of a prompt is at most so long.
fn short(scenario: &Scenario, length: u32) -> Scenario {
    let mut short = scenario.clone();
    if let WorkloadConfig::Requests(list) = &mut short.workload {
        for run in list.iter_mut().flat_map(|spec| &mut spec.prompt) {
            run.len = run.len.min(Tokens(length));
        }
    }
    short
}

/// Pools that just hold the longest request, and nothing kept back.
fn tight(scenario: &Scenario) -> Scenario {
    let mut tight = scenario.clone();
    let LayoutConfig { page_size, ranks } = scenario.layout;
    let prompt = |spec: &RequestSpec| spec.prompt.iter().map(|run| run.len.0).sum::<u32>();
    let lengths = requests_of(scenario).iter().map(|spec| prompt(spec) + spec.output.0 - 1);
    let longest = lengths.max().unwrap_or(1);
    tight.prefill.pages = longest.div_ceil(page_size);
    tight.decode.pages = longest.div_ceil(page_size * ranks);
    tight.decode.reserved_tokens = 0;
    tight
}

/// Prefill computes one page a step. The pack buffer then need not be small to keep pieces short.
fn page_chunks(scenario: &Scenario) -> Scenario {
    let mut chunks = scenario.clone();
    chunks.prefill.chunk_tokens = scenario.layout.page_size;
    chunks.link.pack_tokens = LinkConfig::default().pack_tokens;
    chunks
}
