//! What the minimiser promises, on random scenarios and on those that ship.

use std::collections::BTreeSet;
use std::path::Path;

use super::*;
use crate::behaviour::{DecodeMatchUnit, DecodePrefixCut};
use crate::engine::Profile;
use crate::limits::MINIMIZE_RUNS;
use crate::rng::Stream;
use crate::scenario::expect::unmet;
use crate::scenario::generate::{Aim, generate};
use crate::scenario::{RequestSpec, Scenario, WorkloadConfig, file};
use crate::world::{Registry, run};

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

/// Scenarios of the generator that have a defect, of the first `draws`.
fn with_defects(draws: u64) -> impl Iterator<Item = Scenario> {
    let names = Registry::built_in().names();
    (0..draws)
        .map(move |seed| generate(&mut Stream::new(seed, "minimiser"), &names, Aim::Any))
        .filter(|case| !run(case, Path::new("")).unwrap().findings.is_clean())
}

fn minimized(case: &Scenario, code: Code) -> Minimized {
    minimize(case, Path::new(""), &BTreeSet::from([code]), MINIMIZE_RUNS)
        .unwrap_or_else(|error| panic!("{error}\n{case:?}"))
}

fn earliest(case: &Scenario) -> Code {
    first_defect(&run(case, Path::new("")).unwrap()).unwrap()
}

#[test]
fn the_finding_stays_and_nothing_grows() {
    let mut count = 0;
    for case in with_defects(600) {
        let code = earliest(&case);
        let small = minimized(&case, code);
        let found = run(&small.scenario, Path::new("")).unwrap();
        assert!(found.findings.count(code) > 0, "{case:?}\n{small:?}");
        assert!(small.after <= small.before, "{case:?}\n{small:?}");
        assert_eq!(Size::of(&small.scenario), small.after, "{small:?}");
        let expect = small.scenario.expect.as_ref().unwrap();
        assert_eq!(unmet(expect, &found), [], "{small:?}");
        assert!(small.is_fixed_point && small.runs <= MINIMIZE_RUNS, "{small:?}");
        count += 1;
    }
    assert!(count >= 100, "{count}");
}

#[test]
fn minimised_again_it_stays_as_it_is() {
    for case in with_defects(300) {
        let code = earliest(&case);
        let once = minimized(&case, code);
        let text = once.scenario.to_toml();
        let read = file::parse(&text, "minimised").unwrap();
        assert_eq!(minimized(&read, code).scenario.to_toml(), text, "{case:?}");
    }
}

#[test]
fn different_scenarios_of_one_mistake_become_one_file() {
    for (switch, variant, code) in [
        ("decode_reservation", "one_short", Code::ReserveShort),
        ("source_offset", "pages_of_chunk", Code::PlacedTwice),
        ("early_send", "launched", Code::ReadUnwritten),
    ] {
        let mut files = BTreeSet::new();
        let mut count = 0;
        let names = Registry::built_in().names();
        for seed in 0..120 {
            let mut case = generate(&mut Stream::new(seed, "one mistake"), &names, Aim::Sound);
            let table = toml::Table::from_iter([(switch.to_owned(), variant.into())]);
            (case.profile, case.behaviour) = (Profile::SOUND, table.try_into().unwrap());
            // Chunks that no page fits into are refused without exact cuts, as other fields are.
            let Ok(found) = run(&case, Path::new("")) else { continue };
            if found.findings.count(code) > 0 {
                files.insert(minimized(&case, code).scenario.to_toml());
                count += 1;
            }
        }
        assert!(count >= 5, "{switch}: {count}");
        assert_eq!(files.len(), 1, "{files:#?}");
    }
}

#[test]
fn a_synthetic_workload_becomes_two_requests() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("sims/plans");
    let mut case = file::load(&folder.join("demo-scenario.toml")).unwrap();
    case.behaviour.decode_match_unit = Some(DecodeMatchUnit::Token);
    case.behaviour.decode_prefix_cut = Some(DecodePrefixCut::PaddedUp);
    let small = minimize(&case, &folder, &BTreeSet::new(), MINIMIZE_RUNS).unwrap();
    assert_eq!((small.before.requests, small.after.requests), (32, 2), "{small:?}");
    assert!(small.is_fixed_point);
    let title =
        "placed.missing by decode_match_unit = \"token\", decode_prefix_cut = \"padded_up\"";
    assert_eq!(small.scenario.title, title);
}

#[test]
fn used_up_runs_leave_what_was_found_so_far() {
    let case = scenario("decode_reservation = \"floor\"");
    for runs_max in 0..40 {
        let goal = BTreeSet::from([Code::ReserveShort]);
        let small = minimize(&case, Path::new(""), &goal, runs_max).unwrap();
        assert!(!small.is_fixed_point, "{runs_max}");
        // The second run of a candidate may be the one past the end.
        assert!(small.runs <= runs_max + 1, "{small:?}");
        let found = run(&small.scenario, Path::new("")).unwrap();
        assert!(found.findings.count(Code::ReserveShort) > 0, "{small:?}");
    }
}

#[test]
fn what_shows_nothing_is_refused() {
    let case = scenario("");
    let none = minimize(&case, Path::new(""), &BTreeSet::new(), 9).unwrap_err();
    assert!(matches!(none, MinimizeError::NoDefect), "{none}");
    let goal = BTreeSet::from([Code::PlacedMissing]);
    let absent = minimize(&case, Path::new(""), &goal, 9).unwrap_err();
    assert_eq!(absent.to_string(), "the scenario must show placed.missing, got no such finding");
}
