//! A slice of the recorded runs: every line agrees at every level, and no answer can be changed
//! unnoticed.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::*;
use crate::conform::{Checked, Format, check_line};
use crate::scenario::file;

const RUNS: &str = include_str!("../../../tests/vectors/world-sglang.jsonl");
/// What 0.5.23 did with scenarios that were written for one rule each: when its driver was asked,
/// these were its events.
const ASKED: &str = include_str!("../../../tests/vectors/live-sglang.jsonl");

/// Events that answer nothing: the scenario has arrivals and aborts, and a first chunk begins where
/// the hit ends.
const NO_ANSWERS: [&str; 3] = ["arrives", "abort", "prefill_hit"];
/// Fields that are not compared: the ticks of what is only known at the end, which side rejected,
/// and whether a piece was the last.
const NOT_COMPARED: [(&str, &str); 7] = [
    ("aborted_for_memory", "t"),
    ("census", "t"),
    ("planned", "last"),
    ("rejected", "decode"),
    ("rejected", "prefill"),
    ("rejected", "t"),
    ("stuck", "t"),
];

fn agreement(line: &str) -> Result<Agreement, LineError> {
    check(line, Level::Ticks)
}

/// The value with one number or truth in it changed, once for each.
fn changed(value: &Value) -> Vec<Value> {
    match value {
        Value::Number(number) => vec![json!(number.as_i64().expect("it is whole") + 1)],
        Value::Bool(is) => vec![json!(!is)],
        Value::Array(list) => {
            let at = |(at, element): (usize, &Value)| {
                let put = move |element| {
                    let mut list = list.clone();
                    list[at] = element;
                    Value::Array(list)
                };
                changed(element).into_iter().map(put).collect::<Vec<_>>()
            };
            list.iter().enumerate().flat_map(at).collect()
        }
        Value::Null | Value::String(_) | Value::Object(_) => Vec::new(),
    }
}

#[test]
fn recorded_runs_agree_at_every_level() {
    for line in RUNS.lines() {
        let Checked::Run(agreement) = check_line(line, Level::Ticks).unwrap() else {
            panic!("{line}");
        };
        assert_eq!((agreement.level, agreement.difference), (Some(Level::Ticks), None), "{line}");
        assert_eq!(crate::conform::recognise(line), Ok(Format::Run));
    }
}

#[test]
fn what_a_driver_told_agrees_at_every_level() {
    for line in ASKED.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let scenario = file::parse(line["scenario"].as_str().unwrap(), "scenario").unwrap();
        let events: Vec<Map<String, Value>> =
            serde_json::from_value(line["events"].clone()).unwrap();
        let Agreement { level, difference, .. } =
            BothRuns::of(&scenario, &events).unwrap().compare(Level::Ticks);
        assert_eq!((level, difference), (Some(Level::Ticks), None), "{}", scenario.title);
    }
}

#[test]
fn every_changed_answer_is_noticed() {
    let mut missed = BTreeSet::new();
    for line in RUNS.lines() {
        let recorded: Value = serde_json::from_str(line).unwrap();
        for (at, event) in recorded["events"].as_array().unwrap().iter().enumerate() {
            for (field, value) in event.as_object().unwrap() {
                for other in changed(value) {
                    let mut line = recorded.clone();
                    line["events"][at][field] = other;
                    let checked = agreement(&line.to_string());
                    if checked.is_ok_and(|agreement| agreement.difference.is_none()) {
                        missed.insert((event["ev"].as_str().unwrap().to_owned(), field.clone()));
                    }
                }
            }
        }
    }
    missed.retain(|(event, _)| !NO_ANSWERS.contains(&event.as_str()));
    let missed = missed.iter().map(|(event, field)| (event.as_str(), field.as_str()));
    assert_eq!(missed.collect::<Vec<_>>(), NOT_COMPARED);
}

#[test]
fn a_run_without_one_of_its_events_differs() {
    for line in RUNS.lines() {
        let recorded: Value = serde_json::from_str(line).unwrap();
        let events = recorded["events"].as_array().unwrap();
        let is_answer =
            |(_, event): &(usize, &Value)| !NO_ANSWERS.contains(&event["ev"].as_str().unwrap());
        for (at, event) in events.iter().enumerate().filter(is_answer) {
            let mut line = recorded.clone();
            line["events"].as_array_mut().unwrap().remove(at);
            let checked = agreement(&line.to_string());
            assert!(!checked.is_ok_and(|agreement| agreement.difference.is_none()), "{event}");
        }
    }
}

#[test]
fn a_malformed_line_is_refused_with_the_place() {
    let line: Value = serde_json::from_str(RUNS.lines().next().unwrap()).unwrap();
    let message = |change: &dyn Fn(&mut Value)| {
        let mut line = line.clone();
        change(&mut line);
        match agreement(&line.to_string()) {
            Err(LineError::Malformed { path, .. }) => path,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(message(&|line| line["version"] = json!("0.1.0")), "version");
    assert_eq!(message(&|line| line["scenario"]["page_size"] = json!(0)), "scenario");
    assert_eq!(message(&|line| line["scenario"]["page_size"] = json!("4")), "scenario.page_size");
    assert_eq!(message(&|line| line["scenario"]["more"] = json!(1)), "scenario.more");
    assert!(message(&|line| line["events"][0]["ev"] = json!("naps")).starts_with("events[0]"));
    assert!(message(&|line| line["events"][0]["t"] = json!(-1)).starts_with("events[0]"));
}
