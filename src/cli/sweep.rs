//! `kvseam sweep`: a grid of runs into a ledger.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};

use super::input::{self, STDIN, is_stdin, within};
use super::interrupt::stop_on_interrupt;
use super::output::{FormatArgs, beside, say};
use super::standing::Standing;
use super::{CliError, Exit, dry_run};
use crate::limits;
use crate::report::number::count;
use crate::sweep::cell::CellId;
use crate::sweep::execute::{Progress, SweepEnd, SweepError, execute};
use crate::sweep::ledger::Ledger;
use crate::sweep::plan::Plan;
use crate::sweep::runner::{Runner, Simulator};
use crate::sweep::shard::Shard;
use crate::world::Registry;

const EXAMPLES: &str = "\
Examples:
  kvseam sweep sims/plans/demo.toml
  kvseam sweep sims/plans/demo.toml --dry-run
  kvseam sweep PLAN --out runs/night.sqlite --threads 4
  kvseam sweep PLAN --shard 2/4";

/// Runs every cell of a plan for every seed, and keeps what each run leaves in a ledger.
///
/// A sweep that was stopped goes on where it ended; Ctrl-C and SIGTERM keep what is finished (exit
/// code 130). Findings are what a sweep is for and do not make it fail: it ends with 0 when every
/// run is in the ledger or the plan's time is up, with 4 when no run reached a mark that the plan
/// asks for, or a rate is beyond the bounds that it expects, with 1 when a run could not be run.
#[derive(Args)]
#[command(before_help = EXAMPLES)]
pub(super) struct SweepArgs {
    /// The plan: a scenario, axes and seeds; `-` is standard input, with the base found from the
    /// current folder.
    plan: PathBuf,
    /// The ledger; by default the plan's name with `.ledger.sqlite`, or `.KofN.ledger.sqlite` for a
    /// shard, in the current folder.
    #[arg(long, value_name = "LEDGER", value_parser = beside)]
    out: Option<PathBuf>,
    /// Threads, 1 to 1024; by default one for every core.
    #[arg(long, value_parser = threads)]
    threads: Option<usize>,
    /// Only the K-th of N equal parts, for `merge`; by default what the variables of a Slurm job
    /// array (SLURM_ARRAY_TASK_ID) or of a Kubernetes indexed job (JOB_COMPLETION_INDEX, with the
    /// number of shards in KVSEAM_SHARDS) say, and everything where there are none.
    #[arg(long, value_name = "K/N")]
    shard: Option<Shard>,
    /// Only prints the cells and the time that their runs will take, measured on a few.
    #[arg(long)]
    dry_run: bool,
    /// Says a second time that a plan of more than ten million runs is meant.
    #[arg(long)]
    over_ten_million: bool,
    #[command(flatten)]
    output: FormatArgs,
}

fn threads(text: &str) -> Result<usize, String> {
    let threads = within(text, &limits::THREADS)?;
    Ok(usize::try_from(threads).expect("limits::THREADS"))
}

pub(super) fn run(args: &SweepArgs) -> Result<Exit, CliError> {
    let plan = plan(args)?;
    let shard = shard(args)?;
    let threads = args.threads.unwrap_or(0);
    if args.dry_run {
        let simulator = Simulator::new(&plan, Registry::built_in());
        refuse_impossible(&plan, &simulator)?;
        return dry_run::run(&plan, shard, threads, &simulator, args.output.format);
    }
    let path = ledger_path(args, shard)?;
    let stop = stop_on_interrupt()?;
    let bar = progress_bar();
    let (ledger, outcome) = fill(&plan, &path, shard, threads, &stop, |progress| {
        bar.set_length(progress.total);
        bar.set_position(progress.done);
    })?;
    bar.finish_and_clear();
    let mut standing = Standing::new(&path, &ledger, outcome.progress, &outcome.judged)?;
    standing.is_interrupted = outcome.is_interrupted;
    standing.print(args.output.format)?;
    Ok(standing.exit())
}

fn plan(args: &SweepArgs) -> Result<Plan, CliError> {
    let plan = if is_stdin(&args.plan) {
        Plan::with_base(input::text(&args.plan)?, Path::new(STDIN))
    } else {
        Plan::read(&args.plan)
    };
    let plan = plan.map_err(CliError::input)?;
    if !args.over_ten_million {
        plan.refuse_large().map_err(|error| {
            CliError::Input(format!("{error}; if that is meant, say so with --over-ten-million"))
        })?;
    }
    Ok(plan)
}

/// The shard asked for, or the one that a cluster gives to this process.
fn shard(args: &SweepArgs) -> Result<Shard, CliError> {
    if let Some(shard) = args.shard {
        return Ok(shard);
    }
    // A variable that is not UTF-8 is an error, as one that is no number is; it does not count as
    // absent.
    let variable = |name: &str| Some(std::env::var_os(name)?.to_string_lossy().into_owned());
    let of_job = Shard::of_job(variable).map_err(CliError::Input)?;
    let Some((shard, variable)) = of_job else { return Ok(Shard::WHOLE) };
    say(format_args!("shard {shard}, as {variable} says"));
    Ok(shard)
}

fn ledger_path(args: &SweepArgs, shard: Shard) -> Result<PathBuf, CliError> {
    match &args.out {
        Some(path) => Ok(path.clone()),
        None if is_stdin(&args.plan) => Err(CliError::Input(
            "--out: must be given with a plan on standard input, got nothing".to_owned(),
        )),
        None => Ok(default_ledger(&args.plan, shard)),
    }
}

/// Does the runs of a shard that the ledger at `path` lacks, on `threads` threads (0: all cores).
pub(super) fn fill(
    plan: &Plan,
    path: &Path,
    shard: Shard,
    threads: usize,
    stop: &AtomicBool,
    report: impl FnMut(Progress) + Send,
) -> Result<(Ledger, SweepEnd), CliError> {
    let simulator = Simulator::new(plan, Registry::built_in());
    refuse_impossible(plan, &simulator)?;
    let started = Ledger::start_shard(path, plan, shard, |cell| simulator.check(cell));
    let mut ledger = started.map_err(|error| CliError::ledger(&error))?;
    let impossible = ledger.impossible().map_err(CliError::input)?;
    if !impossible.is_empty() {
        let cells = impossible.iter().map(|(&cell, reason)| (cell, reason.clone()));
        say(listed(plan, cells, plan.cells()));
    }
    let outcome =
        execute(&mut ledger, threads, stop, simulator, report).map_err(|error| match error {
            SweepError::Ledger(error) => CliError::ledger(&error),
            SweepError::Threads(_) => CliError::failure(error),
        })?;
    Ok((ledger, outcome))
}

/// Refuses a plan without a cell that can be run, before a ledger is made for it.
fn refuse_impossible(plan: &Plan, simulator: &Simulator<'_>) -> Result<(), CliError> {
    let reason = |cell| plan.impossible(cell, |scenario| simulator.check(scenario));
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
    format!("{} of {} cells left out:{lines}", count(number), count(of))
}

/// `plans/demo.toml` is kept in `demo.ledger.sqlite`.
fn default_ledger(plan: &Path, shard: Shard) -> PathBuf {
    let mut name = plan.file_stem().unwrap_or_default().to_owned();
    if !shard.is_whole() {
        name.push(format!(".{}of{}", shard.number, shard.of));
    }
    name.push(".ledger.sqlite");
    PathBuf::from(name)
}

/// On standard error, and only where that is a terminal.
fn progress_bar() -> ProgressBar {
    let template = "{bar:30} {human_pos} of {human_len} runs, {per_sec}, {eta} left";
    let style = ProgressStyle::with_template(template).expect("the template is a constant");
    ProgressBar::new(0).with_style(style)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ledger_is_named_after_its_plan_and_lies_in_the_current_folder() {
        let ledger = |shard| default_ledger(Path::new("sims/plans/demo.toml"), shard);
        assert_eq!(ledger(Shard::WHOLE), Path::new("demo.ledger.sqlite"));
        let second = Shard { number: 2, of: 4 };
        assert_eq!(ledger(second), Path::new("demo.2of4.ledger.sqlite"));
    }
}
