//! Tests of plans, and the small plan that other tests sweep.

use std::collections::BTreeSet;

use super::*;
use crate::behaviour::DecodePrefixCut;
use crate::scenario::validate::{KnownPolicies, validate};
use crate::sweep::cell::{CellId, RunId};

pub(crate) const BASE: &str = r#"
version = 1
title = "Two requests"
layout = { page_size = 16, ranks = 2 }
prefill = { pages = 64 }
decode = { pages = 64 }

[workload.synthetic]
requests = 2
arrivals = { fixed = { gap = 1000 } }
prompt = { fixed = 100 }
output = { fixed = 10 }
"#;

/// Two page sizes, two ranks, two behaviours, three seeds each.
pub(crate) const PLAN: &str = r#"
version = 1
title = "A small sweep"
base = "base.toml"
seeds = { first = 5, count = 3 }
marks = ["hit.unaligned"]

[[axes]]
path = "layout.page_size"
values = [16, 64]

[[axes]]
path = "layout.ranks"
values = [1, 2]

[[axes]]
name = "behaviour"
points = [
  { name = "sound", set = {} },
  { name = "padded up", set = { "behaviour.decode_prefix_cut" = "padded_up", "behaviour.decode_match_unit" = "physical_page" } },
]
"#;

pub(crate) fn sources(plan: &str) -> Sources {
    Sources {
        plan_path: "plan.toml".into(),
        plan: plan.to_owned(),
        base_path: "base.toml".into(),
        base: BASE.to_owned(),
    }
}

pub(crate) fn small() -> Plan {
    Plan::parse(sources(PLAN)).unwrap()
}

fn error(from: &str, to: &str) -> String {
    assert!(PLAN.contains(from), "{from}");
    let text = PLAN.replace(from, to);
    Plan::parse(sources(&text)).unwrap_err().to_string()
}

#[test]
fn cells_are_the_product_of_the_axes_with_the_last_fastest() {
    let plan = small();
    assert_eq!((plan.cells(), plan.runs()), (8, 24));
    let places: Vec<String> = (0..8).map(|cell| plan.describe(CellId(cell))).collect();
    assert_eq!(places[0], "layout.page_size = 16, layout.ranks = 1, behaviour = sound");
    assert_eq!(places[1], "layout.page_size = 16, layout.ranks = 1, behaviour = padded up");
    assert_eq!(places[4], "layout.page_size = 64, layout.ranks = 1, behaviour = sound");
    assert_eq!(places.iter().collect::<BTreeSet<_>>().len(), 8);
}

#[test]
fn a_cell_is_the_base_with_its_settings() {
    let plan = small();
    let scenario = plan.scenario(CellId(7)).unwrap();
    assert_eq!((scenario.layout.page_size, scenario.layout.ranks), (64, 2));
    assert_eq!(scenario.behaviour.decode_prefix_cut, Some(DecodePrefixCut::PaddedUp));
    let sound = plan.scenario(CellId(0)).unwrap();
    assert_eq!(sound.behaviour, Default::default());
    assert_eq!(sound.prefill.pages, 64);
}

#[test]
fn a_run_s_number_says_its_cell_and_seed() {
    let plan = small();
    assert_eq!(plan.place(RunId(0)), (CellId(0), 5));
    assert_eq!(plan.place(RunId(2)), (CellId(0), 7));
    assert_eq!(plan.place(RunId(23)), (CellId(7), 7));
}

#[test]
fn errors_name_file_and_path() {
    assert_eq!(error("version = 1", "version = 2"), "plan.toml: version: must be 1, got 2");
    let text = error("count = 3", "number = 3");
    assert!(text.starts_with("plan.toml: seeds"), "{text}");
    assert!(text.contains("got `number`"), "{text}");
    let text = error("hit.unaligned", "hit.sideways");
    assert!(text.starts_with("plan.toml: marks[0]: must be one of"), "{text}");
    let text = error("layout.ranks", "layout.rings");
    assert!(text.starts_with("plan.toml: axes[1] (\"layout.rings\", value 0): layout"), "{text}");
    let text = error("[1, 2]", "[1, \"two\"]");
    assert!(
        text.starts_with("plan.toml: axes[1] (\"layout.ranks\", value 1): layout.ranks: "),
        "{text}"
    );
    let text = error("values = [1, 2]", "values = [1, 1]");
    assert_eq!(
        text,
        "plan.toml: axes[1]: must be one or more different points, got 2 of which 1 differ"
    );
    let text = error("path = \"layout.ranks\"", "name = \"ranks\"");
    assert!(text.starts_with("plan.toml: axes[1]: must have either"), "{text}");
}

#[test]
fn two_axes_cannot_set_the_same_field() {
    let text = error("\"behaviour.decode_match_unit\" = \"physical_page\"", "\"layout.ranks\" = 4");
    assert_eq!(text, "plan.toml: axes: two axes set \"layout.ranks\"");
    let text = error("\"behaviour.decode_match_unit\" = \"physical_page\"", "\"seed\" = 4");
    assert!(text.contains("cannot be an axis"), "{text}");
}

#[test]
fn a_plan_beyond_ten_million_runs_must_be_asked_for_twice() {
    let of = |count: &str| {
        let plan = Plan::parse(sources(&PLAN.replace("count = 3", count))).unwrap();
        plan.refuse_large().map_err(|error| error.to_string())
    };
    assert_eq!(of("count = 1250000"), Ok(()));
    assert_eq!(
        of("count = 1250001").unwrap_err(),
        "plan.toml: must be at most 10000000 runs (cells times seeds), got 10000008"
    );
    assert_eq!(of("count = 1250001 }\nbudget = { runs = 10000000"), Ok(()));
    assert!(of("count = 1250001 }\nbudget = { runs = 10000001").is_err());
}

#[test]
fn a_plan_whose_runs_cannot_be_numbered_is_refused() {
    assert_eq!(
        error("count = 3", "count = 125000001"),
        "plan.toml: must be at most 1000000000 runs (cells times seeds), got 1000000008"
    );
    let text = error("first = 5", "first = 9223372036854775805");
    assert!(text.starts_with("plan.toml: seeds.count"), "{text}");
}

/// The small plan with these lines after its marks.
fn with(lines: &str) -> Result<Plan, String> {
    let marks = "marks = [\"hit.unaligned\"]";
    let text = PLAN.replacen(marks, &format!("{marks}\n{lines}"), 1);
    Plan::parse(sources(&text)).map_err(|error| error.to_string())
}

#[test]
fn filtered_cells_have_the_plan_s_reason() {
    let plan = with(
        "filters = [
           { where = { \"layout.page_size\" = { min = 17 }, behaviour = \"sound\" }, reason = \"not sold\" },
           { where = { \"layout.ranks\" = [2, 1], behaviour = [\"padded up\"] }, reason = \"no\" },
         ]",
    )
    .unwrap();
    let reasons: Vec<Option<String>> =
        (0..8).map(|cell| plan.impossible(CellId(cell), |_| Ok(()))).collect();
    let reasons: Vec<&str> = reasons.iter().map(|reason| reason.as_deref().unwrap_or("")).collect();
    assert_eq!(reasons, ["", "no", "", "no", "not sold", "no", "not sold", "no"]);
    let refused = plan.impossible(CellId(0), |_| Err("too wide".to_owned()));
    assert_eq!(refused.as_deref(), Some("too wide"));
}

#[test]
fn selections_that_select_nothing_are_refused() {
    let filter = |conditions: &str| {
        with(&format!("filters = [{{ where = {{ {conditions} }}, reason = \"no\" }}]")).unwrap_err()
    };
    assert_eq!(
        filter("ranks = 2"),
        "plan.toml: filters[0].where.\"ranks\": must be one of layout.page_size, layout.ranks, \
         behaviour, got \"ranks\""
    );
    let (no_axes, _) = PLAN.split_once("[[axes]]").unwrap();
    let filters = "filters = [{ where = { ranks = 2 }, reason = \"no\" }]";
    let error = Plan::parse(sources(&format!("{no_axes}{filters}"))).unwrap_err().to_string();
    assert_eq!(
        error,
        "plan.toml: filters[0].where.\"ranks\": must be left out, since the plan has no axis, \
         got \"ranks\""
    );
    assert_eq!(
        filter("\"layout.ranks\" = 3"),
        "plan.toml: filters[0].where.\"layout.ranks\": must be one of its points (1, 2), \
         got \"3\""
    );
    assert!(filter("\"layout.ranks\" = { min = 3 }").contains("got none"));
    assert!(filter("\"layout.ranks\" = []").contains("got none"));
    assert!(filter("behaviour = { min = 3 }").contains("an axis of whole numbers"));
    let empty = with("filters = [{ where = {}, reason = \" \" }]").unwrap_err();
    assert_eq!(empty, "plan.toml: filters[0].reason: must be a text, got an empty one");
}

#[test]
fn budgets_and_rates_out_of_range_are_refused() {
    let zero = with("budget = { runs = 0 }").unwrap_err();
    assert_eq!(zero, "plan.toml: budget.runs: must be 1 or more, got 0");
    let expect =
        |rate: &str| with(&format!("expect = [{{ code = \"placed.missing\", rate = {rate} }}]"));
    assert!(expect("{ max = 0.5 }").is_ok() && expect("{ min = 1 }").is_ok());
    for rate in
        ["{ max = 1.1 }", "{ min = -0.1 }", "{ min = 0.6, max = 0.5 }", "{ max = nan }", "{}"]
    {
        let text = expect(rate).unwrap_err();
        assert!(text.starts_with("plan.toml: expect[0].rate: must be"), "{rate}: {text}");
    }
}

#[test]
fn the_digest_covers_the_plan_and_the_base() {
    let plan = small();
    let mut other = sources(PLAN);
    other.base.push('\n');
    assert_ne!(Plan::parse(other).unwrap().digest(), plan.digest());
    let titled = PLAN.replace("A small", "Another");
    assert_ne!(Plan::parse(sources(&titled)).unwrap().digest(), plan.digest());
}

#[test]
fn the_demo_plan_has_no_impossible_cell_and_a_hundred_runs_of_each_layout_and_behaviour() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("sims/plans/demo.toml");
    let plan = Plan::read(&path).unwrap();
    let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
    let known = KnownPolicies {
        caches: names(&["radix"]),
        evictions: names(&["lru", "mru"]),
        free_orders: names(&["sorted", "random"]),
        admissions: names(&["first_come"]),
        planners: names(&["checked"]),
        draft_planners: names(&[]),
    };
    for cell in (0..plan.cells()).map(CellId) {
        let scenario = plan.scenario(cell).unwrap();
        assert_eq!(validate(&scenario, &known), Ok(()), "{}", plan.describe(cell));
    }
    let policies = plan.axes.iter().find(|axis| axis.name == "policies").unwrap();
    assert!(plan.seeds.count * policies.points.len() as u64 >= 100);
}
