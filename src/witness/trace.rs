//! One line for every event of a run.

use std::collections::BTreeMap;

use super::{is_books, newly_found};
use crate::event::{Event, Holder, Outcome, PageRanges, Part, Server, Writes};
use crate::finding::{Code, Named};
use crate::limits;
use crate::units::{PageId, Rank, Tick};
use crate::world::Observer;
use crate::world::observer::{Call, Note, Seen};

/// What the lines mean.
const LEGEND: &str = "\
tick (1 us) | request | event | what
  arrives     a request arrives; its pools can or cannot ever serve it
  hit         its prefix is in a cache: these pages
  reserved    decode has pages for it; S is the prefix that decode says it has
  taken       an allocator hands out pages       cached   pages go into the prefix cache
  freed       pages go back to the allocator
  planned     a piece for every rank: off source pages since S, n tokens, pages from -> to
  queued      a copy to one rank is on the link  read     it reads its source rows
  landed      it writes its rows                 restored rows come from a cached page or the host
  activated   decode takes the request up        finished it has all its output
  retracted   it gives up its pages              ended    it is over
  refused     the planner or the peer refuses, word for word
  !           a finding, below what it was found at
";

/// Writes lines through a function that takes them.
pub struct Trace<W: FnMut(&str)> {
    write: W,
    lines: u64,
    found: BTreeMap<Code, u64>,
}

impl<W: FnMut(&str)> Trace<W> {
    /// A trace whose lines go to `write`.
    pub fn new(write: W) -> Trace<W> {
        Trace { write, lines: 0, found: BTreeMap::new() }
    }

    /// Says what the lines mean.
    pub fn legend(&mut self) {
        for line in LEGEND.lines() {
            (self.write)(line);
        }
        (self.write)("");
    }

    /// Says how many lines were left out beyond [`limits::TRACE_LINES`], if any were.
    pub fn close(mut self) {
        if let Some(more) = self.lines.checked_sub(limits::TRACE_LINES).filter(|&more| more > 0) {
            (self.write)(&format!("… {more} more lines are left out"));
        }
    }

    fn line(&mut self, tick: Tick, whose: &str, event: &str, what: &str) {
        self.lines += 1;
        if self.lines <= limits::TRACE_LINES {
            let line = format!("{tick:>9}  {whose:<5} {event:<9}  {what}");
            (self.write)(line.trim_end());
        }
    }
}

impl<W: FnMut(&str)> Observer for Trace<W> {
    fn told(&mut self, seen: &Seen<'_>) {
        // The books only repeat what the moves before them say.
        if !is_books(seen.event) {
            let (whose, event, what) = words(seen.event);
            self.line(seen.tick, &whose, event, &what);
        }
        for (code, count) in newly_found(&mut self.found, seen) {
            let mut what = format!("{}: {}", code.name(), code.doc());
            if count > 1 {
                what += &format!(" ({count} times)");
            }
            self.line(seen.tick, "", "!", &what);
        }
    }

    fn planned(&mut self, tick: Tick, call: &Call<'_>) {
        let piece = call.piece;
        let n = piece.num_kv_tokens.map_or_else(|| "all".to_owned(), |n| n.to_string());
        let what = format!(
            "piece {}: off={} n={n} S={}, pages {} -> {}",
            call.number,
            piece.src_page_offset,
            piece.decode_prefix_len,
            PageRanges(call.source_pages),
            PageRanges(call.target_pages)
        );
        self.line(tick, &format!("r{}", call.request), "planned", &what);
    }

    fn noted(&mut self, tick: Tick, note: &Note) {
        if let Some((server, event, what)) = noteworthy(note) {
            self.line(tick, "", event, &format!("{server}: {what}"));
        }
    }
}

/// A note that a reader of events would miss.
fn noteworthy(note: &Note) -> Option<(Server, &'static str, String)> {
    match note {
        Note::ThreadEnded { source, target } => {
            Some((*source, "ends", format!("the thread that sends to {target}")))
        }
        Note::Launched { .. }
        | Note::Evicted { .. }
        | Note::Retracted { .. }
        | Note::Dropped { .. }
        | Note::Left { .. } => None,
    }
}

/// The request or server that an event is about, the event's name, and its details.
fn words(event: &Event<'_>) -> (String, &'static str, String) {
    let (request, event, what) = match event {
        Event::Arrived { request, prompt, admitted, .. } => {
            let verdict = if *admitted { "" } else { ", which the pools can never hold" };
            (Some(request), "arrives", format!("prompt of {prompt} tokens{verdict}"))
        }
        Event::Refused { request, ranks, said, .. } => {
            (Some(request), "refused", format!("{}{said}", by(ranks)))
        }
        Event::Hit { server, request, pages: ids } => (Some(request), "hit", at(*server, ids)),
        Event::Reserved { server, request, length, matched, prefix, pages: ids, .. } => {
            let what = format!("S={prefix}, matched {matched} of {length} tokens");
            (Some(request), "reserved", format!("{}: {what}", at(*server, ids)))
        }
        Event::Taken { server, request, pages: ids, .. } => {
            (Some(request), "taken", at(*server, ids))
        }
        Event::Cached { server, request, pages: ids } => {
            (Some(request), "cached", at(*server, ids))
        }
        Event::Freed { server, holder: Holder::Request(request), pages: ids } => {
            (Some(request), "freed", at(*server, ids))
        }
        Event::Freed { server, holder: Holder::Cache, pages: ids } => {
            (None, "freed", format!("{}, by the cache", at(*server, ids)))
        }
        Event::Queued { part, target, source_pages, target_pages, .. } => {
            let moved =
                format!("pages {} -> {}", PageRanges(source_pages.0), PageRanges(target_pages));
            (Some(&part.request), "queued", format!("{} of {target}: {moved}", copy(part)))
        }
        Event::FreedPart { server, request, page, start } => {
            let what = format!("{}, for the sake of rows from {start} on", at(*server, &[*page]));
            (Some(request), "freed", what)
        }
        Event::Read { part, writes } => {
            (Some(&part.request), "read", format!("{}: {} rows", copy(part), rows(writes)))
        }
        Event::Landed { part, writes } => {
            (Some(&part.request), "landed", format!("{}: {} rows", copy(part), rows(writes)))
        }
        Event::DraftLanded { part, writes } => {
            (Some(&part.request), "landed", format!("{}: {} draft rows", copy(part), rows(writes)))
        }
        Event::Restored { server, request, from, to } => {
            (Some(request), "restored", format!("{server}: positions {from} to before {to}"))
        }
        Event::Activated { server, request, table } => {
            (Some(request), "activated", at(*server, table))
        }
        Event::Finished { server, request, table, stored } => {
            let what = format!("{}: {stored} positions stored", at(*server, table));
            (Some(request), "finished", what)
        }
        Event::Retracted { request } => (Some(request), "retracted", String::new()),
        Event::Ended { request, outcome } => {
            let how = match outcome {
                Outcome::Finished => "with all its output",
                Outcome::Failed => "by a refusal",
                Outcome::Aborted => "by its client",
            };
            (Some(request), "ended", how.to_owned())
        }
        Event::Books { server, free, evictable, protected } => {
            let what = format!("{server}: free {free}, cached {evictable} + {protected} locked");
            (None, "books", what)
        }
    };
    (request.map(|request| format!("r{request}")).unwrap_or_default(), event, what)
}

fn rows(writes: &Writes<'_>) -> u64 {
    writes.0.iter().map(|write| u64::from(write.len)).sum()
}

fn at(server: Server, ids: &[PageId]) -> String {
    format!("{} {}, pages {}", server.side.name(), server.index, PageRanges(ids))
}

fn copy(part: &Part) -> String {
    let last = if part.last { ", the last" } else { "" };
    format!("piece {}{last}, to rank {}", part.piece, part.rank)
}

fn by(ranks: &[Rank]) -> String {
    if ranks.is_empty() {
        return String::new();
    }
    let ranks: Vec<String> = ranks.iter().map(Rank::to_string).collect();
    format!("by rank {}: ", ranks.join(", "))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::scenario::file;
    use crate::world::Simulation;

    #[test]
    fn every_event_is_a_line_under_the_legend_and_findings_follow_what_they_were_found_at() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("sims/hazards");
        let scenario = file::load(&path.join("h10-one-rank-short.toml")).unwrap();
        let mut lines: Vec<String> = Vec::new();
        let mut trace = Trace::new(|line: &str| lines.push(line.to_owned()));
        Simulation::new(&scenario).observer(&mut trace).run().unwrap();
        trace.close();
        let events: Vec<&str> =
            lines.iter().map(|line| line[17..].split_whitespace().next().unwrap()).collect();
        assert_eq!(events[0], "arrives");
        assert!(events.iter().all(|event| LEGEND.contains(event)), "{events:?}");
        let refused = events.iter().position(|&event| event == "refused").unwrap();
        assert_eq!(events[refused + 1], "!");
        assert!(lines[refused].contains("by rank 0: Insufficient destination"), "{lines:#?}");
        assert!(lines[refused + 1].contains("refused.shortfall"));
    }
}
