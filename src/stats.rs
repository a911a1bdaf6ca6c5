//! Rates and ratios with intervals, quantiles, and whether two rates differ by more than chance.
//! The only floats below the report.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Events out of chances.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rate {
    /// How often it happened.
    pub hits: u64,
    /// How often it could have happened.
    pub chances: u64,
}

/// A share with its 95 % interval, all within 0..=1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// The observed share.
    pub share: f64,
    /// Upper end.
    pub high: f64,
}

/// What a share must be, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bounds {
    /// At least, within 0..=1.
    pub min: Option<f64>,
    /// At most, within 0..=1.
    pub max: Option<f64>,
}

/// The two-sided 95 % quantile of the normal distribution.
const Z: f64 = 1.959_963_984_540_054;

impl Rate {
    /// The 95 % Wilson score interval (Wilson 1927), or `None` without chances: not reached.
    pub fn interval(self) -> Option<Interval> {
        if self.chances == 0 {
            return None;
        }
        let (hits, n) = (float(self.hits), float(self.chances));
        let share = hits / n;
        let scale = 1.0 + Z * Z / n;
        let centre = (share + Z * Z / (2.0 * n)) / scale;
        let half = Z / scale * (share * (1.0 - share) / n + Z * Z / (4.0 * n * n)).sqrt();
        let low = if self.hits == 0 { 0.0 } else { (centre - half).max(0.0) };
        let high = if self.hits == self.chances { 1.0 } else { (centre + half).min(1.0) };
        Some(Interval { low, share, high })
    }
}

impl Bounds {
    /// Refuses bounds that no share can be within, and none at all.
    pub fn check(self) -> Result<(), String> {
        let (min, max) = (self.min.unwrap_or(0.0), self.max.unwrap_or(1.0));
        if self.min.or(self.max).is_none() {
            return Err("must be `min`, `max` or both, got neither".to_owned());
        }
        if 0.0 <= min && min <= max && max <= 1.0 {
            return Ok(());
        }
        Err(format!("must be 0 <= min <= max <= 1, got {min} and {max}"))
    }

    /// Whether the share of which this is the interval can be within.
    pub fn admits(self, interval: Interval) -> bool {
        self.min.is_none_or(|min| min <= interval.high)
            && self.max.is_none_or(|max| interval.low <= max)
    }
}

impl fmt::Display for Bounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..={}", self.min.unwrap_or(0.0), self.max.unwrap_or(1.0))
    }
}

/// Sums over runs, each of which has an amount `y` of something out of an amount `x`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Ratio {
    /// How many runs there are.
    pub n: u64,
    /// Sum of `x`.
    pub x: f64,
    /// Sum of `y`.
    pub y: f64,
    /// Sum of `x * x`.
    pub xx: f64,
    /// Sum of `x * y`.
    pub xy: f64,
    /// Sum of `y * y`.
    pub yy: f64,
}

impl Ratio {
    /// With the runs of `other`, too.
    #[must_use]
    pub fn plus(self, other: Ratio) -> Ratio {
        Ratio {
            n: self.n + other.n,
            x: self.x + other.x,
            y: self.y + other.y,
            xx: self.xx + other.xx,
            xy: self.xy + other.xy,
            yy: self.yy + other.yy,
        }
    }

    /// All of `y` over all of `x`, with the 95 % interval of the ratio estimator over runs
    /// (Cochran, Sampling Techniques, section 6.3); a single run says nothing of how runs differ,
    /// and its interval has no width. `None` without any `x`.
    pub fn interval(self) -> Option<Interval> {
        if self.x <= 0.0 {
            return None;
        }
        let share = self.y / self.x;
        let residual = (self.yy - 2.0 * share * self.xy + share * share * self.xx).max(0.0);
        let half = if self.n < 2 {
            0.0
        } else {
            let n = float(self.n);
            Z * (residual * n / (n - 1.0)).sqrt() / self.x
        };
        Some(Interval { low: (share - half).max(0.0), share, high: share + half })
    }
}

/// Fisher's exact test (1935), two-sided: the probability, if both rates were one, of a table with
/// these margins that is no more likely than the one seen. 1 where either has no chances.
pub fn fisher(a: Rate, b: Rate) -> f64 {
    let hits = a.hits + b.hits;
    let all = a.chances + b.chances;
    let log = |hits_of_a: u64| {
        choose_ln(a.chances, hits_of_a) + choose_ln(b.chances, hits - hits_of_a)
            - choose_ln(all, hits)
    };
    let seen = log(a.hits);
    // Tables of equal probability differ in the last digits of their logarithms.
    let tolerance = 1e-7;
    let tables = hits.saturating_sub(b.chances)..=hits.min(a.chances);
    let unlikely = tables.map(log).filter(|&table| table <= seen + tolerance);
    unlikely.map(f64::exp).sum::<f64>().min(1.0)
}

/// Holm's step-down correction (1979): the values as they hold for all tests together, in the order
/// given. One below 0.05 is significant with at most 5 % of chance for any false one among them
/// all.
pub fn holm(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let mut corrected = vec![1.0; values.len()];
    let mut least: f64 = 0.0;
    for (rank, &index) in order.iter().enumerate() {
        least = least.max((values[index] * float((values.len() - rank) as u64)).min(1.0));
        corrected[index] = least;
    }
    corrected
}

/// The logarithm of how many ways there are to choose `k` of `n`.
fn choose_ln(n: u64, k: u64) -> f64 {
    factorial_ln(n) - factorial_ln(k) - factorial_ln(n - k)
}

/// The logarithm of a factorial: multiplied out while small, then by Stirling's series, whose error
/// from here on is below 1e-16.
fn factorial_ln(n: u64) -> f64 {
    const EXACT: u64 = 64;
    if n <= EXACT {
        return (2..=n).map(|factor| float(factor).ln()).sum();
    }
    let n = float(n);
    let series = 1.0 / (12.0 * n) - 1.0 / (360.0 * n.powi(3)) + 1.0 / (1260.0 * n.powi(5));
    n * n.ln() - n + 0.5 * (std::f64::consts::TAU * n).ln() + series
}

#[expect(clippy::cast_precision_loss, reason = "counts beyond 2^52 do not occur")]
fn float(count: u64) -> f64 {
    count as f64
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

    /// Newcombe (1998), table I: the Wilson interval of 81 out of 263 is 0.2553 to 0.3662, of 15
    /// out of 148 0.0624 to 0.1605, of 0 out of 20 0 to 0.1611, of 1 out of 29 0.0061 to 0.1718.
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

    /// 81 of 263 are 0.308, within 0.2553 to 0.3662 but for one time in twenty.
    #[test]
    fn bounds_within_the_interval_admit_it_and_those_beyond_do_not() {
        let found = Rate { hits: 81, chances: 263 }.interval().unwrap();
        let admits = |min, max| Bounds { min, max }.admits(found);
        assert!(admits(Some(0.3), Some(0.31)));
        assert!(admits(Some(0.366), None) && !admits(Some(0.367), None));
        assert!(admits(None, Some(0.256)) && !admits(None, Some(0.255)));
    }

    /// Fisher (1935): 3 and 1 of 4 cups of tea, p = 34 / 70; his convictions of twins, 10 of 13 and
    /// 2 of 17, p = 0.0005367. Both rows the same, p = 1.
    #[test]
    fn exact_tests_are_those_of_the_literature() {
        for (a, b, p) in [
            ((3, 4), (1, 4), 34.0 / 70.0),
            ((10, 13), (2, 17), 0.000_536_7),
            ((7, 20), (7, 20), 1.0),
            ((0, 0), (3, 9), 1.0),
            ((0, 100), (100, 100), 0.0),
        ] {
            let rate = |(hits, chances)| Rate { hits, chances };
            let found = fisher(rate(a), rate(b));
            assert!((found - p).abs() <= 1e-7 + 1e-4 * p, "{a:?} {b:?}: {found}");
            assert!((fisher(rate(b), rate(a)) - found).abs() < 1e-9);
        }
    }

    #[test]
    fn factorials_agree_where_the_series_begins() {
        let multiplied = |n: u64| (2..=n).map(|factor| float(factor).ln()).sum::<f64>();
        for n in [64, 65, 66, 200, 1_000] {
            let exact = multiplied(n);
            assert!((factorial_ln(n) - exact).abs() < 1e-12 * exact, "{n}");
        }
    }

    /// The usual example: of 0.01, 0.04, 0.03 and 0.005, only the first and the last hold at 5 %.
    #[test]
    fn many_tests_are_corrected_step_by_step() {
        let corrected = holm(&[0.01, 0.04, 0.03, 0.005]);
        for (found, expected) in corrected.iter().zip([0.03, 0.06, 0.06, 0.02]) {
            assert!(close(*found, expected), "{corrected:?}");
        }
        assert_eq!(holm(&[]), [] as [f64; 0]);
        assert_eq!(holm(&[0.9, 0.8]), [1.0, 1.0]);
    }

    /// Two runs with 1 of 2 and 3 of 4: the ratio is 4/6, the residuals are -1/3 and 1/3, and the
    /// standard error is sqrt(2 · 2/9) / 6 = 1/9.
    #[test]
    fn ratios_have_the_interval_of_the_ratio_estimator() {
        let run = |x: f64, y: f64| Ratio { n: 1, x, y, xx: x * x, xy: x * y, yy: y * y };
        let ratio = run(2.0, 1.0).plus(run(4.0, 3.0));
        let interval = ratio.interval().unwrap();
        assert!(close(interval.share, 2.0 / 3.0), "{interval:?}");
        assert!(close(interval.high, 2.0 / 3.0 + Z / 9.0), "{interval:?}");
        let alone = run(2.0, 1.0).interval().unwrap();
        assert_eq!((alone.low, alone.high), (0.5, 0.5));
        assert_eq!(Ratio::default().interval(), None);
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
        /// Wilson's interval holds the shares p from which the observed one is no more than Z
        /// standard deviations of p away: at an end it is just as far.
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
