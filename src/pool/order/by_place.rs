//! Orders in which a page's place in the pool decides, and not when it was given back.
//!
//! A [`PageSet`] knows each free page once. [`ByPlace`] makes a free list of it: a page that was
//! given back twice is free again as soon as its first copy is handed out.

use super::FreeOrder;
use crate::units::{PageId, Pages};

/// Free pages, each once, and which of them go together.
pub trait PageSet: Default + Send {
    /// Puts in a page that is not there.
    fn add(&mut self, page: PageId);

    /// Takes out `count` pages, as they are handed out. There are as many.
    fn take(&mut self, count: Pages) -> Vec<PageId>;
}

/// The free list of a set of pages.
#[derive(Default)]
pub struct ByPlace<S> {
    set: S,
    /// Pages in the set.
    distinct: Pages,
    /// Free pages, doubles included.
    total: Pages,
    /// How often each page is free, by its number.
    copies: Vec<u32>,
}

impl<S: PageSet> ByPlace<S> {
    fn add(&mut self, page: PageId) {
        self.distinct += Pages(1);
        self.set.add(page);
    }
}

impl<S: PageSet> FreeOrder for ByPlace<S> {
    fn ready(&self) -> Pages {
        self.total
    }

    fn waiting(&self) -> Pages {
        Pages(0)
    }

    fn merge(&mut self) {}

    fn take(&mut self, count: Pages) -> Vec<PageId> {
        let mut taken = Vec::with_capacity(count.index());
        // The set has each page once: only pages that were given back twice need a second round.
        while taken.len() < count.index() {
            let round = (count - Pages::of(&taken)).min(self.distinct);
            assert!(round > Pages(0), "the list holds what is taken");
            let pages = self.set.take(round);
            self.distinct -= round;
            self.total -= round;
            for &page in &pages {
                self.copies[page.index()] -= 1;
                if self.copies[page.index()] > 0 {
                    self.add(page);
                }
            }
            taken.extend(pages);
        }
        taken
    }

    fn give(&mut self, pages: &[PageId]) {
        for &page in pages {
            if self.copies.len() <= page.index() {
                self.copies.resize(page.index() + 1, 0);
            }
            self.copies[page.index()] += 1;
            self.total += Pages(1);
            if self.copies[page.index()] == 1 {
                self.add(page);
            }
        }
    }

    fn pages(&self) -> Box<dyn Iterator<Item = PageId> + '_> {
        let copies = (0..).map(PageId).zip(&self.copies);
        Box::new(copies.flat_map(|(page, &copies)| (0..copies).map(move |_| page)))
    }
}
