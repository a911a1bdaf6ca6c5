//! The parts of a small world that is not set in motion, so that tests can call one server by
//! itself: P = 4, N = 2, V = 8, one server of each kind.

use std::path::Path;

use crate::event::{Event, Text};
use crate::scenario::{Scenario, file};
use crate::units::RequestId;
use crate::workload::{self, Request};
use crate::world::World;
use crate::world::context::Context;
use crate::world::decode::Decode;
use crate::world::handoff::{Action, Signal};
use crate::world::link::Link;
use crate::world::prefill::Prefill;
use crate::world::prefill::step::Next;
use crate::world::registry::Registry;
use crate::world::transfer::{Destination, Transfers};

/// A scenario of 8 prefill and 4 decode pages unless `more` says otherwise. Of each request:
/// content, tokens of the prompt, tokens of the output.
pub(in crate::world) fn scenario(more: &str, requests: &[(u32, u32, u32)]) -> Scenario {
    let mut text = format!("version = 1\ntitle = \"parts\"\n{more}\n");
    if !more.contains("prefill =") {
        text += "prefill = { pages = 8, chunk_tokens = 16 }\n";
    }
    if !more.contains("decode =") {
        text += "decode = { pages = 4, reserved_tokens = 0 }\n";
    }
    text += "layout = { page_size = 4, ranks = 2 }\nworkload.requests = [\n";
    for (content, prompt, output) in requests {
        text += &format!("{{ prompt = [{{ content = {content}, len = {prompt} }}], ");
        text += &format!("output = {output} }},\n");
    }
    file::parse(&(text + "]\n"), "parts").unwrap()
}

/// The requests of a scenario.
pub(in crate::world) fn requests(scenario: &Scenario) -> Vec<Request> {
    workload::requests(scenario, Path::new(".")).unwrap()
}

/// One server of each kind, their link, and what they share.
pub(in crate::world) struct Parts<'a> {
    pub(in crate::world) cx: Context<'a>,
    pub(in crate::world) prefill: Prefill,
    pub(in crate::world) decode: Decode,
    pub(in crate::world) link: Link,
    pub(in crate::world) transfers: Transfers,
}

impl<'a> Parts<'a> {
    /// Idle servers, and no request yet.
    pub(in crate::world) fn new(scenario: &'a Scenario, requests: &'a [Request]) -> Parts<'a> {
        let mut world = World::new(scenario, &Registry::default(), requests);
        Parts {
            prefill: world.prefills.remove(0),
            decode: world.decodes.remove(0),
            link: world.links.remove(0),
            transfers: world.transfers,
            cx: world.context,
        }
    }

    /// The next request arrives, and nobody is told to serve it.
    pub(in crate::world) fn arrive(&mut self) -> RequestId {
        let cx = &mut self.cx;
        let request = cx.requests.arrive(&cx.setup, cx.log.now);
        let info = &cx.requests[request];
        let (prompt, text) = (info.prompt, Text(info.text.clone()));
        self.transfers.arrive(&cx.setup);
        self.prefill.arrive(prompt);
        self.decode.arrive(prompt);
        cx.log.tell(&Event::Arrived { request, text, prompt, admitted: true }, &[]);
        request
    }

    /// Tells the request's handoff a signal.
    pub(in crate::world) fn tell(&mut self, request: RequestId, signal: Signal) -> Vec<Action> {
        self.transfers[request].handoff_mut().step(signal)
    }

    /// Decode reserves for the request. Returns what is on its way to prefill then.
    pub(in crate::world) fn reserve(&mut self, request: RequestId) -> Destination {
        self.decode.wait(request, &mut self.cx);
        let mut made = self.decode.admit(&mut self.cx, &mut self.transfers);
        assert_eq!(made.len(), 1, "there is room for the request");
        assert_eq!(self.tell(request, Signal::Reserved), []);
        made.remove(0).destination
    }

    /// Decode reserves, prefill is told at once and computes all in one step.
    pub(in crate::world) fn compute(&mut self, request: RequestId) {
        let destination = self.reserve(request);
        let sends = self.prefill.destination_known(request, destination, true, &mut self.cx);
        assert_eq!(sends, []);
        while let Next::Launched(chunk) = self.prefill.compose(&mut self.cx, &self.transfers) {
            assert_eq!(self.tell(chunk.request, Signal::ComputeStarted), []);
        }
        while let Some(chunk) = self.prefill.end_chunk(&mut self.cx, &self.transfers) {
            assert_eq!(self.tell(chunk.request, Signal::ComputeEnded), []);
        }
    }
}
