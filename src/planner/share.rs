//! A share: the tokens of a piece that are laid out together, and where they go.
//!
//! A rank's own share is every N-th token, onto destination pages of P rows. The draft share is every
//! token, onto destination pages of V rows. Everything else is the same: source pages of P rows, the
//! k-th token of the share at the k-th destination index after the first. Rows are made block by
//! block, where a block ends with a page, so no token costs a division.

use crate::units::{PageId, Row};

use super::input::PlanInput;
use super::piece::PiecePlan;
use super::plan::{RowPairs, RowRun, RunPlan};

/// Source rows appended at once: two vector registers full, and what a page of 64 rows holds for
/// one of 8 ranks.
const LANES: usize = 8;

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
struct Block {
    start: u32,
    count: u64,
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
        let count = self.count();
        let src = spread(self.src_blocks(), self.stride, count);
        let dst = neighbours(self.dst_blocks(), count);
        assert!(
            src.len() as u64 == count && dst.len() as u64 == count,
            "the page lists hold a share that was not refused"
        );
        RowPairs { src, dst }
    }

    /// The compact form. The lists must hold the share.
    pub fn runs(&self) -> RunPlan {
        let mut plan = RunPlan::default();
        let mut dst_blocks = self.dst_blocks();
        let mut dst = Block { start: 0, count: 0 };
        for mut src in self.src_blocks() {
            while src.count > 0 {
                if dst.count == 0 {
                    dst = dst_blocks
                        .next()
                        .expect("the page lists hold a share that was not refused");
                }
                // At most the rows of one page, so 32 bits hold it.
                let len = src.count.min(dst.count) as u32;
                plan.push(RowRun {
                    src: Row(src.start),
                    src_step: self.stride,
                    dst: Row(dst.start),
                    len,
                });
                src.advance(len, self.stride);
                dst.advance(len, 1);
            }
        }
        plan
    }

    /// The share's rows in source pages, one block a page; empty where a page has none, as happens
    /// with more ranks than rows.
    fn src_blocks(&self) -> impl Iterator<Item = Block> {
        let (page_rows, stride) = (self.src_page, self.stride);
        // Of a page whose first own token is at `offset` < stride, so many are ours: one more where
        // the offset lies in the rest.
        let (whole, rest) = (page_rows / stride, page_rows % stride);
        let mut offset = self.first;
        let mut left = self.count();
        self.src.iter().map_while(move |page| {
            if left == 0 {
                return None;
            }
            let full = whole + u32::from(offset < rest);
            let block = Block {
                start: (page.0 * page_rows).wrapping_add(offset),
                count: u64::from(full).min(left),
            };
            left -= block.count;
            offset = offset + full * stride - page_rows;
            Some(block)
        })
    }

    /// The share's rows in destination pages, one block a page.
    fn dst_blocks(&self) -> impl Iterator<Item = Block> {
        let page_rows = u64::from(self.dst_page);
        let index = (self.start + u64::from(self.first)) / u64::from(self.stride);
        let mut offset = index % page_rows;
        let mut left = self.count();
        let pages = self.dst.iter().skip((index / page_rows) as usize);
        pages.map_while(move |page| {
            let count = (page_rows - offset).min(left);
            let block = (count > 0)
                .then(|| Block { start: page.0 * page_rows as u32 + offset as u32, count });
            left -= count;
            offset = 0;
            block
        })
    }
}

impl Block {
    /// Drops the first `len` rows.
    fn advance(&mut self, len: u32, step: u32) {
        self.start = self.start.wrapping_add(len.wrapping_mul(step));
        self.count -= u64::from(len);
    }
}

/// The rows of source blocks, `step` apart, `count` in all. A block has few rows, so they are
/// appended in groups of constant length and the surplus is cut off: that costs less than an exact
/// loop, whose end the processor mispredicts.
fn spread(blocks: impl Iterator<Item = Block>, step: u32, count: u64) -> Vec<Row> {
    let steps: [u32; LANES] = std::array::from_fn(|lane| step.wrapping_mul(lane as u32));
    let mut rows = Vec::with_capacity(count as usize + LANES);
    for block in blocks {
        let end = rows.len() + block.count as usize;
        let mut start = block.start;
        while rows.len() < end {
            rows.extend_from_slice(&steps.map(|ahead| Row(start.wrapping_add(ahead))));
            start = start.wrapping_add(step.wrapping_mul(LANES as u32));
        }
        rows.truncate(end);
    }
    rows
}

/// The rows of destination blocks, each as long as a page, `count` in all.
fn neighbours(blocks: impl Iterator<Item = Block>, count: u64) -> Vec<Row> {
    let mut rows = Vec::with_capacity(count as usize);
    for block in blocks {
        rows.extend((0..block.count as u32).map(|at| Row(block.start + at)));
    }
    rows
}
