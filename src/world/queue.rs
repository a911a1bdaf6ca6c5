//! The queue of timers: what is due when, in an order that is the same on every machine.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::event::{Part, Side};
use crate::units::{RequestId, Tick};

/// Something that is due. Timers of one tick go off in the order of their [`class`](Timer::class),
/// those of one class in the order in which they were set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Timer {
    /// The copy at the head of this link's queue has been served.
    CopyServed { link: usize },
    /// The copy that was the `served`-th of this link, and was delayed, lands.
    CopyLands { link: usize, served: u64 },
    /// The message that this part has landed comes a second time.
    MessageComesAgain { part: Part },
    /// The sender misses the message that this part has landed.
    MessageIsMissed { part: Part },
    /// A prefill server's step ends.
    PrefillStepEnds { server: usize },
    /// A decode server's step ends.
    DecodeStepEnds { server: usize },
    /// The list of reserved pages reaches prefill.
    DestinationKnown { request: RequestId, attempt: u32 },
    /// The next request of the workload arrives.
    Arrives,
    /// A client gives up, by this fault of the scenario.
    Aborts { request: RequestId, fault: usize },
    /// The time to wait for an aborted request's copies is over.
    ReleaseTimesOut { request: RequestId, attempt: u32 },
    /// Somebody flushes the cache of this server, by this fault of the scenario.
    Flushes { side: Side, server: usize, fault: usize },
}

impl Timer {
    /// Place in the order of one tick.
    fn class(self) -> u8 {
        match self {
            Timer::CopyServed { .. } => 0,
            Timer::CopyLands { .. } => 1,
            Timer::MessageComesAgain { .. } => 2,
            Timer::MessageIsMissed { .. } => 3,
            Timer::PrefillStepEnds { .. } => 4,
            Timer::DecodeStepEnds { .. } => 5,
            Timer::DestinationKnown { .. } => 6,
            Timer::Arrives => 7,
            Timer::Aborts { .. } => 8,
            Timer::ReleaseTimesOut { .. } => 9,
            Timer::Flushes { .. } => 10,
        }
    }
}

/// Timers by (tick, class, sequence).
#[derive(Default)]
pub(super) struct Queue {
    heap: BinaryHeap<Reverse<(Tick, u8, u64, Timer)>>,
    /// How many timers were set: the number of the last one.
    sequence: u64,
}

impl Queue {
    /// Sets `timer` to `tick`.
    pub(super) fn set(&mut self, tick: Tick, timer: Timer) {
        self.sequence += 1;
        self.heap.push(Reverse((tick, timer.class(), self.sequence, timer)));
    }

    /// Takes the next timer out.
    pub(super) fn next(&mut self) -> Option<(Tick, Timer)> {
        self.heap.pop().map(|Reverse((tick, _, _, timer))| (tick, timer))
    }
}
