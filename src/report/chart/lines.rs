//! *Lines*: a share over the values of a swept size, a line for each of a few things, with 95 %
//! Wilson intervals.
//!
//! The sizes stand at equal distances, whatever their values. At one size the points of the lines
//! stand side by side, so that equal shares do not hide each other.

use plotters::backend::DrawingBackend;
use plotters::style::RGBColor;
use plotters::style::text_anchor::HPos;

use super::{
    Area, Chart, ChartError, Drawing, GRID, Head, INK, LINE, MARGIN, PALETTE, PAPER, PLAIN, Pen,
    QUIET,
};
use crate::report::csv::{self, Csv};
use crate::report::number;
use crate::report::value::Value;
use crate::stats::{Interval, Rate};

/// A line chart.
#[derive(Clone, Debug, PartialEq)]
pub struct Lines {
    /// What is shown.
    pub head: Head,
    /// What the sizes are.
    pub sizes_title: String,
    /// The sizes, rising.
    pub sizes: Vec<String>,
    /// What tells the lines apart.
    pub lines_title: String,
    /// The lines.
    pub lines: Vec<Line>,
    /// What the shares are shares of, for the axis.
    pub unit: String,
    /// The share at the end of the axis, see [`super::scale_end`].
    pub end: f64,
    /// A point of fewer chances than this is hollow: its interval rests on too little.
    pub few: u64,
}

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// What it stands for.
    pub name: String,
    /// A cell for every size; those without a share are left out.
    pub cells: Vec<Value>,
}

const WIDTH: i32 = 480;
const PLOT_HEIGHT: i32 = 220;
/// Width of the labels of the axis, in pixels.
const LEFT: i32 = 56;
const TICKS: i32 = 4;
/// Half the size of a point, in pixels.
const POINT: i32 = 5;
/// Distance between the points of two lines at one size, in pixels.
const APART: i32 = 11;
const SWATCH: i32 = 24;

impl Lines {
    fn width(&self) -> i32 {
        let names = self.lines.iter().map(|line| PLAIN.width(&line.name) + SWATCH + 8);
        names.chain([QUIET.width(&self.unit), WIDTH - 2 * MARGIN]).max().unwrap_or(0) + 2 * MARGIN
    }

    fn x(&self, size: usize, line: usize) -> i32 {
        let [sizes, lines, size, line] = [self.sizes.len(), self.lines.len(), size, line]
            .map(|count| i32::try_from(count).expect("charts have few lines"));
        let slot = (self.width() - 2 * MARGIN - LEFT) / sizes.max(1);
        let apart = APART.min(slot * 3 / 4 / lines.max(1));
        MARGIN + LEFT + slot * size + slot / 2 + apart * (2 * line - (lines - 1)) / 2
    }

    #[expect(clippy::cast_possible_truncation, reason = "a share of a few hundred pixels")]
    fn y(&self, top: i32, share: f64) -> i32 {
        let height = f64::from(PLOT_HEIGHT);
        top + (height * (1.0 - (share / self.end).min(1.0))).round() as i32
    }

    fn rates(&self) -> impl Iterator<Item = Rate> {
        self.lines.iter().flat_map(|line| &line.cells).filter_map(|cell| match *cell {
            Value::Share(rate) if rate.chances > 0 => Some(rate),
            Value::Share(_) | Value::Impossible | Value::NotRun => None,
        })
    }

    fn has_few(&self) -> bool {
        self.rates().any(|rate| rate.chances < self.few)
    }

    fn draw_axes<DB: DrawingBackend>(&self, pen: &Pen<DB>, top: i32) -> Result<(), ChartError> {
        pen.text(&self.unit, (MARGIN, top - LINE), HPos::Left, QUIET)?;
        let (left, right) = (MARGIN + LEFT, self.width() - MARGIN);
        for tick in 0..=TICKS {
            let share = self.end * f64::from(tick) / f64::from(TICKS);
            let y = self.y(top, share);
            pen.line((left, y), (right, y), if tick == 0 { INK } else { GRID })?;
            pen.text(&number::tick(share), (left - 8, y), HPos::Right, QUIET)?;
        }
        let foot = top + PLOT_HEIGHT;
        let middle = |size| i32::midpoint(self.x(size, 0), self.x(size, self.lines.len() - 1));
        for (index, size) in self.sizes.iter().enumerate() {
            pen.text(size, (middle(index), foot + LINE / 2 + 4), HPos::Center, PLAIN)?;
        }
        let centre = (i32::midpoint(left, right), foot + LINE + LINE / 2 + 4);
        pen.text(&self.sizes_title, centre, HPos::Center, QUIET)
    }

    fn draw_line<DB: DrawingBackend>(
        &self,
        pen: &Pen<DB>,
        top: i32,
        number: usize,
    ) -> Result<(), ChartError> {
        let color = PALETTE[number % PALETTE.len()];
        let points: Vec<(i32, Rate, Interval)> = self.lines[number]
            .cells
            .iter()
            .enumerate()
            .filter_map(|(size, cell)| match *cell {
                Value::Share(rate) => Some((self.x(size, number), rate, rate.interval()?)),
                Value::Impossible | Value::NotRun => None,
            })
            .collect();
        let path: Vec<_> =
            points.iter().map(|(x, _, interval)| (*x, self.y(top, interval.share))).collect();
        pen.path(&path, color)?;
        for (x, rate, interval) in points {
            let [low, share, high] =
                [interval.low, interval.share, interval.high].map(|share| self.y(top, share));
            pen.line((x, low), (x, high), color)?;
            draw_point(pen, (x, share), number, rate.chances < self.few)?;
        }
        Ok(())
    }

    fn draw_legend<DB: DrawingBackend>(&self, pen: &Pen<DB>, top: i32) -> Result<(), ChartError> {
        let mut y = top + LINE / 2;
        for (number, line) in self.lines.iter().enumerate() {
            let color = PALETTE[number % PALETTE.len()];
            pen.path(&[(MARGIN, y), (MARGIN + SWATCH, y)], color)?;
            draw_point(pen, (MARGIN + SWATCH / 2, y), number, false)?;
            pen.text(&line.name, (MARGIN + SWATCH + 8, y), HPos::Left, PLAIN)?;
            y += LINE;
        }
        if self.has_few() {
            let text = format!("hollow: fewer than {} runs", self.few);
            pen.text(&text, (MARGIN, y), HPos::Left, QUIET)?;
        }
        Ok(())
    }

    fn legend_height(&self) -> i32 {
        let lines = i32::try_from(self.lines.len()).expect("charts have few lines");
        LINE * (lines + i32::from(self.has_few()))
    }
}

/// Height of what stands below the plot, in pixels: the sizes, and what they are sizes of.
const FOOT: i32 = 2 * LINE + 12;

/// A point of a line. The line's number chooses both colour and shape, so that either of them is
/// enough to tell lines apart.
fn draw_point<DB: DrawingBackend>(
    pen: &Pen<DB>,
    (x, y): (i32, i32),
    number: usize,
    hollow: bool,
) -> Result<(), ChartError> {
    let color = PALETTE[number % PALETTE.len()];
    let shape = |half: i32, color: RGBColor| match number % 4 {
        0 => pen.fill(Area { x: x - half, y: y - half, width: 2 * half, height: 2 * half }, color),
        1 => pen.polygon(&[(x, y - half - 1), (x + half, y + half), (x - half, y + half)], color),
        2 => {
            let corner = half + 1;
            let corners = [(x, y - corner), (x + corner, y), (x, y + corner), (x - corner, y)];
            pen.polygon(&corners, color)
        }
        _ => pen.polygon(&[(x, y + half + 1), (x + half, y - half), (x - half, y - half)], color),
    };
    shape(POINT, color)?;
    if hollow { shape(POINT - 2, PAPER) } else { Ok(()) }
}

impl Drawing for Lines {
    fn size(&self) -> (i32, i32) {
        let width = self.width();
        let plot = LINE + LINE / 2 + PLOT_HEIGHT + FOOT;
        (width, self.head.height(width) + plot + self.legend_height() + MARGIN)
    }

    fn draw<DB: DrawingBackend>(&self, pen: &Pen<DB>) -> Result<(), ChartError> {
        let top = pen.head(&self.head, self.width())? + LINE + LINE / 2;
        self.draw_axes(pen, top)?;
        for number in 0..self.lines.len() {
            self.draw_line(pen, top, number)?;
        }
        self.draw_legend(pen, top + PLOT_HEIGHT + FOOT)
    }
}

impl Chart for Lines {
    fn head(&self) -> &Head {
        &self.head
    }

    fn csv(&self) -> Csv {
        let mut rows = Vec::new();
        for line in &self.lines {
            for (size, &cell) in self.sizes.iter().zip(&line.cells) {
                let names = [line.name.clone(), size.clone()];
                rows.push(names.into_iter().chain(csv::value(cell)).collect());
            }
        }
        Csv { head: csv::head(&[&self.lines_title, &self.sizes_title], &csv::VALUE), rows }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines() -> Lines {
        let share = |hits, chances| Value::Share(Rate { hits, chances });
        let line = |name: &str, cells| Line { name: name.to_owned(), cells };
        Lines {
            head: Head { title: "t".to_owned(), subtitle: "s".to_owned() },
            sizes_title: "ranks".to_owned(),
            sizes: vec!["1".to_owned(), "2".to_owned()],
            lines_title: "behaviour".to_owned(),
            lines: vec![
                line("sound", vec![share(0, 0), share(0, 200)]),
                line("padded", vec![Value::Impossible, share(50, 200)]),
            ],
            unit: "runs".to_owned(),
            end: 0.5,
            few: 100,
        }
    }

    #[test]
    fn the_file_holds_every_point_and_what_is_missing() {
        let text = lines().csv().text();
        let rows: Vec<&str> = text.lines().collect();
        assert_eq!(rows[0], "behaviour,ranks,state,hits,chances,share,low,high");
        assert_eq!(rows[1], "sound,1,not reached,,,,,");
        assert!(rows[2].starts_with("sound,2,ran,0,200,0,0,"), "{text}");
        assert_eq!(rows[3], "padded,1,impossible,,,,,");
        assert!(rows[4].starts_with("padded,2,ran,50,200,0.25,"), "{text}");
    }

    #[test]
    fn points_lie_at_their_share_and_apart_from_each_other() {
        let lines = lines();
        assert_eq!(lines.y(0, 0.25), PLOT_HEIGHT / 2);
        assert_eq!((lines.y(0, 0.0), lines.y(0, 0.5)), (PLOT_HEIGHT, 0));
        assert!(lines.x(1, 1) - lines.x(1, 0) > POINT);
        assert!(lines.x(1, 1) + POINT <= lines.width() - MARGIN);
        assert!(!lines.has_few());
        super::super::svg(&lines).unwrap();
    }
}
