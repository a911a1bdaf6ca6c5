//! The command line: one file a subcommand.
//!
//! Standard output is data, standard error is messages. A command ends with an `Exit`, or with a
//! message `error: file: field.path: must be …, got …`.

use std::io::ErrorKind;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use output::say;

use crate::sweep::ledger::LedgerError;

mod audit;
mod conform;
mod dry_run;
mod emit;
mod explain;
mod export;
mod hunt;
mod import;
mod input;
mod interrupt;
mod junit;
mod lint;
mod list;
mod live;
mod merge;
mod minimize;
mod nightly;
mod output;
mod plan;
mod replay;
mod report;
mod run;
mod sarif;
mod shell;
mod standing;
mod sweep;
mod watch_release;

const EXAMPLES: &str = "\
Examples:
  kvseam run sims/scenarios/padded-prefix.toml     what goes wrong here, and how often
  kvseam run FILE --set layout.ranks=4             the same with one field changed
  kvseam lint FILE                                 sound or not, with the reasons
  kvseam explain placed.missing                    what a finding means, and what to check
  kvseam explain \"Insufficient destination …\"      the same of an error line of an engine
  kvseam sweep sims/plans/demo.toml                a grid of runs into a ledger
  kvseam report demo.ledger.sqlite                 its charts on one page";

const EXIT_CODES: &str = "\
Exit codes:
    0  clean
    1  unexpected failure
    2  usage, or an input that cannot be used
    3  defects found
    4  an expectation not met
    5  nothing was served: every request was refused
  130  interrupted; what was finished is kept

A reader that closes standard output early, like `| head`, changes none of
them. A full device is an unexpected failure.";

/// Simulates the seam between the prefill and decode KV caches of a language model server, judges
/// every row, and counts how often each kind of error happens.
#[derive(Parser)]
#[command(name = "kvseam", version, before_help = EXAMPLES, after_help = EXIT_CODES)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Run(run::RunArgs),
    Plan(plan::PlanArgs),
    Sweep(sweep::SweepArgs),
    Merge(merge::MergeArgs),
    Export(export::ExportArgs),
    Report(report::ReportArgs),
    Minimize(minimize::MinimizeArgs),
    Import(import::ImportArgs),
    Hunt(hunt::HuntArgs),
    Nightly(nightly::NightlyArgs),
    Replay(replay::ReplayArgs),
    Conform(conform::ConformArgs),
    WatchRelease(watch_release::WatchReleaseArgs),
    Explain(explain::ExplainArgs),
    Lint(lint::LintArgs),
    Audit(audit::AuditArgs),
    List(list::ListArgs),
    Completions(shell::CompletionsArgs),
    Man(shell::ManArgs),
}

/// How a command ended that ran to its end; the numbers are the exit codes of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Exit {
    Clean = 0,
    Failed = 1,
    Defects = 3,
    Unmet = 4,
    NothingServed = 5,
    Interrupted = 130,
}

/// Why a command could not finish its answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum CliError {
    /// What the user gave cannot be used. Exit code 2.
    #[error("{0}")]
    Input(String),
    /// What should have worked did not. Exit code 1.
    #[error("{0}")]
    Failure(String),
}

impl CliError {
    /// Prints the message and returns the exit code.
    fn end(&self) -> ExitCode {
        say(format_args!("error: {self}"));
        ExitCode::from(match self {
            CliError::Failure(_) => 1,
            CliError::Input(_) => 2,
        })
    }

    fn input(error: impl std::fmt::Display) -> CliError {
        CliError::Input(error.to_string())
    }

    fn failure(error: impl std::fmt::Display) -> CliError {
        CliError::Failure(error.to_string())
    }

    /// The error for a ledger that cannot be used, or not be filled because the disk is full.
    fn ledger(error: &LedgerError) -> CliError {
        if error.is_full() { CliError::failure(error) } else { CliError::input(error) }
    }
}

impl Cli {
    /// The command that the process's arguments name. Without one, help or a version has been
    /// printed, which are answers like any other, or what is wrong has been said.
    pub fn of_arguments() -> Result<Cli, ExitCode> {
        Cli::try_parse().map_err(|answer| match answer.print() {
            Err(error) if !answer.use_stderr() && error.kind() != ErrorKind::BrokenPipe => {
                CliError::failure(format!("standard output: {error}")).end()
            }
            Ok(()) | Err(_) => ExitCode::from(if answer.use_stderr() { 2 } else { 0 }),
        })
    }

    /// Carries out the command. Messages have been printed when this returns.
    pub fn run(&self) -> ExitCode {
        // A panic prints its own message; what it means for the caller is an unexpected failure.
        let ended = std::panic::catch_unwind(|| self.dispatch()).unwrap_or(Ok(Exit::Failed));
        match ended {
            Ok(exit) => ExitCode::from(exit as u8),
            Err(error) => error.end(),
        }
    }

    fn dispatch(&self) -> Result<Exit, CliError> {
        match &self.command {
            Command::Run(args) => run::run(args),
            Command::Plan(args) => plan::run(args),
            Command::Sweep(args) => sweep::run(args),
            Command::Merge(args) => merge::run(args),
            Command::Export(args) => export::run(args),
            Command::Report(args) => report::run(args),
            Command::Minimize(args) => minimize::run(args),
            Command::Import(args) => import::run(args),
            Command::Hunt(args) => hunt::run(args),
            Command::Nightly(args) => nightly::run(args),
            Command::Replay(args) => replay::run(args),
            Command::Conform(args) => conform::run(args),
            Command::WatchRelease(args) => watch_release::run(args),
            Command::Explain(args) => explain::run(args),
            Command::Lint(args) => lint::run(args),
            Command::Audit(args) => audit::run(args),
            Command::List(args) => list::run(args),
            Command::Completions(args) => shell::completions(args),
            Command::Man(args) => shell::man(args),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_arguments_do_not_contradict_each_other() {
        Cli::command().debug_assert();
    }
}
