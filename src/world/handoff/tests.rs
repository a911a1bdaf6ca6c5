use proptest::prelude::*;

use super::*;
use crate::reference::handoff::{Case, check};

fn part(piece: u32, rank: u32, last: bool) -> PartId {
    PartId { piece, rank: Rank(rank), last }
}

fn handoff() -> Handoff {
    Handoff::new(2, Rules::default())
}

/// A handoff of two ranks and one piece at every stage, with what led there.
fn at(stage: Stage) -> Handoff {
    let mut machine = handoff();
    let signals: &[Signal] = match stage {
        Stage::Waiting => &[],
        Stage::Reserved => &[Signal::Reserved],
        Stage::Active => &[
            Signal::Reserved,
            Signal::ComputeStarted,
            Signal::ComputeEnded,
            Signal::PartQueued(PartId { piece: 0, rank: Rank(0), last: true }),
            Signal::PartQueued(PartId { piece: 0, rank: Rank(1), last: true }),
            Signal::PartLanded(PartId { piece: 0, rank: Rank(0), last: true }),
            Signal::PartLanded(PartId { piece: 0, rank: Rank(1), last: true }),
        ],
        Stage::Closing => &[
            Signal::Reserved,
            Signal::ComputeStarted,
            Signal::PartQueued(PartId { piece: 0, rank: Rank(0), last: false }),
            Signal::Aborted,
        ],
        Stage::Ended => &[Signal::Aborted],
    };
    for &signal in signals {
        machine.step(signal);
    }
    assert_eq!(machine.stage(), stage);
    machine
}

/// The stage that follows a signal, and the actions.
type Answer = (Stage, Vec<Action>);

/// Every pair of stage and signal, decided: the stage that follows and the actions.
#[test]
fn every_stage_answers_every_signal() {
    use Action::{Activate, End, ReleaseDestination, ReleaseSource};
    use Stage::{Active, Closing, Ended, Reserved, Waiting};
    let first = part(0, 0, true);
    let signals = [
        Signal::Reserved,
        Signal::ComputeStarted,
        Signal::ComputeEnded,
        Signal::PartQueued(first),
        Signal::PartLanded(first),
        Signal::Refused,
        Signal::Aborted,
        Signal::TimedOut,
    ];
    let stays = |stage| (stage, vec![]);
    let closes_empty = (Ended, vec![ReleaseDestination, End]);
    let table: [(Stage, [Answer; 8]); 5] = [
        (
            Waiting,
            [
                stays(Reserved),
                stays(Waiting),
                stays(Waiting),
                stays(Waiting),
                stays(Waiting),
                (Ended, vec![End]),
                (Ended, vec![End]),
                stays(Waiting),
            ],
        ),
        (
            Reserved,
            [
                stays(Reserved),
                stays(Reserved),
                stays(Reserved),
                stays(Reserved),
                stays(Reserved),
                closes_empty.clone(),
                closes_empty,
                stays(Reserved),
            ],
        ),
        (Active, std::array::from_fn(|_| stays(Active))),
        // Its one copy has landed: the destination is free. Prefill is still computing.
        (
            Closing,
            std::array::from_fn(|signal| match signals[signal] {
                Signal::PartLanded(_) => (Closing, vec![ReleaseDestination]),
                _ => stays(Closing),
            }),
        ),
        (Ended, std::array::from_fn(|_| stays(Ended))),
    ];
    for (stage, row) in table {
        for (signal, (then, actions)) in signals.into_iter().zip(row) {
            let mut machine = at(stage);
            assert_eq!(machine.step(signal), actions, "{stage:?} told {signal:?}");
            assert_eq!(machine.stage(), then, "{stage:?} told {signal:?}");
        }
    }
    let mut machine = at(Reserved);
    machine.step(Signal::PartLanded(first));
    assert_eq!(machine.step(Signal::PartLanded(part(0, 1, true))), [Activate]);
    let mut machine = at(Closing);
    machine.step(Signal::PartLanded(part(0, 0, false)));
    assert_eq!(machine.step(Signal::ComputeEnded), [ReleaseSource, End]);
}

#[test]
fn a_last_part_that_overtakes_completes_nothing_until_the_earlier_one_is_there() {
    for (completion, early) in [
        (TransferCompletion::EveryPart, false),
        (TransferCompletion::LastPartSeen, true),
        (TransferCompletion::AnyPart, true),
    ] {
        let mut machine = Handoff::new(1, Rules { completion, ..Rules::default() });
        machine.step(Signal::Reserved);
        let at_last = machine.step(Signal::PartLanded(part(1, 0, true)));
        let at_first = machine.step(Signal::PartLanded(part(0, 0, false)));
        assert_eq!(at_last == [Action::Activate], early, "{completion:?}");
        assert_eq!(at_first == [Action::Activate], !early, "{completion:?}");
    }
}

#[test]
fn destination_pages_come_back_when_the_release_says() {
    let copying = |release| {
        let mut machine = Handoff::new(1, Rules { release, ..Rules::default() });
        for signal in
            [Signal::Reserved, Signal::ComputeStarted, Signal::PartQueued(part(0, 0, true))]
        {
            machine.step(signal);
        }
        machine.step(Signal::ComputeEnded);
        machine
    };
    let landed = Signal::PartLanded(part(0, 0, true));
    let both = [Action::ReleaseSource, Action::ReleaseDestination, Action::End];

    let mut drained = copying(ReleaseOnAbort::Drained);
    assert_eq!(drained.step(Signal::Aborted), []);
    assert_eq!(drained.step(Signal::TimedOut), []);
    assert_eq!(drained.step(landed), both);

    let mut at_once = copying(ReleaseOnAbort::AtOnce);
    assert_eq!(at_once.step(Signal::Aborted), [Action::ReleaseDestination]);
    assert_eq!(at_once.step(landed), [Action::ReleaseSource, Action::End]);

    let mut timeout = copying(ReleaseOnAbort::Timeout);
    assert_eq!(timeout.step(Signal::Aborted), []);
    assert_eq!(timeout.step(Signal::TimedOut), [Action::ReleaseDestination]);
    assert_eq!(timeout.step(landed), [Action::ReleaseSource, Action::End]);
}

/// Rules that are sound in every second case.
fn rules() -> impl Strategy<Value = Rules> {
    let any = (
        proptest::sample::select(TransferCompletion::ALL),
        proptest::sample::select(ReleaseOnAbort::ALL),
        proptest::sample::select(SourceRelease::ALL),
        proptest::sample::select(DoubledMessage::ALL),
    );
    let any = any.prop_map(|(completion, release, source_release, doubled)| Rules {
        completion,
        release,
        source_release,
        doubled,
    });
    prop_oneof![Just(Rules::default()), any]
}

/// Signals in any order, some twice, to a transfer that decode mostly reserves for at first.
fn cases() -> impl Strategy<Value = Case> {
    let case = |(ranks, pieces, rules)| {
        let part =
            (0..pieces, 0..ranks).prop_map(move |(piece, rank)| Case::part(pieces, piece, rank));
        let signal = prop_oneof![
            1 => Just(Signal::Reserved),
            2 => Just(Signal::ComputeStarted),
            3 => Just(Signal::ComputeEnded),
            6 => part.clone().prop_map(Signal::PartQueued),
            9 => part.clone().prop_map(Signal::PartLanded),
            1 => part.prop_map(Signal::PartLost),
            1 => Just(Signal::GaveWay),
            1 => Just(Signal::Refused),
            1 => Just(Signal::Aborted),
            1 => Just(Signal::TimedOut),
        ];
        let begins = prop_oneof![7 => Just(Some(Signal::Reserved)), 1 => Just(None)];
        (begins, proptest::collection::vec(signal, 0..60)).prop_map(move |(first, rest)| Case {
            ranks,
            pieces,
            rules,
            signals: first.into_iter().chain(rest).collect(),
        })
    };
    (1u32..4, 1u32..4, rules()).prop_flat_map(case)
}

proptest! {
    #[test]
    fn a_handoff_answers_every_signal_as_defined(case in cases()) {
        check(&case);
    }
}
