//! `kvseam watch-release`: two recordings of the same calls, and what is answered differently.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::Value;

use super::input::{Lines, is_stdin};
use super::output::{Align, Format, FormatArgs, columns, print, print_json, row};
use super::{CliError, Exit};
use crate::conform::watch::{self, Change, Line, Watched};
use crate::report::number::count;

const EXAMPLES: &str = "\
Examples:
  kvseam watch-release old/plan.jsonl new/plan.jsonl
  record | kvseam watch-release old/radix.jsonl - --format json";

/// Says which recorded calls and scenarios two releases answer differently, by kind of difference.
///
/// Both files are recordings as `kvseam conform` takes them. Lines are paired by what they ask, the
/// first difference of a pair counts, and each kind is shown by its smallest example. Exit code 4
/// when anything differs.
#[derive(Args)]
#[command(before_help = EXAMPLES)]
pub(super) struct WatchReleaseArgs {
    /// JSON lines of one release; `-` is standard input.
    first: PathBuf,
    /// JSON lines of the other.
    second: PathBuf,
    #[command(flatten)]
    output: FormatArgs,
}

pub(super) fn run(args: &WatchReleaseArgs) -> Result<Exit, CliError> {
    if is_stdin(&args.first) && is_stdin(&args.second) {
        return Err(CliError::input("SECOND: must be another file than FIRST, got - twice"));
    }
    let watched = Watched::new(&lines(&args.first)?, lines(&args.second)?);
    if !watched.has_pairs() {
        let (first, second) = (args.first.display(), args.second.display());
        let message = format!("{second}: must ask something that {first} asks, got none of it");
        return Err(CliError::input(message));
    }
    match args.output.format {
        Format::Table => print(&text(&watched))?,
        Format::Json => print_json(&watched)?,
    }
    Ok(if watched.is_equal() { Exit::Clean } else { Exit::Unmet })
}

fn lines(file: &Path) -> Result<Vec<Line>, CliError> {
    let mut lines = Lines::open(file)?;
    let mut read = Vec::new();
    let mut number = 0;
    while let Some(line) = lines.next()? {
        number += 1;
        match watch::read(number, line) {
            Ok(line) => read.push(line),
            Err(error) => return Err(lines.error(&error)),
        }
    }
    if read.is_empty() { Err(lines.empty("line")) } else { Ok(read) }
}

fn text(watched: &Watched) -> String {
    let mut rows = vec![row(["format", "equal", "different", "only first", "only second"])];
    for (format, pairs) in &watched.formats {
        let counts = [pairs.equal, pairs.different, pairs.only_first, pairs.only_second];
        let counts = counts.into_iter().map(count);
        rows.push(std::iter::once(format.name().to_owned()).chain(counts).collect());
    }
    let mut aligns = vec![Align::Left];
    aligns.extend([Align::Right; 4]);
    let mut text = columns(&aligns, &rows);
    for (kind, change) in &watched.changes {
        text += &format!("\n{}", example(kind, change));
    }
    text
}

fn example(kind: &str, change: &Change) -> String {
    let smallest = &change.smallest;
    let place = format!(
        "line {} and line {}, {}",
        smallest.first_line, smallest.second_line, smallest.path
    );
    let rows = vec![
        vec!["  smallest".to_owned(), place],
        vec!["  asked".to_owned(), shown(&smallest.asked)],
        vec!["  first".to_owned(), shown(&smallest.first)],
        vec!["  second".to_owned(), shown(&smallest.second)],
    ];
    let lines = if change.lines == 1 { "line" } else { "lines" };
    let head = format!("{kind} ({} {lines})", count(change.lines));
    format!("{head}\n{}", columns(&[Align::Left, Align::Left], &rows))
}

/// A value on one line, cut where it is long.
fn shown(value: &Value) -> String {
    /// Characters: some lines of a terminal.
    const SHOWN_MAX: usize = 400;
    let text = value.to_string();
    match text.char_indices().nth(SHOWN_MAX) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text,
    }
}
