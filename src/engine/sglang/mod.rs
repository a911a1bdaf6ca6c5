//! `sglang`: prefill pushes each piece into the pages that decode has reserved.
//!
//! Two revisions of its planner exist, [`Checked`] and [`Indexed`]. They lay out the same rows and
//! differ in what they refuse, and how.

mod checked;
mod indexed;
pub mod packing;
pub mod pairing;
pub mod releases;
pub mod texts;
pub mod untranslated;

#[cfg(test)]
pub(crate) mod tests;

pub use checked::Checked;
pub use indexed::Indexed;

use crate::planner::{PlanInput, Refusal};

/// The first refusal of both revisions.
fn check_alignment(input: &PlanInput<'_>) -> Result<(), Refusal> {
    let virtual_page = input.layout().virtual_page();
    let prefix = input.piece().decode_prefix_len;
    if prefix.0.is_multiple_of(virtual_page.get()) {
        Ok(())
    } else {
        Err(Refusal::Misaligned { virtual_page, prefix })
    }
}
