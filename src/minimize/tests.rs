//! What the minimiser promises, on random scenarios and on those that ship.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::*;
use crate::behaviour::{Overrides, Profile, SWITCHES};
use crate::prompt::ContentId;
use crate::rng::Stream;
use crate::scenario::{
    Fault, LayoutConfig, Moment, RequestSpec, RunSpec, Scenario, WorkloadConfig, file,
};
use crate::units::{RequestId, Tick, Tokens};

/// Two requests, the second with a hit of 5 tokens on the first, under these switches.
pub(super) fn scenario(switches: &str) -> Scenario {
    let text = format!(
        "version = 1\ntitle = \"two\"\nlayout = {{ page_size = 2, ranks = 2 }}\n\
         prefill.pages = 64\ndecode = {{ pages = 64, reserved_tokens = 0 }}\n\
         [behaviour]\n{switches}\n\
         [[workload.requests]]\nprompt = [{{ content = 1, len = 5 }}, {{ content = 2, len = 6 }}]\n\
         output = 2\n\
         [[workload.requests]]\nat = 1000000\n\
         prompt = [{{ content = 1, len = 5 }}, {{ content = 3, len = 7 }}]\noutput = 2\n"
    );
    file::parse(&text, "two").unwrap()
}

pub(super) fn requests_mut(scenario: &mut Scenario) -> &mut Vec<RequestSpec> {
    match &mut scenario.workload {
        WorkloadConfig::Requests(list) => list,
        other => panic!("{other:?}"),
    }
}

/// A small valid scenario with anything in it: a mix of switches, shared contents, faults.
fn random(seed: u64) -> Scenario {
    let mut draw = Stream::new(seed, "minimiser tests");
    let page_size = 1 << draw.below(4);
    let ranks = draw.within(1..=4);
    let mut case = scenario("");
    case.title = format!("random {seed}");
    case.seed = seed;
    case.layout = LayoutConfig { page_size, ranks };
    case.prefill.workers = draw.within(1..=2);
    case.prefill.pages = 400 / page_size;
    case.prefill.chunk_tokens = page_size * draw.within(1..=20);
    case.decode.workers = draw.within(1..=2);
    case.decode.pages = draw.within(8..=40);
    case.decode.reserved_tokens = draw.within(0..=20);
    case.decode.release_timeout_ticks = draw.below(2_000);
    case.link.bytes_per_tick = 1 + draw.below(25_000);
    case.link.delay_every = draw.within(0..=3);
    case.link.delay_ticks = draw.below(30_000);
    case.link.pack_tokens = page_size * draw.within(1..=64);
    case.profile = Profile::ALL[usize::try_from(draw.below(8)).unwrap() % Profile::ALL.len()];
    if case.profile.forbids_striped_decode_cache() {
        case.profile = Profile::Sound;
    }
    case.behaviour = switches(&mut draw);
    let count = draw.within(2..=12);
    let mut at = 0;
    let requests = (0..count).map(|_| {
        at += draw.below(2) * draw.below(120_000);
        request(&mut draw, at, page_size * ranks)
    });
    case.workload = WorkloadConfig::Requests(requests.collect());
    for _ in 0..draw.below(4) {
        case.faults.push(Fault::Abort {
            request: RequestId(draw.within(0..=count - 1)),
            after: Tick(draw.below(20_000)),
            when: [Moment::Start, Moment::Copying, Moment::Running][draw.within(0..=2) as usize],
        });
    }
    case
}

/// Each switch at any of its variants once in four times.
fn switches(draw: &mut Stream) -> Overrides {
    let mut table = toml::Table::new();
    for switch in SWITCHES {
        if draw.chance(1, 4) {
            let variant = draw.below(switch.variants.len() as u64);
            let variant = switch.variants[usize::try_from(variant).unwrap()];
            table.insert(switch.name.to_owned(), variant.name.into());
        }
    }
    table.try_into().unwrap()
}

fn request(draw: &mut Stream, at: u64, page: u32) -> RequestSpec {
    let mut run = |content| RunSpec {
        content: ContentId(content),
        offset: Tokens(0),
        len: Tokens((page * draw.within(0..=3) + draw.within(0..=page)).max(1)),
    };
    let prompt = vec![run(1 + at % 3), run(10 + at % 7)];
    RequestSpec {
        at: Tick(at),
        prompt,
        output: Tokens(draw.within(1..=20)),
        output_content: draw.chance(1, 3).then(|| ContentId(draw.below(12))),
        namespace: draw.within(0..=4) / 4,
        priority: i64::from(draw.within(0..=2)),
    }
}

#[test]
#[ignore]
fn survey() {
    let mut files: BTreeMap<String, Vec<(u64, Minimized)>> = BTreeMap::new();
    let mut runs = 0;
    let (mut n, mut nd, mut fixed) = (0, 0, 0);
    for seed in 0..std::env::var("SEEDS").map_or(200, |s| s.parse().unwrap()) {
        let case = random(seed);
        n += 1;
        match minimize(&case, Path::new(""), &BTreeSet::new(), 20_000) {
            Ok(small) => {
                runs += small.runs;
                nd += 1;
                fixed += u64::from(small.is_fixed_point);
                files.entry(small.scenario.title.clone()).or_default().push((seed, small));
            }
            Err(MinimizeError::NoDefect) => {}
            Err(e) => panic!("{seed} {e}"),
        }
    }
    println!("{n} scenarios, {nd} defects, {fixed} fixed, {runs} runs");
    for (title, list) in &files {
        let texts: BTreeMap<String, u64> =
            list.iter().map(|x| (x.1.scenario.to_toml(), x.0)).collect();
        let sizes: Vec<_> = list.iter().map(|x| (x.1.after.requests, x.1.after.tokens)).collect();
        println!(
            "{} files of {} for {title}: {sizes:?} e.g. {:?}",
            texts.len(),
            list.len(),
            texts.values().collect::<Vec<_>>()
        );
    }
    if let Ok(show) = std::env::var("SHOW") {
        for (title, list) in &files {
            for x in list.iter().filter(|x| show.split(',').any(|s| s == x.0.to_string())) {
                println!("# {} {title}\n{}", x.0, x.1.scenario.to_toml());
            }
        }
    }
}
