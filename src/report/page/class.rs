//! A class of error: what it is, and how often it was found, by whatever the plan varies.

use super::{Part, ReportError, share};
use crate::finding::Named;
use crate::report::html::{escape, prose, sentence, slug};
use crate::report::number;
use crate::report::table::Class;

impl Part<'_> {
    /// A class of error: what it is, by both axes, by behaviour and over sizes.
    pub(super) fn class(&mut self, class: Class) -> Result<(), ReportError> {
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
}
