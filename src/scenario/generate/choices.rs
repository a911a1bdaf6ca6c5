//! Where the generator's decisions come from: a random stream, or the bytes of a fuzzer.

use std::ops::RangeInclusive;

#[cfg(feature = "arbitrary")]
use arbitrary::Unstructured;

use crate::rng::Stream;

/// A source of decisions. It never ends and never fails.
pub trait Choices {
    /// A number below `bound`, which must be positive.
    fn below(&mut self, bound: u64) -> u64;

    /// A number of `range`, which must not be empty.
    fn within(&mut self, range: RangeInclusive<u32>) -> u32 {
        let (low, high) = (u64::from(*range.start()), u64::from(*range.end()));
        let draw = low + self.below(high - low + 1);
        u32::try_from(draw).expect("the range is one of u32")
    }

    /// True `numerator` times out of `denominator`. The lowest draw says no, so that a source of
    /// nothing but zeros ends every repetition.
    fn chance(&mut self, numerator: u64, denominator: u64) -> bool {
        self.below(denominator) >= denominator - numerator
    }

    /// One of `list`, which must not be empty.
    fn pick<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        let index = self.below(list.len() as u64);
        &list[usize::try_from(index).expect("the index of a list fits into usize")]
    }
}

impl Choices for Stream {
    fn below(&mut self, bound: u64) -> u64 {
        Stream::below(self, bound)
    }
}

/// Decisions out of a fuzzer's bytes; when they are used up, every draw is the lowest.
#[cfg(feature = "arbitrary")]
impl Choices for Unstructured<'_> {
    fn below(&mut self, bound: u64) -> u64 {
        self.int_in_range(0..=bound - 1).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chances_have_their_frequency() {
        let mut stream = Stream::new(3, "chances");
        let hits = (0..10_000).filter(|_| Choices::chance(&mut stream, 1, 4)).count();
        // Six standard deviations are about 260.
        assert!(hits.abs_diff(2_500) < 260, "{hits}");
    }

    #[cfg(feature = "arbitrary")]
    #[test]
    fn exhausted_bytes_give_the_lowest_of_everything() {
        let mut bytes = Unstructured::new(&[]);
        assert_eq!(bytes.below(9), 0);
        assert_eq!(bytes.within(4..=7), 4);
        assert!(!bytes.chance(3, 4));
        assert_eq!(bytes.pick(&["first", "second"]), &"first");
    }

    #[cfg(feature = "arbitrary")]
    #[test]
    fn bytes_decide_within_bounds() {
        let mut bytes = Unstructured::new(&[200, 7, 91, 255, 3]);
        assert!((0..5).all(|_| bytes.below(6) < 6));
    }
}
