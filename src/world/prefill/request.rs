//! A request as its prefill server knows it.

use super::super::transfer::Destination;
use crate::cache::Anchor;
use crate::prompt::PageKey;
use crate::units::{PageId, Pages, Tokens};

/// Prefill's part of a request, from its arrival on.
pub(in crate::world) struct RequestState {
    /// Tokens to compute for the present transfer.
    pub(super) length: Tokens,
    /// Whether prefill has ever begun with it.
    pub(super) was_started: bool,
    /// Whether what it held when its client gave up is never given back (`abort_cleanup`).
    pub(super) is_forgotten: bool,
    /// Where decode wants the transfer, once the message has come. It goes on being used even when
    /// decode no longer holds the pages.
    pub(super) destination: Option<Destination>,
    /// What it holds here.
    pub(super) source: Option<Source>,
}

impl RequestState {
    /// A request of `prompt` tokens that has just arrived.
    pub(super) fn new(prompt: Tokens) -> RequestState {
        RequestState {
            length: prompt,
            was_started: false,
            is_forgotten: false,
            destination: None,
            source: None,
        }
    }

    /// What it holds; a broken invariant of the server if nothing.
    pub(super) fn source(&self) -> &Source {
        self.source.as_ref().expect("the request holds prefill pages")
    }

    /// See [`RequestState::source`].
    pub(super) fn source_mut(&mut self) -> &mut Source {
        self.source.as_mut().expect("the request holds prefill pages")
    }
}

/// What a request holds on prefill.
pub(in crate::world) struct Source {
    /// The locked places in the prefix cache: one, or one a chunk where chunks are keyed apart
    /// (`chunk_hash = "own_tokens"`).
    pub(super) anchors: Vec<Anchor>,
    /// Keys of the prompt's full pages; empty without a cache.
    pub(super) keys: Vec<PageKey>,
    /// Page table from position 0.
    pub(super) table: Vec<PageId>,
    /// How many of the table's first pages belong to the cache.
    pub(super) shared: usize,
    /// Pages, from the prompt's first on, that it has put into the cache.
    pub(super) inserted: Pages,
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

impl Source {
    /// Holds nothing yet, of `length` tokens, and sends from `cursor` on.
    pub(super) fn new(length: Tokens, cursor: Tokens) -> Source {
        Source {
            anchors: Vec::new(),
            keys: Vec::new(),
            table: Vec::new(),
            shared: 0,
            inserted: Pages(0),
            length,
            done: Tokens(0),
            cursor,
            pages_sent: 0,
            pieces: 0,
            freed_early: Vec::new(),
            drops_rest: false,
        }
    }
}
