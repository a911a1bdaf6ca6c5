//! One line of a trace, whatever its format.

use std::ops::RangeInclusive;

use crate::prompt::ContentRun;

/// Units of [`TraceRequest::time`] in a tick.
pub(super) const TIME_PER_TICK: u128 = 10;

/// One line of a trace.
pub(super) struct TraceRequest {
    /// Arrival in units of 100 ns, the finest of all formats, on the format's own clock.
    pub(super) time: u64,
    /// The prompt.
    pub(super) runs: Vec<ContentRun>,
    /// Output tokens.
    pub(super) output: u32,
}

/// The length of a prompt or an output, or the reason why no scenario may have it.
pub(super) fn check_length(
    field: &str,
    length: u64,
    allowed: &RangeInclusive<u32>,
) -> Result<u32, String> {
    match u32::try_from(length) {
        Ok(length) if allowed.contains(&length) => Ok(length),
        _ => {
            Err(format!("{field}: must be {} to {}, got {length}", allowed.start(), allowed.end()))
        }
    }
}
