//! Tables: the cells that fail, worst first, and the numbers of a chart; each row with the command that
//! repeats one of its runs.

use super::{Part, ReportError, percent, ties};
use crate::finding::Named;
use crate::report::chart::Cell;
use crate::report::command::command;
use crate::report::csv::{self, Csv};
use crate::report::html::escape;
use crate::report::number;
use crate::report::table::{Class, Example, Group, Level, Pivot, RUNS_FEW, State};
use crate::sweep::plan::CellId;

/// Rows of the table of the worst configurations that are seen at once.
const WORST_SHOWN: usize = 12;
/// Rows that can be unfolded below them; the file has all.
const WORST_FOLDED: usize = 500;

impl Part<'_> {
    /// The cells that fail, the worst first, with a command for each.
    pub(super) fn worst(&mut self) -> Result<(), ReportError> {
        let worst = self.table.worst();
        if worst.is_empty() {
            return Ok(());
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
        let mut html = format!(
            "<h2 id=\"{}cells\">Configurations that fail most often</h2>\n<p>By frequency, then by \
             the lower end of its interval, then by the number of codes.{} * marks fewer than \
             {RUNS_FEW} runs.</p>\n{}",
            self.prefix,
            escape(&tie),
            self.worst_table(first)
        );
        if !folded.is_empty() {
            html += &format!(
                "<details><summary>The next {} that fail</summary>\n{}</details>\n",
                number::count(folded.len() as u64),
                self.worst_table(folded)
            );
        }
        if !left.is_empty() {
            let left = number::count(left.len() as u64);
            html += &format!("<p>{left} more that fail are in the file.</p>\n");
        }
        self.push(&html);
        self.file("cells", &self.worst_csv(&worst))
    }

    fn worst_table(&self, cells: &[(CellId, Group)]) -> String {
        let plan = self.table.plan;
        let mut html = String::from(TABLE);
        for axis in &plan.axes {
            html += &format!("<th scope=\"col\">{}</th>", escape(&axis.name));
        }
        html += "<th scope=\"col\">codes: runs</th>";
        html += &head_cells(None);
        for (cell, group) in cells {
            html += "<tr>";
            for point in plan.points(*cell) {
                html += &format!("<th scope=\"row\">{}</th>", escape(&point.name));
            }
            html += &format!("<td class=\"codes\">{}</td>", escape(&self.found(*cell)));
            html += &self.group_cells(Class::Defect, group);
            html += "</tr>\n";
        }
        html + TABLE_END
    }

    fn worst_csv(&self, worst: &[(CellId, Group)]) -> Csv {
        let plan = self.table.plan;
        let axes: Vec<&str> = plan.axes.iter().map(|axis| axis.name.as_str()).collect();
        let others = [&csv::CELL[..], &["codes", "command"]].concat();
        let row = |(cell, group): &(CellId, Group)| {
            let points = plan.points(*cell).into_iter().map(|point| point.name.clone());
            let run = group.example.map(|example| command(plan, example.cell, example.seed));
            points
                .chain(csv::cell(Cell::Share(group.runs)))
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
        &mut self,
        class: Class,
        levels: &[(Option<Level>, Pivot)],
        rows: Option<usize>,
        columns: Option<usize>,
    ) {
        let level_axis = levels[0].0.map(|level| level.axis);
        let mut html = String::from("<details><summary>Numbers and commands</summary>\n");
        html += TABLE;
        for axis in [level_axis, rows, columns].into_iter().flatten() {
            html += &format!("<th scope=\"col\">{}</th>", escape(self.axis(Some(axis))));
        }
        let per = match class {
            Class::Defect => None,
            Class::Code(code) => Some(code.chance().name()),
        };
        html += &head_cells(per);
        for (level, pivot) in levels {
            let level = level.map(|_| self.level_name(*level));
            for (row, groups) in pivot.rows.iter().zip(&pivot.groups) {
                for (column, group) in pivot.columns.iter().zip(groups) {
                    let names = [level.as_ref(), rows.map(|_| row), columns.map(|_| column)];
                    html += "<tr>";
                    for name in names.into_iter().flatten() {
                        html += &format!("<th scope=\"row\">{}</th>", escape(name));
                    }
                    html += &self.group_cells(class, group);
                    html += "</tr>\n";
                }
            }
        }
        self.push(&(html + TABLE_END + "</details>\n"));
    }

    fn group_cells(&self, class: Class, group: &Group) -> String {
        let few = if group.runs.chances < RUNS_FEW { " <b title=\"few runs\">*</b>" } else { "" };
        let mut html = match (group.runs.interval(), group.state) {
            (None, State::Impossible) => {
                let reason = group.first.and_then(|id| self.table.cell(id).impossible.as_deref());
                let reason = escape(reason.unwrap_or("no cell"));
                format!("<td colspan=\"4\" class=\"reason\">impossible: {reason}</td>")
            }
            (None, State::NotRun) => "<td colspan=\"4\">not run yet</td>".to_owned(),
            (None, State::Ran) => "<td colspan=\"4\">not reached</td>".to_owned(),
            (Some(interval), _) => format!(
                "<td class=\"number\">{}</td><td class=\"number\">{}{few}</td>\
                 <td class=\"number\">{}</td><td>{} to {}</td>",
                number::count(group.runs.hits),
                number::count(group.runs.chances),
                escape(&number::percent(interval.share)),
                escape(&number::percent(interval.low)),
                escape(&number::percent(interval.high)),
            ),
        };
        // Findings of any defect would be runs again.
        if matches!(class, Class::Code(_)) {
            let rate = group.findings;
            let (hits, chances) = (number::count(rate.hits), number::count(rate.chances));
            let share = rate.interval().map_or(String::new(), |interval| {
                format!(" = {}", escape(&number::percent(interval.share)))
            });
            html += &format!("<td>{hits} / {chances}{share}</td>");
        }
        let run = match group.example {
            None => String::new(),
            Some(Example { cell, seed, found }) => {
                let command = escape(&command(self.table.plan, cell, seed));
                let what = match (found, class) {
                    (true, _) => "",
                    (false, Class::Defect) => " <i>(clean)</i>",
                    (false, Class::Code(_)) => " <i>(without this code)</i>",
                };
                format!("<code>{command}</code>{what}")
            }
        };
        html + &format!("<td class=\"command\">{run}</td>")
    }
}

/// How a table begins, up to the cells of its head.
pub(super) const TABLE: &str = "<div class=\"wide\" tabindex=\"0\"><table>\n<thead><tr>";
/// How it ends.
pub(super) const TABLE_END: &str = "</tbody></table></div>\n";

/// The heads of what [`Part::group_cells`] writes; `per` is what findings are counted against.
fn head_cells(per: Option<&str>) -> String {
    let findings = per.map_or(String::new(), |per| format!("<th>findings / {}</th>", escape(per)));
    format!(
        "<th class=\"number\">runs found</th><th class=\"number\">n</th>\
         <th class=\"number\">frequency</th><th>95 % interval</th>{findings}\
         <th>run it</th></tr></thead>\n<tbody>\n"
    )
}
