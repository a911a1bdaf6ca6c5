//! The judge, fed by hand: one thing goes wrong at a time.

use super::*;
use crate::oracle::fact::{Text, Write, Writes};
use crate::pool::memory::Stamp;
use crate::prompt::{Chains, ContentId, Run};

const ME: RequestId = RequestId(0);
const OTHER: RequestId = RequestId(1);
const PREFILL: Server = Server { side: Side::Prefill, index: 0 };
const DECODE: Server = Server { side: Side::Decode, index: 0 };
/// The decode pages of [`ME`]'s 10 positions.
const TABLE: [PageId; 2] = [PageId(3), PageId(1)];
/// The prefill pages of the same.
const SOURCE: [PageId; 3] = [PageId(5), PageId(2), PageId(6)];
const LENGTH: Tokens = Tokens(10);

/// Pages of 4 rows on 2 ranks, so virtual pages of 8 positions. Either pool holds 32 positions.
const TERMS: Terms = Terms {
    page_size: 4,
    ranks: 2,
    prefill_pages: 8,
    decode_pages: 4,
    draft_rows: None,
    leftover_rows: 0,
    reserved_tokens: 0,
    sends_again: false,
};

/// A judge and what it is shown.
struct Scene {
    oracle: Oracle,
    /// Of decode, by rank, draft KV behind it.
    memory: Vec<Memory>,
    /// Of [`ME`] and [`OTHER`], 24 tokens each, none in common.
    texts: [Rc<Sequence>; 2],
}

/// [`ME`]'s first piece, for `rank`; nothing follows it.
fn part(rank: u32) -> Part {
    Part { request: ME, attempt: 0, piece: 0, rank: Rank(rank), last: true }
}

impl Scene {
    /// Two requests have arrived.
    fn new(terms: Terms) -> Scene {
        let mut chains = Chains::default();
        let texts =
            [1, 2].map(|id| Rc::new(chains.sequence(0, [Run::whole(ContentId(id), Tokens(24))])));
        let memory = (0..4).map(|_| Memory::new(terms.decode_pages)).collect();
        let mut scene = Scene { oracle: Oracle::new(terms, [PREFILL, DECODE]), memory, texts };
        for (request, text) in [ME, OTHER].into_iter().zip(scene.texts.clone()) {
            let text = Text(text);
            scene.tell(&Fact::Arrived { request, text, prompt: LENGTH, admitted: true });
        }
        scene
    }

    /// The same, and [`ME`] has its pages on both sides.
    fn reserved(terms: Terms) -> Scene {
        let mut scene = Scene::new(terms);
        scene.reserve(ME, 0, Tokens(0));
        for (server, pages) in [(PREFILL, &SOURCE[..]), (DECODE, &TABLE[..])] {
            scene.tell(&Fact::Taken { server, request: ME, first: Pages(0), pages });
        }
        scene
    }

    fn tell(&mut self, fact: &Fact<'_>) {
        self.oracle.observe(Tick(1), fact, &self.memory);
    }

    fn reserve(&mut self, request: RequestId, attempt: u32, matched: Tokens) {
        let pages = &TABLE[(matched.0 / 8) as usize..];
        self.tell(&Fact::Reserved {
            server: DECODE,
            request,
            attempt,
            length: LENGTH,
            room: LENGTH,
            matched,
            prefix: matched,
            pages,
        });
    }

    fn queue(&mut self, part: Part) {
        self.tell(&Fact::Queued {
            part,
            source: PREFILL,
            target: DECODE,
            source_pages: &SOURCE,
            target_pages: &TABLE,
        });
    }

    fn land(&mut self, part: Part, writes: &[Write]) {
        self.tell(&Fact::Landed { part, writes: Writes(writes) });
        self.store(part.rank.index(), writes);
    }

    fn land_drafts(&mut self, part: Part, writes: &[Write]) {
        self.tell(&Fact::DraftLanded { part, writes: Writes(writes) });
        self.store(2 + part.rank.index(), writes);
    }

    fn store(&mut self, memory: usize, writes: &[Write]) {
        for write in writes {
            self.memory[memory].write(write.page, write.extent().unwrap());
        }
    }

    /// A copy of `len` tokens of `text` from `position` on, `step` positions apart.
    fn write(&self, text: usize, page: u32, len: u32, position: u32, step: u32) -> Write {
        let position = Tokens(position);
        let chain = self.texts[text].chain_at(position).unwrap();
        let stamp = Stamp { chain, position, written: Tick(0), writer: ME };
        Write { page: PageId(page), start: 0, len, content: Some((stamp, step)) }
    }

    /// What [`ME`]'s piece brings `rank`, by the definition: positions rank, rank + 2, …, four rows
    /// in the first page and one in the second.
    fn own(&self, rank: u32) -> [Write; 2] {
        [self.write(0, 3, 4, rank, 2), self.write(0, 1, 1, 8 + rank, 2)]
    }

    /// [`ME`]'s piece goes and comes as it should.
    fn transfer(&mut self) {
        for rank in 0..2 {
            self.queue(part(rank));
        }
        for rank in 0..2 {
            let writes = self.own(rank);
            self.tell(&Fact::Read { part: part(rank), writes: Writes(&writes) });
            self.land(part(rank), &writes);
        }
    }

    fn activate(&mut self) {
        self.tell(&Fact::Activated { server: DECODE, request: ME, table: &TABLE });
    }

    fn finish(&mut self, stored: Tokens) {
        self.tell(&Fact::Finished { server: DECODE, request: ME, table: &TABLE, stored });
    }

    /// The codes found so far, as often as they were.
    fn found(&self) -> Vec<(Code, u64)> {
        self.oracle.findings().iter().map(|(code, kept)| (code, kept.count)).collect()
    }

    /// The evidence of the first finding of `code`.
    fn evidence(&self, code: Code) -> &Finding {
        self.oracle.findings().earliest(|it| it == code).expect("it was found")
    }
}

#[test]
fn a_request_fits_exactly_if_both_pools_can_ever_hold_it() {
    let reserving = Terms { reserved_tokens: 5, prefill_pages: 99, ..TERMS };
    let few_sources = Terms { prefill_pages: 3, ..TERMS };
    let again = Terms { sends_again: true, ..few_sources };
    // The whole pages that the rows behind the last one make on every rank count, too.
    let [whole, cut] = [4, 3].map(|leftover_rows| Terms { leftover_rows, ..reserving });
    for (terms, prompt, output, fits) in [
        // At the start 8·ceil(L/8) + reserved, at most 32.
        (reserving, 24, 1, true),
        (reserving, 25, 1, false),
        (whole, 32, 1, true),
        (whole, 33, 1, false),
        (cut, 32, 1, false),
        // At the end 8·ceil((L + out - 1)/8).
        (reserving, 16, 17, true),
        (reserving, 16, 18, false),
        // Prefill holds 12 positions: of the prompt, or of what it has to compute again.
        (few_sources, 12, 8, true),
        (few_sources, 13, 1, false),
        (again, 8, 5, true),
        (again, 8, 6, false),
    ] {
        for admitted in [true, false] {
            let mut oracle = Oracle::new(terms, [PREFILL, DECODE]);
            let run = Run::whole(ContentId(1), Tokens(prompt + output));
            let text = Text(Rc::new(Chains::default().sequence(0, [run])));
            let prompt = Tokens(prompt);
            oracle.observe(Tick(1), &Fact::Arrived { request: ME, text, prompt, admitted }, &[]);
            let wrong = oracle.findings().count(Code::CapacityWrong);
            assert_eq!(wrong, u64::from(admitted != fits), "{terms:?} {prompt} {output}");
        }
    }
}

#[test]
fn a_reservation_is_of_the_pages_behind_the_match() {
    // 17 tokens need 3 pages of 8, of which a match of 8 has one.
    for (taken, expected) in
        [(1, Some(Code::ReserveShort)), (2, None), (3, Some(Code::ReserveExcess))]
    {
        let mut scene = Scene::new(TERMS);
        let pages: Vec<PageId> = (1..=taken).map(PageId).collect();
        scene.tell(&Fact::Reserved {
            server: DECODE,
            request: ME,
            attempt: 0,
            length: Tokens(16),
            room: Tokens(17),
            matched: Tokens(8),
            prefix: Tokens(8),
            pages: &pages,
        });
        let expected: Vec<_> = expected.into_iter().map(|code| (code, 1)).collect();
        assert_eq!(scene.found(), expected, "{taken} pages");
    }
}

#[test]
fn a_transfer_that_landed_in_its_rows_is_right() {
    let mut scene = Scene::reserved(TERMS);
    scene.transfer();
    scene.activate();
    scene.finish(LENGTH);
    assert_eq!(scene.found(), []);
    assert_eq!(scene.oracle.rows_judged, 10);
    scene.oracle.chance(Chance::Planned);
    let chances = [
        (Chance::Requests, 2),
        (Chance::Reservations, 1),
        (Chance::Planned, 1),
        (Chance::Taken, 5),
        (Chance::Read, 2),
        (Chance::Landed, 2),
        (Chance::Activated, 1),
    ];
    let had = scene.oracle.chances.iter().filter(|&(_, count)| count > 0);
    assert_eq!(had.collect::<BTreeMap<_, _>>(), chances.into());
}

#[test]
fn activation_waits_for_the_last_copy_of_the_last_piece() {
    let mut scene = Scene::reserved(TERMS);
    scene.queue(part(0));
    scene.queue(part(1));
    scene.land(part(0), &scene.own(0));
    scene.activate();
    assert_eq!(scene.oracle.findings().count(Code::ActivateEarly), 1);
    assert_eq!(
        scene.evidence(Code::ActivateEarly).found,
        "1 of 2 copies landed, the last piece is out"
    );

    let mut scene = Scene::reserved(TERMS);
    let more = Part { last: false, ..part(0) };
    scene.queue(more);
    scene.land(more, &scene.own(0));
    scene.activate();
    assert_eq!(scene.oracle.findings().count(Code::ActivateEarly), 1);
}

#[test]
fn a_wrong_row_is_found_under_its_code_once_a_transfer() {
    let mut scene = Scene::reserved(TERMS);
    scene.transfer();
    // Row 1 of the first page stores positions 2 and 3; row 0 of the second 8 and 9.
    scene.store(0, &[Write { start: 1, ..scene.write(0, 3, 1, 4, 2) }]);
    scene.store(1, &[Write { start: 1, ..scene.write(1, 3, 1, 3, 2) }, scene.write(1, 1, 1, 9, 2)]);
    scene.activate();
    scene.finish(LENGTH);
    assert_eq!(scene.found(), [(Code::PlacedShifted, 1), (Code::PlacedForeign, 1)]);
    let shifted = scene.evidence(Code::PlacedShifted);
    assert_eq!((shifted.rank, &*shifted.expected), (Some(Rank(0)), "position 2 in its row"));
    let foreign = scene.evidence(Code::PlacedForeign);
    assert_eq!((foreign.rank, &*foreign.expected), (Some(Rank(1)), "position 3 in its row"));
    assert!(foreign.found.ends_with("2 of 10 rows sent, at activation"), "{}", foreign.found);

    // Nothing was sent by the next transfer.
    scene.reserve(ME, 1, Tokens(0));
    scene.finish(LENGTH);
    assert_eq!(scene.oracle.findings().count(Code::PlacedMissing), 1);
}

#[test]
fn rows_copied_without_the_striping_are_shifted_behind_the_first() {
    let mut scene = Scene::reserved(TERMS);
    scene.queue(part(0));
    scene.queue(part(1));
    // Positions 0, 1, 2, 3 where 0, 2, 4, 6 belong.
    scene.land(part(0), &[scene.write(0, 3, 4, 0, 1), scene.own(0)[1]]);
    scene.land(part(1), &scene.own(1));
    scene.activate();
    assert_eq!(scene.found(), [(Code::PlacedShifted, 1)]);
    let shifted = scene.evidence(Code::PlacedShifted);
    assert_eq!((shifted.rank, &*shifted.expected), (Some(Rank(0)), "position 2 in its row"));
    assert!(shifted.found.ends_with("3 of 10 rows sent, at activation"), "{}", shifted.found);
}

/// [`ME`] hits page 3, of which rank 1's rows are of the text of number `cached`, and runs on it.
fn hit(cached: usize) -> Scene {
    let mut scene = Scene::new(TERMS);
    scene.store(0, &[scene.write(0, 3, 4, 0, 2)]);
    scene.store(1, &[scene.write(cached, 3, 4, 1, 2)]);
    scene.tell(&Fact::Hit { server: DECODE, request: ME, pages: &TABLE[..1] });
    scene.reserve(ME, 0, Tokens(8));
    scene.finish(Tokens(8));
    scene
}

#[test]
fn a_page_that_was_right_when_it_was_hit_must_stay_so() {
    let mut scene = hit(0);
    assert_eq!(scene.found(), []);
    scene.store(1, &[scene.write(1, 3, 1, 1, 2)]);
    scene.finish(Tokens(8));
    assert_eq!(scene.found(), [(Code::PlacedForeign, 1)]);
}

#[test]
fn a_wrong_hit_is_the_cache_s_fault_and_not_the_transfer_s() {
    let scene = hit(1);
    assert_eq!(scene.found(), [(Code::CacheWrongHit, 1)]);
    let found = &scene.evidence(Code::CacheWrongHit).found;
    let first = "4 of 8 rows are not; position 1 holds position 1 of history 1,";
    assert!(found.starts_with(first), "{found}");
}

#[test]
fn a_hit_s_draft_rows_are_judged_on_every_rank() {
    for (wrong, expected) in [
        (None, vec![]),
        (Some(0), vec![(Code::CacheWrongHit, 1)]),
        (Some(1), vec![(Code::CacheWrongHit, 1)]),
    ] {
        let mut scene = Scene::new(Terms { draft_rows: Some(40), ..TERMS });
        for rank in 0..2 {
            scene.store(rank, &[scene.write(0, 3, 4, rank as u32, 2)]);
            scene.store(2 + rank, &[scene.write(usize::from(wrong == Some(rank)), 3, 8, 0, 1)]);
        }
        scene.tell(&Fact::Hit { server: DECODE, request: ME, pages: &TABLE[..1] });
        assert_eq!(scene.found(), expected, "{wrong:?}");
    }
}

#[test]
fn a_hit_counts_every_wrong_row_whatever_it_holds() {
    let mut scene = Scene::new(TERMS);
    // Positions 0 and 2 of another text, 4 and 6 never written; 3, 5, 7 and 9 where 1, 3, 5, 7 belong.
    scene.store(0, &[scene.write(1, 3, 2, 0, 2)]);
    scene.store(1, &[scene.write(0, 3, 4, 3, 2)]);
    scene.tell(&Fact::Hit { server: DECODE, request: ME, pages: &TABLE[..1] });
    let found = &scene.evidence(Code::CacheWrongHit).found;
    assert!(found.starts_with("8 of 8 rows are not; position 0 holds"), "{found}");
}

#[test]
fn a_hit_past_the_end_of_the_text_is_wrong() {
    let mut scene = Scene::new(TERMS);
    let pages: Vec<PageId> = (1..=4).map(PageId).collect();
    for (ordinal, page) in (0..3).zip(1..) {
        for rank in 0..2 {
            scene.store(rank, &[scene.write(0, page, 4, ordinal * 8 + rank as u32, 2)]);
        }
    }
    scene.tell(&Fact::Hit { server: DECODE, request: ME, pages: &pages[..3] });
    assert_eq!(scene.found(), []);
    scene.tell(&Fact::Hit { server: DECODE, request: ME, pages: &pages });
    assert_eq!(scene.evidence(Code::CacheWrongHit).found, "32 tokens of a text of 24");
}

#[test]
fn a_source_page_given_back_is_found_once_a_copy() {
    for (holder, expected) in [(ME, vec![(Code::ReadFreed, 2)]), (OTHER, vec![])] {
        let mut scene = Scene::reserved(TERMS);
        let others = [PageId(7)];
        let taken =
            Fact::Taken { server: PREFILL, request: OTHER, first: Pages(0), pages: &others };
        scene.tell(&taken);
        scene.queue(part(0));
        scene.queue(part(1));
        let pages = if holder == ME { &SOURCE[1..2] } else { &others[..] };
        scene.tell(&Fact::Freed { server: PREFILL, holder: Holder::Request(holder), pages });
        for rank in 0..2 {
            let writes = scene.own(rank);
            scene.tell(&Fact::Read { part: part(rank), writes: Writes(&writes) });
            scene.land(part(rank), &writes);
        }
        assert_eq!(scene.found(), expected);
    }
}

#[test]
fn a_source_page_stays_while_it_is_its_request_s_or_the_cache_s() {
    let (server, pages, first) = (PREFILL, &SOURCE[..1], Pages(0));
    let freed = Fact::Freed { server, holder: Holder::Request(ME), pages };
    let taken = |request| Fact::Taken { server, request, first, pages };
    let cached = Fact::Cached { server, request: ME, pages };
    for (facts, gone) in [
        (vec![cached.clone()], 0),
        (vec![taken(OTHER)], 1),
        // Back in the same hands, it is another page.
        (vec![freed.clone(), taken(ME)], 1),
        (vec![freed, taken(ME), cached], 1),
    ] {
        let mut scene = Scene::reserved(TERMS);
        scene.queue(part(0));
        for fact in &facts {
            scene.tell(fact);
        }
        scene.land(part(0), &scene.own(0));
        assert_eq!(scene.oracle.findings().count(Code::ReadFreed), gone, "{facts:?}");
    }
}

#[test]
fn page_0_is_nobody_s_and_cannot_go() {
    let mut scene = Scene::reserved(TERMS);
    let (source, target) = (PREFILL, DECODE);
    let (source_pages, target_pages) = (&[SOURCE[0], PageId(0)], &TABLE);
    scene.tell(&Fact::Queued { part: part(0), source, target, source_pages, target_pages });
    scene.land(part(0), &scene.own(0));
    assert_eq!(scene.found(), []);
}

#[test]
fn a_source_page_is_in_use_until_its_piece_has_landed_on_every_rank() {
    for landed in 0..=2 {
        let mut scene = Scene::reserved(TERMS);
        scene.queue(part(0));
        scene.queue(part(1));
        for rank in 0..landed {
            scene.land(part(rank), &scene.own(rank));
        }
        let (server, pages) = (PREFILL, &SOURCE[..1]);
        scene.tell(&Fact::Freed { server, holder: Holder::Request(ME), pages });
        scene.tell(&Fact::Taken { server, request: OTHER, first: Pages(0), pages });
        let expected: &[_] = if landed < 2 { &[(Code::PageTwoOwners, 1)] } else { &[] };
        assert_eq!(scene.found(), expected, "{landed} of 2 parts landed");
    }
}

#[test]
fn every_page_given_back_is_checked() {
    let mut scene = Scene::reserved(TERMS);
    let holder = Holder::Request(ME);
    scene.queue(part(0));
    scene.tell(&Fact::Freed { server: DECODE, holder, pages: &TABLE });
    assert_eq!(scene.found(), [(Code::PageFreedInFlight, 2)]);
    scene.tell(&Fact::Freed { server: DECODE, holder, pages: &TABLE[1..] });
    let twice = scene.evidence(Code::PageFreedTwice);
    assert_eq!((twice.request, &*twice.expected), (Some(ME), "page 1 held by request 0"));
    assert_eq!(scene.oracle.chances.get(Chance::Freed), 3);
}

#[test]
fn a_copy_to_another_s_page_is_found_with_the_owner() {
    let mut scene = Scene::reserved(TERMS);
    let pages = [PageId(2)];
    scene.tell(&Fact::Taken { server: DECODE, request: OTHER, first: Pages(0), pages: &pages });
    scene.queue(part(0));
    scene.land(part(0), &[scene.write(0, 3, 4, 0, 2), scene.write(0, 2, 1, 8, 2)]);
    assert_eq!(scene.found(), [(Code::PlacedOutside, 1)]);
    let found = &scene.evidence(Code::PlacedOutside).found;
    assert_eq!(found, "rows of page 2, owned by Request(RequestId(1), Pages(0))");
}

#[test]
fn rows_written_again_with_others_are_found() {
    let mut scene = Scene::reserved(TERMS);
    scene.queue(part(0));
    scene.land(part(0), &scene.own(0));
    let second = Part { piece: 1, ..part(0) };
    scene.queue(second);
    scene.land(second, &scene.own(0));
    assert_eq!(scene.found(), [], "the same again");
    let third = Part { piece: 2, ..part(0) };
    scene.queue(third);
    scene.land(third, &[scene.write(0, 3, 2, 4, 2)]);
    assert_eq!(scene.found(), [(Code::PlacedTwice, 1)]);
    let found = &scene.evidence(Code::PlacedTwice).found;
    assert_eq!(found, "2 rows of piece 2 written over with others");
}

#[test]
fn a_row_must_be_written_before_it_is_read_unless_it_lies_behind_the_end() {
    // The second page's row 0 stores positions 8 and 9, the last ones.
    for (row, rank, expected) in [
        (0, 0, vec![(Code::ReadUnwritten, 1)]),
        (0, 1, vec![(Code::ReadUnwritten, 1)]),
        (1, 0, vec![]),
    ] {
        let mut scene = Scene::reserved(TERMS);
        scene.queue(part(rank));
        let empty = Write { page: TABLE[1], start: row, len: 1, content: None };
        scene.tell(&Fact::Read { part: part(rank), writes: Writes(&[empty]) });
        assert_eq!(scene.found(), expected, "row {row} on rank {rank}");
    }
    // In another's page, no row lies behind the end of this request.
    let mut scene = Scene::reserved(TERMS);
    let pages = [PageId(2)];
    scene.tell(&Fact::Taken { server: DECODE, request: OTHER, first: Pages(2), pages: &pages });
    scene.queue(part(0));
    let empty = Write { page: pages[0], start: 0, len: 1, content: None };
    scene.tell(&Fact::Read { part: part(0), writes: Writes(&[empty]) });
    assert_eq!(scene.found(), [(Code::ReadUnwritten, 1)]);
    // Read from its first row on, a page brings what it holds of this text and no more than that.
    let mut scene = Scene::reserved(TERMS);
    scene.queue(part(0));
    let foreign = scene.write(1, 3, 4, 0, 2);
    scene.tell(&Fact::Read { part: part(0), writes: Writes(&[scene.own(0)[1], foreign]) });
    assert_eq!(scene.found(), [(Code::ReadUnwritten, 1)]);
}

/// Draft pages have 8 rows; with 39 of them the last page, 4, lacks its last row.
#[test]
fn draft_rows_past_the_last_are_outside() {
    for (start, len, outside) in [(0, 7, false), (0, 8, true), (4, 3, false), (4, 4, true)] {
        let mut scene = Scene::reserved(Terms { draft_rows: Some(39), ..TERMS });
        let pages = [PageId(4)];
        scene.tell(&Fact::Taken { server: DECODE, request: ME, first: Pages(2), pages: &pages });
        scene.queue(part(0));
        let last = Write { start, ..scene.write(0, 4, len, 16 + start, 1) };
        scene.land_drafts(part(0), &[scene.write(0, 3, 8, 0, 1), last]);
        scene.land(part(0), &[]);
        let expected: &[_] = if outside { &[(Code::PlacedOutside, 1)] } else { &[] };
        assert_eq!(scene.found(), expected, "{len} rows from {start} on");
        if outside {
            assert_eq!(scene.evidence(Code::PlacedOutside).found, "draft row 39 of 39");
        }
    }
}

#[test]
fn a_draft_row_in_another_s_page_is_outside() {
    let mut scene = Scene::reserved(Terms { draft_rows: Some(40), ..TERMS });
    let pages = [PageId(2)];
    scene.tell(&Fact::Taken { server: DECODE, request: OTHER, first: Pages(0), pages: &pages });
    scene.queue(part(0));
    scene.land_drafts(part(0), &[scene.write(0, 3, 8, 0, 1), scene.write(0, 2, 2, 8, 1)]);
    scene.land(part(0), &scene.own(0));
    assert_eq!(scene.found(), [(Code::PlacedOutside, 1)]);
    let found = &scene.evidence(Code::PlacedOutside).found;
    assert_eq!(found, "draft rows of page 2, owned by Request(RequestId(1), Pages(0))");
}

#[test]
fn every_rank_s_draft_rows_are_judged() {
    for wrong in [None, Some(0), Some(1)] {
        let mut scene = Scene::reserved(Terms { draft_rows: Some(40), ..TERMS });
        for rank in 0..2 {
            scene.queue(part(rank));
            let text = usize::from(wrong == Some(rank));
            let drafts = [scene.write(0, 3, 8, 0, 1), scene.write(text, 1, 2, 8, 1)];
            scene.land_drafts(part(rank), &drafts);
            scene.land(part(rank), &scene.own(rank));
        }
        scene.activate();
        let Some(rank) = wrong else {
            assert_eq!(scene.found(), []);
            continue;
        };
        assert_eq!(scene.found(), [(Code::PlacedForeign, 1)]);
        let foreign = scene.evidence(Code::PlacedForeign);
        assert_eq!((foreign.rank, &*foreign.expected), (Some(Rank(rank)), "position 8 in its row"));
        let found = &foreign.found;
        assert!(found.ends_with("2 of 10 rows of the draft KV at activation"), "{found}");
    }
}

#[test]
fn draft_rows_written_again_with_others_are_found() {
    for rank in 0..2 {
        let mut scene = Scene::reserved(Terms { draft_rows: Some(40), ..TERMS });
        let right = [scene.write(0, 3, 8, 0, 1)];
        scene.queue(part(rank));
        scene.land_drafts(part(rank), &right);
        scene.land(part(rank), &scene.own(rank));
        let second = Part { piece: 1, ..part(rank) };
        scene.queue(second);
        scene.land_drafts(second, &right);
        scene.land(second, &[]);
        assert_eq!(scene.found(), [], "the same again");
        let third = Part { piece: 2, ..part(rank) };
        scene.queue(third);
        scene.land_drafts(third, &[scene.write(0, 3, 2, 1, 1)]);
        scene.land(third, &[]);
        assert_eq!(scene.found(), [(Code::PlacedTwice, 1)]);
        let found = &scene.evidence(Code::PlacedTwice).found;
        assert_eq!(found, "2 rows of piece 2 written over with others");
    }
}

#[test]
fn a_page_given_back_for_some_of_its_rows_is_found() {
    for (start, expected) in [(0, vec![]), (1, vec![(Code::PageFreedPart, 1)])] {
        let mut scene = Scene::reserved(TERMS);
        let page = TABLE[1];
        scene.tell(&Fact::FreedPart { server: DECODE, request: ME, page, start });
        assert_eq!(scene.found(), expected, "from row {start} on");
    }
}

/// What is found at the end, when the requests of `gone` have ended. [`ME`] gave its pages back unless
/// it `keeps` them, and on each server `locked` cached pages are said to be locked.
fn close(gone: &[RequestId], keeps: bool, locked: u32, cut_short: bool) -> Vec<Finding> {
    let mut scene = Scene::reserved(TERMS);
    let mut remains = Vec::new();
    for (server, total, held) in [(PREFILL, 8, &SOURCE[..]), (DECODE, 4, &TABLE[..])] {
        if !keeps {
            scene.tell(&Fact::Freed { server, holder: Holder::Request(ME), pages: held });
        }
        let free = (1..=total).map(PageId).filter(|page| !(keeps && held.contains(page)));
        let (free, cached) = (free.collect(), Vec::new());
        remains.push(Remains { server, free, cached, protected: Pages(locked) });
    }
    for &request in gone {
        scene.tell(&Fact::Ended { request, outcome: Outcome::Finished });
    }
    let judgement = scene.oracle.close(Tick(2), &remains, cut_short);
    assert_eq!(judgement.chances.get(Chance::Checks), 2);
    judgement.findings.iter().flat_map(|(_, kept)| kept.first.clone()).collect()
}

#[test]
fn at_the_end_nothing_is_left() {
    let both = [ME, OTHER];
    let found = |gone: &[RequestId], keeps, locked, cut_short| -> Vec<_> {
        let findings = close(gone, keeps, locked, cut_short);
        findings.iter().map(|finding| (finding.code, finding.request)).collect()
    };
    let stalled = |request| (Code::StallNoProgress, request);
    assert_eq!(found(&both, false, 0, false), []);
    // Five pages are held by a request that has ended.
    assert_eq!(found(&both, true, 0, false), [(Code::PageLeaked, Some(ME)); 5]);
    assert_eq!(found(&[OTHER], true, 0, false), [stalled(Some(ME))]);
    assert_eq!(found(&[ME], false, 0, false), [stalled(Some(OTHER))]);
    // A lock is in order while a request is open.
    assert_eq!(found(&both, false, 1, false), [(Code::CountDrift, None); 2]);
    assert_eq!(found(&[OTHER], true, 1, false), [stalled(Some(ME))]);
    // Who has not arrived when a run is cut short never will.
    assert_eq!(found(&both, false, 0, true), [stalled(None)]);
    assert_eq!(found(&[OTHER], true, 0, true), [stalled(Some(ME))]);
}

#[test]
fn a_dense_hit_is_judged_densely_and_what_it_brought_is_not_a_read_of_nothing() {
    for (text, again, expected) in [
        (0, None, vec![(Code::ReadUnwritten, 1)]),
        (1, None, vec![(Code::CacheWrongHit, 1)]),
        // The prompt is looked up anew, and is right.
        (1, Some(0), vec![(Code::ReadUnwritten, 1), (Code::CacheWrongHit, 1)]),
    ] {
        let mut scene = Scene::reserved(TERMS);
        for text in [Some(text), again].into_iter().flatten() {
            let hit = Fact::Hit { server: PREFILL, request: ME, pages: &SOURCE[..1] };
            let mut memory = Memory::new(TERMS.prefill_pages);
            let cached = scene.write(text, SOURCE[0].0, 4, 0, 1);
            memory.write(SOURCE[0], cached.extent().unwrap());
            scene.oracle.observe(Tick(1), &hit, &[memory]);
        }
        scene.queue(part(0));
        let foreign = scene.write(1, 3, 2, 0, 2);
        scene.tell(&Fact::Read { part: part(0), writes: Writes(&[foreign]) });
        assert_eq!(scene.found(), expected, "{text} {again:?}");
    }
}

#[test]
fn a_refusal_says_what_should_have_been() {
    for (code, ranks, expected) in [
        (Code::RefusedCapacity, &[][..], "a request that the pools can hold"),
        (Code::RefusedTopology, &[], "peers that can be connected"),
        (
            Code::RefusedShortfall,
            &[Rank(1), Rank(0)],
            "a plan for each of 2 ranks; refused by 1, 0",
        ),
    ] {
        let mut scene = Scene::new(TERMS);
        scene.tell(&Fact::Refused { request: ME, code, ranks, said: "no" });
        let finding = scene.evidence(code);
        assert_eq!((&*finding.expected, &*finding.found), (expected, "no"));
        assert_eq!(finding.rank, ranks.first().copied());
    }
}

#[test]
fn what_lands_after_its_request_ended_is_outside() {
    let ended = Fact::Ended { request: ME, outcome: Outcome::Aborted };
    for after in [Fact::Retracted { request: ME }, ended] {
        let mut scene = Scene::reserved(TERMS);
        scene.queue(part(0));
        scene.tell(&after);
        scene.land(part(0), &scene.own(0));
        assert_eq!(scene.found(), [(Code::PlacedOutside, 1)], "{after:?}");
    }
    // The next attempt does not make the copies of the last one its own.
    let mut scene = Scene::reserved(TERMS);
    scene.queue(part(0));
    scene.reserve(ME, 1, Tokens(0));
    scene.land(part(0), &scene.own(0));
    assert_eq!(scene.found(), [(Code::PlacedOutside, 1)]);
}

#[test]
fn rows_restored_from_the_host_are_written() {
    let mut scene = Scene::reserved(TERMS);
    scene.tell(&Fact::Restored { server: DECODE, request: ME, from: Tokens(0), to: LENGTH });
    for rank in 0..2 {
        scene.store(rank as usize, &scene.own(rank));
    }
    scene.finish(LENGTH);
    assert_eq!(scene.found(), []);
}

#[test]
fn pages_of_the_cache_are_its_own() {
    let mut scene = Scene::reserved(TERMS);
    scene.tell(&Fact::Cached { server: DECODE, request: ME, pages: &TABLE });
    scene.tell(&Fact::Freed { server: DECODE, holder: Holder::Cache, pages: &TABLE[..1] });
    let books = |cached| Fact::Books {
        server: DECODE,
        free: Pages(3),
        evictable: Pages(cached),
        protected: Pages(0),
    };
    scene.tell(&books(1));
    assert_eq!(scene.found(), []);
    scene.tell(&books(2));
    scene.tell(&Fact::Freed { server: DECODE, holder: Holder::Request(ME), pages: &TABLE[1..] });
    assert_eq!(scene.found(), [(Code::PageTwoOwners, 1), (Code::CountDrift, 1)]);
    let owners = scene.evidence(Code::PageTwoOwners);
    assert_eq!(owners.expected, "page 1 held by request 0 that gives it back");
    assert_eq!(owners.found, "the cache");
    // A page that nobody holds.
    scene.tell(&Fact::Cached { server: DECODE, request: OTHER, pages: &TABLE[..1] });
    assert_eq!(scene.oracle.findings().count(Code::PageTwoOwners), 2);
}
