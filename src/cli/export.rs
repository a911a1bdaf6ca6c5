//! `kvseam export`: a ledger's runs as CSV or JSON lines.

use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::output::{cannot_write, refuse_own_input};
use super::{CliError, Exit};
use crate::sweep::export::{ExportError, Form, export};
use crate::sweep::ledger::Ledger;

const EXAMPLES: &str = "\
Examples:
  kvseam export demo.ledger.sqlite > runs.csv
  kvseam export demo.ledger.sqlite --format jsonl --out runs.jsonl";

/// Writes every run of a ledger as a line: its settings, how it ended, and all of its counts.
#[derive(Args)]
#[command(before_help = EXAMPLES)]
pub(super) struct ExportArgs {
    /// The ledger of a sweep.
    ledger: PathBuf,
    /// What to write.
    #[arg(long, value_enum, default_value_t)]
    format: ExportFormat,
    /// The file to write; by default, and for `-`, standard output.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Leaves out the wall times, so that equal sweeps give equal files.
    #[arg(long)]
    no_times: bool,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum ExportFormat {
    /// A heading, and a row for each run.
    #[default]
    Csv,
    /// A JSON object for each run.
    Jsonl,
}

pub(super) fn run(args: &ExportArgs) -> Result<Exit, CliError> {
    let ledger = Ledger::open(&args.ledger).map_err(CliError::input)?;
    let form = match args.format {
        ExportFormat::Csv => Form::Csv,
        ExportFormat::Jsonl => Form::JsonLines,
    };
    let file = args.out.as_ref().filter(|path| !super::input::is_stdin(path));
    if let Some(file) = file {
        refuse_own_input(file, &args.ledger)?;
    }
    let cannot_write = |error: io::Error| match file {
        Some(path) => cannot_write(path.display(), &error),
        None => CliError::failure(format!("standard output: {error}")),
    };
    let mut out: Box<dyn Write> = match file {
        Some(path) => Box::new(BufWriter::new(File::create(path).map_err(cannot_write)?)),
        None => Box::new(BufWriter::new(io::stdout().lock())),
    };
    match export(&ledger, form, !args.no_times, &mut out) {
        // The reader has closed the pipe and wants no more, which is no error.
        Err(ExportError::Write(error)) if error.kind() == ErrorKind::BrokenPipe => Ok(Exit::Clean),
        Err(ExportError::Write(error)) => Err(cannot_write(error)),
        Err(ExportError::Ledger(error)) => Err(CliError::input(error)),
        Ok(()) => Ok(Exit::Clean),
    }
}
