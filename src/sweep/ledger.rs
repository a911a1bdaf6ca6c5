//! A *ledger*: what the runs of one sweep left, as an SQLite file.
//!
//! | table | a row | columns |
//! |---|---|---|
//! | `plan` | the sweep | kvseam (version), title, digest, runs, plan and base (both files' texts), plan_path, base_path |
//! | `cells` | a cell | id, settings (JSON: axis → point), reason (why it is impossible, or null) |
//! | `runs` | a run | id, cell, seed, verdict (`clean`, `defect`, `error`), error (text or null), ended (tick), digest, micros (wall time) |
//! | `codes` | a code | id, name, severity, unit, chance |
//! | `findings` | a code found by a run | run, code, count |
//! | `chances`, `counters`, `marks` | a run without error | run, then a column for every chance, metric or mark |
//! | `free_runs` | a sample of a run's pools | run, side (`prefill`, `decode`), part (1 to 4 quarters of the requests have arrived), then the free pages in runs of each length |
//!
//! `PRAGMA user_version` is [`SCHEMA`]. A column costs one byte a run while it is 0 or 1, which is
//! a fifth of what a row for every count other than zero takes, and one insertion instead of fifty.
//!
//! Each batch of runs is one transaction, so that a ledger holds only whole runs whenever the process
//! dies. Contents do not depend on the order in which runs were done, but for `micros`.
//!
//! How often a code was found, by cell:
//!
//! ```sql
//! SELECT cells.settings, codes.name, count(*) AS runs, sum(findings.count) AS findings
//! FROM findings JOIN runs ON runs.id = run JOIN codes ON codes.id = code JOIN cells ON cells.id = cell
//! GROUP BY cell, code ORDER BY runs DESC;
//! ```
//!
//! The first runs with a defect, and the hit rate by cell:
//!
//! ```sql
//! SELECT settings, seed FROM runs JOIN cells ON cells.id = cell WHERE verdict = 'defect' LIMIT 10;
//! SELECT settings, 1.0 * sum(decode_hit_tokens) / sum(prompt_tokens) AS hit_rate
//! FROM counters JOIN runs ON runs.id = run JOIN cells ON cells.id = cell GROUP BY cell;
//! ```

use std::collections::BTreeMap;
use std::hash::Hasher;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, OpenFlags, Transaction, params, params_from_iter};
use siphasher::sip::SipHasher13;

use super::plan::{CellId, Plan, PlanError, RunId, Sources};
use crate::finding::{Chance, Code, Findings, FreeRun, Mark, Metric, Named, Run, Severity, Tally};
use crate::scenario::Scenario;

/// The version of the tables.
pub const SCHEMA: i64 = 2;

/// Marks an SQLite file as a ledger: "kvsl" in ASCII.
const APPLICATION: i64 = 0x6b76_736c;

const TABLES: &str = "
CREATE TABLE plan (
    kvseam TEXT NOT NULL, title TEXT NOT NULL, digest INTEGER NOT NULL, runs INTEGER NOT NULL,
    plan TEXT NOT NULL, base TEXT NOT NULL, plan_path TEXT NOT NULL, base_path TEXT NOT NULL
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

/// What a ledger's content is, but for wall times and the paths by which files were named.
const CONTENT: [&str; 8] = [
    "SELECT kvseam, title, digest, runs, plan, base FROM plan",
    "SELECT id, settings, reason FROM cells ORDER BY id",
    "SELECT id, cell, seed, verdict, error, ended, digest FROM runs ORDER BY id",
    "SELECT run, code, count FROM findings ORDER BY run, code",
    "SELECT * FROM chances ORDER BY run",
    "SELECT * FROM counters ORDER BY run",
    "SELECT * FROM marks ORDER BY run",
    "SELECT * FROM free_runs ORDER BY run, side, part",
];

/// Why a ledger cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// SQLite said no.
    #[error("{}: {source}", path.display())]
    Sqlite {
        /// The ledger.
        path: PathBuf,
        /// What it said.
        source: rusqlite::Error,
    },
    /// Another process fills it.
    #[error("{}: the ledger is in use by another sweep", .0.display())]
    InUse(PathBuf),
    /// The file is something else.
    #[error("{}: must be a ledger of kvseam, got another kind of file", .0.display())]
    NotALedger(PathBuf),
    /// It was written by another release.
    #[error("{}: must be a ledger of {expected}, got one of {found}", path.display())]
    OtherVersion {
        /// The ledger.
        path: PathBuf,
        /// This release.
        expected: String,
        /// The one that wrote it.
        found: String,
    },
    /// It belongs to another plan, or to an earlier text of this one.
    #[error(
        "{}: must be a ledger of this plan, got one of another (its title is \"{title}\"); \
         choose another file, or put the plan and its base scenario back as they were",
        path.display()
    )]
    OtherPlan {
        /// The ledger.
        path: PathBuf,
        /// Title of the plan that it belongs to.
        title: String,
    },
    /// The plan in it does not parse.
    #[error("the plan in the ledger: {0}")]
    Plan(#[from] PlanError),
}

/// What one run left, and how long it took.
#[derive(Clone, Debug)]
pub struct Record {
    /// Which run.
    pub run: RunId,
    /// What it left, or why it could not be run.
    pub outcome: Result<Run, String>,
    /// Wall time in microseconds.
    pub micros: u64,
}

/// A ledger, open.
pub struct Ledger {
    /// The plan that it belongs to.
    pub plan: Plan,
    pub(super) path: PathBuf,
    pub(super) db: Connection,
}

impl Ledger {
    /// The ledger of `plan` at `path`: the one that is there, or a new one. No other process can use
    /// it before this one drops it or dies. `check` says why a cell's
    /// scenario cannot be run, if it cannot.
    pub fn start(
        path: &Path,
        plan: &Plan,
        check: impl Fn(&Scenario) -> Result<(), String>,
    ) -> Result<Ledger, LedgerError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
        let mut db = connect(path, flags)?;
        keep(&db).map_err(|source| sqlite(path, source))?;
        if is_empty(&db).map_err(|source| sqlite(path, source))? {
            create(&mut db, plan, check).map_err(|source| sqlite(path, source))?;
        }
        let there = Ledger::read(path, db)?;
        let version: String = there.one("SELECT kvseam FROM plan")?;
        if version != env!("CARGO_PKG_VERSION") {
            return Err(other_version(path, format!("kvseam {version}")));
        }
        if there.plan.digest() != plan.digest() {
            return Err(LedgerError::OtherPlan { path: path.to_owned(), title: there.plan.title });
        }
        Ok(there)
    }

    /// The ledger that is at `path`.
    pub fn open(path: &Path) -> Result<Ledger, LedgerError> {
        // Writable, as a killed sweep leaves a journal that the next reader plays back.
        Ledger::read(path, connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?)
    }

    /// Where it lies, as it was named.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes runs, all or none of them.
    pub fn append(&mut self, records: &[Record]) -> Result<(), LedgerError> {
        let path = &self.path;
        let write = |db: &mut Connection, plan: &Plan| {
            let transaction = db.transaction()?;
            for record in records {
                insert(&transaction, plan, record)?;
            }
            transaction.commit()
        };
        write(&mut self.db, &self.plan).map_err(|source| sqlite(path, source))
    }

    /// Which runs it has, by number.
    pub fn done(&self) -> Result<Vec<bool>, LedgerError> {
        let runs = usize::try_from(self.plan.runs()).expect("limits::SWEEP_RUNS");
        let mut done = vec![false; runs];
        self.each("SELECT id FROM runs", |row| {
            let id: i64 = row.get(0)?;
            if let Some(entry) = usize::try_from(id).ok().and_then(|id| done.get_mut(id)) {
                *entry = true;
            }
            Ok(())
        })?;
        Ok(done)
    }

    /// Cells that cannot be run, with the reason.
    pub fn impossible(&self) -> Result<BTreeMap<CellId, String>, LedgerError> {
        let mut cells = BTreeMap::new();
        let sql = "SELECT id, reason FROM cells WHERE reason IS NOT NULL";
        self.each(sql, |row| {
            cells.insert(CellId(unsigned(row.get(0)?)), row.get(1)?);
            Ok(())
        })?;
        Ok(cells)
    }

    /// Digest of everything but wall times and the paths by which files were named: equal for equal
    /// sweeps, however many threads did them and however often they were stopped.
    pub fn content_digest(&self) -> Result<u64, LedgerError> {
        let mut hasher = SipHasher13::new();
        for sql in CONTENT {
            hasher.write(sql.as_bytes());
            self.each(sql, |row| {
                for column in 0..row.as_ref().column_count() {
                    hash(&mut hasher, row.get_ref(column)?);
                }
                Ok(())
            })?;
        }
        Ok(hasher.finish())
    }

    /// Calls `visit` with every row of a query.
    pub(super) fn each(
        &self,
        sql: &str,
        mut visit: impl FnMut(&rusqlite::Row) -> rusqlite::Result<()>,
    ) -> Result<(), LedgerError> {
        let mut all = || {
            let mut statement = self.db.prepare(sql)?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                visit(row)?;
            }
            Ok(())
        };
        all().map_err(|source| sqlite(&self.path, source))
    }

    pub(super) fn one<T: rusqlite::types::FromSql>(&self, sql: &str) -> Result<T, LedgerError> {
        self.db.query_row(sql, [], |row| row.get(0)).map_err(|source| sqlite(&self.path, source))
    }

    fn read(path: &Path, db: Connection) -> Result<Ledger, LedgerError> {
        check_format(path, &db)?;
        let sql = "SELECT plan_path, plan, base_path, base FROM plan";
        let sources = db
            .query_row(sql, [], |row| {
                Ok(Sources {
                    plan_path: PathBuf::from(row.get::<_, String>(0)?),
                    plan: row.get(1)?,
                    base_path: PathBuf::from(row.get::<_, String>(2)?),
                    base: row.get(3)?,
                })
            })
            .map_err(|source| sqlite(path, source))?;
        Ok(Ledger { plan: Plan::parse(sources)?, path: path.to_owned(), db })
    }
}

/// Whether what a run found is a defect, as the `verdict` column spells it.
pub fn verdict(findings: &Findings) -> &'static str {
    if findings.is_clean() { "clean" } else { "defect" }
}

/// A count read back. Counts are written from `u64`s below 2^63.
pub(super) fn unsigned(value: i64) -> u64 {
    value.cast_unsigned()
}

fn signed(value: u64) -> i64 {
    i64::try_from(value).expect("counts, seeds and ticks stay below 2^63")
}

fn sqlite(path: &Path, source: rusqlite::Error) -> LedgerError {
    use rusqlite::ErrorCode::{DatabaseBusy, DatabaseLocked, NotADatabase};
    let path = path.to_owned();
    match source.sqlite_error_code() {
        Some(NotADatabase) => LedgerError::NotALedger(path),
        Some(DatabaseBusy | DatabaseLocked) => LedgerError::InUse(path),
        _ => LedgerError::Sqlite { path, source },
    }
}

fn other_version(path: &Path, found: String) -> LedgerError {
    LedgerError::OtherVersion {
        path: path.to_owned(),
        expected: format!("kvseam {} (schema {SCHEMA})", env!("CARGO_PKG_VERSION")),
        found,
    }
}

fn connect(path: &Path, flags: OpenFlags) -> Result<Connection, LedgerError> {
    let open = || {
        let db = Connection::open_with_flags(path, flags)?;
        // A rollback journal works on network file systems, too. A dead process never loses a
        // committed batch; without power the last one may be done again.
        db.pragma_update(None, "synchronous", "NORMAL")?;
        Ok(db)
    };
    open().map_err(|source| sqlite(path, source))
}

/// Locks the file until the connection ends. The system drops the lock of a process that was killed.
fn keep(db: &Connection) -> rusqlite::Result<()> {
    // Another sweep holds its lock for hours: there is nothing to wait for.
    db.busy_timeout(Duration::ZERO)?;
    db.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
    db.execute_batch("BEGIN EXCLUSIVE; COMMIT")
}

fn pragma(db: &Connection, name: &str) -> rusqlite::Result<i64> {
    db.pragma_query_value(None, name, |row| row.get(0))
}

fn is_empty(db: &Connection) -> rusqlite::Result<bool> {
    let tables: i64 = db.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    Ok(tables == 0 && pragma(db, "application_id")? == 0)
}

fn check_format(path: &Path, db: &Connection) -> Result<(), LedgerError> {
    let fail = |source| sqlite(path, source);
    if pragma(db, "application_id").map_err(fail)? != APPLICATION {
        return Err(LedgerError::NotALedger(path.to_owned()));
    }
    let schema = pragma(db, "user_version").map_err(fail)?;
    if schema != SCHEMA {
        return Err(other_version(path, format!("schema {schema}")));
    }
    let keyed = wide_tables().map(|(table, columns)| (table, 1, columns));
    let free_runs = ("free_runs", 3, names::<FreeRun>());
    for (table, keys, expected) in keyed.into_iter().chain([free_runs]) {
        let sql = format!("SELECT * FROM {table} LIMIT 0");
        let statement = db.prepare(&sql).map_err(fail)?;
        if !statement.column_names().skip(keys).eq(expected) {
            let found = format!("another release (other columns in `{table}`)");
            return Err(other_version(path, found));
        }
    }
    Ok(())
}

fn names<K: Named>() -> Vec<&'static str> {
    K::ALL.iter().map(|item| item.name()).collect()
}

fn wide_tables() -> [(&'static str, Vec<&'static str>); 3] {
    [("chances", names::<Chance>()), ("counters", names::<Metric>()), ("marks", names::<Mark>())]
}

/// The columns of a table for these counts.
fn counts(names: &[&str]) -> String {
    names.iter().map(|name| format!(", \"{name}\" INTEGER NOT NULL")).collect()
}

fn create(
    db: &mut Connection,
    plan: &Plan,
    check: impl Fn(&Scenario) -> Result<(), String>,
) -> rusqlite::Result<()> {
    let transaction = db.transaction()?;
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
        "INSERT INTO plan VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        params![
            env!("CARGO_PKG_VERSION"),
            plan.title,
            plan.digest().cast_signed(),
            signed(plan.runs()),
            plan.sources.plan,
            plan.sources.base,
            plan.sources.plan_path.display().to_string(),
            plan.sources.base_path.display().to_string(),
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
    insert_cells(&transaction, plan, check)?;
    transaction.commit()
}

fn insert_cells(
    transaction: &Transaction,
    plan: &Plan,
    check: impl Fn(&Scenario) -> Result<(), String>,
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
        let reason = plan.scenario(cell).and_then(|scenario| check(&scenario)).err();
        statement.execute(params![signed(cell.0), settings, reason])?;
    }
    Ok(())
}

fn key(code: Code) -> i64 {
    signed(code.index() as u64)
}

fn insert(transaction: &Transaction, plan: &Plan, record: &Record) -> rusqlite::Result<()> {
    let run = signed(record.run.0);
    let (cell, seed) = plan.place(record.run);
    let (verdict, error, ended, digest) = match &record.outcome {
        Ok(left) => (verdict(&left.findings), None, left.ended.0, left.digest),
        Err(error) => ("error", Some(error), 0, 0),
    };
    transaction
        .prepare_cached("INSERT INTO runs VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)")?
        .execute(params![
            run,
            signed(cell.0),
            signed(seed),
            verdict,
            error,
            signed(ended),
            digest.cast_signed(),
            signed(record.micros),
        ])?;
    let Ok(left) = &record.outcome else {
        return Ok(());
    };
    for (code, kept) in left.findings.iter() {
        transaction
            .prepare_cached("INSERT INTO findings VALUES (?1, ?2, ?3)")?
            .execute(params![run, key(code), signed(kept.count)])?;
    }
    let run = [Value::from(run)];
    insert_wide(transaction, "chances", &run, &left.chances)?;
    insert_wide(transaction, "counters", &run, &left.metrics)?;
    insert_wide(transaction, "marks", &run, &left.marks)?;
    for (sample, pages) in &left.free_runs {
        let [run] = run.clone();
        let key = [run, sample.side.name().to_owned().into(), signed(sample.part).into()];
        insert_wide(transaction, "free_runs", &key, pages)?;
    }
    Ok(())
}

fn insert_wide<K: Named>(
    transaction: &Transaction,
    table: &str,
    key: &[Value],
    tally: &Tally<K>,
) -> rusqlite::Result<()> {
    let places = vec!["?"; key.len() + K::ALL.len()].join(", ");
    let counts = tally.iter().map(|(_, count)| Value::from(signed(count)));
    transaction
        .prepare_cached(&format!("INSERT INTO {table} VALUES ({places})"))?
        .execute(params_from_iter(key.iter().cloned().chain(counts)))?;
    Ok(())
}

fn hash(hasher: &mut SipHasher13, value: ValueRef) {
    match value {
        ValueRef::Null => hasher.write_u8(0),
        ValueRef::Integer(number) => {
            hasher.write_u8(1);
            hasher.write_i64(number);
        }
        ValueRef::Real(number) => {
            hasher.write_u8(2);
            hasher.write_u64(number.to_bits());
        }
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
            hasher.write_u8(3);
            hasher.write_u64(bytes.len() as u64);
            hasher.write(bytes);
        }
    }
}
