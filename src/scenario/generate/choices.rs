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

/// Decisions out of a fuzzer's bytes that go on at random when the bytes are used up, so that short
/// inputs still make varied cases: the first eight bytes are the seed of what then follows. With
/// fewer than eight bytes every draw is the lowest.
#[cfg(feature = "arbitrary")]
pub struct Endless<'a> {
    bytes: Unstructured<'a>,
    rest: Option<Stream>,
}

#[cfg(feature = "arbitrary")]
impl<'a> Endless<'a> {
    /// The decisions that `bytes` lead to.
    pub fn new(bytes: &'a [u8]) -> Endless<'a> {
        let (rest, bytes) = match bytes.split_first_chunk() {
            Some((&seed, bytes)) => (Some(Stream::new(u64::from_le_bytes(seed), "rest")), bytes),
            None => (None, &[][..]),
        };
        Endless { bytes: Unstructured::new(bytes), rest }
    }
}

#[cfg(feature = "arbitrary")]
impl Choices for Endless<'_> {
    fn below(&mut self, bound: u64) -> u64 {
        match &mut self.rest {
            Some(rest) if self.bytes.is_empty() => rest.below(bound),
            Some(_) | None => self.bytes.below(bound),
        }
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

    #[cfg(feature = "arbitrary")]
    #[test]
    fn endless_bytes_decide_first_and_their_seed_afterwards() {
        let draws = |bytes: &[u8]| {
            let mut endless = Endless::new(bytes);
            (0..20).map(|_| endless.below(256)).collect::<Vec<_>>()
        };
        let (one, other) = (draws(b"the seed\x07\x08"), draws(b"the seed\x07\x09"));
        assert_eq!((one[..2].to_vec(), other[..2].to_vec()), (vec![7, 8], vec![7, 9]));
        assert_eq!(one[2..], other[2..]);
        assert_ne!(one[2..], draws(b"The seed\x07\x08")[2..]);
        assert_eq!(draws(b"seven b"), [0; 20]);
    }
}
