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
use super::expect::{ExpectFile, Expectation};
use super::filter::{Filter, FilterFile};
use crate::finding::Mark;
use crate::limits;
use crate::scenario::Scenario;
use crate::scenario::file::{self, FileError};
use crate::wording::{self, reworded};

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
        if let Err((wanted, got)) = wording::title(&file.title) {
            return Err(fail("title", format!("must be {wanted}, got {got}")));
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
pub(crate) mod tests;
