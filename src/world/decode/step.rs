//! A decode server's steps: room for the next token of each running request, retraction where there is
//! none, and the token itself.

use std::cmp::Reverse;

use super::super::context::Context;
use super::super::handoff::Signal;
use super::super::queue::Timer;
use super::super::setup::Setup;
use super::Decode;
use super::request::{HostCopy, Status};
use crate::behaviour::{NextStepDemand, Retraction};
use crate::event::Event;
use crate::finding::{Mark, Metric};
use crate::scenario::Moment;
use crate::units::{Pages, RequestId, Tick, Tokens};

impl Decode {
    /// Makes room for the next token of every running request and begins a step, if the server is
    /// idle and has something to run. Returns the request that must be retracted first, if one must;
    /// to be called again after that.
    pub(in super::super) fn begin_step(&mut self, cx: &mut Context<'_>) -> Option<RequestId> {
        let is_first = self.opening.is_none();
        if is_first && (self.step.is_some() || self.running.is_empty()) {
            return None;
        }
        let opening = self.find_opening(&cx.setup);
        if is_first && opening.len() > 1 {
            cx.log.mark(Mark::GrewTogether);
        }
        if self.runs_out(opening.len() as u64, &cx.setup)
            && let Some(victim) = self.find_victim(cx)
        {
            self.opening = Some(opening);
            return Some(victim);
        }
        self.grow(&opening, cx);
        None
    }

    /// Running requests whose next token opens a page, with their lengths then.
    fn find_opening(&mut self, setup: &Setup<'_>) -> Vec<(RequestId, Tokens)> {
        let virtual_page = setup.virtual_page();
        let mut opening = self.opening.take().unwrap_or_default();
        opening.clear();
        opening.extend(self.running.iter().filter_map(|&request| {
            let target = self.requests[request].target();
            let opens = target.stored.pages_exact(virtual_page)? >= Pages::of(&target.table);
            opens.then_some((request, target.stored + Tokens(1)))
        }));
        opening
    }

    /// Whether the next step's demand, as it is counted, exceeds what can be had when so many requests
    /// open a page.
    fn runs_out(&self, opening: u64, setup: &Setup<'_>) -> bool {
        let room = self.store.room();
        match setup.switches.next_step_demand {
            NextStepDemand::Pages => opening > u64::from(room.0),
            NextStepDemand::Tokens => {
                opening > 0 && self.running.len() as u64 > setup.in_tokens(room)
            }
        }
    }

    /// The running request with the least output; of those the longest prompt, the latest.
    fn find_victim(&self, cx: &Context<'_>) -> Option<RequestId> {
        self.running.iter().copied().min_by_key(|&request| {
            let info = &cx.requests[request];
            let generated = info.generated(self.requests[request].target().stored);
            (generated, Reverse(info.prompt), Reverse(request))
        })
    }

    /// Takes a page for each request that opens one, and begins the step.
    fn grow(&mut self, opening: &[(RequestId, Tokens)], cx: &mut Context<'_>) {
        self.evict_for(Pages::of(opening), cx);
        let lengths: Vec<Tokens> = opening.iter().map(|&(_, length)| length).collect();
        let Ok(pages) = self.store.pool.decode(&lengths) else {
            // The estimate was wrong: the step cannot begin until somebody gives pages back.
            cx.log.mark(Mark::DecodeWaited);
            self.stuck = true;
            return;
        };
        for (&(request, _), page) in opening.iter().zip(pages) {
            let page = page.expect("the token opens a page");
            let table = &mut self.requests[request].target_mut().table;
            self.store.taken(&mut cx.log, request, Pages::of(table), &[page]);
            table.push(page);
            cx.log.mark(Mark::GrewPage);
        }
        self.store.books(&mut cx.log);
        if self.running.is_empty() {
            return;
        }
        let config = &cx.setup.scenario.decode;
        let ticks = Tick(config.step_ticks + config.request_ticks * self.running.len() as u64);
        cx.log.count(Metric::DecodeSteps, 1);
        self.step = Some(self.running.iter().copied().collect());
        let server = self.store.server.index as usize;
        cx.plan_after(ticks, Timer::DecodeStepEnds { server });
    }

    /// The step under way ends: each request's next position is stored, and those that are complete
    /// finish. Returns a request whose client gave up meanwhile, which is to be dropped; to be called
    /// again until there is none.
    pub(in super::super) fn end_step(&mut self, cx: &mut Context<'_>) -> Option<RequestId> {
        let mut step = self.step.take().expect("a step was under way");
        while let Some(request) = step.pop_front() {
            if self.requests[request].gave_up {
                self.step = Some(step);
                return Some(request);
            }
            self.store_next(request, cx);
            if cx.requests[request].is_complete(self.requests[request].target().stored) {
                self.finish(request, cx);
            }
        }
        cx.wake(self.store.server);
        None
    }

    /// A running request is about to give up its pages until there is room again: its rows go to the
    /// host, or prefill will compute them again. Returns what its old transfer is told.
    pub(in super::super) fn retract(
        &mut self,
        request: RequestId,
        setup: &Setup<'_>,
    ) -> Option<Signal> {
        let state = &mut self.requests[request];
        state.status = Status::Retracted;
        let stored = state.target().stored;
        match setup.switches.retraction {
            Retraction::HostCopy => {
                let pages = setup.layout.pages_needed(stored).index();
                let rows = self.store.read_pages(&state.target().table, pages);
                state.host = Some(HostCopy { stored, rows });
                None
            }
            Retraction::SendAgain => {
                // The last output token is known but not stored: prefill computes it, too. Whatever
                // the old transfer still does is in vain.
                state.length = stored + Tokens(1);
                Some(Signal::Aborted)
            }
        }
    }

    /// The pages of a request that was retracted go back, and it waits for others.
    pub(in super::super) fn leave_retracted(&mut self, request: RequestId, cx: &mut Context<'_>) {
        cx.log.mark(Mark::Retracted);
        cx.log.count(Metric::Retractions, 1);
        cx.log.tell(&Event::Retracted { request }, &[]);
        let target = self.requests[request].take_target();
        self.leave_running(request, &target, target.own(), cx);
        self.retracted.push_back(request);
        cx.reached(request, Moment::Retracted);
    }
}
