//! How far a prompt matches *inside* a cached page.
//!
//! A prefix cache in pages of V reports whole pages. Where a server reports a hit by a finer unit,
//! [`PartialIndex`] knows how far into the page after the last whole one some cached page agrees.
//! A page's part of its sequence is a few segments of constant chain, and an equal chain means an
//! equal history, so the index costs segments and never tokens.

use std::collections::{BTreeMap, BTreeSet};

use crate::prompt::{ChainId, Segment, Sequence};
use crate::units::{PageId, PageSize, Pages, Tokens};

/// The pages of one cache by what they hold, for each page ordinal of a sequence.
pub struct PartialIndex {
    page: PageSize,
    /// For each chain and page ordinal: up to which position a page holds the chain, and which
    /// page.
    ends: BTreeSet<(ChainId, Pages, Tokens, PageId)>,
    /// The entries of `ends` for each page, so that they can be removed with it.
    held: BTreeMap<PageId, (Pages, Vec<Segment>)>,
}

impl PartialIndex {
    /// An empty index of a cache whose pages hold `page` tokens each.
    pub fn new(page: PageSize) -> PartialIndex {
        PartialIndex { page, ends: BTreeSet::new(), held: BTreeMap::new() }
    }

    /// Notes that `page` is cached and holds the page of `sequence` with this ordinal. What it was
    /// noted for before is forgotten.
    pub fn add(&mut self, sequence: &Sequence, ordinal: Pages, page: PageId) {
        self.remove(page);
        let segments = self.segments(sequence, ordinal);
        for segment in &segments {
            self.ends.insert((segment.chain, ordinal, segment.end, page));
        }
        self.held.insert(page, (ordinal, segments));
    }

    /// Forgets `page`; nothing happens if it is not there.
    pub fn remove(&mut self, page: PageId) {
        let Some((ordinal, segments)) = self.held.remove(&page) else {
            return;
        };
        for segment in segments {
            self.ends.remove(&(segment.chain, ordinal, segment.end, page));
        }
    }

    /// The longest prefix of `sequence` that ends in the page of this ordinal, after its first
    /// position, and that a cached page holds; and one page that does. `None` where no page shares
    /// even the first position, or the sequence ends before it.
    pub fn reach(&self, sequence: &Sequence, ordinal: Pages) -> Option<(Tokens, PageId)> {
        let segments = self.segments(sequence, ordinal);
        segments.iter().rev().find_map(|&Segment { end, chain, .. }| {
            let ends = |from, to| {
                let last = (chain, ordinal, to, PageId(u32::MAX));
                self.ends.range((chain, ordinal, from, PageId(0))..=last)
            };
            // The page may go on in this chain where the prompt does not.
            let mut beyond = ends(end, Tokens(u32::MAX));
            let &(_, _, held, page) = beyond.next().or_else(|| ends(Tokens(0), end).next_back())?;
            Some((held.min(end), page))
        })
    }

    /// The segments of `sequence` in the page of this ordinal, cut to its end.
    fn segments(&self, sequence: &Sequence, ordinal: Pages) -> Vec<Segment> {
        let start = ordinal.tokens(self.page);
        let end = start + self.page.tokens();
        let mut cut = Vec::new();
        for segment in sequence.segments_from(start) {
            cut.push(Segment { end: segment.end.min(end), ..*segment });
            if segment.end >= end {
                break;
            }
        }
        cut
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::prompt::{Chains, ContentId, ContentRun};

    fn runs() -> impl Strategy<Value = Vec<ContentRun>> {
        let run = (0u64..2, 0u32..3, 1u32..6).prop_map(|(content, offset, len)| ContentRun {
            content: ContentId(content),
            offset: Tokens(offset),
            len: Tokens(len),
        });
        proptest::collection::vec(run, 0..6)
    }

    /// The tokens that `runs` stand for, one by one.
    fn tokens(runs: &[ContentRun]) -> Vec<(u64, u32)> {
        runs.iter()
            .flat_map(|run| (0..run.len.0).map(|i| (run.content.0, run.offset.0 + i)))
            .collect()
    }

    proptest! {
        #[test]
        fn a_reach_is_the_longest_common_prefix_that_ends_inside_the_page(
            cached in proptest::collection::vec((runs(), 0u32..12), 0..12),
            removed in proptest::collection::vec(0u32..12, 0..4),
            prompt in runs(),
            size in 1u32..7,
            ordinal in 0u32..3,
        ) {
            let size = PageSize::new(size).unwrap();
            let mut chains = Chains::default();
            let mut index = PartialIndex::new(size);
            // Every full page of each sequence is cached, on pages of its own; a page that is named
            // again changes hands.
            let mut pages: BTreeMap<PageId, (usize, Vec<(u64, u32)>)> = BTreeMap::new();
            for (runs, first) in &cached {
                let sequence = chains.sequence(0, runs.clone());
                for at in 0..sequence.len().pages_floor(size).0 {
                    let page = PageId(1 + first + at);
                    index.add(&sequence, Pages(at), page);
                    let mut held = tokens(runs);
                    held.truncate(((at + 1) * size.get()) as usize);
                    pages.insert(page, (at as usize, held));
                }
            }
            for page in removed.into_iter().map(PageId) {
                index.remove(page);
                pages.remove(&page);
            }

            let sequence = chains.sequence(0, prompt.clone());
            let prompt = tokens(&prompt);
            let common = |page: PageId| {
                let (at, held) = &pages[&page];
                let same = prompt.iter().zip(held).take_while(|(x, y)| x == y).count();
                (*at == ordinal as usize && same > at * size.get() as usize).then_some(same)
            };
            let longest = pages.keys().filter_map(|&page| common(page)).max();
            match index.reach(&sequence, Pages(ordinal)) {
                None => prop_assert_eq!(longest, None),
                Some((reach, page)) => {
                    prop_assert_eq!(Some(reach.0 as usize), longest);
                    prop_assert_eq!(common(page), longest);
                }
            }
        }
    }

    #[test]
    fn an_index_without_pages_keeps_nothing() {
        let mut chains = Chains::default();
        let sequence = chains.sequence(0, [ContentRun::whole(ContentId(1), Tokens(8))]);
        let mut index = PartialIndex::new(PageSize::new(4).unwrap());
        index.add(&sequence, Pages(1), PageId(3));
        index.remove(PageId(3));
        assert!(index.ends.is_empty() && index.held.is_empty());
    }
}
