//! The *time line*: both pools from moment to moment, with the findings on it.

use plotters::backend::DrawingBackend;
use plotters::style::RGBColor;
use plotters::style::text_anchor::HPos;

use super::WIDTH;
use crate::finding::{Named, Run};
use crate::report::chart::{
    Area, ChartError, FAINT, GRID, Head, INK, LINE, MARGIN, PAPER, PLAIN, Pen, QUIET,
};
use crate::report::number::count;
use crate::units::Tick;
use crate::witness::{Counts, Pools};

/// Findings of one code over time.
struct Row {
    name: &'static str,
    times: u64,
    ticks: Vec<Tick>,
}

/// A time line.
pub struct Timeline {
    head: Head,
    moments: Vec<(Tick, [Counts; 2])>,
    rows: Vec<Row>,
    notes: Vec<String>,
}

const PANEL: i32 = 120;
const PANEL_GAP: i32 = 34;
const RIGHT: i32 = 60;
/// Space between the tick labels of the axis.
const LABEL_GAP: i32 = 14;

/// The pages of one kind.
type Share = fn(&Counts) -> u32;

/// What pages can be, from the bottom of a panel, with their colours (Okabe and Ito).
const KINDS: [(&str, RGBColor, Share); 4] = [
    ("held by requests", RGBColor(0x00, 0x9e, 0x73), |counts| counts.held),
    ("in flight", RGBColor(0xe6, 0x9f, 0x00), |counts| counts.in_flight),
    ("cached", RGBColor(0x56, 0xb4, 0xe9), |counts| counts.cached),
    ("free", PAPER, |counts| counts.free),
];

impl Timeline {
    /// The time line of a run and what a witness of its pools kept.
    pub fn of(pools: &Pools, run: &Run, title: &str) -> Timeline {
        let mut rows = Vec::new();
        for (code, kept) in run.findings.iter() {
            // What is found at the close has no fact of its own.
            let ticks = match pools.found.get(&code) {
                Some((_, ticks)) => ticks.clone(),
                None => kept.first.iter().map(|finding| finding.tick).take(1).collect(),
            };
            rows.push(Row { name: code.name(), times: kept.count, ticks });
        }
        let mut notes = Vec::new();
        if pools.thinned > 1 {
            let every = count(pools.thinned);
            notes.push(format!(
                "one of {every} moments of change is shown; the others are left out"
            ));
        }
        Timeline {
            head: Head {
                title: title.to_owned(),
                subtitle: "Pages of each pool at every moment at which a count changes; moments are \
                           equally far apart, not to scale. A page that a copy reads or writes is in \
                           flight, whoever owns it."
                    .to_owned(),
            },
            moments: pools.moments.clone(),
            rows,
            notes,
        }
    }

    fn left(&self) -> i32 {
        let names = self.rows.iter().map(|row| QUIET.width(row.name));
        names.max().unwrap_or(0).max(70) + MARGIN + 10
    }

    fn column(&self) -> f64 {
        let room = WIDTH - self.left() - RIGHT;
        f64::from(room) / self.moments.len() as f64
    }

    /// The left edge of the column of a moment.
    #[expect(clippy::cast_possible_truncation, reason = "a place within a picture")]
    fn x(&self, moment: usize) -> i32 {
        self.left() + (self.column() * moment as f64).round() as i32
    }

    /// Pixels from its top to its end.
    pub(super) fn height(&self) -> i32 {
        let rows = i32::try_from(self.rows.len() + self.notes.len()).expect("codes are few");
        let panels = 2 * (PANEL + PANEL_GAP);
        self.head.height(WIDTH) + panels + LINE * (rows + 4) + 2 * MARGIN
    }

    pub(super) fn draw<DB: DrawingBackend>(
        &self,
        pen: &Pen<DB>,
        top: i32,
    ) -> Result<(), ChartError> {
        // The head is drawn from the top of the picture, so it is laid out here.
        let mut y = top + MARGIN + LINE / 2;
        for (line, style) in self.head.lines(WIDTH) {
            pen.text(&line, (MARGIN, y), HPos::Left, style)?;
            y += LINE;
        }
        y = top + self.head.height(WIDTH);
        self.draw_kinds(pen, y)?;
        y += LINE + 4;
        let mut panels = Vec::new();
        for (side, name) in ["prefill pool, pages", "decode pool, virtual pages"].iter().enumerate()
        {
            pen.text(name, (self.left(), y + LINE / 2), HPos::Left, PLAIN)?;
            self.draw_panel(pen, side, y + PANEL_GAP - 10)?;
            panels.push(y + PANEL_GAP - 10);
            y += PANEL + PANEL_GAP;
        }
        self.draw_axis(pen, y)?;
        y += LINE + LINE / 2 + 6;
        self.draw_findings(pen, y, &panels)
    }

    fn draw_kinds<DB: DrawingBackend>(&self, pen: &Pen<DB>, y: i32) -> Result<(), ChartError> {
        let mut x = self.left();
        for (name, color, _) in KINDS {
            let area = Area { x, y: y + 3, width: 22, height: LINE - 6 };
            pen.fill(area, color)?;
            pen.outline(area, FAINT)?;
            pen.text(name, (x + 28, y + LINE / 2), HPos::Left, QUIET)?;
            x += 28 + QUIET.width(name) + 24;
        }
        Ok(())
    }

    fn draw_panel<DB: DrawingBackend>(
        &self,
        pen: &Pen<DB>,
        side: usize,
        top: i32,
    ) -> Result<(), ChartError> {
        let total: u32 = KINDS.iter().map(|(.., pages)| pages(&self.moments[0].1[side])).sum();
        let total = i64::from(total.max(1));
        let pixels = |pages: i64| {
            i32::try_from(pages * i64::from(PANEL) / total).expect("at most the panel's height")
        };
        for (moment, (_, counts)) in self.moments.iter().enumerate() {
            let (left, right) = (self.x(moment), self.x(moment + 1));
            let mut below = 0;
            for (_, color, pages) in KINDS {
                let above = below + i64::from(pages(&counts[side]));
                let (foot, head) = (top + PANEL - pixels(below), top + PANEL - pixels(above));
                if head < foot && right > left {
                    let area = Area { x: left, y: head, width: right - left, height: foot - head };
                    pen.fill(area, color)?;
                }
                below = above;
            }
        }
        let (left, right) = (self.left(), self.x(self.moments.len()));
        pen.outline(Area { x: left, y: top, width: right - left, height: PANEL }, FAINT)?;
        for part in [0, 1, 2] {
            let y = top + PANEL - PANEL * part / 2;
            let pages = u64::try_from(total * i64::from(part) / 2).expect("positive");
            // Half of an odd number has no label of its own.
            if part != 1 || total % 2 == 0 {
                pen.line((left - 4, y), (left, y), FAINT)?;
                pen.text(&count(pages), (left - 8, y), HPos::Right, QUIET)?;
            }
        }
        Ok(())
    }

    /// Ticks of as many moments as have room for theirs.
    fn draw_axis<DB: DrawingBackend>(&self, pen: &Pen<DB>, y: i32) -> Result<(), ChartError> {
        pen.text("tick (1 µs)", (self.left() - 8, y + LINE / 2), HPos::Right, QUIET)?;
        let mut free_from = self.left();
        for (moment, (tick, _)) in self.moments.iter().enumerate() {
            let (text, x) = (count(tick.0), self.x(moment));
            let width = QUIET.width(&text);
            if x >= free_from && x + width <= WIDTH - MARGIN {
                pen.line((x, y - 10), (x, y - 4), FAINT)?;
                pen.text(&text, (x, y + LINE / 2), HPos::Left, QUIET)?;
                free_from = x + width + LABEL_GAP;
            }
        }
        Ok(())
    }

    /// A row for every code, a mark for every moment at which it was found, and a line through the
    /// panels, whose tops are given.
    fn draw_findings<DB: DrawingBackend>(
        &self,
        pen: &Pen<DB>,
        top: i32,
        panels: &[i32],
    ) -> Result<(), ChartError> {
        let mut y = top;
        let right = self.x(self.moments.len());
        if self.rows.is_empty() {
            pen.text("no finding", (self.left(), y + LINE / 2), HPos::Left, QUIET)?;
        }
        for row in &self.rows {
            let middle = y + LINE / 2;
            pen.text(row.name, (self.left() - 8, middle), HPos::Right, QUIET)?;
            pen.line((self.left(), middle), (right, middle), GRID)?;
            for &tick in &row.ticks {
                let after = self.moments.partition_point(|(known, _)| *known <= tick);
                let x = (self.x(after.saturating_sub(1)) + self.x(after)) / 2;
                for &panel in panels {
                    pen.line((x, panel), (x, panel + PANEL), INK)?;
                }
                pen.fill(Area { x: x - 3, y: middle - 6, width: 7, height: 12 }, INK)?;
            }
            let times = format!("× {}", count(row.times));
            pen.text(&times, (right + 6, middle), HPos::Left, QUIET)?;
            y += LINE;
        }
        y += LINE;
        for note in &self.notes {
            pen.text(&format!("Note: {note}."), (MARGIN, y + LINE / 2), HPos::Left, QUIET)?;
            y += LINE;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::scenario::file;
    use crate::world::Simulation;

    #[test]
    fn every_moment_is_inside_the_picture_and_every_code_has_a_row() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("sims/hazards/h36-freed-twice.toml");
        let scenario = file::load(&path).unwrap();
        let (prefill, decode) = (&scenario.prefill, &scenario.decode);
        let mut pools =
            Pools::new([(prefill.workers, prefill.pages), (decode.workers, decode.pages)]);
        let run = Simulation::new(&scenario).observer(&mut pools).run().unwrap();
        let line = Timeline::of(&pools, &run, "title");
        let edges: Vec<i32> = (0..=line.moments.len()).map(|moment| line.x(moment)).collect();
        assert!(edges.is_sorted() && edges[0] == line.left());
        assert!(edges[edges.len() - 1] <= WIDTH - RIGHT);
        let rows: Vec<&str> = line.rows.iter().map(|row| row.name).collect();
        let codes: Vec<&str> = run.findings.iter().map(|(code, _)| code.name()).collect();
        assert_eq!(rows, codes);
        assert!(line.rows.iter().all(|row| !row.ticks.is_empty()));
    }
}
