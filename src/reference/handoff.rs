//! Handoff: what is known of a transfer, as flags and sets, and what follows from each signal.

use std::collections::BTreeSet;

use crate::behaviour::{DoubledMessage, ReleaseOnAbort, SourceRelease, TransferCompletion};
use crate::units::Rank;
use crate::world::handoff::{Action, Handoff, PartId, Rules, Signal, Stage};

/// Signals to a handoff of one request.
#[derive(Clone, Debug)]
pub struct Case {
    /// Ranks that each piece goes to.
    pub ranks: u32,
    /// Pieces of the transfer.
    pub pieces: u32,
    /// The switches.
    pub rules: Rules,
    /// What is told, in order.
    pub signals: Vec<Signal>,
}

impl Case {
    /// A part of a transfer in so many pieces.
    pub fn part(pieces: u32, piece: u32, rank: u32) -> PartId {
        PartId { piece, rank: Rank(rank), last: piece + 1 == pieces }
    }
}

/// Tells a handoff every signal, then lets the client give up and every copy land.
///
/// # Panics
/// Where the handoff answers otherwise than the model, or breaks a law of sound transfers.
pub fn check(case: &Case) {
    let mut told = Told {
        handoff: Handoff::new(case.ranks, case.rules),
        transfer: Transfer::new(case),
        done: Vec::new(),
    };
    for &signal in &case.signals {
        told.tell(signal);
    }
    told.wind_up();
}

/// A handoff beside the model.
struct Told {
    handoff: Handoff,
    transfer: Transfer,
    /// Every action so far that ends something.
    done: Vec<Action>,
}

impl Told {
    fn tell(&mut self, signal: Signal) {
        self.transfer.tell(signal);
        let Told { handoff, transfer, done } = self;
        let actions = handoff.step(signal);
        assert_eq!(actions, transfer.actions, "{signal:?} after {done:?}");
        assert_eq!(handoff.stage(), transfer.stage(), "{signal:?}");
        assert_eq!(handoff.holds_source(), transfer.holds_source, "{signal:?}");
        assert_eq!(handoff.is_copying(), !transfer.on_the_way.is_empty(), "{signal:?}");
        assert_eq!(handoff.is_sent(), transfer.is_sent, "{signal:?}");
        assert_eq!(handoff.wants_more(), transfer.wants_more(), "{signal:?}");
        let is_sound = transfer.rules == Rules::default();
        for action in actions {
            if is_sound {
                self.judge(action, signal);
            }
            // What is given back to make way is computed again, and goes back once more at the end.
            if signal != Signal::GaveWay {
                self.done.push(action);
            }
        }
        if is_sound {
            self.tell_again(signal);
        }
    }

    /// The laws of sound completion and release, which the model must keep as well.
    fn judge(&self, action: Action, signal: Signal) {
        let Told { transfer, done, .. } = self;
        assert!(!done.contains(&Action::End), "nothing follows the end: {signal:?} {action:?}");
        assert!(!done.contains(&action), "once is enough: {action:?} after {done:?}");
        let drained = transfer.on_the_way.is_empty();
        match action {
            Action::Activate => {
                let parts = (transfer.pieces * transfer.ranks) as usize;
                assert_eq!(transfer.landed.len(), parts, "active with all parts: {signal:?}");
                assert!(!done.contains(&Action::ReleaseDestination), "active with its pages");
            }
            Action::ReleaseDestination => {
                assert!(drained, "copies into the pages are in flight: {signal:?}");
                assert!(!done.contains(&Action::Activate), "the pages are decode's own");
            }
            Action::ReleaseSource => {
                assert!(drained, "copies from the pages are in flight: {signal:?}");
            }
            Action::End => {
                assert!(!done.contains(&Action::Activate), "an end without activation");
                let released = done.contains(&Action::ReleaseDestination);
                let held = transfer.is_reserved && !released;
                assert!(!held && !self.handoff.holds_source(), "it ends with pages: {signal:?}");
            }
        }
    }

    /// A signal that comes a second time changes nothing; but after a lost message nothing more may
    /// be sent, whatever the stage.
    fn tell_again(&self, signal: Signal) {
        let mut again = self.handoff.clone();
        let actions = again.step(signal);
        assert!(actions.is_empty(), "a repeated signal has no effect: {signal:?} {actions:?}");
        if !matches!(signal, Signal::PartLost(_)) {
            assert_eq!(again, self.handoff, "a repeated signal changes nothing: {signal:?}");
        }
    }

    /// The client gives up and every copy lands: then nothing is held.
    fn wind_up(mut self) {
        self.tell(Signal::Aborted);
        self.tell(Signal::ComputeEnded);
        for (piece, rank) in self.transfer.on_the_way.clone() {
            self.tell(Signal::PartLanded(Case::part(self.transfer.pieces, piece, rank)));
        }
        let Told { handoff, transfer, done } = self;
        let count = |action| done.iter().filter(|&&other| other == action).count();
        let activated = count(Action::Activate);
        assert!(!handoff.holds_source(), "prefill's pages are given back");
        assert_eq!(activated + count(Action::End), 1, "active or ended: {done:?}");
        let settled = activated + count(Action::ReleaseDestination);
        assert!(
            !transfer.is_reserved || settled == 1,
            "decode's pages are its own or given back: {done:?}"
        );
    }
}

/// What is known of a transfer.
struct Transfer {
    ranks: u32,
    pieces: u32,
    rules: Rules,
    is_reserved: bool,
    is_active: bool,
    /// It was refused or aborted before decode could take it up.
    is_closed: bool,
    is_over: bool,
    /// It was refused or aborted after that.
    is_stopped: bool,
    is_computing: bool,
    holds_source: bool,
    holds_destination: bool,
    /// A part of the last piece was seen.
    is_sent: bool,
    /// A part was put on the link when it had failed already.
    is_sent_late: bool,
    on_the_way: BTreeSet<(u32, u32)>,
    landed: BTreeSet<(u32, u32)>,
    /// Messages that a part has landed, each time that one came.
    messages: u32,
    /// What the last signal leads to.
    actions: Vec<Action>,
}

impl Transfer {
    fn new(case: &Case) -> Transfer {
        Transfer {
            ranks: case.ranks,
            pieces: case.pieces,
            rules: case.rules,
            is_reserved: false,
            is_active: false,
            is_closed: false,
            is_over: false,
            is_stopped: false,
            is_computing: false,
            holds_source: false,
            holds_destination: false,
            is_sent: false,
            is_sent_late: false,
            on_the_way: BTreeSet::new(),
            landed: BTreeSet::new(),
            messages: 0,
            actions: Vec::new(),
        }
    }

    /// Takes a signal in, and keeps what it leads to.
    fn tell(&mut self, signal: Signal) {
        self.actions.clear();
        if self.is_over {
            return;
        }
        match signal {
            Signal::Reserved => {
                if !self.is_reserved && !self.is_closed {
                    self.is_reserved = true;
                    self.holds_destination = true;
                }
            }
            Signal::ComputeStarted => {
                // Before the reservation, prefill may begin as well.
                if self.wants_more() || self.stage() == Stage::Waiting {
                    self.is_computing = true;
                    self.holds_source = true;
                }
            }
            Signal::ComputeEnded => self.is_computing = false,
            Signal::GaveWay => {
                let gives = self.stage() == Stage::Waiting && !self.is_computing;
                if gives && std::mem::take(&mut self.holds_source) {
                    self.actions.push(Action::ReleaseSource);
                }
            }
            // Copies before the reservation are of no transfer.
            Signal::PartQueued(_) | Signal::PartLanded(_) | Signal::PartLost(_)
                if self.stage() == Stage::Waiting => {}
            Signal::PartQueued(part) => self.part(part, false),
            Signal::PartLanded(part) => self.part(part, true),
            Signal::PartLost(part) => {
                self.on_the_way.remove(&(part.piece, part.rank.0));
                self.fails();
            }
            Signal::Refused | Signal::Aborted => self.fails(),
            Signal::TimedOut => {
                if self.is_closed && self.rules.release == ReleaseOnAbort::Timeout {
                    self.release_destination();
                }
            }
        }
        self.settle();
    }

    fn wants_more(&self) -> bool {
        let is_served = self.is_active && (self.is_sent || self.is_stopped);
        self.is_reserved && !self.is_closed && !self.is_over && !is_served
    }

    /// Whether decode takes it up now that a part of `piece` has landed.
    fn is_complete(&self, piece: u32) -> bool {
        let has = |piece| (0..self.ranks).all(|rank| self.landed.contains(&(piece, rank)));
        match self.rules.completion {
            TransferCompletion::EveryPart => match self.rules.doubled {
                DoubledMessage::Harmless => (0..self.pieces).all(has),
                DoubledMessage::Counted => {
                    self.is_sent && self.messages >= self.pieces * self.ranks
                }
            },
            TransferCompletion::LastPartSeen => piece + 1 == self.pieces && has(piece),
            TransferCompletion::AnyPart => true,
        }
    }

    fn release_destination(&mut self) {
        if std::mem::take(&mut self.holds_destination) {
            self.actions.push(Action::ReleaseDestination);
        }
    }

    fn part(&mut self, part: PartId, has_landed: bool) {
        let place = (part.piece, part.rank.0);
        self.is_sent |= part.last;
        if has_landed {
            self.on_the_way.remove(&place);
            self.landed.insert(place);
            self.messages += 1;
            if !self.is_active && !self.is_closed && self.is_complete(part.piece) {
                self.is_active = true;
                self.holds_destination = false;
                self.actions.push(Action::Activate);
            }
        } else {
            self.is_sent_late |= self.is_closed;
            if !self.landed.contains(&place) {
                self.on_the_way.insert(place);
            }
        }
    }

    fn fails(&mut self) {
        if self.is_active {
            self.is_stopped = true;
        } else if !self.is_closed {
            self.is_closed = true;
            if self.rules.release == ReleaseOnAbort::AtOnce {
                self.release_destination();
            }
        }
    }

    /// Pages go back once no copy needs them and nobody computes into them, the source perhaps
    /// earlier.
    fn settle(&mut self) {
        let is_drained = self.on_the_way.is_empty();
        let is_done = match self.rules.source_release {
            _ if self.is_closed => true,
            SourceRelease::Landed | SourceRelease::LandedOrAborted => {
                self.is_active && (self.is_sent || self.is_stopped)
            }
            SourceRelease::BeforeSent => self.is_reserved && (self.is_sent || self.is_stopped),
        };
        let may_go = is_drained
            || match self.rules.source_release {
                SourceRelease::Landed => false,
                SourceRelease::BeforeSent => true,
                SourceRelease::LandedOrAborted => self.is_closed && !self.is_sent_late,
            };
        if is_done && may_go && !self.is_computing && std::mem::take(&mut self.holds_source) {
            self.actions.push(Action::ReleaseSource);
        }
        if self.is_closed && is_drained {
            self.release_destination();
            if !self.holds_source {
                self.is_over = true;
                self.actions.push(Action::End);
            }
        }
    }

    fn stage(&self) -> Stage {
        match self {
            Transfer { is_over: true, .. } => Stage::Ended,
            Transfer { is_closed: true, .. } => Stage::Closing,
            Transfer { is_active: true, .. } => Stage::Active,
            Transfer { is_reserved: true, .. } => Stage::Reserved,
            Transfer { .. } => Stage::Waiting,
        }
    }
}
