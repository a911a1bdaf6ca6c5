//! What a sweep's ledger says in the end: defects, and what the plan asked for and did not get.

use std::fmt;

use super::cell::CellId;
use super::column::unsigned;
use super::expect::Expectation;
use super::ledger::{Ledger, LedgerError};
use super::plan::Plan;
use super::summary::CellSummary;
use crate::finding::{Mark, Named};
use crate::stats::Rate;

/// What the runs of a ledger say together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Judged {
    /// Runs with a defect.
    pub defects: u64,
    /// Runs that could not be run.
    pub errors: u64,
    /// Marks that the plan must reach and that no run has.
    pub marks_missing: Vec<Mark>,
    /// Expected rates that do not hold.
    pub violated: Vec<Violated>,
}

/// A bound that does not hold.
#[derive(Clone, Debug, PartialEq)]
pub struct Violated {
    /// Its place in the plan, from 0.
    pub index: usize,
    /// What the plan says.
    pub expectation: Expectation,
    /// What was found.
    pub found: Rate,
}

impl Judged {
    /// Whether the plan got what it asked for.
    pub fn is_met(&self) -> bool {
        self.marks_missing.is_empty() && self.violated.is_empty()
    }
}

impl Ledger {
    /// Judges what is there. Marks and rates are the whole sweep's: one shard can miss them.
    pub fn judge(&self) -> Result<Judged, LedgerError> {
        let mut judged = Judged {
            defects: self.with_verdict("defect")?,
            errors: self.with_verdict("error")?,
            ..Judged::default()
        };
        if self.shard.is_whole() {
            judged.marks_missing = self.marks_missing()?;
            if !self.plan.expect.is_empty() {
                judged.violated = violated(&self.plan, &self.summaries()?);
            }
        }
        Ok(judged)
    }

    fn with_verdict(&self, verdict: &str) -> Result<u64, LedgerError> {
        let sql = format!("SELECT count(*) FROM runs WHERE verdict = '{verdict}'");
        self.one::<i64>(&sql).map(unsigned)
    }
}

/// The expected rates of `plan` that do not hold; `cells` are all of its cells.
fn violated(plan: &Plan, cells: &[CellSummary]) -> Vec<Violated> {
    let judge = |(index, expectation): (usize, &Expectation)| {
        let found = found(expectation, plan, cells);
        let holds = found.interval().is_some_and(|interval| expectation.rate.admits(interval));
        (!holds).then(|| Violated { index, expectation: expectation.clone(), found })
    };
    plan.expect.iter().enumerate().filter_map(judge).collect()
}

/// In how many of the runs with a chance of it the code was found.
fn found(expectation: &Expectation, plan: &Plan, cells: &[CellSummary]) -> Rate {
    let Expectation { code, selection, .. } = expectation;
    let chosen = (0..).zip(cells).filter(|(cell, _)| selection.has(&plan.indices(CellId(*cell))));
    chosen.fold(Rate::default(), |rate, (_, cell)| Rate {
        hits: rate.hits + cell.codes.get(code).map_or(0, |found| found.runs),
        chances: rate.chances + cell.runs_with_chance.get(code.chance()),
    })
}

impl fmt::Display for Violated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Violated { index, expectation: Expectation { code, selection, rate }, found } = self;
        write!(f, "expect[{index}]: {}", code.name())?;
        if !selection.text().is_empty() {
            write!(f, " where {}", selection.text())?;
        }
        write!(f, ": must be in {rate}, got ")?;
        match found.interval() {
            Some(interval) => write!(
                f,
                "{:.4} ({} of {} runs, 95 % interval {:.4} to {:.4})",
                interval.share, found.hits, found.chances, interval.low, interval.high
            ),
            None => write!(f, "no run with a chance of it"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::sweep::execute::execute;
    use crate::sweep::execute::tests::{Scratch, check, fake};
    use crate::sweep::plan::tests::{PLAN, sources};
    use crate::sweep::shard::Shard;

    /// Padded prefixes on two ranks lose positions in 2 of 3 runs: 95 % interval 0.208 to 0.939
    /// (Wilson: centre 0.573, half width 0.366). With one rank no transfer is activated.
    fn judged(name: &str, expect: &str, shard: Shard) -> Judged {
        let text = PLAN.replace("marks =", &format!("{expect}\nmarks ="));
        let plan = Plan::parse(sources(&text)).unwrap();
        let path = Scratch::new(name);
        let mut ledger = Ledger::start_shard(&path.0, &plan, shard, check).unwrap();
        execute(&mut ledger, 1, &AtomicBool::new(false), fake, |_| {}).unwrap();
        ledger.judge().unwrap()
    }

    fn expect(conditions: &str, rate: &str) -> String {
        format!(
            "expect = [{{ code = \"placed.missing\", where = {{ {conditions} }}, rate = {{ {rate} }} }}]"
        )
    }

    const PADDED: &str = "behaviour = \"padded up\", \"layout.ranks\" = 2";

    #[test]
    fn a_rate_is_violated_where_its_whole_interval_is_beyond() {
        for (rate, holds) in [
            ("min = 0.9, max = 0.95", true),
            ("min = 0.95", false),
            ("max = 0.25", true),
            ("max = 0.2", false),
        ] {
            let judged = judged(&format!("rate-{rate}"), &expect(PADDED, rate), Shard::WHOLE);
            assert_eq!(judged.is_met(), holds, "{rate}: {judged:?}");
            assert_eq!((judged.defects, judged.errors), (2, 0));
        }
    }

    #[test]
    fn a_violated_rate_is_named_with_what_was_found() {
        let judged = judged("named", &expect(PADDED, "max = 0.1"), Shard::WHOLE);
        assert_eq!(
            judged.violated[0].to_string(),
            "expect[0]: placed.missing where behaviour = padded up, layout.ranks = 2: must be in \
             0..=0.1, got 0.6667 (2 of 3 runs, 95 % interval 0.2077 to 0.9385)"
        );
    }

    #[test]
    fn a_rate_of_no_chances_is_violated() {
        let judged = judged("no-chance", &expect("\"layout.ranks\" = 1", "max = 1"), Shard::WHOLE);
        let text = judged.violated[0].to_string();
        assert!(text.ends_with("must be in 0..=1, got no run with a chance of it"), "{text}");
    }

    #[test]
    fn a_shard_alone_is_not_held_to_what_the_whole_must_show() {
        let shard = Shard::new(1, 2).unwrap();
        assert!(judged("shard", &expect("\"layout.ranks\" = 1", "max = 1"), shard).is_met());
    }
}
