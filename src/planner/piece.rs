//! A piece laid out for all ranks at once.
//!
//! The ranks' shares of a piece differ in their first token only: rank by rank they take every N-th
//! source row, and all of them fill the same rows of the same destination pages. So the piece is
//! laid out once, as stretches of source rows and a list of destination pages, and a rank's share
//! is read off it. [`PiecePlan::runs`] gives the share in the form that a planner gives for one
//! rank, and a law holds both together.

use super::descriptors::DescriptorCount;
use super::plan::{RowRun, RunPlan};
use crate::units::{PageId, PageSize, Rank, Row, Tokens};

/// Neighbouring source rows of consecutive tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceStretch {
    /// The first token's row.
    pub row: Row,
    /// Tokens, at least 1.
    pub len: u32,
}

/// The plan of one piece on every rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PiecePlan {
    /// P.
    page: PageSize,
    /// N.
    ranks: u32,
    /// The rank of the piece's first token.
    phase: u32,
    /// Tokens of the piece.
    tokens: u32,
    /// Source rows of all tokens, in order; no two stretches could be one.
    source: Vec<SourceStretch>,
    /// Destination pages from the one that the first token is stored in.
    pages: Vec<PageId>,
    /// Positions before the first token in that page, over all ranks.
    before: u32,
    /// Whether a rank's tokens on both sides of a jump in the source can be in neighbouring rows.
    may_adjoin: bool,
}

/// A rank's tokens in a piece, and where it stores them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankShare<'a> {
    /// The first of its tokens, counted from the piece's start.
    pub first: u32,
    /// How many it has, each N tokens after the one before.
    pub count: u32,
    /// The pages that it writes, in order.
    pub pages: &'a [PageId],
    /// The row of the first page that its first token is stored in.
    pub offset: u32,
}

impl PiecePlan {
    /// Lays out `tokens` tokens in pages of `page` rows: the first is owned by rank `phase` of
    /// `ranks`, and `start` positions of the destination's list lie before it. The lists must hold
    /// them.
    pub(super) fn new(
        page: PageSize,
        (ranks, phase): (u32, u32),
        (start, tokens): (u64, u32),
        source_pages: &[PageId],
        target_pages: &[PageId],
    ) -> PiecePlan {
        let source = stretches(page, tokens, source_pages);
        let positions = u64::from(page.get()) * u64::from(ranks);
        let (first, end) = (start / positions, (start + u64::from(tokens)).div_ceil(positions));
        let pages = match tokens {
            0 => Vec::new(),
            _ => target_pages[first as usize..end as usize].to_vec(),
        };
        PiecePlan {
            page,
            ranks,
            phase,
            tokens,
            may_adjoin: may_adjoin(&source, ranks),
            source,
            pages,
            before: (start % positions) as u32,
        }
    }

    /// N.
    pub fn ranks(&self) -> u32 {
        self.ranks
    }

    /// P.
    pub fn page(&self) -> PageSize {
        self.page
    }

    /// The source rows of all tokens, in order.
    pub fn source(&self) -> &[SourceStretch] {
        &self.source
    }

    /// What `rank` has of the piece.
    pub fn share(&self, rank: Rank) -> RankShare<'_> {
        let behind = rank.0 < self.phase;
        let first = rank.0 + if behind { self.ranks } else { 0 } - self.phase;
        let count = self.tokens.saturating_sub(first).div_ceil(self.ranks);
        let row = (self.before + first) / self.ranks;
        let (skipped, offset) = (row / self.page.get(), row % self.page.get());
        let pages = (offset + count).div_ceil(self.page.get()) as usize;
        let pages = match count {
            0 => &[],
            _ => &self.pages[skipped as usize..][..pages],
        };
        RankShare { first, count, pages, offset }
    }

    /// The descriptors of a rank's share.
    pub fn descriptors(&self, rank: Rank) -> DescriptorCount {
        if self.may_adjoin {
            return DescriptorCount::of_runs(&self.runs(rank));
        }
        let RankShare { count, pages, .. } = self.share(rank);
        let jumps = pages.windows(2).filter(|pair| pair[0].0 + 1 != pair[1].0).count() as u64;
        let packed = if count == 0 { 0 } else { 1 + jumps };
        DescriptorCount { unpacked: u64::from(count), packed }
    }

    /// A rank's share as runs.
    pub fn runs(&self, rank: Rank) -> RunPlan {
        let share = self.share(rank);
        let mut plan = RunPlan::default();
        let mut before = 0;
        let mut token = share.first;
        let mut at = share.offset;
        for stretch in &self.source {
            let end = before + stretch.len;
            while token < end {
                let (page, offset) = (at / self.page.get(), at % self.page.get());
                let len = (end - token).div_ceil(self.ranks).min(self.page.get() - offset);
                plan.push(RowRun {
                    src: Row(stretch.row.0 + (token - before)),
                    src_step: self.ranks,
                    dst: share.pages[page as usize].row(self.page, offset),
                    len,
                });
                token = token.saturating_add(len * self.ranks);
                at += len;
            }
            before = end;
        }
        plan
    }
}

/// The rows of `tokens` tokens in `pages`, neighbours joined.
fn stretches(page: PageSize, tokens: u32, pages: &[PageId]) -> Vec<SourceStretch> {
    let mut source: Vec<SourceStretch> = Vec::new();
    let mut left = tokens;
    for id in &pages[..Tokens(tokens).pages_ceil(page).index()] {
        let len = page.get().min(left);
        left -= len;
        let row = id.row(page, 0);
        match source.last_mut() {
            Some(last) if last.row.0.checked_add(last.len) == Some(row.0) => last.len += len,
            _ => source.push(SourceStretch { row, len }),
        }
    }
    source
}

/// Whether a token and the one N behind it can be in neighbouring rows: always for a single rank,
/// else only where a stretch between them is so short that a rank skips it. Across a single jump
/// they cannot: the rows in between would stand on both sides of it, and a source page is listed
/// once.
fn may_adjoin(source: &[SourceStretch], ranks: u32) -> bool {
    let between = source.get(1..source.len().saturating_sub(1)).unwrap_or_default();
    ranks == 1 || between.iter().any(|stretch| stretch.len < ranks)
}
