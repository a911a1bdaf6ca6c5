//! Which row is drawn where: the grid of one piece, and of one request's rows.

use std::ops::Range;

use super::grid::{Block, Grid, Lane, Slot, SlotState};
use crate::layout::Layout;
use crate::limits;
use crate::oracle::Fate;
use crate::planner::Piece;
use crate::report::chart::Head;
use crate::report::number::count;
use crate::units::{PageId, Rank, Tokens};
use crate::witness::{Calls, KeptCall, Placed};

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

    /// The rows of a page that are drawn: all, or of a page larger than the picture those that are
    /// `used`.
    fn drawn(&self, rows: Range<u64>, used: Range<u64>) -> Range<u64> {
        match self.page() <= u64::from(limits::PICTURE_TOKENS) {
            true => rows,
            false => rows.start.max(used.start)..rows.end.min(used.end),
        }
    }

    fn slot(&self, token: u64) -> Slot {
        let position = self.prefix() + self.start() + token;
        let rank = u32::try_from(position % self.ranks()).expect("ranks are 32-bit numbers");
        let state = match (self.asked.contains(&Rank(rank)), self.refused.contains(&Rank(rank))) {
            (true, false) => SlotState::Plain,
            (true, true) => SlotState::Refused,
            (false, _) => SlotState::Unused,
        };
        Slot { rank, state, label: position.to_string() }
    }

    fn source(&self, window: &Window, name: impl Fn(PageId) -> String) -> Vec<Block> {
        let page = self.page();
        let first = window.from / page;
        let pages = self.source_pages.iter().zip(0..).skip(index(first));
        let pages = pages.take_while(|&(_, ordinal)| ordinal * page < window.to);
        let block = |(&id, ordinal): (&PageId, u64)| {
            let rows = ordinal * page..(ordinal + 1) * page;
            let slots =
                self.drawn(rows, window.from..window.to).map(|token| match token < window.to {
                    true => self.slot(token),
                    false => unused(),
                });
            Block { name: name(id), is_lacking: false, slots: slots.collect() }
        };
        pages.map(block).collect()
    }

    fn lane(&self, window: &Window, rank: u32) -> Lane {
        let virtual_page = self.page() * self.ranks();
        let (from, to) = (self.start() + window.from, self.start() + window.to);
        // The rank's phase counted from S, which is its own number where S is aligned.
        let phase = (u64::from(rank) + self.ranks() - self.prefix() % self.ranks()) % self.ranks();
        let block = |ordinal: u64| {
            let rows = ordinal * self.page()..(ordinal + 1) * self.page();
            // The rank's rows with a token of the window.
            let own = |token: u64| token.saturating_sub(phase).div_ceil(self.ranks());
            let slots = self.drawn(rows, own(from)..own(to)).map(|row| {
                let sent = row * self.ranks() + phase;
                match (from..to).contains(&sent) {
                    true => self.slot(sent - self.start()),
                    false => unused(),
                }
            });
            let id = self.target_pages.get(index(ordinal));
            Block {
                name: id.map_or_else(|| "no page".to_owned(), |id| format!("page {id}")),
                is_lacking: id.is_none(),
                slots: slots.collect(),
            }
        };
        let ordinals =
            if from == to { 0..0 } else { from / virtual_page..(to - 1) / virtual_page + 1 };
        let blocks = ordinals.map(block).filter(|block| {
            !block.is_lacking || block.slots.iter().any(|slot| slot.state != SlotState::Unused)
        });
        Lane { rank, blocks: blocks.collect() }
    }
}

fn unused() -> Slot {
    Slot { rank: 0, state: SlotState::Unused, label: String::new() }
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
        let slots = (0..page).map(|offset| {
            let position = (ordinal * page + offset) * ranks + u64::from(rank);
            match (window.from..window.to).contains(&position) {
                true => placed_slot(placed, position, rank),
                false => unused(),
            }
        });
        let id = placed.table.get(index(ordinal));
        Block {
            name: id.map_or_else(|| "no page".to_owned(), |id| format!("page {id}")),
            is_lacking: id.is_none(),
            slots: slots.collect(),
        }
    };
    let ordinals = window.from / (page * ranks)..window.to.div_ceil(page * ranks);
    Lane { rank, blocks: ordinals.map(block).collect() }
}

fn placed_slot(placed: &Placed, position: u64, rank: u32) -> Slot {
    let is_cached = position < u64::from(placed.matched.0);
    let (state, label) = match placed.fates[index(position)] {
        Fate::Right if is_cached => (SlotState::Cached, position.to_string()),
        Fate::Right => (SlotState::Plain, position.to_string()),
        Fate::Missing => (SlotState::Missing, String::new()),
        Fate::Shifted(Tokens(held)) => (SlotState::Shifted, held.to_string()),
        Fate::Foreign(writer) => (SlotState::Foreign, format!("r{writer}")),
    };
    Slot { rank, state, label }
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
        block.slots.iter().map(|slot| slot.label.as_str()).collect()
    }

    #[test]
    fn a_second_chunk_lies_where_hazard_h01_says() {
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
        assert!(first.blocks[0].slots.iter().all(|slot| slot.state == SlotState::Refused));
        assert_eq!(second.blocks.len(), 1);
        assert!(second.blocks[0].slots.iter().all(|slot| slot.state == SlotState::Plain));
    }

    #[test]
    fn a_large_piece_is_cut_around_its_first_token_without_a_page_and_says_so() {
        let asked = Asked { page: 64, ranks: 32, prefix: 0, offset: 0, tokens: 64 * 100 };
        let src: Vec<u32> = (1..=100).collect();
        let grid = grid(&asked, &src, &[1, 2], &[31]);
        let drawn = grid.source.iter().flat_map(|block| &block.slots);
        assert_eq!(drawn.clone().count(), limits::PICTURE_TOKENS as usize);
        // Two pages of 64 rows on 32 ranks end before token 4,096.
        assert!(drawn.clone().any(|slot| slot.label == "4096"));
        assert_eq!(grid.lanes.len(), limits::PICTURE_RANKS as usize);
        assert!(grid.lanes.iter().any(|lane| lane.rank == 31));
        assert!(grid.notes.iter().any(|note| note == "16 more ranks are left out"));
        assert!(grid.notes.iter().any(|note| note.contains("of 6,400 are shown")));
    }
}
