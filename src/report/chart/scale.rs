//! The *scale* of heat maps: the colour bar, and what hatchings and marks mean.

use plotters::backend::DrawingBackend;
use plotters::style::text_anchor::HPos;

use super::{Area, ChartError, FAINT, LINE, PLAIN, Pen, QUIET, color, step};
use crate::report::number;
use crate::report::value::Value;
use crate::stats::Rate;

/// What the colours and marks of heat maps mean.
#[derive(Clone, Debug, PartialEq)]
pub struct Scale {
    /// The share at the end of the colour bar, see [`super::scale_end`].
    pub end: f64,
    /// What the shares are shares of, for the colour bar.
    pub unit: String,
    /// A cell of fewer chances than this is marked: its share rests on too little.
    pub few: u64,
}

const BAR_HEIGHT: i32 = 12;
const BAR_WIDTH: i32 = 220;
const BAR_STEPS: i32 = 55;
const SWATCH: i32 = 28;
impl Scale {
    /// Whether a rate is to be marked.
    pub(super) fn is_few(&self, rate: Rate) -> bool {
        rate.chances > 0 && rate.chances < self.few
    }

    /// Hatchings and marks that occur among `cells`, with what they mean.
    fn legend(&self, cells: &[Value]) -> Vec<(Swatch, String)> {
        let has = |wanted: &dyn Fn(Value) -> bool| cells.iter().any(|&cell| wanted(cell));
        let mut legend = Vec::new();
        if has(&|cell| matches!(cell, Value::Share(Rate { chances: 0, .. }))) {
            let text = "not reached: no run had a chance".to_owned();
            legend.push((Swatch::Hatched, text));
        }
        if has(&|cell| cell == Value::Impossible) {
            let text = "left out: by a filter, or it cannot be run".to_owned();
            legend.push((Swatch::Crossed, text));
        }
        if has(&|cell| cell == Value::NotRun) {
            legend.push((Swatch::Dotted, "not run yet".to_owned()));
        }
        if has(&|cell| matches!(cell, Value::Share(rate) if self.is_few(rate))) {
            legend.push((Swatch::Star, format!("fewer than {} runs", self.few)));
        }
        legend
    }

    /// Size of the colour bar with the legend of `cells` below it.
    pub(super) fn size(&self, cells: &[Value]) -> (i32, i32) {
        let legend = self.legend(cells);
        let lines = i32::try_from(legend.len()).expect("four at most");
        (QUIET.width(&self.unit).max(BAR_WIDTH + BAR_END), BAR_ROOM + LINE * lines)
    }

    /// Draws it with its corner at the pen's zero.
    pub(super) fn draw<DB: DrawingBackend>(
        &self,
        pen: &Pen<DB>,
        cells: &[Value],
    ) -> Result<(), ChartError> {
        self.draw_bar(pen)?;
        self.draw_legend(pen, cells)
    }

    fn draw_bar<DB: DrawingBackend>(&self, pen: &Pen<DB>) -> Result<(), ChartError> {
        pen.text(&self.unit, (0, LINE / 2), HPos::Left, QUIET)?;
        let y = LINE + 2;
        let step = BAR_WIDTH / BAR_STEPS;
        let x = 6;
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
                0 => (0, HPos::Left),
                place => (x + place, HPos::Center),
            };
            let text = if place == 0 { ">0 %".to_owned() } else { number::tick(share) };
            pen.text(&text, (at, foot + 4 + LINE / 2), h, QUIET)?;
        }
        Ok(())
    }

    fn draw_legend<DB: DrawingBackend>(
        &self,
        pen: &Pen<DB>,
        cells: &[Value],
    ) -> Result<(), ChartError> {
        for (y, (swatch, text)) in (BAR_ROOM..).step_by(step(LINE)).zip(self.legend(cells)) {
            let area = Area { x: 0, y: y + 2, width: SWATCH, height: LINE - 5 };
            match swatch {
                Swatch::Hatched => pen.hatch(area, false)?,
                Swatch::Dotted => pen.dotted(area)?,
                Swatch::Crossed => pen.hatch(area, true)?,
                Swatch::Star => pen.text("*", area.centre(), HPos::Center, PLAIN)?,
            }
            let at = (SWATCH + 8, y + LINE / 2);
            pen.text(&text, at, HPos::Left, QUIET)?;
        }
        Ok(())
    }
}

/// How the legend shows something.
enum Swatch {
    Hatched,
    Crossed,
    Dotted,
    Star,
}

/// Height of the colour bar with its texts, in pixels.
const BAR_ROOM: i32 = 2 * LINE + BAR_HEIGHT + 12;
/// Space behind the bar for half of the last label, which is centred on the bar's end, in pixels.
const BAR_END: i32 = 34;
