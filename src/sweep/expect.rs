//! An *expected rate*: how often a code may be found in some of the cells.
//!
//! ```toml
//! [[expect]]
//! code = "placed.missing"
//! where = { behaviour = "padded up" }   # all cells where it is left out
//! rate = { min = 0.5, max = 0.9 }       # share of the runs with a chance of it
//! ```
//!
//! A bound is violated where the whole 95 % Wilson interval of the share lies beyond it, so that
//! chance alone seldom violates one; a code of which no run had a chance violates it, too, as
//! nothing was tried.

use serde::Deserialize;

use super::axis::Axis;
use super::selection::{Conditions, Selection};
use crate::finding::Code;
use crate::stats::Bounds;

/// How often a code may be found.
#[derive(Clone, Debug, PartialEq)]
pub struct Expectation {
    /// The code.
    pub code: Code,
    /// In which cells.
    pub selection: Selection,
    /// The share of the runs with a chance of it that may have found it.
    pub rate: Bounds,
}

/// An expected rate as the file spells it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ExpectFile {
    code: Code,
    #[serde(default, rename = "where")]
    conditions: Conditions,
    rate: Bounds,
}

impl ExpectFile {
    /// The error is a path below the expectation and a reason.
    pub(super) fn check(self, axes: &[Axis]) -> Result<Expectation, (String, String)> {
        self.rate.check().map_err(|reason| (".rate".to_owned(), reason))?;
        let selection = Selection::new(axes, &self.conditions)
            .map_err(|(axis, reason)| (format!(".where.\"{axis}\""), reason))?;
        Ok(Expectation { code: self.code, selection, rate: self.rate })
    }
}
