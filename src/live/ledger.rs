//! What was compared: a JSON line for each scenario and each call, in their order.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use serde::Serialize;

use super::protocol::{CallKind, Hello};

/// A line of the ledger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Entry<'a> {
    /// The first line: who was asked, and with which seed the scenarios are drawn.
    Driver {
        /// Its words.
        hello: &'a Hello,
        /// The command that started it.
        command: &'a str,
        /// The seed.
        seed: u64,
    },
    /// A scenario.
    Scenario {
        /// Its number; with the seed it names the scenario.
        number: u64,
        /// Its requests.
        requests: usize,
        /// Events of the engine.
        events: usize,
        /// The last level up to which both agree, 0 for none; none where nothing was compared.
        level: Option<usize>,
        /// Kinds of what it has shown.
        shown: &'a [String],
        /// What the driver took.
        millis: u128,
    },
    /// A call.
    Call {
        /// What was called.
        kind: CallKind,
        /// The seed that it was drawn from.
        seed: u64,
        /// Whether the model answers the same.
        agrees: bool,
    },
}

/// The file.
pub struct Ledger(BufWriter<File>);

impl Ledger {
    /// A new file.
    pub fn create(path: &Path) -> io::Result<Ledger> {
        Ok(Ledger(BufWriter::new(File::create(path)?)))
    }

    /// Adds a line, which is on the disk when this returns.
    pub fn add(&mut self, entry: &Entry<'_>) -> io::Result<()> {
        serde_json::to_writer(&mut self.0, entry)?;
        self.0.write_all(b"\n")?;
        self.0.flush()
    }
}
