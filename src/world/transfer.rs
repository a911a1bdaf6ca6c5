//! The transfer of each request's KV from prefill to decode: the handoff machine of the present
//! attempt, what decode has told of its destination, refusals, and messages.

use std::ops::{Index, IndexMut};

use super::context::Context;
use super::fault::MessageFault;
use super::handoff::{Handoff, PartId, Rules, Signal, Stage};
use super::queue::Timer;
use super::setup::Setup;
use crate::behaviour::{LostMessage, RefusedRequest, ReleaseOnAbort};
use crate::event::Part;
use crate::finding::Mark;
use crate::limits;
use crate::units::{PageId, RequestId, Tick, Tokens};

/// Where decode wants a transfer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Destination {
    /// Tokens that the transfer is about: the prompt, and after a retraction without a host copy
    /// also the output so far.
    pub(super) length: Tokens,
    /// What decode says that it has, S.
    pub(super) prefix: Tokens,
    /// Its virtual pages from position S on.
    pub(super) pages: Vec<PageId>,
}

/// One request's transfers: the present attempt, and what is remembered of those before.
pub(super) struct Transfer {
    handoff: Handoff,
    /// Transfers begun before the present one.
    attempt: u32,
    /// Whether the present transfer does without a decode prefix.
    skips_prefix: bool,
    /// Whether the planner or the connection refused the present transfer.
    was_refused: bool,
    /// How often the request was refused and served again.
    refusals: u32,
    /// Messages that a part has landed, over all attempts.
    messages: u32,
    /// The destination on its way to prefill.
    destination: Option<Destination>,
}

impl Transfer {
    fn new(setup: &Setup<'_>) -> Transfer {
        Transfer {
            handoff: new_handoff(setup),
            attempt: 0,
            skips_prefix: false,
            was_refused: false,
            refusals: 0,
            messages: 0,
            destination: None,
        }
    }

    /// The machine of the present attempt.
    pub(super) fn handoff(&self) -> &Handoff {
        &self.handoff
    }

    /// The machine, to tell it a signal.
    pub(super) fn handoff_mut(&mut self) -> &mut Handoff {
        &mut self.handoff
    }

    /// Number of the present transfer, from 0.
    pub(super) fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Whether decode looks for no prefix.
    pub(super) fn skips_prefix(&self) -> bool {
        self.skips_prefix
    }

    /// Whether prefill shall begin or go on with the request.
    pub(super) fn wants_prefill(&self, setup: &Setup<'_>) -> bool {
        let is_early = self.handoff.stage() == Stage::Waiting && self.attempt == 0;
        self.handoff.wants_more() || (is_early && setup.begins_at_arrival())
    }

    /// Decode wants to reserve. False if the transfer before is not over: its copies must have
    /// landed and its source pages be back. After a retraction a new attempt begins.
    pub(super) fn begin(&mut self, setup: &Setup<'_>) -> bool {
        if self.handoff.holds_source() && self.handoff.stage() != Stage::Waiting {
            return false;
        }
        if self.handoff.stage() == Stage::Active {
            self.renew(setup);
        }
        true
    }

    /// A new attempt, from the start.
    fn renew(&mut self, setup: &Setup<'_>) {
        self.attempt += 1;
        self.handoff = new_handoff(setup);
        self.was_refused = false;
        self.skips_prefix = false;
    }

    /// Decode has reserved: the destination goes on its way to prefill.
    pub(super) fn announce(&mut self, request: RequestId, to: Destination, cx: &mut Context<'_>) {
        self.destination = Some(to);
        let message = Tick(cx.setup.scenario.link.message_ticks);
        cx.set_after(message, Timer::DestinationKnown { request, attempt: self.attempt });
    }

    /// The message with the destination of `attempt` comes to prefill. `None` if that transfer
    /// needs none any more.
    pub(super) fn take_destination(&mut self, attempt: u32) -> Option<Destination> {
        let is_wanted = self.attempt == attempt && self.handoff.stage() == Stage::Reserved;
        if is_wanted { self.destination.take() } else { None }
    }

    /// The planner or the connection refuses the present transfer.
    pub(super) fn refuse(&mut self) {
        self.was_refused = true;
    }

    /// Begins once more, without a prefix, after a refusal and if that is what becomes of refused
    /// requests. False if the request is not to be served again.
    pub(super) fn serve_again(&mut self, cx: &mut Context<'_>) -> bool {
        let again = cx.setup.switches.refused_request == RefusedRequest::ServedAgain
            && self.was_refused
            && self.refusals < limits::REFUSALS_MAX;
        if again {
            cx.log.mark(Mark::RefusedServedAgain);
            self.renew(&cx.setup);
            self.refusals += 1;
            self.skips_prefix = true;
        }
        again
    }

    /// The transfer is about to be told that it is over: sets the clock of a release by timeout.
    pub(super) fn close(&self, request: RequestId, cx: &mut Context<'_>) {
        if cx.setup.switches.release_on_abort == ReleaseOnAbort::Timeout {
            let after = Tick(cx.setup.scenario.decode.release_timeout_ticks);
            cx.set_after(after, Timer::ReleaseTimesOut { request, attempt: self.attempt });
        }
    }

    /// A part has landed and says so. False if the message is lost; one that is doubled comes again
    /// later.
    pub(super) fn send_message(&mut self, part: Part, cx: &mut Context<'_>) -> bool {
        let number = self.messages;
        self.messages += 1;
        let later = Tick(cx.setup.scenario.link.message_ticks);
        match cx.faults.strike_message(part.request, number) {
            None => true,
            Some(MessageFault::Lost) => {
                cx.log.mark(Mark::MessageLost);
                if cx.setup.switches.lost_message == LostMessage::Fails {
                    cx.set_after(later, Timer::MessageIsMissed { part });
                }
                false
            }
            Some(MessageFault::Doubled) => {
                cx.log.mark(Mark::MessageDoubled);
                cx.set_after(later, Timer::MessageComesAgain { part });
                true
            }
        }
    }
}

fn new_handoff(setup: &Setup<'_>) -> Handoff {
    Handoff::new(setup.layout.ranks(), Rules::of(&setup.switches))
}

/// The signal about `part` that `of` makes.
pub(super) fn part_signal(part: Part, of: impl Fn(PartId) -> Signal) -> Signal {
    of(PartId { piece: part.piece, rank: part.rank, last: part.last })
}

/// The transfers of all requests that have arrived.
#[derive(Default)]
pub(super) struct Transfers(Vec<Transfer>);

impl Transfers {
    /// The next request has arrived.
    pub(super) fn arrive(&mut self, setup: &Setup<'_>) {
        self.0.push(Transfer::new(setup));
    }
}

impl Index<RequestId> for Transfers {
    type Output = Transfer;

    fn index(&self, request: RequestId) -> &Transfer {
        &self.0[request.index()]
    }
}

impl IndexMut<RequestId> for Transfers {
    fn index_mut(&mut self, request: RequestId) -> &mut Transfer {
        &mut self.0[request.index()]
    }
}

#[cfg(test)]
mod tests;
