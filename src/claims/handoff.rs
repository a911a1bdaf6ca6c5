//! Handoff: signals in any order, repeated and late, are answered as defined, end every transfer
//! once, and give nothing back that a copy still needs.

use super::sizes;
use crate::behaviour::{DoubledMessage, ReleaseOnAbort, SourceRelease, TransferCompletion};
use crate::reference::handoff::{Case, check};
use crate::scenario::generate::Choices;
use crate::world::handoff::{Rules, Signal};

/// Signals of one case, at most.
const SIGNALS: u32 = 64;

/// Gives a handoff drawn signals.
pub fn ends_once_whatever_it_is_told(choices: &mut impl Choices) {
    let (ranks, pieces) = (choices.within(1..=4), choices.within(1..=4));
    let mut case = Case { ranks, pieces, rules: Rules::default(), signals: Vec::new() };
    // The lowest draw is sound, so that most cases keep the laws of sound transfers as well.
    if choices.chance(1, 4) {
        case.rules = Rules {
            completion: *choices.pick(TransferCompletion::ALL),
            release: *choices.pick(ReleaseOnAbort::ALL),
            source_release: *choices.pick(SourceRelease::ALL),
            doubled: *choices.pick(DoubledMessage::ALL),
        };
    }
    if choices.chance(7, 8) {
        case.signals.push(Signal::Reserved);
    }
    let signals = choices.within(1..=SIGNALS);
    for _ in 0..signals {
        let (piece, rank) = (choices.within(0..=pieces - 1), choices.within(0..=ranks - 1));
        let part = Case::part(pieces, piece, rank);
        case.signals.push(match choices.below(16) {
            0..=5 => Signal::PartLanded(part),
            6..=10 => Signal::PartQueued(part),
            11 => Signal::ComputeStarted,
            12 | 13 => Signal::ComputeEnded,
            14 => *choices.pick(&[Signal::TimedOut, Signal::Reserved, Signal::GaveWay]),
            _ => *choices.pick(&[
                Signal::ComputeStarted,
                Signal::Refused,
                Signal::Aborted,
                Signal::PartLost(part),
            ]),
        });
    }
    check(&case);
    sizes::tell("operations", signals.into());
}
