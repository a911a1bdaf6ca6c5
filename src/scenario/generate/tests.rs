//! The generator keeps its promises: valid, sound where asked, and everything drawn often enough.

use std::collections::BTreeMap;

use super::*;
use crate::behaviour::Behaviours;
use crate::rng::Stream;
use crate::scenario::file;
use crate::scenario::validate::validate;
use crate::world::Registry;

const DRAWS: u64 = 4_000;

fn drawn(aim: Aim) -> impl Iterator<Item = Scenario> {
    let known = Registry::built_in().names();
    (0..DRAWS).map(move |seed| generate(&mut Stream::new(seed, "generate"), &known, aim))
}

#[test]
fn every_drawn_scenario_is_valid_and_prints_back() {
    let known = Registry::built_in().names();
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
fn every_variant_of_every_switch_is_drawn() {
    let mut seen: BTreeMap<(&str, String), u64> = BTreeMap::new();
    for scenario in drawn(Aim::Any) {
        for (switch, variant) in scenario.behaviours().unusual() {
            *seen.entry((switch, variant.to_owned())).or_default() += 1;
        }
    }
    let expected: usize = SWITCHES.iter().map(|switch| switch.variants.len() - 1).sum();
    assert_eq!(seen.len(), expected, "{seen:?}");
    assert!(seen.values().all(|&count| count > DRAWS / 400), "{seen:?}");
    assert!(drawn(Aim::Any).any(|scenario| scenario.behaviours() == Behaviours::default()));
}
