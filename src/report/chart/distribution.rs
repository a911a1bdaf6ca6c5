//! *Distributions*: bars of one length, each divided by the shares of a few classes in order.

use plotters::backend::DrawingBackend;
use plotters::style::RGBColor;
use plotters::style::text_anchor::HPos;

use super::{
    Area, Chart, ChartError, Drawing, FAINT, Head, LINE, MARGIN, PLAIN, Pen, QUIET, SMALL_STRONG,
    STRONG, color, label_color,
};
use crate::report::csv::Csv;

/// A chart of bars that are divided into classes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Distribution {
    /// What is shown.
    pub head: Head,
    /// Names of the columns of the file: what groups, bars and classes are, and what is counted.
    pub titles: [String; 4],
    /// Groups of bars, from the top.
    pub groups: Vec<Group>,
    /// The classes, in order.
    pub classes: Vec<String>,
    /// What a whole bar stands for, for the axis.
    pub unit: String,
}

/// Bars that belong together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// What it stands for.
    pub name: String,
    /// Its bars, from the top.
    pub bars: Vec<Parted>,
}

/// One bar.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parted {
    /// What it stands for.
    pub name: String,
    /// How much there is of each class.
    pub parts: Vec<u64>,
    /// The text behind its end.
    pub note: String,
}

const BAR: i32 = 26;
const GAP: i32 = 10;
const PLOT_WIDTH: i32 = 250;
const SWATCH: i32 = 16;
/// A part of a bar needs this width, in pixels, to have a label.
const LABEL_MIN: i32 = 40;
const NOTHING: &str = "none";

impl Distribution {
    fn bars(&self) -> impl Iterator<Item = &Parted> {
        self.groups.iter().flat_map(|group| &group.bars)
    }

    fn left(&self) -> i32 {
        let names = self.bars().map(|bar| PLAIN.width(&bar.name));
        MARGIN + names.max().unwrap_or(0) + 10
    }

    /// Width of a swatch with the longest name of a class.
    fn class_width(&self) -> i32 {
        SWATCH + 6 + PLAIN.width_max(&self.classes) + 16
    }

    fn width(&self) -> i32 {
        let notes = self.bars().map(|bar| QUIET.width(&bar.note)).max().unwrap_or(0);
        let bars = self.left() + PLOT_WIDTH + 10 + notes;
        let names = self.groups.iter().map(|group| MARGIN + STRONG.width(&group.name));
        let unit = MARGIN + QUIET.width(&self.unit);
        names.chain([bars, unit]).max().unwrap_or(0) + MARGIN
    }

    fn classes_across(&self) -> usize {
        let across = (self.width() - 2 * MARGIN) / self.class_width();
        usize::try_from(across.max(1)).expect("positive")
    }

    fn height(&self, group: &Group) -> i32 {
        let bars = i32::try_from(group.bars.len()).expect("groups have few bars");
        LINE + BAR * bars + GAP
    }

    fn color(&self, class: usize) -> RGBColor {
        let last = self.classes.len().saturating_sub(1).max(1);
        let place = u32::try_from(class).expect("few classes");
        let last = u32::try_from(last).expect("few classes");
        color(1.0 - f64::from(place) / f64::from(last))
    }

    fn draw_bar<DB: DrawingBackend>(
        &self,
        pen: &Pen<DB>,
        bar: &Parted,
        y: i32,
    ) -> Result<(), ChartError> {
        let (left, middle) = (self.left(), y + BAR / 2);
        pen.text(&bar.name, (left - 10, middle), HPos::Right, PLAIN)?;
        pen.text(&bar.note, (left + PLOT_WIDTH + 10, middle), HPos::Left, QUIET)?;
        let whole = Area { x: left, y: y + 2, width: PLOT_WIDTH, height: BAR - 4 };
        let all: u64 = bar.parts.iter().sum();
        if all == 0 {
            pen.hatch(whole, false)?;
            return pen.text(NOTHING, whole.centre(), HPos::Center, QUIET);
        }
        let mut before = 0;
        for (class, part) in bar.parts.iter().enumerate() {
            let [from, to] = [before, before + part].map(|sum| pixels(sum, all));
            before += part;
            let area = Area { x: left + from, width: to - from, ..whole };
            if area.width == 0 {
                continue;
            }
            let color = self.color(class);
            pen.fill(area, color)?;
            if area.width >= LABEL_MIN {
                let text = format!("{}%", (100 * part + all / 2) / all);
                let style = SMALL_STRONG.of(label_color(color));
                pen.text(&text, area.centre(), HPos::Center, style)?;
            }
        }
        pen.outline(whole, FAINT)
    }

    fn draw_classes<DB: DrawingBackend>(&self, pen: &Pen<DB>, top: i32) -> Result<(), ChartError> {
        pen.text(&self.unit, (MARGIN, top + LINE / 2), HPos::Left, QUIET)?;
        let across = self.classes_across();
        for (class, name) in self.classes.iter().enumerate() {
            let place = [class % across, class / across];
            let [column, row] = place.map(|place| i32::try_from(place).expect("few classes"));
            let x = MARGIN + column * self.class_width();
            let y = top + LINE * (row + 1) + LINE / 2;
            let swatch = Area { x, y: y - SWATCH / 2, width: SWATCH, height: SWATCH };
            pen.fill(swatch, self.color(class))?;
            pen.outline(swatch, FAINT)?;
            pen.text(name, (x + SWATCH + 6, y), HPos::Left, PLAIN)?;
        }
        Ok(())
    }
}

/// How much of a bar's length `part` of `all` takes.
fn pixels(part: u64, all: u64) -> i32 {
    let length = u128::from(part) * u128::from(PLOT_WIDTH.unsigned_abs()) / u128::from(all);
    i32::try_from(length).expect("a part is at most all")
}

impl Drawing for Distribution {
    fn size(&self) -> (i32, i32) {
        let width = self.width();
        let groups: i32 = self.groups.iter().map(|group| self.height(group)).sum();
        let lines = self.classes.len().div_ceil(self.classes_across());
        let lines = i32::try_from(lines).expect("few classes");
        (width, self.head.height(width) + groups + LINE * (lines + 1) + MARGIN)
    }

    fn draw<DB: DrawingBackend>(&self, pen: &Pen<DB>) -> Result<(), ChartError> {
        let mut y = pen.head(&self.head, self.width())?;
        for group in &self.groups {
            pen.text(&group.name, (MARGIN, y + LINE / 2), HPos::Left, STRONG)?;
            for (y, bar) in (y + LINE..).step_by(BAR as usize).zip(&group.bars) {
                self.draw_bar(pen, bar, y)?;
            }
            y += self.height(group);
        }
        self.draw_classes(pen, y)
    }
}

impl Chart for Distribution {
    fn head(&self) -> &Head {
        &self.head
    }

    fn csv(&self) -> Csv {
        let mut rows = Vec::new();
        for group in &self.groups {
            for bar in &group.bars {
                for (class, part) in self.classes.iter().zip(&bar.parts) {
                    let names = [&group.name, &bar.name, class].map(Clone::clone);
                    rows.push(names.into_iter().chain([part.to_string()]).collect());
                }
            }
        }
        Csv { head: self.titles.to_vec(), rows }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn distribution() -> Distribution {
        let bar = |name: &str, parts: [u64; 2]| Parted {
            name: name.to_owned(),
            parts: parts.to_vec(),
            note: String::new(),
        };
        Distribution {
            head: Head { title: "t".to_owned(), subtitle: "s".to_owned() },
            titles: ["order", "arrived", "length", "pages"].map(str::to_owned),
            groups: vec![Group {
                name: "sorted".to_owned(),
                bars: vec![bar("1/2", [30, 10]), bar("2/2", [0, 0])],
            }],
            classes: vec!["1".to_owned(), "2+".to_owned()],
            unit: "free pages".to_owned(),
        }
    }

    #[test]
    fn the_file_holds_every_part() {
        assert_eq!(
            distribution().csv().text(),
            "order,arrived,length,pages\nsorted,1/2,1,30\nsorted,1/2,2+,10\nsorted,2/2,1,0\n\
             sorted,2/2,2+,0\n"
        );
    }

    #[test]
    fn parts_fill_the_bar_and_nothing_is_said_to_be_nothing() {
        assert_eq!((pixels(0, 40), pixels(40, 40)), (0, PLOT_WIDTH));
        assert_eq!(pixels(30, 40), PLOT_WIDTH * 3 / 4);
        let svg = super::super::svg(&distribution()).unwrap();
        assert!(svg.contains("75%") && svg.contains("25%") && svg.contains(NOTHING), "{svg}");
    }
}
