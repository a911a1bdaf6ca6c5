//! A *ledger*: what the runs of one sweep left, as an SQLite file. `reports/README.md` describes
//! its tables.
//!
//! Each batch of runs is one transaction, so that a ledger holds only whole runs whenever the
//! process dies. Contents do not depend on the order in which runs were done, but for `micros`.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::hash::Hasher;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::types::{ToSql, Type, ValueRef};
use rusqlite::{Connection, ErrorCode, OpenFlags, Statement, Transaction, params};
use siphasher::sip::SipHasher13;

use super::cell::{CellId, RunId};
use super::column::{corrupt, signed, unsigned};
use super::due::DueRuns;
use super::plan::{Plan, PlanError, Sources};
use super::run_set::RunSet;
use super::schema::{self, key};
use super::shard::Shard;
use crate::finding::{Chance, FreeRun, Mark, Metric, Named, Run, Tally};
use crate::scenario::Scenario;

/// What a ledger's content is, but for wall times and the paths by which files were named.
const CONTENT: [&str; 9] = [
    "SELECT * FROM versions",
    "SELECT title, digest, runs, plan, base FROM plan",
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
    /// The file cannot be opened.
    #[error("{}: {source}", path.display())]
    Open {
        /// The ledger.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
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
    /// It belongs to another shard.
    #[error(
        "{}: must be a ledger of shard {expected}, got one of {found}; choose another file",
        path.display()
    )]
    OtherShard {
        /// The ledger.
        path: PathBuf,
        /// The shard to be done.
        expected: Shard,
        /// The one that it belongs to.
        found: Shard,
    },
    /// The plan in it does not parse.
    #[error("the plan in the ledger: {0}")]
    Plan(#[from] PlanError),
}

impl LedgerError {
    /// Whether there was no place left to write to.
    pub fn is_full(&self) -> bool {
        matches!(self, LedgerError::Sqlite { source, .. }
            if source.sqlite_error_code() == Some(ErrorCode::DiskFull))
    }
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
    /// The part of it that is done here.
    pub shard: Shard,
    pub(super) path: PathBuf,
    pub(super) db: Connection,
}

impl Ledger {
    /// The ledger of the whole of `plan` at `path`, as [`Ledger::start_shard`] makes it.
    pub fn start(
        path: &Path,
        plan: &Plan,
        check: impl Fn(&Scenario) -> Result<(), String>,
    ) -> Result<Ledger, LedgerError> {
        Ledger::start_shard(path, plan, Shard::WHOLE, check)
    }

    /// The ledger of a shard of `plan` at `path`: the one that is there, or a new one. No other
    /// process can use it before this one drops it or dies. `check` says why a cell's scenario
    /// cannot be run, if it cannot.
    pub fn start_shard(
        path: &Path,
        plan: &Plan,
        shard: Shard,
        check: impl Fn(&Scenario) -> Result<(), String>,
    ) -> Result<Ledger, LedgerError> {
        let mut db = connect_new(path)?;
        if schema::is_empty(&db).map_err(|source| sqlite(path, source))? {
            let reason = |cell| plan.impossible(cell, &check);
            create(&mut db, plan, shard, reason).map_err(|source| sqlite(path, source))?;
        }
        let there = Ledger::read(path, db)?;
        there.check_release()?;
        if there.plan.digest() != plan.digest() {
            return Err(LedgerError::OtherPlan { path: path.to_owned(), title: there.plan.title });
        }
        if there.shard != shard {
            let (path, found) = (path.to_owned(), there.shard);
            return Err(LedgerError::OtherShard { path, expected: shard, found });
        }
        Ok(there)
    }

    /// Refuses a ledger that another release wrote: what it found may differ.
    pub(super) fn check_release(&self) -> Result<(), LedgerError> {
        let version: String = self.one("SELECT kvseam FROM versions")?;
        if version == env!("CARGO_PKG_VERSION") {
            return Ok(());
        }
        Err(other_version(&self.path, format!("kvseam {version}")))
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
            let mut inserts = Inserts::new(&transaction)?;
            for record in records {
                inserts.insert(plan, record)?;
            }
            drop(inserts);
            transaction.commit()
        };
        write(&mut self.db, &self.plan).map_err(|source| sqlite(path, source))
    }

    /// Which runs it has.
    pub fn done(&self) -> Result<RunSet, LedgerError> {
        let mut done = RunSet::new(self.plan.runs());
        self.each("SELECT id FROM runs", |row| {
            done.insert(RunId(unsigned(row.get(0)?)));
            Ok(())
        })?;
        Ok(done)
    }

    /// Which runs it should have in the end.
    pub fn due(&self) -> Result<DueRuns, LedgerError> {
        let impossible = self.impossible()?;
        let cells = (0..self.plan.cells()).map(CellId);
        let possible = cells.filter(|cell| !impossible.contains_key(cell)).collect();
        Ok(DueRuns::new(&self.plan, possible, self.shard))
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

    /// The ledger in a file that is open.
    pub(super) fn read(path: &Path, db: Connection) -> Result<Ledger, LedgerError> {
        let other = schema::difference(&db).map_err(|source| sqlite(path, source))?;
        match other {
            None => (),
            Some(schema::Difference::NotALedger) => {
                return Err(LedgerError::NotALedger(path.to_owned()));
            }
            Some(schema::Difference::Version(found)) => return Err(other_version(path, found)),
        }
        let sql = "SELECT plan_path, plan, base_path, base, shard, shards FROM plan";
        let (sources, shard) = db
            .query_row(sql, [], |row| {
                let sources = Sources {
                    plan_path: PathBuf::from(row.get::<_, String>(0)?),
                    plan: row.get(1)?,
                    base_path: PathBuf::from(row.get::<_, String>(2)?),
                    base: row.get(3)?,
                };
                let (number, of) = (unsigned(row.get(4)?), unsigned(row.get(5)?));
                let shard = Shard::new(number, of)
                    .map_err(|reason| corrupt(4, Type::Integer, format!("shard: {reason}")))?;
                Ok((sources, shard))
            })
            .map_err(|source| sqlite(path, source))?;
        Ok(Ledger { plan: Plan::parse(sources)?, shard, path: path.to_owned(), db })
    }
}

pub(super) fn sqlite(path: &Path, source: rusqlite::Error) -> LedgerError {
    let path = path.to_owned();
    match source.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => LedgerError::NotALedger(path),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => LedgerError::InUse(path),
        Some(ErrorCode::CannotOpen) => match why_unopened(&path) {
            Some(source) => LedgerError::Open { path, source },
            None => LedgerError::Sqlite { path, source },
        },
        _ => LedgerError::Sqlite { path, source },
    }
}

/// What the system says of a file that SQLite cannot open, which says no more than that.
fn why_unopened(path: &Path) -> Option<std::io::Error> {
    if path.is_dir() {
        return Some(std::io::ErrorKind::IsADirectory.into());
    }
    // The folder of a file that is not there is what is missing, where it was to be made.
    OpenOptions::new().read(true).write(true).open(path).err()
}

fn other_version(path: &Path, found: String) -> LedgerError {
    LedgerError::OtherVersion {
        path: path.to_owned(),
        expected: format!("kvseam {} (schema {})", env!("CARGO_PKG_VERSION"), schema::SCHEMA),
        found,
    }
}

fn connect(path: &Path, flags: OpenFlags) -> Result<Connection, LedgerError> {
    let open = || {
        // One thread at a time holds a connection, as Rust sees to: no locks inside.
        let db = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
        // A rollback journal works on network file systems, too. A dead process never loses a
        // committed batch; without power the last one may be done again.
        db.pragma_update(None, "synchronous", "NORMAL")?;
        // What a row refers to is written before it, in the same transaction: to look for it again
        // at each row would cost a tenth of a batch.
        db.pragma_update(None, "foreign_keys", "OFF")?;
        Ok(db)
    };
    open().map_err(|source| sqlite(path, source))
}

/// The file at `path`, made where there is none, for this process alone.
pub(super) fn connect_new(path: &Path) -> Result<Connection, LedgerError> {
    let db = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE)?;
    keep(&db).map_err(|source| sqlite(path, source))?;
    Ok(db)
}

/// Locks the file until the connection ends. The system drops the lock of a process that was
/// killed.
fn keep(db: &Connection) -> rusqlite::Result<()> {
    // Another sweep holds its lock for hours: there is nothing to wait for.
    db.busy_timeout(Duration::ZERO)?;
    db.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
    db.execute_batch("BEGIN EXCLUSIVE; COMMIT")
}

fn create(
    db: &mut Connection,
    plan: &Plan,
    shard: Shard,
    reason: impl Fn(CellId) -> Option<String>,
) -> rusqlite::Result<()> {
    let transaction = db.transaction()?;
    schema::create(&transaction, plan, shard, reason)?;
    transaction.commit()
}

/// The statements that write one run, prepared once for a batch.
struct Inserts<'a> {
    run: Statement<'a>,
    finding: Statement<'a>,
    chances: Statement<'a>,
    counters: Statement<'a>,
    marks: Statement<'a>,
    free_runs: Statement<'a>,
}

impl<'a> Inserts<'a> {
    fn new(transaction: &'a Transaction) -> rusqlite::Result<Inserts<'a>> {
        let into = |table: &str, columns: usize| {
            let places = vec!["?"; columns].join(", ");
            transaction.prepare(&format!("INSERT INTO {table} VALUES ({places})"))
        };
        Ok(Inserts {
            run: into("runs", 8)?,
            finding: into("findings", 3)?,
            chances: into("chances", 1 + Chance::ALL.len())?,
            counters: into("counters", 1 + Metric::ALL.len())?,
            marks: into("marks", 1 + Mark::ALL.len())?,
            free_runs: into("free_runs", 3 + FreeRun::ALL.len())?,
        })
    }

    fn insert(&mut self, plan: &Plan, record: &Record) -> rusqlite::Result<()> {
        let run = signed(record.run.0);
        let (cell, seed) = plan.place(record.run);
        let (verdict, error, ended, digest) = match &record.outcome {
            Ok(left) => (left.findings.verdict(), None, left.ended.0, left.digest),
            Err(error) => ("error", Some(error), 0, 0),
        };
        self.run.execute(params![
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
            self.finding.execute(params![run, key(code), signed(kept.count)])?;
        }
        insert_wide(&mut self.chances, &[&run], &left.chances)?;
        insert_wide(&mut self.counters, &[&run], &left.metrics)?;
        insert_wide(&mut self.marks, &[&run], &left.marks)?;
        for (sample, pages) in &left.free_runs {
            let key: [&dyn ToSql; 3] = [&run, &sample.side.name(), &signed(sample.part)];
            insert_wide(&mut self.free_runs, &key, pages)?;
        }
        Ok(())
    }
}

/// A row of a key and a column for every item of a closed list.
fn insert_wide<K: Named>(
    statement: &mut Statement,
    key: &[&dyn ToSql],
    tally: &Tally<K>,
) -> rusqlite::Result<()> {
    for (column, value) in (1..).zip(key) {
        statement.raw_bind_parameter(column, value)?;
    }
    for (column, (_, count)) in (key.len() + 1..).zip(tally.iter()) {
        statement.raw_bind_parameter(column, signed(count))?;
    }
    statement.raw_execute()?;
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

#[cfg(test)]
mod tests {
    use rusqlite::ffi;

    use super::*;

    #[test]
    fn only_a_ledger_without_place_left_is_full() {
        let refused = |code| {
            sqlite(Path::new("x"), rusqlite::Error::SqliteFailure(ffi::Error::new(code), None))
        };
        assert!(refused(ffi::SQLITE_FULL).is_full());
        assert!(!refused(ffi::SQLITE_CORRUPT).is_full());
    }
}
