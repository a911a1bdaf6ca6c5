use proptest::prelude::*;

use super::*;
use crate::cache::tests::{assert_cleared, operations};
use crate::prompt::{Chains, ContentId, ContentRun};
use crate::reference::prefix_cache::{Case, Dropping, Naming, check};
use crate::units::{PageSize, Tokens};

/// The keys of a prompt of one-token pages, each of which names a content. A page goes on where the
/// one before it named the same content, so that keys repeat within a prompt.
fn keys(chains: &mut Chains, prompt: &[u64]) -> Vec<PageKey> {
    let runs = (0..).zip(prompt).map(|(at, &content)| ContentRun {
        content: ContentId(content),
        offset: Tokens(at),
        len: Tokens(1),
    });
    let sequence = chains.sequence(0, runs);
    sequence.page_keys(PageSize::new(1).unwrap(), sequence.len())
}

fn pages(pages: &[u32]) -> Vec<PageId> {
    pages.iter().copied().map(PageId).collect()
}

/// Everything that the cache keeps twice, computed again from the table alone.
fn assert_whole(cache: &BlockHashCache) {
    let mut queue = BTreeMap::new();
    let mut below: BTreeMap<Slot, u32> = BTreeMap::new();
    for (&hash, &slot) in &cache.table {
        let block = cache.block(slot);
        assert_eq!(block.hash, hash);
        assert_eq!(block.turn.is_none(), block.locks > 0);
        queue.extend(block.turn.map(|turn| (turn, slot)));
        if block.locks > 0 {
            let before = cache.resolve(block.before).expect("what precedes a locked block stays");
            *below.entry(before).or_default() += block.locks;
        }
    }
    for &slot in cache.table.values() {
        let block = cache.block(slot);
        let following = below.get(&slot).copied().unwrap_or_default();
        assert_eq!(block.locks, block.own_locks + following);
    }
    assert_eq!(cache.queue, queue);
    assert_eq!(cache.table.len() + cache.vacant.len() + 1, cache.blocks.len());
}

#[test]
fn a_prompt_is_evicted_from_its_end() {
    let mut cache = BlockHashCache::default();
    let keys = keys(&mut Chains::default(), &[1, 2, 3]);
    cache.insert(&keys, &pages(&[7, 8, 9]), Insertion::default());
    let anchor = cache.lookup(&keys).anchor;
    assert!(cache.lock(anchor));
    assert_eq!((cache.evictable(), cache.protected()), (Pages(0), Pages(3)));
    assert!(cache.unlock(anchor));
    assert_eq!(cache.evict(Pages(2)), [pages(&[9]), pages(&[8])]);
    assert_eq!(cache.lookup(&keys).pages, pages(&[7]));
}

#[test]
fn a_page_behind_a_gap_is_owned_but_out_of_reach_until_the_gap_is_closed() {
    let mut cache = BlockHashCache::default();
    let keys = keys(&mut Chains::default(), &[1, 2, 3]);
    assert_eq!(cache.insert(&keys[..2], &pages(&[7, 8]), Insertion::default()), [true, true]);
    // The third page queues behind the older first two.
    assert_eq!(cache.insert(&keys, &pages(&[4, 5, 9]), Insertion::default()), [false, false, true]);
    assert_eq!(cache.evict(Pages(1)), [pages(&[8])]);

    let short = cache.lookup(&keys);
    assert_eq!(short.pages, pages(&[7]));
    assert_eq!(cache.evictable(), Pages(2));

    assert_eq!(cache.insert(&keys, &pages(&[4, 5, 6]), Insertion::default()), [false, true, false]);
    assert_eq!(cache.lookup(&keys).pages, pages(&[7, 5, 9]));
    assert_eq!(cache.evict(Pages(3)), [pages(&[7]), pages(&[9]), pages(&[5])]);
}

#[test]
fn an_anchor_behind_a_gap_is_dead_and_stays_dead() {
    let mut cache = BlockHashCache::default();
    let keys = keys(&mut Chains::default(), &[1, 2, 3]);
    cache.insert(&keys[..2], &pages(&[7, 8]), Insertion::default());
    cache.insert(&keys, &pages(&[4, 5, 9]), Insertion::default());
    let anchor = cache.lookup(&keys).anchor;
    cache.evict(Pages(1));
    assert!(!cache.lock(anchor));
    // A lock that came now would protect another second page than the one that was found.
    cache.insert(&keys, &pages(&[4, 5, 6]), Insertion::default());
    assert!(!cache.lock(anchor));
    let fresh = cache.lookup(&keys).anchor;
    assert!(cache.lock(fresh));
    assert!(!cache.unlock(anchor));
    assert_eq!(cache.protected(), Pages(3));
}

#[test]
fn an_unlock_without_a_lock_changes_nothing() {
    let mut cache = BlockHashCache::default();
    let keys = keys(&mut Chains::default(), &[1, 2]);
    cache.insert(&keys, &pages(&[7, 8]), Insertion::default());
    let upper = cache.lookup(&keys[..1]).anchor;
    let lower = cache.lookup(&keys).anchor;
    assert!(cache.lock(lower));
    assert!(!cache.unlock(upper));
    assert_eq!(cache.protected(), Pages(2));
    assert!(cache.unlock(lower));
    assert!(!cache.unlock(lower));
    assert_eq!((cache.evictable(), cache.protected()), (Pages(2), Pages(0)));
    assert_whole(&cache);
}

#[test]
fn a_clear_drops_locked_pages_too_and_no_anchor_outlives_it() {
    let mut cache = BlockHashCache::default();
    assert_cleared(&mut cache, &keys(&mut Chains::default(), &[1, 2, 3]));
    assert_whole(&cache);
}

#[test]
fn equal_keys_at_different_ordinals_are_different_pages() {
    let mut cache = BlockHashCache::default();
    let keys = keys(&mut Chains::default(), &[1, 1, 1]);
    assert_eq!(keys[0], keys[2]);
    assert_eq!(cache.insert(&keys, &pages(&[7, 8, 9]), Insertion::default()), [true; 3]);
    assert_eq!(cache.lookup(&keys).pages, pages(&[7, 8, 9]));
}

proptest! {
    #[test]
    fn a_cache_answers_every_call_as_a_table_and_a_queue_do(
        page in 1u32..4,
        operations in operations(),
    ) {
        let case = Case { dropping: Dropping::InTurn, naming: Naming::Chained, page, operations };
        check(&case, BlockHashCache::default(), assert_whole);
    }
}
