//! Rates with intervals, and quantiles. The only floats below the report.

use std::fmt;

use serde::Deserialize;

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

/// The smallest value that at least `numerator` of `denominator` of the sorted `values` do not
/// exceed (nearest rank). `None` for no values.
pub fn quantile<T: Copy>(values: &[T], numerator: usize, denominator: usize) -> Option<T> {
    let rank = (values.len() * numerator).div_ceil(denominator).max(1);
    values.get(rank - 1).copied()
}

#[cfg(test)]
mod tests {
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

    /// 81 of 263 are 0.308, within 0.2553 to 0.3662 but for one time in twenty.
    #[test]
    fn bounds_within_the_interval_admit_it_and_those_beyond_do_not() {
        let found = Rate { hits: 81, chances: 263 }.interval().unwrap();
        let admits = |min, max| Bounds { min, max }.admits(found);
        assert!(admits(Some(0.3), Some(0.31)));
        assert!(admits(Some(0.366), None) && !admits(Some(0.367), None));
        assert!(admits(None, Some(0.256)) && !admits(None, Some(0.255)));
    }

    #[test]
    fn quantiles_are_nearest_ranks() {
        let values = [1, 2, 3, 4];
        assert_eq!(quantile(&values, 1, 2), Some(2));
        assert_eq!(quantile(&values, 99, 100), Some(4));
        assert_eq!(quantile(&values, 0, 100), Some(1));
        assert_eq!(quantile::<u32>(&[], 1, 2), None);
    }
}
