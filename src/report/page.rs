//! One self-contained HTML page: charts, the table beside each, and a command for every cell.
//!
//! It needs neither network nor script, follows the reader's light or dark theme and fits narrow
//! screens. The charts also lie beside it as SVG and PNG files.

use std::path::{Path, PathBuf};

use super::chart::bars::{Bar, Bars};
use super::chart::heat_map::HeatMap;
use super::chart::{self, Cell, Chart, ChartError, Head};
use super::command::command;
use super::former;
use super::html::{document, escape, sentence, slug, slugs};
use super::number;
use super::table::{Class, Example, Group, Level, Pivot, RUNS_FEW, State, Table};
use crate::finding::{Code, Mark, Named, Severity, Tally};
use crate::stats::Rate;
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
/// two axes. Charts of a former report there that this one has not are removed. Answers the page's
/// path.
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
    // Without a former page that can be read there is nothing known to be ours.
    let before = std::fs::read_to_string(&path).unwrap_or_default();
    std::fs::write(&path, &html).map_err(|source| fail(&path, source))?;
    let stale = &former::charts(&before) - &former::charts(&html);
    former::remove(out, stale.iter()).map_err(|source| fail(out, source))?;
    Ok(path)
}

/// Numbers of the axes that the charts show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shown {
    rows: Option<usize>,
    columns: Option<usize>,
    /// Has a heat map for each of its points.
    levels: Option<usize>,
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
    let free = |axis: &usize| ![rows, columns].contains(&Some(*axis));
    let levels = behaviour.filter(free).or_else(|| (0..plan.axes.len()).find(free));
    Ok(Shown { rows, columns, levels, behaviour })
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
fn share(rate: Rate) -> String {
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
        codes.sort_by_key(|&(runs, code)| (std::cmp::Reverse(runs), code));
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
        let cells = self.table.cells;
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
    fn notes(&mut self) {
        let plan = self.table.plan;
        let sum = |count: &dyn Fn(&CellSummary) -> u64| -> u64 {
            self.table.cells.iter().map(count).sum()
        };
        let impossible = sum(&|cell| u64::from(cell.impossible.is_some()));
        let errors = sum(&|cell| cell.errors);
        let due = (plan.cells() - impossible) * plan.seeds.count;
        let left = due.saturating_sub(sum(&|cell| cell.runs) + errors);
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
            let pivot = self.table.pivot(Class::Defect, self.shown.rows, self.shown.columns, None);
            let map = self.heat_map(Class::Defect, &pivot, None, 1.0);
            return self.picture("summary", &map);
        };
        let mut classes = vec![Class::Defect];
        classes.extend(self.table.codes().into_iter().map(Class::Code));
        let by_behaviour = |&class| self.table.pivot(class, Some(behaviour), None, None);
        let pivots: Vec<Pivot> = classes.iter().map(by_behaviour).collect();
        let rows = pivots[0].rows.clone();
        let column = |row: usize, pivot: &Pivot| cell(&pivot.groups[row][0]);
        let cells = (0..rows.len())
            .map(|row| pivots.iter().map(|pivot| column(row, pivot)).collect())
            .collect();
        let map = HeatMap {
            head: Head {
                title: format!("What fails by {}", self.axis(Some(behaviour))),
                subtitle: self.subtitle(&[Some(behaviour)]),
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
        let tie = match ties(&worst) {
            0 | 1 => String::new(),
            ties => format!(
                " {} configurations tie at the highest frequency, {}.",
                number::count(ties),
                percent(worst[0].1.runs)
            ),
        };
        let mut html = format!(
            "<h2>Configurations that fail most often</h2>\n<p>By frequency, then by the lower end of \
             its interval, then by the number of codes.{}</p>\n\
             <div class=\"wide\"><table>\n<thead><tr>",
            escape(&tie)
        );
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
            html += &self.group_cells(Class::Defect, group);
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
        self.heat_maps(class)?;
        if let Some(behaviour) = self.shown.behaviour {
            let pivot = self.table.pivot(class, Some(behaviour), None, None);
            let bars = self.bars(class, &pivot, behaviour);
            self.picture(&format!("{}-bars", slug(name)), &bars)?;
            self.pivot_table(class, &pivot, Some(behaviour), None);
        }
        self.push("</section>\n");
        Ok(())
    }

    /// A heat map for each level at which the class was found, all of one scale: added up over
    /// levels, a cell's share would depend on how many of its runs had a chance at each. A class that
    /// was not found at any level has one map of all.
    fn heat_maps(&mut self, class: Class) -> Result<(), ReportError> {
        let Shown { rows, columns, levels, .. } = self.shown;
        let name = format!("{}-heat-map", slug(class.name()));
        let mut maps: Vec<(String, Option<Level>, Pivot)> = Vec::new();
        if let Some(axis) = levels {
            let points = self.table.plan.axes[axis].points.iter();
            let slugs = slugs(points.map(|point| point.name.as_str()));
            for (point, slug) in slugs.iter().enumerate() {
                let level = Some(Level { axis, point });
                let pivot = self.table.pivot(class, rows, columns, level);
                if pivot.groups.iter().flatten().any(|group| group.runs.hits > 0) {
                    maps.push((format!("{name}-{slug}"), level, pivot));
                }
            }
        }
        if maps.is_empty() {
            maps.push((name, None, self.table.pivot(class, rows, columns, None)));
        }
        let end =
            chart::scale_end(maps.iter().map(|(.., pivot)| share_max(pivot)).fold(0.0, f64::max));
        for (name, level, pivot) in &maps {
            self.picture(name, &self.heat_map(class, pivot, *level, end))?;
            self.pivot_table(class, pivot, rows, columns);
        }
        Ok(())
    }

    fn heat_map(&self, class: Class, pivot: &Pivot, level: Option<Level>, end: f64) -> HeatMap {
        let Shown { rows, columns, .. } = self.shown;
        let axes = [rows, columns].into_iter().flatten();
        let names: Vec<&str> = axes.map(|axis| self.axis(Some(axis))).collect();
        let at = level.map_or(String::new(), |Level { axis, point }| {
            let axis = &self.table.plan.axes[axis];
            format!(", {} = {}", axis.name, axis.points[point].name)
        });
        HeatMap {
            head: Head {
                title: format!("{} by {}{at}", class.name(), names.join(" × ")),
                subtitle: self.subtitle(&[rows, columns, level.map(|level| level.axis)]),
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
        let groups = pivot.groups.iter().map(|row| &row[0]);
        let high = groups.clone().filter_map(|group| group.runs.interval());
        let max = high.map(|interval| interval.high).fold(0.0, f64::max);
        let bar = |(name, group): (&String, _)| Bar { name: name.clone(), cell: cell(group) };
        Bars {
            head: Head {
                title: format!("{} by {}", class.name(), self.axis(Some(behaviour))),
                subtitle: self.subtitle(&[Some(behaviour)]),
            },
            bars: pivot.rows.iter().zip(groups).map(bar).collect(),
            unit: format!("{UNIT}, with 95 % Wilson intervals"),
            end: chart::scale_end(max),
            few: RUNS_FEW,
        }
    }

    fn axis(&self, axis: Option<usize>) -> &str {
        axis.map_or("all", |axis| &self.table.plan.axes[axis].name)
    }

    /// What a chart of these axes adds up.
    fn subtitle(&self, shown: &[Option<usize>]) -> String {
        let plan = self.table.plan;
        let axes = plan.axes.iter().enumerate();
        let hidden = axes.filter(|(index, _)| !shown.contains(&Some(*index)));
        let names: Vec<String> = hidden
            .map(|(_, axis)| format!("{} ({} values)", axis.name, axis.points.len()))
            .collect();
        let over = if names.is_empty() {
            String::new()
        } else {
            format!(", all together over {}", names.join(" and "))
        };
        let seeds = match plan.seeds.count {
            1 => "1 seed".to_owned(),
            seeds => format!("{} seeds", number::count(seeds)),
        };
        format!("share of runs{over}; {seeds} a cell")
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
            "<div class=\"chart\" style=\"--least:{width}px\">\n{}\n</div>\n{}",
            svg.trim(),
            former::link(name)
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
                html += &self.group_cells(class, group);
                html += "</tr>\n";
            }
        }
        html += "</tbody></table></div>\n";
        self.push(&html);
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
    match group.state {
        State::Impossible => Cell::Impossible,
        State::NotRun => Cell::NotRun,
        State::Ran => Cell::Share(group.runs),
    }
}

/// How many of the sorted groups have the share of the first.
fn ties(worst: &[(CellId, Group)]) -> u64 {
    let equal = |a: Rate, b: Rate| {
        u128::from(a.hits) * u128::from(b.chances) == u128::from(b.hits) * u128::from(a.chances)
    };
    let first = worst.first().map(|(_, group)| group.runs);
    let same = |group: &Group| first.is_some_and(|first| equal(first, group.runs));
    worst.iter().take_while(|(_, group)| same(group)).count() as u64
}

fn percent(rate: Rate) -> String {
    rate.interval().map_or("not reached".to_owned(), |interval| number::percent(interval.share))
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
        let shown_by_default =
            Shown { rows: Some(0), columns: Some(1), levels: Some(2), behaviour: Some(2) };
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
        let map =
            std::fs::read_to_string(out.0.join("placed-missing-heat-map-padded-up.svg")).unwrap();
        assert!(map.contains("not reached") && map.contains("impossible"), "{map}");
        assert!(html.contains("<td colspan=\"4\">not reached</td>"));
        for text in ["(without this code)", "impossible: ", "What fails by behaviour"] {
            assert!(html.contains(text), "{text}");
        }
        for name in ["summary.png", "any-defect-bars.svg", "placed-missing-bars.png"] {
            assert!(out.0.join(name).is_file(), "{name}");
        }
    }

    #[test]
    fn only_charts_of_a_former_report_are_removed() {
        let (path, out) = (Scratch::new("stale-ledger"), Scratch::new("stale"));
        let (ledger, _) = swept(&path, 1);
        std::fs::create_dir_all(&out.0).unwrap();
        for file in ["old-bars.svg", "old-bars.png", "mine-bars.svg"] {
            std::fs::write(out.0.join(file), "a").unwrap();
        }
        std::fs::write(out.0.join("index.html"), former::link("old-bars")).unwrap();
        write(&ledger, None, &out.0).unwrap();
        assert!(!out.0.join("old-bars.svg").exists() && !out.0.join("old-bars.png").exists());
        assert!(out.0.join("mine-bars.svg").exists() && out.0.join("any-defect-bars.svg").exists());
    }

    #[test]
    fn a_ledger_without_runs_says_that_nothing_was_run() {
        let (path, out) = (Scratch::new("empty-ledger"), Scratch::new("empty"));
        let ledger = Ledger::start(&path.0, &small(), |_| Ok(())).unwrap();
        let html = std::fs::read_to_string(write(&ledger, None, &out.0).unwrap()).unwrap();
        assert!(html.contains("Nothing was run yet") && html.contains(">not run yet<"), "{html}");
        let path = Scratch::new("impossible-ledger");
        let ledger = Ledger::start(&path.0, &small(), |_| Err("too <wide".to_owned())).unwrap();
        let html = std::fs::read_to_string(write(&ledger, None, &out.0).unwrap()).unwrap();
        assert!(html.contains("none of the 8 configurations can be run"), "{html}");
        assert!(html.contains("impossible: too &lt;wide</td>"), "{html}");
        assert!(!html.contains("No configuration fails"), "{html}");
    }
}
