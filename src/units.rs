//! Tokens, pages, rows, ranks and ticks as types, so that a physical page is never added to a
//! virtual one and a row never to a position.
//!
//! Every conversion between tokens and pages says whether it rounds down (`floor`), up (`ceil`) or
//! not at all (`exact`). Bounds that keep these integers from overflowing are in [`crate::limits`].

use std::fmt;
use std::hash::{Hash, Hasher};
use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};

macro_rules! unit {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
        #[derive(Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub $inner);

        impl Hash for $name {
            fn hash<H: Hasher>(&self, state: &mut H) {
                self.0.hash(state);
            }

            // The bytes of many at once, in the same order on every machine: lists of pages are
            // long.
            fn hash_slice<H: Hasher>(list: &[$name], state: &mut H) {
                const BYTES: usize = size_of::<$inner>();
                let mut bytes = [0; 64 * BYTES];
                for part in list.chunks(64) {
                    for (place, unit) in bytes.chunks_exact_mut(BYTES).zip(part) {
                        place.copy_from_slice(&unit.0.to_le_bytes());
                    }
                    state.write(&bytes[..part.len() * BYTES]);
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

macro_rules! countable {
    ($($name:ident),*) => {$(
        impl std::ops::Add for $name {
            type Output = Self;
            fn add(self, other: Self) -> Self {
                Self(self.0 + other.0)
            }
        }

        impl std::ops::Sub for $name {
            type Output = Self;
            fn sub(self, other: Self) -> Self {
                Self(self.0 - other.0)
            }
        }

        impl std::ops::AddAssign for $name {
            fn add_assign(&mut self, other: Self) {
                self.0 += other.0;
            }
        }

        impl std::ops::SubAssign for $name {
            fn sub_assign(&mut self, other: Self) {
                self.0 -= other.0;
            }
        }

        impl std::iter::Sum for $name {
            fn sum<I: Iterator<Item = Self>>(items: I) -> Self {
                items.fold(Self::default(), |sum, item| sum + item)
            }
        }

        impl $name {
            /// `self - other`, or zero.
            pub fn saturating_sub(self, other: Self) -> Self {
                Self(self.0.saturating_sub(other.0))
            }
        }
    )*};
}

unit! {
    /// A number of tokens, or a position in a sequence (the number of tokens before it).
    Tokens(u32)
}
unit! {
    /// A number of pages of whichever allocator is spoken of.
    Pages(u32)
}
unit! {
    /// The id of one page. Page 0 is reserved for padding in every pool.
    PageId(u32)
}
unit! {
    /// One token's place in a pool: page · page size + offset. Local to a rank on decode.
    Row(u32)
}
unit! {
    /// A decode context-parallel rank, counted from 0.
    Rank(u32)
}
unit! {
    /// Simulated time in microseconds.
    Tick(u64)
}
unit! {
    /// A request's number in its scenario, in order of arrival.
    RequestId(u32)
}

countable!(Tokens, Pages, Tick);

impl Tokens {
    /// Whole pages that these tokens fill.
    pub fn pages_floor(self, page: PageSize) -> Pages {
        Pages(self.0 / page.get())
    }

    /// Pages needed to hold these tokens.
    pub fn pages_ceil(self, page: PageSize) -> Pages {
        Pages(self.0.div_ceil(page.get()))
    }

    /// Pages that these tokens fill without a rest, or `None`.
    pub fn pages_exact(self, page: PageSize) -> Option<Pages> {
        self.0.is_multiple_of(page.get()).then(|| self.pages_floor(page))
    }

    /// The longest whole number of pages in these tokens, in tokens.
    pub fn floor_to(self, page: PageSize) -> Tokens {
        self.pages_floor(page).tokens(page)
    }

    /// The shortest whole number of pages that holds these tokens, in tokens.
    pub fn ceil_to(self, page: PageSize) -> Tokens {
        self.pages_ceil(page).tokens(page)
    }
}

impl Pages {
    /// What this many pages hold.
    pub fn tokens(self, page: PageSize) -> Tokens {
        Tokens(self.0 * page.get())
    }

    /// As a length or an index of a list of pages.
    pub fn index(self) -> usize {
        self.0 as usize
    }

    /// The length of a list of pages. Panics past `u32`, which `limits` rules out.
    pub fn of<T>(list: &[T]) -> Pages {
        Pages(u32::try_from(list.len()).expect("limits keep page lists within u32"))
    }
}

impl PageId {
    /// The row of this page at `offset`.
    pub fn row(self, page: PageSize, offset: u32) -> Row {
        Row(self.0 * page.get() + offset)
    }

    /// As an index of a table by page.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl Row {
    /// The page that holds this row, and the row's offset in it.
    pub fn split(self, page: PageSize) -> (PageId, u32) {
        (PageId(self.0 / page.get()), self.0 % page.get())
    }
}

impl Rank {
    /// As an index of a table by rank.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl RequestId {
    /// As an index of a table by request.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Rows of one page; never zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageSize(NonZeroU32);

impl PageSize {
    /// A page of `rows` rows, or `None` for zero.
    pub fn new(rows: u32) -> Option<PageSize> {
        NonZeroU32::new(rows).map(PageSize)
    }

    /// Rows of the page.
    pub fn get(self) -> u32 {
        self.0.get()
    }

    /// The same as a number of tokens.
    pub fn tokens(self) -> Tokens {
        Tokens(self.get())
    }
}

impl fmt::Display for PageSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conversions_round_as_their_names_say() {
        let page = PageSize::new(64).unwrap();
        assert_eq!(Tokens(129).pages_floor(page), Pages(2));
        assert_eq!(Tokens(129).pages_ceil(page), Pages(3));
        assert_eq!(Tokens(129).pages_exact(page), None);
        assert_eq!(Tokens(128).pages_exact(page), Some(Pages(2)));
        assert_eq!(Tokens(129).floor_to(page), Tokens(128));
        assert_eq!(Tokens(129).ceil_to(page), Tokens(192));
        assert_eq!(PageId(3).row(page, 5), Row(197));
        assert_eq!(Row(197).split(page), (PageId(3), 5));
    }

    #[test]
    fn a_page_of_no_rows_does_not_exist() {
        assert_eq!(PageSize::new(0), None);
    }
}
