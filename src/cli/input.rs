//! Input: scenario files with single fields changed, and files that are read line by line. `-` is
//! standard input.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use super::CliError;
use crate::audit::Audit;
use crate::finding::{Code, Run};
use crate::layout::Layout;
use crate::minimize::{Minimized, minimize};
use crate::scenario::validate;
use crate::scenario::{Scenario, file};
use crate::witness::Calls;
use crate::world::{self, Observer, Registry, Simulation};

/// What messages call standard input.
pub(super) const STDIN: &str = "stdin";

/// A scenario and where it came from.
pub(super) struct Source {
    /// What messages call it.
    name: String,
    /// Where the paths of its traces start.
    folder: PathBuf,
    pub(super) scenario: Scenario,
}

pub(super) fn is_stdin(file: &Path) -> bool {
    file == Path::new("-")
}

fn name(file: &Path) -> String {
    if is_stdin(file) { STDIN.to_owned() } else { file.display().to_string() }
}

/// Reads a whole file.
pub(super) fn text(file: &Path) -> Result<String, CliError> {
    let mut text = String::new();
    let read = if is_stdin(file) {
        io::stdin().lock().read_to_string(&mut text).map(|_| text)
    } else {
        std::fs::read_to_string(file)
    };
    read.map_err(|reason| CliError::input(format!("{}: {reason}", name(file))))
}

/// Reads a scenario and carries out the assignments on it.
pub(super) fn scenario(file: &Path, assignments: &[String]) -> Result<Source, CliError> {
    let (name, text) = (name(file), text(file)?);
    let mut fields = file::table(&text, &name).map_err(CliError::input)?;
    for assignment in assignments {
        file::set(&mut fields, assignment).map_err(CliError::input)?;
    }
    let scenario = file::from_table(fields, &name).map_err(CliError::input)?;
    let folder = file.parent().unwrap_or(Path::new("")).to_owned();
    Ok(Source { name, folder, scenario })
}

impl Source {
    /// Refuses a scenario that cannot be run.
    pub(super) fn validate(&self) -> Result<(), CliError> {
        validate::validate(&self.scenario, &Registry::built_in().names())
            .map_err(|error| self.error(&error))
    }

    /// Runs the scenario.
    pub(super) fn run(&self) -> Result<Run, CliError> {
        world::run(&self.scenario, &self.folder).map_err(|error| self.error(&error))
    }

    /// Plants every behaviour in the scenario.
    pub(super) fn audit(&self, seeds: u64) -> Result<Audit, CliError> {
        self.validate()?;
        Audit::of(&self.scenario, &self.folder, seeds).map_err(|error| self.error(&error))
    }

    /// A witness of planner calls for the scenario, which must be valid.
    pub(super) fn calls_witness(&self) -> Calls {
        let layout = &self.scenario.layout;
        let layout = Layout::striped(layout.page_size, layout.ranks);
        Calls::new(layout.expect("a valid scenario has a layout"))
    }

    /// Runs the scenario and keeps its planner calls.
    pub(super) fn calls(&self) -> Result<Calls, CliError> {
        self.validate()?;
        let mut calls = self.calls_witness();
        self.watch(&mut calls)?;
        Ok(calls)
    }

    /// Runs the scenario before the eyes of `observer`.
    pub(super) fn watch(&self, observer: &mut dyn Observer) -> Result<Run, CliError> {
        let simulation = Simulation::new(&self.scenario).folder(&self.folder).observer(observer);
        simulation.run().map_err(|error| self.error(&error))
    }

    /// Minimises the scenario.
    pub(super) fn minimize(&self, goal: &BTreeSet<Code>, runs: u64) -> Result<Minimized, CliError> {
        minimize(&self.scenario, &self.folder, goal, runs).map_err(|error| self.error(&error))
    }

    pub(super) fn error(&self, error: &dyn Display) -> CliError {
        CliError::input(format!("{}: {error}", self.name))
    }
}

/// The number that an argument must be.
pub(super) fn within(text: &str, range: &RangeInclusive<u64>) -> Result<u64, String> {
    text.parse()
        .ok()
        .filter(|number| range.contains(number))
        .ok_or_else(|| format!("must be in {}..={}, got {text}", range.start(), range.end()))
}

/// Opens a file to be read in order; what messages call it comes first.
pub(super) fn open(file: &Path) -> Result<(String, Box<dyn BufRead>), CliError> {
    let name = name(file);
    if is_stdin(file) {
        return Ok((name, Box::new(io::stdin().lock())));
    }
    let opened = File::open(file);
    let opened = opened.map_err(|error| CliError::input(format!("{name}: {error}")))?;
    Ok((name, Box::new(BufReader::new(opened))))
}

/// A file that is read line by line.
pub(super) struct Lines {
    name: String,
    reader: Box<dyn BufRead>,
    /// The number of the line read last, from 1.
    pub(super) number: u64,
    text: String,
}

impl Lines {
    pub(super) fn open(file: &Path) -> Result<Lines, CliError> {
        let (name, reader) = open(file)?;
        Ok(Lines { name, reader, number: 0, text: String::new() })
    }

    /// The next line without its end, or `None` when only blank lines or nothing is left.
    pub(super) fn next(&mut self) -> Result<Option<&str>, CliError> {
        let mut blank = None;
        loop {
            self.text.clear();
            self.number += 1;
            match self.reader.read_line(&mut self.text) {
                Ok(0) => return Ok(None),
                Ok(_) => (),
                Err(error) => return Err(self.error(&error)),
            }
            if self.text.trim().is_empty() {
                blank = blank.or(Some(self.number));
            } else if let Some(number) = blank {
                self.number = number;
                return Err(self.error(&"must not be blank before the file's end"));
            } else {
                return Ok(Some(self.text.trim_end_matches(['\n', '\r'])));
            }
        }
    }

    /// What is wrong with the line read last.
    pub(super) fn error(&self, error: &dyn Display) -> CliError {
        CliError::input(format!("{}:{}: {error}", self.name, self.number))
    }

    /// Refuses a file without a line.
    pub(super) fn empty(&self, what: &str) -> CliError {
        CliError::input(format!("{}: must hold at least one {what}, got none", self.name))
    }
}
