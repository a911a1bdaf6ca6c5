//! *Amounts*: bars of plain numbers with a unit, one or more for each of a few things, with 95 %
//! intervals.

use plotters::backend::DrawingBackend;
use plotters::style::text_anchor::HPos;

use super::{
    Area, Chart, ChartError, Drawing, GRID, Head, INK, LINE, MARGIN, PALETTE, PLAIN, Pen, QUIET,
    axis_end,
};
use crate::report::csv::{self, Csv};
use crate::report::number;
use crate::stats::Interval;

/// A bar chart of amounts.
#[derive(Clone, Debug, PartialEq)]
pub struct Amounts {
    /// What is shown.
    pub head: Head,
    /// What the groups are.
    pub groups_title: String,
    /// Groups of bars, from the top.
    pub groups: Vec<Group>,
    /// What the bars of each group are, in order.
    pub bars: Vec<String>,
    /// What the numbers count, for the axis.
    pub unit: String,
    /// Whether the numbers are shares, written as per cent.
    pub is_share: bool,
    /// A group of fewer runs than this is marked: its interval rests on too little.
    pub few: u64,
}

/// The bars of one thing.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// What it stands for.
    pub name: String,
    /// Runs behind it.
    pub runs: u64,
    /// A number with its interval for each bar; `None` where there was nothing to count against.
    pub amounts: Vec<Option<Interval>>,
}

const BAR: i32 = 20;
const GAP: i32 = 14;
const PLOT_WIDTH: i32 = 210;
const TICKS: i32 = 2;
/// Half the length, in pixels, of the stroke that ends an interval's line.
const CAP: i32 = 4;
const NONE: &str = "nothing to count";
const SWATCH: i32 = 14;

impl Amounts {
    fn text(&self, amount: f64) -> String {
        if self.is_share { number::percent(amount) } else { number::amount(amount) }
    }

    fn name(&self, group: &Group) -> String {
        let star = if group.runs < self.few { " *" } else { "" };
        format!("{}{star}", group.name)
    }

    fn left(&self) -> i32 {
        let names = self.groups.iter().map(|group| PLAIN.width(&self.name(group)));
        MARGIN + names.max().unwrap_or(0) + 10
    }

    fn amounts(&self) -> impl Iterator<Item = Option<Interval>> {
        self.groups.iter().flat_map(|group| group.amounts.iter().copied())
    }

    fn width(&self) -> i32 {
        let label = |amount: Option<Interval>| match amount {
            Some(interval) => PLAIN.width(&self.text(interval.share)),
            None => QUIET.width(NONE),
        };
        let labels = self.amounts().map(label).max().unwrap_or(0);
        let bars = self.left() + PLOT_WIDTH + 10 + labels;
        let legend = self.bars.iter().map(|bar| MARGIN + SWATCH + 8 + PLAIN.width(bar));
        let unit = MARGIN + QUIET.width(&self.unit);
        legend.chain([bars, unit]).max().unwrap_or(0) + MARGIN
    }

    fn end(&self) -> f64 {
        axis_end(self.amounts().flatten().map(|interval| interval.high).fold(0.0, f64::max))
    }

    fn group_height(&self) -> i32 {
        BAR * i32::try_from(self.bars.len()).expect("groups have few bars") + GAP
    }

    fn groups_height(&self) -> i32 {
        self.group_height() * i32::try_from(self.groups.len()).expect("charts have few groups")
    }

    fn has_few(&self) -> bool {
        self.groups.iter().any(|group| group.runs < self.few)
    }

    fn legend(&self) -> &[String] {
        // Where a group has one bar, the axis says what it is.
        if self.bars.len() > 1 { &self.bars } else { &[] }
    }

    #[expect(clippy::cast_possible_truncation, reason = "a share of a few hundred pixels")]
    fn x(&self, amount: f64) -> i32 {
        self.left() + (f64::from(PLOT_WIDTH) * (amount / self.end()).min(1.0)).round() as i32
    }

    fn draw_axis<DB: DrawingBackend>(&self, pen: &Pen<DB>, top: i32) -> Result<(), ChartError> {
        let foot = top + self.groups_height();
        for tick in 0..=TICKS {
            let amount = self.end() * f64::from(tick) / f64::from(TICKS);
            let x = self.x(amount);
            pen.line((x, top), (x, foot + 4), if tick == 0 { INK } else { GRID })?;
            let text = if self.is_share { number::tick(amount) } else { number::amount(amount) };
            pen.text(&text, (x, foot + 4 + LINE / 2), HPos::Center, QUIET)?;
        }
        let mut y = foot + 4 + LINE + LINE / 2;
        pen.text(&self.unit, (MARGIN, y), HPos::Left, QUIET)?;
        for (bar, &color) in self.legend().iter().zip(PALETTE.iter().cycle()) {
            y += LINE;
            let swatch = Area { x: MARGIN, y: y - SWATCH / 2, width: SWATCH, height: SWATCH };
            pen.fill(swatch, color)?;
            pen.text(bar, (MARGIN + SWATCH + 8, y), HPos::Left, PLAIN)?;
        }
        if self.has_few() {
            let text = format!("* fewer than {} runs", self.few);
            pen.text(&text, (MARGIN, y + LINE), HPos::Left, QUIET)?;
        }
        Ok(())
    }

    fn draw_group<DB: DrawingBackend>(
        &self,
        pen: &Pen<DB>,
        group: &Group,
        top: i32,
    ) -> Result<(), ChartError> {
        let middle = top + (self.group_height() - GAP) / 2;
        let left = self.left();
        pen.text(&self.name(group), (left - 10, middle), HPos::Right, PLAIN)?;
        let right = left + PLOT_WIDTH + 10;
        let bars = group.amounts.iter().zip(PALETTE.iter().cycle());
        for (y, (amount, &color)) in (top..).step_by(BAR as usize).zip(bars) {
            let middle = y + BAR / 2;
            let Some(interval) = amount else {
                pen.text(NONE, (right, middle), HPos::Left, QUIET)?;
                continue;
            };
            let width = self.x(interval.share) - left;
            pen.fill(Area { x: left, y: y + 1, width, height: BAR - 2 }, color)?;
            let (low, high) = (self.x(interval.low), self.x(interval.high));
            pen.line((low, middle), (high, middle), INK)?;
            for x in [low, high] {
                pen.line((x, middle - CAP), (x, middle + CAP), INK)?;
            }
            pen.text(&self.text(interval.share), (right, middle), HPos::Left, PLAIN)?;
        }
        Ok(())
    }
}

impl Drawing for Amounts {
    fn size(&self) -> (i32, i32) {
        let width = self.width();
        let legend = i32::try_from(self.legend().len()).expect("groups have few bars");
        let notes = LINE * (2 + legend + i32::from(self.has_few())) + 4;
        (width, self.head.height(width) + self.groups_height() + notes + MARGIN)
    }

    fn draw<DB: DrawingBackend>(&self, pen: &Pen<DB>) -> Result<(), ChartError> {
        let top = pen.head(&self.head, self.width())?;
        self.draw_axis(pen, top)?;
        let step = usize::try_from(self.group_height()).expect("positive");
        for (y, group) in (top + GAP / 2..).step_by(step).zip(&self.groups) {
            self.draw_group(pen, group, y)?;
        }
        Ok(())
    }
}

impl Chart for Amounts {
    fn head(&self) -> &Head {
        &self.head
    }

    fn csv(&self) -> Csv {
        let mut rows = Vec::new();
        for group in &self.groups {
            for (bar, amount) in self.bars.iter().zip(&group.amounts) {
                let numbers = amount.map(|i| [i.share, i.low, i.high].map(|n| n.to_string()));
                let mut row = vec![group.name.clone(), bar.clone(), group.runs.to_string()];
                row.extend(numbers.unwrap_or_default());
                rows.push(row);
            }
        }
        let head = [self.groups_title.as_str(), "measure", "runs", &self.unit, "low", "high"];
        Csv { head: csv::head(&head, &[]), rows }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_holds_every_bar_and_leaves_empty_what_is_not_there() {
        let interval = Interval { low: 1.5, share: 2.25, high: 3.0 };
        let group = |name: &str, runs, amounts| Group { name: name.to_owned(), runs, amounts };
        let amounts = Amounts {
            head: Head { title: "t".to_owned(), subtitle: "s".to_owned() },
            groups_title: "order".to_owned(),
            groups: vec![
                group("sorted", 400, vec![Some(interval), None]),
                group("random", 40, vec![None, Some(interval)]),
            ],
            bars: vec!["packed".to_owned(), "not packed".to_owned()],
            unit: "descriptors".to_owned(),
            is_share: false,
            few: 100,
        };
        assert_eq!(
            amounts.csv().text(),
            "order,measure,runs,descriptors,low,high\n\
             sorted,packed,400,2.25,1.5,3\n\
             sorted,not packed,400,,,\n\
             random,packed,40,,,\n\
             random,not packed,40,2.25,1.5,3\n"
        );
        assert!((amounts.end() - 5.0).abs() < 1e-9);
        let svg = super::super::svg(&amounts).unwrap();
        assert!(svg.contains("random *") && !svg.contains("sorted *"), "{svg}");
        assert!(svg.contains("2.25") && svg.contains(NONE), "{svg}");
    }
}
