//! The radix cache: a tree whose nodes hold stretches of pages, split where prompts part.
//!
//! Times of use, hit counts and priorities are those of the real tree, since they decide what goes
//! first. One reading of the logical clock serves a whole lookup or insert; a new node reads twice
//! more, for its access and its creation. A split puts a new node *above* the old one, so a locked
//! node keeps its identity. The policy of eviction is told which leaves are unlocked, so that an
//! eviction costs what it frees.

use std::collections::BTreeMap;

use super::eviction::{self, EvictionPolicy, LogicalTime, Usage};
use super::{Anchor, Hit, Insertion, PrefixCache};
use crate::behaviour::SplitStamp;
use crate::prompt::PageKey;
use crate::units::{PageId, Pages};

/// The slot of a node in the arena.
type Slot = u32;

/// The root holds no page and is never evicted.
const ROOT: Slot = 0;

struct Node {
    keys: Vec<PageKey>,
    pages: Vec<PageId>,
    /// Pages of a prompt before these.
    depth: Pages,
    parent: Slot,
    children: BTreeMap<PageKey, Slot>,
    /// Locks taken on this very node.
    own_locks: u32,
    /// Locks taken on this node or below: while there is one, the node stays.
    locks: u32,
    usage: Usage,
    /// How many nodes had this slot before.
    generation: u32,
}

impl Node {
    /// Whether an eviction may take the node, which is not the root: it has neither lock nor
    /// children.
    fn can_go(&self) -> bool {
        self.locks == 0 && self.children.is_empty()
    }

    /// The node in `slot` as the policy sees it.
    fn view(&self, slot: Slot) -> eviction::Node<'_> {
        let anchor = Anchor { slot, generation: self.generation };
        eviction::Node { anchor, depth: self.depth, keys: &self.keys, usage: self.usage }
    }
}

/// A radix tree of pages with one eviction policy.
pub struct RadixCache {
    policy: Box<dyn EvictionPolicy>,
    split_stamp: SplitStamp,
    nodes: Vec<Node>,
    vacant: Vec<Slot>,
    clock: LogicalTime,
    evictable: Pages,
    protected: Pages,
}

impl RadixCache {
    /// An empty cache.
    pub fn new(policy: Box<dyn EvictionPolicy>, split_stamp: SplitStamp) -> RadixCache {
        let root = Node {
            keys: Vec::new(),
            pages: Vec::new(),
            depth: Pages(0),
            parent: ROOT,
            children: BTreeMap::new(),
            own_locks: 0,
            locks: 0,
            usage: Usage { access: 0, creation: 0, hits: 0, priority: 0, reach: Pages(0) },
            generation: 0,
        };
        RadixCache {
            policy,
            split_stamp,
            nodes: vec![root],
            vacant: Vec::new(),
            clock: 0,
            evictable: Pages(0),
            protected: Pages(0),
        }
    }

    fn node(&self, slot: Slot) -> &Node {
        &self.nodes[slot as usize]
    }

    fn tick(&mut self) -> LogicalTime {
        self.clock += 1;
        self.clock
    }

    /// Changes locks or children of a node; the only way to, since the policy must hear whether the
    /// node can go.
    fn change(&mut self, slot: Slot, change: impl FnOnce(&mut Node)) {
        let node = &mut self.nodes[slot as usize];
        let could_go = node.can_go();
        change(node);
        if slot == ROOT {
            return;
        }
        match (could_go, node.can_go()) {
            (false, true) => self.policy.offer(&node.view(slot)),
            (true, false) => self.policy.withdraw(&node.view(slot)),
            (false, false) | (true, true) => {}
        }
    }

    /// Notes that a walk passed a node; the only way to change its usage.
    fn used(&mut self, slot: Slot, passed: impl FnOnce(&mut Usage)) {
        let node = &mut self.nodes[slot as usize];
        let before = node.usage;
        passed(&mut node.usage);
        self.policy.used(&before, &node.view(slot), node.can_go());
    }

    /// Puts a node into a free slot.
    fn place(&mut self, mut node: Node) -> Slot {
        let slot = match self.vacant.pop() {
            Some(slot) => {
                node.generation = self.node(slot).generation + 1;
                self.nodes[slot as usize] = node;
                slot
            }
            None => {
                self.nodes.push(node);
                as_slot(self.nodes.len() - 1)
            }
        };
        let node = &self.nodes[slot as usize];
        if node.can_go() {
            self.policy.offer(&node.view(slot));
        }
        slot
    }

    /// Walks down as far as `keys` are cached, splits the node in which they part, and returns the
    /// last node and the pages up to its end. Each node passed gets the walk's stamp; `passed` is
    /// applied to it with the pages up to its end, and to the new upper node of a split instead of
    /// the lower.
    fn walk(&mut self, keys: &[PageKey], passed: impl Fn(&mut Usage, Pages)) -> (Slot, usize) {
        let now = self.tick();
        let (mut slot, mut matched) = (ROOT, 0);
        while let Some(&child) = keys.get(matched).and_then(|key| self.node(slot).children.get(key))
        {
            let rest = &keys[matched..];
            let common = common_prefix(&self.node(child).keys, rest);
            matched += common;
            let end = Pages::of(&keys[..matched]);
            if common < self.node(child).keys.len() {
                self.used(child, |usage| usage.access = now);
                slot = self.split(child, common);
                self.used(slot, |usage| passed(usage, end));
                break;
            }
            self.used(child, |usage| {
                usage.access = now;
                passed(usage, end);
            });
            slot = child;
        }
        (slot, matched)
    }

    /// Moves the first `at` pages of `lower` into a new node above it and returns that.
    fn split(&mut self, lower: Slot, at: usize) -> Slot {
        let (access, new) = (self.tick(), self.tick());
        let node = &mut self.nodes[lower as usize];
        let creation = match self.split_stamp {
            SplitStamp::New => new,
            SplitStamp::Inherited => node.usage.creation,
        };
        let keys_below = node.keys.split_off(at);
        let pages_below = node.pages.split_off(at);
        let upper = Node {
            keys: std::mem::replace(&mut node.keys, keys_below),
            pages: std::mem::replace(&mut node.pages, pages_below),
            depth: node.depth,
            parent: node.parent,
            children: BTreeMap::from([(node.keys[0], lower)]),
            own_locks: 0,
            locks: node.locks,
            usage: Usage { access, creation, ..node.usage },
            generation: 0,
        };
        node.depth += Pages::of(&upper.pages);
        let (parent, first) = (upper.parent, upper.keys[0]);
        let upper = self.place(upper);
        let [above, below] = [upper, lower].map(|slot| self.nodes[slot as usize].view(slot));
        self.policy.split(&above, &below);
        self.nodes[lower as usize].parent = upper;
        self.change(parent, |node| {
            node.children.insert(first, upper);
        });
        upper
    }

    /// Applies `change` to the lock count of a node and all above it, and moves pages between
    /// evictable and protected where a count leaves or reaches zero.
    fn relock(&mut self, slot: Slot, change: impl Fn(u32) -> u32) {
        let mut slot = slot;
        while slot != ROOT {
            let node = self.node(slot);
            let (old, new) = (node.locks, change(node.locks));
            let (parent, pages) = (node.parent, Pages::of(&node.pages));
            self.change(slot, |node| node.locks = new);
            if old == 0 {
                self.evictable -= pages;
                self.protected += pages;
            } else if new == 0 {
                self.protected -= pages;
                self.evictable += pages;
            }
            slot = parent;
        }
    }

    /// The slot of a living anchor.
    fn resolve(&self, anchor: Anchor) -> Option<Slot> {
        let node = self.nodes.get(anchor.slot as usize)?;
        let alive = anchor.slot == ROOT || !node.pages.is_empty();
        (alive && node.generation == anchor.generation).then_some(anchor.slot)
    }

    /// Takes the policy's victim out of the tree and returns its pages.
    fn drop_leaf(&mut self, victim: Anchor) -> Vec<PageId> {
        let slot = self.resolve(victim).filter(|&slot| slot != ROOT && self.node(slot).can_go());
        let slot = slot.expect("an eviction policy names a node that it was offered");
        self.policy.evicted(&self.nodes[slot as usize].view(slot));
        let node = &mut self.nodes[slot as usize];
        let first = node.keys[0];
        let parent = node.parent;
        node.keys = Vec::new();
        let pages = std::mem::take(&mut node.pages);
        self.vacant.push(slot);
        self.change(parent, |node| {
            node.children.remove(&first);
        });
        self.evictable -= Pages::of(&pages);
        pages
    }
}

fn as_slot(index: usize) -> Slot {
    Slot::try_from(index).expect("fewer nodes than pages")
}

/// The length of the common beginning.
fn common_prefix(stretch: &[PageKey], keys: &[PageKey]) -> usize {
    if keys.starts_with(stretch) {
        return stretch.len();
    }
    stretch.iter().zip(keys).take_while(|(a, b)| a == b).count()
}

impl PrefixCache for RadixCache {
    fn lookup(&mut self, keys: &[PageKey]) -> Hit {
        let (slot, matched) = self.walk(keys, |_, _| {});
        let anchor = Anchor { slot, generation: self.node(slot).generation };
        let mut stretches = Vec::new();
        let mut at = slot;
        while at != ROOT {
            stretches.push(&self.node(at).pages);
            at = self.node(at).parent;
        }
        let mut pages = Vec::with_capacity(matched);
        for stretch in stretches.into_iter().rev() {
            pages.extend_from_slice(stretch);
        }
        Hit { pages, anchor }
    }

    fn lock(&mut self, anchor: Anchor) -> bool {
        let Some(slot) = self.resolve(anchor) else {
            return false;
        };
        self.change(slot, |node| node.own_locks += 1);
        self.relock(slot, |locks| locks + 1);
        true
    }

    fn unlock(&mut self, anchor: Anchor) -> bool {
        let locked = self.resolve(anchor).filter(|&slot| self.node(slot).own_locks > 0);
        let Some(slot) = locked else {
            return false;
        };
        self.change(slot, |node| node.own_locks -= 1);
        self.relock(slot, |locks| locks - 1);
        true
    }

    fn insert(&mut self, keys: &[PageKey], pages: &[PageId], how: Insertion) -> Vec<bool> {
        assert_eq!(keys.len(), pages.len(), "an insert names a page for each key");
        let Insertion { priority, counted } = how;
        let reach = Pages::of(keys);
        let (parent, matched) = self.walk(keys, |usage, end| {
            usage.hits += u32::from(end > counted);
            usage.priority = usage.priority.max(priority);
            usage.reach = usage.reach.max(reach);
        });
        if let Some(&first) = keys.get(matched) {
            let (access, creation) = (self.tick(), self.tick());
            let leaf = self.place(Node {
                keys: keys[matched..].to_vec(),
                pages: pages[matched..].to_vec(),
                depth: Pages::of(&keys[..matched]),
                parent,
                children: BTreeMap::new(),
                own_locks: 0,
                locks: 0,
                usage: Usage {
                    access,
                    creation,
                    hits: u32::from(reach > counted),
                    priority,
                    reach,
                },
                generation: 0,
            });
            self.change(parent, |node| {
                node.children.insert(first, leaf);
            });
            self.evictable += Pages::of(&pages[matched..]);
        }
        (0..keys.len()).map(|ordinal| ordinal >= matched).collect()
    }

    fn evict(&mut self, wanted: Pages) -> Vec<Vec<PageId>> {
        let mut freed = Vec::new();
        let mut count = Pages(0);
        while count < wanted {
            let Some(victim) = self.policy.victim(self.clock) else {
                break;
            };
            let pages = self.drop_leaf(victim);
            count += Pages::of(&pages);
            freed.push(pages);
        }
        freed
    }

    fn clear(&mut self) {
        // Slots keep counting their generations, so that an old anchor is never taken for a new
        // place.
        for slot in 1..self.nodes.len() {
            let node = &mut self.nodes[slot];
            node.keys = Vec::new();
            node.pages = Vec::new();
            node.children.clear();
            (node.own_locks, node.locks) = (0, 0);
        }
        let root = &mut self.nodes[ROOT as usize];
        root.children.clear();
        (root.own_locks, root.locks) = (0, 0);
        root.generation += 1;
        self.vacant = (1..self.nodes.len()).rev().map(as_slot).collect();
        self.policy.clear();
        (self.evictable, self.protected) = (Pages(0), Pages(0));
    }

    fn evictable(&self) -> Pages {
        self.evictable
    }

    fn protected(&self) -> Pages {
        self.protected
    }

    fn pages(&self) -> Box<dyn Iterator<Item = PageId> + '_> {
        Box::new(self.nodes.iter().flat_map(|node| &node.pages).copied())
    }
}

#[cfg(test)]
mod tests;
