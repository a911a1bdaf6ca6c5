//! `kvseam conform`: recorded answers of a real engine against the model.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use serde_json::Value;

use super::input::Lines;
use super::output::{Align, Format, FormatArgs, columns, print, print_json, row};
use super::{CliError, Exit};
use crate::conform::{self, LineError, Mismatch};
use crate::report::number::count;

/// Differences that are shown; all are counted.
const SHOWN_MAX: usize = 10;

const EXAMPLES: &str = "\
Examples:
  kvseam conform tests/vectors/plan.jsonl
  record | kvseam conform - --format json";

/// Replays recorded answers of a real engine, one a line, against the model.
///
/// The lines are planner calls, allocators or radix caches, told apart by their keys. Exit code 4
/// when an answer differs.
#[derive(Args)]
#[command(before_help = EXAMPLES)]
pub(super) struct ConformArgs {
    /// JSON lines; `-` is standard input.
    file: PathBuf,
    #[command(flatten)]
    output: FormatArgs,
}

#[derive(Default, Serialize)]
struct Answer {
    formats: BTreeMap<&'static str, Lined>,
    differences: Vec<Difference>,
}

/// Lines of one format.
#[derive(Default, Serialize)]
struct Lined {
    passed: u64,
    failed: u64,
}

/// The first difference of one line.
#[derive(Serialize)]
struct Difference {
    line: u64,
    path: String,
    recorded: Option<Value>,
    model: Option<Value>,
    #[serde(skip)]
    text: String,
}

pub(super) fn run(args: &ConformArgs) -> Result<Exit, CliError> {
    let mut lines = Lines::open(&args.file)?;
    let mut answer = Answer::default();
    while let Some(line) = lines.next()? {
        let checked = conform::check_line(line);
        let format = conform::recognise(line);
        match (checked, format) {
            (Ok(format), _) => answer.lined(format).passed += 1,
            (Err(LineError::Mismatch(mismatch)), Ok(format)) => {
                answer.lined(format).failed += 1;
                answer.differs(lines.number, mismatch);
            }
            (Err(error), _) => return Err(lines.error(&error)),
        }
    }
    if answer.formats.is_empty() {
        return Err(lines.empty("line"));
    }
    match args.output.format {
        Format::Table => print(&answer.text())?,
        Format::Json => print_json(&answer)?,
    }
    let is_met = answer.formats.values().all(|lined| lined.failed == 0);
    Ok(if is_met { Exit::Clean } else { Exit::Unmet })
}

impl Answer {
    fn lined(&mut self, format: conform::Format) -> &mut Lined {
        let name = match format {
            conform::Format::Plan => "plan",
            conform::Format::Alloc => "alloc",
            conform::Format::Radix => "radix",
        };
        self.formats.entry(name).or_default()
    }

    fn differs(&mut self, line: u64, mismatch: Mismatch) {
        if self.differences.len() < SHOWN_MAX {
            let text = mismatch.to_string();
            let Mismatch { path, recorded, model } = mismatch;
            self.differences.push(Difference { line, path, recorded, model, text });
        }
    }

    fn text(&self) -> String {
        let mut rows = vec![row(["format", "passed", "failed"])];
        for (name, lined) in &self.formats {
            rows.push(vec![(*name).to_owned(), count(lined.passed), count(lined.failed)]);
        }
        let mut text = columns(&[Align::Left, Align::Right, Align::Right], &rows);
        if !self.differences.is_empty() {
            text += "\nfirst difference of each line that failed";
            let failed: u64 = self.formats.values().map(|lined| lined.failed).sum();
            let shown = self.differences.len() as u64;
            text += &match failed - shown {
                0 => ":\n".to_owned(),
                more => format!(" ({} more failed):\n", count(more)),
            };
        }
        for Difference { line, text: said, .. } in &self.differences {
            text += &format!("line {line}: {said}\n");
        }
        text
    }
}
