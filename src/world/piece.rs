//! One piece of a transfer, as the planner lays it out on every rank.

use std::borrow::Cow;
use std::rc::Rc;

use super::context::Context;
use super::observer::Call;
use super::prefill::sending::CutPiece;
use super::reading::{SharedPiece, read_rows};
use super::setup::Setup;
use super::transfer::Destination;
use crate::behaviour::{DestinationList, DraftRows, DuplicatePage, Relayout, Rows, ShortList};
use crate::engine::sglang::untranslated;
use crate::event::{Event, Part, Write};
use crate::finding::{Chance, Code, Mark, Metric};
use crate::memory::Memory;
use crate::planner::descriptors::DescriptorCount;
use crate::planner::{Piece, PlanInput, Refusal, RunPlan};
use crate::scenario::Moment;
use crate::units::{PageId, PageSize, Pages, Rank, RequestId};

/// The rows of one rank's part of a piece, and the draft rows that go with them.
pub(super) struct RankPlan {
    pub(super) rows: PartRows,
    pub(super) draft: RunPlan,
}

/// The rows of one rank's part of a piece, as the planner laid them out.
pub(super) enum PartRows {
    /// For this rank alone.
    Own(RunPlan),
    /// For all ranks at once.
    Shared(Rc<SharedPiece>),
}

impl RankPlan {
    fn of_piece(piece: &Rc<SharedPiece>) -> RankPlan {
        RankPlan { rows: PartRows::Shared(Rc::clone(piece)), draft: RunPlan::default() }
    }
}

impl PartRows {
    /// Rows of the part.
    pub(super) fn count(&self, rank: Rank) -> u64 {
        match self {
            PartRows::Own(plan) => plan.tokens(),
            PartRows::Shared(piece) => piece.plan.share(rank).count.into(),
        }
    }

    pub(super) fn descriptors(&self, rank: Rank) -> DescriptorCount {
        match self {
            PartRows::Own(plan) => DescriptorCount::of_runs(plan),
            PartRows::Shared(piece) => piece.plan.descriptors(rank),
        }
    }

    /// The pages that the part writes, in order.
    pub(super) fn target_pages(&self, rank: Rank, page: PageSize) -> Cow<'_, [PageId]> {
        match self {
            PartRows::Own(plan) => Cow::Owned(destination_pages(plan, page)),
            PartRows::Shared(piece) => Cow::Borrowed(piece.plan.share(rank).pages),
        }
    }

    /// Reads the part's source rows and says what its destination rows will hold.
    pub(super) fn read(
        &self,
        rank: Rank,
        request: RequestId,
        memory: &Memory,
        page: PageSize,
    ) -> Vec<Write> {
        match self {
            PartRows::Own(plan) => read_rows(plan, request, memory, (page, page)),
            PartRows::Shared(piece) => piece.read(rank, request, memory),
        }
    }
}

/// The pages that a plan writes, in order, neighbours once.
pub(super) fn destination_pages(plan: &RunPlan, page: PageSize) -> Vec<PageId> {
    let mut pages: Vec<PageId> = Vec::new();
    for run in &plan.runs {
        let (first, _) = run.dst.split(page);
        let (last, _) = run.at(run.len - 1).1.split(page);
        for id in (first.0..=last.0).map(PageId) {
            if pages.last() != Some(&id) {
                pages.push(id);
            }
        }
    }
    pages
}

/// A planned piece: the parts of the ranks that did not refuse, and the refusal of those that did.
pub(super) struct PlannedPiece {
    request: RequestId,
    number: u32,
    tokens: i64,
    pub(super) parts: Vec<(Part, RankPlan)>,
    refused: Option<Refused>,
}

/// Which ranks refused, under which code, and what the first one said.
struct Refused {
    code: Code,
    ranks: Vec<Rank>,
    said: String,
}

impl PlannedPiece {
    /// Asks the planner for every rank, and shows the call to whoever looks on.
    pub(super) fn plan(
        (request, attempt): (RequestId, u32),
        send: &CutPiece,
        destination: &Destination,
        cx: &mut Context<'_>,
    ) -> PlannedPiece {
        let target_pages = target_pages(send, destination, cx);
        let (source_pages, tokens) = fit_to_list(send, &target_pages, cx);
        let piece = Piece {
            src_page_offset: send.offset,
            decode_prefix_len: destination.prefix,
            num_kv_tokens: Some(tokens),
        };
        match send.number {
            0 => cx.log.chance(Chance::Planned),
            _ => cx.log.mark(Mark::PieceSecond),
        }
        cx.log.count(Metric::Pieces, 1);
        if send.last && send.tokens == 0 {
            cx.log.mark(Mark::PieceEmpty);
        }
        let (parts, refused) = plan_ranks(piece, source_pages, &target_pages, cx);
        cx.log.planned(&Call {
            request,
            attempt,
            number: send.number,
            piece,
            source_pages,
            target_pages: &target_pages,
            refused: refused.as_ref().map(|refused| (refused.code, refused.ranks.as_slice())),
        });
        let part = |rank| Part { request, attempt, piece: send.number, rank, last: send.last };
        PlannedPiece {
            request,
            number: send.number,
            tokens,
            parts: parts.into_iter().map(|(rank, plan)| (part(rank), plan)).collect(),
            refused,
        }
    }

    /// Keeps the parts of the ranks before the first that refused.
    pub(super) fn end_at_refusal(&mut self) {
        if let Some(first) = self.refused.as_ref().and_then(|refused| refused.ranks.first()) {
            self.parts.retain(|(part, _)| part.rank < *first);
        }
    }

    /// The parts are queued: states the refusal, or counts the piece as sent. True if no rank
    /// refused.
    pub(super) fn conclude(&self, cx: &mut Context<'_>) -> bool {
        let request = self.request;
        if let Some(Refused { code, ranks, said }) = &self.refused {
            cx.log.tell(&Event::Refused { request, code: *code, ranks, said }, &[]);
            return false;
        }
        cx.log.count(Metric::SentTokens, u64::try_from(self.tokens).unwrap_or(0));
        if self.number == 0 {
            cx.reached(request, Moment::Copying);
        }
        true
    }
}

/// The destination pages that the planner is given.
fn target_pages<'a>(send: &CutPiece, to: &'a Destination, cx: &Context<'_>) -> Cow<'a, [PageId]> {
    match cx.setup.switches.destination_list {
        DestinationList::Whole => Cow::Borrowed(&to.pages),
        DestinationList::SlicedByChunk => {
            let chunk = to.pages.iter().skip(send.offset.index()).take(send.pages.len());
            Cow::Owned(chunk.copied().collect())
        }
    }
}

/// The source pages and tokens of a piece that are laid out, given its destination pages.
fn fit_to_list<'a>(
    send: &'a CutPiece,
    target_pages: &[PageId],
    cx: &Context<'_>,
) -> (&'a [PageId], i64) {
    let whole = (send.pages.as_slice(), send.tokens);
    match cx.setup.switches.short_list {
        ShortList::Refused => whole,
        ShortList::Cut => {
            let room = target_pages.len().saturating_sub(send.offset.index());
            if cx.setup.layout.ranks() > 1 || room >= send.pages.len() {
                return whole;
            }
            let tokens = Pages(room as u32).tokens(cx.setup.page());
            (&send.pages[..room], send.tokens.min(tokens.0.into()))
        }
    }
}

/// The planner's answer for each rank, and the refusal if any rank is refused.
fn plan_ranks(
    piece: Piece,
    source_pages: &[PageId],
    target_pages: &[PageId],
    cx: &Context<'_>,
) -> (Vec<(Rank, RankPlan)>, Option<Refused>) {
    let layout = cx.setup.layout;
    let new = match cx.setup.switches.duplicate_page {
        DuplicatePage::Refused => PlanInput::new,
        DuplicatePage::Planned => PlanInput::with_duplicates,
    };
    let input = match new(layout, Rank(0), piece, source_pages, target_pages) {
        Ok(input) => input,
        Err(error) => {
            let ranks = layout.each_rank().collect();
            let said = error.to_string();
            return (Vec::new(), Some(Refused { code: Code::RefusedInput, ranks, said }));
        }
    };
    if let Some(piece) = lay_out_for_all(&input, &cx.setup) {
        let part = |rank| (rank, RankPlan::of_piece(&piece));
        return (layout.each_rank().map(part).collect(), None);
    }
    let mut parts = Vec::new();
    let mut refused: Option<Refused> = None;
    for rank in layout.each_rank() {
        match lay_out(&input.for_rank(rank).expect("a rank of the layout"), &cx.setup) {
            Ok(plan) => parts.push((rank, plan)),
            Err(refusal) => {
                let first = || Refused {
                    code: refusal.text().code,
                    ranks: Vec::new(),
                    said: refusal.to_string(),
                };
                refused.get_or_insert_with(first).ranks.push(rank);
            }
        }
    }
    (parts, refused)
}

/// The rows of all ranks at once, if the planner can lay them out so, refuses no rank, and nothing
/// else has a hand in them.
fn lay_out_for_all(input: &PlanInput<'_>, setup: &Setup<'_>) -> Option<Rc<SharedPiece>> {
    if !setup.rows.are_the_planners() {
        return None;
    }
    let mut ranks = setup.layout.each_rank().map(|rank| input.for_rank(rank));
    let passes =
        ranks.all(|input| setup.planner.check(&input.expect("a rank of the layout")).is_ok());
    let plan = if passes { setup.planner.plan_piece(input) } else { None };
    plan.map(|plan| Rc::new(SharedPiece::new(plan)))
}

/// The rows of one rank's part of a piece, and its draft rows.
fn lay_out(input: &PlanInput<'_>, setup: &Setup<'_>) -> Result<RankPlan, Refusal> {
    let plan = match setup.rows.relayout {
        Relayout::PerRank => setup.planner.plan_runs(input)?,
        Relayout::None => untranslated::page_by_page(input),
    };
    let draft = match setup.rows.draft {
        None => RunPlan::default(),
        Some(DraftRows::Own) => setup.planner.draft_runs(input)?.unwrap_or_default(),
        Some(DraftRows::ByTargetList) => plan.clone(),
    };
    let plan = match setup.rows.rows {
        Rows::PerRank => plan,
        Rows::VirtualAsLocal => untranslated::virtual_rows(&plan, input.layout(), input.rank()),
    };
    Ok(RankPlan { rows: PartRows::Own(plan), draft })
}
