//! Any free page, all equally likely. It is the worst case for runs of neighbouring pages.

use super::FreeOrder;
use crate::rng::Stream;
use crate::units::{PageId, Pages};

/// Each page taken is drawn from a stream of random numbers.
pub struct Random {
    list: Vec<PageId>,
    stream: Stream,
}

impl Random {
    /// An empty list that draws from `stream`.
    pub fn new(stream: Stream) -> Random {
        Random { list: Vec::new(), stream }
    }
}

impl FreeOrder for Random {
    fn ready(&self) -> Pages {
        Pages::of(&self.list)
    }

    fn waiting(&self) -> Pages {
        Pages(0)
    }

    fn merge(&mut self) {}

    fn take(&mut self, count: Pages) -> Vec<PageId> {
        let mut draw = |_| {
            let drawn = self.stream.below(self.list.len() as u64);
            self.list.swap_remove(usize::try_from(drawn).expect("the list fits into memory"))
        };
        (0..count.0).map(&mut draw).collect()
    }

    fn give(&mut self, pages: &[PageId]) {
        self.list.extend_from_slice(pages);
    }

    fn pages(&self) -> Box<dyn Iterator<Item = PageId> + '_> {
        Box::new(self.list.iter().copied())
    }
}
