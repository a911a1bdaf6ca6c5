//! `kvseam minimize`: the smallest scenario with the same finding.

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::Args;

use super::output::{print, refuse_own_input, save, say};
use super::{CliError, Exit, input};
use crate::finding::{Code, Named};
use crate::limits;
use crate::minimize::{Minimized, Size};
use crate::report::number::count;

const EXAMPLES: &str = "\
Examples:
  kvseam minimize FILE                             for the defect that is found first
  kvseam minimize FILE --code placed.missing --out small.toml
  kvseam minimize sims/plans/demo-scenario.toml --set behaviour.source_offset=pages_of_chunk";

/// Prints the smallest scenario that has the same finding, with what it must show.
///
/// Requests go, then tokens, switches, faults and fields; times become round. Sizes and the number
/// of runs go to standard error.
#[derive(Args)]
#[command(before_help = EXAMPLES)]
pub(super) struct MinimizeArgs {
    /// The scenario; `-` is standard input.
    file: PathBuf,
    /// Changes one field first; list indices are part of the path. Can be repeated.
    #[arg(long, value_name = "PATH=VALUE")]
    set: Vec<String>,
    /// The finding that must stay, by default the defect that is found first. Can be repeated: then
    /// all must stay.
    #[arg(long, value_parser = code)]
    code: Vec<Code>,
    /// Writes to a file instead of standard output, never to the scenario's own; `-` is standard
    /// output.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Runs that may be used.
    #[arg(long, default_value_t = limits::MINIMIZE_RUNS, value_parser = runs)]
    runs: u64,
}

pub(super) fn runs(text: &str) -> Result<u64, String> {
    input::within(text, &limits::MINIMIZE_RUNS_ALLOWED)
}

fn code(text: &str) -> Result<Code, String> {
    Code::parse(text).ok_or_else(|| "must be one of `kvseam list codes`".to_owned())
}

pub(super) fn run(args: &MinimizeArgs) -> Result<Exit, CliError> {
    let source = input::scenario(&args.file, &args.set)?;
    if let Some(out) = &args.out {
        refuse_own_input(out, &args.file)?;
    }
    let goal: BTreeSet<Code> = args.code.iter().copied().collect();
    let small = source.minimize(&goal, args.runs)?;
    let text = small.scenario.to_toml();
    match &args.out {
        Some(path) => save(path, &text)?,
        None => print(&text)?,
    }
    say(summary(&small));
    Ok(Exit::Clean)
}

/// Sizes before and after, and how the search ended.
pub(super) fn summary(small: &Minimized) -> String {
    let ended = match small.is_fixed_point {
        true => "nothing smaller is left to try",
        false => "all runs used up, so it may get smaller",
    };
    format!(
        "{}\nbefore  {}\nafter   {}\ntried   {}, each of which was run; {} still had the finding, and \
         were run again\nkept    the smallest of them: {ended}",
        small.scenario.title,
        size(&small.before),
        size(&small.after),
        of(small.tried, "other scenario"),
        count(small.runs - small.tried)
    )
}

fn of(number: u64, noun: &str) -> String {
    format!("{} {noun}{}", count(number), if number == 1 { "" } else { "s" })
}

fn size(size: &Size) -> String {
    [
        of(size.requests, "request"),
        of(size.tokens, "token"),
        of(size.faults, "fault"),
        of(size.fields, "unusual field"),
    ]
    .join(", ")
}
