//! One self-contained HTML page: charts, the table below each, and a command for every cell.
//!
//! It needs neither network nor script, follows the reader's light or dark theme and fits narrow
//! screens. The charts also lie beside it as SVG, PNG and CSV files. Each ledger has a view of its
//! own; [`write()`] joins them, and each section of a view is a file.

use std::path::{Path, PathBuf};

use maud::{Markup, html};

use super::chart::ChartError;
use super::html::{document, prose, slugs};
use super::table::{Group, State};
use super::value::Value;
use super::{former, number};
use crate::stats::Rate;
use crate::sweep::cell::CellId;
use crate::sweep::ledger::{Ledger, LedgerError};

mod bars;
mod cells;
mod class;
mod cost;
mod lines;
mod maps;
mod news;
mod rest;
mod rows;
mod runs;
mod shown;
mod summary;
mod view;

pub use shown::Axes;
use view::LedgerView;

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
    #[error("axis: must be {wanted}, got \"{name}\"")]
    UnknownAxis {
        /// The name asked for.
        name: String,
        /// What it must be: one of the names that are left, if any is.
        wanted: String,
    },
}

/// A report that was written.
#[derive(Clone, Debug)]
pub struct Written {
    /// Its page.
    pub page: PathBuf,
    /// What it says of the comparison with an earlier ledger, in sentences; none without one.
    pub news: Vec<String>,
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
/// need be. Several ledgers have a view each, in the order given; nothing is added up over ledgers.
/// Files of a former report there that this one has not are removed.
pub fn write(ledgers: &[Ledger], options: &Options, out: &Path) -> Result<Written, ReportError> {
    let fail = |path: &Path, source| ReportError::Write { path: path.to_owned(), source };
    std::fs::create_dir_all(out).map_err(|source| fail(out, source))?;
    let titles: Vec<&str> = ledgers.iter().map(|ledger| ledger.plan.title.as_str()).collect();
    let title = match titles.as_slice() {
        [title] => (*title).to_owned(),
        several => format!("{} sweeps", several.len()),
    };
    let (mut answers, mut views, mut news) = (Vec::new(), Vec::new(), Vec::new());
    for (ledger, slug) in ledgers.iter().zip(slugs(titles.iter().copied())) {
        let prefix = if ledgers.len() == 1 { String::new() } else { format!("{slug}-") };
        let view = LedgerView::of(ledger, options, prefix.clone(), out)?;
        // Ledgers of one plan have the same title.
        answers.push(html! {
            a href={ "#" (prefix) "top" } { (ledger.plan.title) }
            " (" (ledger.path().display()) "): " (prose(&view.answer()))
        });
        let (html, told) = view.all(options)?;
        views.push(html);
        news.extend(told);
    }
    let body: Markup = html! {
        @if ledgers.len() > 1 {
            h1 { (title) }
            ol { @for answer in answers { li { (answer) } } }
        }
        @for view in views { (view) }
    };
    let path = out.join("index.html");
    let html = document(&title, &body);
    // Without a former page that can be read there is nothing known to be ours.
    let before = std::fs::read_to_string(&path).unwrap_or_default();
    std::fs::write(&path, &html).map_err(|source| fail(&path, source))?;
    let stale = &former::files(&before) - &former::files(&html);
    former::remove(out, &stale).map_err(|source| fail(out, source))?;
    Ok(Written { page: path, news })
}

/// A rate in words, "3.4 % (95 % interval 2.1 % to 5.5 %)", or that it was not reached.
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

const UNIT: &str = "runs with a finding, per cent of runs with a chance";

fn value(group: &Group) -> Value {
    match group.state {
        State::Impossible => Value::Impossible,
        State::NotRun => Value::NotRun,
        State::Ran => Value::Share(group.runs),
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
mod tests;
