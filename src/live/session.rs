//! A session with one driver: calls, then scenarios, until the budget is used up.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Map, Value};
use thiserror::Error;

use super::draw::Draw;
use super::driver::{Engine, Told, Trouble};
use super::find::{self, Find, Shown};
use super::judge::judge;
use super::ledger::{Entry, Ledger};
use super::protocol::{CallKind, Hello};
use crate::conform::{BothRuns, Level, LineError, check_line};
use crate::engine::Profile;
use crate::limits;
use crate::minimize::minimize_while;
use crate::scenario::{Scenario, WorkloadConfig};

/// How a session goes.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What the engine was started by, for the ledger.
    pub command: String,
    /// Scenarios at most.
    pub runs: u64,
    /// Time at most; a scenario that has begun is finished, and so is its shrinking.
    pub time: Option<Duration>,
    /// Calls of each kind.
    pub calls: u64,
    /// The seed of everything drawn.
    pub seed: u64,
    /// The finest level that is compared.
    pub level: Level,
    /// Questions that making one find smaller may cost.
    pub shrink: u64,
    /// Where finds and ledger go.
    pub folder: PathBuf,
}

/// Why a session ended before its budget.
#[derive(Debug, Error)]
pub enum SessionError {
    /// The driver is of no use from the start.
    #[error("the driver {0}")]
    Driver(Trouble),
    /// It is of an engine that has no profile.
    #[error("the driver is of {got}, must be of one of {known}")]
    Unknown {
        /// What it says.
        got: String,
        /// The profiles.
        known: String,
    },
    /// A file could not be written.
    #[error("{}: {error}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// It failed again and again.
    #[error("the driver gave no answer {0} times in a row, at last it {1}")]
    Hopeless(u32, Trouble),
}

/// What a session has seen.
#[derive(Clone, Debug)]
pub struct Seen {
    /// The driver.
    pub hello: Hello,
    /// Scenarios that were asked.
    pub runs: u64,
    /// How many agree at level 1, at level 2, and so on.
    pub agree: Vec<u64>,
    /// Answers that agree, and that do not, by kind of call.
    pub calls: BTreeMap<CallKind, [u64; 2]>,
    /// The first answer that does not.
    pub call_difference: Option<String>,
    /// Kinds of findings, in the order in which they were found.
    pub finds: Vec<Find>,
    /// Scenarios with a defect, with a difference, without an answer.
    pub shown: [u64; 3],
    /// Times that the driver was started again.
    pub restarts: u64,
    /// Whether it was ended from outside.
    pub is_interrupted: bool,
}

/// How an engine is started, and started again.
pub type Start<'a> = dyn Fn() -> Result<Box<dyn Engine>, Trouble> + 'a;

/// A session that goes on.
struct Session<'a> {
    settings: &'a Settings,
    start: &'a Start<'a>,
    engine: RefCell<Option<Box<dyn Engine>>>,
    profile: Profile,
    ledger: Ledger,
    seen: Seen,
    /// Answers that failed since the last that did not.
    failures: Cell<u32>,
    restarts: Cell<u64>,
}

/// What one scenario has led to.
struct Outcome {
    shown: Vec<Shown>,
    level: Option<usize>,
    events: usize,
    streams: [Vec<String>; 2],
}

/// Starts an engine and asks it until the budget is used up or `stop` is set. `progress` is told
/// what was seen after every scenario.
pub fn run(
    settings: &Settings,
    start: &Start<'_>,
    stop: &AtomicBool,
    mut progress: impl FnMut(&Seen),
) -> Result<Seen, SessionError> {
    let mut session = Session::new(settings, start)?;
    let started = Instant::now();
    let is_over = |runs: u64| {
        runs >= settings.runs || settings.time.is_some_and(|time| started.elapsed() >= time)
    };
    session.calls(stop)?;
    let can = session.seen.hello.can.clone();
    let draw = Draw::new(session.profile, &can, settings.seed);
    let mut number = 0;
    while !is_over(session.seen.runs) && !stop.load(Ordering::Relaxed) {
        if let Some(scenario) = draw.scenario(number) {
            session.scenario(number, &scenario, &draw, stop)?;
            progress(&session.seen);
        }
        number += 1;
    }
    session.seen.is_interrupted = stop.load(Ordering::Relaxed);
    session.seen.restarts = session.restarts.get();
    Ok(session.seen)
}

impl<'a> Session<'a> {
    fn new(settings: &'a Settings, start: &'a Start<'a>) -> Result<Session<'a>, SessionError> {
        let engine = start().map_err(SessionError::Driver)?;
        let hello = engine.hello().clone();
        let profile = Profile::named(&hello.profile()).ok_or_else(|| SessionError::Unknown {
            got: hello.profile(),
            known: Profile::all().iter().map(|one| one.name()).collect::<Vec<_>>().join(", "),
        })?;
        let write = |path: PathBuf| move |error| SessionError::Write { path, error };
        let folder = &settings.folder;
        std::fs::create_dir_all(folder).map_err(write(folder.clone()))?;
        let path = folder.join("ledger.jsonl");
        let mut ledger = Ledger::create(&path).map_err(write(path.clone()))?;
        let (command, seed) = (settings.command.as_str(), settings.seed);
        ledger.add(&Entry::Driver { hello: &hello, command, seed }).map_err(write(path))?;
        let seen = Seen {
            hello,
            runs: 0,
            agree: vec![0; settings.level.number()],
            calls: BTreeMap::new(),
            call_difference: None,
            finds: Vec::new(),
            shown: [0; 3],
            restarts: 0,
            is_interrupted: false,
        };
        Ok(Session {
            settings,
            start,
            engine: RefCell::new(Some(engine)),
            profile,
            ledger,
            seen,
            failures: Cell::new(0),
            restarts: Cell::new(0),
        })
    }

    /// Lets the engine answer; one that fails is ended, and started for the next question.
    fn ask<T>(
        &self,
        question: impl FnOnce(&mut dyn Engine) -> Result<T, Trouble>,
    ) -> Result<T, Trouble> {
        let mut engine = self.engine.borrow_mut();
        let answer = match &mut *engine {
            Some(engine) => question(engine.as_mut()),
            None => {
                self.restarts.set(self.restarts.get() + 1);
                (self.start)().and_then(|started| question(engine.insert(started).as_mut()))
            }
        };
        match answer.is_ok() {
            true => self.failures.set(0),
            false => {
                self.failures.set(self.failures.get() + 1);
                *engine = None;
            }
        }
        answer
    }

    fn add(&mut self, entry: &Entry<'_>) -> Result<(), SessionError> {
        let path = self.settings.folder.join("ledger.jsonl");
        self.ledger.add(entry).map_err(|error| SessionError::Write { path, error })
    }

    fn calls(&mut self, stop: &AtomicBool) -> Result<(), SessionError> {
        let kinds: BTreeSet<CallKind> = self.seen.hello.can.calls.iter().copied().collect();
        for kind in kinds {
            for number in 0..self.settings.calls {
                if stop.load(Ordering::Relaxed) {
                    return Ok(());
                }
                let seed = self.settings.seed.wrapping_add(number);
                match self.ask(|engine| engine.call(kind, seed)) {
                    Ok(line) => self.called(kind, seed, line)?,
                    Err(trouble) => {
                        self.seen.shown[2] += 1;
                        self.give_up(trouble)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn called(
        &mut self,
        kind: CallKind,
        seed: u64,
        line: Map<String, Value>,
    ) -> Result<(), SessionError> {
        let line = Value::Object(line).to_string();
        let checked = check_line(&line, self.settings.level);
        let agrees = checked.is_ok();
        self.seen.calls.entry(kind).or_default()[usize::from(!agrees)] += 1;
        if let Err(error) = checked {
            let said = match error {
                LineError::Mismatch(mismatch) => mismatch.to_string(),
                LineError::Malformed { .. } => format!("no vector line: {error}"),
            };
            self.seen.call_difference.get_or_insert(format!("{kind:?} of seed {seed}: {said}"));
        }
        self.add(&Entry::Call { kind, seed, agrees })
    }

    /// Ends the session where the driver fails again and again.
    fn give_up(&self, trouble: Trouble) -> Result<(), SessionError> {
        match self.failures.get() {
            failures if failures >= limits::LIVE_FAILURES_MAX => {
                Err(SessionError::Hopeless(failures, trouble))
            }
            _ => Ok(()),
        }
    }

    fn scenario(
        &mut self,
        number: u64,
        scenario: &Scenario,
        draw: &Draw<'_>,
        stop: &AtomicBool,
    ) -> Result<(), SessionError> {
        let started = Instant::now();
        let outcome = self.outcome(scenario);
        let millis = started.elapsed().as_millis();
        self.seen.runs += 1;
        for agree in self.seen.agree.iter_mut().take(outcome.level.unwrap_or(0)) {
            *agree += 1;
        }
        let kinds: Vec<String> = outcome.shown.iter().map(Shown::kind).collect();
        let (events, level) = (outcome.events, outcome.level);
        let requests = requests_of(scenario);
        self.add(&Entry::Scenario { number, requests, events, level, shown: &kinds, millis })?;
        let mut trouble = None;
        for (shown, kind) in outcome.shown.iter().zip(&kinds) {
            match shown {
                Shown::Defect(_) => self.seen.shown[0] += 1,
                Shown::Difference(_) => self.seen.shown[1] += 1,
                Shown::Trouble(what) => {
                    self.seen.shown[2] += 1;
                    trouble = Some(what.clone());
                }
            }
            match self.seen.finds.iter_mut().find(|find| find.kind == *kind) {
                Some(find) => find.count += 1,
                None => self.found(number, scenario, shown, &outcome.streams, draw, stop)?,
            }
        }
        trouble.map_or(Ok(()), |trouble| self.give_up(trouble))
    }

    /// What the driver and the model make of a scenario.
    fn outcome(&self, scenario: &Scenario) -> Outcome {
        let mut told = None;
        let end = self.ask(|engine| {
            let Told { events, end } = engine.run(scenario);
            told = Some(events);
            end
        });
        let events = told.unwrap_or_default();
        let mut outcome = Outcome {
            shown: Vec::new(),
            level: None,
            events: events.len(),
            streams: [vec![], vec![]],
        };
        let both = BothRuns::of(scenario, &events);
        if let Ok(both) = &both {
            outcome.streams = both.lines();
        }
        match (end, both) {
            (Err(trouble), _) => outcome.shown.push(Shown::Trouble(trouble)),
            (Ok(_), Err(error)) => {
                outcome.shown.push(Shown::Trouble(Trouble::Nonsense(error.to_string())));
            }
            (Ok(done), Ok(both)) => {
                let agreement = both.compare(self.settings.level);
                outcome.level = Some(agreement.level.map_or(0, Level::number));
                outcome.shown.extend(judge(&events, &done).into_iter().map(Shown::Defect));
                outcome.shown.extend(agreement.difference.map(Shown::Difference));
            }
        }
        outcome
    }

    /// Keeps the first scenario of a kind, made smaller while the engine answers in that way.
    fn found(
        &mut self,
        number: u64,
        scenario: &Scenario,
        shown: &Shown,
        streams: &[Vec<String>; 2],
        draw: &Draw<'_>,
        stop: &AtomicBool,
    ) -> Result<(), SessionError> {
        let kind = shown.kind();
        let mut smallest =
            Scenario { title: format!("{kind} ({})", self.profile.name()), ..scenario.clone() };
        let mut streams = streams.clone();
        let mut said = said(shown);
        let is_shrunk = !matches!(shown, Shown::Trouble(_));
        if let Some(small) = is_shrunk.then(|| self.smaller(&smallest, &kind, draw, stop)).flatten()
        {
            let outcome = self.outcome(&small);
            if let Some(shown) = outcome.shown.iter().find(|shown| shown.kind() == kind) {
                said = self::said(shown);
                streams = outcome.streams;
                smallest = small;
            }
        }
        let file = find::path(&self.settings.folder, self.seen.finds.len() + 1);
        let text = find::text(&smallest, &kind, &said, &streams);
        std::fs::write(&file, text)
            .map_err(|error| SessionError::Write { path: file.clone(), error })?;
        let requests = [scenario, &smallest].map(requests_of);
        self.seen.finds.push(Find { kind, count: 1, first: number, requests, file });
        Ok(())
    }

    fn smaller(
        &self,
        scenario: &Scenario,
        kind: &str,
        draw: &Draw<'_>,
        stop: &AtomicBool,
    ) -> Option<Scenario> {
        let (asked, started) = (Cell::new(0), Instant::now());
        let time = Duration::from_secs(limits::LIVE_SHRINK_SECONDS);
        let test = |candidate: &Scenario| {
            let is_allowed = draw.allows(candidate)
                && asked.get() < self.settings.shrink
                && started.elapsed() < time
                && !stop.load(Ordering::Relaxed);
            is_allowed && {
                asked.set(asked.get() + 1);
                self.outcome(candidate).shown.iter().any(|shown| shown.kind() == kind)
            }
        };
        Some(minimize_while(scenario, &test, limits::LIVE_SHRINK_RUNS).ok()?.scenario)
    }
}

fn said(shown: &Shown) -> String {
    match shown {
        Shown::Defect(defect) => defect.kind(),
        Shown::Difference(difference) => difference.to_string(),
        Shown::Trouble(trouble) => trouble.to_string(),
    }
}

fn requests_of(scenario: &Scenario) -> usize {
    match &scenario.workload {
        WorkloadConfig::Requests(list) => list.len(),
        WorkloadConfig::Synthetic(_) | WorkloadConfig::Trace(_) => {
            unreachable!("requests have been written out")
        }
    }
}
