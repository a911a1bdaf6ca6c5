//! A *heat map*: a share for every pair of two settings, as colour and number.
//!
//! A share of zero is paper, any other is coloured; what was not reached is hatched, what cannot be
//! run is cross-hatched, and what has not been run yet has a dotted border.

use plotters::backend::DrawingBackend;
use plotters::style::text_anchor::HPos;

use super::{
    Area, Chart, ChartError, Drawing, GRID, Head, INK, LINE, MARGIN, NARROW, PLAIN, Pen, QUIET,
    SMALL_STRONG, STRONG, color, label_color, step,
};
use crate::report::csv::{self, Csv};
use crate::report::number;
use crate::report::value::Value;
use crate::stats::Rate;

pub use super::scale::Scale;

/// A heat map.
#[derive(Clone, Debug, PartialEq)]
pub struct HeatMap {
    /// What is shown.
    pub head: Head,
    /// The cells with their names.
    pub grid: Grid,
    /// What the colours mean.
    pub scale: Scale,
}

/// The cells of a heat map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grid {
    /// What the rows are.
    pub rows_title: String,
    /// What the columns are.
    pub columns_title: String,
    /// Names of the rows.
    pub rows: Vec<String>,
    /// Names of the columns.
    pub columns: Vec<String>,
    /// A cell for every row and column.
    pub cells: Vec<Vec<Value>>,
    /// Whether the cells are small and show no n.
    pub compact: bool,
}

/// Width and height of a cell, in pixels.
const CELL: (i32, i32) = (72, 46);
const CELL_COMPACT: (i32, i32) = (54, 34);
/// Column names wider than this, in pixels, are written upwards.
const CELL_WIDTH_MAX: i32 = 120;
const WIDTH_MIN: i32 = 480;
/// Space between the cells and the colour bar, in pixels.
const GAP: i32 = 8;

impl Grid {
    fn rows_width(&self) -> i32 {
        let title = QUIET.width(&self.rows_title);
        PLAIN.width_max(&self.rows).max(title) + 10
    }

    fn columns_width(&self) -> i32 {
        PLAIN.width_max(&self.columns) + 14
    }

    fn cell_min(&self) -> (i32, i32) {
        if self.compact { CELL_COMPACT } else { CELL }
    }

    fn upwards(&self) -> bool {
        let most = if self.compact { self.cell_min().0 } else { CELL_WIDTH_MAX };
        self.columns_width() > most
    }

    fn cell_width(&self) -> i32 {
        let (least, _) = self.cell_min();
        if self.upwards() { least } else { self.columns_width().max(least) }
    }

    fn cell_height(&self) -> i32 {
        self.cell_min().1
    }

    fn names_height(&self) -> i32 {
        if self.upwards() { self.columns_width() } else { LINE + 4 }
    }

    fn draw_names<DB: DrawingBackend>(&self, pen: &Pen<DB>) -> Result<(), ChartError> {
        let left = self.rows_width();
        let cell = self.cell_width();
        let bottom = LINE + self.names_height();
        pen.text(&self.columns_title, (left, LINE / 2), HPos::Left, QUIET)?;
        let corner = (left - 10, bottom - LINE / 2 - 2);
        pen.text(&self.rows_title, corner, HPos::Right, QUIET)?;
        for (x, name) in (left + cell / 2..).step_by(step(cell)).zip(&self.columns) {
            if self.upwards() {
                pen.text_upwards(name, (x, bottom - 6), PLAIN)?;
            } else {
                pen.text(name, (x, bottom - LINE / 2 - 2), HPos::Center, PLAIN)?;
            }
        }
        let first = bottom + self.cell_height() / 2;
        for (y, name) in (first..).step_by(step(self.cell_height())).zip(&self.rows) {
            pen.text(name, (left - 10, y), HPos::Right, PLAIN)?;
        }
        Ok(())
    }

    fn draw_cells<DB: DrawingBackend>(
        &self,
        pen: &Pen<DB>,
        top: i32,
        scale: &Scale,
    ) -> Result<(), ChartError> {
        let left = self.rows_width();
        let width = self.cell_width();
        for (y, row) in (top..).step_by(step(self.cell_height())).zip(&self.cells) {
            for (x, &cell) in (left..).step_by(step(width)).zip(row) {
                // A gap of two pixels keeps equal neighbours apart.
                let area =
                    Area { x: x + 1, y: y + 1, width: width - 2, height: self.cell_height() - 2 };
                match cell {
                    Value::Share(rate) => self.draw_share(pen, area, rate, scale)?,
                    Value::Impossible => pen.hatch(area, true)?,
                    Value::NotRun if self.compact => pen.dotted(area)?,
                    Value::NotRun => {
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
        scale: &Scale,
    ) -> Result<(), ChartError> {
        let Some(interval) = rate.interval() else {
            return pen.hatch(area, false);
        };
        let label = if rate.hits == 0 {
            pen.outline(area, GRID)?;
            INK
        } else {
            let color = color((interval.share / scale.end).min(1.0));
            pen.fill(area, color)?;
            // The darkest colours of the scale would not stand out from a dark page without it.
            pen.outline(area, GRID)?;
            label_color(color)
        };
        let (x, y) = area.centre();
        let share = number::percent(interval.share);
        let star = if scale.is_few(rate) { " *" } else { "" };
        if self.compact {
            // No space before the star: the cell is too small for one.
            let text = format!("{}{}", share.replace(' ', ""), star.trim());
            return pen.text(&text, (x, y), HPos::Center, SMALL_STRONG.of(label));
        }
        pen.text(&share, (x, y - 8), HPos::Center, STRONG.of(label))?;
        let runs = format!("n={}{star}", number::count(rate.chances));
        pen.text(&runs, (x, y + 12), HPos::Center, QUIET.of(label))
    }

    /// Its outer size, without space around it.
    pub(super) fn size(&self) -> (i32, i32) {
        let columns = i32::try_from(self.columns.len()).expect("charts have few columns");
        let rows = i32::try_from(self.rows.len()).expect("charts have few rows");
        let cells = self.cell_width() * columns;
        let width = self.rows_width() + cells.max(QUIET.width(&self.columns_title));
        (width, LINE + self.names_height() + self.cell_height() * rows)
    }

    /// Draws it with its corner at the pen's zero.
    pub(super) fn draw<DB: DrawingBackend>(
        &self,
        pen: &Pen<DB>,
        scale: &Scale,
    ) -> Result<(), ChartError> {
        self.draw_names(pen)?;
        self.draw_cells(pen, LINE + self.names_height(), scale)
    }

    /// The same with small cells, and its rows as columns where that is narrower.
    pub(super) fn compacted(&self) -> Grid {
        let upright = Grid { compact: true, ..self.clone() };
        let column = |index: usize| self.cells.iter().map(|row| row[index]).collect();
        let turned = Grid {
            rows_title: self.columns_title.clone(),
            columns_title: self.rows_title.clone(),
            rows: self.columns.clone(),
            columns: self.rows.clone(),
            cells: (0..self.columns.len()).map(column).collect(),
            compact: true,
        };
        if turned.size().0 < upright.size().0 { turned } else { upright }
    }

    /// A line for every cell, after the fields of `before`.
    pub(super) fn csv_rows(&self, before: &[String]) -> Vec<Vec<String>> {
        let mut lines = Vec::new();
        for (row, cells) in self.rows.iter().zip(&self.cells) {
            for (column, &cell) in self.columns.iter().zip(cells) {
                let mut line = before.to_vec();
                line.extend([row.clone(), column.clone()]);
                line.extend(csv::value(cell));
                lines.push(line);
            }
        }
        lines
    }
}

impl HeatMap {
    fn cells(&self) -> Vec<Value> {
        self.grid.cells.iter().flatten().copied().collect()
    }

    fn width(&self) -> i32 {
        let inner = self.grid.size().0.max(self.scale.size(&self.cells()).0);
        let least = if self.grid.compact { 0 } else { WIDTH_MIN };
        (inner + 2 * MARGIN).max(least)
    }
}

impl Drawing for HeatMap {
    fn size(&self) -> (i32, i32) {
        let width = self.width();
        let (grid, scale) = (self.grid.size().1, self.scale.size(&self.cells()).1);
        (width, self.head.height(width) + grid + GAP + scale + MARGIN)
    }

    fn draw<DB: DrawingBackend>(&self, pen: &Pen<DB>) -> Result<(), ChartError> {
        let top = pen.head(&self.head, self.width())?;
        self.grid.draw(&pen.at((MARGIN, top)), &self.scale)?;
        let foot = top + self.grid.size().1 + GAP;
        self.scale.draw(&pen.at((MARGIN, foot)), &self.cells())
    }
}

impl Chart for HeatMap {
    fn head(&self) -> &Head {
        &self.head
    }

    fn csv(&self) -> Csv {
        let names = [self.grid.rows_title.as_str(), &self.grid.columns_title];
        Csv { head: csv::head(&names, &csv::VALUE), rows: self.grid.csv_rows(&[]) }
    }

    fn narrow(&self) -> Option<HeatMap> {
        let narrow = || HeatMap { grid: self.grid.compacted(), ..self.clone() };
        (self.width() > NARROW).then(narrow)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Two rows and `columns` columns; the first cell of each row is impossible.
    pub(crate) fn grid(columns: usize) -> Grid {
        let share = |hits| Value::Share(Rate { hits, chances: 200 });
        let row = |first: u64| {
            let rest = (1..columns as u64).map(|hits| share(first + hits));
            std::iter::once(Value::Impossible).chain(rest).collect()
        };
        Grid {
            rows_title: "rank".to_owned(),
            columns_title: "page".to_owned(),
            rows: vec!["a".to_owned(), "b".to_owned()],
            columns: (0..columns).map(|column| column.to_string()).collect(),
            cells: vec![row(0), row(100)],
            compact: false,
        }
    }

    pub(crate) fn scale() -> Scale {
        Scale { end: 1.0, unit: "runs".to_owned(), few: 100 }
    }

    fn map(columns: usize) -> HeatMap {
        let head = Head { title: "t".to_owned(), subtitle: "s".to_owned() };
        HeatMap { head, grid: grid(columns), scale: scale() }
    }

    #[test]
    fn the_file_holds_what_the_cells_show() {
        let text = map(2).csv().text();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "rank,page,state,hits,chances,share,low,high");
        assert_eq!(lines[1], "a,0,impossible,,,,,");
        assert!(lines[4].starts_with("b,1,ran,101,200,0.505,"), "{text}");
        assert_eq!(lines.len(), 5);
    }

    #[test]
    fn only_a_wide_map_is_laid_out_anew_and_then_turned() {
        assert_eq!(map(2).narrow(), None);
        let narrow = map(12).narrow().unwrap();
        assert_eq!((narrow.grid.rows.len(), narrow.grid.columns.len()), (12, 2));
        assert_eq!(narrow.grid.cells[5][1], map(12).grid.cells[1][5]);
        assert!(narrow.size().0 <= NARROW, "{:?}", narrow.size());
    }
}
