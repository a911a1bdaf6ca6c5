//! A connection: what two servers say of themselves when one is to send KV to the other.

use serde::{Deserialize, Serialize};

use crate::finding::Code;
use crate::units::{PageSize, Rank};

/// What a pool stores of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum KvPool {
    /// One latent vector for all heads.
    Mla,
    /// Latent layers beside layers of another kind.
    HybridMla,
    /// Keys and values of each head.
    Mha,
}

/// One side of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Decode context-parallel ranks; 1 is dense.
    pub ranks: u32,
    /// The rank that connects; `None` is all of them, each to its like.
    pub rank: Option<Rank>,
    /// Rows of a physical page.
    pub page_size: PageSize,
    /// Attention context parallelism, 1 for none.
    pub attention_cp: u32,
    /// What the pool stores.
    pub pool: KvPool,
    /// Bytes a token of each KV entry (one a layer).
    pub entry_bytes: Vec<u32>,
}

/// How two sides that may connect exchange KV.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pairing {
    /// Equal striping: whole pages, as they are.
    PageForPage,
    /// Dense to striped: rows are laid out anew by a planner.
    Relayout,
}

/// Why two sides may not connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerRefusal {
    /// What it is found as.
    pub code: Code,
    /// The engine's words.
    pub said: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pools_are_written_in_snake_case() {
        let json = serde_json::to_string(&KvPool::HybridMla).unwrap();
        assert_eq!(json, "\"hybrid_mla\"");
        assert!(serde_json::from_str::<KvPool>("\"HybridMla\"").is_err());
    }
}
