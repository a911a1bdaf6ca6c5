//! Layouts without the planner's translation, as engines were reported to have used them. With one
//! rank they are right, with more they are not.

use crate::layout::Layout;
use crate::planner::{PlanInput, RowRun, RunPlan};
use crate::units::{Rank, Tokens};

/// Source pages paired with destination pages as they stand in their lists, the same for every
/// rank. Where the destination list ends first, the rest of the source is dropped without a word.
pub fn page_by_page(input: &PlanInput<'_>) -> RunPlan {
    let page = input.layout().page();
    let mut left = Tokens(u32::try_from(input.tokens()).unwrap_or(0));
    let mut plan = RunPlan::default();
    let destination = input.dst_pages().iter().skip(input.piece().src_page_offset.index());
    for (src, dst) in input.src_pages().iter().zip(destination) {
        let rows = left.min(page.tokens());
        left -= rows;
        if rows > Tokens(0) {
            let (src, dst) = (src.row(page, 0), dst.row(page, 0));
            plan.push(RowRun { src, src_step: 1, dst, len: rows.0 });
        }
    }
    plan
}

/// `plan` for `rank` with the allocator's virtual rows in the place of the rank's own.
pub fn virtual_rows(plan: &RunPlan, layout: Layout, rank: Rank) -> RunPlan {
    let mut untranslated = RunPlan::default();
    for run in &plan.runs {
        for (src, local) in (0..run.len).map(|at| run.at(at)) {
            let (page, offset) = local.split(layout.page());
            let dst = page.row(layout.virtual_page(), offset * layout.ranks() + rank.0);
            untranslated.push(RowRun { src, src_step: run.src_step, dst, len: 1 });
        }
    }
    untranslated
}
