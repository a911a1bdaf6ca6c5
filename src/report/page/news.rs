//! What is new against an earlier ledger.

use maud::{Markup, html};

use super::rows::{Column, Field, Rows};
use super::{LedgerView, ReportError, percent};
use crate::finding::Named;
use crate::report::command::command;
use crate::report::csv::{self, Csv};
use crate::report::news::{News, SIGNIFICANT, Seen, Test, compare};
use crate::report::number;
use crate::report::table::{RUNS_FEW, Table};
use crate::stats::Rate;
use crate::sweep::ledger::Ledger;

/// Rows of the table of changes; the file has all.
const CHANGES_SHOWN: usize = 100;

impl LedgerView<'_> {
    /// Cells whose frequency changed beyond chance, codes that appeared, and codes that are gone.
    /// Answers the section, and what it says of the comparison in sentences.
    pub(super) fn news(&self, old: &Ledger) -> Result<(Markup, Vec<String>), ReportError> {
        let before = Table { plan: &old.plan, cells: old.summaries()? };
        let news = compare(&self.table, &before);
        let told: Vec<String> = std::iter::once(headline(&news, &old.plan.title))
            .chain(unfinished("This ledger", &self.table))
            .chain(unfinished("The earlier ledger", &before))
            .collect();
        let file = self.file("news", &self.news_csv(&news))?;
        let section = html! {
            section id={ (self.prefix) "news" } {
                h2 { "What is new" }
                p { (told[0]) }
                @for note in &told[1..] { p.note { (note) } }
                p { (method(&news)) }
                @if old.plan.sources.base != self.table.plan.sources.base {
                    p.note { "The base scenarios differ, so a change can be theirs." }
                }
                (self.changes(news.changed()))
                (codes("Codes that appeared", &news.appeared))
                (codes("Codes that are gone", &news.gone))
                (file)
            }
        };
        Ok((section, told))
    }

    fn changes(&self, changed: &[Test]) -> Markup {
        if changed.is_empty() {
            return html! {};
        }
        let plan = self.table.plan;
        let axes = plan.axes.iter().map(|axis| Column::name(&axis.name));
        let columns = axes.chain([
            Column::text("found"),
            Column::text("before"),
            Column::text("now"),
            Column::number("p, corrected"),
        ]);
        let mut rows = Rows::new(columns.collect());
        for test in changed.iter().take(CHANGES_SHOWN) {
            let points = plan.points(test.cell).into_iter().map(|point| Field::text(&point.name));
            let fields = points.chain([
                Field::text(test.class.name()),
                Field::text(&of(test.old)),
                Field::text(&of(test.new)),
                Field::text(&probability(test.corrected)),
            ]);
            rows.add(fields.collect(), Some(html! { code { (self.repeat(test)) } }));
        }
        let more = changed.len().saturating_sub(CHANGES_SHOWN);
        html! {
            h3 { "Frequencies that changed" }
            (rows.html())
            @if more > 0 { p { (number::count(more as u64)) " more are in the file." } }
        }
    }

    fn repeat(&self, test: &Test) -> String {
        let example = self.table.of_cell(test.class, test.cell).example;
        example.map_or(String::new(), |run| command(self.table.plan, run.cell, run.seed))
    }

    fn news_csv(&self, news: &News) -> Csv {
        let plan = self.table.plan;
        let axes: Vec<&str> = plan.axes.iter().map(|axis| axis.name.as_str()).collect();
        let others = [
            "found",
            "hits_before",
            "chances_before",
            "hits_now",
            "chances_now",
            "p_corrected",
            "command",
        ];
        let row = |test: &Test| {
            let points = plan.points(test.cell).into_iter().map(|point| point.name.clone());
            let counts = [test.old.hits, test.old.chances, test.new.hits, test.new.chances];
            points
                .chain([test.class.name().to_owned()])
                .chain(counts.map(|count| count.to_string()))
                .chain([test.corrected.to_string(), self.repeat(test)])
                .collect()
        };
        Csv { head: csv::head(&axes, &others), rows: news.tests.iter().map(row).collect() }
    }
}

/// That a ledger is not finished, if it is not.
fn unfinished(which: &str, table: &Table) -> Option<String> {
    let (left, due) = table.left();
    let (runs_left, runs) = (number::count(left), number::count(due));
    (left > 0).then(|| format!("{which} is not finished: {runs_left} of {runs} runs are left."))
}

fn headline(news: &News, title: &str) -> String {
    let (both, compared) = (number::count(news.both as u64), number::count(news.compared as u64));
    let (here, there) = (number::count(news.only_new as u64), number::count(news.only_old as u64));
    let cells = format!(
        "{both} cells are in both, {compared} of them with runs in both, {here} only here, {there} \
         only there."
    );
    if news.compared == 0 {
        return format!("Nothing can be compared with the earlier ledger, \"{title}\": {cells}");
    }
    let changed = news.changed();
    let more = changed.iter().filter(|test| share(test.new) > share(test.old)).count();
    format!(
        "Against the earlier ledger, \"{title}\": {} of {} frequencies changed beyond chance, {more} \
         up and {} down; {} codes appeared, {} are gone. {cells}",
        changed.len(),
        number::count(news.tests.len() as u64),
        changed.len() - more,
        news.appeared.len(),
        news.gone.len()
    )
}

fn method(news: &News) -> String {
    format!(
        "Each cell and each kind of finding that either ledger has there is one of {} tests: Fisher's \
         exact test, two-sided, of the two shares of runs, with Holm's correction for the number of \
         tests; what is below {SIGNIFICANT} counts as changed. Runs of equal seeds are no independent \
         draws, which makes the test careful. * marks fewer than {RUNS_FEW} runs.",
        number::count(news.tests.len() as u64)
    )
}

fn codes(title: &str, codes: &[Seen]) -> Markup {
    if codes.is_empty() {
        return html! {};
    }
    let columns = [
        Column::name("code"),
        Column::text("before"),
        Column::text("now"),
        Column::number("p"),
        Column::text("meaning"),
    ];
    let mut rows = Rows::new(columns.into());
    for seen in codes {
        let (before, now) = (of(seen.old), of(seen.new));
        let p = probability(seen.alone);
        let fields = [seen.code.name(), &before, &now, &p, seen.code.doc()];
        rows.add(fields.map(Field::text).into(), None);
    }
    html! {
        h3 { (title) }
        p {
            "In the cells that are in both. A rare code can come or go by chance: p is that of its "
            "own test alone."
        }
        (rows.html())
    }
}

/// "34 % (17 of 50) *".
fn of(rate: Rate) -> String {
    if rate.chances == 0 {
        return percent(rate);
    }
    let star = if rate.chances < RUNS_FEW { " *" } else { "" };
    let (hits, chances) = (number::count(rate.hits), number::count(rate.chances));
    format!("{} ({hits} of {chances}){star}", percent(rate))
}

fn share(rate: Rate) -> f64 {
    rate.interval().map_or(0.0, |interval| interval.share)
}

fn probability(p: f64) -> String {
    if p < 0.0001 { "<0.0001".to_owned() } else { format!("{p:.4}") }
}
