//! One self-contained HTML page: charts, the table beside each, and a command for every cell.
//!
//! It needs neither network nor script, follows the reader's light or dark theme and fits narrow
//! screens. The charts also lie beside it as SVG and PNG files.

use std::path::{Path, PathBuf};

use super::chart::bars::{Bar, Bars};
use super::chart::heat_map::{Cell, HeatMap};
use super::chart::{self, Chart, ChartError, Head};
use super::command::command;
use super::html::{document, escape, sentence, slug};
use super::number;
use super::table::{Class, Example, Group, Pivot, RUNS_FEW, Table};
use crate::finding::{Code, Mark, Named, Severity, Tally};
use crate::sweep::ledger::{Ledger, LedgerError};
use crate::sweep::plan::{CellId, Plan};
use crate::sweep::summary::CellSummary;

/// Why a report could not be written.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The ledger cannot be read.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// A chart cannot be drawn.
    #[error(transparent)]
    Chart(#[from] ChartError),
    /// A file cannot be written.
    #[error("{}: {source}", path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The plan has no such axis.
    #[error("axis: must be one of {known}, got \"{name}\"")]
    UnknownAxis {
        /// The name asked for.
        name: String,
        /// The names that there are.
        known: String,
    },
}

/// Names of the axes of the heat maps: rows and columns.
pub type Axes = (String, String);

/// Writes `index.html` and every chart as SVG and PNG into the folder `out`, which is made if need
/// be. Without `axes` the heat maps show page size and ranks if the plan varies them, else its first
/// two axes. Answers the page's path.
pub fn write(ledger: &Ledger, axes: Option<&Axes>, out: &Path) -> Result<PathBuf, ReportError> {
    let fail = |path: &Path, source| ReportError::Write { path: path.to_owned(), source };
    std::fs::create_dir_all(out).map_err(|source| fail(out, source))?;
    let cells = ledger.summaries()?;
    let marks = ledger.marks()?;
    let mut page = Page {
        table: Table { plan: &ledger.plan, cells: &cells },
        marks: &marks,
        shown: shown(&ledger.plan, axes)?,
        out,
        html: String::new(),
    };
    page.all()?;
    let path = out.join("index.html");
    let html = document(&ledger.plan.title, &page.html);
    std::fs::write(&path, html).map_err(|source| fail(&path, source))?;
    Ok(path)
}

/// Numbers of the axes that the charts show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shown {
    rows: Option<usize>,
    columns: Option<usize>,
    behaviour: Option<usize>,
}

fn shown(plan: &Plan, axes: Option<&Axes>) -> Result<Shown, ReportError> {
    let sets = |wanted: &dyn Fn(&str) -> bool| {
        plan.axes.iter().position(|axis| {
            let mut settings = axis.points.iter().flat_map(|point| &point.set);
            settings.any(|(path, _)| wanted(path))
        })
    };
    let behaviour = sets(&|path| path.starts_with("behaviour.") || path == "profile");
    let (rows, columns) = match axes {
        Some((rows, columns)) => {
            let rows = axis(plan, rows, None)?;
            (Some(rows), Some(axis(plan, columns, Some(rows))?))
        }
        None => {
            let pages = sets(&|path| path == "layout.page_size");
            let ranks = sets(&|path| path == "layout.ranks");
            match (pages, ranks) {
                (Some(pages), Some(ranks)) if pages != ranks => (Some(pages), Some(ranks)),
                _ => {
                    let place = |place| (place < plan.axes.len()).then_some(place);
                    (place(0), place(1))
                }
            }
        }
    };
    Ok(Shown { rows, columns, behaviour })
}

/// The number of an axis other than `taken`.
fn axis(plan: &Plan, name: &str, taken: Option<usize>) -> Result<usize, ReportError> {
    let free = || plan.axes.iter().enumerate().filter(|(index, _)| Some(*index) != taken);
    let found = free().find(|(_, axis)| axis.name == name);
    found.map(|(index, _)| index).ok_or_else(|| {
        let known: Vec<&str> = free().map(|(_, axis)| axis.name.as_str()).collect();
        ReportError::UnknownAxis { name: name.to_owned(), known: known.join(", ") }
    })
}

/// The page while it is written.
struct Page<'a> {
    table: Table<'a>,
    marks: &'a Tally<Mark>,
    shown: Shown,
    out: &'a Path,
    html: String,
}

/// "3.4 % (2.1 to 5.5 %)", or that it was not reached.
fn share(rate: crate::stats::Rate) -> String {
    match rate.interval() {
        None => "not reached".to_owned(),
        Some(interval) => format!(
            "{} (95 % interval {} to {})",
            number::percent(interval.share),
            number::percent(interval.low),
            number::percent(interval.high)
        ),
    }
}

impl Page<'_> {
    fn all(&mut self) -> Result<(), ReportError> {
        let title = escape(&self.table.plan.title);
        let answer = escape(&self.answer());
        self.push(&format!("<h1>{title}</h1>\n<p class=\"answer\">{answer}</p>\n"));
        self.notes();
        self.summary()?;
        self.worst();
        self.class(Class::Defect)?;
        for code in self.table.codes() {
            self.class(Class::Code(code))?;
        }
        self.absent();
        self.reached();
        self.impossible();
        self.sources();
        Ok(())
    }

    fn push(&mut self, html: &str) {
        self.html.push_str(html);
    }

    /// Which configurations fail, how, and how often, in one sentence.
    fn answer(&self) -> String {
        let all = self.table.all(Class::Defect).runs;
        let ran = |cell: &&CellSummary| cell.runs > 0;
        let configurations = self.table.cells.iter().filter(ran).count() as u64;
        let worst = self.table.worst();
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
        codes.sort_by_key(|&(runs, code)| (std::cmp::Reverse(runs), code));
        let how: Vec<String> = codes
            .iter()
            .take(3)
            .map(|(runs, code)| format!("{} ({} runs)", code.name(), number::count(*runs)))
            .collect();
        format!(
            "{} of {} configurations fail, in {} of {} runs, {}, most often by {}, and worst at {} \
             ({} of {} runs).",
            number::count(worst.len() as u64),
            number::count(configurations),
            number::count(all.hits),
            number::count(all.chances),
            share(all),
            how.join(", "),
            self.table.plan.describe(*cell),
            number::count(group.runs.hits),
            number::count(group.runs.chances),
        )
    }

    /// What makes the numbers less than they seem.
    fn notes(&mut self) {
        let plan = self.table.plan;
        let sum = |count: &dyn Fn(&CellSummary) -> u64| -> u64 {
            self.table.cells.iter().map(count).sum()
        };
        let impossible = sum(&|cell| u64::from(cell.impossible.is_some()));
        let errors = sum(&|cell| cell.errors);
        let due = (plan.cells() - impossible) * plan.seeds.count;
        let left = due - sum(&|cell| cell.runs) - errors;
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
        for note in notes {
            self.push(&format!("<p class=\"note\">{}</p>\n", escape(&note)));
        }
    }

    /// The opening chart: how each behaviour fails, or without such an axis any defect by both axes.
    fn summary(&mut self) -> Result<(), ReportError> {
        let Some(behaviour) = self.shown.behaviour else {
            let pivot = self.table.pivot(Class::Defect, self.shown.rows, self.shown.columns);
            let map = self.heat_map(Class::Defect, &pivot, 1.0);
            return self.picture("summary", &map);
        };
        let mut classes = vec![Class::Defect];
        classes.extend(self.table.codes().into_iter().map(Class::Code));
        let pivots: Vec<Pivot> =
            classes.iter().map(|&class| self.table.pivot(class, Some(behaviour), None)).collect();
        let rows = pivots[0].rows.clone();
        let column = |row: usize, pivot: &Pivot| cell(&pivot.groups[row][0]);
        let cells = (0..rows.len())
            .map(|row| pivots.iter().map(|pivot| column(row, pivot)).collect())
            .collect();
        let map = HeatMap {
            head: Head {
                title: "What fails under which behaviour".to_owned(),
                subtitle: format!("share of runs {}", self.others(&[Some(behaviour)])),
            },
            rows_title: self.table.plan.axes[behaviour].name.clone(),
            columns_title: "kind of finding".to_owned(),
            rows,
            columns: classes.iter().map(|class| class.name().to_owned()).collect(),
            cells,
            end: 1.0,
            unit: UNIT.to_owned(),
            few: RUNS_FEW,
        };
        self.picture("summary", &map)
    }

    /// The worst configurations, with a command for each.
    fn worst(&mut self) {
        let plan = self.table.plan;
        let worst = self.table.worst();
        if worst.is_empty() {
            return;
        }
        let rest = worst.len().saturating_sub(WORST_SHOWN);
        let mut html =
            String::from("<h2>Worst configurations</h2>\n<div class=\"wide\"><table>\n<thead><tr>");
        for axis in &plan.axes {
            html += &format!("<th scope=\"col\">{}</th>", escape(&axis.name));
        }
        html += "<th scope=\"col\">codes: runs</th>";
        html += &head_cells(None);
        for (cell, group) in worst.iter().take(WORST_SHOWN) {
            html += "<tr>";
            for point in plan.points(*cell) {
                html += &format!("<th scope=\"row\">{}</th>", escape(&point.name));
            }
            html += &format!("<td class=\"codes\">{}</td>", escape(&self.found(*cell)));
            html += &self.group_cells(group, false);
            html += "</tr>\n";
        }
        html += "</tbody></table></div>\n";
        if rest > 0 {
            html += &format!(
                "<p class=\"files\">and {} more that fail</p>\n",
                number::count(rest as u64)
            );
        }
        self.push(&html);
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

    /// A class of error: what it is, by both axes, and by behaviour.
    fn class(&mut self, class: Class) -> Result<(), ReportError> {
        let all = self.table.all(class);
        let meaning = match class {
            Class::Defect => "a run with any finding that a sound system never produces".to_owned(),
            Class::Code(code) => format!(
                "{} (counted once for each {}, out of {})",
                code.doc(),
                code.unit(),
                code.chance().doc()
            ),
        };
        let name = class.name();
        self.push(&format!(
            "<section id=\"{}\">\n<h2>{}</h2>\n<p>{}. All together: {} of {} runs, {}.</p>\n",
            slug(name),
            escape(name),
            escape(&sentence(&meaning)),
            number::count(all.runs.hits),
            number::count(all.runs.chances),
            escape(&share(all.runs)),
        ));
        let Shown { rows, columns, .. } = self.shown;
        let pivot = self.table.pivot(class, rows, columns);
        let map = self.heat_map(class, &pivot, chart::scale_end(share_max(&pivot)));
        self.picture(&format!("{}-heat-map", slug(name)), &map)?;
        self.pivot_table(class, &pivot, rows, columns);
        if let Some(behaviour) = self.shown.behaviour {
            let pivot = self.table.pivot(class, Some(behaviour), None);
            let bars = self.bars(class, &pivot, behaviour);
            self.picture(&format!("{}-bars", slug(name)), &bars)?;
            self.pivot_table(class, &pivot, Some(behaviour), None);
        }
        self.push("</section>\n");
        Ok(())
    }

    fn heat_map(&self, class: Class, pivot: &Pivot, end: f64) -> HeatMap {
        let Shown { rows, columns, .. } = self.shown;
        let axes = [rows, columns].into_iter().flatten();
        let names: Vec<&str> = axes.map(|axis| self.axis(Some(axis))).collect();
        HeatMap {
            head: Head {
                title: format!("{} by {}", class.name(), names.join(" × ")),
                subtitle: format!("share of runs {}", self.others(&[rows, columns])),
            },
            rows_title: self.axis(rows).to_owned(),
            columns_title: self.axis(columns).to_owned(),
            rows: pivot.rows.clone(),
            columns: pivot.columns.clone(),
            cells: pivot.groups.iter().map(|row| row.iter().map(cell).collect()).collect(),
            end,
            unit: UNIT.to_owned(),
            few: RUNS_FEW,
        }
    }

    fn bars(&self, class: Class, pivot: &Pivot, behaviour: usize) -> Bars {
        let rates = pivot.groups.iter().map(|row| row[0].runs);
        let high = rates.clone().filter_map(|rate| rate.interval());
        let max = high.map(|interval| interval.high).fold(0.0, f64::max);
        let bar = |(name, rate): (&String, _)| Bar { name: name.clone(), rate };
        Bars {
            head: Head {
                title: format!("{} by {}", class.name(), self.axis(Some(behaviour))),
                subtitle: format!("share of runs {}", self.others(&[Some(behaviour)])),
            },
            bars: pivot.rows.iter().zip(rates).map(bar).collect(),
            unit: format!("{UNIT}, with 95 % Wilson intervals"),
            end: chart::scale_end(max),
            few: RUNS_FEW,
        }
    }

    fn axis(&self, axis: Option<usize>) -> &str {
        axis.map_or("all", |axis| &self.table.plan.axes[axis].name)
    }

    /// What a chart of these axes adds up.
    fn others(&self, shown: &[Option<usize>]) -> String {
        let plan = self.table.plan;
        let axes = plan.axes.iter().enumerate();
        let hidden = axes.filter(|(index, _)| !shown.contains(&Some(*index)));
        let names: Vec<String> = hidden
            .map(|(_, axis)| format!("{} ({} values)", axis.name, axis.points.len()))
            .collect();
        let over = if names.is_empty() {
            String::new()
        } else {
            format!("over {}; ", names.join(" and "))
        };
        format!("{over}{} seeds a cell", plan.seeds.count)
    }

    /// Puts a chart onto the page, and beside it as two files.
    fn picture(&mut self, name: &str, chart: &impl Chart) -> Result<(), ReportError> {
        let svg = chart::svg(chart)?;
        let path = self.out.join(format!("{name}.svg"));
        std::fs::write(&path, &svg).map_err(|source| ReportError::Write { path, source })?;
        chart::png(chart, &self.out.join(format!("{name}.png")))?;
        // Below 70 % of its size a chart's text is too small: narrow screens scroll instead.
        let width = chart.size().0 * 7 / 10;
        self.push(&format!(
            "<div class=\"chart\" style=\"--least:{width}px\">\n{}\n</div>\n\
             <p class=\"files\"><a href=\"{name}.svg\">SVG</a> <a href=\"{name}.png\">PNG</a></p>\n",
            svg.trim()
        ));
        Ok(())
    }

    /// The numbers of a chart, with a command for each of its cells.
    fn pivot_table(
        &mut self,
        class: Class,
        pivot: &Pivot,
        rows: Option<usize>,
        columns: Option<usize>,
    ) {
        let axes: Vec<&str> =
            [rows, columns].into_iter().flatten().map(|axis| self.axis(Some(axis))).collect();
        let mut html = String::from("<div class=\"wide\"><table>\n<thead><tr>");
        for name in &axes {
            html += &format!("<th scope=\"col\">{}</th>", escape(name));
        }
        let per = match class {
            Class::Defect => None,
            Class::Code(code) => Some(code.chance().name()),
        };
        html += &head_cells(per);
        for (row, groups) in pivot.rows.iter().zip(&pivot.groups) {
            for (column, group) in pivot.columns.iter().zip(groups) {
                let names = [rows.map(|_| row), columns.map(|_| column)];
                html += "<tr>";
                for name in names.into_iter().flatten() {
                    html += &format!("<th scope=\"row\">{}</th>", escape(name));
                }
                html += &self.group_cells(group, per.is_some());
                html += "</tr>\n";
            }
        }
        html += "</tbody></table></div>\n";
        self.push(&html);
    }

    fn group_cells(&self, group: &Group, with_findings: bool) -> String {
        let few = if group.runs.chances < RUNS_FEW { " <b title=\"few runs\">*</b>" } else { "" };
        let mut html = match (group.runs.interval(), group.impossible) {
            (None, true) => "<td colspan=\"4\">impossible</td>".to_owned(),
            (None, false) => "<td colspan=\"4\">not reached</td>".to_owned(),
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
        if with_findings {
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
                let what = if found { "" } else { " <i>(clean)</i>" };
                format!("<code>{command}</code>{what}")
            }
        };
        html + &format!("<td class=\"command\">{run}</td>")
    }

    /// Codes that nothing found: out of how many chances.
    fn absent(&mut self) {
        let found = self.table.codes();
        self.push(
            "<section>\n<h2>Never found</h2>\n<div class=\"wide\"><table>\n<thead><tr>\
             <th>code</th><th class=\"number\">n</th><th>95 % interval</th>\
             <th>meaning</th></tr></thead>\n<tbody>\n",
        );
        for &code in Code::ALL.iter().filter(|code| !found.contains(code)) {
            let runs = self.table.all(Class::Code(code)).runs;
            let interval = runs.interval().map_or("not reached".to_owned(), |interval| {
                format!("0 to {}", number::percent(interval.high))
            });
            self.push(&format!(
                "<tr><th scope=\"row\">{}</th><td class=\"number\">{}</td><td>{}</td><td>{}</td></tr>\n",
                escape(code.name()),
                number::count(runs.chances),
                escape(&interval),
                escape(code.doc())
            ));
        }
        self.push("</tbody></table></div>\n</section>\n");
    }

    /// Code paths, and in how many runs each was reached.
    fn reached(&mut self) {
        self.push(
            "<section>\n<h2>Code paths reached</h2>\n<div class=\"wide\"><table>\n<thead><tr>\
             <th>mark</th><th class=\"number\">runs</th><th>meaning</th></tr></thead>\n<tbody>\n",
        );
        for (mark, runs) in self.marks.iter() {
            let due = self.table.plan.marks.contains(&mark);
            let runs = match (runs, due) {
                (0, true) => "<b>not reached, though it must be</b>".to_owned(),
                (0, false) => "not reached".to_owned(),
                (runs, _) => number::count(runs),
            };
            self.push(&format!(
                "<tr><th scope=\"row\">{}</th><td class=\"number\">{runs}</td><td>{}</td></tr>\n",
                escape(mark.name()),
                escape(mark.doc())
            ));
        }
        self.push("</tbody></table></div>\n</section>\n");
    }

    fn impossible(&mut self) {
        let plan = self.table.plan;
        let cells = self.table.cells;
        let reason = |id: CellId| cells.get(usize::try_from(id.0).ok()?)?.impossible.as_deref();
        let ids = (0..plan.cells()).map(CellId);
        let impossible: Vec<_> = ids.filter_map(|id| Some((id, reason(id)?))).collect();
        if impossible.is_empty() {
            return;
        }
        self.push("<section>\n<h2>Cells that cannot be run</h2>\n<ul>\n");
        for (id, reason) in impossible {
            let line = escape(&format!("{}: {reason}", plan.describe(id)));
            self.push(&format!("<li>{line}</li>\n"));
        }
        self.push("</ul>\n</section>\n");
    }

    fn sources(&mut self) {
        let sources = &self.table.plan.sources;
        let files = [(&sources.plan_path, &sources.plan), (&sources.base_path, &sources.base)];
        self.push("<section>\n<h2>The plan</h2>\n");
        for (path, text) in files {
            self.push(&format!(
                "<details><summary>{}</summary><pre>{}</pre></details>\n",
                escape(&path.display().to_string()),
                escape(text)
            ));
        }
        let version = env!("CARGO_PKG_VERSION");
        self.push(&format!("<p class=\"files\">kvseam {version}</p>\n</section>\n"));
    }
}

const UNIT: &str = "runs with a finding, per cent of runs with a chance";

/// Rows of the table of the worst configurations.
const WORST_SHOWN: usize = 12;

/// The heads of what [`Page::group_cells`] writes; `per` is what findings are counted against.
fn head_cells(per: Option<&str>) -> String {
    let findings = per.map_or(String::new(), |per| format!("<th>findings / {}</th>", escape(per)));
    format!(
        "<th class=\"number\">runs found</th><th class=\"number\">n</th>\
         <th class=\"number\">frequency</th><th>95 % interval</th>{findings}\
         <th>run it</th></tr></thead>\n<tbody>\n"
    )
}

fn cell(group: &Group) -> Cell {
    if group.impossible { Cell::Impossible } else { Cell::Share(group.runs) }
}

fn share_max(pivot: &Pivot) -> f64 {
    let groups = pivot.groups.iter().flatten();
    let shares = groups.filter_map(|group| group.runs.interval());
    shares.map(|interval| interval.share).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::execute::tests::{Scratch, swept};
    use crate::sweep::plan::tests::{PLAN, small, sources};

    #[test]
    fn axes_default_to_page_size_and_ranks_and_unknown_ones_are_refused() {
        let plan = small();
        let shown_by_default = Shown { rows: Some(0), columns: Some(1), behaviour: Some(2) };
        assert_eq!(shown(&plan, None).unwrap(), shown_by_default);
        let axes = ("behaviour".to_owned(), "layout.rings".to_owned());
        let error = shown(&plan, Some(&axes)).unwrap_err().to_string();
        assert_eq!(
            error,
            "axis: must be one of layout.page_size, layout.ranks, got \"layout.rings\""
        );
        let twice = ("behaviour".to_owned(), "behaviour".to_owned());
        assert!(shown(&plan, Some(&twice)).is_err());
        let one = PLAN
            .replace("layout.ranks", "decode.pages")
            .replace("layout.page_size", "prefill.pages");
        let plan = crate::sweep::plan::Plan::parse(sources(&one)).unwrap();
        assert_eq!(shown(&plan, None).unwrap(), shown_by_default);
    }

    #[test]
    fn a_report_says_what_fails_and_needs_neither_network_nor_script() {
        let (path, out) = (Scratch::new("report-ledger"), Scratch::new("report"));
        let (ledger, _) = swept(&path, 1);
        let page = write(&ledger, None, &out.0).unwrap();
        let html = std::fs::read_to_string(page).unwrap();
        // Of 6 possible cells with 3 seeds, one cell fails at the odd seeds 5 and 7.
        let answer = "1 of 6 configurations fail, in 2 of 18 runs, 11 % (95 % interval 3.1 % to 33 %), \
                      most often by placed.missing (2 runs), and worst at layout.page_size = 16, \
                      layout.ranks = 2, behaviour = padded up (2 of 3 runs).";
        assert!(html.contains(answer), "{html}");
        for part in ["<script", "http-equiv", "src=", "@import", "url("] {
            assert!(!html.contains(part), "{part}");
        }
        // One rank has no transfer to activate, two ranks do not fit with pages of 64.
        let map = std::fs::read_to_string(out.0.join("placed-missing-heat-map.svg")).unwrap();
        assert!(map.contains("not reached") && map.contains("impossible"), "{map}");
        assert!(html.contains("<td colspan=\"4\">not reached</td>"));
        for name in ["summary.png", "any-defect-bars.svg", "placed-missing-bars.png"] {
            assert!(out.0.join(name).is_file(), "{name}");
        }
    }
}
