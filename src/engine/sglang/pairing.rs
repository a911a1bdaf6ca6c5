//! Pairing: which prefill server may send to which decode server, decided when they connect.
//!
//! Two servers with the same striping exchange pages as they are, rank to equal rank. A dense
//! prefill server can fan out to N ranks where the KV of a token is the same for every head, so
//! that rows can be laid out anew. Everything else is refused before a page is reserved.

use crate::engine::connection::{Endpoint, KvPool, Pairing};
use crate::units::{PageSize, Rank};

/// Why two sides may not connect. The engine's texts where it has one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PairingRefusal {
    /// A rank that its side does not have.
    Rank {
        /// The rank.
        rank: Rank,
        /// Ranks of the side.
        ranks: u32,
    },
    /// Physical pages differ.
    PageSize {
        /// Of the sender.
        prefill: PageSize,
        /// Of the receiver.
        decode: PageSize,
    },
    /// A striped decode pool that keeps heads apart.
    Pool,
    /// Prefill splits attention over the sequence already.
    PrefillCp {
        /// Of the sender.
        attention_cp: u32,
    },
    /// Neither equal striping nor dense to striped.
    Topology {
        /// Ranks of the sender.
        prefill: u32,
        /// Ranks of the receiver.
        decode: u32,
    },
    /// Equal striping, but not the same rank.
    RankMismatch {
        /// Of the sender.
        prefill: Rank,
        /// Of the receiver.
        decode: Rank,
    },
    /// A token's bytes differ in some KV entry.
    Geometry {
        /// Bytes a token of each entry of the sender.
        src: Vec<u32>,
        /// The same of the receiver.
        dst: Vec<u32>,
    },
}

impl std::error::Error for PairingRefusal {}

/// Whether `prefill` may send to `decode`, and how. The checks are in the order in which a
/// connection meets them: the receiver looks at the peer's description, then the sender at the
/// ranks, then at the KV entries.
pub fn pair(prefill: &Endpoint, decode: &Endpoint) -> Result<Pairing, PairingRefusal> {
    check_rank(prefill)?;
    check_rank(decode)?;
    check_description(prefill, decode)?;
    let pairing = topology(prefill, decode)?;
    if prefill.entry_bytes == decode.entry_bytes {
        Ok(pairing)
    } else {
        Err(PairingRefusal::Geometry {
            src: prefill.entry_bytes.clone(),
            dst: decode.entry_bytes.clone(),
        })
    }
}

fn check_rank(side: &Endpoint) -> Result<(), PairingRefusal> {
    match side.rank {
        Some(rank) if rank.0 >= side.ranks => Err(PairingRefusal::Rank { rank, ranks: side.ranks }),
        Some(_) | None => Ok(()),
    }
}

fn check_description(prefill: &Endpoint, decode: &Endpoint) -> Result<(), PairingRefusal> {
    if prefill.page_size != decode.page_size {
        return Err(PairingRefusal::PageSize {
            prefill: prefill.page_size,
            decode: decode.page_size,
        });
    }
    if decode.ranks <= 1 {
        return Ok(());
    }
    match decode.pool {
        KvPool::Mla | KvPool::HybridMla => {}
        KvPool::Mha => return Err(PairingRefusal::Pool),
    }
    if prefill.attention_cp == 1 {
        Ok(())
    } else {
        Err(PairingRefusal::PrefillCp { attention_cp: prefill.attention_cp })
    }
}

fn topology(prefill: &Endpoint, decode: &Endpoint) -> Result<Pairing, PairingRefusal> {
    if prefill.ranks == decode.ranks {
        return match (prefill.rank, decode.rank) {
            (Some(prefill), Some(decode)) if prefill != decode => {
                Err(PairingRefusal::RankMismatch { prefill, decode })
            }
            (Some(_) | None, Some(_) | None) => Ok(Pairing::PageForPage),
        };
    }
    match (prefill.ranks, prefill.pool) {
        (1, KvPool::Mla | KvPool::HybridMla) => Ok(Pairing::Relayout),
        _ => Err(PairingRefusal::Topology { prefill: prefill.ranks, decode: decode.ranks }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn side(ranks: u32) -> Endpoint {
        Endpoint {
            ranks,
            rank: None,
            page_size: PageSize::new(64).unwrap(),
            attention_cp: 1,
            pool: KvPool::Mla,
            entry_bytes: vec![1_152, 1_152],
        }
    }

    fn refusal(prefill: &Endpoint, decode: &Endpoint) -> String {
        pair(prefill, decode).unwrap_err().to_string()
    }

    #[test]
    fn equal_ranks_exchange_pages_and_a_dense_sender_lays_out_anew() {
        assert_eq!(pair(&side(1), &side(1)), Ok(Pairing::PageForPage));
        assert_eq!(pair(&side(8), &side(8)), Ok(Pairing::PageForPage));
        for pool in [KvPool::Mla, KvPool::HybridMla] {
            let decode = Endpoint { pool, ..side(8) };
            assert_eq!(pair(&side(1), &decode), Ok(Pairing::Relayout));
        }
        let heads = Endpoint { pool: KvPool::Mha, ..side(1) };
        assert_eq!(pair(&heads, &heads), Ok(Pairing::PageForPage));
    }

    #[test]
    fn a_rank_connects_to_its_like_only() {
        let at = |rank| Endpoint { rank: Some(Rank(rank)), ..side(8) };
        assert_eq!(pair(&at(3), &at(3)), Ok(Pairing::PageForPage));
        assert_eq!(
            refusal(&at(3), &at(4)),
            "PD peers must connect matching DCP ranks, got prefill=3, decode=4"
        );
        assert_eq!(refusal(&at(8), &at(4)), "dcp_rank: must be less than dcp_size 8, got 8");
        // A dense sender serves every rank.
        assert_eq!(pair(&side(1), &at(4)), Ok(Pairing::Relayout));
    }

    #[test]
    fn striped_to_another_striping_is_unsupported() {
        assert_eq!(refusal(&side(2), &side(4)), "Unsupported PD DCP topology: 2 -> 4");
        assert_eq!(refusal(&side(4), &side(1)), "Unsupported PD DCP topology: 4 -> 1");
        let heads = Endpoint { pool: KvPool::Mha, ..side(1) };
        assert_eq!(refusal(&heads, &side(4)), "Unsupported PD DCP topology: 1 -> 4");
    }

    #[test]
    fn a_striped_decode_pool_needs_latent_kv_and_prefill_without_context_parallelism() {
        let heads = Endpoint { pool: KvPool::Mha, ..side(8) };
        let pool = "PD decode DCP requires an MLA or hybrid-MLA KV pool.";
        assert_eq!(refusal(&side(1), &heads), pool);
        let split = Endpoint { attention_cp: 2, ..side(1) };
        let cp = "PD decode DCP currently requires prefill attention CP=1, got 2";
        assert_eq!(refusal(&split, &side(8)), cp);
        assert_eq!(pair(&split, &side(1)), Ok(Pairing::PageForPage));
    }

    #[test]
    fn bytes_a_token_must_agree_entry_by_entry() {
        let other = Endpoint { entry_bytes: vec![1_152, 576], ..side(8) };
        assert_eq!(
            refusal(&side(1), &other),
            "PD DCP source/destination KV geometry differs: src=[1152, 1152], dst=[1152, 576]"
        );
    }

    #[test]
    fn h13_page_sizes_must_agree() {
        let small = Endpoint { page_size: PageSize::new(32).unwrap(), ..side(1) };
        assert_eq!(
            refusal(&small, &side(1)),
            "PD peers must use equal page sizes, got prefill=32, decode=64"
        );
    }
}
