//! `kvseam report`: a ledger as one page with its charts.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::Args;

use super::output::{beside, cannot_write, print, say};
use super::{CliError, Exit};
use crate::report::page::{self, Axes, Options, ReportError};
use crate::sweep::ledger::Ledger;

const EXAMPLES: &str = "\
Examples:
  kvseam report demo.ledger.sqlite
  kvseam report demo.ledger.sqlite --axes layout.ranks,behaviour,policies --out page
  kvseam report tonight.sqlite --against yesterday.sqlite";

/// Draws ledgers: one self-contained HTML page, with every chart beside it as SVG, PNG and CSV.
///
/// Several ledgers have a part each, in the order given; nothing is added up over ledgers. Prints
/// the path of the page; what `--against` comes to goes to standard error.
#[derive(Args)]
#[command(before_help = EXAMPLES)]
pub(super) struct ReportArgs {
    /// The ledgers of sweeps.
    #[arg(required = true, value_name = "LEDGER")]
    ledgers: Vec<PathBuf>,
    /// The folder for the page; by default the first ledger's name with `-report`, in the current
    /// folder.
    #[arg(long, value_name = "FOLDER", value_parser = beside)]
    out: Option<PathBuf>,
    /// Axes of the plan that the heat maps show; by default page size and ranks, or the first two.
    /// The third has a panel for each of its values; by default behaviours, or the first that is
    /// left.
    #[arg(long, value_name = "ROWS,COLUMNS[,PANELS]", value_parser = axes)]
    axes: Option<Axes>,
    /// An earlier ledger: what is new against it. Cells are compared that set the same.
    #[arg(long, value_name = "OLD")]
    against: Option<PathBuf>,
}

/// Two or three names with commas between them.
fn axes(text: &str) -> Result<Axes, String> {
    let names: Vec<String> = text.split(',').map(|name| name.trim().to_owned()).collect();
    match <[String; 2]>::try_from(names) {
        Ok([rows, columns]) => Ok(Axes { rows, columns, levels: None }),
        Err(names) => match <[String; 3]>::try_from(names) {
            Ok([rows, columns, levels]) => Ok(Axes { rows, columns, levels: Some(levels) }),
            Err(_) => Err(format!(
                "must be the names of two or three axes like ROWS,COLUMNS,PANELS, got \"{text}\""
            )),
        },
    }
}

pub(super) fn run(args: &ReportArgs) -> Result<Exit, CliError> {
    refuse_twice(args)?;
    let open = |path: &PathBuf| Ledger::open(path).map_err(CliError::input);
    let ledgers = args.ledgers.iter().map(open).collect::<Result<Vec<_>, _>>()?;
    let against = args.against.as_ref().map(open).transpose()?;
    let out = args.out.clone().unwrap_or_else(|| default_folder(&args.ledgers[0]));
    let options = Options { axes: args.axes.clone(), against };
    let written = page::write(&ledgers, &options, &out).map_err(|error| match error {
        ReportError::UnknownAxis { .. } => CliError::Input(format!("--axes: {error}")),
        ReportError::Ledger(_) => CliError::input(error),
        ReportError::Write { path, source } => cannot_write(path.display(), &source),
        ReportError::Chart(_) => CliError::failure(error),
    })?;
    print(&written.page.display().to_string())?;
    for sentence in &written.news {
        say(sentence);
    }
    Ok(Exit::Clean)
}

/// Refuses a ledger that is named twice, by whatever paths, and an earlier ledger for several new
/// ones: which of them would it be earlier than?
fn refuse_twice(args: &ReportArgs) -> Result<(), CliError> {
    if args.against.is_some() && args.ledgers.len() > 1 {
        let got = args.ledgers.len();
        return Err(CliError::Input(format!("--against: must go with one ledger, got {got}")));
    }
    let mut seen = BTreeSet::new();
    for path in args.ledgers.iter().chain(&args.against) {
        // A file that is not there is named by its own error.
        let Ok(file) = std::fs::canonicalize(path) else { continue };
        if !seen.insert(file) {
            let path = path.display();
            return Err(CliError::Input(format!("{path}: must be named once, got it twice")));
        }
    }
    Ok(())
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
    fn axes_are_two_or_three_names_with_commas_between_them() {
        let two = axes("layout.ranks, behaviour").unwrap();
        assert_eq!((two.rows.as_str(), two.columns.as_str()), ("layout.ranks", "behaviour"));
        assert_eq!(two.levels, None);
        assert_eq!(axes("a,b,c").unwrap().levels.as_deref(), Some("c"));
        assert!(axes("layout.ranks").is_err() && axes("a,b,c,d").is_err());
    }
}
