//! One JSON object for every event of a run, for programs to read.

use std::collections::BTreeMap;

use serde::Serialize;

use super::newly_found;
use crate::event::Event;
use crate::finding::{Code, Finding};
use crate::planner::Piece;
use crate::units::{PageId, Pages, Rank, RequestId, Tick, Tokens};
use crate::world::Observer;
use crate::world::observer::{Call, Note, Seen};

/// Gives each event, planner call, note and finding as one line of JSON to a function that takes
/// lines. Nothing is left out or shortened; a line has the key `event` with its name and the key
/// `tick`.
pub struct Events<W: FnMut(&str)> {
    write: W,
    found: BTreeMap<Code, u64>,
}

#[derive(Serialize)]
struct Line<T: Serialize> {
    tick: Tick,
    #[serde(flatten)]
    what: T,
}

/// A planner call, under the planner's own names.
#[derive(Serialize)]
#[serde(tag = "event", rename = "planned")]
struct Planned<'a> {
    request: RequestId,
    attempt: u32,
    piece: u32,
    src_page_offset: Pages,
    decode_prefix_len: Tokens,
    num_kv_tokens: Option<i64>,
    source_pages: &'a [PageId],
    target_pages: &'a [PageId],
    /// The ranks that refused.
    refused: &'a [Rank],
}

/// What was found at the event before it.
#[derive(Serialize)]
#[serde(tag = "event", rename = "found")]
struct Found<'a> {
    code: Code,
    /// How many, of which `first` are those whose evidence is kept.
    count: u64,
    first: &'a [Finding],
}

impl<W: FnMut(&str)> Events<W> {
    /// Lines go to `write`.
    pub fn new(write: W) -> Events<W> {
        Events { write, found: BTreeMap::new() }
    }

    fn line(&mut self, tick: Tick, what: impl Serialize) {
        let line = serde_json::to_string(&Line { tick, what });
        (self.write)(&line.expect("events are texts, numbers and lists"));
    }
}

impl<W: FnMut(&str)> Observer for Events<W> {
    fn told(&mut self, seen: &Seen<'_>) {
        let event: &Event<'_> = seen.event;
        self.line(seen.tick, event);
        let findings = seen.oracle.findings();
        for (code, count) in newly_found(&mut self.found, seen) {
            let kept = findings.iter().find(|&(found, _)| found == code).map(|(_, kept)| kept);
            let kept = kept.map_or(&[][..], |kept| &kept.first);
            let before = usize::try_from(self.found[&code] - count).unwrap_or(usize::MAX);
            let first = kept.get(before..).unwrap_or_default();
            self.line(seen.tick, Found { code, count, first });
        }
    }

    fn planned(&mut self, tick: Tick, call: &Call<'_>) {
        let Piece { src_page_offset, decode_prefix_len, num_kv_tokens } = call.piece;
        let planned = Planned {
            request: call.request,
            attempt: call.attempt,
            piece: call.number,
            src_page_offset,
            decode_prefix_len,
            num_kv_tokens,
            source_pages: call.source_pages,
            target_pages: call.target_pages,
            refused: call.refused.map_or(&[], |(_, ranks)| ranks),
        };
        self.line(tick, planned);
    }

    fn noted(&mut self, tick: Tick, note: &Note) {
        self.line(tick, note);
    }
}
