//! `sglang`: prefill pushes each piece into the pages that decode has reserved.
//!
//! Two revisions of its planner exist, [`Checked`] and [`Indexed`]. They lay out the same rows and
//! differ in what they refuse, and how.

mod checked;
mod indexed;
pub mod packing;
pub mod pairing;
mod releases;
pub mod texts;
pub mod untranslated;

#[cfg(test)]
pub(crate) mod tests;

pub use checked::Checked;
pub use indexed::Indexed;

use super::connection::PeerRefusal;
use super::{Engine, Revision, TransferMode};
use crate::behaviour::PlannerName;
use crate::planner::{PlanInput, Refusal};

/// `sglang`.
pub static ENGINE: Engine = Engine {
    name: "sglang",
    releases: releases::ALL,
    revisions: &[
        Revision {
            name: PlannerName::CHECKED,
            doc: "Three checks, each with its error (sglang 0.5.17 to 0.5.19)",
            recorded_as: "sglang_0_5_17",
            make: || Box::new(Checked),
        },
        Revision {
            name: PlannerName::INDEXED,
            doc: "The alignment check and bare index errors; draft rows (sglang 0.5.20 to 0.5.23)",
            recorded_as: "sglang_0_5_23",
            make: || Box::new(Indexed),
        },
    ],
    pair: |prefill, decode| {
        pairing::pair(prefill, decode)
            .map_err(|refusal| PeerRefusal { code: refusal.text().code, said: refusal.to_string() })
    },
    transfer: TransferMode::Push,
    texts: &texts::ALL,
};

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
