//! Output: tables for people, JSON for programs, and a standard output that may go away.

use std::fmt::Display;
use std::io::{self, BufWriter, ErrorKind, StdoutLock, Write};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use serde::Serialize;

use super::CliError;
use super::input::is_stdin;
use crate::finding::{Code, Severity};
use crate::picture::{self, Picture};
use crate::report::number;
use crate::stats::Rate;

/// What a command prints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// For people.
    #[default]
    Table,
    /// For programs.
    Json,
}

/// The argument that chooses.
#[derive(Args)]
pub(super) struct FormatArgs {
    /// What to print on standard output.
    #[arg(long, value_enum, default_value_t)]
    pub(super) format: Format,
}

/// Standard output, buffered. When its reader has gone away the rest is dropped quietly.
pub(super) struct Output {
    writer: BufWriter<StdoutLock<'static>>,
    is_closed: bool,
}

impl Output {
    pub(super) fn open() -> Output {
        Output { writer: BufWriter::new(io::stdout().lock()), is_closed: false }
    }

    /// Whether the reader has gone away.
    pub(super) fn is_closed(&self) -> bool {
        self.is_closed
    }

    pub(super) fn line(&mut self, text: &str) -> Result<(), CliError> {
        let written = writeln!(self.writer, "{text}");
        self.judge(written)
    }

    /// Hands over what is buffered.
    pub(super) fn flush(&mut self) -> Result<(), CliError> {
        let written = self.writer.flush();
        self.judge(written)
    }

    fn judge(&mut self, written: io::Result<()>) -> Result<(), CliError> {
        match written {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                self.is_closed = true;
                Ok(())
            }
            other => other.map_err(|error| CliError::failure(format!("standard output: {error}"))),
        }
    }
}

/// Says something on standard error. When that has gone away or is full, there is nobody to tell.
pub(super) fn say(message: impl Display) {
    let _ = writeln!(io::stderr(), "{message}");
}

/// The error for a file that cannot be written: a full disk is a failure, all else bad input.
pub(super) fn cannot_write(name: impl Display, error: &io::Error) -> CliError {
    let message = format!("{name}: {error}");
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::WriteZero => {
            CliError::Failure(message)
        }
        _ => CliError::Input(message),
    }
}

/// The path of a file or folder that is written beside the answer. `-` is refused: standard output
/// has the answer.
pub(super) fn beside(text: &str) -> Result<PathBuf, String> {
    match text {
        "-" => {
            Err("must be a path (./- for one of this name), got standard output, which has the \
                    answer"
                .to_owned())
        }
        path => Ok(PathBuf::from(path)),
    }
}

/// Prints a whole answer.
pub(super) fn print(text: &str) -> Result<(), CliError> {
    let mut output = Output::open();
    output.line(text.trim_end())?;
    output.flush()
}

/// Prints a whole answer as JSON.
pub(super) fn print_json(answer: &impl Serialize) -> Result<(), CliError> {
    print(&serde_json::to_string_pretty(answer).expect("answers are texts, numbers and lists"))
}

/// Prints a whole answer as JSON on one line.
pub(super) fn print_line(answer: &impl Serialize) -> Result<(), CliError> {
    print(&serde_json::to_string(answer).expect("answers are texts, numbers and lists"))
}

/// Writes a picture as an SVG file and says so.
pub(super) fn save_picture(file: &Path, picture: &Picture) -> Result<(), CliError> {
    let text = picture::svg(picture).map_err(CliError::failure)?;
    save(file, &text)
}

/// Refuses to write over what is being read.
pub(super) fn refuse_own_input(output: &Path, input: &Path) -> Result<(), CliError> {
    let same = match (std::fs::canonicalize(output), std::fs::canonicalize(input)) {
        (Ok(output), Ok(input)) => output == input,
        // A file that does not exist yet is not the one being read.
        (Err(_), _) | (_, Err(_)) => false,
    };
    if same {
        let output = output.display();
        let problem = "must be another file than the one that is read";
        return Err(CliError::Input(format!("{output}: {problem}, got the same")));
    }
    Ok(())
}

/// Writes a file and says so; `-` is standard output.
pub(super) fn save(file: &Path, text: &str) -> Result<(), CliError> {
    if is_stdin(file) {
        return print(text);
    }
    let name = file.display();
    std::fs::write(file, text).map_err(|error| cannot_write(file.display(), &error))?;
    say(format_args!("written: {name}"));
    Ok(())
}

/// On which side of its column a cell stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Align {
    Left,
    Right,
}

/// Rows in aligned columns, two spaces apart, each line ended.
pub(super) fn columns(align: &[Align], rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..align.len()).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for ((cell, &align), &width) in row.iter().zip(align).zip(&widths) {
            line += &match align {
                Align::Left => format!("{cell:<width$}  "),
                Align::Right => format!("{cell:>width$}  "),
            };
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}

/// A row of texts.
pub(super) fn row<const N: usize>(cells: [&str; N]) -> Vec<String> {
    cells.map(str::to_owned).to_vec()
}

/// How bad a code is, in a word.
pub(super) fn severity(code: Code) -> &'static str {
    match code.severity() {
        Severity::Defect => "defect",
        Severity::Expected => "expected",
    }
}

/// `hits` of `chances` as per cent, or that there was no chance.
pub(super) fn share(hits: u64, chances: u64) -> String {
    match (Rate { hits, chances }).interval() {
        Some(interval) => number::percent(interval.share),
        None => "not reached".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell_and_lines_end_without_spaces() {
        let rows = [row(["code", "n", ""]), row(["é", "100", "x"])];
        let text = columns(&[Align::Left, Align::Right, Align::Left], &rows);
        assert_eq!(text, "code    n\né     100  x\n");
    }

    #[test]
    fn a_full_device_is_a_failure_and_any_other_reason_is_the_user_s() {
        let of = |kind: ErrorKind| cannot_write("x", &kind.into());
        assert!(matches!(of(ErrorKind::StorageFull), CliError::Failure(_)));
        assert!(matches!(of(ErrorKind::PermissionDenied), CliError::Input(_)));
        assert!(beside("-").is_err() && beside("./-").is_ok());
    }

    #[test]
    fn a_share_of_no_chances_is_not_reached() {
        assert_eq!(share(0, 0), "not reached");
        assert_eq!(share(0, 3), "0 %");
        assert_eq!(share(1, 4), "25 %");
    }
}
