//! A ledger of its own of who owns each page of one pool, fed with every move.
//!
//! Every page has exactly one owner. The pool's and the cache's own counts are compared with the
//! ledger's whenever they are stated.

use crate::event::{Holder, Server, Side};
use crate::finding::Code;
use crate::units::{PageId, Pages, RequestId};

/// Who owns a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// The allocator.
    Free,
    /// A request, at this ordinal of its table.
    Request(RequestId, Pages),
    /// The prefix cache.
    Cache,
    /// Nobody: the pool has no such page.
    Beyond,
}

impl Owner {
    fn is(self, holder: Holder) -> bool {
        match (self, holder) {
            (Owner::Request(owner, _), Holder::Request(request)) => owner == request,
            (Owner::Cache, Holder::Cache) => true,
            (Owner::Free | Owner::Request(..) | Owner::Cache | Owner::Beyond, _) => false,
        }
    }
}

/// One page's line in the ledger.
#[derive(Clone, Copy)]
struct Line {
    owner: Owner,
    /// How often the page was given back: tells a later owner's page from an earlier one's.
    epoch: u32,
    /// Copies on their way into the page.
    inbound: u32,
    /// Pieces that are being sent from the page.
    outbound: u32,
}

/// The ledger of one pool.
pub(super) struct Ledger {
    lines: Vec<Line>,
    free: u32,
    cached: u32,
    /// How often a page changed hands while a piece was being sent from it.
    disturbed: u64,
    /// The last drift reported, so that a standing one is reported once.
    drift: (i64, i64),
}

/// A violation: code, page, what should have been and what was.
pub(super) struct Violation {
    pub(super) code: Code,
    pub(super) expected: String,
    pub(super) found: String,
}

impl Violation {
    pub(super) fn new(
        code: Code,
        expected: impl Into<String>,
        found: impl Into<String>,
    ) -> Violation {
        Violation { code, expected: expected.into(), found: found.into() }
    }
}

/// The ledgers of all servers.
#[derive(Default)]
pub(super) struct Ledgers {
    prefill: Vec<Ledger>,
    decode: Vec<Ledger>,
}

impl Ledgers {
    /// Opens the ledger of the next server of a kind.
    pub(super) fn open(&mut self, side: Side, ledger: Ledger) {
        match side {
            Side::Prefill => self.prefill.push(ledger),
            Side::Decode => self.decode.push(ledger),
        }
    }

    pub(super) fn of(&self, server: Server) -> &Ledger {
        match server.side {
            Side::Prefill => &self.prefill[server.index as usize],
            Side::Decode => &self.decode[server.index as usize],
        }
    }

    pub(super) fn of_mut(&mut self, server: Server) -> &mut Ledger {
        match server.side {
            Side::Prefill => &mut self.prefill[server.index as usize],
            Side::Decode => &mut self.decode[server.index as usize],
        }
    }
}

impl Ledger {
    /// The ledger of a pool of `pages` free pages; page 0 is nobody's.
    pub(super) fn new(pages: Pages) -> Ledger {
        let line = Line { owner: Owner::Free, epoch: 0, inbound: 0, outbound: 0 };
        Ledger {
            lines: vec![line; pages.index() + 1],
            free: pages.0,
            cached: 0,
            disturbed: 0,
            drift: (0, 0),
        }
    }

    pub(super) fn owner(&self, page: PageId) -> Owner {
        self.lines.get(page.index()).map_or(Owner::Beyond, |line| line.owner)
    }

    fn epoch(&self, page: PageId) -> u32 {
        self.lines[page.index()].epoch
    }

    /// How often a page changed hands while a piece was being sent from it. As long as this stays
    /// the same, so does every answer of [`Ledger::still_sends`] for pieces on their way.
    pub(super) fn disturbed(&self) -> u64 {
        self.disturbed
    }

    fn set(&mut self, page: PageId, owner: Owner) {
        let line = &mut self.lines[page.index()];
        self.disturbed += u64::from(line.outbound > 0);
        match line.owner {
            Owner::Free => self.free -= 1,
            Owner::Cache => self.cached -= 1,
            Owner::Request(..) | Owner::Beyond => {}
        }
        match owner {
            Owner::Free => self.free += 1,
            Owner::Cache => self.cached += 1,
            Owner::Request(..) | Owner::Beyond => {}
        }
        line.owner = owner;
    }

    /// The allocator handed `page` to `request`.
    pub(super) fn take(
        &mut self,
        page: PageId,
        request: RequestId,
        ordinal: Pages,
    ) -> Option<Violation> {
        let before = self.owner(page);
        self.set(page, Owner::Request(request, ordinal));
        if before == Owner::Free && self.lines[page.index()].outbound > 0 {
            return Some(Violation::new(
                Code::PageTwoOwners,
                format!("page {page} used by nobody when handed out"),
                "it is still being sent",
            ));
        }
        (before != Owner::Free).then(|| {
            Violation::new(
                Code::PageTwoOwners,
                format!("page {page} free when handed out"),
                format!("held by {}", describe(before)),
            )
        })
    }

    /// `request` gave `page` to the prefix cache.
    pub(super) fn cache(&mut self, page: PageId, request: RequestId) -> Option<Violation> {
        let before = self.owner(page);
        self.set(page, Owner::Cache);
        (!before.is(Holder::Request(request))).then(|| {
            Violation::new(
                Code::PageTwoOwners,
                format!("page {page} held by request {request} when it enters the cache"),
                describe(before),
            )
        })
    }

    /// `holder` gave `page` back. What is wrong with that is added to `violations`.
    pub(super) fn free(&mut self, page: PageId, holder: Holder, violations: &mut Vec<Violation>) {
        let before = self.owner(page);
        if before == Owner::Free {
            violations.push(Violation::new(
                Code::PageFreedTwice,
                format!("page {page} held by {}", describe_holder(holder)),
                "free already",
            ));
        } else if !before.is(holder) {
            violations.push(Violation::new(
                Code::PageTwoOwners,
                format!("page {page} held by {} that gives it back", describe_holder(holder)),
                describe(before),
            ));
        }
        let inbound = self.lines[page.index()].inbound;
        if inbound > 0 {
            violations.push(Violation::new(
                Code::PageFreedInFlight,
                format!("no copy into page {page} on its way when it is given back"),
                format!("{inbound} on their way"),
            ));
        }
        self.set(page, Owner::Free);
        self.lines[page.index()].epoch += 1;
    }

    pub(super) fn copy_queued(&mut self, pages: &[PageId]) {
        for page in pages {
            if let Some(line) = self.lines.get_mut(page.index()) {
                line.inbound += 1;
            }
        }
    }

    /// A piece of `pages` begins to be sent; returns them with their epochs. Page 0 is nobody's and
    /// never given back.
    pub(super) fn piece_queued(&mut self, pages: &[PageId]) -> Vec<(PageId, u32)> {
        let pages: Vec<PageId> = pages.iter().copied().filter(|page| page.0 > 0).collect();
        for page in &pages {
            self.lines[page.index()].outbound += 1;
        }
        pages.into_iter().map(|page| (page, self.epoch(page))).collect()
    }

    /// A piece has landed on every rank.
    pub(super) fn piece_landed(&mut self, pages: &[(PageId, u32)]) {
        for (page, _) in pages {
            self.lines[page.index()].outbound -= 1;
        }
    }

    /// Whether `page` is still what it was when `request` queued it at `epoch`: not given back
    /// since, and not somebody else's.
    pub(super) fn still_sends(&self, page: PageId, epoch: u32, request: RequestId) -> bool {
        let owned = match self.owner(page) {
            Owner::Free | Owner::Beyond => false,
            Owner::Cache => true,
            Owner::Request(owner, _) => owner == request,
        };
        owned && self.epoch(page) == epoch
    }

    pub(super) fn copy_landed(&mut self, pages: &[PageId]) {
        for page in pages {
            if let Some(line) = self.lines.get_mut(page.index()) {
                line.inbound -= 1;
            }
        }
    }

    /// Compares the books of the pool and its cache with the ledger.
    pub(super) fn books(
        &mut self,
        free: Pages,
        evictable: Pages,
        protected: Pages,
    ) -> Option<Violation> {
        let cached = i64::from(evictable.0) + i64::from(protected.0);
        let drift = (i64::from(free.0) - i64::from(self.free), cached - i64::from(self.cached));
        if drift == std::mem::replace(&mut self.drift, drift) || drift == (0, 0) {
            return None;
        }
        Some(Violation::new(
            Code::CountDrift,
            format!("{} pages free, {} cached", self.free, self.cached),
            format!(
                "{free} free, {evictable} evictable + {protected} protected: off by {}",
                drift.0 + drift.1
            ),
        ))
    }

    /// Compares the free list and the cache's pages with the ledger, page by page.
    pub(super) fn scan(&self, free: &[PageId], cached: &[PageId]) -> Option<Violation> {
        let count = |pages: &[PageId]| {
            let mut counts = vec![0_u32; self.lines.len()];
            for page in pages {
                counts[page.index()] += 1;
            }
            counts
        };
        let (free, cached) = (count(free), count(cached));
        (1..self.lines.len()).find_map(|page| {
            let owner = self.lines[page].owner;
            let expected = (u32::from(owner == Owner::Free), u32::from(owner == Owner::Cache));
            let found = (free[page], cached[page]);
            (found != expected).then(|| {
                Violation::new(
                    Code::CountDrift,
                    format!("page {page}, which belongs to {}, listed so", describe(owner)),
                    format!("{} times in the free list, {} times in the cache", found.0, found.1),
                )
            })
        })
    }

    /// Pages still held by requests, at the end of everything.
    pub(super) fn held(&self) -> impl Iterator<Item = (PageId, RequestId)> {
        (0..).zip(&self.lines).filter_map(|(page, line)| match line.owner {
            Owner::Request(request, _) => Some((PageId(page), request)),
            Owner::Free | Owner::Cache | Owner::Beyond => None,
        })
    }
}

fn describe(owner: Owner) -> String {
    match owner {
        Owner::Free => "nobody".to_owned(),
        Owner::Beyond => "no pool".to_owned(),
        Owner::Request(request, _) => format!("request {request}"),
        Owner::Cache => "the cache".to_owned(),
    }
}

fn describe_holder(holder: Holder) -> String {
    match holder {
        Holder::Request(request) => format!("request {request}"),
        Holder::Cache => "the cache".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: RequestId = RequestId(0);
    const B: RequestId = RequestId(1);
    const PAGE: PageId = PageId(1);

    fn codes(violations: impl IntoIterator<Item = Violation>) -> Vec<Code> {
        violations.into_iter().map(|violation| violation.code).collect()
    }

    fn freed(ledger: &mut Ledger, holder: Holder) -> Vec<Code> {
        let mut violations = Vec::new();
        ledger.free(PAGE, holder, &mut violations);
        codes(violations)
    }

    #[test]
    fn a_page_that_goes_round_leaves_nothing() {
        let mut ledger = Ledger::new(Pages(2));
        assert_eq!(codes(ledger.take(PAGE, A, Pages(0))), []);
        assert_eq!(codes(ledger.books(Pages(1), Pages(0), Pages(0))), []);
        assert_eq!(codes(ledger.cache(PAGE, A)), []);
        assert_eq!(codes(ledger.books(Pages(1), Pages(0), Pages(1))), []);
        assert_eq!(freed(&mut ledger, Holder::Cache), []);
        assert_eq!(codes(ledger.books(Pages(2), Pages(0), Pages(0))), []);
        assert_eq!(ledger.held().count(), 0);
    }

    #[test]
    fn each_violation_has_its_code() {
        let mut ledger = Ledger::new(Pages(2));
        assert_eq!(freed(&mut ledger, Holder::Request(A)), [Code::PageFreedTwice]);
        ledger.take(PAGE, A, Pages(0));
        assert_eq!(codes(ledger.take(PAGE, B, Pages(0))), [Code::PageTwoOwners]);
        assert_eq!(freed(&mut ledger, Holder::Request(A)), [Code::PageTwoOwners]);
        ledger.take(PAGE, B, Pages(0));
        ledger.copy_queued(&[PAGE]);
        assert_eq!(freed(&mut ledger, Holder::Request(B)), [Code::PageFreedInFlight]);
    }

    #[test]
    fn a_copy_to_a_page_that_the_pool_lacks_is_to_nobody_s() {
        let mut ledger = Ledger::new(Pages(2));
        let pages = [PAGE, PageId(3)];
        ledger.copy_queued(&pages);
        assert_eq!(ledger.owner(PageId(2)), Owner::Free);
        assert_eq!(ledger.owner(PageId(3)), Owner::Beyond);
        ledger.copy_landed(&pages);
        assert_eq!(freed(&mut ledger, Holder::Cache), [Code::PageFreedTwice]);
    }

    #[test]
    fn a_page_that_changes_hands_while_it_is_sent_disturbs_and_no_other_does() {
        let mut ledger = Ledger::new(Pages(2));
        ledger.take(PAGE, A, Pages(0));
        let sent = ledger.piece_queued(&[PAGE]);
        ledger.take(PageId(2), B, Pages(0));
        assert_eq!(ledger.disturbed(), 0);
        ledger.cache(PAGE, A);
        assert_eq!(ledger.disturbed(), 1);
        freed(&mut ledger, Holder::Cache);
        assert_eq!(ledger.disturbed(), 2);
        ledger.piece_landed(&sent);
        ledger.take(PAGE, A, Pages(0));
        assert_eq!(ledger.disturbed(), 2);
    }

    #[test]
    fn the_scan_finds_a_balanced_sum_of_wrong_pages() {
        let mut ledger = Ledger::new(Pages(3));
        ledger.take(PAGE, A, Pages(0));
        ledger.cache(PAGE, A);
        assert!(ledger.scan(&[PageId(2), PageId(3)], &[PAGE]).is_none());
        // As many pages as there should be, but one twice and one lost.
        assert_eq!(codes(ledger.scan(&[PageId(2), PageId(2)], &[PAGE])), [Code::CountDrift]);
        assert_eq!(codes(ledger.scan(&[PageId(2), PageId(3)], &[PageId(2)])), [Code::CountDrift]);
    }

    #[test]
    fn a_standing_drift_is_reported_once_and_in_pages() {
        let mut ledger = Ledger::new(Pages(4));
        let drift = ledger.books(Pages(5), Pages(0), Pages(0)).unwrap();
        assert_eq!(drift.code, Code::CountDrift);
        assert!(drift.found.ends_with("off by 1"), "{}", drift.found);
        assert!(ledger.books(Pages(5), Pages(0), Pages(0)).is_none());
        assert!(ledger.books(Pages(4), Pages(0), Pages(0)).is_none());
    }
}
