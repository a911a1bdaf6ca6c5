//! The planner: which source row goes to which destination row, for one piece and one rank.
//!
//! A planner is pure: a valid request in ([`PlanInput`]), a plan or a refusal out. It holds no pool
//! and sees no memory. With P, N, V = P·N, S, off and n as in [`Piece`], and i = 0..n the piece's
//! tokens:
//!
//! - the rank owns those whose absolute position S + off·P + i is congruent to it mod N;
//! - source row = src\[i div P\]·P + i mod P;
//! - destination row = dst\[(q div N) div P\]·P + (q div N) mod P with q = off·P + i, so the
//!   destination list is the request's whole list, from position S on.
//!
//! Draft KV is not striped: every rank keeps every position, at row dst\[q div V\]·V + q mod V.
//!
//! Here stands what every engine's planner is written with; the planners themselves, which differ
//! in what they refuse, and how, stand with their engine ([`crate::engine`]).
//!
//! ```
//! use kvseam::engine::sglang::Checked;
//! use kvseam::layout::Layout;
//! use kvseam::planner::{Piece, PlanInput, Planner};
//! use kvseam::units::{PageId, Pages, Rank, Row, Tokens};
//!
//! // P = 4 and N = 2: of five tokens, rank 1 owns the second and the fourth.
//! let piece = Piece {
//!     src_page_offset: Pages(0),
//!     decode_prefix_len: Tokens(0),
//!     num_kv_tokens: Some(5),
//! };
//! let (source, target) = ([PageId(7), PageId(9)], [PageId(3)]);
//! let input = PlanInput::new(Layout::striped(4, 2)?, Rank(1), piece, &source, &target)?;
//! let rows = Checked.plan(&input)?.target;
//! assert_eq!(rows.src, [Row(29), Row(31)]);
//! assert_eq!(rows.dst, [Row(12), Row(13)]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod descriptors;
mod input;
mod piece;
mod plan;
mod refusal;
mod share;

pub use input::{InputError, Piece, PlanInput, RawInput};
pub use piece::{PiecePlan, RankShare, SourceStretch};
pub use plan::{Plan, RowPairs, RowRun, RunPlan};
pub use refusal::{IndexedList, Refusal};
pub use share::Share;

/// One revision of the planner. What it refuses is its own; what it lays out follows the
/// definition.
pub trait Planner {
    /// Whether this revision lays out draft rows on every rank.
    fn lays_draft_rows(&self) -> bool;

    /// The verdict alone, in a time that depends neither on tokens nor on pages.
    fn check(&self, input: &PlanInput<'_>) -> Result<(), Refusal>;

    /// The plan in long form. Costs one step a token.
    fn plan(&self, input: &PlanInput<'_>) -> Result<Plan, Refusal> {
        self.check(input)?;
        Ok(Plan {
            target: Share::target(input).rows(),
            draft: self.lays_draft_rows().then(|| Share::draft(input).rows()),
        })
    }

    /// The rank's share in compact form, refused exactly where [`Planner::plan`] refuses. Costs one
    /// step a page.
    fn plan_runs(&self, input: &PlanInput<'_>) -> Result<RunPlan, Refusal> {
        self.check(input)?;
        Ok(Share::target(input).runs())
    }

    /// The shares of all ranks at once, once none of them is refused; `None` where this planner
    /// lays out rank by rank only. It says the same as [`Planner::plan_runs`] for each rank.
    fn plan_piece(&self, _input: &PlanInput<'_>) -> Option<PiecePlan> {
        None
    }

    /// The draft rows in compact form, `None` where this revision lays out none.
    fn draft_runs(&self, input: &PlanInput<'_>) -> Result<Option<RunPlan>, Refusal> {
        self.check(input)?;
        Ok(self.lays_draft_rows().then(|| Share::draft(input).runs()))
    }
}
