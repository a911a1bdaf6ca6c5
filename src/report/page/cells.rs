//! Tables: the cells that fail, worst first, and the numbers of a chart; each row with the command
//! that repeats one of its runs.

use maud::{Markup, html};

use super::rows::{Column, Field, Rows};
use super::{LedgerView, ReportError, percent, ties};
use crate::finding::Named;
use crate::report::command::command;
use crate::report::csv::{self, Csv};
use crate::report::number;
use crate::report::table::{Class, Example, Group, Level, Pivot, RUNS_FEW, State};
use crate::report::value::Value;
use crate::sweep::cell::CellId;

/// Rows of the table of the worst configurations that are seen at once.
const WORST_SHOWN: usize = 12;
/// Rows that can be unfolded below them; the file has all.
const WORST_FOLDED: usize = 500;

impl LedgerView<'_> {
    /// The cells that fail, the worst first, with a command for each.
    pub(super) fn worst(&self) -> Result<Markup, ReportError> {
        let worst = self.table.worst();
        if worst.is_empty() {
            return Ok(html! {});
        }
        let tie = match ties(&worst) {
            0 | 1 => String::new(),
            ties => format!(
                " {} configurations tie at the highest frequency, {}.",
                number::count(ties),
                percent(worst[0].1.runs)
            ),
        };
        let (first, rest) = worst.split_at(worst.len().min(WORST_SHOWN));
        let (folded, left) = rest.split_at(rest.len().min(WORST_FOLDED));
        let file = self.file("cells", &self.worst_csv(&worst))?;
        Ok(html! {
            h2 id={ (self.prefix) "cells" } { "Configurations that fail most often" }
            p {
                "By frequency, then by the lower end of its interval, then by the number of codes."
                (tie) " * marks fewer than " (RUNS_FEW) " runs."
            }
            (self.worst_table(first))
            @if !folded.is_empty() {
                details {
                    summary { "The next " (number::count(folded.len() as u64)) " that fail" }
                    (self.worst_table(folded))
                }
            }
            @if !left.is_empty() {
                p { (number::count(left.len() as u64)) " more that fail are in the file." }
            }
            (file)
        })
    }

    fn worst_table(&self, cells: &[(CellId, Group)]) -> Markup {
        let plan = self.table.plan;
        let axes = plan.axes.iter().map(|axis| Column::name(&axis.name));
        let columns = axes.chain([Column::text("codes: runs")]).chain(counts(None));
        let mut rows = Rows::new(columns.collect());
        for (cell, group) in cells {
            let points = plan.points(*cell).into_iter().map(|point| Field::text(&point.name));
            let mut fields: Vec<Field> = points.collect();
            fields.push(Field::html(html! { span.codes { (self.found(*cell)) } }));
            fields.extend(self.group_fields(Class::Defect, group));
            rows.add(fields, self.run(Class::Defect, group));
        }
        rows.html()
    }

    fn worst_csv(&self, worst: &[(CellId, Group)]) -> Csv {
        let plan = self.table.plan;
        let axes: Vec<&str> = plan.axes.iter().map(|axis| axis.name.as_str()).collect();
        let others = [&csv::VALUE[..], &["codes", "command"]].concat();
        let row = |(cell, group): &(CellId, Group)| {
            let points = plan.points(*cell).into_iter().map(|point| point.name.clone());
            let run = group.example.map(|example| command(plan, example.cell, example.seed));
            points
                .chain(csv::value(Value::Share(group.runs)))
                .chain([self.found(*cell), run.unwrap_or_default()])
                .collect()
        };
        Csv { head: csv::head(&axes, &others), rows: worst.iter().map(row).collect() }
    }

    /// The codes that a cell's runs found, each with its number of runs.
    fn found(&self, cell: CellId) -> String {
        let codes = &self.table.cell(cell).codes;
        let codes: Vec<String> = codes
            .iter()
            .map(|(code, found)| format!("{}: {}", code.name(), number::count(found.runs)))
            .collect();
        codes.join(", ")
    }

    /// The numbers of a chart, folded, with a command for each of its cells.
    pub(super) fn pivot_table(
        &self,
        class: Class,
        levels: &[(Option<Level>, Pivot)],
        rows: Option<usize>,
        columns: Option<usize>,
    ) -> Markup {
        let level_axis = levels[0].0.map(|level| level.axis);
        let axes = [level_axis, rows, columns].into_iter().flatten();
        let names = axes.map(|axis| Column::name(self.axis(Some(axis))));
        let per = match class {
            Class::Defect => None,
            Class::Code(code) => Some(code.chance().name()),
        };
        let mut table = Rows::new(names.chain(counts(per)).collect());
        for (level, pivot) in levels {
            let level = level.map(|_| self.level_name(*level));
            for (row, groups) in pivot.rows.iter().zip(&pivot.groups) {
                for (column, group) in pivot.columns.iter().zip(groups) {
                    let names = [level.as_ref(), rows.map(|_| row), columns.map(|_| column)];
                    let names = names.into_iter().flatten().map(|name| Field::text(name));
                    let fields = names.chain(self.group_fields(class, group)).collect();
                    table.add(fields, self.run(class, group));
                }
            }
        }
        html! { details { summary { "Numbers and commands" } (table.html()) } }
    }

    /// The fields below the columns of [`counts`].
    fn group_fields(&self, class: Class, group: &Group) -> Vec<Field> {
        let mut fields = match (group.runs.interval(), group.state) {
            (None, State::Impossible) => {
                let reason = group.first.and_then(|id| self.table.cell(id).impossible.as_deref());
                let reason = reason.unwrap_or("no cell");
                vec![Field::text(&format!("left out: {reason}")).over(COUNTS)]
            }
            (None, State::NotRun) => vec![Field::text("not run yet").over(COUNTS)],
            (None, State::Ran) => vec![Field::text("not reached").over(COUNTS)],
            (Some(interval), _) => vec![
                Field::text(&number::count(group.runs.hits)),
                Field::html(html! {
                    (number::count(group.runs.chances))
                    @if group.runs.chances < RUNS_FEW { " " b title="few runs" { "*" } }
                }),
                Field::text(&number::percent(interval.share)),
                Field::text(&format!(
                    "{} to {}",
                    number::percent(interval.low),
                    number::percent(interval.high)
                )),
            ],
        };
        // For any defect, findings are counted in runs, which stand there already.
        if matches!(class, Class::Code(_)) {
            let rate = group.findings;
            let (hits, chances) = (number::count(rate.hits), number::count(rate.chances));
            let share = rate.interval().map_or(String::new(), |interval| {
                format!(" = {}", number::percent(interval.share))
            });
            fields.push(Field::text(&format!("{hits} / {chances}{share}")));
        }
        fields
    }

    /// The command that repeats a run of the group.
    fn run(&self, class: Class, group: &Group) -> Option<Markup> {
        let Example { cell, seed, found } = group.example?;
        let what = match (found, class) {
            (true, _) => None,
            (false, Class::Defect) => Some("(clean)"),
            (false, Class::Code(_)) => Some("(without this code)"),
        };
        Some(html! {
            code { (command(self.table.plan, cell, seed)) }
            @if let Some(what) = what { " " i { (what) } }
        })
    }
}

/// Columns of a frequency.
const COUNTS: usize = 4;

/// Columns for the numbers of a group; `per` is what findings are counted against.
fn counts(per: Option<&str>) -> Vec<Column> {
    let mut columns = vec![
        Column::number("runs found"),
        Column::number("n"),
        Column::number("frequency"),
        Column::text("95 % interval"),
    ];
    columns.extend(per.map(|per| Column::text(&format!("findings / {per}"))));
    columns
}
