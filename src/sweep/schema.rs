//! The tables of a ledger: making them, and telling those of another release.

use rusqlite::{Connection, Transaction, params};

use super::cell::CellId;
use super::column::signed;
use super::plan::{self, Plan};
use super::shard::Shard;
use crate::finding::{Chance, Code, FreeRun, Mark, Metric, Named, Severity};
use crate::scenario;

/// The version of the tables.
pub(super) const SCHEMA: i64 = 2;

/// Marks an SQLite file as a ledger: "kvsl" in ASCII.
const APPLICATION: i64 = 0x6b76_736c;

const TABLES: &str = "
CREATE TABLE versions (
    kvseam TEXT NOT NULL, ledger INTEGER NOT NULL, plan INTEGER NOT NULL, scenario INTEGER NOT NULL
) STRICT;
CREATE TABLE plan (
    title TEXT NOT NULL, digest INTEGER NOT NULL, runs INTEGER NOT NULL,
    plan TEXT NOT NULL, base TEXT NOT NULL, plan_path TEXT NOT NULL, base_path TEXT NOT NULL,
    shard INTEGER NOT NULL, shards INTEGER NOT NULL
) STRICT;
CREATE TABLE cells (id INTEGER PRIMARY KEY, settings TEXT NOT NULL, reason TEXT) STRICT;
CREATE TABLE runs (
    id INTEGER PRIMARY KEY, cell INTEGER NOT NULL REFERENCES cells, seed INTEGER NOT NULL,
    verdict TEXT NOT NULL, error TEXT, ended INTEGER NOT NULL, digest INTEGER NOT NULL,
    micros INTEGER NOT NULL
) STRICT;
CREATE TABLE codes (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL, severity TEXT NOT NULL, unit TEXT NOT NULL,
    chance TEXT NOT NULL
) STRICT;
CREATE TABLE findings (
    run INTEGER NOT NULL REFERENCES runs, code INTEGER NOT NULL REFERENCES codes,
    count INTEGER NOT NULL, PRIMARY KEY (run, code)
) STRICT, WITHOUT ROWID;
";

fn pragma(db: &Connection, name: &str) -> rusqlite::Result<i64> {
    db.pragma_query_value(None, name, |row| row.get(0))
}

/// Whether nothing was ever written to the file.
pub(super) fn is_empty(db: &Connection) -> rusqlite::Result<bool> {
    let tables: i64 = db.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    Ok(tables == 0 && pragma(db, "application_id")? == 0)
}

/// How a file differs from a ledger of this release.
pub(super) enum Difference {
    /// In kind.
    NotALedger,
    /// In its tables, which are of this version.
    Version(String),
}

/// What keeps a file from being read as a ledger of this release, if anything does.
pub(super) fn difference(db: &Connection) -> rusqlite::Result<Option<Difference>> {
    if pragma(db, "application_id")? != APPLICATION {
        return Ok(Some(Difference::NotALedger));
    }
    let schema = pragma(db, "user_version")?;
    if schema != SCHEMA {
        return Ok(Some(Difference::Version(format!("schema {schema}"))));
    }
    let keyed = wide_tables().map(|(table, columns)| (table, 1, columns));
    let free_runs = ("free_runs", 3, names::<FreeRun>());
    for (table, keys, expected) in keyed.into_iter().chain([free_runs]) {
        let sql = format!("SELECT * FROM {table} LIMIT 0");
        let statement = db.prepare(&sql)?;
        if !statement.column_names().skip(keys).eq(expected) {
            let found = format!("another release (other columns in `{table}`)");
            return Ok(Some(Difference::Version(found)));
        }
    }
    Ok(None)
}

fn names<K: Named>() -> Vec<&'static str> {
    K::ALL.iter().map(|item| item.name()).collect()
}

/// The tables with a column for every item of a closed list.
pub(super) fn wide_tables() -> [(&'static str, Vec<&'static str>); 3] {
    [("chances", names::<Chance>()), ("counters", names::<Metric>()), ("marks", names::<Mark>())]
}

/// The columns of a table for these counts.
fn counts(names: &[&str]) -> String {
    names.iter().map(|name| format!(", \"{name}\" INTEGER NOT NULL")).collect()
}

/// Makes the tables and fills those that are known before any run. `reason` says why a cell is not
/// run.
pub(super) fn create(
    transaction: &Transaction,
    plan: &Plan,
    shard: Shard,
    reason: impl Fn(CellId) -> Option<String>,
) -> rusqlite::Result<()> {
    transaction.pragma_update(None, "application_id", APPLICATION)?;
    transaction.pragma_update(None, "user_version", SCHEMA)?;
    transaction.execute_batch(TABLES)?;
    for (table, columns) in wide_tables() {
        let columns = counts(&columns);
        transaction.execute_batch(&format!(
            "CREATE TABLE {table} (run INTEGER PRIMARY KEY REFERENCES runs{columns}) STRICT;"
        ))?;
    }
    let lengths = counts(&names::<FreeRun>());
    transaction.execute_batch(&format!(
        "CREATE TABLE free_runs (
            run INTEGER NOT NULL REFERENCES runs, side TEXT NOT NULL,
            part INTEGER NOT NULL{lengths}, PRIMARY KEY (run, side, part)
        ) STRICT, WITHOUT ROWID;"
    ))?;
    transaction.execute(
        "INSERT INTO versions VALUES (?1, ?2, ?3, ?4)",
        params![env!("CARGO_PKG_VERSION"), SCHEMA, plan::VERSION, scenario::VERSION],
    )?;
    transaction.execute(
        "INSERT INTO plan VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        params![
            plan.title,
            plan.digest().cast_signed(),
            signed(plan.runs()),
            plan.sources.plan,
            plan.sources.base,
            plan.sources.plan_path.display().to_string(),
            plan.sources.base_path.display().to_string(),
            signed(shard.number),
            signed(shard.of),
        ],
    )?;
    for &code in Code::ALL {
        let severity = match code.severity() {
            Severity::Defect => "defect",
            Severity::Expected => "expected",
        };
        transaction.execute(
            "INSERT INTO codes VALUES (?1, ?2, ?3, ?4, ?5)",
            params![key(code), code.name(), severity, code.unit(), code.chance().name()],
        )?;
    }
    insert_cells(transaction, plan, reason)
}

fn insert_cells(
    transaction: &Transaction,
    plan: &Plan,
    reason: impl Fn(CellId) -> Option<String>,
) -> rusqlite::Result<()> {
    let mut statement = transaction.prepare("INSERT INTO cells VALUES (?1, ?2, ?3)")?;
    for cell in (0..plan.cells()).map(CellId) {
        let settings: serde_json::Map<String, serde_json::Value> = plan
            .axes
            .iter()
            .zip(plan.points(cell))
            .map(|(axis, point)| (axis.name.clone(), point.name.clone().into()))
            .collect();
        let settings = serde_json::Value::Object(settings).to_string();
        statement.execute(params![signed(cell.0), settings, reason(cell)])?;
    }
    Ok(())
}

/// The id of a code in a ledger.
pub(super) fn key(code: Code) -> i64 {
    signed(code.index() as u64)
}

/// The tables with rows for every run, and the column with the run's number.
pub(super) const TABLES_OF_RUNS: [(&str, &str); 6] = [
    ("runs", "id"),
    ("findings", "run"),
    ("chances", "run"),
    ("counters", "run"),
    ("marks", "run"),
    ("free_runs", "run"),
];
