//! A decode server's turn, where it works between its steps only (`decode_turn = "between_steps"`):
//! retracted requests come back, else arrivals are let in, what has landed is taken up, and then a
//! step begins.

use super::super::context::Context;
use super::Decode;
use super::request::Status;
use crate::behaviour::DecodeTurn;
use crate::units::{Pages, RequestId};

/// What a turn can change. A turn that leaves it as it was would do so again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::world) struct Standing {
    waiting: usize,
    retracted: usize,
    transferring: usize,
    failed: usize,
    ended: usize,
    running: usize,
    free: Pages,
    room: Pages,
}

impl Decode {
    /// The step that ends is the request's last.
    pub(super) fn count_as_running(&mut self, request: RequestId, cx: &Context<'_>) {
        match cx.setup.switches.decode_turn {
            DecodeTurn::AnyTime => {}
            DecodeTurn::BetweenSteps => {
                let generated = cx.requests[request].generated(self.stored(request));
                self.ended.push((request, generated));
            }
        }
    }

    /// How the server stands, if it is between two steps.
    pub(in crate::world) fn between_steps(&self) -> Option<Standing> {
        self.step.is_none().then(|| Standing {
            waiting: self.waiting.len(),
            retracted: self.retracted.len(),
            transferring: self.transfers.len(),
            failed: self.failed.len(),
            ended: self.ended.len(),
            running: self.running.len(),
            free: self.store.pool.available(),
            room: self.store.room(),
        })
    }

    /// Gives back what failed transfers had reserved, where no copy into it is on its way.
    pub(in crate::world) fn give_back_failed(&mut self, cx: &mut Context<'_>) {
        let requests = &self.requests;
        let drained = self.failed.extract_if(.., |request| requests[*request].is_drained);
        for request in drained.collect::<Vec<_>>() {
            let has_landed = self.requests[request].status == Status::Landed;
            self.requests[request].is_drained = false;
            self.return_reserved(request, cx);
            if has_landed {
                self.end_unfinished(request, cx);
            }
        }
    }

    /// Notices which transfers have failed since the turn before.
    fn find_failed(&mut self) {
        let requests = &self.requests;
        let has_failed = |request: &mut RequestId| {
            let state = &requests[*request];
            state.gave_up || state.is_drained
        };
        self.failed.extend(self.transfers.extract_if(.., has_failed));
    }

    /// Takes up what has landed, unless a retracted request waits, behind those that have come
    /// back.
    pub(in crate::world) fn join(&mut self, cx: &mut Context<'_>) {
        let resumed = std::mem::take(&mut self.joining);
        let mut landed = Vec::new();
        if self.retracted.is_empty() {
            self.find_failed();
            landed = self.find_landed();
            for &request in &landed {
                self.take_up(request, cx);
            }
        }
        let joining = [resumed, landed].concat();
        for &request in &joining {
            self.keep_prompt(request, cx);
        }
        for request in joining {
            self.start(request, cx);
        }
        self.ended.clear();
    }

    /// Requests whose transfers have landed, in order of reservation.
    fn find_landed(&self) -> Vec<RequestId> {
        let landed = self.transfers.iter().copied();
        landed.filter(|&request| self.requests[request].status == Status::Landed).collect()
    }
}
