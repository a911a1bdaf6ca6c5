//! A hunt as a page: a table of behaviours by targets, and below it what the table has no room for.

use std::collections::BTreeMap;

use super::state::{Key, Measurement, SearchResult, State};
use super::{CampaignError, Hunt, Row};
use crate::fuzzing::libfuzzer::Limit;
use crate::minimize::import::FuzzTarget;
use crate::report::number::count;
use crate::scenario::generate::PlantedVariant;
use crate::stats::quantile;

/// The page, and what it says of the fuzz targets.
pub struct Page {
    /// Its text, in Markdown.
    pub text: String,
    /// Behaviours that the target meant for them does not find.
    pub holes: Vec<PlantedVariant>,
    /// Whether something was seen that is a bug of the simulation or of the lint.
    pub has_bugs: bool,
    /// Whether every measurement has been made.
    pub is_complete: bool,
}

/// The measurements of one target with one variant: what one field of the table sums up.
#[derive(Debug, PartialEq, Eq)]
struct Measured<'a> {
    made: Vec<&'a Measurement>,
    seeds: u64,
}

/// The page for what `state` has of this hunt. `sound` are the variants that there is nothing to
/// find of; `machine` says on what it was measured.
pub fn page(
    hunt: &Hunt,
    state: &State,
    sound: &[PlantedVariant],
    machine: &str,
) -> Result<Page, CampaignError> {
    let builds = hunt.builds()?;
    let cells = |row: &Row| -> BTreeMap<FuzzTarget, Measured> {
        let cell = |&target: &FuzzTarget| (target, hunt.cell(state, &builds, row, target));
        FuzzTarget::ALL.iter().map(cell).collect()
    };
    let rows: Vec<(&Row, BTreeMap<FuzzTarget, Measured>)> =
        hunt.rows.iter().map(|row| (row, cells(row))).collect();
    let all = || rows.iter().flat_map(|(_, cells)| cells.values());
    let is_complete = all().all(Measured::is_complete);
    let is_hole = |(row, cells): &&(&Row, BTreeMap<FuzzTarget, Measured>)| match row.meant {
        Some(meant) => cells[&meant].is_complete() && cells[&meant].median().is_none(),
        None => cells.values().all(|cell| cell.is_complete() && cell.median().is_none()),
    };
    let holes: Vec<PlantedVariant> =
        rows.iter().filter(is_hole).map(|(row, _)| row.planted).collect();

    let mut text = intro(hunt, machine, all().flat_map(|cell| &cell.made).copied());
    if !is_complete {
        let left: u64 = all().map(|cell| cell.seeds - cell.made.len() as u64).sum();
        text += &format!("\n**Not complete**: {} measurements are missing.\n", count(left));
    }
    text += "\n| behaviour |";
    for target in FuzzTarget::ALL {
        text += &format!(" `{}` |", target.name());
    }
    text += " found as |\n|---|";
    text += &"---:|".repeat(FuzzTarget::ALL.len());
    text += "---|\n";
    for (row, cells) in &rows {
        text += &format!("| `{}` |", row.planted);
        for (&target, cell) in cells {
            let shown = cell.shown();
            let is_meant = row.meant == Some(target);
            text += &if is_meant { format!(" **{shown}** |") } else { format!(" {shown} |") };
        }
        text += &format!(" {} |\n", found_as(row, cells));
    }
    text += &list("Holes: not found by the target meant for it", &holes);
    let without = hunt.rows.iter().filter(|row| row.meant.is_none()).map(|row| row.planted);
    text += &list("Without a hazard file, so that no target is meant", &Vec::from_iter(without));
    let bugs = bugs(all().flat_map(|cell| &cell.made).copied());
    text += &bugs;
    text += &list("Sound on their own: nothing to find", sound);
    Ok(Page { text, holes, has_bugs: !bugs.is_empty(), is_complete })
}

fn intro<'a>(
    hunt: &Hunt,
    machine: &str,
    made: impl Iterator<Item = &'a Measurement> + Clone,
) -> String {
    let settings = &hunt.settings;
    let limit = |limit| match limit {
        Limit::Seconds(seconds) => format!("{} s", count(seconds)),
        Limit::Executions(executions) => format!("{} executions", count(executions)),
    };
    let executions: u64 = made.clone().map(|made| made.executions).sum();
    let millis: u64 = made.clone().map(|made| made.millis).sum();
    format!(
        "# What the hunters see\n\n\
         Each unsound behaviour was planted in every scenario that a fuzz target draws, and all else that the lint\n\
         objects to was set back, but for what the behaviour needs beside it. A *find* is a finding of the target's\n\
         codes that is absent in the same scenario with only the planted switch at its default. A cell is the median\n\
         over {} seeds of the executions and of the wall time, the start of the process included, up to the first find;\n\
         a seed that ended without one counts as later than all others, and `(4/5)` says how many found. **Bold** is\n\
         the target that is meant for the behaviour, by the codes that its hazard files show: it had {}, every other\n\
         one {}. `–` is no find within that.\n\n\
         Measured with `kvseam hunt`: libFuzzer with an empty corpus, {} processes at a time; {machine}. In all {}\n\
         runs, {} executions, {} minutes of processes. A run with the same seed and program finds after the same\n\
         number of executions; times depend on the machine and on what else it does.\n",
        settings.seeds,
        limit(settings.meant),
        limit(settings.others),
        settings.jobs,
        count(made.count() as u64),
        count(executions),
        count(millis / 60_000),
    )
}

impl Hunt<'_> {
    fn cell<'a>(
        &self,
        state: &'a State,
        builds: &BTreeMap<FuzzTarget, String>,
        row: &Row,
        target: FuzzTarget,
    ) -> Measured<'a> {
        let limit = self.settings.limit(row, target);
        let made = (1..=self.settings.seeds).filter_map(|seed| {
            let task = super::Task { planted: row.planted, target, seed, limit };
            state.find(&self.measurement_key(&task, builds))
        });
        Measured { made: made.collect(), seeds: self.settings.seeds }
    }
}

impl Measured<'_> {
    fn is_complete(&self) -> bool {
        self.made.len() as u64 == self.seeds
    }

    /// Executions and milliseconds of the finds, each in order.
    fn finds(&self) -> (Vec<u64>, Vec<u64>) {
        let is_find = |made: &&&Measurement| matches!(made.outcome, SearchResult::Found { .. });
        let finds: Vec<_> = self.made.iter().filter(is_find).collect();
        let mut executions: Vec<u64> = finds.iter().map(|made| made.executions).collect();
        let mut millis: Vec<u64> = finds.iter().map(|made| made.millis).collect();
        executions.sort_unstable();
        millis.sort_unstable();
        (executions, millis)
    }

    /// The medians, `None` where fewer than half of the seeds have found.
    fn median(&self) -> Option<(u64, u64)> {
        let (executions, millis) = self.finds();
        let middle = |finds: &[u64]| {
            // Seeds that found nothing come after all that did.
            let all: Vec<Option<u64>> = finds
                .iter()
                .copied()
                .map(Some)
                .chain(std::iter::repeat(None))
                .take(self.made.len())
                .collect();
            quantile(&all, 1, 2).flatten()
        };
        middle(&executions).zip(middle(&millis))
    }

    fn shown(&self) -> String {
        if self.made.is_empty() {
            return "not run".to_owned();
        }
        let finds = self.finds().0.len() as u64;
        let made = self.made.len() as u64;
        let share = if finds < made { format!(" ({finds}/{made})") } else { String::new() };
        match self.median() {
            Some((executions, millis)) => {
                format!("{} · {}{share}", count(executions), seconds(millis))
            }
            None if finds > 0 => format!("–{share}"),
            None => "–".to_owned(),
        }
    }
}

/// Milliseconds as seconds with a decimal.
fn seconds(millis: u64) -> String {
    let tenths = (millis + 50) / 100;
    format!("{}.{} s", tenths / 10, tenths % 10)
}

/// The codes by which the meant target, or any where none is, has found it; the commonest first.
fn found_as(row: &Row, cells: &BTreeMap<FuzzTarget, Measured>) -> String {
    let asked = cells.iter().filter(|(target, _)| row.meant.is_none_or(|meant| meant == **target));
    let mut codes: BTreeMap<&str, u64> = BTreeMap::new();
    for made in asked.flat_map(|(_, cell)| &cell.made) {
        if let SearchResult::Found { code, .. } = &made.outcome {
            *codes.entry(code).or_default() += 1;
        }
    }
    let mut codes: Vec<(&str, u64)> = codes.into_iter().collect();
    codes.sort_by_key(|&(_, times)| std::cmp::Reverse(times));
    codes.iter().map(|(code, _)| format!("`{code}`")).collect::<Vec<_>>().join(", ")
}

fn list(title: &str, planted: &[PlantedVariant]) -> String {
    if planted.is_empty() {
        return String::new();
    }
    let names: Vec<String> = planted.iter().map(|planted| format!("`{planted}`")).collect();
    format!("\n{title}: {}.\n", names.join(", "))
}

/// What should never happen: finds that the lint did not foresee, panics of the simulation, endless
/// runs.
fn bugs<'a>(made: impl Iterator<Item = &'a Measurement>) -> String {
    let mut text = String::new();
    for made in made {
        let outcome = &made.outcome;
        if matches!(
            outcome,
            SearchResult::Nothing | SearchResult::Found { is_objected_to: true, .. }
        ) {
            continue;
        }
        let Key { planted, target, seed, .. } = &made.key;
        text += &format!("- `{planted}`, `{target}`, seed {seed}: {outcome}\n");
    }
    if text.is_empty() { text } else { format!("\n## Bugs\n\n{text}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(executions: u64, millis: u64, is_found: bool) -> Measurement {
        Measurement {
            key: Key {
                planted: "free_check=none".to_owned(),
                target: "hunt_lifetime".to_owned(),
                seed: 1,
                limit: Limit::Executions(10_000),
                build: "0123".to_owned(),
            },
            outcome: match is_found {
                true => SearchResult::Found { code: "read.freed".to_owned(), is_objected_to: true },
                false => SearchResult::Nothing,
            },
            executions,
            millis,
        }
    }

    fn shown(made: &[Measurement]) -> String {
        Measured { made: made.iter().collect(), seeds: 5 }.shown()
    }

    #[test]
    fn a_cell_is_the_median_in_which_a_miss_is_later_than_every_find() {
        let finds = [900, 100, 1_200, 300, 50].map(|n| made(n, 10 * n, true));
        assert_eq!(shown(&finds), "300 · 3.0 s");
        let miss = || made(10_000, 4_000, false);
        let three = [made(900, 9_040, true), miss(), made(7, 70, true), made(80, 1, true), miss()];
        assert_eq!(shown(&three), "900 · 9.0 s (3/5)");
        let two = [made(900, 9_000, true), miss(), made(7, 70, true), miss(), miss()];
        assert_eq!(shown(&two), "– (2/5)");
        assert_eq!(shown(&[miss(), miss(), miss()]), "–");
        assert_eq!(shown(&[]), "not run");
    }

    #[test]
    fn what_should_never_be_is_noted() {
        let mut wrong = made(5, 5, true);
        wrong.outcome =
            SearchResult::Found { code: "read.freed".to_owned(), is_objected_to: false };
        let panicked = SearchResult::Panicked { place: "src/world/mod.rs:1:2".to_owned() };
        let panicked = Measurement { outcome: panicked, ..made(5, 5, true) };
        let sound = made(5, 5, true);
        assert_eq!(bugs([&sound].into_iter()), "");
        let text = bugs([&sound, &wrong, &panicked].into_iter());
        assert!(text.contains("seed 1: found read.freed in a scenario to which"), "{text}");
        assert!(text.contains("panicked at src/world/mod.rs:1:2"), "{text}");
        assert_eq!(text.lines().count(), 5, "{text}");
    }
}
