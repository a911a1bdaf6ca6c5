//! How a request's stay on decode begins to run and ends: activation, finish, abort, failure.

use super::super::context::Context;
use super::super::handoff::Stage;
use super::super::observer::Note;
use super::super::store::split_taken;
use super::super::transfer::Transfer;
use super::Decode;
use super::request::{Status, Target};
use super::reservation::cache_keys;
use crate::behaviour::{
    AbortCleanup, AbortedStep, CommittedLength, DecodeInsert, DecodeTurn, PromptNode,
};
use crate::cache::Insertion;
use crate::event::{Event, Holder, Outcome};
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
    /// The transfer is complete, as decode takes it: the request is taken up, now or at the
    /// server's next turn.
    pub(in crate::world) fn landed(&mut self, request: RequestId, cx: &mut Context<'_>) {
        match cx.setup.switches.decode_turn {
            DecodeTurn::AnyTime => {
                self.take_up(request, cx);
                self.keep_prompt(request, cx);
                self.start(request, cx);
            }
            DecodeTurn::BetweenSteps => self.requests[request].status = Status::Landed,
        }
        cx.wake(self.store.server);
    }

    /// What has landed is the request's to run on.
    pub(super) fn take_up(&mut self, request: RequestId, cx: &mut Context<'_>) {
        self.catch_up_table(request, &cx.setup);
        let state = &mut self.requests[request];
        state.status = Status::Running;
        let table = &state.target().table;
        let event = Event::Activated { server: self.store.server, request, table };
        cx.log.tell(&event, &self.store.memory);
        self.leave_transfers(request);
    }

    /// Puts what the request has stored into the cache, if that is done before its end.
    pub(super) fn keep_prompt(&mut self, request: RequestId, cx: &mut Context<'_>) {
        match cx.setup.switches.decode_insert {
            DecodeInsert::AtFinish => {}
            DecodeInsert::AtActivation => self.cache_stored(request, cx),
        }
    }

    /// The request runs, and may have no token to wait for.
    pub(super) fn start(&mut self, request: RequestId, cx: &mut Context<'_>) {
        let stored = self.requests[request].target().stored;
        self.join_running(request, cx);
        cx.reached(request, Moment::Running);
        if cx.requests[request].is_complete(stored) {
            self.finish(request, cx);
        }
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
        let Some(taken) = self.insert(request, table, committed, cx) else {
            return table[shared.min(table.len())..].to_vec();
        };
        let full = taken.len();
        let own = shared.min(full);
        let mut returned = split_taken(&table[own..full], &taken[own..]).1;
        returned.extend(&table[full.max(shared)..]);
        returned
    }

    /// Puts the full pages of a request that goes on into the cache, which locks them. Where it has
    /// a page already, the request's own goes back and its table names the cache's.
    fn cache_stored(&mut self, request: RequestId, cx: &mut Context<'_>) {
        let target = self.requests[request].target();
        let (table, shared, stored) = (target.table.clone(), target.shared, target.stored);
        let Some(taken) = self.insert(request, &table, stored, cx) else { return };
        let full = taken.len();
        let own = shared.min(full);
        let duplicates = split_taken(&table[own..full], &taken[own..]).1;
        let keys = cache_keys(&cx.setup, &cx.requests[request].keyed, stored);
        let store = &mut self.store;
        let cache = store.cache.as_mut().expect("pages were put into it");
        let hit = cache.lookup(&keys[..full]);
        assert!(cache.lock(hit.anchor), "what was just inserted can be locked");
        let target = self.requests[request].target_mut();
        let before = target.anchor.replace(hit.anchor);
        target.table[..full].copy_from_slice(&hit.pages);
        target.shared = full;
        store.unlock(before.as_slice());
        if !duplicates.is_empty() {
            cx.log.mark(Mark::DuplicatePages);
            store.give_back(&mut cx.log, Holder::Request(request), &duplicates);
        }
        store.books(&mut cx.log);
    }

    /// Puts the full pages among the first `committed` tokens into the cache. Returns of each
    /// whether the cache took it; `None` without a cache.
    fn insert(
        &mut self,
        request: RequestId,
        table: &[PageId],
        committed: Tokens,
        cx: &mut Context<'_>,
    ) -> Option<Vec<bool>> {
        let virtual_page = cx.setup.virtual_page();
        let cache = self.store.cache.as_mut()?;
        let info = &cx.requests[request];
        let keys = cache_keys(&cx.setup, &info.keyed, committed);
        let full = committed.pages_floor(virtual_page).index().min(table.len());
        let state = &mut self.requests[request];
        let counted = cx.setup.uncounted(Pages::of(&keys[..full]), state.inserted, false);
        let how = Insertion { priority: info.priority, counted };
        let taken = cache.insert(&keys[..full], &table[..full], how);
        state.inserted = state.inserted.max(Pages::of(&taken));
        let prompt = info.prompt.pages_floor(virtual_page);
        if cx.setup.switches.prompt_node == PromptNode::Own && prompt > Pages(0) {
            let prompt = prompt.index();
            if prompt < full {
                let counted = Pages::of(&keys[..prompt]);
                let how = Insertion { priority: info.priority.saturating_add(1), counted };
                cache.insert(&keys[..prompt], &table[..prompt], how);
            }
        }
        if let Some(partial) = &mut self.partial {
            let pages = (0..).map(Pages).zip(table).zip(&taken);
            for ((ordinal, &page), _) in pages.filter(|&(_, &taken)| taken) {
                partial.add(&info.keyed, ordinal, page);
            }
        }
        // Without a lock on its match, even pages that were shared may be the cache's no more.
        let (kept, _) = split_taken(&table[..full], &taken);
        if !kept.is_empty() {
            let event = Event::Cached { server: self.store.server, request, pages: &kept };
            cx.log.tell(&event, &self.store.memory);
        }
        Some(taken)
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
            Status::Landed => {
                cx.log.mark(Mark::AbortCopying);
                state.is_drained = true;
                self.forget_in(request, AbortCleanup::ForgetsCopying, cx);
                AfterAbort::TellTransfer
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

    /// A running request that finds no page for its next token ends.
    pub(in crate::world) fn drop_for_memory(&mut self, request: RequestId, cx: &mut Context<'_>) {
        let target = self.take_running(request, &cx.setup);
        self.leave_running(request, &target, target.own(), cx);
        self.end(request, Outcome::Failed, cx);
    }

    /// A running request whose client gave up loses its pages, and ends.
    pub(in crate::world) fn drop_running(&mut self, request: RequestId, cx: &mut Context<'_>) {
        self.catch_up_table(request, &cx.setup);
        let target = self.take_running(request, &cx.setup);
        let own = match cx.setup.switches.aborted_step {
            AbortedStep::Dropped => target.own().to_vec(),
            AbortedStep::Counted => self.cache_finished(request, &target, cx),
        };
        let output = cx.requests[request].generated(target.stored);
        cx.log.note(&Note::Dropped { request, output });
        self.leave_running(request, &target, &own, cx);
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
