//! Rates with intervals, and quantiles. The only floats below the report.

/// Events out of chances.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rate {
    /// How often it happened.
    pub hits: u64,
    /// How often it could have happened.
    pub chances: u64,
}

/// A share with its 95 % interval, all within 0..=1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// The observed share.
    pub share: f64,
    /// Upper end.
    pub high: f64,
}

/// The two-sided 95 % quantile of the normal distribution.
const Z: f64 = 1.959_963_984_540_054;

impl Rate {
    /// The 95 % Wilson score interval (Wilson 1927), or `None` without chances: not reached.
    pub fn interval(self) -> Option<Interval> {
        if self.chances == 0 {
            return None;
        }
        #[expect(clippy::cast_precision_loss, reason = "counts beyond 2^52 do not occur")]
        let (hits, n) = (self.hits as f64, self.chances as f64);
        let share = hits / n;
        let scale = 1.0 + Z * Z / n;
        let centre = (share + Z * Z / (2.0 * n)) / scale;
        let half = Z / scale * (share * (1.0 - share) / n + Z * Z / (4.0 * n * n)).sqrt();
        let low = if self.hits == 0 { 0.0 } else { (centre - half).max(0.0) };
        let high = if self.hits == self.chances { 1.0 } else { (centre + half).min(1.0) };
        Some(Interval { low, share, high })
    }
}

/// The smallest value that at least `numerator` of `denominator` of the sorted `values` do not
/// exceed (nearest rank). `None` for no values.
pub fn quantile<T: Copy>(values: &[T], numerator: usize, denominator: usize) -> Option<T> {
    let rank = (values.len() * numerator).div_ceil(denominator).max(1);
    values.get(rank - 1).copied()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 5e-5
    }

    /// Newcombe (1998), table I: the Wilson interval of 81 out of 263 is 0.2553 to 0.3662, of 15 out
    /// of 148 0.0624 to 0.1605, of 0 out of 20 0 to 0.1611, of 1 out of 29 0.0061 to 0.1718.
    #[test]
    fn intervals_are_those_of_the_literature() {
        for (hits, chances, low, high) in [
            (81, 263, 0.2553, 0.3662),
            (15, 148, 0.0624, 0.1605),
            (0, 20, 0.0, 0.1611),
            (1, 29, 0.0061, 0.1718),
        ] {
            let interval = Rate { hits, chances }.interval().unwrap();
            assert!(close(interval.low, low) && close(interval.high, high), "{interval:?}");
        }
    }

    #[test]
    fn no_chances_is_not_reached_rather_than_zero() {
        assert_eq!(Rate { hits: 0, chances: 0 }.interval(), None);
    }

    #[test]
    fn quantiles_are_nearest_ranks() {
        let values = [1, 2, 3, 4];
        assert_eq!(quantile(&values, 1, 2), Some(2));
        assert_eq!(quantile(&values, 99, 100), Some(4));
        assert_eq!(quantile(&values, 0, 100), Some(1));
        assert_eq!(quantile::<u32>(&[], 1, 2), None);
    }

    proptest! {
        /// Wilson's interval holds the shares p from which the observed one is no more than Z standard
        /// deviations of p away: at an end it is just as far.
        #[test]
        fn an_interval_ends_where_the_observed_share_is_as_unlikely_as_allowed(
            (chances, hits) in (1u64..1_000_000).prop_flat_map(|n| (Just(n), 0..=n)),
        ) {
            let n = chances as f64;
            let Interval { low, share, high } = Rate { hits, chances }.interval().unwrap();
            prop_assert!(0.0 <= low && low <= share && share <= high && high <= 1.0);
            for end in [low, high] {
                let allowed = Z * Z * end * (1.0 - end) / n;
                let distance = (share - end).powi(2);
                prop_assert!((distance - allowed).abs() <= 1e-9 * distance.max(1.0 / n), "{end}");
            }
            let rest = Rate { hits: chances - hits, chances }.interval().unwrap();
            prop_assert!(close(rest.low, 1.0 - high) && close(rest.high, 1.0 - low));
        }

        #[test]
        fn a_quantile_is_the_smallest_value_that_enough_do_not_exceed(
            mut values in proptest::collection::vec(0u32..20, 1..40),
            (denominator, numerator) in (1usize..101).prop_flat_map(|n| (Just(n), 0..=n)),
        ) {
            values.sort_unstable();
            let enough = |value: u32| {
                let count = values.iter().filter(|&&other| other <= value).count();
                count * denominator >= numerator * values.len()
            };
            let expected = values.iter().copied().find(|&value| enough(value));
            prop_assert_eq!(quantile(&values, numerator, denominator), expected);
        }
    }
}
