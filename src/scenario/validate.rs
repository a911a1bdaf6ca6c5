//! Whether a scenario can be run at all: every number within its bounds, every name known, every
//! reference to something that exists.
//!
//! What is refused here has no meaning. A configuration with a meaning that ends badly is the
//! lint's affair, and a pairing that the peers refuse is a finding.

use std::collections::BTreeSet;
use std::fmt::{Arguments, Display};
use std::ops::RangeInclusive;

use thiserror::Error;

use super::{
    Arrivals, DecodeConfig, Fault, Lengths, LinkConfig, PairingConfig, PrefillConfig, RequestSpec,
    Scenario, Synthetic, TraceConfig, VERSION, WorkloadConfig,
};
use crate::behaviour::{ChunkCut, SendSplit};
use crate::finding::{Named, Side};
use crate::layout::Layout;
use crate::limits;
use crate::prompt::ContentId;
use crate::units::Tick;
use crate::wording;

/// The names that a registry knows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownPolicies {
    /// Prefix caches.
    pub caches: BTreeSet<String>,
    /// Eviction policies.
    pub evictions: BTreeSet<String>,
    /// Free-list orders.
    pub free_orders: BTreeSet<String>,
    /// Admission orders.
    pub admissions: BTreeSet<String>,
    /// Planners.
    pub planners: BTreeSet<String>,
    /// Those of the planners that lay out draft rows.
    pub draft_planners: BTreeSet<String>,
}

/// Why a scenario cannot be run.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{path}: {problem}")]
pub struct Invalid {
    /// The field, list indices included.
    pub path: String,
    /// What it must be, and what it is.
    pub problem: String,
}

/// The name of the cache that keeps nothing.
pub const NO_CACHE: &str = "none";
/// The order of admission that never lets a request overtake an earlier one.
pub const FIRST_COME: &str = "first_come";

/// The name of the cache by block hashes, whose queue is its only order of eviction.
pub const BLOCK_HASH: &str = "block_hash";

/// The eviction policy that this queue is.
pub const LRU: &str = "lru";

/// The eviction policy that lets the tails of histories go first, the only one with a number.
pub const TAIL_LRU: &str = "tlru";

/// Refuses a scenario that has a field out of its bounds, and names the first such field.
pub fn validate(scenario: &Scenario, known: &KnownPolicies) -> Result<(), Invalid> {
    exactly("version", scenario.version, VERSION)?;
    // TOML has no larger integer, so a scenario beyond it could not be written to a file.
    within("seed", scenario.seed, &(0..=i64::MAX.unsigned_abs()))?;
    if let Err((wanted, got)) = wording::title(&scenario.title) {
        return Err(invalid("title", wanted, got));
    }
    let layout = layout(scenario)?;
    within("prefill.workers", scenario.prefill.workers, &limits::WORKERS)?;
    within("decode.workers", scenario.decode.workers, &limits::WORKERS)?;
    let planner = scenario.behaviours().planner;
    one_of("behaviour.planner", planner.name(), &known.planners)?;
    prefill(scenario, &scenario.prefill, known, &layout)?;
    decode(scenario, &scenario.decode, known, &layout)?;
    link(scenario, &scenario.link, &layout)?;
    pairing(&scenario.pairing, &layout)?;
    let requests = match &scenario.workload {
        WorkloadConfig::Requests(list) => requests(list)?,
        WorkloadConfig::Synthetic(config) => synthetic(config)?,
        WorkloadConfig::Trace(config) => trace(config)?,
    };
    faults(scenario, requests)
}

fn layout(scenario: &Scenario) -> Result<Layout, Invalid> {
    let config = scenario.layout;
    within("layout.page_size", config.page_size, &limits::PAGE_SIZE)?;
    within("layout.ranks", config.ranks, &limits::RANKS)?;
    Layout::striped(config.page_size, config.ranks)
        .map_err(|error| Invalid { path: "layout".to_owned(), problem: error.to_string() })
}

fn prefill(
    scenario: &Scenario,
    config: &PrefillConfig,
    known: &KnownPolicies,
    layout: &Layout,
) -> Result<(), Invalid> {
    pool(scenario, Side::Prefill, layout.page().get())?;
    one_of("prefill.cache", &config.cache, &known.caches)?;
    eviction("prefill", (&config.eviction, config.tail_tokens), &config.cache, known)?;
    one_of("prefill.free_order", &config.free_order, &known.free_orders)?;
    one_of("prefill.admission", &config.admission, &known.admissions)?;
    // A budget below the alignment it is cut to would never let a token through.
    let (path, tokens) = ("prefill.chunk_tokens", config.chunk_tokens);
    match scenario.behaviours().chunk_cut {
        ChunkCut::PageBoundary => {
            let chunks = layout.page().get()..=*limits::CHUNK_TOKENS.end();
            within_by(path, tokens, &chunks, "layout.page_size")?;
        }
        ChunkCut::ExactBudget => within(path, tokens, &limits::CHUNK_TOKENS)?,
    }
    let page = layout.page().get();
    if scenario.profile.forbids_chunks_inside_pages() && !tokens.is_multiple_of(page) {
        let profile = scenario.profile.name();
        let wanted = format!("a multiple of layout.page_size = {page}, as {profile} asks for");
        return Err(invalid(path, wanted, tokens));
    }
    ticks("prefill.step_ticks", config.step_ticks)?;
    let a_token = limits::TICKS_MAX / u64::from(config.chunk_tokens);
    within_by("prefill.token_ticks", config.token_ticks, &(0..=a_token), "prefill.chunk_tokens")
}

fn decode(
    scenario: &Scenario,
    config: &DecodeConfig,
    known: &KnownPolicies,
    layout: &Layout,
) -> Result<(), Invalid> {
    pool(scenario, Side::Decode, layout.virtual_page().get())?;
    let rows = 0..=layout.page().get() - 1;
    within_by("decode.leftover_rows", config.leftover_rows, &rows, "layout.page_size")?;
    let planner = scenario.behaviours().planner;
    if config.draft && !known.draft_planners.contains(planner.name()) {
        let planner = planner.name();
        let wanted = format!("false, since the {planner} planner lays out no draft rows");
        return Err(invalid("decode.draft", wanted, "true"));
    }
    one_of("decode.cache", &config.cache, &known.caches)?;
    eviction("decode", (&config.eviction, config.tail_tokens), &config.cache, known)?;
    one_of("decode.free_order", &config.free_order, &known.free_orders)?;
    if scenario.profile.forbids_striped_decode_cache()
        && layout.ranks() > 1
        && config.cache != NO_CACHE
    {
        let profile = scenario.profile.name();
        let wanted =
            format!("\"{NO_CACHE}\", since {profile} allows no decode cache over several ranks");
        return Err(invalid("decode.cache", wanted, format!("\"{}\"", config.cache)));
    }
    ticks("decode.step_ticks", config.step_ticks)?;
    ticks("decode.request_ticks", config.request_ticks)?;
    ticks("decode.release_timeout_ticks", config.release_timeout_ticks)
}

fn link(scenario: &Scenario, config: &LinkConfig, layout: &Layout) -> Result<(), Invalid> {
    ticks("link.copy_ticks", config.copy_ticks)?;
    within("link.bytes_per_tick", config.bytes_per_tick, &(1..=u64::MAX))?;
    within("link.token_bytes", config.token_bytes, &limits::TOKEN_BYTES)?;
    ticks("link.message_ticks", config.message_ticks)?;
    ticks("link.delay_ticks", config.delay_ticks)?;
    let (page, tokens) = (layout.page().get(), config.pack_tokens);
    match scenario.behaviours().send_split {
        SendSplit::Yes | SendSplit::Crossings if tokens == 0 || !tokens.is_multiple_of(page) => {
            Err(invalid(
                "link.pack_tokens",
                format!("a multiple of the page size {page} from {page} on, where sends are split"),
                tokens,
            ))
        }
        SendSplit::Yes | SendSplit::Crossings => Ok(()),
        SendSplit::No => within("link.pack_tokens", tokens, &(1..=u32::MAX)),
    }
}

fn pairing(config: &PairingConfig, layout: &Layout) -> Result<(), Invalid> {
    within("pairing.prefill_ranks", config.prefill_ranks, &limits::RANKS)?;
    let prefill_ranks = 0..=config.prefill_ranks - 1;
    let ranks = "pairing.prefill_ranks";
    within_by("pairing.prefill_rank", config.prefill_rank, &prefill_ranks, ranks)?;
    let decode_ranks = 0..=layout.ranks() - 1;
    within_by("pairing.decode_rank", config.decode_rank, &decode_ranks, "layout.ranks")?;
    if let Some(page_size) = config.prefill_page_size {
        within("pairing.prefill_page_size", page_size, &limits::PAGE_SIZE)?;
    }
    within("pairing.prefill_attention_cp", config.prefill_attention_cp, &limits::RANKS)?;
    for (side, entries) in
        [("prefill", &config.prefill_entry_bytes), ("decode", &config.decode_entry_bytes)]
    {
        let path = format_args!("pairing.{side}_entry_bytes");
        not_empty(path, entries)?;
        for (index, &bytes) in entries.iter().enumerate() {
            within(format_args!("{path}.{index}"), bytes, &(1..=u32::MAX))?;
        }
    }
    Ok(())
}

/// Returns the number of requests.
fn requests(list: &[RequestSpec]) -> Result<Option<usize>, Invalid> {
    within("workload.requests", list.len(), &(1..=limits::REQUESTS_MAX))?;
    let mut previous = Tick(0);
    for (index, spec) in list.iter().enumerate() {
        request(format_args!("workload.requests.{index}"), spec)?;
        if spec.at < previous {
            let path = format_args!("workload.requests.{index}.at");
            let wanted = format!("at least {previous}, the arrival before it");
            return Err(invalid(path, wanted, spec.at));
        }
        previous = spec.at;
    }
    Ok(Some(list.len()))
}

fn request(path: Arguments<'_>, spec: &RequestSpec) -> Result<(), Invalid> {
    ticks(format_args!("{path}.at"), spec.at.0)?;
    within(format_args!("{path}.prompt"), spec.prompt.len(), &(1..=limits::PROMPT_RUNS_MAX))?;
    let mut prompt = 0_u64;
    for (index, run) in spec.prompt.iter().enumerate() {
        let path = format_args!("{path}.prompt.{index}");
        content(format_args!("{path}.content"), run.content)?;
        let offsets = 0..=*limits::PROMPT_TOKENS.end();
        within(format_args!("{path}.offset"), run.offset.0, &offsets)?;
        within(format_args!("{path}.len"), run.len.0, &limits::PROMPT_TOKENS)?;
        prompt += u64::from(run.len.0);
    }
    prompt_tokens(format_args!("{path}.prompt"), prompt)?;
    within(format_args!("{path}.output"), spec.output.0, &limits::OUTPUT_TOKENS)?;
    if let Some(most) = spec.max_new_tokens {
        let allowed = spec.output.0..=*limits::OUTPUT_TOKENS.end();
        within(format_args!("{path}.max_new_tokens"), most.0, &allowed)?;
    }
    match spec.output_content {
        Some(id) => content(format_args!("{path}.output_content"), id),
        None => Ok(()),
    }
}

/// Returns the number of requests.
fn synthetic(config: &Synthetic) -> Result<Option<usize>, Invalid> {
    let count = config.requests as usize;
    within("workload.synthetic.requests", count, &(1..=limits::REQUESTS_MAX))?;
    arrivals(config.arrivals, u64::from(config.requests))?;
    // A prompt may be its shared prefix and nothing else.
    let prompt_min = if config.prefix_groups > 0 { 0 } else { 1 };
    let most = *limits::PROMPT_TOKENS.end();
    // A shared prefix has a token at least, which leaves the prompt one fewer.
    let prompt_max = if config.prefix_groups > 0 { most - 1 } else { most };
    let prompt = lengths("workload.synthetic.prompt", &config.prompt, &(prompt_min..=prompt_max))?;
    let output = lengths("workload.synthetic.output", &config.output, &limits::OUTPUT_TOKENS)?;
    let groups = 0..=config.requests;
    let requests = "workload.synthetic.requests";
    within_by("workload.synthetic.prefix_groups", config.prefix_groups, &groups, requests)?;
    let prefix = match &config.prefix {
        Some(prefix) if config.prefix_groups > 0 => {
            // What the prompt leaves of the longest.
            lengths("workload.synthetic.prefix", prefix, &(1..=most - prompt))?
        }
        Some(_) => {
            let wanted = "at least 1 where a prefix is given";
            return Err(invalid("workload.synthetic.prefix_groups", wanted, 0));
        }
        None if config.prefix_groups > 0 => {
            let wanted = "given where there are prefix groups";
            return Err(invalid("workload.synthetic.prefix", wanted, "nothing"));
        }
        None => 0,
    };
    // Each turn of a conversation repeats the runs of all turns before it.
    let by_runs = limits::PROMPT_RUNS_MAX as u64 / 2 - 1;
    let by_requests = (limits::WORKLOAD_RUNS_MAX / u64::from(config.requests)).max(1);
    // The last turn's prompt is the prefix, every turn's prompt, and every other turn's output.
    let by_tokens = u64::from(most - prefix + output) / u64::from(prompt + output);
    let turns = by_runs.min(by_requests).min(by_tokens);
    let fields = "the requests and lengths beside it";
    within_by("workload.synthetic.turns", config.turns.into(), &(1..=turns), fields)?;
    Ok(Some(count))
}

fn arrivals(arrivals: Arrivals, requests: u64) -> Result<(), Invalid> {
    let path = "workload.synthetic.arrivals";
    let a_gap = |count: u64| 0..=limits::TICKS_MAX / count;
    match arrivals {
        Arrivals::Fixed { gap } => within(format_args!("{path}.fixed.gap"), gap, &a_gap(requests)),
        Arrivals::Bursts { size, gap } => {
            within(format_args!("{path}.bursts.size"), size, &(1..=u32::MAX))?;
            let bursts = requests.div_ceil(u64::from(size));
            within(format_args!("{path}.bursts.gap"), gap, &a_gap(bursts))
        }
        Arrivals::Geometric { slot, numerator, denominator } => {
            let path = format_args!("{path}.geometric");
            within(format_args!("{path}.denominator"), denominator, &(1..=u32::MAX))?;
            let least = denominator.div_ceil(limits::ARRIVAL_SLOTS_MEAN_MAX);
            within(format_args!("{path}.numerator"), numerator, &(least..=denominator))?;
            within(format_args!("{path}.slot"), slot, &a_gap(requests))
        }
    }
}

/// Returns the longest length.
fn lengths(path: &str, lengths: &Lengths, allowed: &RangeInclusive<u32>) -> Result<u32, Invalid> {
    match lengths {
        Lengths::Fixed(length) => {
            within(format_args!("{path}.fixed"), *length, allowed)?;
            Ok(*length)
        }
        Lengths::Uniform { min, max } => {
            within(format_args!("{path}.uniform.min"), *min, allowed)?;
            within(format_args!("{path}.uniform.max"), *max, &(*min..=*allowed.end()))?;
            Ok(*max)
        }
        Lengths::OneOf(choices) => {
            let path = format_args!("{path}.one_of");
            not_empty(path, choices)?;
            for (index, &length) in choices.iter().enumerate() {
                within(format_args!("{path}.{index}"), length, allowed)?;
            }
            Ok(choices.iter().copied().max().unwrap_or_default())
        }
    }
}

/// Returns the number of requests, where it is known before the file is read.
fn trace(config: &TraceConfig) -> Result<Option<usize>, Invalid> {
    if config.path.is_empty() {
        return Err(invalid("workload.trace.path", "the path of a file", "nothing"));
    }
    within("workload.trace.time_numerator", config.time_numerator, &(1..=u32::MAX))?;
    within("workload.trace.time_denominator", config.time_denominator, &(1..=u32::MAX))?;
    let cap = config.requests_max.map(|cap| cap as usize);
    if let Some(cap) = cap {
        within("workload.trace.requests_max", cap, &(1..=limits::REQUESTS_MAX))?;
    }
    Ok(cap)
}

/// Faults of `requests` requests; how many a trace has is known when it has been read.
pub(crate) fn faults(scenario: &Scenario, requests: Option<usize>) -> Result<(), Invalid> {
    let faults = &scenario.faults;
    let mut messages = BTreeSet::new();
    within("faults", faults.len(), &(0..=limits::FAULTS_MAX))?;
    let last = requests.unwrap_or(limits::REQUESTS_MAX) - 1;
    for (index, fault) in faults.iter().enumerate() {
        match fault {
            Fault::Abort { request, after, .. } => {
                let path = format_args!("faults.{index}.abort");
                within(format_args!("{path}.request"), request.index(), &(0..=last))?;
                ticks(format_args!("{path}.after"), after.0)?;
            }
            Fault::Lose { request, message } | Fault::Double { request, message } => {
                let kind = fault.kind();
                let path = format_args!("faults.{index}.{kind}");
                within(format_args!("{path}.request"), request.index(), &(0..=last))?;
                within(format_args!("{path}.message"), *message, &limits::MESSAGE)?;
                if !messages.insert((request, message)) {
                    let got = format!("a second one for message {message} of request {request}");
                    return Err(invalid(path, "one fault a message", got));
                }
            }
            Fault::Flush { side, server, at } => {
                let path = format_args!("faults.{index}.flush");
                let (servers, by) = match side {
                    Side::Prefill => (scenario.prefill.workers, "prefill.workers"),
                    Side::Decode => (scenario.decode.workers, "decode.workers"),
                };
                within_by(format_args!("{path}.server"), *server, &(0..=servers - 1), by)?;
                ticks(format_args!("{path}.at"), at.0)?;
            }
        }
    }
    Ok(())
}

/// Pages of a side's pools, each of `page` tokens: what rows can be numbered, and what all pools
/// together can be simulated with.
fn pool(scenario: &Scenario, side: Side, page: u32) -> Result<(), Invalid> {
    let (prefill, decode) = (&scenario.prefill, &scenario.decode);
    // Every rank has as many pages of draft KV.
    let pools = if decode.draft { 2 } else { 1 };
    let a_prefill_page = u64::from(prefill.workers);
    let a_decode_page = u64::from(decode.workers) * u64::from(scenario.layout.ranks) * pools;
    let (pages, own, beside, least_beside) = match side {
        Side::Prefill => {
            let beside = a_decode_page * u64::from(decode.pages);
            (prefill.pages, a_prefill_page, beside, a_decode_page)
        }
        Side::Decode => {
            let beside = a_prefill_page * u64::from(prefill.pages);
            (decode.pages, a_decode_page, beside, a_prefill_page)
        }
    };
    let all = limits::MEMORY_PAGES_MAX;
    // A pool that leaves no page for the other is the one at fault, so it counts as the smallest.
    let left = all.checked_sub(beside).filter(|&left| left >= own).unwrap_or(all - least_beside);
    let by_memory = left / own;
    let by_tokens = limits::POOL_TOKENS_MAX / u64::from(page);
    let largest = u64::from(*limits::POOL_PAGES.end());
    let most = largest.min(by_tokens).min(by_memory);
    let (side, pages) = (side.name(), u64::from(pages));
    let path = format_args!("{side}.pages");
    let range = 1..=most;
    if most == largest {
        within(path, pages, &range)
    } else if most == by_tokens {
        within_by(path, pages, &range, "layout")
    } else {
        let sum = "prefill.workers · prefill.pages + decode.workers · decode.pages · layout.ranks";
        within_by(path, pages, &range, format_args!("{sum}, at most {all}"))
    }
}

fn prompt_tokens(path: impl Display, tokens: u64) -> Result<(), Invalid> {
    let most = *limits::PROMPT_TOKENS.end();
    if tokens > u64::from(most) {
        return Err(invalid(path, format!("at most {most} tokens in all"), tokens));
    }
    Ok(())
}

fn content(path: impl Display, content: ContentId) -> Result<(), Invalid> {
    within(path, content.0, &(0..=ContentId::OWN - 1))
}

fn ticks(path: impl Display, ticks: u64) -> Result<(), Invalid> {
    within(path, ticks, &(0..=limits::TICKS_MAX))
}

fn within<T>(path: impl Display, value: T, allowed: &RangeInclusive<T>) -> Result<(), Invalid>
where
    T: PartialOrd + Display,
{
    bounded(path, value, allowed, format_args!(""))
}

/// Whether a value is in a range that is narrowed `by` other fields, which the message names.
fn within_by<T>(
    path: impl Display,
    value: T,
    allowed: &RangeInclusive<T>,
    by: impl Display,
) -> Result<(), Invalid>
where
    T: PartialOrd + Display,
{
    bounded(path, value, allowed, format_args!(" (by {by})"))
}

/// Whether a value is in a range, of which the message says `more`.
fn bounded<T>(
    path: impl Display,
    value: T,
    allowed: &RangeInclusive<T>,
    more: Arguments<'_>,
) -> Result<(), Invalid>
where
    T: PartialOrd + Display,
{
    if allowed.contains(&value) {
        return Ok(());
    }
    let wanted = format!("{} to {}{more}", allowed.start(), allowed.end());
    Err(invalid(path, wanted, value))
}

fn exactly<T: PartialEq + Display>(path: &str, value: T, only: T) -> Result<(), Invalid> {
    if value == only {
        return Ok(());
    }
    Err(invalid(path, only, value))
}

fn eviction(
    section: &str,
    (name, tail_tokens): (&str, u32),
    cache: &str,
    known: &KnownPolicies,
) -> Result<(), Invalid> {
    let path = format!("{section}.eviction");
    one_of(&path, name, &known.evictions)?;
    if cache == BLOCK_HASH && name != LRU {
        let wanted = format!("\"{LRU}\", the only order of the cache \"{BLOCK_HASH}\"");
        return Err(invalid(path, wanted, format!("\"{name}\"")));
    }
    let tail = match name {
        TAIL_LRU => limits::PROMPT_TOKENS,
        _ => 0..=0,
    };
    within_by(format_args!("{section}.tail_tokens"), tail_tokens, &tail, &path)
}

fn one_of(path: &str, name: &str, known: &BTreeSet<String>) -> Result<(), Invalid> {
    if known.contains(name) {
        return Ok(());
    }
    let names: Vec<&str> = known.iter().map(String::as_str).collect();
    let wanted = wording::one_of(&names, "the registry knows none");
    Err(invalid(path, wanted, format!("\"{name}\"")))
}

fn not_empty<T>(path: impl Display, list: &[T]) -> Result<(), Invalid> {
    if list.is_empty() {
        return Err(invalid(path, "a list of at least 1", "an empty one"));
    }
    Ok(())
}

fn invalid(path: impl Display, wanted: impl Display, got: impl Display) -> Invalid {
    Invalid { path: path.to_string(), problem: format!("must be {wanted}, got {got}") }
}

#[cfg(test)]
mod tests;
