//! A planner's refusal: the exception of the real planner, with its numbers.

use thiserror::Error;

use crate::units::{PageSize, Pages, Rank, Tokens};

/// Why a planner refused a valid request. `Display` is the engine's message, word for word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    /// The prefix does not end on a virtual page (both revisions).
    #[error(
        "PD DCP transfer requires decode_prefix_len to align to the virtual DCP page size \
         ({virtual_page}), got {prefix}"
    )]
    Misaligned {
        /// V.
        virtual_page: PageSize,
        /// S.
        prefix: Tokens,
    },
    /// Fewer than zero tokens, or more than the source pages hold (checked).
    #[error(
        "num_kv_tokens must fit in the provided source pages, got tokens={tokens}, \
         capacity={capacity}"
    )]
    Source {
        /// n.
        tokens: i64,
        /// |src|·P.
        capacity: u64,
    },
    /// This rank's share needs more destination pages than were reserved (checked).
    #[error(
        "Insufficient destination DCP pages: required={required}, provided={provided}, \
         src_page_offset={src_page_offset}, dcp_rank={dcp_rank}"
    )]
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
    #[error("index {index} is out of bounds for axis 0 with size {size}")]
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
