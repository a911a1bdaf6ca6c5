//! Scenarios for tests: a small one, and a strategy over everything that a file can say.

use std::path::{Path, PathBuf};

use proptest::collection::{btree_map, vec};
use proptest::option::of;
use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::behaviour::SWITCHES;
use crate::finding::{Named, Severity};

/// One request of 7 tokens over two ranks of two-row pages.
pub(crate) fn small() -> Scenario {
    let text = "version = 1\ntitle = \"small\"\nlayout = { page_size = 2, ranks = 2 }\n\
        prefill.pages = 16\ndecode = { pages = 16, reserved_tokens = 0 }\n\
        workload.requests = [{ prompt = [{ content = 1, len = 7 }], output = 2 }]\n";
    file::parse(text, "small").unwrap()
}

/// TOML has no larger integer.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![0..100_u64, 0..=i64::MAX as u64]
}

fn name() -> impl Strategy<Value = String> {
    "[ -~\n\u{e9}]{0,12}"
}

fn prefill() -> impl Strategy<Value = PrefillConfig> {
    let policies = [name(), name(), name(), name()];
    let counts = (any::<u32>(), any::<u32>(), any::<u32>());
    (counts, policies, number(), number()).prop_map(|(counts, policies, step, token)| {
        let [cache, eviction, free_order, admission] = policies;
        PrefillConfig {
            workers: counts.0,
            pages: counts.1,
            cache,
            eviction,
            tail_tokens: 0,
            free_order,
            chunk_tokens: counts.2,
            admission,
            step_ticks: step,
            token_ticks: token,
        }
    })
}

fn decode() -> impl Strategy<Value = DecodeConfig> {
    let policies = [name(), name(), name()];
    let counts = (any::<u32>(), any::<u32>(), any::<u32>(), any::<u32>());
    (counts, policies, [number(), number(), number()]).prop_map(|(counts, policies, ticks)| {
        let [cache, eviction, free_order] = policies;
        DecodeConfig {
            workers: counts.0,
            pages: counts.1,
            leftover_rows: counts.3,
            draft: counts.3.is_multiple_of(2),
            cache,
            eviction,
            tail_tokens: 0,
            free_order,
            reserved_tokens: counts.2,
            step_ticks: ticks[0],
            request_ticks: ticks[1],
            release_timeout_ticks: ticks[2],
        }
    })
}

fn link() -> impl Strategy<Value = LinkConfig> {
    ([number(), number(), number(), number(), number()], any::<u32>(), any::<u32>()).prop_map(
        |(ticks, delay_every, pack_tokens)| LinkConfig {
            copy_ticks: ticks[0],
            bytes_per_tick: ticks[1],
            token_bytes: ticks[2],
            message_ticks: ticks[3],
            delay_every,
            delay_ticks: ticks[4],
            pack_tokens,
        },
    )
}

fn pairing() -> impl Strategy<Value = PairingConfig> {
    let pools = vec![KvPool::Mla, KvPool::HybridMla, KvPool::Mha];
    let bytes = || vec(any::<u32>(), 0..3);
    (any::<[u32; 4]>(), of(any::<u32>()), select(pools), bytes(), bytes()).prop_map(
        |(counts, prefill_page_size, decode_pool, prefill, decode)| PairingConfig {
            prefill_ranks: counts[0],
            prefill_rank: counts[1],
            decode_rank: counts[2],
            prefill_page_size,
            prefill_attention_cp: counts[3],
            decode_pool,
            prefill_entry_bytes: prefill,
            decode_entry_bytes: decode,
        },
    )
}

/// A variant of each switch, or none, through their names.
fn overrides() -> impl Strategy<Value = Overrides> {
    vec(of(any::<prop::sample::Index>()), SWITCHES.len()).prop_map(|choices| {
        let chosen = SWITCHES.iter().zip(choices).filter_map(|(switch, choice)| {
            let variant = choice?.get(switch.variants);
            Some((switch.name.to_owned(), toml::Value::from(variant.name)))
        });
        chosen.collect::<toml::Table>().try_into().unwrap()
    })
}

fn request() -> impl Strategy<Value = RequestSpec> {
    let run = (number(), any::<u32>(), any::<u32>()).prop_map(|(content, offset, len)| RunSpec {
        content: ContentId(content),
        offset: Tokens(offset),
        len: Tokens(len),
    });
    let rest = (any::<u32>(), of(number()), any::<u32>(), any::<i64>(), of(any::<u32>()));
    (number(), vec(run, 0..3), rest).prop_map(|(at, prompt, rest)| RequestSpec {
        at: Tick(at),
        prompt,
        output: Tokens(rest.0),
        max_new_tokens: rest.4.map(Tokens),
        output_content: rest.1.map(ContentId),
        namespace: rest.2,
        priority: rest.3,
    })
}

fn lengths() -> impl Strategy<Value = Lengths> {
    prop_oneof![
        any::<u32>().prop_map(Lengths::Fixed),
        any::<[u32; 2]>().prop_map(|[min, max]| Lengths::Uniform { min, max }),
        vec(any::<u32>(), 0..3).prop_map(Lengths::OneOf),
    ]
}

fn synthetic() -> impl Strategy<Value = Synthetic> {
    let arrivals = prop_oneof![
        number().prop_map(|gap| Arrivals::Fixed { gap }),
        (any::<u32>(), number()).prop_map(|(size, gap)| Arrivals::Bursts { size, gap }),
        (number(), any::<[u32; 2]>()).prop_map(|(slot, [numerator, denominator])| {
            Arrivals::Geometric { slot, numerator, denominator }
        }),
    ];
    (any::<[u32; 3]>(), arrivals, lengths(), lengths(), of(lengths())).prop_map(
        |([requests, prefix_groups, turns], arrivals, prompt, output, prefix)| Synthetic {
            requests,
            arrivals,
            prompt,
            output,
            prefix_groups,
            prefix,
            turns,
        },
    )
}

fn workload() -> impl Strategy<Value = WorkloadConfig> {
    let formats = vec![TraceFormat::Mooncake, TraceFormat::Azure];
    let trace = (select(formats), name(), of(any::<u32>()), any::<[u32; 2]>()).prop_map(
        |(format, path, requests_max, [time_numerator, time_denominator])| TraceConfig {
            format,
            path,
            requests_max,
            time_numerator,
            time_denominator,
        },
    );
    prop_oneof![
        vec(request(), 0..4).prop_map(WorkloadConfig::Requests),
        synthetic().prop_map(WorkloadConfig::Synthetic),
        trace.prop_map(WorkloadConfig::Trace),
    ]
}

fn fault() -> impl Strategy<Value = Fault> {
    let moments = vec![
        Moment::Start,
        Moment::Arrived,
        Moment::Reserved,
        Moment::Prefilling,
        Moment::Copying,
        Moment::Running,
        Moment::Retracted,
    ];
    (any::<u32>(), number(), select(moments)).prop_map(|(request, after, when)| Fault::Abort {
        request: RequestId(request),
        after: Tick(after),
        when,
    })
}

fn expect() -> impl Strategy<Value = Expect> {
    let bound = prop_oneof![number().prop_map(Bound::Exactly), number().prop_map(Bound::AtLeast),];
    let findings = btree_map(select(Code::ALL), bound, 0..4);
    (findings, vec(select(Mark::ALL), 0..4), of(name()))
        .prop_map(|(findings, marks, invalid)| Expect { findings, invalid, marks })
}

/// Any scenario that a file can spell, valid or not.
pub(crate) fn strategy() -> impl Strategy<Value = Scenario> {
    let top = (name(), number(), select(Profile::all()), any::<[u32; 2]>());
    let sides = (prefill(), decode(), link(), pairing());
    let rest = (overrides(), workload(), vec(fault(), 0..3), of(expect()));
    (top, sides, rest).prop_map(|(top, sides, rest)| Scenario {
        version: VERSION,
        title: top.0,
        seed: top.1,
        profile: top.2,
        layout: LayoutConfig { page_size: top.3[0], ranks: top.3[1] },
        prefill: sides.0,
        decode: sides.1,
        link: sides.2,
        pairing: sides.3,
        behaviour: rest.0,
        workload: rest.1,
        faults: rest.2,
        expect: rest.3,
    })
}

/// Policies for tests of validation: what a registry would know.
pub(crate) fn known() -> validate::KnownPolicies {
    let names = |list: &[&str]| list.iter().map(|&name| name.to_owned()).collect();
    validate::KnownPolicies {
        caches: names(&["block_hash", "radix", "none"]),
        evictions: names(&["lru", "priority", "tlru"]),
        free_orders: names(&["sorted", "stack"]),
        admissions: names(&["first_come", "longest_prefix"]),
        planners: names(&["checked", "indexed"]),
        draft_planners: names(&["indexed"]),
    }
}

/// Every scenario file below `folder`.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.extension().is_some_and(|extension| extension == "toml") {
            found.push(path);
        }
    }
    found.sort();
    found
}

#[test]
fn every_scenario_that_ships_is_valid_has_its_trace_and_says_what_it_shows() {
    let sims = Path::new(env!("CARGO_MANIFEST_DIR")).join("sims");
    let folders = ["scenarios", "hazards", "regressions"];
    let shipped: Vec<_> = folders.iter().flat_map(|folder| files(&sims.join(folder))).collect();
    assert!(shipped.len() >= 20, "{}", shipped.len());
    for path in shipped {
        let scenario = file::load(&path).unwrap_or_else(|error| panic!("{error}"));
        let valid = validate::validate(&scenario, &known()).map_err(|invalid| invalid.path);
        let invalid = scenario.expect.as_ref().and_then(|expect| expect.invalid.clone());
        assert_eq!(valid.err(), invalid, "{}", path.display());
        if let WorkloadConfig::Trace(trace) = &scenario.workload {
            assert!(path.with_file_name(&trace.path).exists(), "{}", path.display());
        }
        let expect = scenario.expect.as_ref();
        let expect = expect.unwrap_or_else(|| panic!("{}: no [expect]", path.display()));
        // The lint's claim and the file's must agree.
        let expects_defect = expect.findings.keys().any(|code| code.severity() == Severity::Defect);
        let objects = !lint::lint(&scenario).is_empty();
        assert!(objects || !expects_defect, "{}: the lint has no objection", path.display());
        let sound = scenario.title.starts_with("sound: ");
        assert_eq!(sound, !expects_defect, "{}: {}", path.display(), scenario.title);
    }
}

#[test]
fn the_example_of_a_code_is_a_scenario_that_expects_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for &code in Code::ALL {
        if code.example().starts_with("sims/scenarios/") {
            let scenario = file::load(&root.join(code.example())).unwrap();
            let expect = scenario.expect.unwrap();
            assert!(expect.findings.contains_key(&code), "{}", code.example());
        }
    }
}
