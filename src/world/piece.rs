//! One piece of a transfer, as the planner lays it out on every rank.

use std::borrow::Cow;

use super::context::Context;
use super::observer::Call;
use super::prefill::sending::CutPiece;
use super::transfer::Destination;
use crate::behaviour::{DestinationList, DraftRows, Relayout, Rows};
use crate::engine::sglang::untranslated;
use crate::event::{Event, Part};
use crate::finding::{Chance, Code, Mark, Metric};
use crate::planner::{Piece, PlanInput, Refusal, RunPlan};
use crate::scenario::Moment;
use crate::units::{PageId, Rank, RequestId};

/// The rows of one rank's part of a piece, and the draft rows that go with them.
pub(super) struct RankPlan {
    pub(super) plan: RunPlan,
    pub(super) draft: RunPlan,
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
        let piece = Piece {
            src_page_offset: send.offset,
            decode_prefix_len: destination.prefix,
            num_kv_tokens: Some(send.tokens),
        };
        match send.number {
            0 => cx.log.chance(Chance::Planned),
            _ => cx.log.mark(Mark::PieceSecond),
        }
        cx.log.count(Metric::Pieces, 1);
        if send.last && send.tokens == 0 {
            cx.log.mark(Mark::PieceEmpty);
        }
        let (parts, refused) = plan_ranks(piece, &send.pages, &target_pages, cx);
        cx.log.planned(&Call {
            request,
            attempt,
            number: send.number,
            piece,
            source_pages: &send.pages,
            target_pages: &target_pages,
            refused: refused.as_ref().map(|refused| (refused.code, refused.ranks.as_slice())),
        });
        let part = |rank| Part { request, attempt, piece: send.number, rank, last: send.last };
        PlannedPiece {
            request,
            number: send.number,
            tokens: send.tokens,
            parts: parts.into_iter().map(|(rank, plan)| (part(rank), plan)).collect(),
            refused,
        }
    }

    /// The parts are queued: states the refusal, or counts the piece as sent. True if no rank refused.
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

/// What each rank makes of a piece, and the refusal if any rank refuses.
fn plan_ranks(
    piece: Piece,
    source_pages: &[PageId],
    target_pages: &[PageId],
    cx: &Context<'_>,
) -> (Vec<(Rank, RankPlan)>, Option<Refused>) {
    let layout = cx.setup.layout;
    let mut parts = Vec::new();
    let mut refused: Option<Refused> = None;
    match PlanInput::new(layout, Rank(0), piece, source_pages, target_pages) {
        Ok(input) => {
            for rank in layout.each_rank() {
                let input = input.for_rank(rank).expect("the rank is one of the layout");
                match lay_out(&input, cx) {
                    Ok(plan) => parts.push((rank, plan)),
                    Err(refusal) => {
                        let first = || Refused {
                            code: code_of(&refusal),
                            ranks: Vec::new(),
                            said: refusal.to_string(),
                        };
                        refused.get_or_insert_with(first).ranks.push(rank);
                    }
                }
            }
        }
        Err(error) => {
            let ranks = layout.each_rank().collect();
            let said = error.to_string();
            refused = Some(Refused { code: Code::RefusedInput, ranks, said });
        }
    }
    (parts, refused)
}

/// The rows of one rank's part of a piece, and its draft rows.
fn lay_out(input: &PlanInput<'_>, cx: &Context<'_>) -> Result<RankPlan, Refusal> {
    let setup = &cx.setup;
    let plan = match setup.switches.relayout {
        Relayout::PerRank => setup.planner.plan_runs(input)?,
        Relayout::None => untranslated::page_by_page(input),
    };
    let draft = match setup.switches.draft_rows {
        _ if !setup.scenario.decode.draft => RunPlan::default(),
        DraftRows::Own => setup.planner.draft_runs(input)?.unwrap_or_default(),
        DraftRows::ByTargetList => plan.clone(),
    };
    let plan = match setup.switches.rows {
        Rows::PerRank => plan,
        Rows::VirtualAsLocal => untranslated::virtual_rows(&plan, input.layout(), input.rank()),
    };
    Ok(RankPlan { plan, draft })
}

/// The code under which a planner's refusal is found.
fn code_of(refusal: &Refusal) -> Code {
    match refusal {
        Refusal::Misaligned { .. } => Code::RefusedMisaligned,
        Refusal::Source { .. } => Code::RefusedSource,
        Refusal::Shortage { .. } => Code::RefusedShortfall,
        Refusal::Index { .. } => Code::RefusedIndex,
    }
}
