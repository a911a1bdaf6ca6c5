//! `kvseam hunt`: which unsound behaviours the fuzz targets find, and how soon.

use std::path::{Path, PathBuf};

use clap::Args;

use super::input::within;
use super::interrupt::stop_on_interrupt;
use super::output::{beside, cannot_write, print, say};
use super::{CliError, Exit};
use crate::fuzzing::build::{self, Watch};
use crate::fuzzing::hunt::state::{Measurement, State};
use crate::fuzzing::hunt::table::page;
use crate::fuzzing::hunt::{Hunt, Settings, meant};
use crate::fuzzing::libfuzzer::Limit;
use crate::limits;
use crate::report::number::count;
use crate::scenario::generate::PlantedVariant;

const EXAMPLES: &str = "\
Examples:
  kvseam hunt
  kvseam hunt --only decode_prefix_cut=padded_up,free_check=none --seeds 1 --out /tmp/hunt.md";

/// Plants every unsound behaviour in turn and measures which fuzz targets find it, and how soon.
///
/// Builds the targets with cargo-fuzz, runs each with an empty corpus up to its first find, and
/// writes a table. What is measured is kept beside it, so that the same command goes on where it
/// was stopped; another build or limit is measured anew. Exit code 4 when a behaviour is not found
/// by the target meant for it, 3 when the simulation panicked or the lint had no objection to what
/// was found.
#[derive(Args)]
#[command(before_help = EXAMPLES)]
pub(super) struct HuntArgs {
    /// The table; the measurements go beside it, to the same name with `.jsonl`.
    #[arg(long, value_name = "FILE", default_value = "reports/baseline/hunt.md", value_parser = beside)]
    out: PathBuf,
    /// Seeds of each behaviour and target, 1 to 99.
    #[arg(long, default_value_t = 5, value_parser = seeds)]
    seeds: u64,
    /// Seconds for the target that is meant for a behaviour, 1 to 86400.
    #[arg(long, default_value_t = 60, value_parser = seconds)]
    seconds: u64,
    /// Executions for each other target, 1 to 1000000000.
    #[arg(long, default_value_t = 10_000, value_parser = executions)]
    executions: u64,
    /// Processes at a time, 1 to 1024.
    #[arg(long, default_value_t = 2, value_parser = jobs)]
    jobs: u64,
    /// Only these behaviours.
    #[arg(long, value_name = "SWITCH=VARIANT", value_delimiter = ',', value_parser = planted_variant)]
    only: Vec<PlantedVariant>,
    /// The hazard files that say which target is meant for what.
    #[arg(long, value_name = "FOLDER", default_value = "sims/hazards")]
    hazards: PathBuf,
}

fn seeds(text: &str) -> Result<u64, String> {
    within(text, &limits::HUNT_SEEDS)
}

fn seconds(text: &str) -> Result<u64, String> {
    within(text, &limits::HUNT_SECONDS)
}

fn executions(text: &str) -> Result<u64, String> {
    within(text, &limits::HUNT_EXECUTIONS)
}

fn jobs(text: &str) -> Result<u64, String> {
    within(text, &limits::THREADS)
}

fn planted_variant(text: &str) -> Result<PlantedVariant, String> {
    PlantedVariant::parse(text).map_err(|error| error.to_string())
}

pub(super) fn run(args: &HuntArgs) -> Result<Exit, CliError> {
    let (mut rows, sound) = meant::rows(&args.hazards).map_err(CliError::input)?;
    if let Some(planted) = args.only.iter().find(|planted| sound.contains(planted)) {
        let problem = "must be objected to by the lint in some scenario, got one that is sound";
        return Err(CliError::Input(format!("--only: {planted}: {problem}")));
    }
    rows.retain(|row| args.only.is_empty() || args.only.contains(&row.planted));
    let stop = stop_on_interrupt()?;
    // A folder that cannot be made is reported now, and not after the build, which takes minutes.
    if let Some(folder) = args.out.parent() {
        std::fs::create_dir_all(folder).map_err(|error| cannot_write(folder.display(), &error))?;
    }
    let state = State::open(&args.out.with_extension("jsonl")).map_err(CliError::input)?;
    let programs = build::build(Watch::Edges).map_err(CliError::input)?;
    let settings = Settings {
        seeds: args.seeds,
        meant: Limit::Seconds(args.seconds),
        others: Limit::Executions(args.executions),
        jobs: usize::try_from(args.jobs).expect("limits::THREADS"),
    };
    let hunt = Hunt { settings, rows: &rows, programs: &programs };
    let state = hunt.run(state, &stop, report).map_err(CliError::failure)?;
    let page = page(&hunt, &state, &sound, &machine()).map_err(CliError::failure)?;
    std::fs::write(&args.out, &page.text)
        .map_err(|error| cannot_write(args.out.display(), &error))?;
    print(&args.out.display().to_string())?;
    for hole in &page.holes {
        say(format_args!("not found by the target meant for it: {hole}"));
    }
    Ok(if !page.is_complete {
        Exit::Interrupted
    } else if page.has_bugs {
        Exit::Defects
    } else if !page.holes.is_empty() {
        Exit::Unmet
    } else {
        Exit::Clean
    })
}

fn report(made: &Measurement, left: usize) {
    let Measurement { key, outcome, executions, millis } = made;
    let (planted, target, seed) = (&key.planted, &key.target, key.seed);
    let (executions, left) = (count(*executions), count(left as u64));
    say(format_args!(
        "{planted}: {target} {outcome}, {executions} executions in {millis} ms (seed {seed}; {left} to go)"
    ));
}

/// What the page says that it was measured on.
fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let info = std::fs::read_to_string(Path::new("/proc/cpuinfo")).unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    let model = model.map_or("unknown processor", |(_, name)| name.trim());
    format!("{cores} cores ({model}), {}", build::compiler())
}
