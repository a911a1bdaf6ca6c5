//! The releases of `sglang` whose behaviour is known.

use crate::behaviour::{Behaviours, EarlySend, Packing, PlannerName, ReleaseOnAbort, SendSplit};
use crate::engine::Release;

/// The oldest first.
pub(super) const ALL: &[Release] = &[V0_5_17, V0_5_20, V0_5_23];

/// The checked planner, no packing, release at once; no decode cache with more than one rank.
const V0_5_17: Release = Release {
    name: "sglang-0.5.17",
    behaviours: || Behaviours {
        planner: PlannerName::CHECKED,
        packing: Packing::None,
        send_split: SendSplit::No,
        release_on_abort: ReleaseOnAbort::AtOnce,
        ..common()
    },
    forbids_striped_decode_cache: true,
};
/// The indexed planner; packs against the whole buffer; releases at once.
const V0_5_20: Release = Release {
    name: "sglang-0.5.20",
    behaviours: || Behaviours {
        packing: Packing::BufferChecked,
        send_split: SendSplit::No,
        release_on_abort: ReleaseOnAbort::AtOnce,
        ..common()
    },
    forbids_striped_decode_cache: false,
};
/// The indexed planner; packs region by region and splits; drained or after a timeout.
const V0_5_23: Release = Release {
    name: "sglang-0.5.23",
    behaviours: || Behaviours { release_on_abort: ReleaseOnAbort::Timeout, ..common() },
    forbids_striped_decode_cache: false,
};

/// What all three share; the oldest one names another planner.
fn common() -> Behaviours {
    Behaviours {
        early_send: EarlySend::SettledSkipped,
        planner: PlannerName::INDEXED,
        ..Behaviours::default()
    }
}
