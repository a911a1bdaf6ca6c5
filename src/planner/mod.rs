//! Stand-in until the planner room is merged.

use serde::{Deserialize, Serialize};

/// The kind of a KV pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KvPool {
    /// One latent KV entry a token and layer.
    Mla,
    /// Layers of both kinds.
    HybridMla,
    /// Keys and values by head.
    Mha,
}
