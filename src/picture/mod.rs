//! Pictures: one planner call or one run as a drawing, to see what went where and what did not.
//!
//! [`Grid`] has source pages, ranks and destination pages, a slot a token; [`Timeline`] has both
//! pools over time with the findings on it. A [`Picture`] is a grid, and below it the time line of
//! a run. Ranks have the colours of Okabe and Ito, which are told apart by the colour-blind, and
//! nothing is said by colour alone.

use plotters::backend::DrawingBackend;

use crate::finding::Run;
use crate::layout::Layout;
use crate::planner::Piece;
use crate::report::chart::{self, ChartError, Drawing, Head, Pen};
use crate::report::number::count;
use crate::witness::{Calls, KeptCall, Pools};

mod grid;
mod rows;
mod timeline;

pub use grid::{Block, Grid, Lane, Slot, SlotState};
pub use rows::PieceView;
pub use timeline::Timeline;

/// Pixels from the left to the right edge of every picture.
const WIDTH: i32 = 1_000;

/// What a picture shows.
pub struct Picture {
    /// Rows of one piece or of one request.
    pub grid: Option<Grid>,
    /// The pools of a run.
    pub timeline: Option<Timeline>,
}

impl Picture {
    /// One run: the first refused or wrong piece, and the pools over time.
    pub fn of_run(title: &str, calls: &Calls, pools: &Pools, run: &Run) -> Picture {
        let grid = match (calls.notable(), &calls.placed) {
            (Some(call), Some(placed)) if call.refused.is_empty() => {
                let subtitle = format!(
                    "{}: the rows of request {} at tick {}, with all pieces that were sent for it.",
                    layout_words(calls.layout()),
                    placed.request,
                    count(placed.tick.0)
                );
                let head = Head { title: title.to_owned(), subtitle };
                Some(Grid::of_request(calls, placed, head))
            }
            (Some(call), _) => {
                let head = Head { title: title.to_owned(), subtitle: call_words(calls, call) };
                Some(rows::of_call(calls.layout(), call, head))
            }
            (None, _) => None,
        };
        let title = match grid {
            Some(_) => "The pools over time",
            None => title,
        };
        Picture { grid, timeline: Some(Timeline::of(pools, run, title)) }
    }
}

/// What a call was, and what the planner said to it.
fn call_words(calls: &Calls, call: &KeptCall) -> String {
    let said = match calls.refusal_of(call) {
        Some(refusal) => format!(" Refused: {}", refusal.said),
        None => String::new(),
    };
    format!(
        "{}: request {}, piece {} at tick {}, {}.{said}",
        layout_words(calls.layout()),
        call.request,
        call.number,
        count(call.tick.0),
        piece_words(call.piece)
    )
}

/// P and N.
pub fn layout_words(layout: Layout) -> String {
    format!("P = {}, N = {}", layout.page(), layout.ranks())
}

/// off, S and n.
pub fn piece_words(piece: Piece) -> String {
    let n = piece.num_kv_tokens.map_or_else(|| "all".to_owned(), |n| n.to_string());
    format!(
        "src_page_offset = {}, decode_prefix_len = {}, num_kv_tokens = {n}",
        piece.src_page_offset, piece.decode_prefix_len
    )
}

impl Drawing for Picture {
    fn size(&self) -> (i32, i32) {
        let grid = self.grid.as_ref().map_or(0, Grid::height);
        let timeline = self.timeline.as_ref().map_or(0, Timeline::height);
        (WIDTH, grid + timeline)
    }

    fn draw<DB: DrawingBackend>(&self, pen: &Pen<DB>) -> Result<(), ChartError> {
        let mut top = 0;
        if let Some(grid) = &self.grid {
            grid.draw(pen, top)?;
            top += grid.height();
        }
        match &self.timeline {
            Some(timeline) => timeline.draw(pen, top),
            None => Ok(()),
        }
    }
}

/// The theme's colours where a reader prefers dark, in the order of [`chart::THEME`].
const DARK: [&str; chart::THEME.len()] = ["#e8eaed", "#a6adb8", "#3a4048", "#16181c"];

/// The picture as the text of an SVG file that follows its reader's preference for light or dark.
pub fn svg(picture: &Picture) -> Result<String, ChartError> {
    let text = chart::svg(picture)?;
    let rules = chart::THEME.iter().zip(DARK).map(|((_, light), dark)| {
        let light = chart::hex(*light);
        format!("[fill=\"{light}\"]{{fill:{dark}}}[stroke=\"{light}\"]{{stroke:{dark}}}")
    });
    let rules: String = rules.collect();
    let style = format!("<style>@media (prefers-color-scheme:dark){{{rules}}}</style>");
    let (open, rest) = text.split_once('\n').expect("the svg element has a line of its own");
    Ok(format!("{open}\n{style}\n{rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_colour_of_the_theme_has_a_dark_one() {
        let text = svg(&Picture { grid: None, timeline: None }).unwrap();
        assert!(text.starts_with("<svg "));
        for ((_, light), dark) in chart::THEME.iter().zip(DARK) {
            assert!(text.contains(&format!("[fill=\"{}\"]{{fill:{dark}}}", chart::hex(*light))));
        }
    }
}
