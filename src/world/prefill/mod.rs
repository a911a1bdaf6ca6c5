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
use crate::event::Holder;
use crate::units::{RequestId, Tokens};

mod caching;
pub(super) mod chunk;
mod request;
pub(super) mod sending;
pub(super) mod step;

#[cfg(test)]
mod tests;

use chunk::{Batch, Chunk};
use request::RequestState;

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
            self.store.unlock(&source.anchors);
            let own = [&source.freed_early, &source.table[source.shared..]].concat();
            self.store.give_back(&mut cx.log, Holder::Request(request), &own);
        }
        cx.wake(self.store.server);
        // A transfer that was waiting for the old one's pages can begin.
        cx.wake(cx.requests[request].decode);
    }

    /// Somebody flushes the cache.
    pub(super) fn flush(&mut self, cx: &mut Context<'_>) {
        match self.store.flush(cx) {
            Flushed::Nothing | Flushed::Evicted(_) => {}
            Flushed::Everything => {
                // The locks went with the cache.
                for source in self.requests.iter_mut().filter_map(|state| state.source.as_mut()) {
                    source.anchors.clear();
                }
            }
        }
        cx.wake(self.store.server);
    }
}
