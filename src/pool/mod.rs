//! A paged pool: which of its pages are free, and in which order they are handed out.
//!
//! A [`Pool`] hands out whole pages, 1..=pages, of whatever size its server allocates (physical
//! pages on prefill, virtual ones on decode). Which free page comes next is decided by its
//! [`FreeOrder`]. The pool obeys, as the real allocators do: it never asks who owns a page, so a
//! page can be given back twice and is then handed out twice. An oracle watches.

pub mod order;

use thiserror::Error;

use crate::units::{PageId, PageSize, Pages, Tokens};
use order::FreeOrder;

/// The allocator of one server's KV pages.
pub struct Pool {
    page: PageSize,
    total: Pages,
    free: Box<dyn FreeOrder>,
}

/// One request of a batch that [`Pool::extend`] grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Growth {
    /// Tokens that already have rows.
    pub prefix: Tokens,
    /// Tokens that shall have rows; at least `prefix`.
    pub length: Tokens,
}

/// A refusal: the call needs more pages than are free, by exact count. Nothing was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("pages: needed {needed}, free {ready}")]
pub struct Short {
    /// Pages that the call needs; `u32::MAX` stands for any larger number.
    pub needed: Pages,
    /// Pages on the free list after staged ones were merged into it.
    pub ready: Pages,
}

impl Growth {
    /// New pages for this request: what exceeds the open page, in whole pages and a partial tail.
    fn new_pages(&self, page: PageSize) -> Pages {
        self.length.pages_ceil(page).saturating_sub(self.prefix.pages_ceil(page))
    }
}

impl Pool {
    /// A pool with `pages` free pages in ascending order. `free` must be empty.
    pub fn new(page: PageSize, pages: Pages, mut free: Box<dyn FreeOrder>) -> Pool {
        let ascending: Vec<PageId> = (1..=pages.0).map(PageId).collect();
        free.give(&ascending);
        free.merge();
        Pool { page, total: pages, free }
    }

    /// Rows of a page.
    pub fn page(&self) -> PageSize {
        self.page
    }

    /// All pages of the pool, page 0 not counted.
    pub fn total(&self) -> Pages {
        self.total
    }

    /// Free pages, staged ones included. After a double free this counts a page twice.
    pub fn available(&self) -> Pages {
        self.free.ready() + self.free.waiting()
    }

    /// Every free page: the list, in its order if it has one, then the staged pages.
    pub fn free_pages(&self) -> impl Iterator<Item = PageId> + '_ {
        self.free.pages()
    }

    /// Grows a batch of requests and returns the new pages of each, taken request after request.
    /// The rest of an open page is used first, so a request can grow without a new page.
    pub fn extend(&mut self, batch: &[Growth]) -> Result<Vec<Vec<PageId>>, Short> {
        let page = self.page;
        let needs: Vec<Pages> = batch.iter().map(|growth| growth.new_pages(page)).collect();
        let needed = needs.iter().map(|pages| u64::from(pages.0)).sum();
        let mut taken = self.take(needed, self.extend_estimate(batch, needed))?.into_iter();
        Ok(needs.iter().map(|pages| taken.by_ref().take(pages.index()).collect()).collect())
    }

    /// Adds one token to each request of a batch; `lengths` count that token. A request whose token
    /// opens a page gets one.
    pub fn decode(&mut self, lengths: &[Tokens]) -> Result<Vec<Option<PageId>>, Short> {
        let page = self.page.get();
        let opens = |length: &Tokens| length.0 % page == 1 % page;
        let needed = lengths.iter().filter(|length| opens(length)).count() as u64;
        let mut taken = self.take(needed, lengths.len() as u64)?.into_iter();
        Ok(lengths.iter().map(|length| opens(length).then(|| taken.next()).flatten()).collect())
    }

    /// Takes whole pages.
    pub fn alloc(&mut self, pages: Pages) -> Result<Vec<PageId>, Short> {
        self.take(u64::from(pages.0), u64::from(pages.0))
    }

    /// Makes staged pages ready if the list holds fewer than `estimate`, as a call that may need so
    /// many does.
    pub fn expect(&mut self, estimate: Pages) {
        if self.free.ready() < estimate {
            self.free.merge();
        }
    }

    /// Gives pages back, each as often as it is named, without any check.
    pub fn free(&mut self, pages: &[PageId]) {
        self.free.give(pages);
    }

    /// How many pages `extend` wants on the list before it counts what it really needs; with fewer
    /// it merges. The real paged allocator estimates too much. At page size 1 servers use the token
    /// allocator instead, whose estimate is exact.
    fn extend_estimate(&self, batch: &[Growth], needed: u64) -> u64 {
        if self.page.get() == 1 {
            return needed;
        }
        let tokens: u64 = batch
            .iter()
            .map(|growth| u64::from(growth.length.saturating_sub(growth.prefix).0))
            .sum();
        tokens / u64::from(self.page.get()) + batch.len() as u64 + 1
    }

    /// Takes `needed` pages. Staged pages are merged first where the list holds fewer than
    /// `estimate`, and stay merged when the call is refused.
    fn take(&mut self, needed: u64, estimate: u64) -> Result<Vec<PageId>, Short> {
        if u64::from(self.free.ready().0) < estimate {
            self.free.merge();
        }
        let ready = self.free.ready();
        let needed = Pages(u32::try_from(needed).unwrap_or(u32::MAX));
        if needed > ready {
            return Err(Short { needed, ready });
        }
        Ok(self.free.take(needed))
    }
}

#[cfg(test)]
mod tests;
