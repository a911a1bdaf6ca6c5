//! `kvseam replay`: scenario files against what they say must be seen.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use rayon::prelude::*;

use super::emit::{self, Pieces};
use super::input::{STDIN, is_stdin};
use super::output::{Format, FormatArgs, beside, print, print_json, save, say};
use super::{CliError, Exit, input, junit, sarif};
use crate::replay::{Files, Replayed, Verdict};
use crate::report::number::count;

const EXAMPLES: &str = "\
Examples:
  kvseam replay sims/scenarios sims/hazards
  kvseam replay sims/scenarios/padded-prefix.toml
  kvseam replay sims --junit results.xml --sarif results.sarif
  kvseam replay sims/hazards/h10-one-rank-short.toml --emit python";

/// Runs scenarios and checks each against its `[expect]`.
///
/// Exit code 4 when an expectation is not met, 2 when a file cannot be run or expects nothing. A
/// file that must be refused for one field and is refused for another does not meet its
/// expectation.
#[derive(Args)]
#[command(before_help = EXAMPLES)]
pub(super) struct ReplayArgs {
    /// Scenario files, or folders that are searched for `*.toml` with an `[expect]`.
    #[arg(required = true)]
    paths: Vec<PathBuf>,
    /// Prints a script that makes the planner calls of one scenario on the real engine instead.
    #[arg(long, value_enum, value_name = "LANGUAGE", conflicts_with = "format")]
    emit: Option<Language>,
    /// Which calls the script makes.
    #[arg(long, value_enum, default_value_t, requires = "emit")]
    pieces: Pieces,
    /// Also writes the results to this file as JUnit XML.
    #[arg(long, value_name = "FILE", value_parser = beside, conflicts_with = "emit")]
    junit: Option<PathBuf>,
    /// Also writes what is not met to this file as SARIF 2.1.0.
    #[arg(long, value_name = "FILE", value_parser = beside, conflicts_with = "emit")]
    sarif: Option<PathBuf>,
    #[command(flatten)]
    output: FormatArgs,
}

/// Languages of scripts.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Language {
    /// For the `sglang` package.
    Python,
}

pub(super) fn run(args: &ReplayArgs) -> Result<Exit, CliError> {
    if let Some(Language::Python) = args.emit {
        return emit_python(args);
    }
    let replayed = check(&args.paths)?;
    match args.output.format {
        Format::Table => print(&text(&replayed))?,
        Format::Json => print_json(&replayed)?,
    }
    if let Some(file) = &args.junit {
        save(file, &junit::of_replayed(&replayed))?;
    }
    if let Some(file) = &args.sarif {
        save(file, &as_sarif(&replayed))?;
    }
    let with = |verdict| replayed.iter().filter(move |file| file.verdict == verdict);
    let errors: Vec<&str> =
        with(Verdict::Error).flat_map(|file| file.reasons.iter().map(String::as_str)).collect();
    if !errors.is_empty() {
        return Err(CliError::Input(errors.join("\nerror: ")));
    }
    Ok(if with(Verdict::Fail).next().is_none() { Exit::Clean } else { Exit::Unmet })
}

/// What is not met or could not be checked.
fn as_sarif(replayed: &[Replayed]) -> String {
    let rules = [
        ("expectation", "A scenario does not show what it says must be seen."),
        ("input", "A scenario cannot be run, or says nothing of what must be seen."),
    ];
    let rules = rules.map(|(id, text)| (id.to_owned(), text.to_owned())).into();
    let results = replayed.iter().flat_map(|Replayed { file, verdict, reasons }| {
        let rule = match verdict {
            Verdict::Pass => None,
            Verdict::Fail => Some("expectation"),
            Verdict::Error => Some("input"),
        };
        rule.into_iter().flat_map(move |rule| {
            reasons.iter().map(move |reason| sarif::Result {
                rule: rule.to_owned(),
                is_error: true,
                message: reason.clone(),
                file: (!is_stdin(Path::new(file))).then(|| file.clone()),
            })
        })
    });
    sarif::log(&rules, &results.collect::<Vec<_>>())
}

/// Runs the files, and those with an `[expect]` in the folders.
pub(super) fn check(paths: &[PathBuf]) -> Result<Vec<Replayed>, CliError> {
    let mut files = Vec::new();
    for path in paths {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let Files { expecting, others } = Files::below(path)
            .map_err(|(folder, error)| CliError::input(format!("{}: {error}", folder.display())))?;
        for file in others {
            say(format_args!("passed over, without [expect]: {}", file.display()));
        }
        if expecting.is_empty() {
            let path = path.display();
            let problem = "must hold a *.toml file with [expect], got none";
            return Err(CliError::Input(format!("{path}: {problem}")));
        }
        files.extend(expecting);
    }
    Ok(files.par_iter().map(|file| replayed(file)).collect())
}

/// Prints the script for the one scenario.
fn emit_python(args: &ReplayArgs) -> Result<Exit, CliError> {
    let [file] = args.paths.as_slice() else {
        let got = args.paths.len();
        return Err(CliError::Input(format!("--emit: must be with one scenario file, got {got}")));
    };
    let source = input::scenario(file, &[])?;
    let calls = source.calls()?;
    let name = file.display().to_string();
    let script = emit::python(&name, &calls, args.pieces);
    let script = script.ok_or_else(|| source.error(&"--emit: must plan a piece, got none"))?;
    print(&script)?;
    Ok(Exit::Clean)
}

fn replayed(file: &Path) -> Replayed {
    if !is_stdin(file) {
        return Replayed::of_file(file);
    }
    let replayed = match input::text(file) {
        Ok(text) => Replayed::of_text(&text, STDIN, Path::new("")),
        Err(error) => Replayed {
            file: STDIN.to_owned(),
            verdict: Verdict::Error,
            reasons: vec![error.to_string()],
        },
    };
    Replayed { file: file.display().to_string(), ..replayed }
}

fn text(replayed: &[Replayed]) -> String {
    let mut text = String::new();
    for Replayed { file, verdict, reasons } in replayed {
        match verdict {
            Verdict::Pass => text += &format!("pass   {file}\n"),
            Verdict::Error => text += &format!("error  {file}\n"),
            Verdict::Fail => {
                text += &format!("fail   {file}\n");
                for reason in reasons {
                    text += &format!("       {reason}\n");
                }
            }
        }
    }
    let of = |wanted| replayed.iter().filter(|file| file.verdict == wanted).count() as u64;
    text + &format!(
        "{} passed, {} failed, {} could not be checked",
        count(of(Verdict::Pass)),
        count(of(Verdict::Fail)),
        count(of(Verdict::Error))
    )
}
