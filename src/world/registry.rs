//! The policies that a scenario can name, and how each is made.
//!
//! [`Registry::default`] knows the built-in ones. A user of the library adds their own under a new
//! name: a closure, which can hold parameters, makes one for each server. Scenarios, and axes of
//! sweep plans, then name it as any other.
//!
//! ```
//! use kvseam::pool::order::Stack;
//! use kvseam::scenario::file;
//! use kvseam::world::{Registry, Simulation};
//!
//! let mut registry = Registry::default();
//! // Any type that implements `FreeOrder` would do in the place of `Stack`.
//! registry.free_order("mine", |_server| Box::new(Stack::default()));
//!
//! let path = std::path::Path::new("sims/scenarios/sound-baseline.toml");
//! let mut scenario = file::load(path)?;
//! scenario.prefill.free_order = "mine".to_owned();
//! let run = Simulation::new(&scenario).registry(&registry).run()?;
//! assert!(run.findings.is_clean());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use super::admission::{Admission, FirstCome, LongestPrefix};
use crate::behaviour::{Behaviours, NameTooLong, PlannerName};
use crate::cache::PrefixCache;
use crate::cache::block_hash::BlockHashCache;
use crate::cache::eviction::{Eviction, EvictionPolicy, Ordered};
use crate::cache::radix::RadixCache;
use crate::cache::tail::TailLru;
use crate::engine;
use crate::event::Server;
use crate::finding::Named;
use crate::planner::Planner;
use crate::pool::order::{self, BestFit, Buddy, ByPlace, FreeOrder, Lowest, Queue, Random};
use crate::rng::Stream;
use crate::scenario::validate::{BLOCK_HASH, FIRST_COME, KnownPolicies, NO_CACHE, TAIL_LRU};
use crate::units::{PageSize, Pages, Tokens};

/// The server that a policy is made for.
#[derive(Clone, Copy, Debug)]
pub struct ServerSetup {
    /// Which server.
    pub server: Server,
    /// Rows of a page of its pool; a virtual page's on decode.
    pub page: PageSize,
    /// Pages of its pool.
    pub pages: Pages,
    /// Tokens at the end of a history that need not be cached, for `eviction = "tlru"`.
    pub tail: Tokens,
    /// The scenario's seed.
    pub seed: u64,
    /// The scenario's switches.
    pub behaviours: Behaviours,
}

impl ServerSetup {
    /// Randomness for one `purpose` of this server alone.
    pub fn stream(&self, purpose: &str) -> Stream {
        let Server { side, index } = self.server;
        Stream::new(self.seed, &format!("{purpose}, {} {index}", side.name()))
    }
}

/// Makes a pool's free list.
pub type MakeFreeOrder = Arc<dyn Fn(&ServerSetup) -> Box<dyn FreeOrder> + Send + Sync>;
/// Makes a prefix cache; `None` is to have none.
pub type MakeCache = Arc<
    dyn Fn(&ServerSetup, Box<dyn EvictionPolicy>) -> Option<Box<dyn PrefixCache>> + Send + Sync,
>;
/// Makes an eviction policy.
pub type MakeEviction = Arc<dyn Fn(&ServerSetup) -> Box<dyn EvictionPolicy> + Send + Sync>;
/// Makes an order of admission.
pub type MakeAdmission = Arc<dyn Fn(&ServerSetup) -> Box<dyn Admission> + Send + Sync>;
/// Makes the planner of a run.
pub type MakePlanner = Arc<dyn Fn() -> Box<dyn Planner> + Send + Sync>;

/// Policies by name.
#[derive(Clone)]
pub struct Registry {
    /// Free-list orders.
    pub free_orders: BTreeMap<String, MakeFreeOrder>,
    /// Prefix caches.
    pub caches: BTreeMap<String, MakeCache>,
    /// Eviction policies.
    pub evictions: BTreeMap<String, MakeEviction>,
    /// Orders of admission on prefill.
    pub admissions: BTreeMap<String, MakeAdmission>,
    /// Planners.
    pub planners: BTreeMap<PlannerName, MakePlanner>,
}

impl Registry {
    /// The built-in policies.
    pub fn built_in() -> &'static Registry {
        static BUILT_IN: LazyLock<Registry> = LazyLock::new(Registry::default);
        &BUILT_IN
    }

    /// Adds a free-list order, in the place of one of the same name.
    pub fn free_order(
        &mut self,
        name: &str,
        make: impl Fn(&ServerSetup) -> Box<dyn FreeOrder> + Send + Sync + 'static,
    ) {
        self.free_orders.insert(name.to_owned(), Arc::new(make));
    }

    /// Adds a prefix cache, in the place of one of the same name.
    pub fn cache(
        &mut self,
        name: &str,
        make: impl Fn(&ServerSetup, Box<dyn EvictionPolicy>) -> Option<Box<dyn PrefixCache>>
        + Send
        + Sync
        + 'static,
    ) {
        self.caches.insert(name.to_owned(), Arc::new(make));
    }

    /// Adds an eviction policy, in the place of one of the same name.
    pub fn eviction(
        &mut self,
        name: &str,
        make: impl Fn(&ServerSetup) -> Box<dyn EvictionPolicy> + Send + Sync + 'static,
    ) {
        self.evictions.insert(name.to_owned(), Arc::new(make));
    }

    /// Adds an order of admission, in the place of one of the same name.
    pub fn admission(
        &mut self,
        name: &str,
        make: impl Fn(&ServerSetup) -> Box<dyn Admission> + Send + Sync + 'static,
    ) {
        self.admissions.insert(name.to_owned(), Arc::new(make));
    }

    /// Adds a planner, in the place of one of the same name.
    ///
    /// # Panics
    /// Where the name is longer than [`PLANNER_NAME_BYTES`](crate::limits::PLANNER_NAME_BYTES):
    /// no scenario could name it.
    pub fn planner(
        &mut self,
        name: &str,
        make: impl Fn() -> Box<dyn Planner> + Send + Sync + 'static,
    ) {
        let name = name.parse().unwrap_or_else(|error: NameTooLong| panic!("planner: {error}"));
        self.planners.insert(name, Arc::new(make));
    }

    /// The names that scenarios can use.
    pub fn names(&self) -> KnownPolicies {
        let planners = || self.planners.iter().map(|(name, make)| (name.name().to_owned(), make));
        KnownPolicies {
            caches: self.caches.keys().cloned().collect(),
            evictions: self.evictions.keys().cloned().collect(),
            free_orders: self.free_orders.keys().cloned().collect(),
            admissions: self.admissions.keys().cloned().collect(),
            planners: planners().map(|(name, _)| name).collect(),
            draft_planners: planners()
                .filter_map(|(name, make)| make().lays_draft_rows().then_some(name))
                .collect(),
        }
    }

    fn empty() -> Registry {
        Registry {
            free_orders: BTreeMap::new(),
            caches: BTreeMap::new(),
            evictions: BTreeMap::new(),
            admissions: BTreeMap::new(),
            planners: BTreeMap::new(),
        }
    }
}

impl Default for Registry {
    fn default() -> Registry {
        let mut of = Registry::empty();
        of.free_order("best_fit", |_| Box::new(ByPlace::<BestFit>::default()));
        of.free_order("buddy", |_| Box::new(ByPlace::<Buddy>::default()));
        of.free_order("fifo", |_| Box::new(Queue::default()));
        of.free_order("lowest", |_| Box::new(Lowest::default()));
        of.free_order("random", |server| Box::new(Random::new(server.stream("free order"))));
        of.free_order("sorted", |server| order::of_server(server.page, true));
        of.free_order("stack", |server| order::of_server(server.page, false));

        of.cache(BLOCK_HASH, |_, _| Some(Box::new(BlockHashCache::default())));
        of.cache(NO_CACHE, |_, _| None);
        of.cache("radix", |server, eviction| {
            Some(Box::new(RadixCache::new(eviction, server.behaviours.split_stamp)))
        });

        for (name, policy) in [
            ("fifo", Eviction::Fifo),
            ("filo", Eviction::Filo),
            ("lfu", Eviction::Lfu),
            ("lru", Eviction::Lru),
            ("mru", Eviction::Mru),
            ("priority", Eviction::Priority),
            ("slru", Eviction::Slru),
        ] {
            of.eviction(name, move |_| Box::new(Ordered::new(policy)));
        }
        of.eviction(TAIL_LRU, |server| Box::new(TailLru::new(server.tail, server.page)));

        of.admission(FIRST_COME, |_| Box::new(FirstCome));
        of.admission("longest_prefix", |_| Box::new(LongestPrefix));

        for revision in engine::revisions() {
            of.planner(revision.name.name(), revision.make);
        }
        of
    }
}
