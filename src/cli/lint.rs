//! `kvseam lint`: whether a scenario is sound, and why not.

use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;

use super::input::is_stdin;
use super::output::{Align, Format, FormatArgs, beside, columns, print, print_json, row, save};
use super::{CliError, Exit, input, sarif};
use crate::scenario::lint::{Objection, lint};

const EXAMPLES: &str = "\
Examples:
  kvseam lint sims/scenarios/padded-prefix.toml
  kvseam lint FILE --set profile=sglang-0.5.23";

/// Says whether a scenario is sound, with the reason for each objection.
///
/// Sound is a claim: no run of it has a defect. Exit code 0 when sound, 3 with an objection.
#[derive(Args)]
#[command(before_help = EXAMPLES)]
pub(super) struct LintArgs {
    /// The scenario; `-` is standard input.
    file: PathBuf,
    /// Changes one field; list indices are part of the path. Can be repeated.
    #[arg(long, value_name = "PATH=VALUE")]
    set: Vec<String>,
    /// Also writes the objections to this file as SARIF 2.1.0.
    #[arg(long, value_name = "FILE", value_parser = beside)]
    sarif: Option<PathBuf>,
    #[command(flatten)]
    output: FormatArgs,
}

#[derive(Serialize)]
struct Answer<'a> {
    title: &'a str,
    sound: bool,
    objections: Vec<ObjectionJson>,
}

#[derive(Serialize)]
struct ObjectionJson {
    switch: &'static str,
    variant: &'static str,
    reason: &'static str,
}

pub(super) fn run(args: &LintArgs) -> Result<Exit, CliError> {
    let source = input::scenario(&args.file, &args.set)?;
    source.validate()?;
    let objections = lint(&source.scenario);
    if let Some(file) = &args.sarif {
        save(file, &as_sarif(&args.file, &objections))?;
    }
    match args.output.format {
        Format::Table => print(&text(&source.scenario.title, &objections))?,
        Format::Json => print_json(&Answer {
            title: &source.scenario.title,
            sound: objections.is_empty(),
            objections: objections
                .iter()
                .map(|&Objection { switch, variant, reason }| ObjectionJson {
                    switch,
                    variant,
                    reason,
                })
                .collect(),
        })?,
    }
    Ok(if objections.is_empty() { Exit::Clean } else { Exit::Defects })
}

fn as_sarif(file: &Path, objections: &[Objection]) -> String {
    let rule = |objection: &Objection| format!("{}={}", objection.switch, objection.variant);
    let rules = objections.iter().map(|one| (rule(one), one.reason.to_owned())).collect();
    let results = objections.iter().map(|objection| sarif::Result {
        rule: rule(objection),
        is_error: false,
        message: format!("{}: {}", rule(objection), objection.reason),
        file: (!is_stdin(file)).then(|| file.display().to_string()),
    });
    sarif::log(&rules, &results.collect::<Vec<_>>())
}

fn text(title: &str, objections: &[Objection]) -> String {
    if objections.is_empty() {
        return format!(
            "{title}\nsound as modelled, for this scenario: no combination of its switches can lead to a \
             defect"
        );
    }
    let mut rows = vec![row(["switch", "variant", "reason"])];
    rows.extend(
        objections
            .iter()
            .map(|objection| row([objection.switch, objection.variant, objection.reason])),
    );
    format!("{title}\nnot sound:\n\n{}", columns(&[Align::Left; 3], &rows))
}
