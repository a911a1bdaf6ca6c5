//! The handoff as a state machine: signals in any order, and what follows from each by the definition.

use proptest::strategy::Union;
use proptest_state_machine::{ReferenceStateMachine, StateMachineTest, prop_state_machine};

use super::*;

/// What is known of a transfer.
#[derive(Clone, Debug)]
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
    on_the_way: BTreeSet<(u32, u32)>,
    landed: BTreeSet<(u32, u32)>,
    /// Messages that a part has landed, each time that one came.
    messages: u32,
    /// What the last signal leads to.
    actions: Vec<Action>,
}

impl Transfer {
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

    fn part(&mut self, part: Part, has_landed: bool) {
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
        } else if !self.landed.contains(&place) {
            self.on_the_way.insert(place);
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

    /// Pages go back once no copy needs them and nobody computes into them, the source perhaps earlier.
    fn settle(&mut self) {
        let is_drained = self.on_the_way.is_empty();
        let is_done = match self.rules.source_release {
            _ if self.is_closed => true,
            SourceRelease::Landed => self.is_active && (self.is_sent || self.is_stopped),
            SourceRelease::BeforeSent => self.is_reserved && (self.is_sent || self.is_stopped),
        };
        let may_go = is_drained || self.rules.source_release == SourceRelease::BeforeSent;
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

impl ReferenceStateMachine for Transfer {
    type State = Transfer;
    type Transition = Signal;

    fn init_state() -> BoxedStrategy<Transfer> {
        let rules = (
            proptest::sample::select(TransferCompletion::ALL),
            proptest::sample::select(ReleaseOnAbort::ALL),
            proptest::sample::select(SourceRelease::ALL),
            proptest::sample::select(DoubledMessage::ALL),
        );
        let rules = rules.prop_map(|(completion, release, source_release, doubled)| Rules {
            completion,
            release,
            source_release,
            doubled,
        });
        let transfer = |(ranks, pieces, rules)| Transfer {
            ranks,
            pieces,
            rules,
            is_reserved: false,
            is_active: false,
            is_closed: false,
            is_over: false,
            is_stopped: false,
            is_computing: false,
            holds_source: false,
            holds_destination: false,
            is_sent: false,
            on_the_way: BTreeSet::new(),
            landed: BTreeSet::new(),
            messages: 0,
            actions: Vec::new(),
        };
        (1u32..4, 1u32..4, rules).prop_map(transfer).boxed()
    }

    fn transitions(transfer: &Transfer) -> BoxedStrategy<Signal> {
        let pieces = transfer.pieces;
        let part = (0..pieces, 0..transfer.ranks)
            .prop_map(move |(piece, rank)| part(piece, rank, piece + 1 == pieces));
        Union::new_weighted(vec![
            (if transfer.is_reserved { 1 } else { 20 }, Just(Signal::Reserved).boxed()),
            (2, Just(Signal::ComputeStarted).boxed()),
            (3, Just(Signal::ComputeEnded).boxed()),
            (6, part.clone().prop_map(Signal::PartQueued).boxed()),
            (9, part.clone().prop_map(Signal::PartLanded).boxed()),
            (1, part.prop_map(Signal::PartLost).boxed()),
            (1, Just(Signal::GaveWay).boxed()),
            (1, Just(Signal::Refused).boxed()),
            (1, Just(Signal::Aborted).boxed()),
            (1, Just(Signal::TimedOut).boxed()),
        ])
        .boxed()
    }

    fn apply(mut transfer: Transfer, signal: &Signal) -> Transfer {
        transfer.actions.clear();
        match *signal {
            _ if transfer.is_over => return transfer,
            Signal::Reserved => {
                if !transfer.is_reserved && !transfer.is_closed {
                    transfer.is_reserved = true;
                    transfer.holds_destination = true;
                }
            }
            Signal::ComputeStarted => {
                // Before the reservation, prefill may begin as well.
                if transfer.wants_more() || transfer.stage() == Stage::Waiting {
                    transfer.is_computing = true;
                    transfer.holds_source = true;
                }
            }
            Signal::ComputeEnded => transfer.is_computing = false,
            Signal::GaveWay => {
                let gives = transfer.stage() == Stage::Waiting && !transfer.is_computing;
                if gives && std::mem::take(&mut transfer.holds_source) {
                    transfer.actions.push(Action::ReleaseSource);
                }
            }
            // Copies before the reservation are of no transfer.
            Signal::PartQueued(_) | Signal::PartLanded(_) | Signal::PartLost(_)
                if transfer.stage() == Stage::Waiting => {}
            Signal::PartQueued(part) => transfer.part(part, false),
            Signal::PartLanded(part) => transfer.part(part, true),
            Signal::PartLost(part) => {
                transfer.on_the_way.remove(&(part.piece, part.rank.0));
                transfer.fails();
            }
            Signal::Refused | Signal::Aborted => transfer.fails(),
            Signal::TimedOut => {
                if transfer.is_closed && transfer.rules.release == ReleaseOnAbort::Timeout {
                    transfer.release_destination();
                }
            }
        }
        transfer.settle();
        transfer
    }
}

struct HandoffMachine;

impl StateMachineTest for HandoffMachine {
    type SystemUnderTest = Handoff;
    type Reference = Transfer;

    fn init_test(transfer: &Transfer) -> Handoff {
        Handoff::new(transfer.ranks, transfer.rules)
    }

    fn apply(mut handoff: Handoff, transfer: &Transfer, signal: Signal) -> Handoff {
        assert_eq!(handoff.step(signal), transfer.actions, "{signal:?}");
        handoff
    }

    fn check_invariants(handoff: &Handoff, transfer: &Transfer) {
        assert_eq!(handoff.stage(), transfer.stage());
        assert_eq!(handoff.holds_source(), transfer.holds_source);
        assert_eq!(handoff.is_copying(), !transfer.on_the_way.is_empty());
        assert_eq!(handoff.is_sent(), transfer.is_sent);
        assert_eq!(handoff.wants_more(), transfer.wants_more());
    }
}

prop_state_machine! {
    #[test]
    fn a_handoff_answers_every_signal_as_defined(sequential 1..60 => HandoffMachine);
}
