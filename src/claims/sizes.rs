//! How large the cases of a fuzz target are, and what they have in them: with `KVSEAM_SIZES` set, a
//! target counts its cases and prints the means to standard error when it ends.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::LazyLock;

/// Cases with their sizes and features, summed.
#[derive(Debug, Default)]
pub struct Sizes {
    cases: u64,
    sums: BTreeMap<&'static str, u64>,
    features: BTreeMap<String, u64>,
}

impl Sizes {
    /// Counts a case of these sizes with these features.
    pub fn add(
        &mut self,
        sizes: &[(&'static str, u64)],
        features: impl IntoIterator<Item = String>,
    ) {
        self.cases += 1;
        for &(name, size) in sizes {
            *self.sums.entry(name).or_default() += size;
        }
        for name in features {
            *self.features.entry(name).or_default() += 1;
        }
    }

    /// How many cases.
    pub fn cases(&self) -> u64 {
        self.cases
    }

    /// The sum of a size over all cases.
    pub fn sum(&self, name: &str) -> u64 {
        self.sums.get(name).copied().unwrap_or_default()
    }

    /// How many cases have a feature.
    pub fn with(&self, feature: &str) -> u64 {
        self.features.get(feature).copied().unwrap_or_default()
    }
}

/// 100 · `part` / `whole`, rounded down; `whole` must be positive.
fn hundredths(part: u64, whole: u64) -> u64 {
    (u128::from(part) * 100 / u128::from(whole)).try_into().unwrap_or(u64::MAX)
}

impl fmt::Display for Sizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "sizes: {} cases", self.cases)?;
        for (name, &sum) in &self.sums {
            let mean = hundredths(sum, self.cases.max(1));
            writeln!(f, "sizes: {name}: mean {}.{:02}", mean / 100, mean % 100)?;
        }
        for (name, &count) in &self.features {
            writeln!(f, "sizes: {name}: in {} %", hundredths(count, self.cases.max(1)))?;
        }
        Ok(())
    }
}

/// Prints what it has counted at the end of its thread, which for the main thread is that of the
/// process.
#[derive(Default)]
struct PrintedWhenDropped(Sizes);

impl Drop for PrintedWhenDropped {
    fn drop(&mut self) {
        if self.0.cases > 0 {
            eprint!("{}", self.0);
        }
    }
}

thread_local! {
    static TOLD: RefCell<PrintedWhenDropped> = RefCell::default();
}

/// Whether cases are counted.
pub(super) fn are_asked_for() -> bool {
    static ASKED: LazyLock<bool> = LazyLock::new(|| std::env::var_os("KVSEAM_SIZES").is_some());
    *ASKED
}

/// Counts a case of one size, if sizes are asked for.
pub(super) fn tell(name: &'static str, size: u64) {
    if are_asked_for() {
        tell_all(&[(name, size)], []);
    }
}

/// Counts a case of several sizes and with features.
pub(super) fn tell_all(sizes: &[(&'static str, u64)], features: impl IntoIterator<Item = String>) {
    TOLD.with_borrow_mut(|told| told.0.add(sizes, features));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_and_shares_are_of_all_cases() {
        let mut sizes = Sizes::default();
        sizes.add(&[("pages", 5)], ["a hit".to_owned()]);
        sizes.add(&[("pages", 4)], []);
        sizes.add(&[("pages", 1)], []);
        let text = "sizes: 3 cases\nsizes: pages: mean 3.33\nsizes: a hit: in 33 %\n";
        assert_eq!(sizes.to_string(), text);
        assert_eq!((sizes.cases(), sizes.sum("pages"), sizes.with("a hit")), (3, 10, 1));
    }
}
