//! One run of a fuzz target: its arguments, its life as a process, and what it said.

use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::CampaignError;
use crate::claims::scenarios::PLANT_VARIABLE;
use crate::scenario::generate::PlantedVariant;

/// The time between two looks at whether a process has ended, by which measured times can be too
/// long.
const LOOK: Duration = Duration::from_millis(10);
/// Lines of a log that a message quotes.
const QUOTED_LINES: usize = 12;

/// When a run that finds nothing ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// After this many seconds; libFuzzer can be a second or two late.
    Seconds(u64),
    /// After this many executions.
    Executions(u64),
}

impl Limit {
    /// The argument that sets it.
    pub fn argument(self) -> String {
        match self {
            Limit::Seconds(seconds) => format!("-max_total_time={seconds}"),
            Limit::Executions(executions) => format!("-runs={executions}"),
        }
    }
}

/// How far libFuzzer says that it has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Coverage {
    /// Code edges reached, its `cov:`.
    pub edges: u64,
    /// Edges with their hit counts and other features, its `ft:`.
    pub features: u64,
}

/// What a log says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Said {
    /// Inputs executed, if it got so far as to say it.
    pub executions: Option<u64>,
    /// The last that it said of its coverage.
    pub coverage: Option<Coverage>,
    /// The file with the input that it stopped at.
    pub artifact: Option<PathBuf>,
    /// Where the code panicked, as `file:line:column`.
    pub place: Option<String>,
}

impl Said {
    /// Reads a log.
    pub fn read(log: &str) -> Said {
        let mut said = Said::default();
        for line in log.lines() {
            if let Some(number) = line.strip_prefix("stat::number_of_executed_units:") {
                said.executions = number.trim().parse().ok();
            } else if let Some((_, path)) = line.split_once("Test unit written to ") {
                said.artifact = Some(PathBuf::from(path.trim_end()));
            } else if let Some((_, place)) = line.split_once(" panicked at ") {
                said.place = Some(place.trim_end_matches(':').to_owned());
            } else if line.starts_with('#') {
                said.coverage = coverage(line).or(said.coverage);
            }
        }
        said
    }
}

/// The figures of a line like `#8192 pulse cov: 512 ft: 1024 corp: …`.
fn coverage(line: &str) -> Option<Coverage> {
    let after = |label| {
        let mut words = line.split_whitespace().skip_while(move |&word| word != label).skip(1);
        words.next()?.parse().ok()
    };
    Some(Coverage { edges: after("cov:")?, features: after("ft:")? })
}

/// A run of a fuzz target.
#[derive(Clone, Debug)]
pub struct Job {
    /// The target.
    pub program: PathBuf,
    /// Its arguments: flags of libFuzzer, then folders.
    pub arguments: Vec<OsString>,
    /// The variant to plant, if any.
    pub planted: Option<PlantedVariant>,
    /// The file for what it says.
    pub log: PathBuf,
    /// After how long it is stopped from outside, if it has not ended.
    pub patience: Duration,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// At its limit.
    Limit,
    /// At the input in this file.
    Crash(PathBuf),
    /// From outside: the flag was set, or patience was over.
    Stopped,
}

/// A run that has ended.
#[derive(Clone, Debug)]
pub struct Ended {
    /// How it ended.
    pub end: End,
    /// What it said.
    pub said: Said,
    /// From its start to its end.
    pub elapsed: Duration,
}

impl Job {
    /// Runs the target until it ends, `stop` is set or patience is over.
    pub fn run(&self, stop: &AtomicBool) -> Result<Ended, CampaignError> {
        let began = Instant::now();
        let mut child = self.start()?;
        let status = loop {
            let looked = child.try_wait().map_err(CampaignError::at(&self.program))?;
            let is_over = stop.load(Ordering::Relaxed) || began.elapsed() >= self.patience;
            match looked {
                Some(status) => break Some(status),
                None if is_over => {
                    // An error means that it has just ended by itself.
                    let _ = child.kill();
                    child.wait().map_err(CampaignError::at(&self.program))?;
                    break None;
                }
                None => std::thread::sleep(LOOK),
            }
        };
        let elapsed = began.elapsed();
        let log = std::fs::read(&self.log).map_err(CampaignError::at(&self.log))?;
        let log = String::from_utf8_lossy(&log);
        let said = Said::read(&log);
        let end = match status {
            None => End::Stopped,
            Some(_) if stop.load(Ordering::Relaxed) => End::Stopped,
            Some(status) => self.judge(status, &said, &log)?,
        };
        Ok(Ended { end, said, elapsed })
    }

    fn start(&self) -> Result<Child, CampaignError> {
        let log = File::create(&self.log).map_err(CampaignError::at(&self.log))?;
        let mut command = Command::new(&self.program);
        // A backtrace of every crash would take longer than many a hunt.
        command.args(&self.arguments).env_remove("RUST_BACKTRACE").env_remove(PLANT_VARIABLE);
        if let Some(planted) = self.planted {
            command.env(PLANT_VARIABLE, planted.to_string());
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        command.spawn().map_err(CampaignError::at(&self.program))
    }

    fn judge(&self, status: ExitStatus, said: &Said, log: &str) -> Result<End, CampaignError> {
        if status.success() {
            return Ok(End::Limit);
        }
        said.artifact.clone().map(End::Crash).ok_or_else(|| {
            let lines: Vec<&str> = log.lines().collect();
            CampaignError::Ended {
                program: self.program.display().to_string(),
                status: status.to_string(),
                log: lines[lines.len().saturating_sub(QUOTED_LINES)..].join("\n"),
            }
        })
    }
}

/// An argument that ends in a path: `-artifact_prefix=PATH/`.
pub fn artifact_prefix(folder: &Path) -> OsString {
    let mut argument = OsString::from("-artifact_prefix=");
    argument.push(folder);
    argument.push("/");
    argument
}

#[cfg(test)]
mod tests {
    use super::*;

    const CRASH: &str = "\
INFO: Running with entropic power schedule (0xFF, 100).
#2\tINITED cov: 900 ft: 901 corp: 1/1b exec/s: 0 rss: 41Mb
#4096\tpulse  cov: 2210 ft: 9001 corp: 400/300Kb lim: 1024 exec/s: 1365 rss: 60Mb
#5000\tNEW    cov: 2211 ft: 9002 corp: 401/301Kb lim: 1024 exec/s: 1300 rss: 60Mb L: 900/1024 MS: 1 CrossOver-
thread '<unnamed>' (4711) panicked at src/claims/scenarios.rs:22:9:
Finding { code: PlacedMissing }
==4711== ERROR: libFuzzer: deadly signal
artifact_prefix='/tmp/a b/'; Test unit written to /tmp/a b/crash-0a1b
stat::number_of_executed_units: 5012
stat::average_exec_per_sec:     1253
";

    #[test]
    fn a_crash_is_read_with_its_numbers_its_place_and_its_file() {
        let said = Said::read(CRASH);
        assert_eq!(said.executions, Some(5_012));
        assert_eq!(said.coverage, Some(Coverage { edges: 2_211, features: 9_002 }));
        assert_eq!(said.artifact, Some(PathBuf::from("/tmp/a b/crash-0a1b")));
        assert_eq!(said.place.as_deref(), Some("src/claims/scenarios.rs:22:9"));
    }

    #[test]
    fn a_log_without_figures_gives_none() {
        assert_eq!(Said::read("INFO: seed corpus\n#2 INITED exec/s: 0\n"), Said::default());
        assert_eq!(Said::read(""), Said::default());
    }
}
