//! The generator keeps its promises: valid, sound where asked, and everything drawn often enough.

use std::collections::BTreeMap;

use super::*;
use crate::behaviour::Behaviours;
use crate::rng::Stream;
use crate::scenario::validate::validate;
use crate::scenario::{WorkloadConfig, file};
use crate::world::Registry;

const DRAWS: u64 = 4_000;

fn drawn(aim: Aim) -> impl Iterator<Item = Scenario> {
    let known = Registry::default().names();
    (0..DRAWS).map(move |seed| generate(&mut Stream::new(seed, "generate"), &known, aim))
}

#[test]
fn every_drawn_scenario_is_valid_and_prints_back() {
    let known = Registry::default().names();
    for aim in [Aim::Any, Aim::Sound] {
        for scenario in drawn(aim) {
            assert_eq!(validate(&scenario, &known), Ok(()), "{scenario:?}");
            let text = scenario.to_toml();
            assert_eq!(file::parse(&text, "drawn").unwrap(), scenario, "{text}");
        }
    }
}

#[test]
fn repaired_scenarios_have_no_objection() {
    for scenario in drawn(Aim::Sound) {
        assert_eq!(lint(&scenario), [], "{scenario:?}");
    }
}

#[test]
fn every_policy_profile_moment_and_feature_is_drawn_in_a_twentieth_of_sound_scenarios() {
    let mut seen: BTreeMap<String, u64> = BTreeMap::new();
    for scenario in drawn(Aim::Sound) {
        for name in features(&scenario) {
            *seen.entry(name).or_default() += 1;
        }
    }
    let rare: Vec<_> = seen.iter().filter(|&(_, &count)| count * 20 < DRAWS).collect();
    assert!(rare.is_empty(), "{rare:?}");
    let known = Registry::default().names();
    let policies = known.caches.len() * 2
        + known.evictions.len() * 2
        + known.free_orders.len() * 2
        + known.admissions.len();
    // 4 profiles, 7 moments, 4 features.
    assert_eq!(seen.len(), policies + 4 + 7 + 4);
}

/// Names of what a scenario has, each once.
fn features(scenario: &Scenario) -> std::collections::BTreeSet<String> {
    let Scenario { prefill, decode, profile, .. } = scenario;
    let mut names = vec![
        format!("prefill cache {}", prefill.cache),
        format!("prefill eviction {}", prefill.eviction),
        format!("prefill order {}", prefill.free_order),
        format!("admission {}", prefill.admission),
        format!("decode cache {}", decode.cache),
        format!("decode eviction {}", decode.eviction),
        format!("decode order {}", decode.free_order),
        profile.name().to_owned(),
    ];
    for fault in &scenario.faults {
        names.push(match fault {
            Fault::Abort { when, .. } => format!("abort {when:?}"),
            Fault::Lose { .. } => "lost message".to_owned(),
            Fault::Double { .. } => "doubled message".to_owned(),
            Fault::Flush { .. } => "flush".to_owned(),
        });
    }
    let namespaces = match &scenario.workload {
        WorkloadConfig::Requests(list) => list.iter().any(|spec| spec.namespace > 0),
        WorkloadConfig::Synthetic(_) | WorkloadConfig::Trace(_) => false,
    };
    for (has, name) in [
        (namespaces, "namespaces"),
        (scenario.link.delay_every > 0 && scenario.link.delay_ticks > 0, "delays"),
        (prefill.workers > 1 || decode.workers > 1, "several workers"),
        (matches!(scenario.workload, WorkloadConfig::Synthetic(_)), "synthetic"),
    ] {
        names.extend(has.then(|| name.to_owned()));
    }
    names.into_iter().collect()
}

#[test]
fn every_variant_of_every_switch_is_drawn() {
    let mut seen: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for scenario in drawn(Aim::Any) {
        for variant in scenario.behaviours().unusual() {
            *seen.entry(variant).or_default() += 1;
        }
    }
    let expected: usize = SWITCHES.iter().map(|switch| switch.variants.len() - 1).sum();
    assert_eq!(seen.len(), expected, "{seen:?}");
    assert!(seen.values().all(|&count| count > DRAWS / 100), "{seen:?}");
    assert!(drawn(Aim::Any).any(|scenario| scenario.behaviours() == Behaviours::default()));
}
