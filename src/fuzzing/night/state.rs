//! What one night leaves for the next.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::Night;
use super::finds::Defect;
use super::target::Figures;
use crate::finding::Named;
use crate::fuzzing::CampaignError;

/// All nights so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// How many there were.
    pub nights: u64,
    /// Every defect, with the number of the last night that saw it.
    pub defects: BTreeMap<String, u64>,
    /// Names of what hunts have found as they should.
    pub explained: BTreeSet<String>,
    /// The figures of each target's last run.
    pub targets: BTreeMap<String, Figures>,
    /// The last sweep: runs that found a code, and runs that had a chance to.
    pub rates: BTreeMap<String, (u64, u64)>,
}

impl State {
    /// Reads it; before the first night there is none.
    pub fn read(path: &Path) -> Result<State, CampaignError> {
        let text = match std::fs::read_to_string(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(State::default());
            }
            read => read.map_err(CampaignError::at(path))?,
        };
        serde_json::from_str(&text).map_err(|error| CampaignError::State {
            path: path.to_owned(),
            line: error.line(),
            reason: error.to_string(),
        })
    }

    /// Writes it, whole or not at all.
    pub fn write(&self, path: &Path) -> Result<(), CampaignError> {
        let text = serde_json::to_string_pretty(self).expect("texts and numbers") + "\n";
        let written = path.with_extension("new");
        std::fs::write(&written, text).map_err(CampaignError::at(&written))?;
        std::fs::rename(&written, path).map_err(CampaignError::at(path))
    }

    /// Whether a defect seen tonight is new. One that every night would see is new also when it was
    /// gone for a night in between; one that a fuzzer finds by chance is new only the first time.
    pub fn is_new(&self, defect: &Defect) -> bool {
        match self.defects.get(&defect.id) {
            None => !defect.is_kept,
            Some(&last) => defect.is_looked_at_every_night && last < self.nights,
        }
    }

    /// Takes in a night.
    pub fn add(&mut self, night: &Night) {
        if !night.looked_at_everything() {
            // What was there the night before may still be.
            let last = self.defects.values_mut().filter(|last| **last == self.nights);
            last.for_each(|last| *last = night.number);
        }
        self.nights = night.number;
        let seen = night.defects.iter().map(|(defect, _)| (defect.id.clone(), night.number));
        self.defects.extend(seen);
        self.explained.extend(night.explained.keys().cloned());
        self.targets.extend(night.targets.iter().cloned());
        if let Some(sweep) = night.sweep.as_ref().filter(|sweep| sweep.done == sweep.total) {
            let rates = sweep.rates.iter();
            self.rates = rates
                .map(|(code, rate)| (code.name().to_owned(), (rate.hits, rate.chances)))
                .collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn defect(id: &str, is_looked_at_every_night: bool) -> Defect {
        let (title, is_kept) = (id.to_owned(), false);
        Defect { id: id.to_owned(), title, file: None, is_looked_at_every_night, is_kept }
    }

    fn night(number: u64, defects: &[&Defect]) -> Night {
        let defects = defects.iter().map(|&defect| (defect.clone(), true)).collect();
        let sweep = Some(crate::fuzzing::night::SweepFigures::default());
        Night { number, defects, replayed: Some((1, 0)), sweep, ..Night::default() }
    }

    #[test]
    fn a_defect_is_new_once_and_a_failing_file_again_after_it_was_mended() {
        let (crash, replay) = (defect("crash", false), defect("replay", true));
        let mut state = State::default();
        assert!(state.is_new(&crash) && state.is_new(&replay));
        state.add(&night(1, &[&crash, &replay]));
        assert!(!state.is_new(&crash) && !state.is_new(&replay));
        state.add(&night(2, &[]));
        assert!(!state.is_new(&crash) && state.is_new(&replay));
        state.add(&night(3, &[&replay]));
        state.add(&Night { is_interrupted: true, ..night(4, &[]) });
        assert!(!state.is_new(&replay), "nobody looked");
        let kept = Defect { is_kept: true, ..defect("in regressions", false) };
        assert!(!state.is_new(&kept));
    }

    #[test]
    fn what_is_written_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.json");
        assert_eq!(State::read(&path).unwrap(), State::default());
        let mut state = State::default();
        let mut third = night(3, &[&defect("crash", false)]);
        let coverage = Some(crate::fuzzing::libfuzzer::Coverage { edges: 1, features: 2 });
        third.targets = vec![("radix".to_owned(), Figures { coverage, ..Figures::default() })];
        state.add(&third);
        state.write(&path).unwrap();
        assert_eq!(State::read(&path).unwrap(), state);
        std::fs::write(&path, "{\n\"nights\": -1}").unwrap();
        let message = State::read(&path).unwrap_err().to_string();
        assert!(message.contains("state.json:2: "), "{message}");
    }
}
