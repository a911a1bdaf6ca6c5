//! A planner's refusal: the exception of the real planner, with its numbers.

use crate::units::{PageSize, Pages, Rank, Tokens};

/// Why a planner refused a valid request. What it says is in the engine's table of error texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The prefix does not end on a virtual page (both revisions).
    Misaligned {
        /// V.
        virtual_page: PageSize,
        /// S.
        prefix: Tokens,
    },
    /// Fewer than zero tokens, or more than the source pages hold (checked).
    Source {
        /// n.
        tokens: i64,
        /// |src|·P.
        capacity: u64,
    },
    /// This rank's share needs more destination pages than were reserved (checked).
    Shortage {
        /// The highest ordinal that this rank needs, plus 1.
        required: u64,
        /// |dst|.
        provided: Pages,
        /// Source pages sent before.
        src_page_offset: Pages,
        /// The rank.
        dcp_rank: Rank,
    },
    /// A page list is too short (indexed): numpy's bare index error, which does not say which list.
    Index {
        /// The first index past the end, in the order of evaluation.
        index: u64,
        /// The list's length.
        size: Pages,
        /// The list, which the engine's message leaves out.
        list: IndexedList,
    },
}

/// The page lists in the order in which the indexed revision reads them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum IndexedList {
    /// Source pages, for this rank's tokens.
    Source,
    /// Destination pages, for this rank's tokens.
    Destination,
    /// Source pages, for the replicated draft rows.
    DraftSource,
    /// Destination pages, for the replicated draft rows.
    DraftDestination,
}

impl std::error::Error for Refusal {}

impl Refusal {
    /// The Python exception that carries the message.
    pub fn exception(&self) -> &'static str {
        match self {
            Refusal::Misaligned { .. } | Refusal::Source { .. } | Refusal::Shortage { .. } => {
                "ValueError"
            }
            Refusal::Index { .. } => "IndexError",
        }
    }
}
