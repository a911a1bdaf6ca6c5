//! What a request needs of the two pools, beside what they have.

use std::fmt;

/// In tokens, over all ranks.
pub(super) struct Demand {
    /// What decode must hold at the larger of the two moments at which that is most: when the
    /// prompt is stored, with the tokens kept back, and at the end.
    pub(super) decode: u64,
    /// What a decode pool can hold.
    pub(super) decode_most: u64,
    /// What prefill must compute.
    pub(super) prefill: u64,
    /// What a prefill pool can hold.
    pub(super) prefill_most: u64,
}

impl Demand {
    /// Whether the pools can ever hold it.
    pub(super) fn fits(&self) -> bool {
        self.decode <= self.decode_most && self.prefill <= self.prefill_most
    }
}

impl fmt::Display for Demand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Demand { decode, decode_most, prefill, prefill_most } = self;
        write!(
            f,
            "it needs {decode} of the {decode_most} tokens of a decode pool and {prefill} of the \
             {prefill_most} of a prefill pool"
        )
    }
}
