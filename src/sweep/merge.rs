//! Joins the ledgers of shards into one, as if one machine had done the sweep.

use std::fmt;
use std::path::{Path, PathBuf};

use rusqlite::types::Value;
use rusqlite::{Connection, Transaction, params_from_iter};

use super::cell::RunId;
use super::column::unsigned;
use super::ledger::{Ledger, LedgerError, connect_new, sqlite};
use super::run_set::RunSet;
use super::schema;
use super::shard::Shard;

/// Runs, by number, that are copied at a time: in order over all shards, and in bounded memory.
const WINDOW: u64 = 8_192;

/// Why ledgers cannot be joined.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    /// One of them, or the new one, cannot be used.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// There is none.
    #[error("must be one ledger or more, got none")]
    Nothing,
    /// Two belong to different plans.
    #[error(
        "{}: must be a ledger of the plan of {}, got one of another (its title is \"{title}\")",
        path.display(),
        first.display()
    )]
    OtherPlan {
        /// The first ledger.
        first: PathBuf,
        /// The one that differs.
        path: PathBuf,
        /// Title of its plan.
        title: String,
    },
    /// Two hold the same runs.
    #[error(
        "{}: must hold no run of another ledger, got {runs} that {} holds, too (the first is run \
         {run}: {place})",
        path.display(),
        other.display()
    )]
    Overlap {
        /// A ledger.
        path: PathBuf,
        /// The one given before it that holds the first of these runs.
        other: PathBuf,
        /// How many runs.
        runs: u64,
        /// The first.
        run: u64,
        /// Its cell and seed.
        place: String,
    },
    /// Something is where the new ledger is to be.
    #[error("{}: must be a new file, got a ledger", .0.display())]
    Exists(PathBuf),
}

/// Runs that no ledger holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The shard that should have them.
    pub shard: Shard,
    /// Whether a ledger of this shard was given.
    pub is_given: bool,
    /// How many are missing.
    pub runs: u64,
    /// How many the shard should have.
    pub due: u64,
    /// The first that is missing.
    pub first: RunId,
    /// Its cell and seed.
    pub place: String,
}

/// Joins the ledgers at `paths` into a new one at `out`, which is written whole or not at all. What
/// no ledger holds is left to do there, and returned; where the plan has a budget of time, a given
/// shard may lack runs.
pub fn merge(paths: &[PathBuf], out: &Path) -> Result<(Ledger, Vec<Gap>), MergeError> {
    let ledgers = paths.iter().map(|path| open(path)).collect::<Result<Vec<_>, _>>()?;
    let first = ledgers.first().ok_or(MergeError::Nothing)?;
    for ledger in &ledgers {
        if ledger.plan.digest() != first.plan.digest() {
            return Err(MergeError::OtherPlan {
                first: first.path.clone(),
                path: ledger.path.clone(),
                title: ledger.plan.title.clone(),
            });
        }
    }
    let done = union(&ledgers)?;
    let impossible = first.impossible()?;
    let mut db = connect_new(out)?;
    let fail = |source| sqlite(out, source);
    if !schema::is_empty(&db).map_err(fail)? {
        return Err(MergeError::Exists(out.to_owned()));
    }
    let transaction = db.transaction().map_err(fail)?;
    let reason = |cell| impossible.get(&cell).cloned();
    schema::create(&transaction, &first.plan, Shard::WHOLE, reason).map_err(fail)?;
    for start in (0..first.plan.runs()).step_by(usize::try_from(WINDOW).expect("a small number")) {
        copy(&ledgers, &transaction, start, out)?;
    }
    transaction.commit().map_err(fail)?;
    let merged = Ledger::read(out, db)?;
    let gaps = gaps(&merged, &ledgers, &done)?;
    Ok((merged, gaps))
}

fn open(path: &Path) -> Result<Ledger, LedgerError> {
    let ledger = Ledger::open(path)?;
    ledger.check_release()?;
    // Hundreds may be open at once, and each is read once from its start to its end.
    let small = ledger.db.pragma_update(None, "cache_size", 64);
    small.map_err(|source| sqlite(path, source))?;
    Ok(ledger)
}

/// The runs of all ledgers, of which no two may hold the same.
fn union(ledgers: &[Ledger]) -> Result<RunSet, MergeError> {
    let mut all = RunSet::new(ledgers[0].plan.runs());
    for (index, ledger) in ledgers.iter().enumerate() {
        let mut first = None;
        let mut runs = 0;
        ledger.each("SELECT id FROM runs ORDER BY id", |row| {
            let run = RunId(unsigned(row.get(0)?));
            if !all.insert(run) {
                runs += 1;
                first.get_or_insert(run);
            }
            Ok(())
        })?;
        if let Some(run) = first {
            return Err(overlap(&ledgers[..index], ledger, runs, run)?);
        }
    }
    Ok(all)
}

fn overlap(
    before: &[Ledger],
    ledger: &Ledger,
    runs: u64,
    run: RunId,
) -> Result<MergeError, LedgerError> {
    let mut other = ledger;
    for earlier in before {
        let sql = format!("SELECT count(*) FROM runs WHERE id = {}", run.0);
        if earlier.one::<i64>(&sql)? > 0 {
            other = earlier;
        }
    }
    Ok(MergeError::Overlap {
        path: ledger.path.clone(),
        other: other.path.clone(),
        runs,
        run: run.0,
        place: place(ledger, run),
    })
}

fn place(ledger: &Ledger, run: RunId) -> String {
    let (cell, seed) = ledger.plan.place(run);
    let settings = ledger.plan.describe(cell);
    if settings.is_empty() { format!("seed {seed}") } else { format!("{settings}, seed {seed}") }
}

/// Copies the rows of the runs from `start` on, ordered by run.
fn copy(ledgers: &[Ledger], to: &Transaction, start: u64, out: &Path) -> Result<(), LedgerError> {
    for (table, run) in schema::TABLES_OF_RUNS {
        let sql =
            format!("SELECT * FROM {table} WHERE {run} >= {start} AND {run} < {}", start + WINDOW);
        let mut rows: Vec<Vec<Value>> = Vec::new();
        for ledger in ledgers {
            ledger.each(&sql, |row| {
                let columns = row.as_ref().column_count();
                rows.push((0..columns).map(|column| row.get(column)).collect::<Result<_, _>>()?);
                Ok(())
            })?;
        }
        rows.sort_by_key(|row| match row[0] {
            Value::Integer(run) => run,
            _ => 0,
        });
        insert(to, table, &rows).map_err(|source| sqlite(out, source))?;
    }
    Ok(())
}

fn insert(to: &Connection, table: &str, rows: &[Vec<Value>]) -> rusqlite::Result<()> {
    let Some(first) = rows.first() else { return Ok(()) };
    let places = vec!["?"; first.len()].join(", ");
    let mut statement = to.prepare_cached(&format!("INSERT INTO {table} VALUES ({places})"))?;
    for row in rows {
        statement.execute(params_from_iter(row))?;
    }
    Ok(())
}

/// What is missing, by shard where all ledgers are shards of as many.
fn gaps(merged: &Ledger, ledgers: &[Ledger], done: &RunSet) -> Result<Vec<Gap>, LedgerError> {
    let of = ledgers[0].shard.of;
    let of = if ledgers.iter().all(|ledger| ledger.shard.of == of) { of } else { 1 };
    let is_timed = merged.plan.budget.seconds.is_some();
    let due = merged.due()?;
    let mut gaps: Vec<Option<Gap>> = vec![None; usize::try_from(of).expect("limits::SHARDS")];
    for run in due.runs().filter(|&run| !done.contains(run)) {
        let shard = Shard { number: run.0 % of + 1, of };
        let entry = &mut gaps[usize::try_from(run.0 % of).expect("limits::SHARDS")];
        let gap = entry.get_or_insert_with(|| Gap {
            shard,
            is_given: ledgers.iter().any(|ledger| ledger.shard == shard),
            runs: 0,
            due: due.of(shard).count(),
            first: run,
            place: place(merged, run),
        });
        gap.runs += 1;
    }
    Ok(gaps.into_iter().flatten().filter(|gap| !(is_timed && gap.is_given)).collect())
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Gap { shard, is_given, runs, due, first, place } = self;
        if shard.is_whole() {
            write!(f, "{runs} of {due} runs are missing")?;
        } else if *is_given {
            write!(f, "shard {shard} lacks {runs} of {due} runs")?;
        } else {
            write!(f, "shard {shard} is missing with its {due} runs")?;
        }
        write!(f, ", the first is run {}: {place}", first.0)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

    use super::*;
    use crate::sweep::execute::execute;
    use crate::sweep::execute::tests::{Scratch, check, fake, swept};
    use crate::sweep::plan::Plan;
    use crate::sweep::plan::tests::{PLAN, small, sources};

    /// A shard's ledger, stopped after so many runs.
    fn shard(name: &str, plan: &Plan, shard: &str, runs: u64) -> Scratch {
        let path = Scratch::new(&format!("{name}-{}", shard.replace('/', "of")));
        let (stop, calls) = (AtomicBool::new(runs == 0), AtomicU64::new(0));
        let mut ledger = Ledger::start_shard(&path.0, plan, shard.parse().unwrap(), check).unwrap();
        let counted = |scenario: &_| {
            stop.store(calls.fetch_add(1, Ordering::Relaxed) + 1 >= runs, Ordering::Relaxed);
            fake(scenario)
        };
        execute(&mut ledger, 1, &stop, counted, |_| {}).unwrap();
        path
    }

    fn shards(name: &str, of: u64) -> Vec<Scratch> {
        (1..=of).map(|k| shard(name, &small(), &format!("{k}/{of}"), u64::MAX)).collect()
    }

    fn paths(shards: &[Scratch]) -> Vec<PathBuf> {
        shards.iter().map(|shard| shard.0.clone()).collect()
    }

    #[test]
    fn shards_make_the_ledger_of_one_sweep_in_any_order() {
        let whole = Scratch::new("merge-whole");
        let digest = swept(&whole, 1).0.content_digest().unwrap();
        for of in [1, 2, 4, 5] {
            let shards = shards("merge", of);
            let out = Scratch::new("merged");
            let mut paths = paths(&shards);
            paths.reverse();
            let (merged, gaps) = merge(&paths, &out.0).unwrap();
            assert_eq!(gaps, []);
            assert_eq!(merged.content_digest().unwrap(), digest, "{of} shards");
            assert_eq!(merged.summaries().unwrap()[3].defects.unwrap().runs, 2);
        }
    }

    #[test]
    fn runs_in_two_ledgers_are_refused_with_both_named() {
        let shards = shards("overlap", 2);
        let copy = Scratch::new("overlap-copy");
        std::fs::copy(&shards[1].0, &copy.0).unwrap();
        let out = Scratch::new("overlap-out");
        let all = [&shards[0], &shards[1], &copy].map(|ledger| ledger.0.clone());
        let error = merge(&all, &out.0).err().unwrap().to_string();
        let (copy, second) = (copy.0.display(), shards[1].0.display());
        let expected = format!(
            "{copy}: must hold no run of another ledger, got 9 that {second} holds, too (the first \
             is run 1: layout.page_size = 16, layout.ranks = 1, behaviour = sound, seed 6)"
        );
        assert_eq!(error, expected);
        assert!(!out.0.exists());
    }

    #[test]
    fn what_is_missing_is_named_by_shard_and_can_be_done_afterwards() {
        let plan = small();
        let shards = [shard("gap", &plan, "1/3", u64::MAX), shard("gap", &plan, "3/3", 4)];
        let out = Scratch::new("gap-out");
        let (merged, gaps) = merge(&paths(&shards), &out.0).unwrap();
        let texts: Vec<String> = gaps.iter().map(Gap::to_string).collect();
        assert_eq!(
            texts,
            [
                "shard 2/3 is missing with its 6 runs, the first is run 1: layout.page_size = 16, \
                 layout.ranks = 1, behaviour = sound, seed 6",
                "shard 3/3 lacks 2 of 6 runs, the first is run 14: layout.page_size = 64, \
                 layout.ranks = 1, behaviour = sound, seed 7",
            ]
        );
        drop(merged);
        let mut merged = Ledger::start(&out.0, &plan, check).unwrap();
        execute(&mut merged, 1, &AtomicBool::new(false), fake, |_| {}).unwrap();
        let whole = Scratch::new("gap-whole");
        let digest = swept(&whole, 1).0.content_digest().unwrap();
        assert_eq!(merged.content_digest().unwrap(), digest);
    }

    #[test]
    fn other_plans_and_files_that_are_there_are_refused() {
        let other = PLAN.replace("A small sweep", "Another sweep");
        let other = Plan::parse(sources(&other)).unwrap();
        let both = [shard("mixed", &small(), "1/2", 0), shard("mixed", &other, "2/2", 0)];
        let out = Scratch::new("mixed-out");
        let error = merge(&paths(&both), &out.0).err().unwrap().to_string();
        assert!(error.contains("got one of another (its title is \"Another sweep\")"), "{error}");
        let first = both[0].0.clone();
        for there in [&both[1].0, &first] {
            let error = merge(std::slice::from_ref(&first), there).err().unwrap();
            assert!(matches!(error, MergeError::Exists(_)), "{error}");
        }
        assert!(matches!(merge(&[], &out.0), Err(MergeError::Nothing)));
    }
}
