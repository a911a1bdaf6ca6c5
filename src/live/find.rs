//! Findings of live mode: of each kind the first, made smaller, in a file of its own.

use std::path::{Path, PathBuf};

use super::driver::Trouble;
use super::judge::Defect;
use crate::conform::{Difference, Level};
use crate::scenario::Scenario;

/// What a scenario has shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shown {
    /// The engine is wrong by itself.
    Defect(Defect),
    /// Engine and model differ.
    Difference(Difference),
    /// The driver gave no answer.
    Trouble(Trouble),
}

impl Shown {
    /// Its kind in words.
    pub fn kind(&self) -> String {
        match self {
            Shown::Defect(defect) => format!("defect: {}", defect.kind()),
            Shown::Difference(difference) => {
                let Difference { level, kind, .. } = difference;
                format!("difference at level {}: {kind}", level.number())
            }
            Shown::Trouble(trouble) => format!("driver {}", trouble.kind()),
        }
    }

    /// The level of a difference.
    pub fn level(&self) -> Option<Level> {
        match self {
            Shown::Difference(difference) => Some(difference.level),
            Shown::Defect(_) | Shown::Trouble(_) => None,
        }
    }
}

/// One kind of finding.
#[derive(Clone, Debug)]
pub struct Find {
    /// The kind.
    pub kind: String,
    /// How many scenarios have shown it.
    pub count: u64,
    /// The number of the first of them.
    pub first: u64,
    /// Requests of that scenario, and of the smallest that was found.
    pub requests: [usize; 2],
    /// Where the smallest is, with both event streams.
    pub file: PathBuf,
}

/// The text of a find's file: the scenario, and as comments what was found and what both sides did.
pub fn text(scenario: &Scenario, kind: &str, said: &str, streams: &[Vec<String>; 2]) -> String {
    let mut text = format!("# {kind}\n");
    for line in said.lines() {
        text += &format!("#   {line}\n");
    }
    for (name, lines) in ["the engine", "the model"].iter().zip(streams) {
        text += &format!("#\n# {name}:\n");
        for line in lines {
            text += &format!("# {line}\n");
        }
    }
    text + "\n" + &scenario.to_toml()
}

/// The file of the `number`-th kind, from 1.
pub fn path(folder: &Path, number: usize) -> PathBuf {
    folder.join(format!("find-{number:03}.toml"))
}
