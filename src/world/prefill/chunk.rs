//! A *chunk*: the positions of one request that one step computes; and the step that is being
//! filled with chunks.

use crate::units::{PageSize, RequestId, Tokens};

/// Positions of one request that a step computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Chunk {
    pub(in super::super) request: RequestId,
    pub(in super::super) from: Tokens,
    pub(in super::super) to: Tokens,
}

/// A step that is being put together.
pub(super) struct Draft {
    /// Tokens that may still be computed.
    pub(super) budget: Tokens,
    pub(super) chunks: Vec<Chunk>,
    /// A request that found no room, and the one that was asked to give way to it.
    pub(super) making_way: Option<(RequestId, RequestId)>,
}

impl Draft {
    /// An empty step of `budget` tokens.
    pub(super) fn new(budget: Tokens) -> Draft {
        Draft { budget, chunks: Vec::new(), making_way: None }
    }

    /// Adds a chunk, which costs whole pages of the budget.
    pub(super) fn add(&mut self, chunk: Chunk, page: PageSize) {
        self.budget = self.budget.saturating_sub((chunk.to - chunk.from).ceil_to(page));
        self.chunks.push(chunk);
    }
}
