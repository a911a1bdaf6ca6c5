//! What each policy costs: descriptors, hits, evictions, retractions, waiting.

use maud::{Markup, html};

use super::{LedgerView, ReportError};
use crate::report::chart::Head;
use crate::report::chart::amounts::{Amounts, Group};
use crate::report::cost::{MEASURES, Measure};
use crate::report::html::slug;
use crate::report::table::{Level, RUNS_FEW};
use crate::stats::{Interval, Ratio};
use crate::sweep::cell::CellId;

impl LedgerView<'_> {
    /// A chart of every kind of cost, for every axis of policies.
    pub(super) fn cost(&self) -> Result<Markup, ReportError> {
        let bars = || MEASURES.iter().flat_map(|measure| measure.bars);
        let pairs: Vec<_> = bars().map(|bar| (bar.of, bar.per)).collect();
        let ratios = self.ledger.ratios(&pairs)?;
        let mut charts = Vec::new();
        for &axis in &self.shown.costs {
            let mut pictures = Vec::new();
            let mut first = 0;
            for measure in &MEASURES {
                let chart = self.amounts(measure, axis, &ratios, first);
                first += measure.bars.len();
                let name = format!("cost-{}-{}", slug(self.axis(Some(axis))), measure.name);
                pictures.push(self.picture(&name, &chart)?);
            }
            charts.push(pictures);
        }
        Ok(html! {
            section id={ (self.prefix) "cost" } {
                h2 { "Costs" }
                p {
                    "Sums over the runs that each chart names, with the 95 % interval of the ratio "
                    "over runs. Prefill and decode pages differ in size."
                }
                @for pictures in charts { (side_by_side(&pictures)) }
            }
        })
    }

    /// The sound behaviour, where there is one: the costs of others are mixed with what they break.
    fn plain(&self, axis: usize) -> Option<Level> {
        let behaviour = self.shown.behaviour.filter(|&behaviour| behaviour != axis)?;
        let points = &self.table.plan.axes[behaviour].points;
        let point = points.iter().position(|point| point.set.is_empty())?;
        Some(Level { axis: behaviour, point })
    }

    /// Cells by the points of an axis, of the plain behaviour only, and what that is called.
    pub(super) fn members(&self, axis: usize, more: Option<Level>) -> Vec<Vec<CellId>> {
        let plan = self.table.plan;
        let mut members = vec![Vec::new(); plan.axes[axis].points.len()];
        for cell in (0..plan.cells()).map(CellId) {
            let indices = plan.indices(cell);
            let levels = [self.plain(axis), more].into_iter().flatten();
            if levels.into_iter().all(|level| indices[level.axis] == level.point) {
                members[indices[axis]].push(cell);
            }
        }
        members
    }

    /// The subtitle of charts of these cells.
    pub(super) fn member_text(&self, axis: usize, more: Option<Level>) -> String {
        let levels: Vec<Level> = [self.plain(axis), more].into_iter().flatten().collect();
        let mut text = String::new();
        for &level in &levels {
            text +=
                &format!(", {} = {}", self.axis(Some(level.axis)), self.level_name(Some(level)));
        }
        let axes = levels.iter().map(|level| Some(level.axis)).chain([Some(axis)]);
        format!("by {}{text}{}", self.axis(Some(axis)), self.over(&axes.collect::<Vec<_>>()))
    }

    fn amounts(
        &self,
        measure: &Measure,
        axis: usize,
        ratios: &[Vec<Ratio>],
        first: usize,
    ) -> Amounts {
        let points = &self.table.plan.axes[axis].points;
        let group = |(cells, name): (Vec<CellId>, String)| {
            let sum = |bar: usize| {
                let of = |cell: &CellId| ratios[index(*cell)][bar];
                cells.iter().map(of).fold(Ratio::default(), Ratio::plus)
            };
            let bars = first..first + measure.bars.len();
            let amounts: Vec<_> =
                bars.map(|bar| sum(bar).interval().map(|found| scaled(found, measure))).collect();
            Group { name, runs: sum(first).n, amounts }
        };
        let members = self.members(axis, None).into_iter();
        Amounts {
            head: Head { title: measure.title.to_owned(), subtitle: self.member_text(axis, None) },
            groups_title: self.axis(Some(axis)).to_owned(),
            groups: members.zip(points.iter().map(|point| point.name.clone())).map(group).collect(),
            bars: measure.bars.iter().map(|bar| bar.name.to_owned()).collect(),
            unit: measure.unit.to_owned(),
            is_share: measure.is_share,
            few: RUNS_FEW,
        }
    }
}

/// Pictures that stand beside each other where there is room.
pub(super) fn side_by_side(pictures: &[Markup]) -> Markup {
    html! { div.charts { @for picture in pictures { (picture) } } }
}

/// The index of a cell in lists by cell.
pub(super) fn index(cell: CellId) -> usize {
    usize::try_from(cell.0).expect("limits::SWEEP_RUNS")
}

fn scaled(found: Interval, measure: &Measure) -> Interval {
    let [low, share, high] =
        [found.low, found.share, found.high].map(|amount| amount * measure.scale);
    Interval { low, share, high: if measure.is_share { high.min(1.0) } else { high } }
}
