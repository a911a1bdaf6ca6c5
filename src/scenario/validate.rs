//! Whether a scenario can be run at all: every number within its bounds, every name known, every
//! reference to something that exists.
//!
//! What is refused here has no meaning. A configuration with a meaning that ends badly is the
//! lint's affair, and a pairing that the peers refuse is a finding.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::ops::RangeInclusive;

use thiserror::Error;

use super::{
    Arrivals, DecodeConfig, Fault, Lengths, LinkConfig, PairingConfig, PrefillConfig, RequestSpec,
    Scenario, ServerKind, Synthetic, TraceConfig, VERSION, WorkloadConfig,
};
use crate::behaviour::{ChunkCut, PlannerRevision, SendSplit};
use crate::layout::Layout;
use crate::limits;
use crate::prompt::ContentId;
use crate::units::Tick;

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

/// Refuses a scenario with the first field that is out of its bounds.
pub fn validate(scenario: &Scenario, known: &KnownPolicies) -> Result<(), Invalid> {
    exactly("version", scenario.version, VERSION)?;
    // TOML has no larger integer, so a scenario beyond it could not be written to a file.
    within("seed", scenario.seed, &(0..=i64::MAX.unsigned_abs()))?;
    if scenario.title.contains(['\n', '\r']) {
        return Err(invalid("title", "one line", "several"));
    }
    let layout = layout(scenario)?;
    prefill(scenario, &scenario.prefill, known, &layout)?;
    decode(scenario, &scenario.decode, known, &layout)?;
    memory(scenario)?;
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
    within("prefill.workers", config.workers, &limits::WORKERS)?;
    pool("prefill.pages", config.pages, layout.page().get())?;
    one_of("prefill.cache", &config.cache, &known.caches)?;
    eviction("prefill.eviction", &config.eviction, &config.cache, known)?;
    one_of("prefill.free_order", &config.free_order, &known.free_orders)?;
    one_of("prefill.admission", &config.admission, &known.admissions)?;
    // A budget below the alignment it is cut to would never let a token through.
    let least = match scenario.behaviours().chunk_cut {
        ChunkCut::PageBoundary => layout.page().get(),
        ChunkCut::ExactBudget => *limits::CHUNK_TOKENS.start(),
    };
    let chunks = least..=*limits::CHUNK_TOKENS.end();
    within("prefill.chunk_tokens", config.chunk_tokens, &chunks)?;
    ticks("prefill.step_ticks", config.step_ticks)?;
    let a_token = limits::TICKS_MAX / u64::from(config.chunk_tokens);
    within("prefill.token_ticks", config.token_ticks, &(0..=a_token))
}

fn decode(
    scenario: &Scenario,
    config: &DecodeConfig,
    known: &KnownPolicies,
    layout: &Layout,
) -> Result<(), Invalid> {
    within("decode.workers", config.workers, &limits::WORKERS)?;
    pool("decode.pages", config.pages, layout.virtual_page().get())?;
    within("decode.leftover_rows", config.leftover_rows, &(0..=layout.page().get() - 1))?;
    if config.draft && scenario.behaviours().planner == PlannerRevision::Checked {
        let wanted = "false, since the checked planner lays out no draft rows";
        return Err(invalid("decode.draft", wanted, "true"));
    }
    one_of("decode.cache", &config.cache, &known.caches)?;
    eviction("decode.eviction", &config.eviction, &config.cache, known)?;
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
    within("link.pack_tokens", config.pack_tokens, &(1..=u32::MAX))?;
    let page = layout.page().get();
    match scenario.behaviours().send_split {
        SendSplit::Yes if !config.pack_tokens.is_multiple_of(page) => Err(invalid(
            "link.pack_tokens",
            format!("a multiple of the page size {page} where sends are split"),
            config.pack_tokens,
        )),
        SendSplit::Yes | SendSplit::No => Ok(()),
    }
}

fn pairing(config: &PairingConfig, layout: &Layout) -> Result<(), Invalid> {
    within("pairing.prefill_ranks", config.prefill_ranks, &limits::RANKS)?;
    let prefill_ranks = 0..=config.prefill_ranks - 1;
    within("pairing.prefill_rank", config.prefill_rank, &prefill_ranks)?;
    let decode_ranks = 0..=layout.ranks() - 1;
    within("pairing.decode_rank", config.decode_rank, &decode_ranks)?;
    if let Some(page_size) = config.prefill_page_size {
        within("pairing.prefill_page_size", page_size, &limits::PAGE_SIZE)?;
    }
    within("pairing.prefill_attention_cp", config.prefill_attention_cp, &limits::RANKS)?;
    for (side, entries) in
        [("prefill", &config.prefill_entry_bytes), ("decode", &config.decode_entry_bytes)]
    {
        let path = format!("pairing.{side}_entry_bytes");
        not_empty(&path, entries)?;
        for (index, &bytes) in entries.iter().enumerate() {
            within(&format!("{path}.{index}"), bytes, &(1..=u32::MAX))?;
        }
    }
    Ok(())
}

/// Returns the number of requests.
fn requests(list: &[RequestSpec]) -> Result<Option<usize>, Invalid> {
    within("workload.requests", list.len(), &(1..=limits::REQUESTS_MAX))?;
    let mut previous = Tick(0);
    for (index, spec) in list.iter().enumerate() {
        request(&format!("workload.requests.{index}"), spec)?;
        if spec.at < previous {
            let path = format!("workload.requests.{index}.at");
            let wanted = format!("at least {previous}, the arrival before it");
            return Err(invalid(path, wanted, spec.at));
        }
        previous = spec.at;
    }
    Ok(Some(list.len()))
}

fn request(path: &str, spec: &RequestSpec) -> Result<(), Invalid> {
    ticks(&format!("{path}.at"), spec.at.0)?;
    within(&format!("{path}.prompt"), spec.prompt.len(), &(1..=limits::PROMPT_RUNS_MAX))?;
    let mut prompt = 0_u64;
    for (index, run) in spec.prompt.iter().enumerate() {
        let path = format!("{path}.prompt.{index}");
        content(&format!("{path}.content"), run.content)?;
        let offsets = 0..=*limits::PROMPT_TOKENS.end();
        within(&format!("{path}.offset"), run.offset.0, &offsets)?;
        within(&format!("{path}.len"), run.len.0, &limits::PROMPT_TOKENS)?;
        prompt += u64::from(run.len.0);
    }
    prompt_tokens(&format!("{path}.prompt"), prompt)?;
    within(&format!("{path}.output"), spec.output.0, &limits::OUTPUT_TOKENS)?;
    match spec.output_content {
        Some(id) => content(&format!("{path}.output_content"), id),
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
    let prompt = prompt_min..=*limits::PROMPT_TOKENS.end();
    let prompt = lengths("workload.synthetic.prompt", &config.prompt, &prompt)?;
    let output = lengths("workload.synthetic.output", &config.output, &limits::OUTPUT_TOKENS)?;
    let groups = 0..=config.requests;
    within("workload.synthetic.prefix_groups", config.prefix_groups, &groups)?;
    let prefix = match &config.prefix {
        Some(prefix) if config.prefix_groups > 0 => {
            lengths("workload.synthetic.prefix", prefix, &limits::PROMPT_TOKENS)?
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
    let turns = 1..=limits::PROMPT_RUNS_MAX / 2 - 1;
    within("workload.synthetic.turns", config.turns as usize, &turns)?;
    let turns = u64::from(config.turns);
    // Each turn of a conversation repeats the runs of all turns before it.
    let runs_max = limits::WORKLOAD_RUNS_MAX / u64::from(config.requests);
    within("workload.synthetic.turns", turns, &(1..=runs_max.max(1)))?;
    let longest = u64::from(prefix) + turns * u64::from(prompt) + (turns - 1) * u64::from(output);
    prompt_tokens("workload.synthetic.turns", longest)?;
    Ok(Some(count))
}

fn arrivals(arrivals: Arrivals, requests: u64) -> Result<(), Invalid> {
    let path = "workload.synthetic.arrivals";
    let a_gap = |count: u64| 0..=limits::TICKS_MAX / count;
    match arrivals {
        Arrivals::Fixed { gap } => within(&format!("{path}.fixed.gap"), gap, &a_gap(requests)),
        Arrivals::Bursts { size, gap } => {
            within(&format!("{path}.bursts.size"), size, &(1..=u32::MAX))?;
            let bursts = requests.div_ceil(u64::from(size));
            within(&format!("{path}.bursts.gap"), gap, &a_gap(bursts))
        }
        Arrivals::Geometric { slot, numerator, denominator } => {
            let path = format!("{path}.geometric");
            within(&format!("{path}.denominator"), denominator, &(1..=u32::MAX))?;
            let least = denominator.div_ceil(limits::ARRIVAL_SLOTS_MEAN_MAX);
            within(&format!("{path}.numerator"), numerator, &(least..=denominator))?;
            within(&format!("{path}.slot"), slot, &a_gap(requests))
        }
    }
}

/// Returns the longest length.
fn lengths(path: &str, lengths: &Lengths, allowed: &RangeInclusive<u32>) -> Result<u32, Invalid> {
    match lengths {
        Lengths::Fixed(length) => {
            within(&format!("{path}.fixed"), *length, allowed)?;
            Ok(*length)
        }
        Lengths::Uniform { min, max } => {
            within(&format!("{path}.uniform.min"), *min, allowed)?;
            within(&format!("{path}.uniform.max"), *max, &(*min..=*allowed.end()))?;
            Ok(*max)
        }
        Lengths::OneOf(choices) => {
            let path = format!("{path}.one_of");
            not_empty(&path, choices)?;
            for (index, &length) in choices.iter().enumerate() {
                within(&format!("{path}.{index}"), length, allowed)?;
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
                let path = format!("faults.{index}.abort");
                within(&format!("{path}.request"), request.index(), &(0..=last))?;
                ticks(&format!("{path}.after"), after.0)?;
            }
            Fault::Lose { request, message } | Fault::Double { request, message } => {
                let kind = if matches!(fault, Fault::Lose { .. }) { "lose" } else { "double" };
                let path = format!("faults.{index}.{kind}");
                within(&format!("{path}.request"), request.index(), &(0..=last))?;
                within(&format!("{path}.message"), *message, &limits::MESSAGE)?;
                if !messages.insert((request, message)) {
                    let got = format!("a second one for message {message} of request {request}");
                    return Err(invalid(&path, "one fault a message", &got));
                }
            }
            Fault::Flush { side, server, at } => {
                let path = format!("faults.{index}.flush");
                let servers = match side {
                    ServerKind::Prefill => scenario.prefill.workers,
                    ServerKind::Decode => scenario.decode.workers,
                };
                within(&format!("{path}.server"), *server, &(0..=servers - 1))?;
                ticks(&format!("{path}.at"), at.0)?;
            }
        }
    }
    Ok(())
}

/// Pages of a pool, each of `page` tokens.
fn pool(path: &str, pages: u32, page: u32) -> Result<(), Invalid> {
    let by_tokens = u32::try_from(limits::POOL_TOKENS_MAX / u64::from(page)).unwrap_or(u32::MAX);
    let most = by_tokens.min(*limits::POOL_PAGES.end());
    within(path, pages, &(*limits::POOL_PAGES.start()..=most))
}

/// All pools together must be something that can be simulated.
fn memory(scenario: &Scenario) -> Result<(), Invalid> {
    let (prefill, decode) = (&scenario.prefill, &scenario.decode);
    let prefill_pages = u64::from(prefill.workers) * u64::from(prefill.pages);
    let decode_pages = u64::from(decode.workers) * u64::from(decode.pages);
    // Every rank has as many pages of draft KV.
    let pools = if decode.draft { 2 } else { 1 };
    let pages = prefill_pages + decode_pages * u64::from(scenario.layout.ranks) * pools;
    if pages > limits::MEMORY_PAGES_MAX {
        let wanted = format!(
            "small enough that prefill.workers · prefill.pages + decode.workers · decode.pages · \
             layout.ranks is at most {}",
            limits::MEMORY_PAGES_MAX
        );
        return Err(invalid("decode.pages", wanted, pages));
    }
    Ok(())
}

fn prompt_tokens(path: &str, tokens: u64) -> Result<(), Invalid> {
    let most = *limits::PROMPT_TOKENS.end();
    if tokens > u64::from(most) {
        return Err(invalid(path, format!("at most {most} tokens in all"), tokens));
    }
    Ok(())
}

fn content(path: &str, content: ContentId) -> Result<(), Invalid> {
    within(path, content.0, &(0..=ContentId::OWN - 1))
}

fn ticks(path: &str, ticks: u64) -> Result<(), Invalid> {
    within(path, ticks, &(0..=limits::TICKS_MAX))
}

fn within<T>(path: &str, value: T, allowed: &RangeInclusive<T>) -> Result<(), Invalid>
where
    T: PartialOrd + Display,
{
    if allowed.contains(&value) {
        return Ok(());
    }
    let wanted = format!("{} to {}", allowed.start(), allowed.end());
    Err(invalid(path, wanted, value))
}

fn exactly<T: PartialEq + Display>(path: &str, value: T, only: T) -> Result<(), Invalid> {
    if value == only {
        return Ok(());
    }
    Err(invalid(path, only, value))
}

fn eviction(path: &str, name: &str, cache: &str, known: &KnownPolicies) -> Result<(), Invalid> {
    one_of(path, name, &known.evictions)?;
    if cache == BLOCK_HASH && name != LRU {
        let wanted = format!("\"{LRU}\", the only order of the cache \"{BLOCK_HASH}\"");
        return Err(invalid(path, wanted, format!("\"{name}\"")));
    }
    Ok(())
}

fn one_of(path: &str, name: &str, known: &BTreeSet<String>) -> Result<(), Invalid> {
    if known.contains(name) {
        return Ok(());
    }
    let names: Vec<&str> = known.iter().map(String::as_str).collect();
    Err(invalid(path, format!("one of {}", names.join(", ")), format!("\"{name}\"")))
}

fn not_empty<T>(path: &str, list: &[T]) -> Result<(), Invalid> {
    if list.is_empty() {
        return Err(invalid(path, "a list of at least 1", "an empty one"));
    }
    Ok(())
}

fn invalid(path: impl Into<String>, wanted: impl Display, got: impl Display) -> Invalid {
    Invalid { path: path.into(), problem: format!("must be {wanted}, got {got}") }
}

#[cfg(test)]
mod tests {
    use super::super::tests::small;
    use super::super::{file, tests::known};
    use super::*;

    fn refused(base: &Scenario, assignments: &[&str]) -> String {
        let mut table = file::table(&base.to_toml(), "base").unwrap();
        for assignment in assignments {
            file::set(&mut table, assignment).unwrap();
        }
        let scenario = file::from_table(table, "base").unwrap();
        validate(&scenario, &known())
            .map_or_else(|invalid| invalid.to_string(), |()| "valid".into())
    }

    #[test]
    fn the_small_scenario_is_valid() {
        assert_eq!(refused(&small(), &[]), "valid");
    }

    #[test]
    fn a_cache_with_one_order_of_eviction_refuses_the_others() {
        let refuses = "eviction: must be \"lru\", the only order of the cache \"block_hash\", got \
            \"priority\"";
        for side in ["prefill", "decode"] {
            let [cache, lru, priority] = ["cache=block_hash", "eviction=lru", "eviction=priority"]
                .map(|assignment| format!("{side}.{assignment}"));
            assert_eq!(refused(&small(), &[&cache, &lru]), "valid");
            assert_eq!(refused(&small(), &[&cache, &priority]), format!("{side}.{refuses}"));
        }
    }

    #[test]
    fn what_is_out_of_bounds_is_refused_with_path_range_and_value() {
        for (assignment, expected) in [
            ("title=\"a\\nb\"", "title: must be one line, got several"),
            ("layout.page_size=0", "layout.page_size: must be 1 to 4096, got 0"),
            ("layout.page_size=4097", "layout.page_size: must be 1 to 4096, got 4097"),
            ("layout.ranks=0", "layout.ranks: must be 1 to 256, got 0"),
            ("layout.ranks=257", "layout.ranks: must be 1 to 256, got 257"),
            ("prefill.workers=0", "prefill.workers: must be 1 to 64, got 0"),
            ("prefill.pages=0", "prefill.pages: must be 1 to 16777216, got 0"),
            ("prefill.pages=16777217", "prefill.pages: must be 1 to 16777216, got 16777217"),
            (
                "prefill.cache=trie",
                "prefill.cache: must be one of block_hash, none, radix, got \"trie\"",
            ),
            ("prefill.eviction=x", "prefill.eviction: must be one of lru, priority, got \"x\""),
            ("prefill.free_order=x", "prefill.free_order: must be one of sorted, stack, got \"x\""),
            (
                "prefill.admission=x",
                "prefill.admission: must be one of first_come, longest_prefix, got \"x\"",
            ),
            ("prefill.chunk_tokens=1", "prefill.chunk_tokens: must be 2 to 8388608, got 1"),
            (
                "prefill.chunk_tokens=8388609",
                "prefill.chunk_tokens: must be 2 to 8388608, got 83886",
            ),
            ("prefill.step_ticks=1099511627777", "prefill.step_ticks: must be 0 to 1099511627776,"),
            (
                "prefill.token_ticks=134217729",
                "prefill.token_ticks: must be 0 to 134217728, got 134",
            ),
            ("decode.workers=65", "decode.workers: must be 1 to 64, got 65"),
            ("decode.pages=0", "decode.pages: must be 1 to 16777216, got 0"),
            (
                "decode.draft=true",
                "decode.draft: must be false, since the checked planner lays out no draft rows, got",
            ),
            ("decode.leftover_rows=2", "decode.leftover_rows: must be 0 to 1, got 2"),
            (
                "decode.cache=trie",
                "decode.cache: must be one of block_hash, none, radix, got \"trie\"",
            ),
            ("decode.eviction=x", "decode.eviction: must be one of lru, priority, got \"x\""),
            ("decode.free_order=x", "decode.free_order: must be one of sorted, stack, got \"x\""),
            ("decode.step_ticks=1099511627777", "decode.step_ticks: must be 0 to 1099511627776,"),
            (
                "decode.request_ticks=1099511627777",
                "decode.request_ticks: must be 0 to 10995116277",
            ),
            ("decode.release_timeout_ticks=1099511627777", "decode.release_timeout_ticks: must be"),
            (
                "profile=sglang-0.5.17",
                "decode.cache: must be \"none\", since sglang-0.5.17 allows no",
            ),
            ("link.copy_ticks=1099511627777", "link.copy_ticks: must be 0 to 1099511627776, got"),
            (
                "link.bytes_per_tick=0",
                "link.bytes_per_tick: must be 1 to 18446744073709551615, got 0",
            ),
            ("link.token_bytes=0", "link.token_bytes: must be 1 to 2811000, got 0"),
            ("link.message_ticks=1099511627777", "link.message_ticks: must be 0 to 1099511627776,"),
            ("link.delay_ticks=1099511627777", "link.delay_ticks: must be 0 to 1099511627776, got"),
            ("link.pack_tokens=0", "link.pack_tokens: must be 1 to 4294967295, got 0"),
            ("link.pack_tokens=7", "link.pack_tokens: must be a multiple of the page size 2 where"),
            ("pairing.prefill_ranks=0", "pairing.prefill_ranks: must be 1 to 256, got 0"),
            ("pairing.prefill_rank=1", "pairing.prefill_rank: must be 0 to 0, got 1"),
            ("pairing.decode_rank=2", "pairing.decode_rank: must be 0 to 1, got 2"),
            ("pairing.prefill_page_size=0", "pairing.prefill_page_size: must be 1 to 4096, got 0"),
            (
                "pairing.prefill_attention_cp=0",
                "pairing.prefill_attention_cp: must be 1 to 256, got",
            ),
            ("pairing.prefill_entry_bytes=[]", "pairing.prefill_entry_bytes: must be a list of at"),
            (
                "pairing.decode_entry_bytes=[5, 0]",
                "pairing.decode_entry_bytes.1: must be 1 to 4294",
            ),
            ("workload.requests=[]", "workload.requests: must be 1 to 4000000, got 0"),
            (
                "workload.requests.0.at=1099511627777",
                "workload.requests.0.at: must be 0 to 10995116",
            ),
            (
                "workload.requests.0.prompt=[]",
                "workload.requests.0.prompt: must be 1 to 65536, got 0",
            ),
            (
                "workload.requests.0.prompt.0.len=0",
                "workload.requests.0.prompt.0.len: must be 1 to 8388608, got 0",
            ),
            (
                "workload.requests.0.prompt.0.offset=8388609",
                "workload.requests.0.prompt.0.offset: must be 0 to 8388608, got 8388609",
            ),
            (
                "workload.requests.0.prompt.0.content=281474976710656",
                "workload.requests.0.prompt.0.content: must be 0 to 281474976710655, got 2814749",
            ),
            (
                "workload.requests.0.prompt=[{content=1,len=8388608},{content=2,len=1}]",
                "workload.requests.0.prompt: must be at most 8388608 tokens in all, got 8388609",
            ),
            (
                "workload.requests.0.output=0",
                "workload.requests.0.output: must be 1 to 1048576, got 0",
            ),
            (
                "workload.requests.0.output_content=281474976710656",
                "workload.requests.0.output_content: must be 0 to 281474976710655, got",
            ),
            (
                "workload.requests=[{at=3,prompt=[{content=1,len=1}],output=1},\
              {at=2,prompt=[{content=1,len=1}],output=1}]",
                "workload.requests.1.at: must be at least 3, the arrival before it, got 2",
            ),
            (
                "faults=[{abort={request=0}},{abort={request=1}}]",
                "faults.1.abort.request: must be 0 to 0, got 1",
            ),
            (
                "faults=[{abort={request=0,after=1099511627777}}]",
                "faults.0.abort.after: must be 0 to 1099511627776, got 1099511627777",
            ),
        ] {
            let error = refused(&small(), &[assignment]);
            assert!(error.starts_with(expected), "{assignment}: {error}");
        }
    }

    #[test]
    fn bounds_that_depend_on_other_fields_move_with_them() {
        for (assignments, expected) in [
            (&["behaviour.chunk_cut=exact_budget", "prefill.chunk_tokens=1"][..], "valid"),
            (&["behaviour.send_split=no", "link.pack_tokens=7"], "valid"),
            (&["behaviour.planner=indexed", "decode.draft=true"], "valid"),
            (&["profile=sglang-0.5.17", "decode.cache=none"], "valid"),
            (&["profile=sglang-0.5.17", "layout.ranks=1"], "valid"),
            (
                &["layout.page_size=4096", "layout.ranks=256", "decode.pages=257"],
                "decode.pages: must be 1 to 256, got 257",
            ),
            (
                &["layout.page_size=4096", "prefill.pages=65537"],
                "prefill.pages: must be 1 to 65536, got 65537",
            ),
            (&["pairing.prefill_ranks=4", "pairing.prefill_rank=3"], "valid"),
            (
                &["layout.page_size=3"],
                "link.pack_tokens: must be a multiple of the page size 3 where sends are split, \
                 got 8192",
            ),
        ] {
            assert_eq!(refused(&small(), assignments), expected, "{assignments:?}");
        }
    }

    #[test]
    fn versions_and_seeds_that_no_file_can_hold_are_refused() {
        let newer = Scenario { version: 2, ..small() };
        let seed = Scenario { seed: 1 << 63, ..small() };
        let problem = |scenario| validate(&scenario, &known()).unwrap_err().to_string();
        assert_eq!(problem(newer), "version: must be 1, got 2");
        assert_eq!(
            problem(seed),
            "seed: must be 0 to 9223372036854775807, got 9223372036854775808"
        );
    }

    #[test]
    fn synthetic_workloads_out_of_bounds_are_refused() {
        let base = "workload={ synthetic = { requests = 10, turns = 2, prefix_groups = 1, \
            prefix = { fixed = 4 }, prompt = { uniform = { min = 2, max = 5 } }, \
            output = { one_of = [1, 3] }, arrivals = { geometric = { slot = 5, numerator = 1, \
            denominator = 2 } } } }";
        assert_eq!(refused(&small(), &[base]), "valid");
        for (assignment, expected) in [
            ("requests=0", "requests: must be 1 to 4000000, got 0"),
            ("requests=4000001", "requests: must be 1 to 4000000, got 4000001"),
            (
                "arrivals={geometric={slot=1,numerator=1,denominator=0}}",
                "arrivals.geometric.denominator: must be 1 to 4294967295, got 0",
            ),
            (
                "arrivals.geometric.numerator=0",
                "arrivals.geometric.numerator: must be 1 to 2, got 0",
            ),
            (
                "arrivals.geometric.numerator=3",
                "arrivals.geometric.numerator: must be 1 to 2, got 3",
            ),
            (
                "arrivals.geometric.denominator=1001",
                "arrivals.geometric.numerator: must be 2 to 1001, got 1",
            ),
            (
                "arrivals.geometric.slot=109951162778",
                "arrivals.geometric.slot: must be 0 to 109951162777, got 109951162778",
            ),
            (
                "arrivals={fixed={gap=109951162778}}",
                "arrivals.fixed.gap: must be 0 to 109951162777, got 109951162778",
            ),
            (
                "arrivals={bursts={size=0,gap=1}}",
                "arrivals.bursts.size: must be 1 to 4294967295, got",
            ),
            (
                "arrivals={bursts={size=5,gap=549755813889}}",
                "arrivals.bursts.gap: must be 0 to 549755813888, got 549755813889",
            ),
            ("prompt={fixed=8388609}", "prompt.fixed: must be 0 to 8388608, got 8388609"),
            ("prompt.uniform.max=1", "prompt.uniform.max: must be 2 to 8388608, got 1"),
            ("output.one_of=[]", "output.one_of: must be a list of at least 1, got an empty one"),
            ("output.one_of=[1,0]", "output.one_of.1: must be 1 to 1048576, got 0"),
            ("prefix={fixed=0}", "prefix.fixed: must be 1 to 8388608, got 0"),
            ("prefix_groups=0", "prefix_groups: must be at least 1 where a prefix is given, got 0"),
            ("prefix_groups=11", "prefix_groups: must be 0 to 10, got 11"),
            ("turns=0", "turns: must be 1 to 32767, got 0"),
            ("turns=32768", "turns: must be 1 to 32767, got 32768"),
            (
                "prompt.uniform.max=4194304",
                "turns: must be at most 8388608 tokens in all, got 8388615",
            ),
        ] {
            let assignment = format!("workload.synthetic.{assignment}");
            let error = refused(&small(), &[base, &assignment]);
            let expected = format!("workload.synthetic.{expected}");
            assert!(error.starts_with(&expected), "{assignment}: {error}");
        }
        let no_prefix = base.replace("prefix = { fixed = 4 }, ", "");
        let error = refused(&small(), &[&no_prefix]);
        assert!(error.starts_with("workload.synthetic.prefix: must be given"), "{error}");
        let no_groups = no_prefix.replace("prefix_groups = 1, ", "").replace("min = 2", "min = 0");
        let error = refused(&small(), &[&no_groups]);
        assert!(error.starts_with("workload.synthetic.prompt.uniform.min: must be 1"), "{error}");
        let long = ["workload.synthetic.requests=4000000", "workload.synthetic.turns=68"];
        let error = refused(&small(), &[base, long[0], long[1]]);
        assert!(error.starts_with("workload.synthetic.turns: must be 1 to 67, got 68"), "{error}");
    }

    #[test]
    fn traces_out_of_bounds_are_refused() {
        let base =
            "workload={ trace = { format = \"azure\", path = \"t.csv\", requests_max = 3 } }";
        assert_eq!(refused(&small(), &[base]), "valid");
        for (assignment, expected) in [
            (
                "workload.trace.path=\"\"",
                "workload.trace.path: must be the path of a file, got nothing",
            ),
            (
                "workload.trace.requests_max=0",
                "workload.trace.requests_max: must be 1 to 4000000, got",
            ),
            (
                "workload.trace.time_numerator=0",
                "workload.trace.time_numerator: must be 1 to 4294967",
            ),
            (
                "workload.trace.time_denominator=0",
                "workload.trace.time_denominator: must be 1 to 429",
            ),
            ("faults=[{abort={request=3}}]", "faults.0.abort.request: must be 0 to 2, got 3"),
        ] {
            let error = refused(&small(), &[base, assignment]);
            assert!(error.starts_with(expected), "{assignment}: {error}");
        }
    }
}
