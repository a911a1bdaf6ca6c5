//! *News*: what a ledger found that an earlier one did not, or not as often.
//!
//! Cells of both plans are the same where they set the same; what else the plans and base scenarios
//! say may differ. For each cell in both, and each class of error that either found there, the two
//! shares of runs are held against each other by Fisher's exact test, two-sided. Holm's correction
//! over all these tests keeps the chance of naming even one cell wrongly at 5 %. Classes that
//! neither found are no tests: whatever was counted, they could not differ.

use std::collections::{BTreeMap, BTreeSet};

use super::table::{Class, Table};
use crate::finding::Code;
use crate::stats::{Rate, fisher, holm};
use crate::sweep::cell::CellId;
use crate::sweep::plan::Plan;

/// Below it, a corrected probability is beyond chance.
pub const SIGNIFICANT: f64 = 0.05;

/// How two ledgers differ.
#[derive(Clone, Debug, PartialEq)]
pub struct News {
    /// Cells in both.
    pub both: usize,
    /// Those of them that have runs in both.
    pub compared: usize,
    /// Cells in the new one only.
    pub only_new: usize,
    /// Cells in the old one only.
    pub only_old: usize,
    /// Every test, the least likely first.
    pub tests: Vec<Test>,
    /// Codes that only the new one found in the cells in both.
    pub appeared: Vec<Seen>,
    /// Codes that only the old one found in the cells in both.
    pub gone: Vec<Seen>,
}

/// A cell and a class in both ledgers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Test {
    /// The cell, as the new plan numbers it.
    pub cell: CellId,
    /// What was found.
    pub class: Class,
    /// Runs that found it before, out of those with a chance.
    pub old: Rate,
    /// The same in the new ledger.
    pub new: Rate,
    /// Probability of such a difference by chance, corrected for the number of tests.
    pub corrected: f64,
}

/// A code in the cells that have runs in both.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Seen {
    /// The code.
    pub code: Code,
    /// Runs that found it before, out of those with a chance.
    pub old: Rate,
    /// The same in the new ledger.
    pub new: Rate,
    /// Probability of such a difference by chance, of this test alone.
    pub alone: f64,
}

/// What `new` found that `old` did not, or not as often.
pub fn compare(new: &Table, old: &Table) -> News {
    let of_old: BTreeMap<String, CellId> = keys(old.plan).map(|(cell, key)| (key, cell)).collect();
    let in_both: Vec<(CellId, CellId)> =
        keys(new.plan).filter_map(|(cell, key)| Some((cell, *of_old.get(&key)?))).collect();
    // In a cell that was not run nothing can be missing.
    let mut pairs = in_both.clone();
    pairs.retain(|&(cell, before)| ran(new, cell) && ran(old, before));
    let codes: BTreeSet<Code> = new.codes().into_iter().chain(old.codes()).collect();
    let classes = std::iter::once(Class::Defect).chain(codes.iter().copied().map(Class::Code));
    let mut tests = Vec::new();
    for class in classes {
        for &(new_cell, old_cell) in &pairs {
            let now = new.of_cell(class, new_cell).runs;
            let before = old.of_cell(class, old_cell).runs;
            if now.hits + before.hits > 0 && now.chances > 0 && before.chances > 0 {
                let alone = fisher(before, now);
                tests.push(Test { cell: new_cell, class, old: before, new: now, corrected: alone });
            }
        }
    }
    // Corrected ones can be equal where the tests' own are not.
    tests.sort_by(|a, b| a.corrected.total_cmp(&b.corrected));
    let alone: Vec<f64> = tests.iter().map(|test| test.corrected).collect();
    for (test, corrected) in tests.iter_mut().zip(holm(&alone)) {
        test.corrected = corrected;
    }
    let seen = codes.iter().map(|&code| seen(code, &pairs, new, old)).collect::<Vec<_>>();
    let only = |there: fn(&Seen) -> Rate, absent: fn(&Seen) -> Rate| {
        let is_only = |seen: &&Seen| there(seen).hits > 0 && absent(seen).hits == 0;
        seen.iter().filter(is_only).copied().collect()
    };
    News {
        both: in_both.len(),
        compared: pairs.len(),
        only_new: new.cells.len() - in_both.len(),
        only_old: old.cells.len() - in_both.len(),
        tests,
        appeared: only(|seen| seen.new, |seen| seen.old),
        gone: only(|seen| seen.old, |seen| seen.new),
    }
}

impl News {
    /// The tests whose difference is beyond chance.
    pub fn changed(&self) -> &[Test] {
        &self.tests[..self.tests.partition_point(|test| test.corrected < SIGNIFICANT)]
    }
}

fn ran(table: &Table, cell: CellId) -> bool {
    table.cell(cell).runs > 0
}

fn seen(code: Code, pairs: &[(CellId, CellId)], new: &Table, old: &Table) -> Seen {
    let class = Class::Code(code);
    let sum = |rates: &mut dyn Iterator<Item = Rate>| {
        rates.fold(Rate::default(), |sum, rate| Rate {
            hits: sum.hits + rate.hits,
            chances: sum.chances + rate.chances,
        })
    };
    let now = sum(&mut pairs.iter().map(|&(cell, _)| new.of_cell(class, cell).runs));
    let before = sum(&mut pairs.iter().map(|&(_, cell)| old.of_cell(class, cell).runs));
    Seen { code, old: before, new: now, alone: fisher(before, now) }
}

/// Every cell with what it sets, in an order that does not depend on that of the axes.
fn keys(plan: &Plan) -> impl Iterator<Item = (CellId, String)> {
    (0..plan.cells()).map(CellId).map(|cell| {
        let points = plan.points(cell);
        let settings: BTreeSet<String> = points
            .iter()
            .flat_map(|point| &point.set)
            .map(|(path, value)| format!("{path}={value}"))
            .collect();
        (cell, settings.into_iter().collect::<Vec<_>>().join("\n"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::table::tests::cells;
    use crate::sweep::plan::tests::{PLAN, small, sources};
    use crate::sweep::summary::Incidence;

    /// Cell 3 goes from 30 of its runs to 5, cell 7 from 10 to 12; 90 runs of each have a chance of
    /// placed.missing, 100 of any defect.
    #[test]
    fn only_what_is_beyond_chance_has_changed() {
        let plan = small();
        let old = Table { plan: &plan, cells: cells() };
        let mut later = cells();
        for (index, runs) in [(3, 5), (7, 12)] {
            let found = Incidence { runs, count: runs, seed: 5 };
            later[index].codes = [(Code::PlacedMissing, found)].into();
            later[index].defects = Some(found);
        }
        let new = Table { plan: &plan, cells: later };
        let news = compare(&new, &old);
        assert_eq!((news.both, news.only_new, news.only_old), (8, 0, 0));
        assert_eq!(news.compared, old.cells.iter().filter(|cell| cell.runs > 0).count());
        // Two classes at two cells; nothing was found at the others.
        assert_eq!(news.tests.len(), 4);
        let changed: Vec<_> = news.changed().iter().map(|test| (test.cell, test.class)).collect();
        let missing = Class::Code(Code::PlacedMissing);
        assert_eq!(changed, [(CellId(3), missing), (CellId(3), Class::Defect)]);
        let first = news.tests[0];
        assert_eq!((first.old.hits, first.old.chances), (30, 90));
        assert_eq!((first.new.hits, first.new.chances), (5, 90));
        let alone = fisher(Rate { hits: 30, chances: 90 }, Rate { hits: 5, chances: 90 });
        assert!((first.corrected - 4.0 * alone).abs() < 1e-12, "{first:?}");
        assert!(news.appeared.is_empty() && news.gone.is_empty());
    }

    #[test]
    fn equal_ledgers_have_no_news() {
        let plan = small();
        let table = Table { plan: &plan, cells: cells() };
        let news = compare(&table, &table);
        assert!(news.changed().is_empty(), "{:?}", news.changed());
        assert!(news.tests.iter().all(|test| test.corrected >= 1.0 - 1e-9));
    }

    #[test]
    fn codes_appear_and_go_and_cells_match_by_what_they_set() {
        let old_plan = small();
        let old = Table { plan: &old_plan, cells: cells() };
        // The axes' points in another order, and one that the old plan has not.
        let text = PLAN.replace("[16, 64]", "[64, 16, 32]");
        let new_plan = Plan::parse(sources(&text)).unwrap();
        let mut later = vec![cells()[4].clone(); 12];
        later[7] = cells()[3].clone();
        let found = later[7].codes.remove(&Code::PlacedMissing).unwrap();
        later[7].codes.insert(Code::PlacedShifted, found);
        let new = Table { plan: &new_plan, cells: later };
        let news = compare(&new, &old);
        assert_eq!((news.both, news.only_new, news.only_old), (8, 4, 0));
        let [appeared] = news.appeared.as_slice() else { panic!("{news:?}") };
        assert_eq!((appeared.code, appeared.new.hits), (Code::PlacedShifted, 30));
        let [gone] = news.gone.as_slice() else { panic!("{news:?}") };
        // The only cell that was run in both is the one of 30.
        assert_eq!(news.compared, 1);
        assert_eq!((gone.code, gone.old.hits), (Code::PlacedMissing, 30));
        let cell = news.tests.iter().find(|test| test.class == Class::Code(Code::PlacedShifted));
        assert_eq!(cell.map(|test| test.cell), Some(CellId(7)));
    }
}
