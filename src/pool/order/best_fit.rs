//! Best fit: pages of one call come from the smallest run of consecutive free pages that holds them
//! all, so that large runs stay whole for large requests.

use std::collections::{BTreeMap, BTreeSet};

use super::by_place::PageSet;
use crate::units::{PageId, Pages};

/// Free pages as maximal runs. A call that no run can serve gets the largest run, then the best fit
/// for the rest. Of equal runs the lowest goes first, and a run is used from its start.
#[derive(Default)]
pub struct BestFit {
    /// The page after each run, by the run's first page.
    ends: BTreeMap<u32, u32>,
    /// Length and first page of each run.
    by_length: BTreeSet<(u32, u32)>,
}

impl BestFit {
    fn insert(&mut self, start: u32, end: u32) {
        self.ends.insert(start, end);
        self.by_length.insert((end - start, start));
    }

    fn remove(&mut self, start: u32, end: u32) {
        self.ends.remove(&start);
        self.by_length.remove(&(end - start, start));
    }

    /// Length and first page of the run for a call of `count` pages.
    fn choose(&self, count: u32) -> Option<(u32, u32)> {
        let fit = self.by_length.range((count, 0)..).next();
        let choice = fit.or_else(|| {
            let &(longest, _) = self.by_length.last()?;
            self.by_length.range((longest, 0)..).next()
        });
        choice.copied()
    }
}

impl PageSet for BestFit {
    fn add(&mut self, page: PageId) {
        let (mut start, mut end) = (page.0, page.0 + 1);
        if let Some((&before, &until)) = self.ends.range(..start).next_back()
            && until == start
        {
            self.remove(before, until);
            start = before;
        }
        if let Some(&until) = self.ends.get(&end) {
            self.remove(end, until);
            end = until;
        }
        self.insert(start, end);
    }

    fn take(&mut self, count: Pages) -> Vec<PageId> {
        let mut taken = Vec::with_capacity(count.index());
        while taken.len() < count.index() {
            let rest = (count - Pages::of(&taken)).0;
            let (length, start) = self.choose(rest).expect("the set holds what is taken");
            let used = length.min(rest);
            self.remove(start, start + length);
            if used < length {
                self.insert(start + used, start + length);
            }
            taken.extend((start..start + used).map(PageId));
        }
        taken
    }
}
