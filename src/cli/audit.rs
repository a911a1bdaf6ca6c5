//! `kvseam audit`: what every behaviour would do in the user's own configuration.

use std::path::PathBuf;

use clap::Args;

use super::output::{Align, Format, FormatArgs, columns, print, print_json, row};
use super::{CliError, Exit, input};
use crate::audit::{Answer, Audit, Count, Row};
use crate::report::number::count;

const EXAMPLES: &str = "\
Examples:
  kvseam audit FILE
  kvseam audit FILE --seeds 8 --format json";

/// Plants every variant of every switch in a scenario, each with what it needs beside it, and says
/// what would show, what would corrupt in silence and how often, and what cannot happen there.
///
/// Each is compared with the same scenario without it. Exit code 0; 3 if the scenario has a defect
/// as it is.
#[derive(Args)]
#[command(before_help = EXAMPLES)]
pub(super) struct AuditArgs {
    /// The scenario; `-` is standard input.
    file: PathBuf,
    /// Changes one field; list indices are part of the path. Can be repeated.
    #[arg(long, value_name = "PATH=VALUE")]
    set: Vec<String>,
    /// Seeds of each variant, 1 to 1000.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..=1000))]
    seeds: u64,
    #[command(flatten)]
    output: FormatArgs,
}

pub(super) fn run(args: &AuditArgs) -> Result<Exit, CliError> {
    let source = input::scenario(&args.file, &args.set)?;
    let audit = source.audit(args.seeds)?;
    match args.output.format {
        Format::Table => print(&text(&audit))?,
        Format::Json => print_json(&audit)?,
    }
    Ok(if audit.as_it_is.is_empty() { Exit::Clean } else { Exit::Defects })
}

fn text(audit: &Audit) -> String {
    let sections = [
        (Answer::Silent, "would corrupt in silence"),
        (Answer::Loud, "would show"),
        (Answer::Cannot, "cannot happen in this configuration"),
        (Answer::NotReached, "was not reached"),
        (Answer::Harmless, "would do no harm"),
    ];
    let counts: Vec<String> = sections
        .iter()
        .map(|(answer, words)| format!("{} {words}", audit.count(*answer)))
        .collect();
    let mut text = format!(
        "{}\nas it is: {}\n{} behaviours planted, each with up to {} seeds: {}\n",
        audit.title,
        match audit.as_it_is.is_empty() {
            true => "no defect".to_owned(),
            false => codes(&audit.as_it_is),
        },
        audit.rows.len(),
        audit.seeds,
        counts.join(", ")
    );
    for (answer, words) in sections {
        let rows = audit.rows.iter().filter(|row| row.answer == answer);
        let rows: Vec<&Row> = rows.collect();
        if !rows.is_empty() {
            text += &format!("\n{words}\n{}", section(answer, &rows));
        }
    }
    text
}

fn section(answer: Answer, rows: &[&Row]) -> String {
    let name = |row: &Row| format!("{} = {}", row.switch, row.variant);
    let beside = |row: &Row| row.beside.join(", ");
    match answer {
        Answer::Silent | Answer::Loud => {
            let mut table = vec![row_of(["behaviour", "with", "runs", "silent", "found"])];
            for row in rows {
                let of = |some: u64| format!("{some} of {}", row.runs);
                let (wrong, silent) = (of(row.loud + row.silent), of(row.silent));
                table.push(vec![name(row), beside(row), wrong, silent, codes(&row.codes)]);
                if let Some(line) = &row.line {
                    table.push(row_of(["", "", "", "", &format!("\"{line}\"")]));
                }
            }
            columns(&[Align::Left; 5], &table)
        }
        Answer::Cannot | Answer::NotReached => {
            let because = if answer == Answer::Cannot { "forbidden by" } else { "why" };
            let mut table = vec![row_of(["behaviour", because])];
            table.extend(rows.iter().map(|row| vec![name(row), row.why.clone()]));
            columns(&[Align::Left; 2], &table)
        }
        // Rows without anything to say are one paragraph.
        Answer::Harmless => {
            let names: Vec<String> = rows.iter().map(|row| name(row)).collect();
            format!("{}\n", names.join("; "))
        }
    }
}

fn row_of<const N: usize>(cells: [&str; N]) -> Vec<String> {
    row(cells)
}

/// The code with the largest share first.
fn codes(codes: &std::collections::BTreeMap<&'static str, Count>) -> String {
    let mut list: Vec<_> = codes.iter().collect();
    list.sort_by_key(|(_, count)| std::cmp::Reverse(count.found));
    let said = list.iter().take(3).map(|(code, Count { found, chances })| {
        format!("{code} {} of {}", count(*found), count(*chances))
    });
    let more = list.len().saturating_sub(3);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    said.collect::<Vec<_>>().join(", ") + &more
}
