//! A decode server's steps: room for the next token of each running request, retraction where there
//! is none, and the token itself.

use std::cmp::Reverse;

use super::super::context::Context;
use super::super::handoff::Signal;
use super::super::observer::Note;
use super::super::queue::Timer;
use super::super::setup::Setup;
use super::request::{HostCopy, Status};
use super::{Decode, Step};
use crate::behaviour::{
    AbortedStep, EvictionDemand, LastRunning, NextStepDemand, Retraction, RetractionOrder,
};
use crate::event::Event;
use crate::finding::{Mark, Metric};
use crate::scenario::Moment;
use crate::units::{Pages, RequestId, Tick, Tokens};

/// Tokens of each request that goes on, for which pages are evicted after a retraction under
/// `eviction_demand = "padded"`.
const TOKENS_AFTER_RETRACTION: u32 = 20;

/// The request that leaves a server whose pages do not suffice for the next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::world) enum Victim {
    /// It gives up its pages until there is room again.
    Retracted(RequestId),
    /// It ends.
    Aborted(RequestId),
}

impl Decode {
    /// Makes room for the next token of every running request and begins a step, if the server is
    /// idle and has something to run. Returns the request that must leave first, if one
    /// must; to be called again after that.
    pub(in crate::world) fn begin_step(&mut self, cx: &mut Context<'_>) -> Option<Victim> {
        let is_first = self.opening.is_none();
        if is_first && (self.step.is_some() || self.running.is_empty()) {
            return None;
        }
        let opening = self.find_opening(&cx.setup);
        if is_first && opening.len() > 1 {
            cx.log.mark(Mark::GrewTogether);
        }
        if self.runs_out(&opening, is_first, cx)
            && let Some(victim) = self.find_victim(cx)
        {
            self.opening = Some(opening);
            return Some(match cx.setup.switches.last_running {
                LastRunning::Aborted if self.running.len() == 1 => Victim::Aborted(victim),
                LastRunning::Aborted | LastRunning::Retracted => Victim::Retracted(victim),
            });
        }
        let opening = match cx.setup.switches.retraction_order {
            RetractionOrder::Batch if !is_first => self.reorder(opening, cx),
            RetractionOrder::Batch | RetractionOrder::Number => opening,
        };
        self.grow(&opening, cx);
        None
    }

    /// Puts those that were not retracted in the order in which they would be kept. `opening` are
    /// those whose next token opens a page; they are returned in that order.
    fn reorder(
        &mut self,
        opening: Vec<(RequestId, Tokens)>,
        cx: &Context<'_>,
    ) -> Vec<(RequestId, Tokens)> {
        let mut running = std::mem::take(&mut self.running);
        running.sort_by_cached_key(|&request| {
            let info = &cx.requests[request];
            (Reverse(info.generated(self.stored(request))), info.prompt)
        });
        self.running = running;
        self.opening = Some(opening);
        self.find_opening(&cx.setup)
    }

    /// Running requests whose next token opens a page, with their lengths then.
    fn find_opening(&mut self, setup: &Setup<'_>) -> Vec<(RequestId, Tokens)> {
        let virtual_page = setup.virtual_page();
        let mut opening = self.opening.take().unwrap_or_default();
        opening.clear();
        if self.may_open {
            opening.extend(self.running.iter().filter_map(|&request| {
                let stored = self.stored(request);
                let pages = Pages::of(&self.requests[request].target().table);
                let opens = stored.pages_exact(virtual_page)? >= pages;
                opens.then_some((request, stored + Tokens(1)))
            }));
        }
        opening
    }

    /// Whether the next step's demand, as it is counted, exceeds what can be had when so many
    /// requests open a page.
    fn runs_out(
        &mut self,
        opening: &[(RequestId, Tokens)],
        is_first: bool,
        cx: &mut Context<'_>,
    ) -> bool {
        match cx.setup.switches.eviction_demand {
            EvictionDemand::Exact => {}
            EvictionDemand::Padded => {
                if !is_first {
                    let on = u32::try_from(self.running.len()).unwrap_or(u32::MAX);
                    let wanted = Tokens(on.saturating_mul(TOKENS_AFTER_RETRACTION));
                    self.evict_for_tokens(wanted, cx);
                }
                self.evict_for(Pages::of(opening), cx);
            }
        }
        let setup = &cx.setup;
        let room = self.store.room();
        let opening = opening.len() as u64;
        match setup.switches.next_step_demand {
            NextStepDemand::Pages => opening > u64::from(room.0),
            NextStepDemand::Tokens => {
                opening > 0 && self.running.len() as u64 > setup.in_tokens(room)
            }
        }
    }

    /// The running request with the least output; of those the longest prompt, the latest.
    fn find_victim(&self, cx: &Context<'_>) -> Option<RequestId> {
        let victim = self.running.iter().copied().enumerate().min_by_key(|&(place, request)| {
            let info = &cx.requests[request];
            let generated = info.generated(self.stored(request));
            let latest = match cx.setup.switches.retraction_order {
                RetractionOrder::Number => request.index(),
                RetractionOrder::Batch => place,
            };
            (generated, Reverse(info.prompt), Reverse(latest))
        });
        victim.map(|(_, request)| request)
    }

    /// Evicts for the step's demand as the allocator is asked for it, whoever opens a page.
    fn pad(&mut self, cx: &mut Context<'_>) {
        match cx.setup.switches.eviction_demand {
            EvictionDemand::Exact => {}
            EvictionDemand::Padded => {
                let running = Pages::of(&self.running);
                self.evict_for(running, cx);
                self.store.pool.expect(running);
            }
        }
    }

    /// Takes a page for each request that opens one, and begins the step.
    fn grow(&mut self, opening: &[(RequestId, Tokens)], cx: &mut Context<'_>) {
        self.pad(cx);
        if !opening.is_empty() && !self.open_pages(opening, cx) {
            // The estimate was wrong: the step cannot begin until somebody gives pages back.
            cx.log.mark(Mark::DecodeWaited);
            self.stuck = true;
            return;
        }
        self.may_open = false;
        self.store.books(&mut cx.log);
        if self.running.is_empty() {
            return;
        }
        let config = &cx.setup.scenario.decode;
        let ticks = Tick(config.step_ticks + config.request_ticks * self.running.len() as u64);
        cx.log.count(Metric::DecodeSteps, 1);
        self.step = Some(Step::Runs(self.running.len()));
        let server = self.store.server.index as usize;
        cx.set_after(ticks, Timer::DecodeStepEnds { server });
    }

    /// Gives each request that opens a page one. False if there are not enough.
    fn open_pages(&mut self, opening: &[(RequestId, Tokens)], cx: &mut Context<'_>) -> bool {
        self.evict_for(Pages::of(opening), cx);
        let lengths: Vec<Tokens> = opening.iter().map(|&(_, length)| length).collect();
        let Ok(pages) = self.store.pool.decode(&lengths) else { return false };
        for (&(request, _), page) in opening.iter().zip(pages) {
            let page = page.expect("the token opens a page");
            let table = &mut self.requests[request].target_mut().table;
            self.store.taken(&mut cx.log, request, Pages::of(table), &[page]);
            table.push(page);
            cx.log.mark(Mark::GrewPage);
            self.follow(request, cx);
        }
        true
    }

    /// Whether the request's next token is part of the step under way.
    pub(super) fn is_in_step(&self, request: RequestId) -> bool {
        match &self.step {
            None => false,
            Some(Step::Runs(count)) => self.running[..*count].contains(&request),
            Some(Step::Ends(batch, done)) => batch[*done..].contains(&request),
        }
    }

    /// The step under way ends: each request's next position is stored, and those that are complete
    /// finish. Returns a request whose client gave up meanwhile, which is to be dropped; to be
    /// called again until there is none.
    pub(in crate::world) fn end_step(&mut self, cx: &mut Context<'_>) -> Option<RequestId> {
        let count = match self.step {
            Some(Step::Runs(count)) => count,
            Some(Step::Ends(..)) => return self.end_by_request(cx),
            None => panic!("a step was under way"),
        };
        self.late.clock.step_ends(cx.now());
        if self.steps_ended + 1 < self.next_due {
            self.steps_ended += 1;
            self.step = None;
            cx.wake(self.store.server);
            return None;
        }
        self.step = Some(Step::Ends(self.running[..count].to_vec(), 0));
        self.end_by_request(cx)
    }

    /// See [`Decode::end_step`]: the same where a request has to be looked at.
    fn end_by_request(&mut self, cx: &mut Context<'_>) -> Option<RequestId> {
        while let Some(Step::Ends(batch, done)) = &mut self.step
            && let Some(&request) = batch.get(*done)
        {
            *done += 1;
            if self.requests[request].gave_up {
                match cx.setup.switches.aborted_step {
                    AbortedStep::Dropped => self.miss_step(request, &cx.setup),
                    AbortedStep::Counted => self.catch_up(request, &cx.setup),
                }
                self.count_as_running(request, cx);
                return Some(request);
            }
            if self.is_due(request) {
                self.catch_up(request, &cx.setup);
                if cx.requests[request].is_complete(self.requests[request].target().stored) {
                    self.count_as_running(request, cx);
                    self.finish(request, cx);
                } else {
                    self.follow(request, cx);
                }
            }
        }
        self.steps_ended += 1;
        self.step = None;
        self.may_open = true;
        self.find_next_due();
        cx.wake(self.store.server);
        None
    }

    /// A running request is about to give up its pages until there is room again: its rows go to
    /// the host, or prefill will compute them again. Returns what its old transfer is told.
    pub(in crate::world) fn retract(
        &mut self,
        request: RequestId,
        setup: &Setup<'_>,
    ) -> Option<Signal> {
        self.catch_up_table(request, setup);
        self.catch_up(request, setup);
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
    pub(in crate::world) fn leave_retracted(&mut self, request: RequestId, cx: &mut Context<'_>) {
        cx.log.mark(Mark::Retracted);
        cx.log.count(Metric::Retractions, 1);
        cx.log.tell(&Event::Retracted { request }, &[]);
        let target = self.take_running(request, &cx.setup);
        cx.log.note(&Note::Retracted { request, stored: target.stored });
        self.leave_running(request, &target, target.own(), cx);
        // It came back alone and in vain, and would do so again.
        self.stuck |= self.running.is_empty() && self.requests[request].restored == target.stored;
        self.retracted.push_back(request);
        cx.reached(request, Moment::Retracted);
    }
}
