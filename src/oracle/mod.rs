//! The oracle: it is fed what happened and judges it against the definition.
//!
//! It shares no code with what it judges. All that it uses, itself or through others, are `units`,
//! `limits`, `prompt`, `memory`, `finding` and `event`: the words for what happened, and what the
//! rows hold, which the world writes and the oracle reads. Owner and row it works out in a few
//! lines of its own (`placement`); it keeps its own ledger of page owners (`ownership`) and counts
//! the pages needed itself. What it says are [`Finding`]s, counted against their chances.
//!
//! ```
//! use kvseam::event::{Event, Holder, Server};
//! use kvseam::finding::{Code, Side};
//! use kvseam::oracle::{Oracle, ServerConfig};
//! use kvseam::units::{PageId, Tick};
//!
//! let config = ServerConfig {
//!     page_size: 4,
//!     ranks: 2,
//!     prefill_pages: 16,
//!     decode_pages: 8,
//!     draft_rows: None,
//!     leftover_rows: 0,
//!     reserved_tokens: 0,
//!     sends_again: false,
//! };
//! let server = Server { side: Side::Prefill, index: 0 };
//! let mut oracle = Oracle::new(config, [server]);
//! // A page goes back that nobody has taken.
//! let freed = Event::Freed { server, holder: Holder::Cache, pages: &[PageId(3)] };
//! oracle.observe(Tick(5), &freed, &[]);
//! assert_eq!(oracle.findings().count(Code::PageFreedTwice), 1);
//! ```

use std::rc::Rc;

use crate::finding::{Chance, Code, Finding, Findings, Tally};
use crate::memory::Memory;
use crate::prompt::{Sequence, Texts};
use crate::units::{PageId, Pages, Rank, RequestId, Tick, Tokens};

mod copies;
mod demand;
mod evidence;
mod ownership;
mod placement;
mod progress;
mod requests;
mod stall;

use crate::event::{Event, Holder, Outcome, Part, Server, Side, Write};
use copies::Copies;
use demand::Demand;
use evidence::describe;
use ownership::{Ledger, Ledgers, Violation};
pub use placement::Fate;
use placement::{Stripes, Transfer, Verdict};
use progress::Progress;
use requests::{Record, Requests, Stage};
use stall::Stall;

/// What the oracle must know of the servers. Pools in pages of their allocator.
#[derive(Clone, Copy, Debug)]
pub struct ServerConfig {
    /// Rows of a physical page.
    pub page_size: u32,
    /// Decode ranks.
    pub ranks: u32,
    /// Pages of each prefill pool.
    pub prefill_pages: u32,
    /// Virtual pages of each decode pool.
    pub decode_pages: u32,
    /// Whether every decode rank keeps draft KV, and in how many rows.
    pub draft_rows: Option<u32>,
    /// Rows of each decode rank behind its last page.
    pub leftover_rows: u32,
    /// Tokens that decode keeps back for each request.
    pub reserved_tokens: u32,
    /// Whether prefill may be asked to compute the output again.
    pub sends_again: bool,
}

/// The judge of one run.
pub struct Oracle {
    config: ServerConfig,
    stripes: Stripes,
    ledgers: Ledgers,
    requests: Requests,
    texts: Texts,
    copies: Copies,
    progress: Progress,
    findings: Findings,
    chances: Tally<Chance>,
    rows_judged: u64,
}

/// What a server has when all is over.
pub struct FinalState {
    /// Which server.
    pub server: Server,
    /// Its allocator's free pages, as often as they are on its lists.
    pub free: Vec<PageId>,
    /// Its cache's pages.
    pub cached: Vec<PageId>,
    /// How many of those are locked.
    pub protected: Pages,
}

/// What the oracle has found when all is over.
pub struct Judgement {
    /// What went wrong.
    pub findings: Findings,
    /// How often it could have.
    pub chances: Tally<Chance>,
    /// Positions judged at activation that had to be sent.
    pub rows_judged: u64,
}

impl Oracle {
    /// A judge of `servers` under `config`. Servers of a kind come in the order of their numbers,
    /// from 0.
    pub fn new(config: ServerConfig, servers: impl IntoIterator<Item = Server>) -> Oracle {
        let mut ledgers = Ledgers::default();
        for server in servers {
            let pages = match server.side {
                Side::Prefill => config.prefill_pages,
                Side::Decode => config.decode_pages,
            };
            ledgers.open(server.side, Ledger::new(Pages(pages)));
        }
        Oracle {
            config,
            stripes: Stripes {
                page: config.page_size,
                ranks: config.ranks,
                draft: config.draft_rows.is_some(),
            },
            ledgers,
            requests: Requests::default(),
            texts: Texts::default(),
            copies: Copies::default(),
            progress: Progress::default(),
            findings: Findings::default(),
            chances: Tally::default(),
            rows_judged: 0,
        }
    }

    /// Takes note of `event`. `memory` is that of the event's decode server by rank, with draft KV,
    /// if there is any, by rank behind it; or of its prefill server. It is as it is before what the
    /// event announces is written.
    pub fn observe(&mut self, tick: Tick, event: &Event<'_>, memory: &[Memory]) {
        match *event {
            Event::Arrived { request, ref text, prompt, admitted } => {
                self.arrived(tick, request, &text.0, prompt, admitted);
            }
            Event::Refused { request, code, ranks, said } => {
                self.refused(tick, request, code, ranks, said);
            }
            Event::Hit { server, request, pages } => self.hit(tick, server, request, pages, memory),
            Event::Reserved { request, attempt, length, room, matched, prefix, pages, .. } => {
                self.reserved(tick, (request, attempt), (length, room), matched, prefix, pages);
            }
            Event::Taken { server, request, first, pages } => {
                self.taken(tick, server, request, first, pages);
            }
            Event::Cached { server, request, pages } => self.cached(tick, server, request, pages),
            Event::Freed { server, holder, pages } => self.freed(tick, server, holder, pages),
            Event::Queued { part, source, target, source_pages, target_pages } => {
                self.queued(part, (source, target), source_pages.0, target_pages);
            }
            Event::Read { part, writes } => self.read(tick, part, writes.0),
            Event::Landed { part, writes } => self.landed(tick, part, writes.0, memory),
            Event::Restored { request, from, to, .. } => {
                self.transfer(request).wrote_positions(from, to);
            }
            Event::Activated { request, table, .. } => self.activated(tick, request, table, memory),
            Event::Finished { request, table, stored, .. } => {
                self.finished(tick, request, table, stored, memory);
            }
            Event::Retracted { request } => {
                let record = self.record(request);
                (record.transfer, record.stage) = (None, Stage::Retracted);
                record.has_source = false;
                record.cached = Vec::new();
            }
            Event::Ended { request, outcome } => self.ended(request, outcome),
            Event::FreedPart { server, request, page, start } => {
                self.freed_part(tick, server, request, page, start);
            }
            Event::DraftLanded { part, writes } => self.draft_landed(part, writes.0, memory),
            Event::Books { server, free, evictable, protected } => {
                self.chances.add(Chance::Checks, 1);
                let violation = self.ledger(server).books(free, evictable, protected);
                self.report(tick, None, None, violation);
            }
        }
    }

    /// What went wrong so far.
    pub fn findings(&self) -> &Findings {
        &self.findings
    }

    /// What became of each position that the request's present transfer stores in `table` when it
    /// is complete, from 0 on, as far as is known now. `memory` is that of the request's decode
    /// server by rank. Draft KV is left out.
    pub fn fates(&self, request: RequestId, table: &[PageId], memory: &[Memory]) -> Vec<Fate> {
        let transfer = self.requests.transfer(request);
        transfer.map_or_else(Vec::new, |transfer| transfer.fates(table, (memory, &self.texts)))
    }

    /// Whether the copy `part` writes in every row the KV of the position that the row stores,
    /// where the request's pages are those of `table`. Of a transfer that has ended nothing
    /// belongs.
    pub fn belongs(&self, table: &[PageId], part: Part, writes: &[Write]) -> bool {
        let transfer = self.requests.transfer(part.request);
        let Some(transfer) = transfer.filter(|transfer| transfer.attempt == part.attempt) else {
            return writes.is_empty();
        };
        writes.iter().all(|write| {
            let ordinal = (0..).zip(table).find(|(_, page)| **page == write.page);
            ordinal.is_some_and(|(ordinal, _)| {
                transfer.belongs(part.rank, ordinal, write, &self.texts)
            })
        })
    }

    /// Counts a chance that no event carries.
    pub fn chance(&mut self, chance: Chance) {
        self.chances.add(chance, 1);
    }

    /// The end of everything, with what each server then has.
    pub fn close(mut self, tick: Tick, final_states: &[FinalState], cut_short: bool) -> Judgement {
        let open: Vec<RequestId> = self.progress.open().iter().copied().collect();
        let why = if cut_short {
            "the bound on events or the last tick was reached"
        } else {
            "nothing left to happen"
        };
        let stall = Stall::new(&open, &self.requests, &self.ledgers, final_states);
        for (request, text) in stall.texts() {
            let found = format!("{why}; {text}");
            self.find(tick, Code::StallNoProgress, Some(request), None, "an end", &found);
        }
        if cut_short && open.is_empty() {
            // Requests that have not arrived yet will not.
            self.find(tick, Code::StallNoProgress, None, None, "an end", why);
        }
        for server in final_states {
            self.chances.add(Chance::Checks, 1);
            self.close_server(tick, server, &open);
        }
        let Oracle { findings, chances, rows_judged, .. } = self;
        Judgement { findings, chances, rows_judged }
    }

    /// Scans one server's pages in full: nothing is held for a request that has ended, nothing is
    /// locked when all have, and the lists of pool and cache are those of the ledger.
    fn close_server(&mut self, tick: Tick, state: &FinalState, open: &[RequestId]) {
        let FinalState { server, ref free, ref cached, protected } = *state;
        let ledger = self.ledgers.of(server);
        let leaked: Vec<_> =
            ledger.held().filter(|(_, request)| open.binary_search(request).is_err()).collect();
        let disagreement = ledger.scan(free, cached);
        for (page, request) in leaked {
            let found = format!("page {page} of {server} is still held");
            let expected = "no page held after the end";
            self.find(tick, Code::PageLeaked, Some(request), None, expected, &found);
        }
        self.report(tick, None, None, disagreement);
        if open.is_empty() && protected > Pages(0) {
            let found = format!("{protected} pages of {server} are still locked");
            self.find(tick, Code::CountDrift, None, None, "no lock after the end", &found);
        }
    }

    fn ledger(&mut self, server: Server) -> &mut Ledger {
        self.ledgers.of_mut(server)
    }

    fn record(&mut self, request: RequestId) -> &mut Record {
        self.requests.get(request)
    }

    /// The request's transfer, and what it is judged by.
    fn judged(&mut self, request: RequestId) -> (&mut Transfer, &Texts) {
        let transfer = self.requests.get(request).transfer.as_mut();
        (transfer.expect("the event follows a reservation"), &self.texts)
    }

    fn transfer(&mut self, request: RequestId) -> &mut Transfer {
        self.record(request).transfer.as_mut().expect("the event follows a reservation")
    }

    fn find(
        &mut self,
        tick: Tick,
        code: Code,
        request: Option<RequestId>,
        rank: Option<Rank>,
        expected: &str,
        found: &str,
    ) {
        let (expected, found) = (expected.to_owned(), found.to_owned());
        self.findings.add(Finding { code, tick, request, rank, expected, found });
    }

    fn report(
        &mut self,
        tick: Tick,
        request: Option<RequestId>,
        rank: Option<Rank>,
        violations: impl IntoIterator<Item = Violation>,
    ) {
        for Violation { code, expected, found } in violations {
            self.findings.add(Finding { code, tick, request, rank, expected, found });
        }
    }

    /// What a request needs of both pools.
    fn demand(&self, prompt: Tokens, length: Tokens) -> Demand {
        let positions = u64::from(self.stripes.page_positions());
        let stored = length - Tokens(1);
        let at_start = u64::from(self.stripes.pages(prompt)) * positions
            + u64::from(self.config.reserved_tokens);
        let at_end = u64::from(self.stripes.pages(stored)) * positions;
        let computed = if self.config.sends_again { stored } else { prompt };
        // A page is whole on every rank, or it is none.
        let page = u64::from(self.config.page_size);
        let rows =
            u64::from(self.config.decode_pages) * page + u64::from(self.config.leftover_rows);
        Demand {
            decode: at_start.max(at_end),
            decode_most: rows / page * positions,
            prefill: computed.0.into(),
            prefill_most: u64::from(self.config.prefill_pages) * page,
        }
    }

    fn arrived(
        &mut self,
        tick: Tick,
        request: RequestId,
        text: &Rc<Sequence>,
        prompt: Tokens,
        admitted: bool,
    ) {
        self.chances.add(Chance::Requests, 1);
        self.progress.arrived(request);
        self.texts.insert(request, Rc::clone(text));
        self.requests.insert(request, Record::default());
        let demand = self.demand(prompt, text.len());
        if demand.fits() != admitted {
            let words = |yes| if yes { "let in" } else { "refused" };
            let expected = format!("{}: {demand}", words(demand.fits()));
            self.find(tick, Code::CapacityWrong, Some(request), None, &expected, words(admitted));
        }
    }

    fn refused(&mut self, tick: Tick, request: RequestId, code: Code, ranks: &[Rank], said: &str) {
        let rank = ranks.first().copied();
        let expected = match code {
            Code::RefusedCapacity => "a request that the pools can hold".to_owned(),
            _ if ranks.is_empty() => "peers that can be connected".to_owned(),
            _ => format!(
                "a plan for each of {} ranks; refused by {}",
                self.config.ranks,
                ranks.iter().map(Rank::to_string).collect::<Vec<_>>().join(", ")
            ),
        };
        self.find(tick, code, Some(request), rank, &expected, said);
    }

    fn hit(
        &mut self,
        tick: Tick,
        server: Server,
        request: RequestId,
        pages: &[PageId],
        memory: &[Memory],
    ) {
        self.chances.add(Chance::Hits, 1);
        self.has_source(server, request);
        self.record(request).cached.push((server, pages.into()));
        let stripes = match server.side {
            Side::Prefill => Stripes { ranks: 1, draft: false, ..self.stripes },
            Side::Decode => self.stripes,
        };
        let text_len = self.texts.get(request).expect("events follow an arrival").len();
        let whole = Tokens(Pages::of(pages).0 * stripes.page_positions());
        // Content alone counts here, so everything counts as matched.
        let end = whole.min(text_len);
        let longer = whole > text_len;
        let content = Transfer::new(stripes, request, whole, whole, whole);
        let shown = (memory, &self.texts);
        let target = content.judge(pages, shown, Tokens(0), end);
        let drafts = content.judge_drafts(pages, shown, Tokens(0), end);
        let right =
            |verdict: &Verdict| *verdict == Verdict { rows: verdict.rows, ..Verdict::default() };
        let wrong = drafts.into_iter().map(|(_, draft)| draft).find(|draft| !right(draft));
        let verdict = if right(&target) { wrong.unwrap_or(target) } else { target };
        if longer || !right(&verdict) {
            let wrong = verdict.missing.rows + verdict.shifted.rows + verdict.foreign.rows;
            let first = verdict
                .by_code()
                .into_iter()
                .filter_map(|(_, wrong)| wrong.first)
                .min_by_key(|(position, _)| *position);
            let found = match first {
                Some((position, held)) => {
                    let held = describe(held, &self.texts);
                    format!(
                        "{wrong} of {} rows are not; position {position} holds {held}",
                        verdict.rows
                    )
                }
                None => format!("{whole} tokens of a text of {end}"),
            };
            let expected = format!("{whole} tokens that are the request's own");
            self.find(tick, Code::CacheWrongHit, Some(request), None, &expected, &found);
            let transfer = self.present_or_next(request);
            match server.side {
                Side::Decode => transfer.trust_match(false),
                Side::Prefill => transfer.source_right = false,
            }
        } else if server.side == Side::Prefill
            && let Some(transfer) = &mut self.record(request).transfer
        {
            // A request that gave way looks its prompt up again.
            transfer.source_right = true;
        }
    }

    /// Notes that a request has pages on `server`.
    fn has_source(&mut self, server: Server, request: RequestId) {
        self.record(request).has_source |= server.side == Side::Prefill;
    }

    /// The request's transfer, or what is to be remembered for the reservation that follows.
    fn present_or_next(&mut self, request: RequestId) -> &mut Transfer {
        let (stripes, none) = (self.stripes, Tokens(0));
        let record = self.record(request);
        record.transfer.get_or_insert_with(|| Transfer::new(stripes, request, none, none, none))
    }

    fn reserved(
        &mut self,
        tick: Tick,
        (request, attempt): (RequestId, u32),
        (length, room): (Tokens, Tokens),
        matched: Tokens,
        prefix: Tokens,
        pages: &[PageId],
    ) {
        self.chances.add(Chance::Reservations, 1);
        let stripes = self.stripes;
        let record = self.record(request);
        let hits = record.transfer.take();
        let (match_right, source_right) =
            hits.map_or((true, true), |hits| (hits.match_right, hits.source_right));
        let mut transfer = Transfer::new(stripes, request, length, prefix, matched);
        transfer.trust_match(match_right);
        transfer.source_right = source_right;
        transfer.attempt = attempt;
        (record.transfer, record.stage) = (Some(transfer), Stage::Reserved);
        record.has_source &= attempt == 0;
        let needed = stripes.pages(room) - matched.0 / stripes.page_positions();
        let got = Pages::of(pages).0;
        let code = match got.cmp(&needed) {
            std::cmp::Ordering::Less => Code::ReserveShort,
            std::cmp::Ordering::Equal => return,
            std::cmp::Ordering::Greater => Code::ReserveExcess,
        };
        let expected = format!("{needed} pages for {room} tokens, {matched} of them matched");
        self.find(tick, code, Some(request), None, &expected, &format!("{got} pages"));
    }

    fn taken(
        &mut self,
        tick: Tick,
        server: Server,
        request: RequestId,
        first: Pages,
        pages: &[PageId],
    ) {
        self.chances.add(Chance::Taken, pages.len() as u64);
        self.has_source(server, request);
        let ordinals = (first.0..).map(Pages);
        let ledger = self.ledger(server);
        let violations: Vec<Violation> = ordinals
            .zip(pages)
            .filter_map(|(ordinal, &page)| ledger.take(page, request, ordinal))
            .collect();
        self.report(tick, Some(request), None, violations);
    }

    fn cached(&mut self, tick: Tick, server: Server, request: RequestId, pages: &[PageId]) {
        self.record(request).cached.push((server, pages.into()));
        let ledger = self.ledger(server);
        let violations: Vec<Violation> =
            pages.iter().filter_map(|&page| ledger.cache(page, request)).collect();
        self.report(tick, Some(request), None, violations);
    }

    fn freed(&mut self, tick: Tick, server: Server, holder: Holder, pages: &[PageId]) {
        self.chances.add(Chance::Freed, pages.len() as u64);
        let ledger = self.ledger(server);
        let mut violations = Vec::new();
        for &page in pages {
            ledger.free(page, holder, &mut violations);
        }
        let request = match holder {
            Holder::Request(request) => Some(request),
            Holder::Cache => None,
        };
        self.report(tick, request, None, violations);
    }

    fn freed_part(
        &mut self,
        tick: Tick,
        server: Server,
        request: RequestId,
        page: PageId,
        start: u32,
    ) {
        if start > 0 {
            let found = format!("its rows from {start} on, while those before are still used");
            let expected = format!("page {page} of {server} given back as a whole");
            self.find(tick, Code::PageFreedPart, Some(request), None, &expected, &found);
        }
    }

    fn activated(&mut self, tick: Tick, request: RequestId, table: &[PageId], memory: &[Memory]) {
        self.chances.add(Chance::Activated, 1);
        self.record(request).stage = Stage::Running;
        let transfer = self.transfer(request);
        let (queued, landed) = (transfer.copies_queued, transfer.copies_landed);
        let (last_queued, length, prefix) =
            (transfer.last_queued, transfer.length, transfer.prefix);
        if landed < queued || !last_queued {
            let last = if last_queued { "the last piece is out" } else { "more pieces to come" };
            let found = format!("{landed} of {queued} copies landed, {last}");
            let expected = "every part landed";
            self.find(tick, Code::ActivateEarly, Some(request), None, expected, &found);
        }
        let from = prefix.min(length);
        let (transfer, texts) = self.judged(request);
        let of_prefix = transfer.judge(table, (memory, texts), Tokens(0), from);
        let sent = transfer.judge(table, (memory, texts), from, length);
        let drafts = transfer.judge_drafts(table, (memory, texts), Tokens(0), length);
        self.rows_judged += sent.rows;
        self.placed(tick, request, &of_prefix, "of the prefix, at activation");
        self.placed(tick, request, &sent, "that had to be sent, at activation");
        self.placed_draft(tick, request, &drafts, "at activation");
    }

    fn finished(
        &mut self,
        tick: Tick,
        request: RequestId,
        table: &[PageId],
        stored: Tokens,
        memory: &[Memory],
    ) {
        self.record(request).stage = Stage::Complete;
        let (transfer, texts) = self.judged(request);
        // Rows past the prompt were written by decode's own steps.
        let length = transfer.length;
        transfer.wrote_positions(length, stored);
        let verdict = transfer.judge(table, (memory, texts), Tokens(0), stored);
        let drafts = transfer.judge_drafts(table, (memory, texts), Tokens(0), stored);
        self.placed(tick, request, &verdict, "stored, at the end of the output");
        self.placed_draft(tick, request, &drafts, "at the end of the output");
    }

    /// Reports a verdict, each code once a transfer.
    fn placed(&mut self, tick: Tick, request: RequestId, verdict: &Verdict, when: &str) {
        let ranks = self.config.ranks;
        let owner = |position: Tokens| Rank(position.0 % ranks);
        self.placed_on(tick, request, verdict, when, owner);
    }

    /// The same for the draft KV of each rank.
    fn placed_draft(
        &mut self,
        tick: Tick,
        request: RequestId,
        drafts: &[(Rank, Verdict)],
        when: &str,
    ) {
        let when = format!("of the draft KV, {when}");
        for (rank, verdict) in drafts {
            self.placed_on(tick, request, verdict, &when, |_| *rank);
        }
    }

    fn placed_on(
        &mut self,
        tick: Tick,
        request: RequestId,
        verdict: &Verdict,
        when: &str,
        rank: impl Fn(Tokens) -> Rank,
    ) {
        for (code, wrong) in verdict.by_code() {
            let Some((position, held)) = wrong.first else {
                continue;
            };
            let attempt = self.transfer(request).attempt;
            if !self.record(request).reported.insert((attempt, code)) {
                continue;
            }
            let rank = rank(position);
            let expected = format!("position {position} in its row");
            let found = format!(
                "{} there; wrong in this way: {} of the {} rows {when}",
                describe(held, &self.texts),
                wrong.rows,
                verdict.rows
            );
            self.find(tick, code, Some(request), Some(rank), &expected, &found);
        }
    }

    fn queued(
        &mut self,
        part: Part,
        servers: (Server, Server),
        source_pages: &[PageId],
        target_pages: &[PageId],
    ) {
        self.copies.queued(&mut self.ledgers, part, servers, source_pages, target_pages);
        if let Some(transfer) = self.requests.transfer_of(part) {
            transfer.copies_queued += 1;
            transfer.last_queued |= part.last;
        }
    }

    fn read(&mut self, tick: Tick, part: Part, writes: &[Write]) {
        self.chances.add(Chance::Read, 1);
        let given_back = self.copies.source_given_back(&self.ledgers, part);
        let ledger = self.ledgers.of(self.copies.target(part));
        let transfer = self.requests.transfer_of(part);
        let unwritten = transfer
            .and_then(|transfer| copies::unwritten(ledger, part, transfer, writes, &self.texts));
        let violations = given_back.into_iter().chain(unwritten);
        self.report(tick, Some(part.request), Some(part.rank), violations);
    }

    fn landed(&mut self, tick: Tick, part: Part, writes: &[Write], memory: &[Memory]) {
        self.chances.add(Chance::Landed, 1);
        let given_back = self.copies.source_given_back(&self.ledgers, part);
        let landed = self.copies.landed(&mut self.ledgers, part);
        let ledger = self.ledgers.of(landed.target);
        let transfer = self.requests.transfer_of(part);
        let wrong = landed.wrote(ledger, part, transfer, writes, (memory, &self.texts));
        let violations = given_back.into_iter().chain(wrong.into_iter().flatten());
        self.report(tick, Some(part.request), Some(part.rank), violations);
    }

    fn draft_landed(&mut self, part: Part, writes: &[Write], memory: &[Memory]) {
        let rows = (self.config.draft_rows.unwrap_or(0), self.stripes.page_positions());
        let transfer = self.requests.transfer_of(part);
        let shown = (writes, memory, &self.texts);
        self.copies.draft_landed(&self.ledgers, part, transfer, shown, rows);
    }

    fn ended(&mut self, request: RequestId, _outcome: Outcome) {
        self.progress.ended(request);
        // Copies may still be on their way; they find no transfer and so count as outside.
        let record = self.record(request);
        (record.transfer, record.cached) = (None, Vec::new());
    }
}

#[cfg(test)]
mod tests;
