//! The lint's claim under attack: what it calls sound has no defect, and what it objects to is seen
//! to go wrong. A failure prints the scenario, which `kvseam run` and `kvseam minimize` take as it
//! is.

use std::collections::BTreeSet;
use std::path::Path;

use kvseam::behaviour::PlannerName;
use kvseam::engine::sglang::Checked;
use kvseam::finding::{Code, Run, Severity};
use kvseam::planner::{PlanInput, Planner, Refusal};
use kvseam::rng::Stream;
use kvseam::scenario::expect::unmet;
use kvseam::scenario::generate::{Aim, HARMLESS, PlantedVariant, generate, generate_planted};
use kvseam::scenario::{Scenario, file};
use kvseam::world::{Observer, Registry, Simulation, run};

/// Scenarios that each claim is tried on. Raise it, and the range of seeds, to hunt.
const SOUND: u64 = 3_000;
const TWICE: u64 = 400;
const PLANTED: u64 = 1_000;

fn drawn(aim: Aim, count: u64) -> impl Iterator<Item = Scenario> {
    let known = Registry::built_in().names();
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

/// Where nobody looks on, decode's rows are written late and a piece is laid out once for all
/// ranks. Neither may be seen in what a run leaves.
#[test]
fn looking_on_and_laying_out_rank_by_rank_change_nothing() {
    struct Nobody;
    impl Observer for Nobody {}

    /// The checked planner, without a layout for all ranks at once.
    struct ByRank;
    impl Planner for ByRank {
        fn lays_draft_rows(&self) -> bool {
            Checked.lays_draft_rows()
        }
        fn check(&self, input: &PlanInput<'_>) -> Result<(), Refusal> {
            Checked.check(input)
        }
    }

    let mut by_rank = Registry::default();
    by_rank.planner("checked", || Box::new(ByRank));
    let mut checked = 0;
    for scenario in drawn(Aim::Any, TWICE).chain(drawn(Aim::Sound, TWICE)) {
        let plain = ran(&scenario);
        let watched = Simulation::new(&scenario).observer(&mut Nobody).run().unwrap();
        assert_eq!(plain, watched, "{scenario:?}");
        checked += u64::from(scenario.behaviours().planner == PlannerName::CHECKED);
        let alone = Simulation::new(&scenario).registry(&by_rank).run().unwrap();
        assert_eq!(plain, alone, "{scenario:?}");
    }
    assert!(checked > TWICE / 2, "the planner was in use {checked} times");
}

#[test]
fn whatever_the_lint_objects_to_is_seen_to_fail_because_of_exactly_that() {
    let known = Registry::built_in().names();
    let (mut holes, mut never) = (Vec::new(), Vec::new());
    for planted in PlantedVariant::all() {
        let drawn = (0..PLANTED).map(|seed| {
            generate_planted(&mut Stream::new(seed, "soundness"), &known, Aim::Any, planted)
        });
        let mut objected = drawn.filter(|scenario| planted.is_objected_to(scenario)).peekable();
        if objected.peek().is_none() {
            never.push((planted.switch, planted.variant));
            // `kvseam hunt` leaves it out by the same test.
            assert!(!planted.can_be_objected_to(&known), "{planted}");
            continue;
        }
        let mut blamed = objected.filter(|scenario| {
            let without = ran(&planted.without(scenario));
            !defects(&ran(scenario)).is_subset(&defects(&without))
        });
        if blamed.next().is_none() {
            holes.push(planted.to_string());
        }
    }
    assert!(holes.is_empty(), "never seen to fail: {holes:?}");
    assert_eq!(never, HARMLESS);
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
