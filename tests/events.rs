//! The events of a run as JSON: reports/README.md says what each has, and nothing is shortened.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use kvseam::scenario::{Scenario, WorkloadConfig, file};
use kvseam::units::Tokens;
use kvseam::witness::Events;
use kvseam::world::Simulation;
use serde_json::Value;

/// Together these runs have every event.
const FILES: &[&str] = &[
    "sims/hazards/h04-launched.toml",
    "sims/hazards/h10-one-rank-short.toml",
    "sims/hazards/h14-draft-by-target-list.toml",
    "sims/hazards/h39-forgotten-retracted-sound.toml",
    "sims/hazards/h53-output-freed-apart.toml",
    "sims/hazards/h05-as-reported.toml",
    "sims/hazards/h60-thread-ends.toml",
    "sims/hazards/h33-not-locked.toml",
    "sims/hazards/h39-forgotten-running-sound.toml",
];

/// The events that the page lists, with the fields of each.
fn documented() -> BTreeMap<String, BTreeSet<String>> {
    let page = fs::read_to_string("reports/README.md").unwrap();
    let section = page.split("## The events of a run").nth(1).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let quoted = |cell: &str| -> Vec<String> {
        cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
    };
    let rows = section.lines().filter_map(|line| {
        let cells: Vec<&str> = line.split('|').collect();
        let name = quoted(cells.get(1)?).pop().filter(|name| name != "event")?;
        Some((name, quoted(cells[3]).into_iter().collect()))
    });
    rows.collect()
}

fn load(path: &str) -> Scenario {
    file::load(path.as_ref()).unwrap()
}

/// The lines of a run's events.
fn lines(scenario: &Scenario) -> Vec<Value> {
    let mut lines = Vec::new();
    let mut events = Events::new(|line: &str| lines.push(serde_json::from_str(line).unwrap()));
    Simulation::new(scenario).observer(&mut events).run().unwrap();
    lines
}

#[test]
fn every_event_has_the_fields_that_the_page_lists() {
    let documented = documented();
    let mut seen = BTreeSet::new();
    for line in FILES.iter().flat_map(|path| lines(&load(path))) {
        let name = line["event"].as_str().unwrap();
        seen.insert(name.to_owned());
        let mut fields: BTreeSet<String> = line.as_object().unwrap().keys().cloned().collect();
        assert!(fields.remove("event") && fields.remove("tick"), "{line}");
        let known = documented.get(name).unwrap_or_else(|| panic!("the page lacks {name}"));
        assert_eq!(&fields, known, "{name}");
    }
    // The command adds the answer.
    seen.insert("summary".to_owned());
    assert_eq!(seen, documented.keys().cloned().collect(), "each is shown by one of these runs");
}

#[test]
fn lists_of_pages_are_whole() {
    let mut scenario = load("sims/scenarios/sound-baseline.toml");
    // A list with more gaps than the trace for people writes out.
    scenario.decode.free_order = "random".to_owned();
    scenario.decode.pages = 512;
    let WorkloadConfig::Requests(requests) = &mut scenario.workload else {
        panic!("its requests are written out");
    };
    requests[0].prompt[0].len = Tokens(200);
    let lines = lines(&scenario);
    let reserved = lines.iter().find(|line| line["event"] == "reserved").unwrap();
    let pages = reserved["pages"].as_array().unwrap();
    assert!(pages.len() == 25 && pages.iter().all(Value::is_u64), "{reserved}");
}
