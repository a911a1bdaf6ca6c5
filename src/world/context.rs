//! What every server needs besides its own state: the setup, the requests, the clock with its
//! timers, the log, the faults, and the list of servers that have something to look at.

use super::fault::Faults;
use super::log::Log;
use super::queue::{Queue, Timer};
use super::request::Requests;
use super::setup::Setup;
use crate::event::Server;
use crate::scenario::Moment;
use crate::units::{RequestId, Tick};

/// What the servers share.
pub(super) struct Context<'a> {
    pub(super) setup: Setup<'a>,
    pub(super) requests: Requests<'a>,
    pub(super) queue: Queue,
    pub(super) log: Log<'a>,
    pub(super) faults: Faults,
    /// Servers whose situation has changed since they last looked for work.
    pub(super) awake: Vec<Server>,
}

impl Context<'_> {
    /// The present tick.
    pub(super) fn now(&self) -> Tick {
        self.log.now
    }

    /// Sets a timer that is due `after` the present tick.
    pub(super) fn set_after(&mut self, after: Tick, timer: Timer) {
        self.queue.set(self.log.now + after, timer);
    }

    /// Lets `server` look for work once the present timer has done all that it does.
    pub(super) fn wake(&mut self, server: Server) {
        if !self.awake.contains(&server) {
            self.awake.push(server);
        }
    }

    /// `request` has reached `moment`: the aborts that count from there get their timers.
    pub(super) fn reached(&mut self, request: RequestId, moment: Moment) {
        for (after, fault) in self.faults.aborts_from(request, moment) {
            self.queue.set(self.log.now + after, Timer::Aborts { request, fault });
        }
    }
}
