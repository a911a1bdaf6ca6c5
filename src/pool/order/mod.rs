//! The order of a pool's free list: which page is handed out next, and where a freed page goes.
//!
//! An order keeps a *ready* list, which pages are taken from, and may stage freed pages aside
//! (*waiting*) until a merge.

mod best_fit;
mod buddy;
mod by_place;
mod lowest;
mod queue;
mod random;
mod sorted;
mod stack;

pub use best_fit::BestFit;
pub use buddy::Buddy;
pub use by_place::{ByPlace, PageSet};
pub use lowest::Lowest;
pub use queue::Queue;
pub use random::Random;
pub use sorted::Sorted;
pub use stack::Stack;

use crate::units::{PageId, PageSize, Pages};

/// A free-list order. It keeps what it is given, doubles included.
pub trait FreeOrder: Send {
    /// Pages on the list.
    fn ready(&self) -> Pages;

    /// Pages staged aside, which only a merge makes ready.
    fn waiting(&self) -> Pages;

    /// Makes every staged page ready.
    fn merge(&mut self);

    /// Takes the `count` pages that come next for a call of this size. `count` is at most
    /// [`FreeOrder::ready`]; more is a broken invariant of the pool.
    fn take(&mut self, count: Pages) -> Vec<PageId>;

    /// Gives back the pages of one call.
    fn give(&mut self, pages: &[PageId]);

    /// Every page: the list, in the order of taking where that is settled beforehand, then the
    /// staged ones.
    fn pages(&self) -> Box<dyn Iterator<Item = PageId> + '_>;
}

/// The order that the real server's allocator has: staged and sorted with `need_sort`; without it a
/// queue for the token allocator (page size 1) and a stack for the paged one.
pub fn of_server(page: PageSize, need_sort: bool) -> Box<dyn FreeOrder> {
    match (need_sort, page.get()) {
        (true, _) => Box::new(Sorted::default()),
        (false, 1) => Box::new(Queue::default()),
        (false, _) => Box::new(Stack::default()),
    }
}
