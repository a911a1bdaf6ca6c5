//! How a view opens: a sentence and a chart that say which configurations fail, how, and how often.

use std::cmp::Reverse;

use maud::{Markup, html};

use super::maps::scale;
use super::{LedgerView, ReportError, percent, share, ties, value};
use crate::finding::{Code, Named, Severity};
use crate::report::chart::Head;
use crate::report::chart::heat_map::{Grid, HeatMap};
use crate::report::number;
use crate::report::table::{Class, Group, Pivot};
use crate::sweep::cell::CellId;
use crate::sweep::summary::CellSummary;

impl LedgerView<'_> {
    /// Which configurations fail, how, and how often, in one sentence.
    pub(super) fn answer(&self) -> String {
        let all = self.table.all(Class::Defect).runs;
        let ran = |cell: &&CellSummary| cell.runs > 0;
        let configurations = self.table.cells.iter().filter(ran).count() as u64;
        let worst = self.table.worst();
        if all.chances == 0 {
            return self.nothing();
        }
        let Some((cell, group)) = worst.first() else {
            return format!(
                "No configuration fails: {} runs of {} configurations without a defect: {}.",
                number::count(all.chances),
                number::count(configurations),
                share(all)
            );
        };
        let mut codes: Vec<(u64, Code)> = self
            .table
            .codes()
            .into_iter()
            .filter(|code| code.severity() == Severity::Defect)
            .map(|code| (self.table.all(Class::Code(code)).runs.hits, code))
            .collect();
        codes.sort_by_key(|&(runs, code)| (Reverse(runs), code));
        let how: Vec<String> = codes
            .iter()
            .take(3)
            .map(|(runs, code)| format!("{} ({} runs)", code.name(), number::count(*runs)))
            .collect();
        format!(
            "{} of {} configurations fail, in {} of {} runs, {}, most often by {}, and {}.",
            number::count(worst.len() as u64),
            number::count(configurations),
            number::count(all.hits),
            number::count(all.chances),
            share(all),
            how.join(", "),
            self.highest(&worst, *cell, group)
        )
    }

    /// Where the share is highest, or how many configurations share that place.
    fn highest(&self, worst: &[(CellId, Group)], cell: CellId, group: &Group) -> String {
        match ties(worst) {
            0 | 1 => format!(
                "worst at {} ({} of {} runs)",
                self.table.plan.describe(cell),
                number::count(group.runs.hits),
                number::count(group.runs.chances)
            ),
            ties => format!(
                "{} configurations tie at the highest frequency, {}",
                number::count(ties),
                percent(group.runs)
            ),
        }
    }

    /// Why there is nothing to judge.
    fn nothing(&self) -> String {
        let cells = &self.table.cells;
        let (possible, errors) = cells
            .iter()
            .filter(|cell| cell.impossible.is_none())
            .fold((0, 0), |(possible, errors), cell| (possible + 1, errors + cell.errors));
        let configurations = number::count(cells.len() as u64);
        if possible == 0 {
            format!("Nothing was run: none of the {configurations} configurations can be run.")
        } else if errors > 0 {
            let errors = number::count(errors);
            format!("Nothing can be judged: {errors} runs were tried, and none could be run.")
        } else {
            let possible = number::count(possible);
            format!(
                "Nothing was run yet: of {configurations} configurations {possible} can be run, and \
                 no run of them is done."
            )
        }
    }

    /// What makes the numbers less than they seem.
    pub(super) fn notes(&self) -> Markup {
        let plan = self.table.plan;
        let errors = self.table.cells.iter().map(|cell| cell.errors).sum::<u64>();
        let (left, due) = self.table.left();
        let missing: Vec<&str> = plan
            .marks
            .iter()
            .filter(|&&mark| self.marks.get(mark) == 0)
            .map(|mark| mark.name())
            .collect();
        let mut notes = Vec::new();
        if left > 0 {
            let (left, due) = (number::count(left), number::count(due));
            notes.push(format!("The sweep is not finished: {left} of {due} runs are left."));
        }
        if errors > 0 {
            let errors = number::count(errors);
            notes.push(format!("{errors} runs could not be run and are not counted."));
        }
        if !missing.is_empty() {
            let missing = missing.join(", ");
            notes.push(format!("Marks that had to be reached and were not: {missing}."));
        }
        html! { @for note in notes { p.note { (note) } } }
    }

    /// The opening chart: how each behaviour fails, or without such an axis any defect by both
    /// axes.
    pub(super) fn summary(&self) -> Result<Markup, ReportError> {
        let Some(behaviour) = self.shown.behaviour else {
            let pivot = self.table.pivot(Class::Defect, self.shown.rows, self.shown.columns, None);
            let map = self.heat_map(Class::Defect, &pivot, None, 1.0);
            return self.picture("summary", &map);
        };
        let mut classes = vec![Class::Defect];
        classes.extend(self.table.codes().into_iter().map(Class::Code));
        let by_behaviour = |&class| self.table.pivot(class, Some(behaviour), None, None);
        let pivots: Vec<Pivot> = classes.iter().map(by_behaviour).collect();
        let rows = pivots[0].rows.clone();
        let column = |row: usize, pivot: &Pivot| value(&pivot.groups[row][0]);
        let cells = (0..rows.len())
            .map(|row| pivots.iter().map(|pivot| column(row, pivot)).collect())
            .collect();
        let map = HeatMap {
            head: Head {
                title: format!("What fails by {}", self.axis(Some(behaviour))),
                subtitle: self.subtitle(&[Some(behaviour)]),
            },
            grid: Grid {
                rows_title: self.table.plan.axes[behaviour].name.clone(),
                columns_title: "kind of finding".to_owned(),
                rows,
                columns: classes.iter().map(|class| class.name().to_owned()).collect(),
                cells,
                compact: false,
            },
            scale: scale(1.0),
        };
        self.picture("summary", &map)
    }
}
