//! The *grid*: source pages, ranks and destination pages, a cell a token.
//!
//! Source cells are the tokens of a piece where they lie on prefill; each rank has a lane with its
//! destination pages. A cell has its rank's colour and its position's number. What is drawn follows
//! the definition of the rows, so that a refused piece shows where its tokens would have gone.

use plotters::backend::DrawingBackend;
use plotters::style::RGBColor;
use plotters::style::text_anchor::HPos;

use super::WIDTH;
use crate::report::chart::{
    Area, BLUE, ChartError, FAINT, GREEN, GRID, Head, INK, LINE, MARGIN, ORANGE, PAPER, PLAIN,
    PURPLE, Pen, QUIET, SKY, VERMILION, label_color,
};

/// What is to be said of a cell beyond its rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mark {
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

/// One row of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    /// Whose token it is, or would be.
    pub rank: u32,
    /// See [`Mark`].
    pub mark: Mark,
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
    pub cells: Vec<Cell>,
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
    fn cell_width(&self) -> i32 {
        let labels =
            self.blocks().flat_map(|block| &block.cells).map(|cell| QUIET.width(&cell.label));
        labels.max().unwrap_or(0).max(14) + 8
    }

    fn blocks(&self) -> impl Iterator<Item = &Block> {
        self.source.iter().chain(self.lanes.iter().flat_map(|lane| &lane.blocks))
    }

    fn marks(&self) -> Vec<Mark> {
        let mut marks: Vec<Mark> =
            self.blocks().flat_map(|block| &block.cells).map(|cell| cell.mark).collect();
        marks.sort_unstable();
        marks.dedup();
        marks
    }

    fn legend(&self) -> Vec<(Mark, &'static str)> {
        let words = |mark: Mark| match mark {
            Mark::Plain => "a token, coloured by its rank, with its position",
            Mark::Unused => "a row that no token shown here goes to",
            Mark::Cached => "in the decode cache before",
            Mark::Refused => "struck out: its rank refused, nothing was sent",
            Mark::Missing => "hatched: never written for this request",
            Mark::Shifted => "framed: holds the other position that it names",
            Mark::Foreign => "framed, r…: holds a token of that request",
        };
        self.marks().into_iter().map(|mark| (mark, words(mark))).collect()
    }

    fn lacks_page(&self) -> bool {
        self.blocks().any(|block| block.is_lacking)
    }

    fn layout(&self) -> Flow {
        let room = WIDTH - 2 * MARGIN;
        Flow { cell: self.cell_width(), room }
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
        for (mark, words) in self.legend() {
            let area = Area { x: MARGIN, y: y + 2, width: 28, height: LINE - 4 };
            draw_cell(pen, area, &Cell { rank: 0, mark, label: String::new() })?;
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
/// Cells in a line of a page.
const CELLS_A_LINE: usize = 16;

/// Okabe and Ito's yellow, which shows as a whole cell, and a grey.
const YELLOW: RGBColor = RGBColor(0xf0, 0xe4, 0x42);
const GREY: RGBColor = RGBColor(0x99, 0x99, 0x99);

/// Eight colours that the colour-blind tell apart; ranks beyond take them again.
const COLORS: [RGBColor; 8] = [ORANGE, SKY, GREEN, YELLOW, BLUE, VERMILION, PURPLE, GREY];

fn color(rank: u32) -> RGBColor {
    COLORS[rank as usize % COLORS.len()]
}

/// How pages flow from left to right and on to the next line.
struct Flow {
    /// Width of a cell.
    cell: i32,
    /// Width of a line.
    room: i32,
}

impl Flow {
    /// Cells in a line of a page: as many as fit.
    fn columns(&self, block: &Block) -> i32 {
        let fit = ((self.room - LANE_NAME) / self.cell).max(1);
        let wanted = block.cells.len().clamp(1, CELLS_A_LINE);
        fit.min(i32::try_from(wanted).expect("a few"))
    }

    fn size(&self, block: &Block) -> (i32, i32) {
        let cells = i32::try_from(block.cells.len()).expect("limits keep pages small");
        let columns = self.columns(block);
        let width = (columns * self.cell).max(QUIET.width(&block.name) + 4);
        // The ceiling of the division; both are positive.
        let lines = (cells + columns - 1) / columns;
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
            for (cell, place) in block.cells.iter().zip(0..) {
                let (column, line) = (place % columns, place / columns);
                let area = Area {
                    x: x + column * self.cell,
                    y: y + LINE + line * CELL_HEIGHT,
                    width: self.cell - 2,
                    height: CELL_HEIGHT - 2,
                };
                draw_cell(pen, area, cell)?;
            }
            if block.is_lacking {
                let (width, height) = (columns * self.cell + 2, self.size(block).1 - LINE - 4);
                pen.dotted(Area { x: x - 2, y: y + LINE - 2, width, height })?;
            }
        }
        Ok(())
    }
}

fn draw_cell<DB: DrawingBackend>(pen: &Pen<DB>, area: Area, cell: &Cell) -> Result<(), ChartError> {
    let own = color(cell.rank);
    let inner =
        Area { x: area.x + 1, y: area.y + 1, width: area.width - 2, height: area.height - 2 };
    let filled = QUIET.of(label_color(own));
    let label = |style| pen.text(&cell.label, area.centre(), HPos::Center, style);
    match cell.mark {
        Mark::Plain => {
            pen.fill(area, own)?;
            label(filled)
        }
        Mark::Unused => pen.outline(area, GRID),
        Mark::Cached => {
            pen.outline(area, own)?;
            pen.outline(inner, own)?;
            label(QUIET)
        }
        Mark::Refused => {
            pen.fill(area, PAPER)?;
            pen.outline(area, own)?;
            pen.outline(inner, own)?;
            label(QUIET.of(INK))?;
            let (_, y) = area.centre();
            pen.line((area.x, y), (area.x + area.width, y), FAINT)
        }
        Mark::Missing => pen.hatch(area, false),
        Mark::Shifted | Mark::Foreign => {
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
        let cell = |row: u32| Cell {
            rank: row % 3,
            mark: Mark::Plain,
            label: (48_000 + number * rows + row).to_string(),
        };
        let cells = (0..rows).map(cell).collect();
        Block { name: format!("piece 12: page {number}"), is_lacking: false, cells }
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
            let cells = grid.blocks().flat_map(|block| &block.cells);
            assert!(cells.map(|cell| QUIET.width(&cell.label)).all(|width| width < flow.cell));
        }
    }
}
