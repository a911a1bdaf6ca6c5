//! `kvseam sweep`: a grid of runs into a ledger.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use super::input::within;
use super::interrupt::stop_on_interrupt;
use super::output::{Align, Format, FormatArgs, columns, print, print_json, row};
use super::{CliError, Exit};
use crate::finding::{Mark, Named};
use crate::limits;
use crate::report::number::count;
use crate::scenario::Scenario;
use crate::scenario::validate::validate;
use crate::sweep::execute::{Outcome, Progress, SweepError, execute};
use crate::sweep::ledger::Ledger;
use crate::sweep::plan::{CellId, Plan};
use crate::world::{self, Registry};

const EXAMPLES: &str = "\
Examples:
  kvseam sweep sims/plans/demo.toml
  kvseam sweep PLAN --out runs/night.sqlite --threads 4";

/// Runs every cell of a plan for every seed, and keeps what each run leaves in a ledger.
///
/// A sweep that was stopped goes on where it ended; Ctrl-C keeps what is finished (exit code 130).
/// Findings are what a sweep is for and do not make it fail: it ends with 0 when every run is in
/// the ledger, with 4 when no run reached a mark that the plan asks for, with 1 when a run could
/// not be run.
#[derive(Args)]
#[command(before_help = EXAMPLES)]
pub(super) struct SweepArgs {
    /// The plan: a scenario, axes and seeds.
    plan: PathBuf,
    /// The ledger; by default the plan's name with `.ledger.sqlite`, in the current folder.
    #[arg(long, value_name = "LEDGER")]
    out: Option<PathBuf>,
    /// Threads, 1 to 1024; by default one for every core.
    #[arg(long, value_parser = threads)]
    threads: Option<usize>,
    #[command(flatten)]
    output: FormatArgs,
}

/// How the sweep stands.
#[derive(Serialize)]
struct Answer {
    ledger: String,
    title: String,
    cells: u64,
    cells_impossible: u64,
    runs: u64,
    runs_done: u64,
    runs_with_defects: u64,
    runs_failed: u64,
    marks_missing: Vec<Mark>,
}

fn threads(text: &str) -> Result<usize, String> {
    let threads = within(text, &limits::THREADS)?;
    Ok(usize::try_from(threads).expect("limits::THREADS"))
}

pub(super) fn run(args: &SweepArgs) -> Result<Exit, CliError> {
    let plan = Plan::read(&args.plan).map_err(CliError::input)?;
    let path = args.out.clone().unwrap_or_else(|| default_ledger(&args.plan));
    let stop = stop_on_interrupt()?;
    let bar = progress_bar();
    let (_, outcome) = fill(&plan, &path, args.threads.unwrap_or(0), &stop, |progress| {
        bar.set_length(progress.total);
        bar.set_position(progress.done);
    })?;
    bar.finish_and_clear();
    let answer = Answer {
        ledger: path.display().to_string(),
        title: plan.title.clone(),
        cells: plan.cells(),
        cells_impossible: outcome.impossible.len() as u64,
        runs: outcome.progress.total,
        runs_done: outcome.progress.done,
        runs_with_defects: outcome.defects,
        runs_failed: outcome.errors,
        marks_missing: outcome.marks_missing.clone(),
    };
    match args.output.format {
        Format::Table => print(&answer.text())?,
        Format::Json => print_json(&answer)?,
    }
    Ok(exit(&outcome))
}

/// Does the runs that the ledger at `path` lacks, on `threads` threads (0: all cores).
pub(super) fn fill(
    plan: &Plan,
    path: &Path,
    threads: usize,
    stop: &AtomicBool,
    report: impl FnMut(Progress),
) -> Result<(Ledger, Outcome), CliError> {
    let known = Registry::default().names();
    let check = |scenario: &Scenario| validate(scenario, &known).map_err(|why| why.to_string());
    refuse_impossible(plan, check)?;
    let mut ledger = Ledger::start(path, plan, check).map_err(CliError::input)?;
    let impossible = ledger.impossible().map_err(CliError::input)?;
    if !impossible.is_empty() {
        let cells = impossible.iter().map(|(&cell, reason)| (cell, reason.clone()));
        eprintln!("{}", listed(plan, cells, plan.cells()));
    }
    let folder = plan.sources.base_path.parent().unwrap_or(Path::new("")).to_owned();
    let one = |scenario: &Scenario| world::run(scenario, &folder).map_err(|why| why.to_string());
    let outcome =
        execute(&mut ledger, threads, stop, one, report).map_err(|error| match error {
            SweepError::Ledger(_) => CliError::input(error),
            SweepError::Threads(_) => CliError::failure(error),
        })?;
    Ok((ledger, outcome))
}

/// Refuses a plan without a cell that can be run, before a ledger is made for it.
fn refuse_impossible(
    plan: &Plan,
    check: impl Fn(&Scenario) -> Result<(), String>,
) -> Result<(), CliError> {
    let reason = |cell| plan.scenario(cell).and_then(|scenario| check(&scenario)).err();
    let mut cells = (0..plan.cells()).map(CellId);
    if cells.any(|cell| reason(cell).is_none()) {
        return Ok(());
    }
    let cells = (0..plan.cells()).map(CellId);
    let impossible = cells.filter_map(|cell| Some((cell, reason(cell)?)));
    let file = plan.sources.plan_path.display();
    Err(CliError::Input(format!("{file}: {}", listed(plan, impossible, plan.cells()))))
}

/// How many cells are impossible, and the reasons of the first.
fn listed(plan: &Plan, impossible: impl Iterator<Item = (CellId, String)>, of: u64) -> String {
    /// Cells whose reasons are printed; the ledger has them all.
    const SHOWN: u64 = 5;
    let mut number = 0;
    let mut lines = String::new();
    for (cell, reason) in impossible {
        number += 1;
        if number <= SHOWN {
            lines += &format!("\n  {}: {reason}", plan.describe(cell));
        }
    }
    if number > SHOWN {
        lines += &format!("\n  and {} more", count(number - SHOWN));
    }
    format!("{} of {} cells impossible:{lines}", count(number), count(of))
}

fn exit(outcome: &Outcome) -> Exit {
    if outcome.is_interrupted() {
        Exit::Interrupted
    } else if outcome.errors > 0 {
        Exit::Failed
    } else if !outcome.marks_missing.is_empty() {
        Exit::Unmet
    } else {
        Exit::Clean
    }
}

/// `plans/demo.toml` is kept in `demo.ledger.sqlite`.
fn default_ledger(plan: &Path) -> PathBuf {
    let mut name = plan.file_stem().unwrap_or_default().to_owned();
    name.push(".ledger.sqlite");
    PathBuf::from(name)
}

/// On standard error, and only where that is a terminal.
fn progress_bar() -> ProgressBar {
    let template = "{bar:30} {human_pos} of {human_len} runs, {per_sec}, {eta} left";
    let style = ProgressStyle::with_template(template).expect("the template is a constant");
    ProgressBar::new(0).with_style(style)
}

impl Answer {
    fn text(&self) -> String {
        let mut rows = vec![
            vec!["ledger".to_owned(), self.ledger.clone()],
            vec![
                "cells".to_owned(),
                format!("{}, {} impossible", count(self.cells), count(self.cells_impossible)),
            ],
            vec![
                "runs".to_owned(),
                format!(
                    "{} of {}: {} with a defect, {} failed",
                    count(self.runs_done),
                    count(self.runs),
                    count(self.runs_with_defects),
                    count(self.runs_failed)
                ),
            ],
        ];
        if !self.marks_missing.is_empty() {
            let names: Vec<&str> = self.marks_missing.iter().map(|mark| mark.name()).collect();
            rows.push(vec!["marks never reached".to_owned(), names.join(", ")]);
        }
        if self.runs_done < self.runs {
            rows.push(row(["interrupted", "the same command does the rest"]));
        }
        format!("{}\n{}", self.title, columns(&[Align::Left, Align::Left], &rows))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ledger_is_named_after_its_plan_and_lies_in_the_current_folder() {
        let ledger = default_ledger(Path::new("sims/plans/demo.toml"));
        assert_eq!(ledger, Path::new("demo.ledger.sqlite"));
    }
}
