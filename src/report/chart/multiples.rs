//! *Small multiples*: heat maps of the same rows, columns and colours, one for each value of a
//! third setting.

use plotters::backend::DrawingBackend;
use plotters::style::text_anchor::HPos;

use super::heat_map::{Grid, Scale};
use super::{Chart, ChartError, Drawing, Head, LINE, MARGIN, NARROW, Pen, STRONG};
use crate::report::csv::{self, Csv};
use crate::report::value::Value;

/// Heat maps side by side.
#[derive(Clone, Debug, PartialEq)]
pub struct Multiples {
    /// What is shown.
    pub head: Head,
    /// What tells the panels apart.
    pub panels_title: String,
    /// The panels, in reading order.
    pub panels: Vec<Panel>,
    /// What the colours mean, for all of them.
    pub scale: Scale,
    /// Whether the panels stand below each other.
    pub is_narrow: bool,
}

/// One heat map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Panel {
    /// Its value of the third setting.
    pub name: String,
    /// Its cells.
    pub grid: Grid,
}

/// Width of a report's page, in pixels.
const PAGE: i32 = 1_168;
/// Space between panels, in pixels.
const GAP: i32 = 24;
/// Height of the name above a panel's cells, in pixels.
const NAME: i32 = LINE + 4;

impl Multiples {
    fn panel_size(&self) -> (i32, i32) {
        let sizes = self.panels.iter().map(|panel| {
            let (width, height) = panel.grid.size();
            (width.max(STRONG.width(&panel.name)), NAME + height)
        });
        sizes.fold((0, 0), |(width, height), (w, h)| (width.max(w), height.max(h)))
    }

    /// Panels in a row: as many as fit on a page, and at least one.
    fn across(&self) -> usize {
        if self.is_narrow {
            return 1;
        }
        let (width, _) = self.panel_size();
        let most = (PAGE - 2 * MARGIN + GAP) / (width + GAP);
        usize::try_from(most.max(1)).expect("positive").min(self.panels.len())
    }

    fn cells(&self) -> Vec<Value> {
        self.panels.iter().flat_map(|panel| panel.grid.cells.iter().flatten()).copied().collect()
    }

    fn panels_area(&self) -> (i32, i32) {
        let (width, height) = self.panel_size();
        let across = self.across();
        let down = self.panels.len().div_ceil(across);
        let [across, down] = [across, down].map(|count| i32::try_from(count).expect("few panels"));
        (across * (width + GAP) - GAP, down * (height + GAP))
    }

    fn width(&self) -> i32 {
        self.panels_area().0.max(self.scale.size(&self.cells()).0) + 2 * MARGIN
    }
}

impl Drawing for Multiples {
    fn size(&self) -> (i32, i32) {
        let width = self.width();
        let scale = self.scale.size(&self.cells()).1;
        (width, self.head.height(width) + self.panels_area().1 + scale + MARGIN)
    }

    fn draw<DB: DrawingBackend>(&self, pen: &Pen<DB>) -> Result<(), ChartError> {
        let top = pen.head(&self.head, self.width())?;
        let (width, height) = self.panel_size();
        let across = self.across();
        for (index, panel) in self.panels.iter().enumerate() {
            let place = [index % across, index / across];
            let [column, row] = place.map(|place| i32::try_from(place).expect("few panels"));
            let corner = (MARGIN + column * (width + GAP), top + row * (height + GAP));
            let pen = pen.at(corner);
            pen.text(&panel.name, (0, LINE / 2), HPos::Left, STRONG)?;
            panel.grid.draw(&pen.at((0, NAME)), &self.scale)?;
        }
        let foot = top + self.panels_area().1;
        self.scale.draw(&pen.at((MARGIN, foot)), &self.cells())
    }
}

impl Chart for Multiples {
    fn head(&self) -> &Head {
        &self.head
    }

    fn csv(&self) -> Csv {
        let grid = &self.panels[0].grid;
        let names = [self.panels_title.as_str(), &grid.rows_title, &grid.columns_title];
        let rows = self
            .panels
            .iter()
            .flat_map(|panel| panel.grid.csv_rows(std::slice::from_ref(&panel.name)));
        Csv { head: csv::head(&names, &csv::VALUE), rows: rows.collect() }
    }

    /// One panel in a row, with small cells where even that is too wide.
    fn narrow(&self) -> Option<Multiples> {
        if self.width() <= NARROW {
            return None;
        }
        let mut narrow = Multiples { is_narrow: true, ..self.clone() };
        if narrow.width() > NARROW {
            for panel in &mut narrow.panels {
                panel.grid = panel.grid.compacted();
            }
        }
        Some(narrow)
    }
}

#[cfg(test)]
mod tests {
    use super::super::heat_map::tests::{grid, scale};
    use super::*;

    fn multiples(columns: usize) -> Multiples {
        let panel = |name: &str| Panel { name: name.to_owned(), grid: grid(columns) };
        Multiples {
            head: Head { title: "t".to_owned(), subtitle: "s".to_owned() },
            panels_title: "behaviour".to_owned(),
            panels: vec![panel("x"), panel("y"), panel("z")],
            scale: scale(),
            is_narrow: false,
        }
    }

    #[test]
    fn the_file_holds_every_cell_of_every_panel() {
        let text = multiples(2).csv().text();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "behaviour,rank,page,state,hits,chances,share,low,high");
        assert_eq!(lines.len(), 1 + 3 * 4);
        assert!(lines[2].starts_with("x,a,1,ran,1,200,0.005,"), "{text}");
        assert!(lines[12].starts_with("z,b,1,ran,101,200,0.505,"), "{text}");
    }

    #[test]
    fn on_narrow_screens_panels_stand_below_each_other() {
        let narrow = multiples(4).narrow().unwrap();
        assert_eq!((narrow.across(), narrow.panels[0].grid.compact), (1, false));
        assert_eq!(multiples(4).across(), 3);
        assert!(narrow.size().0 <= NARROW && narrow.size().1 > multiples(4).size().1);
        let narrow = multiples(12).narrow().unwrap();
        assert!(narrow.panels[0].grid.compact && narrow.size().0 <= NARROW);
    }
}
