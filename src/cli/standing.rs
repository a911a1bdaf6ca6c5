//! How a ledger stands: what `sweep` and `merge` end with.

use std::path::Path;

use serde::Serialize;

use super::output::{Align, Format, columns, print, print_json, row};
use super::{CliError, Exit};
use crate::finding::{Mark, Named};
use crate::report::number::count;
use crate::sweep::execute::Progress;
use crate::sweep::judge::{Judged, Violated};
use crate::sweep::ledger::Ledger;

/// How a ledger stands.
#[derive(Serialize)]
pub(super) struct Standing {
    ledger: String,
    title: String,
    /// Which part of the sweep it is, where it is one.
    shard: Option<String>,
    cells: u64,
    cells_impossible: u64,
    runs: u64,
    runs_done: u64,
    runs_with_defects: u64,
    runs_failed: u64,
    marks_missing: Vec<Mark>,
    rates_violated: Vec<String>,
    /// Whether the sweep was told to stop.
    pub(super) is_interrupted: bool,
    /// Runs that a merge did not find in any ledger.
    pub(super) gaps: Vec<String>,
}

impl Standing {
    pub(super) fn new(
        path: &Path,
        ledger: &Ledger,
        progress: Progress,
        judged: &Judged,
    ) -> Result<Standing, CliError> {
        let impossible = ledger.impossible().map_err(CliError::input)?;
        Ok(Standing {
            ledger: path.display().to_string(),
            title: ledger.plan.title.clone(),
            shard: (!ledger.shard.is_whole()).then(|| ledger.shard.to_string()),
            cells: ledger.plan.cells(),
            cells_impossible: impossible.len() as u64,
            runs: progress.total,
            runs_done: progress.done,
            runs_with_defects: judged.defects,
            runs_failed: judged.errors,
            marks_missing: judged.marks_missing.clone(),
            rates_violated: judged.violated.iter().map(Violated::to_string).collect(),
            is_interrupted: false,
            gaps: Vec::new(),
        })
    }

    pub(super) fn print(&self, format: Format) -> Result<(), CliError> {
        match format {
            Format::Table => print(&self.text()),
            Format::Json => print_json(self),
        }
    }

    pub(super) fn exit(&self) -> Exit {
        let is_met = self.marks_missing.is_empty() && self.rates_violated.is_empty();
        if self.is_interrupted {
            Exit::Interrupted
        } else if self.runs_failed > 0 {
            Exit::Failed
        } else if !is_met || !self.gaps.is_empty() {
            Exit::Unmet
        } else {
            Exit::Clean
        }
    }

    fn text(&self) -> String {
        let mut rows = vec![row(["ledger", &self.ledger])];
        if let Some(shard) = &self.shard {
            rows.push(row(["shard", &format!("{shard}; marks and rates are judged by merge")]));
        }
        let (cells, impossible) = (count(self.cells), count(self.cells_impossible));
        rows.push(row(["cells", &format!("{cells}, {impossible} left out")]));
        let runs = format!(
            "{} of {}: {} with a defect, {} failed",
            count(self.runs_done),
            count(self.runs),
            count(self.runs_with_defects),
            count(self.runs_failed)
        );
        rows.push(row(["runs", &runs]));
        if !self.marks_missing.is_empty() {
            let names: Vec<&str> = self.marks_missing.iter().map(|mark| mark.name()).collect();
            rows.push(row(["marks never reached", &names.join(", ")]));
        }
        rows.extend(self.rates_violated.iter().map(|text| row(["rate not as expected", text])));
        rows.extend(self.gaps.iter().map(|text| row(["gap", text])));
        if self.is_interrupted {
            rows.push(row(["interrupted", "the same command does the rest"]));
        } else if self.runs_done < self.runs && self.gaps.is_empty() {
            rows.push(row(["time is up", "the same command goes on"]));
        }
        format!("{}\n{}", self.title, columns(&[Align::Left, Align::Left], &rows))
    }
}
