//! *Bars*: a share for each of a few things, with its 95 % Wilson interval.

use plotters::backend::DrawingBackend;
use plotters::style::text_anchor::HPos;

use super::{
    Area, Chart, ChartError, Drawing, GRID, Head, INK, LINE, MARGIN, PALETTE, PAPER, PLAIN, Pen,
    QUIET, STRONG,
};
use crate::report::csv::{self, Csv};
use crate::report::number;
use crate::report::value::Value;
use crate::stats::Rate;

/// One bar.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bar {
    /// What it stands for.
    pub name: String,
    /// Its share. A bar without one is hatched (no chance, or impossible) or dotted (not run yet).
    pub value: Value,
}

/// A bar chart with horizontal bars.
#[derive(Clone, Debug, PartialEq)]
pub struct Bars {
    /// What is shown.
    pub head: Head,
    /// The bars, from the top.
    pub bars: Vec<Bar>,
    /// What the shares are shares of, for the axis.
    pub unit: String,
    /// The share at the end of the axis, see [`super::scale_end`].
    pub end: f64,
    /// A bar of fewer chances than this is marked: its interval rests on too little.
    pub few: u64,
}

const NOT_REACHED: &str = "not reached";
const NOT_RUN: &str = "not run yet";
const IMPOSSIBLE: &str = "left out";
const ROW: i32 = 44;
const PLOT_WIDTH: i32 = 230;
const BAR_HEIGHT: i32 = 22;
/// Half the length, in pixels, of the stroke that ends an interval's line.
const CAP: i32 = 6;
const TICKS: i32 = 4;

impl Bars {
    fn names_width(&self) -> i32 {
        let names = self.bars.iter().map(|bar| PLAIN.width(&bar.name));
        names.max().unwrap_or(0) + 10
    }

    fn counts_width(&self) -> i32 {
        let counts = self.rates().map(|rate| QUIET.width(&self.count(rate)));
        let count = counts.max().unwrap_or(0).max(STRONG.width(">99.9 %"));
        let words = [NOT_REACHED, NOT_RUN, IMPOSSIBLE].map(|word| QUIET.width(word));
        words.into_iter().fold(count, i32::max) + 14
    }

    fn rates(&self) -> impl Iterator<Item = Rate> {
        self.bars.iter().filter_map(|bar| match bar.value {
            Value::Share(rate) => Some(rate),
            Value::Impossible | Value::NotRun => None,
        })
    }

    fn count(&self, rate: Rate) -> String {
        let star = if rate.chances < self.few { " *" } else { "" };
        format!("n={}{star}", number::count(rate.chances))
    }

    fn has_few(&self) -> bool {
        self.rates().any(|rate| rate.chances > 0 && rate.chances < self.few)
    }

    fn width(&self) -> i32 {
        let plot = self.names_width() + PLOT_WIDTH + self.counts_width();
        plot.max(QUIET.width(&self.unit)) + 2 * MARGIN
    }

    fn rows_height(&self) -> i32 {
        ROW * i32::try_from(self.bars.len()).expect("charts have few bars")
    }

    fn draw_axis<DB: DrawingBackend>(&self, pen: &Pen<DB>, top: i32) -> Result<(), ChartError> {
        let left = MARGIN + self.names_width();
        let foot = top + self.rows_height();
        for tick in 0..=TICKS {
            let x = left + PLOT_WIDTH * tick / TICKS;
            pen.line((x, top), (x, foot + 4), if tick == 0 { INK } else { GRID })?;
            // Labels of all ticks would run into each other.
            if tick % 2 == 0 {
                let text = number::tick(self.end * f64::from(tick) / f64::from(TICKS));
                pen.text(&text, (x, foot + 4 + LINE / 2), HPos::Center, QUIET)?;
            }
        }
        let mut y = foot + 4 + LINE + LINE / 2;
        pen.text(&self.unit, (MARGIN, y), HPos::Left, QUIET)?;
        y += LINE;
        if self.has_few() {
            let text = format!("* fewer than {} runs", self.few);
            pen.text(&text, (MARGIN, y), HPos::Left, QUIET)?;
        }
        Ok(())
    }

    fn draw_bar<DB: DrawingBackend>(
        &self,
        pen: &Pen<DB>,
        bar: &Bar,
        y: i32,
    ) -> Result<(), ChartError> {
        let left = MARGIN + self.names_width();
        pen.text(&bar.name, (left - 10, y), HPos::Right, PLAIN)?;
        let mut area =
            Area { x: left, y: y - BAR_HEIGHT / 2, width: PLOT_WIDTH, height: BAR_HEIGHT };
        let right = left + PLOT_WIDTH + 14;
        let rate = match bar.value {
            Value::Share(rate) => rate,
            Value::Impossible => {
                pen.fill(area, PAPER)?;
                pen.hatch(area, true)?;
                return pen.text(IMPOSSIBLE, (right, y), HPos::Left, QUIET);
            }
            Value::NotRun => {
                pen.fill(area, PAPER)?;
                pen.dotted(area)?;
                return pen.text(NOT_RUN, (right, y), HPos::Left, QUIET);
            }
        };
        let Some(interval) = rate.interval() else {
            pen.fill(area, PAPER)?;
            pen.hatch(area, false)?;
            return pen.text(NOT_REACHED, (right, y), HPos::Left, QUIET);
        };
        area.width = self.pixels(interval.share);
        pen.fill(area, PALETTE[0])?;
        let (low, high) = (left + self.pixels(interval.low), left + self.pixels(interval.high));
        pen.line((low, y), (high, y), INK)?;
        for x in [low, high] {
            pen.line((x, y - CAP), (x, y + CAP), INK)?;
        }
        let share = number::percent(interval.share);
        pen.text(&share, (right, y - 9), HPos::Left, STRONG)?;
        pen.text(&self.count(rate), (right, y + 10), HPos::Left, QUIET)
    }

    #[expect(clippy::cast_possible_truncation, reason = "a share of a few hundred pixels")]
    fn pixels(&self, share: f64) -> i32 {
        (f64::from(PLOT_WIDTH) * (share / self.end).min(1.0)).round() as i32
    }
}

impl Drawing for Bars {
    fn size(&self) -> (i32, i32) {
        let width = self.width();
        let notes = if self.has_few() { 2 } else { 1 };
        let axis = 4 + LINE + LINE * notes;
        let height = self.head.height(width) + self.rows_height() + axis + MARGIN;
        (width, height)
    }

    fn draw<DB: DrawingBackend>(&self, pen: &Pen<DB>) -> Result<(), ChartError> {
        let top = pen.head(&self.head, self.width())?;
        self.draw_axis(pen, top)?;
        let step = usize::try_from(ROW).expect("positive");
        for (y, bar) in (top + ROW / 2..).step_by(step).zip(&self.bars) {
            self.draw_bar(pen, bar, y)?;
        }
        Ok(())
    }
}

impl Chart for Bars {
    fn head(&self) -> &Head {
        &self.head
    }

    fn csv(&self) -> Csv {
        let row =
            |bar: &Bar| std::iter::once(bar.name.clone()).chain(csv::value(bar.value)).collect();
        Csv { head: csv::head(&["name"], &csv::VALUE), rows: self.bars.iter().map(row).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_holds_what_the_bars_show() {
        let bar = |name: &str, value| Bar { name: name.to_owned(), value };
        let bars = Bars {
            head: Head { title: "t".to_owned(), subtitle: "s".to_owned() },
            bars: vec![
                bar("a, b", Value::Share(Rate { hits: 3, chances: 4 })),
                bar("none", Value::Impossible),
            ],
            unit: "runs".to_owned(),
            end: 1.0,
            few: 100,
        };
        let text = bars.csv().text();
        assert!(text.starts_with("name,state,hits,chances,share,low,high\n\"a, b\",ran,3,4,0.75,"));
        assert!(text.ends_with("\nnone,impossible,,,,,\n"), "{text}");
        let svg = crate::report::chart::svg(&bars).unwrap();
        assert!(svg.contains("75 %") && svg.contains("n=4 *") && svg.contains("left out"));
    }
}
