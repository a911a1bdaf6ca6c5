//! A ledger's runs as text for other tools: one line a run, in the order of their numbers.
//!
//! Both forms hold the same: where the run lies, how it ended, and every count. Digests are
//! hexadecimal, as elsewhere. In CSV the columns of a group begin with its name and a dot; in JSON
//! a group is an object, and `findings` names only what was found. The counts of a run that could
//! not be run are empty or null.

use std::collections::BTreeMap;
use std::io::{self, Write};

use rusqlite::{Row, Statement};
use serde::Serialize;

use super::cell::CellId;
use super::column::unsigned;
use super::ledger::{Ledger, LedgerError, sqlite};
use super::schema;
use crate::finding::{Code, Named};

/// How runs are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A heading, and a row of every column for each run.
    Csv,
    /// An object for each run.
    JsonLines,
}

/// Why a ledger cannot be exported.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The ledger cannot be read.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The text cannot be written.
    #[error("{0}")]
    Write(#[from] io::Error),
}

/// One run.
#[derive(Serialize)]
struct Line<'a> {
    run: i64,
    cell: u64,
    settings: BTreeMap<&'a str, &'a str>,
    seed: i64,
    verdict: String,
    error: Option<String>,
    ended_ticks: i64,
    digest: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    micros: Option<i64>,
    findings: BTreeMap<&'static str, i64>,
    #[serde(flatten)]
    counts: BTreeMap<&'static str, Option<Counts>>,
}

/// Counts by name, all of a closed list.
type Counts = BTreeMap<&'static str, i64>;

/// Writes every run of `ledger` to `out`; without `times`, the wall times are left out, so that
/// equal sweeps give equal bytes.
pub fn export(
    ledger: &Ledger,
    form: Form,
    times: bool,
    out: &mut dyn Write,
) -> Result<(), ExportError> {
    match form {
        Form::Csv => {
            let mut out = csv::Writer::from_writer(out);
            out.write_record(heading(ledger, times)).map_err(unwritten)?;
            each(ledger, times, |line| out.write_record(columns(ledger, line)).map_err(unwritten))?;
            out.flush()?;
        }
        Form::JsonLines => {
            each(ledger, times, |line| {
                serde_json::to_writer(&mut *out, line)?;
                out.write_all(b"\n")
            })?;
            out.flush()?;
        }
    }
    Ok(())
}

/// Why a row could not be written: rows are texts of one length, so only what takes them can
/// refuse.
fn unwritten(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}

/// Hands every run to `write`, in the order of their numbers.
fn each(
    ledger: &Ledger,
    times: bool,
    mut write: impl FnMut(&Line) -> io::Result<()>,
) -> Result<(), ExportError> {
    let fail = |source| ExportError::Ledger(sqlite(&ledger.path, source));
    let mut runs = ledger.db.prepare(&sql()).map_err(fail)?;
    let mut findings = ledger
        .db
        .prepare("SELECT code, count FROM findings WHERE run = ? ORDER BY code")
        .map_err(fail)?;
    let mut rows = runs.query([]).map_err(fail)?;
    while let Some(row) = rows.next().map_err(fail)? {
        write(&line(ledger, row, &mut findings, times).map_err(fail)?)?;
    }
    Ok(())
}

/// Columns of `runs`, before those of the wide tables.
const RUN_COLUMNS: usize = 8;

fn sql() -> String {
    let mut columns = "runs.id, cell, seed, verdict, error, ended, digest, micros".to_owned();
    let mut joins = String::new();
    for (table, names) in schema::wide_tables() {
        for name in names {
            columns += &format!(", {table}.\"{name}\"");
        }
        joins += &format!(" LEFT JOIN {table} ON {table}.run = runs.id");
    }
    format!("SELECT {columns} FROM runs{joins} ORDER BY runs.id")
}

fn line<'a>(
    ledger: &'a Ledger,
    row: &Row,
    findings: &mut Statement,
    times: bool,
) -> rusqlite::Result<Line<'a>> {
    let (run, digest): (i64, i64) = (row.get(0)?, row.get(6)?);
    // The plan says where a run lies, as the ledger says it in `cell` and `settings`.
    let cell = CellId(unsigned(row.get(1)?) % ledger.plan.cells());
    let axes = ledger.plan.axes.iter().map(|axis| axis.name.as_str());
    let points = ledger.plan.points(cell).into_iter().map(|point| point.name.as_str());
    let mut counts = BTreeMap::new();
    let mut column = RUN_COLUMNS;
    for (table, names) in schema::wide_tables() {
        let values = names.into_iter().map(|name| {
            let count: Option<i64> = row.get(column)?;
            column += 1;
            Ok(count.map(|count| (name, count)))
        });
        // All of them are there, or the run could not be run and none is.
        counts.insert(table, values.collect::<rusqlite::Result<Option<Counts>>>()?);
    }
    let found = findings.query_map([run], |row| Ok((row.get::<_, i64>(0)?, row.get(1)?)))?;
    let found = found.map(|found| {
        let (code, count) = found?;
        let code = Code::ALL.iter().find(|known| schema::key(**known) == code);
        Ok((code.map_or("unknown", |code| code.name()), count))
    });
    Ok(Line {
        run,
        cell: cell.0,
        settings: axes.zip(points).collect(),
        seed: row.get(2)?,
        verdict: row.get(3)?,
        error: row.get(4)?,
        ended_ticks: row.get(5)?,
        digest: format!("{:016x}", digest.cast_unsigned()),
        micros: if times { Some(row.get(7)?) } else { None },
        findings: found.collect::<rusqlite::Result<_>>()?,
        counts,
    })
}

fn heading(ledger: &Ledger, times: bool) -> Vec<String> {
    let mut columns = vec!["run".to_owned(), "cell".to_owned()];
    columns.extend(ledger.plan.axes.iter().map(|axis| format!("settings.{}", axis.name)));
    columns.extend(["seed", "verdict", "error", "ended_ticks", "digest"].map(str::to_owned));
    columns.extend(times.then(|| "micros".to_owned()));
    columns.extend(Code::ALL.iter().map(|code| format!("findings.{}", code.name())));
    for (table, names) in schema::wide_tables() {
        columns.extend(names.iter().map(|name| format!("{table}.{name}")));
    }
    columns
}

fn columns(ledger: &Ledger, line: &Line) -> Vec<String> {
    let mut columns = vec![line.run.to_string(), line.cell.to_string()];
    let axes = ledger.plan.axes.iter();
    columns.extend(axes.map(|axis| line.settings[axis.name.as_str()].to_owned()));
    columns.extend([
        line.seed.to_string(),
        line.verdict.clone(),
        line.error.clone().unwrap_or_default(),
        line.ended_ticks.to_string(),
        line.digest.clone(),
    ]);
    columns.extend(line.micros.map(|micros| micros.to_string()));
    let is_run = line.error.is_none();
    let found = |code: &Code| line.findings.get(code.name()).copied().unwrap_or(0).to_string();
    columns.extend(Code::ALL.iter().map(|code| if is_run { found(code) } else { String::new() }));
    for (table, names) in schema::wide_tables() {
        let counts = line.counts[table].as_ref();
        columns.extend(
            names
                .iter()
                .map(|name| counts.map_or(String::new(), |counts| counts[name].to_string())),
        );
    }
    columns
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use serde_json::Value;

    use super::*;
    use crate::sweep::execute::execute;
    use crate::sweep::execute::tests::{Scratch, check, swept};
    use crate::sweep::plan::tests::small;

    fn text(ledger: &Ledger, form: Form, times: bool) -> String {
        let mut bytes = Vec::new();
        export(ledger, form, times, &mut bytes).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    /// Run 10 is cell 3 (pages of 16, two ranks, padded up) with seed 6, run 11 with seed 7.
    #[test]
    fn both_forms_say_where_a_run_lies_and_what_it_found() {
        let path = Scratch::new("export");
        let (ledger, _) = swept(&path, 2);
        let csv = text(&ledger, Form::Csv, false);
        let lines: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
        assert_eq!(lines.len(), 1 + 18);
        assert!(lines.iter().all(|line| line.len() == lines[0].len()));
        let column = |name: &str| lines[0].iter().position(|known| *known == name).unwrap();
        for (name, expected) in [
            ("run", "11"),
            ("cell", "3"),
            ("settings.layout.ranks", "2"),
            ("settings.behaviour", "padded up"),
            ("seed", "7"),
            ("verdict", "defect"),
            ("error", ""),
            ("ended_ticks", "1007"),
            ("findings.placed.missing", "1"),
            ("findings.placed.twice", "0"),
            ("chances.transfers activated", "2"),
            ("marks.hit.unaligned", "1"),
            ("counters.requests", "2"),
        ] {
            assert_eq!(lines[12][column(name)], expected, "{name}");
        }
        let json = text(&ledger, Form::JsonLines, false);
        let run: Value = serde_json::from_str(json.lines().nth(11).unwrap()).unwrap();
        assert_eq!((&run["run"], &run["settings"]["layout.ranks"]), (&11.into(), &"2".into()));
        assert_eq!(run["findings"], serde_json::json!({ "placed.missing": 1 }));
        assert_eq!(run["chances"]["transfers activated"], 2);
        assert_eq!(run["digest"], lines[12][column("digest")]);
        assert!(run.get("micros").is_none());
    }

    #[test]
    fn wall_times_alone_differ_between_equal_sweeps() {
        let paths = [Scratch::new("export-one"), Scratch::new("export-two")];
        let [one, two] =
            [(&paths[0], 1), (&paths[1], 2)].map(|(path, threads)| swept(path, threads).0);
        for form in [Form::Csv, Form::JsonLines] {
            assert_eq!(text(&one, form, false), text(&two, form, false));
            assert!(text(&one, form, true).contains("micros"));
        }
    }

    #[test]
    fn a_run_that_could_not_be_run_has_its_reason_and_no_counts() {
        let path = Scratch::new("export-errors");
        let mut ledger = Ledger::start(&path.0, &small(), check).unwrap();
        let broken = |_: &_| Err("no \"trace\", none".to_owned());
        execute(&mut ledger, 1, &AtomicBool::new(false), broken, |_| {}).unwrap();
        let csv = text(&ledger, Form::Csv, true);
        let line = csv.lines().nth(1).unwrap();
        assert!(line.contains(",error,\"no \"\"trace\"\", none\",0,0000000000000000,"), "{line}");
        assert!(line.ends_with(",,,"), "{line}");
        let json = text(&ledger, Form::JsonLines, true);
        let run: Value = serde_json::from_str(json.lines().next().unwrap()).unwrap();
        assert_eq!((&run["error"], &run["marks"]), (&"no \"trace\", none".into(), &Value::Null));
    }
}
