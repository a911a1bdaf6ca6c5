//! How the free pages of the pools fall to pieces while requests arrive.

use maud::{Markup, html};

use super::cost::{index, side_by_side};
use super::{LedgerView, ReportError};
use crate::finding::{FreeRun, FreeSample, Named, Side, Tally};
use crate::limits::FREE_RUN_SAMPLES;
use crate::report::chart::Head;
use crate::report::chart::distribution::{Distribution, Group, Parted};
use crate::report::html::slug;
use crate::report::number;
use crate::report::table::Level;
use crate::sweep::cell::CellId;
use crate::sweep::summary::FreePages;

impl LedgerView<'_> {
    /// A chart of each side's pools by every axis of policies, apart for each page size.
    pub(super) fn free_runs(&self) -> Result<Markup, ReportError> {
        let pages = self.ledger.free_runs()?;
        let mut charts = Vec::new();
        for &axis in &self.shown.costs {
            let sizes = self.shown.page_size.filter(|&size| size != axis);
            let levels: Vec<Option<Level>> = match sizes {
                None => vec![None],
                Some(size) => (0..self.table.plan.axes[size].points.len())
                    .map(|point| Some(Level { axis: size, point }))
                    .collect(),
            };
            for level in levels {
                let mut pictures = Vec::new();
                for &side in Side::ALL {
                    let chart = self.distribution(side, axis, level, &pages);
                    let mut name =
                        format!("free-runs-{}-{}", slug(self.axis(Some(axis))), side.name());
                    if level.is_some() {
                        name += &format!("-{}", slug(&self.level_name(level)));
                    }
                    pictures.push(self.picture(&name, &chart)?);
                }
                charts.push(pictures);
            }
        }
        Ok(html! {
            section id={ (self.prefix) "free-runs" } {
                h2 { "Free runs" }
                p {
                    "Free pages by the length of the run of consecutive free pages that each lay "
                    "in, when each quarter of the requests had arrived. Short runs make many "
                    "descriptors: pages that lie apart are sent apart."
                }
                @for pictures in charts { (side_by_side(&pictures)) }
            }
        })
    }

    fn distribution(
        &self,
        side: Side,
        axis: usize,
        level: Option<Level>,
        pages: &[FreePages],
    ) -> Distribution {
        let points = &self.table.plan.axes[axis].points;
        let group = |(cells, name): (Vec<CellId>, String)| {
            let bars = (1..=FREE_RUN_SAMPLES).map(|part| {
                let sample = FreeSample { side, part };
                self.parted(&cells, sample, pages)
            });
            Group { name, bars: bars.collect() }
        };
        let members = self.members(axis, level).into_iter();
        let names = points.iter().map(|point| point.name.clone());
        Distribution {
            head: Head {
                title: format!("Free runs, {} pools", side.name()),
                subtitle: format!(
                    "when 1/{FREE_RUN_SAMPLES} to {FREE_RUN_SAMPLES}/{FREE_RUN_SAMPLES} of the requests \
                     had arrived, {}",
                    self.member_text(axis, level)
                ),
            },
            titles: [self.axis(Some(axis)), "requests arrived", "length of run", "free pages"]
                .map(str::to_owned),
            groups: members.zip(names).map(group).collect(),
            classes: FreeRun::ALL.iter().map(|length| length.name().to_owned()).collect(),
            unit: "per cent of free pages, by length of their run in pages".to_owned(),
        }
    }

    /// All free pages of a sample; its note is their mean over runs.
    fn parted(&self, cells: &[CellId], sample: FreeSample, pages: &[FreePages]) -> Parted {
        let mut all = Tally::<FreeRun>::default();
        for &cell in cells {
            if let Some(found) = pages[index(cell)].get(&sample) {
                found.iter().for_each(|(length, count)| all.add(length, count));
            }
        }
        let parts: Vec<u64> = all.iter().map(|(_, count)| count).collect();
        let runs: u64 = cells.iter().map(|&cell| self.table.cell(cell).runs).sum();
        let mean = (parts.iter().sum::<u64>() + runs / 2).checked_div(runs);
        Parted {
            name: format!("{}/{FREE_RUN_SAMPLES}", sample.part),
            parts,
            note: mean.map_or(String::new(), |mean| format!("{} free", number::count(mean))),
        }
    }
}
