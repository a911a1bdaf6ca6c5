//! The name of a planner, as scenarios spell it and registries know it.

use std::fmt;
use std::str::{self, FromStr};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::limits::PLANNER_NAME_BYTES;

/// The name of a planner. Its bytes stand in place, so that switches are copied without
/// allocating.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PlannerName {
    /// Zero behind the name.
    bytes: [u8; PLANNER_NAME_BYTES],
    len: u8,
}

/// The name is longer than [`PLANNER_NAME_BYTES`].
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("must be a name of at most {PLANNER_NAME_BYTES} bytes, got \"{0}\"")]
pub struct NameTooLong(pub String);

impl PlannerName {
    /// The name, which must not be longer than [`PLANNER_NAME_BYTES`].
    pub(super) const fn of(name: &str) -> PlannerName {
        let from = name.as_bytes();
        let mut bytes = [0; PLANNER_NAME_BYTES];
        let mut at = 0;
        while at < from.len() {
            bytes[at] = from[at];
            at += 1;
        }
        PlannerName { bytes, len: from.len() as u8 }
    }

    /// As spelled in files.
    pub fn name(&self) -> &str {
        str::from_utf8(&self.bytes[..usize::from(self.len)]).expect("a name is made from a text")
    }
}

impl FromStr for PlannerName {
    type Err = NameTooLong;

    fn from_str(name: &str) -> Result<PlannerName, NameTooLong> {
        match name.len() {
            ..=PLANNER_NAME_BYTES => Ok(PlannerName::of(name)),
            _ => Err(NameTooLong(name.to_owned())),
        }
    }
}

impl TryFrom<String> for PlannerName {
    type Error = NameTooLong;

    fn try_from(name: String) -> Result<PlannerName, NameTooLong> {
        name.parse()
    }
}

impl From<PlannerName> for String {
    fn from(name: PlannerName) -> String {
        name.name().to_owned()
    }
}

impl fmt::Debug for PlannerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.name(), f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_kept_whole_or_refused() {
        let longest = "ü".repeat(PLANNER_NAME_BYTES / 2);
        for name in ["", "checked", &longest] {
            assert_eq!(name.parse::<PlannerName>().unwrap().name(), name);
        }
        let error = format!("{longest}x").parse::<PlannerName>().unwrap_err();
        assert!(error.to_string().starts_with("must be a name of at most 32 bytes, got \"üü"));
    }

    #[test]
    fn names_are_equal_and_ordered_as_their_texts() {
        let names = ["", "a", "a\0", "ab", "b"].map(|name| name.parse::<PlannerName>().unwrap());
        assert!(names.is_sorted_by(|one, next| one < next));
        assert_eq!(PlannerName::CHECKED, "checked".parse().unwrap());
    }
}
