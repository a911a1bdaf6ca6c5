//! Prefix caches: what is found, kept, protected and dropped agrees with a plain table of pages, for
//! the radix tree under every eviction policy and for the block-hash cache.

use super::sizes;
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

/// A page by what names it, its ordinal and the key that stands for all tokens up to its end, as one
/// number.
type Place = usize;

/// What is known of a place.
#[derive(Clone, Copy, Default)]
struct Line {
    /// The page that is cached there.
    page: Option<PageId>,
    /// The place before it, once it was inserted, if it is not a prompt's first.
    before: Option<Place>,
    /// Cached places that it precedes.
    followers: u32,
    /// Locks that it is under.
    locks: u32,
}

/// The plain model: a table by place.
struct Model {
    cache: Box<dyn PrefixCache>,
    /// Whether a page goes only after all that follow it.
    is_tree: bool,
    lines: Vec<Line>,
    /// Where each page was inserted, by its number.
    places: Vec<Place>,
    locks: Vec<(Anchor, Vec<Place>)>,
    /// Places that are cached, and those of them that are under a lock.
    cached: u32,
    locked: u32,
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
        lines: Vec::new(),
        // Page 0 is nobody's.
        places: vec![0],
        locks: Vec::new(),
        cached: 0,
        locked: 0,
    };
    let page = PageSize::new(choices.within(1..=4)).expect("it is positive");
    let mut chains = Chains::default();
    let calls = choices.within(1..=CALLS);
    for _ in 0..calls {
        match choices.below(5) {
            0 | 1 => {
                let keys = prompt(choices, &mut chains, page);
                model.insert(&keys, i64::from(choices.within(0..=2)));
            }
            2 => {
                let keys = prompt(choices, &mut chains, page);
                model.look_up(&keys, choices.chance(1, 2));
            }
            3 if choices.chance(1, 16) => model.clear(),
            3 => model.unlock(choices),
            _ => model.evict(Pages(choices.within(0..=6))),
        }
        model.check_counts();
    }
    model.check_all();
    sizes::tell("operations", calls.into());
}

/// A prompt of few contents, so that prompts share beginnings of any length.
fn prompt(choices: &mut impl Choices, chains: &mut Chains, page: PageSize) -> Vec<PageKey> {
    let runs: [Run; 2] = std::array::from_fn(|_| {
        let content = ContentId(choices.below(3));
        Run::whole(content, Tokens(choices.within(1..=PROMPT_PAGES / 2 * page.get())))
    });
    let namespace = u32::from(choices.chance(1, 8));
    let sequence = chains.sequence(namespace, runs);
    sequence.page_keys(page, sequence.len())
}

impl Model {
    /// The places of a prompt's pages, which then have a line.
    fn places(&mut self, keys: &[PageKey]) -> Vec<Place> {
        let per_key = PROMPT_PAGES as usize;
        let places: Vec<Place> =
            (0..).zip(keys).map(|(ordinal, key)| key.0 as usize * per_key + ordinal).collect();
        let lines = places.iter().max().map_or(0, |last| last + 1);
        self.lines.resize(lines.max(self.lines.len()), Line::default());
        places
    }

    fn look_up(&mut self, keys: &[PageKey], locks: bool) {
        let mut places = self.places(keys);
        let hit = self.cache.lookup(keys);
        let found = places.iter().map_while(|&place| self.lines[place].page);
        assert!(found.eq(hit.pages.iter().copied()), "the longest cached prefix: {hit:?}");
        if locks {
            assert!(self.cache.lock(hit.anchor), "a fresh hit can be locked");
            places.truncate(hit.pages.len());
            for &place in &places {
                self.lines[place].locks += 1;
                self.locked += u32::from(self.lines[place].locks == 1);
            }
            self.locks.push((hit.anchor, places));
        }
    }

    fn insert(&mut self, keys: &[PageKey], priority: i64) {
        let places = self.places(keys);
        let next_page = u32::try_from(self.places.len()).expect("a case has few pages");
        let pages: Vec<PageId> = (next_page..).map(PageId).take(keys.len()).collect();
        self.places.extend(&places);
        let took = self.cache.insert(keys, &pages, priority);
        assert_eq!(took.len(), keys.len(), "an answer for each page");
        let mut before = None;
        for ((&place, &page), took) in places.iter().zip(&pages).zip(took) {
            let line = &mut self.lines[place];
            assert_eq!(took, line.page.is_none(), "what was missing is taken");
            line.before = before;
            if took {
                line.page = Some(page);
                self.cached += 1;
                if let Some(before) = before {
                    self.lines[before].followers += 1;
                }
            }
            before = Some(place);
        }
    }

    fn unlock(&mut self, choices: &mut impl Choices) {
        if self.locks.is_empty() {
            return;
        }
        let index = choices.below(self.locks.len() as u64) as usize;
        let (anchor, places) = self.locks.swap_remove(index);
        for place in places {
            self.lines[place].locks -= 1;
            self.locked -= u32::from(self.lines[place].locks == 0);
        }
        assert!(self.cache.unlock(anchor), "a lock can be undone once");
        let others = self.locks.iter().any(|&(other, _)| other == anchor);
        assert!(others || !self.cache.unlock(anchor), "and only once");
    }

    fn evict(&mut self, wanted: Pages) {
        let evictable = Pages(self.cached - self.locked);
        let dropped = self.cache.evict(wanted).concat();
        assert!(Pages::of(&dropped) >= wanted.min(evictable), "as many as wanted, if there are");
        for page in &dropped {
            let line = &mut self.lines[self.places[page.index()]];
            assert_eq!(line.page.take(), Some(*page), "a dropped page was cached");
            assert_eq!(line.locks, 0, "a dropped page was not locked");
            self.cached -= 1;
            if let Some(before) = line.before {
                self.lines[before].followers -= 1;
            }
        }
        let mut lines = dropped.iter().map(|page| &self.lines[self.places[page.index()]]);
        let is_whole = lines.all(|line| line.followers == 0);
        assert!(!self.is_tree || is_whole, "a page of a tree goes after those that follow it");
    }

    fn clear(&mut self) {
        self.cache.clear();
        for line in &mut self.lines {
            (line.page, line.followers, line.locks) = (None, 0, 0);
        }
        (self.cached, self.locked) = (0, 0);
        for (anchor, _) in self.locks.drain(..) {
            assert!(
                !self.cache.lock(anchor) && !self.cache.unlock(anchor),
                "it died with the rest"
            );
        }
    }

    fn check_counts(&self) {
        assert_eq!(self.cache.protected(), Pages(self.locked), "the locked pages");
        assert_eq!(self.cache.evictable(), Pages(self.cached - self.locked), "the other ones");
    }

    fn check_all(&self) {
        let mut pages: Vec<PageId> = self.cache.pages().collect();
        pages.sort_unstable();
        let mut expected: Vec<PageId> = self.lines.iter().filter_map(|line| line.page).collect();
        expected.sort_unstable();
        assert_eq!(pages, expected, "every page that is kept");
        assert_eq!(expected.len(), self.cached as usize, "and none counted twice");
        let locked = self.lines.iter().filter(|line| line.locks > 0).count();
        assert_eq!(locked, self.locked as usize, "every page that is locked");
    }
}
