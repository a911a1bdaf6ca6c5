//! The handoff of one request from prefill to decode, as a pure state machine: signals in, actions
//! out.
//!
//! The machine decides when decode may activate, and when each side may give its pages back.
//! Signals can come in any order, twice, or late; a signal that no longer matters changes nothing.

use crate::behaviour::{
    Behaviours, DoubledMessage, ReleaseOnAbort, SourceRelease, TransferCompletion,
};
use crate::units::Rank;

/// Where a handoff stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Decode has not reserved yet; prefill may compute already.
    Waiting,
    /// Decode has reserved; prefill computes and sends.
    Reserved,
    /// Decode has activated the request; its destination pages are out of the handoff's hands.
    Active,
    /// It failed or was aborted; pages are given back as copies drain.
    Closing,
    /// Nothing is held any more.
    Ended,
}

/// What the machine is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Decode has reserved its pages.
    Reserved,
    /// Prefill has begun to compute a chunk.
    ComputeStarted,
    /// The chunk is computed.
    ComputeEnded,
    /// A part was put on the link.
    PartQueued(PartId),
    /// A part has landed on its rank.
    PartLanded(PartId),
    /// A part has landed, and the message that says so was lost.
    PartLost(PartId),
    /// The planner refused.
    Refused,
    /// The client gave up.
    Aborted,
    /// The time to wait for copies is over.
    TimedOut,
    /// Prefill gives way: what it has computed without a destination goes back.
    GaveWay,
}

/// One part among those of a transfer: what one rank gets of a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartId {
    /// The piece, from 0.
    pub piece: u32,
    /// The rank.
    pub rank: Rank,
    /// Whether no piece follows.
    pub last: bool,
}

/// What is to be done, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Decode takes the request up.
    Activate,
    /// Decode gives the reserved pages back.
    ReleaseDestination,
    /// Prefill gives the computed pages back.
    ReleaseSource,
    /// The request has ended without activation.
    End,
}

/// The switches that a handoff goes by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// When the transfer is complete.
    pub completion: TransferCompletion,
    /// When the destination is given back if it fails.
    pub release: ReleaseOnAbort,
    /// When the source is given back.
    pub source_release: SourceRelease,
    /// What a message means that comes a second time.
    pub doubled: DoubledMessage,
}

impl Rules {
    /// The rules among `behaviours`.
    pub fn of(behaviours: &Behaviours) -> Rules {
        Rules {
            completion: behaviours.transfer_completion,
            release: behaviours.release_on_abort,
            source_release: behaviours.source_release,
            doubled: behaviours.doubled_message,
        }
    }
}

/// Parts of a transfer by number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct PartSet {
    words: Vec<u64>,
    count: u64,
}

impl PartSet {
    fn is_empty(&self) -> bool {
        self.count == 0
    }

    fn contains(&self, part: usize) -> bool {
        self.words.get(part / 64).is_some_and(|word| word >> (part % 64) & 1 == 1)
    }

    /// True if the part was not there.
    fn insert(&mut self, part: usize) -> bool {
        let is_new = !self.contains(part);
        if self.words.len() <= part / 64 {
            self.words.resize(part / 64 + 1, 0);
        }
        self.words[part / 64] |= 1 << (part % 64);
        self.count += u64::from(is_new);
        is_new
    }

    fn remove(&mut self, part: usize) {
        if self.contains(part) {
            self.words[part / 64] &= !(1 << (part % 64));
            self.count -= 1;
        }
    }
}

/// The machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handoff {
    stage: Stage,
    rules: Rules,
    ranks: u32,
    computing: bool,
    source_held: bool,
    destination_held: bool,
    /// Whether the sender stops although decode is active: it was refused or told to.
    sender_stopped: bool,
    /// Whether a part was put on the link after the handoff had failed.
    sent_late: bool,
    /// The number of the last piece, once a part of it was queued or landed.
    last_piece: Option<u32>,
    queued: PartSet,
    landed: PartSet,
    /// Messages that came again and count as other parts.
    repeats: u64,
}

impl Handoff {
    /// A handoff to `ranks` ranks that has not begun.
    pub fn new(ranks: u32, rules: Rules) -> Handoff {
        Handoff {
            stage: Stage::Waiting,
            rules,
            ranks,
            computing: false,
            source_held: false,
            destination_held: false,
            sender_stopped: false,
            sent_late: false,
            last_piece: None,
            queued: PartSet::default(),
            landed: PartSet::default(),
            repeats: 0,
        }
    }

    /// Where it stands.
    pub fn stage(&self) -> Stage {
        self.stage
    }

    /// Whether a part was put on the link and is not known to have landed.
    pub fn is_copying(&self) -> bool {
        !self.queued.is_empty()
    }

    /// Whether prefill holds pages for it.
    pub fn holds_source(&self) -> bool {
        self.source_held
    }

    /// Whether the last piece is known: a part of it was put on the link, or has landed. Its other
    /// parts follow at once.
    pub fn is_sent(&self) -> bool {
        self.last_piece.is_some()
    }

    /// Whether prefill shall compute and send more.
    pub fn wants_more(&self) -> bool {
        match self.stage {
            Stage::Reserved => true,
            Stage::Active => !self.is_sent() && !self.sender_stopped,
            Stage::Waiting | Stage::Closing | Stage::Ended => false,
        }
    }

    /// Takes `signal` in and says what follows.
    pub fn step(&mut self, signal: Signal) -> Vec<Action> {
        let mut actions = Vec::new();
        match (self.stage, signal) {
            (Stage::Ended, _) => {}
            (Stage::Waiting, Signal::Reserved) => {
                self.stage = Stage::Reserved;
                self.destination_held = true;
            }
            (Stage::Waiting, Signal::Refused | Signal::Aborted) => self.stage = Stage::Closing,
            (stage, Signal::ComputeStarted) if stage == Stage::Waiting || self.wants_more() => {
                self.source_held = true;
                self.computing = true;
            }
            (Stage::Waiting, Signal::GaveWay) => {
                if !self.computing && std::mem::take(&mut self.source_held) {
                    actions.push(Action::ReleaseSource);
                }
            }
            (Stage::Reserved, Signal::Refused | Signal::Aborted | Signal::PartLost(_)) => {
                if let Signal::PartLost(part) = signal {
                    self.unqueue(part);
                }
                self.stage = Stage::Closing;
                if self.rules.release == ReleaseOnAbort::AtOnce {
                    self.release_destination(&mut actions);
                }
            }
            (Stage::Active, Signal::Refused | Signal::Aborted) => self.sender_stopped = true,
            (Stage::Active | Stage::Closing, Signal::PartLost(part)) => {
                self.sender_stopped = true;
                self.unqueue(part);
            }
            (Stage::Closing, Signal::TimedOut) if self.rules.release == ReleaseOnAbort::Timeout => {
                self.release_destination(&mut actions);
            }
            (_, Signal::ComputeEnded) => self.computing = false,
            (Stage::Reserved | Stage::Active | Stage::Closing, Signal::PartQueued(part)) => {
                self.queue(part);
            }
            (Stage::Reserved | Stage::Active | Stage::Closing, Signal::PartLanded(part)) => {
                self.land(part);
                if self.stage == Stage::Reserved && self.is_complete(part) {
                    self.stage = Stage::Active;
                    self.destination_held = false;
                    actions.push(Action::Activate);
                }
            }
            // Repeated, late, or before its time: nothing to do.
            (Stage::Reserved | Stage::Active | Stage::Closing, Signal::Reserved)
            | (_, Signal::ComputeStarted)
            | (
                Stage::Waiting,
                Signal::PartQueued(_) | Signal::PartLanded(_) | Signal::PartLost(_),
            )
            | (Stage::Closing, Signal::Refused | Signal::Aborted)
            | (_, Signal::TimedOut | Signal::GaveWay) => {}
        }
        self.give_back(&mut actions);
        actions
    }

    /// The part's number, piece after piece and rank after rank.
    fn number(&self, piece: u32, rank: Rank) -> usize {
        piece as usize * self.ranks as usize + rank.index()
    }

    fn queue(&mut self, part: PartId) {
        self.sent_late |= self.stage == Stage::Closing;
        if part.last {
            self.last_piece = Some(part.piece);
        }
        if !self.landed.contains(self.number(part.piece, part.rank)) {
            self.queued.insert(self.number(part.piece, part.rank));
        }
    }

    fn land(&mut self, part: PartId) {
        if part.last {
            self.last_piece = Some(part.piece);
        }
        self.unqueue(part);
        let is_new = self.landed.insert(self.number(part.piece, part.rank));
        self.repeats += u64::from(!is_new && self.rules.doubled == DoubledMessage::Counted);
    }

    /// The part is on its way no more.
    fn unqueue(&mut self, part: PartId) {
        self.queued.remove(self.number(part.piece, part.rank));
    }

    /// Whether decode takes the transfer for complete, now that `part` has landed.
    fn is_complete(&self, part: PartId) -> bool {
        let landed = self.landed.count + self.repeats;
        match self.rules.completion {
            TransferCompletion::EveryPart => self
                .last_piece
                .is_some_and(|last| landed >= (u64::from(last) + 1) * u64::from(self.ranks)),
            TransferCompletion::LastPartSeen => self.last_piece.is_some_and(|last| {
                part.piece == last
                    && (0..self.ranks)
                        .all(|rank| self.landed.contains(self.number(last, Rank(rank))))
            }),
            TransferCompletion::AnyPart => true,
        }
    }

    fn release_destination(&mut self, actions: &mut Vec<Action>) {
        if std::mem::take(&mut self.destination_held) {
            actions.push(Action::ReleaseDestination);
        }
    }

    /// What can be given back by now.
    fn give_back(&mut self, actions: &mut Vec<Action>) {
        let drained = self.queued.is_empty();
        let source_done = match (self.rules.source_release, self.stage) {
            (SourceRelease::BeforeSent, Stage::Reserved | Stage::Active) => {
                self.is_sent() || self.sender_stopped
            }
            (SourceRelease::Landed | SourceRelease::LandedOrAborted, Stage::Active) => {
                drained && (self.is_sent() || self.sender_stopped)
            }
            (SourceRelease::BeforeSent, Stage::Closing) => true,
            (SourceRelease::Landed, Stage::Closing) => drained,
            (SourceRelease::LandedOrAborted, Stage::Closing) => drained || !self.sent_late,
            (_, Stage::Waiting | Stage::Reserved | Stage::Ended) => false,
        };
        if source_done && !self.computing && std::mem::take(&mut self.source_held) {
            actions.push(Action::ReleaseSource);
        }
        if self.stage == Stage::Closing {
            if drained {
                self.release_destination(actions);
            }
            if drained && !self.source_held && !self.destination_held {
                self.stage = Stage::Ended;
                actions.push(Action::End);
            }
        }
    }
}

#[cfg(test)]
mod tests;
