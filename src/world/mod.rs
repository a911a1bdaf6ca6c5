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
//! Where decode keeps draft KV, every rank's draft rows are written, copied to the host and brought
//! back with the rows beside them.
//!
//! A message that a part has landed can be lost: the transfer then fails, as when it is refused.
//! Under `prefill_start = "at_arrival"` the lines of prefill can come before *reserved*: what it
//! has computed waits for a destination, or goes back if a request that has one needs the pages. A
//! flush takes cached pages that nobody holds.
//!
//! # Where each rule stands
//!
//! | moment | who is asked | file |
//! |---|---|---|
//! | arrives | can its servers be connected, can their pools ever serve it | `arrival` |
//! | reserved, resumes | the decode server | `decode/reservation` |
//! | a chunk is launched, its step ends | the prefill server | `prefill/step`, `prefill/caching` |
//! | a part is queued | the prefill server cuts the piece, the planner lays it out, the link queues it | `prefill/sending`, `piece`, `link` |
//! | a part lands | the decode server writes it, the transfer hears of it | `decode/rows`, `transfer` |
//! | activated; source or target back | the handoff machine says when, the servers do it | `handoff`, `decode/ending`, `prefill` |
//! | a decode step ends, retracted | the decode server | `decode/step` |
//! | finishes, aborted, fails | the decode server | `decode/ending` |
//! | flush; evictions; every page taken or given back | the store of the server | `store` |
//!
//! A server owns its queue, its pool and cache, and its part of each request. It is called with a
//! context (setup, requests, timers, log) and answers with what others have to do; `routes` tells
//! them, at once and in that order. What is fixed about a request is in `request`.
//!
//! Every finding code is a violated line of the first table; the oracle is told each move and
//! judges it without the code that made it.

use crate::behaviour::Retraction;
use crate::event::{Server, Side};
use crate::finding::{FreeSample, Metric, Run};
use crate::layout::Layout;
use crate::limits;
use crate::oracle::{Oracle, Terms};
use crate::scenario::{Fault, Moment, Scenario};
use crate::workload::Request;

pub mod admission;
mod arrival;
mod builder;
mod context;
mod decode;
mod fault;
pub mod handoff;
mod link;
mod log;
pub mod observer;
mod piece;
mod prefill;
mod queue;
mod reading;
pub mod registry;
mod request;
mod routes;
mod setup;
mod simulation;
mod store;
mod transfer;

pub use observer::Observer;
pub use registry::{Registry, ServerSetup};
pub use simulation::{RunError, Simulation, run};

use builder::Builder;
use context::Context;
use decode::Decode;
use fault::Faults;
use link::Link;
use log::Log;
use prefill::Prefill;
use queue::{Queue, Timer};
use request::Requests;
use setup::{Setup, draft_rows, events_max};
use store::Store;
use transfer::Transfers;

/// A running system: the servers, the links between them, the transfers. The rules are theirs;
/// `routes` says who is told of what.
struct World<'a> {
    context: Context<'a>,
    prefills: Vec<Prefill>,
    decodes: Vec<Decode>,
    /// By prefill server, then decode server.
    links: Vec<Link>,
    transfers: Transfers,
    /// How many timers have gone off.
    events: u64,
    /// How many may go off before the run is cut short.
    events_max: u64,
    /// Whether a bound ended the run, rather than the lack of timers.
    cut_short: bool,
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
        let prefills = servers(Side::Prefill, scenario.prefill.workers);
        let decodes = servers(Side::Decode, scenario.decode.workers);
        let oracle = Oracle::new(terms, prefills.clone().chain(decodes.clone()));
        let setup = Setup {
            scenario,
            switches,
            layout,
            planner: registry.planners[&switches.planner](),
            pairing: arrival::pair(scenario),
        };
        let builder = Builder { registry, switches, layout, seed: scenario.seed };
        let pairs = prefills.clone().flat_map(|from| decodes.clone().map(move |to| (from, to)));
        World {
            links: (0..).zip(pairs).map(|(index, (from, to))| Link::new(index, from, to)).collect(),
            prefills: prefills.map(|server| builder.prefill(scenario, server)).collect(),
            decodes: decodes.map(|server| builder.decode(scenario, server)).collect(),
            transfers: Transfers::default(),
            events: 0,
            events_max: events_max(scenario, requests, layout),
            cut_short: false,
            context: Context {
                setup,
                requests: Requests::new(requests),
                queue: Queue::default(),
                log: Log::new(oracle),
                faults: Faults::of(&scenario.faults),
                awake: Vec::new(),
            },
        }
    }

    /// Runs until nothing is left to happen, or the bound on timers is reached.
    fn run(mut self) -> Run {
        self.start();
        while self.step() {}
        self.close_run()
    }

    /// Sets the timers of the first arrival, and of the faults that do not wait for a request.
    fn start(&mut self) {
        let cx = &mut self.context;
        for request in cx.faults.aborted_from_start() {
            cx.reached(request, Moment::Start);
        }
        for (fault, one) in cx.setup.scenario.faults.iter().enumerate() {
            if let Fault::Flush { side, server, at } = *one {
                cx.queue.plan(at, Timer::Flushes { side, server: server as usize, fault });
            }
        }
        if let Some(first) = cx.requests.next_at() {
            cx.queue.plan(first, Timer::Arrives);
        }
    }

    /// Lets the next timer go off. False if there is none, or no more may go off.
    fn step(&mut self) -> bool {
        if self.events == self.events_max {
            self.cut_short = true;
            return false;
        }
        let Some((tick, timer)) = self.context.queue.next() else { return false };
        if tick > limits::TICK_END {
            self.cut_short = true;
            return false;
        }
        self.events += 1;
        self.context.log.now = tick;
        self.dispatch(timer);
        while let Some(server) = self.context.awake.pop() {
            self.serve(server);
        }
        true
    }

    /// Samples the free pages of all pools whenever another part of the requests has arrived.
    fn sample_free_runs(&mut self) {
        let all = self.context.requests.count();
        let part = |arrived: u64| arrived * limits::FREE_RUN_SAMPLES / all;
        let arrived = self.context.requests.count_arrived();
        let reached = part(arrived);
        if reached == part(arrived - 1) {
            return;
        }
        let prefills = self.prefills.iter().map(|prefill| &prefill.store);
        let decodes = self.decodes.iter().map(|decode| &decode.store);
        for store in prefills.chain(decodes) {
            let sample = FreeSample { side: store.server.side, part: reached };
            self.context.log.free_runs(sample, store.free_runs());
        }
    }

    fn close_run(mut self) -> Run {
        self.context.log.count(Metric::Events, self.events);
        let stores = self.prefills.iter().map(|prefill| &prefill.store);
        let stores = stores.chain(self.decodes.iter().map(|decode| &decode.store));
        let left: Vec<_> = stores.map(Store::remains).collect();
        let faults_idle = self.context.faults.idle();
        Run { faults_idle, ..self.context.log.close(&left, self.cut_short) }
    }
}
