//! Frequencies by two axes, and by a third as small multiples.

use maud::{Markup, html};

use super::{LedgerView, ReportError, UNIT, value};
use crate::report::chart::heat_map::{Grid, HeatMap, Scale};
use crate::report::chart::multiples::{Multiples, Panel};
use crate::report::chart::{Head, scale_end};
use crate::report::html::slug;
use crate::report::table::{Class, Level, Pivot, RUNS_FEW};

/// The colours of frequencies up to `end`.
pub(super) fn scale(end: f64) -> Scale {
    Scale { end, unit: UNIT.to_owned(), few: RUNS_FEW }
}

impl LedgerView<'_> {
    /// A panel for each level at which the class was found, all of one scale: added up over levels,
    /// a cell's share would depend on how many of its runs had a chance at each. A class that was
    /// not found at any level has one map of all.
    pub(super) fn maps(&self, class: Class) -> Result<Markup, ReportError> {
        let (rows, columns) = (self.shown.rows, self.shown.columns);
        let name = format!("{}-heat-map", slug(class.name()));
        let mut levels: Vec<(Option<Level>, Pivot)> = Vec::new();
        let mut absent = Vec::new();
        if let Some(axis) = self.shown.levels {
            for (point, value) in self.table.plan.axes[axis].points.iter().enumerate() {
                let level = Some(Level { axis, point });
                let pivot = self.table.pivot(class, rows, columns, level);
                if pivot.groups.iter().flatten().any(|group| group.runs.hits > 0) {
                    levels.push((level, pivot));
                } else {
                    absent.push(value.name.as_str());
                }
            }
        }
        if levels.is_empty() {
            levels.push((None, self.table.pivot(class, rows, columns, None)));
        }
        let max = levels.iter().map(|(_, pivot)| share_max(pivot)).fold(0.0, f64::max);
        let end = scale_end(max);
        let picture = match levels.as_slice() {
            [(level, pivot)] => self.picture(&name, &self.heat_map(class, pivot, *level, end))?,
            several => self.picture(&name, &self.multiples(class, several, &absent, end))?,
        };
        Ok(html! { (picture) (self.pivot_table(class, &levels, rows, columns)) })
    }

    fn multiples(
        &self,
        class: Class,
        levels: &[(Option<Level>, Pivot)],
        absent: &[&str],
        end: f64,
    ) -> Multiples {
        let axis = self.shown.levels;
        let panel = |(level, pivot): &(Option<Level>, Pivot)| Panel {
            name: self.level_name(*level),
            grid: self.grid(pivot),
        };
        let mut subtitle = self.subtitle(&[self.shown.rows, self.shown.columns, axis]);
        if !absent.is_empty() {
            subtitle += &format!("; never found at: {}", absent.join(", "));
        }
        Multiples {
            head: Head {
                title: format!("{} by {}, for each {}", class.name(), self.both(), self.axis(axis)),
                subtitle,
            },
            panels_title: self.axis(axis).to_owned(),
            panels: levels.iter().map(panel).collect(),
            scale: scale(end),
            is_narrow: false,
        }
    }

    pub(super) fn level_name(&self, level: Option<Level>) -> String {
        level.map_or("all".to_owned(), |Level { axis, point }| {
            self.table.plan.axes[axis].points[point].name.clone()
        })
    }

    /// The two axes of the heat maps.
    fn both(&self) -> String {
        let axes = [self.shown.rows, self.shown.columns].into_iter().flatten();
        axes.map(|axis| self.axis(Some(axis))).collect::<Vec<_>>().join(" × ")
    }

    fn grid(&self, pivot: &Pivot) -> Grid {
        Grid {
            rows_title: self.axis(self.shown.rows).to_owned(),
            columns_title: self.axis(self.shown.columns).to_owned(),
            rows: pivot.rows.clone(),
            columns: pivot.columns.clone(),
            cells: pivot.groups.iter().map(|row| row.iter().map(value).collect()).collect(),
            compact: false,
        }
    }

    pub(super) fn heat_map(
        &self,
        class: Class,
        pivot: &Pivot,
        level: Option<Level>,
        end: f64,
    ) -> HeatMap {
        let at = level.map_or(String::new(), |found| {
            format!(", {} = {}", self.axis(Some(found.axis)), self.level_name(level))
        });
        let shown = [self.shown.rows, self.shown.columns, level.map(|level| level.axis)];
        HeatMap {
            head: Head {
                title: format!("{} by {}{at}", class.name(), self.both()),
                subtitle: self.subtitle(&shown),
            },
            grid: self.grid(pivot),
            scale: scale(end),
        }
    }
}

fn share_max(pivot: &Pivot) -> f64 {
    let groups = pivot.groups.iter().flatten();
    let shares = groups.filter_map(|group| group.runs.interval());
    shares.map(|interval| interval.share).fold(0.0, f64::max)
}
