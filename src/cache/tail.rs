//! Tail-optimized eviction: `tlru` of `sglang` since 0.5.21, after arXiv 2510.15152.
//!
//! A conversation only has to keep so much of its history that computing the rest stays within a
//! budget; what lies behind that, up to `tail` tokens of its end, makes no difference to its
//! slowest requests and goes before anything else. The engine is given a threshold and an estimate
//! of the next prompt, of which only the difference counts; both it and this count in tokens, the
//! paper in blocks.

use std::collections::{BTreeMap, BTreeSet};

use super::Anchor;
use super::eviction::{EvictionPolicy, LogicalTime, Node, Usage};
use crate::units::{PageSize, Tokens};

/// Whether a node has to be kept, and when it was used: the smallest goes first.
type Standing = (bool, LogicalTime);

/// Nodes that the longest prompt through them can do without first, then least recently used.
#[derive(Debug)]
pub struct TailLru {
    tail: Tokens,
    page: PageSize,
    offered: BTreeSet<(Standing, Anchor)>,
    standings: BTreeMap<Anchor, Standing>,
}

impl TailLru {
    /// For pages of `page` rows, where the last `tail` tokens of a history need not be cached.
    pub fn new(tail: Tokens, page: PageSize) -> TailLru {
        TailLru { tail, page, offered: BTreeSet::new(), standings: BTreeMap::new() }
    }

    fn standing(&self, node: &Node<'_>) -> Standing {
        let behind = u64::from((node.usage.reach - node.depth).0) * u64::from(self.page.get());
        (behind > u64::from(self.tail.0), node.usage.access)
    }

    fn forget(&mut self, anchor: Anchor) -> bool {
        let standing = self.standings.remove(&anchor);
        standing.is_some_and(|standing| self.offered.remove(&(standing, anchor)))
    }
}

impl EvictionPolicy for TailLru {
    fn offer(&mut self, node: &Node<'_>) {
        let standing = self.standing(node);
        self.standings.insert(node.anchor, standing);
        self.offered.insert((standing, node.anchor));
    }

    fn withdraw(&mut self, node: &Node<'_>) {
        self.forget(node.anchor);
    }

    fn used(&mut self, _before: &Usage, node: &Node<'_>, offered: bool) {
        if offered && self.forget(node.anchor) {
            self.offer(node);
        }
    }

    fn split(&mut self, _upper: &Node<'_>, lower: &Node<'_>) {
        if self.forget(lower.anchor) {
            self.offer(lower);
        }
    }

    fn victim(&mut self, _now: LogicalTime) -> Option<Anchor> {
        let (_, anchor) = self.offered.pop_first()?;
        self.standings.remove(&anchor);
        Some(anchor)
    }

    fn clear(&mut self) {
        self.offered.clear();
        self.standings.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::behaviour::SplitStamp;
    use crate::cache::radix::RadixCache;
    use crate::cache::{Insertion, PrefixCache};
    use crate::prompt::PageKey;
    use crate::units::{PageId, Pages};

    /// A tree of pages of 4 rows with a tail of 6 tokens, and a way to insert keys under pages of
    /// the same numbers.
    fn tree() -> (RadixCache, fn(&mut RadixCache, &[u32])) {
        let page = PageSize::new(4).unwrap();
        let policy = Box::new(TailLru::new(Tokens(6), page));
        let insert: fn(&mut RadixCache, &[u32]) = |cache, numbers| {
            let keys: Vec<PageKey> = numbers.iter().copied().map(PageKey).collect();
            let pages: Vec<PageId> = numbers.iter().copied().map(PageId).collect();
            cache.insert(&keys, &pages, Insertion::default());
        };
        (RadixCache::new(policy, SplitStamp::Inherited), insert)
    }

    fn evicted(cache: &mut RadixCache, wanted: u32) -> Vec<u32> {
        let gone = cache.evict(Pages(wanted));
        gone.concat().iter().map(|page| page.0).collect()
    }

    #[test]
    fn the_end_of_a_history_goes_before_what_was_used_longer_ago() {
        let (mut cache, insert) = tree();
        insert(&mut cache, &[1, 2]);
        insert(&mut cache, &[5]);
        insert(&mut cache, &[5, 6]);
        // Before page 6 lie all but 4 tokens of its history, before the leaf of 1 and 2 none.
        assert_eq!(evicted(&mut cache, 1), [6]);
        // The history of 5 stays 8 tokens long, of which a tail of 6 may be missing.
        assert_eq!(evicted(&mut cache, 1), [1, 2]);
        assert_eq!(evicted(&mut cache, 1), [5]);
    }

    #[test]
    fn a_split_leaves_the_history_and_moves_what_lies_before_the_lower_node() {
        let (mut cache, insert) = tree();
        insert(&mut cache, &[1, 2, 3]);
        insert(&mut cache, &[9]);
        // One node of 12 tokens may not go first; its last page alone may, though used last.
        insert(&mut cache, &[1, 2, 4]);
        assert_eq!(evicted(&mut cache, 2), [9, 3]);
    }
}
