use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use proptest::prelude::*;

use super::*;
use crate::behaviour::SplitStamp;
use crate::cache::eviction::{Eviction, Order, Ordered};
use crate::cache::tests::{assert_cleared, operations};
use crate::reference::prefix_cache::{Case, Dropping, Naming, check};

/// A policy that a test keeps a second handle to.
#[derive(Clone)]
struct Shared(Arc<Mutex<Ordered<Eviction>>>);

impl Shared {
    fn new(policy: Eviction) -> Shared {
        Shared(Arc::new(Mutex::new(Ordered::new(policy))))
    }
}

impl EvictionPolicy for Shared {
    fn offer(&mut self, node: &eviction::Node<'_>) {
        self.0.lock().unwrap().offer(node);
    }

    fn withdraw(&mut self, node: &eviction::Node<'_>) {
        self.0.lock().unwrap().withdraw(node);
    }

    fn used(&mut self, before: &Usage, node: &eviction::Node<'_>, offered: bool) {
        self.0.lock().unwrap().used(before, node, offered);
    }

    fn victim(&mut self, now: LogicalTime) -> Option<Anchor> {
        self.0.lock().unwrap().victim(now)
    }

    fn clear(&mut self) {
        self.0.lock().unwrap().clear();
    }
}

/// Everything that the tree and its policy keep twice, computed again from the nodes alone.
fn assert_whole(cache: &RadixCache, policy: &Shared) {
    let policy = policy.0.lock().unwrap();
    let mut leaves = BTreeSet::new();
    let (mut evictable, mut protected) = (Pages(0), Pages(0));
    let mut reached = 0;
    let mut open = vec![ROOT];
    while let Some(slot) = open.pop() {
        let node = cache.node(slot);
        reached += 1;
        let below: u32 = node.children.values().map(|&c| cache.node(c).locks).sum();
        for (key, &child) in &node.children {
            assert_eq!(cache.node(child).parent, slot);
            assert_eq!(cache.node(child).keys[0], *key);
            open.push(child);
        }
        if slot == ROOT {
            continue;
        }
        assert_eq!(node.keys.len(), node.pages.len());
        let above = cache.node(node.parent);
        assert_eq!(node.depth, above.depth + Pages::of(&above.pages));
        assert_eq!(node.locks, node.own_locks + below, "node {slot}");
        if node.locks == 0 {
            evictable += Pages::of(&node.pages);
        } else {
            protected += Pages::of(&node.pages);
        }
        if node.locks == 0 && node.children.is_empty() {
            leaves.insert((policy.order.standing(&node.usage), node.view(slot).anchor));
        }
    }
    assert_eq!(reached + cache.vacant.len(), cache.nodes.len());
    assert_eq!(policy.offered, leaves);
    assert_eq!((cache.evictable, cache.protected), (evictable, protected));
}

fn keys(keys: &[u32]) -> Vec<PageKey> {
    keys.iter().copied().map(PageKey).collect()
}

fn pages(pages: &[u32]) -> Vec<PageId> {
    pages.iter().copied().map(PageId).collect()
}

#[test]
fn a_lock_outlives_a_split_of_its_node() {
    let mut cache = RadixCache::new(Box::new(Ordered::new(Eviction::Lru)), SplitStamp::New);
    cache.insert(&keys(&[1, 2, 3]), &pages(&[7, 8, 9]), Insertion::default());
    let anchor = cache.lookup(&keys(&[1, 2, 3])).anchor;
    assert!(cache.lock(anchor));
    cache.lookup(&keys(&[1, 5]));
    assert_eq!(cache.protected(), Pages(3));
    assert!(cache.unlock(anchor));
    assert_eq!(cache.protected(), Pages(0));
}

#[test]
fn an_anchor_dies_with_its_node_and_touches_no_newer_one() {
    let mut cache = RadixCache::new(Box::new(Ordered::new(Eviction::Lru)), SplitStamp::New);
    cache.insert(&keys(&[1]), &pages(&[7]), Insertion::default());
    let dead = cache.lookup(&keys(&[1])).anchor;
    cache.evict(Pages(1));
    assert!(!cache.lock(dead));
    cache.insert(&keys(&[2]), &pages(&[8]), Insertion::default());
    let anchor = cache.lookup(&keys(&[2])).anchor;
    assert_eq!(anchor.slot, dead.slot);
    assert!(!cache.lock(dead));
    assert!(cache.lock(anchor));
    assert!(!cache.unlock(dead));
    assert_eq!(cache.protected(), Pages(1));
}

#[test]
fn an_unlock_without_a_lock_changes_nothing() {
    let mut cache = RadixCache::new(Box::new(Ordered::new(Eviction::Lru)), SplitStamp::New);
    cache.insert(&keys(&[1]), &pages(&[7]), Insertion::default());
    let upper = cache.lookup(&keys(&[1])).anchor;
    cache.insert(&keys(&[1, 2]), &pages(&[7, 8]), Insertion::default());
    let lower = cache.lookup(&keys(&[1, 2])).anchor;
    assert!(cache.lock(lower));
    assert!(!cache.unlock(upper));
    assert_eq!(cache.protected(), Pages(2));
    assert!(cache.unlock(lower));
    assert!(!cache.unlock(lower));
    assert_eq!(cache.protected(), Pages(0));
}

#[test]
fn a_clear_drops_locked_pages_too_and_no_anchor_outlives_it() {
    let policy = Shared::new(Eviction::Lru);
    let mut cache = RadixCache::new(Box::new(policy.clone()), SplitStamp::New);
    assert_cleared(&mut cache, &keys(&[1, 2, 3]));
    assert_whole(&cache, &policy);
}

#[test]
fn a_parent_becomes_a_leaf_when_its_last_child_goes() {
    let mut cache = RadixCache::new(Box::new(Ordered::new(Eviction::Lru)), SplitStamp::New);
    cache.insert(&keys(&[1, 2, 3]), &pages(&[7, 8, 9]), Insertion::default());
    cache.insert(&keys(&[1, 2, 4]), &pages(&[5, 6, 4]), Insertion::default());
    let freed = cache.evict(Pages(3));
    assert_eq!(freed, [pages(&[9]), pages(&[4]), pages(&[7, 8])]);
    assert_eq!(cache.pages().count(), 0);
}

proptest! {
    #[test]
    fn a_tree_answers_every_call_as_a_table_of_prefixes_does(
        policy in proptest::sample::select(&Eviction::ALL[..]),
        naming in proptest::sample::select(vec![Naming::Alone, Naming::Chained]),
        page in 1u32..4,
        operations in operations(),
    ) {
        let case = Case { dropping: Dropping::Leaves, naming, page, operations };
        let policy = Shared::new(policy);
        let cache = RadixCache::new(Box::new(policy.clone()), SplitStamp::New);
        check(&case, cache, |cache| assert_whole(cache, &policy));
    }
}
