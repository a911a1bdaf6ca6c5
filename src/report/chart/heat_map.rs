//! A *heat map*: a share for every pair of two settings, as colour and number.
//!
//! A share of zero is paper, any other is coloured; what was not reached is hatched, what cannot be
//! run is cross-hatched, and what has not been run yet has a dotted border.

use plotters::backend::DrawingBackend;
use plotters::style::text_anchor::HPos;

use super::{
    Area, Cell, Chart, ChartError, FAINT, GRID, Head, INK, LINE, MARGIN, PLAIN, Pen, QUIET, STRONG,
    color, label_color,
};
use crate::report::number;
use crate::stats::Rate;

/// A heat map.
#[derive(Clone, Debug, PartialEq)]
pub struct HeatMap {
    /// What is shown.
    pub head: Head,
    /// What the rows are.
    pub rows_title: String,
    /// What the columns are.
    pub columns_title: String,
    /// Names of the rows.
    pub rows: Vec<String>,
    /// Names of the columns.
    pub columns: Vec<String>,
    /// A cell for every row and column.
    pub cells: Vec<Vec<Cell>>,
    /// The share at the end of the colour bar, see [`super::scale_end`].
    pub end: f64,
    /// What the shares are shares of, for the colour bar.
    pub unit: String,
    /// Below so many chances a cell is marked.
    pub few: u64,
}

const CELL_HEIGHT: i32 = 48;
const CELL_WIDTH_MIN: i32 = 84;
/// Wider column names are written upwards.
const CELL_WIDTH_MAX: i32 = 120;
const WIDTH_MIN: i32 = 480;
const BAR_HEIGHT: i32 = 12;
const BAR_WIDTH: i32 = 220;
const BAR_STEPS: i32 = 55;
const SWATCH: i32 = 28;

impl HeatMap {
    fn rows_width(&self) -> i32 {
        let title = QUIET.width(&self.rows_title);
        PLAIN.width_max(&self.rows).max(title) + 10
    }

    fn columns_width(&self) -> i32 {
        PLAIN.width_max(&self.columns) + 14
    }

    fn upwards(&self) -> bool {
        self.columns_width() > CELL_WIDTH_MAX
    }

    fn cell_width(&self) -> i32 {
        if self.upwards() { CELL_WIDTH_MIN } else { self.columns_width().max(CELL_WIDTH_MIN) }
    }

    fn names_height(&self) -> i32 {
        if self.upwards() { self.columns_width() } else { LINE + 4 }
    }

    fn has(&self, wanted: impl Fn(Cell) -> bool) -> bool {
        self.cells.iter().flatten().any(|&cell| wanted(cell))
    }

    /// Hatchings and marks that occur, with what they mean.
    fn legend(&self) -> Vec<(Swatch, String)> {
        let mut legend = Vec::new();
        if self.has(|cell| matches!(cell, Cell::Share(Rate { chances: 0, .. }))) {
            let text = "not reached: no run had a chance".to_owned();
            legend.push((Swatch::Hatched, text));
        }
        if self.has(|cell| cell == Cell::Impossible) {
            let text = "impossible: the settings contradict".to_owned();
            legend.push((Swatch::Crossed, text));
        }
        if self.has(|cell| cell == Cell::NotRun) {
            legend.push((Swatch::Dotted, "not run yet".to_owned()));
        }
        let few = |cell| matches!(cell, Cell::Share(rate) if is_few(rate, self.few));
        if self.has(few) {
            legend.push((Swatch::Star, format!("fewer than {} runs", self.few)));
        }
        legend
    }

    fn draw_names<DB: DrawingBackend>(&self, pen: &Pen<DB>, top: i32) -> Result<(), ChartError> {
        let left = MARGIN + self.rows_width();
        let cell = self.cell_width();
        let bottom = top + LINE + self.names_height();
        pen.text(&self.columns_title, (left, top + LINE / 2), HPos::Left, QUIET)?;
        let corner = (left - 10, bottom - LINE / 2 - 2);
        pen.text(&self.rows_title, corner, HPos::Right, QUIET)?;
        for (x, name) in (left + cell / 2..).step_by(step(cell)).zip(&self.columns) {
            if self.upwards() {
                pen.text_upwards(name, (x, bottom - 6), PLAIN)?;
            } else {
                pen.text(name, (x, bottom - LINE / 2 - 2), HPos::Center, PLAIN)?;
            }
        }
        let first = bottom + CELL_HEIGHT / 2;
        for (y, name) in (first..).step_by(step(CELL_HEIGHT)).zip(&self.rows) {
            pen.text(name, (left - 10, y), HPos::Right, PLAIN)?;
        }
        Ok(())
    }

    fn draw_cells<DB: DrawingBackend>(&self, pen: &Pen<DB>, top: i32) -> Result<(), ChartError> {
        let left = MARGIN + self.rows_width();
        let width = self.cell_width();
        for (y, row) in (top..).step_by(step(CELL_HEIGHT)).zip(&self.cells) {
            for (x, &cell) in (left..).step_by(step(width)).zip(row) {
                // A gap of two pixels keeps equal neighbours apart.
                let area = Area { x: x + 1, y: y + 1, width: width - 2, height: CELL_HEIGHT - 2 };
                match cell {
                    Cell::Share(rate) => self.draw_share(pen, area, rate)?,
                    Cell::Impossible => pen.hatch(area, true)?,
                    Cell::NotRun => {
                        let (x, y) = area.centre();
                        pen.dotted(area)?;
                        pen.text("not run", (x, y - 8), HPos::Center, QUIET)?;
                        pen.text("yet", (x, y + 10), HPos::Center, QUIET)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn draw_share<DB: DrawingBackend>(
        &self,
        pen: &Pen<DB>,
        area: Area,
        rate: Rate,
    ) -> Result<(), ChartError> {
        let Some(interval) = rate.interval() else {
            return pen.hatch(area, false);
        };
        let label = if rate.hits == 0 {
            pen.outline(area, GRID)?;
            INK
        } else {
            let color = color((interval.share / self.end).min(1.0));
            pen.fill(area, color)?;
            label_color(color)
        };
        let (x, y) = area.centre();
        let share = number::percent(interval.share);
        pen.text(&share, (x, y - 8), HPos::Center, STRONG.of(label))?;
        let star = if is_few(rate, self.few) { " *" } else { "" };
        let runs = format!("n={}{star}", number::count(rate.chances));
        pen.text(&runs, (x, y + 12), HPos::Center, QUIET.of(label))
    }

    fn draw_bar<DB: DrawingBackend>(&self, pen: &Pen<DB>, top: i32) -> Result<(), ChartError> {
        pen.text(&self.unit, (MARGIN, top + LINE / 2), HPos::Left, QUIET)?;
        let y = top + LINE + 2;
        let step = BAR_WIDTH / BAR_STEPS;
        let x = MARGIN + 6;
        for index in 0..BAR_STEPS {
            let area = Area { x: x + index * step, y, width: step, height: BAR_HEIGHT };
            let share = f64::from(index) / f64::from(BAR_STEPS - 1);
            pen.fill(area, color(share))?;
        }
        for (place, share) in [(0, 0.0), (BAR_WIDTH / 2, self.end / 2.0), (BAR_WIDTH, self.end)] {
            let foot = y + BAR_HEIGHT;
            pen.line((x + place, foot), (x + place, foot + 4), FAINT)?;
            // The first label begins at the bar, so that it stays inside the chart.
            let (at, h) = match place {
                0 => (MARGIN, HPos::Left),
                place => (x + place, HPos::Center),
            };
            let text = if place == 0 { ">0 %".to_owned() } else { number::tick(share) };
            pen.text(&text, (at, foot + 4 + LINE / 2), h, QUIET)?;
        }
        Ok(())
    }

    fn draw_legend<DB: DrawingBackend>(&self, pen: &Pen<DB>, top: i32) -> Result<(), ChartError> {
        for (y, (swatch, text)) in (top..).step_by(step(LINE)).zip(self.legend()) {
            let area = Area { x: MARGIN, y: y + 2, width: SWATCH, height: LINE - 5 };
            match swatch {
                Swatch::Hatched => pen.hatch(area, false)?,
                Swatch::Dotted => pen.dotted(area)?,
                Swatch::Crossed => pen.hatch(area, true)?,
                Swatch::Star => pen.text("*", area.centre(), HPos::Center, PLAIN)?,
            }
            let at = (MARGIN + SWATCH + 8, y + LINE / 2);
            pen.text(&text, at, HPos::Left, QUIET)?;
        }
        Ok(())
    }

    fn width(&self) -> i32 {
        let columns = i32::try_from(self.columns.len()).expect("charts have few columns");
        let grid = self.rows_width() + self.cell_width() * columns;
        let title = self.rows_width() + QUIET.width(&self.columns_title);
        let unit = QUIET.width(&self.unit);
        (grid.max(title).max(unit) + 2 * MARGIN).max(WIDTH_MIN)
    }

    fn grid_height(&self) -> i32 {
        CELL_HEIGHT * i32::try_from(self.rows.len()).expect("charts have few rows")
    }
}

/// How the legend shows something.
enum Swatch {
    Hatched,
    Crossed,
    Dotted,
    Star,
}

/// Height of the colour bar with its texts.
const BAR_ROOM: i32 = 2 * LINE + BAR_HEIGHT + 12;

impl Chart for HeatMap {
    fn size(&self) -> (i32, i32) {
        let width = self.width();
        let legend = i32::try_from(self.legend().len()).expect("four at most");
        let names = LINE + self.names_height();
        let grid = self.head.height(width) + names + self.grid_height() + 8;
        (width, grid + BAR_ROOM + LINE * legend + MARGIN)
    }

    fn draw<DB: DrawingBackend>(&self, pen: &Pen<DB>) -> Result<(), ChartError> {
        let top = pen.head(&self.head, self.width())?;
        self.draw_names(pen, top)?;
        let grid = top + LINE + self.names_height();
        self.draw_cells(pen, grid)?;
        let bar = grid + self.grid_height() + 8;
        self.draw_bar(pen, bar)?;
        self.draw_legend(pen, bar + BAR_ROOM)
    }
}

fn is_few(rate: Rate, few: u64) -> bool {
    rate.chances > 0 && rate.chances < few
}

fn step(pixels: i32) -> usize {
    usize::try_from(pixels).expect("sizes are positive")
}
