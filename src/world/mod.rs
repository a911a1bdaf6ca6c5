//! The simulated system: prefill and decode servers, their caches and queues, the links between
//! them, and the one loop that runs a [`Scenario`].
//!
//! # The life of a request
//!
//! Who owns which page at each moment, who writes which row when, and what each failure gives back.
//! *Source* pages are prefill's, *target* pages decode's. A cached page belongs to the tree; a
//! request only locks it.
//!
//! | moment | source pages | target pages | rows written | on failure |
//! |---|---|---|---|---|
//! | arrives | none | none | none | it ends |
//! | reserved | none | matched ones locked, the rest the request's | a part of a cached page, if a hit ends inside it | target back, it ends |
//! | a chunk is launched | matched ones locked, the chunk's pages the request's | as before | none | waits for the step's end |
//! | the step ends | full pages go to the tree and stay locked; duplicates go back and the table points at the tree's; a partial page stays the request's | as before | the chunk's rows, by prefill | source unlocked and back |
//! | a part is queued | must stay until it has landed | must stay until it has landed | none | target back when every queued part has landed |
//! | a part lands | as before | as before | its rows on its rank, by the copy | as before |
//! | activated (every part of every piece has landed) | unlocked; the partial page back | as before | none | from here on decode's own |
//! | a step ends | none | a page more when a token opens one | one row, by decode | target back at the step's end |
//! | retracted | none | all back, after a copy to the host; or prefill sends again | none | the copy is dropped |
//! | resumes | none | as many as it stored and one token more | all it had stored, from the host | as when running |
//! | finishes | none | full pages go to the tree, duplicates and the partial page back, match unlocked | none | |
//!
//! Where decode keeps draft KV, every rank's draft rows are written, copied to the host and brought back
//! with the rows beside them.
//!
//! A message that a part has landed can be lost: the transfer then fails, as when it is refused. Under
//! `prefill_start = "at_arrival"` the lines of prefill can come before *reserved*: what it has computed
//! waits for a destination, or goes back if a request that has one needs the pages. A flush takes
//! cached pages that nobody holds.
//!
//! Every finding code is a violated line of this table; the oracle is told each move and judges it
//! without the code that made it.

use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;

use thiserror::Error;

use crate::behaviour::{
    Behaviours, CacheKey, CapacityUnit, RefusedRequest, ReleaseOnAbort, Retraction,
};
use crate::event::{Event, Outcome, Server, Side, Text};
use crate::finding::{Chance, Code, FreeSample, Mark, Metric, Run};
use crate::layout::Layout;
use crate::limits;
use crate::oracle::{Oracle, Terms};
use crate::planner::Planner;
use crate::planner::pairing::{self, Endpoint, Pairing, PairingRefusal};
use crate::prompt::Chains;
use crate::scenario::validate::{self, Invalid};
use crate::scenario::{Moment, Scenario};
use crate::units::{PageSize, Rank, RequestId, Tick, Tokens};
use crate::workload::{self, Request, WorkloadError};

pub mod admission;
mod decode;
mod fault;
pub mod handoff;
mod link;
mod log;
mod make;
pub mod observer;
mod prefill;
mod queue;
pub mod registry;
mod request;
mod reservation;
mod store;
mod transfer;

pub use observer::Observer;
pub use registry::{FreeOrderSetup, Registry};

use decode::Decode;
use fault::Faults;
use handoff::Signal;
use link::{Copy, Link};
use log::Log;
use make::{Make, draft_rows};
use prefill::Prefill;
use queue::{Queue, Timer};
use request::{Destination, Live, Place};
use store::Store;

/// Why a scenario could not be run.
#[derive(Debug, Error)]
pub enum RunError {
    /// A field of the scenario is out of its bounds.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The workload could not be read.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
}

/// Runs a scenario with the built-in policies. Trace paths start at `folder`.
pub fn run(scenario: &Scenario, folder: &Path) -> Result<Run, RunError> {
    run_with(scenario, folder, &Registry::default())
}

/// Runs a scenario with the policies of `registry`. Trace paths start at `folder`.
pub fn run_with(scenario: &Scenario, folder: &Path, registry: &Registry) -> Result<Run, RunError> {
    run_seen(scenario, folder, registry, None)
}

/// Runs a scenario with the built-in policies and shows `observer` what happens. The run is the same
/// as without. Trace paths start at `folder`.
pub fn watch(
    scenario: &Scenario,
    folder: &Path,
    observer: &mut dyn Observer,
) -> Result<Run, RunError> {
    run_seen(scenario, folder, &Registry::default(), Some(observer))
}

fn run_seen(
    scenario: &Scenario,
    folder: &Path,
    registry: &Registry,
    observer: Option<&mut dyn Observer>,
) -> Result<Run, RunError> {
    validate::validate(scenario, &registry.names())?;
    if pair(scenario) == Ok(Pairing::PageForPage) && scenario.layout.ranks > 1 {
        let problem = format!(
            "must be 1 to be simulated, or lead to a refusal; connections of equal size are only \
             checked, got {}",
            scenario.pairing.prefill_ranks
        );
        let path = "pairing.prefill_ranks".to_owned();
        return Err(Invalid { path, problem }.into());
    }
    let requests = workload::requests(scenario, folder)?;
    validate::faults(scenario, Some(requests.len()))?;
    let mut world = World::new(scenario, registry, &requests);
    if let Some(observer) = observer {
        world.log.watch(observer);
    }
    Ok(world.run())
}

/// A system in motion.
struct World<'a> {
    scenario: &'a Scenario,
    requests: &'a [Request],
    switches: Behaviours,
    layout: Layout,
    planner: Box<dyn Planner>,
    pairing: Result<Pairing, PairingRefusal>,
    chains: Chains,
    /// By request number; `None` before arrival.
    live: Vec<Option<Live>>,
    prefills: Vec<Prefill>,
    decodes: Vec<Decode>,
    /// By prefill server, then decode server.
    links: Vec<Link>,
    /// Copies that were served and land later.
    late: BTreeMap<u64, Copy>,
    /// Servers whose situation has changed since they last looked for work.
    awake: Vec<(Side, usize)>,
    queue: Queue,
    faults: Faults,
    /// Requests that have arrived.
    arrived: u32,
    /// Events so far, and how many there may be.
    events: u64,
    events_max: u64,
    /// Whether a bound ended the run and not the want of events.
    cut_short: bool,
    log: Log<'a>,
}

#[cfg(test)]
mod tests;

impl<'a> World<'a> {
    fn new(scenario: &'a Scenario, registry: &Registry, requests: &'a [Request]) -> World<'a> {
        let layout = Layout::striped(scenario.layout.page_size, scenario.layout.ranks)
            .expect("validation keeps the layout within bounds");
        let switches = scenario.behaviours();
        let terms = Terms {
            page_size: layout.page().get(),
            ranks: layout.ranks(),
            prefill_pages: scenario.prefill.pages,
            decode_pages: scenario.decode.pages,
            leftover_rows: scenario.decode.leftover_rows,
            draft_rows: draft_rows(scenario, switches, layout),
            reserved_tokens: scenario.decode.reserved_tokens,
            sends_again: switches.retraction == Retraction::SendAgain,
        };
        let servers = |side, count| (0..count).map(move |index| Server { side, index });
        let prefill_servers = servers(Side::Prefill, scenario.prefill.workers);
        let decode_servers = servers(Side::Decode, scenario.decode.workers);
        let oracle = Oracle::new(terms, prefill_servers.clone().chain(decode_servers.clone()));
        let make = Make { registry, switches, layout, seed: scenario.seed };
        let links = scenario.prefill.workers * scenario.decode.workers;
        World {
            scenario,
            requests,
            switches,
            layout,
            planner: registry.planners[&switches.planner](),
            pairing: pair(scenario),
            chains: Chains::default(),
            live: requests.iter().map(|_| None).collect(),
            prefills: prefill_servers.map(|server| make.prefill(scenario, server)).collect(),
            decodes: decode_servers.map(|server| make.decode(scenario, server)).collect(),
            links: (0..links).map(|_| Link::default()).collect(),
            late: BTreeMap::new(),
            awake: Vec::new(),
            queue: Queue::default(),
            faults: Faults::of(&scenario.faults),
            arrived: 0,
            events: 0,
            events_max: events_max(scenario, requests, layout),
            cut_short: false,
            log: Log::new(oracle),
        }
    }

    /// Runs until nothing is left to happen, or the event bound is reached.
    fn run(mut self) -> Run {
        self.start();
        while self.step() {}
        self.close()
    }

    fn start(&mut self) {
        self.plan_faults();
        if let Some(first) = self.requests.first() {
            self.queue.plan(first.at, Timer::Arrives);
        }
    }

    /// Lets the next event happen. False if there is none, or no more may happen.
    fn step(&mut self) -> bool {
        if self.events == self.events_max {
            self.cut_short = true;
            return false;
        }
        let Some((tick, event)) = self.queue.next() else { return false };
        if tick > limits::TICK_END {
            self.cut_short = true;
            return false;
        }
        self.events += 1;
        self.log.now = tick;
        match event {
            Timer::CopyServed { link } => self.copy_served(link),
            Timer::CopyLands { copy } => self.copy_lands(copy),
            Timer::MessageComesAgain { part } => self.told_of_part(part, Signal::PartLanded),
            Timer::MessageIsMissed { part } => self.told_of_part(part, Signal::PartLost),
            Timer::PrefillStepEnds { server } => self.prefill_step_ends(server),
            Timer::DecodeStepEnds { server } => self.decode_step_ends(server),
            Timer::DestinationKnown { request, attempt } => {
                self.destination_known(request, attempt);
            }
            Timer::Arrives => {
                let request = RequestId(self.arrived);
                self.arrived += 1;
                self.arrive(request);
                self.sample_free_runs();
                if let Some(next) = self.requests.get(request.index() + 1) {
                    self.queue.plan(next.at, Timer::Arrives);
                }
            }
            Timer::Aborts { request, fault } => self.abort(request, fault),
            Timer::ReleaseTimesOut { request, attempt } => {
                if self.live(request).attempt == attempt {
                    self.hand(request, Signal::TimedOut);
                }
            }
            Timer::Flushes { side, server, fault } => self.flush(side, server, fault),
        }
        self.pump();
        true
    }

    /// Samples the free pages of all pools whenever another part of the requests has arrived.
    fn sample_free_runs(&mut self) {
        let all = self.requests.len() as u64;
        let part = |arrived: u32| u64::from(arrived) * limits::FREE_RUN_SAMPLES / all;
        let reached = part(self.arrived);
        if reached == part(self.arrived - 1) {
            return;
        }
        let prefills = self.prefills.iter().map(|prefill| (Side::Prefill, &prefill.store));
        let decodes = self.decodes.iter().map(|decode| (Side::Decode, &decode.store));
        for (side, store) in prefills.chain(decodes) {
            self.log.free_runs(FreeSample { side, part: reached }, store.free_runs());
        }
    }

    fn close(mut self) -> Run {
        self.log.count(Metric::Events, self.events);
        let stores = self.prefills.iter().map(|prefill| &prefill.store);
        let stores = stores.chain(self.decodes.iter().map(|decode| &decode.store));
        let remains: Vec<_> = stores.map(Store::remains).collect();
        let faults_idle = self.faults.idle();
        Run { faults_idle, ..self.log.close(&remains, self.cut_short) }
    }

    /// Lets every server whose situation has changed look for work.
    fn pump(&mut self) {
        while let Some((side, index)) = self.awake.pop() {
            match side {
                Side::Prefill => self.pump_prefill(index),
                Side::Decode => self.pump_decode(index),
            }
        }
    }

    fn wake_prefill(&mut self, index: usize) {
        self.wake((Side::Prefill, index));
    }

    fn wake_decode(&mut self, index: usize) {
        self.wake((Side::Decode, index));
    }

    fn wake(&mut self, server: (Side, usize)) {
        if !self.awake.contains(&server) {
            self.awake.push(server);
        }
    }

    /// A request that has arrived; a broken invariant of the world if it has not.
    fn live(&self, request: RequestId) -> &Live {
        self.live[request.index()].as_ref().expect("the request has arrived")
    }

    fn live_mut(&mut self, request: RequestId) -> &mut Live {
        self.live[request.index()].as_mut().expect("the request has arrived")
    }

    /// A request arrives: its peers connect, and it waits for decode pages if the pools can ever
    /// serve it.
    fn arrive(&mut self, request: RequestId) {
        let spec = &self.requests[request.index()];
        let prompt = spec.prompt_len();
        let text = Rc::new(self.chains.sequence(spec.namespace, spec.all_runs()));
        let namespace = self.key_namespace(spec);
        let keyed = match namespace == spec.namespace {
            true => Rc::clone(&text),
            false => Rc::new(self.chains.sequence(namespace, spec.all_runs())),
        };
        let fits = self.fits(prompt, text.len());
        let number = request.index();
        let live = Live {
            text: Rc::clone(&text),
            keyed,
            length: prompt,
            prompt,
            priority: spec.priority,
            arrived: self.log.now,
            prefill: number % self.prefills.len(),
            decode: number % self.decodes.len(),
            attempt: 0,
            skips_prefix: false,
            was_refused: false,
            refusals: 0,
            gave_up: false,
            was_forgotten: false,
            messages: 0,
            was_started: false,
            place: Place::Arriving,
            handoff: self.new_handoff(),
            source: None,
            target: None,
            destination: Destination::default(),
            host: None,
        };
        let decode = live.decode;
        self.live[number] = Some(live);
        self.log.count(Metric::Requests, 1);
        self.log.count(Metric::PromptTokens, u64::from(prompt.0));
        let event = Event::Arrived { request, text: Text(text), prompt, admitted: fits };
        self.log.tell(&event, &[]);
        self.log.chance(Chance::Pairings);
        let refused = match &self.pairing {
            Err(refusal) => Some((pairing_code(refusal), refusal.to_string())),
            Ok(_) if !fits => Some((Code::RefusedCapacity, self.capacity_text(prompt))),
            Ok(_) => None,
        };
        match refused {
            Some((code, said)) => {
                self.log.tell(&Event::Refused { request, code, ranks: &[], said: &said }, &[]);
                self.live_mut(request).was_refused = true;
                self.hand(request, Signal::Refused);
            }
            None => {
                self.decodes[decode].arriving.push_back(request);
                self.moment(request, Moment::Arrived);
                self.wake_decode(decode);
                if self.begins_at_arrival() {
                    self.await_prefill(request);
                }
            }
        }
    }

    /// The namespace that stands in the request's keys.
    fn key_namespace(&self, spec: &Request) -> u32 {
        match self.switches.cache_key {
            CacheKey::WithNamespace => spec.namespace,
            CacheKey::WithoutNamespace => 0,
        }
    }

    /// Whether empty pools could serve a request of this prompt and whole length.
    fn fits(&self, prompt: Tokens, length: Tokens) -> bool {
        let virtual_page = self.layout.virtual_page();
        let config = &self.scenario.decode;
        let reserved = u64::from(config.reserved_tokens);
        let stored = length - Tokens(1);
        let held = u64::from(config.pages);
        let rows_of_rank =
            held * u64::from(self.layout.page().get()) + u64::from(config.leftover_rows);
        let decode = |tokens: Tokens, more: u64| match self.switches.capacity_unit {
            CapacityUnit::VirtualPages => {
                let positions = u64::from(virtual_page.get());
                u64::from(tokens.pages_ceil(virtual_page).0) * positions + more <= held * positions
            }
            CapacityUnit::RankRows => u64::from(tokens.0) + more <= rows_of_rank,
            CapacityUnit::NotCutToPages => {
                u64::from(tokens.0) + more <= rows_of_rank * u64::from(self.layout.ranks())
            }
        };
        let computed = match self.switches.retraction {
            Retraction::HostCopy => prompt,
            Retraction::SendAgain => stored,
        };
        let prefill = computed.pages_ceil(self.layout.page()).0 <= self.scenario.prefill.pages;
        decode(prompt, reserved) && decode(stored, 0) && prefill
    }

    fn capacity_text(&self, prompt: Tokens) -> String {
        format!(
            "a prompt of {prompt} tokens: {} prefill pages of {}, {} decode pages of {}, {} tokens \
             reserved",
            self.scenario.prefill.pages,
            self.layout.page(),
            self.scenario.decode.pages,
            self.layout.virtual_page(),
            self.scenario.decode.reserved_tokens
        )
    }

    /// Tells the handoff that it is over, and sets the clock of a release by timeout.
    pub(super) fn close_transfer(&mut self, request: RequestId, why: Signal) {
        if self.switches.release_on_abort == ReleaseOnAbort::Timeout {
            let after = Tick(self.scenario.decode.release_timeout_ticks);
            let attempt = self.live(request).attempt;
            let timer = Timer::ReleaseTimesOut { request, attempt };
            self.queue.plan(self.log.now + after, timer);
        }
        self.hand(request, why);
    }

    /// A transfer is over without activation, and everything is given back.
    fn transfer_ended(&mut self, request: RequestId) {
        let serves_again = self.switches.refused_request == RefusedRequest::ServedAgain;
        let live = self.live(request);
        let refused = live.was_refused && live.place == Place::Transferring;
        if refused && serves_again && !live.gave_up && live.refusals < limits::REFUSALS_MAX {
            self.log.mark(Mark::RefusedServedAgain);
            self.renew(request);
            let live = self.live_mut(request);
            live.refusals += 1;
            live.skips_prefix = true;
            live.place = Place::Arriving;
            let decode = live.decode;
            self.decodes[decode].arriving.push_back(request);
            self.wake_decode(decode);
        } else {
            let outcome = if live.gave_up { Outcome::Aborted } else { Outcome::Failed };
            self.end(request, outcome);
        }
    }

    fn end(&mut self, request: RequestId, outcome: Outcome) {
        self.live_mut(request).place = Place::Ended;
        match outcome {
            Outcome::Finished => {}
            Outcome::Failed => self.log.count(Metric::Failed, 1),
            Outcome::Aborted => self.log.count(Metric::Aborted, 1),
        }
        self.log.tell(&Event::Ended { request, outcome }, &[]);
    }
}

/// Events that a run of `requests` may use.
fn events_max(scenario: &Scenario, requests: &[Request], layout: Layout) -> u64 {
    // Exact budgets can be smaller than a page.
    let piece = layout.page().get().min(scenario.prefill.chunk_tokens);
    let of_request = |request: &Request| {
        let pieces = u64::from(request.prompt_len().0.div_ceil(piece));
        limits::EVENTS_PER_REQUEST
            + limits::EVENTS_PER_OUTPUT_TOKEN * u64::from(request.output.0)
            + limits::EVENTS_PER_PROMPT_PIECE * pieces * u64::from(layout.ranks())
    };
    limits::EVENTS_FLOOR + requests.iter().map(of_request).sum::<u64>()
}

/// Whether the peers can be connected, by what they say of themselves.
fn pair(scenario: &Scenario) -> Result<Pairing, PairingRefusal> {
    let config = &scenario.pairing;
    let several = config.prefill_ranks > 1;
    let page = |rows| PageSize::new(rows).expect("validation keeps page sizes positive");
    let prefill = Endpoint {
        ranks: config.prefill_ranks,
        rank: several.then_some(Rank(config.prefill_rank)),
        page_size: page(config.prefill_page_size.unwrap_or(scenario.layout.page_size)),
        attention_cp: config.prefill_attention_cp,
        pool: config.decode_pool,
        entry_bytes: config.prefill_entry_bytes.clone(),
    };
    let decode = Endpoint {
        ranks: scenario.layout.ranks,
        rank: several.then_some(Rank(config.decode_rank)),
        page_size: page(scenario.layout.page_size),
        attention_cp: 1,
        pool: config.decode_pool,
        entry_bytes: config.decode_entry_bytes.clone(),
    };
    pairing::pair(&prefill, &decode)
}

/// The code under which a refused connection is found.
fn pairing_code(refusal: &PairingRefusal) -> Code {
    match refusal {
        PairingRefusal::Rank { .. } | PairingRefusal::RankMismatch { .. } => Code::RefusedRank,
        PairingRefusal::PageSize { .. } => Code::RefusedPageSize,
        PairingRefusal::Pool => Code::RefusedPool,
        PairingRefusal::PrefillCp { .. } => Code::RefusedPrefillCp,
        PairingRefusal::Topology { .. } => Code::RefusedTopology,
        PairingRefusal::Geometry { .. } => Code::RefusedGeometry,
    }
}
