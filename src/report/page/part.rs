//! A *part* of a page: what one ledger shows, section after section.

use std::path::Path;

use super::shown::{Shown, shown};
use super::{Options, ReportError};
use crate::finding::{Mark, Tally};
use crate::report::chart::{self, Chart};
use crate::report::csv::Csv;
use crate::report::html::{escape, prose, slug};
use crate::report::table::{Class, Table};
use crate::report::{former, number};
use crate::sweep::ledger::Ledger;

/// The part of a page that shows one ledger, while it is written.
pub(super) struct Part<'a> {
    pub(super) ledger: &'a Ledger,
    pub(super) table: Table<'a>,
    pub(super) marks: Tally<Mark>,
    pub(super) shown: Shown,
    /// Begins the names of files and anchors, so that parts do not share any.
    pub(super) prefix: String,
    out: &'a Path,
    html: String,
}

impl<'a> Part<'a> {
    pub(super) fn of(
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

    pub(super) fn all(mut self, options: &Options) -> Result<(String, Vec<String>), ReportError> {
        let title = escape(&self.table.plan.title);
        let answer = prose(&self.answer());
        self.push(&format!(
            "<h1 id=\"{}top\">{title}</h1>\n<p class=\"answer\">{answer}</p>\n",
            self.prefix
        ));
        self.notes();
        self.summary()?;
        self.contents(options.against.is_some());
        let news = match &options.against {
            Some(old) => self.news(old)?,
            None => Vec::new(),
        };
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
        Ok((self.html, news))
    }

    pub(super) fn push(&mut self, html: &str) {
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
    pub(super) fn picture(&mut self, name: &str, chart: &impl Chart) -> Result<(), ReportError> {
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
    pub(super) fn file(&mut self, name: &str, csv: &Csv) -> Result<(), ReportError> {
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
