//! Handoff: signals in any order, repeated and late, end every transfer once and give nothing back
//! that a copy still needs.

use std::collections::BTreeSet;

use super::sizes;
use crate::scenario::generate::Choices;
use crate::units::Rank;
use crate::world::handoff::{Action, Handoff, Part, Rules, Signal};

/// Signals of one case, at most.
const FACTS: u32 = 64;

/// What was told and answered so far.
struct Told {
    machine: Handoff,
    ranks: u32,
    pieces: u32,
    reserved: bool,
    /// Whether it was refused or aborted.
    closed: bool,
    queued: BTreeSet<(u32, Rank)>,
    landed: BTreeSet<(u32, Rank)>,
    answered: Vec<Action>,
}

/// Tells a machine drawn signals, then lets everything come to its end.
pub fn ends_once_whatever_it_is_told(choices: &mut impl Choices) {
    let (ranks, pieces) = (choices.within(1..=4), choices.within(1..=4));
    let machine = Handoff::new(ranks, Rules::default());
    let mut told = Told {
        machine,
        ranks,
        pieces,
        reserved: false,
        closed: false,
        queued: BTreeSet::new(),
        landed: BTreeSet::new(),
        answered: Vec::new(),
    };
    if choices.chance(7, 8) {
        told.tell(Signal::Reserved);
    }
    let signals = choices.within(1..=FACTS);
    for _ in 0..signals {
        let part = told.part(choices.within(0..=pieces - 1), choices.within(0..=ranks - 1));
        told.tell(match choices.below(16) {
            0..=5 => Signal::PartLanded(part),
            6..=10 => Signal::PartQueued(part),
            11 => Signal::ComputeStarted,
            12 | 13 => Signal::ComputeEnded,
            14 => *choices.pick(&[Signal::TimedOut, Signal::Reserved]),
            _ => *choices.pick(&[Signal::ComputeStarted, Signal::Refused, Signal::Aborted]),
        });
    }
    told.wind_up();
    sizes::tell("operations", signals.into());
}

impl Told {
    fn part(&self, piece: u32, rank: u32) -> Part {
        Part { piece, rank: Rank(rank), last: piece + 1 == self.pieces }
    }

    fn count(&self, action: Action) -> usize {
        self.answered.iter().filter(|&&answered| answered == action).count()
    }

    fn tell(&mut self, signal: Signal) {
        let ended = self.count(Action::End) > 0;
        self.closed |= matches!(signal, Signal::Refused | Signal::Aborted);
        // Decode reserves nothing for what has failed before.
        self.reserved |= signal == Signal::Reserved && !ended && !self.closed;
        // Copies before the reservation are of no transfer, unless it is closing.
        match signal {
            Signal::PartQueued(part) if self.reserved || self.closed => {
                self.queued.insert((part.piece, part.rank));
            }
            Signal::PartLanded(part) if self.reserved || self.closed => {
                self.landed.insert((part.piece, part.rank));
            }
            _ => {}
        }
        let actions = self.machine.step(signal);
        assert!(actions.is_empty() || !ended, "nothing follows the end: {signal:?} {actions:?}");
        for action in actions {
            self.judge(action, signal);
            self.answered.push(action);
        }
        let again = self.machine.step(signal);
        assert!(again.is_empty(), "a repeated signal changes nothing: {signal:?} {again:?}");
    }

    fn judge(&self, action: Action, signal: Signal) {
        let earlier = self.count(action);
        assert_eq!(earlier, 0, "once is enough: {action:?} after {:?}", self.answered);
        let drained = self.queued.is_subset(&self.landed);
        match action {
            Action::Activate => {
                let parts = (self.pieces * self.ranks) as usize;
                assert_eq!(self.landed.len(), parts, "activated with all parts: {signal:?}");
                assert_eq!(self.count(Action::ReleaseDestination), 0, "activated with its pages");
            }
            Action::ReleaseDestination => {
                assert!(drained, "copies into the pages are in flight: {signal:?}");
                assert_eq!(self.count(Action::Activate), 0, "the pages are decode's own");
            }
            Action::ReleaseSource => {
                assert!(drained, "copies from the pages are in flight: {signal:?}");
            }
            Action::End => {
                assert_eq!(self.count(Action::Activate), 0, "an end without activation");
                let held = self.reserved && self.count(Action::ReleaseDestination) == 0;
                assert!(!held && !self.machine.holds_source(), "it ends with pages: {signal:?}");
            }
        }
    }

    /// The client gives up and every copy lands: then nothing is held.
    fn wind_up(mut self) {
        self.tell(Signal::Aborted);
        self.tell(Signal::ComputeEnded);
        for (piece, rank) in self.queued.clone() {
            self.tell(Signal::PartLanded(self.part(piece, rank.0)));
        }
        let activated = self.count(Action::Activate);
        assert!(!self.machine.holds_source(), "prefill's pages are given back");
        assert_eq!(activated + self.count(Action::End), 1, "active or ended: {:?}", self.answered);
        assert!(
            !self.reserved || activated + self.count(Action::ReleaseDestination) == 1,
            "decode's pages are its own or given back: {:?}",
            self.answered
        );
    }
}
