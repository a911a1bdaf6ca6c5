//! Eviction: which unprotected leaf of a prefix cache goes first.
//!
//! An [`EvictionPolicy`] keeps the leaves that may go, and names the next one when it is asked. It
//! hears of every use and every eviction, and sees size, depth, keys and clock, so that it can have
//! state of its own: queues, ghosts of what went, a clock. The seven policies of the real cache are
//! a plain [`Order`] of leaves by their [`Usage`], kept by [`Ordered`].

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::Anchor;
use crate::prompt::PageKey;
use crate::units::Pages;

/// A reading of a cache's own clock, which counts its uses. Signed, since two policies order by its
/// negative.
pub type LogicalTime = i64;

/// What a cache notes about the use of one of its nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// The last walk over the node.
    pub access: LogicalTime,
    /// When the node was made.
    pub creation: LogicalTime,
    /// Inserts that passed it.
    pub hits: u32,
    /// The highest priority of an insert that passed it.
    pub priority: i64,
    /// Pages of the longest prompt whose insert passed it.
    pub reach: Pages,
}

/// One node of the cache's tree: a stretch of consecutive pages of a prompt.
#[derive(Clone, Copy, Debug)]
pub struct Node<'a> {
    /// Which node it is; no other node, before or after, is ever this one. It changes its stretch
    /// when it is [split](EvictionPolicy::split).
    pub anchor: Anchor,
    /// Pages of a prompt before it.
    pub depth: Pages,
    /// The content of each of its pages. A key and the page's ordinal in a prompt (`depth` and the
    /// place in this list) together name a page's content, and that of all pages before it, for
    /// ever.
    pub keys: &'a [PageKey],
    /// How it was used.
    pub usage: Usage,
}

/// A policy of eviction. The cache tells it what may go and what is used, and asks what goes next.
pub trait EvictionPolicy: Send {
    /// The node can go from now on: it became a leaf, or its last lock ended.
    fn offer(&mut self, node: &Node<'_>);

    /// A node that was offered cannot go for now: it was locked, or a prompt goes on after it.
    fn withdraw(&mut self, node: &Node<'_>);

    /// A lookup or an insert passed the node, whose usage was `before`. `offered` says whether it
    /// can go.
    fn used(&mut self, before: &Usage, node: &Node<'_>, offered: bool);

    /// `upper` is new and took the first pages of `lower`, whose anchor and offer stay.
    fn split(&mut self, _upper: &Node<'_>, _lower: &Node<'_>) {}

    /// The node that goes next, of those that are offered; `None` only if there are none. The
    /// policy has to forget it as if it were withdrawn. `now` is the cache's clock, as in
    /// [`Usage`].
    fn victim(&mut self, now: LogicalTime) -> Option<Anchor>;

    /// The node that was named last has gone. This is the place to remember a ghost of it.
    fn evicted(&mut self, _node: &Node<'_>) {}

    /// Everything has gone at once, by a flush.
    fn clear(&mut self);
}

/// A policy without state: nodes in an order that depends on nothing but their use.
pub trait Order: Send {
    /// Where a node of this usage stands.
    fn standing(&self, usage: &Usage) -> Standing;
}

/// Evicts by an [`Order`]. Nodes that stand equal go in the order of their anchors.
#[derive(Debug)]
pub struct Ordered<O> {
    pub(super) order: O,
    pub(super) offered: BTreeSet<(Standing, Anchor)>,
}

impl<O: Order> Ordered<O> {
    /// With no node offered yet.
    pub fn new(order: O) -> Ordered<O> {
        Ordered { order, offered: BTreeSet::new() }
    }
}

impl<O: Order> EvictionPolicy for Ordered<O> {
    fn offer(&mut self, node: &Node<'_>) {
        self.offered.insert((self.order.standing(&node.usage), node.anchor));
    }

    fn withdraw(&mut self, node: &Node<'_>) {
        self.offered.remove(&(self.order.standing(&node.usage), node.anchor));
    }

    fn used(&mut self, before: &Usage, node: &Node<'_>, offered: bool) {
        let (old, new) = (self.order.standing(before), self.order.standing(&node.usage));
        if offered && old != new {
            self.offered.remove(&(old, node.anchor));
            self.offered.insert((new, node.anchor));
        }
    }

    fn victim(&mut self, _now: LogicalTime) -> Option<Anchor> {
        self.offered.pop_first().map(|(_, anchor)| anchor)
    }

    fn clear(&mut self) {
        self.offered.clear();
    }
}

/// The seven policies of the real radix cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Eviction {
    /// Least recently used first.
    #[default]
    Lru,
    /// Least often inserted first, then least recently used.
    Lfu,
    /// Oldest first.
    Fifo,
    /// Most recently used first.
    Mru,
    /// Youngest first.
    Filo,
    /// Lowest priority first, then least recently used.
    Priority,
    /// Nodes inserted once before those inserted again, each least recently used first.
    Slru,
}

/// Where a node stands in the order of eviction; the smallest goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Standing(pub i64, pub LogicalTime);

impl Eviction {
    /// Every policy.
    pub const ALL: [Eviction; 7] = [
        Eviction::Lru,
        Eviction::Lfu,
        Eviction::Fifo,
        Eviction::Mru,
        Eviction::Filo,
        Eviction::Priority,
        Eviction::Slru,
    ];
}

impl Order for Eviction {
    fn standing(&self, usage: &Usage) -> Standing {
        match self {
            Eviction::Lru => Standing(0, usage.access),
            Eviction::Lfu => Standing(i64::from(usage.hits), usage.access),
            Eviction::Fifo => Standing(0, usage.creation),
            Eviction::Mru => Standing(0, -usage.access),
            Eviction::Filo => Standing(0, -usage.creation),
            Eviction::Priority => Standing(usage.priority, usage.access),
            Eviction::Slru => Standing(i64::from(usage.hits >= 2), usage.access),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_policy_puts_its_own_victim_first() {
        let reach = Pages(1);
        let usage =
            |access, creation, hits, priority| Usage { access, creation, hits, priority, reach };
        let nodes = [
            usage(5, 1, 3, 2),
            usage(4, 2, 2, 0),
            usage(3, 3, 4, 1),
            usage(9, 4, 1, 3),
            usage(6, 8, 1, 0),
        ];
        let order = |policy: Eviction| {
            let mut order = [0, 1, 2, 3, 4];
            order.sort_by_key(|&index: &usize| policy.standing(&nodes[index]));
            order
        };
        assert_eq!(order(Eviction::Lru), [2, 1, 0, 4, 3]);
        assert_eq!(order(Eviction::Lfu), [4, 3, 1, 0, 2]);
        assert_eq!(order(Eviction::Fifo), [0, 1, 2, 3, 4]);
        assert_eq!(order(Eviction::Mru), [3, 4, 0, 1, 2]);
        assert_eq!(order(Eviction::Filo), [4, 3, 2, 1, 0]);
        assert_eq!(order(Eviction::Priority), [1, 4, 2, 0, 3]);
        assert_eq!(order(Eviction::Slru), [4, 3, 2, 1, 0]);
    }
}
