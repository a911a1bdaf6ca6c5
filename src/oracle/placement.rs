//! Every row of a transfer against the definition.
//!
//! The definition, in the oracle's own words: position p of a sequence is rank p mod N's row number
//! p div N, which is row (p div N) mod P of the page at ordinal (p div N) div P of the request's
//! table. A row is right when it holds the KV of its position's token, and, beyond the cache's own
//! match, when it was written for this request. In draft KV, every rank keeps position p in row p
//! mod V of the page at ordinal p div V, with V = P·N.
//!
//! [`Transfer::judge`] works by extents; [`Transfer::fates`] is the same row by row, and a test
//! holds one against the other.

use crate::event::Write;
use crate::finding::Code;
use crate::memory::{Extent, Memory, Stamp};
use crate::prompt::Texts;
use crate::units::{PageId, Rank, RequestId, Tokens};

/// The striping as the oracle counts it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stripes {
    /// Rows of a physical page.
    pub(super) page: u32,
    /// Number of ranks.
    pub(super) ranks: u32,
    /// Whether every rank also keeps draft KV.
    pub(super) draft: bool,
}

impl Stripes {
    /// A rank's draft KV: all positions, one after the other, in pages of as many rows.
    fn of_draft(self) -> Stripes {
        Stripes { page: self.page_positions(), ranks: 1, draft: false }
    }

    /// How many ranks keep draft KV.
    fn drafts(self) -> usize {
        if self.draft { self.ranks as usize } else { 0 }
    }

    /// Positions of a page over all ranks.
    pub(super) fn page_positions(self) -> u32 {
        self.page * self.ranks
    }

    /// Pages that `length` positions need.
    pub(super) fn pages(self, length: Tokens) -> u32 {
        let whole = length.0 / self.page_positions();
        whole + u32::from(!length.0.is_multiple_of(self.page_positions()))
    }
}

/// What became of one position of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Its row holds its own KV.
    Right,
    /// Its row was never written for this request, or holds nothing.
    Missing,
    /// Its row holds KV of another position of the same request, which is this one.
    Shifted(Tokens),
    /// Its row holds KV of another request's token, written for this request.
    Foreign(RequestId),
}

/// What became of a stretch of positions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Verdict {
    /// Positions compared.
    pub(super) rows: u64,
    /// Wrong ones by fate: how many, and the first with what its row holds.
    pub(super) missing: Wrong,
    pub(super) shifted: Wrong,
    pub(super) foreign: Wrong,
}

/// Positions of one wrong fate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Wrong {
    pub(super) rows: u64,
    pub(super) first: Option<(Tokens, Option<Stamp>)>,
}

impl Verdict {
    fn add(&mut self, fate: Fate, position: Tokens, held: Option<Stamp>) {
        let wrong = match fate {
            Fate::Right => return,
            Fate::Missing => &mut self.missing,
            Fate::Shifted(_) => &mut self.shifted,
            Fate::Foreign(_) => &mut self.foreign,
        };
        wrong.rows += 1;
        // By lowest position, whichever rank is looked at first.
        if wrong.first.is_none_or(|(first, _)| position < first) {
            wrong.first = Some((position, held));
        }
    }

    /// The wrong fates under their codes.
    pub(super) fn by_code(&self) -> [(Code, &Wrong); 3] {
        [
            (Code::PlacedMissing, &self.missing),
            (Code::PlacedShifted, &self.shifted),
            (Code::PlacedForeign, &self.foreign),
        ]
    }
}

/// Local rows of a rank that were written, as ordered disjoint spans of row numbers.
#[derive(Clone, Debug, Default)]
struct Spans(Vec<(u32, u32)>);

impl Spans {
    fn contains(&self, row: u32) -> bool {
        self.reach(row) > 0
    }

    /// How many rows from `row` on are all written.
    fn reach(&self, row: u32) -> u32 {
        let index = self.0.partition_point(|span| span.1 <= row);
        self.0.get(index).filter(|span| span.0 <= row).map_or(0, |span| span.1 - row)
    }

    fn meets(&self, start: u32, end: u32) -> bool {
        let index = self.0.partition_point(|span| span.1 <= start);
        self.0.get(index).is_some_and(|span| span.0 < end)
    }

    fn add(&mut self, mut start: u32, mut end: u32) {
        match self.0.last_mut() {
            Some(last) if last.1 == start => last.1 = end,
            Some(last) if last.1 > start => {
                let from = self.0.partition_point(|span| span.1 < start);
                let to = self.0.partition_point(|span| span.0 <= end);
                if let Some(touched) = self.0.get(from..to).filter(|touched| !touched.is_empty()) {
                    start = start.min(touched[0].0);
                    end = end.max(touched[touched.len() - 1].1);
                }
                self.0.splice(from..to, [(start, end)]);
            }
            Some(_) | None => self.0.push((start, end)),
        }
    }
}

/// One transfer of a request, as the oracle follows it.
pub(super) struct Transfer {
    /// Which transfer of its request, from 0.
    pub(super) attempt: u32,
    /// The request whose transfer it is.
    request: RequestId,
    /// Positions that must be stored when it is complete.
    pub(super) length: Tokens,
    /// What decode told prefill that it has.
    pub(super) prefix: Tokens,
    /// Positions in the cache's own pages.
    pub(super) matched: Tokens,
    /// Whether the cache's own pages held what their key says when they were matched.
    pub(super) match_right: bool,
    /// Whether a prefill match held what its key says when it was made.
    pub(super) source_right: bool,
    pub(super) copies_queued: u32,
    pub(super) copies_landed: u32,
    pub(super) last_queued: bool,
    stripes: Stripes,
    written: Vec<Spans>,
    /// The same transfer as each rank's draft KV sees it.
    drafts: Vec<Transfer>,
}

impl Transfer {
    pub(super) fn new(
        stripes: Stripes,
        request: RequestId,
        length: Tokens,
        prefix: Tokens,
        matched: Tokens,
    ) -> Transfer {
        let draft = || Transfer::new(stripes.of_draft(), request, length, prefix, matched);
        Transfer {
            drafts: std::iter::repeat_with(draft).take(stripes.drafts()).collect(),
            attempt: 0,
            request,
            length,
            prefix,
            matched,
            match_right: true,
            source_right: true,
            copies_queued: 0,
            copies_landed: 0,
            last_queued: false,
            stripes,
            written: vec![Spans::default(); stripes.ranks as usize],
        }
    }

    /// Notes whether the cache's own pages held what their key says.
    pub(super) fn trust_match(&mut self, right: bool) {
        self.match_right = right;
        for draft in &mut self.drafts {
            draft.match_right = right;
        }
    }

    /// Notes draft rows as [`Transfer::wrote`] does others.
    pub(super) fn wrote_draft(
        &mut self,
        rank: Rank,
        ordinal: u32,
        write: &Write,
        memory: &[Memory],
        texts: &Texts,
    ) -> u64 {
        let memory = &memory[self.written.len() + rank.index()];
        self.drafts[rank.index()].wrote(Rank(0), ordinal, write, (memory, texts))
    }

    /// Judges positions `from..to` in the draft KV of each rank, whose memory stands behind the
    /// others in `memory`. None without draft KV.
    pub(super) fn judge_drafts(
        &self,
        table: &[PageId],
        (memory, texts): (&[Memory], &Texts),
        from: Tokens,
        to: Tokens,
    ) -> Vec<(Rank, Verdict)> {
        let memory = memory.get(self.written.len()..).unwrap_or_default();
        let ranks = (0..).map(Rank).zip(self.drafts.iter().zip(memory.chunks(1)));
        let judge = |draft: &Transfer, memory| draft.judge(table, (memory, texts), from, to);
        ranks.map(|(rank, (draft, memory))| (rank, judge(draft, memory))).collect()
    }

    /// Notes that `len` rows from `start` on of the page at `ordinal` were written on `rank`.
    /// Returns how many of them had been written before with something else.
    pub(super) fn wrote(
        &mut self,
        rank: Rank,
        ordinal: u32,
        write: &Write,
        (memory, texts): (&Memory, &Texts),
    ) -> u64 {
        let spans = &mut self.written[rank.index()];
        let first = ordinal * self.stripes.page + write.start;
        let mut twice = 0;
        if spans.meets(first, first + write.len) {
            let new = write.extent();
            for row in 0..write.len {
                let offset = write.start + row;
                let is_same = match (memory.row(write.page, offset), new) {
                    (Some(held), Some(new)) => held.is_same_kv(&new.at(offset), texts),
                    (held, new) => held.is_none() && new.is_none(),
                };
                twice += u64::from(spans.contains(first + row) && !is_same);
            }
        }
        spans.add(first, first + write.len);
        twice
    }

    /// Notes positions `from..to` as written for this request on every rank.
    pub(super) fn wrote_positions(&mut self, from: Tokens, to: Tokens) {
        for (rank, spans) in (0..).zip(&mut self.written) {
            // The first local row of a position not before `at`.
            let local = |at: Tokens| at.0.saturating_sub(rank).div_ceil(self.stripes.ranks);
            if local(from) < local(to) {
                spans.add(local(from), local(to));
            }
        }
        for draft in &mut self.drafts {
            draft.wrote_positions(from, to);
        }
    }

    /// Rows of `rank` that store positions of this transfer.
    pub(super) fn rows_of(&self, rank: Rank) -> u32 {
        self.length.0.saturating_sub(rank.0).div_ceil(self.stripes.ranks)
    }

    /// The number of a rank's first row in the page at `ordinal`.
    pub(super) fn first_row(&self, ordinal: u32) -> u32 {
        ordinal * self.stripes.page
    }

    /// Whether what a copy read is KV of this request's tokens throughout.
    pub(super) fn owns_content(&self, write: &Write, texts: &Texts) -> bool {
        write.content.is_some_and(|(stamp, step)| {
            // Where the last token's history is the own one, so is that of all before it.
            let last = Tokens(stamp.position.0 + (write.len - 1) * step);
            self.is_own(&Stamp { position: last, ..stamp }, texts)
        })
    }

    /// Whether what a copy writes on `rank`, in the page at `ordinal`, is in every row the KV of
    /// the position that the row stores.
    pub(super) fn belongs(&self, rank: Rank, ordinal: u32, write: &Write, texts: &Texts) -> bool {
        let Stripes { ranks, .. } = self.stripes;
        let position = Tokens((self.first_row(ordinal) + write.start) * ranks + rank.0);
        let in_step = |(stamp, step): (Stamp, u32)| {
            stamp.position == position && (write.len == 1 || step == ranks)
        };
        write.content.is_some_and(in_step) && self.owns_content(write, texts)
    }

    /// Whether `stamp` is KV of this request's text.
    fn is_own(&self, stamp: &Stamp, texts: &Texts) -> bool {
        stamp.text == self.request
            || texts.get(self.request).is_some_and(|text| stamp.is_of(text, texts))
    }

    /// What became of `position`, whose row holds `held`.
    fn fate(&self, position: Tokens, held: Option<Stamp>, texts: &Texts) -> Fate {
        let content_right =
            held.is_some_and(|held| held.position == position && self.is_own(&held, texts));
        let (rank, local) = (position.0 % self.stripes.ranks, position.0 / self.stripes.ranks);
        if position < self.matched {
            if content_right || !self.match_right {
                return Fate::Right;
            }
        } else if !self.written[rank as usize].contains(local) {
            return Fate::Missing;
        }
        match held {
            Some(_) if content_right => Fate::Right,
            Some(held) if self.is_own(&held, texts) => Fate::Shifted(held.position),
            Some(held) => Fate::Foreign(held.writer),
            None => Fate::Missing,
        }
    }

    /// What became of each position that the complete transfer stores in `table`, from 0 on.
    pub(super) fn fates(
        &self,
        table: &[PageId],
        (memory, texts): (&[Memory], &Texts),
    ) -> Vec<Fate> {
        let Stripes { page, ranks, .. } = self.stripes;
        let fate = |position: u32| {
            let (rank, local) = (position % ranks, position / ranks);
            let held = table
                .get((local / page) as usize)
                .and_then(|&id| memory[rank as usize].row(id, local % page));
            self.fate(Tokens(position), held, texts)
        };
        (0..self.length.0).map(fate).collect()
    }

    /// Judges positions `from..to` of the sequence stored in `table`, `memory` beginning with that
    /// of each rank. A page that the table lacks holds nothing.
    pub(super) fn judge(
        &self,
        table: &[PageId],
        (memory, texts): (&[Memory], &Texts),
        from: Tokens,
        to: Tokens,
    ) -> Verdict {
        let mut verdict = Verdict::default();
        let positions = self.stripes.page_positions();
        for ordinal in from.0 / positions..self.stripes.pages(to) {
            let page = table.get(ordinal as usize).copied();
            let is_whole = from.0 <= ordinal * positions && (ordinal + 1) * positions <= to.0;
            if is_whole && page.is_some_and(|page| self.is_page_right(page, ordinal, memory, texts))
            {
                verdict.rows += u64::from(positions);
                continue;
            }
            for (rank, memory) in (0..self.stripes.ranks).zip(memory) {
                let place = (Rank(rank), ordinal);
                self.judge_page(page, (memory, texts), place, from, to, &mut verdict);
            }
        }
        verdict
    }

    /// Whether every rank's rows of the whole virtual page at `ordinal` are right, each rank's as
    /// one extent. False proves nothing.
    fn is_page_right(&self, page: PageId, ordinal: u32, memory: &[Memory], texts: &Texts) -> bool {
        let Stripes { page: rows, ranks, .. } = self.stripes;
        let first = Tokens(ordinal * self.stripes.page_positions());
        let last = first + Tokens(self.stripes.page_positions() - 1);
        // Pages of one text on all ranks need one look at its history.
        let Some([extent]) = memory.first().map(|memory| memory.page(page)) else { return false };
        let text = extent.stamp.text;
        if !self.is_own(&Stamp { position: last, ..extent.stamp }, texts) {
            return false;
        }
        // The match ends with a page, so a page lies before it or behind it as a whole.
        let is_matched = first < self.matched;
        let row = self.first_row(ordinal);
        let is_right = |(position, (memory, written)): (u32, (&Memory, &Spans))| {
            let [extent] = memory.page(page) else { return false };
            let whole = extent.start == 0
                && extent.len == rows
                && (rows == 1 || extent.step == ranks)
                && extent.stamp.position.0 == position
                && extent.stamp.text == text;
            whole && (is_matched || written.reach(row) >= rows)
        };
        memory.len() >= ranks as usize
            && (first.0..).zip(memory.iter().zip(&self.written)).all(is_right)
    }

    /// Judges the rows of one physical page that store positions of `from..to`.
    fn judge_page(
        &self,
        held: Option<PageId>,
        (memory, texts): (&Memory, &Texts),
        (rank, ordinal): (Rank, u32),
        from: Tokens,
        to: Tokens,
        verdict: &mut Verdict,
    ) {
        let Stripes { page, ranks, .. } = self.stripes;
        let first = ordinal * page;
        let position = |offset: u32| Tokens((first + offset) * ranks + rank.0);
        let offset_of = |at: Tokens| {
            at.0.saturating_sub(rank.0).div_ceil(ranks).saturating_sub(first).min(page)
        };
        let (mut offset, end) = (offset_of(from), offset_of(to));
        verdict.rows += u64::from(end.saturating_sub(offset));
        let extents = held.map_or(&[][..], |page| memory.page(page));
        for extent in extents {
            while offset < end.min(extent.start) {
                verdict.add(self.fate(position(offset), None, texts), position(offset), None);
                offset += 1;
            }
            let Some(extent) = extent.within(offset, end) else {
                continue;
            };
            offset += self.right_rows(&extent, position(offset), texts);
            while offset < extent.end() {
                let held = held.and_then(|page| memory.row(page, offset));
                verdict.add(self.fate(position(offset), held, texts), position(offset), held);
                offset += 1;
            }
        }
        while offset < end {
            verdict.add(self.fate(position(offset), None, texts), position(offset), None);
            offset += 1;
        }
    }

    /// How many rows from the start of `extent`, the first of which stores `position`, are right by
    /// the extent's own constants: a lower bound, without a look at single rows.
    fn right_rows(&self, extent: &Extent, position: Tokens, texts: &Texts) -> u32 {
        let Stripes { ranks, .. } = self.stripes;
        let in_step = extent.len == 1 || extent.step == ranks;
        if !in_step || extent.stamp.position != position {
            return 0;
        }
        if !self.is_own(&extent.at(extent.end() - 1), texts) {
            return 0;
        }
        // The match ends with a page, so a page lies before it or behind it as a whole.
        let of_request = if position < self.matched {
            extent.len
        } else {
            self.written[(position.0 % ranks) as usize].reach(position.0 / ranks)
        };
        extent.len.min(of_request)
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use proptest::prelude::*;

    use super::*;
    use crate::layout::Layout;
    use crate::prompt::{Chains, ContentId, ContentRun};
    use crate::units::Tick;

    const ME: RequestId = RequestId(7);

    /// Rows of [`ME`]'s text, or of another's.
    fn write(page: u32, start: u32, len: u32, text: RequestId, position: u32, step: u32) -> Write {
        let stamp = Stamp { text, position: Tokens(position), written: Tick(1), writer: ME };
        Write { page: PageId(page), start, len, content: Some((stamp, step)) }
    }

    /// [`ME`]'s text, of one content.
    fn plain(content: u64, len: u32) -> Texts {
        let run = ContentRun::whole(ContentId(content), Tokens(len));
        let mut texts = Texts::default();
        texts.insert(ME, Rc::new(Chains::default().sequence(0, [run])));
        texts
    }

    proptest! {
        /// The law that ties the oracle's arithmetic to the simulation's.
        #[test]
        fn the_definition_agrees_with_the_layout(
            page in 1u32..9, ranks in 1u32..9, p in 0u32..400,
        ) {
            let layout = Layout::striped(page, ranks).unwrap();
            let stripes = Stripes { page, ranks, draft: false };
            prop_assert_eq!(layout.owner(Tokens(p)).0, p % ranks);
            prop_assert_eq!(layout.local_index(Tokens(p)), p / ranks);
            prop_assert_eq!(layout.pages_needed(Tokens(p)).0, stripes.pages(Tokens(p)));
        }

        #[test]
        fn judging_by_extents_equals_judging_row_by_row(
            page in 1u32..5, ranks in 1u32..4, runs in proptest::collection::vec(1u32..12, 1..4),
            matched_pages in 0u32..2, match_right: bool, from in 0u32..30,
            writes in proptest::collection::vec(
                (0u32..4, 0u32..3, 0u32..4, 1u32..4, 0u32..5, 0u32..40, 1u32..4, any::<bool>(),
                 any::<bool>()),
                0..40,
            ),
        ) {
            let mut chains = Chains::default();
            let whole = |(id, &len)| ContentRun::whole(ContentId(id), Tokens(len));
            let own = (0..).zip(&runs).map(whole);
            let text = Rc::new(chains.sequence(0, own.clone()));
            let mut texts = Texts::default();
            texts.insert(ME, Rc::clone(&text));
            // Others have the first runs in common with it, from none to all.
            for (other, shared) in (0..5).zip(0..) {
                let behind = ContentRun::whole(ContentId(99), Tokens(200));
                let runs = own.clone().take(shared).chain([behind]);
                texts.insert(RequestId(other), Rc::new(chains.sequence(0, runs)));
            }
            let stripes = Stripes { page, ranks, draft: false };
            let (length, v) = (text.len(), page * ranks);
            let table: Vec<PageId> = (1..4).map(PageId).collect();
            let length = length.min(Tokens(v * 3));
            let matched = Tokens(matched_pages * v).min(length);
            let mut transfer =
                Transfer::new(stripes, ME, length, matched, matched);
            transfer.match_right = match_right;
            let mut memory: Vec<_> = (0..ranks).map(|_| Memory::new(4)).collect();
            for (rank, ordinal, start, len, other, position, step, right, told) in writes {
                let (rank, start) = (rank % ranks, start % page);
                let len = len.min(page - start);
                let home = (ordinal * page + start) * ranks + rank;
                let other = RequestId(other);
                let mut write = write(ordinal + 1, start, len, other, position, step);
                let last = home + (len - 1) * ranks;
                if right && texts.chain_at(other, Tokens(last)).is_some() {
                    let whose = if last < text.len().0 { ME } else { other };
                    let stamp = Stamp {
                        text: whose,
                        position: Tokens(home),
                        written: Tick(1),
                        writer: ME,
                    };
                    write.content = Some((stamp, ranks));
                }
                if told {
                    let shown = (&memory[rank as usize], &texts);
                    transfer.wrote(Rank(rank), ordinal, &write, shown);
                } else if let Some((stamp, _)) = &mut write.content {
                    stamp.writer = RequestId(8);
                }
                memory[rank as usize].write(write.page, write.extent().unwrap());
            }
            let from = Tokens(from).min(length);
            let mut by_row = Verdict::default();
            let fates = transfer.fates(&table, (&memory, &texts));
            for (position, fate) in (0..).map(Tokens).zip(fates).skip(from.0 as usize) {
                let (rank, local) = (position.0 % ranks, position.0 / ranks);
                let id = table[(local / page) as usize];
                by_row.rows += 1;
                by_row.add(fate, position, memory[rank as usize].row(id, local % page));
            }
            prop_assert_eq!(transfer.judge(&table, (&memory, &texts), from, length), by_row);
        }

        #[test]
        fn spans_remember_every_row(adds in proptest::collection::vec((0u32..30, 1u32..6), 0..20)) {
            let mut spans = Spans::default();
            let mut plain = [false; 40];
            for (start, len) in adds {
                let meets = (start..start + len).any(|row| plain[row as usize]);
                prop_assert_eq!(spans.meets(start, start + len), meets);
                spans.add(start, start + len);
                plain[start as usize..(start + len) as usize].fill(true);
                for row in 0..40 {
                    prop_assert_eq!(spans.contains(row), plain[row as usize]);
                }
            }
        }
    }

    #[test]
    fn rows_written_again_count_where_they_change() {
        let texts = plain(1, 8);
        let stripes = Stripes { page: 4, ranks: 1, draft: false };
        let none = Tokens(0);
        let mut transfer = Transfer::new(stripes, ME, Tokens(8), none, none);
        let mut memory = Memory::new(2);
        let mut again = |start, len, position| {
            let write = write(1, start, len, ME, position, 1);
            let twice = transfer.wrote(Rank(0), 0, &write, (&memory, &texts));
            memory.write(write.page, write.extent().unwrap());
            twice
        };
        assert_eq!(again(0, 2, 0), 0);
        assert_eq!(again(0, 4, 0), 0, "the same again, and new rows");
        assert_eq!(again(1, 3, 2), 3, "each row with the next position");
    }

    #[test]
    fn one_flipped_stamp_is_found() {
        let texts = plain(1, 16);
        let stripes = Stripes { page: 4, ranks: 2, draft: false };
        let none = Tokens(0);
        let mut transfer = Transfer::new(stripes, ME, Tokens(16), none, none);
        let mut memory = vec![Memory::new(2), Memory::new(2)];
        let table = [PageId(1), PageId(2)];
        for rank in 0..2 {
            for ordinal in 0..2 {
                let position = ordinal * 8 + rank;
                let write = write(ordinal + 1, 0, 4, ME, position, 2);
                transfer.wrote(Rank(rank), ordinal, &write, (&memory[rank as usize], &texts));
                memory[rank as usize].write(write.page, write.extent().unwrap());
            }
        }
        let clean = Verdict { rows: 16, ..Verdict::default() };
        assert_eq!(transfer.judge(&table, (&memory, &texts), none, Tokens(16)), clean);
        let mut flipped = memory[1].row(PageId(2), 2).unwrap();
        flipped.position = Tokens(3);
        memory[1].write(PageId(2), Extent::new(2, 1, flipped, 1));
        let verdict = transfer.judge(&table, (&memory, &texts), none, Tokens(16));
        assert_eq!(verdict.shifted.first, Some((Tokens(13), Some(flipped))));
        assert_eq!((verdict.missing.rows, verdict.shifted.rows, verdict.foreign.rows), (0, 1, 0));
    }
}
