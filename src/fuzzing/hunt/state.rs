//! What a hunt has measured: a file with one JSON object a line, appended as each is made.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::fuzzing::CampaignError;
use crate::fuzzing::libfuzzer::Limit;

/// What was measured; a measurement counts for nothing else.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Key {
    /// What was planted, as `SWITCH=VARIANT`.
    #[serde(rename = "plant")]
    pub planted: String,
    /// The target.
    pub target: String,
    /// The seed of libFuzzer.
    pub seed: u64,
    /// When the run would have ended without a finding.
    pub limit: Limit,
    /// A digest of the target's program.
    pub build: String,
}

/// How a measurement ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SearchResult {
    /// Nothing was found up to the limit.
    Nothing,
    /// A finding that the planted variant has caused.
    Found {
        /// Its code.
        code: String,
        /// Whether the lint objects to the variant in that scenario. If not, the lint is wrong.
        is_objected_to: bool,
    },
    /// The simulation itself panicked, which is a bug.
    Panicked {
        /// Where, as `file:line:column`.
        place: String,
    },
    /// The run was still going long after its limit.
    Endless,
}

impl fmt::Display for SearchResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SearchResult::Nothing => write!(f, "found nothing"),
            SearchResult::Found { code, is_objected_to: true } => write!(f, "found {code}"),
            SearchResult::Found { code, .. } => {
                write!(f, "found {code} in a scenario to which the lint has no objection")
            }
            SearchResult::Panicked { place } => write!(f, "panicked at {place}"),
            SearchResult::Endless => write!(f, "did not end"),
        }
    }
}

/// One line of the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measurement {
    /// What was measured.
    #[serde(flatten)]
    pub key: Key,
    /// How it ended.
    pub outcome: SearchResult,
    /// Inputs executed.
    pub executions: u64,
    /// Wall time, in milliseconds.
    pub millis: u64,
}

/// All measurements, and the file that they are kept in.
#[derive(Debug)]
pub struct State {
    path: PathBuf,
    file: File,
    made: Vec<Measurement>,
}

impl State {
    /// Reads the file, or begins it. A last line that was torn is cut off.
    pub fn open(path: &Path) -> Result<State, CampaignError> {
        let text = match std::fs::read_to_string(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            read => read.map_err(CampaignError::at(path))?,
        };
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        let mut made = Vec::new();
        for (index, line) in text[..whole].lines().enumerate() {
            let state = |error: serde_json::Error| {
                let reason = error.to_string();
                CampaignError::State { path: path.to_owned(), line: index + 1, reason }
            };
            made.push(serde_json::from_str(line).map_err(state)?);
        }
        let file = OpenOptions::new().create(true).append(true).open(path);
        let file = file.map_err(CampaignError::at(path))?;
        file.set_len(whole as u64).map_err(CampaignError::at(path))?;
        Ok(State { path: path.to_owned(), file, made })
    }

    /// Keeps a measurement.
    pub fn add(&mut self, made: Measurement) -> Result<(), CampaignError> {
        let line = serde_json::to_string(&made).expect("texts and numbers") + "\n";
        self.file.write_all(line.as_bytes()).map_err(CampaignError::at(&self.path))?;
        self.made.push(made);
        Ok(())
    }

    /// The measurement with this key, if it was made.
    pub fn find(&self, key: &Key) -> Option<&Measurement> {
        self.made.iter().find(|made| made.key == *key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(seed: u64) -> Measurement {
        Measurement {
            key: Key {
                planted: "free_check=none".to_owned(),
                target: "hunt_lifetime".to_owned(),
                seed,
                limit: Limit::Seconds(60),
                build: "0123".to_owned(),
            },
            outcome: SearchResult::Found { code: "read.freed".to_owned(), is_objected_to: true },
            executions: 100 + seed,
            millis: 20,
        }
    }

    #[test]
    fn what_was_added_is_found_again_and_a_torn_line_is_made_anew() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hunt.jsonl");
        let mut state = State::open(&path).unwrap();
        state.add(made(1)).unwrap();
        state.add(made(2)).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, &text[..text.len() - 5]).unwrap();

        let mut state = State::open(&path).unwrap();
        assert_eq!(state.find(&made(1).key), Some(&made(1)));
        assert_eq!(state.find(&made(2).key), None);
        let other = Key { build: "4567".to_owned(), ..made(1).key };
        assert_eq!(state.find(&other), None);
        state.add(made(2)).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        assert_eq!(State::open(&path).unwrap().find(&made(2).key), Some(&made(2)));
    }

    #[test]
    fn a_whole_line_of_something_else_is_refused_with_its_number() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hunt.jsonl");
        std::fs::write(&path, "{}\n").unwrap();
        let message = State::open(&path).unwrap_err().to_string();
        assert!(message.contains("hunt.jsonl:1: missing field"), "{message}");
    }
}
