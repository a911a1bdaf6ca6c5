//! A decode server: its queues, its pool and cache, the requests that run on it, its part of each
//! request.
//!
//! This file has the server, who queues for it, and how pages go back. Whom it lets in is in
//! `reservation`, its steps in `step`, the rows of these in `late`, the ends of a request's stay in
//! `ending`, all other rows in `rows`.

use std::collections::VecDeque;

use super::context::Context;
use super::request::ByRequest;
use super::store::{Flushed, Store};
use super::transfer::Destination;
use crate::behaviour::{DecodeTurn, FreeSegment, TailRelease};
use crate::cache::partial::PartialIndex;
use crate::event::Holder;
use crate::memory::StepClock;
use crate::units::{PageId, Pages, RequestId, Tokens};

pub(super) mod ending;
mod late;
mod request;
mod reservation;
mod rows;
pub(super) mod step;
mod turn;

#[cfg(test)]
pub(super) mod tests;

use late::LateRows;
use request::{RequestState, Status, Target};

/// One decode server.
pub(super) struct Decode {
    pub(super) store: Store,
    /// How far prompts match inside cached pages, where hits are reported finer than pages.
    partial: Option<PartialIndex>,
    requests: ByRequest<RequestState>,
    /// Requests that wait for a reservation.
    waiting: VecDeque<RequestId>,
    /// Requests that gave up their pages, in order of that.
    retracted: VecDeque<RequestId>,
    /// Reservations that their transfers have not been told of.
    reserved: Vec<Reservation>,
    /// Requests with a handoff under way, in order of reservation.
    transfers: Vec<RequestId>,
    /// Requests whose transfers have failed, while they hold what they had reserved.
    failed: Vec<RequestId>,
    /// Retracted requests that have come back and are about to run.
    joining: Vec<RequestId>,
    /// Requests that ended in the step before, with the output tokens that they had, as long as
    /// they count as running.
    ended: Vec<(RequestId, u32)>,
    /// Requests that generate output, in order of activation.
    running: Vec<RequestId>,
    /// Running requests whose next token opens a page, with their lengths then, while a step is
    /// prepared.
    opening: Option<Vec<(RequestId, Tokens)>>,
    step: Option<Step>,
    /// Steps that have ended.
    steps_ended: u32,
    /// How many will have ended when one has to be looked at request by request; see
    /// [`Target::due`].
    next_due: u32,
    /// Whether a running request may be about to open a page.
    may_open: bool,
    late: LateRows,
    /// Whether the last step could not begin, because a wrong estimate (`next_step_demand`,
    /// `resumption_demand`) had promised pages that the pool does not have, and none were given
    /// back since. No retracted request comes back meanwhile: it would be retracted and come back
    /// by turns, without end within one tick.
    stuck: bool,
}

/// A step under way.
enum Step {
    /// It runs, for so many of the running requests: those that came later are behind them.
    Runs(usize),
    /// It ends, for these requests in turn; so many of them have stored their token, or been
    /// dropped.
    Ends(Vec<RequestId>, usize),
}

/// Pages have been reserved for a transfer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reservation {
    pub(super) request: RequestId,
    pub(super) destination: Destination,
}

impl Decode {
    /// An idle server out of `servers`, with an index of partial hits if there is one.
    pub(super) fn new(
        store: Store,
        partial: Option<PartialIndex>,
        servers: u32,
        clock: StepClock,
    ) -> Decode {
        let late = LateRows::new(store.pool.total(), clock);
        Decode {
            requests: ByRequest::new(store.server.index, servers),
            store,
            partial,
            waiting: VecDeque::new(),
            retracted: VecDeque::new(),
            reserved: Vec::new(),
            transfers: Vec::new(),
            failed: Vec::new(),
            joining: Vec::new(),
            ended: Vec::new(),
            running: Vec::new(),
            opening: None,
            step: None,
            steps_ended: 0,
            next_due: u32::MAX,
            may_open: false,
            late,
            stuck: false,
        }
    }

    /// The server's next request has arrived, with `prompt` tokens.
    pub(super) fn arrive(&mut self, prompt: Tokens) {
        self.requests.push(RequestState::new(prompt));
    }

    /// The request waits for a reservation: it has arrived, or is to be served once more. What its
    /// failed transfer still held until the server's next turn goes back first.
    pub(super) fn wait(&mut self, request: RequestId, cx: &mut Context<'_>) {
        if std::mem::take(&mut self.requests[request].is_drained) {
            self.leave_transfers(request);
            self.failed.retain(|&failed| failed != request);
            self.return_reserved(request, cx);
        }
        self.requests[request].status = Status::Waiting;
        self.waiting.push_back(request);
        cx.wake(self.store.server);
    }

    /// Gives back what a transfer had reserved.
    pub(super) fn release(&mut self, request: RequestId, cx: &mut Context<'_>) {
        match cx.setup.switches.decode_turn {
            DecodeTurn::AnyTime => {
                self.leave_transfers(request);
                self.return_reserved(request, cx);
            }
            DecodeTurn::BetweenSteps => {
                self.requests[request].is_drained = true;
                cx.wake(self.store.server);
            }
        }
    }

    fn return_reserved(&mut self, request: RequestId, cx: &mut Context<'_>) {
        let target = self.requests[request].take_target();
        self.return_target(request, &target, target.own(), cx);
    }

    /// The request's handoff is under way no more.
    fn leave_transfers(&mut self, request: RequestId) {
        self.transfers.retain(|&transfer| transfer != request);
    }

    /// Somebody flushes the cache.
    pub(super) fn flush(&mut self, cx: &mut Context<'_>) {
        match self.store.flush(cx) {
            Flushed::Nothing => {}
            Flushed::Evicted(pages) => self.unindex(pages),
            Flushed::Everything => {
                self.stuck = false;
                if let Some(partial) = &mut self.partial {
                    *partial = PartialIndex::new(self.store.pool.page());
                }
                // The locks went with the cache.
                for target in self.requests.iter_mut().filter_map(|state| state.target.as_mut()) {
                    target.anchor = None;
                }
            }
        }
        cx.wake(self.store.server);
    }

    /// Evicts cached pages until `wanted` pages are free.
    fn evict_for(&mut self, wanted: Pages, cx: &mut Context<'_>) {
        self.evict_for_tokens(wanted.tokens(cx.setup.virtual_page()), cx);
    }

    /// Evicts cached pages until `wanted` tokens are free.
    fn evict_for_tokens(&mut self, wanted: Tokens, cx: &mut Context<'_>) {
        let dropped = self.store.make_room(&mut cx.log, wanted);
        self.unindex(dropped);
    }

    /// The cache has dropped `pages`: no partial hit is found in them any more.
    fn unindex(&mut self, pages: Vec<PageId>) {
        if let Some(partial) = &mut self.partial {
            for page in pages {
                partial.remove(page);
            }
        }
    }

    fn unlock(&mut self, target: &Target) {
        self.store.unlock(target.anchor.as_slice());
    }

    /// Takes the request out of the running ones, unlocks its prefix and gives `returned` back.
    fn leave_running(
        &mut self,
        request: RequestId,
        target: &Target,
        returned: &[PageId],
        cx: &mut Context<'_>,
    ) {
        self.running.retain(|&running| running != request);
        self.return_target(request, target, returned, cx);
    }

    /// Unlocks the request's prefix and gives `returned` of its own pages back.
    fn return_target(
        &mut self,
        request: RequestId,
        target: &Target,
        returned: &[PageId],
        cx: &mut Context<'_>,
    ) {
        self.stuck = false;
        if !self.requests[request].is_forgotten {
            self.unlock(target);
            let inside = match cx.setup.switches.free_segment {
                FreeSegment::WholePages => None,
                FreeSegment::AnyStart => output_start(request, target, returned, cx),
            };
            let store = &mut self.store;
            let log = &mut cx.log;
            let returned = match (cx.setup.switches.tail_release, returned.first()) {
                (TailRelease::ByTable, _) | (TailRelease::AsRun, None) => returned.to_vec(),
                (TailRelease::AsRun, Some(first)) => {
                    let run = (first.0..=store.pool.total().0).map(PageId);
                    run.take(returned.len()).collect()
                }
            };
            match inside.filter(|&(at, _)| at < returned.len()) {
                None => store.give_back(log, Holder::Request(request), &returned),
                Some((at, start)) => {
                    store.give_back_part(log, request, &returned[at..], start);
                    store.give_back(log, Holder::Request(request), &returned[..=at]);
                }
            }
            store.books(log);
        }
        cx.wake(self.store.server);
    }
}

/// The place in `returned` of the page that holds both prompt and output, and the output's first
/// position in it. `None` if there is no such page.
fn output_start(
    request: RequestId,
    target: &Target,
    returned: &[PageId],
    cx: &Context<'_>,
) -> Option<(usize, u32)> {
    let virtual_page = cx.setup.virtual_page();
    let prompt = cx.requests[request].prompt;
    let start = prompt - prompt.floor_to(virtual_page);
    let shared = target.table.get(prompt.pages_floor(virtual_page).index())?;
    let at = returned.iter().position(|page| page == shared)?;
    (start > Tokens(0) && target.stored > prompt).then_some((at, start.0))
}
