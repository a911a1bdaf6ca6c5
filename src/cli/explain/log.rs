//! The answer to a log: which known lines it has, and each kind explained once.

use std::io::{self, BufRead, Read};
use std::path::Path;

use serde::Serialize;

use super::known::Answer;
use super::{ExplainArgs, wrapped};
use crate::cli::output::{Align, Format, columns, print, print_json};
use crate::cli::{CliError, Exit, input};
use crate::explain::log::{Kind, Known, Log, Summary};
use crate::limits;
use crate::report::number::count;

#[derive(Serialize)]
struct LogAnswer {
    log: String,
    lines: u64,
    kinds: Vec<KindAnswer>,
    /// Lines that name an error and are not known.
    unknown: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    unknown_first: Option<Place>,
}

#[derive(Serialize)]
struct Place {
    line_number: u64,
    line: String,
}

#[derive(Serialize)]
struct KindAnswer {
    form: String,
    count: u64,
    with_other_numbers: u64,
    first_line_number: u64,
    explanation: Answer,
}

/// Explains a log; `-` is standard input.
pub(super) fn explain(file: &Path, args: &ExplainArgs) -> Result<Exit, CliError> {
    let (name, mut reader) = input::open(file)?;
    let summary = read(&mut reader).map_err(|error| CliError::input(format!("{name}: {error}")))?;
    let answer = LogAnswer::new(name, summary, args);
    match args.output.format {
        Format::Table => print(&answer.text())?,
        Format::Json => print_json(&answer)?,
    }
    Ok(Exit::Clean)
}

/// Reads a log in whatever encoding, a line at a time and of a long line its beginning.
fn read(reader: &mut dyn BufRead) -> io::Result<Summary> {
    /// Bytes of a line that are kept: each character has at most four.
    const LINE_BYTES: u64 = 4 * limits::LOG_LINE_CHARS_MAX as u64;
    let mut log = Log::default();
    let mut line = Vec::new();
    loop {
        line.clear();
        if reader.take(LINE_BYTES).read_until(b'\n', &mut line)? == 0 {
            return Ok(log.end());
        }
        log.line(String::from_utf8_lossy(&line).trim_end_matches(['\n', '\r']));
        while !line.ends_with(b"\n") {
            line.clear();
            if reader.take(LINE_BYTES).read_until(b'\n', &mut line)? == 0 {
                break;
            }
        }
    }
}

impl LogAnswer {
    fn new(log: String, summary: Summary, args: &ExplainArgs) -> LogAnswer {
        LogAnswer {
            log,
            lines: summary.lines,
            kinds: summary.kinds.iter().map(|kind| KindAnswer::new(kind, args)).collect(),
            unknown: summary.unknown,
            unknown_first: summary
                .unknown_first
                .map(|(line_number, line)| Place { line_number, line }),
        }
    }

    fn text(&self) -> String {
        let found: u64 = self.kinds.iter().map(|kind| kind.count).sum();
        let mut text = format!(
            "{}: {} lines, {} of them known, of {}\n",
            self.log,
            count(self.lines),
            count(found),
            match self.kinds.len() {
                1 => "one kind".to_owned(),
                kinds => format!("{kinds} kinds"),
            }
        );
        if !self.kinds.is_empty() {
            text.push('\n');
            text += &self.table();
        }
        if let Some(Place { line_number, line }) = &self.unknown_first {
            let others = format!(
                "{} other lines name an error that is not known here; the first is line {}:",
                count(self.unknown),
                count(*line_number)
            );
            text += &format!("\n{}{}", wrapped("", &others), wrapped("  ", line));
        }
        for (number, kind) in (1..).zip(&self.kinds) {
            let place = count(kind.first_line_number);
            let title = format!("{number}. line {place}");
            text += &format!("\n{title}\n{}\n{}", "-".repeat(title.len()), kind.explanation.text());
        }
        text
    }

    fn table(&self) -> String {
        let mut rows = vec![["lines", "first at", "text"].map(str::to_owned).to_vec()];
        for kind in &self.kinds {
            let others = match kind.with_other_numbers {
                0 => String::new(),
                others => format!(" ({} with other numbers)", count(others)),
            };
            rows.push(vec![
                count(kind.count),
                count(kind.first_line_number),
                format!("{}{others}", kind.form),
            ]);
        }
        columns(&[Align::Right, Align::Right, Align::Left], &rows)
    }
}

impl KindAnswer {
    fn new(kind: &Kind, args: &ExplainArgs) -> KindAnswer {
        let (form, code) = match kind.first.known {
            Known::Engine(text) => (text.form(), Some(text.code)),
            Known::Foreign(text) => (text.form.to_owned(), None),
        };
        let line = kind.first.text();
        let explanation = Answer::of(&kind.first, line, args).unwrap_or_else(|error| {
            let code = code.expect("only lines of a modelled engine are refused");
            Answer::unread(code, line, &error)
        });
        KindAnswer {
            form,
            count: kind.count,
            with_other_numbers: kind.others,
            first_line_number: kind.first_line,
            explanation,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_of_any_bytes_and_lines_of_any_length_is_read() {
        let mut log = b"\xff\xfe index 7 is out of bounds for dimension 0 with size 7\n".to_vec();
        log.extend(vec![b'x'; 5 * 4 * limits::LOG_LINE_CHARS_MAX]);
        log.extend(b"\nlist index out of range");
        let summary = read(&mut log.as_slice()).unwrap();
        let places: Vec<u64> = summary.kinds.iter().map(|kind| kind.first_line).collect();
        assert_eq!((summary.lines, places), (3, vec![1, 3]));
        assert_eq!(read(&mut b"".as_slice()).unwrap().lines, 0);
    }
}
