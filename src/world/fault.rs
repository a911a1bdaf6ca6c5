//! What goes wrong from outside: clients that give up, messages lost and doubled, caches flushed.

use std::collections::BTreeMap;

use crate::scenario::{Fault, Moment};
use crate::units::{RequestId, Tick};

/// The faults of a scenario, by what sets them off.
pub(super) struct Faults {
    /// How long after a moment of a request's life its client gives up, and by which fault.
    aborts: BTreeMap<(RequestId, Moment), Vec<(Tick, usize)>>,
    /// What happens to a request's messages, by their number, and by which fault.
    messages: BTreeMap<(RequestId, u32), (MessageFault, usize)>,
    /// For every fault of the scenario, whether it has struck.
    have_struck: Vec<bool>,
}

/// What can happen to the message that a part has landed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MessageFault {
    Lost,
    Doubled,
}

impl Faults {
    pub(super) fn of(faults: &[Fault]) -> Faults {
        let mut list = Faults {
            aborts: BTreeMap::new(),
            messages: BTreeMap::new(),
            have_struck: vec![false; faults.len()],
        };
        for (number, fault) in faults.iter().enumerate() {
            match *fault {
                Fault::Abort { request, after, when } => {
                    list.aborts.entry((request, when)).or_default().push((after, number));
                }
                Fault::Lose { request, message } => {
                    list.messages.insert((request, message), (MessageFault::Lost, number));
                }
                Fault::Double { request, message } => {
                    list.messages.insert((request, message), (MessageFault::Doubled, number));
                }
                // Planned at the start, and nothing to look up.
                Fault::Flush { .. } => {}
            }
        }
        list
    }

    /// Requests of which an abort counts from the start of the run.
    pub(super) fn aborted_from_start(&self) -> Vec<RequestId> {
        let from_start = self.aborts.keys().filter(|(_, moment)| *moment == Moment::Start);
        from_start.map(|&(request, _)| request).collect()
    }

    /// The aborts whose delay counts from this moment: the delay, and the fault's number.
    pub(super) fn aborts_from(
        &self,
        request: RequestId,
        moment: Moment,
    ) -> impl Iterator<Item = (Tick, usize)> {
        self.aborts.get(&(request, moment)).into_iter().flatten().copied()
    }

    /// What happens to this message of the request, which counts as struck then.
    pub(super) fn strike_message(
        &mut self,
        request: RequestId,
        number: u32,
    ) -> Option<MessageFault> {
        let (what, fault) = *self.messages.get(&(request, number))?;
        self.strike(fault);
        Some(what)
    }

    /// This fault has struck.
    pub(super) fn strike(&mut self, fault: usize) {
        self.have_struck[fault] = true;
    }

    /// The numbers of those that have not struck.
    pub(super) fn idle(&self) -> Vec<usize> {
        let all = self.have_struck.iter().enumerate();
        all.filter(|(_, has_struck)| !**has_struck).map(|(number, _)| number).collect()
    }
}
