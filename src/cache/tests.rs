//! What must hold of every cache alike.

use super::*;

fn pages(pages: [u32; 3]) -> [PageId; 3] {
    pages.map(PageId)
}

/// An empty cache that is filled with three `keys` and cleared drops locked pages, too, and no anchor
/// outlives it.
pub(super) fn assert_cleared(cache: &mut dyn PrefixCache, keys: &[PageKey]) {
    let root = cache.lookup(keys).anchor;
    cache.insert(keys, &pages([7, 8, 9]), 0);
    let whole = cache.lookup(keys).anchor;
    let part = cache.lookup(&keys[..2]).anchor;
    assert!(cache.lock(part));
    cache.clear();
    assert_eq!((cache.evictable(), cache.protected()), (Pages(0), Pages(0)));
    assert_eq!(cache.pages().count(), 0);
    // The slots of the dead anchors are in use again.
    assert_eq!(cache.insert(keys, &pages([4, 5, 6]), 0), [true; 3]);
    for dead in [root, whole, part] {
        assert!(!cache.lock(dead));
        assert!(!cache.unlock(dead));
    }
    assert_eq!(cache.evictable(), Pages(3));
    assert_eq!(cache.lookup(keys).pages, pages([4, 5, 6]));
}
