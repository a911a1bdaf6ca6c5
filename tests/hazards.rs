//! The hazards of `sims/hazards`: every number has a file, with a sound twin that gets as far, and
//! every unsound variant is the cause of what a file shows.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use kvseam::behaviour::SWITCHES;
use kvseam::scenario::expect::unmet;
use kvseam::scenario::generate::PlantedVariant;
use kvseam::scenario::{Expect, Scenario, file};
use kvseam::world::{Registry, run};

/// Numbers that no variant makes go wrong: only what is right is shown.
const ONLY_SOUND: [&str; 2] = ["h15", "h49"];

/// All files by name; a twin's is its hazard's with "-sound" behind it.
fn hazards() -> BTreeMap<String, (Scenario, Expect)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("sims/hazards");
    let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let load = |path: PathBuf| {
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let scenario = file::load(&path).unwrap_or_else(|error| panic!("{error}"));
        let expect = scenario.expect.clone().unwrap_or_else(|| panic!("{name} expects nothing"));
        (name, (scenario, expect))
    };
    paths.map(load).collect()
}

fn number(name: &str) -> &str {
    name.split('-').next().unwrap()
}

#[test]
fn every_number_has_a_file_and_every_file_a_twin() {
    let all = hazards();
    let found: BTreeSet<&str> = all.keys().map(|name| number(name)).collect();
    let numbers: Vec<String> =
        (1..=22).chain(30..=53).chain(60..=64).chain([76]).map(|at| format!("h{at:02}")).collect();
    assert_eq!(found, numbers.iter().map(String::as_str).collect());
    for name in all.keys() {
        match name.strip_suffix("-sound") {
            None => assert!(all.contains_key(&format!("{name}-sound")), "{name} has no twin"),
            Some(hazard) => {
                let is_alone = ONLY_SOUND.contains(&number(name));
                assert!(is_alone || all.contains_key(hazard), "{name} has no hazard");
            }
        }
    }
}

#[test]
fn a_twin_is_sound_and_reaches_the_marks_of_its_hazard() {
    let all = hazards();
    for (name, (_, expect)) in &all {
        let Some(hazard) = name.strip_suffix("-sound") else { continue };
        assert_eq!(expect.findings, BTreeMap::new(), "{name}");
        if let Some((_, wrong)) = all.get(hazard) {
            // What validation refuses gets nowhere.
            assert!(wrong.invalid.is_some() || expect.marks == wrong.marks, "{name}");
        }
    }
}

/// With the effect of a variant off at its call site, the switch acts as its default does.
#[test]
fn every_unsound_variant_is_the_cause_of_what_a_hazard_shows() {
    let known = Registry::built_in().names();
    let mut causes: BTreeSet<PlantedVariant> = BTreeSet::new();
    for (name, (scenario, expect)) in hazards() {
        for planted in PlantedVariant::of(&scenario) {
            if planted.is_objected_to(&scenario) {
                let without = run(&planted.without(&scenario), Path::new(""));
                let is_red = without.map_or(true, |run| !unmet(&expect, &run).is_empty());
                assert!(is_red, "{name} shows the same without {planted}");
                causes.insert(planted);
            }
        }
    }
    let missing: Vec<String> = PlantedVariant::all()
        .filter(|planted| planted.can_be_objected_to(&known) && !causes.contains(planted))
        .map(|planted| planted.to_string())
        .collect();
    assert!(missing.is_empty(), "no hazard shows {missing:?}");
}

/// Places outside of the lint and the generator that ask for a switch. More than one is a rule in
/// several places, unless its variants differ at several moments.
#[test]
fn a_switch_is_asked_for_at_one_place() {
    let several = BTreeMap::from([
        // The report of a hit, and whether the index that it needs is kept.
        ("decode_match_unit", 2),
        // The handoff's rules, and the clock of the timeout.
        ("release_on_abort", 2),
        // What can ever fit (ours and the oracle's), and what a retraction does.
        ("retraction", 3),
        // Before all arrivals, or with each.
        ("resumption", 2),
        // One request alone, and several whose demand is counted together.
        ("admission_demand", 2),
        // Arrivals and landings, what counts as running, what goes back, what comes back.
        ("decode_turn", 6),
        // When it is asked whether pages run out, and when they are taken.
        ("eviction_demand", 2),
        // Whether a request may come back, and how many pages it gets.
        ("resumption_demand", 2),
        // How much must be free, when pages are taken, when the step begins, when it is full, and
        // whether it matters that a prompt leaves the queue.
        ("prefill_batch", 5),
        // Whether the chunk is kept, and whether it is sent.
        ("aborted_chunk", 2),
        // Whether the step counts, and what becomes of the pages.
        ("aborted_step", 2),
        // Who is retracted, and in which order the others go on.
        ("retraction_order", 2),
    ]);
    let mut text = String::new();
    for room in ["world", "planner", "pool", "cache"] {
        read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(room), &mut text);
    }
    for switch in SWITCHES {
        let asked = ["switches", "behaviours"].map(|owner| {
            let name = format!("{owner}.{}", switch.name);
            let hits = text.match_indices(&name);
            let is_whole = |&(at, _): &(usize, &str)| {
                !text[at + name.len()..]
                    .starts_with(|next: char| next == '_' || next.is_alphanumeric())
            };
            hits.filter(is_whole).count()
        });
        let expected = several.get(switch.name).copied().unwrap_or(1);
        assert_eq!(asked.iter().sum::<usize>(), expected, "{}", switch.name);
    }
}

fn read(path: &Path, text: &mut String) {
    if path.is_dir() {
        for entry in std::fs::read_dir(path).unwrap() {
            read(&entry.unwrap().path(), text);
        }
    } else if !path.to_str().unwrap().contains("tests") {
        text.push_str(&std::fs::read_to_string(path).unwrap());
    }
}
