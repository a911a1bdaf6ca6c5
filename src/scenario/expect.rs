//! Whether a run shows what its scenario says it must.

use std::fmt;

use super::validate::Invalid;
use super::{Bound, Expect};
use crate::finding::{Code, Mark, Named, Run};

/// An expectation that a run does not meet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unmet {
    /// Another number of findings.
    Findings {
        /// Of which code.
        code: Code,
        /// How many were expected; a code that the expectation leaves out must be absent.
        expected: Bound,
        /// How many there were.
        found: u64,
    },
    /// A code path that was not reached.
    Mark(Mark),
    /// A scenario that was not refused for this field.
    Refused {
        /// The field.
        field: String,
        /// Why it was refused instead; nothing where it can be run.
        instead: Option<Invalid>,
    },
}

impl fmt::Display for Unmet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unmet::Findings { code, expected, found } => {
                write!(f, "{}: expected {expected}, found {found}", code.name())
            }
            Unmet::Mark(mark) => {
                write!(f, "mark {}: expected to be reached, was not", mark.name())
            }
            Unmet::Refused { field, instead: None } => {
                write!(f, "{field}: expected to be refused, was not")
            }
            Unmet::Refused { field, instead: Some(invalid) } => {
                write!(f, "{field}: expected to be refused, another field was: {invalid}")
            }
        }
    }
}

impl Bound {
    /// Whether `count` is within.
    pub fn holds(self, count: u64) -> bool {
        match self {
            Bound::Exactly(number) => count == number,
            Bound::AtLeast(number) => count >= number,
        }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Bound::Exactly(number) => write!(f, "{number}"),
            Bound::AtLeast(number) => write!(f, ">={number}"),
        }
    }
}

/// Whether a scenario that must be refused for `field` is not, by its `verdict`: it can be run, or
/// another field is the first that is out of its bounds.
pub fn not_refused(field: &str, verdict: Result<(), Invalid>) -> Option<Unmet> {
    let instead = verdict.err();
    let is_refused = instead.as_ref().is_some_and(|invalid| invalid.path == field);
    (!is_refused).then(|| Unmet::Refused { field: field.to_owned(), instead })
}

/// What of `expect` does not hold for `run`: codes first, then marks, each in order of declaration.
pub fn unmet(expect: &Expect, run: &Run) -> Vec<Unmet> {
    let codes = Code::ALL.iter().filter_map(|&code| {
        let expected = expect.findings.get(&code).copied().unwrap_or(Bound::Exactly(0));
        let found = run.findings.count(code);
        (!expected.holds(found)).then_some(Unmet::Findings { code, expected, found })
    });
    let marks = Mark::ALL.iter().copied();
    let missing = marks.filter(|mark| expect.marks.contains(mark) && run.marks.get(*mark) == 0);
    codes.chain(missing.map(Unmet::Mark)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Finding;
    use crate::units::Tick;

    /// A run with this many findings of each code, and the marks reached once.
    fn run(findings: &[(Code, u64)], marks: &[Mark]) -> Run {
        let mut run = Run::default();
        for &(code, count) in findings {
            for _ in 0..count {
                run.findings.add(Finding {
                    code,
                    tick: Tick(0),
                    request: None,
                    rank: None,
                    expected: String::new(),
                    found: String::new(),
                });
            }
        }
        for &mark in marks {
            run.marks.add(mark, 1);
        }
        run
    }

    fn expect(findings: &[(Code, Bound)], marks: &[Mark]) -> Expect {
        let findings = findings.iter().copied().collect();
        Expect { findings, marks: marks.to_vec(), ..Expect::default() }
    }

    fn texts(expect: &Expect, run: &Run) -> Vec<String> {
        unmet(expect, run).iter().map(Unmet::to_string).collect()
    }

    #[test]
    fn exact_numbers_and_lower_bounds_hold_as_they_say() {
        let code = Code::PlacedMissing;
        for (bound, found, holds) in [
            (Bound::Exactly(2), 1, false),
            (Bound::Exactly(2), 2, true),
            (Bound::Exactly(2), 3, false),
            (Bound::Exactly(0), 0, true),
            (Bound::AtLeast(2), 1, false),
            (Bound::AtLeast(2), 2, true),
            (Bound::AtLeast(2), 3, true),
        ] {
            let unmet = unmet(&expect(&[(code, bound)], &[]), &run(&[(code, found)], &[]));
            assert_eq!(unmet.is_empty(), holds, "{bound:?} of {found}");
        }
    }

    #[test]
    fn codes_that_are_left_out_must_be_absent_expected_ones_too() {
        let found = run(&[(Code::PlacedMissing, 1), (Code::RefusedPool, 2)], &[]);
        assert_eq!(
            texts(&expect(&[(Code::PlacedMissing, Bound::AtLeast(1))], &[]), &found),
            ["refused.pool: expected 0, found 2"]
        );
    }

    #[test]
    fn a_refusal_must_be_for_the_field_that_is_named() {
        let refused = |path: &str| {
            Err(Invalid { path: path.to_owned(), problem: "must be 1, got 2".to_owned() })
        };
        assert_eq!(not_refused("a.b", refused("a.b")), None);
        let other = not_refused("a.b", refused("a.c")).unwrap();
        let both = "a.b: expected to be refused, another field was: a.c: must be 1, got 2";
        assert_eq!(other.to_string(), both);
        let valid = not_refused("a.b", Ok(())).unwrap();
        assert_eq!(valid.to_string(), "a.b: expected to be refused, was not");
    }

    #[test]
    fn marks_must_be_reached_and_others_may_be() {
        let found = run(&[], &[Mark::HitDecode]);
        assert_eq!(texts(&expect(&[], &[Mark::HitDecode]), &found), [""; 0]);
        assert_eq!(
            texts(&expect(&[(Code::ReadFreed, Bound::AtLeast(1))], &[Mark::HitFull]), &found),
            ["read.freed: expected >=1, found 0", "mark hit.full: expected to be reached, was not"]
        );
    }
}
