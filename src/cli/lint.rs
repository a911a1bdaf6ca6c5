//! `kvseam lint`: whether a scenario is sound, and why not.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use super::output::{Align, Format, FormatArgs, columns, print, print_json, row};
use super::{CliError, Exit, input};
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
