//! Scenarios that a driver can run.

use std::path::Path;

use super::protocol::Can;
use crate::engine::Profile;
use crate::minimize::{MinimizeError, written_out};
use crate::rng::Stream;
use crate::scenario::generate::{Aim, generate};
use crate::scenario::validate::{FIRST_COME, KnownPolicies, LRU, validate};
use crate::scenario::{
    DecodeConfig, Fault, LayoutConfig, LinkConfig, Moment, PairingConfig, PrefillConfig,
    RequestSpec, Scenario, WorkloadConfig,
};
use crate::units::{RequestId, Tick};
use crate::world::Registry;

/// The cache that every driver has.
const RADIX: &str = "radix";
/// Draws until one is valid when restricted; nearly all are.
const DRAWS_MAX: u64 = 100;

/// Scenarios of a seed, by number.
pub struct Draw<'a> {
    profile: Profile,
    can: &'a Can,
    known: KnownPolicies,
    seed: u64,
}

impl<'a> Draw<'a> {
    /// Scenarios for an engine of `profile` whose driver can do what `can` says.
    pub fn new(profile: Profile, can: &'a Can, seed: u64) -> Draw<'a> {
        Draw { profile, can, known: Registry::built_in().names(), seed }
    }

    /// The `number`-th scenario, its requests written out; it is valid and within what the driver
    /// can do. `None` where no draw led to one.
    pub fn scenario(&self, number: u64) -> Option<Scenario> {
        let mut stream = Stream::new(self.seed, &format!("live {number}"));
        (0..DRAWS_MAX).find_map(|_| {
            let drawn = generate(&mut stream, &self.known, Aim::Any);
            let scenario = self.restricted(&drawn).ok()?;
            validate(&scenario, &self.known).is_ok().then_some(scenario)
        })
    }

    /// Whether the driver can run `scenario` as it is.
    pub fn allows(&self, scenario: &Scenario) -> bool {
        self.restricted(scenario).is_ok_and(|restricted| restricted == *scenario)
    }

    /// `scenario` with all that the driver cannot do, or that the protocol has no word for, set to
    /// what it can. What is allowed stays as it is.
    fn restricted(&self, scenario: &Scenario) -> Result<Scenario, MinimizeError> {
        let written = written_out(scenario, Path::new(""))?;
        let from = scenario.layout;
        let layout = LayoutConfig {
            page_size: nearest(&self.can.page_sizes, from.page_size),
            ranks: nearest(&self.can.ranks, from.ranks),
        };
        let WorkloadConfig::Requests(mut requests) = written.workload else {
            unreachable!("requests have been written out")
        };
        for request in &mut requests {
            request.priority = 0;
            request.max_new_tokens = None;
            request.namespace *= u32::from(self.can.namespaces);
        }
        Ok(Scenario {
            seed: 0,
            profile: self.profile,
            layout,
            prefill: self.prefill(&written.prefill, from, layout),
            decode: self.decode(&written.decode, from, layout),
            link: self.link(written.link, layout),
            pairing: PairingConfig::default(),
            behaviour: Default::default(),
            faults: self.faults(&written.faults, &requests),
            workload: WorkloadConfig::Requests(requests),
            expect: None,
            ..written
        })
    }

    fn prefill(
        &self,
        drawn: &PrefillConfig,
        from: LayoutConfig,
        to: LayoutConfig,
    ) -> PrefillConfig {
        let pages = scaled(drawn.pages, from.page_size, to.page_size);
        let usual = PrefillConfig::of(pages);
        let (step_ticks, token_ticks) = match self.can.costs {
            true => (drawn.step_ticks, drawn.token_ticks),
            false => (usual.step_ticks, usual.token_ticks),
        };
        PrefillConfig {
            cache: one_of(&self.can.caches, &drawn.cache, RADIX),
            eviction: one_of(&self.can.evictions, &drawn.eviction, LRU),
            admission: one_of(&self.can.admissions, &drawn.admission, FIRST_COME),
            // Engines refuse another budget at their start.
            chunk_tokens: drawn.chunk_tokens.next_multiple_of(to.page_size),
            step_ticks,
            token_ticks,
            ..usual
        }
    }

    fn decode(&self, drawn: &DecodeConfig, from: LayoutConfig, to: LayoutConfig) -> DecodeConfig {
        let virtual_page = |layout: LayoutConfig| layout.page_size * layout.ranks;
        let usual = DecodeConfig::of(scaled(drawn.pages, virtual_page(from), virtual_page(to)));
        let (step_ticks, request_ticks) = match self.can.costs {
            true => (drawn.step_ticks, drawn.request_ticks),
            false => (usual.step_ticks, usual.request_ticks),
        };
        DecodeConfig {
            cache: one_of(&self.can.caches, &drawn.cache, RADIX),
            eviction: one_of(&self.can.evictions, &drawn.eviction, LRU),
            reserved_tokens: drawn.reserved_tokens,
            step_ticks,
            request_ticks,
            ..usual
        }
    }

    fn link(&self, drawn: LinkConfig, layout: LayoutConfig) -> LinkConfig {
        let pack_tokens = drawn.pack_tokens.next_multiple_of(layout.page_size);
        match self.can.costs {
            true => LinkConfig { delay_every: 0, delay_ticks: 0, pack_tokens, ..drawn },
            false => LinkConfig { pack_tokens, ..LinkConfig::default() },
        }
    }

    /// The first abort of each request, counted from the start of the run.
    fn faults(&self, drawn: &[Fault], requests: &[RequestSpec]) -> Vec<Fault> {
        if !self.can.aborts {
            return Vec::new();
        }
        let mut aborts: Vec<Fault> = Vec::new();
        for fault in drawn {
            let Fault::Abort { request, after, when } = *fault else { continue };
            let start = match when {
                Moment::Start => Tick(0),
                Moment::Arrived
                | Moment::Reserved
                | Moment::Prefilling
                | Moment::Copying
                | Moment::Running
                | Moment::Retracted => arrival(requests, request),
            };
            let is_known = |known: &Fault| match known {
                Fault::Abort { request: other, .. } => *other == request,
                _ => false,
            };
            if !aborts.iter().any(is_known) {
                let mut after = start + after;
                // Which of two comes first within a tick is the driver's own affair.
                while requests.iter().any(|spec| spec.at == after) {
                    after += Tick(1);
                }
                aborts.push(Fault::Abort { request, after, when: Moment::Start });
            }
        }
        aborts
    }
}

fn arrival(requests: &[RequestSpec], request: RequestId) -> Tick {
    requests.get(request.index()).map_or(Tick(0), |spec| spec.at)
}

/// The largest of `allowed` that is no larger than `wanted`, else the smallest.
fn nearest(allowed: &[u32], wanted: u32) -> u32 {
    let below = allowed.iter().copied().filter(|&one| one <= wanted).max();
    below.or(allowed.iter().copied().min()).unwrap_or(wanted)
}

/// As many pages of `to` rows as hold what `pages` of `from` rows do.
fn scaled(pages: u32, from: u32, to: u32) -> u32 {
    let rows = u64::from(pages) * u64::from(from);
    u32::try_from(rows.div_ceil(u64::from(to))).unwrap_or(u32::MAX)
}

fn one_of(allowed: &[String], wanted: &str, usual: &str) -> String {
    if allowed.iter().any(|one| one == wanted) { wanted } else { usual }.to_owned()
}
