//! What is fixed about a request once it has arrived; and a table of values by request.
//!
//! What changes while a request lives belongs to those who change it: each server has a table of
//! its own part, and the transfers have theirs.

use std::ops::{Index, IndexMut};
use std::rc::Rc;

use super::setup::Setup;
use crate::event::{Server, Side};
use crate::prompt::{Chains, PageKey, Sequence, runs_behind};
use crate::units::{RequestId, Tick, Tokens};
use crate::workload::Request;

/// What is fixed about a request that has arrived.
pub(super) struct RequestInfo {
    /// Prompt and output.
    pub(super) text: Rc<Sequence>,
    /// The same as prefix caches tell texts apart.
    pub(super) keyed: Rc<Sequence>,
    /// Tokens of the prompt.
    pub(super) prompt: Tokens,
    /// The most output tokens that its client allows.
    pub(super) max_new_tokens: Tokens,
    /// Priority of its cached pages.
    pub(super) priority: i64,
    /// When it arrived.
    pub(super) arrived: Tick,
    /// Its prefill server.
    pub(super) prefill: Server,
    /// Its decode server.
    pub(super) decode: Server,
}

impl RequestInfo {
    /// Output tokens known when `stored` positions are stored: the last one is not stored yet.
    pub(super) fn generated(&self, stored: Tokens) -> u32 {
        stored.0 + 1 - self.prompt.0
    }

    /// Whether all output is known when `stored` positions are stored.
    pub(super) fn is_complete(&self, stored: Tokens) -> bool {
        stored + Tokens(1) == self.text.len()
    }
}

/// The requests of a run, in order of arrival. Those that have arrived are looked up by their id.
pub(super) struct Requests<'a> {
    workload: &'a [Request],
    chains: Chains,
    arrived: Vec<RequestInfo>,
}

impl<'a> Requests<'a> {
    pub(super) fn new(workload: &'a [Request]) -> Requests<'a> {
        Requests { workload, chains: Chains::default(), arrived: Vec::new() }
    }

    /// When the next request arrives, if there is one more.
    pub(super) fn next_at(&self) -> Option<Tick> {
        self.workload.get(self.arrived.len()).map(|request| request.at)
    }

    /// Whether `request` has arrived.
    pub(super) fn has_arrived(&self, request: RequestId) -> bool {
        request.index() < self.arrived.len()
    }

    /// How many have arrived.
    pub(super) fn count_arrived(&self) -> u64 {
        self.arrived.len() as u64
    }

    /// How many there are, arrived or not.
    pub(super) fn count(&self) -> u64 {
        self.workload.len() as u64
    }

    /// The next request arrives at `now`. Servers are dealt round robin.
    pub(super) fn arrive(&mut self, setup: &Setup<'_>, now: Tick) -> RequestId {
        let number = self.arrived.len();
        let request = RequestId(u32::try_from(number).expect("limits keep requests within u32"));
        let spec = &self.workload[number];
        let text = Rc::new(self.chains.sequence(spec.namespace, spec.all_runs()));
        let namespace = setup.key_namespace(spec);
        let keyed = match namespace == spec.namespace {
            true => Rc::clone(&text),
            false => Rc::new(self.chains.sequence(namespace, spec.all_runs())),
        };
        let server = |side, workers| Server { side, index: request.0 % workers };
        self.arrived.push(RequestInfo {
            text,
            keyed,
            prompt: spec.prompt_len(),
            max_new_tokens: spec.max_new_tokens,
            priority: spec.priority,
            arrived: now,
            prefill: server(Side::Prefill, setup.scenario.prefill.workers),
            decode: server(Side::Decode, setup.scenario.decode.workers),
        });
        request
    }

    /// Keys of the first `pages` pages of the request's text from position `from` on, as if it
    /// began there. If that rest ends before its last page does, the page's key is that of the
    /// rest's end.
    pub(super) fn keys_from(
        &mut self,
        setup: &Setup<'_>,
        request: RequestId,
        from: Tokens,
        pages: usize,
    ) -> Vec<PageKey> {
        let page = setup.page();
        let spec = &self.workload[request.index()];
        let runs = runs_behind(spec.all_runs(), from);
        let rest = self.chains.sequence(setup.key_namespace(spec), runs);
        // Pages are counted from the one that `from` lies in. Where `from` is not its start, the
        // rest can be shorter than so many pages, and the last of them ends behind it.
        let end = rest.len() - Tokens(1);
        let key = |last: Tokens| rest.chain_at(last.min(end)).map(|chain| PageKey(chain.0));
        let pages = (1..=pages).map(|count| Tokens(count as u32 * page.get() - 1));
        pages.filter_map(key).collect()
    }
}

impl Index<RequestId> for Requests<'_> {
    type Output = RequestInfo;

    fn index(&self, request: RequestId) -> &RequestInfo {
        &self.arrived[request.index()]
    }
}

/// A value for each request of one server. Of `servers` servers, each has every `servers`-th
/// request.
pub(super) struct ByRequest<T> {
    servers: u32,
    server: u32,
    values: Vec<T>,
}

impl<T> ByRequest<T> {
    /// An empty table of server `server` of `servers`.
    pub(super) fn new(server: u32, servers: u32) -> ByRequest<T> {
        ByRequest { servers, server, values: Vec::new() }
    }

    /// Adds the value of the server's next request.
    pub(super) fn push(&mut self, value: T) {
        self.values.push(value);
    }

    /// All values.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.values.iter_mut()
    }

    /// All requests with their values, the latest first.
    pub(super) fn latest_first(&self) -> impl Iterator<Item = (RequestId, &T)> {
        let id = |place: usize| RequestId(place as u32 * self.servers + self.server);
        self.values.iter().enumerate().rev().map(move |(place, value)| (id(place), value))
    }

    fn place(&self, request: RequestId) -> usize {
        (request.0 / self.servers) as usize
    }
}

impl<T> Index<RequestId> for ByRequest<T> {
    type Output = T;

    fn index(&self, request: RequestId) -> &T {
        &self.values[self.place(request)]
    }
}

impl<T> IndexMut<RequestId> for ByRequest<T> {
    fn index_mut(&mut self, request: RequestId) -> &mut T {
        let place = self.place(request);
        &mut self.values[place]
    }
}
