//! A class of error: what it is, and how often it was found, by whatever the plan varies.

use maud::{Markup, html};

use super::{LedgerView, ReportError, share};
use crate::finding::Named;
use crate::report::html::{prose, sentence, slug};
use crate::report::number;
use crate::report::table::Class;

impl LedgerView<'_> {
    /// A class of error: what it is, by both axes, by behaviour and over sizes.
    pub(super) fn class(&self, class: Class) -> Result<Markup, ReportError> {
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
        let maps = self.maps(class)?;
        let bars = self
            .shown
            .behaviour
            .map(|behaviour| (behaviour, self.table.pivot(class, Some(behaviour), None, None)));
        let bars_picture = match &bars {
            Some((behaviour, pivot)) => {
                let bars = self.bars(class, pivot, *behaviour);
                Some(self.picture(&format!("{}-bars", slug(name)), &bars)?)
            }
            None => None,
        };
        let lines = self.lines(class)?;
        let bars_table = bars.map(|(behaviour, pivot)| {
            self.pivot_table(class, &[(None, pivot)], Some(behaviour), None)
        });
        Ok(html! {
            section id={ (self.prefix) (slug(name)) } {
                h2 { (name) }
                p {
                    (sentence(&meaning)) ". All together: " (number::count(all.runs.hits)) " of "
                    (number::count(all.runs.chances)) " runs, " (prose(&share(all.runs))) "."
                }
                (maps)
                div.charts {
                    @if let Some(picture) = bars_picture { (picture) }
                    (lines)
                }
                @if let Some(table) = bars_table { (table) }
            }
        })
    }
}
