//! One request while it lives: its tokens, where it stands, and what it holds on either side.

use std::rc::Rc;

use super::handoff::Handoff;
use crate::cache::Anchor;
use crate::memory::Extent;
use crate::prompt::{PageKey, Sequence};
use crate::units::{PageId, Tick, Tokens};

/// Where a request stands on its decode server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// In the queue of those that wait for a reservation.
    Arriving,
    /// Reserved; its handoff is under way.
    Transferring,
    /// Generating output.
    Running,
    /// Without pages, waiting to come back.
    Retracted,
    /// Over.
    Ended,
}

/// A request from its arrival on.
pub(super) struct Live {
    /// Prompt and output.
    pub(super) text: Rc<Sequence>,
    /// The same as prefix caches tell texts apart.
    pub(super) keyed: Rc<Sequence>,
    /// Tokens that prefill computes for the present transfer: the prompt, and after a retraction
    /// without a host copy also the output so far.
    pub(super) length: Tokens,
    /// Tokens of the prompt.
    pub(super) prompt: Tokens,
    pub(super) priority: i64,
    pub(super) arrived: Tick,
    /// Index of its prefill and decode server.
    pub(super) prefill: usize,
    pub(super) decode: usize,
    /// Transfers begun before the present one.
    pub(super) attempt: u32,
    /// Whether the present transfer does without a decode prefix.
    pub(super) skips_prefix: bool,
    /// Whether the planner refused the present transfer.
    pub(super) was_refused: bool,
    /// How often it was refused and served again.
    pub(super) refusals: u32,
    /// Whether its client has given up.
    pub(super) gave_up: bool,
    /// Whether what it held when its client gave up is never given back (`abort_cleanup`).
    pub(super) was_forgotten: bool,
    /// Messages that a part of it has landed, so far.
    pub(super) messages: u32,
    /// Whether prefill has begun with it.
    pub(super) was_started: bool,
    pub(super) place: Place,
    pub(super) handoff: Handoff,
    pub(super) source: Option<Source>,
    pub(super) target: Option<Target>,
    /// What prefill was told of the present transfer's destination. It goes on using the list even
    /// when decode no longer holds the pages.
    pub(super) destination: Destination,
    /// KV on the host, while retracted with a copy.
    pub(super) host: Option<HostCopy>,
}

/// What a retracted request had stored.
pub(super) struct HostCopy {
    /// Positions stored.
    pub(super) stored: Tokens,
    /// Rows by page of the table and rank.
    pub(super) rows: Vec<Vec<Vec<Extent>>>,
}

/// What a request holds on prefill.
pub(super) struct Source {
    /// The locked places in the prefix cache: one, or one a chunk where chunks are keyed apart
    /// (`chunk_hash = "own_tokens"`).
    pub(super) anchors: Vec<Anchor>,
    /// Keys of the prompt's full pages; empty without a cache.
    pub(super) keys: Vec<PageKey>,
    /// Page table from position 0.
    pub(super) table: Vec<PageId>,
    /// How many of the table's first pages belong to the cache.
    pub(super) shared: usize,
    /// Tokens that this transfer computes. After an early activation the request itself can have
    /// moved on, so prefill keeps its own count.
    pub(super) length: Tokens,
    /// Positions whose KV is computed.
    pub(super) done: Tokens,
    /// The position up to which pieces have been sent.
    pub(super) cursor: Tokens,
    /// Pages sent since the decode prefix.
    pub(super) pages_sent: u32,
    /// Pieces sent.
    pub(super) pieces: u32,
    /// Pages that were given back as duplicates while the table goes on naming them, and that the
    /// request gives back again at its end (`duplicate_insert = "free_without_remap"`).
    pub(super) freed_early: Vec<PageId>,
    /// Whether nothing more is laid out (`early_send = "settled_rest_dropped"`).
    pub(super) drops_rest: bool,
}

/// Where decode wants a transfer.
#[derive(Default)]
pub(super) struct Destination {
    /// What decode says that it has, S.
    pub(super) prefix: Tokens,
    /// Its virtual pages from position S on.
    pub(super) pages: Vec<PageId>,
    /// Whether the message with both has reached prefill.
    pub(super) is_known: bool,
}

/// What a request holds on decode.
pub(super) struct Target {
    /// The locked place in the prefix cache.
    pub(super) anchor: Option<Anchor>,
    /// Page table from position 0, in virtual pages.
    pub(super) table: Vec<PageId>,
    /// How many of the table's first pages belong to the cache.
    pub(super) shared: usize,
    /// Positions stored, once running.
    pub(super) stored: Tokens,
}

impl Live {
    /// What it holds on prefill; a broken invariant of the world if nothing.
    pub(super) fn source_mut(&mut self) -> &mut Source {
        self.source.as_mut().expect("the request holds prefill pages")
    }

    /// What it holds on decode; a broken invariant of the world if nothing.
    pub(super) fn target_mut(&mut self) -> &mut Target {
        self.target.as_mut().expect("the request holds decode pages")
    }

    /// Output tokens known so far, when `stored` positions are.
    pub(super) fn generated(&self, stored: Tokens) -> u32 {
        stored.0 + 1 - self.prompt.0
    }
}
