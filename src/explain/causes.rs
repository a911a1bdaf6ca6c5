//! Which behaviours lead to which codes and error lines, and how often: counts of a fixed sweep,
//! not opinions.
//!
//! The table is `causes.toml`. [`learn`] makes it: it plants every variant of every switch alone in
//! scenarios that are sound without it, drawn from fixed seeds, and counts the runs with each code
//! and each shape of their first error line. New switches and hazards get in by themselves:
//!
//! ```sh
//! kvseam explain --learn 2000 --out src/explain/causes.toml
//! ```

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use super::known::KnownSizes;
use super::line::Line;
use super::shape::Shape;
use crate::behaviour::{Overrides, SWITCHES, SwitchInfo, VariantInfo};
use crate::finding::{Code, Named, Severity};
use crate::layout::Layout;
use crate::rng::Stream;
use crate::scenario::Scenario;
use crate::scenario::generate::{Aim, generate};
use crate::scenario::lint::{Objection, lint};
use crate::witness::{Calls, KeptRefusal};
use crate::world::{Registry, Simulation};

/// The committed table.
const TABLE: &str = include_str!("causes.toml");
static COMMITTED: LazyLock<Table> =
    LazyLock::new(|| toml::from_str(TABLE).expect("the committed table is one"));

/// The counts of one sweep.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// Scenarios in which each variant was planted.
    pub scenarios: u64,
    /// One entry for every variant but the defaults.
    pub variant: Vec<Planted>,
}

/// How the scenarios with one variant ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Planted {
    /// The switch.
    pub switch: String,
    /// Its variant.
    pub variant: String,
    /// Runs: scenarios that are valid with it.
    pub runs: u64,
    /// Runs with at least one finding of each defect.
    pub codes: BTreeMap<Code, u64>,
    /// The hazard file to run for each code, and under `any` for the others.
    pub examples: BTreeMap<String, String>,
    /// First error lines by their text and shape.
    pub lines: Vec<Shaped>,
}

/// Runs whose first error line is alike.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shaped {
    /// The code of the text.
    pub code: Code,
    /// Runs.
    pub runs: u64,
    /// The shape of the line.
    pub shape: Shape,
}

/// A behaviour that leads to a text or a code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Cause {
    /// The switch.
    pub switch: &'static str,
    /// Its variant.
    pub variant: &'static str,
    /// Runs with this text and this shape.
    pub exact: u64,
    /// Runs with this text.
    pub alike: u64,
    /// All runs with this variant.
    pub runs: u64,
    /// A scenario file with this variant.
    pub example: Option<&'static str>,
    /// Whether the code is among what the file shows.
    pub example_has_code: bool,
}

/// The behaviours that lead to this text, those first that most often do with this shape.
pub fn of_line(code: Code, shape: &Shape) -> Vec<Cause> {
    ranked(code, |planted| {
        let lines = || planted.lines.iter().filter(|line| line.code == code);
        let exact = lines().filter(|line| shape.fits(&line.shape)).map(|line| line.runs).sum();
        (exact, lines().map(|line| line.runs).sum())
    })
}

/// The behaviours that lead to a code, those first that most often do.
pub fn of_code(code: Code) -> Vec<Cause> {
    ranked(code, |planted| {
        let runs = planted.codes.get(&code).copied().unwrap_or(0);
        (runs, runs)
    })
}

/// These switches and variants, those first that most often lead to any of the codes; a variant
/// that was not learnt is left out.
pub fn of_behaviours(behaviours: &[(&str, &str)], codes: &[Code]) -> Vec<Cause> {
    let runs = |planted: &Planted| {
        let runs = codes.iter().filter_map(|code| planted.codes.get(code)).max();
        runs.copied().unwrap_or(0)
    };
    let is_one = |planted: &Planted| {
        behaviours.contains(&(planted.switch.as_str(), planted.variant.as_str()))
    };
    let code = codes.first().copied();
    let planted = COMMITTED.variant.iter().filter(|planted| is_one(planted));
    sorted(planted.map(|planted| cause(planted, code, (runs(planted), runs(planted)))).collect())
}

fn ranked(code: Code, counts: impl Fn(&Planted) -> (u64, u64)) -> Vec<Cause> {
    let causes =
        COMMITTED.variant.iter().map(|planted| cause(planted, Some(code), counts(planted)));
    sorted(causes.filter(|cause| cause.alike > 0).collect())
}

/// A variant as a cause of a code, with how many runs have the shape and how many the text.
fn cause(planted: &'static Planted, code: Option<Code>, (exact, alike): (u64, u64)) -> Cause {
    let examples = &planted.examples;
    let with_code = code.and_then(|code| examples.get(code.name()));
    Cause {
        switch: &planted.switch,
        variant: &planted.variant,
        exact,
        alike,
        runs: planted.runs,
        example: with_code.or(examples.get(ANY)).map(String::as_str),
        example_has_code: with_code.is_some(),
    }
}

/// Those first that have most runs.
fn sorted(mut causes: Vec<Cause>) -> Vec<Cause> {
    causes.sort_by_key(|cause| {
        (std::cmp::Reverse((cause.exact, cause.alike)), cause.switch, cause.variant)
    });
    causes
}

/// The example for codes that have none of their own.
const ANY: &str = "any";

/// Every variant but the defaults, in the order of the catalogue.
pub fn variants() -> Vec<(&'static SwitchInfo, &'static VariantInfo)> {
    let others = |switch: &'static SwitchInfo| {
        switch.variants.iter().skip(1).map(move |variant| (switch, variant))
    };
    SWITCHES.iter().flat_map(others).collect()
}

/// Plants one variant in `scenarios` scenarios that are sound without it. `hazards` are files that
/// may be named as examples, with what is in them.
pub fn learn(
    (switch, variant): (&'static SwitchInfo, &'static VariantInfo),
    scenarios: u64,
    hazards: &[(String, Scenario)],
) -> Planted {
    let known = Registry::built_in().names();
    let mut planted = Planted {
        switch: switch.name.to_owned(),
        variant: variant.name.to_owned(),
        runs: 0,
        codes: BTreeMap::new(),
        examples: examples(switch.name, variant.name, hazards),
        lines: Vec::new(),
    };
    let mut lines: BTreeMap<(Code, Shape), u64> = BTreeMap::new();
    for seed in 0..scenarios {
        let mut scenario = generate(&mut Stream::new(seed, "causes"), &known, Aim::Sound);
        scenario.behaviour = plant(scenario.behaviour, switch.name, variant.name);
        let layout = &scenario.layout;
        let layout = Layout::striped(layout.page_size, layout.ranks).expect("it is in bounds");
        let mut calls = Calls::new(layout);
        // Some variants forbid what was drawn, such as a buffer that is no whole number of pages.
        let Ok(run) = Simulation::new(&scenario).observer(&mut calls).run() else { continue };
        planted.runs += 1;
        for (code, _) in run.findings.iter() {
            if code.severity() == Severity::Defect {
                *planted.codes.entry(code).or_default() += 1;
            }
        }
        if let Some(key) = first_line(&calls) {
            *lines.entry(key).or_default() += 1;
        }
    }
    let shaped = lines.into_iter().map(|((code, shape), runs)| Shaped { code, runs, shape });
    planted.lines = shaped.collect();
    planted
}

/// These overrides with one variant more.
fn plant(behaviour: Overrides, switch: &str, variant: &str) -> Overrides {
    let mut table = toml::Table::try_from(behaviour).expect("overrides are a table");
    table.insert(switch.to_owned(), variant.into());
    table.try_into().expect("the catalogue has the variant")
}

/// Text and shape of the planner's first refusal.
fn first_line(calls: &Calls) -> Option<(Code, Shape)> {
    let refusal = calls.refusals.iter().find(|refusal| refusal.call.is_some())?;
    let line = Line::read(&refusal.said).ok()?;
    Some((line.code(), line.shape(&facts(calls, refusal)?)))
}

/// What its user knows of a refused request.
pub fn facts(calls: &Calls, refusal: &KeptRefusal) -> Option<KnownSizes> {
    let piece = calls.calls[refusal.call?].piece;
    Some(KnownSizes {
        page_size: Some(calls.layout().page().get()),
        ranks: Some(calls.layout().ranks()),
        prompt: Some(refusal.prompt.0),
        prefix: Some(piece.decode_prefix_len.0),
    })
}

/// For every code the hazard file with this variant that expects it and has the fewest other
/// objections.
fn examples(
    switch: &str,
    variant: &str,
    hazards: &[(String, Scenario)],
) -> BTreeMap<String, String> {
    let mut best: BTreeMap<String, (usize, &String)> = BTreeMap::new();
    for (file, scenario) in hazards {
        let objections = lint(scenario);
        let is_it =
            |objection: &Objection| objection.switch == switch && objection.variant == variant;
        let Some(expect) = scenario.expect.as_ref().filter(|_| objections.iter().any(is_it)) else {
            continue;
        };
        let codes = expect.findings.keys().map(|code| code.name());
        for code in codes.chain([ANY]) {
            let candidate = (objections.len(), file);
            let known = best.entry(code.to_owned()).or_insert(candidate);
            *known = candidate.min(*known);
        }
    }
    best.into_iter().map(|(code, (_, file))| (code, file.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_every_variant_of_the_catalogue() {
        let listed: Vec<(&str, &str)> = COMMITTED
            .variant
            .iter()
            .map(|planted| (planted.switch.as_str(), planted.variant.as_str()))
            .collect();
        let known: Vec<(&str, &str)> =
            variants().iter().map(|(switch, variant)| (switch.name, variant.name)).collect();
        assert_eq!(listed, known, "run: kvseam explain --learn 2000 --out src/explain/causes.toml");
    }

    #[test]
    fn counts_do_not_exceed_the_runs_and_examples_exist() {
        for planted in &COMMITTED.variant {
            assert!(planted.runs <= COMMITTED.scenarios);
            let lines: u64 = planted.lines.iter().map(|line| line.runs).sum();
            assert!(planted.codes.values().all(|&runs| runs <= planted.runs));
            assert!(lines <= planted.runs);
            for file in planted.examples.values() {
                assert!(
                    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(file).is_file(),
                    "{file}"
                );
            }
        }
    }

    #[test]
    fn learning_is_repeatable_and_counts_what_was_planted() {
        let floor = variants()
            .into_iter()
            .find(|(switch, variant)| {
                (switch.name, variant.name) == ("decode_reservation", "floor")
            })
            .unwrap();
        let planted = learn(floor, 40, &[]);
        assert_eq!(planted, learn(floor, 40, &[]));
        assert!(planted.codes[&Code::ReserveShort] > 0);
        // Rounded down is short by one page at most, and by none where the prompt fills its pages;
        // a retracted request that comes back needs pages beyond its prompt's, too.
        let seen = |features: &str| {
            let shape: Shape = toml::from_str(features).unwrap();
            planted.lines.iter().any(|line| shape.fits(&line.shape))
        };
        assert!(seen("list = \"one_short\""));
        assert!(seen("tail = \"partial\"\nneed = \"within\""));
        assert!(!seen("tail = \"full\"\nneed = \"within\""));
    }
}
