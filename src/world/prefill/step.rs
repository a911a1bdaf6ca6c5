//! A prefill server's steps: which requests a step computes, how much of each, and what it leaves.

use std::ops::Range;

use super::super::admission::Waiting;
use super::super::context::Context;
use super::super::handoff::Stage;
use super::super::observer::Note;
use super::super::queue::Timer;
use super::super::setup::Setup;
use super::super::transfer::Transfers;
use super::Prefill;
use super::chunk::{Batch, Chunk};
use super::request::{RequestState, Source};
use crate::behaviour::{AbortedChunk, ChunkCut, CrossStall, PrefillBatch};
use crate::event::Event;
use crate::finding::{Mark, Metric};
use crate::limits;
use crate::memory::{Extent, Memory, Stamp};
use crate::pool::Growth;
use crate::scenario::Moment;
use crate::units::{PageId, PageSize, Pages, RequestId, Tick, Tokens};

/// What must happen before a step can be composed further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::world) enum Next {
    /// The chunk is part of the step: its transfer is to be told, and its settled prefix may be
    /// sent.
    Launched(Chunk),
    /// The chunk is part of the step, which has yet to begin: nobody is to be told.
    Added,
    /// The transfer of this request is to be asked to give way.
    GivesWay(RequestId),
    /// Nothing: the step is under way, or there is nothing to compute.
    Composed,
}

impl Prefill {
    /// Fills a step's budget if the server is idle: first the request that was cut, then waiting
    /// ones. To be called again after each answer but the last.
    pub(in crate::world) fn compose(
        &mut self,
        cx: &mut Context<'_>,
        transfers: &Transfers,
    ) -> Next {
        if let Some(chunk) = self.launched.pop_front() {
            return Next::Launched(chunk);
        }
        if self.step.is_some() {
            return Next::Composed;
        }
        let Some(mut batch) = self.batch.take() else {
            let batch = Batch::new(Tokens(cx.setup.scenario.prefill.chunk_tokens));
            let cut = self.cut.take_if(|cut| transfers[*cut].wants_prefill(&cx.setup));
            return match cut {
                Some(request) => {
                    cx.log.mark(Mark::ChunkMany);
                    let batch = Batch { goes_on: Some(request), ..batch };
                    self.launch(request, batch, cx)
                }
                None => {
                    self.cut = None;
                    self.admit_next(batch, cx, transfers)
                }
            };
        };
        match batch.making_way.take() {
            Some((request, latest)) => self.take_way(batch, (request, latest), cx, transfers),
            None => self.admit_next(batch, cx, transfers),
        }
    }

    /// Admits the next waiting request, if there is room in the step and in the pool.
    fn admit_next(&mut self, batch: Batch, cx: &mut Context<'_>, transfers: &Transfers) -> Next {
        if self.cut.is_some() || batch.is_full(cx.setup.switches.prefill_batch) {
            return self.begin(batch, cx);
        }
        let Some(request) = self.next_waiting(cx, transfers) else { return self.begin(batch, cx) };
        if self.admit(request, &batch, cx) {
            return self.launch(request, batch, cx);
        }
        // Requests of this very step cannot give way.
        match batch.chunks.is_empty() {
            true => self.make_way(batch, request, cx, transfers),
            false => self.begin(batch, cx),
        }
    }

    /// A request whose destination is known found no room, while others hold pages without a
    /// destination: the latest of these is asked to give way.
    fn make_way(
        &mut self,
        mut batch: Batch,
        request: RequestId,
        cx: &mut Context<'_>,
        transfers: &Transfers,
    ) -> Next {
        if !cx.setup.begins_at_arrival() || self.requests[request].destination.is_none() {
            return self.begin(batch, cx);
        }
        let waits = |holder: RequestId| transfers[holder].handoff().stage() == Stage::Waiting;
        let holds_in_vain = |(holder, state): (_, &RequestState)| {
            (state.source.is_some() && waits(holder)).then_some(holder)
        };
        let latest = self.requests.latest_first().find_map(holds_in_vain);
        let Some(latest) = latest else { return self.begin(batch, cx) };
        cx.log.mark(Mark::CrossHeld);
        match cx.setup.switches.cross_stall {
            CrossStall::None => self.begin(batch, cx),
            CrossStall::LatestGivesWay => {
                batch.making_way = Some((request, latest));
                self.batch = Some(batch);
                Next::GivesWay(latest)
            }
        }
    }

    /// `latest` was asked to give way to `request`, and has done so or not.
    fn take_way(
        &mut self,
        batch: Batch,
        (request, latest): (RequestId, RequestId),
        cx: &mut Context<'_>,
        transfers: &Transfers,
    ) -> Next {
        if self.requests[latest].source.is_some() {
            return self.begin(batch, cx);
        }
        self.wait(latest, cx);
        match self.admit(request, &batch, cx) {
            true => self.launch(request, batch, cx),
            false => self.make_way(batch, request, cx, transfers),
        }
    }

    /// The waiting request that comes next: one whose destination is known, if there is any. Those
    /// that no longer want anything leave the queue.
    fn next_waiting(&mut self, cx: &Context<'_>, transfers: &Transfers) -> Option<RequestId> {
        self.waiting.retain(|&request| transfers[request].wants_prefill(&cx.setup));
        let requests = &self.requests;
        let is_known = |request: &&RequestId| requests[**request].destination.is_some();
        let first = |waiting: &mut dyn Iterator<Item = &RequestId>| -> Vec<RequestId> {
            waiting.take(limits::ADMISSION_WINDOW).copied().collect()
        };
        let mut window = first(&mut self.waiting.iter().filter(is_known));
        if window.is_empty() {
            window = first(&mut self.waiting.iter());
        }
        if window.is_empty() {
            return None;
        }
        let looks = self.admission.looks_at_cache();
        let cache = &mut self.store.cache;
        let cached = |&request: &RequestId| {
            let below_last = requests[request].length - Tokens(1);
            let cached = match cache {
                Some(cache) if looks => {
                    let keyed = &cx.requests[request].keyed;
                    Pages::of(&cache.lookup(&keyed.page_keys(cx.setup.page(), below_last)).pages)
                }
                Some(_) | None => Pages(0),
            };
            Waiting { cached }
        };
        let candidates: Vec<Waiting> = window.iter().map(cached).collect();
        window.get(self.admission.pick(&candidates)).copied()
    }

    /// Matches and locks the request's cached prefix, if its whole prompt fits beside what is held
    /// and at least something of it into the budget. The hit stays below the prompt's last token,
    /// so that something is computed.
    fn admit(&mut self, request: RequestId, batch: &Batch, cx: &mut Context<'_>) -> bool {
        let (page, budget) = (cx.setup.page(), batch.budget);
        let state = &mut self.requests[request];
        let length = state.length;
        if chunk_end(&cx.setup, Tokens(0)..length, budget) == Tokens(0) {
            return false;
        }
        let prefix = state.destination.as_ref().map_or(Tokens(0), |to| to.prefix);
        let mut source = Source::new(length, prefix);
        let store = &mut self.store;
        if let Some(cache) = &mut store.cache {
            source.keys = cx.requests[request].keyed.page_keys(page, length);
            let below_last = (length - Tokens(1)).pages_floor(page).index();
            let hit = cache.lookup(&source.keys[..below_last]);
            assert!(cache.lock(hit.anchor), "a fresh match can be locked");
            source.anchors.push(hit.anchor);
            source.shared = hit.pages.len();
            source.table = hit.pages;
            source.done = Pages::of(&source.table).tokens(page);
        }
        let room = store.room();
        let fits = match cx.setup.switches.prefill_batch {
            PrefillBatch::OneByOne => length.pages_ceil(page) - Pages::of(&source.table) <= room,
            PrefillBatch::AtOnce => {
                let wanted = length - source.done + Tokens(1) + page.tokens();
                batch.promised + wanted < room.tokens(page)
            }
        };
        if !fits {
            cx.log.mark(Mark::PrefillWaited);
            store.unlock(&source.anchors);
            return false;
        }
        if source.shared > 0 {
            let event = Event::Hit { server: store.server, request, pages: &source.table };
            cx.log.tell(&event, &store.memory);
            cx.log.mark(Mark::HitPrefill);
            cx.log.count(Metric::PrefillHits, 1);
            cx.log.count(Metric::PrefillHitTokens, u64::from(source.done.0));
        }
        state.source = Some(source);
        self.waiting.retain(|&waiting| waiting != request);
        true
    }

    /// Takes pages for the request's next chunk and adds it to the step. Without pages it waits as
    /// the one that was cut, and the step begins without it.
    fn launch(&mut self, request: RequestId, mut batch: Batch, cx: &mut Context<'_>) -> Next {
        let page = cx.setup.page();
        let source = self.requests[request].source_mut();
        let (from, length) = (source.done, source.length);
        let held = Pages::of(&source.table);
        let at_once = match cx.setup.switches.prefill_batch {
            PrefillBatch::OneByOne => false,
            PrefillBatch::AtOnce => true,
        };
        let to = chunk_end(&cx.setup, from..length, batch.budget);
        if at_once {
            return self.add(request, from..to, batch, cx);
        }
        let missing = to.pages_ceil(page).saturating_sub(held);
        self.store.make_room(&mut cx.log, missing.tokens(page));
        let growth = Growth { prefix: from, length: to };
        let Ok(mut taken) = self.store.pool.extend(&[growth]) else {
            cx.log.mark(Mark::PrefillWaited);
            self.cut = Some(request);
            return self.begin(batch, cx);
        };
        let taken = taken.pop().unwrap_or_default();
        self.store.taken(&mut cx.log, request, held, &taken);
        source.table.extend(&taken);
        self.cut = (to < length).then_some(request);
        let chunk = self.note_chunk(request, from..to, cx);
        batch.add(chunk, page);
        self.batch = Some(batch);
        Next::Launched(chunk)
    }

    /// Adds the request's next chunk to the step; it gets its pages when the step begins.
    fn add(
        &mut self,
        request: RequestId,
        positions: Range<Tokens>,
        mut batch: Batch,
        cx: &mut Context<'_>,
    ) -> Next {
        let page = cx.setup.page();
        let is_last = positions.end == self.requests[request].source().length;
        let tokens = (positions.end - positions.start).ceil_to(page);
        batch.promised += tokens + page.tokens() + Tokens(u32::from(is_last));
        self.cut = (!is_last).then_some(request);
        let Range { start: from, end: to } = positions;
        batch.add(Chunk { request, from, to }, page);
        self.batch = Some(batch);
        Next::Added
    }

    /// Takes the pages of all chunks in one call. False if there are not enough.
    fn take_at_once(&mut self, chunks: &[Chunk], cx: &mut Context<'_>) -> bool {
        let page = cx.setup.page();
        let tokens: Tokens = chunks.iter().map(|chunk| chunk.to - chunk.from).sum();
        // At page size 1 the token allocator takes the place of the paged one, which estimates.
        let more = match page.get() {
            1 => Pages(0),
            _ => Pages::of(chunks),
        };
        self.store.make_room(&mut cx.log, tokens + more.tokens(page));
        let growth = |chunk: &Chunk| Growth { prefix: chunk.from, length: chunk.to };
        let batch: Vec<Growth> = chunks.iter().map(growth).collect();
        let Ok(taken) = self.store.pool.extend(&batch) else { return false };
        for (chunk, taken) in chunks.iter().zip(taken) {
            let held = Pages::of(&self.requests[chunk.request].source().table);
            self.store.taken(&mut cx.log, chunk.request, held, &taken);
            self.requests[chunk.request].source_mut().table.extend(&taken);
        }
        true
    }

    /// Takes the chunks of a step that cannot begin back: the request that was cut goes on waiting
    /// as such, the others in their queue.
    fn take_back(&mut self, chunks: &[Chunk], cut: Option<RequestId>, cx: &mut Context<'_>) {
        cx.log.mark(Mark::PrefillWaited);
        self.cut = cut;
        for chunk in chunks.iter().rev().filter(|chunk| Some(chunk.request) != cut) {
            let source = self.requests[chunk.request].source.take();
            let source = source.expect("it was let in for this step");
            self.store.unlock(&source.anchors);
            self.waiting.push_front(chunk.request);
        }
    }

    /// The request's chunk of these positions has its pages.
    fn note_chunk(
        &mut self,
        request: RequestId,
        positions: Range<Tokens>,
        cx: &mut Context<'_>,
    ) -> Chunk {
        let Range { start: from, end: to } = positions;
        let length = self.requests[request].source().length;
        if to < length && to.pages_exact(cx.setup.page()).is_none() {
            cx.log.mark(Mark::ChunkInsidePage);
        }
        let state = &mut self.requests[request];
        if !std::mem::replace(&mut state.was_started, true) {
            let waited = cx.now() - cx.requests[request].arrived;
            cx.log.count(Metric::WaitTicks, waited.0);
            cx.reached(request, Moment::Prefilling);
        }
        cx.log.note(&Note::Launched { request, from, to });
        Chunk { request, from, to }
    }

    /// Begins the step that was put together, unless it is empty.
    fn begin(&mut self, batch: Batch, cx: &mut Context<'_>) -> Next {
        if batch.chunks.is_empty() {
            return Next::Composed;
        }
        if cx.setup.switches.prefill_batch == PrefillBatch::AtOnce {
            if !self.take_at_once(&batch.chunks, cx) {
                self.take_back(&batch.chunks, batch.goes_on, cx);
                return Next::Composed;
            }
            for &Chunk { request, from, to } in &batch.chunks {
                let chunk = self.note_chunk(request, from..to, cx);
                self.launched.push_back(chunk);
            }
        }
        let config = &cx.setup.scenario.prefill;
        let chunks = batch.chunks.iter();
        let tokens: u64 = chunks.map(|chunk| u64::from((chunk.to - chunk.from).0)).sum();
        let ticks = Tick(config.step_ticks + config.token_ticks * tokens);
        cx.log.count(Metric::PrefillSteps, 1);
        cx.log.count(Metric::PrefillBusyTicks, ticks.0);
        cx.log.count(Metric::ComputedTokens, tokens);
        self.step = Some(batch.chunks.into());
        let server = self.store.server.index as usize;
        cx.set_after(ticks, Timer::PrefillStepEnds { server });
        self.store.books(&mut cx.log);
        self.launched.pop_front().map_or(Next::Composed, Next::Launched)
    }

    /// The step under way ends: writes and caches the rows of its next chunk. `None` once all have
    /// ended; to be called until then.
    pub(in crate::world) fn end_chunk(
        &mut self,
        cx: &mut Context<'_>,
        transfers: &Transfers,
    ) -> Option<Chunk> {
        let step = self.step.as_mut().expect("a step was under way");
        let Some(chunk) = step.pop_front() else {
            self.step = None;
            self.give_back_released(cx);
            self.store.books(&mut cx.log);
            cx.wake(self.store.server);
            return None;
        };
        let Chunk { request, from, to } = chunk;
        let source = self.requests[request].source_mut();
        source.done = to;
        let is_kept = match cx.setup.switches.aborted_chunk {
            AbortedChunk::Kept => true,
            AbortedChunk::KeptIfLast | AbortedChunk::SentIfLast => {
                to == source.length || transfers[request].handoff().stage() != Stage::Closing
            }
        };
        let written = Written { request, at: cx.log.now };
        let memory = &mut self.store.memory[0];
        write_text(memory, &source.table, cx.setup.page(), from..to, written);
        if is_kept {
            self.cache_computed(request, from, cx);
        }
        Some(chunk)
    }
}

/// Where a chunk of the positions `rest` ends within `budget`.
fn chunk_end(setup: &Setup<'_>, rest: Range<Tokens>, budget: Tokens) -> Tokens {
    let page = setup.page();
    let tokens = rest.end.saturating_sub(rest.start);
    if tokens.ceil_to(page) <= budget {
        return rest.end;
    }
    match setup.switches.chunk_cut {
        ChunkCut::PageBoundary => rest.start + budget.floor_to(page),
        ChunkCut::ExactBudget => rest.start + tokens.min(budget),
    }
}

/// For whom rows are written, and when.
#[derive(Clone, Copy)]
struct Written {
    request: RequestId,
    at: Tick,
}

/// Writes positions `range` of the request's text to their rows of a dense pool.
fn write_text(
    memory: &mut Memory,
    table: &[PageId],
    page: PageSize,
    range: Range<Tokens>,
    Written { request, at }: Written,
) {
    let mut position = range.start;
    while position < range.end {
        let start = position.0 % page.get();
        let len = (page.get() - start).min((range.end - position).0);
        let stamp = Stamp { text: request, position, written: at, writer: request };
        let id = table[position.pages_floor(page).index()];
        memory.write(id, Extent::new(start, len, stamp, 1));
        position += Tokens(len);
    }
}
