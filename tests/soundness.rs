//! The lint's claim under attack: what it calls sound has no defect, and what it objects to is seen
//! to go wrong. A failure prints the scenario, which `kvseam run` and `kvseam minimize` take as it is.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use kvseam::behaviour::SWITCHES;
use kvseam::finding::{Code, Run, Severity};
use kvseam::rng::Stream;
use kvseam::scenario::expect::unmet;
use kvseam::scenario::generate::{Aim, Plant, generate};
use kvseam::scenario::lint::lint;
use kvseam::scenario::{Scenario, file};
use kvseam::world::{Registry, run};

/// Scenarios that each claim is tried on. Raise it, and the range of seeds, to hunt.
const SOUND: u64 = 3_000;
const TWICE: u64 = 400;
const OBJECTIONS: u64 = 30_000;

fn drawn(aim: Aim, count: u64) -> impl Iterator<Item = Scenario> {
    let known = Registry::default().names();
    (0..count).map(move |seed| generate(&mut Stream::new(seed, "soundness"), &known, aim))
}

fn ran(scenario: &Scenario) -> Run {
    run(scenario, Path::new("")).unwrap_or_else(|error| panic!("{error}\n{scenario:?}"))
}

fn defects(run: &Run) -> BTreeSet<Code> {
    let codes = run.findings.iter().map(|(code, _)| code);
    codes.filter(|code| code.severity() == Severity::Defect).collect()
}

#[test]
fn what_the_lint_calls_sound_has_no_defect() {
    for scenario in drawn(Aim::Sound, SOUND) {
        let run = ran(&scenario);
        assert!(run.findings.is_clean(), "{:?}\n{scenario:?}", defects(&run));
    }
}

#[test]
fn any_scenario_runs_to_its_end_and_twice_the_same() {
    for scenario in drawn(Aim::Any, TWICE) {
        assert_eq!(ran(&scenario), ran(&scenario), "{scenario:?}");
    }
}

/// `scenario` without the objections that the one to `switch` does not need. `None` if that one
/// vanishes with others.
fn blamed_alone(scenario: &Scenario, switch: &str) -> Option<Scenario> {
    let mut alone = scenario.clone();
    for other in lint(scenario) {
        if other.switch != switch {
            let mut without = alone.clone();
            without.behaviour.reset(other.switch);
            if objects_to(&without, switch) {
                alone = without;
            }
        }
    }
    objects_to(&alone, switch).then_some(alone)
}

fn objects_to(scenario: &Scenario, switch: &str) -> bool {
    lint(scenario).iter().any(|objection| objection.switch == switch)
}

#[test]
fn whatever_the_lint_objects_to_is_seen_to_fail_because_of_exactly_that() {
    let mut objected: BTreeMap<(&str, &str), bool> = BTreeMap::new();
    for scenario in drawn(Aim::Any, OBJECTIONS) {
        for objection in lint(&scenario) {
            let seen = objected.entry((objection.switch, objection.variant)).or_default();
            if *seen {
                continue;
            }
            let Some(blamed) = blamed_alone(&scenario, objection.switch) else { continue };
            let mut repaired = blamed.clone();
            repaired.behaviour.reset(objection.switch);
            *seen = !defects(&ran(&blamed)).is_subset(&defects(&ran(&repaired)));
        }
    }
    let holes: Vec<_> = objected.iter().filter(|&(_, seen)| !seen).collect();
    assert!(holes.is_empty(), "never seen to fail: {holes:?}");

    let variants = SWITCHES.iter().flat_map(|switch| {
        switch.variants.iter().skip(1).map(|variant| (switch.name, variant.name))
    });
    let never: Vec<_> = variants.filter(|variant| !objected.contains_key(variant)).collect();
    let harmless = [
        ("decode_match_unit", "physical_page"),
        ("decode_match_unit", "token"),
        ("chunk_cut", "exact_budget"),
        ("early_send", "settled_cut"),
        ("early_send", "settled_skipped"),
        ("refused_request", "served_again"),
        ("retraction", "send_again"),
        ("packing", "none"),
        ("send_split", "no"),
        ("planner", "indexed"),
    ];
    assert_eq!(never, harmless);
    let known = Registry::default().names();
    let left_out = Plant::all().filter(|plant| !plant.can_be_objected_to(&known));
    let left_out: Vec<_> = left_out.map(|plant| (plant.switch, plant.variant)).collect();
    assert_eq!(left_out, harmless, "what `kvseam hunt` has nothing to find of");
}

#[test]
fn every_regression_still_shows_what_it_says() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("sims/regressions");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let scenario = file::load(&path).unwrap_or_else(|error| panic!("{error}"));
        let expect = scenario.expect.clone().expect("a regression says what it shows");
        assert_eq!(unmet(&expect, &ran(&scenario)), [], "{}", path.display());
        count += 1;
    }
    assert!(count >= 4, "{count}");
}
