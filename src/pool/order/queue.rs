//! The queue: freed pages go to the end of the list, in the order given.

use std::collections::VecDeque;

use super::FreeOrder;
use crate::units::{PageId, Pages};

/// The token allocator (page size 1) without `need_sort`.
#[derive(Default)]
pub struct Queue {
    list: VecDeque<PageId>,
}

impl FreeOrder for Queue {
    fn ready(&self) -> Pages {
        Pages(u32::try_from(self.list.len()).expect("limits keep page lists within u32"))
    }

    fn waiting(&self) -> Pages {
        Pages(0)
    }

    fn merge(&mut self) {}

    fn take(&mut self, count: Pages) -> Vec<PageId> {
        self.list.drain(..count.index()).collect()
    }

    fn give(&mut self, pages: &[PageId]) {
        self.list.extend(pages);
    }

    fn pages(&self) -> Box<dyn Iterator<Item = PageId> + '_> {
        Box::new(self.list.iter().copied())
    }
}
