//! `kvseam explain`: what a code or an error line means, what leads to it, and what to check.

use std::io::IsTerminal;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use clap::Args;
use rayon::prelude::*;
use serde::Serialize;

use super::input::within;
use super::output::{Align, Format, FormatArgs, columns, print, print_json, save, severity};
use super::{CliError, Exit, input};
use crate::engine::Profile;
use crate::explain::causes::{self, Cause, Table};
use crate::explain::known::KnownSizes;
use crate::explain::line::{Line, LineError};
use crate::explain::log::Recognised;
use crate::explain::{Explanation, explain, foreign, nearest};
use crate::finding::{Code, Named};
use crate::limits;
use crate::report::number::count;

mod known;
mod log;

const EXAMPLES: &str = "\
Examples:
  kvseam explain placed.missing
  kvseam explain --page-size 4 --dcp-size 4 --prompt 72 \\
      \"Insufficient destination DCP pages: required=5, provided=4, src_page_offset=2, dcp_rank=3\"
  kvseam explain --log prefill.log                  the known lines of a whole log, counted
  journalctl -u prefill | kvseam explain            the same of a pipe
  kvseam explain --profile sglang-0.5.23 \"index 102 is out of bounds for axis 0 with size 102\"
  kvseam explain --learn 2000 --out src/explain/causes.toml
  kvseam explain refused.misaligned --format json";

/// Says what a code or an engine's error line means, what must hold, what breaks it, and what to
/// check.
///
/// An error line is known by its words, whatever stands around it and however it is wrapped: those
/// of the modelled engine, and many of other engines and of libraries. The more is known of the
/// request, the more is said. A log is read to its end, or standard input where neither a code nor
/// a line is given. Behaviours are ranked by how often each led to such a line when it
/// was planted alone in sound scenarios, in a sweep whose counts are part of the program.
#[derive(Args)]
#[command(before_help = EXAMPLES)]
pub(super) struct ExplainArgs {
    /// A code, as `kvseam list codes` lists them, or an error line; `-` is a log on standard input.
    #[arg(value_parser = parse, value_name = "CODE|LINE")]
    subject: Option<Subject>,
    /// Explains the known lines of a log, and counts them; `-` is standard input.
    #[arg(long, value_name = "FILE", conflicts_with = "subject")]
    log: Option<PathBuf>,
    /// For lines: says whether this release can print them, and what would have to differ.
    #[arg(long, value_name = "NAME", value_parser = parse_profile)]
    profile: Option<Profile>,
    /// For an error line: rows of a physical page, P.
    #[arg(long, value_parser = |text: &str| number(text, &limits::PAGE_SIZE))]
    page_size: Option<u32>,
    /// For an error line: decode context-parallel ranks, N.
    #[arg(long, value_parser = |text: &str| number(text, &limits::RANKS))]
    dcp_size: Option<u32>,
    /// For an error line: tokens of the request's prompt, L.
    #[arg(long, value_parser = |text: &str| number(text, &limits::PROMPT_TOKENS))]
    prompt: Option<u32>,
    /// For an error line: tokens that decode had cached, S; 0 if left out.
    #[arg(long)]
    prefix: Option<u32>,
    /// Makes the table of behaviours anew, from so many scenarios for each.
    #[arg(
        long,
        value_name = "SCENARIOS",
        value_parser = parse_scenarios,
        requires = "out",
        conflicts_with_all = [
            "subject", "log", "profile", "page_size", "dcp_size", "prompt", "prefix"
        ]
    )]
    learn: Option<u64>,
    /// The file for the table; `-` is standard output.
    #[arg(long, value_name = "FILE", requires = "learn")]
    out: Option<PathBuf>,
    /// The hazard files that the table may name as examples.
    #[arg(long, value_name = "FOLDER", requires = "learn", default_value = "sims/hazards")]
    hazards: PathBuf,
    #[command(flatten)]
    output: FormatArgs,
}

/// What is to be explained.
#[derive(Clone)]
enum Subject {
    Code(Code),
    Line(Box<Recognised>, String),
    /// A log on standard input.
    Stdin,
}

fn parse(text: &str) -> Result<Subject, String> {
    if text == "-" {
        return Ok(Subject::Stdin);
    }
    if let Some(code) = Code::parse(text) {
        return Ok(Subject::Code(code));
    }
    if let Some(recognised) = Recognised::of(text) {
        return Ok(Subject::Line(Box::new(recognised), text.to_owned()));
    }
    // A code has no spaces, a line of an engine's log has some.
    if text.contains(' ') {
        let meant = nearest::text(text).map(|form| format!("did you mean \"{form}\"?\n"));
        let unknown = LineError::Unknown { text: text.to_owned() };
        let others = foreign::all().count();
        return Err(format!(
            "{}{unknown}and one of {others} texts of other engines and of libraries",
            meant.unwrap_or_default()
        ));
    }
    let known: Vec<&str> = Code::ALL.iter().map(|code| code.name()).collect();
    let near = nearest::codes(text);
    let meant = match (near.as_slice(), nearest::other_name(text)) {
        (_, Some(other)) => format!("{other}; "),
        ([], None) => String::new(),
        (near, None) => format!("did you mean {}? It ", near.join(" or ")),
    };
    Err(format!("{meant}must be an engine's error line, or one of {}", known.join(", ")))
}

fn parse_profile(text: &str) -> Result<Profile, String> {
    let names: Vec<&str> = Profile::all().iter().map(|profile| profile.name()).collect();
    Profile::named(text).ok_or_else(|| format!("must be one of {}, got {text}", names.join(", ")))
}

impl ExplainArgs {
    /// What is known of the request.
    fn sizes(&self, line: Option<Line>) -> KnownSizes {
        KnownSizes {
            page_size: self.page_size,
            ranks: self.dcp_size,
            prompt: self.prompt,
            prefix: match line {
                Some(Line::Misaligned { prefix, .. }) => self.prefix.or(u32::try_from(prefix).ok()),
                Some(_) | None => self.prefix,
            },
        }
    }
}

fn number(text: &str, range: &RangeInclusive<u32>) -> Result<u32, String> {
    let range = u64::from(*range.start())..=u64::from(*range.end());
    within(text, &range).map(|number| u32::try_from(number).expect("the range is one of u32"))
}

fn parse_scenarios(text: &str) -> Result<u64, String> {
    within(text, &limits::LEARN_SCENARIOS)
}

#[derive(Serialize)]
struct Answer {
    code: Code,
    meaning: &'static str,
    severity: &'static str,
    unit: &'static str,
    counted_against: &'static str,
    chance: &'static str,
    must_hold: &'static str,
    usual_causes: &'static [&'static str],
    check: &'static [&'static str],
    behaviours: Vec<BehaviourJson>,
    alone: Vec<Cause>,
    example: &'static str,
}

#[derive(Serialize)]
struct BehaviourJson {
    switch: &'static str,
    variant: &'static str,
}

pub(super) fn run(args: &ExplainArgs) -> Result<Exit, CliError> {
    match (&args.subject, &args.log, args.learn) {
        (_, Some(file), _) => log::explain(file, args),
        (Some(Subject::Code(code)), None, _) => explain_code(*code, args),
        (Some(Subject::Line(recognised, text)), None, _) => explain_line(recognised, text, args),
        (Some(Subject::Stdin), None, _) => log::explain(Path::new("-"), args),
        (None, None, Some(scenarios)) => learn(scenarios, args),
        (None, None, None) if std::io::stdin().is_terminal() => Err(CliError::input(
            "must be given a code, an error line, --log or --learn, got none, and no pipe",
        )),
        (None, None, None) => log::explain(Path::new("-"), args),
    }
}

/// Makes the table of causes.
fn learn(scenarios: u64, args: &ExplainArgs) -> Result<Exit, CliError> {
    let folder = &args.hazards;
    let fail = |error| CliError::input(format!("{}: {error}", folder.display()));
    let mut hazards = Vec::new();
    let entries = std::fs::read_dir(folder).map_err(fail)?;
    let mut paths = entries
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<Vec<PathBuf>, std::io::Error>>()
        .map_err(fail)?;
    paths.sort();
    for path in paths.iter().filter(|path| path.extension().is_some_and(|name| name == "toml")) {
        hazards.push((path.display().to_string(), input::scenario(path, &[])?.scenario));
    }
    let variants = causes::variants();
    let planted = variants.par_iter().map(|&variant| causes::learn(variant, scenarios, &hazards));
    let table = Table { scenarios, variant: planted.collect() };
    let out = args.out.as_ref().expect("clap requires it with --learn");
    let text = toml::to_string(&table).map_err(CliError::failure)?;
    save(out, &format!("{HEADER}{text}"))?;
    Ok(Exit::Clean)
}

/// The comment at the head of the table's file.
const HEADER: &str = "\
# Which behaviours lead to which codes and error lines; src/explain/causes.rs says how it is counted.
# Made by `kvseam explain --learn`, never by hand.
";

/// Explains an error line.
fn explain_line(recognised: &Recognised, text: &str, args: &ExplainArgs) -> Result<Exit, CliError> {
    let answer = known::Answer::of(recognised, text, args).map_err(CliError::input)?;
    match args.output.format {
        Format::Table => print(&answer.text())?,
        Format::Json => print_json(&answer)?,
    }
    Ok(Exit::Clean)
}

/// A line for each cause with its counts, and the command that shows it.
fn counted(causes: &[&Cause], runs: impl Fn(&Cause) -> u64) -> String {
    let mut rows = Vec::new();
    for cause in causes {
        let example = match cause.example {
            Some(file) if cause.example_has_code => format!("kvseam run {file}"),
            Some(file) => format!("kvseam run {file} (shows something else of it)"),
            None => "no file".to_owned(),
        };
        rows.push(vec![
            format!("  {} = \"{}\"", cause.switch, cause.variant),
            format!("{} of {} runs", count(runs(cause)), count(cause.runs)),
            example,
        ]);
    }
    use Align::{Left, Right};
    columns(&[Left, Right, Left], &rows)
}

fn explain_code(code: Code, args: &ExplainArgs) -> Result<Exit, CliError> {
    let for_lines = args.sizes(None) != KnownSizes::default() || args.profile.is_some();
    if for_lines {
        let options = "--page-size, --dcp-size, --prompt, --prefix and --profile";
        return Err(CliError::input(format!("{options}: must be given with a line, got a code")));
    }
    let Explanation { holds, causes, checks } = explain(code);
    let alone = causes::of_code(code);
    let behaviours =
        alone.iter().map(|&Cause { switch, variant, .. }| BehaviourJson { switch, variant });
    let answer = Answer {
        code,
        meaning: code.doc(),
        severity: severity(code),
        unit: code.unit(),
        counted_against: code.chance().name(),
        chance: code.chance().doc(),
        must_hold: holds,
        usual_causes: causes,
        check: checks,
        behaviours: behaviours.collect(),
        alone,
        example: code.example(),
    };
    match args.output.format {
        Format::Table => print(&answer.text())?,
        Format::Json => print_json(&answer)?,
    }
    Ok(Exit::Clean)
}

impl Answer {
    fn text(&self) -> String {
        let mut text = format!(
            "{}: {}\n{}, one a {}, counted against {} ({})\n\nWhat must hold\n{}",
            self.code.name(),
            self.meaning,
            self.severity,
            self.unit,
            self.counted_against,
            self.chance,
            wrapped("  ", self.must_hold)
        );
        text += "\nUsual causes\n";
        text += &items(self.usual_causes);
        text += "\nWhat to check in an engine\n";
        text += &items(self.check);
        if !self.alone.is_empty() {
            text += "\nBehaviours that led to it, each planted alone in sound scenarios\n";
            text += &counted(&self.alone.iter().collect::<Vec<_>>(), |cause| cause.exact);
        }
        text + &format!("\nExample\n  kvseam run {}\n", self.example)
    }
}

fn items(texts: &[&str]) -> String {
    texts.iter().map(|text| wrapped("- ", text)).collect()
}

/// A paragraph of lines of 80 columns, the first after `start` and the others below it.
fn wrapped(start: &str, text: &str) -> String {
    const WIDTH: usize = 80;
    let indent = " ".repeat(start.len());
    let mut lines = String::new();
    let mut line = start.to_owned();
    let mut is_empty = true;
    for word in text.split_whitespace() {
        if !is_empty && line.chars().count() + 1 + word.chars().count() > WIDTH {
            lines += &format!("{line}\n");
            line.clone_from(&indent);
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
        }
        line += word;
        is_empty = false;
    }
    lines + &line + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_are_wrapped_below_their_start() {
        let text = wrapped("- ", &"twelve chars ".repeat(9));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2);
        assert!(lines[0].starts_with("- twelve") && lines[1].starts_with("  "));
        assert!(lines.iter().all(|line| line.len() <= 80));
    }

    #[test]
    fn a_line_of_a_log_is_read_and_an_unknown_one_is_answered_with_all_texts() {
        let text = "ValueError: Insufficient destination DCP pages: required=2, provided=1, \
                    src_page_offset=0, dcp_rank=0";
        let Ok(Subject::Line(recognised, _)) = parse(text) else { panic!("{text} is known") };
        assert!(matches!(recognised.line(), Some(Ok(Line::Shortage { required: 2, .. }))));
        let error = parse("out of memory").err().unwrap();
        assert!(error.contains("Insufficient destination DCP pages"), "{error}");
    }

    #[test]
    fn an_unknown_code_is_answered_with_all_codes() {
        let error = parse("placed.lost").err().unwrap();
        assert!(error.starts_with("did you mean placed."), "{error}");
        assert!(Code::ALL.iter().all(|code| error.contains(code.name())), "{error}");
    }
}
