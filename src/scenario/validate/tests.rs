use super::*;
use crate::scenario::tests::small;
use crate::scenario::{file, tests::known};

fn refused(base: &Scenario, assignments: &[&str]) -> String {
    let mut table = file::table(&base.to_toml(), "base").unwrap();
    for assignment in assignments {
        file::set(&mut table, assignment).unwrap();
    }
    let scenario = file::from_table(table, "base").unwrap();
    validate(&scenario, &known()).map_or_else(|invalid| invalid.to_string(), |()| "valid".into())
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

/// Assignments, and the refusal of each.
const OUT_OF_BOUNDS: &[(&str, &str)] = &[
    ("title=\"a\\nb\"", "title: must be one line, got several"),
    ("layout.page_size=0", "layout.page_size: must be 1 to 4096, got 0"),
    ("layout.page_size=4097", "layout.page_size: must be 1 to 4096, got 4097"),
    ("layout.ranks=0", "layout.ranks: must be 1 to 256, got 0"),
    ("layout.ranks=257", "layout.ranks: must be 1 to 256, got 257"),
    ("prefill.workers=0", "prefill.workers: must be 1 to 64, got 0"),
    ("prefill.pages=0", "prefill.pages: must be 1 to 16777216, got 0"),
    ("prefill.pages=16777217", "prefill.pages: must be 1 to 16777216, got 16777217"),
    ("prefill.cache=trie", "prefill.cache: must be one of block_hash, none, radix, got \"trie\""),
    ("prefill.eviction=x", "prefill.eviction: must be one of lru, priority, tlru, got \"x\""),
    ("prefill.free_order=x", "prefill.free_order: must be one of sorted, stack, got \"x\""),
    (
        "prefill.admission=x",
        "prefill.admission: must be one of first_come, longest_prefix, got \"x\"",
    ),
    (
        "prefill.chunk_tokens=1",
        "prefill.chunk_tokens: must be 2 to 8388608 (by layout.page_size), got 1",
    ),
    ("prefill.chunk_tokens=8388609", "prefill.chunk_tokens: must be 2 to 8388608 (by layout"),
    ("prefill.step_ticks=1099511627777", "prefill.step_ticks: must be 0 to 1099511627776,"),
    ("prefill.token_ticks=134217729", "prefill.token_ticks: must be 0 to 134217728 (by prefill."),
    ("decode.workers=65", "decode.workers: must be 1 to 64, got 65"),
    ("decode.pages=0", "decode.pages: must be 1 to 16777216, got 0"),
    (
        "decode.draft=true",
        "decode.draft: must be false, since the checked planner lays out no draft rows, got",
    ),
    ("behaviour.planner=fast", "behaviour.planner: must be one of checked, indexed, got \"fast\""),
    ("decode.leftover_rows=2", "decode.leftover_rows: must be 0 to 1 (by layout.page_size), got"),
    ("decode.cache=trie", "decode.cache: must be one of block_hash, none, radix, got \"trie\""),
    ("decode.eviction=x", "decode.eviction: must be one of lru, priority, tlru, got \"x\""),
    ("decode.free_order=x", "decode.free_order: must be one of sorted, stack, got \"x\""),
    ("decode.step_ticks=1099511627777", "decode.step_ticks: must be 0 to 1099511627776,"),
    ("decode.request_ticks=1099511627777", "decode.request_ticks: must be 0 to 10995116277"),
    ("decode.release_timeout_ticks=1099511627777", "decode.release_timeout_ticks: must be"),
    ("profile=sglang-0.5.17", "decode.cache: must be \"none\", since sglang-0.5.17 allows no"),
    ("link.copy_ticks=1099511627777", "link.copy_ticks: must be 0 to 1099511627776, got"),
    ("link.bytes_per_tick=0", "link.bytes_per_tick: must be 1 to 18446744073709551615, got 0"),
    ("link.token_bytes=0", "link.token_bytes: must be 1 to 2811000, got 0"),
    ("link.message_ticks=1099511627777", "link.message_ticks: must be 0 to 1099511627776,"),
    ("link.delay_ticks=1099511627777", "link.delay_ticks: must be 0 to 1099511627776, got"),
    ("link.pack_tokens=0", "link.pack_tokens: must be a multiple of the page size 2 from 2"),
    ("link.pack_tokens=7", "link.pack_tokens: must be a multiple of the page size 2 from 2"),
    ("pairing.prefill_ranks=0", "pairing.prefill_ranks: must be 1 to 256, got 0"),
    ("pairing.prefill_rank=1", "pairing.prefill_rank: must be 0 to 0 (by pairing.prefill_ranks)"),
    ("pairing.decode_rank=2", "pairing.decode_rank: must be 0 to 1 (by layout.ranks), got 2"),
    ("pairing.prefill_page_size=0", "pairing.prefill_page_size: must be 1 to 4096, got 0"),
    ("pairing.prefill_attention_cp=0", "pairing.prefill_attention_cp: must be 1 to 256, got"),
    ("pairing.prefill_entry_bytes=[]", "pairing.prefill_entry_bytes: must be a list of at"),
    ("pairing.decode_entry_bytes=[5, 0]", "pairing.decode_entry_bytes.1: must be 1 to 4294"),
    ("title=\"\"", "title: must be a text, got an empty one"),
    ("title=\"a\\u001bb\"", "title: must be without control characters, got one with \\u{1b}"),
    ("workload.requests=[]", "workload.requests: must be 1 to 4000000, got 0"),
    ("workload.requests.0.at=1099511627777", "workload.requests.0.at: must be 0 to 10995116"),
    ("workload.requests.0.prompt=[]", "workload.requests.0.prompt: must be 1 to 65536, got 0"),
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
        "workload.requests.0.max_new_tokens=0",
        "workload.requests.0.max_new_tokens: must be 2 to 1048576, got 0",
    ),
    ("workload.requests.0.output=0", "workload.requests.0.output: must be 1 to 1048576, got 0"),
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
];

#[test]
fn what_is_out_of_bounds_is_refused_with_path_range_and_value() {
    for (assignment, expected) in OUT_OF_BOUNDS {
        let error = refused(&small(), &[assignment]);
        assert!(error.starts_with(expected), "{assignment}: {error}");
    }
}

#[test]
fn bounds_that_depend_on_other_fields_move_with_them() {
    for (assignments, expected) in [
        (&["behaviour.chunk_cut=exact_budget", "prefill.chunk_tokens=1"][..], "valid"),
        (&["behaviour.send_split=no", "link.pack_tokens=7"], "valid"),
        (
            &["behaviour.send_split=no", "link.pack_tokens=0"],
            "link.pack_tokens: must be 1 to 4294967295, got 0",
        ),
        (&["behaviour.planner=indexed", "decode.draft=true"], "valid"),
        (&["profile=sglang-0.5.20", "prefill.chunk_tokens=8"], "valid"),
        (
            &["profile=sglang-0.5.20", "prefill.chunk_tokens=7"],
            "prefill.chunk_tokens: must be a multiple of layout.page_size = 2, as sglang-0.5.20 \
             asks for, got 7",
        ),
        (&["behaviour.chunk_cut=exact_budget", "prefill.chunk_tokens=7"], "valid"),
        (&["profile=sglang-0.5.17", "decode.cache=none"], "valid"),
        (&["profile=sglang-0.5.17", "layout.ranks=1"], "valid"),
        (
            &["layout.page_size=4096", "layout.ranks=256", "decode.pages=257"],
            "decode.pages: must be 1 to 256 (by layout), got 257",
        ),
        (
            &["layout.page_size=4096", "prefill.pages=65537"],
            "prefill.pages: must be 1 to 65536 (by layout), got 65537",
        ),
        (&["pairing.prefill_ranks=4", "pairing.prefill_rank=3"], "valid"),
        (
            &["layout.page_size=3"],
            "link.pack_tokens: must be a multiple of the page size 3 from 3 on, where sends \
             are split, got 8192",
        ),
    ] {
        assert_eq!(refused(&small(), assignments), expected, "{assignments:?}");
    }
}

/// 2^26 pages of memory: whatever is left of them by one pool is the true bound of the other.
#[test]
fn the_bound_of_a_pool_that_is_named_first_is_the_one_that_holds() {
    let sum = "prefill.workers · prefill.pages + decode.workers · decode.pages · layout.ranks";
    let by = format!("(by {sum}, at most 67108864)");
    let base = ["prefill.workers=64", "decode.workers=64", "decode.pages=1024"];
    // (2^26 - 64 · 2 · 1,024) / 64.
    let most = 1_046_528;
    let with = |pages: u32| {
        let pages = format!("prefill.pages={pages}");
        refused(&small(), &[&base[..], &[&*pages]].concat())
    };
    for pages in [99_999_999, most + 1] {
        let expected = format!("prefill.pages: must be 1 to {most} {by}, got {pages}");
        assert_eq!(with(pages), expected);
    }
    assert_eq!(with(most), "valid");
    // A decode pool that leaves nothing to prefill is at fault itself: (2^26 - 64 · 2) / (64 · 2).
    let large = ["prefill.workers=64", "decode.workers=64", "prefill.pages=2"];
    let with = |pages: u32| {
        let pages = format!("decode.pages={pages}");
        refused(&small(), &[&large[..], &[&*pages]].concat())
    };
    let expected = format!("decode.pages: must be 1 to 524287 {by}, got 999999");
    assert_eq!(with(999_999), expected);
    assert_eq!(with(524_287), "valid");
}

#[test]
fn versions_and_seeds_that_no_file_can_hold_are_refused() {
    let newer = Scenario { version: 2, ..small() };
    let seed = Scenario { seed: 1 << 63, ..small() };
    let problem = |scenario| validate(&scenario, &known()).unwrap_err().to_string();
    assert_eq!(problem(newer), "version: must be 1, got 2");
    assert_eq!(problem(seed), "seed: must be 0 to 9223372036854775807, got 9223372036854775808");
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
        ("arrivals.geometric.numerator=0", "arrivals.geometric.numerator: must be 1 to 2, got 0"),
        ("arrivals.geometric.numerator=3", "arrivals.geometric.numerator: must be 1 to 2, got 3"),
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
        ("arrivals={bursts={size=0,gap=1}}", "arrivals.bursts.size: must be 1 to 4294967295, got"),
        (
            "arrivals={bursts={size=5,gap=549755813889}}",
            "arrivals.bursts.gap: must be 0 to 549755813888, got 549755813889",
        ),
        ("prompt={fixed=8388609}", "prompt.fixed: must be 0 to 8388607, got 8388609"),
        ("prompt.uniform.max=1", "prompt.uniform.max: must be 2 to 8388607, got 1"),
        ("output.one_of=[]", "output.one_of: must be a list of at least 1, got an empty one"),
        ("output.one_of=[1,0]", "output.one_of.1: must be 1 to 1048576, got 0"),
        ("prefix={fixed=0}", "prefix.fixed: must be 1 to 8388603, got 0"),
        ("prefix_groups=0", "prefix_groups: must be at least 1 where a prefix is given, got 0"),
        ("prefix_groups=11", "prefix_groups: must be 0 to 10 (by workload.synthetic.requests)"),
        ("turns=0", "turns: must be 1 to 32767 (by the requests and lengths"),
        ("turns=32768", "turns: must be 1 to 32767 (by the requests and"),
        ("prompt.uniform.max=4194304", "turns: must be 1 to 1 (by the requests and"),
    ] {
        let assignment = format!("workload.synthetic.{assignment}");
        let error = refused(&small(), &[base, &assignment]);
        let expected = format!("workload.synthetic.{expected}");
        assert!(error.starts_with(&expected), "{assignment}: {error}");
    }
    // t turns of 1,000 + 3 tokens after a prefix of 4, the last without its output.
    let turns = |turns: u64| {
        let turns = format!("workload.synthetic.turns={turns}");
        refused(&small(), &[base, "workload.synthetic.prompt={fixed=1000}", &turns])
    };
    // (8,388,608 - 4 + 3) / 1,003.
    for too_many in [99_999, 8_364] {
        let error = turns(too_many);
        assert!(error.starts_with("workload.synthetic.turns: must be 1 to 8363 (by "), "{error}");
    }
    assert_eq!(turns(8_363), "valid");
    let no_prefix = base.replace("prefix = { fixed = 4 }, ", "");
    let error = refused(&small(), &[&no_prefix]);
    assert!(error.starts_with("workload.synthetic.prefix: must be given"), "{error}");
    let no_groups = no_prefix.replace("prefix_groups = 1, ", "").replace("min = 2", "min = 0");
    let error = refused(&small(), &[&no_groups]);
    assert!(error.starts_with("workload.synthetic.prompt.uniform.min: must be 1"), "{error}");
    let long = ["workload.synthetic.requests=4000000", "workload.synthetic.turns=68"];
    let error = refused(&small(), &[base, long[0], long[1]]);
    assert!(error.starts_with("workload.synthetic.turns: must be 1 to 67 (by"), "{error}");
}

#[test]
fn traces_out_of_bounds_are_refused() {
    let base = "workload={ trace = { format = \"azure\", path = \"t.csv\", requests_max = 3 } }";
    assert_eq!(refused(&small(), &[base]), "valid");
    for (assignment, expected) in [
        (
            "workload.trace.path=\"\"",
            "workload.trace.path: must be the path of a file, got nothing",
        ),
        ("workload.trace.requests_max=0", "workload.trace.requests_max: must be 1 to 4000000, got"),
        ("workload.trace.time_numerator=0", "workload.trace.time_numerator: must be 1 to 4294967"),
        ("workload.trace.time_denominator=0", "workload.trace.time_denominator: must be 1 to 429"),
        ("faults=[{abort={request=3}}]", "faults.0.abort.request: must be 0 to 2, got 3"),
    ] {
        let error = refused(&small(), &[base, assignment]);
        assert!(error.starts_with(expected), "{assignment}: {error}");
    }
}
