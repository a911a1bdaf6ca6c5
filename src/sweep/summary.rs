//! What a sweep found so far: sums over the runs of each cell.

use std::collections::BTreeMap;

use rusqlite::Row;
use rusqlite::types::Type;

use super::cell::{CellId, RunId};
use super::column::{corrupt, signed, unsigned};
use super::ledger::{Ledger, LedgerError, sqlite};
use crate::finding::{Chance, Code, FreeRun, FreeSample, Mark, Metric, Named, Side, Tally};
use crate::stats::Ratio;

/// How often something was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Incidence {
    /// Runs that found it.
    pub runs: u64,
    /// Findings, all runs together.
    pub count: u64,
    /// The smallest seed that found it.
    pub seed: u64,
}

/// The runs of one cell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CellSummary {
    /// Why the cell cannot be run, if it cannot.
    pub impossible: Option<String>,
    /// Runs that left something to judge.
    pub runs: u64,
    /// The smallest seed of these runs.
    pub seed: Option<u64>,
    /// Runs that could not be run.
    pub errors: u64,
    /// Runs with a defect; its count is that of the runs.
    pub defects: Option<Incidence>,
    /// Codes found.
    pub codes: BTreeMap<Code, Incidence>,
    /// Chances, all runs together.
    pub chances: Tally<Chance>,
    /// Runs that had a chance at all.
    pub runs_with_chance: Tally<Chance>,
}

/// Free pages by sample and by the length of their run.
pub type FreePages = BTreeMap<FreeSample, Tally<FreeRun>>;

impl Ledger {
    /// Every cell of the plan, in order, with what its runs left.
    pub fn summaries(&self) -> Result<Vec<CellSummary>, LedgerError> {
        let mut summaries = vec![CellSummary::default(); self.cells()];
        self.add_reasons(&mut summaries)?;
        self.add_verdicts(&mut summaries)?;
        self.add_findings(&mut summaries)?;
        self.add_chances(&mut summaries)?;
        Ok(summaries)
    }

    /// In how many runs each mark was reached.
    pub fn marks(&self) -> Result<Tally<Mark>, LedgerError> {
        let columns = columns::<Mark>(|name| format!("coalesce(sum({name} > 0), 0)"));
        let mut marks = Tally::default();
        self.each(&format!("SELECT {columns} FROM marks"), |row| {
            for (column, &mark) in Mark::ALL.iter().enumerate() {
                marks.add(mark, unsigned(row.get(column)?));
            }
            Ok(())
        })?;
        Ok(marks)
    }

    /// For every cell, in order, the ratio of each pair of metrics: the first out of the second.
    pub fn ratios(&self, pairs: &[(Metric, Metric)]) -> Result<Vec<Vec<Ratio>>, LedgerError> {
        let mut cells = vec![vec![Ratio::default(); pairs.len()]; self.cells()];
        let sums = pairs.iter().map(|(y, x)| {
            let [y, x] = [y, x].map(|metric| format!("CAST(\"{}\" AS REAL)", metric.name()));
            format!("sum({x}), sum({y}), sum({x} * {x}), sum({x} * {y}), sum({y} * {y})")
        });
        let sums: Vec<String> = sums.collect();
        let sums = sums.join(", ");
        let sql = format!("SELECT count(*), {sums} FROM counters WHERE run BETWEEN ? AND ?");
        self.each_of_cells(&sql, &mut cells, |ratios, row| {
            let n = unsigned(row.get(0)?);
            for (ratio, first) in ratios.iter_mut().zip((1..).step_by(5)) {
                let sum = |place: usize| {
                    row.get::<_, Option<f64>>(first + place).map(Option::unwrap_or_default)
                };
                let [x, y, xx, xy, yy] = [sum(0)?, sum(1)?, sum(2)?, sum(3)?, sum(4)?];
                *ratio = Ratio { n, x, y, xx, xy, yy };
            }
            Ok(())
        })?;
        Ok(cells)
    }

    /// For every cell, in order, its free pages by the length of the run that they lay in, all runs
    /// of the sweep together.
    pub fn free_runs(&self) -> Result<Vec<FreePages>, LedgerError> {
        let mut cells = vec![FreePages::new(); self.cells()];
        let sums = columns::<FreeRun>(|name| format!("sum({name})"));
        let sql = format!(
            "SELECT side, part, {sums} FROM free_runs WHERE run BETWEEN ? AND ? GROUP BY side, part"
        );
        self.each_of_cells(&sql, &mut cells, |cell, row| {
            let name: String = row.get(0)?;
            let side = Side::parse(&name)
                .ok_or_else(|| corrupt(0, Type::Text, format!("side: no such side: \"{name}\"")))?;
            let sample = FreeSample { side, part: unsigned(row.get(1)?) };
            let mut pages = Tally::default();
            for (column, &length) in (2..).zip(FreeRun::ALL) {
                pages.add(length, unsigned(row.get(column)?));
            }
            cell.insert(sample, pages);
            Ok(())
        })?;
        Ok(cells)
    }

    fn cells(&self) -> usize {
        usize::try_from(self.plan.cells()).expect("limits::SWEEP_RUNS")
    }

    /// Marks that the plan must reach and that no run has.
    pub fn marks_missing(&self) -> Result<Vec<Mark>, LedgerError> {
        if self.plan.marks.is_empty() {
            return Ok(Vec::new());
        }
        let marks = self.marks()?;
        let missing = |mark: &Mark| marks.get(*mark) == 0;
        Ok(self.plan.marks.iter().copied().filter(missing).collect())
    }

    fn add_reasons(&self, summaries: &mut [CellSummary]) -> Result<(), LedgerError> {
        for (cell, reason) in self.impossible()? {
            // A ledger that something else has written to may name any cell.
            let index = usize::try_from(cell.0).ok();
            if let Some(summary) = index.and_then(|index| summaries.get_mut(index)) {
                summary.impossible = Some(reason);
            }
        }
        Ok(())
    }

    fn add_verdicts(&self, summaries: &mut [CellSummary]) -> Result<(), LedgerError> {
        let sql = "SELECT verdict, count(*), min(seed) FROM runs WHERE id BETWEEN ? AND ?
            GROUP BY verdict";
        self.each_of_cells(sql, summaries, |summary, row| {
            let verdict: String = row.get(0)?;
            let runs = unsigned(row.get(1)?);
            if verdict == "error" {
                summary.errors = runs;
                return Ok(());
            }
            let seed = unsigned(row.get(2)?);
            summary.runs += runs;
            summary.seed = Some(summary.seed.map_or(seed, |first| first.min(seed)));
            if verdict == "defect" {
                summary.defects = Some(Incidence { runs, count: runs, seed });
            }
            Ok(())
        })
    }

    fn add_findings(&self, summaries: &mut [CellSummary]) -> Result<(), LedgerError> {
        let sql = "SELECT name, count(*), sum(count), min(run)
            FROM findings JOIN codes ON codes.id = code WHERE run BETWEEN ? AND ? GROUP BY code";
        self.each_of_cells(sql, summaries, |summary, row| {
            let name: String = row.get(0)?;
            let code = Code::parse(&name)
                .ok_or_else(|| corrupt(0, Type::Text, format!("name: no such code: \"{name}\"")))?;
            let (_, seed) = self.plan.place(RunId(unsigned(row.get(3)?)));
            let [runs, count] = [unsigned(row.get(1)?), unsigned(row.get(2)?)];
            summary.codes.insert(code, Incidence { runs, count, seed });
            Ok(())
        })
    }

    fn add_chances(&self, summaries: &mut [CellSummary]) -> Result<(), LedgerError> {
        let sums = columns::<Chance>(|name| {
            format!("coalesce(sum({name}), 0), coalesce(sum({name} > 0), 0)")
        });
        let sql = format!("SELECT {sums} FROM chances WHERE run BETWEEN ? AND ?");
        self.each_of_cells(&sql, summaries, |summary, row| {
            for (index, &chance) in Chance::ALL.iter().enumerate() {
                summary.chances.add(chance, unsigned(row.get(2 * index)?));
                summary.runs_with_chance.add(chance, unsigned(row.get(2 * index + 1)?));
            }
            Ok(())
        })
    }

    /// Calls `visit` for every row that a query leaves for each cell, with what `cells` has for
    /// it. The query's two parameters are the first and the last run of the cell: whatever is
    /// keyed by runs lies together, and needs neither a join nor sorting.
    fn each_of_cells<T>(
        &self,
        sql: &str,
        cells: &mut [T],
        mut visit: impl FnMut(&mut T, &Row) -> rusqlite::Result<()>,
    ) -> Result<(), LedgerError> {
        let all = || {
            let mut statement = self.db.prepare(sql)?;
            for (id, cell) in (0..).map(CellId).zip(cells) {
                let (first, last) = self.plan.runs_of(id);
                let mut rows = statement.query([signed(first.0), signed(last.0)])?;
                while let Some(row) = rows.next()? {
                    visit(cell, row)?;
                }
            }
            Ok(())
        };
        all().map_err(|source| sqlite(&self.path, source))
    }
}

fn columns<K: Named>(expression: impl Fn(&str) -> String) -> String {
    let columns: Vec<String> =
        K::ALL.iter().map(|item| expression(&format!("\"{}\"", item.name()))).collect();
    columns.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Run;
    use crate::sweep::execute::tests::Scratch;
    use crate::sweep::ledger::Record;
    use crate::sweep::plan::tests::small;

    /// Runs 0 and 1 are of cell 0, run 3 of cell 1.
    #[test]
    fn ratios_and_free_pages_are_sums_over_the_runs_of_a_cell() {
        let path = Scratch::new("sums");
        let mut ledger = Ledger::start(&path.0, &small(), |_| Ok(())).unwrap();
        let sample = FreeSample { side: Side::Decode, part: 2 };
        let record = |run, requests, waited, pages| {
            let mut left = Run::default();
            left.metrics.add(Metric::Requests, requests);
            left.metrics.add(Metric::WaitTicks, waited);
            left.free_runs.entry(sample).or_default().add(FreeRun::Four, pages);
            Record { run: RunId(run), outcome: Ok(left), micros: 1 }
        };
        ledger.append(&[record(0, 2, 10, 7), record(1, 4, 50, 5), record(3, 1, 3, 4)]).unwrap();
        let ratios = ledger.ratios(&[(Metric::WaitTicks, Metric::Requests)]).unwrap();
        let sums = |n, x, y, xx, xy, yy| Ratio { n, x, y, xx, xy, yy };
        assert_eq!(ratios[0], [sums(2, 6.0, 60.0, 20.0, 220.0, 2_600.0)]);
        assert_eq!(ratios[1], [sums(1, 1.0, 3.0, 1.0, 3.0, 9.0)]);
        assert_eq!(ratios[2], [Ratio::default()]);
        let free = ledger.free_runs().unwrap();
        assert_eq!(free[0][&sample].get(FreeRun::Four), 12);
        assert_eq!(free[1][&sample].iter().map(|(_, pages)| pages).sum::<u64>(), 4);
        assert!(free[2].is_empty());
    }
}
