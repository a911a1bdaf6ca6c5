//! A decode server: reservation, running steps, growth, retraction and finish.

use std::collections::VecDeque;
use std::ops::Range;

use super::World;
use super::event::Event;
use super::handoff::{Fact as Told, Handoff, Rules, Stage};
use super::request::{Destination, HostCopy, Place, Target};
use super::store::{Store, split_taken};
use crate::behaviour::{
    AdmissionDemand, CacheHashUnit, CommittedLength, DecodeMatchUnit, DecodePrefixCut,
    DecodeReservation, FreeSegment, LockOnMatch, NextStepDemand, PrefillStart, Resumption,
    Retraction, TailRelease,
};
use crate::cache::partial::PartialIndex;
use crate::finding::{Mark, Metric};
use crate::oracle::fact::{Fact, Holder, Outcome};
use crate::pool::memory::{Extent, Memory, Stamp};
use crate::prompt::{PageKey, Sequence};
use crate::scenario::Moment;
use crate::units::{PageId, Pages, RequestId, Tick, Tokens};

/// One decode server.
pub(super) struct Decode {
    pub(super) store: Store,
    /// How far prompts match inside cached pages, where hits are reported finer than pages.
    pub(super) partial: Option<PartialIndex>,
    /// Requests that wait for a reservation.
    pub(super) arriving: VecDeque<RequestId>,
    /// Requests that gave up their pages, in order of that.
    pub(super) retracted: VecDeque<RequestId>,
    /// Requests whose handoff is under way.
    pub(super) transferring: u32,
    /// Requests that generate output, in order of activation.
    pub(super) running: Vec<RequestId>,
    /// The requests of the step under way.
    pub(super) step: Option<Vec<RequestId>>,
    /// Whether the last step could not begin for lack of pages, and none were given back since.
    /// Whoever resumed meanwhile would only be retracted again, for ever within one tick.
    pub(super) stuck: bool,
}

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
    /// Lets in whoever fits on decode server `index`, and begins a step if it is idle.
    pub(super) fn pump_decode(&mut self, index: usize) {
        if self.switches.resumption == Resumption::First {
            self.admit_retracted(index);
        }
        self.admit_arrivals(index);
        if self.decodes[index].step.is_none() && !self.decodes[index].running.is_empty() {
            self.begin_decode_step(index);
        }
    }

    /// Lets retracted requests come back, in order, until one must wait.
    fn admit_retracted(&mut self, index: usize) {
        while let Some(&request) = self.decodes[index].retracted.front()
            && self.admit_to_decode(index, request)
        {
            self.decodes[index].retracted.pop_front();
        }
    }

    /// Lets in arrivals, in order, until one must wait.
    fn admit_arrivals(&mut self, index: usize) {
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

    fn in_tokens(&self, pages: Pages) -> u64 {
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
    fn decode_keys(&self, keyed: &Sequence, length: Tokens) -> Vec<PageKey> {
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
        let fact = Fact::Reserved {
            server: store.server,
            request,
            attempt,
            length,
            room: length,
            matched: found.matched,
            prefix: found.prefix,
            pages: &pages,
        };
        self.log.tell(&fact, &store.memory);
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
        self.hand(request, Told::Reserved);
        let message = Tick(self.scenario.link.message_ticks);
        self.queue.plan(self.log.now + message, Event::DestinationKnown { request, attempt });
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

    fn unlock_target(&mut self, index: usize, target: &Target) {
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
            let fact = Fact::Hit { server: store.server, request, pages };
            self.log.tell(&fact, &store.memory);
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
        let fact = Fact::Restored { server: store.server, request, from, to };
        self.log.tell(&fact, &store.memory);
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
        let fact = Fact::Reserved {
            server: store.server,
            request,
            attempt: live.attempt,
            length: stored,
            room: stored + Tokens(1),
            matched: none,
            prefix: none,
            pages: &pages,
        };
        self.log.tell(&fact, &store.memory);
        store.taken(&mut self.log, request, Pages(0), &pages);
        let fact = Fact::Restored { server: store.server, request, from: none, to: stored };
        self.log.tell(&fact, &store.memory);
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

    /// Decode takes the request up.
    pub(super) fn activate(&mut self, request: RequestId) {
        let live = self.live[request.index()].as_mut().expect("the request lives");
        live.place = Place::Running;
        let index = live.decode;
        let target = live.target.as_ref().expect("a transfer has reserved pages");
        let store = &self.decodes[index].store;
        let fact = Fact::Activated { server: store.server, request, table: &target.table };
        self.log.tell(&fact, &store.memory);
        self.decodes[index].transferring -= 1;
        self.decodes[index].running.push(request);
        self.moment(request, Moment::Running);
        if self.live_mut(request).target_mut().stored + Tokens(1) == self.live(request).text.len() {
            self.finish(request);
        }
        self.wake_decode(index);
    }

    /// Positions that running requests are about to open a page with.
    fn opening(&self, index: usize) -> Vec<(RequestId, Tokens)> {
        let virtual_page = self.layout.virtual_page();
        let opens = |&request: &RequestId| {
            let target = self.live(request).target.as_ref().expect("a running request has pages");
            let opens = target.stored.pages_exact(virtual_page)? >= Pages::of(&target.table);
            opens.then_some((request, target.stored + Tokens(1)))
        };
        self.decodes[index].running.iter().filter_map(opens).collect()
    }

    /// Whether the next step's demand, as it is counted, exceeds what can be had.
    fn runs_out(&self, index: usize) -> bool {
        let decode = &self.decodes[index];
        let room = decode.store.room();
        match self.switches.next_step_demand {
            NextStepDemand::Pages => self.opening(index).len() as u64 > u64::from(room.0),
            NextStepDemand::Tokens => {
                let tokens = u64::from(room.0) * u64::from(self.layout.virtual_page().get());
                !self.opening(index).is_empty() && decode.running.len() as u64 > tokens
            }
        }
    }

    /// Makes room for the next token of every running request, retracting some if need be, and
    /// begins a step.
    fn begin_decode_step(&mut self, index: usize) {
        if self.opening(index).len() > 1 {
            self.log.mark(Mark::GrewTogether);
        }
        while self.runs_out(index) {
            let victim = self.decodes[index].running.iter().copied().min_by_key(|&request| {
                let live = self.live(request);
                let target = live.target.as_ref().expect("a running request has pages");
                let generated = live.generated(target.stored);
                (generated, std::cmp::Reverse(live.prompt), std::cmp::Reverse(request))
            });
            let Some(victim) = victim else { break };
            self.retract(victim);
        }
        let opening = self.opening(index);
        self.evict_for(index, Pages::of(&opening));
        let lengths: Vec<Tokens> = opening.iter().map(|&(_, length)| length).collect();
        let Ok(pages) = self.decodes[index].store.pool.decode(&lengths) else {
            // The estimate was wrong: the step cannot begin until somebody gives pages back.
            self.log.mark(Mark::DecodeWaited);
            self.decodes[index].stuck = true;
            return;
        };
        for ((request, _), page) in opening.into_iter().zip(pages) {
            let page = page.expect("the token opens a page");
            let live = self.live[request.index()].as_mut().expect("a running request lives");
            let table = &mut live.target_mut().table;
            let store = &mut self.decodes[index].store;
            store.taken(&mut self.log, request, Pages::of(table), &[page]);
            table.push(page);
            self.log.mark(Mark::GrewPage);
        }
        self.decodes[index].store.books(&mut self.log);
        let batch = self.decodes[index].running.clone();
        if batch.is_empty() {
            return;
        }
        let config = &self.scenario.decode;
        let ticks = Tick(config.step_ticks + config.request_ticks * batch.len() as u64);
        self.log.count(Metric::DecodeSteps, 1);
        self.decodes[index].step = Some(batch);
        self.queue.plan(self.log.now + ticks, Event::DecodeStepEnds { server: index });
    }

    /// The step under way ends: each request's next position is stored.
    pub(super) fn decode_step_ends(&mut self, index: usize) {
        let batch = self.decodes[index].step.take().expect("a step was under way");
        for request in batch {
            if self.live(request).gave_up {
                self.drop_running(request);
                continue;
            }
            self.store_next(request);
            let live = self.live[request.index()].as_mut().expect("a running request lives");
            if live.target_mut().stored + Tokens(1) == live.text.len() {
                self.finish(request);
            }
        }
        self.wake_decode(index);
    }

    /// Writes the KV of the request's next position.
    fn store_next(&mut self, request: RequestId) {
        let layout = self.layout;
        let live = self.live[request.index()].as_mut().expect("a running request lives");
        let position = live.target_mut().stored;
        let chain = live.text.chain_at(position).expect("the output is not over");
        live.target_mut().stored += Tokens(1);
        let memory = &mut self.decodes[live.decode].store.memory;
        let stamp = Stamp { chain, position, written: self.log.now, writer: request };
        let ordinal = position.pages_floor(layout.virtual_page());
        if let Some(&page) = live.target_mut().table.get(ordinal.index()) {
            let start = (position - ordinal.tokens(layout.virtual_page())).0;
            for draft in &mut memory[layout.ranks() as usize..] {
                draft.write(page, Extent { start, len: 1, stamp, step: 1 });
            }
        }
        // A transfer that activated early and was refused later can lack the page.
        if let Some((rank, row)) = layout.place(position, &live.target_mut().table) {
            let (page, start) = row.split(layout.page());
            memory[rank.index()].write(page, Extent { start, len: 1, stamp, step: layout.ranks() });
        }
    }

    /// The request has all its output: its full pages go into the cache, the rest is freed.
    fn finish(&mut self, request: RequestId) {
        let virtual_page = self.layout.virtual_page();
        let live = self.live[request.index()].as_mut().expect("the request lives");
        let index = live.decode;
        let target = live.target.take().expect("a running request has pages");
        let (keyed, priority) = (live.keyed.clone(), live.priority);
        let Target { table, shared, stored, .. } = &target;
        let (shared, stored) = (*shared, *stored);
        let committed = match self.switches.committed_length {
            CommittedLength::Stored => stored,
            CommittedLength::Sequence => stored + Tokens(1),
        };
        let keys = self.decode_keys(&keyed, committed);
        let decode = &mut self.decodes[index];
        let fact = Fact::Finished { server: decode.store.server, request, table, stored };
        self.log.tell(&fact, &decode.store.memory);
        let mut returned = table[shared.min(table.len())..].to_vec();
        if let Some(cache) = &mut decode.store.cache {
            let full = committed.pages_floor(virtual_page).index().min(table.len());
            let taken = cache.insert(&keys[..full], &table[..full], priority);
            if let Some(partial) = &mut decode.partial {
                let pages = (0..).map(Pages).zip(table).zip(&taken);
                for ((ordinal, &page), _) in pages.filter(|&(_, &taken)| taken) {
                    partial.add(&keyed, ordinal, page);
                }
            }
            let own = shared.min(full);
            returned = split_taken(&table[own..full], &taken[own..]).1;
            returned.extend(&table[full.max(shared)..]);
            // Without a lock on its match, even pages that were shared may be the cache's no more.
            let (kept, _) = split_taken(&table[..full], &taken);
            if !kept.is_empty() {
                let fact = Fact::Cached { server: decode.store.server, request, pages: &kept };
                self.log.tell(&fact, &decode.store.memory);
            }
        }
        self.log.count(Metric::Finished, 1);
        self.log.count(Metric::OutputTokens, u64::from(self.live(request).generated(stored)));
        self.leave_running(request, &target, &returned);
        self.end(request, Outcome::Finished);
    }

    /// Takes the request out of the running ones, unlocks its prefix and gives `returned` back.
    fn leave_running(&mut self, request: RequestId, target: &Target, returned: &[PageId]) {
        let index = self.live(request).decode;
        self.decodes[index].running.retain(|&running| running != request);
        self.return_target(request, target, returned);
    }

    /// Unlocks the request's prefix on decode and gives `returned` of its own pages back.
    fn return_target(&mut self, request: RequestId, target: &Target, returned: &[PageId]) {
        let live = self.live(request);
        let (index, was_forgotten) = (live.decode, live.was_forgotten);
        self.decodes[index].stuck = false;
        if !was_forgotten {
            self.unlock_target(index, target);
            let inside = match self.switches.free_segment {
                FreeSegment::WholePages => None,
                FreeSegment::AnyStart => self.output_start(request, target, returned),
            };
            let holder = Holder::Request(request);
            let store = &mut self.decodes[index].store;
            let returned = match (self.switches.tail_release, returned.first()) {
                (TailRelease::ByTable, _) | (TailRelease::AsRun, None) => returned.to_vec(),
                (TailRelease::AsRun, Some(first)) => {
                    let run = (first.0..=store.pool.total().0).map(PageId);
                    run.take(returned.len()).collect()
                }
            };
            match inside.filter(|&(at, _)| at < returned.len()) {
                None => store.give_back(&mut self.log, holder, &returned),
                Some((at, start)) => {
                    store.give_back_part(&mut self.log, request, &returned[at..], start);
                    store.give_back(&mut self.log, holder, &returned[..=at]);
                }
            }
            store.books(&mut self.log);
        }
        self.wake_decode(index);
    }

    /// The place in `returned` of the page that holds both prompt and output, and the output's first
    /// position in it. `None` if there is no such page.
    fn output_start(
        &self,
        request: RequestId,
        target: &Target,
        returned: &[PageId],
    ) -> Option<(usize, u32)> {
        let virtual_page = self.layout.virtual_page();
        let prompt = self.live(request).prompt;
        let start = prompt - prompt.floor_to(virtual_page);
        let shared = target.table.get(prompt.pages_floor(virtual_page).index())?;
        let at = returned.iter().position(|page| page == shared)?;
        (start > Tokens(0) && target.stored > prompt).then_some((at, start.0))
    }

    /// A running request whose client gave up loses its pages.
    pub(super) fn drop_running(&mut self, request: RequestId) {
        let live = self.live_mut(request);
        let target = live.target.take().expect("a running request has pages");
        self.hand(request, Told::Aborted);
        self.leave_running(request, &target, &target.table[target.shared..]);
        self.end(request, Outcome::Aborted);
    }

    /// A running request gives up its pages until there is room again.
    fn retract(&mut self, request: RequestId) {
        let live = self.live[request.index()].as_mut().expect("a running request lives");
        let index = live.decode;
        let target = live.target.take().expect("a running request has pages");
        let stored = target.stored;
        live.place = Place::Retracted;
        match self.switches.retraction {
            Retraction::HostCopy => {
                let memory = &self.decodes[index].store.memory;
                let rows = |page: &PageId| {
                    memory.iter().map(|memory| memory.page(*page).to_vec()).collect()
                };
                let pages = self.layout.pages_needed(stored).index();
                let rows = target.table.iter().take(pages).map(rows).collect();
                live.host = Some(HostCopy { stored, rows });
            }
            Retraction::SendAgain => {
                // The last output token is known but not stored: prefill computes it, too. Whatever
                // the old transfer still does is in vain.
                live.length = stored + Tokens(1);
                self.hand(request, Told::Aborted);
            }
        }
        self.log.mark(Mark::Retracted);
        self.log.count(Metric::Retractions, 1);
        self.log.tell(&Fact::Retracted { request }, &[]);
        self.leave_running(request, &target, &target.table[target.shared..]);
        self.decodes[index].retracted.push_back(request);
        self.moment(request, Moment::Retracted);
    }

    /// Begins a new transfer of the request, from the start.
    pub(super) fn renew(&mut self, request: RequestId) {
        let handoff = self.new_handoff();
        let live = self.live_mut(request);
        live.attempt += 1;
        live.handoff = handoff;
        live.was_refused = false;
        live.skips_prefix = false;
    }

    pub(super) fn new_handoff(&self) -> Handoff {
        Handoff::new(self.layout.ranks(), Rules::of(&self.switches))
    }

    /// Gives back what a transfer reserved.
    pub(super) fn release_target(&mut self, request: RequestId) {
        let live = self.live_mut(request);
        let index = live.decode;
        let target = live.target.take().expect("the handoff says that decode holds pages");
        self.decodes[index].transferring -= 1;
        self.return_target(request, &target, &target.table[target.shared..]);
    }

    /// The list of reserved pages reaches prefill.
    pub(super) fn destination_known(&mut self, request: RequestId, attempt: u32) {
        let live = self.live_mut(request);
        if live.attempt != attempt || live.handoff.stage() != Stage::Reserved {
            return;
        }
        live.destination.is_known = true;
        if attempt > 0 || self.switches.prefill_start == PrefillStart::AfterReservation {
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
