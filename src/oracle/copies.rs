//! Copies from one server to another: what they read, and where they land.

use std::collections::VecDeque;
use std::rc::Rc;

use super::evidence::{describe_source, rows_of_another};
use super::ownership::{Ledger, Ledgers, Owner, Violation};
use super::placement::Transfer;
use crate::event::{Part, Server, Write};
use crate::finding::Code;
use crate::memory::Memory;
use crate::prompt::Texts;
use crate::units::{PageId, RequestId, Tokens};

/// A copy on its way.
struct InFlight {
    part: Part,
    target: Server,
    target_pages: Rc<[PageId]>,
    /// Whether a source page was found to be given back.
    source_gone: bool,
    /// A draft row that it wrote where its request has none, and how many it wrote twice.
    draft_outside: Option<String>,
    draft_twice: u64,
}

/// A piece of which copies are on their way.
struct SentPiece {
    attempt: u32,
    number: u32,
    source: Server,
    /// Its source pages, with their epochs when it was queued.
    source_pages: Vec<(PageId, u32)>,
    parts_left: u32,
    /// [`Ledger::disturbed`] when the source pages were last found to be all there.
    whole_at: Option<u64>,
    /// The pages that its last queued copy writes; those of most other ranks are the same.
    target_pages: Rc<[PageId]>,
}

impl SentPiece {
    fn is_of(&self, part: Part) -> bool {
        (self.attempt, self.number) == (part.attempt, part.piece)
    }
}

/// What is on its way for one request, in the order in which it was queued. Copies land nearly in
/// that order, so what is looked for stands near the front.
#[derive(Default)]
struct Flight {
    copies: VecDeque<InFlight>,
    pieces: VecDeque<SentPiece>,
}

impl Flight {
    fn place(&self, part: Part) -> usize {
        let place = self.copies.iter().position(|copy| copy.part == part);
        place.expect("a copy is queued before it is read, and lands once")
    }

    fn copy(&mut self, part: Part) -> &mut InFlight {
        let place = self.place(part);
        &mut self.copies[place]
    }

    fn piece_place(&self, part: Part) -> usize {
        let place = self.pieces.iter().position(|piece| piece.is_of(part));
        place.expect("a piece is known until its last part has landed")
    }
}

/// All copies on their way.
#[derive(Default)]
pub(super) struct Copies {
    flights: Vec<Flight>,
    /// The place of each request's flight, while anything of it is on its way.
    places: Vec<Option<u32>>,
    /// Places of flights in which nothing is left.
    spare: Vec<u32>,
}

/// A copy that has landed.
pub(super) struct Landed {
    /// The server that it has landed on.
    pub(super) target: Server,
    draft_outside: Option<String>,
    draft_twice: u64,
}

impl Copies {
    fn of(&mut self, request: RequestId) -> &mut Flight {
        if self.places.len() <= request.index() {
            self.places.resize(request.index() + 1, None);
        }
        let (flights, spare) = (&mut self.flights, &mut self.spare);
        let place = *self.places[request.index()].get_or_insert_with(|| {
            spare.pop().unwrap_or_else(|| {
                flights.push(Flight::default());
                u32::try_from(flights.len() - 1).expect("a flight a request at most")
            })
        });
        &mut self.flights[place as usize]
    }

    /// The server that `part` is on its way to.
    pub(super) fn target(&mut self, part: Part) -> Server {
        self.of(part.request).copy(part).target
    }

    /// A copy was put on the link.
    pub(super) fn queued(
        &mut self,
        ledgers: &mut Ledgers,
        part: Part,
        (source, target): (Server, Server),
        source_pages: &[PageId],
        target_pages: &[PageId],
    ) {
        let flight = self.of(part.request);
        let place = flight.pieces.iter().rposition(|piece| piece.is_of(part));
        let place = place.unwrap_or_else(|| {
            flight.pieces.push_back(SentPiece {
                attempt: part.attempt,
                number: part.piece,
                source,
                source_pages: ledgers.of_mut(source).piece_queued(source_pages),
                parts_left: 0,
                whole_at: None,
                target_pages: target_pages.into(),
            });
            flight.pieces.len() - 1
        });
        let piece = &mut flight.pieces[place];
        piece.parts_left += 1;
        if *piece.target_pages != *target_pages {
            piece.target_pages = target_pages.into();
        }
        ledgers.of_mut(target).copy_queued(target_pages);
        let target_pages = Rc::clone(&piece.target_pages);
        flight.copies.push_back(InFlight {
            part,
            target,
            target_pages,
            source_gone: false,
            draft_outside: None,
            draft_twice: 0,
        });
    }

    /// A source page of the copy that was given back since it was queued, said once a copy.
    pub(super) fn source_given_back(&mut self, ledgers: &Ledgers, part: Part) -> Option<Violation> {
        let flight = self.of(part.request);
        let place = flight.piece_place(part);
        let piece = &mut flight.pieces[place];
        let ledger = ledgers.of(piece.source);
        if piece.whole_at == Some(ledger.disturbed()) {
            return None;
        }
        let mut pages = piece.source_pages.iter();
        let gone = pages.find(|&&(page, epoch)| !ledger.still_sends(page, epoch, part.request));
        let Some(&(page, _)) = gone else {
            piece.whole_at = Some(ledger.disturbed());
            return None;
        };
        let was_gone = std::mem::replace(&mut flight.copy(part).source_gone, true);
        (!was_gone).then(|| {
            let expected = format!("page {page} held until the copy of piece {} ends", part.piece);
            Violation::new(Code::ReadFreed, expected, "given back before")
        })
    }

    /// A copy has landed; it is on its way no more.
    pub(super) fn landed(&mut self, ledgers: &mut Ledgers, part: Part) -> Landed {
        let flight = self.of(part.request);
        let place = flight.place(part);
        let copy = flight.copies.remove(place).expect("the place is one of the list");
        let place = flight.piece_place(part);
        let piece = &mut flight.pieces[place];
        piece.parts_left -= 1;
        if piece.parts_left == 0
            && let Some(piece) = flight.pieces.remove(place)
        {
            ledgers.of_mut(piece.source).piece_landed(&piece.source_pages);
        }
        if flight.copies.is_empty() {
            self.spare.extend(self.places[part.request.index()].take());
        }
        ledgers.of_mut(copy.target).copy_landed(&copy.target_pages);
        let InFlight { target, draft_outside, draft_twice, .. } = copy;
        Landed { target, draft_outside, draft_twice }
    }

    /// Takes note of a copy's draft rows, where each rank has `rows` rows in pages of `page_rows`.
    /// What is wrong with them is said when the copy has landed.
    pub(super) fn draft_landed(
        &mut self,
        ledgers: &Ledgers,
        part: Part,
        mut transfer: Option<&mut Transfer>,
        (writes, memory, texts): (&[Write], &[Memory], &Texts),
        (rows, page_rows): (u32, u32),
    ) {
        let copy = self.of(part.request).copy(part);
        let ledger = ledgers.of(copy.target);
        let inside = |write: &Write| {
            let first = write.page.0 * page_rows + write.start;
            rows.saturating_sub(first).min(write.len)
        };
        let mut is_outside = false;
        for write in writes {
            let inside = inside(write);
            is_outside |= inside < write.len;
            match (ledger.owner(write.page), &mut transfer) {
                _ if inside == 0 => {}
                (Owner::Request(owner, ordinal), Some(transfer)) if owner == part.request => {
                    let write = Write { len: inside, ..*write };
                    copy.draft_twice +=
                        transfer.wrote_draft(part.rank, ordinal.0, &write, memory, texts);
                }
                _ => is_outside = true,
            }
        }
        if !is_outside {
            return;
        }
        // People are shown the first history that is wrong.
        let has_transfer = transfer.is_some();
        copy.draft_outside = by_history(writes, texts).iter().find_map(|write| {
            let last = write.page.0 * page_rows + write.start + write.len - 1;
            match ledger.owner(write.page) {
                _ if inside(write) < write.len => Some(format!("draft row {last} of {rows}")),
                Owner::Request(owner, _) if owner == part.request && has_transfer => None,
                owner => Some(format!("draft {}", rows_of_another(write.page, owner))),
            }
        });
    }
}

impl Landed {
    /// Takes note of the rows that the copy writes, and says which of them it should not have.
    pub(super) fn wrote(
        self,
        ledger: &Ledger,
        part: Part,
        transfer: Option<&mut Transfer>,
        writes: &[Write],
        (memory, texts): (&[Memory], &Texts),
    ) -> [Option<Violation>; 2] {
        let (mut outside, mut twice) = (None, self.draft_twice);
        let mut transfer = transfer;
        for write in writes {
            match (ledger.owner(write.page), &mut transfer) {
                (Owner::Request(owner, ordinal), Some(transfer)) if owner == part.request => {
                    let memory = &memory[part.rank.index()];
                    twice += transfer.wrote(part.rank, ordinal.0, write, (memory, texts));
                }
                (owner, _) => outside = outside.or(Some((write.page, owner))),
            }
        }
        if let Some(transfer) = transfer {
            transfer.copies_landed += 1;
        }
        let outside = outside.map(|(page, owner)| rows_of_another(page, owner));
        let outside = outside.or(self.draft_outside).map(|found| {
            let expected = "only rows of the request's own pages written";
            Violation::new(Code::PlacedOutside, expected, found)
        });
        let twice = (twice > 0).then(|| {
            let found = format!("{twice} rows of piece {} written over with others", part.piece);
            Violation::new(Code::PlacedTwice, "every row written once", found)
        });
        [outside, twice]
    }
}

/// A row that the copy read although it was never written for `transfer`. What a wrong hit brought
/// was written, though for another text; and what lies behind the last position means nothing.
pub(super) fn unwritten(
    ledger: &Ledger,
    part: Part,
    transfer: &Transfer,
    writes: &[Write],
    texts: &Texts,
) -> Option<Violation> {
    if !transfer.source_right {
        return None;
    }
    let end = transfer.rows_of(part.rank);
    let is_unwritten = |write: &&Write| {
        let judged = match ledger.owner(write.page) {
            Owner::Request(owner, ordinal) if owner == part.request => {
                let len = end.saturating_sub(transfer.first_row(ordinal.0) + write.start);
                len.min(write.len)
            }
            _ => write.len,
        };
        judged > 0 && !transfer.owns_content(&Write { len: judged, ..**write }, texts)
    };
    if !writes.iter().any(|write| is_unwritten(&write)) {
        return None;
    }
    // What is told apart for people are histories, and not whose text they stand in.
    let writes = by_history(writes, texts);
    let write = writes.iter().find(is_unwritten)?;
    let found = describe_source(write.content.map(|(stamp, _)| stamp), texts);
    let expected = format!("piece {} written before it is read", part.piece);
    Some(Violation::new(Code::ReadUnwritten, expected, found))
}

/// The same writes, each of one history, and neighbours of one history as one.
fn by_history(writes: &[Write], texts: &Texts) -> Vec<Write> {
    let mut parts: Vec<Write> = Vec::new();
    for write in writes {
        let mut start = write.start;
        while start < write.start + write.len {
            let part = of_one_history(write, start, texts);
            start += part.len;
            match parts.last_mut() {
                Some(last) if continues(last, &part, texts) => last.len += part.len,
                _ => parts.push(part),
            }
        }
    }
    parts
}

/// The rows of `write` from `start` on that have the history of the first of them.
fn of_one_history(write: &Write, start: u32, texts: &Texts) -> Write {
    let left = write.start + write.len - start;
    let Some(extent) = write.extent() else {
        return Write { start, len: left, ..*write };
    };
    let stamp = extent.at(start);
    let segment = texts.get(stamp.text).and_then(|text| text.segments_from(stamp.position).first());
    let inside = segment.map_or(left, |segment| {
        (segment.end.0 - stamp.position.0).div_ceil(extent.step.max(1)).min(left)
    });
    Write { start, len: inside, content: Some((stamp, extent.step)), ..*write }
}

/// Whether the rows of `next` go on where those of `last` end, in place, position and history.
fn continues(last: &Write, next: &Write, texts: &Texts) -> bool {
    let adjacent = last.page == next.page && last.start + last.len == next.start;
    adjacent
        && match (last.content, next.content) {
            (Some((stamp, step)), Some((other, other_step))) => {
                let position = Tokens(stamp.position.0 + last.len * step);
                step == other_step
                    && position == other.position
                    && stamp.writer == other.writer
                    && stamp.chain(texts) == other.chain(texts)
            }
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        }
}
