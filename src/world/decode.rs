//! A decode server: reservation, running steps, growth, retraction and finish.

use std::collections::VecDeque;

use super::World;
use super::handoff::{Handoff, Rules, Signal};
use super::queue::Timer;
use super::request::{HostCopy, Place, Target};
use super::store::{Store, split_taken};
use crate::behaviour::{
    CommittedLength, FreeSegment, NextStepDemand, Resumption, Retraction, TailRelease,
};
use crate::cache::partial::PartialIndex;
use crate::event::{Event, Holder, Outcome};
use crate::finding::{Mark, Metric};
use crate::memory::{Extent, Stamp};
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

    /// Decode takes the request up.
    pub(super) fn activate(&mut self, request: RequestId) {
        let live = self.live[request.index()].as_mut().expect("the request lives");
        live.place = Place::Running;
        let index = live.decode;
        let target = live.target.as_ref().expect("a transfer has reserved pages");
        let store = &self.decodes[index].store;
        let event = Event::Activated { server: store.server, request, table: &target.table };
        self.log.tell(&event, &store.memory);
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

    /// Whether the next step's demand, as it is counted, exceeds what can be had when so many requests
    /// open a page.
    fn runs_out(&self, index: usize, opening: u64) -> bool {
        let decode = &self.decodes[index];
        let room = decode.store.room();
        match self.switches.next_step_demand {
            NextStepDemand::Pages => opening > u64::from(room.0),
            NextStepDemand::Tokens => {
                opening > 0 && decode.running.len() as u64 > self.in_tokens(room)
            }
        }
    }

    /// Makes room for the next token of every running request, retracting some if need be, and
    /// begins a step.
    fn begin_decode_step(&mut self, index: usize) {
        let mut opening = self.opening(index);
        if opening.len() > 1 {
            self.log.mark(Mark::GrewTogether);
        }
        while self.runs_out(index, opening.len() as u64) {
            let victim = self.decodes[index].running.iter().copied().min_by_key(|&request| {
                let live = self.live(request);
                let target = live.target.as_ref().expect("a running request has pages");
                let generated = live.generated(target.stored);
                (generated, std::cmp::Reverse(live.prompt), std::cmp::Reverse(request))
            });
            let Some(victim) = victim else { break };
            self.retract(victim);
            opening = self.opening(index);
        }
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
        self.queue.plan(self.log.now + ticks, Timer::DecodeStepEnds { server: index });
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
        let event = Event::Finished { server: decode.store.server, request, table, stored };
        self.log.tell(&event, &decode.store.memory);
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
                let event = Event::Cached { server: decode.store.server, request, pages: &kept };
                self.log.tell(&event, &decode.store.memory);
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
        self.hand(request, Signal::Aborted);
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
                self.hand(request, Signal::Aborted);
            }
        }
        self.log.mark(Mark::Retracted);
        self.log.count(Metric::Retractions, 1);
        self.log.tell(&Event::Retracted { request }, &[]);
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
}
