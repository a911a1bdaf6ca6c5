//! Recorded operations on a radix cache, replayed on a [`RadixCache`].
//!
//! The records name tokens and rows, the tree page keys and pages. Each token of a key becomes a
//! run of its own, so that keys are made here as everywhere; rows must be whole pages.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::LineError;
use super::replay::{self, Impossible};
use crate::behaviour::SplitStamp;
use crate::cache::eviction::{Eviction, EvictionPolicy, Ordered};
use crate::cache::radix::RadixCache;
use crate::cache::tail::TailLru;
use crate::cache::{Anchor, Insertion, PrefixCache};
use crate::limits;
use crate::prompt::{Chains, ContentId, ContentRun, PageKey};
use crate::units::{PageId, PageSize, Pages, Row, Tokens};

/// One cache and what was done with it; the answers are in the ops.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    policy: Policy,
    page_size: u32,
    /// The number of `tlru`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tail_tokens: Option<u32>,
    ops: Vec<Op>,
}

/// The policies of the real caches.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Policy {
    Lru,
    Lfu,
    Fifo,
    Mru,
    Filo,
    Priority,
    Slru,
    /// Needs `tail_tokens`.
    Tlru,
}

impl Policy {
    /// The policy as an order, if it is one.
    fn order(self) -> Option<Eviction> {
        Some(match self {
            Policy::Lru => Eviction::Lru,
            Policy::Lfu => Eviction::Lfu,
            Policy::Fifo => Eviction::Fifo,
            Policy::Mru => Eviction::Mru,
            Policy::Filo => Eviction::Filo,
            Policy::Priority => Eviction::Priority,
            Policy::Slru => Eviction::Slru,
            Policy::Tlru => return None,
        })
    }
}

impl Line {
    fn policy(&self, page: PageSize) -> Result<Box<dyn EvictionPolicy>, Impossible> {
        match (self.policy.order(), self.tail_tokens) {
            (Some(order), None) => Ok(Box::new(Ordered::new(order))),
            (None, Some(tail)) => Ok(Box::new(TailLru::new(Tokens(tail), page))),
            (Some(_), Some(_)) | (None, None) => {
                let wanted = "must be there for tlru, and for no other policy".to_owned();
                Err(Impossible::new("tail_tokens", wanted))
            }
        }
    }
}

/// One operation. `evictable` and `protected` are answers of each; the others are named.
#[derive(Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
enum Op {
    /// Answers `rows`.
    Match {
        key: Vec<u64>,
        rows: Vec<u32>,
        evictable: u64,
        protected: u64,
    },
    /// Answers `matched`.
    Insert {
        key: Vec<u64>,
        rows: Vec<u32>,
        priority: i64,
        matched: u64,
        evictable: u64,
        protected: u64,
    },
    /// Answers `matched`.
    Lock {
        key: Vec<u64>,
        lock: u64,
        matched: u64,
        evictable: u64,
        protected: u64,
    },
    Unlock {
        lock: u64,
        evictable: u64,
        protected: u64,
    },
    /// Answers `evicted` and `freed`.
    Evict {
        tokens: u32,
        evicted: u64,
        freed: Vec<Vec<u32>>,
        evictable: u64,
        protected: u64,
    },
}

/// Replays one line on the tree of this kind and compares every answer.
pub(super) fn check(line: &str, split_stamp: SplitStamp) -> Result<(), LineError> {
    replay::check(line, |line: &mut Line| line.replay(split_stamp))
}

impl Line {
    /// Puts the model's answers in the place of the recorded ones.
    fn replay(&mut self, split_stamp: SplitStamp) -> Result<(), Impossible> {
        let page = PageSize::new(self.page_size)
            .filter(|page| limits::PAGE_SIZE.contains(&page.get()))
            .ok_or_else(|| {
                let (least, most) = limits::PAGE_SIZE.into_inner();
                Impossible::new(
                    "page_size",
                    format!("must be {least} to {most}, got {}", self.page_size),
                )
            })?;
        let mut replay = Replay {
            page,
            chains: Chains::default(),
            cache: RadixCache::new(self.policy(page)?, split_stamp),
            locks: BTreeMap::new(),
        };
        for (index, op) in self.ops.iter_mut().enumerate() {
            replay.op(op).map_err(|reason| reason.in_op(index))?;
        }
        Ok(())
    }
}

/// The cache in the middle of a line.
struct Replay {
    page: PageSize,
    chains: Chains,
    cache: RadixCache,
    /// Locks that are held, by their label.
    locks: BTreeMap<u64, Anchor>,
}

impl Replay {
    fn op(&mut self, op: &mut Op) -> Result<(), Impossible> {
        let (evictable, protected) = match op {
            Op::Match { key, rows, evictable, protected } => {
                let keys = self.keys(key)?;
                let hit = self.cache.lookup(&keys);
                *rows = self.rows(&hit.pages);
                (evictable, protected)
            }
            Op::Insert { key, rows, priority, matched, evictable, protected } => {
                let keys = self.keys(key)?;
                let pages = self.pages(rows, keys.len())?;
                let how = Insertion { priority: *priority, ..Insertion::default() };
                let taken = self.cache.insert(&keys, &pages, how);
                let present: Vec<bool> = taken.into_iter().filter(|taken| !taken).collect();
                *matched = self.tokens(Pages::of(&present));
                (evictable, protected)
            }
            Op::Lock { key, lock, matched, evictable, protected } => {
                *matched = self.lock(*lock, key)?;
                (evictable, protected)
            }
            Op::Unlock { lock, evictable, protected } => {
                self.unlock(*lock)?;
                (evictable, protected)
            }
            Op::Evict { tokens, evicted, freed, evictable, protected } => {
                // Leaves are whole pages, so the tokens asked for are freed exactly when that many
                // pages are.
                let leaves = self.cache.evict(Tokens(*tokens).pages_ceil(self.page));
                *evicted = self.tokens(leaves.iter().map(|leaf| Pages::of(leaf)).sum());
                *freed = leaves.iter().map(|leaf| self.rows(leaf)).collect();
                (evictable, protected)
            }
        };
        *evictable = self.tokens(self.cache.evictable());
        *protected = self.tokens(self.cache.protected());
        Ok(())
    }

    fn lock(&mut self, label: u64, key: &[u64]) -> Result<u64, Impossible> {
        let keys = self.keys(key)?;
        let hit = self.cache.lookup(&keys);
        if self.locks.insert(label, hit.anchor).is_some() {
            return Err(Impossible::new(
                "lock",
                format!("must be a label that is not held, got {label}"),
            ));
        }
        let locked = self.cache.lock(hit.anchor);
        assert!(locked, "an anchor lives until the next eviction");
        Ok(self.tokens(Pages::of(&hit.pages)))
    }

    fn unlock(&mut self, label: u64) -> Result<(), Impossible> {
        let anchor = self.locks.remove(&label).ok_or_else(|| {
            Impossible::new("lock", format!("must be a label that is held, got {label}"))
        })?;
        let unlocked = self.cache.unlock(anchor);
        assert!(unlocked, "an anchor lives while it is locked");
        Ok(())
    }

    fn keys(&mut self, key: &[u64]) -> Result<Vec<PageKey>, Impossible> {
        if key.len() > limits::PROMPT_RUNS_MAX {
            let (most, got) = (limits::PROMPT_RUNS_MAX, key.len());
            return Err(Impossible::new(
                "key",
                format!("must have at most {most} tokens, got {got}"),
            ));
        }
        let runs = key.iter().map(|&token| ContentRun::whole(ContentId(token), Tokens(1)));
        let sequence = self.chains.sequence(0, runs);
        Ok(sequence.page_keys(self.page, sequence.len()))
    }

    /// The pages of `count` pages' rows.
    fn pages(&self, rows: &[u32], count: usize) -> Result<Vec<PageId>, Impossible> {
        let size = self.page.get() as usize;
        if rows.len() != count * size {
            let (least, got) = (count * size, rows.len());
            return Err(Impossible::new(
                "rows",
                format!("must be {least}, the key's whole pages, got {got}"),
            ));
        }
        rows.chunks(size)
            .map(|rows| {
                let (id, _) = Row(rows[0]).split(self.page);
                let whole = id > PageId(0) && rows.iter().eq(&self.rows(&[id]));
                whole.then_some(id).ok_or_else(|| {
                    let size = self.page;
                    Impossible::new(
                        "rows",
                        format!("must be whole pages of {size} rows after page 0, got {rows:?}"),
                    )
                })
            })
            .collect()
    }

    fn rows(&self, pages: &[PageId]) -> Vec<u32> {
        let rows = |id: &PageId| {
            let id = *id;
            (0..self.page.get()).map(move |offset| id.row(self.page, offset).0)
        };
        pages.iter().flat_map(rows).collect()
    }

    fn tokens(&self, pages: Pages) -> u64 {
        u64::from(pages.0) * u64::from(self.page.get())
    }
}
