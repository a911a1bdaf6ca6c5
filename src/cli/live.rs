//! `kvseam conform --live`: an engine's driver is asked, and what it answers compared and judged.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use super::input::within;
use super::interrupt::stop_on_interrupt;
use super::output::{Align, Format, columns, print, print_json, row};
use super::{CliError, Exit};
use crate::conform::Level;
use crate::limits;
use crate::live::driver::{Driver, Engine};
use crate::live::find::Find;
use crate::live::protocol::Hello;
use crate::live::session::{Seen, SessionError, Settings, run};
use crate::report::number::count;

/// The options of live mode.
#[derive(Args)]
pub(super) struct LiveArgs {
    /// Asks this driver, a command of the shell, instead of reading a file.
    #[arg(long, value_name = "CMD", conflicts_with = "file")]
    pub(super) live: Option<String>,
    /// Scenarios that the driver is asked to run, at most.
    #[arg(long, default_value_t = 100, value_parser = runs, requires = "live")]
    runs: u64,
    /// Seconds after which no other scenario is begun.
    #[arg(long, value_parser = seconds, requires = "live")]
    seconds: Option<u64>,
    /// Single messages of each kind: planner, allocator and tree calls.
    #[arg(long, default_value_t = 10, value_parser = runs, requires = "live")]
    calls: u64,
    /// The seed of all that is drawn.
    #[arg(long, default_value_t = 1, requires = "live")]
    seed: u64,
    /// Seconds for one answer of the driver.
    #[arg(long, default_value_t = 60, value_parser = seconds, requires = "live")]
    timeout: u64,
    /// Questions that making one find smaller may cost; 0 keeps it as it was drawn.
    #[arg(long, default_value_t = 1_000, value_parser = runs, requires = "live")]
    shrink: u64,
    /// The folder for the finds and for `ledger.jsonl`, which says what was compared.
    #[arg(long, value_name = "FOLDER", default_value = "live", requires = "live")]
    out: PathBuf,
}

fn runs(text: &str) -> Result<u64, String> {
    within(text, &limits::LIVE_RUNS)
}

fn seconds(text: &str) -> Result<u64, String> {
    within(text, &limits::LIVE_SECONDS)
}

#[derive(Serialize)]
struct Answer<'a> {
    driver: &'a Hello,
    runs: u64,
    /// How many agree at level 1, at level 2, and so on.
    agree: &'a [u64],
    defects: u64,
    differences: u64,
    unanswered: u64,
    restarts: u64,
    calls: Vec<Called>,
    #[serde(skip_serializing_if = "Option::is_none")]
    call_difference: Option<&'a str>,
    finds: Vec<Listed<'a>>,
}

#[derive(Serialize)]
struct Called {
    kind: String,
    agree: u64,
    differ: u64,
}

#[derive(Serialize)]
struct Listed<'a> {
    kind: &'a str,
    count: u64,
    first: u64,
    requests_drawn: usize,
    requests: usize,
    file: String,
}

pub(super) fn ask(
    args: &LiveArgs,
    command: &str,
    level: Level,
    format: Format,
) -> Result<Exit, CliError> {
    let settings = Settings {
        command: command.to_owned(),
        runs: args.runs,
        time: args.seconds.map(Duration::from_secs),
        calls: args.calls,
        seed: args.seed,
        level,
        shrink: args.shrink,
        folder: args.out.clone(),
    };
    let stop = stop_on_interrupt()?;
    let bar = progress_bar(args.runs);
    let timeout = Duration::from_secs(args.timeout);
    let start =
        || Driver::start(command, timeout).map(|driver| -> Box<dyn Engine> { Box::new(driver) });
    let seen = run(&settings, &start, &stop, |seen| {
        bar.set_position(seen.runs);
        bar.set_message(format!("{} finds", seen.finds.len()));
    });
    bar.finish_and_clear();
    let seen = seen.map_err(|error| match error {
        SessionError::Driver(_) | SessionError::Unknown { .. } => {
            CliError::Input(format!("--live: {error}"))
        }
        SessionError::Write { .. } | SessionError::Hopeless(..) => CliError::failure(error),
    })?;
    let answer = Answer::of(&seen);
    match format {
        Format::Table => print(&answer.text())?,
        Format::Json => print_json(&answer)?,
    }
    Ok(answer.exit(seen.is_interrupted))
}

/// On standard error, and only where that is a terminal.
fn progress_bar(runs: u64) -> ProgressBar {
    let template = "{bar:30} {human_pos} of {human_len} scenarios, {msg}, {eta} left";
    let style = ProgressStyle::with_template(template).expect("the template is a constant");
    ProgressBar::new(runs).with_style(style)
}

impl<'a> Answer<'a> {
    fn of(seen: &'a Seen) -> Answer<'a> {
        let [defects, differences, unanswered] = seen.shown;
        let called = seen.calls.iter().map(|(kind, &[agree, differ])| {
            let kind = format!("{kind:?}").to_lowercase();
            Called { kind, agree, differ }
        });
        let listed = |find: &'a Find| Listed {
            kind: &find.kind,
            count: find.count,
            first: find.first,
            requests_drawn: find.requests[0],
            requests: find.requests[1],
            file: find.file.display().to_string(),
        };
        Answer {
            driver: &seen.hello,
            runs: seen.runs,
            agree: &seen.agree,
            defects,
            differences,
            unanswered,
            restarts: seen.restarts,
            calls: called.collect(),
            call_difference: seen.call_difference.as_deref(),
            finds: seen.finds.iter().map(listed).collect(),
        }
    }

    /// Defects weigh more than differences, and these more than a driver that fails.
    fn exit(&self, is_interrupted: bool) -> Exit {
        let calls_differ = self.calls.iter().any(|called| called.differ > 0);
        match (self.defects, self.differences, self.unanswered) {
            (1.., _, _) => Exit::Defects,
            (0, 1.., _) => Exit::Unmet,
            _ if calls_differ => Exit::Unmet,
            (0, 0, 1..) => Exit::Failed,
            (0, 0, 0) if is_interrupted => Exit::Interrupted,
            (0, 0, 0) => Exit::Clean,
        }
    }

    fn text(&self) -> String {
        let Hello { engine, version, stubs, changed, .. } = self.driver;
        let mut text = format!("{engine} {version}; not its own: {}\n", stubs.join("; "));
        if !changed.is_empty() {
            text += &format!("changed by the driver: {}\n", changed.join(", "));
        }
        for Called { kind, agree, differ } in &self.calls {
            let (agree, differ) = (count(*agree), count(*differ));
            text += &format!("{kind} calls: {agree} agree, {differ} differ\n");
        }
        if let Some(difference) = self.call_difference {
            text += &format!("first difference of a call: {difference}\n");
        }
        text += &format!("\n{} scenarios", count(self.runs));
        for (agree, level) in self.agree.iter().zip(1..) {
            text += &format!(", {} agree at level {level}", count(*agree));
        }
        text += &format!(
            "\n{} defects of the engine, {} differences, {} without an answer, {} restarts\n",
            count(self.defects),
            count(self.differences),
            count(self.unanswered),
            count(self.restarts)
        );
        if self.finds.is_empty() {
            return text;
        }
        let mut rows = vec![row(["count", "first", "requests", "kind", "file"])];
        for Listed { kind, count: times, first, requests_drawn, requests, file } in &self.finds {
            let requests = format!("{requests_drawn} -> {requests}");
            let (kind, file) = ((*kind).to_owned(), file.clone());
            rows.push(vec![count(*times), count(*first), requests, kind, file]);
        }
        let aligns = [Align::Right, Align::Right, Align::Right, Align::Left, Align::Left];
        text + "\n" + &columns(&aligns, &rows)
    }
}
