//! `kvseam conform`: answers of a real engine, recorded or live, against the model.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::{Args, value_parser};
use serde::Serialize;
use serde_json::Value;

use super::input::Lines;
use super::output::{Align, Format, FormatArgs, columns, print, print_json, row};
use super::{CliError, Exit, live};
use crate::behaviour::SplitStamp;
use crate::conform::{self, Agreement, Checked, Level, LineError, Mismatch};
use crate::report::number::count;

/// Differences that are shown; all are counted.
const SHOWN_MAX: usize = 10;

const EXAMPLES: &str = "\
Examples:
  kvseam conform tests/vectors/plan.jsonl
  kvseam conform runs.jsonl --level 3
  record | kvseam conform - --format json
  kvseam conform --live 'python3 sims/conformance/live_sglang.py' --runs 1000";

/// Replays recorded answers of a real engine, one a line, against the model.
///
/// The lines are planner calls, allocators, radix caches or whole runs, told apart by their keys.
/// Whole runs are compared level by level: 1 prefixes, hits, chunks, pieces, numbers of pages and
/// endings; 2 also evictions, retractions, output lengths and what is left in the pools; 3 also
/// page ids; 4 also ticks. Exit code 4 when anything differs.
///
/// With `--live` a driver runs scenarios on the engine itself: they are drawn, what the engine does
/// is compared in the same levels and judged on its own, and of each kind of finding the first is
/// made smaller and written to a file with what both sides did. Exit code 3 when the engine has a
/// defect, whether the model has it or not; 4 when both differ; 1 when only answers are missing.
#[derive(Args)]
#[command(before_help = EXAMPLES)]
pub(super) struct ConformArgs {
    /// JSON lines; `-` is standard input.
    #[arg(required_unless_present = "live")]
    file: Option<PathBuf>,
    /// Compares whole runs up to this level only.
    #[arg(long, default_value_t = Level::ALL.len() as u8, value_name = "LEVEL",
          value_parser = value_parser!(u8).range(1..=Level::ALL.len() as i64))]
    level: u8,
    #[command(flatten)]
    live: live::LiveArgs,
    #[command(flatten)]
    output: FormatArgs,
}

#[derive(Default, Serialize)]
struct Answer {
    formats: BTreeMap<&'static str, Lined>,
    /// Whole runs by kind.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    runs: BTreeMap<String, Runs>,
    /// Variants of `split_stamp` that agree with most of the radix caches' lines.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    trees: Vec<&'static str>,
    differences: Vec<Difference>,
}

/// What a file's radix caches show with one kind of tree.
#[derive(Default)]
struct Tree {
    passed: u64,
    failed: Vec<(u64, Mismatch)>,
}

/// Lines of one format.
#[derive(Default, Serialize)]
struct Lined {
    passed: u64,
    failed: u64,
}

/// Whole runs of one kind.
#[derive(Serialize)]
struct Runs {
    lines: u64,
    /// How many agree at level 1, at level 2, and so on.
    agree: Vec<u64>,
}

/// The first difference of one line.
#[derive(Serialize)]
struct Difference {
    line: u64,
    #[serde(flatten)]
    what: What,
    #[serde(skip)]
    text: String,
}

#[derive(Serialize)]
#[serde(untagged)]
enum What {
    Answer { path: String, recorded: Option<Value>, model: Option<Value> },
    Run { level: usize, recorded: Vec<String>, model: Vec<String> },
}

pub(super) fn run(args: &ConformArgs) -> Result<Exit, CliError> {
    let most = Level::numbered(args.level.into()).expect("the parser knows the levels");
    if let Some(command) = &args.live.live {
        return live::ask(&args.live, command, most, args.output.format);
    }
    let file = args.file.as_deref().expect("the parser asks for it");
    let mut lines = Lines::open(file)?;
    let mut answer = Answer::default();
    let new = |&split_stamp: &SplitStamp| (split_stamp, Tree::default());
    let mut trees: Vec<(SplitStamp, Tree)> = SplitStamp::ALL.iter().map(new).collect();
    while let Some(line) = lines.next()? {
        let format = conform::recognise(line);
        if format == Ok(conform::Format::Radix) {
            let check = |&(split_stamp, _): &(_, Tree)| conform::check_tree(line, split_stamp);
            let checked: Vec<Result<(), LineError>> = trees.iter().map(check).collect();
            for ((_, tree), checked) in trees.iter_mut().zip(checked) {
                match checked {
                    Ok(()) => tree.passed += 1,
                    Err(LineError::Mismatch(mismatch)) => {
                        tree.failed.push((lines.number, mismatch));
                    }
                    Err(error) => return Err(lines.error(&error)),
                }
            }
            continue;
        }
        let checked = conform::check_line(line, most);
        match (checked, format) {
            (Ok(Checked::Answers(format)), _) => answer.lined(format).passed += 1,
            (Ok(Checked::Run(agreement)), _) => answer.compared(lines.number, agreement, most),
            (Err(LineError::Mismatch(mismatch)), Ok(format)) => {
                answer.lined(format).failed += 1;
                answer.answered_otherwise(lines.number, mismatch);
            }
            (Err(error), _) => return Err(lines.error(&error)),
        }
    }
    answer.choose_tree(trees);
    if answer.formats.is_empty() {
        return Err(lines.empty("line"));
    }
    match args.output.format {
        Format::Table => print(&answer.text())?,
        Format::Json => print_json(&answer)?,
    }
    let is_met = answer.formats.values().all(|lined| lined.failed == 0);
    Ok(if is_met { Exit::Clean } else { Exit::Unmet })
}

impl Answer {
    fn lined(&mut self, format: conform::Format) -> &mut Lined {
        self.formats.entry(format.name()).or_default()
    }

    /// A whole run was compared up to the level `most`.
    fn compared(&mut self, line: u64, agreement: Agreement, most: Level) {
        let Agreement { kind, level, difference } = agreement;
        let none = || Runs { lines: 0, agree: vec![0; most.number()] };
        let runs = self.runs.entry(kind).or_insert_with(none);
        runs.lines += 1;
        for agree in runs.agree.iter_mut().take(level.map_or(0, Level::number)) {
            *agree += 1;
        }
        match difference {
            None => self.lined(conform::Format::Run).passed += 1,
            Some(difference) => {
                self.lined(conform::Format::Run).failed += 1;
                let text = difference.to_string();
                let conform::Difference { level, recorded, model, .. } = difference;
                self.differs(line, What::Run { level: level.number(), recorded, model }, text);
            }
        }
    }

    /// Takes the tree that agrees with most lines: an engine has one, and no line says which.
    fn choose_tree(&mut self, trees: Vec<(SplitStamp, Tree)>) {
        let least = trees.iter().map(|(_, tree)| tree.failed.len()).min().unwrap_or(0);
        let mut best = trees.into_iter().filter(|(_, tree)| tree.failed.len() == least).peekable();
        if best.peek().is_none_or(|(_, tree)| tree.passed == 0 && tree.failed.is_empty()) {
            return;
        }
        let best: Vec<(SplitStamp, Tree)> = best.collect();
        self.trees = best.iter().map(|(split_stamp, _)| split_stamp.name()).collect();
        let Some((_, tree)) = best.into_iter().next() else { return };
        let lined = self.lined(conform::Format::Radix);
        (lined.passed, lined.failed) = (tree.passed, tree.failed.len() as u64);
        for (line, mismatch) in tree.failed {
            self.answered_otherwise(line, mismatch);
        }
    }

    fn answered_otherwise(&mut self, line: u64, mismatch: Mismatch) {
        let text = mismatch.to_string();
        let Mismatch { path, recorded, model } = mismatch;
        self.differs(line, What::Answer { path, recorded, model }, text);
    }

    fn differs(&mut self, line: u64, what: What, text: String) {
        if self.differences.len() < SHOWN_MAX {
            self.differences.push(Difference { line, what, text });
        }
    }

    fn text(&self) -> String {
        let mut rows = vec![row(["format", "passed", "failed"])];
        for (name, lined) in &self.formats {
            rows.push(vec![(*name).to_owned(), count(lined.passed), count(lined.failed)]);
        }
        let mut text = columns(&[Align::Left, Align::Right, Align::Right], &rows);
        if !self.trees.is_empty() {
            text += &format!("\nradix caches as with split_stamp = {}\n", self.trees.join(" or "));
        }
        if !self.runs.is_empty() {
            text += "\nwhole runs that agree at each level:\n";
            text += &self.run_table();
        }
        if !self.differences.is_empty() {
            text += "\nfirst difference of each line that failed";
            let failed: u64 = self.formats.values().map(|lined| lined.failed).sum();
            let shown = self.differences.len() as u64;
            text += &match failed - shown {
                0 => ":\n".to_owned(),
                more => format!(" ({} more failed):\n", count(more)),
            };
        }
        for Difference { line, text: said, .. } in &self.differences {
            text += &format!("line {line}: {said}\n");
        }
        text
    }

    fn run_table(&self) -> String {
        let levels = self.runs.values().map(|runs| runs.agree.len()).max().unwrap_or(0);
        let mut heads = row(["kind", "lines"]);
        heads.extend((1..=levels).map(|level| format!("level {level}")));
        let mut rows = vec![heads];
        let mut all = vec![0; levels + 1];
        for (kind, runs) in &self.runs {
            let counts: Vec<u64> =
                std::iter::once(runs.lines).chain(runs.agree.iter().copied()).collect();
            for (sum, count) in all.iter_mut().zip(&counts) {
                *sum += count;
            }
            rows.push(std::iter::once(kind.clone()).chain(counts.into_iter().map(count)).collect());
        }
        rows.push(std::iter::once("all".to_owned()).chain(all.into_iter().map(count)).collect());
        let mut aligns = vec![Align::Left];
        aligns.extend(vec![Align::Right; levels + 1]);
        columns(&aligns, &rows)
    }
}
