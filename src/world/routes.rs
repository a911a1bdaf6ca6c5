//! Where timers, signals and actions go: who is told, in which order, and what follows at once. The
//! rules stand with the servers.

use super::World;
use super::arrival;
use super::decode::{Reservation, ending::AfterAbort, step::Victim};
use super::handoff::{Action, Signal};
use super::link::Copy;
use super::piece::PlannedPiece;
use super::prefill::sending::CutPiece;
use super::prefill::step::Next;
use super::queue::Timer;
use super::transfer::part_signal;
use crate::behaviour::{DecodeTurn, PrefillBatch, TransferError};
use crate::engine::TransferMode;
use crate::event::{Event, Part, Server, Side, Text};
use crate::finding::{Chance, Metric};
use crate::scenario::Moment;
use crate::units::RequestId;

impl World<'_> {
    /// A timer goes off.
    pub(super) fn dispatch(&mut self, timer: Timer) {
        match timer {
            Timer::CopyServed { link } => self.copy_served(link),
            Timer::CopyLands { link, served } => {
                let copy = self.links[link].take_delayed(served);
                self.land(copy);
            }
            Timer::MessageComesAgain { part } => self.part_landed(part),
            Timer::MessageIsMissed { part } => self.part_lost(part),
            Timer::PrefillStepEnds { server } => self.prefill_step_ends(server),
            Timer::DecodeStepEnds { server } => self.decode_step_ends(server),
            Timer::DestinationKnown { request, attempt } => {
                self.destination_known(request, attempt);
            }
            Timer::Arrives => self.arrive(),
            Timer::Aborts { request, fault } => self.abort(request, fault),
            Timer::ReleaseTimesOut { request, attempt } => {
                if self.transfers[request].attempt() == attempt {
                    self.deliver(request, Signal::TimedOut);
                }
            }
            Timer::Flushes { side, server, fault } => {
                self.context.faults.strike(fault);
                match side {
                    Side::Prefill => self.prefills[server].flush(&mut self.context),
                    Side::Decode => self.decodes[server].flush(&mut self.context),
                }
            }
        }
    }

    /// A server looks for work.
    pub(super) fn serve(&mut self, server: Server) {
        let index = server.index as usize;
        match server.side {
            Side::Prefill => self.serve_prefill(index),
            Side::Decode => self.serve_decode(index),
        }
    }

    fn serve_prefill(&mut self, index: usize) {
        loop {
            match self.prefills[index].compose(&mut self.context, &self.transfers) {
                Next::Launched(chunk) => {
                    self.deliver(chunk.request, Signal::ComputeStarted);
                    let sends = self.prefills[index].cut_early(chunk, &mut self.context);
                    self.send(chunk.request, sends);
                }
                Next::Added => {}
                Next::GivesWay(request) => self.deliver(request, Signal::GaveWay),
                Next::Composed => break,
            }
        }
    }

    fn serve_decode(&mut self, index: usize) {
        match self.context.setup.switches.decode_turn {
            DecodeTurn::AnyTime => self.decode_looks_for_work(index),
            DecodeTurn::BetweenSteps => {
                let mut before = None;
                while let Some(standing) = self.decodes[index].between_steps()
                    && before != Some(standing)
                {
                    before = Some(standing);
                    self.decode_looks_for_work(index);
                }
            }
        }
    }

    fn decode_looks_for_work(&mut self, index: usize) {
        self.decodes[index].give_back_failed(&mut self.context);
        let decode = &mut self.decodes[index];
        for Reservation { request, destination } in
            decode.admit(&mut self.context, &mut self.transfers)
        {
            self.deliver(request, Signal::Reserved);
            match self.context.setup.transfer {
                TransferMode::Push => {
                    self.transfers[request].announce(request, destination, &mut self.context);
                }
            }
            self.context.reached(request, Moment::Reserved);
        }
        self.decodes[index].join(&mut self.context);
        while let Some(victim) = self.decodes[index].begin_step(&mut self.context) {
            match victim {
                Victim::Retracted(victim) => {
                    if let Some(signal) = self.decodes[index].retract(victim, &self.context.setup) {
                        self.deliver(victim, signal);
                    }
                    self.decodes[index].leave_retracted(victim, &mut self.context);
                }
                Victim::Aborted(victim) => {
                    self.deliver(victim, Signal::Aborted);
                    self.decodes[index].drop_for_memory(victim, &mut self.context);
                }
            }
        }
    }

    /// The next request arrives: it waits for decode pages unless it is refused.
    fn arrive(&mut self) {
        let cx = &mut self.context;
        let request = cx.requests.arrive(&cx.setup, cx.log.now);
        let info = &cx.requests[request];
        let prompt = info.prompt;
        self.transfers.arrive(&cx.setup);
        self.prefills[info.prefill.index as usize].arrive(prompt);
        self.decodes[info.decode.index as usize].arrive(prompt);
        let fits = arrival::fits(&cx.setup, prompt, info.text.len());
        cx.log.count(Metric::Requests, 1);
        cx.log.count(Metric::PromptTokens, u64::from(prompt.0));
        let text = Text(info.text.clone());
        cx.log.tell(&Event::Arrived { request, text, prompt, admitted: fits }, &[]);
        cx.log.chance(Chance::Pairings);
        if let Some((code, said)) = arrival::refusal(&cx.setup, fits, prompt) {
            cx.log.tell(&Event::Refused { request, code, ranks: &[], said: &said }, &[]);
            self.transfers[request].refuse();
            self.deliver(request, Signal::Refused);
        } else {
            let (prefill, decode) = self.servers(request);
            let cx = &mut self.context;
            self.decodes[decode].wait(request, cx);
            cx.reached(request, Moment::Arrived);
            if cx.setup.begins_at_arrival() {
                self.prefills[prefill].wait(request, cx);
            }
        }
        self.sample_free_runs();
        if let Some(at) = self.context.requests.next_at() {
            self.context.queue.set(at, Timer::Arrives);
        }
    }

    fn destination_known(&mut self, request: RequestId, attempt: u32) {
        let Some(destination) = self.transfers[request].take_destination(attempt) else { return };
        let (prefill, _) = self.servers(request);
        let is_first = attempt == 0;
        let prefill = &mut self.prefills[prefill];
        let sends = prefill.destination_known(request, destination, is_first, &mut self.context);
        self.send(request, sends);
    }

    fn prefill_step_ends(&mut self, index: usize) {
        while let Some(chunk) = self.prefills[index].end_chunk(&mut self.context, &self.transfers) {
            let transfer = &self.transfers[chunk.request];
            // What is sent in vain must be on the link before its pages can go back.
            let in_vain = self.prefills[index].is_sent_in_vain(chunk, transfer, &self.context);
            if !in_vain {
                self.deliver(chunk.request, Signal::ComputeEnded);
            }
            let transfer = &self.transfers[chunk.request];
            let sends = self.prefills[index].cut_chunk(chunk, transfer, &mut self.context);
            self.send(chunk.request, sends);
            if in_vain {
                self.deliver(chunk.request, Signal::ComputeEnded);
            }
        }
    }

    /// Has each piece planned and its parts queued, until one is refused. Nothing goes over a link
    /// that has ended.
    fn send(&mut self, request: RequestId, sends: Vec<CutPiece>) {
        let (prefill, decode) = self.servers(request);
        let link = prefill * self.decodes.len() + decode;
        let ends_thread = match self.context.setup.switches.transfer_error {
            TransferError::FailsRequest => false,
            TransferError::EndsThread => true,
        };
        for send in sends {
            if self.links[link].has_ended() {
                break;
            }
            let attempt = self.transfers[request].attempt();
            let destination = self.prefills[prefill].destination(request);
            let call = (request, attempt);
            let mut piece = PlannedPiece::plan(call, &send, destination, &mut self.context);
            if ends_thread {
                piece.end_at_refusal();
            }
            for (part, plan) in std::mem::take(&mut piece.parts) {
                let store = &self.prefills[prefill].store;
                let cx = &mut self.context;
                if self.links[link].queue_copy(part, plan, &send.pages, store, cx) {
                    self.deliver(request, part_signal(part, Signal::PartQueued));
                }
            }
            if piece.conclude(&mut self.context) {
                continue;
            }
            if ends_thread {
                self.links[link].end(&mut self.context);
            } else {
                self.transfers[request].refuse();
                self.close(request, Signal::Refused);
            }
            break;
        }
    }

    fn copy_served(&mut self, link: usize) {
        let link = &mut self.links[link];
        let store = &self.prefills[link.prefill.index as usize].store;
        if let Some(copy) = link.copy_served(store, &mut self.context) {
            self.land(copy);
        }
    }

    fn land(&mut self, copy: Copy) {
        let part = copy.part;
        let (_, decode) = self.servers(part.request);
        self.decodes[decode].land(copy, &mut self.context);
        if self.transfers[part.request].send_message(part, &mut self.context) {
            self.part_landed(part);
        }
    }

    /// A message about a part counts only for the transfer that the part belongs to.
    fn is_current(&self, part: Part) -> bool {
        self.transfers[part.request].attempt() == part.attempt
    }

    fn part_landed(&mut self, part: Part) {
        if self.is_current(part) {
            self.deliver(part.request, part_signal(part, Signal::PartLanded));
        }
    }

    fn part_lost(&mut self, part: Part) {
        if self.is_current(part) {
            self.close(part.request, part_signal(part, Signal::PartLost));
        }
    }

    fn decode_step_ends(&mut self, index: usize) {
        while let Some(request) = self.decodes[index].end_step(&mut self.context) {
            self.drop_running(request);
        }
    }

    fn drop_running(&mut self, request: RequestId) {
        self.deliver(request, Signal::Aborted);
        let (_, decode) = self.servers(request);
        self.decodes[decode].drop_running(request, &mut self.context);
    }

    /// A client gives up, if its request has arrived.
    fn abort(&mut self, request: RequestId, fault: usize) {
        if !self.context.requests.has_arrived(request) {
            return;
        }
        let (prefill, decode) = self.servers(request);
        let transfer = &self.transfers[request];
        let after = self.decodes[decode].abort(request, fault, transfer, &mut self.context);
        if self.decodes[decode].is_forgotten(request) {
            self.prefills[prefill].forget(request);
        }
        match after {
            AfterAbort::Nothing => {}
            AfterAbort::TellTransfer => self.deliver(request, Signal::Aborted),
            AfterAbort::TellAndEnd => {
                self.deliver(request, Signal::Aborted);
                self.decodes[decode].end_unfinished(request, &mut self.context);
            }
            AfterAbort::CloseTransfer => self.close(request, Signal::Aborted),
            AfterAbort::Drop => self.drop_running(request),
        }
        match self.context.setup.switches.prefill_batch {
            PrefillBatch::OneByOne => {}
            // It may be one that never gets in, with others behind it.
            PrefillBatch::AtOnce => self.context.wake(self.prefills[prefill].store.server),
        }
        self.context.wake(self.decodes[decode].store.server);
    }

    /// Tells the handoff of `request` that it is over.
    fn close(&mut self, request: RequestId, why: Signal) {
        self.transfers[request].close(request, &mut self.context);
        self.deliver(request, why);
    }

    /// Tells the handoff of `request` a signal and does what follows.
    fn deliver(&mut self, request: RequestId, signal: Signal) {
        let (prefill, decode) = self.servers(request);
        for action in self.transfers[request].handoff_mut().step(signal) {
            let cx = &mut self.context;
            match action {
                Action::Activate => self.decodes[decode].landed(request, cx),
                Action::ReleaseDestination => self.decodes[decode].release(request, cx),
                Action::ReleaseSource => self.prefills[prefill].release(request, cx),
                Action::End => {
                    let decode = &mut self.decodes[decode];
                    if decode.may_try_again(request) && self.transfers[request].serve_again(cx) {
                        decode.wait(request, cx);
                    } else {
                        decode.end_unfinished(request, cx);
                    }
                }
            }
        }
    }

    /// Indices of a request's prefill and decode server.
    fn servers(&self, request: RequestId) -> (usize, usize) {
        let info = &self.context.requests[request];
        (info.prefill.index as usize, info.decode.index as usize)
    }
}
