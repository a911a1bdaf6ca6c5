//! Reservation: which request decode lets in, what its prompt finds in the cache, and which pages it gets.

use std::ops::Range;

use super::World;
use super::handoff::{Signal, Stage};
use super::queue::Timer;
use super::request::{Destination, HostCopy, Place, Target};
use crate::behaviour::{
    AdmissionDemand, CacheHashUnit, DecodeMatchUnit, DecodePrefixCut, DecodeReservation,
    LockOnMatch, Resumption,
};
use crate::event::Event;
use crate::finding::{Mark, Metric};
use crate::memory::{Extent, Memory, Stamp};
use crate::prompt::{PageKey, Sequence};
use crate::scenario::Moment;
use crate::units::{PageId, Pages, RequestId, Tick, Tokens};

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

impl World<'_> {
    /// Lets retracted requests come back, in order, until one must wait.
    pub(super) fn admit_retracted(&mut self, index: usize) {
        while let Some(&request) = self.decodes[index].retracted.front()
            && self.admit_to_decode(index, request)
        {
            self.decodes[index].retracted.pop_front();
        }
    }

    /// Lets in arrivals, in order, until one must wait.
    pub(super) fn admit_arrivals(&mut self, index: usize) {
        let room = self.in_tokens(self.decodes[index].store.room());
        let mut demand = 0;
        while let Some(&request) = self.decodes[index].arriving.front() {
            demand += u64::from(self.live(request).length.0);
            let admitted = match self.switches.admission_demand {
                AdmissionDemand::Pages => self.admit_to_decode(index, request),
                AdmissionDemand::Tokens => {
                    let fits = demand + self.kept_back(index) <= room;
                    if fits {
                        // Without a page for it, it has left the queue all the same.
                        self.admit_to_decode(index, request);
                    }
                    fits
                }
            };
            if !admitted {
                break;
            }
            self.decodes[index].arriving.pop_front();
            if self.switches.resumption == Resumption::WithArrivals {
                self.admit_retracted(index);
            }
        }
    }

    /// Lets in the request at the head of a queue. False if it must wait.
    fn admit_to_decode(&mut self, index: usize, request: RequestId) -> bool {
        match self.live(request).place {
            Place::Ended => self.serve_forgotten(index, request),
            Place::Retracted => {
                let back = !self.decodes[index].stuck
                    && match self.live(request).host {
                        Some(_) => self.resume(request),
                        None => self.reserve(request),
                    };
                if back {
                    self.log.mark(Mark::Resumed);
                }
                back
            }
            Place::Arriving | Place::Transferring | Place::Running => self.reserve(request),
        }
    }

    /// Takes pages for an aborted request that was forgotten in its queue; nobody will give them back.
    fn serve_forgotten(&mut self, index: usize, request: RequestId) -> bool {
        let wanted = self.layout.pages_needed(self.live(request).length);
        if !self.can_promise(index, request, wanted) {
            return false;
        }
        self.evict_for(index, wanted);
        let store = &mut self.decodes[index].store;
        let Ok(pages) = store.pool.alloc(wanted) else { return false };
        store.taken(&mut self.log, request, Pages(0), &pages);
        store.books(&mut self.log);
        true
    }

    pub(super) fn in_tokens(&self, pages: Pages) -> u64 {
        u64::from(pages.0) * u64::from(self.layout.virtual_page().get())
    }

    /// Tokens that are kept back for the growth of running, arriving and one more request.
    fn kept_back(&self, index: usize) -> u64 {
        let decode = &self.decodes[index];
        let others = decode.running.len() as u64 + u64::from(decode.transferring);
        u64::from(self.scenario.decode.reserved_tokens) * (others + 1)
    }

    /// Finds the request's prompt in the decode cache.
    fn match_prompt(&mut self, request: RequestId) -> Match {
        let live = self.live[request.index()].as_ref().expect("the request lives");
        let virtual_page = self.layout.virtual_page();
        let keys = self.decode_keys(&live.keyed, live.length);
        let decode = &mut self.decodes[live.decode];
        let mut found = Match {
            target: Target { anchor: None, table: Vec::new(), shared: 0, stored: live.length },
            prefix: Tokens(0),
            matched: Tokens(0),
            reported: Tokens(0),
            partial: None,
        };
        let Some(cache) = decode.store.cache.as_mut().filter(|_| !live.skips_prefix) else {
            return found;
        };
        let hit = cache.lookup(&keys);
        if self.switches.lock_on_match == LockOnMatch::Held {
            assert!(cache.lock(hit.anchor), "a fresh match can be locked");
            found.target.anchor = Some(hit.anchor);
        }
        let pages = Pages::of(&hit.pages);
        found.matched = pages.tokens(virtual_page);
        found.reported = found.matched;
        found.target.shared = hit.pages.len();
        found.target.table = hit.pages;
        let reach = decode.partial.as_ref().and_then(|index| index.reach(&live.keyed, pages));
        if let Some((reach, page)) = reach {
            let reach = reach.min(live.length);
            found.reported = match self.switches.decode_match_unit {
                DecodeMatchUnit::VirtualPage => found.matched,
                DecodeMatchUnit::PhysicalPage => reach.floor_to(self.layout.page()),
                DecodeMatchUnit::Token => reach,
            };
            found.partial = Some(page);
        }
        found.prefix = match self.switches.decode_prefix_cut {
            DecodePrefixCut::VirtualPage => found.reported.floor_to(virtual_page),
            DecodePrefixCut::PhysicalPage => found.reported.floor_to(self.layout.page()),
            DecodePrefixCut::None => found.reported,
            DecodePrefixCut::PaddedUp => found.reported.ceil_to(virtual_page),
        };
        found
    }

    /// The keys of the full virtual pages among the first `length` tokens.
    pub(super) fn decode_keys(&self, keyed: &Sequence, length: Tokens) -> Vec<PageKey> {
        let hashed = match self.switches.cache_hash_unit {
            CacheHashUnit::VirtualPage => self.layout.virtual_page(),
            CacheHashUnit::PhysicalPage => self.layout.page(),
        };
        keyed.part_keys(self.layout.virtual_page(), hashed, length)
    }

    /// Pages to take beyond the matched ones, as the reservation counts them.
    fn pages_to_take(&self, length: Tokens, matched: Tokens) -> Pages {
        let virtual_page = self.layout.virtual_page();
        let rest = length - matched;
        match self.switches.decode_reservation {
            DecodeReservation::Ceil => rest.pages_ceil(virtual_page),
            DecodeReservation::Floor => rest.pages_floor(virtual_page),
            DecodeReservation::ByPhysicalPage => rest.pages_ceil(self.layout.page()),
            DecodeReservation::OneShort => match rest.pages_exact(virtual_page) {
                Some(pages) => pages.saturating_sub(Pages(1)),
                None => rest.pages_ceil(virtual_page),
            },
        }
    }

    /// Whether `pages` more can be promised to `request` on server `index`, all in tokens: what is
    /// free or evictable, less what running, arriving and retracted requests are promised. A
    /// retracted request is the first of those: it asks for its pages only, or it would wait for
    /// ever for what is kept back for others that wait behind it.
    fn can_promise(&self, index: usize, request: RequestId, pages: Pages) -> bool {
        let decode = &self.decodes[index];
        if self.live(request).place == Place::Retracted {
            return pages <= decode.store.room();
        }
        let retracted = decode.retracted.iter();
        let retracted: u64 =
            retracted.map(|&retracted| self.in_tokens(self.pages_to_resume(retracted))).sum();
        let promised = self.kept_back(index) + retracted;
        self.in_tokens(pages) + promised <= self.in_tokens(decode.store.room())
    }

    /// Pages with which a retracted request can come back and store its next token.
    fn pages_to_resume(&self, request: RequestId) -> Pages {
        // Without a host copy, the next token is the last one that prefill computes.
        let live = self.live(request);
        match &live.host {
            Some(host) => self.layout.pages_needed(host.stored + Tokens(1)),
            None => self.layout.pages_needed(live.length),
        }
    }

    /// Reserves decode pages for the request's transfer and tells prefill. False if it must wait.
    fn reserve(&mut self, request: RequestId) -> bool {
        // The transfer before, if any, must be over: its copies landed and its pages given back.
        let live = self.live(request);
        if live.source.is_some() && live.handoff.stage() != Stage::Waiting {
            return false;
        }
        if self.live(request).handoff.stage() == Stage::Active {
            self.renew(request);
        }
        let index = self.live(request).decode;
        let length = self.live(request).length;
        let found = self.match_prompt(request);
        let wanted = self.pages_to_take(length, found.matched);
        let mut taken = None;
        if self.can_promise(index, request, wanted) {
            self.evict_for(index, wanted);
            taken = self.decodes[index].store.pool.alloc(wanted).ok();
        }
        let Some(pages) = taken else {
            self.log.mark(Mark::DecodeWaited);
            self.unlock_target(index, &found.target);
            return false;
        };
        self.tell_match(request, &found);
        let store = &mut self.decodes[index].store;
        let attempt = self.live[request.index()].as_ref().expect("the request lives").attempt;
        let event = Event::Reserved {
            server: store.server,
            request,
            attempt,
            length,
            room: length,
            matched: found.matched,
            prefix: found.prefix,
            pages: &pages,
        };
        self.log.tell(&event, &store.memory);
        store.taken(&mut self.log, request, Pages::of(&found.target.table), &pages);
        store.books(&mut self.log);
        let copied_up_to = found.reported.min(found.prefix);
        let partial = found.partial.filter(|_| copied_up_to > found.matched);
        let mut target = found.target;
        target.table.extend(pages);
        let into = target.table.get(target.shared).copied();
        if let (Some(from), Some(into)) = (partial, into) {
            self.copy_within_page(request, from, into, found.matched, copied_up_to);
        }
        let first = found.prefix.pages_floor(self.layout.virtual_page()).index();
        let pages = target.table.iter().skip(first).copied().collect();
        let live = self.live_mut(request);
        live.destination = Destination { prefix: found.prefix, pages, is_known: false };
        live.target = Some(target);
        live.place = Place::Transferring;
        self.decodes[index].transferring += 1;
        self.hand(request, Signal::Reserved);
        let message = Tick(self.scenario.link.message_ticks);
        self.queue.plan(self.log.now + message, Timer::DestinationKnown { request, attempt });
        self.moment(request, Moment::Reserved);
        true
    }

    /// Evicts cached pages of decode server `index` until `wanted` pages are free.
    pub(super) fn evict_for(&mut self, index: usize, wanted: Pages) {
        let decode = &mut self.decodes[index];
        let dropped = decode.store.make_room(&mut self.log, wanted);
        if let Some(partial) = &mut decode.partial {
            for page in dropped {
                partial.remove(page);
            }
        }
    }

    pub(super) fn unlock_target(&mut self, index: usize, target: &Target) {
        let cache = &mut self.decodes[index].store.cache;
        if let (Some(cache), Some(anchor)) = (cache, target.anchor) {
            assert!(cache.unlock(anchor), "the match was locked");
        }
    }

    /// Counts and states what the prompt found in the decode cache.
    fn tell_match(&mut self, request: RequestId, found: &Match) {
        let live = self.live[request.index()].as_ref().expect("the request lives");
        if found.reported > Tokens(0) {
            self.log.mark(Mark::HitDecode);
            self.log.count(Metric::DecodeHits, 1);
            self.log.count(Metric::DecodeHitTokens, u64::from(found.reported.0));
            self.log.decode_hit(found.reported.0);
        }
        if found.reported.pages_exact(self.layout.virtual_page()).is_none() {
            self.log.mark(Mark::HitUnaligned);
            self.log.count(Metric::DecodeHitsUnaligned, 1);
        }
        if found.prefix == live.length {
            self.log.mark(Mark::HitFull);
        }
        if found.prefix > found.reported {
            self.log.mark(Mark::PrefixPadded);
        }
        if found.target.shared > 0 {
            let store = &self.decodes[live.decode].store;
            let pages = &found.target.table;
            let event = Event::Hit { server: store.server, request, pages };
            self.log.tell(&event, &store.memory);
        }
    }

    /// Copies the rows of positions `from..to`, which lie in one virtual page, from a cached page
    /// into the request's own.
    fn copy_within_page(
        &mut self,
        request: RequestId,
        cached: PageId,
        own: PageId,
        from: Tokens,
        to: Tokens,
    ) {
        let index = self.live(request).decode;
        let page = self.layout.page().get();
        let store = &mut self.decodes[index].store;
        let event = Event::Restored { server: store.server, request, from, to };
        self.log.tell(&event, &store.memory);
        for rank in self.layout.each_rank() {
            let memory = &mut store.memory[rank.index()];
            let first = from.pages_floor(self.layout.virtual_page()).0 * page;
            let start = self.layout.rows_of_rank(rank, from) - first;
            let end = self.layout.rows_of_rank(rank, to) - first;
            copy_rows(memory, (cached, own), start..end, request, self.log.now);
        }
        let first = from.floor_to(self.layout.virtual_page());
        for memory in &mut store.memory[self.layout.ranks() as usize..] {
            let rows = (from - first).0..(to - first).0;
            copy_rows(memory, (cached, own), rows, request, self.log.now);
        }
    }

    /// Brings a retracted request back from its host copy. False if there is no room yet.
    fn resume(&mut self, request: RequestId) -> bool {
        let index = self.live(request).decode;
        let wanted = self.pages_to_resume(request);
        if !self.can_promise(index, request, wanted) {
            return false;
        }
        self.evict_for(index, wanted);
        let store = &mut self.decodes[index].store;
        let Ok(pages) = store.pool.alloc(wanted) else { return false };
        let live = self.live[request.index()].as_mut().expect("the request lives");
        let HostCopy { stored, rows } = live.host.take().expect("it has a host copy");
        let none = Tokens(0);
        let event = Event::Reserved {
            server: store.server,
            request,
            attempt: live.attempt,
            length: stored,
            room: stored + Tokens(1),
            matched: none,
            prefix: none,
            pages: &pages,
        };
        self.log.tell(&event, &store.memory);
        store.taken(&mut self.log, request, Pages(0), &pages);
        let event = Event::Restored { server: store.server, request, from: none, to: stored };
        self.log.tell(&event, &store.memory);
        for (&page, ranks) in pages.iter().zip(rows) {
            for (memory, extents) in store.memory.iter_mut().zip(ranks) {
                for extent in extents {
                    let stamp = Stamp { written: self.log.now, writer: request, ..extent.stamp };
                    memory.write(page, Extent { stamp, ..extent });
                }
            }
        }
        live.target = Some(Target { anchor: None, table: pages, shared: 0, stored });
        live.place = Place::Running;
        self.decodes[index].running.push(request);
        true
    }

    /// The list of reserved pages reaches prefill.
    pub(super) fn destination_known(&mut self, request: RequestId, attempt: u32) {
        let live = self.live_mut(request);
        if live.attempt != attempt || live.handoff.stage() != Stage::Reserved {
            return;
        }
        live.destination.is_known = true;
        if attempt > 0 || !self.begins_at_arrival() {
            self.await_prefill(request);
        } else if self.live(request).source.is_some() {
            self.send_what_waited(request);
        } else {
            // Others may have to give way to it now.
            let prefill = self.live(request).prefill;
            self.wake_prefill(prefill);
        }
    }
}

/// Copies `rows` of one page into another, for `request`.
fn copy_rows(
    memory: &mut Memory,
    (from, to): (PageId, PageId),
    rows: Range<u32>,
    request: RequestId,
    now: Tick,
) {
    let within = |extent: &Extent| extent.within(rows.start, rows.end);
    let copied: Vec<Extent> = memory.page(from).iter().filter_map(within).collect();
    for extent in copied {
        let stamp = Stamp { written: now, writer: request, ..extent.stamp };
        memory.write(to, Extent { stamp, ..extent });
    }
}
