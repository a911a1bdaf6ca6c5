//! Where a position of a sequence lives under decode context parallelism: page size × ranks ×
//! interleave.
//!
//! With page size P, N ranks and interleave I (I divides P), position p belongs to rank
//! (p div I) mod N, at local row (p div (I·N))·I + p mod I. I = 1 stripes token by token, I = P
//! page by page. A *virtual page* is V = P·N positions; it is physical page v on every rank. All
//! arithmetic of the layout is here, for everyone but the oracle, which has its own.

use thiserror::Error;

use crate::units::{PageId, PageSize, Pages, Rank, Row, Tokens};

/// The striping of one sequence over the ranks of a decode server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    page: PageSize,
    ranks: u32,
    interleave: u32,
    virtual_page: PageSize,
}

/// Why a layout cannot exist.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LayoutError {
    /// Page size 0.
    #[error("page_size: must be at least 1, got 0")]
    PageSize,
    /// No rank.
    #[error("ranks: must be at least 1, got 0")]
    Ranks,
    /// The interleave does not divide the page.
    #[error("interleave: must be at least 1 and divide page_size {page_size}, got {interleave}")]
    Interleave {
        /// Rows of a physical page.
        page_size: u32,
        /// Positions in a row on one rank.
        interleave: u32,
    },
    /// P·N does not fit into 32 bits.
    #[error("page_size · ranks: must fit into 32 bits, got {page_size} · {ranks}")]
    VirtualPage {
        /// Rows of a physical page.
        page_size: u32,
        /// Number of ranks.
        ranks: u32,
    },
}

impl Layout {
    /// A layout of `page_size` rows a physical page over `ranks` ranks, `interleave` positions in a
    /// row on one rank.
    pub fn new(page_size: u32, ranks: u32, interleave: u32) -> Result<Layout, LayoutError> {
        let page = PageSize::new(page_size).ok_or(LayoutError::PageSize)?;
        if ranks == 0 {
            return Err(LayoutError::Ranks);
        }
        if interleave == 0 || !page_size.is_multiple_of(interleave) {
            return Err(LayoutError::Interleave { page_size, interleave });
        }
        let virtual_page = page_size
            .checked_mul(ranks)
            .and_then(PageSize::new)
            .ok_or(LayoutError::VirtualPage { page_size, ranks })?;
        Ok(Layout { page, ranks, interleave, virtual_page })
    }

    /// The layout of token-by-token striping, which planner, pools and world use.
    pub fn striped(page_size: u32, ranks: u32) -> Result<Layout, LayoutError> {
        Layout::new(page_size, ranks, 1)
    }

    /// Rows of a physical page, P.
    pub fn page(&self) -> PageSize {
        self.page
    }

    /// Number of ranks, N.
    pub fn ranks(&self) -> u32 {
        self.ranks
    }

    /// Every rank, in order.
    pub fn each_rank(&self) -> impl Iterator<Item = Rank> + use<> {
        (0..self.ranks).map(Rank)
    }

    /// Positions of a virtual page, V = P·N.
    pub fn virtual_page(&self) -> PageSize {
        self.virtual_page
    }

    /// The rank that stores `position`.
    pub fn owner(&self, position: Tokens) -> Rank {
        Rank(position.0 / self.interleave % self.ranks)
    }

    /// The index of `position` among the rows that its owner stores of the sequence.
    pub fn local_index(&self, position: Tokens) -> u32 {
        let stripe = self.interleave * self.ranks;
        position.0 / stripe * self.interleave + position.0 % self.interleave
    }

    /// The position that `rank` stores at `local_index`: the inverse of [`Layout::owner`] and
    /// [`Layout::local_index`]. `None` past 32 bits.
    pub fn position(&self, rank: Rank, local_index: u32) -> Option<Tokens> {
        let stripe = u64::from(self.interleave) * u64::from(self.ranks);
        let whole = u64::from(local_index / self.interleave) * stripe;
        let start = u64::from(rank.0) * u64::from(self.interleave);
        let position = whole + start + u64::from(local_index % self.interleave);
        u32::try_from(position).ok().map(Tokens)
    }

    /// Rows that `rank` stores of a sequence of `length` tokens.
    pub fn rows_of_rank(&self, rank: Rank, length: Tokens) -> u32 {
        let stripe = self.interleave * self.ranks;
        let rest = (length.0 % stripe).saturating_sub(rank.0 * self.interleave);
        length.0 / stripe * self.interleave + rest.min(self.interleave)
    }

    /// Virtual pages that `length` tokens need.
    pub fn pages_needed(&self, length: Tokens) -> Pages {
        length.pages_ceil(self.virtual_page)
    }

    /// The rank and local row of `position` in a sequence stored in `pages` (virtual page ids, from
    /// position 0). `None` where the list is too short.
    pub fn place(&self, position: Tokens, pages: &[PageId]) -> Option<(Rank, Row)> {
        let page = pages.get(position.pages_floor(self.virtual_page).index())?;
        let offset = self.local_index(position) % self.page.get();
        Some((self.owner(position), page.row(self.page, offset)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The definition, by counting: position after position goes to the rank whose turn it is, I in
    /// a row.
    fn dealt(ranks: u32, interleave: u32, length: u32) -> Vec<(u32, u32)> {
        let mut next_row = vec![0; ranks as usize];
        let mut rank = 0;
        let mut left = interleave;
        (0..length)
            .map(|_| {
                let row = next_row[rank as usize];
                next_row[rank as usize] += 1;
                let here = (rank, row);
                left -= 1;
                if left == 0 {
                    (rank, left) = ((rank + 1) % ranks, interleave);
                }
                here
            })
            .collect()
    }

    proptest! {
        #[test]
        fn every_position_is_dealt_to_its_owner_and_back(
            divisor in 1u32..6, times in 1u32..6, ranks in 1u32..9, length in 0u32..400,
        ) {
            let layout = Layout::new(divisor * times, ranks, divisor).unwrap();
            let dealt = dealt(ranks, divisor, length);
            for (position, &(rank, row)) in dealt.iter().enumerate() {
                let position = Tokens(u32::try_from(position).unwrap());
                prop_assert_eq!(layout.owner(position), Rank(rank));
                prop_assert_eq!(layout.local_index(position), row);
                prop_assert_eq!(layout.position(Rank(rank), row), Some(position));
            }
            for rank in layout.each_rank() {
                let count = dealt.iter().filter(|(owner, _)| *owner == rank.0).count();
                prop_assert_eq!(layout.rows_of_rank(rank, Tokens(length)) as usize, count);
            }
        }

        #[test]
        fn a_virtual_page_is_one_physical_page_on_every_rank(
            divisor in 1u32..6, times in 1u32..6, ranks in 1u32..9, page in 0u32..4,
        ) {
            let layout = Layout::new(divisor * times, ranks, divisor).unwrap();
            let ids = [PageId(7), PageId(3), PageId(9), PageId(5)];
            let virtual_page = layout.virtual_page().get();
            let mut rows = std::collections::BTreeSet::new();
            for position in page * virtual_page..(page + 1) * virtual_page {
                let (rank, row) = layout.place(Tokens(position), &ids).unwrap();
                prop_assert_eq!(row.split(layout.page()).0, ids[page as usize]);
                rows.insert((rank, row));
            }
            prop_assert_eq!(rows.len(), virtual_page as usize);
        }
    }

    #[test]
    fn ranks_that_do_not_divide_the_page_start_each_virtual_page_at_owner_zero() {
        let layout = Layout::striped(64, 3).unwrap();
        for page in 0..5 {
            assert_eq!(layout.owner(Tokens(page * 192)), Rank(0));
            assert_eq!(layout.local_index(Tokens(page * 192)), page * 64);
        }
    }

    #[test]
    fn impossible_layouts_are_refused_with_the_field() {
        assert_eq!(Layout::new(0, 1, 1), Err(LayoutError::PageSize));
        assert_eq!(Layout::new(4, 0, 1), Err(LayoutError::Ranks));
        let error = Layout::new(4, 1, 3).unwrap_err();
        assert_eq!(
            error.to_string(),
            "interleave: must be at least 1 and divide page_size 4, got 3"
        );
        let too_large = LayoutError::VirtualPage { page_size: 1 << 31, ranks: 2 };
        assert_eq!(Layout::new(1 << 31, 2, 1), Err(too_large));
    }
}
