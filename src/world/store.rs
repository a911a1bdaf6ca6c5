//! One server's KV: its pool, prefix cache and rows, with every page move told to the log.

use super::context::Context;
use super::log::Log;
use super::observer::Note;
use crate::behaviour::{Flush, FreeCheck};
use crate::cache::{Anchor, PrefixCache};
use crate::event::{Event, Holder, Server, Side};
use crate::finding::{Mark, Metric};
use crate::memory::{Extent, Memory};
use crate::oracle::FinalState;
use crate::pool::Pool;
use crate::units::{PageId, Pages, RequestId, Tokens};

/// The KV of one server.
pub(super) struct Store {
    pub(super) server: Server,
    pub(super) pool: Pool,
    pub(super) cache: Option<Box<dyn PrefixCache>>,
    /// Rows by rank; prefill has one. Where decode keeps draft KV, its rows by rank stand behind
    /// them.
    pub(super) memory: Vec<Memory>,
    free_check: FreeCheck,
    is_free: Vec<bool>,
}

/// What a flush has taken out of a cache.
pub(super) enum Flushed {
    /// Nothing: it was refused.
    Nothing,
    /// The pages that nobody held.
    Evicted(Vec<PageId>),
    /// Cache and allocator were cleared, whoever held what; all locks are gone.
    Everything,
}

impl Store {
    pub(super) fn new(
        server: Server,
        pool: Pool,
        cache: Option<Box<dyn PrefixCache>>,
        memory: Vec<Memory>,
        free_check: FreeCheck,
    ) -> Store {
        let pages = pool.total();
        Store { server, memory, is_free: vec![true; pages.index() + 1], pool, cache, free_check }
    }

    /// Pages that could be had: free ones and those that eviction could drop.
    pub(super) fn room(&self) -> Pages {
        self.pool.available() + self.cache.as_ref().map_or(Pages(0), |cache| cache.evictable())
    }

    /// Evicts until `wanted` tokens are free, as far as there is something to evict. Returns the
    /// pages that the cache dropped.
    pub(super) fn make_room(&mut self, log: &mut Log, wanted: Tokens) -> Vec<PageId> {
        let page = self.pool.page();
        let missing = wanted.saturating_sub(self.pool.available().tokens(page));
        let Some(cache) = self.cache.as_mut().filter(|_| missing > Tokens(0)) else {
            return Vec::new();
        };
        let dropped: Vec<PageId> = cache.evict(missing.pages_ceil(page)).concat();
        let (metric, mark) = match self.server.side {
            Side::Prefill => (Metric::EvictedPrefillPages, Mark::EvictPrefill),
            Side::Decode => (Metric::EvictedDecodePages, Mark::EvictDecode),
        };
        if !dropped.is_empty() {
            log.count(metric, dropped.len() as u64);
            log.mark(mark);
            let (server, pages) = (self.server, Pages::of(&dropped));
            log.note(&Note::Evicted { server, asked: missing, pages });
            self.give_back(log, Holder::Cache, &dropped);
        }
        dropped
    }

    /// Undoes the locks on `anchors`, each of which was locked.
    pub(super) fn unlock(&mut self, anchors: &[Anchor]) {
        if let Some(cache) = &mut self.cache {
            for &anchor in anchors {
                assert!(cache.unlock(anchor), "the anchor was locked");
            }
        }
    }

    /// States that the pool handed `pages` to `request`, from ordinal `first` of its table on.
    pub(super) fn taken(
        &mut self,
        log: &mut Log,
        request: RequestId,
        first: Pages,
        pages: &[PageId],
    ) {
        for page in pages {
            self.is_free[page.index()] = false;
        }
        let event = Event::Taken { server: self.server, request, first, pages };
        log.tell(&event, &self.memory);
    }

    /// Gives `pages` back to the pool; under a guard, those that are free already are left alone.
    pub(super) fn give_back(&mut self, log: &mut Log, holder: Holder, pages: &[PageId]) {
        let mut returned = pages.to_vec();
        returned.retain(|page| {
            let was_free = std::mem::replace(&mut self.is_free[page.index()], true);
            match self.free_check {
                FreeCheck::Guarded => !was_free,
                FreeCheck::None => true,
            }
        });
        if returned.is_empty() {
            return;
        }
        let event = Event::Freed { server: self.server, holder, pages: &returned };
        log.tell(&event, &self.memory);
        self.pool.free(&returned);
    }

    /// Flushes the cache. A flush that does not act at once is refused while anybody holds a page.
    pub(super) fn flush(&mut self, cx: &mut Context<'_>) -> Flushed {
        let log = &mut cx.log;
        let all = self.pool.total();
        let is_idle = self.room() == all;
        log.mark(if is_idle { Mark::FlushDone } else { Mark::FlushInUse });
        match cx.setup.switches.flush {
            Flush::Refused if !is_idle => Flushed::Nothing,
            Flush::Refused => Flushed::Evicted(self.make_room(log, all.tokens(self.pool.page()))),
            Flush::AtOnce => {
                self.clear(log);
                Flushed::Everything
            }
        }
    }

    /// Forgets the cache and takes every page back, whoever holds it.
    fn clear(&mut self, log: &mut Log) {
        if let Some(cache) = &mut self.cache {
            cache.clear();
        }
        let all = (1..=self.pool.total().0).map(PageId);
        let used: Vec<PageId> = all.filter(|page| !self.is_free[page.index()]).collect();
        self.give_back(log, Holder::Cache, &used);
    }

    /// Gives back a segment of `request`'s table that begins at row `start` of its first page. The
    /// page goes back as a whole.
    pub(super) fn give_back_part(
        &mut self,
        log: &mut Log,
        request: RequestId,
        pages: &[PageId],
        start: u32,
    ) {
        if let Some(&page) = pages.first() {
            let event = Event::FreedPart { server: self.server, request, page, start };
            log.tell(&event, &self.memory);
        }
        self.give_back(log, Holder::Request(request), pages);
    }

    /// What the first `count` pages of `table` hold, by page and rank.
    pub(super) fn read_pages(&self, table: &[PageId], count: usize) -> Vec<Vec<Vec<Extent>>> {
        let of_page =
            |&page: &PageId| self.memory.iter().map(|memory| memory.page(page).to_vec()).collect();
        table.iter().take(count).map(of_page).collect()
    }

    /// Lengths of all runs of consecutive free pages. Free lists have no order by place, but the
    /// flags of the free check do.
    pub(super) fn free_runs(&self) -> impl Iterator<Item = usize> {
        let runs = self.is_free[1..].split(|is_free| !is_free);
        runs.map(<[bool]>::len).filter(|&length| length > 0)
    }

    /// States what pool and cache count.
    pub(super) fn books(&self, log: &mut Log) {
        let cached = self
            .cache
            .as_ref()
            .map_or((Pages(0), Pages(0)), |cache| (cache.evictable(), cache.protected()));
        let event = Event::Books {
            server: self.server,
            free: self.pool.available(),
            evictable: cached.0,
            protected: cached.1,
        };
        log.tell(&event, &self.memory);
    }

    /// What is noted of it when all is over.
    pub(super) fn left(&self) -> Note {
        let cache = self.cache.as_ref();
        Note::Left {
            server: self.server,
            total: self.pool.total(),
            free: self.pool.available(),
            evictable: cache.map_or(Pages(0), |cache| cache.evictable()),
            protected: cache.map_or(Pages(0), |cache| cache.protected()),
        }
    }

    /// What is there when all is over.
    pub(super) fn final_state(&self) -> FinalState {
        let cache = self.cache.as_ref();
        FinalState {
            server: self.server,
            free: self.pool.free_pages().collect(),
            cached: cache.map_or_else(Vec::new, |cache| cache.pages().collect()),
            protected: cache.map_or(Pages(0), |cache| cache.protected()),
        }
    }
}

/// Parts the pages of an insert into those that the cache took and those that it did not.
pub(super) fn split_taken(pages: &[PageId], taken: &[bool]) -> (Vec<PageId>, Vec<PageId>) {
    let mut kept = Vec::with_capacity(pages.len());
    let mut duplicates = Vec::new();
    for (&page, &taken) in pages.iter().zip(taken) {
        if taken { kept.push(page) } else { duplicates.push(page) }
    }
    (kept, duplicates)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool::order::Lowest;
    use crate::units::PageSize;

    #[test]
    fn free_runs_are_the_longest_stretches_of_free_pages_without_page_0() {
        let page = PageSize::new(4).unwrap();
        let pool = Pool::new(page, Pages(7), Box::new(Lowest::default()));
        let server = Server { side: Side::Decode, index: 0 };
        let mut store = Store::new(server, pool, None, vec![Memory::new(7)], FreeCheck::Guarded);
        assert_eq!(store.free_runs().collect::<Vec<_>>(), [7]);
        for taken in [2, 3, 7] {
            store.is_free[taken] = false;
        }
        assert_eq!(store.free_runs().collect::<Vec<_>>(), [1, 3]);
    }
}
