//! The planner calls of a run, and the first request that was activated on wrong rows.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::newly_found;
use crate::event::{Event, Side, Write};
use crate::finding::Code;
use crate::layout::Layout;
use crate::limits;
use crate::memory::{Memory, Stamp};
use crate::planner::Piece;
use crate::prompt::{Sequence, Texts};
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

/// What became of one position when its request was activated, or when it finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Its own KV.
    Right,
    /// Never written for this request.
    Missing,
    /// KV of the same request's other position.
    Shifted(Tokens),
    /// KV of another request's token.
    Foreign(RequestId),
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

/// A request as far as it is known.
struct Known {
    text: Rc<Sequence>,
    prompt: Tokens,
    /// Its present transfer.
    attempt: u32,
    /// Its page table on decode.
    table: Vec<PageId>,
    length: Tokens,
    matched: Tokens,
    /// Positions that were written for it.
    written: BTreeSet<u32>,
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
    known: BTreeMap<RequestId, Known>,
    texts: Texts,
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
            known: BTreeMap::new(),
            texts: Texts::default(),
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

    fn known(&mut self, request: RequestId) -> Option<&mut Known> {
        self.known.get_mut(&request)
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
        let prompt = self.known.get(&request).map_or(Tokens(0), |known| known.prompt);
        self.refusals.push(KeptRefusal { request, code, said: said.to_owned(), prompt, call });
    }

    /// Notes what a copy writes, and whether each row is the one of its position.
    fn landed(
        &mut self,
        request: RequestId,
        attempt: u32,
        number: u32,
        rank: Rank,
        writes: &[Write],
    ) {
        let layout = self.layout;
        // The rows of a transfer that has ended are no longer its own.
        let mut known = self.known.get_mut(&request).filter(|known| known.attempt == attempt);
        let mut is_wrong = known.is_none() && !writes.is_empty();
        for write in writes {
            let Some(known) = &mut known else { break };
            let ordinal = known.table.iter().position(|&page| page == write.page);
            for offset in write.start..write.start + write.len {
                let position = ordinal.and_then(|ordinal| position(layout, ordinal, offset, rank));
                let held = write.extent().map(|extent| extent.at(offset));
                let Some(position) = position else {
                    is_wrong = true;
                    continue;
                };
                known.written.insert(position.0);
                is_wrong |= !holds(&known.text, position, held, &self.texts);
            }
        }
        if is_wrong {
            let mut calls = self.calls.iter_mut().rev();
            let call = calls.find(|call| {
                (call.request, call.attempt, call.number) == (request, attempt, number)
            });
            if let Some(call) = call {
                call.wrote_wrong = true;
            }
        }
    }

    fn activated(
        &self,
        tick: Tick,
        request: RequestId,
        table: &[PageId],
        memory: &[Memory],
    ) -> Placed {
        let known = &self.known[&request];
        let fates = (0..known.length.0).map(Tokens).map(|position| {
            let rank = self.layout.owner(position);
            let place = self.layout.place(position, table);
            let held = place.and_then(|(_, row)| {
                let (page, offset) = row.split(self.layout.page());
                memory[rank.index()].row(page, offset)
            });
            fate(known, position, held, &self.texts)
        });
        let (matched, table) = (known.matched, table.to_vec());
        Placed { tick, request, matched, table, fates: fates.collect() }
    }
}

/// The position that the row at `offset` of the page at `ordinal` of a table stores on `rank`.
fn position(layout: Layout, ordinal: usize, offset: u32, rank: Rank) -> Option<Tokens> {
    let local =
        u32::try_from(ordinal).ok()?.checked_mul(layout.page().get())?.checked_add(offset)?;
    layout.position(rank, local)
}

/// Whether `held` is the KV of `position` of `text`.
fn holds(text: &Sequence, position: Tokens, held: Option<Stamp>, texts: &Texts) -> bool {
    held.is_some_and(|held| held.position == position && held.is_of(text, texts))
}

fn fate(known: &Known, position: Tokens, held: Option<Stamp>, texts: &Texts) -> Fate {
    let is_due = position >= known.matched;
    match held {
        _ if is_due && !known.written.contains(&position.0) => Fate::Missing,
        held if holds(&known.text, position, held, texts) => Fate::Right,
        Some(held) if held.is_of(&known.text, texts) => Fate::Shifted(held.position),
        Some(held) => Fate::Foreign(held.writer),
        None => Fate::Missing,
    }
}

impl Observer for Calls {
    fn told(&mut self, seen: &Seen<'_>) {
        match *seen.event {
            Event::Arrived { request, ref text, prompt, .. } => {
                let known = Known {
                    text: Rc::clone(&text.0),
                    prompt,
                    attempt: 0,
                    table: Vec::new(),
                    length: prompt,
                    matched: Tokens(0),
                    written: BTreeSet::new(),
                };
                self.texts.insert(request, Rc::clone(&text.0));
                self.known.insert(request, known);
            }
            Event::Refused { request, code, ranks, said } => {
                self.refused(request, code, said, !ranks.is_empty());
            }
            Event::Hit { server, request, pages } if server.side == Side::Decode => {
                if let Some(known) = self.known(request) {
                    known.table = pages.to_vec();
                }
            }
            Event::Reserved { request, attempt, length, matched, .. } => {
                if let Some(known) = self.known(request) {
                    (known.attempt, known.length, known.matched) = (attempt, length, matched);
                    known.written.clear();
                }
            }
            Event::Taken { server, request, first, pages } if server.side == Side::Decode => {
                if let Some(known) = self.known(request) {
                    known.table.truncate(first.index());
                    known.table.extend(pages);
                }
            }
            Event::Restored { request, from, to, .. } => {
                if let Some(known) = self.known(request) {
                    known.written.extend(from.0..to.0);
                }
            }
            Event::Landed { part, writes } => {
                self.landed(part.request, part.attempt, part.piece, part.rank, writes.0);
            }
            Event::Ended { request, .. } => {
                self.known.remove(&request);
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
            self.placed = Some(self.activated(seen.tick, request, table, seen.memory));
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
    fn a_piece_that_overwrites_the_one_before_it_wrote_wrong_rows() {
        let calls = seen("h09-chunk-pages.toml");
        let wrong: Vec<u32> =
            calls.calls.iter().filter(|call| call.wrote_wrong).map(|call| call.number).collect();
        assert!(!wrong.is_empty() && !wrong.contains(&0), "{wrong:?}");
        assert!(calls.notable().unwrap().wrote_wrong);
    }
}
