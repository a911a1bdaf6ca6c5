//! What must hold of every cache alike.

use proptest::prelude::*;

use super::*;
use crate::reference::prefix_cache::{Operation, Prompt};

fn pages(pages: [u32; 3]) -> [PageId; 3] {
    pages.map(PageId)
}

/// An empty cache that is filled with three `keys` and cleared drops locked pages, too, and no
/// anchor outlives it.
pub(super) fn assert_cleared(cache: &mut dyn PrefixCache, keys: &[PageKey]) {
    let root = cache.lookup(keys).anchor;
    cache.insert(keys, &pages([7, 8, 9]), Insertion::default());
    let whole = cache.lookup(keys).anchor;
    let part = cache.lookup(&keys[..2]).anchor;
    assert!(cache.lock(part));
    cache.clear();
    assert_eq!((cache.evictable(), cache.protected()), (Pages(0), Pages(0)));
    assert_eq!(cache.pages().count(), 0);
    // The slots of the dead anchors are in use again.
    assert_eq!(cache.insert(keys, &pages([4, 5, 6]), Insertion::default()), [true; 3]);
    for dead in [root, whole, part] {
        assert!(!cache.lock(dead));
        assert!(!cache.unlock(dead));
    }
    assert_eq!(cache.evictable(), Pages(3));
    assert_eq!(cache.lookup(keys).pages, pages([4, 5, 6]));
}

/// Calls with short prompts of few contents.
pub(super) fn operations() -> impl Strategy<Value = Vec<Operation>> {
    let prompt = || {
        let runs = proptest::collection::vec((0u32..3, 1u32..5), 0..7);
        let namespace = prop_oneof![7 => Just(0), 1 => Just(1)];
        (namespace, runs).prop_map(|(namespace, runs)| Prompt { namespace, runs })
    };
    let operation = prop_oneof![
        4 => prompt().prop_map(Operation::Lookup),
        4 => (prompt(), 0i64..3).prop_map(|(prompt, priority)| Operation::Insert(prompt, priority)),
        4 => prop_oneof![2 => Just(0), 1 => 0usize..6].prop_map(Operation::Lock),
        4 => (0usize..8).prop_map(Operation::Unlock),
        4 => (0u32..8).prop_map(Operation::Evict),
        1 => Just(Operation::Clear),
    ];
    proptest::collection::vec(operation, 0..60)
}
