//! A *plan*: a base scenario, axes that vary its settings, and the seeds of every cell.
//!
//! ```toml
//! version = 1
//! title = "Page size and ranks"
//! base = "small.toml"                 # a scenario, found from the plan's folder
//! seeds = { first = 1, count = 100 }  # for every cell
//! marks = ["hit.unaligned"]           # code paths that the sweep must reach
//!
//! [[axes]]                            # one setting
//! path = "layout.page_size"
//! values = [16, 64]
//!
//! [[axes]]                            # settings that change together
//! name = "behaviour"
//! points = [
//!   { name = "sound", set = {} },
//!   { name = "padded up", set = { "behaviour.decode_prefix_cut" = "padded_up" } },
//! ]
//! ```
//!
//! Cells are numbered with the last axis fastest, and runs with the seed faster still, so that a
//! run's number says its cell and its seed. The base is a file, so that every run can be repeated by
//! `kvseam run BASE --set path=value`.

use std::collections::BTreeSet;
use std::fmt;
use std::hash::Hasher;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use siphasher::sip::SipHasher13;
use toml::{Table, Value};

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
    /// Code paths that the sweep must reach.
    pub marks: Vec<Mark>,
    /// The files that it was read from.
    pub sources: Sources,
    base: Table,
}

/// One thing that varies.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// The setting's path, or the name given to linked settings.
    pub name: String,
    /// What it takes, in order.
    pub points: Vec<Point>,
}

/// One place on an axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// The value, or the name given to linked values.
    pub name: String,
    /// Settings of the base scenario, by path.
    pub set: Vec<(String, Value)>,
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

/// The number of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CellId(pub u64);

/// The number of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RunId(pub u64);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PlanFile {
    version: u32,
    title: String,
    base: String,
    seeds: Seeds,
    #[serde(default)]
    marks: Vec<Mark>,
    #[serde(default)]
    axes: Vec<AxisFile>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AxisFile {
    path: Option<String>,
    values: Option<Vec<Value>>,
    name: Option<String>,
    points: Option<Vec<PointFile>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PointFile {
    name: String,
    set: Table,
}

impl Plan {
    /// Reads a plan and its base scenario.
    pub fn read(path: &Path) -> Result<Plan, PlanError> {
        let plan = read_text(path)?;
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
        let axes = file
            .axes
            .into_iter()
            .enumerate()
            .map(|(index, axis)| {
                axis.check().map_err(|(path, reason)| fail(&format!("axes[{index}]{path}"), reason))
            })
            .collect::<Result<Vec<_>, _>>()?;
        check_paths(&axes).map_err(|reason| fail("axes", reason))?;
        let plan =
            Plan { title: file.title, axes, seeds: file.seeds, marks: file.marks, sources, base };
        plan.check_size()?;
        plan.check_points()?;
        Ok(plan)
    }

    /// How many cells.
    pub fn cells(&self) -> u64 {
        self.axes.iter().map(|axis| axis.points.len() as u64).product()
    }

    /// How many runs, those of impossible cells included.
    pub fn runs(&self) -> u64 {
        self.cells() * self.seeds.count
    }

    /// The cell and the seed of a run.
    pub fn place(&self, run: RunId) -> (CellId, u64) {
        let ordinal = run.0 % self.seeds.count;
        (CellId(run.0 / self.seeds.count), self.seeds.first + ordinal)
    }

    /// Where a cell lies: the index of a point on each axis.
    pub fn indices(&self, cell: CellId) -> Vec<usize> {
        let mut rest = cell.0;
        let mut indices: Vec<usize> = self
            .axes
            .iter()
            .rev()
            .map(|axis| {
                let points = axis.points.len() as u64;
                let index = rest % points;
                rest /= points;
                usize::try_from(index).expect("below the number of points")
            })
            .collect();
        indices.reverse();
        indices
    }

    /// Where a cell lies: a point on each axis.
    pub fn points(&self, cell: CellId) -> Vec<&Point> {
        self.indices(cell)
            .into_iter()
            .zip(&self.axes)
            .map(|(index, axis)| &axis.points[index])
            .collect()
    }

    /// The cell's settings in words: `layout.ranks = 2, behaviour = padded up`.
    pub fn describe(&self, cell: CellId) -> String {
        let settings: Vec<String> = self
            .axes
            .iter()
            .zip(self.points(cell))
            .map(|(axis, point)| format!("{} = {}", axis.name, point.name))
            .collect();
        settings.join(", ")
    }

    /// The base scenario with the cell's settings. The error says why they cannot stand together.
    pub fn scenario(&self, cell: CellId) -> Result<Scenario, String> {
        let points = self.points(cell);
        self.with(points.iter().flat_map(|point| &point.set))
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

    fn with<'a>(
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
            Some(runs) if runs <= limits::SWEEP_RUNS => Ok(()),
            Some(runs) => fail("", too_many(&runs.to_string())),
            None => fail("", too_many("more than 2^64")),
        }
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

impl AxisFile {
    /// One of the two spellings; the error is a path below the axis and a reason.
    fn check(self) -> Result<Axis, (&'static str, String)> {
        let axis = match (self.path, self.values, self.name, self.points) {
            (Some(path), Some(values), None, None) => Axis {
                points: values
                    .into_iter()
                    .map(|value| Point { name: plain(&value), set: vec![(path.clone(), value)] })
                    .collect(),
                name: path,
            },
            (None, None, Some(name), Some(points)) => Axis {
                points: points
                    .into_iter()
                    .map(|point| Point { name: point.name, set: point.set.into_iter().collect() })
                    .collect(),
                name,
            },
            _ => {
                let reason = "must have either `path` and `values`, or `name` and `points`";
                return Err(("", reason.to_owned()));
            }
        };
        let names: BTreeSet<&str> = axis.points.iter().map(|point| point.name.as_str()).collect();
        if names.is_empty() || names.len() < axis.points.len() {
            let reason = format!(
                "must be one or more different points, got {} of which {} differ",
                axis.points.len(),
                names.len()
            );
            return Err(("", reason));
        }
        Ok(axis)
    }
}

/// No two axes may set the same thing, or the later one would hide the earlier one.
fn check_paths(axes: &[Axis]) -> Result<(), String> {
    let mut names = BTreeSet::new();
    let mut taken = BTreeSet::new();
    for axis in axes {
        if !names.insert(axis.name.as_str()) {
            return Err(format!("two axes are called \"{}\"", axis.name));
        }
        let paths: BTreeSet<&str> = axis
            .points
            .iter()
            .flat_map(|point| &point.set)
            .map(|(path, _)| path.as_str())
            .collect();
        for path in paths {
            if path == "seed" {
                return Err("`seed` is set by `seeds`, it cannot be an axis".to_owned());
            }
            if !taken.insert(path) {
                return Err(format!("two axes set \"{path}\""));
            }
        }
    }
    Ok(())
}

/// A value as people write it: texts without quotes.
fn plain(value: &Value) -> String {
    match value.as_str() {
        Some(text) => text.to_owned(),
        None => value.to_string(),
    }
}

/// An error of a setting, without the file that it does not stand in.
fn reason(error: &FileError) -> String {
    match error {
        FileError::Field { path, problem, .. } => format!("{path}: {}", one_line(problem)),
        FileError::Read { .. } | FileError::Syntax { .. } => error.to_string(),
    }
}

fn too_many(runs: &str) -> String {
    format!("must be at most {} runs (cells times seeds), got {runs}", limits::SWEEP_RUNS)
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
    fn a_plan_beyond_the_bound_is_refused_and_one_at_it_is_not() {
        let at_bound = PLAN.replace("count = 3", "count = 1250000");
        assert_eq!(Plan::parse(sources(&at_bound)).unwrap().runs(), limits::SWEEP_RUNS);
        assert_eq!(
            error("count = 3", "count = 1250001"),
            "plan.toml: must be at most 10000000 runs (cells times seeds), got 10000008"
        );
        let text = error("first = 5", "first = 9223372036854775805");
        assert!(text.starts_with("plan.toml: seeds.count"), "{text}");
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
        };
        for cell in (0..plan.cells()).map(CellId) {
            let scenario = plan.scenario(cell).unwrap();
            assert_eq!(validate(&scenario, &known), Ok(()), "{}", plan.describe(cell));
        }
        let policies = plan.axes.iter().find(|axis| axis.name == "policies").unwrap();
        assert!(plan.seeds.count * policies.points.len() as u64 >= 100);
    }
}
