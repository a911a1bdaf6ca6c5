//! The checked revision: three refusals, tested in order (`sglang` 0.5.17 to 0.5.19).

use super::check_alignment;
use crate::planner::{PiecePlan, PlanInput, Planner, Refusal, Share};
use crate::units::Pages;

/// Refuses a misaligned prefix, a token count that the source does not hold, and a shortage of
/// destination pages for the rank's own share. Knows no draft rows.
#[derive(Clone, Copy, Debug, Default)]
pub struct Checked;

impl Planner for Checked {
    fn lays_draft_rows(&self) -> bool {
        false
    }

    fn plan_piece(&self, input: &PlanInput<'_>) -> Option<PiecePlan> {
        Some(Share::piece(input))
    }

    fn check(&self, input: &PlanInput<'_>) -> Result<(), Refusal> {
        check_alignment(input)?;
        let (tokens, capacity) = (input.tokens(), input.capacity());
        if u64::try_from(tokens).is_ok_and(|tokens| tokens <= capacity) {
            check_destination(input)
        } else {
            Err(Refusal::Source { tokens, capacity })
        }
    }
}

fn check_destination(input: &PlanInput<'_>) -> Result<(), Refusal> {
    let share = Share::target(input);
    if share.first_past_destination().is_none() {
        return Ok(());
    }
    let last = share.last().expect("a share with a token past the pages has a last token");
    Err(Refusal::Shortage {
        required: share.dst_ordinal(last) + 1,
        provided: Pages::of(input.dst_pages()),
        src_page_offset: input.piece().src_page_offset,
        dcp_rank: input.rank(),
    })
}
