//! Eviction: which unprotected leaf of a prefix cache goes first.

use serde::{Deserialize, Serialize};

/// A reading of a cache's logical clock. Signed, since two policies order by its negative.
pub type Stamp = i64;

/// What a cache notes about the use of one of its nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// The last walk over the node.
    pub access: Stamp,
    /// When the node was made.
    pub creation: Stamp,
    /// Inserts that passed it.
    pub hits: u32,
    /// The highest priority of an insert that passed it.
    pub priority: i64,
}

/// A policy of eviction: it orders nodes by their use.
pub trait EvictionPolicy: Send {
    /// Where a node of this usage stands.
    fn standing(&self, usage: &Usage) -> Standing;
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
pub struct Standing(pub i64, pub Stamp);

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

impl EvictionPolicy for Eviction {
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
        let usage = |access, creation, hits, priority| Usage { access, creation, hits, priority };
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
