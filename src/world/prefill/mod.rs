//! A prefill server: its queue, its pool and cache of computed pages, its part of each request.
//!
//! This file has the server and what begins and ends a request's stay. Its steps are in `step`,
//! what a computed chunk leaves in the cache in `caching`, the cutting of rows into pieces in
//! `sending`.

use std::collections::VecDeque;

use super::admission::Admission;
use super::context::Context;
use super::request::ByRequest;
use super::store::{Flushed, Store};
use crate::behaviour::ReleaseInsert;
use crate::cache::Insertion;
use crate::event::Holder;
use crate::units::{Pages, RequestId, Tokens};

mod caching;
pub(super) mod chunk;
mod request;
pub(super) mod sending;
pub(super) mod step;

#[cfg(test)]
mod tests;

use chunk::{Batch, Chunk};
use request::{RequestState, Source};

/// One prefill server.
pub(super) struct Prefill {
    pub(super) store: Store,
    admission: Box<dyn Admission>,
    requests: ByRequest<RequestState>,
    /// Requests that ask to be computed, in order of asking.
    waiting: VecDeque<RequestId>,
    /// The request with which the next step begins: the last one computed only a part of what it
    /// needs, or had no pages for its next chunk.
    cut: Option<RequestId>,
    /// The batch of the step that is being put together.
    batch: Option<Batch>,
    /// What requests released while a step was under way, if it goes back behind the step only.
    released: Vec<(RequestId, Source)>,
    /// Chunks of the step that has begun of which nobody has been told.
    launched: VecDeque<Chunk>,
    /// Chunks of the step under way that have not ended.
    step: Option<VecDeque<Chunk>>,
}

impl Prefill {
    /// An idle server out of `servers`.
    pub(super) fn new(store: Store, admission: Box<dyn Admission>, servers: u32) -> Prefill {
        Prefill {
            requests: ByRequest::new(store.server.index, servers),
            store,
            admission,
            waiting: VecDeque::new(),
            cut: None,
            batch: None,
            released: Vec::new(),
            launched: VecDeque::new(),
            step: None,
        }
    }

    /// The server's next request has arrived, with `prompt` tokens.
    pub(super) fn arrive(&mut self, prompt: Tokens) {
        self.requests.push(RequestState::new(prompt));
    }

    /// The request asks to be computed.
    pub(super) fn wait(&mut self, request: RequestId, cx: &mut Context<'_>) {
        self.waiting.push_back(request);
        cx.wake(self.store.server);
    }

    /// The request's client gave up, and what it holds is never given back.
    pub(super) fn forget(&mut self, request: RequestId) {
        self.requests[request].is_forgotten = true;
    }

    /// Gives back what the request holds; cached pages stay in the tree.
    pub(super) fn release(&mut self, request: RequestId, cx: &mut Context<'_>) {
        let state = &mut self.requests[request];
        let source = state.source.take().expect("the handoff says that prefill holds pages");
        // A new transfer of the same request starts again as a waiting one.
        self.cut.take_if(|cut| *cut == request);
        if !state.is_forgotten {
            match cx.setup.switches.release_insert {
                ReleaseInsert::Nothing => self.give_back(request, &source, cx),
                ReleaseInsert::Again if self.step.is_some() => {
                    self.released.push((request, source));
                }
                ReleaseInsert::Again => self.give_back_cached(request, &source, cx),
            }
        }
        cx.wake(self.store.server);
        // A transfer that was waiting for the old one's pages can begin.
        cx.wake(cx.requests[request].decode);
    }

    fn give_back(&mut self, request: RequestId, source: &Source, cx: &mut Context<'_>) {
        self.store.unlock(&source.anchors);
        let own = [&source.freed_early, &source.table[source.shared..]].concat();
        self.store.give_back(&mut cx.log, Holder::Request(request), &own);
    }

    /// Puts the pages of a request in once more before it gives them back.
    fn give_back_cached(&mut self, request: RequestId, source: &Source, cx: &mut Context<'_>) {
        let shared = source.shared.min(source.keys.len());
        if let Some(cache) = &mut self.store.cache {
            let priority = cx.requests[request].priority;
            let keys = &source.keys[..shared];
            let counted = cx.setup.uncounted(Pages::of(keys), source.inserted, false);
            cache.insert(keys, &source.table[..shared], Insertion { priority, counted });
        }
        self.give_back(request, source, cx);
    }

    /// The step has ended: what its requests have released meanwhile goes back.
    fn give_back_released(&mut self, cx: &mut Context<'_>) {
        for (request, source) in std::mem::take(&mut self.released) {
            self.give_back_cached(request, &source, cx);
        }
    }

    /// Somebody flushes the cache.
    pub(super) fn flush(&mut self, cx: &mut Context<'_>) {
        match self.store.flush(cx) {
            Flushed::Nothing | Flushed::Evicted(_) => {}
            Flushed::Everything => {
                // The locks went with the cache.
                let held = self.requests.iter_mut().filter_map(|state| state.source.as_mut());
                let released = self.released.iter_mut().map(|(_, source)| source);
                for source in held.chain(released) {
                    source.anchors.clear();
                }
            }
        }
        cx.wake(self.store.server);
    }
}
