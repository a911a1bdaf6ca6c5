//! A *chunk*: the positions of one request that one step computes; and the *batch* of chunks that a
//! step is filled with.

use crate::behaviour::PrefillBatch;
use crate::units::{PageSize, RequestId, Tokens};

/// With so many tokens a step lets in no other request, even where its chunks may be longer:
/// sglang's `--max-prefill-tokens`, by default.
const MAX_PREFILL_TOKENS: Tokens = Tokens(16_384);

/// Positions of one request that a step computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::world) struct Chunk {
    pub(in crate::world) request: RequestId,
    pub(in crate::world) from: Tokens,
    pub(in crate::world) to: Tokens,
}

/// The chunks of a step that is being put together.
pub(super) struct Batch {
    /// Tokens that may still be computed.
    pub(super) budget: Tokens,
    /// Tokens of its chunks, in whole pages.
    pub(super) tokens: Tokens,
    pub(super) chunks: Vec<Chunk>,
    /// Tokens of the pool that are promised to the chunks, where they get their pages all at once.
    pub(super) promised: Tokens,
    /// The request that was cut and with whose next chunk the step begins.
    pub(super) goes_on: Option<RequestId>,
    /// A request that found no room, and the one that was asked to give way to it.
    pub(super) making_way: Option<(RequestId, RequestId)>,
}

impl Batch {
    /// An empty step of `budget` tokens.
    pub(super) fn new(budget: Tokens) -> Batch {
        Batch {
            budget,
            tokens: Tokens(0),
            chunks: Vec::new(),
            promised: Tokens(0),
            goes_on: None,
            making_way: None,
        }
    }

    /// Whether no other request is let in.
    pub(super) fn is_full(&self, how: PrefillBatch) -> bool {
        self.budget == Tokens(0)
            || match how {
                PrefillBatch::OneByOne => false,
                PrefillBatch::AtOnce => self.tokens >= MAX_PREFILL_TOKENS,
            }
    }

    /// Adds a chunk, which costs whole pages of the budget.
    pub(super) fn add(&mut self, chunk: Chunk, page: PageSize) {
        let tokens = (chunk.to - chunk.from).ceil_to(page);
        self.budget = self.budget.saturating_sub(tokens);
        self.tokens += tokens;
        self.chunks.push(chunk);
    }
}
