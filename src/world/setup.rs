//! What holds for a whole run: the scenario, its switches, the layout, the planner and who has a
//! hand in its rows.

use crate::behaviour::{
    Behaviours, CacheKey, DraftRows, HitCount, PrefillStart, Relayout, ReplicatedPool, Rows,
};
use crate::engine::TransferMode;
use crate::engine::connection::{Pairing, PeerRefusal};
use crate::engine::sglang::packing::PackRegions;
use crate::layout::Layout;
use crate::limits;
use crate::planner::Planner;
use crate::scenario::Scenario;
use crate::units::{PageSize, Pages, Tokens};
use crate::workload::Request;

/// The scenario of a run and what follows from it alone.
pub(super) struct Setup<'a> {
    pub(super) scenario: &'a Scenario,
    pub(super) switches: Behaviours,
    pub(super) layout: Layout,
    pub(super) transfer: TransferMode,
    pub(super) planner: Box<dyn Planner>,
    /// Who has a hand in the rows of a rank's part of a piece.
    pub(super) rows: RowRules,
    /// Whether the peers of every request can be connected.
    pub(super) pairing: Result<Pairing, PeerRefusal>,
}

/// What changes the rows that the planner lays out, and what draft rows go with them.
#[derive(Clone, Copy)]
pub(super) struct RowRules {
    pub(super) relayout: Relayout,
    pub(super) rows: Rows,
    /// `None` where decode keeps no draft KV.
    pub(super) draft: Option<DraftRows>,
}

impl RowRules {
    pub(super) fn of(scenario: &Scenario, switches: Behaviours) -> RowRules {
        RowRules {
            relayout: switches.relayout,
            rows: switches.rows,
            draft: scenario.decode.draft.then_some(switches.draft_rows),
        }
    }

    /// Whether the planner alone says what the rows are, and there are no others.
    pub(super) fn are_the_planners(self) -> bool {
        let RowRules { relayout, rows, draft } = self;
        (relayout, rows, draft) == (Relayout::PerRank, Rows::PerRank, None)
    }
}

impl Setup<'_> {
    /// Rows of a physical page, P.
    pub(super) fn page(&self) -> PageSize {
        self.layout.page()
    }

    /// Positions of a virtual page, V.
    pub(super) fn virtual_page(&self) -> PageSize {
        self.layout.virtual_page()
    }

    /// Tokens that `pages` virtual pages hold.
    pub(super) fn in_tokens(&self, pages: Pages) -> u64 {
        u64::from(pages.0) * u64::from(self.virtual_page().get())
    }

    /// Whether prefill begins with a request before its destination is known.
    pub(super) fn begins_at_arrival(&self) -> bool {
        self.switches.prefill_start == PrefillStart::AtArrival
    }

    /// The namespace that stands in a request's keys.
    pub(super) fn key_namespace(&self, request: &Request) -> u32 {
        match self.switches.cache_key {
            CacheKey::WithNamespace => request.namespace,
            CacheKey::WithoutNamespace => 0,
        }
    }

    /// How many of the first pages of a prompt do not count as used when its request puts `pages`
    /// of it into a cache, after `inserted` before. `goes_on` where these are a chunk's and more
    /// follow.
    pub(super) fn uncounted(&self, pages: Pages, inserted: Pages, goes_on: bool) -> Pages {
        match self.switches.hit_count {
            HitCount::EveryInsert => Pages(0),
            HitCount::OncePerRequest => inserted,
            HitCount::NotChunks if goes_on => pages,
            HitCount::NotChunks => Pages(0),
        }
    }

    /// The regions of a link's pack buffer.
    pub(super) fn regions(&self) -> PackRegions {
        let max_tokens = Tokens(self.scenario.link.pack_tokens);
        PackRegions { max_tokens, ranks: self.layout.ranks() }
    }
}

/// Rows of the pool in which every decode rank keeps draft KV, if it does.
pub(super) fn draft_rows(scenario: &Scenario, switches: Behaviours, layout: Layout) -> Option<u32> {
    let page = layout.page();
    let rows_of_rank = Pages(scenario.decode.pages).tokens(page);
    let rows = match switches.replicated_pool {
        ReplicatedPool::WithPages => (rows_of_rank.0 + page.get()) * layout.ranks(),
        ReplicatedPool::RowsAndOnePage => rows_of_rank.0 * layout.ranks() + page.get(),
    };
    scenario.decode.draft.then_some(rows)
}

/// How many timers may go off in a run of `requests`.
pub(super) fn timers_max(scenario: &Scenario, requests: &[Request], layout: Layout) -> u64 {
    // Exact budgets can be smaller than a page.
    let piece = layout.page().get().min(scenario.prefill.chunk_tokens);
    let of_request = |request: &Request| {
        let pieces = u64::from(request.prompt_len().0.div_ceil(piece));
        limits::TIMERS_PER_REQUEST
            + limits::TIMERS_PER_OUTPUT_TOKEN * u64::from(request.output.0)
            + limits::TIMERS_PER_PROMPT_PIECE * pieces * u64::from(layout.ranks())
    };
    limits::TIMERS_FLOOR + requests.iter().map(of_request).sum::<u64>()
}
