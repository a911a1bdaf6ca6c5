//! Building the servers of a scenario.

use super::decode::Decode;
use super::prefill::Prefill;
use super::registry::{Registry, ServerSetup};
use super::setup::draft_rows;
use super::store::Store;
use crate::behaviour::{Behaviours, DecodeMatchUnit};
use crate::cache::partial::PartialIndex;
use crate::event::Server;
use crate::layout::Layout;
use crate::memory::{Memory, StepClock};
use crate::pool::Pool;
use crate::scenario::Scenario;
use crate::units::{PageSize, Pages, Tokens};

/// Builds servers.
pub(super) struct Builder<'a> {
    pub(super) registry: &'a Registry,
    pub(super) switches: Behaviours,
    pub(super) layout: Layout,
    pub(super) seed: u64,
}

impl Builder<'_> {
    fn setup(&self, server: Server, config: &StoreConfig<'_>) -> ServerSetup {
        let StoreConfig { page, pages, tail, .. } = *config;
        ServerSetup { server, page, pages, tail, seed: self.seed, behaviours: self.switches }
    }

    fn store(&self, server: Server, config: &StoreConfig<'_>) -> Store {
        let setup = self.setup(server, config);
        let order = self.registry.free_orders[config.free_order](&setup);
        let eviction = self.registry.evictions[config.eviction](&setup);
        let cache = self.registry.caches[config.cache](&setup, eviction);
        let pool = Pool::new(config.page, config.pages, order);
        let mut memory: Vec<Memory> =
            (0..config.ranks).map(|_| Memory::new(config.pages.0)).collect();
        if let Some(rows) = config.draft_rows {
            let draft = || Memory::of_rows(self.layout.virtual_page(), rows);
            memory.extend(std::iter::repeat_with(draft).take(config.ranks as usize));
        }
        let clock = &config.clock;
        let memory = memory.into_iter().map(|memory| memory.with_clock(clock.clone())).collect();
        Store::new(server, pool, cache, memory, self.switches.free_check)
    }

    pub(super) fn prefill(&self, scenario: &Scenario, server: Server) -> Prefill {
        let config = &scenario.prefill;
        let store = StoreConfig {
            page: self.layout.page(),
            pages: Pages(config.pages),
            ranks: 1,
            draft_rows: None,
            free_order: &config.free_order,
            cache: &config.cache,
            eviction: &config.eviction,
            tail: Tokens(config.tail_tokens),
            clock: StepClock::default(),
        };
        let setup = self.setup(server, &store);
        let admission = self.registry.admissions[&config.admission](&setup);
        Prefill::new(self.store(server, &store), admission, config.workers)
    }

    pub(super) fn decode(&self, scenario: &Scenario, server: Server) -> Decode {
        let config = &scenario.decode;
        let virtual_page = self.layout.virtual_page();
        let clock = StepClock::default();
        let store = StoreConfig {
            page: virtual_page,
            pages: Pages(config.pages),
            ranks: self.layout.ranks(),
            draft_rows: draft_rows(scenario, self.switches, self.layout),
            free_order: &config.free_order,
            cache: &config.cache,
            eviction: &config.eviction,
            tail: Tokens(config.tail_tokens),
            clock: clock.clone(),
        };
        let is_fine = self.switches.decode_match_unit != DecodeMatchUnit::VirtualPage;
        let partial = is_fine.then(|| PartialIndex::new(virtual_page));
        Decode::new(self.store(server, &store), partial, config.workers, clock)
    }
}

/// What a server's KV is made of.
struct StoreConfig<'a> {
    page: PageSize,
    pages: Pages,
    ranks: u32,
    draft_rows: Option<u32>,
    free_order: &'a str,
    cache: &'a str,
    eviction: &'a str,
    tail: Tokens,
    clock: StepClock,
}
