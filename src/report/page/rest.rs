//! What a part ends with: what was never found, what was reached, what cannot be run, and the plan.

use super::Part;
use super::rows::{Column, Field, Rows};
use crate::finding::{Code, Named};
use crate::report::html::escape;
use crate::report::number;
use crate::report::table::Class;
use crate::sweep::cell::CellId;

impl Part<'_> {
    /// Codes that nothing found: out of how many chances.
    pub(super) fn absent(&mut self) {
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
        self.push(&format!("<section>\n<h2>Never found</h2>\n{}</section>\n", rows.html()));
    }

    /// Code paths, and in how many runs each was reached.
    pub(super) fn reached(&mut self) {
        let columns = [Column::name("mark"), Column::number("runs"), Column::text("meaning")];
        let mut rows = Rows::new(columns.into());
        for (mark, runs) in self.marks.iter() {
            let due = self.table.plan.marks.contains(&mark);
            let runs = match (runs, due) {
                (0, true) => Field::html("<b>not reached, though it must be</b>".to_owned()),
                (0, false) => Field::text("not reached"),
                (runs, _) => Field::text(&number::count(runs)),
            };
            rows.add(vec![Field::text(mark.name()), runs, Field::text(mark.doc())], None);
        }
        self.push(&format!("<section>\n<h2>Code paths reached</h2>\n{}</section>\n", rows.html()));
    }

    pub(super) fn impossible(&mut self) {
        let plan = self.table.plan;
        let cells = &self.table.cells;
        let reason = |id: CellId| cells.get(usize::try_from(id.0).ok()?)?.impossible.as_deref();
        let ids = (0..plan.cells()).map(CellId);
        let impossible: Vec<_> = ids.filter_map(|id| Some((id, reason(id)?))).collect();
        if impossible.is_empty() {
            return;
        }
        let mut html = String::from("<section>\n<h2>Cells that cannot be run</h2>\n<ul>\n");
        for (id, reason) in impossible {
            let line = escape(&format!("{}: {reason}", plan.describe(id)));
            html += &format!("<li>{line}</li>\n");
        }
        self.push(&(html + "</ul>\n</section>\n"));
    }

    pub(super) fn sources(&mut self) {
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
