//! Match, insert and eviction in a radix cache of 100,000 pages.

use divan::Bencher;
use kvseam::behaviour::SplitStamp;
use kvseam::cache::eviction::{Eviction, Ordered};
use kvseam::cache::radix::RadixCache;
use kvseam::cache::{Insertion, PrefixCache};
use kvseam::prompt::PageKey;
use kvseam::units::{PageId, Pages};

/// Pages in the tree before each measurement.
const TREE_PAGES: u32 = 100_000;
/// Pages that a prompt shares with the others of its group, and groups with their own beginning.
const SHARED: u32 = 64;
const GROUPS: u32 = 50;

fn main() {
    divan::main();
}

/// The keys of prompt `number`: those of its group, then its own.
fn keys(number: u32, pages: u32) -> Vec<PageKey> {
    (0..pages)
        .map(|at| match at {
            0..SHARED => PageKey(number % GROUPS),
            _ => PageKey(GROUPS + number),
        })
        .collect()
}

fn pages(count: u32) -> Vec<PageId> {
    (1..=count).map(PageId).collect()
}

/// A tree of prompts of `length` pages, and the number of the next prompt.
fn tree(length: u32) -> (RadixCache, u32) {
    let mut cache = RadixCache::new(Box::new(Ordered::new(Eviction::Lru)), SplitStamp::New);
    let mut number = 0;
    while cache.evictable() < Pages(TREE_PAGES) {
        cache.insert(&keys(number, length), &pages(length), Insertion::default());
        number += 1;
    }
    (cache, number)
}

/// Finding a prompt that is there in full.
#[divan::bench(args = [128, 2_048])]
fn match_whole(bencher: Bencher, length: u32) {
    let (mut cache, count) = tree(length);
    let prompts: Vec<Vec<PageKey>> = (0..count).map(|number| keys(number, length)).collect();
    let mut turn = prompts.iter().cycle();
    bencher.bench_local(|| cache.lookup(turn.next().expect("a cycle has no end")));
}

/// Storing a prompt that shares its group's beginning, and evicting as much.
#[divan::bench(args = [128, 2_048])]
fn insert_and_evict(bencher: Bencher, length: u32) {
    let (mut cache, mut number) = tree(length);
    let pages = pages(length);
    bencher
        .with_inputs(|| {
            number += 1;
            keys(number, length)
        })
        .bench_local_refs(|keys| {
            let taken = cache
                .insert(keys, &pages, Insertion::default())
                .into_iter()
                .filter(|&taken| taken)
                .count();
            cache.evict(Pages(u32::try_from(taken).expect("as many as were given")))
        });
}
