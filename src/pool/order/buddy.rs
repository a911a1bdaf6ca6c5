//! Buddies: free pages in blocks of a power of two, each aligned to its size, which merge again
//! when both halves are free.

use std::collections::BTreeSet;

use super::by_place::PageSet;
use crate::limits;
use crate::units::{PageId, Pages};

/// Sizes of blocks: 2^0 up to the whole of the largest pool.
const SIZES: usize = limits::POOL_PAGES.end().ilog2() as usize + 1;

/// Free pages as aligned blocks. A call gets the beginning of the smallest block that holds it all;
/// where its count is no power of two, the rest of the block stays free, as smaller blocks. Where
/// no block is large enough, the call gets the largest one, and its remainder is served in the same
/// way. Of equal blocks the lowest goes first.
#[derive(Default)]
pub struct Buddy {
    /// The first page of each free block, counted from 0 as the first page of the pool, by the
    /// logarithm of the block's size.
    blocks: [BTreeSet<u32>; SIZES],
}

impl PageSet for Buddy {
    fn add(&mut self, page: PageId) {
        let mut start = page.0.checked_sub(1).expect("page 0 is padding and never free");
        let mut size = 0;
        while self.blocks[size].remove(&(start ^ (1 << size))) {
            start &= !(1 << size);
            size += 1;
        }
        self.blocks[size].insert(start);
    }

    fn take(&mut self, count: Pages) -> Vec<PageId> {
        let mut taken = Vec::with_capacity(count.index());
        while taken.len() < count.index() {
            let rest = (count - Pages::of(&taken)).0;
            let fits = rest.next_power_of_two().ilog2() as usize;
            let (size, start) = (fits..SIZES)
                .chain((0..fits.min(SIZES)).rev())
                .find_map(|size| Some((size, self.blocks[size].pop_first()?)))
                .expect("the set holds what is taken");
            let end = start + (1 << size);
            let used = end.min(start + rest);
            taken.extend((start..used).map(|page| PageId(page + 1)));
            // What is left of the block goes back as blocks. The largest one aligned to `free` is
            // as long as the lowest set bit of `free`.
            let mut free = used;
            while free < end {
                let size = free.trailing_zeros();
                self.blocks[size as usize].insert(free);
                free += 1 << size;
            }
        }
        taken
    }
}
