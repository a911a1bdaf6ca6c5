//! The *grid*: source pages, ranks and destination pages, a slot a token.
//!
//! Source slots are the tokens of a piece where they lie on prefill; each rank has a lane with its
//! destination pages. A slot has its rank's colour and its position's number. What is drawn follows
//! the definition of the rows, so that a refused piece shows where its tokens would have gone.

use plotters::backend::DrawingBackend;
use plotters::style::RGBColor;
use plotters::style::text_anchor::HPos;

use super::WIDTH;
use crate::report::chart::{
    Area, BLUE, ChartError, FAINT, GREEN, GRID, Head, INK, LINE, MARGIN, ORANGE, PAPER, PLAIN,
    PURPLE, Pen, QUIET, SKY, VERMILION, label_color,
};

/// What is shown of a slot beyond its rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SlotState {
    /// It is as it should be.
    Plain,
    /// No token of what is shown lies there.
    Unused,
    /// It was in the decode cache before.
    Cached,
    /// Its rank refused the piece.
    Refused,
    /// It was never written for this request.
    Missing,
    /// It holds another position of its request.
    Shifted,
    /// It holds another request's token.
    Foreign,
}

/// One row of a page, which has room for one token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    /// The rank that stores the token, or would.
    pub rank: u32,
    /// See [`SlotState`].
    pub state: SlotState,
    /// Its position, or what it holds instead.
    pub label: String,
}

/// One page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// Its name.
    pub name: String,
    /// Whether it is a page that the list lacks.
    pub is_lacking: bool,
    /// Its rows.
    pub slots: Vec<Slot>,
}

/// The destination pages on one rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lane {
    /// The rank.
    pub rank: u32,
    /// Its pages.
    pub blocks: Vec<Block>,
}

/// A grid.
pub struct Grid {
    /// What is shown.
    pub head: Head,
    /// Pages on prefill.
    pub source: Vec<Block>,
    /// Pages on decode.
    pub lanes: Vec<Lane>,
    /// What was left out, and the like.
    pub notes: Vec<String>,
}

impl Grid {
    fn slot_width(&self) -> i32 {
        let labels =
            self.blocks().flat_map(|block| &block.slots).map(|slot| QUIET.width(&slot.label));
        labels.max().unwrap_or(0).max(14) + 8
    }

    fn blocks(&self) -> impl Iterator<Item = &Block> {
        self.source.iter().chain(self.lanes.iter().flat_map(|lane| &lane.blocks))
    }

    fn states(&self) -> Vec<SlotState> {
        let mut states: Vec<SlotState> =
            self.blocks().flat_map(|block| &block.slots).map(|slot| slot.state).collect();
        states.sort_unstable();
        states.dedup();
        states
    }

    fn legend(&self) -> Vec<(SlotState, &'static str)> {
        let words = |state: SlotState| match state {
            SlotState::Plain => "a token, coloured by its rank, with its position",
            SlotState::Unused => "a row that no token shown here goes to",
            SlotState::Cached => "in the decode cache before",
            SlotState::Refused => "struck out: its rank refused, nothing was sent",
            SlotState::Missing => "hatched: never written for this request",
            SlotState::Shifted => "framed: holds the other position that it names",
            SlotState::Foreign => "framed, r…: holds a token of that request",
        };
        self.states().into_iter().map(|state| (state, words(state))).collect()
    }

    fn lacks_page(&self) -> bool {
        self.blocks().any(|block| block.is_lacking)
    }

    fn layout(&self) -> Flow {
        let room = WIDTH - 2 * MARGIN;
        Flow { slot: self.slot_width(), room }
    }

    /// Pixels from its top to its end.
    pub(super) fn height(&self) -> i32 {
        let flow = self.layout();
        let source = flow.height(&self.source, 0);
        let lanes: i32 =
            self.lanes.iter().map(|lane| flow.height(&lane.blocks, LANE_NAME) + LANE_GAP).sum();
        let lines = self.legend().len() + self.notes.len() + usize::from(self.lacks_page());
        let lines = i32::try_from(lines).expect("legends are short");
        self.head.height(WIDTH) + 2 * SECTION + source + lanes + LINE * lines + 2 * MARGIN
    }

    pub(super) fn draw<DB: DrawingBackend>(
        &self,
        pen: &Pen<DB>,
        top: i32,
    ) -> Result<(), ChartError> {
        let flow = self.layout();
        let mut y = top + pen.head(&self.head, WIDTH)?;
        let section =
            |text: &str, y: i32| pen.text(text, (MARGIN, y + LINE / 2), HPos::Left, PLAIN);
        section("Source pages on prefill, in the order in which they are sent", y)?;
        y += SECTION;
        flow.draw(pen, &self.source, (MARGIN, y))?;
        y += flow.height(&self.source, 0);
        section("Destination pages on each decode rank", y)?;
        y += SECTION;
        for lane in &self.lanes {
            let swatch = Area { x: MARGIN, y: y + LINE + 3, width: 14, height: 14 };
            pen.fill(swatch, color(lane.rank))?;
            let name = format!("rank {}", lane.rank);
            pen.text(&name, (MARGIN + 20, y + LINE + 10), HPos::Left, PLAIN)?;
            flow.draw(pen, &lane.blocks, (MARGIN + LANE_NAME, y))?;
            y += flow.height(&lane.blocks, LANE_NAME) + LANE_GAP;
        }
        self.draw_legend(pen, y + MARGIN / 2)
    }

    fn draw_legend<DB: DrawingBackend>(&self, pen: &Pen<DB>, top: i32) -> Result<(), ChartError> {
        let mut y = top;
        for (state, words) in self.legend() {
            let area = Area { x: MARGIN, y: y + 2, width: 28, height: LINE - 4 };
            draw_slot(pen, area, &Slot { rank: 0, state, label: String::new() })?;
            pen.text(words, (MARGIN + 38, y + LINE / 2), HPos::Left, QUIET)?;
            y += LINE;
        }
        if self.lacks_page() {
            pen.dotted(Area { x: MARGIN, y: y + 2, width: 28, height: LINE - 4 })?;
            let words = "no page: the tokens need it, and the destination list ends before it";
            pen.text(words, (MARGIN + 38, y + LINE / 2), HPos::Left, QUIET)?;
            y += LINE;
        }
        for note in &self.notes {
            pen.text(&format!("Note: {note}."), (MARGIN, y + LINE / 2), HPos::Left, QUIET)?;
            y += LINE;
        }
        Ok(())
    }
}

/// Height of a section's title with the space below it.
const SECTION: i32 = LINE + 8;
/// Width of a lane's name.
const LANE_NAME: i32 = 96;
/// Space below a lane.
const LANE_GAP: i32 = 4;
const CELL_HEIGHT: i32 = 20;
/// Space between pages.
const BLOCK_GAP: i32 = 12;
/// Slots in a line of a page.
const SLOTS_A_LINE: usize = 16;

/// Okabe and Ito's yellow, which shows as a whole slot, and a grey.
const YELLOW: RGBColor = RGBColor(0xf0, 0xe4, 0x42);
const GREY: RGBColor = RGBColor(0x99, 0x99, 0x99);

/// Eight colours that the colour-blind tell apart; ranks beyond take them again.
const COLORS: [RGBColor; 8] = [ORANGE, SKY, GREEN, YELLOW, BLUE, VERMILION, PURPLE, GREY];

fn color(rank: u32) -> RGBColor {
    COLORS[rank as usize % COLORS.len()]
}

/// How pages flow from left to right and on to the next line.
struct Flow {
    /// Width of a slot.
    slot: i32,
    /// Width of a line.
    room: i32,
}

impl Flow {
    /// Slots in a line of a page: as many as fit.
    fn columns(&self, block: &Block) -> i32 {
        let fit = ((self.room - LANE_NAME) / self.slot).max(1);
        let wanted = block.slots.len().clamp(1, SLOTS_A_LINE);
        fit.min(i32::try_from(wanted).expect("a few"))
    }

    fn size(&self, block: &Block) -> (i32, i32) {
        let slots = i32::try_from(block.slots.len()).expect("limits keep pages small");
        let columns = self.columns(block);
        let width = (columns * self.slot).max(QUIET.width(&block.name) + 4);
        // The ceiling of the division; both are positive.
        let lines = (slots + columns - 1) / columns;
        (width, LINE + lines * CELL_HEIGHT + 6)
    }

    /// The place of every page, and the height of all, in a room that is `less` narrower.
    fn places(&self, blocks: &[Block], less: i32) -> (Vec<(i32, i32)>, i32) {
        let (mut x, mut y, mut line) = (0, 0, 0);
        let mut places = Vec::new();
        for block in blocks {
            let (width, height) = self.size(block);
            if x > 0 && x + width > self.room - less {
                (x, y, line) = (0, y + line, 0);
            }
            places.push((x, y));
            x += width + BLOCK_GAP;
            line = line.max(height);
        }
        (places, y + line)
    }

    fn height(&self, blocks: &[Block], less: i32) -> i32 {
        self.places(blocks, less).1.max(LINE + CELL_HEIGHT)
    }

    fn draw<DB: DrawingBackend>(
        &self,
        pen: &Pen<DB>,
        blocks: &[Block],
        (left, top): (i32, i32),
    ) -> Result<(), ChartError> {
        let (places, _) = self.places(blocks, left - MARGIN);
        if blocks.is_empty() {
            pen.text("none", (left, top + LINE + 10), HPos::Left, QUIET)?;
        }
        for (block, (x, y)) in blocks.iter().zip(places) {
            let (x, y) = (left + x, top + y);
            pen.text(&block.name, (x, y + LINE / 2), HPos::Left, QUIET)?;
            let columns = self.columns(block);
            for (slot, place) in block.slots.iter().zip(0..) {
                let (column, line) = (place % columns, place / columns);
                let area = Area {
                    x: x + column * self.slot,
                    y: y + LINE + line * CELL_HEIGHT,
                    width: self.slot - 2,
                    height: CELL_HEIGHT - 2,
                };
                draw_slot(pen, area, slot)?;
            }
            if block.is_lacking {
                let (width, height) = (columns * self.slot + 2, self.size(block).1 - LINE - 4);
                pen.dotted(Area { x: x - 2, y: y + LINE - 2, width, height })?;
            }
        }
        Ok(())
    }
}

fn draw_slot<DB: DrawingBackend>(pen: &Pen<DB>, area: Area, slot: &Slot) -> Result<(), ChartError> {
    let own = color(slot.rank);
    let inner =
        Area { x: area.x + 1, y: area.y + 1, width: area.width - 2, height: area.height - 2 };
    let filled = QUIET.of(label_color(own));
    let label = |style| pen.text(&slot.label, area.centre(), HPos::Center, style);
    match slot.state {
        SlotState::Plain => {
            pen.fill(area, own)?;
            label(filled)
        }
        SlotState::Unused => pen.outline(area, GRID),
        SlotState::Cached => {
            pen.outline(area, own)?;
            pen.outline(inner, own)?;
            label(QUIET)
        }
        SlotState::Refused => {
            pen.fill(area, PAPER)?;
            pen.outline(area, own)?;
            pen.outline(inner, own)?;
            label(QUIET.of(INK))?;
            let (_, y) = area.centre();
            pen.line((area.x, y), (area.x + area.width, y), FAINT)
        }
        SlotState::Missing => pen.hatch(area, false),
        SlotState::Shifted | SlotState::Foreign => {
            pen.fill(area, own)?;
            pen.outline(area, INK)?;
            pen.outline(inner, INK)?;
            label(filled)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(number: u32, rows: u32) -> Block {
        let slot = |row: u32| Slot {
            rank: row % 3,
            state: SlotState::Plain,
            label: (48_000 + number * rows + row).to_string(),
        };
        let slots = (0..rows).map(slot).collect();
        Block { name: format!("piece 12: page {number}"), is_lacking: false, slots }
    }

    #[test]
    fn pages_do_not_overlap_and_labels_stay_inside_their_cells() {
        for rows in [1, 2, 16, 64] {
            let blocks: Vec<Block> = (0..30).map(|number| block(number, rows)).collect();
            let lanes = (0..3).map(|rank| Lane { rank, blocks: blocks.clone() }).collect();
            let head = Head { title: String::new(), subtitle: String::new() };
            let grid = Grid { head, source: blocks, lanes, notes: Vec::new() };
            let flow = grid.layout();
            for less in [0, LANE_NAME] {
                let (places, height) = flow.places(&grid.source, less);
                let area = |(block, (x, y)): (&Block, (i32, i32))| {
                    let (width, tall) = flow.size(block);
                    (x, y, x + width, y + tall)
                };
                let areas: Vec<_> = grid.source.iter().zip(places).map(area).collect();
                for (number, a) in areas.iter().enumerate() {
                    assert!(a.0 >= 0 && a.2 <= flow.room - less && a.3 <= height, "{a:?}");
                    for b in &areas[number + 1..] {
                        assert!(
                            a.2 <= b.0 || b.2 <= a.0 || a.3 <= b.1 || b.3 <= a.1,
                            "{a:?} {b:?}"
                        );
                    }
                }
            }
            let slots = grid.blocks().flat_map(|block| &block.slots);
            assert!(slots.map(|slot| QUIET.width(&slot.label)).all(|width| width < flow.slot));
        }
    }
}
