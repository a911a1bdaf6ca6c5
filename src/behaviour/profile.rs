//! The profiles: which variants a release of an engine has.

use serde::{Deserialize, Serialize};

use super::{Behaviours, EarlySend, Packing, PlannerRevision, ReleaseOnAbort, SendSplit};

/// A named set of variants, as one release of an engine has them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Profile {
    /// Every switch at its default.
    #[default]
    #[serde(rename = "sound")]
    Sound,
    /// The checked planner, no packing, release at once; no decode cache with more than one rank.
    #[serde(rename = "sglang-0.5.17")]
    Sglang0517,
    /// The indexed planner; packs against the whole buffer; releases at once.
    #[serde(rename = "sglang-0.5.20")]
    Sglang0520,
    /// The indexed planner; packs region by region and splits; drained or after a timeout.
    #[serde(rename = "sglang-0.5.23")]
    Sglang0523,
}

impl Profile {
    /// Every profile.
    pub const ALL: &'static [Profile] =
        &[Profile::Sound, Profile::Sglang0517, Profile::Sglang0520, Profile::Sglang0523];

    /// As spelled in files.
    pub fn name(self) -> &'static str {
        match self {
            Profile::Sound => "sound",
            Profile::Sglang0517 => "sglang-0.5.17",
            Profile::Sglang0520 => "sglang-0.5.20",
            Profile::Sglang0523 => "sglang-0.5.23",
        }
    }

    /// The variants that this release has.
    pub fn behaviours(self) -> Behaviours {
        let release = Behaviours {
            early_send: EarlySend::SettledSkipped,
            planner: PlannerRevision::Indexed,
            ..Behaviours::default()
        };
        match self {
            Profile::Sound => Behaviours::default(),
            Profile::Sglang0517 => Behaviours {
                planner: PlannerRevision::Checked,
                packing: Packing::None,
                send_split: SendSplit::No,
                release_on_abort: ReleaseOnAbort::AtOnce,
                ..release
            },
            Profile::Sglang0520 => Behaviours {
                packing: Packing::BufferChecked,
                send_split: SendSplit::No,
                release_on_abort: ReleaseOnAbort::AtOnce,
                ..release
            },
            Profile::Sglang0523 => {
                Behaviours { release_on_abort: ReleaseOnAbort::Timeout, ..release }
            }
        }
    }

    /// Whether this release refuses to start with a decode cache over more than one rank.
    pub fn forbids_striped_decode_cache(self) -> bool {
        match self {
            Profile::Sglang0517 => true,
            Profile::Sound | Profile::Sglang0520 | Profile::Sglang0523 => false,
        }
    }
}
