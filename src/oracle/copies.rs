//! Copies from one server to another: what they read, and where they land.

use super::ownership::Owner;
use super::{Known, Oracle, describe, rows_of_another};
use crate::event::{Part, Server, Write};
use crate::finding::{Chance, Code};
use crate::memory::Memory;
use crate::units::{PageId, Tick};

/// A copy on its way.
pub(super) struct InFlight {
    source: Server,
    target: Server,
    target_pages: Vec<PageId>,
    /// Whether a source page was found to be given back.
    source_gone: bool,
    /// A draft row that it wrote where its request has none, and how many it wrote twice.
    draft_outside: Option<String>,
    draft_twice: u64,
}

/// The source pages of one piece, with their epochs when it was queued.
pub(super) struct Source {
    pages: Vec<(PageId, u32)>,
    parts_left: u32,
}

impl Oracle {
    pub(super) fn queued(
        &mut self,
        part: Part,
        source: Server,
        target: Server,
        source_pages: &[PageId],
        target_pages: &[PageId],
    ) {
        let ledger = self.ledgers.get_mut(&source).expect("events name known servers");
        let key = (part.request, part.attempt, part.piece);
        let new = || Source { pages: ledger.piece_queued(source_pages), parts_left: 0 };
        self.sources.entry(key).or_insert_with(new).parts_left += 1;
        self.ledger(target).copy_queued(target_pages);
        let target_pages = target_pages.to_vec();
        let copy = InFlight {
            source,
            target,
            target_pages,
            source_gone: false,
            draft_outside: None,
            draft_twice: 0,
        };
        self.copies.insert(part, copy);
        if let Some(transfer) = Known::transfer_of(&mut self.requests, part) {
            transfer.copies_queued += 1;
            transfer.last_queued |= part.last;
        }
    }

    /// Reports source pages that were given back since the copy was queued, once a copy.
    fn check_source(&mut self, tick: Tick, part: Part) {
        let InFlight { source, source_gone, .. } = self.copies[&part];
        if source_gone {
            return;
        }
        let key = (part.request, part.attempt, part.piece);
        let ledger = &self.ledgers[&source];
        let mut pages = self.sources[&key].pages.iter();
        let gone = pages.find(|&&(page, epoch)| !ledger.still_sends(page, epoch, part.request));
        if let Some(&(page, _)) = gone {
            let expected = format!("page {page} held until the copy of piece {} ends", part.piece);
            self.copies.entry(part).and_modify(|copy| copy.source_gone = true);
            let (request, rank) = (Some(part.request), Some(part.rank));
            self.find(tick, Code::ReadFreed, request, rank, &expected, "given back before");
        }
    }

    pub(super) fn read(&mut self, tick: Tick, part: Part, writes: &[Write]) {
        self.chances.add(Chance::Read, 1);
        self.check_source(tick, part);
        let ledger = &self.ledgers[&self.copies[&part].target];
        let Some(transfer) = Known::transfer_of(&mut self.requests, part) else { return };
        // What a wrong hit brought was written, though for another text; and what lies behind the
        // last position means nothing.
        let unwritten = |write: &&Write| {
            let judged = match ledger.owner(write.page) {
                Owner::Request(owner, ordinal) if owner == part.request => {
                    transfer.before_end(part.rank, ordinal.0, write)
                }
                _ => Some(**write),
            };
            judged.is_some_and(|write| !transfer.owns_content(&write)) && transfer.source_right
        };
        let wrong = writes.iter().find(unwritten);
        if let Some(write) = wrong {
            let found = describe(write.content.map(|(stamp, _)| stamp));
            let expected = format!("piece {} written before it is read", part.piece);
            let (request, rank) = (Some(part.request), Some(part.rank));
            self.find(tick, Code::ReadUnwritten, request, rank, &expected, &found);
        }
    }

    pub(super) fn landed(&mut self, tick: Tick, part: Part, writes: &[Write], memory: &[Memory]) {
        self.chances.add(Chance::Landed, 1);
        self.check_source(tick, part);
        let copy = self.copies.remove(&part).expect("a copy lands once");
        let key = (part.request, part.attempt, part.piece);
        let source = self.sources.get_mut(&key).expect("its piece is known");
        source.parts_left -= 1;
        if source.parts_left == 0
            && let Some(source) = self.sources.remove(&key)
        {
            self.ledger(copy.source).piece_landed(&source.pages);
        }
        let ledger = self.ledgers.get_mut(&copy.target).expect("events name known servers");
        ledger.copy_landed(&copy.target_pages);
        let mut transfer = Known::transfer_of(&mut self.requests, part);
        let (mut outside, mut twice) = (None, copy.draft_twice);
        for write in writes {
            match (ledger.owner(write.page), &mut transfer) {
                (Owner::Request(owner, ordinal), Some(transfer)) if owner == part.request => {
                    let memory = &memory[part.rank.index()];
                    twice += transfer.wrote(part.rank, ordinal.0, write, memory);
                }
                (owner, _) => outside = outside.or(Some((write.page, owner))),
            }
        }
        if let Some(transfer) = transfer {
            transfer.copies_landed += 1;
        }
        let (request, rank) = (Some(part.request), Some(part.rank));
        let outside = outside.map(|(page, owner)| rows_of_another(page, owner));
        if let Some(found) = outside.or(copy.draft_outside) {
            let expected = "only rows of the request's own pages written";
            self.find(tick, Code::PlacedOutside, request, rank, expected, &found);
        }
        if twice > 0 {
            let found = format!("{twice} rows of piece {} written over with others", part.piece);
            self.find(tick, Code::PlacedTwice, request, rank, "every row written once", &found);
        }
    }

    /// Takes note of a copy's draft rows. What is wrong with them is reported when it has landed.
    pub(super) fn draft_landed(&mut self, part: Part, writes: &[Write], memory: &[Memory]) {
        let page_rows = self.stripes.page_positions();
        let rows = self.terms.draft_rows.unwrap_or(0);
        let copy = self.copies.get_mut(&part).expect("draft rows land before their copy");
        let ledger = &self.ledgers[&copy.target];
        let mut transfer = Known::transfer_of(&mut self.requests, part);
        for write in writes {
            let first = write.page.0 * page_rows + write.start;
            let inside = rows.saturating_sub(first).min(write.len);
            if inside < write.len {
                let found = format!("draft row {} of {rows}", first + write.len - 1);
                copy.draft_outside.get_or_insert(found);
            }
            match (ledger.owner(write.page), &mut transfer) {
                _ if inside == 0 => {}
                (Owner::Request(owner, ordinal), Some(transfer)) if owner == part.request => {
                    let write = Write { len: inside, ..*write };
                    copy.draft_twice += transfer.wrote_draft(part.rank, ordinal.0, &write, memory);
                }
                (owner, _) => {
                    let found = || format!("draft {}", rows_of_another(write.page, owner));
                    copy.draft_outside.get_or_insert_with(found);
                }
            }
        }
    }
}
