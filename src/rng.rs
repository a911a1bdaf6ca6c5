//! The only randomness: ChaCha with 8 rounds, one independent stream for every seed and label.
//!
//! Integers only, so that the same seed gives the same bytes on every machine.

use std::hash::Hasher;
use std::ops::RangeInclusive;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use siphasher::sip::SipHasher13;

/// A stream of random integers.
#[derive(Clone)]
pub struct Stream(ChaCha8Rng);

impl Stream {
    /// The stream named `label` of `seed`. Streams of different labels do not disturb each other:
    /// drawing more from one changes nothing in another.
    pub fn new(seed: u64, label: &str) -> Stream {
        let mut hasher = SipHasher13::new_with_keys(seed, 0);
        hasher.write(label.as_bytes());
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        key[8..16].copy_from_slice(&hasher.finish().to_le_bytes());
        Stream(ChaCha8Rng::from_seed(key))
    }

    /// A number below `bound`, all equally likely. `bound` must be positive.
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "a draw needs at least one outcome");
        // Values from the last, partial copy of 0..bound would favour small results: draw again.
        let whole = u64::MAX - u64::MAX % bound;
        loop {
            let draw = self.0.next_u64();
            if draw < whole {
                return draw % bound;
            }
        }
    }

    /// A number of `range`, all equally likely.
    pub fn within(&mut self, range: RangeInclusive<u32>) -> u32 {
        let (low, high) = (u64::from(*range.start()), u64::from(*range.end()));
        let draw = low + self.below(high - low + 1);
        u32::try_from(draw).expect("the range is one of u32")
    }

    /// True `numerator` times out of `denominator`.
    pub fn chance(&mut self, numerator: u64, denominator: u64) -> bool {
        self.below(denominator) < numerator
    }

    /// Failures before the first success of trials that succeed `numerator` times out of
    /// `denominator`: a geometric gap with mean (denominator − numerator) / numerator. Stops at
    /// `cap`.
    pub fn geometric(&mut self, numerator: u64, denominator: u64, cap: u64) -> u64 {
        (0..cap).find(|_| self.chance(numerator, denominator)).unwrap_or(cap)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seed_and_label_decide_the_stream() {
        let draws = |seed, label| {
            let mut stream = Stream::new(seed, label);
            (0..8).map(|_| stream.below(1 << 40)).collect::<Vec<_>>()
        };
        assert_eq!(draws(1, "arrivals"), draws(1, "arrivals"));
        assert_ne!(draws(1, "arrivals"), draws(2, "arrivals"));
        assert_ne!(draws(1, "arrivals"), draws(1, "lengths"));
    }

    #[test]
    fn every_number_below_the_bound_is_about_equally_frequent() {
        let mut stream = Stream::new(7, "test");
        let mut counts = [0_u32; 7];
        for _ in 0..70_000 {
            counts[usize::try_from(stream.below(7)).unwrap()] += 1;
        }
        // Six standard deviations of a count of mean 10,000 are about 560.
        assert!(counts.iter().all(|count| count.abs_diff(10_000) < 560), "{counts:?}");
    }

    #[test]
    fn geometric_gaps_have_their_mean() {
        let mut stream = Stream::new(7, "gaps");
        let total: u64 = (0..40_000).map(|_| stream.geometric(1, 10, 10_000)).sum();
        // Mean 9, standard deviation 9.5 a gap: six deviations of the total are about 11,400.
        assert!(total.abs_diff(360_000) < 11_400, "{total}");
    }
}
