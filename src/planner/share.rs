//! A share: the tokens of a piece that are laid out together, and where they go.
//!
//! A rank's own share is every N-th token, onto destination pages of P rows. The draft share is
//! every token, onto destination pages of V rows. Everything else is the same: source pages of P
//! rows, the k-th token of the share at the k-th destination index after the first. Rows are made
//! block by block, where a block ends with a page, so no token costs a division.

use crate::units::{PageId, Row};

use super::input::PlanInput;
use super::piece::PiecePlan;
use super::plan::{RowPairs, RowRun, RunPlan};

/// Tokens `first`, `first + stride`, … below `tokens`, counted from the piece's start.
pub struct Share<'a> {
    src: &'a [PageId],
    dst: &'a [PageId],
    /// Rows of a source page, P.
    src_page: u32,
    /// Rows of a destination page: P, or V for draft rows.
    dst_page: u32,
    stride: u32,
    first: u32,
    /// The piece's start, counted from the decode side's prefix.
    start: u64,
    tokens: u64,
}

/// `count` rows of one page from `start` on, as far apart as their list says. The start of an empty
/// block means nothing, and can have wrapped.
#[derive(Default)]
struct Block {
    start: u32,
    count: u32,
}

impl<'a> Share<'a> {
    /// The tokens that the input's rank stores.
    pub fn target(input: &'a PlanInput<'_>) -> Share<'a> {
        let layout = input.layout();
        let prefix = u64::from(input.piece().decode_prefix_len.0);
        let every = Share::draft(input);
        // Within 32 bits, as a valid input's position is.
        let phase = (prefix + every.start) as u32 % layout.ranks();
        let behind = input.rank().0 < phase;
        Share {
            dst_page: every.src_page,
            stride: layout.ranks(),
            first: input.rank().0 + if behind { layout.ranks() } else { 0 } - phase,
            ..every
        }
    }

    /// All tokens, as every rank keeps them for the draft model.
    pub fn draft(input: &'a PlanInput<'_>) -> Share<'a> {
        let page = input.layout().page().get();
        Share {
            src: input.src_pages(),
            dst: input.dst_pages(),
            src_page: page,
            dst_page: input.layout().virtual_page().get(),
            stride: 1,
            first: 0,
            start: u64::from(input.piece().src_page_offset.0) * u64::from(page),
            tokens: u64::try_from(input.tokens()).unwrap_or(0),
        }
    }

    /// The shares of all ranks at once, which the lists must hold.
    pub fn piece(input: &PlanInput<'_>) -> PiecePlan {
        let layout = input.layout();
        let every = Share::draft(input);
        let prefix = u64::from(input.piece().decode_prefix_len.0);
        // Within 32 bits, as a valid input's position is.
        let phase = (prefix + every.start) as u32 % layout.ranks();
        let tokens = every.tokens as u32;
        PiecePlan::new(
            layout.page(),
            (layout.ranks(), phase),
            (every.start, tokens),
            input.src_pages(),
            input.dst_pages(),
        )
    }

    /// Tokens of the share.
    pub fn count(&self) -> u64 {
        let past = self.tokens.saturating_sub(u64::from(self.first));
        past.div_ceil(u64::from(self.stride))
    }

    /// The share's first token whose source page is not in the list.
    pub fn first_past_source(&self) -> Option<u64> {
        self.first_from(self.src.len() as u64 * u64::from(self.src_page))
    }

    /// The share's first token whose destination page is not in the list.
    pub fn first_past_destination(&self) -> Option<u64> {
        let held = self.dst.len() as u64 * self.positions_of_dst_page();
        self.first_from(held.saturating_sub(self.start))
    }

    /// The share's last token.
    pub fn last(&self) -> Option<u64> {
        let steps = self.count().checked_sub(1)?;
        Some(u64::from(self.first) + steps * u64::from(self.stride))
    }

    /// The ordinal of a token's source page.
    pub fn src_ordinal(&self, token: u64) -> u64 {
        token / u64::from(self.src_page)
    }

    /// The ordinal of a token's destination page.
    pub fn dst_ordinal(&self, token: u64) -> u64 {
        (self.start + token) / self.positions_of_dst_page()
    }

    /// V for either share: P rows of every N-th position, or V rows of every one.
    fn positions_of_dst_page(&self) -> u64 {
        u64::from(self.stride) * u64::from(self.dst_page)
    }

    /// The share's first token at or after `token`.
    fn first_from(&self, token: u64) -> Option<u64> {
        if token >= self.tokens {
            return None;
        }
        let (first, stride) = (u64::from(self.first), u64::from(self.stride));
        let steps = token.saturating_sub(first).div_ceil(stride);
        Some(first + steps * stride).filter(|&found| found < self.tokens)
    }

    /// The long form. The lists must hold the share.
    pub fn rows(&self) -> RowPairs {
        let count = self.count() as usize;
        let (src, dst) = (self.src_rows(count), self.dst_rows(count));
        assert!(
            src.len() == count && dst.len() == count,
            "the page lists hold a share that was not refused"
        );
        RowPairs { src, dst }
    }

    /// Whole pages up to that of the last token, whose length nothing else decides, then the rest.
    fn src_rows(&self, count: usize) -> Vec<Row> {
        let step = self.stride;
        let mut rows = Vec::with_capacity(count);
        let whole = self.last().map_or(0, |last| self.src_ordinal(last) as usize);
        let mut blocks = self.src_blocks();
        for Block { start, count } in blocks.by_ref().take(whole) {
            rows.extend((0..count).map(|at| Row(start + at * step)));
        }
        if let Some(Block { start, count: held }) = blocks.next() {
            // At most the rows of the block, so 32 bits hold it.
            let rest = (count - rows.len()).min(held as usize) as u32;
            rows.extend((0..rest).map(|at| Row(start + at * step)));
        }
        rows
    }

    fn dst_rows(&self, count: usize) -> Vec<Row> {
        let mut rows = Vec::with_capacity(count);
        for Block { start, count: here } in self.dst_blocks() {
            rows.extend((0..here).map(|at| Row(start + at)));
        }
        rows
    }

    /// The compact form. The lists must hold the share.
    pub fn runs(&self) -> RunPlan {
        let mut plan = RunPlan::default();
        let (mut sources, mut targets) = (self.src_blocks(), self.dst_blocks());
        let (mut src, mut dst) = (Block::default(), Block::default());
        let mut left = self.count();
        while left > 0 {
            let held = "the page lists hold a share that was not refused";
            while src.count == 0 {
                src = sources.next().expect(held);
            }
            if dst.count == 0 {
                dst = targets.next().expect(held);
            }
            // The last source block can have more than is left, the destination's cannot.
            let len = src.count.min(dst.count);
            plan.push(RowRun {
                src: Row(src.start),
                src_step: self.stride,
                dst: Row(dst.start),
                len,
            });
            src.advance(len, self.stride);
            dst.advance(len, 1);
            left -= u64::from(len);
        }
        plan
    }

    /// The share's rows in source pages, one block a page, to the end of the list and of each page,
    /// however many tokens the piece has; empty where a page has none, as happens with more ranks
    /// than rows.
    fn src_blocks(&self) -> impl Iterator<Item = Block> {
        let (page_rows, stride) = (self.src_page, self.stride);
        // Of a page whose first own token is at `offset`, so many are ours: one more where the
        // offset lies in the rest.
        let (whole, rest) = (page_rows / stride, page_rows % stride);
        let mut offset = self.first;
        self.src.iter().map(move |page| {
            let start = (page.0 * page_rows).wrapping_add(offset);
            let mut count = whole;
            // Where N divides P all pages are alike, and none waits for the offset of the one
            // before.
            if rest > 0 {
                count += u32::from(offset < rest);
                offset = offset + count * stride - page_rows;
            }
            Block { start, count }
        })
    }

    /// The share's rows in destination pages, one block a page, none empty.
    fn dst_blocks(&self) -> impl Iterator<Item = Block> {
        let page_rows = self.dst_page;
        let index = (self.start + u64::from(self.first)) / u64::from(self.stride);
        let mut offset = (index % u64::from(page_rows)) as u32;
        let mut left = self.count();
        let pages = self.dst.iter().skip((index / u64::from(page_rows)) as usize);
        pages.map_while(move |page| {
            // At most the rows of one page, so 32 bits hold it.
            let count = u64::from(page_rows - offset).min(left) as u32;
            let start = page.0 * page_rows + offset;
            left -= u64::from(count);
            offset = 0;
            (count > 0).then_some(Block { start, count })
        })
    }
}

impl Block {
    /// Drops the first `len` rows.
    fn advance(&mut self, len: u32, step: u32) {
        self.start = self.start.wrapping_add(len.wrapping_mul(step));
        self.count -= len;
    }
}
