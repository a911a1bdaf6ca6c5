//! A prefill server: its queue, its steps of a token budget, its cache of computed pages.

use std::collections::VecDeque;

use super::World;
use super::admission::{Admission, Waiting};
use super::handoff::{Signal, Stage};
use super::queue::Timer;
use super::request::Source;
use super::store::{Store, split_taken};
use crate::behaviour::{ChunkCut, ChunkHash, CrossStall, DuplicateInsert, LockCount, PrefillStart};
use crate::event::{Event, Holder};
use crate::finding::{Mark, Metric};
use crate::limits;
use crate::memory::{Extent, Memory, Stamp};
use crate::pool::Growth;
use crate::prompt::{PageKey, Sequence, runs_behind};
use crate::scenario::Moment;
use crate::units::{PageId, PageSize, Pages, RequestId, Tick, Tokens};

/// One prefill server.
pub(super) struct Prefill {
    pub(super) store: Store,
    pub(super) admission: Box<dyn Admission>,
    /// Requests whose destination is known, in order of that.
    pub(super) waiting: VecDeque<RequestId>,
    /// The request that the last step cut; it goes on first.
    pub(super) cut: Option<RequestId>,
    /// The step under way.
    pub(super) step: Option<Vec<Chunk>>,
}

/// Positions of one request that a step computes.
#[derive(Clone, Copy)]
pub(super) struct Chunk {
    request: RequestId,
    from: Tokens,
    to: Tokens,
}

impl World<'_> {
    /// Puts the request into the queue of its prefill server.
    pub(super) fn await_prefill(&mut self, request: RequestId) {
        let index = self.live(request).prefill;
        self.prefills[index].waiting.push_back(request);
        self.wake_prefill(index);
    }

    /// Whether prefill shall begin or go on with the request.
    fn wants_prefill(&self, request: RequestId) -> bool {
        let live = self.live(request);
        let is_early = live.handoff.stage() == Stage::Waiting && live.attempt == 0;
        live.handoff.wants_more() || (is_early && self.begins_at_arrival())
    }

    /// Whether prefill begins with a request before its destination is known.
    pub(super) fn begins_at_arrival(&self) -> bool {
        self.switches.prefill_start == PrefillStart::AtArrival
    }

    /// Sends what was computed before the destination was known.
    pub(super) fn send_what_waited(&mut self, request: RequestId) {
        let prefix = self.live(request).destination.prefix;
        let source = self.live_mut(request).source_mut();
        source.cursor = prefix;
        let (done, length) = (source.done, source.length);
        // Before that, the next chunk takes along what waited.
        if done == length {
            self.send_computed(request, length, true);
        }
    }

    /// Begins a step on prefill server `index` if it is idle and has work.
    pub(super) fn pump_prefill(&mut self, index: usize) {
        if self.prefills[index].step.is_some() {
            return;
        }
        let chunks = self.compose_step(index);
        if chunks.is_empty() {
            return;
        }
        let config = &self.scenario.prefill;
        let tokens: u64 = chunks.iter().map(|chunk| u64::from((chunk.to - chunk.from).0)).sum();
        let ticks = Tick(config.step_ticks + config.token_ticks * tokens);
        self.log.count(Metric::PrefillSteps, 1);
        self.log.count(Metric::PrefillBusyTicks, ticks.0);
        self.log.count(Metric::ComputedTokens, tokens);
        self.prefills[index].step = Some(chunks);
        self.queue.plan(self.log.now + ticks, Timer::PrefillStepEnds { server: index });
        self.prefills[index].store.books(&mut self.log);
    }

    /// Fills a step's budget: first the request that was cut, then waiting ones.
    fn compose_step(&mut self, index: usize) -> Vec<Chunk> {
        let page = self.layout.page();
        let mut budget = Tokens(self.scenario.prefill.chunk_tokens);
        let mut chunks = Vec::new();
        if let Some(request) = self.prefills[index].cut
            && self.wants_prefill(request)
        {
            self.log.mark(Mark::ChunkMany);
            let Some(chunk) = self.launch(index, request, budget) else { return chunks };
            budget = budget.saturating_sub((chunk.to - chunk.from).ceil_to(page));
            chunks.push(chunk);
        } else {
            self.prefills[index].cut = None;
        }
        while self.prefills[index].cut.is_none() && budget > Tokens(0) {
            let Some(request) = self.next_waiting(index) else { break };
            // Requests of this very step cannot give way.
            let admitted = self.admit(index, request, budget)
                || (chunks.is_empty() && self.let_through(index, request, budget));
            if !admitted {
                break;
            }
            self.prefills[index].waiting.retain(|&waiting| waiting != request);
            let Some(chunk) = self.launch(index, request, budget) else { break };
            budget = budget.saturating_sub((chunk.to - chunk.from).ceil_to(page));
            chunks.push(chunk);
        }
        chunks
    }

    /// Admits a request whose destination is known and that found no room, while others hold pages
    /// without a destination: the latest of these give way until it fits.
    fn let_through(&mut self, index: usize, request: RequestId, budget: Tokens) -> bool {
        if !self.begins_at_arrival() || !self.live(request).destination.is_known {
            return false;
        }
        loop {
            let holds_in_vain = |&request: &RequestId| {
                let live = self.live(request);
                live.prefill == index
                    && live.source.is_some()
                    && live.handoff.stage() == Stage::Waiting
            };
            let latest = (0..self.arrived).rev().map(RequestId).find(holds_in_vain);
            let Some(latest) = latest else { return false };
            self.log.mark(Mark::CrossHeld);
            if self.switches.cross_stall == CrossStall::None {
                return false;
            }
            self.hand(latest, Signal::GaveWay);
            if self.live(latest).source.is_some() {
                return false;
            }
            self.await_prefill(latest);
            if self.admit(index, request, budget) {
                return true;
            }
        }
    }

    /// The waiting request that comes next: one whose destination is known, if there is any. Those that
    /// no longer want anything leave the queue.
    fn next_waiting(&mut self, index: usize) -> Option<RequestId> {
        let mut waiting = std::mem::take(&mut self.prefills[index].waiting);
        waiting.retain(|&request| self.wants_prefill(request));
        let is_known = |&&request: &&RequestId| self.live(request).destination.is_known;
        let mut window: Vec<RequestId> =
            waiting.iter().filter(is_known).take(limits::ADMISSION_WINDOW).copied().collect();
        if window.is_empty() {
            window = waiting.iter().take(limits::ADMISSION_WINDOW).copied().collect();
        }
        self.prefills[index].waiting = waiting;
        let live = &self.live;
        let looks = self.prefills[index].admission.looks_at_cache();
        let page = self.layout.page();
        let store = &mut self.prefills[index].store;
        let cached = |&request: &RequestId| {
            let live = live[request.index()].as_ref().expect("a waiting request lives");
            let capped = live.length - Tokens(1);
            let cached = match &mut store.cache {
                Some(cache) if looks => {
                    Pages::of(&cache.lookup(&live.keyed.page_keys(page, capped)).pages)
                }
                Some(_) | None => Pages(0),
            };
            Waiting { cached }
        };
        let candidates: Vec<Waiting> = window.iter().map(cached).collect();
        if candidates.is_empty() {
            return None;
        }
        window.get(self.prefills[index].admission.pick(&candidates)).copied()
    }

    /// Matches and locks the request's cached prefix, if its whole prompt fits beside what is held
    /// and at least something of it into the budget. The hit stays below the prompt's last token, so
    /// that something is computed.
    fn admit(&mut self, index: usize, request: RequestId, budget: Tokens) -> bool {
        let page = self.layout.page();
        let live = self.live[request.index()].as_ref().expect("a waiting request lives");
        let length = live.length;
        if self.chunk_end(Tokens(0), length, budget) == Tokens(0) {
            return false;
        }
        let store = &mut self.prefills[index].store;
        let mut source = Source {
            anchors: Vec::new(),
            keys: Vec::new(),
            table: Vec::new(),
            shared: 0,
            length,
            done: Tokens(0),
            cursor: live.destination.prefix,
            pages_sent: 0,
            pieces: 0,
            freed_early: Vec::new(),
            drops_rest: false,
        };
        if let Some(cache) = &mut store.cache {
            source.keys = live.keyed.page_keys(page, length);
            let below_last = (length - Tokens(1)).pages_floor(page).index();
            let hit = cache.lookup(&source.keys[..below_last]);
            assert!(cache.lock(hit.anchor), "a fresh match can be locked");
            source.anchors.push(hit.anchor);
            source.shared = hit.pages.len();
            source.table = hit.pages;
            source.done = Pages::of(&source.table).tokens(page);
        }
        let needed = length.pages_ceil(page) - Pages::of(&source.table);
        if needed > store.room() {
            self.log.mark(Mark::PrefillWaited);
            store.unlock(&source.anchors);
            return false;
        }
        if source.shared > 0 {
            let event = Event::Hit { server: store.server, request, pages: &source.table };
            self.log.tell(&event, &store.memory);
            self.log.mark(Mark::HitPrefill);
            self.log.count(Metric::PrefillHits, 1);
            self.log.count(Metric::PrefillHitTokens, u64::from(source.done.0));
        }
        self.live_mut(request).source = Some(source);
        true
    }

    /// Where a chunk that begins at `from` ends within `budget`.
    fn chunk_end(&self, from: Tokens, length: Tokens, budget: Tokens) -> Tokens {
        let page = self.layout.page();
        let rest = length.saturating_sub(from);
        if rest.ceil_to(page) <= budget {
            return length;
        }
        match self.switches.chunk_cut {
            ChunkCut::PageBoundary => from + budget.floor_to(page),
            ChunkCut::ExactBudget => from + rest.min(budget),
        }
    }

    /// Takes pages for the request's next chunk. `None` if there are none: it waits as cut.
    fn launch(&mut self, index: usize, request: RequestId, budget: Tokens) -> Option<Chunk> {
        let page = self.layout.page();
        let source = self.live_mut(request).source_mut();
        let (from, length) = (source.done, source.length);
        let to = self.chunk_end(from, length, budget);
        let held = Pages::of(&self.live_mut(request).source_mut().table);
        let store = &mut self.prefills[index].store;
        store.make_room(&mut self.log, to.pages_ceil(page).saturating_sub(held));
        let growth = Growth { prefix: from, length: to };
        let taken = match store.pool.extend(&[growth]) {
            Ok(mut taken) => taken.pop().unwrap_or_default(),
            Err(_) => {
                self.log.mark(Mark::PrefillWaited);
                self.prefills[index].cut = Some(request);
                return None;
            }
        };
        store.taken(&mut self.log, request, held, &taken);
        self.live_mut(request).source_mut().table.extend(&taken);
        self.prefills[index].cut = (to < length).then_some(request);
        if to < length && to.pages_exact(page).is_none() {
            self.log.mark(Mark::ChunkInsidePage);
        }
        self.reach_prefilling(request);
        self.hand(request, Signal::ComputeStarted);
        self.send_early(request, from, to);
        Some(Chunk { request, from, to })
    }

    /// The step under way ends: its rows are written, cached and sent.
    pub(super) fn prefill_step_ends(&mut self, index: usize) {
        let chunks = self.prefills[index].step.take().expect("a step was under way");
        let page = self.layout.page();
        for Chunk { request, from, to } in chunks {
            let live = self.live[request.index()].as_mut().expect("its pages are held");
            let text = live.text.clone();
            let source = live.source_mut();
            let length = source.length;
            source.done = to;
            let memory = &mut self.prefills[index].store.memory[0];
            let written = Written { by: request, at: self.log.now };
            write_text(memory, &source.table, page, &text, from..to, written);
            self.cache_computed(index, request, from);
            self.hand(request, Signal::ComputeEnded);
            let live = self.live(request);
            if live.handoff.wants_more() && live.destination.is_known {
                self.send_computed(request, to, to == length);
            }
        }
        self.prefills[index].store.books(&mut self.log);
        self.wake_prefill(index);
    }

    /// Puts the request's full pages into the tree, after a chunk that began at `from`. Where another
    /// request's pages are there already, its own are freed and its table is pointed at the tree's.
    fn cache_computed(&mut self, index: usize, request: RequestId, from: Tokens) {
        let apart = match self.switches.chunk_hash {
            ChunkHash::WholePrefix => None,
            ChunkHash::OwnTokens => self.keys_of_chunk(request, from),
        };
        let page = self.layout.page();
        let store = &mut self.prefills[index].store;
        let Some(cache) = &mut store.cache else { return };
        let live = self.live[request.index()].as_mut().expect("its pages are held");
        let priority = live.priority;
        let source = live.source.as_mut().expect("its pages are held");
        let full = source.done.pages_floor(page).index();
        // A chunk that is keyed apart stands in the tree for itself, beside the pages before it.
        let first = if apart.is_some() { source.shared } else { 0 };
        let keys = apart.as_deref().unwrap_or(&source.keys[..full]);
        let taken = cache.insert(keys, &source.table[first..full], priority);
        let own = source.shared.min(full);
        let (kept, mut duplicates) = split_taken(&source.table[own..full], &taken[own - first..]);
        let hit = cache.lookup(keys);
        assert!(cache.lock(hit.anchor), "what was just inserted can be locked");
        if first == 0 {
            let before = std::mem::take(&mut source.anchors);
            if self.switches.lock_count == LockCount::Paired {
                for before in before {
                    assert!(cache.unlock(before), "the prefix was locked");
                }
            }
        }
        source.anchors.push(hit.anchor);
        source.shared = full;
        match self.switches.duplicate_insert {
            DuplicateInsert::Remap => source.table[first..full].copy_from_slice(&hit.pages),
            DuplicateInsert::FreeWithoutRemap => source.freed_early.extend(&duplicates),
            DuplicateInsert::FreeAfterRemap => {
                source.table[first..full].copy_from_slice(&hit.pages);
                duplicates = split_taken(&source.table[own..full], &taken[own - first..]).1;
            }
        }
        if !kept.is_empty() {
            let event = Event::Cached { server: store.server, request, pages: &kept };
            self.log.tell(&event, &store.memory);
        }
        if !duplicates.is_empty() {
            self.log.mark(Mark::DuplicatePages);
            store.give_back(&mut self.log, Holder::Request(request), &duplicates);
        }
    }

    /// Keys of the full pages from the one in which a chunk begins, as if the prompt began with the
    /// chunk at `from`. `None` for a first chunk, where it does.
    fn keys_of_chunk(&mut self, request: RequestId, from: Tokens) -> Option<Vec<PageKey>> {
        let live = self.live(request);
        let source = live.source.as_ref().expect("its pages are held");
        let page = self.layout.page();
        let pages = source.done.pages_floor(page).index().checked_sub(source.shared)?;
        let spec = &self.requests[request.index()];
        let namespace = self.key_namespace(spec);
        let chunk = self.chains.sequence(namespace, runs_behind(spec.all_runs(), from));
        // A page that the chunk shares with what precedes it moves the last ones past its end.
        let end = chunk.len() - Tokens(1);
        let key = |last: Tokens| chunk.chain_at(last.min(end)).map(|chain| PageKey(chain.0));
        let pages = (1..=pages).map(|count| Tokens(count as u32 * page.get() - 1));
        (from > Tokens(0)).then(|| pages.filter_map(key).collect())
    }

    /// Gives back what the request holds on prefill; cached pages stay in the tree.
    pub(super) fn release_source(&mut self, request: RequestId) {
        let live = self.live_mut(request);
        let index = live.prefill;
        let source = live.source.take().expect("the handoff says that prefill holds pages");
        // A new transfer of the same request starts again as a waiting one.
        self.prefills[index].cut.take_if(|cut| *cut == request);
        if !self.live(request).was_forgotten {
            let store = &mut self.prefills[index].store;
            store.unlock(&source.anchors);
            let own = [&source.freed_early, &source.table[source.shared..]].concat();
            store.give_back(&mut self.log, Holder::Request(request), &own);
        }
        self.wake_prefill(index);
        // A transfer that was waiting for the old one's pages can begin.
        let decode = self.live(request).decode;
        self.wake_decode(decode);
    }

    fn reach_prefilling(&mut self, request: RequestId) {
        let now = self.log.now;
        let live = self.live_mut(request);
        if !std::mem::replace(&mut live.was_started, true) {
            let waited = now - live.arrived;
            self.log.count(Metric::WaitTicks, waited.0);
            self.moment(request, Moment::Prefilling);
        }
    }
}

/// Who wrote rows, and when.
#[derive(Clone, Copy)]
struct Written {
    by: RequestId,
    at: Tick,
}

/// Writes positions `range` of `text` to their rows of a dense pool.
fn write_text(
    memory: &mut Memory,
    table: &[PageId],
    page: PageSize,
    text: &Sequence,
    range: std::ops::Range<Tokens>,
    written: Written,
) {
    let mut position = range.start;
    for segment in text.segments_from(range.start) {
        let end = segment.end.min(range.end);
        while position < end {
            let start = position.0 % page.get();
            let len = (page.get() - start).min((end - position).0);
            let stamp =
                Stamp { chain: segment.chain, position, written: written.at, writer: written.by };
            let id = table[position.pages_floor(page).index()];
            memory.write(id, Extent { start, len, stamp, step: 1 });
            position += Tokens(len);
        }
    }
}
