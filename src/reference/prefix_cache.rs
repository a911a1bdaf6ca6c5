//! Prefix caches: a table of prompt prefixes, with the page of each, and the queue of those that
//! may go.

use crate::cache::{Anchor, Insertion, PrefixCache};
use crate::prompt::{Chains, ContentId, ContentRun, PageKey};
use crate::units::{PageId, PageSize, Pages, Tokens};

/// How a cache drops pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dropping {
    /// In leaves, a page only after all that follow it; which leaf is the policy's affair.
    Leaves,
    /// Each page for itself, least recently used first.
    InTurn,
}

/// How pages are named to a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Naming {
    /// As servers do it: a key stands for all tokens up to its page's end.
    Chained,
    /// By the page's own tokens, so that equal keys follow different beginnings. Only a cache that
    /// keeps the paths themselves can tell them apart.
    Alone,
}

/// A prompt: beginnings of contents, one after the other. What does not fill a page is left out.
#[derive(Clone, Debug)]
pub struct Prompt {
    /// Prompts of different namespaces have nothing in common; 0 or 1.
    pub namespace: u32,
    /// Contents, 0..3, and tokens of each, at most 40.
    pub runs: Vec<(u32, u32)>,
}

/// A server's call. Numbers wrap around, so that every list of operations is a valid one.
#[derive(Clone, Debug)]
pub enum Operation {
    /// Looks a prompt up.
    Lookup(Prompt),
    /// Inserts a prompt with new pages, at a priority.
    Insert(Prompt, i64),
    /// Locks what a lookup found, perhaps long ago; the last one has number 0.
    Lock(usize),
    /// Undoes a lock.
    Unlock(usize),
    /// Wants so many pages dropped.
    Evict(u32),
    /// Drops everything.
    Clear,
}

/// Calls of a cache.
#[derive(Clone, Debug)]
pub struct Case {
    /// How the cache drops pages.
    pub dropping: Dropping,
    /// How pages are named to it.
    pub naming: Naming,
    /// Tokens of a page, 1..=4.
    pub page: u32,
    /// The calls.
    pub operations: Vec<Operation>,
}

/// Makes every call to an empty cache, and lets `examine` look at it after each.
///
/// # Panics
/// Where the cache answers otherwise than the table.
pub fn check<C: PrefixCache>(case: &Case, cache: C, examine: impl Fn(&C)) {
    let mut server = Server {
        cache,
        dropping: case.dropping,
        naming: case.naming,
        page: PageSize::new(case.page).expect("a page has tokens"),
        chains: Chains::default(),
        table: vec![Line::default()],
        inserted: vec![ROOT],
        found: Vec::new(),
        locks: Vec::new(),
        queue: Vec::new(),
    };
    for operation in &case.operations {
        match operation {
            Operation::Lookup(prompt) => server.look_up(prompt),
            Operation::Insert(prompt, priority) => server.insert(prompt, *priority),
            Operation::Lock(age) => server.lock(*age),
            Operation::Unlock(index) => server.unlock(*index),
            Operation::Evict(wanted) => server.evict(Pages(*wanted)),
            Operation::Clear => server.clear(),
        }
        server.compare();
        examine(&server.cache);
    }
}

/// A prefix in whole pages, by its line in the table.
type Prefix = usize;

/// The empty prefix.
const ROOT: Prefix = 0;

/// What is known of a prefix.
#[derive(Default)]
struct Line {
    /// The page that is cached for its end.
    page: Option<PageId>,
    /// The prefixes of one page more, by that page's tokens.
    after: Vec<(u32, Prefix)>,
    /// Locks that it is under.
    locks: u32,
}

/// What a lookup found.
#[derive(Clone)]
struct Found {
    anchor: Anchor,
    prefixes: Vec<Prefix>,
    pages: Vec<PageId>,
    /// Whether everything was dropped since.
    is_cleared: bool,
}

/// A cache beside the table.
struct Server<C> {
    cache: C,
    dropping: Dropping,
    naming: Naming,
    page: PageSize,
    chains: Chains,
    table: Vec<Line>,
    /// For which prefix each page was inserted, by the page's number. Page 0 is nobody's.
    inserted: Vec<Prefix>,
    /// The last is the youngest.
    found: Vec<Found>,
    locks: Vec<(Anchor, Vec<Prefix>)>,
    /// Cached prefixes without a lock where pages go in turn; the front goes first.
    queue: Vec<Prefix>,
}

/// Each full page of a prompt as one number for its tokens, which are at most four of a byte each.
fn pages(prompt: &Prompt, page: PageSize) -> Vec<u32> {
    let token = |content, place| {
        let token = 1 + prompt.namespace + 2 * (content + 3 * place);
        u8::try_from(token).expect("contents are few and short")
    };
    let runs = prompt.runs.iter();
    let tokens: Vec<u8> =
        runs.flat_map(|&(content, len)| (0..len).map(move |at| token(content, at))).collect();
    let number = |page: &[u8]| page.iter().fold(0, |number, &token| number << 8 | u32::from(token));
    tokens.chunks_exact(page.get() as usize).map(number).collect()
}

impl<C: PrefixCache> Server<C> {
    /// The prefixes of a prompt, shortest first, and what names its pages.
    fn read(&mut self, prompt: &Prompt) -> (Vec<Prefix>, Vec<PageKey>) {
        let pages = pages(prompt, self.page);
        let mut prefixes = Vec::with_capacity(pages.len());
        let mut at = ROOT;
        for &page in &pages {
            let known = self.table[at].after.iter().find(|&&(other, _)| other == page);
            at = known.map(|&(_, prefix)| prefix).unwrap_or_else(|| {
                let new = self.table.len();
                self.table[at].after.push((page, new));
                self.table.push(Line::default());
                new
            });
            prefixes.push(at);
        }
        let keys = match self.naming {
            Naming::Alone => pages.into_iter().map(PageKey).collect(),
            Naming::Chained => {
                let run = |&(content, len): &(u32, u32)| {
                    ContentRun::whole(ContentId(content.into()), Tokens(len))
                };
                let sequence = self.chains.sequence(prompt.namespace, prompt.runs.iter().map(run));
                sequence.page_keys(self.page, sequence.len())
            }
        };
        assert_eq!(keys.len(), prefixes.len(), "a key for each page");
        (prefixes, keys)
    }

    fn look_up(&mut self, prompt: &Prompt) {
        let (mut prefixes, keys) = self.read(prompt);
        let hit = self.cache.lookup(&keys);
        let cached = prefixes.iter().map_while(|&prefix| self.table[prefix].page);
        assert!(cached.eq(hit.pages.iter().copied()), "the longest cached prefix: {hit:?}");
        prefixes.truncate(hit.pages.len());
        let (anchor, pages) = (hit.anchor, hit.pages);
        self.found.push(Found { anchor, prefixes, pages, is_cleared: false });
    }

    fn insert(&mut self, prompt: &Prompt, priority: i64) {
        let (prefixes, keys) = self.read(prompt);
        let first = u32::try_from(self.inserted.len()).expect("a case has few pages");
        let pages: Vec<PageId> = (first..).map(PageId).take(keys.len()).collect();
        self.inserted.extend(&prefixes);
        let how = Insertion { priority, ..Insertion::default() };
        let took = self.cache.insert(&keys, &pages, how);
        let missing: Vec<bool> =
            prefixes.iter().map(|&prefix| self.table[prefix].page.is_none()).collect();
        assert_eq!(took, missing, "what was missing is taken");
        for ((&prefix, page), took) in prefixes.iter().zip(pages).zip(took).rev() {
            if took {
                self.table[prefix].page = Some(page);
                self.queue.push(prefix);
            }
        }
    }

    /// A lock protects what was found or nothing.
    fn lock(&mut self, age: usize) {
        let Some(age) = age.checked_rem(self.found.len()) else { return };
        let Found { anchor, prefixes, pages, is_cleared } =
            self.found[self.found.len() - 1 - age].clone();
        let is_there = !is_cleared
            && prefixes
                .iter()
                .map(|&prefix| self.table[prefix].page)
                .eq(pages.into_iter().map(Some));
        assert_eq!(self.cache.lock(anchor), is_there, "whether what was found is still there");
        if !is_there {
            assert!(!self.cache.unlock(anchor), "what is gone is under no lock");
            return;
        }
        self.queue.retain(|queued| !prefixes.contains(queued));
        for &prefix in &prefixes {
            self.table[prefix].locks += 1;
        }
        self.locks.push((anchor, prefixes));
    }

    fn unlock(&mut self, index: usize) {
        let Some(index) = index.checked_rem(self.locks.len()) else { return };
        let (anchor, prefixes) = self.locks.swap_remove(index);
        for prefix in prefixes.into_iter().rev() {
            let line = &mut self.table[prefix];
            line.locks -= 1;
            if line.locks == 0 {
                self.queue.push(prefix);
            }
        }
        assert!(self.cache.unlock(anchor), "a lock can be undone once");
        let others = self.locks.iter().any(|&(other, _)| other == anchor);
        assert!(others || !self.cache.unlock(anchor), "and only once");
    }

    fn evict(&mut self, wanted: Pages) {
        let free = |line: &&Line| line.page.is_some() && line.locks == 0;
        let evictable = self.table.iter().filter(free).count();
        let dropped = self.cache.evict(wanted);
        let count = dropped.iter().map(Vec::len).sum::<usize>();
        assert!(count >= wanted.index().min(evictable), "as many as wanted, if there are");
        let last = dropped.last().map_or(0, Vec::len);
        assert!(count == 0 || count - last < wanted.index(), "and no leaf more: {dropped:?}");
        if self.dropping == Dropping::InTurn {
            let going = self.queue.iter().take(count);
            let turns: Vec<_> =
                going.map(|&prefix| Vec::from_iter(self.table[prefix].page)).collect();
            assert_eq!(dropped, turns, "the front of the queue");
        }
        for page in dropped.iter().flat_map(|leaf| leaf.iter().rev()) {
            self.drop(*page);
        }
    }

    fn drop(&mut self, page: PageId) {
        let prefix = self.inserted[page.index()];
        let line = &mut self.table[prefix];
        assert_eq!(line.page.take(), Some(page), "a dropped page was cached");
        assert_eq!(line.locks, 0, "a dropped page was not locked: {page}");
        let line = &self.table[prefix];
        let follows = line.after.iter().any(|&(_, after)| self.table[after].page.is_some());
        let is_alone = self.dropping == Dropping::InTurn;
        assert!(is_alone || !follows, "a page of a tree goes after those that follow it: {page}");
        self.queue.retain(|&queued| queued != prefix);
    }

    fn clear(&mut self) {
        self.cache.clear();
        for line in &mut self.table {
            (line.page, line.locks) = (None, 0);
        }
        self.queue.clear();
        for found in &mut self.found {
            found.is_cleared = true;
        }
        for (anchor, _) in self.locks.drain(..) {
            let is_known = self.cache.lock(anchor) || self.cache.unlock(anchor);
            assert!(!is_known, "it died with the rest");
        }
    }

    /// Every page that the table has is kept, once, and protected if it is locked.
    fn compare(&self) {
        let mut is_listed = vec![false; self.inserted.len()];
        for page in self.cache.pages() {
            let prefix = self.inserted[page.index()];
            assert_eq!(self.table[prefix].page, Some(page), "a page that is kept");
            assert!(!is_listed[page.index()], "page {page} is kept once");
            is_listed[page.index()] = true;
        }
        let listed = is_listed.into_iter().filter(|&is_listed| is_listed).count();
        let cached = self.table.iter().filter(|line| line.page.is_some());
        assert_eq!(listed, cached.clone().count(), "every page that is kept");
        let locked = cached.filter(|line| line.locks > 0).count();
        assert_eq!(self.cache.protected().index(), locked, "the locked pages");
        assert_eq!(self.cache.evictable().index(), listed - locked, "the other ones");
        assert_eq!(self.queue.len(), listed - locked, "what waits is what no lock holds");
    }
}
