//! The indexed revision: one refusal, then whatever the list indices do (`sglang` 0.5.20 to
//! 0.5.23).

use super::check_alignment;
use crate::planner::{IndexedList, PiecePlan, PlanInput, Planner, Refusal, Share};
use crate::units::Pages;

/// Refuses a misaligned prefix. A list that is too short is a bare index error, a negative token
/// count an empty plan. Lays out the draft rows on every rank, so a rank whose own share is content
/// can fail for them. It does so whether or not draft KV is kept: who asks for the share alone
/// ([`Planner::plan_runs`]) gets the same refusals, and no draft rows.
#[derive(Clone, Copy, Debug, Default)]
pub struct Indexed;

impl Planner for Indexed {
    fn lays_draft_rows(&self) -> bool {
        true
    }

    fn plan_piece(&self, input: &PlanInput<'_>) -> Option<PiecePlan> {
        Some(Share::piece(input))
    }

    fn check(&self, input: &PlanInput<'_>) -> Result<(), Refusal> {
        check_alignment(input)?;
        let target = Share::target(input);
        check_lists(input, &target, IndexedList::Source, IndexedList::Destination)?;
        let draft = Share::draft(input);
        check_lists(input, &draft, IndexedList::DraftSource, IndexedList::DraftDestination)
    }
}

/// All source indices are read before the first destination index.
fn check_lists(
    input: &PlanInput<'_>,
    share: &Share<'_>,
    source: IndexedList,
    destination: IndexedList,
) -> Result<(), Refusal> {
    if let Some(token) = share.first_past_source() {
        return Err(Refusal::Index {
            index: share.src_ordinal(token),
            size: Pages::of(input.src_pages()),
            list: source,
        });
    }
    match share.first_past_destination() {
        Some(token) => Err(Refusal::Index {
            index: share.dst_ordinal(token),
            size: Pages::of(input.dst_pages()),
            list: destination,
        }),
        None => Ok(()),
    }
}
