//! What each row of a pool holds, as stamps: KV of whose text, of which position, written when and
//! for whom.
//!
//! A row names its token by a request's text and the position in it. Two rows of different texts
//! hold equal KV where the texts have equal chains at that position ([`Texts`] knows them). So rows
//! of a page that continue each other are one [`Extent`], whatever the prompt is composed of, and a
//! page costs its few extents and not its rows. Giving a page back does not clear it: a stale row
//! keeps its old stamp, as real memory does.

use std::cell::RefCell;
use std::cmp::Ordering;
use std::rc::Rc;

use crate::prompt::{ChainId, Sequence, Texts};
use crate::units::{PageId, PageSize, Pages, RequestId, Tick, Tokens};

/// What one row holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The request in whose text the token stands whose KV it is.
    pub text: RequestId,
    /// The token's position in that text.
    pub position: Tokens,
    /// When the row was written.
    pub written: Tick,
    /// For which request.
    pub writer: RequestId,
}

impl Stamp {
    /// The history of the token, where its text is known.
    pub fn chain(&self, texts: &Texts) -> Option<ChainId> {
        texts.chain_at(self.text, self.position)
    }

    /// Whether this is the KV of `sequence` at the stamp's own position.
    pub fn is_of(&self, sequence: &Sequence, texts: &Texts) -> bool {
        let chain = self.chain(texts);
        chain.is_some() && sequence.chain_at(self.position) == chain
    }

    /// Whether both are KV of the same token of the same history.
    pub fn is_same_kv(&self, other: &Stamp, texts: &Texts) -> bool {
        self.position == other.position
            && (self.text == other.text || self.chain(texts) == other.chain(texts))
    }
}

/// Consecutive rows of one page whose stamps differ by a constant step of position only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// The first row's offset in its page.
    pub start: u32,
    /// Number of rows, at least 1.
    pub len: u32,
    /// The first row's stamp.
    pub stamp: Stamp,
    /// How much the position rises from row to row.
    pub step: u32,
    /// How many decode steps lie between the writing of a row and of the next: then `stamp.written`
    /// is not a tick but the number of the first row's step, and [`Memory::row`] knows the tick.
    /// Zero where all rows were written at once.
    pace: u32,
}

/// When each step of a decode server ended, in their order. The memories of one server share it.
#[derive(Clone, Debug, Default)]
pub struct StepClock(Rc<RefCell<Vec<Tick>>>);

impl StepClock {
    /// The next step ends.
    pub fn step_ends(&self, now: Tick) {
        self.0.borrow_mut().push(now);
    }

    fn tick(&self, step: u64) -> Tick {
        self.0.borrow()[usize::try_from(step).expect("steps are counted in memory")]
    }
}

impl Extent {
    /// `len` rows from `start` on, all written at once; the first has this stamp, and positions
    /// rise by `step`.
    pub fn new(start: u32, len: u32, stamp: Stamp, step: u32) -> Extent {
        Extent { start, len, stamp, step, pace: 0 }
    }

    /// The same of rows that decode steps wrote, one every `pace` steps. The first was written by
    /// the step of number `first`; the tick in `stamp` means nothing.
    pub fn by_steps(
        (start, len): (u32, u32),
        stamp: Stamp,
        step: u32,
        first: u32,
        pace: u32,
    ) -> Extent {
        let stamp = Stamp { written: Tick(first.into()), ..stamp };
        Extent { start, len, stamp, step, pace }
    }

    /// The same rows, written for `writer` at `now`.
    pub fn copied(self, writer: RequestId, now: Tick) -> Extent {
        Extent { stamp: Stamp { written: now, writer, ..self.stamp }, pace: 0, ..self }
    }

    /// The offset after the last row.
    pub fn end(&self) -> u32 {
        self.start + self.len
    }

    /// The stamp of the row at `offset` of the page, which must be inside. Of rows that decode
    /// steps wrote, it has the step's number in the place of the tick.
    pub fn at(&self, offset: u32) -> Stamp {
        let rows = offset - self.start;
        let position = Tokens(self.stamp.position.0 + rows * self.step);
        let written = Tick(self.stamp.written.0 + u64::from(rows) * u64::from(self.pace));
        Stamp { position, written, ..self.stamp }
    }

    /// The part of this extent within `start..end`, if any.
    pub fn within(&self, start: u32, end: u32) -> Option<Extent> {
        let (start, end) = (start.max(self.start), end.min(self.end()));
        (start < end).then(|| Extent { start, len: end - start, stamp: self.at(start), ..*self })
    }

    /// Takes `next` in if it continues this extent.
    fn join(&mut self, next: &Extent) -> bool {
        let written = self.stamp.written.0 + u64::from(self.len) * u64::from(self.pace);
        let expected =
            Stamp { position: next.stamp.position, written: Tick(written), ..self.stamp };
        let alike = expected == next.stamp && self.pace == next.pace;
        let position = self.stamp.position.0;
        // A single row has no step of its own yet.
        let step = match self.len {
            1 => next.stamp.position.0.wrapping_sub(position),
            _ => self.step,
        };
        let continues = position.wrapping_add(self.len.wrapping_mul(step)) == next.stamp.position.0;
        let joined = self.end() == next.start
            && alike
            && continues
            && next.stamp.position.0 > position
            && (next.len == 1 || next.step == step);
        if joined {
            self.step = step;
            self.len += next.len;
        }
        joined
    }
}

/// The rows of one pool on one rank. Page 0 exists, too: the planner may be told to write there.
/// What lies behind the end holds nothing, and writing there does nothing.
///
/// Nearly every page holds one extent at most, so that extent is kept in place; a page of several
/// keeps them in a list of its own.
pub struct Memory {
    pages: Vec<Held>,
    /// The lists of pages with several extents.
    lists: Vec<Vec<Extent>>,
    /// Lists that no page uses.
    spare: Vec<u32>,
    /// Rows of the last page.
    last_rows: u32,
    /// Calls that have changed rows.
    writes: u64,
    /// For the ticks of rows that decode steps wrote.
    clock: StepClock,
}

/// What a page holds: an extent if that has rows, else the list of this number plus 1, else
/// nothing.
#[derive(Clone, Copy)]
struct Held(Extent);

impl Held {
    const NOTHING: Held = Held::list_of(0);

    const fn list_of(start: u32) -> Held {
        let stamp = Stamp {
            text: RequestId(0),
            position: Tokens(0),
            written: Tick(0),
            writer: RequestId(0),
        };
        Held(Extent { start, len: 0, stamp, step: 0, pace: 0 })
    }

    /// The number of its list, if it has one.
    fn list(&self) -> Option<usize> {
        (self.0.len == 0).then(|| self.0.start.checked_sub(1)).flatten().map(|list| list as usize)
    }
}

impl Memory {
    /// Memory of pages 0..=`pages`, with nothing written.
    pub fn new(pages: u32) -> Memory {
        Memory::of_pages(pages as usize + 1, u32::MAX)
    }

    /// Memory of `rows` rows in pages of `page` rows, the last of which can be cut off.
    pub fn of_rows(page: PageSize, rows: u32) -> Memory {
        let pages = Tokens(rows).pages_ceil(page);
        let before_last = pages.saturating_sub(Pages(1)).tokens(page);
        Memory::of_pages(pages.index(), rows - before_last.0)
    }

    fn of_pages(count: usize, last_rows: u32) -> Memory {
        let pages = vec![Held::NOTHING; count];
        let (lists, spare) = (Vec::new(), Vec::new());
        Memory { pages, lists, spare, last_rows, writes: 0, clock: StepClock::default() }
    }

    /// The same memory of a server whose steps `clock` knows.
    pub fn with_clock(self, clock: StepClock) -> Memory {
        Memory { clock, ..self }
    }

    /// How often rows were written or erased. While it stays the same, so does every row.
    pub fn writes(&self) -> u64 {
        self.writes
    }

    /// The written rows of `page`, in order.
    pub fn page(&self, page: PageId) -> &[Extent] {
        let Some(held) = self.pages.get(page.index()) else { return &[] };
        match held.list() {
            _ if held.0.len > 0 => std::slice::from_ref(&held.0),
            Some(list) => &self.lists[list],
            None => &[],
        }
    }

    /// What the row at `offset` of `page` holds; `None` if it was never written.
    pub fn row(&self, page: PageId, offset: u32) -> Option<Stamp> {
        let extents = self.page(page);
        let index = extents.partition_point(|extent| extent.end() <= offset);
        let extent = extents.get(index).filter(|extent| extent.start <= offset)?;
        let stamp = extent.at(offset);
        let written = match extent.pace {
            0 => stamp.written,
            _ => self.clock.tick(stamp.written.0),
        };
        Some(Stamp { written, ..stamp })
    }

    /// Writes the rows of `new` in `page`, over whatever they held.
    pub fn write(&mut self, page: PageId, new: Extent) {
        let rows = self.rows_of(page);
        let Some(new) = new.within(0, rows) else { return };
        self.writes += 1;
        let held = &mut self.pages[page.index()];
        let covers = new.start <= held.0.start && held.0.end() <= new.end();
        // The usual cases need no list: rows over all that is there, and rows that go on behind it.
        match held.list() {
            None if held.0.len == 0 || covers => *held = Held(new),
            None if held.0.end() == new.start && held.0.join(&new) => {}
            Some(list) if is_covered(&self.lists[list], &new) => {
                *held = Held(new);
                self.lists[list].clear();
                self.spare.push(number_of(list));
            }
            None | Some(_) => {
                let list = self.list_for(page);
                write_into(&mut self.lists[list], new);
                self.settle(page, list);
            }
        }
    }

    /// Makes `len` rows from `start` on as if never written.
    pub fn erase(&mut self, page: PageId, start: u32, len: u32) {
        if page.index() < self.pages.len() {
            self.writes += 1;
            let list = self.list_for(page);
            clear_rows(&mut self.lists[list], start, start + len);
            self.settle(page, list);
        }
    }

    /// How far `page` reaches before the memory ends: 0 behind it.
    fn rows_of(&self, page: PageId) -> u32 {
        match (page.index() + 1).cmp(&self.pages.len()) {
            Ordering::Less => u32::MAX,
            Ordering::Equal => self.last_rows,
            Ordering::Greater => 0,
        }
    }

    /// The number of a list that holds what `page` holds.
    fn list_for(&mut self, page: PageId) -> usize {
        let held = &mut self.pages[page.index()];
        if let Some(list) = held.list() {
            return list;
        }
        let list = self.spare.pop().map_or(self.lists.len(), |list| list as usize);
        if list == self.lists.len() {
            self.lists.push(Vec::new());
        }
        self.lists[list].extend((held.0.len > 0).then_some(held.0));
        list
    }

    /// Lets `page` hold what `list` does, in place if that is one extent at most.
    fn settle(&mut self, page: PageId, list: usize) {
        let number = number_of(list);
        let extents = &mut self.lists[list];
        self.pages[page.index()] = match extents.as_slice() {
            [] => Held::NOTHING,
            &[one] => Held(one),
            _ => Held::list_of(number + 1),
        };
        if extents.len() < 2 {
            extents.clear();
            self.spare.push(number);
        }
    }
}

fn number_of(list: usize) -> u32 {
    u32::try_from(list).expect("a list a page at most")
}

/// Whether `new` writes over every row that `extents` hold.
fn is_covered(extents: &[Extent], new: &Extent) -> bool {
    let (first, last) = (extents.first(), extents.last());
    first.is_none_or(|first| new.start <= first.start)
        && last.is_none_or(|last| last.end() <= new.end())
}

/// Writes the rows of `new` over what `extents` hold.
fn write_into(extents: &mut Vec<Extent>, new: Extent) {
    let (start, end) = (new.start, new.end());
    // Rows are mostly added behind the last.
    if let Some(last) = extents.last_mut()
        && last.end() <= start
    {
        if !last.join(&new) {
            extents.push(new);
        }
        return;
    }
    let at = clear_rows(extents, start, end);
    if at > 0 && extents[at - 1].join(&new) {
        join_behind(extents, at - 1);
    } else {
        extents.insert(at, new);
        join_behind(extents, at);
    }
}

/// Removes rows `start..end` and says where an extent of them would be inserted.
fn clear_rows(extents: &mut Vec<Extent>, start: u32, end: u32) -> usize {
    let from = extents.partition_point(|extent| extent.end() <= start);
    let to = extents.partition_point(|extent| extent.start < end);
    if from >= to {
        return from;
    }
    let before = extents[from].within(0, start);
    let after = extents[to - 1].within(end, u32::MAX);
    extents.splice(from..to, before.into_iter().chain(after));
    from + usize::from(before.is_some())
}

fn join_behind(extents: &mut Vec<Extent>, at: usize) {
    if let Some(next) = extents.get(at + 1).copied()
        && extents[at].join(&next)
    {
        extents.remove(at + 1);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn extent(start: u32, len: u32, text: u32, position: u32, step: u32) -> Extent {
        let stamp = Stamp {
            text: RequestId(text),
            position: Tokens(position),
            written: Tick(1),
            writer: RequestId(0),
        };
        Extent::new(start, len, stamp, step)
    }

    proptest! {
        #[test]
        fn every_row_holds_what_was_written_to_it_last(
            writes in proptest::collection::vec(
                (0u32..16, 1u32..9, 0u32..2, 0u32..40, 1u32..4, any::<bool>()), 1..20,
            ),
        ) {
            let mut memory = Memory::new(1);
            let mut plain = [None; 32];
            for (start, len, text, position, step, erase) in writes {
                let new = extent(start, len, text, position, step);
                if erase {
                    memory.erase(PageId(1), start, len);
                } else {
                    memory.write(PageId(1), new);
                }
                for row in start..start + len {
                    plain[row as usize] = (!erase).then(|| new.at(row));
                }
                for (row, &expected) in plain.iter().enumerate() {
                    let row = u32::try_from(row).unwrap();
                    prop_assert_eq!(memory.row(PageId(1), row), expected);
                }
                let extents = memory.page(PageId(1));
                prop_assert!(extents.windows(2).all(|pair| pair[0].end() <= pair[1].start));
                prop_assert!(extents.iter().all(|extent| extent.len > 0));
            }
        }
    }

    #[test]
    fn rows_of_steps_are_one_extent_and_know_the_tick_of_each() {
        let clock = StepClock::default();
        for tick in [10, 25, 27, 40, 55] {
            clock.step_ends(Tick(tick));
        }
        let mut memory = Memory::new(1).with_clock(clock);
        // Rank 0 of 2 stores every second token: by steps 0, 2 and 4.
        for (row, step) in [(0, 0), (1, 2), (2, 4)] {
            let stamp = extent(row, 1, 0, 6 + 2 * row, 2).stamp;
            memory.write(PageId(1), Extent::by_steps((row, 1), stamp, 2, step, 2));
        }
        assert_eq!(memory.page(PageId(1)).len(), 1);
        let held = |row| memory.row(PageId(1), row).map(|stamp| (stamp.position, stamp.written));
        let expected = [(6, 10), (8, 27), (10, 55)];
        for (row, (position, tick)) in (0..).zip(expected) {
            assert_eq!(held(row), Some((Tokens(position), Tick(tick))));
        }
        // A row of the next step does not follow, one that was copied neither.
        let stamp = extent(3, 1, 0, 12, 2).stamp;
        memory.write(PageId(1), Extent::by_steps((3, 1), stamp, 2, 3, 2));
        assert_eq!(memory.page(PageId(1)).len(), 2);
        let copied = memory.page(PageId(1))[0].copied(RequestId(4), Tick(60));
        memory.write(PageId(0), copied);
        let stamp = memory.row(PageId(0), 1).unwrap();
        assert_eq!((stamp.written, stamp.writer), (Tick(60), RequestId(4)));
    }

    #[test]
    fn memory_ends_behind_its_last_row() {
        // 4 pages of 64 rows and the first 16 of a fifth.
        let mut memory = Memory::of_rows(PageSize::new(64).unwrap(), 272);
        for page in [3, 4, 5] {
            memory.write(PageId(page), extent(10, 20, 0, 100, 1));
            memory.erase(PageId(page), 12, 1);
        }
        assert_eq!(memory.page(PageId(3)), [extent(10, 2, 0, 100, 1), extent(13, 17, 0, 103, 1)]);
        assert_eq!(memory.page(PageId(4)), [extent(10, 2, 0, 100, 1), extent(13, 3, 0, 103, 1)]);
        assert_eq!(memory.page(PageId(5)), []);
        assert_eq!(Memory::of_rows(PageSize::new(64).unwrap(), 0).page(PageId(0)), []);
    }

    #[test]
    fn a_page_filled_in_pieces_is_one_extent() {
        let mut memory = Memory::new(2);
        // Stale rows of an earlier owner are under it.
        memory.write(PageId(1), extent(0, 64, 9, 1_000, 1));
        for piece in 0..8 {
            memory.write(PageId(1), extent(piece * 8, 8, 0, 5 + piece * 64, 8));
        }
        assert_eq!(memory.page(PageId(1)), [extent(0, 64, 0, 5, 8)]);
        for row in 0..4 {
            memory.write(PageId(0), extent(row, 1, 0, row * 8, 1));
        }
        assert_eq!(memory.page(PageId(0)), [extent(0, 4, 0, 0, 8)]);
        // The last piece lies between the other two.
        for start in [0, 8, 4] {
            memory.write(PageId(2), extent(start, 4, 0, start, 1));
        }
        assert_eq!(memory.page(PageId(2)), [extent(0, 12, 0, 0, 1)]);
    }
}
