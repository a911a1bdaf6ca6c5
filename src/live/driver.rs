//! A driver as a child process: spoken to in lines, with a deadline for each answer.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Map, Value};
use thiserror::Error;

use super::protocol::{Answer, Asked, CallKind, Done, Hello, PROTOCOL, Question};
use crate::limits;
use crate::scenario::Scenario;
use crate::wording::json_line;

/// Lines of a driver that wait to be read; a faster driver waits itself.
const LINES_WAITING: usize = 1_024;
/// Last lines of a driver's standard error that are kept for when it ends.
const LAST_WORDS: usize = 12;
/// Time for them when it has ended.
const LAST_WORDS_TIME: Duration = Duration::from_millis(500);

/// Why a driver gave no answer.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Trouble {
    /// It could not be started.
    #[error("could not be started: {0}")]
    Start(String),
    /// It refuses, with its reason.
    #[error("refuses: {0}")]
    Refuses(String),
    /// It said nothing more in time.
    #[error("hangs: no end of its answer within {0} seconds")]
    Hangs(u64),
    /// It ended.
    #[error("ended in the middle of its answer; its last words: {0}")]
    Ended(String),
    /// It said what the protocol does not know.
    #[error("talks nonsense: {0}")]
    Nonsense(String),
}

impl Trouble {
    /// What is the matter, in a word.
    pub fn kind(&self) -> &'static str {
        match self {
            Trouble::Start(_) => "not started",
            Trouble::Refuses(_) => "refuses",
            Trouble::Hangs(_) => "hangs",
            Trouble::Ended(_) => "ended",
            Trouble::Nonsense(_) => "nonsense",
        }
    }
}

/// What a driver said to a scenario: its events, complete or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// The events, in order.
    pub events: Vec<Map<String, Value>>,
    /// The end, or why there is none.
    pub end: Result<Done, Trouble>,
}

/// An engine that can be asked.
pub trait Engine {
    /// What it says of itself.
    fn hello(&self) -> &Hello;
    /// Has a scenario run, whose requests must be written out.
    fn run(&mut self, scenario: &Scenario) -> Told;
    /// Has calls made; the answer is a vector line.
    fn call(&mut self, kind: CallKind, seed: u64) -> Result<Map<String, Value>, Trouble>;
}

/// A driver that has said who it is.
pub struct Driver {
    process: Process,
    hello: Hello,
}

impl Driver {
    /// Starts `command`, a command line of the shell, and asks who is there. Every answer must be
    /// complete within `timeout`.
    pub fn start(command: &str, timeout: Duration) -> Result<Driver, Trouble> {
        let mut process = Process::start(command, timeout)?;
        process.ask(&Question::Hello { protocol: PROTOCOL })?;
        match process.answer()? {
            Answer::Hello(hello) if hello.protocol == PROTOCOL => {
                Ok(Driver { process, hello: *hello })
            }
            Answer::Hello(hello) => Err(Trouble::Nonsense(format!(
                "protocol: must be {PROTOCOL}, got {}",
                hello.protocol
            ))),
            other => Err(unexpected("hello", &other)),
        }
    }
}

impl Engine for Driver {
    fn hello(&self) -> &Hello {
        &self.hello
    }

    fn run(&mut self, scenario: &Scenario) -> Told {
        let mut events = Vec::new();
        let asked = Asked::of(scenario).expect("requests are written out");
        let asked = self.process.ask(&Question::Scenario(Box::new(asked)));
        let end = asked.and_then(|()| {
            loop {
                match self.process.answer()? {
                    Answer::Event(_) if events.len() >= limits::LIVE_EVENTS_MAX => {
                        let most = limits::LIVE_EVENTS_MAX;
                        return Err(Trouble::Nonsense(format!("more than {most} events")));
                    }
                    Answer::Event(event) => events.push(event),
                    Answer::Done(done) => return Ok(done),
                    other => return Err(unexpected("event or done", &other)),
                }
            }
        });
        Told { events, end }
    }

    fn call(&mut self, kind: CallKind, seed: u64) -> Result<Map<String, Value>, Trouble> {
        self.process.ask(&Question::Calls { kind, seed })?;
        match self.process.answer()? {
            Answer::Answer(line) => Ok(line),
            other => Err(unexpected("answer", &other)),
        }
    }
}

/// What the driver said instead of what it should have said.
fn unexpected(wanted: &str, answer: &Answer) -> Trouble {
    match answer {
        Answer::Refused(reason) => Trouble::Refuses(reason.clone()),
        other => Trouble::Nonsense(format!("must be {wanted}, got {}", other.kind())),
    }
}

/// The child process and its lines.
struct Process {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    last_words: Arc<Mutex<VecDeque<String>>>,
    /// Told when its standard error is closed.
    has_said_all: Receiver<()>,
    timeout: Duration,
    deadline: Instant,
}

impl Process {
    fn start(command: &str, timeout: Duration) -> Result<Process, Trouble> {
        let mut child = Command::new("sh")
            // In the place of the shell, so that ending the child ends the driver.
            .args(["-c", &format!("exec {command}")])
            // Ctrl-C is for kvseam, which lets the driver finish.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| Trouble::Start(error.to_string()))?;
        let last_words = Arc::new(Mutex::new(VecDeque::new()));
        let (sender, lines) = sync_channel(LINES_WAITING);
        let out = child.stdout.take().expect("it is piped");
        thread::spawn(move || hand_on(BufReader::new(out), &sender));
        let err = child.stderr.take().expect("it is piped");
        let words = Arc::clone(&last_words);
        let (said_all, has_said_all) = sync_channel(1);
        thread::spawn(move || {
            keep_last(BufReader::new(err), &words);
            // Nobody listens unless the driver has ended.
            let _ = said_all.send(());
        });
        let input = child.stdin.take();
        Ok(Process {
            child,
            input,
            lines,
            last_words,
            has_said_all,
            timeout,
            deadline: Instant::now(),
        })
    }

    fn ask(&mut self, question: &Question) -> Result<(), Trouble> {
        self.deadline = Instant::now() + self.timeout;
        let mut line = serde_json::to_string(question).expect("a question is plain data");
        line.push('\n');
        let input = self.input.as_mut().expect("it is open until the end");
        match input.write_all(line.as_bytes()).and_then(|()| input.flush()) {
            Ok(()) => Ok(()),
            // It may have said why before it ended.
            Err(_) => match self.answer()? {
                Answer::Refused(reason) => Err(Trouble::Refuses(reason)),
                _ => Err(self.ended()),
            },
        }
    }

    fn answer(&mut self) -> Result<Answer, Trouble> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        let line = match self.lines.recv_timeout(left) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout) => return Err(Trouble::Hangs(self.timeout.as_secs())),
            Err(RecvTimeoutError::Disconnected) => return Err(self.ended()),
        };
        json_line(&line).map_err(|(path, message)| {
            let shown: String = line.chars().take(limits::LIVE_SHOWN_CHARS).collect();
            let colon = if path.is_empty() { "" } else { ": " };
            Trouble::Nonsense(format!("{path}{colon}{message} in {shown}"))
        })
    }

    fn ended(&mut self) -> Trouble {
        let status =
            self.child.wait().map_or_else(|error| error.to_string(), |end| end.to_string());
        // What it started may keep its standard error open.
        let _ = self.has_said_all.recv_timeout(LAST_WORDS_TIME);
        let words = self.last_words.lock().expect("no holder panics");
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        Trouble::Ended(format!("{} ({status})", words.join(" | ")))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // A driver that reads to the end of its input needs no more; one that hangs is ended.
        drop(self.input.take());
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Hands on whole lines until the driver ends or nobody listens. A line that is too long is cut,
/// and then is no JSON.
fn hand_on(mut out: impl BufRead, sender: &SyncSender<String>) {
    loop {
        let mut line = Vec::new();
        let taken = (&mut out).take(limits::LIVE_LINE_BYTES_MAX).read_until(b'\n', &mut line);
        if !taken.is_ok_and(|bytes| bytes > 0) {
            return;
        }
        let text = String::from_utf8_lossy(&line).trim_end().to_owned();
        if sender.send(text).is_err() {
            return;
        }
    }
}

fn keep_last(err: impl BufRead, words: &Mutex<VecDeque<String>>) {
    for line in err.lines().map_while(Result::ok) {
        let mut words = words.lock().expect("no holder panics");
        words.push_back(line);
        if words.len() > LAST_WORDS {
            words.pop_front();
        }
    }
}
