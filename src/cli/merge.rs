//! `kvseam merge`: the ledgers of shards as one.

use std::path::PathBuf;

use clap::Args;

use super::output::{FormatArgs, beside};
use super::standing::Standing;
use super::{CliError, Exit};
use crate::sweep::execute::Progress;
use crate::sweep::ledger::LedgerError;
use crate::sweep::merge::{Gap, MergeError, merge};

const EXAMPLES: &str = "\
Examples:
  kvseam merge demo.*of4.ledger.sqlite --out demo.ledger.sqlite";

/// Joins the ledgers of a sweep's shards into one, as if one machine had done the sweep.
///
/// Ledgers of different plans, and two that hold the same run, are refused. Runs that none holds
/// are named, and the command ends with 4; `sweep PLAN --out LEDGER` does them. Marks and expected
/// rates are judged here.
#[derive(Args)]
#[command(before_help = EXAMPLES)]
pub(super) struct MergeArgs {
    /// The ledgers of the shards, in any order.
    #[arg(required = true)]
    ledgers: Vec<PathBuf>,
    /// The new ledger.
    #[arg(long, value_name = "LEDGER", value_parser = beside)]
    out: PathBuf,
    #[command(flatten)]
    output: FormatArgs,
}

pub(super) fn run(args: &MergeArgs) -> Result<Exit, CliError> {
    let (ledger, gaps) = merge(&args.ledgers, &args.out).map_err(|error| match error {
        MergeError::Ledger(error) => CliError::ledger(&error),
        other => CliError::input(other),
    })?;
    let read = || {
        let progress = Progress { done: ledger.done()?.len(), total: ledger.due()?.count() };
        Ok::<_, LedgerError>((progress, ledger.judge()?))
    };
    let (progress, judged) = read().map_err(CliError::input)?;
    let mut standing = Standing::new(&args.out, &ledger, progress, &judged)?;
    standing.gaps = gaps.iter().map(Gap::to_string).collect();
    standing.print(args.output.format)?;
    Ok(standing.exit())
}
