//! `kvseam sweep --dry-run`: the cells of a plan, and how long their runs will take.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use super::output::{Align, Format, columns, print, print_json, row};
use super::{CliError, Exit};
use crate::report::number::count;
use crate::sweep::cell::CellId;
use crate::sweep::due::DueRuns;
use crate::sweep::estimate::Estimate;
use crate::sweep::execute::threads_of;
use crate::sweep::plan::Plan;
use crate::sweep::runner::{Runner, Simulator};
use crate::sweep::shard::Shard;

/// What a sweep would do.
#[derive(Serialize)]
struct Answer {
    title: String,
    shard: String,
    cells: Vec<CellJson>,
    runs: u64,
    runs_measured: u64,
    micros_min: u128,
    micros_mean: u128,
    micros_max: u128,
    threads: usize,
    seconds_estimated: f64,
    seconds_budget: Option<u64>,
}

#[derive(Serialize)]
struct CellJson {
    cell: u64,
    settings: BTreeMap<String, String>,
    runs: u64,
    /// Why there is none, if the cell cannot be run.
    reason: Option<String>,
    #[serde(skip)]
    text: String,
}

/// Prints what a sweep of a shard of `plan` would do.
pub(super) fn run(
    plan: &Plan,
    shard: Shard,
    threads: usize,
    simulator: &Simulator<'_>,
    format: Format,
) -> Result<Exit, CliError> {
    let ids = (0..plan.cells()).map(CellId);
    let reason = |id| plan.impossible(id, |scenario| simulator.check(scenario));
    let mut cells: Vec<CellJson> = ids.map(|id| CellJson::new(plan, id, reason(id))).collect();
    let possible = cells.iter().filter(|cell| cell.reason.is_none());
    let due = DueRuns::new(plan, possible.map(|cell| CellId(cell.cell)).collect(), shard);
    for (id, runs) in due.cells() {
        cells[usize::try_from(id.0).expect("a cell of the list")].runs = runs;
    }
    let estimate = Estimate::measure(plan, &due, |scenario| simulator.run(scenario));
    let (threads, runs) = (threads_of(threads), due.count());
    let mean = estimate.time.as_micros() / u128::from(estimate.runs.max(1));
    let answer = Answer {
        title: plan.title.clone(),
        shard: shard.to_string(),
        cells,
        runs,
        runs_measured: estimate.runs,
        micros_min: estimate.min.as_micros(),
        micros_mean: mean,
        micros_max: estimate.max.as_micros(),
        threads,
        seconds_estimated: estimate.of(runs, threads).as_secs_f64(),
        seconds_budget: plan.budget.seconds,
    };
    match format {
        Format::Table => print(&answer.text())?,
        Format::Json => print_json(&answer)?,
    }
    Ok(Exit::Clean)
}

impl CellJson {
    fn new(plan: &Plan, id: CellId, reason: Option<String>) -> CellJson {
        let names = plan.axes.iter().map(|axis| axis.name.clone());
        let points = plan.points(id).into_iter().map(|point| point.name.clone());
        let text = plan.describe(id);
        CellJson { cell: id.0, settings: names.zip(points).collect(), runs: 0, reason, text }
    }
}

impl Answer {
    fn text(&self) -> String {
        let mut rows = vec![row(["cell", "runs", "settings"])];
        for CellJson { cell, runs, reason, text, .. } in &self.cells {
            let text = reason.as_ref().map_or(text.clone(), |why| format!("{text}: {why}"));
            rows.push(vec![cell.to_string(), count(*runs), text]);
        }
        let cells = columns(&[Align::Right, Align::Right, Align::Left], &rows);
        let impossible = self.cells.iter().filter(|cell| cell.reason.is_some()).count() as u64;
        let mut ends = vec![
            row([
                "cells",
                &format!("{}, {} left out", count(self.cells.len() as u64), count(impossible)),
            ]),
            row(["runs", &count(self.runs)]),
            row([
                "measured",
                &format!(
                    "{} runs: {} to {} ms, {} ms on average",
                    self.runs_measured,
                    millis(self.micros_min),
                    millis(self.micros_max),
                    millis(self.micros_mean)
                ),
            ]),
            row([
                "estimated",
                &format!("{} on {} threads", wall(self.seconds_estimated), self.threads),
            ]),
        ];
        if self.shard != Shard::WHOLE.to_string() {
            ends.insert(0, row(["shard", &self.shard]));
        }
        if let Some(seconds) = self.seconds_budget {
            ends.push(row(["budget", &format!("{} a call", duration(seconds))]));
        }
        format!("{}\n{cells}\n{}", self.title, columns(&[Align::Left, Align::Left], &ends))
    }
}

fn millis(micros: u128) -> String {
    format!("{}.{:03}", micros / 1_000, micros % 1_000)
}

/// A time that is only roughly known.
fn wall(seconds: f64) -> String {
    let rounded = Duration::from_secs_f64(seconds).as_secs();
    if rounded == 0 { "under a second".to_owned() } else { format!("about {}", duration(rounded)) }
}

/// The two largest units of a time.
fn duration(seconds: u64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3_600, seconds / 86_400);
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => format!("{minutes} min {} s", seconds % 60),
        3_600..86_400 => format!("{hours} h {} min", minutes % 60),
        _ => format!("{days} d {} h", hours % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_two_units() {
        for (seconds, text) in
            [(59, "59 s"), (61, "1 min 1 s"), (3_661, "1 h 1 min"), (90_000, "1 d 1 h")]
        {
            assert_eq!(duration(seconds), text);
        }
        assert_eq!((wall(0.4), wall(61.2)), ("under a second".into(), "about 1 min 1 s".into()));
        assert_eq!(millis(1_234), "1.234");
    }
}
