//! The stack: freed pages go to the front, those of one call lowest first.

use super::FreeOrder;
use crate::units::{PageId, Pages};

/// The paged allocator without `need_sort`.
#[derive(Default)]
pub struct Stack {
    /// The list back to front, so that both ends of work are at the vector's end.
    reversed: Vec<PageId>,
}

impl FreeOrder for Stack {
    fn ready(&self) -> Pages {
        Pages::of(&self.reversed)
    }

    fn waiting(&self) -> Pages {
        Pages(0)
    }

    fn merge(&mut self) {}

    fn take(&mut self, count: Pages) -> Vec<PageId> {
        let rest = self.reversed.len() - count.index();
        self.reversed.drain(rest..).rev().collect()
    }

    fn give(&mut self, pages: &[PageId]) {
        let old = self.reversed.len();
        self.reversed.extend_from_slice(pages);
        self.reversed[old..].sort_unstable_by(|a, b| b.cmp(a));
    }

    fn pages(&self) -> Box<dyn Iterator<Item = PageId> + '_> {
        Box::new(self.reversed.iter().rev().copied())
    }
}
