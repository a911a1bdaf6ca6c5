//! `kvseam explain`: what a code means, and what to check.

use clap::Args;
use serde::Serialize;

use super::output::{Format, FormatArgs, print, print_json, severity};
use super::{CliError, Exit};
use crate::explain::{Explanation, explain};
use crate::finding::{Code, Named};

const EXAMPLES: &str = "\
Examples:
  kvseam explain placed.missing
  kvseam explain refused.misaligned --format json";

/// Says what a code means, what must hold, what breaks it, and what to check in an engine.
#[derive(Args)]
#[command(before_help = EXAMPLES)]
pub(super) struct ExplainArgs {
    /// A code; `kvseam list codes` lists them.
    #[arg(value_parser = parse)]
    code: Code,
    #[command(flatten)]
    output: FormatArgs,
}

/// Words of the engine's messages, and the code of a finding with that message.
const MESSAGES: [(&str, Code); 10] = [
    ("PD DCP transfer requires decode_prefix_len to align", Code::RefusedMisaligned),
    ("num_kv_tokens must fit in the provided source pages", Code::RefusedSource),
    ("Insufficient destination DCP pages", Code::RefusedShortfall),
    ("is out of bounds for axis 0", Code::RefusedIndex),
    ("PD peers must use equal page sizes", Code::RefusedPageSize),
    ("PD decode DCP requires an MLA or hybrid-MLA KV pool", Code::RefusedPool),
    ("PD decode DCP currently requires prefill attention CP=1", Code::RefusedPrefillCp),
    ("Unsupported PD DCP topology", Code::RefusedTopology),
    ("PD peers must connect matching DCP ranks", Code::RefusedRank),
    ("PD DCP source/destination KV geometry differs", Code::RefusedGeometry),
];

fn parse(text: &str) -> Result<Code, String> {
    Code::parse(text).ok_or_else(|| {
        let message = MESSAGES.iter().find(|(part, _)| text.contains(part));
        if let Some((_, code)) = message {
            let code = code.name();
            return format!("must be a code; this message is explained by `kvseam explain {code}`");
        }
        let known: Vec<&str> = Code::ALL.iter().map(|code| code.name()).collect();
        format!("must be one of {}", known.join(", "))
    })
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
    example: &'static str,
}

#[derive(Serialize)]
struct BehaviourJson {
    switch: &'static str,
    variant: &'static str,
}

pub(super) fn run(args: &ExplainArgs) -> Result<Exit, CliError> {
    let code = args.code;
    let Explanation { holds, causes, checks, behaviours } = explain(code);
    let behaviours = behaviours.iter().map(|&(switch, variant)| BehaviourJson { switch, variant });
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
        if !self.behaviours.is_empty() {
            text += "\nBehaviours that can lead to it, some only together with others\n";
            for BehaviourJson { switch, variant } in &self.behaviours {
                text += &format!("  behaviour.{switch} = \"{variant}\"\n");
            }
        }
        text += "\nExample\n";
        match self.example.strip_suffix(".toml") {
            Some(_) => text + &format!("  kvseam run {}\n", self.example),
            None => text + &format!("  none in files; {}\n", self.example),
        }
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
    fn a_message_of_the_engine_is_answered_with_its_code() {
        let error =
            parse("ValueError: Insufficient destination DCP pages: required=2").unwrap_err();
        assert!(error.contains("kvseam explain refused.shortfall"), "{error}");
    }

    #[test]
    fn an_unknown_code_is_answered_with_all_codes() {
        let error = parse("placed.lost").unwrap_err();
        assert!(Code::ALL.iter().all(|code| error.contains(code.name())), "{error}");
    }
}
