//! `kvseam report`: a ledger as one page with its charts.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::Args;

use super::output::print;
use super::{CliError, Exit};
use crate::report::page::{self, Axes, ReportError};
use crate::sweep::ledger::Ledger;

const EXAMPLES: &str = "\
Examples:
  kvseam report demo.ledger.sqlite
  kvseam report demo.ledger.sqlite --axes layout.ranks,behaviour --out page";

/// Draws a ledger: one self-contained HTML page, with every chart beside it as SVG and PNG.
///
/// Prints the path of the page.
#[derive(Args)]
#[command(before_help = EXAMPLES)]
pub(super) struct ReportArgs {
    /// The ledger of a sweep.
    ledger: PathBuf,
    /// The folder for the page; by default the ledger's name with `-report`, in the current folder.
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Axes of the plan that the heat maps show; by default page size and ranks, or the first two.
    #[arg(long, value_name = "ROWS,COLUMNS")]
    axes: Option<AxisPair>,
}

/// Two names with a comma between them.
#[derive(Clone)]
struct AxisPair(Axes);

impl FromStr for AxisPair {
    type Err = String;

    fn from_str(text: &str) -> Result<AxisPair, String> {
        let (rows, columns) = text.split_once(',').ok_or_else(|| {
            format!("must be the names of two axes like ROWS,COLUMNS, got \"{text}\"")
        })?;
        Ok(AxisPair((rows.trim().to_owned(), columns.trim().to_owned())))
    }
}

pub(super) fn run(args: &ReportArgs) -> Result<Exit, CliError> {
    let ledger = Ledger::open(&args.ledger).map_err(CliError::input)?;
    let out = args.out.clone().unwrap_or_else(|| default_folder(&args.ledger));
    let axes = args.axes.as_ref().map(|AxisPair(axes)| axes);
    let page = page::write(&ledger, axes, &out).map_err(|error| match error {
        ReportError::UnknownAxis { .. } => CliError::Input(format!("--axes: {error}")),
        ReportError::Ledger(_) | ReportError::Write { .. } => CliError::input(error),
        ReportError::Chart(_) => CliError::failure(error),
    })?;
    print(&page.display().to_string())?;
    Ok(Exit::Clean)
}

/// `runs/demo.ledger.sqlite` is drawn in `demo-report`.
fn default_folder(ledger: &Path) -> PathBuf {
    let name = ledger.file_name().unwrap_or_default().to_string_lossy();
    let stem = name.split('.').next().unwrap_or_default();
    PathBuf::from(format!("{stem}-report"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_named_after_its_ledger_and_lies_in_the_current_folder() {
        let folder = default_folder(Path::new("runs/demo.ledger.sqlite"));
        assert_eq!(folder, Path::new("demo-report"));
    }

    #[test]
    fn two_axes_are_named_with_a_comma_between_them() {
        let AxisPair(axes) = "layout.ranks, behaviour".parse().unwrap();
        assert_eq!(axes, ("layout.ranks".to_owned(), "behaviour".to_owned()));
        assert!("layout.ranks".parse::<AxisPair>().is_err());
    }
}
