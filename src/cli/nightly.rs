//! `kvseam nightly`: everything that takes time, within a budget, and a page of what is new.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::Args;

use super::interrupt::stop_on_interrupt;
use super::output::{beside, cannot_write, print, say};
use super::replay;
use super::{CliError, Exit, sweep};
use crate::finding::{Code, Named};
use crate::fuzzing::CampaignError;
use crate::fuzzing::build::{self, BuildError, Watch};
use crate::fuzzing::night::finds::{Defect, Find, Judge};
use crate::fuzzing::night::page::page;
use crate::fuzzing::night::state::State;
use crate::fuzzing::night::{Night, SweepFigures, budget, target};
use crate::replay::Verdict;
use crate::scenario::lint::lint;
use crate::stats::Rate;
use crate::sweep::cell::CellId;
use crate::sweep::ledger::Ledger;
use crate::sweep::plan::Plan;
use crate::sweep::shard::Shard;
use crate::wording;

const EXAMPLES: &str = "\
Examples:
  kvseam nightly --budget 30m --out nights
  kvseam nightly --budget 5m --out nights --targets sound_scenarios,planner";

/// Replays `sims/`, runs a sweep, and every fuzz target for its share of what is left of a budget.
///
/// Corpora, new finds and what the next night compares with are kept in the folder, and the page
/// `night.md` says what is new since the last night. Exit code 3 on a new defect. A hunt crashes by
/// design: its finds are defects only where the lint has no objection to them. Without cargo-fuzz
/// all but the fuzzing is done.
#[derive(Args)]
#[command(before_help = EXAMPLES)]
pub(super) struct NightlyArgs {
    /// The time for all of it, like 90s, 30m or 2h.
    #[arg(long, value_name = "TIME", value_parser = budget::parse)]
    budget: Duration,
    /// The folder of all nights.
    #[arg(long, value_name = "FOLDER", value_parser = beside)]
    out: PathBuf,
    /// The sweep's plan.
    #[arg(long, value_name = "PLAN", default_value = "sims/plans/demo.toml")]
    plan: PathBuf,
    /// Only these fuzz targets, by default all.
    #[arg(long, value_name = "TARGETS", value_delimiter = ',')]
    targets: Vec<String>,
}

/// Folders whose files must show what they say.
const REPLAYED: [&str; 2] = ["sims/regressions", "sims/hazards"];

/// Why there is no fuzzing, or why it ended.
struct Unfuzzed {
    reason: String,
    /// Whether only a program is missing that not everyone has.
    is_missing: bool,
}

impl From<BuildError> for Unfuzzed {
    fn from(error: BuildError) -> Unfuzzed {
        let is_missing = match error {
            BuildError::Missing { .. } | BuildError::NoSources(_) => true,
            BuildError::Failed(..) => false,
        };
        Unfuzzed { reason: error.to_string(), is_missing }
    }
}

impl From<CampaignError> for Unfuzzed {
    fn from(error: CampaignError) -> Unfuzzed {
        Unfuzzed { reason: error.to_string(), is_missing: false }
    }
}

/// A night under way.
struct NightUnderWay<'a> {
    args: &'a NightlyArgs,
    deadline: Instant,
    stop: &'a AtomicBool,
    before: State,
    night: Night,
}

pub(super) fn run(args: &NightlyArgs) -> Result<Exit, CliError> {
    let deadline = Instant::now() + args.budget;
    let plan = Plan::read(&args.plan).map_err(CliError::input)?;
    let targets = targets(&args.targets)?;
    std::fs::create_dir_all(&args.out).map_err(|error| cannot_write(args.out.display(), &error))?;
    let state_path = args.out.join("state.json");
    let before = State::read(&state_path).map_err(CliError::input)?;
    let stop = stop_on_interrupt()?;
    let number = before.nights + 1;
    let night = Night { number, budget: args.budget, ..Night::default() };
    let mut under_way = NightUnderWay { args, deadline, stop: &stop, before, night };
    under_way.replay()?;
    under_way.sweep(&plan)?;
    let fuzzed = under_way.fuzz(&targets);
    if let Err(Unfuzzed { reason, .. }) = &fuzzed {
        say(format_args!("fuzzing: {reason}"));
        under_way.night.remarks.push(format!("Fuzzing: {reason}"));
    }
    let NightUnderWay { before, mut night, .. } = under_way;
    night.is_interrupted = stop.load(Ordering::Relaxed);
    let path = args.out.join("night.md");
    std::fs::write(&path, page(&night, &before))
        .map_err(|error| cannot_write(path.display(), &error))?;
    let mut state = before;
    state.add(&night);
    state.write(&state_path).map_err(CliError::failure)?;
    print(&path.display().to_string())?;
    let is_failure = fuzzed.is_err_and(|unfuzzed| !unfuzzed.is_missing || !args.targets.is_empty());
    Ok(if night.is_interrupted {
        Exit::Interrupted
    } else if night.new_defects().next().is_some() {
        Exit::Defects
    } else if is_failure {
        Exit::Failed
    } else {
        Exit::Clean
    })
}

/// The fuzz targets to run: those asked for, or all.
fn targets(asked: &[String]) -> Result<Vec<String>, CliError> {
    let known = match build::targets() {
        Ok(known) => known,
        // Without the sources there is no fuzzing, which is said when it is its turn.
        Err(_) => return Ok(asked.to_vec()),
    };
    match asked.iter().find(|name| !known.contains(name)) {
        Some(unknown) => {
            let known: Vec<&str> = known.iter().map(String::as_str).collect();
            let wanted = wording::one_of(&known, "there is no fuzz target");
            Err(CliError::Input(format!("--targets: must be {wanted}, got \"{unknown}\"")))
        }
        None if asked.is_empty() => Ok(known),
        None => Ok(asked.to_vec()),
    }
}

impl NightUnderWay<'_> {
    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    fn add(&mut self, defect: Defect) {
        if self.night.defects.iter().any(|(known, _)| known.id == defect.id) {
            return;
        }
        let is_new = self.before.is_new(&defect);
        if is_new {
            say(format_args!("new defect: {}", defect.title));
        }
        self.night.defects.push((defect, is_new));
    }

    /// Adds a defect that every night would see.
    fn add_checked(&mut self, id: String, title: String, file: Option<PathBuf>) {
        let (is_looked_at_every_night, is_kept) = (true, false);
        self.add(Defect { id, title, file, is_looked_at_every_night, is_kept });
    }

    fn replay(&mut self) -> Result<(), CliError> {
        let folders = REPLAYED.map(PathBuf::from);
        if let Some(missing) = folders.iter().find(|folder| !folder.is_dir()) {
            let problem = "must be a folder below the current one, got none";
            return Err(CliError::Input(format!("{}: {problem}", missing.display())));
        }
        let replayed = replay::check(&folders)?;
        let failed: Vec<_> = replayed.iter().filter(|one| one.verdict != Verdict::Pass).collect();
        self.night.replayed = Some((replayed.len() as u64, failed.len() as u64));
        for one in failed {
            let title = format!("does not show what it says: {}", one.reasons.join("; "));
            let file = Some(PathBuf::from(&one.file));
            self.add_checked(format!("replay {}", one.file), title, file);
        }
        Ok(())
    }

    /// The whole sweep anew, as its runs differ only where the code does.
    fn sweep(&mut self, plan: &Plan) -> Result<(), CliError> {
        if self.is_stopped() {
            return Ok(());
        }
        let path = self.args.out.join("sweep.ledger.sqlite");
        for path in [path.clone(), path.with_extension("sqlite-journal")] {
            if path.exists() {
                std::fs::remove_file(&path)
                    .map_err(|error| CliError::input(format!("{}: {error}", path.display())))?;
            }
        }
        let end = AtomicBool::new(false);
        let (stop, deadline) = (self.stop, self.deadline);
        let (ledger, outcome) = sweep::fill(plan, &path, Shard::WHOLE, 0, &end, |_| {
            let is_over = stop.load(Ordering::Relaxed) || Instant::now() >= deadline;
            end.store(is_over, Ordering::Relaxed);
        })?;
        let errors = outcome.judged.errors;
        if errors > 0 {
            // The defect's name is without the number, which can change from night to night.
            let title = format!("sweep: {errors} runs could not be run");
            self.add_checked("sweep errors".to_owned(), title, Some(path));
        }
        let progress = outcome.progress;
        if progress.done < progress.total && !self.is_stopped() {
            self.night.remarks.push("The budget ended before the sweep".to_owned());
        }
        self.night.sweep = Some(SweepFigures {
            title: plan.title.clone(),
            done: progress.done,
            total: progress.total,
            rates: self.judge_sweep(&ledger)?,
        });
        Ok(())
    }

    /// The rates of all cells together. A defect in a cell without an objection is a bug of this
    /// project.
    fn judge_sweep(&mut self, ledger: &Ledger) -> Result<BTreeMap<Code, Rate>, CliError> {
        let summaries = ledger.summaries().map_err(CliError::failure)?;
        let mut rates = BTreeMap::new();
        for (cell, summary) in (0..).map(CellId).zip(&summaries) {
            for &code in Code::ALL {
                let rate: &mut Rate = rates.entry(code).or_insert(Rate { hits: 0, chances: 0 });
                rate.hits += summary.codes.get(&code).map_or(0, |incidence| incidence.runs);
                rate.chances += summary.runs_with_chance.get(code.chance());
            }
            let Some(defects) = summary.defects else { continue };
            let is_unforeseen = |scenario| lint(&scenario).is_empty();
            if ledger.plan.scenario(cell).is_ok_and(is_unforeseen) {
                let (cell, seed) = (ledger.plan.describe(cell), defects.seed);
                let title = format!("sweep: a defect without an objection in {cell}, seed {seed}");
                self.add_checked(title.clone(), title, None);
            }
        }
        rates.retain(|_, rate| rate.hits > 0);
        Ok(rates)
    }

    /// Every target for an equal share of what is left.
    fn fuzz(&mut self, targets: &[String]) -> Result<(), Unfuzzed> {
        let [regressions, _] = REPLAYED.map(Path::new);
        let judge = Judge::new(regressions, &self.args.out)?;
        let mut programs = Vec::new();
        for watch in [Watch::Edges, Watch::Comparisons] {
            let is_needed = targets.iter().any(|name| Watch::of(name) == watch);
            if is_needed && !self.is_stopped() && !self.left().is_zero() {
                match build::build(watch) {
                    // The build was ended by Ctrl-C, so this is an interruption and no failure.
                    Err(_) if self.is_stopped() => return Ok(()),
                    folder => programs.push((watch, folder?)),
                }
            }
        }
        for (index, name) in targets.iter().enumerate() {
            let share = self.left() / u32::try_from(targets.len() - index).unwrap_or(u32::MAX);
            let built = programs.iter().find(|(watch, _)| *watch == Watch::of(name));
            let Some((_, programs)) = built.filter(|_| !self.is_stopped()) else { continue };
            if share < Duration::from_secs(1) {
                self.night.remarks.push(format!("The budget ended before {name}"));
                continue;
            }
            say(format_args!("{name}: {} s", share.as_secs()));
            self.fuzz_one(name, programs, share, &judge)?;
        }
        Ok(())
    }

    fn fuzz_one(
        &mut self,
        name: &str,
        programs: &Path,
        share: Duration,
        judge: &Judge,
    ) -> Result<(), CampaignError> {
        let seeds = Path::new("fuzz/corpus").join(name);
        let (number, out) = (self.night.number, self.args.out.as_path());
        let target = target::Night { name, programs, out, seeds: &seeds, number };
        let stop = self.stop;
        let figures = target.run(share, stop, |artifact, said| {
            Ok(match judge.judge(name, artifact, said)? {
                // Whether the target is to go on: after a panic it would panic again, while further
                // scenarios can show other defects.
                Find::Defect(defect) => {
                    let is_scenario = defect.id.ends_with(".toml");
                    self.add(defect);
                    is_scenario
                }
                Find::Explained(name, explained) => {
                    self.night.explained.entry(name).or_insert((explained, 0)).1 += 1;
                    true
                }
            })
        });
        self.night.targets.push((name.to_owned(), figures?));
        Ok(())
    }
}
