//! What goes wrong from outside: clients that give up, messages lost and doubled, caches flushed.

use std::collections::BTreeMap;

use super::World;
use super::handoff::{Part as HandoffPart, Signal, Stage};
use super::queue::Timer;
use super::request::Place;
use super::transfer::handoff_part;
use crate::behaviour::{AbortCleanup, Flush, LostMessage};
use crate::cache::partial::PartialIndex;
use crate::event::{Outcome, Part, Side};
use crate::finding::Mark;
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
#[derive(Clone, Copy)]
enum MessageFault {
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

    /// The numbers of those that have not struck.
    pub(super) fn idle(&self) -> Vec<usize> {
        let all = self.have_struck.iter().enumerate();
        all.filter(|(_, has_struck)| !**has_struck).map(|(number, _)| number).collect()
    }
}

impl World<'_> {
    /// Plans the faults that do not wait for a request.
    pub(super) fn plan_faults(&mut self) {
        let aborts = self.faults.aborts.keys().filter(|(_, moment)| *moment == Moment::Start);
        for (request, moment) in aborts.copied().collect::<Vec<_>>() {
            self.moment(request, moment);
        }
        for (fault, one) in self.scenario.faults.iter().enumerate() {
            if let Fault::Flush { side, server, at } = *one {
                self.queue.plan(at, Timer::Flushes { side, server: server as usize, fault });
            }
        }
    }

    /// `request` has reached `moment`: its aborts that count from there are planned.
    pub(super) fn moment(&mut self, request: RequestId, moment: Moment) {
        for &(after, fault) in self.faults.aborts.get(&(request, moment)).into_iter().flatten() {
            self.queue.plan(self.log.now + after, Timer::Aborts { request, fault });
        }
    }

    /// A client gives up, in whatever state its request is.
    pub(super) fn abort(&mut self, request: RequestId, fault: usize) {
        let Some(live) = self.live[request.index()].as_mut() else { return };
        // Nobody gives up twice, or what has ended.
        self.faults.have_struck[fault] |= !live.gave_up && live.place != Place::Ended;
        live.gave_up = true;
        let decode = live.decode;
        match live.place {
            Place::Ended => {}
            Place::Arriving => {
                self.log.mark(Mark::AbortWaiting);
                self.leave_queue(request, AbortCleanup::ForgetsWaiting);
                self.hand(request, Signal::Aborted);
            }
            Place::Transferring => self.abort_transfer(request),
            Place::Running => {
                self.log.mark(Mark::AbortRunning);
                self.forget(request, AbortCleanup::ForgetsRunning);
                let in_step = self.decodes[decode].step.as_ref();
                if !in_step.is_some_and(|batch| batch.contains(&request)) {
                    self.drop_running(request);
                }
            }
            Place::Retracted => {
                self.log.mark(Mark::AbortRetracted);
                live.host = None;
                let is_over = live.handoff.stage() == Stage::Active;
                self.leave_queue(request, AbortCleanup::ForgetsRetracted);
                self.hand(request, Signal::Aborted);
                // A transfer that has not begun ends by what it is told.
                if is_over {
                    self.end(request, Outcome::Aborted);
                }
            }
        }
        self.wake_decode(decode);
    }

    fn abort_transfer(&mut self, request: RequestId) {
        let live = self.live(request);
        let is_copying = live.handoff.is_copying();
        let (mark, state) = if live.handoff.is_sent() {
            (Mark::AbortCopying, AbortCleanup::ForgetsCopying)
        } else if live.handoff.holds_source() {
            (Mark::AbortPrefilling, AbortCleanup::ForgetsChunking)
        } else {
            (Mark::AbortReserved, AbortCleanup::ForgetsReserved)
        };
        self.log.mark(mark);
        if is_copying {
            self.log.mark(Mark::AbortInFlight);
        }
        self.forget(request, state);
        self.close_transfer(request, Signal::Aborted);
    }

    /// Forgets what an aborted request holds, if that is what happens in `state`.
    fn forget(&mut self, request: RequestId, state: AbortCleanup) {
        if self.switches.abort_cleanup == state {
            self.live_mut(request).was_forgotten = true;
        }
    }

    /// Takes an aborted request out of the queues of its decode server, unless it is forgotten there.
    fn leave_queue(&mut self, request: RequestId, state: AbortCleanup) {
        self.forget(request, state);
        let live = self.live(request);
        let (index, was_forgotten) = (live.decode, live.was_forgotten);
        if !was_forgotten {
            let decode = &mut self.decodes[index];
            decode.arriving.retain(|&waiting| waiting != request);
            decode.retracted.retain(|&waiting| waiting != request);
        }
    }

    /// A part has landed: its message goes to the handoff, or is lost or doubled.
    pub(super) fn send_message(&mut self, part: Part) {
        let live = self.live_mut(part.request);
        let number = live.messages;
        live.messages += 1;
        let again = self.log.now + Tick(self.scenario.link.message_ticks);
        let Some(&(what, fault)) = self.faults.messages.get(&(part.request, number)) else {
            return self.told_of_part(part, Signal::PartLanded);
        };
        self.faults.have_struck[fault] = true;
        match what {
            MessageFault::Lost => {
                self.log.mark(Mark::MessageLost);
                if self.switches.lost_message == LostMessage::Fails {
                    self.queue.plan(again, Timer::MessageIsMissed { part });
                }
            }
            MessageFault::Doubled => {
                self.log.mark(Mark::MessageDoubled);
                self.told_of_part(part, Signal::PartLanded);
                self.queue.plan(again, Timer::MessageComesAgain { part });
            }
        }
    }

    /// A message about a part arrives; it counts only for the transfer that the part belongs to.
    pub(super) fn told_of_part(&mut self, part: Part, what: impl Fn(HandoffPart) -> Signal) {
        if self.live(part.request).attempt == part.attempt {
            let told = what(handoff_part(part));
            match told {
                Signal::PartLost(_) => self.close_transfer(part.request, told),
                _ => self.hand(part.request, told),
            }
        }
    }

    /// Somebody flushes a server's cache.
    pub(super) fn flush(&mut self, side: Side, server: usize, fault: usize) {
        self.faults.have_struck[fault] = true;
        let store = match side {
            Side::Prefill => &self.prefills[server].store,
            Side::Decode => &self.decodes[server].store,
        };
        let all = store.pool.total();
        let is_idle = store.room() == all;
        self.log.mark(if is_idle { Mark::FlushDone } else { Mark::FlushInUse });
        match self.switches.flush {
            Flush::Refused if !is_idle => {}
            Flush::Refused => match side {
                Side::Prefill => {
                    self.prefills[server].store.make_room(&mut self.log, all);
                }
                Side::Decode => self.evict_for(server, all),
            },
            Flush::AtOnce => self.clear(side, server),
        }
        self.wake((side, server));
    }

    /// Clears cache and allocator of a server, whoever holds what.
    fn clear(&mut self, side: Side, server: usize) {
        match side {
            Side::Prefill => self.prefills[server].store.clear(&mut self.log),
            Side::Decode => {
                let decode = &mut self.decodes[server];
                decode.store.clear(&mut self.log);
                decode.stuck = false;
                if let Some(partial) = &mut decode.partial {
                    *partial = PartialIndex::new(decode.store.pool.page());
                }
            }
        }
        // The locks went with the cache.
        for live in self.live.iter_mut().flatten() {
            match side {
                Side::Prefill if live.prefill == server => {
                    live.source.iter_mut().for_each(|source| source.anchors.clear());
                }
                Side::Decode if live.decode == server => {
                    live.target.iter_mut().for_each(|target| target.anchor = None);
                }
                Side::Prefill | Side::Decode => {}
            }
        }
    }
}
