//! Handoff: facts in any order, repeated and late, end every transfer once and give nothing back
//! that a copy still needs.

use std::collections::BTreeSet;

use super::sizes;
use crate::scenario::generate::Choices;
use crate::units::Rank;
use crate::world::handoff::{Action, Fact, Handoff, Part, Rules};

/// Facts of one case, at most.
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

/// Tells a machine drawn facts, then lets everything come to its end.
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
        told.tell(Fact::Reserved);
    }
    let facts = choices.within(1..=FACTS);
    for _ in 0..facts {
        let part = told.part(choices.within(0..=pieces - 1), choices.within(0..=ranks - 1));
        told.tell(match choices.below(16) {
            0..=5 => Fact::PartLanded(part),
            6..=10 => Fact::PartQueued(part),
            11 => Fact::ComputeStarted,
            12 | 13 => Fact::ComputeEnded,
            14 => *choices.pick(&[Fact::TimedOut, Fact::Reserved]),
            _ => *choices.pick(&[Fact::ComputeStarted, Fact::Refused, Fact::Aborted]),
        });
    }
    told.wind_up();
    sizes::tell("operations", facts.into());
}

impl Told {
    fn part(&self, piece: u32, rank: u32) -> Part {
        Part { piece, rank: Rank(rank), last: piece + 1 == self.pieces }
    }

    fn count(&self, action: Action) -> usize {
        self.answered.iter().filter(|&&answered| answered == action).count()
    }

    fn tell(&mut self, fact: Fact) {
        let ended = self.count(Action::End) > 0;
        self.closed |= matches!(fact, Fact::Refused | Fact::Aborted);
        // Decode reserves nothing for what has failed before.
        self.reserved |= fact == Fact::Reserved && !ended && !self.closed;
        // Copies before the reservation are of no transfer, unless it is closing.
        match fact {
            Fact::PartQueued(part) if self.reserved || self.closed => {
                self.queued.insert((part.piece, part.rank));
            }
            Fact::PartLanded(part) if self.reserved || self.closed => {
                self.landed.insert((part.piece, part.rank));
            }
            _ => {}
        }
        let actions = self.machine.step(fact);
        assert!(actions.is_empty() || !ended, "nothing follows the end: {fact:?} {actions:?}");
        for action in actions {
            self.judge(action, fact);
            self.answered.push(action);
        }
        let again = self.machine.step(fact);
        assert!(again.is_empty(), "a repeated fact changes nothing: {fact:?} {again:?}");
    }

    fn judge(&self, action: Action, fact: Fact) {
        let earlier = self.count(action);
        assert_eq!(earlier, 0, "once is enough: {action:?} after {:?}", self.answered);
        let drained = self.queued.is_subset(&self.landed);
        match action {
            Action::Activate => {
                let parts = (self.pieces * self.ranks) as usize;
                assert_eq!(self.landed.len(), parts, "activated with all parts: {fact:?}");
                assert_eq!(self.count(Action::ReleaseDestination), 0, "activated with its pages");
            }
            Action::ReleaseDestination => {
                assert!(drained, "copies into the pages are in flight: {fact:?}");
                assert_eq!(self.count(Action::Activate), 0, "the pages are decode's own");
            }
            Action::ReleaseSource => {
                assert!(drained, "copies from the pages are in flight: {fact:?}");
            }
            Action::End => {
                assert_eq!(self.count(Action::Activate), 0, "an end without activation");
                let held = self.reserved && self.count(Action::ReleaseDestination) == 0;
                assert!(!held && !self.machine.holds_source(), "it ends with pages: {fact:?}");
            }
        }
    }

    /// The client gives up and every copy lands: then nothing is held.
    fn wind_up(mut self) {
        self.tell(Fact::Aborted);
        self.tell(Fact::ComputeEnded);
        for (piece, rank) in self.queued.clone() {
            self.tell(Fact::PartLanded(self.part(piece, rank.0)));
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
