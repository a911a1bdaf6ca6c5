//! The block-hash cache: a table from page hashes to pages, and a queue of the pages that may go.
//!
//! Where an engine chains hashes, a page is named here by its ordinal and its [`PageKey`], which
//! together stand for all tokens up to its end. Each page is dropped for itself. Those without a
//! lock wait in a queue, least recently used first: a lock takes them out, and the end of their
//! last lock puts them back at the end, the last pages of a prompt before its first ones, so that
//! prompts are evicted from their ends. Neither a lookup alone nor an insert of what is there
//! already counts as a use.
//!
//! So a page can go before one that follows it, where a prompt was inserted beside older pages of
//! its beginning. Lookups then end at the gap, and what follows is out of reach, though still owned
//! and still evictable, until somebody inserts the missing page again.

use std::collections::BTreeMap;

use super::{Anchor, Hit, Insertion, PrefixCache};
use crate::prompt::PageKey;
use crate::units::{PageId, Pages};

/// The place of a block in the arena.
type Slot = u32;

/// The root stands for the empty prefix: it holds no page and never queues.
const ROOT: Slot = 0;

/// What names a page and all that precedes it. Keys alone repeat from page to page.
type Hash = (Pages, PageKey);

struct Block {
    hash: Hash,
    page: PageId,
    /// The block of the page before, as the last walk over this one found it. It may have gone
    /// since.
    before: Anchor,
    /// Locks taken on this very block.
    own_locks: u32,
    /// Locks taken on this block or on one that follows it.
    locks: u32,
    /// Its place in the queue.
    turn: Option<u64>,
    /// Changes whenever older anchors of this slot must not be used any more: when the block goes,
    /// and when the page before it is another one.
    generation: u32,
}

/// A table of pages by hash, with a least-recently-used queue.
pub struct BlockHashCache {
    table: BTreeMap<Hash, Slot>,
    blocks: Vec<Block>,
    vacant: Vec<Slot>,
    /// Blocks without a lock by turn; the first goes first.
    queue: BTreeMap<u64, Slot>,
    next_turn: u64,
}

impl Default for BlockHashCache {
    fn default() -> BlockHashCache {
        let root = Block {
            hash: (Pages(0), PageKey(0)),
            page: PageId(0),
            before: Anchor { slot: ROOT, generation: 0 },
            own_locks: 0,
            locks: 0,
            turn: None,
            generation: 0,
        };
        BlockHashCache {
            table: BTreeMap::new(),
            blocks: vec![root],
            vacant: Vec::new(),
            queue: BTreeMap::new(),
            next_turn: 0,
        }
    }
}

fn as_slot(index: usize) -> Slot {
    Slot::try_from(index).expect("limits keep page lists within u32")
}

/// The hash of each page of a prompt.
fn hashes(keys: &[PageKey]) -> impl Iterator<Item = Hash> + '_ {
    (0..).map(Pages).zip(keys.iter().copied())
}

impl BlockHashCache {
    fn block(&self, slot: Slot) -> &Block {
        &self.blocks[slot as usize]
    }

    fn anchor(&self, slot: Slot) -> Anchor {
        Anchor { slot, generation: self.block(slot).generation }
    }

    /// The slot of a living anchor.
    fn resolve(&self, anchor: Anchor) -> Option<Slot> {
        let block = self.blocks.get(anchor.slot as usize)?;
        (block.generation == anchor.generation).then_some(anchor.slot)
    }

    /// The blocks from a living anchor back to the first page, if each is still there.
    fn path(&self, anchor: Anchor) -> Option<Vec<Slot>> {
        let mut path = Vec::new();
        let mut slot = self.resolve(anchor)?;
        while slot != ROOT {
            path.push(slot);
            slot = self.resolve(self.block(slot).before)?;
        }
        Some(path)
    }

    /// States which block precedes this one.
    fn follow(&mut self, slot: Slot, before: Anchor) {
        let block = &mut self.blocks[slot as usize];
        if block.before != before {
            assert_eq!(block.locks, 0, "what precedes a locked block is locked and stays");
            block.before = before;
            block.generation += 1;
        }
    }

    /// Puts a new block into a free slot. It does not queue yet.
    fn place(&mut self, hash: Hash, page: PageId, before: Anchor) -> Slot {
        let block = Block { hash, page, before, own_locks: 0, locks: 0, turn: None, generation: 0 };
        let slot = match self.vacant.pop() {
            Some(slot) => {
                let generation = self.block(slot).generation;
                self.blocks[slot as usize] = Block { generation, ..block };
                slot
            }
            None => {
                self.blocks.push(block);
                as_slot(self.blocks.len() - 1)
            }
        };
        self.table.insert(hash, slot);
        slot
    }

    /// Puts a block that does not queue at the end of the queue.
    fn enqueue(&mut self, slot: Slot) {
        self.queue.insert(self.next_turn, slot);
        self.blocks[slot as usize].turn = Some(self.next_turn);
        self.next_turn += 1;
    }

    fn dequeue(&mut self, slot: Slot) {
        if let Some(turn) = self.blocks[slot as usize].turn.take() {
            self.queue.remove(&turn);
        }
    }
}

impl PrefixCache for BlockHashCache {
    fn lookup(&mut self, keys: &[PageKey]) -> Hit {
        let mut anchor = self.anchor(ROOT);
        let mut pages = Vec::new();
        for hash in hashes(keys) {
            let Some(&slot) = self.table.get(&hash) else {
                break;
            };
            self.follow(slot, anchor);
            anchor = self.anchor(slot);
            pages.push(self.block(slot).page);
        }
        Hit { pages, anchor }
    }

    fn lock(&mut self, anchor: Anchor) -> bool {
        let Some(path) = self.path(anchor) else {
            return false;
        };
        self.blocks[anchor.slot as usize].own_locks += 1;
        for slot in path {
            self.dequeue(slot);
            self.blocks[slot as usize].locks += 1;
        }
        true
    }

    fn unlock(&mut self, anchor: Anchor) -> bool {
        let locked = self.resolve(anchor).filter(|&slot| self.block(slot).own_locks > 0);
        let Some(slot) = locked else {
            return false;
        };
        self.blocks[slot as usize].own_locks -= 1;
        for slot in self.path(anchor).expect("a locked path stays") {
            self.blocks[slot as usize].locks -= 1;
            if self.block(slot).locks == 0 {
                self.enqueue(slot);
            }
        }
        true
    }

    fn insert(&mut self, keys: &[PageKey], pages: &[PageId], _how: Insertion) -> Vec<bool> {
        assert_eq!(keys.len(), pages.len(), "an insert names a page for each key");
        let mut taken = Vec::with_capacity(keys.len());
        let mut placed = Vec::new();
        let mut before = self.anchor(ROOT);
        for (hash, &page) in hashes(keys).zip(pages) {
            let present = self.table.get(&hash).copied();
            taken.push(present.is_none());
            let slot = match present {
                Some(slot) => {
                    self.follow(slot, before);
                    slot
                }
                None => {
                    let slot = self.place(hash, page, before);
                    placed.push(slot);
                    slot
                }
            };
            before = self.anchor(slot);
        }
        for slot in placed.into_iter().rev() {
            self.enqueue(slot);
        }
        taken
    }

    fn evict(&mut self, wanted: Pages) -> Vec<Vec<PageId>> {
        let mut freed = Vec::new();
        while freed.len() < wanted.index() {
            let Some((_, slot)) = self.queue.pop_first() else {
                break;
            };
            let block = &mut self.blocks[slot as usize];
            block.turn = None;
            block.generation += 1;
            self.table.remove(&block.hash);
            freed.push(vec![block.page]);
            self.vacant.push(slot);
        }
        freed
    }

    fn clear(&mut self) {
        for block in &mut self.blocks {
            (block.own_locks, block.locks, block.turn) = (0, 0, None);
            block.generation += 1;
        }
        self.vacant = (1..self.blocks.len()).rev().map(as_slot).collect();
        self.table.clear();
        self.queue.clear();
    }

    fn evictable(&self) -> Pages {
        Pages(u32::try_from(self.queue.len()).expect("limits keep page lists within u32"))
    }

    fn protected(&self) -> Pages {
        let held = u32::try_from(self.table.len()).expect("limits keep page lists within u32");
        Pages(held) - self.evictable()
    }

    fn pages(&self) -> Box<dyn Iterator<Item = PageId> + '_> {
        Box::new(self.table.values().map(|&slot| self.block(slot).page))
    }
}

#[cfg(test)]
mod tests;
