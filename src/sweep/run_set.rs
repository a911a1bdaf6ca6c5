//! A set of runs by number: one bit for every run that a plan can have.

use super::cell::RunId;

/// Some of a plan's runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunSet {
    words: Vec<u64>,
    runs: u64,
    len: u64,
}

impl RunSet {
    /// None of `runs` runs.
    pub fn new(runs: u64) -> RunSet {
        let words = usize::try_from(runs.div_ceil(64)).expect("limits::SWEEP_RUNS_ALLOWED");
        RunSet { words: vec![0; words], runs, len: 0 }
    }

    /// Adds a run; `false` where it was there, or where no run of the plan has this number.
    pub fn insert(&mut self, run: RunId) -> bool {
        if run.0 >= self.runs || self.contains(run) {
            return false;
        }
        let (word, bit) = place(run);
        self.words[word] |= bit;
        self.len += 1;
        true
    }

    /// Whether a run is there.
    pub fn contains(&self, run: RunId) -> bool {
        let (word, bit) = place(run);
        self.words.get(word).is_some_and(|word| word & bit != 0)
    }

    /// How many are there.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether none is there.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

fn place(run: RunId) -> (usize, u64) {
    let word = usize::try_from(run.0 / 64).unwrap_or(usize::MAX);
    (word, 1 << (run.0 % 64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_there_once_it_was_added_and_only_then() {
        let mut set = RunSet::new(130);
        assert!(set.is_empty());
        for run in [0, 63, 64, 129] {
            assert!(!set.contains(RunId(run)));
            assert!(set.insert(RunId(run)));
            assert!(!set.insert(RunId(run)), "it is there");
            assert!(set.contains(RunId(run)));
        }
        assert!(!set.insert(RunId(130)), "the plan has no such run");
        assert!(!set.contains(RunId(u64::MAX)));
        assert_eq!(set.len(), 4);
        assert_eq!((0..130).filter(|&run| set.contains(RunId(run))).count(), 4);
    }
}
