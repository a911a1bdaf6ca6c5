//! Replaying: scenario files against what they say must be seen.
//!
//! ```
//! use std::path::Path;
//!
//! use kvseam::replay::{Replayed, Verdict};
//!
//! let replayed = Replayed::of_file(Path::new("sims/hazards/h06-padded-up.toml"));
//! assert_eq!(replayed.verdict, Verdict::Pass, "{:?}", replayed.reasons);
//! ```

use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::scenario::expect::{Unmet, not_refused, unmet};
use crate::scenario::{Scenario, file, validate};
use crate::world::{self, Registry};

/// What became of one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Replayed {
    /// The file, as it was named.
    pub file: String,
    /// Whether it shows what it says.
    pub verdict: Verdict,
    /// Why it failed, or why it could not be run.
    pub reasons: Vec<String>,
}

/// Whether a file shows what it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It does.
    Pass,
    /// It shows something else, or is refused for another field than it says.
    Fail,
    /// It cannot be read or run, or says nothing.
    Error,
}

impl Replayed {
    /// Runs the scenario of a file; traces are looked for beside it.
    pub fn of_file(path: &Path) -> Replayed {
        let name = path.display().to_string();
        let folder = path.parent().unwrap_or(Path::new(""));
        let differences = match file::load(path) {
            Ok(scenario) => differences(&scenario, &name, folder),
            Err(error) => Err(error.to_string()),
        };
        Replayed::new(name, differences)
    }

    /// Runs the scenario of a text that is called `name`; traces are looked for in `folder`.
    pub fn of_text(text: &str, name: &str, folder: &Path) -> Replayed {
        let differences = match file::parse(text, name) {
            Ok(scenario) => differences(&scenario, name, folder),
            Err(error) => Err(error.to_string()),
        };
        Replayed::new(name.to_owned(), differences)
    }

    fn new(file: String, differences: Result<Vec<Unmet>, String>) -> Replayed {
        let (verdict, reasons) = match differences {
            Ok(unmet) if unmet.is_empty() => (Verdict::Pass, Vec::new()),
            Ok(unmet) => (Verdict::Fail, unmet.iter().map(Unmet::to_string).collect()),
            Err(error) => (Verdict::Error, vec![error]),
        };
        Replayed { file, verdict, reasons }
    }
}

/// What of the expectation of a scenario is not met, or why it cannot be run.
fn differences(scenario: &Scenario, name: &str, folder: &Path) -> Result<Vec<Unmet>, String> {
    let wrong = |error: &dyn Display| format!("{name}: {error}");
    let expect = scenario.expect.as_ref();
    let expect = expect.ok_or_else(|| wrong(&"expect: must be given, got nothing"))?;
    if let Some(field) = &expect.invalid {
        let verdict = validate::validate(scenario, &Registry::built_in().names());
        return Ok(not_refused(field, verdict).into_iter().collect());
    }
    let run = world::run(scenario, folder).map_err(|error| wrong(&error))?;
    Ok(unmet(expect, &run))
}

/// The scenario files of a folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Files {
    /// Those with an `[expect]`. One that cannot be read is among them, so that it is not passed
    /// over.
    pub expecting: Vec<PathBuf>,
    /// The others, plans among them.
    pub others: Vec<PathBuf>,
}

impl Files {
    /// Every `*.toml` in `folder` and below it, in the order of their names.
    ///
    /// # Errors
    /// Names the folder that cannot be read.
    pub fn below(folder: &Path) -> Result<Files, (PathBuf, io::Error)> {
        let mut found = Vec::new();
        collect(folder, &mut found)?;
        let (expecting, others) = found.into_iter().partition(|file| may_expect(file));
        Ok(Files { expecting, others })
    }
}

/// The file itself, or every `*.toml` in the folder and below it, in the order of their names.
fn collect(path: &Path, files: &mut Vec<PathBuf>) -> Result<(), (PathBuf, io::Error)> {
    if !path.is_dir() {
        files.push(path.to_owned());
        return Ok(());
    }
    let fail = |error| (path.to_owned(), error);
    let entries = std::fs::read_dir(path).map_err(fail)?;
    let mut inner = entries
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<Vec<PathBuf>, io::Error>>()
        .map_err(fail)?;
    inner.sort();
    for path in inner {
        if path.is_dir() || path.extension().is_some_and(|extension| extension == "toml") {
            collect(&path, files)?;
        }
    }
    Ok(())
}

/// Whether the file has an `[expect]`. One that cannot be read may, so that it is not passed over.
fn may_expect(path: &Path) -> bool {
    let table = std::fs::read_to_string(path).ok().and_then(|text| file::table(&text, "").ok());
    // A plan's `expect` is a list.
    table.is_none_or(|table| table.get("expect").is_some_and(toml::Value::is_table))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "version = 1\ntitle = \"x\"\nlayout = { page_size = 2, ranks = 2 }\n\
        prefill.pages = 16\ndecode.pages = 16\ndecode.reserved_tokens = 0\n\
        workload.requests = [{ prompt = [{ content = 1, len = 7 }], output = 2 }]\n";

    fn replayed(more: &str) -> (Verdict, String) {
        let Replayed { verdict, reasons, .. } =
            Replayed::of_text(&format!("{TEXT}{more}"), "text", Path::new(""));
        (verdict, reasons.join("; "))
    }

    #[test]
    fn a_text_passes_fails_or_cannot_be_checked() {
        let said = |verdict, text: &str| (verdict, text.to_owned());
        assert_eq!(replayed("expect.findings = {}\n"), said(Verdict::Pass, ""));
        assert_eq!(
            replayed("expect.findings = { \"read.freed\" = 1 }\n"),
            said(Verdict::Fail, "read.freed: expected 1, found 0")
        );
        assert_eq!(replayed(""), said(Verdict::Error, "text: expect: must be given, got nothing"));
        assert_eq!(replayed("expect.invalid = \"decode.pages\"\n").0, Verdict::Fail);
        let zero = TEXT.replace("decode.pages = 16", "decode.pages = 0");
        let text = format!("{zero}expect.invalid = \"decode.pages\"\n");
        assert_eq!(Replayed::of_text(&text, "text", Path::new("")).verdict, Verdict::Pass);
        let text = format!("{zero}expect.findings = {{}}\n");
        let Replayed { verdict, reasons, .. } = Replayed::of_text(&text, "text", Path::new(""));
        assert_eq!(verdict, Verdict::Error);
        assert!(reasons[0].starts_with("text: decode.pages: must be 1 to "), "{reasons:?}");
    }

    #[test]
    fn a_folder_s_files_are_told_apart_by_their_expectation() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("sims");
        let files = Files::below(&root).unwrap();
        assert!(files.expecting.iter().any(|file| file.ends_with("hazards/h06-padded-up.toml")));
        assert!(files.others.iter().any(|file| file.ends_with("plans/demo.toml")));
        assert!(files.expecting.is_sorted() && files.others.is_sorted());
    }
}
