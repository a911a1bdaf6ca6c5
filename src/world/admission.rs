//! The order in which prefill admits waiting requests.

use crate::units::Pages;

/// A request that waits for prefill, in order of waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Pages of its prompt that are cached; zero if the policy does not look.
    pub cached: Pages,
}

/// A policy of admission.
pub trait Admission {
    /// Whether the policy needs [`Waiting::cached`], which costs a lookup for every request that it
    /// is shown.
    fn looks_at_cache(&self) -> bool;

    /// Which of the waiting requests comes next. `waiting` is not empty, and holds at most the
    /// first [`limits::ADMISSION_WINDOW`](crate::limits::ADMISSION_WINDOW) of them.
    fn pick(&self, waiting: &[Waiting]) -> usize;
}

/// First come first served.
pub struct FirstCome;

impl Admission for FirstCome {
    fn looks_at_cache(&self) -> bool {
        false
    }

    fn pick(&self, _waiting: &[Waiting]) -> usize {
        0
    }
}

/// The longest cached prefix first; among equals, first come.
pub struct LongestPrefix;

impl Admission for LongestPrefix {
    fn looks_at_cache(&self) -> bool {
        true
    }

    fn pick(&self, waiting: &[Waiting]) -> usize {
        let longest = waiting.iter().map(|request| request.cached).max();
        waiting.iter().position(|request| Some(request.cached) == longest).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_prefix_goes_first_and_ties_by_waiting() {
        let waiting = [2, 5, 5, 1].map(|cached| Waiting { cached: Pages(cached) });
        assert_eq!(LongestPrefix.pick(&waiting), 1);
        assert_eq!(FirstCome.pick(&waiting), 0);
    }
}
