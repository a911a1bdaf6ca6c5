//! The planner calls of a run, and the first request that was activated on wrong rows.

use std::collections::BTreeMap;

use super::newly_found;
use crate::event::{Event, Part, Side, Write};
use crate::finding::Code;
use crate::layout::Layout;
use crate::limits;
use crate::oracle::{Fate, Oracle};
use crate::planner::Piece;
use crate::units::{PageId, Rank, RequestId, Tick, Tokens};
use crate::world::Observer;
use crate::world::observer::{Call, Seen};

/// One planner call, for every rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptCall {
    /// The tick of the call.
    pub tick: Tick,
    /// The request that was planned for.
    pub request: RequestId,
    /// Which transfer of that request, from 0.
    pub attempt: u32,
    /// Which piece of the transfer, from 0.
    pub number: u32,
    /// off, S and n.
    pub piece: Piece,
    /// The piece's source pages.
    pub source_pages: Vec<PageId>,
    /// The destination pages that the planner was given.
    pub target_pages: Vec<PageId>,
    /// The ranks that refused; empty where none did.
    pub refused: Vec<Rank>,
    /// Whether a copy of it wrote a row with something else than belongs there.
    pub wrote_wrong: bool,
}

/// A refusal of the planner, of a connection or for capacity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptRefusal {
    /// The request that was planned for.
    pub request: RequestId,
    /// Under which code.
    pub code: Code,
    /// What was said, word for word.
    pub said: String,
    /// Tokens of the request's prompt, L.
    pub prompt: Tokens,
    /// The place of the planner call in [`Calls::calls`], if it was one and was kept.
    pub call: Option<usize>,
}

/// The rows of one request at its activation or its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed {
    /// The tick of the call.
    pub tick: Tick,
    /// The request that was planned for.
    pub request: RequestId,
    /// Positions found in the decode cache.
    pub matched: Tokens,
    /// Its page table on decode.
    pub table: Vec<PageId>,
    /// A fate for every position from 0 on.
    pub fates: Vec<Fate>,
}

/// What events have said of a request.
struct RequestSeen {
    /// Tokens of its prompt.
    prompt: Tokens,
    /// Positions of its present transfer that the decode cache had.
    matched: Tokens,
    /// Its page table on decode.
    table: Vec<PageId>,
}

/// Keeps calls and refusals.
pub struct Calls {
    layout: Layout,
    /// The first planner calls, up to [`limits::CALLS_KEPT`].
    pub calls: Vec<KeptCall>,
    /// Planner calls beyond those.
    pub calls_left_out: u64,
    /// The first refusals, up to [`limits::CALLS_KEPT`].
    pub refusals: Vec<KeptRefusal>,
    /// The first request that was activated, or finished, on wrong rows.
    pub placed: Option<Placed>,
    requests: BTreeMap<RequestId, RequestSeen>,
    found: BTreeMap<Code, u64>,
}

impl Calls {
    /// Nothing seen yet of a run with this layout.
    pub fn new(layout: Layout) -> Calls {
        Calls {
            layout,
            calls: Vec::new(),
            calls_left_out: 0,
            refusals: Vec::new(),
            placed: None,
            requests: BTreeMap::new(),
            found: BTreeMap::new(),
        }
    }

    /// The layout of the run.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// The call to look at first: the first refused one, else the first that wrote a wrong row,
    /// else the first of a request with wrong rows, else the first of all.
    pub fn notable(&self) -> Option<&KeptCall> {
        let first =
            |wanted: &dyn Fn(&KeptCall) -> bool| self.calls.iter().find(|call| wanted(call));
        first(&|call| !call.refused.is_empty())
            .or_else(|| first(&|call| call.wrote_wrong))
            .or_else(|| {
                let request = self.placed.as_ref()?.request;
                first(&|call| call.request == request)
            })
            .or(self.calls.first())
    }

    /// The refusal of a call of [`Calls::calls`], if a rank refused it.
    pub fn refusal_of(&self, call: &KeptCall) -> Option<&KeptRefusal> {
        let index = self.calls.iter().position(|other| std::ptr::eq(other, call))?;
        self.refusals.iter().find(|refusal| refusal.call == Some(index))
    }

    fn refused(&mut self, request: RequestId, code: Code, said: &str, of_ranks: bool) {
        if self.refusals.len() == limits::CALLS_KEPT {
            return;
        }
        let last = self.calls.len().checked_sub(1).filter(|_| of_ranks);
        let call = last.filter(|&last| {
            let call = &self.calls[last];
            call.request == request && !call.refused.is_empty()
        });
        let prompt = self.requests.get(&request).map_or(Tokens(0), |known| known.prompt);
        self.refusals.push(KeptRefusal { request, code, said: said.to_owned(), prompt, call });
    }

    /// Notes a copy that writes what does not belong where it writes.
    fn landed(&mut self, part: Part, writes: &[Write], oracle: &Oracle) {
        let table = self.requests.get(&part.request).map_or(&[][..], |request| &request.table);
        if oracle.belongs(table, part, writes) {
            return;
        }
        let mut calls = self.calls.iter_mut().rev();
        let call = calls.find(|call| {
            (call.request, call.attempt, call.number) == (part.request, part.attempt, part.piece)
        });
        if let Some(call) = call {
            call.wrote_wrong = true;
        }
    }

    /// Keeps the rows of a request that has just been found to have wrong ones.
    fn placed(&mut self, seen: &Seen<'_>, request: RequestId, table: &[PageId]) {
        self.placed = Some(Placed {
            tick: seen.tick,
            request,
            matched: self.requests[&request].matched,
            table: table.to_vec(),
            fates: seen.oracle.fates(request, table, seen.memory),
        });
    }
}

impl Observer for Calls {
    fn told(&mut self, seen: &Seen<'_>) {
        match *seen.event {
            Event::Arrived { request, prompt, .. } => {
                let known = RequestSeen { prompt, matched: Tokens(0), table: Vec::new() };
                self.requests.insert(request, known);
            }
            Event::Refused { request, code, ranks, said } => {
                self.refused(request, code, said, !ranks.is_empty());
            }
            Event::Hit { server, request, pages } if server.side == Side::Decode => {
                if let Some(known) = self.requests.get_mut(&request) {
                    known.table = pages.to_vec();
                }
            }
            Event::Reserved { request, matched, .. } => {
                if let Some(known) = self.requests.get_mut(&request) {
                    known.matched = matched;
                }
            }
            Event::Taken { server, request, first, pages } if server.side == Side::Decode => {
                if let Some(known) = self.requests.get_mut(&request) {
                    known.table.truncate(first.index());
                    known.table.extend(pages);
                }
            }
            Event::Landed { part, writes } => self.landed(part, writes.0, seen.oracle),
            Event::Ended { request, .. } => {
                self.requests.remove(&request);
            }
            _ => {}
        }
        let new = newly_found(&mut self.found, seen);
        let placed = [Code::PlacedMissing, Code::PlacedShifted, Code::PlacedForeign];
        if let Event::Activated { request, table, .. } | Event::Finished { request, table, .. } =
            *seen.event
            && self.placed.is_none()
            && new.iter().any(|(code, _)| placed.contains(code))
        {
            self.placed(seen, request, table);
        }
    }

    fn planned(&mut self, tick: Tick, call: &Call<'_>) {
        if self.calls.len() == limits::CALLS_KEPT {
            self.calls_left_out += 1;
            return;
        }
        self.calls.push(KeptCall {
            tick,
            request: call.request,
            attempt: call.attempt,
            number: call.number,
            piece: call.piece,
            source_pages: call.source_pages.to_vec(),
            target_pages: call.target_pages.to_vec(),
            refused: call.refused.map_or_else(Vec::new, |(_, ranks)| ranks.to_vec()),
            wrote_wrong: false,
        });
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::scenario::file;
    use crate::world::{Simulation, run};

    fn seen(name: &str) -> Calls {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("sims/hazards").join(name);
        let scenario = file::load(&path).unwrap();
        let layout = Layout::striped(scenario.layout.page_size, scenario.layout.ranks).unwrap();
        let mut calls = Calls::new(layout);
        let watched = Simulation::new(&scenario).observer(&mut calls).run().unwrap();
        assert_eq!(watched, run(&scenario, Path::new("")).unwrap(), "looking on changes nothing");
        calls
    }

    #[test]
    fn a_refusal_is_kept_with_its_call_and_its_words() {
        // P = 4, N = 2, 9 tokens, one page: rank 0 needs two.
        let calls = seen("h10-one-rank-short.toml");
        let refusal = &calls.refusals[0];
        assert!(refusal.said.starts_with("Insufficient destination DCP pages: required=2"));
        let call = &calls.calls[refusal.call.unwrap()];
        assert_eq!((call.refused.as_slice(), call.target_pages.len()), (&[Rank(0)][..], 1));
        assert_eq!(calls.notable(), Some(call));
    }

    #[test]
    fn positions_between_the_hit_and_a_padded_prefix_are_missing() {
        let calls = seen("h06-padded-up.toml");
        let placed = calls.placed.as_ref().unwrap();
        let call = calls.calls.iter().find(|call| call.request == placed.request).unwrap();
        let (hit, padded) = (placed.matched.0 as usize, call.piece.decode_prefix_len.0 as usize);
        let missing = |&fate: &Fate| fate == Fate::Missing;
        assert!(placed.fates[..hit].iter().all(|&fate| fate == Fate::Right));
        assert!(placed.fates[hit..padded].iter().any(missing));
        assert!(!placed.fates[padded..].iter().any(missing));
    }

    #[test]
    fn the_rows_that_are_kept_are_wrong_as_the_oracle_has_found() {
        // A page twice in one table, a page lost to a flush, and a prefix that decode never had.
        for name in ["h33-not-locked.toml", "h51-flushed-in-flight.toml", "h06-padded-up.toml"] {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("sims/hazards").join(name);
            let found = run(&file::load(&path).unwrap(), Path::new("")).unwrap().findings;
            let placed = seen(name).placed.unwrap();
            let is_wrong = |code| {
                placed.fates.iter().any(|fate| match fate {
                    Fate::Right => false,
                    Fate::Missing => code == Code::PlacedMissing,
                    Fate::Shifted(_) => code == Code::PlacedShifted,
                    Fate::Foreign(_) => code == Code::PlacedForeign,
                })
            };
            for code in [Code::PlacedMissing, Code::PlacedShifted, Code::PlacedForeign] {
                assert_eq!(is_wrong(code), found.count(code) > 0, "{name}: {code}");
            }
        }
    }

    #[test]
    fn a_piece_that_overwrites_the_one_before_it_wrote_wrong_rows() {
        let calls = seen("h09-chunk-pages.toml");
        let wrong: Vec<u32> =
            calls.calls.iter().filter(|call| call.wrote_wrong).map(|call| call.number).collect();
        assert!(!wrong.is_empty() && !wrong.contains(&0), "{wrong:?}");
        assert!(calls.notable().unwrap().wrote_wrong);
    }
}
