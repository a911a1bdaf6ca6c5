//! A *plan*: a base scenario, axes that vary its settings, and the seeds of every cell.
//!
//! ```toml
//! version = 1
//! title = "Page size and ranks"
//! base = "small.toml"                 # a scenario, found from the plan's folder
//! seeds = { first = 1, count = 100 }  # for every cell
//! marks = ["hit.unaligned"]           # code paths that the sweep must reach
//!
//! budget = { runs = 5000, seconds = 3600 } # at most; left out, every seed of every cell
//!
//! [[axes]]                            # what varies: `axis` has all spellings
//! path = "layout.page_size"
//! values = [16, 64]
//!
//! [[filters]]                         # cells to leave out: `filter`
//! where = { "layout.page_size" = 64 }
//! reason = "not sold"
//!
//! [[expect]]                          # how often a code may be found: `expect`
//! code = "placed.missing"
//! rate = { max = 0.01 }
//! ```
//!
//! The base is a file, so that every run can be repeated by `kvseam run BASE --set path=value`.

use std::fmt;
use std::hash::Hasher;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use siphasher::sip::SipHasher13;
use toml::{Table, Value};

use super::axis::{Axis, AxisFile, check_paths};
pub use super::cell::{CellId, RunId};
use super::expect::{ExpectFile, Expectation};
use super::filter::{Filter, FilterFile};
use crate::finding::Mark;
use crate::limits;
use crate::scenario::Scenario;
use crate::scenario::file::{self, FileError};
use crate::wording::reworded;

/// The version of the plan format that this release reads.
pub const VERSION: u32 = 1;

/// Why a plan cannot be used: `file: field.path: reason`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct PlanError {
    /// The plan or its base scenario.
    pub file: String,
    /// The field, or empty where the whole file is meant.
    pub path: String,
    /// What it must be, and what it is.
    pub reason: String,
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path.as_str() {
            "" | "." => write!(f, "{}: {}", self.file, self.reason),
            path => write!(f, "{}: {path}: {}", self.file, self.reason),
        }
    }
}

/// The two files of a plan, with the paths by which they were named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sources {
    /// Path of the plan.
    pub plan_path: PathBuf,
    /// The plan.
    pub plan: String,
    /// Path of the base scenario.
    pub base_path: PathBuf,
    /// The base scenario.
    pub base: String,
}

/// A sweep, checked but not expanded.
#[derive(Clone, Debug)]
pub struct Plan {
    /// One line that says what it is about.
    pub title: String,
    /// What varies.
    pub axes: Vec<Axis>,
    /// The seeds of every cell.
    pub seeds: Seeds,
    /// How much of it is done at most.
    pub budget: Budget,
    /// Cells that are left out.
    pub filters: Vec<Filter>,
    /// Code paths that the sweep must reach.
    pub marks: Vec<Mark>,
    /// How often codes may be found.
    pub expect: Vec<Expectation>,
    /// The files that it was read from.
    pub sources: Sources,
    base: Table,
}

/// Consecutive seeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Seeds {
    /// The first.
    pub first: u64,
    /// How many.
    pub count: u64,
}

/// How much of a sweep is done at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// Runs, of all shards together. They are shared out evenly over the cells.
    pub runs: Option<u64>,
    /// Seconds of wall time, for each call and each shard. The same call again goes on for as long.
    pub seconds: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PlanFile {
    version: u32,
    title: String,
    base: String,
    seeds: Seeds,
    #[serde(default)]
    budget: Budget,
    #[serde(default)]
    marks: Vec<Mark>,
    #[serde(default)]
    axes: Vec<AxisFile>,
    #[serde(default)]
    filters: Vec<FilterFile>,
    #[serde(default)]
    expect: Vec<ExpectFile>,
}

impl Plan {
    /// Reads a plan and its base scenario.
    pub fn read(path: &Path) -> Result<Plan, PlanError> {
        Plan::with_base(read_text(path)?, path)
    }

    /// The plan of a text that is called `path`, with its base scenario read from there.
    pub fn with_base(plan: String, path: &Path) -> Result<Plan, PlanError> {
        let file: PlanFile = parse_toml(&plan, path)?;
        let base_path = path.parent().unwrap_or(Path::new("")).join(&file.base);
        let base = read_text(&base_path)?;
        Plan::parse(Sources { plan_path: path.to_owned(), plan, base_path, base })
    }

    /// The plan of two texts. Every point of every axis is tried on the base scenario, so that an
    /// unknown setting or a value of another kind is an error here.
    pub fn parse(sources: Sources) -> Result<Plan, PlanError> {
        let file: PlanFile = parse_toml(&sources.plan, &sources.plan_path)?;
        let base: Table = parse_toml(&sources.base, &sources.base_path)?;
        let fail = |path: &str, reason: String| PlanError {
            file: sources.plan_path.display().to_string(),
            path: path.to_owned(),
            reason,
        };
        if file.version != VERSION {
            return Err(fail("version", format!("must be {VERSION}, got {}", file.version)));
        }
        let axes = checked("axes", file.axes, AxisFile::check, fail)?;
        check_paths(&axes).map_err(|reason| fail("axes", reason))?;
        let filters = checked("filters", file.filters, |filter| filter.check(&axes), fail)?;
        let expect = checked("expect", file.expect, |expect| expect.check(&axes), fail)?;
        let plan = Plan {
            title: file.title,
            axes,
            seeds: file.seeds,
            budget: file.budget,
            filters,
            marks: file.marks,
            expect,
            sources,
            base,
        };
        plan.check_size()?;
        plan.check_points()?;
        Ok(plan)
    }

    /// Refuses a plan that is so large that it must be asked for twice.
    pub fn refuse_large(&self) -> Result<(), PlanError> {
        let runs = self.runs().min(self.budget.runs.unwrap_or(u64::MAX));
        if runs <= limits::SWEEP_RUNS {
            return Ok(());
        }
        Err(self.error("", too_many(limits::SWEEP_RUNS, &runs.to_string())))
    }

    /// Digest of both files: the identity of the plan.
    pub fn digest(&self) -> u64 {
        let mut hasher = SipHasher13::new();
        for text in [&self.sources.plan, &self.sources.base] {
            hasher.write_u64(text.len() as u64);
            hasher.write(text.as_bytes());
        }
        hasher.finish()
    }

    /// The base scenario with these settings. The error says why they cannot stand together.
    pub(super) fn with<'a>(
        &self,
        settings: impl Iterator<Item = &'a (String, Value)>,
    ) -> Result<Scenario, String> {
        let mut table = self.base.clone();
        for (path, value) in settings {
            let keys: Vec<String> = path.split('.').map(str::to_owned).collect();
            file::set_value(&mut table, &keys, value.clone()).map_err(|error| reason(&error))?;
        }
        file::from_table(table, "").map_err(|error| reason(&error))
    }

    fn check_size(&self) -> Result<(), PlanError> {
        let fail = |path: &str, reason: String| Err(self.error(path, reason));
        let count = self.seeds.count;
        // A seed beyond 63 bits could not be written into a scenario file or a ledger.
        let last = self.seeds.first.checked_add(count);
        if count == 0 || last.is_none_or(|last| i64::try_from(last).is_err()) {
            let reason = format!("must be 1 or more, with every seed below 2^63, got {count}");
            return fail("seeds.count", reason);
        }
        let runs = self
            .axes
            .iter()
            .try_fold(count, |runs, axis| runs.checked_mul(axis.points.len() as u64));
        match runs {
            Some(runs) if runs <= limits::SWEEP_RUNS_ALLOWED => (),
            Some(runs) => return fail("", too_many(limits::SWEEP_RUNS_ALLOWED, &runs.to_string())),
            None => return fail("", too_many(limits::SWEEP_RUNS_ALLOWED, "more than 2^64")),
        }
        let Budget { runs, seconds } = self.budget;
        for (field, limit) in [("budget.runs", runs), ("budget.seconds", seconds)] {
            if limit == Some(0) {
                return fail(field, "must be 1 or more, got 0".to_owned());
            }
        }
        Ok(())
    }

    /// Settings that no scenario has are errors of the plan; a combination that no engine has is a
    /// cell with a reason.
    fn check_points(&self) -> Result<(), PlanError> {
        self.with(std::iter::empty()).map_err(|reason| PlanError {
            file: self.sources.base_path.display().to_string(),
            path: String::new(),
            reason,
        })?;
        for (index, axis) in self.axes.iter().enumerate() {
            for (ordinal, point) in axis.points.iter().enumerate() {
                self.with(point.set.iter()).map_err(|reason| {
                    self.error(
                        &format!("axes[{index}] (\"{}\", value {ordinal})", axis.name),
                        reason,
                    )
                })?;
            }
        }
        Ok(())
    }

    fn error(&self, path: &str, reason: String) -> PlanError {
        PlanError {
            file: self.sources.plan_path.display().to_string(),
            path: path.to_owned(),
            reason,
        }
    }
}

/// The entries of a list, each checked; an error of one is a path below it and a reason.
fn checked<F, T, P: AsRef<str>>(
    list: &str,
    entries: Vec<F>,
    check: impl Fn(F) -> Result<T, (P, String)>,
    fail: impl Fn(&str, String) -> PlanError,
) -> Result<Vec<T>, PlanError> {
    let one = |(index, entry)| {
        check(entry)
            .map_err(|(path, reason)| fail(&format!("{list}[{index}]{}", path.as_ref()), reason))
    };
    entries.into_iter().enumerate().map(one).collect()
}

/// An error of a setting, without the file that it does not stand in.
fn reason(error: &FileError) -> String {
    match error {
        FileError::Field { path, problem, .. } => format!("{path}: {}", one_line(problem)),
        FileError::Read { .. } | FileError::Syntax { .. } => error.to_string(),
    }
}

fn too_many(limit: u64, runs: &str) -> String {
    format!("must be at most {limit} runs (cells times seeds), got {runs}")
}

fn one_line(message: &str) -> String {
    message.trim().replace('\n', "; ")
}

fn read_text(path: &Path) -> Result<String, PlanError> {
    std::fs::read_to_string(path).map_err(|error| PlanError {
        file: path.display().to_string(),
        path: String::new(),
        reason: format!("cannot be read: {error}"),
    })
}

fn parse_toml<T: for<'de> Deserialize<'de>>(text: &str, file: &Path) -> Result<T, PlanError> {
    let fail = |path: String, error: &toml::de::Error| {
        let line = error.span().map(|span| text[..span.start].matches('\n').count() + 1);
        let at = line.map_or(String::new(), |line| format!(" (line {line})"));
        let (path, problem) = reworded(&path, error.message());
        PlanError { file: file.display().to_string(), path, reason: one_line(&problem) + &at }
    };
    let parsed = toml::Deserializer::parse(text).map_err(|error| fail(String::new(), &error))?;
    serde_path_to_error::deserialize(parsed)
        .map_err(|error| fail(error.path().to_string(), error.inner()))
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::behaviour::DecodePrefixCut;
    use crate::scenario::validate::{KnownPolicies, validate};

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
        assert!(
            text.starts_with("plan.toml: axes[1] (\"layout.rings\", value 0): layout"),
            "{text}"
        );
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
        let text =
            error("\"behaviour.decode_match_unit\" = \"physical_page\"", "\"layout.ranks\" = 4");
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
        let reasons: Vec<&str> =
            reasons.iter().map(|reason| reason.as_deref().unwrap_or("")).collect();
        assert_eq!(reasons, ["", "no", "", "no", "not sold", "no", "not sold", "no"]);
        let refused = plan.impossible(CellId(0), |_| Err("too wide".to_owned()));
        assert_eq!(refused.as_deref(), Some("too wide"));
    }

    #[test]
    fn selections_that_select_nothing_are_refused() {
        let filter = |conditions: &str| {
            with(&format!("filters = [{{ where = {{ {conditions} }}, reason = \"no\" }}]"))
                .unwrap_err()
        };
        assert_eq!(
            filter("ranks = 2"),
            "plan.toml: filters[0].where.\"ranks\": must be the name of an axis \
             (layout.page_size, layout.ranks, behaviour), got \"ranks\""
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
        let expect = |rate: &str| {
            with(&format!("expect = [{{ code = \"placed.missing\", rate = {rate} }}]"))
        };
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
    fn the_demo_plan_has_no_impossible_cell_and_a_hundred_seeds_in_each() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("sims/plans/demo.toml");
        let plan = Plan::read(&path).unwrap();
        let names = |name: &str| BTreeSet::from([name.to_owned()]);
        let known = KnownPolicies {
            caches: names("radix"),
            evictions: names("lru"),
            free_orders: names("sorted"),
            admissions: names("first_come"),
        };
        for cell in (0..plan.cells()).map(CellId) {
            let scenario = plan.scenario(cell).unwrap();
            assert_eq!(validate(&scenario, &known), Ok(()), "{}", plan.describe(cell));
        }
        assert!(plan.seeds.count >= 100);
    }
}
