//! A scenario as a TOML file.

use serde::{Deserialize, Serialize};

use super::Bound;

/// How files spell a [`Bound`]: a number or a text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum BoundText {
    /// An exact number.
    Number(u64),
    /// `">=n"`.
    Text(String),
}

impl TryFrom<BoundText> for Bound {
    type Error = String;

    fn try_from(text: BoundText) -> Result<Bound, String> {
        match text {
            BoundText::Number(number) => Ok(Bound::Exactly(number)),
            BoundText::Text(text) => text
                .strip_prefix(">=")
                .and_then(|number| number.trim().parse().ok())
                .map(Bound::AtLeast)
                .ok_or_else(|| format!("must be a number or \">=number\", got \"{text}\"")),
        }
    }
}

impl From<Bound> for BoundText {
    fn from(bound: Bound) -> BoundText {
        match bound {
            Bound::Exactly(number) => BoundText::Number(number),
            Bound::AtLeast(number) => BoundText::Text(format!(">={number}")),
        }
    }
}
