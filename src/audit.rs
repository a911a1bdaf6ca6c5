//! What can go wrong in one configuration: every variant of every switch is planted in it, with
//! what it needs beside it, and run.
//!
//! A variant is planted alone if the [lint](crate::scenario::lint) then objects to it; else a fault
//! is added, a variant of another switch, or both. What it does is what differs from the same
//! scenario with its switch as it was: a finding that is not there, or a digest. So a zero is told
//! apart from a switch that never acted.

use std::collections::BTreeMap;
use std::path::Path;

use rayon::prelude::*;
use serde::Serialize;

use crate::behaviour::SWITCHES;
use crate::finding::{Code, Finding, Metric, Named, Run, Severity};
use crate::scenario::Scenario;
use crate::scenario::generate::PlantedVariant;
use crate::scenario::validate::{KnownPolicies, validate};
use crate::world::{self, Registry};

mod needs;

pub use needs::Need;

use needs::Sizes;

/// What a variant would do to its user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// Something is wrong, in some runs without any sign of it.
    Silent,
    /// Something is wrong, and each time an error line, a leak or a request that never ends shows
    /// it.
    Loud,
    /// It acted, or is sound on its own, and nothing was wrong.
    Harmless,
    /// Nothing in this configuration can make it act.
    Cannot,
    /// It acted in no run, though it might have.
    NotReached,
}

/// What planting one variant has shown.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The switch, as spelled in files.
    pub switch: &'static str,
    /// The variant, as spelled in files.
    pub variant: &'static str,
    /// What was set beside it.
    pub beside: Vec<String>,
    /// What it would do.
    pub answer: Answer,
    /// How often it was run.
    pub runs: u64,
    /// Runs that something showed in.
    pub loud: u64,
    /// Runs that were wrong without a sign.
    pub silent: u64,
    /// Findings that its switch is the cause of, and how often each could have been.
    pub codes: BTreeMap<&'static str, Count>,
    /// The first error line of the engine.
    pub line: Option<String>,
    /// Why it cannot act, or when it would; empty where `codes` say what it does.
    pub why: String,
}

/// How often something was found, of how often it could have been.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Count {
    /// Findings.
    pub found: u64,
    /// Chances.
    pub chances: u64,
}

/// The answers for one configuration.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Audit {
    /// Its title.
    pub title: String,
    /// Seeds of each variant.
    pub seeds: u64,
    /// Codes of defects that the configuration has as it is.
    pub as_it_is: BTreeMap<&'static str, Count>,
    /// A row for each variant that it has not, the answers in their order.
    pub rows: Vec<Row>,
}

impl Audit {
    /// Plants every variant in `scenario`, whose traces are in `folder`, with so many seeds.
    ///
    /// # Errors
    /// If the scenario itself cannot be run.
    pub fn of(scenario: &Scenario, folder: &Path, seeds: u64) -> Result<Audit, world::RunError> {
        let known = Registry::built_in().names();
        let base = world::run(scenario, folder)?;
        let current = PlantedVariant::of(scenario);
        let planted: Vec<PlantedVariant> =
            PlantedVariant::all().filter(|one| !current.contains(one)).collect();
        let sizes = Sizes { ended: base.ended.0, tight: tight_pool(scenario, folder) };
        let bench = Bench { scenario, folder, known: &known, seeds, sizes };
        let mut rows: Vec<Row> = planted.par_iter().map(|&one| bench.row(one)).collect();
        rows.sort_by_key(|row| row.answer);
        let mut as_it_is = BTreeMap::new();
        add(&mut as_it_is, &base, None);
        Ok(Audit { title: scenario.title.clone(), seeds, as_it_is, rows })
    }

    /// How many variants have an answer.
    pub fn count(&self, answer: Answer) -> usize {
        self.rows.iter().filter(|row| row.answer == answer).count()
    }
}

/// Decode pages, a power of two fewer than there are, with which running requests lack pages when
/// nothing is kept back for them. `None` if there is no such number.
fn tight_pool(scenario: &Scenario, folder: &Path) -> Option<u32> {
    let pages = (1..u32::BITS).map(|by| scenario.decode.pages >> by).take_while(|&pages| pages > 0);
    let is_tight = |&pages: &u32| {
        let mut smaller = scenario.clone();
        (smaller.decode.pages, smaller.decode.reserved_tokens) = (pages, 0);
        let run = world::run(&smaller, folder);
        run.is_ok_and(|run| run.metrics.get(Metric::Retractions) > 0)
    };
    pages.into_iter().find(is_tight)
}

/// Whether a user would see a finding of this code: an error line, a leak check that fails, a
/// request that never ends.
fn is_visible(code: Code) -> bool {
    let name = code.name();
    let kinds = ["refused.", "stall.", "capacity."];
    kinds.iter().any(|kind| name.starts_with(kind)) || matches!(name, "page.leaked" | "count.drift")
}

/// Adds the defects of a run that are not in the run `without` their cause.
fn add(codes: &mut BTreeMap<&'static str, Count>, run: &Run, without: Option<&Run>) {
    for (code, kept) in run.findings.iter() {
        let is_new = without.is_none_or(|without| without.findings.count(code) == 0);
        if code.severity() == Severity::Defect && is_new {
            let count = codes.entry(code.name()).or_default();
            count.found += kept.count;
            count.chances += run.chances.get(code.chance());
        }
    }
}

/// Where variants are tried.
struct Bench<'a> {
    scenario: &'a Scenario,
    folder: &'a Path,
    known: &'a KnownPolicies,
    seeds: u64,
    /// What the scenario as it is has shown.
    sizes: Sizes,
}

impl Bench<'_> {
    fn row(&self, planted: PlantedVariant) -> Row {
        let mut row = Row {
            switch: planted.switch,
            variant: planted.variant,
            beside: Vec::new(),
            answer: Answer::Harmless,
            runs: 0,
            loud: 0,
            silent: 0,
            codes: BTreeMap::new(),
            line: None,
            why: String::new(),
        };
        let is_valid = |scenario: &Scenario| validate(scenario, self.known).is_ok();
        match needs::of(self.scenario, planted, self.sizes, &is_valid) {
            Some(needed) => {
                let need = needed.first().cloned().unwrap_or_default();
                row.beside = need.labels();
                self.try_out(planted, &needed, &mut row);
                if row.answer == Answer::NotReached {
                    let more = needs::more(self.scenario, planted, self.sizes, &is_valid);
                    self.try_out(planted, &more, &mut row);
                }
                if row.answer == Answer::NotReached
                    && let Some(other) = self.hidden_by(planted, &need)
                {
                    row.answer = Answer::Cannot;
                    row.why = other;
                }
            }
            None if planted.can_be_objected_to(self.known) => {
                row.answer = Answer::Cannot;
                row.why = needs::forbidden(self.scenario, planted, self.sizes, &is_valid);
            }
            None => row.why = "sound on its own".to_owned(),
        }
        row
    }

    /// Runs a variant with each of several needs in turn, until something is wrong.
    fn try_out(&self, planted: PlantedVariant, needed: &[Need], row: &mut Row) {
        let mut has_acted = false;
        for need in needed {
            for seed in 0..self.seeds {
                let Some((run, without)) = self.runs(planted, need, seed) else { continue };
                has_acted |= run.digest != without.digest;
                row.runs += 1;
                self.judge(&run, &without, row);
            }
            if row.loud + row.silent > 0 {
                row.beside = need.labels();
                break;
            }
        }
        row.answer = match (row.silent, row.loud) {
            (1.., _) => Answer::Silent,
            (0, 1..) => Answer::Loud,
            (0, 0) if has_acted => Answer::Harmless,
            (0, 0) => Answer::NotReached,
        };
        row.why = match row.answer {
            Answer::Harmless => "acted, and nothing was wrong".to_owned(),
            Answer::NotReached => {
                let switch = SWITCHES.iter().find(|switch| switch.name == planted.switch);
                format!("acts when {}", switch.map_or("", |switch| switch.acts_when))
            }
            Answer::Silent | Answer::Loud | Answer::Cannot => String::new(),
        };
    }

    /// The switch of the scenario's profile that keeps a variant from acting: with it at its
    /// default the variant changes the run.
    fn hidden_by(&self, planted: PlantedVariant, need: &Need) -> Option<String> {
        let behaviours = self.scenario.behaviours();
        let unusual = behaviours.unusual();
        let hides = |&&(switch, _): &&(&'static str, &str)| {
            let mut open = self.scenario.clone();
            open.behaviour.reset(switch);
            let bench = Bench { scenario: &open, ..*self };
            let runs = bench.runs(planted, need, 0);
            switch != planted.switch
                && runs.is_some_and(|(run, without)| run.digest != without.digest)
        };
        let found = unusual.iter().find(hides);
        found.map(|(switch, variant)| format!("{switch} = \"{variant}\""))
    }

    fn runs(&self, planted: PlantedVariant, need: &Need, seed: u64) -> Option<(Run, Run)> {
        let mut with = self.scenario.clone();
        with.seed = with.seed.wrapping_add(seed);
        need.put(&mut with, seed);
        let without = with.clone();
        with.behaviour.set(planted.switch, planted.variant);
        let run = |scenario: &Scenario| world::run(scenario, self.folder).ok();
        Some((run(&with)?, run(&without)?))
    }

    fn judge(&self, run: &Run, without: &Run, row: &mut Row) {
        let mut new = BTreeMap::new();
        add(&mut new, run, Some(without));
        let codes = run.findings.iter().map(|(code, _)| code);
        let is_loud = codes.filter(|code| new.contains_key(code.name())).any(is_visible);
        row.loud += u64::from(is_loud);
        row.silent += u64::from(!is_loud && !new.is_empty());
        for (code, Count { found, chances }) in new {
            let count = row.codes.entry(code).or_default();
            count.found += found;
            count.chances += chances;
        }
        let is_refusal =
            |code: Code| row.codes.contains_key(code.name()) && code.name().starts_with("refused.");
        let line = run.findings.earliest(is_refusal).map(|Finding { found, .. }| found.clone());
        row.line = row.line.take().or(line);
    }
}

#[cfg(test)]
mod tests;
