//! The simulated system: prefill and decode servers, their caches and queues, the links between
//! them, and the one loop that runs a [`Scenario`].
//!
#![doc = include_str!("life.md")]

use crate::behaviour::Retraction;
use crate::event::{Server, Side};
use crate::finding::{FreeSample, Metric, Run};
use crate::layout::Layout;
use crate::limits;
use crate::oracle::{Oracle, ServerConfig};
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
use setup::{RowRules, Setup, draft_rows, timers_max};
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
    /// How many timers have gone off; the metric `events`.
    timers: u64,
    /// How many may go off before the run is cut short.
    timers_max: u64,
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
        let config = ServerConfig {
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
        let oracle = Oracle::new(config, prefills.clone().chain(decodes.clone()));
        let setup = Setup {
            scenario,
            switches,
            layout,
            transfer: scenario.profile.engine().transfer,
            planner: registry.planners[&switches.planner](),
            rows: RowRules::of(scenario, switches),
            pairing: arrival::pair(scenario),
        };
        let builder = Builder { registry, switches, layout, seed: scenario.seed };
        let pairs = prefills.clone().flat_map(|from| decodes.clone().map(move |to| (from, to)));
        World {
            links: (0..).zip(pairs).map(|(index, (from, to))| Link::new(index, from, to)).collect(),
            prefills: prefills.map(|server| builder.prefill(scenario, server)).collect(),
            decodes: decodes.map(|server| builder.decode(scenario, server)).collect(),
            transfers: Transfers::default(),
            timers: 0,
            timers_max: timers_max(scenario, requests, layout),
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
                cx.queue.set(at, Timer::Flushes { side, server: server as usize, fault });
            }
        }
        if let Some(first) = cx.requests.next_at() {
            cx.queue.set(first, Timer::Arrives);
        }
    }

    /// Lets the next timer go off. False if there is none, or no more may go off.
    fn step(&mut self) -> bool {
        if self.timers == self.timers_max {
            self.cut_short = true;
            return false;
        }
        let Some((tick, timer)) = self.context.queue.next() else { return false };
        if tick > limits::TICK_END {
            self.cut_short = true;
            return false;
        }
        self.timers += 1;
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
        self.context.log.count(Metric::Events, self.timers);
        let stores = self.prefills.iter().map(|prefill| &prefill.store);
        let stores = stores.chain(self.decodes.iter().map(|decode| &decode.store));
        let (final_states, notes): (Vec<_>, Vec<_>) =
            stores.map(|store| (store.final_state(), store.left())).unzip();
        for note in &notes {
            self.context.log.note(note);
        }
        let faults_idle = self.context.faults.idle();
        Run { faults_idle, ..self.context.log.close(&final_states, self.cut_short) }
    }
}
