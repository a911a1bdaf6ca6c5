//! What a view ends with: what was never found, what was reached, what cannot be run, and the plan.

use maud::{Markup, html};

use super::LedgerView;
use super::rows::{Column, Field, Rows};
use crate::finding::{Code, Named};
use crate::report::number;
use crate::report::table::Class;
use crate::sweep::cell::CellId;

impl LedgerView<'_> {
    /// Codes that nothing found: out of how many chances.
    pub(super) fn absent(&self) -> Markup {
        let found = self.table.codes();
        let columns = [
            Column::name("code"),
            Column::number("n"),
            Column::text("95 % interval"),
            Column::text("meaning"),
        ];
        let mut rows = Rows::new(columns.into());
        for &code in Code::ALL.iter().filter(|code| !found.contains(code)) {
            let runs = self.table.all(Class::Code(code)).runs;
            let interval = runs.interval().map_or("not reached".to_owned(), |interval| {
                format!("0 to {}", number::percent(interval.high))
            });
            let chances = number::count(runs.chances);
            let fields = [code.name(), &chances, &interval, code.doc()];
            rows.add(fields.map(Field::text).into(), None);
        }
        html! { section { h2 { "Never found" } (rows.html()) } }
    }

    /// Code paths, and in how many runs each was reached.
    pub(super) fn reached(&self) -> Markup {
        let columns = [Column::name("mark"), Column::number("runs"), Column::text("meaning")];
        let mut rows = Rows::new(columns.into());
        for (mark, runs) in self.marks.iter() {
            let due = self.table.plan.marks.contains(&mark);
            let runs = match (runs, due) {
                (0, true) => Field::html(html! { b { "not reached, though it must be" } }),
                (0, false) => Field::text("not reached"),
                (runs, _) => Field::text(&number::count(runs)),
            };
            rows.add(vec![Field::text(mark.name()), runs, Field::text(mark.doc())], None);
        }
        html! { section { h2 { "Code paths reached" } (rows.html()) } }
    }

    /// Cells that a filter leaves out or that cannot be run, each with the reason.
    pub(super) fn impossible(&self) -> Markup {
        let plan = self.table.plan;
        let cells = &self.table.cells;
        let reason = |id: CellId| cells.get(usize::try_from(id.0).ok()?)?.impossible.as_deref();
        let ids = (0..plan.cells()).map(CellId);
        let impossible: Vec<_> = ids.filter_map(|id| Some((id, reason(id)?))).collect();
        html! {
            @if !impossible.is_empty() {
                section {
                    h2 { "Cells that are left out" }
                    ul {
                        @for (id, reason) in impossible {
                            li { (plan.describe(id)) ": " (reason) }
                        }
                    }
                }
            }
        }
    }

    /// The plan and its base scenario, as they were given, and the version that wrote the page.
    pub(super) fn sources(&self) -> Markup {
        let sources = &self.table.plan.sources;
        let files = [(&sources.plan_path, &sources.plan), (&sources.base_path, &sources.base)];
        html! {
            section {
                h2 { "The plan" }
                @for (path, text) in files {
                    details { summary { (path.display()) } pre { (text) } }
                }
                p.files { "kvseam " (env!("CARGO_PKG_VERSION")) }
            }
        }
    }
}
