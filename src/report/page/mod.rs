//! One self-contained HTML page: charts, the table below each, and a command for every cell.
//!
//! It needs neither network nor script, follows the reader's light or dark theme and fits narrow
//! screens. The charts also lie beside it as SVG, PNG and CSV files. Each ledger has a part of its own;
//! [`write`] joins them, and each section of a part is a file.

use std::path::{Path, PathBuf};

use super::chart::{self, Cell, Chart, ChartError};
use super::csv::Csv;
use super::former;
use super::html::{document, escape, prose, sentence, slug, slugs};
use super::number;
use super::table::{Class, Group, State, Table};
use crate::finding::{Mark, Named, Tally};
use crate::stats::Rate;
use crate::sweep::ledger::{Ledger, LedgerError};
use crate::sweep::plan::CellId;

mod bars;
mod cells;
mod cost;
mod lines;
mod maps;
mod news;
mod rest;
mod rows;
mod runs;
mod shown;
mod summary;

pub use shown::Axes;
use shown::{Shown, shown};

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

/// What a report shall show.
#[derive(Default)]
pub struct Options {
    /// Axes of the heat maps; by default page size and ranks if a plan varies them, else its first
    /// two.
    pub axes: Option<Axes>,
    /// An earlier ledger, with which each is compared.
    pub against: Option<Ledger>,
}

/// Writes `index.html` and every chart as SVG, PNG and CSV into the folder `out`, which is made if
/// need be. Several ledgers have a part each, in the order given; nothing is added up over ledgers.
/// Files of a former report there that this one has not are removed. Answers the page's path.
pub fn write(ledgers: &[Ledger], options: &Options, out: &Path) -> Result<PathBuf, ReportError> {
    let fail = |path: &Path, source| ReportError::Write { path: path.to_owned(), source };
    std::fs::create_dir_all(out).map_err(|source| fail(out, source))?;
    let titles: Vec<&str> = ledgers.iter().map(|ledger| ledger.plan.title.as_str()).collect();
    let mut body = String::new();
    let title = match titles.as_slice() {
        [title] => (*title).to_owned(),
        several => format!("{} sweeps", several.len()),
    };
    let (mut answers, mut parts) = (String::new(), String::new());
    for (ledger, slug) in ledgers.iter().zip(slugs(titles.iter().copied())) {
        let prefix = if ledgers.len() == 1 { String::new() } else { format!("{slug}-") };
        let part = Part::of(ledger, options, prefix.clone(), out)?;
        answers += &format!(
            "<li><a href=\"#{prefix}top\">{}</a>: {}</li>\n",
            escape(&ledger.plan.title),
            prose(&part.answer())
        );
        parts += &part.all(options)?;
    }
    if ledgers.len() > 1 {
        body += &format!("<h1>{}</h1>\n<ol>\n{answers}</ol>\n", escape(&title));
    }
    body += &parts;
    let path = out.join("index.html");
    let html = document(&title, &body);
    // Without a former page that can be read there is nothing known to be ours.
    let before = std::fs::read_to_string(&path).unwrap_or_default();
    std::fs::write(&path, &html).map_err(|source| fail(&path, source))?;
    let stale = &former::files(&before) - &former::files(&html);
    former::remove(out, &stale).map_err(|source| fail(out, source))?;
    Ok(path)
}

/// The part of a page that shows one ledger, while it is written.
struct Part<'a> {
    ledger: &'a Ledger,
    table: Table<'a>,
    marks: Tally<Mark>,
    shown: Shown,
    /// Begins the names of files and anchors, so that parts do not share any.
    prefix: String,
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

impl<'a> Part<'a> {
    fn of(
        ledger: &'a Ledger,
        options: &Options,
        prefix: String,
        out: &'a Path,
    ) -> Result<Part<'a>, ReportError> {
        Ok(Part {
            ledger,
            table: Table { plan: &ledger.plan, cells: ledger.summaries()? },
            marks: ledger.marks()?,
            shown: shown(&ledger.plan, options.axes.as_ref())?,
            prefix,
            out,
            html: String::new(),
        })
    }

    fn all(mut self, options: &Options) -> Result<String, ReportError> {
        let title = escape(&self.table.plan.title);
        let answer = prose(&self.answer());
        self.push(&format!(
            "<h1 id=\"{}top\">{title}</h1>\n<p class=\"answer\">{answer}</p>\n",
            self.prefix
        ));
        self.notes();
        self.summary()?;
        self.contents(options.against.is_some());
        if let Some(old) = &options.against {
            self.news(old)?;
        }
        self.worst()?;
        self.class(Class::Defect)?;
        for code in self.table.codes() {
            self.class(Class::Code(code))?;
        }
        self.cost()?;
        self.free_runs()?;
        self.absent();
        self.reached();
        self.impossible();
        self.sources();
        Ok(self.html)
    }

    fn push(&mut self, html: &str) {
        self.html.push_str(html);
    }

    /// Links to the sections.
    fn contents(&mut self, compared: bool) {
        let mut sections = Vec::new();
        if compared {
            sections.push(("news".to_owned(), "what is new"));
        }
        if !self.table.worst().is_empty() {
            sections.push(("cells".to_owned(), "worst configurations"));
        }
        let codes = self.table.codes().into_iter().map(Class::Code);
        for class in std::iter::once(Class::Defect).chain(codes) {
            sections.push((slug(class.name()), class.name()));
        }
        sections.push(("cost".to_owned(), "costs"));
        sections.push(("free-runs".to_owned(), "free runs"));
        let links: Vec<String> = sections
            .iter()
            .map(|(id, name)| format!("<a href=\"#{}{id}\">{}</a>", self.prefix, escape(name)))
            .collect();
        self.push(&format!("<nav>{}</nav>\n", links.join(" · ")));
    }

    /// A class of error: what it is, by both axes, by behaviour and over sizes.
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
            "<section id=\"{}{}\">\n<h2>{}</h2>\n<p>{}. All together: {} of {} runs, {}.</p>\n",
            self.prefix,
            slug(name),
            escape(name),
            escape(&sentence(&meaning)),
            number::count(all.runs.hits),
            number::count(all.runs.chances),
            prose(&share(all.runs)),
        ));
        self.maps(class)?;
        self.push("<div class=\"charts\">\n");
        let bars = self
            .shown
            .behaviour
            .map(|behaviour| (behaviour, self.table.pivot(class, Some(behaviour), None, None)));
        if let Some((behaviour, pivot)) = &bars {
            let bars = self.bars(class, pivot, *behaviour);
            self.picture(&format!("{}-bars", slug(class.name())), &bars)?;
        }
        self.lines(class)?;
        self.push("</div>\n");
        if let Some((behaviour, pivot)) = bars {
            self.pivot_table(class, &[(None, pivot)], Some(behaviour), None);
        }
        self.push("</section>\n");
        Ok(())
    }

    pub(super) fn axis(&self, axis: Option<usize>) -> &str {
        axis.map_or("all", |axis| &self.table.plan.axes[axis].name)
    }

    /// What a chart of these axes adds up.
    pub(super) fn subtitle(&self, shown: &[Option<usize>]) -> String {
        format!("share of runs{}", self.over(shown))
    }

    /// What is added up where only these axes are shown, and how many seeds there are.
    pub(super) fn over(&self, shown: &[Option<usize>]) -> String {
        let plan = self.table.plan;
        let axes = plan.axes.iter().enumerate();
        let hidden = axes.filter(|(index, _)| !shown.contains(&Some(*index)));
        let names: Vec<String> = hidden
            .map(|(_, axis)| match axis.points.len() {
                1 => format!("{} (1 value)", axis.name),
                values => format!("{} ({values} values)", axis.name),
            })
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
        format!("{over}; {seeds} a cell")
    }

    /// Puts a chart onto the page, and beside it as files.
    fn picture(&mut self, name: &str, chart: &impl Chart) -> Result<(), ReportError> {
        let name = format!("{}{name}", self.prefix);
        let svg = chart::svg(chart)?;
        self.save(&format!("{name}.svg"), &svg)?;
        self.save(&format!("{name}.csv"), &chart.csv().text())?;
        chart::png(chart, &self.out.join(format!("{name}.png")))?;
        let title = escape(&chart.head().title);
        let figure = |class: &str, svg: &str, width: i32| {
            // Below 70 % of its size a chart's text is too small: what is wider yet scrolls.
            let least = width * 7 / 10;
            format!(
                "<div class=\"chart {class}\" role=\"img\" aria-label=\"{title}\" \
                 style=\"--least:{least}px\">\n{}\n</div>\n",
                svg.trim()
            )
        };
        let (width, _) = chart.size();
        let figures = match chart.narrow() {
            None => figure("", &svg, width),
            Some(narrow) => {
                let (narrow_width, _) = narrow.size();
                figure("for-wide", &svg, width)
                    + &figure("for-narrow", &chart::svg(&narrow)?, narrow_width)
            }
        };
        let link = former::link(&name, &["svg", "png", "csv"]);
        self.push(&format!("<figure>\n{figures}{link}</figure>\n"));
        Ok(())
    }

    /// Puts a table beside the page, with a link to it.
    fn file(&mut self, name: &str, csv: &Csv) -> Result<(), ReportError> {
        let name = format!("{}{name}", self.prefix);
        self.save(&format!("{name}.csv"), &csv.text())?;
        self.push(&former::link(&name, &["csv"]));
        Ok(())
    }

    fn save(&self, name: &str, text: &str) -> Result<(), ReportError> {
        let path = self.out.join(name);
        std::fs::write(&path, text).map_err(|source| ReportError::Write { path, source })
    }
}

const UNIT: &str = "runs with a finding, per cent of runs with a chance";

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::execute::tests::{Scratch, swept};
    use crate::sweep::plan::tests::small;

    #[test]
    fn a_report_says_what_fails_and_needs_neither_network_nor_script() {
        let (path, out) = (Scratch::new("report-ledger"), Scratch::new("report"));
        let (ledger, _) = swept(&path, 1);
        let page = write(&[ledger], &Options::default(), &out.0).unwrap();
        let html = std::fs::read_to_string(page).unwrap();
        // Of 6 possible cells with 3 seeds, one cell fails at the odd seeds 5 and 7.
        let answer = "1 of 6 configurations fail, in 2 of 18 runs, 11 % (95 % interval 3.1 % to 33 %), \
                      most often by placed.missing (2 runs), and worst at layout.page_size = 16, \
                      layout.ranks = 2, behaviour = padded up (2 of 3 runs).";
        assert!(html.replace('\u{a0}', " ").contains(answer), "{html}");
        for part in ["<script", "http-equiv", "src=", "@import", "url("] {
            assert!(!html.contains(part), "{part}");
        }
        // One rank has no transfer to activate, two ranks do not fit with pages of 64.
        let map = std::fs::read_to_string(out.0.join("placed-missing-heat-map.svg")).unwrap();
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
        std::fs::write(out.0.join("index.html"), former::link("old-bars", &["svg", "png"]))
            .unwrap();
        write(&[ledger], &Options::default(), &out.0).unwrap();
        assert!(!out.0.join("old-bars.svg").exists() && !out.0.join("old-bars.png").exists());
        assert!(out.0.join("mine-bars.svg").exists() && out.0.join("any-defect-bars.svg").exists());
    }

    #[test]
    fn a_ledger_without_runs_says_that_nothing_was_run() {
        let (path, out) = (Scratch::new("empty-ledger"), Scratch::new("empty"));
        let ledger = Ledger::start(&path.0, &small(), |_| Ok(())).unwrap();
        let html = std::fs::read_to_string(write(&[ledger], &Options::default(), &out.0).unwrap())
            .unwrap();
        assert!(html.contains("Nothing was run yet") && html.contains(">not run yet<"), "{html}");
        let path = Scratch::new("impossible-ledger");
        let ledger = Ledger::start(&path.0, &small(), |_| Err("too <wide".to_owned())).unwrap();
        let html = std::fs::read_to_string(write(&[ledger], &Options::default(), &out.0).unwrap())
            .unwrap();
        assert!(html.contains("none of the 8 configurations can be run"), "{html}");
        assert!(html.contains("impossible: too &lt;wide</td>"), "{html}");
        assert!(!html.contains("No configuration fails"), "{html}");
    }

    #[test]
    fn every_chart_has_a_file_of_its_numbers() {
        let (path, out) = (Scratch::new("csv-ledger"), Scratch::new("csv"));
        let (ledger, _) = swept(&path, 1);
        write(&[ledger], &Options::default(), &out.0).unwrap();
        let files = std::fs::read_dir(&out.0).unwrap().map(|entry| entry.unwrap().path());
        let svgs: Vec<PathBuf> =
            files.filter(|path| path.extension().is_some_and(|end| end == "svg")).collect();
        assert!(svgs.len() > 10, "{svgs:?}");
        for svg in svgs {
            assert!(svg.with_extension("png").is_file(), "{svg:?}");
            let csv = std::fs::read_to_string(svg.with_extension("csv")).unwrap();
            assert!(csv.lines().count() > 1, "{svg:?}: {csv}");
        }
        // Two of the three runs of the cell that fails; it is the only one.
        let cells = std::fs::read_to_string(out.0.join("cells.csv")).unwrap();
        assert_eq!(
            cells
                .lines()
                .map(|line| line.split(',').take(6).collect::<Vec<_>>().join(","))
                .collect::<Vec<_>>(),
            [
                "layout.page_size,layout.ranks,behaviour,state,hits,chances",
                "16,2,padded up,ran,2,3"
            ]
        );
        assert!(cells.contains(",placed.missing: 2,kvseam run base.toml --set "), "{cells}");
        let lines =
            std::fs::read_to_string(out.0.join("any-defect-over-layout-ranks.csv")).unwrap();
        assert!(lines.contains("\npadded up,2,ran,2,3,"), "{lines}");
        assert!(lines.contains("\nsound,1,ran,0,6,0,0,"), "{lines}");
    }

    #[test]
    fn several_ledgers_have_a_part_each_and_share_no_file() {
        let (one, two) = (Scratch::new("part-one"), Scratch::new("part-two"));
        let out = Scratch::new("parts");
        let ledgers = [swept(&one, 1).0, swept(&two, 1).0];
        let page = write(&ledgers, &Options::default(), &out.0).unwrap();
        let html = std::fs::read_to_string(page).unwrap();
        assert!(html.contains("<h1>2 sweeps</h1>"), "{html}");
        for prefix in ["a-small-sweep", "a-small-sweep-1"] {
            assert!(out.0.join(format!("{prefix}-summary.csv")).is_file());
            assert_eq!(html.matches(&format!("<h1 id=\"{prefix}-top\">")).count(), 1);
        }
        let ids: Vec<&str> =
            html.split(" id=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
        let different: std::collections::BTreeSet<_> = ids.iter().collect();
        assert_eq!(ids.len(), different.len(), "{ids:?}");
        for link in html.split("href=\"#").skip(1) {
            let target = link.split('"').next().unwrap();
            assert!(ids.contains(&target), "{target}");
        }
    }

    #[test]
    fn against_an_earlier_ledger_the_page_says_what_is_new() {
        let (new, old) = (Scratch::new("news-new"), Scratch::new("news-old"));
        let out = Scratch::new("news");
        let options = Options { against: Some(swept(&old, 1).0), ..Options::default() };
        let page = write(&[swept(&new, 1).0], &options, &out.0).unwrap();
        let html = std::fs::read_to_string(page).unwrap();
        // The cell that fails is tested for any defect and for its code.
        for text in ["0 of 2 frequencies changed beyond chance", "8 cells are in both", "Holm"] {
            assert!(html.contains(text), "{text}: {html}");
        }
        let tests = std::fs::read_to_string(out.0.join("news.csv")).unwrap();
        let rows: Vec<&str> = tests.lines().collect();
        assert!(rows[1].starts_with("16,2,padded up,any defect,2,3,2,3,1,"), "{tests}");
        assert_eq!(rows.len(), 3);
    }
}
