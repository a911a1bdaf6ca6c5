//! A prefix cache: which pages hold the KV of which prompt prefixes, and which of them may go.
//!
//! A cache of one page size maps sequences of [`PageKey`]s, from a prompt's first page on, to
//! pages. It owns the pages that it keeps; pages on a locked path are *protected*, all others
//! *evictable*. Like the pool it obeys: it does not ask whether somebody still reads a page that it
//! is told to evict. A server without a cache has none (`Option<Box<dyn PrefixCache>>`). Namespaces
//! need no care here, since keys of different namespaces never compare equal.

pub mod block_hash;
pub mod eviction;
pub mod partial;
pub mod radix;
pub mod tail;

use crate::prompt::PageKey;
use crate::units::{PageId, Pages};

/// The place in a cache where a lookup ended; locking it protects everything above.
///
/// An anchor that was locked stays valid until it is unlocked. Otherwise it dies at an eviction of
/// its place or of something above, and is never taken for a newer place. Only the cache
/// that gave the anchor knows what its two numbers mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Anchor {
    /// Where the place is kept.
    pub slot: u32,
    /// How many places were kept there before.
    pub generation: u32,
}

/// The longest cached prefix of a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hit {
    /// Its pages, from the prompt's first on.
    pub pages: Vec<PageId>,
    /// Where it ends.
    pub anchor: Anchor,
}

/// How pages enter a cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Insertion {
    /// Priority of the pages, and at least that of all pages before them.
    pub priority: i64,
    /// Pages of the same prompt that count as used already, from its first on: those that the same
    /// request has put in before.
    pub counted: Pages,
}

/// A cache of prompt prefixes in whole pages.
pub trait PrefixCache: Send {
    /// Finds the longest cached prefix of `keys`, and marks it as used where a lookup counts as
    /// use.
    fn lookup(&mut self, keys: &[PageKey]) -> Hit;

    /// Protects the pages up to `anchor` from eviction, once more for each call. False, and nothing
    /// done, if the anchor is dead.
    #[must_use]
    fn lock(&mut self, anchor: Anchor) -> bool;

    /// Undoes one [`PrefixCache::lock`] of the same anchor. False, and nothing done, if there is
    /// none.
    #[must_use]
    fn unlock(&mut self, anchor: Anchor) -> bool;

    /// Stores `pages` under `keys` (equally many) and returns of each page whether the cache took
    /// it. Where it has a page already it keeps its own, and the given one stays with the caller.
    /// Afterwards all of `keys` are cached.
    fn insert(&mut self, keys: &[PageKey], pages: &[PageId], how: Insertion) -> Vec<bool>;

    /// Drops unprotected pages, at least `wanted` if there are as many. Returns them in the order
    /// of dropping, grouped as they went.
    fn evict(&mut self, wanted: Pages) -> Vec<Vec<PageId>>;

    /// Drops everything, locked or not. All anchors are dead then.
    fn clear(&mut self);

    /// Pages that eviction could drop.
    fn evictable(&self) -> Pages;

    /// Pages under a lock.
    fn protected(&self) -> Pages;

    /// Every page that the cache holds, in an order that depends on nothing but the calls so far.
    fn pages(&self) -> Box<dyn Iterator<Item = PageId> + '_>;
}

#[cfg(test)]
mod tests;
