//! Policies from outside the library: a plan names them, a sweep runs and a report shows them.

use std::collections::BTreeSet;
use std::error::Error;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use kvseam::cache::Anchor;
use kvseam::cache::eviction::{EvictionPolicy, LogicalTime, Node, Usage};
use kvseam::engine::sglang::Checked;
use kvseam::finding::{Code, Metric};
use kvseam::layout::Layout;
use kvseam::planner::{PlanInput, Planner, Refusal, RunPlan};
use kvseam::report::page;
use kvseam::scenario::file;
use kvseam::sweep::execute::execute;
use kvseam::sweep::ledger::Ledger;
use kvseam::sweep::plan::{Plan, Sources};
use kvseam::sweep::runner::{Runner, Simulator};
use kvseam::witness::Calls;
use kvseam::world::{Registry, Simulation};

const BASE: &str = include_str!("../examples/shared-prefixes.toml");

const PLAN: &str = r#"
version = 1
title = "Own policies beside built-in ones"
base = "base.toml"
seeds = { first = 1, count = 5 }

[[axes]]
path = "prefill.eviction"
values = ["lru", "own_lru", "mru", "own_mru"]
"#;

const PLANNERS: &str = r#"
version = 1
title = "Own planners beside a built-in one"
base = "base.toml"
seeds = { first = 1, count = 5 }

[[axes]]
path = "behaviour.planner"
values = ["checked", "own_checked", "one_short"]
"#;

/// What was used last goes last, or first: as a user of the library would write it.
struct ByAccess {
    newest_first: bool,
    offered: BTreeSet<(LogicalTime, Anchor)>,
}

impl EvictionPolicy for ByAccess {
    fn offer(&mut self, node: &Node<'_>) {
        assert!(self.offered.insert((node.usage.access, node.anchor)), "offered twice");
    }

    fn withdraw(&mut self, node: &Node<'_>) {
        assert!(self.offered.remove(&(node.usage.access, node.anchor)), "never offered");
    }

    fn used(&mut self, before: &Usage, node: &Node<'_>, offered: bool) {
        assert_eq!(self.offered.remove(&(before.access, node.anchor)), offered);
        if offered {
            self.offered.insert((node.usage.access, node.anchor));
        }
    }

    fn victim(&mut self, _now: LogicalTime) -> Option<Anchor> {
        let next =
            if self.newest_first { self.offered.pop_last() } else { self.offered.pop_first() };
        next.map(|(_, anchor)| anchor)
    }

    fn clear(&mut self) {
        self.offered.clear();
    }
}

/// Plans as the checked revision does, but leaves so many rows at the end of a rank's share out.
struct Short {
    left_out: u32,
}

impl Planner for Short {
    fn lays_draft_rows(&self) -> bool {
        Checked.lays_draft_rows()
    }

    fn check(&self, input: &PlanInput<'_>) -> Result<(), Refusal> {
        Checked.check(input)
    }

    fn plan_runs(&self, input: &PlanInput<'_>) -> Result<RunPlan, Refusal> {
        let mut plan = Checked.plan_runs(input)?;
        if let Some(last) = plan.runs.last_mut().filter(|last| last.len > self.left_out) {
            last.len -= self.left_out;
        }
        Ok(plan)
    }
}

fn registry() -> Registry {
    let mut registry = Registry::default();
    for (name, newest_first) in [("own_lru", false), ("own_mru", true)] {
        registry.eviction(name, move |_server| {
            Box::new(ByAccess { newest_first, offered: BTreeSet::new() })
        });
    }
    for (name, left_out) in [("own_checked", 0), ("one_short", 1)] {
        registry.planner(name, move || Box::new(Short { left_out }));
    }
    registry
}

fn plan(text: &str) -> Plan {
    let plan = Plan::parse(Sources {
        plan_path: "plan.toml".into(),
        plan: text.to_owned(),
        base_path: "base.toml".into(),
        base: BASE.to_owned(),
    });
    plan.expect("the plan parses")
}

/// An empty folder for a test, gone with the next run of it.
fn folder(test: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(test);
    drop(fs::remove_dir_all(&folder));
    fs::create_dir_all(&folder).expect("the folder for tests can be written to");
    folder
}

#[test]
fn an_own_policy_is_swept_and_reported_as_a_built_in_one() -> Result<(), Box<dyn Error>> {
    let (folder, plan, registry) = (folder("own-policies"), plan(PLAN), registry());
    let simulator = Simulator::new(&plan, &registry);
    let path = folder.join("ledger.sqlite");
    let mut ledger = Ledger::start(&path, &plan, |cell| simulator.check(cell))?;
    let outcome = execute(&mut ledger, 2, &AtomicBool::new(false), simulator, |_| {})?;
    assert_eq!((outcome.progress.done, outcome.judged.errors), (20, 0));
    assert_eq!(outcome.impossible.len(), 0);
    drop(ledger);

    // Who reads the ledger knows nothing of the registry.
    let ledger = Ledger::open(&path)?;
    let figures = ledger.ratios(&[
        (Metric::PrefillHitTokens, Metric::PromptTokens),
        (Metric::EvictedPrefillPages, Metric::Requests),
        (Metric::WaitTicks, Metric::Requests),
    ])?;
    let [lru, own_lru, mru, own_mru] = figures.as_slice() else { panic!("four cells") };
    assert_eq!(lru, own_lru, "one order, written twice");
    assert_eq!(mru, own_mru, "one order, written twice");
    assert_ne!(lru, mru, "the policy decides what is found");

    let options = page::Options { axes: None, against: None };
    let written = page::write(&[ledger], &options, &folder.join("report"))?;
    let page = fs::read_to_string(written.page)?;
    for name in ["own_lru", "own_mru"] {
        assert!(page.contains(name), "{name} is not in the report");
    }
    Ok(())
}

#[test]
fn an_own_planner_is_swept_and_reported_as_a_built_in_one() -> Result<(), Box<dyn Error>> {
    let (folder, plan, registry) = (folder("own-planners"), plan(PLANNERS), registry());
    let simulator = Simulator::new(&plan, &registry);
    let path = folder.join("ledger.sqlite");
    let mut ledger = Ledger::start(&path, &plan, |cell| simulator.check(cell))?;
    let outcome = execute(&mut ledger, 2, &AtomicBool::new(false), simulator, |_| {})?;
    assert_eq!((outcome.progress.done, outcome.judged.errors), (15, 0));
    drop(ledger);

    let ledger = Ledger::open(&path)?;
    let figures = ledger.ratios(&[(Metric::SentTokens, Metric::PromptTokens)])?;
    assert_eq!(figures[0], figures[1], "one plan, made twice");
    let summaries = ledger.summaries()?;
    let defects: Vec<u64> =
        summaries.iter().map(|cell| cell.defects.map_or(0, |defects| defects.runs)).collect();
    assert_eq!(defects, [0, 0, 5], "whoever leaves rows out is found in every run");
    let missing = &summaries[2].codes[&Code::PlacedMissing];
    assert_eq!(missing.runs, 5);

    let options = page::Options { axes: None, against: None };
    let written = page::write(&[ledger], &options, &folder.join("report"))?;
    let page = fs::read_to_string(written.page)?;
    for name in ["own_checked", "one_short"] {
        assert!(page.contains(name), "{name} is not in the report");
    }
    Ok(())
}

#[test]
fn an_own_planner_is_observed_and_where_it_is_unknown_refused_with_the_names_known()
-> Result<(), Box<dyn Error>> {
    let text = format!("{BASE}\n[behaviour]\nplanner = \"one_short\"\n");
    let scenario = file::parse(&text, "base.toml")?;
    let registry = registry();
    let mut calls = Calls::new(Layout::striped(4, 2)?);
    let simulation = || Simulation::new(&scenario).registry(&registry);
    let run = simulation().observer(&mut calls).run()?;
    assert_eq!(run, simulation().run()?);
    assert!(!calls.calls.is_empty() && calls.placed.is_some());

    let error = Simulation::new(&scenario).run().unwrap_err().to_string();
    let expected = "behaviour.planner: must be one of checked, indexed, got \"one_short\"";
    assert_eq!(error, expected);
    Ok(())
}

#[test]
fn a_sweep_that_goes_on_without_the_policy_has_errors_and_no_other_policys_runs()
-> Result<(), Box<dyn Error>> {
    let (folder, plan, registry) = (folder("without-own-policies"), plan(PLAN), registry());
    let own = Simulator::new(&plan, &registry);
    let mut ledger = Ledger::start(&folder.join("ledger.sqlite"), &plan, |cell| own.check(cell))?;
    let built_in = Simulator::new(&plan, Registry::built_in());
    let outcome = execute(&mut ledger, 1, &AtomicBool::new(false), built_in, |_| {})?;
    assert_eq!((outcome.progress.done, outcome.judged.errors), (20, 10));
    for (cell, summary) in ledger.summaries()?.iter().enumerate() {
        let expected = if cell % 2 == 0 { (5, 0) } else { (0, 5) };
        assert_eq!((summary.runs, summary.errors), expected, "cell {cell}");
    }
    Ok(())
}
