//! Frequencies by behaviour, with their intervals.

use super::{LedgerView, UNIT, value};
use crate::report::chart::bars::{Bar, Bars};
use crate::report::chart::{self, Head};
use crate::report::table::{Class, Pivot, RUNS_FEW};

impl LedgerView<'_> {
    pub(super) fn bars(&self, class: Class, pivot: &Pivot, behaviour: usize) -> Bars {
        let groups = pivot.groups.iter().map(|row| &row[0]);
        let high = groups.clone().filter_map(|group| group.runs.interval());
        let max = high.map(|interval| interval.high).fold(0.0, f64::max);
        let bar = |(name, group): (&String, _)| Bar { name: name.clone(), value: value(group) };
        Bars {
            head: Head {
                title: format!("{} by {}", class.name(), self.axis(Some(behaviour))),
                subtitle: self.subtitle(&[Some(behaviour)]),
            },
            bars: pivot.rows.iter().zip(groups).map(bar).collect(),
            unit: format!("{UNIT}, with 95 % Wilson intervals"),
            end: chart::scale_end(max),
            few: RUNS_FEW,
        }
    }
}
