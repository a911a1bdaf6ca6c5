//! The judge, fed by hand: one thing goes wrong at a time.

use super::*;
use crate::event::{SourcePages, Text, Writes};
use crate::memory::Stamp;
use crate::prompt::{Chains, ContentId, ContentRun};

mod drafts;
mod hits;
mod placement;
mod sources;

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
const CONFIG: ServerConfig = ServerConfig {
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
    fn new(config: ServerConfig) -> Scene {
        let mut chains = Chains::default();
        let texts = [1, 2]
            .map(|id| Rc::new(chains.sequence(0, [ContentRun::whole(ContentId(id), Tokens(24))])));
        let memory = (0..4).map(|_| Memory::new(config.decode_pages)).collect();
        let mut scene = Scene { oracle: Oracle::new(config, [PREFILL, DECODE]), memory, texts };
        for (request, text) in [ME, OTHER].into_iter().zip(scene.texts.clone()) {
            let text = Text(text);
            scene.tell(&Event::Arrived { request, text, prompt: LENGTH, admitted: true });
        }
        scene
    }

    /// The same, and [`ME`] has its pages on both sides.
    fn reserved(config: ServerConfig) -> Scene {
        let mut scene = Scene::new(config);
        scene.reserve(ME, 0, Tokens(0));
        for (server, pages) in [(PREFILL, &SOURCE[..]), (DECODE, &TABLE[..])] {
            scene.tell(&Event::Taken { server, request: ME, first: Pages(0), pages });
        }
        scene
    }

    fn tell(&mut self, event: &Event<'_>) {
        self.oracle.observe(Tick(1), event, &self.memory);
    }

    fn reserve(&mut self, request: RequestId, attempt: u32, matched: Tokens) {
        let pages = &TABLE[(matched.0 / 8) as usize..];
        self.tell(&Event::Reserved {
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
        self.tell(&Event::Queued {
            part,
            source: PREFILL,
            target: DECODE,
            source_pages: SourcePages(&SOURCE),
            target_pages: &TABLE,
        });
    }

    fn land(&mut self, part: Part, writes: &[Write]) {
        self.tell(&Event::Landed { part, writes: Writes(writes) });
        self.store(part.rank.index(), writes);
    }

    fn land_drafts(&mut self, part: Part, writes: &[Write]) {
        self.tell(&Event::DraftLanded { part, writes: Writes(writes) });
        self.store(2 + part.rank.index(), writes);
    }

    fn store(&mut self, memory: usize, writes: &[Write]) {
        for write in writes {
            self.memory[memory].write(write.page, write.extent().unwrap());
        }
    }

    /// A copy of `len` tokens of `text` from `position` on, `step` positions apart.
    fn write(&self, text: usize, page: u32, len: u32, position: u32, step: u32) -> Write {
        let (text, position) = (RequestId(text as u32), Tokens(position));
        let stamp = Stamp { text, position, written: Tick(0), writer: ME };
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
            self.tell(&Event::Read { part: part(rank), writes: Writes(&writes) });
            self.land(part(rank), &writes);
        }
    }

    fn activate(&mut self) {
        self.tell(&Event::Activated { server: DECODE, request: ME, table: &TABLE });
    }

    fn finish(&mut self, stored: Tokens) {
        self.tell(&Event::Finished { server: DECODE, request: ME, table: &TABLE, stored });
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
    let reserving = ServerConfig { reserved_tokens: 5, prefill_pages: 99, ..CONFIG };
    let few_sources = ServerConfig { prefill_pages: 3, ..CONFIG };
    let again = ServerConfig { sends_again: true, ..few_sources };
    // The whole pages that the rows behind the last one make on every rank count, too.
    let [whole, cut] = [4, 3].map(|leftover_rows| ServerConfig { leftover_rows, ..reserving });
    for (config, prompt, output, fits) in [
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
            let mut oracle = Oracle::new(config, [PREFILL, DECODE]);
            let run = ContentRun::whole(ContentId(1), Tokens(prompt + output));
            let text = Text(Rc::new(Chains::default().sequence(0, [run])));
            let prompt = Tokens(prompt);
            oracle.observe(Tick(1), &Event::Arrived { request: ME, text, prompt, admitted }, &[]);
            let wrong = oracle.findings().count(Code::CapacityWrong);
            assert_eq!(wrong, u64::from(admitted != fits), "{config:?} {prompt} {output}");
        }
    }
}

#[test]
fn a_reservation_is_of_the_pages_behind_the_match() {
    // 17 tokens need 3 pages of 8, of which a match of 8 has one.
    for (taken, expected) in
        [(1, Some(Code::ReserveShort)), (2, None), (3, Some(Code::ReserveExcess))]
    {
        let mut scene = Scene::new(CONFIG);
        let pages: Vec<PageId> = (1..=taken).map(PageId).collect();
        scene.tell(&Event::Reserved {
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
fn activation_waits_for_the_last_copy_of_the_last_piece() {
    let mut scene = Scene::reserved(CONFIG);
    scene.queue(part(0));
    scene.queue(part(1));
    scene.land(part(0), &scene.own(0));
    scene.activate();
    assert_eq!(scene.oracle.findings().count(Code::ActivateEarly), 1);
    assert_eq!(
        scene.evidence(Code::ActivateEarly).found,
        "1 of 2 copies landed, the last piece is out"
    );

    let mut scene = Scene::reserved(CONFIG);
    let more = Part { last: false, ..part(0) };
    scene.queue(more);
    scene.land(more, &scene.own(0));
    scene.activate();
    assert_eq!(scene.oracle.findings().count(Code::ActivateEarly), 1);
}

#[test]
fn a_page_given_back_for_some_of_its_rows_is_found() {
    for (start, expected) in [(0, vec![]), (1, vec![(Code::PageFreedPart, 1)])] {
        let mut scene = Scene::reserved(CONFIG);
        let page = TABLE[1];
        scene.tell(&Event::FreedPart { server: DECODE, request: ME, page, start });
        assert_eq!(scene.found(), expected, "from row {start} on");
    }
}

/// What is found at the end, when the requests of `gone` have ended. [`ME`] gave its pages back
/// unless it `keeps` them, and on each server `locked` cached pages are said to be locked.
fn close(gone: &[RequestId], keeps: bool, locked: u32, cut_short: bool) -> Vec<Finding> {
    let mut scene = Scene::reserved(CONFIG);
    let mut final_states = Vec::new();
    for (server, total, held) in [(PREFILL, 8, &SOURCE[..]), (DECODE, 4, &TABLE[..])] {
        if !keeps {
            scene.tell(&Event::Freed { server, holder: Holder::Request(ME), pages: held });
        }
        let free = (1..=total).map(PageId).filter(|page| !(keeps && held.contains(page)));
        let (free, cached) = (free.collect(), Vec::new());
        final_states.push(FinalState { server, free, cached, protected: Pages(locked) });
    }
    for &request in gone {
        scene.tell(&Event::Ended { request, outcome: Outcome::Finished });
    }
    let judgement = scene.oracle.close(Tick(2), &final_states, cut_short);
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
fn a_stall_says_who_waits_for_what_and_holds_which_pages() {
    let findings = close(&[], true, 0, false);
    let said: Vec<&str> = findings.iter().map(|finding| &*finding.found).collect();
    let me = "waits for its last piece (0 of 0 copies landed) and holds pages 2,5-6 of prefill \
              server 0 and pages 1,3 of decode server 0";
    let other = "waits for pages of decode and holds no page";
    let servers = "prefill server 0 has 5 pages free and 0 cached, 0 of them locked, decode \
                   server 0 has 2 pages free and 0 cached, 0 of them locked";
    let expected = [
        format!("nothing left to happen; it {me}; request {OTHER} {other}; {servers}"),
        format!("nothing left to happen; it {other}; request {ME} {me}; {servers}"),
    ];
    assert_eq!(said, expected);
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
        let mut scene = Scene::new(CONFIG);
        scene.tell(&Event::Refused { request: ME, code, ranks, said: "no" });
        let finding = scene.evidence(code);
        assert_eq!((&*finding.expected, &*finding.found), (expected, "no"));
        assert_eq!(finding.rank, ranks.first().copied());
    }
}

#[test]
fn rows_restored_from_the_host_are_written() {
    let mut scene = Scene::reserved(CONFIG);
    scene.tell(&Event::Restored { server: DECODE, request: ME, from: Tokens(0), to: LENGTH });
    for rank in 0..2 {
        scene.store(rank as usize, &scene.own(rank));
    }
    scene.finish(LENGTH);
    assert_eq!(scene.found(), []);
}

#[test]
fn pages_of_the_cache_are_its_own() {
    let mut scene = Scene::reserved(CONFIG);
    scene.tell(&Event::Cached { server: DECODE, request: ME, pages: &TABLE });
    scene.tell(&Event::Freed { server: DECODE, holder: Holder::Cache, pages: &TABLE[..1] });
    let books = |cached| Event::Books {
        server: DECODE,
        free: Pages(3),
        evictable: Pages(cached),
        protected: Pages(0),
    };
    scene.tell(&books(1));
    assert_eq!(scene.found(), []);
    scene.tell(&books(2));
    scene.tell(&Event::Freed { server: DECODE, holder: Holder::Request(ME), pages: &TABLE[1..] });
    assert_eq!(scene.found(), [(Code::PageTwoOwners, 1), (Code::CountDrift, 1)]);
    let owners = scene.evidence(Code::PageTwoOwners);
    assert_eq!(owners.expected, "page 1 held by request 0 that gives it back");
    assert_eq!(owners.found, "the cache");
    // A page that nobody holds.
    scene.tell(&Event::Cached { server: DECODE, request: OTHER, pages: &TABLE[..1] });
    assert_eq!(scene.oracle.findings().count(Code::PageTwoOwners), 2);
}
