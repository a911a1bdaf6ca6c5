//! Prefix caches: what is found, kept, protected and dropped agrees with a plain table of pages, for
//! the radix tree under every eviction policy and for the block-hash cache.

use std::collections::BTreeMap;

use crate::cache::block_hash::BlockHashCache;
use crate::cache::eviction::Eviction;
use crate::cache::radix::RadixCache;
use crate::cache::{Anchor, PrefixCache};
use crate::prompt::{Chains, ContentId, PageKey, Run};
use crate::scenario::generate::Choices;
use crate::units::{PageId, PageSize, Pages, Tokens};

/// Calls of one case, at most.
const CALLS: u32 = 64;
/// Pages of a prompt, at most.
const PROMPT_PAGES: u32 = 12;

/// A page by what names it: its ordinal, and the key that stands for all tokens up to its end.
type Place = (usize, PageKey);

/// The plain model.
struct Model {
    cache: Box<dyn PrefixCache>,
    /// Whether a page goes only after all that follow it.
    is_tree: bool,
    cached: BTreeMap<Place, PageId>,
    /// The page before each page that ever was inserted.
    parents: BTreeMap<Place, Place>,
    locks: Vec<(Anchor, Vec<Place>)>,
    /// How many locks each page is under, if any.
    locked: BTreeMap<Place, u32>,
    next_page: u32,
}

/// Tries drawn calls on a radix tree.
pub fn radix_keeps_its_pages(choices: &mut impl Choices) {
    let eviction = *choices.pick(&Eviction::ALL);
    keeps_its_pages(choices, Box::new(RadixCache::new(Box::new(eviction))), true);
}

/// Tries drawn calls on a block-hash cache.
pub fn block_hash_keeps_its_pages(choices: &mut impl Choices) {
    keeps_its_pages(choices, Box::new(BlockHashCache::default()), false);
}

fn keeps_its_pages(choices: &mut impl Choices, cache: Box<dyn PrefixCache>, is_tree: bool) {
    let mut model = Model {
        cache,
        is_tree,
        cached: BTreeMap::new(),
        parents: BTreeMap::new(),
        locks: Vec::new(),
        locked: BTreeMap::new(),
        next_page: 1,
    };
    let page = PageSize::new(choices.within(1..=4)).expect("it is positive");
    let mut chains = Chains::default();
    for _ in 0..choices.within(1..=CALLS) {
        match choices.below(5) {
            0 | 1 => {
                let places = prompt(choices, &mut chains, page);
                model.insert(&places, i64::from(choices.within(0..=2)));
            }
            2 => {
                let places = prompt(choices, &mut chains, page);
                model.look_up(&places, choices.chance(1, 2));
            }
            3 => model.unlock(choices),
            _ => model.evict(Pages(choices.within(0..=6))),
        }
        model.check_counts();
    }
    model.check_all();
}

/// A prompt of few contents, so that prompts share beginnings of any length.
fn prompt(choices: &mut impl Choices, chains: &mut Chains, page: PageSize) -> Vec<Place> {
    let runs: Vec<Run> = (0..2)
        .map(|_| {
            let content = ContentId(choices.below(3));
            Run::whole(content, Tokens(choices.within(1..=PROMPT_PAGES / 2 * page.get())))
        })
        .collect();
    let namespace = u32::from(choices.chance(1, 8));
    let sequence = chains.sequence(namespace, runs);
    sequence.page_keys(page, sequence.len()).into_iter().enumerate().collect()
}

fn count(pages: usize) -> u32 {
    u32::try_from(pages).expect("a case has few pages")
}

fn bare(places: &[Place]) -> Vec<PageKey> {
    places.iter().map(|&(_, key)| key).collect()
}

impl Model {
    /// The places of `keys` that are cached, up to the first that is not.
    fn found(&self, keys: &[Place]) -> Vec<PageId> {
        keys.iter().map_while(|key| self.cached.get(key).copied()).collect()
    }

    fn look_up(&mut self, keys: &[Place], locks: bool) {
        let hit = self.cache.lookup(&bare(keys));
        assert_eq!(hit.pages, self.found(keys), "the longest cached prefix");
        if locks {
            assert!(self.cache.lock(hit.anchor), "a fresh hit can be locked");
            let places = &keys[..hit.pages.len()];
            for &place in places {
                *self.locked.entry(place).or_default() += 1;
            }
            self.locks.push((hit.anchor, places.to_vec()));
        }
    }

    fn insert(&mut self, keys: &[Place], priority: i64) {
        let pages: Vec<PageId> = (self.next_page..).map(PageId).take(keys.len()).collect();
        self.next_page += Pages::of(keys).0;
        let took = self.cache.insert(&bare(keys), &pages, priority);
        let expected: Vec<bool> = keys.iter().map(|key| !self.cached.contains_key(key)).collect();
        assert_eq!(took, expected, "what was missing is taken");
        self.parents.extend(keys.windows(2).map(|pair| (pair[1], pair[0])));
        for (&key, page) in keys.iter().zip(pages) {
            self.cached.entry(key).or_insert(page);
        }
    }

    fn unlock(&mut self, choices: &mut impl Choices) {
        if self.locks.is_empty() {
            return;
        }
        let index = choices.below(self.locks.len() as u64) as usize;
        let (anchor, places) = self.locks.swap_remove(index);
        for place in places {
            let left = self.locked.remove(&place).and_then(|locks| locks.checked_sub(1));
            if let Some(left) = left.filter(|&left| left > 0) {
                self.locked.insert(place, left);
            }
        }
        assert!(self.cache.unlock(anchor), "a lock can be undone once");
        let others = self.locks.iter().any(|&(other, _)| other == anchor);
        assert!(others || !self.cache.unlock(anchor), "and only once");
    }

    fn evict(&mut self, wanted: Pages) {
        let evictable = Pages(count(self.cached.len() - self.locked.len()));
        let dropped = self.cache.evict(wanted).concat();
        assert!(Pages::of(&dropped) >= wanted.min(evictable), "as many as wanted, if there are");
        for page in dropped {
            let place = self.cached.iter().find(|&(_, &cached)| cached == page);
            let (&place, _) = place.expect("a dropped page was cached");
            assert!(!self.locked.contains_key(&place), "a dropped page was not locked");
            self.cached.remove(&place);
        }
        let mut parents = self.cached.keys().filter_map(|place| self.parents.get(place));
        let is_whole = parents.all(|parent| self.cached.contains_key(parent));
        assert!(!self.is_tree || is_whole, "a page of a tree goes after those that follow it");
    }

    fn check_counts(&self) {
        let protected = count(self.locked.len());
        let all = count(self.cached.len());
        assert_eq!(self.cache.protected(), Pages(protected), "the locked pages");
        assert_eq!(self.cache.evictable(), Pages(all - protected), "the other ones");
    }

    fn check_all(&self) {
        let mut pages: Vec<PageId> = self.cache.pages().collect();
        pages.sort_unstable();
        let mut expected: Vec<PageId> = self.cached.values().copied().collect();
        expected.sort_unstable();
        assert_eq!(pages, expected, "every page that is kept");
    }
}
