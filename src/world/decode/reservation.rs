//! Reservation: which request decode lets in, what its prompt finds in the cache, and which pages
//! it gets.

use super::super::arrival::output_limit;
use super::super::context::Context;
use super::super::setup::Setup;
use super::super::transfer::{Destination, Transfer, Transfers};
use super::request::{HostCopy, Status, Target};
use super::{Decode, Reservation};
use crate::behaviour::{
    AdmissionDemand, CacheHashUnit, DecodeMatchUnit, DecodePrefixCut, DecodeReservation,
    DecodeTurn, LockOnMatch, ReservationCall, Resumption, ResumptionDemand,
};
use crate::event::Event;
use crate::finding::{Mark, Metric};
use crate::pool::Growth;
use crate::prompt::{PageKey, Sequence};
use crate::units::{PageId, Pages, RequestId, Tokens};

/// Most tokens of output that admission counts under `admission_demand = "with_output"`.
const OUTPUT_CLIP: Tokens = Tokens(4_096);

/// What a prompt finds in the decode cache.
struct Match {
    target: Target,
    /// What prefill will be told that decode has, S.
    prefix: Tokens,
    /// Tokens in whole pages of the tree.
    matched: Tokens,
    /// Tokens as reported, perhaps finer.
    reported: Tokens,
    /// The page whose rows hold the reported part beyond the whole pages.
    partial: Option<PageId>,
}

impl Decode {
    /// Lets in whoever fits, retracted requests and arrivals each in their order. Returns the
    /// reservations that were made, of which the transfers are to be told.
    pub(in crate::world) fn admit(
        &mut self,
        cx: &mut Context<'_>,
        transfers: &mut Transfers,
    ) -> Vec<Reservation> {
        if cx.setup.switches.resumption == Resumption::First {
            self.admit_retracted(cx, transfers);
        }
        let is_held_up = match cx.setup.switches.decode_turn {
            DecodeTurn::AnyTime => false,
            DecodeTurn::BetweenSteps => !self.retracted.is_empty(),
        };
        if !is_held_up {
            self.admit_waiting(cx, transfers);
        }
        std::mem::take(&mut self.reserved)
    }

    /// Lets retracted requests come back, in order, until one must wait.
    fn admit_retracted(&mut self, cx: &mut Context<'_>, transfers: &mut Transfers) {
        while let Some(&request) = self.retracted.front()
            && self.admit_one(request, cx, transfers)
        {
            self.retracted.pop_front();
        }
    }

    /// Lets in waiting requests, in order, until one must go on waiting.
    fn admit_waiting(&mut self, cx: &mut Context<'_>, transfers: &mut Transfers) {
        let room = cx.setup.in_tokens(self.store.room());
        let mut demand = 0;
        while let Some(&request) = self.waiting.front() {
            demand += u64::from(self.requests[request].length.0);
            let admitted = match cx.setup.switches.admission_demand {
                AdmissionDemand::Pages | AdmissionDemand::WithOutput => {
                    self.admit_one(request, cx, transfers)
                }
                AdmissionDemand::Tokens => {
                    let fits = demand + self.kept_back(&cx.setup) <= room;
                    if fits {
                        // Without a page for it, it has left the queue all the same.
                        self.admit_one(request, cx, transfers);
                    }
                    fits
                }
            };
            if !admitted {
                break;
            }
            self.waiting.pop_front();
            if cx.setup.switches.resumption == Resumption::WithArrivals {
                self.admit_retracted(cx, transfers);
            }
        }
    }

    /// Lets in the request at the head of a queue. False if it must wait.
    fn admit_one(
        &mut self,
        request: RequestId,
        cx: &mut Context<'_>,
        transfers: &mut Transfers,
    ) -> bool {
        let state = &self.requests[request];
        match state.status {
            Status::Ended => self.serve_forgotten(request, cx),
            Status::Retracted => {
                let back = !self.stuck
                    && match state.host {
                        Some(_) => self.resume(request, cx, transfers[request].attempt()),
                        None => self.reserve(request, cx, &mut transfers[request]),
                    };
                if back {
                    cx.log.mark(Mark::Resumed);
                }
                back
            }
            Status::Waiting | Status::Transferring | Status::Landed | Status::Running => {
                self.reserve(request, cx, &mut transfers[request])
            }
        }
    }

    /// Takes pages for an aborted request that was forgotten in its queue; nobody will give them
    /// back.
    fn serve_forgotten(&mut self, request: RequestId, cx: &mut Context<'_>) -> bool {
        let wanted = cx.setup.layout.pages_needed(self.requests[request].length);
        if !self.can_promise(request, wanted, &cx.setup) {
            return false;
        }
        self.evict_for(wanted, cx);
        let Ok(pages) = self.store.pool.alloc(wanted) else { return false };
        self.store.taken(&mut cx.log, request, Pages(0), &pages);
        self.store.books(&mut cx.log);
        true
    }

    /// Requests that run, arrive or are about to join those that run; and those that have ended in
    /// the step before, as long as they count as running.
    fn active(&self) -> u64 {
        let count = self.running.len() + self.joining.len() + self.ended.len();
        (count + self.transfers.len()) as u64
    }

    /// Tokens that are kept back for the growth of running and transferring requests, and of one
    /// more.
    fn kept_back(&self, setup: &Setup<'_>) -> u64 {
        u64::from(setup.scenario.decode.reserved_tokens) * (self.active() + 1)
    }

    /// Whether `request` may be given `pages` beside a prefix of `prefix` tokens, with the output
    /// that it may ask for.
    fn fits_with_output(
        &self,
        request: RequestId,
        (pages, prefix): (Pages, Tokens),
        cx: &Context<'_>,
    ) -> bool {
        let setup = &cx.setup;
        let reserved = i64::from(setup.scenario.decode.reserved_tokens);
        let whole = |request: RequestId| {
            let info = &cx.requests[request];
            let limit = output_limit(setup.scenario, info.prompt);
            let output = limit.map_or(info.max_new_tokens, |most| info.max_new_tokens.min(most));
            i64::from(info.prompt.0) + i64::from(output.min(OUTPUT_CLIP).0)
        };
        let running = self.running.iter().map(|&request| {
            let stored = self.stored(request);
            (request, cx.requests[request].generated(stored))
        });
        let running: Vec<(RequestId, u32)> = running.chain(self.ended.iter().copied()).collect();
        let prompt = |request: RequestId| i64::from(cx.requests[request].prompt.0);
        let lengths = running.iter().map(|&(one, generated)| prompt(one) + i64::from(generated));
        let given_back: i64 = lengths.sum();
        let largest = running.iter().map(|&(one, _)| whole(one) - given_back).max().unwrap_or(0);
        let room = setup.in_tokens(self.store.room()) as i64;
        let budget = room - largest.max(reserved * self.active() as i64);
        let wanted = whole(request) - i64::from(prefix.0) - given_back;
        wanted.max(setup.in_tokens(pages) as i64 + reserved) <= budget
    }

    /// Whether `pages` can be promised to `request`: counted in tokens, they fit into what is free
    /// or evictable beside what is kept back for growth and what all retracted requests need to
    /// come back. A retracted request itself only needs room for its own pages. If it had to leave
    /// what is kept back, it could wait for ever, as the requests that this is kept for wait too.
    fn can_promise(&self, request: RequestId, pages: Pages, setup: &Setup<'_>) -> bool {
        let reserved = u64::from(setup.scenario.decode.reserved_tokens);
        if self.requests[request].status == Status::Retracted {
            let kept = match setup.switches.resumption_demand {
                ResumptionDemand::NextToken => 0,
                ResumptionDemand::Reserved => reserved * (self.active() + 1),
            };
            return setup.in_tokens(pages) + kept <= setup.in_tokens(self.store.room());
        }
        let to_resume = |&request: &RequestId| setup.in_tokens(self.to_resume(request, setup));
        let retracted: u64 = self.retracted.iter().map(to_resume).sum();
        let promised = self.kept_back(setup) + retracted;
        setup.in_tokens(pages) + promised <= setup.in_tokens(self.store.room())
    }

    /// Pages with which a retracted request can come back and store its next token.
    fn to_resume(&self, request: RequestId, setup: &Setup<'_>) -> Pages {
        // Without a host copy, the next token is the last one that prefill computes.
        let state = &self.requests[request];
        match &state.host {
            Some(host) => setup.layout.pages_needed(host.stored + next_token(setup)),
            None => setup.layout.pages_needed(state.length),
        }
    }

    /// Finds the request's prompt in the decode cache.
    fn match_prompt(&mut self, request: RequestId, cx: &Context<'_>, skips_prefix: bool) -> Match {
        let switches = &cx.setup.switches;
        let (page, virtual_page) = (cx.setup.page(), cx.setup.virtual_page());
        let length = self.requests[request].length;
        let keyed = &cx.requests[request].keyed;
        let mut found = Match {
            target: Target::new(Vec::new(), length),
            prefix: Tokens(0),
            matched: Tokens(0),
            reported: Tokens(0),
            partial: None,
        };
        let Some(cache) = self.store.cache.as_mut().filter(|_| !skips_prefix) else {
            return found;
        };
        let hit = cache.lookup(&cache_keys(&cx.setup, keyed, length));
        if switches.lock_on_match == LockOnMatch::Held {
            assert!(cache.lock(hit.anchor), "a fresh match can be locked");
            found.target.anchor = Some(hit.anchor);
        }
        let pages = Pages::of(&hit.pages);
        found.matched = pages.tokens(virtual_page);
        found.reported = found.matched;
        found.target.shared = hit.pages.len();
        found.target.table = hit.pages;
        let reach = self.partial.as_ref().and_then(|index| index.reach(keyed, pages));
        if let Some((reach, holder)) = reach {
            let reach = reach.min(length);
            found.reported = match switches.decode_match_unit {
                DecodeMatchUnit::VirtualPage => found.matched,
                DecodeMatchUnit::PhysicalPage => reach.floor_to(page),
                DecodeMatchUnit::Token => reach,
            };
            found.partial = Some(holder);
        }
        found.prefix = match switches.decode_prefix_cut {
            DecodePrefixCut::VirtualPage => found.reported.floor_to(virtual_page),
            DecodePrefixCut::PhysicalPage => found.reported.floor_to(page),
            DecodePrefixCut::None => found.reported,
            DecodePrefixCut::PaddedUp => found.reported.ceil_to(virtual_page),
        };
        found
    }

    /// Reserves pages for the request's transfer. False if it must wait.
    fn reserve(
        &mut self,
        request: RequestId,
        cx: &mut Context<'_>,
        transfer: &mut Transfer,
    ) -> bool {
        if !transfer.begin(&cx.setup) {
            return false;
        }
        let length = self.requests[request].length;
        let found = self.match_prompt(request, cx, transfer.skips_prefix());
        let wanted = pages_to_take(&cx.setup, length - found.matched);
        let mut taken = None;
        let fits = match cx.setup.switches.admission_demand {
            AdmissionDemand::Pages | AdmissionDemand::Tokens => {
                self.can_promise(request, wanted, &cx.setup)
            }
            AdmissionDemand::WithOutput => {
                self.fits_with_output(request, (wanted, found.matched), cx)
            }
        };
        if fits {
            self.evict_for(wanted, cx);
            taken = self.take_pages((found.matched, length), wanted, &cx.setup);
        }
        let Some(pages) = taken else {
            cx.log.mark(Mark::DecodeWaited);
            self.unlock(&found.target);
            return false;
        };
        self.tell_match(request, &found, length, cx);
        let store = &mut self.store;
        let event = Event::Reserved {
            server: store.server,
            request,
            attempt: transfer.attempt(),
            length,
            room: length,
            matched: found.matched,
            prefix: found.prefix,
            pages: &pages,
        };
        cx.log.tell(&event, &store.memory);
        store.taken(&mut cx.log, request, Pages::of(&found.target.table), &pages);
        store.books(&mut cx.log);
        self.hold(request, found, pages, cx);
        true
    }

    /// The request holds what it has `found` and the pages `taken`.
    fn hold(&mut self, request: RequestId, found: Match, taken: Vec<PageId>, cx: &mut Context<'_>) {
        let copied_up_to = found.reported.min(found.prefix);
        let partial = found.partial.filter(|_| copied_up_to > found.matched);
        let mut target = found.target;
        target.table.extend(taken);
        let into = target.table.get(target.shared).copied();
        if let (Some(from), Some(into)) = (partial, into) {
            self.copy_within_page(request, (from, into), found.matched..copied_up_to, cx);
        }
        let first = found.prefix.pages_floor(cx.setup.virtual_page()).index();
        let pages = target.table.iter().skip(first).copied().collect();
        let state = &mut self.requests[request];
        let destination = Destination { length: state.length, prefix: found.prefix, pages };
        state.target = Some(target);
        state.status = Status::Transferring;
        self.transfers.push(request);
        self.reserved.push(Reservation { request, destination });
    }

    /// Counts and states what a prompt of `length` tokens found in the decode cache.
    fn tell_match(
        &mut self,
        request: RequestId,
        found: &Match,
        length: Tokens,
        cx: &mut Context<'_>,
    ) {
        if found.reported > Tokens(0) {
            cx.log.mark(Mark::HitDecode);
            cx.log.count(Metric::DecodeHits, 1);
            cx.log.count(Metric::DecodeHitTokens, u64::from(found.reported.0));
            cx.log.decode_hit(found.reported.0);
        }
        if found.reported.pages_exact(cx.setup.virtual_page()).is_none() {
            cx.log.mark(Mark::HitUnaligned);
            cx.log.count(Metric::DecodeHitsUnaligned, 1);
        }
        if found.prefix == length {
            cx.log.mark(Mark::HitFull);
        }
        if found.prefix > found.reported {
            cx.log.mark(Mark::PrefixPadded);
        }
        if found.target.shared > 0 {
            let pages = &found.target.table;
            self.catch_up_pages(pages.iter().copied(), &cx.setup);
            let event = Event::Hit { server: self.store.server, request, pages };
            cx.log.tell(&event, &self.store.memory);
        }
    }

    /// Brings a retracted request back from its host copy. False if there is no room yet.
    fn resume(&mut self, request: RequestId, cx: &mut Context<'_>, attempt: u32) -> bool {
        let wanted = self.to_resume(request, &cx.setup);
        if !self.can_promise(request, wanted, &cx.setup) {
            return false;
        }
        self.evict_for(wanted, cx);
        let none = Tokens(0);
        let stored = self.requests[request].host.as_ref().map_or(none, |host| host.stored);
        let room = stored + next_token(&cx.setup);
        let Some(pages) = self.take_pages((none, room), wanted, &cx.setup) else {
            return false;
        };
        let store = &mut self.store;
        let state = &mut self.requests[request];
        let HostCopy { stored, rows } = state.host.take().expect("it has a host copy");
        state.restored = stored;
        let event = Event::Reserved {
            server: store.server,
            request,
            attempt,
            length: stored,
            room,
            matched: none,
            prefix: none,
            pages: &pages,
        };
        cx.log.tell(&event, &store.memory);
        store.taken(&mut cx.log, request, Pages(0), &pages);
        let event = Event::Restored { server: store.server, request, from: none, to: stored };
        cx.log.tell(&event, &store.memory);
        self.restore(request, &pages, rows, cx);
        let state = &mut self.requests[request];
        state.target = Some(Target::new(pages, stored));
        state.status = Status::Running;
        match cx.setup.switches.decode_turn {
            DecodeTurn::AnyTime => {
                self.keep_prompt(request, cx);
                self.join_running(request, cx);
            }
            DecodeTurn::BetweenSteps => self.joining.push(request),
        }
        true
    }

    /// Takes pages for the tokens from `prefix` to `length`: as many as are `wanted`, if whole
    /// pages are asked for.
    fn take_pages(
        &mut self,
        (prefix, length): (Tokens, Tokens),
        wanted: Pages,
        setup: &Setup<'_>,
    ) -> Option<Vec<PageId>> {
        match setup.switches.reservation_call {
            ReservationCall::WholePages => self.store.pool.alloc(wanted).ok(),
            ReservationCall::Extend => {
                let growth = Growth { prefix, length };
                self.store.pool.extend(&[growth]).ok().map(|pages| pages.concat())
            }
        }
    }
}

/// Tokens beyond those stored for which a request that comes back gets pages at once.
fn next_token(setup: &Setup<'_>) -> Tokens {
    match setup.switches.resumption_demand {
        ResumptionDemand::NextToken => Tokens(1),
        ResumptionDemand::Reserved => Tokens(0),
    }
}

/// The keys of the full virtual pages among the first `length` tokens.
pub(super) fn cache_keys(setup: &Setup<'_>, keyed: &Sequence, length: Tokens) -> Vec<PageKey> {
    let hashed = match setup.switches.cache_hash_unit {
        CacheHashUnit::VirtualPage => setup.virtual_page(),
        CacheHashUnit::PhysicalPage => setup.page(),
    };
    keyed.part_keys(setup.virtual_page(), hashed, length)
}

/// Pages to take for the `rest` beyond the matched pages, as the reservation counts them.
fn pages_to_take(setup: &Setup<'_>, rest: Tokens) -> Pages {
    let virtual_page = setup.virtual_page();
    match setup.switches.decode_reservation {
        DecodeReservation::Ceil => rest.pages_ceil(virtual_page),
        DecodeReservation::Floor => rest.pages_floor(virtual_page),
        DecodeReservation::ByPhysicalPage => rest.pages_ceil(setup.page()),
        DecodeReservation::OneShort => match rest.pages_exact(virtual_page) {
            Some(pages) => pages.saturating_sub(Pages(1)),
            None => rest.pages_ceil(virtual_page),
        },
    }
}
