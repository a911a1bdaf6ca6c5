//! How a request's stay on decode begins to run and ends: activation, finish, abort, failure.

use super::super::context::Context;
use super::super::handoff::Stage;
use super::super::store::split_taken;
use super::super::transfer::Transfer;
use super::Decode;
use super::request::{Status, Target};
use super::reservation::cache_keys;
use crate::behaviour::{AbortCleanup, CommittedLength};
use crate::event::{Event, Outcome};
use crate::finding::{Mark, Metric};
use crate::scenario::Moment;
use crate::units::{PageId, Pages, RequestId, Tokens};

/// What follows when a client has given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::world) enum AfterAbort {
    /// Nothing, or nothing before the step under way ends.
    Nothing,
    /// The transfer is told.
    TellTransfer,
    /// The transfer is told, and the request ends: the transfer was over long before.
    TellAndEnd,
    /// The transfer under way is closed.
    CloseTransfer,
    /// The running request is dropped.
    Drop,
}

impl Decode {
    /// The transfer is complete, as decode takes it: the request runs, and may have no token to
    /// wait for.
    pub(in crate::world) fn activate(&mut self, request: RequestId, cx: &mut Context<'_>) {
        self.catch_up_table(request, &cx.setup);
        let state = &mut self.requests[request];
        state.status = Status::Running;
        let Target { table, stored, .. } = state.target();
        let stored = *stored;
        let event = Event::Activated { server: self.store.server, request, table };
        cx.log.tell(&event, &self.store.memory);
        self.transferring -= 1;
        self.join_running(request, cx);
        cx.reached(request, Moment::Running);
        if cx.requests[request].is_complete(stored) {
            self.finish(request, cx);
        }
        cx.wake(self.store.server);
    }

    /// The request has all its output: its full pages go into the cache, the rest is freed.
    pub(super) fn finish(&mut self, request: RequestId, cx: &mut Context<'_>) {
        self.catch_up_table(request, &cx.setup);
        let target = self.take_running(request, &cx.setup);
        let Target { table, stored, .. } = &target;
        let event = Event::Finished { server: self.store.server, request, table, stored: *stored };
        cx.log.tell(&event, &self.store.memory);
        let returned = self.cache_finished(request, &target, cx);
        cx.log.count(Metric::Finished, 1);
        let generated = cx.requests[request].generated(*stored);
        cx.log.count(Metric::OutputTokens, u64::from(generated));
        self.leave_running(request, &target, &returned, cx);
        self.end(request, Outcome::Finished, cx);
    }

    /// Puts the full pages of a finished request into the cache. Returns those of its own pages
    /// that the cache did not take.
    fn cache_finished(
        &mut self,
        request: RequestId,
        target: &Target,
        cx: &mut Context<'_>,
    ) -> Vec<PageId> {
        let Target { table, shared, stored, .. } = target;
        let (shared, stored) = (*shared, *stored);
        let committed = match cx.setup.switches.committed_length {
            CommittedLength::Stored => stored,
            CommittedLength::Sequence => stored + Tokens(1),
        };
        let Some(cache) = &mut self.store.cache else {
            return table[shared.min(table.len())..].to_vec();
        };
        let info = &cx.requests[request];
        let keys = cache_keys(&cx.setup, &info.keyed, committed);
        let full = committed.pages_floor(cx.setup.virtual_page()).index().min(table.len());
        let taken = cache.insert(&keys[..full], &table[..full], info.priority);
        if let Some(partial) = &mut self.partial {
            let pages = (0..).map(Pages).zip(table).zip(&taken);
            for ((ordinal, &page), _) in pages.filter(|&(_, &taken)| taken) {
                partial.add(&info.keyed, ordinal, page);
            }
        }
        let own = shared.min(full);
        let mut returned = split_taken(&table[own..full], &taken[own..]).1;
        returned.extend(&table[full.max(shared)..]);
        // Without a lock on its match, even pages that were shared may be the cache's no more.
        let (kept, _) = split_taken(&table[..full], &taken);
        if !kept.is_empty() {
            let event = Event::Cached { server: self.store.server, request, pages: &kept };
            cx.log.tell(&event, &self.store.memory);
        }
        returned
    }

    /// A client gives up, in whatever state its request is. The fault has struck unless the client
    /// had given up before, or the request was over.
    pub(in crate::world) fn abort(
        &mut self,
        request: RequestId,
        fault: usize,
        transfer: &Transfer,
        cx: &mut Context<'_>,
    ) -> AfterAbort {
        let state = &mut self.requests[request];
        if !state.gave_up && state.status != Status::Ended {
            cx.faults.strike(fault);
        }
        state.gave_up = true;
        match state.status {
            Status::Ended => AfterAbort::Nothing,
            Status::Waiting => {
                cx.log.mark(Mark::AbortWaiting);
                self.leave_queue(request, AbortCleanup::ForgetsWaiting, cx);
                AfterAbort::TellTransfer
            }
            Status::Transferring => {
                self.abort_transfer(request, transfer, cx);
                AfterAbort::CloseTransfer
            }
            Status::Running => {
                cx.log.mark(Mark::AbortRunning);
                self.forget_in(request, AbortCleanup::ForgetsRunning, cx);
                match self.is_in_step(request) {
                    true => {
                        self.next_due = 0;
                        AfterAbort::Nothing
                    }
                    false => AfterAbort::Drop,
                }
            }
            Status::Retracted => {
                cx.log.mark(Mark::AbortRetracted);
                state.host = None;
                self.leave_queue(request, AbortCleanup::ForgetsRetracted, cx);
                // A transfer that has not begun ends by what it is told.
                match transfer.handoff().stage() == Stage::Active {
                    true => AfterAbort::TellAndEnd,
                    false => AfterAbort::TellTransfer,
                }
            }
        }
    }

    fn abort_transfer(&mut self, request: RequestId, transfer: &Transfer, cx: &mut Context<'_>) {
        let handoff = transfer.handoff();
        let (mark, state) = if handoff.is_sent() {
            (Mark::AbortCopying, AbortCleanup::ForgetsCopying)
        } else if handoff.holds_source() {
            (Mark::AbortPrefilling, AbortCleanup::ForgetsChunking)
        } else {
            (Mark::AbortReserved, AbortCleanup::ForgetsReserved)
        };
        cx.log.mark(mark);
        if handoff.is_copying() {
            cx.log.mark(Mark::AbortInFlight);
        }
        self.forget_in(request, state, cx);
    }

    /// An aborted request is in `state`: if `abort_cleanup` says so of that state, what it holds is
    /// never given back.
    fn forget_in(&mut self, request: RequestId, state: AbortCleanup, cx: &Context<'_>) {
        if cx.setup.switches.abort_cleanup == state {
            self.requests[request].is_forgotten = true;
        }
    }

    /// Takes an aborted request out of the queues, unless it is forgotten there.
    fn leave_queue(&mut self, request: RequestId, state: AbortCleanup, cx: &Context<'_>) {
        self.forget_in(request, state, cx);
        if !self.is_forgotten(request) {
            self.waiting.retain(|&waiting| waiting != request);
            self.retracted.retain(|&waiting| waiting != request);
        }
    }

    /// Whether what the request held when its client gave up is never given back.
    pub(in crate::world) fn is_forgotten(&self, request: RequestId) -> bool {
        self.requests[request].is_forgotten
    }

    /// A running request whose client gave up loses its pages, and ends.
    pub(in crate::world) fn drop_running(&mut self, request: RequestId, cx: &mut Context<'_>) {
        let target = self.take_running(request, &cx.setup);
        self.leave_running(request, &target, target.own(), cx);
        self.end(request, Outcome::Aborted, cx);
    }

    /// Whether a request whose transfer has failed may be served once more.
    pub(in crate::world) fn may_try_again(&self, request: RequestId) -> bool {
        let state = &self.requests[request];
        state.status == Status::Transferring && !state.gave_up
    }

    /// The request ends without output beyond what it has.
    pub(in crate::world) fn end_unfinished(&mut self, request: RequestId, cx: &mut Context<'_>) {
        let outcome = match self.requests[request].gave_up {
            true => Outcome::Aborted,
            false => Outcome::Failed,
        };
        self.end(request, outcome, cx);
    }

    fn end(&mut self, request: RequestId, outcome: Outcome, cx: &mut Context<'_>) {
        self.requests[request].status = Status::Ended;
        match outcome {
            Outcome::Finished => {}
            Outcome::Failed => cx.log.count(Metric::Failed, 1),
            Outcome::Aborted => cx.log.count(Metric::Aborted, 1),
        }
        cx.log.tell(&Event::Ended { request, outcome }, &[]);
    }
}
