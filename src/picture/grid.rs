//! The *grid*: source pages, ranks and destination pages, a cell a token.
//!
//! Source cells are the tokens of a piece where they lie on prefill; each rank has a lane with its
//! destination pages. A cell has its rank's colour and its position's number. What is drawn follows
//! the definition of the rows, so that a refused piece shows where its tokens would have gone.

use plotters::backend::DrawingBackend;
use plotters::style::RGBColor;
use plotters::style::text_anchor::HPos;

use super::WIDTH;
use crate::layout::Layout;
use crate::limits;
use crate::planner::Piece;
use crate::report::chart::{
    Area, ChartError, FAINT, GRID, Head, INK, LINE, MARGIN, PAPER, PLAIN, Pen, QUIET, label_color,
};
use crate::report::number::count;
use crate::units::{PageId, Rank, Tokens};
use crate::witness::{Calls, Fate, KeptCall, Placed};

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

/// One piece with the ranks that refused it.
#[derive(Clone, Copy)]
pub struct PieceView<'a> {
    /// P and N.
    pub layout: Layout,
    /// off, S and n.
    pub piece: Piece,
    /// Its source pages.
    pub source_pages: &'a [PageId],
    /// The destination list.
    pub target_pages: &'a [PageId],
    /// The ranks that were asked.
    pub asked: &'a [Rank],
    /// Those of them that refused.
    pub refused: &'a [Rank],
}

/// Tokens of a piece that are drawn.
struct Window {
    from: u64,
    to: u64,
}

impl PieceView<'_> {
    fn page(&self) -> u64 {
        u64::from(self.layout.page().get())
    }

    fn ranks(&self) -> u64 {
        u64::from(self.layout.ranks())
    }

    /// n, or what the source pages hold; none where it is negative.
    fn tokens(&self) -> u64 {
        let held = self.source_pages.len() as u64 * self.page();
        self.piece.num_kv_tokens.map_or(held, |n| u64::try_from(n).unwrap_or(0))
    }

    /// Tokens before this piece, counted from S: off·P.
    fn start(&self) -> u64 {
        u64::from(self.piece.src_page_offset.0) * self.page()
    }

    fn prefix(&self) -> u64 {
        u64::from(self.piece.decode_prefix_len.0)
    }

    /// The tokens to draw: around the first one that has no page, if not all.
    fn window(&self) -> Window {
        let (tokens, most) = (self.tokens(), u64::from(limits::PICTURE_TOKENS));
        if tokens <= most {
            return Window { from: 0, to: tokens };
        }
        let reach = self.target_pages.len() as u64 * self.page() * self.ranks();
        let lacking = reach.saturating_sub(self.start()).min(tokens);
        let first = if self.refused.is_empty() || lacking == tokens { 0 } else { lacking };
        let from = first.saturating_sub(most / 2).min(tokens - most) / self.page() * self.page();
        Window { from, to: (from + most).min(tokens) }
    }

    fn cell(&self, token: u64) -> Cell {
        let position = self.prefix() + self.start() + token;
        let rank = u32::try_from(position % self.ranks()).expect("ranks are 32-bit numbers");
        let mark = match (self.asked.contains(&Rank(rank)), self.refused.contains(&Rank(rank))) {
            (true, false) => Mark::Plain,
            (true, true) => Mark::Refused,
            (false, _) => Mark::Unused,
        };
        Cell { rank, mark, label: position.to_string() }
    }

    fn source(&self, window: &Window, name: impl Fn(PageId) -> String) -> Vec<Block> {
        let page = self.page();
        let first = window.from / page;
        let pages = self.source_pages.iter().zip(0..).skip(index(first));
        let pages = pages.take_while(|&(_, ordinal)| ordinal * page < window.to);
        let block = |(&id, ordinal): (&PageId, u64)| {
            let rows = ordinal * page..(ordinal + 1) * page;
            let cells = rows.map(|token| match token < window.to {
                true => self.cell(token),
                false => unused(),
            });
            Block { name: name(id), is_lacking: false, cells: cells.collect() }
        };
        pages.map(block).collect()
    }

    fn lane(&self, window: &Window, rank: u32) -> Lane {
        let virtual_page = self.page() * self.ranks();
        let (from, to) = (self.start() + window.from, self.start() + window.to);
        // The rank's phase counted from S, which is its own number where S is aligned.
        let phase = (u64::from(rank) + self.ranks() - self.prefix() % self.ranks()) % self.ranks();
        let block = |ordinal: u64| {
            let cells = (0..self.page()).map(|offset| {
                let sent = (ordinal * self.page() + offset) * self.ranks() + phase;
                match (from..to).contains(&sent) {
                    true => self.cell(sent - self.start()),
                    false => unused(),
                }
            });
            let id = self.target_pages.get(index(ordinal));
            Block {
                name: id.map_or_else(|| "no page".to_owned(), |id| format!("page {id}")),
                is_lacking: id.is_none(),
                cells: cells.collect(),
            }
        };
        let ordinals =
            if from == to { 0..0 } else { from / virtual_page..(to - 1) / virtual_page + 1 };
        let blocks = ordinals.map(block).filter(|block| {
            !block.is_lacking || block.cells.iter().any(|cell| cell.mark != Mark::Unused)
        });
        Lane { rank, blocks: blocks.collect() }
    }
}

fn unused() -> Cell {
    Cell { rank: 0, mark: Mark::Unused, label: String::new() }
}

fn index(number: u64) -> usize {
    usize::try_from(number).expect("lists are in memory")
}

/// The ranks that are drawn, `wanted` ones first if not all, in order; and a note if not all.
fn drawn_ranks(ranks: impl Iterator<Item = Rank>, wanted: &[Rank]) -> (Vec<u32>, Option<String>) {
    let mut all: Vec<Rank> = ranks.collect();
    let most = limits::PICTURE_RANKS as usize;
    let left_out = all.len().saturating_sub(most);
    all.sort_by_key(|rank| (!wanted.contains(rank), *rank));
    all.truncate(most);
    all.sort_unstable();
    let note = (left_out > 0).then(|| format!("{left_out} more ranks are left out"));
    (all.into_iter().map(|rank| rank.0).collect(), note)
}

impl Grid {
    /// One piece.
    pub fn of_piece(view: &PieceView<'_>, head: Head) -> Grid {
        let window = view.window();
        let (ranks, note) = drawn_ranks(view.asked.iter().copied(), view.refused);
        let mut notes: Vec<String> = note.into_iter().collect();
        let (drawn, tokens) = (window.to - window.from, view.tokens());
        if drawn < tokens {
            notes.push(format!(
                "tokens {} to {} of {} are shown; the others are left out",
                count(window.from),
                count(window.to - 1),
                count(tokens)
            ));
        }
        let held = view.source_pages.len() as u64 * view.page();
        if let Some(beyond) = tokens.checked_sub(held).filter(|&beyond| beyond > 0) {
            notes.push(format!("{} tokens more than the source pages hold", count(beyond)));
        }
        if let Some(n) = view.piece.num_kv_tokens.filter(|&n| n < 0) {
            notes.push(format!("a negative number of tokens: {n}"));
        }
        Grid {
            head,
            source: view.source(&window, |id| format!("page {id}")),
            lanes: ranks.into_iter().map(|rank| view.lane(&window, rank)).collect(),
            notes,
        }
    }

    /// The rows of a request at its activation, below the pieces that were sent for it.
    pub fn of_request(calls: &Calls, placed: &Placed, head: Head) -> Grid {
        let layout = calls.layout();
        let (ranks, note) = drawn_ranks(layout.each_rank(), &[]);
        let mut notes: Vec<String> = note.into_iter().collect();
        let window = request_window(layout, placed);
        if (window.to - window.from) < placed.fates.len() as u64 {
            notes.push(format!(
                "positions {} to {} of {} are shown; the others are left out",
                count(window.from),
                count(window.to - 1),
                count(placed.fates.len() as u64)
            ));
        }
        let mut source = Vec::new();
        let mut room = u64::from(limits::PICTURE_TOKENS);
        let pieces = pieces_of(calls, placed);
        for call in &pieces {
            let asked: Vec<Rank> = layout.each_rank().collect();
            let view = call_view(layout, call, &asked);
            if view.tokens() > room {
                notes.push("source pages of later pieces are left out".to_owned());
                break;
            }
            room -= view.tokens();
            let whole = Window { from: 0, to: view.tokens() };
            source.extend(view.source(&whole, |id| format!("piece {}: page {id}", call.number)));
        }
        let lanes = ranks.into_iter().map(|rank| placed_lane(layout, placed, &window, rank));
        Grid { head, source, lanes: lanes.collect(), notes }
    }

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

/// The view of a kept call.
fn call_view<'a>(layout: Layout, call: &'a KeptCall, asked: &'a [Rank]) -> PieceView<'a> {
    PieceView {
        layout,
        piece: call.piece,
        source_pages: &call.source_pages,
        target_pages: &call.target_pages,
        asked,
        refused: &call.refused,
    }
}

/// The grid of a kept call.
pub(super) fn of_call(layout: Layout, call: &KeptCall, head: Head) -> Grid {
    let asked: Vec<Rank> = layout.each_rank().collect();
    Grid::of_piece(&call_view(layout, call, &asked), head)
}

/// The pieces of the transfer that ended with these rows.
fn pieces_of<'a>(calls: &'a Calls, placed: &Placed) -> Vec<&'a KeptCall> {
    let own = || calls.calls.iter().filter(|call| call.request == placed.request);
    let attempt = own().filter(|call| call.tick <= placed.tick).map(|call| call.attempt).max();
    own().filter(|call| Some(call.attempt) == attempt).collect()
}

/// Whole virtual pages around the first wrong position, if not all positions.
fn request_window(layout: Layout, placed: &Placed) -> Window {
    let (all, most) = (placed.fates.len() as u64, u64::from(limits::PICTURE_TOKENS));
    if all <= most {
        return Window { from: 0, to: all };
    }
    let virtual_page = u64::from(layout.virtual_page().get());
    let first = placed.fates.iter().position(|&fate| fate != Fate::Right).unwrap_or(0) as u64;
    let from = first.saturating_sub(most / 4) / virtual_page * virtual_page;
    Window { from, to: (from + most).min(all) }
}

fn placed_lane(layout: Layout, placed: &Placed, window: &Window, rank: u32) -> Lane {
    let (page, ranks) = (u64::from(layout.page().get()), u64::from(layout.ranks()));
    let block = |ordinal: u64| {
        let cells = (0..page).map(|offset| {
            let position = (ordinal * page + offset) * ranks + u64::from(rank);
            match (window.from..window.to).contains(&position) {
                true => placed_cell(placed, position, rank),
                false => unused(),
            }
        });
        let id = placed.table.get(index(ordinal));
        Block {
            name: id.map_or_else(|| "no page".to_owned(), |id| format!("page {id}")),
            is_lacking: id.is_none(),
            cells: cells.collect(),
        }
    };
    let ordinals = window.from / (page * ranks)..window.to.div_ceil(page * ranks);
    Lane { rank, blocks: ordinals.map(block).collect() }
}

fn placed_cell(placed: &Placed, position: u64, rank: u32) -> Cell {
    let is_cached = position < u64::from(placed.matched.0);
    let (mark, label) = match placed.fates[index(position)] {
        Fate::Right if is_cached => (Mark::Cached, position.to_string()),
        Fate::Right => (Mark::Plain, position.to_string()),
        Fate::Missing => (Mark::Missing, String::new()),
        Fate::Shifted(Tokens(held)) => (Mark::Shifted, held.to_string()),
        Fate::Foreign(writer) => (Mark::Foreign, format!("r{writer}")),
    };
    Cell { rank, mark, label }
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

/// Eight colours that the colour-blind tell apart (Okabe and Ito); ranks beyond take them again.
const COLORS: [RGBColor; 8] = [
    RGBColor(0xe6, 0x9f, 0x00),
    RGBColor(0x56, 0xb4, 0xe9),
    RGBColor(0x00, 0x9e, 0x73),
    RGBColor(0xf0, 0xe4, 0x42),
    RGBColor(0x00, 0x72, 0xb2),
    RGBColor(0xd5, 0x5e, 0x00),
    RGBColor(0xcc, 0x79, 0xa7),
    RGBColor(0x99, 0x99, 0x99),
];

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
    use crate::units::Pages;

    struct Asked {
        page: u32,
        ranks: u32,
        prefix: u32,
        offset: u32,
        tokens: i64,
    }

    fn grid(asked: &Asked, src: &[u32], dst: &[u32], refused: &[u32]) -> Grid {
        let ids = |ids: &[u32]| ids.iter().copied().map(PageId).collect::<Vec<_>>();
        let layout = Layout::striped(asked.page, asked.ranks).unwrap();
        let all: Vec<Rank> = layout.each_rank().collect();
        let refused: Vec<Rank> = refused.iter().copied().map(Rank).collect();
        let view = PieceView {
            layout,
            piece: Piece {
                src_page_offset: Pages(asked.offset),
                decode_prefix_len: Tokens(asked.prefix),
                num_kv_tokens: Some(asked.tokens),
            },
            source_pages: &ids(src),
            target_pages: &ids(dst),
            asked: &all,
            refused: &refused,
        };
        Grid::of_piece(&view, Head { title: String::new(), subtitle: String::new() })
    }

    fn labels(block: &Block) -> Vec<&str> {
        block.cells.iter().map(|cell| cell.label.as_str()).collect()
    }

    #[test]
    fn a_second_chunk_lies_where_the_catalogue_of_hazards_says() {
        // H01: P = 2, N = 2, off = 2, n = 3: rows 12 and 13 of rank 0, row 12 of rank 1.
        let asked = Asked { page: 2, ranks: 2, prefix: 0, offset: 2, tokens: 3 };
        let grid = grid(&asked, &[7, 8], &[5, 6], &[]);
        let source: Vec<_> = grid.source.iter().map(labels).collect();
        assert_eq!(source, [["4", "5"], ["6", ""]]);
        let lanes: Vec<_> = grid
            .lanes
            .iter()
            .map(|lane| (&*lane.blocks[0].name, labels(&lane.blocks[0])))
            .collect();
        assert_eq!(lanes, [("page 6", vec!["4", "6"]), ("page 6", vec!["5", ""])]);
        assert!(grid.lanes.iter().all(|lane| lane.blocks.len() == 1));
    }

    #[test]
    fn a_page_that_is_lacking_is_drawn_for_the_rank_that_lacks_it() {
        // H10: P = 4, N = 2, 9 tokens, one page: rank 0 needs two, rank 1 is content.
        let asked = Asked { page: 4, ranks: 2, prefix: 8, offset: 0, tokens: 9 };
        let grid = grid(&asked, &[1, 2, 3], &[5], &[0]);
        let [first, second] = grid.lanes.as_slice() else { panic!("two ranks") };
        assert!(first.blocks[1].is_lacking && first.blocks.len() == 2);
        assert_eq!(labels(&first.blocks[1]), ["16", "", "", ""]);
        assert!(first.blocks[0].cells.iter().all(|cell| cell.mark == Mark::Refused));
        assert_eq!(second.blocks.len(), 1);
        assert!(second.blocks[0].cells.iter().all(|cell| cell.mark == Mark::Plain));
    }

    #[test]
    fn a_large_piece_is_cut_around_its_first_token_without_a_page_and_says_so() {
        let asked = Asked { page: 64, ranks: 32, prefix: 0, offset: 0, tokens: 64 * 100 };
        let src: Vec<u32> = (1..=100).collect();
        let grid = grid(&asked, &src, &[1, 2], &[31]);
        let drawn = grid.source.iter().flat_map(|block| &block.cells);
        assert_eq!(drawn.clone().count(), limits::PICTURE_TOKENS as usize);
        // Two pages of 64 rows on 32 ranks end before token 4,096.
        assert!(drawn.clone().any(|cell| cell.label == "4096"));
        assert_eq!(grid.lanes.len(), limits::PICTURE_RANKS as usize);
        assert!(grid.lanes.iter().any(|lane| lane.rank == 31));
        assert!(grid.notes.iter().any(|note| note == "16 more ranks are left out"));
        assert!(grid.notes.iter().any(|note| note.contains("of 6,400 are shown")));
    }

    #[test]
    fn pages_do_not_overlap_and_stay_inside_the_picture() {
        let asked = Asked { page: 16, ranks: 3, prefix: 48_000, offset: 7, tokens: 500 };
        let src: Vec<u32> = (1..=32).collect();
        let dst: Vec<u32> = (1..=40).collect();
        let grid = grid(&asked, &src, &dst, &[]);
        let flow = grid.layout();
        for (blocks, less) in std::iter::once((&grid.source, 0))
            .chain(grid.lanes.iter().map(|lane| (&lane.blocks, LANE_NAME)))
        {
            let (places, height) = flow.places(blocks, less);
            let areas: Vec<_> = blocks
                .iter()
                .zip(places)
                .map(|(block, (x, y))| {
                    let (width, tall) = flow.size(block);
                    (x, y, x + width, y + tall)
                })
                .collect();
            for (number, a) in areas.iter().enumerate() {
                assert!(a.0 >= 0 && a.2 <= flow.room - less && a.3 <= height, "{a:?}");
                for b in &areas[number + 1..] {
                    assert!(a.2 <= b.0 || b.2 <= a.0 || a.3 <= b.1 || b.3 <= a.1, "{a:?} {b:?}");
                }
            }
            let widest = blocks.iter().flat_map(|block| &block.cells);
            assert!(widest.map(|cell| QUIET.width(&cell.label)).all(|width| width < flow.cell));
        }
    }
}
