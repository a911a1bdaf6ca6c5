//! Staged and sorted: freed pages wait aside and are sorted into the list when it runs short.
//! Disaggregated servers use this order, since sorted pages make longer runs for the network.

use super::FreeOrder;
use crate::units::{PageId, Pages};

/// Either allocator with `need_sort`.
#[derive(Default)]
pub struct Sorted {
    /// The list back to front, descending, so that taking from the front leaves the rest in place.
    reversed: Vec<PageId>,
    staged: Vec<PageId>,
}

impl FreeOrder for Sorted {
    fn ready(&self) -> Pages {
        Pages::of(&self.reversed)
    }

    fn waiting(&self) -> Pages {
        Pages::of(&self.staged)
    }

    fn merge(&mut self) {
        if self.staged.is_empty() {
            return;
        }
        self.reversed.append(&mut self.staged);
        // The stable sort notices the part that is sorted already and only merges the rest into it.
        self.reversed.sort_by(|a, b| b.cmp(a));
    }

    fn take(&mut self, count: Pages) -> Vec<PageId> {
        let rest = self.reversed.len() - count.index();
        self.reversed.drain(rest..).rev().collect()
    }

    fn give(&mut self, pages: &[PageId]) {
        self.staged.extend_from_slice(pages);
    }

    fn pages(&self) -> Box<dyn Iterator<Item = PageId> + '_> {
        Box::new(self.reversed.iter().rev().chain(&self.staged).copied())
    }
}
