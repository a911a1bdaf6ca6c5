//! `kvseam import`: a fuzz target's crash as a regression file.

use std::path::PathBuf;

use clap::Args;

use super::output::{beside, cannot_write, print, say};
use super::{CliError, Exit, minimize};
use crate::limits;
use crate::minimize::MinimizeError;
use crate::minimize::import::{FuzzTarget, import};

const EXAMPLES: &str = "\
Examples:
  kvseam import hunt_placement fuzz/artifacts/hunt_placement/crash-0a1b2c";

/// Turns the artifact of a crash into a minimised scenario file and prints its path.
///
/// The file is named by the finding and a digest of the scenario, so that two crashes of one
/// mistake give one file. Sizes, what was tried and whether the file is new go to standard error.
#[derive(Args)]
#[command(before_help = EXAMPLES)]
pub(super) struct ImportArgs {
    /// The fuzz target that crashed.
    #[arg(value_parser = target)]
    target: FuzzTarget,
    /// The file with the bytes that it crashed on.
    artifact: PathBuf,
    /// Where the scenario file goes.
    #[arg(long, value_name = "FOLDER", default_value = "sims/regressions", value_parser = beside)]
    folder: PathBuf,
    /// Runs that may be used.
    #[arg(long, default_value_t = limits::MINIMIZE_RUNS, value_parser = minimize::runs)]
    runs: u64,
}

fn target(name: &str) -> Result<FuzzTarget, String> {
    FuzzTarget::parse(name).ok_or_else(|| {
        let known: Vec<&str> = FuzzTarget::ALL.iter().map(|target| target.name()).collect();
        format!("must be one of {}", known.join(", "))
    })
}

pub(super) fn run(args: &ImportArgs) -> Result<Exit, CliError> {
    let name = args.artifact.display();
    let bytes = std::fs::read(&args.artifact)
        .map_err(|error| CliError::input(format!("{name}: {error}")))?;
    let imported = import(args.target, &bytes, args.runs, &args.folder)
        .map_err(|error| match error {
            MinimizeError::NoDefect => CliError::input(format!(
                "{name}: must hold the bytes of a crash of {}, got ones whose scenario shows nothing \
                 that it looks for",
                args.target.name()
            )),
            other => CliError::input(format!("{name}: {other}")),
        })?;
    let path = args.folder.join(&imported.name);
    let is_known = path.exists();
    std::fs::create_dir_all(&args.folder)
        .and_then(|()| std::fs::write(&path, &imported.text))
        .map_err(|error| cannot_write(path.display(), &error))?;
    print(&path.display().to_string())?;
    say(minimize::summary(&imported.minimized));
    say(match is_known {
        true => "the file was there already: a crash of this mistake was imported before",
        false => "the file is new",
    });
    Ok(Exit::Clean)
}
