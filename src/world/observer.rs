//! An *observer* looks on while a scenario runs: it is shown every event and every planner call,
//! and changes nothing.

use serde::Serialize;

use crate::event::{Event, Server};
use crate::finding::Code;
use crate::memory::Memory;
use crate::oracle::Oracle;
use crate::planner::Piece;
use crate::units::{PageId, Pages, Rank, RequestId, Tick, Tokens};

/// What is shown each event and planner call of a run.
pub trait Observer {
    /// Something happened, and the oracle has judged it.
    fn told(&mut self, _seen: &Seen<'_>) {}

    /// The planner was asked for every rank. The copies and the refusal that follow are events of
    /// their own.
    fn planned(&mut self, _tick: Tick, _call: &Call<'_>) {}

    /// Something is noted that is no event.
    fn noted(&mut self, _tick: Tick, _note: &Note) {}
}

/// An event with what is known at that moment.
#[derive(Clone, Copy)]
pub struct Seen<'a> {
    /// The tick at which it happened.
    pub tick: Tick,
    /// The event itself.
    pub event: &'a Event<'a>,
    /// Rows of the event's server by rank, before what the event announces is written; empty where
    /// the event has no server.
    pub memory: &'a [Memory],
    /// The oracle, which has judged this event: what it has found, and what became of each row.
    pub oracle: &'a Oracle,
}

/// One piece, as the planner was asked to lay it out on every rank.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// The request that the piece is for.
    pub request: RequestId,
    /// Which transfer of that request, from 0.
    pub attempt: u32,
    /// Which piece of the transfer, from 0.
    pub number: u32,
    /// off, S and n.
    pub piece: Piece,
    /// The piece's source pages.
    pub source_pages: &'a [PageId],
    /// The destination pages that the planner was given.
    pub target_pages: &'a [PageId],
    /// The code and the ranks that refused, if any did.
    pub refused: Option<(Code, &'a [Rank])>,
}

/// What observers alone are told: the oracle judges without it, and no digest has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Note {
    /// A prefill step begins to compute the positions `from..to` of a request.
    Launched {
        /// The request.
        request: RequestId,
        /// The chunk's first position.
        from: Tokens,
        /// The position behind its last.
        to: Tokens,
    },
    /// A cache has dropped pages so that others can be taken.
    Evicted {
        /// The server.
        server: Server,
        /// Tokens that were wanted beyond the free ones.
        asked: Tokens,
        /// Pages of that server that were dropped.
        pages: Pages,
    },
    /// A running request gives up its pages for others.
    #[serde(rename = "retracting")]
    Retracted {
        /// The request.
        request: RequestId,
        /// Positions stored.
        stored: Tokens,
    },
    /// A running request whose client gave up loses its pages.
    Dropped {
        /// The request.
        request: RequestId,
        /// Output tokens that it had by then.
        output: u32,
    },
    /// The thread that sends from one server to another has ended.
    ThreadEnded {
        /// The prefill server.
        source: Server,
        /// The decode server.
        target: Server,
    },
    /// What a server has when the run has ended, in its pages.
    Left {
        /// The server.
        server: Server,
        /// Pages of its pool.
        total: Pages,
        /// Free pages, by the allocator.
        free: Pages,
        /// Unlocked cached pages, by the cache.
        evictable: Pages,
        /// Locked cached pages, by the cache.
        protected: Pages,
    },
}
