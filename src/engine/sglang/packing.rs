//! Packing: the buffer in which a sender gathers a rank's rows, so that only the destination ends a
//! descriptor.
//!
//! The buffer has one region a rank, each of ceil(max_tokens / N) rows. A send of more than
//! max_tokens does not fit; a release splits it, or its check sends it unpacked, or its check looks
//! at the whole buffer only and lets a rank run into the next rank's region.

use thiserror::Error;

use crate::units::{PageSize, Pages, Rank, Tokens};

/// The pack buffer of a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PackRegions {
    /// Tokens of the largest send that fits.
    pub max_tokens: Tokens,
    /// Number of ranks, N, and of regions.
    pub ranks: u32,
}

/// A part of a send, in whole source pages but for the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendPart {
    /// Source pages sent before it, counted from the decode side's prefix.
    pub src_page_offset: Pages,
    /// Its tokens.
    pub tokens: Tokens,
}

/// Why a send cannot be split.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SplitError {
    /// A cut would fall inside a page.
    #[error("max_tokens: must be a positive multiple of page_size {page_size}, got {max_tokens}")]
    Capacity {
        /// P.
        page_size: PageSize,
        /// The pack capacity.
        max_tokens: Tokens,
    },
    /// The send ends past 32 bits.
    #[error(
        "src_page_offset: src_page_offset · page_size + tokens must be in 0..=4294967295, got \
         {src_page_offset} · {page_size} + {tokens}"
    )]
    End {
        /// Source pages sent before.
        src_page_offset: Pages,
        /// P.
        page_size: PageSize,
        /// Tokens of the send.
        tokens: Tokens,
    },
}

impl PackRegions {
    /// Rows of one region. A buffer for no rank has none.
    pub fn region_rows(&self) -> u64 {
        u64::from(
            self.max_tokens.0.checked_div(self.ranks).map_or(0, |whole| {
                whole + u32::from(!self.max_tokens.0.is_multiple_of(self.ranks))
            }),
        )
    }

    /// Whether a rank's rows stay in its region: the sound check (`sglang` 0.5.23).
    pub fn fits_region(&self, rows: u64) -> bool {
        rows <= self.region_rows()
    }

    /// Whether a rank's rows stay in the buffer, wherever they end: the check that lets a rank
    /// overwrite its neighbour (`sglang` 0.5.20).
    pub fn fits_buffer(&self, rank: Rank, rows: u64) -> bool {
        let end = u64::from(rank.0) * self.region_rows() + rows;
        end <= u64::from(self.ranks) * self.region_rows()
    }

    /// The parts of a send, cut at multiples of `max_tokens` counted from the decode side's prefix.
    /// A send without tokens is one part without tokens.
    pub fn split(&self, page: PageSize, send: SendPart) -> Result<Vec<SendPart>, SplitError> {
        let max_tokens = self.max_tokens;
        let pages = max_tokens.pages_exact(page).filter(|pages| pages.0 > 0);
        if pages.is_none() {
            return Err(SplitError::Capacity { page_size: page, max_tokens });
        }
        let bounds = send.src_page_offset.0.checked_mul(page.get());
        let Some((mut start, end)) = bounds.and_then(|start| {
            let end = start.checked_add(send.tokens.0)?;
            Some((start, end))
        }) else {
            return Err(SplitError::End {
                src_page_offset: send.src_page_offset,
                page_size: page,
                tokens: send.tokens,
            });
        };
        let mut parts = Vec::new();
        loop {
            let room = max_tokens.0 - start % max_tokens.0;
            let tokens = room.min(end - start);
            parts.push(SendPart {
                src_page_offset: Pages(start / page.get()),
                tokens: Tokens(tokens),
            });
            start += tokens;
            if start == end {
                return Ok(parts);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(page: u32, max_tokens: u32, offset: u32, tokens: u32) -> Vec<(u32, u32)> {
        let regions = PackRegions { max_tokens: Tokens(max_tokens), ranks: 4 };
        let send = SendPart { src_page_offset: Pages(offset), tokens: Tokens(tokens) };
        let parts = regions.split(PageSize::new(page).unwrap(), send).unwrap();
        parts.iter().map(|part| (part.src_page_offset.0, part.tokens.0)).collect()
    }

    #[test]
    fn h16_the_region_check_refuses_what_the_buffer_check_lets_run_over() {
        let regions = PackRegions { max_tokens: Tokens(8), ranks: 4 };
        assert_eq!(regions.region_rows(), 2);
        assert!(!regions.fits_region(4));
        // Ends at rows 4, 6, 8 and 10 of 8.
        let whole: Vec<bool> = (0..4).map(|rank| regions.fits_buffer(Rank(rank), 4)).collect();
        assert_eq!(whole, [true, true, true, false]);
        assert_eq!(split(2, 8, 0, 16), [(0, 8), (4, 8)]);
    }

    #[test]
    fn h16_a_long_prompt_is_cut_at_the_capacity_and_ends_with_the_rest() {
        let parts = split(64, 256, 0, 2_055);
        assert_eq!(parts.len(), 9);
        for (at, &part) in (0u32..).zip(&parts[..8]) {
            assert_eq!(part, (at * 4, 256));
        }
        assert_eq!(parts[8], (32, 7));
    }

    #[test]
    fn cuts_are_counted_from_the_prefix_and_not_from_the_send() {
        assert_eq!(split(2, 8, 3, 11), [(3, 2), (4, 8), (8, 1)]);
        assert_eq!(split(2, 8, 3, 2), [(3, 2)]);
        assert_eq!(split(2, 8, 3, 0), [(3, 0)]);
    }

    #[test]
    fn every_part_of_a_split_fits_each_rank_s_region() {
        for ranks in 1..6 {
            for rank in 0..ranks {
                let regions = PackRegions { max_tokens: Tokens(12), ranks };
                for offset in 0..4u32 {
                    let send = SendPart { src_page_offset: Pages(offset), tokens: Tokens(50) };
                    for part in regions.split(PageSize::new(3).unwrap(), send).unwrap() {
                        let start = part.src_page_offset.0 * 3;
                        let own = (start..start + part.tokens.0).filter(|q| q % ranks == rank);
                        assert!(regions.fits_region(own.count() as u64));
                    }
                }
            }
        }
    }

    #[test]
    fn a_capacity_that_cuts_a_page_and_an_end_past_32_bits_are_refused() {
        let page = PageSize::new(4).unwrap();
        let send = SendPart { src_page_offset: Pages(1 << 30), tokens: Tokens(1) };
        for (max_tokens, expected) in [
            (0, "max_tokens: must be a positive multiple of page_size 4, got 0"),
            (6, "max_tokens: must be a positive multiple of page_size 4, got 6"),
            (
                8,
                "src_page_offset: src_page_offset · page_size + tokens must be in 0..=4294967295, \
                 got 1073741824 · 4 + 1",
            ),
        ] {
            let regions = PackRegions { max_tokens: Tokens(max_tokens), ranks: 2 };
            assert_eq!(regions.split(page, send).unwrap_err().to_string(), expected);
        }
    }
}
