//! The lowest address first, whenever it was given back.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::FreeOrder;
use crate::units::{PageId, Pages};

/// The free page of the lowest number comes next.
#[derive(Default)]
pub struct Lowest {
    heap: BinaryHeap<Reverse<PageId>>,
}

impl FreeOrder for Lowest {
    fn ready(&self) -> Pages {
        Pages(u32::try_from(self.heap.len()).expect("limits keep page lists within u32"))
    }

    fn waiting(&self) -> Pages {
        Pages(0)
    }

    fn merge(&mut self) {}

    fn take(&mut self, count: Pages) -> Vec<PageId> {
        let next = |_| self.heap.pop().expect("the list holds what is taken").0;
        (0..count.0).map(next).collect()
    }

    fn give(&mut self, pages: &[PageId]) {
        self.heap.extend(pages.iter().copied().map(Reverse));
    }

    fn pages(&self) -> Box<dyn Iterator<Item = PageId> + '_> {
        let descending = self.heap.clone().into_sorted_vec();
        Box::new(descending.into_iter().rev().map(|Reverse(page)| page))
    }
}
