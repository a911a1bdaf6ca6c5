//! A *view* of a ledger: what a page shows of it, section after section.

use std::path::Path;

use maud::{Markup, PreEscaped, html};

use super::shown::{Shown, shown};
use super::{Options, ReportError};
use crate::finding::{Mark, Tally};
use crate::report::chart::{self, Chart};
use crate::report::csv::Csv;
use crate::report::html::{prose, slug};
use crate::report::table::{Class, Table};
use crate::report::{former, number};
use crate::sweep::ledger::Ledger;

/// What a page shows of one ledger.
pub(super) struct LedgerView<'a> {
    pub(super) ledger: &'a Ledger,
    pub(super) table: Table<'a>,
    pub(super) marks: Tally<Mark>,
    pub(super) shown: Shown,
    /// Begins the names of files and anchors, so that no two views share one.
    pub(super) prefix: String,
    out: &'a Path,
}

impl<'a> LedgerView<'a> {
    pub(super) fn of(
        ledger: &'a Ledger,
        options: &Options,
        prefix: String,
        out: &'a Path,
    ) -> Result<LedgerView<'a>, ReportError> {
        Ok(LedgerView {
            ledger,
            table: Table { plan: &ledger.plan, cells: ledger.summaries()? },
            marks: ledger.marks()?,
            shown: shown(&ledger.plan, options.axes.as_ref())?,
            prefix,
            out,
        })
    }

    /// Writes the files of the view. Returns its sections, and what they say of the comparison
    /// with an earlier ledger.
    pub(super) fn all(&self, options: &Options) -> Result<(Markup, Vec<String>), ReportError> {
        let (news, told) = match &options.against {
            Some(old) => self.news(old)?,
            None => (html! {}, Vec::new()),
        };
        let codes = self.table.codes().into_iter().map(Class::Code);
        let classes = std::iter::once(Class::Defect).chain(codes).map(|class| self.class(class));
        let classes: Vec<Markup> = classes.collect::<Result<_, _>>()?;
        let view = html! {
            h1 id={ (self.prefix) "top" } { (self.table.plan.title) }
            p.answer { (prose(&self.answer())) }
            (self.notes())
            (self.summary()?)
            (self.contents(options.against.is_some()))
            (news)
            (self.worst()?)
            @for class in classes { (class) }
            (self.cost()?)
            (self.free_runs()?)
            (self.absent())
            (self.reached())
            (self.impossible())
            (self.sources())
        };
        Ok((view, told))
    }

    /// Links to the sections.
    fn contents(&self, compared: bool) -> Markup {
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
        html! {
            nav {
                @for (number, (id, name)) in sections.iter().enumerate() {
                    @if number > 0 { " · " }
                    a href={ "#" (self.prefix) (id) } { (name) }
                }
            }
        }
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

    /// A chart for the page, which also is written beside it as files.
    pub(super) fn picture(&self, name: &str, chart: &impl Chart) -> Result<Markup, ReportError> {
        let name = format!("{}{name}", self.prefix);
        let svg = chart::svg(chart)?;
        self.save(&format!("{name}.svg"), &svg)?;
        self.save(&format!("{name}.csv"), &chart.csv().text())?;
        chart::png(chart, &self.out.join(format!("{name}.png")))?;
        let figure = |class: &str, svg: &str, width: i32| {
            // Below 70 % of its size a chart's text is too small: what is wider yet scrolls.
            let least = width * 7 / 10;
            html! {
                div class=(class) role="img" aria-label=(chart.head().title)
                    style={ "--least:" (least) "px" } { (PreEscaped(svg.trim())) }
            }
        };
        let (width, _) = chart.size();
        let figures = match chart.narrow() {
            None => figure("chart", &svg, width),
            Some(narrow) => {
                let (narrow_width, _) = narrow.size();
                html! {
                    (figure("chart for-wide", &svg, width))
                    (figure("chart for-narrow", &chart::svg(&narrow)?, narrow_width))
                }
            }
        };
        Ok(html! { figure { (figures) (former::link(&name, &["svg", "png", "csv"])) } })
    }

    /// Writes a table beside the page. Answers a link to it.
    pub(super) fn file(&self, name: &str, csv: &Csv) -> Result<Markup, ReportError> {
        let name = format!("{}{name}", self.prefix);
        self.save(&format!("{name}.csv"), &csv.text())?;
        Ok(former::link(&name, &["csv"]))
    }

    fn save(&self, name: &str, text: &str) -> Result<(), ReportError> {
        let path = self.out.join(name);
        std::fs::write(&path, text).map_err(|source| ReportError::Write { path, source })
    }
}
