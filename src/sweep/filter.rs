//! A *filter*: cells that the plan leaves out, and why. The ledger keeps them with the reason.
//!
//! ```toml
//! [[filters]]
//! where = { "layout.page_size" = { min = 64 }, "layout.ranks" = 8 }
//! reason = "no engine stripes pages of 64 over 8 ranks"
//! ```

use serde::Deserialize;

use super::axis::Axis;
use super::selection::{Conditions, Selection};

/// Cells that are left out.
#[derive(Clone, Debug, PartialEq)]
pub struct Filter {
    /// Which cells: those for which all its conditions hold.
    pub selection: Selection,
    /// Why, in the plan's words.
    pub reason: String,
}

/// A filter as the file spells it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FilterFile {
    #[serde(rename = "where")]
    conditions: Conditions,
    reason: String,
}

impl FilterFile {
    /// The error is a path below the filter and a reason.
    pub(super) fn check(self, axes: &[Axis]) -> Result<Filter, (String, String)> {
        if self.reason.trim().is_empty() {
            return Err((".reason".to_owned(), "must be a text, got an empty one".to_owned()));
        }
        let selection = Selection::new(axes, &self.conditions)
            .map_err(|(axis, reason)| (format!(".where.\"{axis}\""), reason))?;
        Ok(Filter { selection, reason: self.reason })
    }
}
