//! A request as its decode server knows it.

use crate::cache::Anchor;
use crate::memory::Extent;
use crate::units::{PageId, Pages, Tokens};

/// Where a request stands on its decode server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::world) enum Status {
    /// In the queue of those that wait for a reservation.
    Waiting,
    /// Reserved; its handoff is under way.
    Transferring,
    /// All of it has landed; it is taken up at the server's next turn (`decode_turn =
    /// "between_steps"`).
    Landed,
    /// Generating output.
    Running,
    /// Without pages, waiting to come back.
    Retracted,
    /// Over.
    Ended,
}

/// Decode's part of a request, from its arrival on.
pub(in crate::world) struct RequestState {
    pub(super) status: Status,
    /// Tokens that the present transfer is about: the prompt, and after a retraction without a host
    /// copy also the output so far.
    pub(super) length: Tokens,
    /// Whether its client has given up.
    pub(super) gave_up: bool,
    /// Whether what it held when its client gave up is never given back (`abort_cleanup`).
    pub(super) is_forgotten: bool,
    /// What it holds here.
    pub(super) target: Option<Target>,
    /// KV on the host, while retracted with a copy.
    pub(super) host: Option<HostCopy>,
    /// Whether what its failed transfer had reserved may go back at the server's next turn.
    pub(super) is_drained: bool,
    /// Positions that it had stored when it last came back from the host.
    pub(super) restored: Tokens,
    /// Pages, from the prompt's first on, that it has put into the cache.
    pub(super) inserted: Pages,
}

impl RequestState {
    /// A request of `prompt` tokens that has just arrived.
    pub(super) fn new(prompt: Tokens) -> RequestState {
        RequestState {
            status: Status::Waiting,
            length: prompt,
            gave_up: false,
            is_forgotten: false,
            target: None,
            host: None,
            is_drained: false,
            restored: Tokens(0),
            inserted: Pages(0),
        }
    }

    /// What it holds; a broken invariant of the server if nothing.
    pub(super) fn target(&self) -> &Target {
        self.target.as_ref().expect("the request holds decode pages")
    }

    /// See [`RequestState::target`].
    pub(super) fn target_mut(&mut self) -> &mut Target {
        self.target.as_mut().expect("the request holds decode pages")
    }

    /// Takes away what it holds; a broken invariant of the server if nothing.
    pub(super) fn take_target(&mut self) -> Target {
        self.target.take().expect("the request holds decode pages")
    }
}

/// What a request holds on decode.
pub(in crate::world) struct Target {
    /// The locked place in the prefix cache.
    pub(super) anchor: Option<Anchor>,
    /// Page table from position 0, in virtual pages.
    pub(super) table: Vec<PageId>,
    /// How many of the table's first pages belong to the cache.
    pub(super) shared: usize,
    /// Positions stored, and of a running request written to memory.
    /// [`Decode::stored`](super::Decode) counts those with it that its steps have stored since.
    pub(super) stored: Tokens,
    /// The number of the step that stores the next position.
    pub(super) next_step: u32,
    /// How many steps will have ended when a position opens a page or completes the output.
    pub(super) due: u32,
}

impl Target {
    /// Pages of its own, in which `stored` positions are stored.
    pub(super) fn new(table: Vec<PageId>, stored: Tokens) -> Target {
        Target { anchor: None, table, shared: 0, stored, next_step: 0, due: 0 }
    }

    /// The pages that are the request's own.
    pub(super) fn own(&self) -> &[PageId] {
        &self.table[self.shared..]
    }
}

/// What a retracted request had stored.
pub(in crate::world) struct HostCopy {
    /// Positions stored.
    pub(super) stored: Tokens,
    /// Rows by page of the table and rank.
    pub(super) rows: Vec<Vec<Vec<Extent>>>,
}
