//! The policies that a scenario can name, and how each is made.
//!
//! [`Registry::default`] knows the built-in ones. A user of the library adds their own under a new
//! name and runs scenarios that name it through [`run_with`](super::run_with):
//!
//! ```
//! use kvseam::pool::order::{FreeOrder, Stack};
//! use kvseam::world::Registry;
//!
//! let mut registry = Registry::default();
//! // Any type that implements `FreeOrder` would do in the place of `Stack`.
//! registry.free_orders.insert("mine".to_owned(), |_setup| Box::new(Stack::default()));
//! assert!(registry.free_orders.contains_key("mine"));
//! ```

use std::collections::BTreeMap;

use super::admission::{Admission, FirstCome, LongestPrefix};
use crate::behaviour::PlannerRevision;
use crate::cache::PrefixCache;
use crate::cache::block_hash::BlockHashCache;
use crate::cache::eviction::{Eviction, EvictionPolicy};
use crate::cache::radix::RadixCache;
use crate::engine::sglang::{Checked, Indexed};
use crate::planner::Planner;
use crate::pool::order::{self, BestFit, Buddy, ByPlace, FreeOrder, Lowest, Queue, Random};
use crate::rng::Stream;
use crate::scenario::validate::{BLOCK_HASH, FIRST_COME, KnownPolicies, NO_CACHE};
use crate::units::PageSize;

/// What a free list is made from.
#[derive(Clone)]
pub struct FreeOrderSetup {
    /// Rows of a page of its pool.
    pub page: PageSize,
    /// Randomness for this pool alone, from the scenario's seed.
    pub stream: Stream,
}

/// Makes a pool's free list.
pub type MakeFreeOrder = fn(FreeOrderSetup) -> Box<dyn FreeOrder>;
/// Makes a prefix cache; `None` is to have none.
pub type MakeCache = fn(Box<dyn EvictionPolicy>) -> Option<Box<dyn PrefixCache>>;
/// Makes an eviction policy.
pub type MakeEviction = fn() -> Box<dyn EvictionPolicy>;
/// Makes an order of admission.
pub type MakeAdmission = fn() -> Box<dyn Admission>;
/// Makes a planner.
pub type MakePlanner = fn() -> Box<dyn Planner>;

/// Policies by name.
pub struct Registry {
    /// Free-list orders.
    pub free_orders: BTreeMap<String, MakeFreeOrder>,
    /// Prefix caches.
    pub caches: BTreeMap<String, MakeCache>,
    /// Eviction policies.
    pub evictions: BTreeMap<String, MakeEviction>,
    /// Orders of admission on prefill.
    pub admissions: BTreeMap<String, MakeAdmission>,
    /// The planner of each revision.
    pub planners: BTreeMap<PlannerRevision, MakePlanner>,
}

fn named<T>(items: impl IntoIterator<Item = (&'static str, T)>) -> BTreeMap<String, T> {
    items.into_iter().map(|(name, item)| (name.to_owned(), item)).collect()
}

impl Registry {
    /// The names that scenarios can use.
    pub fn names(&self) -> KnownPolicies {
        KnownPolicies {
            caches: self.caches.keys().cloned().collect(),
            evictions: self.evictions.keys().cloned().collect(),
            free_orders: self.free_orders.keys().cloned().collect(),
            admissions: self.admissions.keys().cloned().collect(),
        }
    }
}

impl Default for Registry {
    fn default() -> Registry {
        Registry {
            free_orders: named([
                ("best_fit", (|_| Box::new(ByPlace::<BestFit>::default())) as MakeFreeOrder),
                ("buddy", |_| Box::new(ByPlace::<Buddy>::default())),
                ("fifo", |_| Box::new(Queue::default())),
                ("lowest", |_| Box::new(Lowest::default())),
                ("random", |setup| Box::new(Random::new(setup.stream))),
                ("sorted", |setup| order::of_server(setup.page, true)),
                ("stack", |setup| order::of_server(setup.page, false)),
            ]),
            caches: named([
                (BLOCK_HASH, (|_| Some(Box::new(BlockHashCache::default()))) as MakeCache),
                (NO_CACHE, |_| None),
                ("radix", |eviction| Some(Box::new(RadixCache::new(eviction)))),
            ]),
            evictions: named([
                ("fifo", (|| Box::new(Eviction::Fifo)) as MakeEviction),
                ("filo", || Box::new(Eviction::Filo)),
                ("lfu", || Box::new(Eviction::Lfu)),
                ("lru", || Box::new(Eviction::Lru)),
                ("mru", || Box::new(Eviction::Mru)),
                ("priority", || Box::new(Eviction::Priority)),
                ("slru", || Box::new(Eviction::Slru)),
            ]),
            admissions: named([
                (FIRST_COME, (|| Box::new(FirstCome)) as MakeAdmission),
                ("longest_prefix", || Box::new(LongestPrefix)),
            ]),
            planners: [
                (PlannerRevision::Checked, (|| Box::new(Checked)) as MakePlanner),
                (PlannerRevision::Indexed, || Box::new(Indexed)),
            ]
            .into(),
        }
    }
}
