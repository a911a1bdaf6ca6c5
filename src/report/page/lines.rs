//! Frequencies over a swept size, a line for each behaviour.

use maud::{Markup, html};

use super::shown::sizes_in_order;
use super::{LedgerView, ReportError, UNIT, value};
use crate::report::chart::lines::{Line, Lines};
use crate::report::chart::{Head, scale_end};
use crate::report::html::slug;
use crate::report::table::{Class, Pivot, RUNS_FEW};

impl LedgerView<'_> {
    /// A chart for every axis of sizes.
    pub(super) fn lines(&self, class: Class) -> Result<Markup, ReportError> {
        let mut pictures = Vec::new();
        for &axis in &self.shown.sizes {
            let name = format!("{}-over-{}", slug(class.name()), slug(self.axis(Some(axis))));
            pictures.push(self.picture(&name, &self.lines_over(class, axis))?);
        }
        Ok(html! { @for picture in pictures { (picture) } })
    }

    fn lines_over(&self, class: Class, axis: usize) -> Lines {
        let other = |candidate: &usize| *candidate != axis;
        let by = self.shown.behaviour.filter(other).or(self.shown.levels.filter(other));
        let pivot = self.table.pivot(class, by, Some(axis), None);
        let (found, absent): (Vec<usize>, Vec<usize>) =
            (0..pivot.rows.len()).partition(|&row| class == Class::Defect || is_found(&pivot, row));
        let order = sizes_in_order(&self.table.plan.axes[axis]).expect("the axis is one of sizes");
        let line = |&row: &usize| Line {
            name: pivot.rows[row].clone(),
            cells: order.iter().map(|&size| value(&pivot.groups[row][size])).collect(),
        };
        let shown = found.iter().flat_map(|&row| &pivot.groups[row]);
        let high = shown.filter_map(|group| group.runs.interval()).map(|interval| interval.high);
        let mut subtitle = self.subtitle(&[by, Some(axis)]);
        if !absent.is_empty() {
            let names: Vec<&str> = absent.iter().map(|&row| pivot.rows[row].as_str()).collect();
            subtitle += &format!("; never found at: {}", names.join(", "));
        }
        Lines {
            head: Head {
                title: format!("{} over {}", class.name(), self.axis(Some(axis))),
                subtitle,
            },
            sizes_title: self.axis(Some(axis)).to_owned(),
            sizes: order.iter().map(|&size| pivot.columns[size].clone()).collect(),
            lines_title: self.axis(by).to_owned(),
            end: scale_end(high.fold(0.0, f64::max)),
            lines: found.iter().map(line).collect(),
            unit: UNIT.to_owned(),
            few: RUNS_FEW,
        }
    }
}

fn is_found(pivot: &Pivot, row: usize) -> bool {
    pivot.groups[row].iter().any(|group| group.runs.hits > 0)
}
