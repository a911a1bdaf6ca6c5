//! Conformance: recorded answers of a real engine, replayed against the model's own types.
//!
//! A vector is one line of JSON that holds a request and what the engine answered. Four formats
//! exist, told apart by a key: a planner call has `input`, a paged allocator `allocator`, a radix
//! cache `policy`, a whole run of two schedulers `events`. The model's answer to the first three is
//! written in the same JSON shape and compared as a whole, so that no recorded number goes unread.
//! Whole runs are compared in [`Level`]s.

mod alloc;
mod plan;
mod radix;
#[cfg(test)]
mod recorded;
mod replay;
mod run;
pub mod watch;

use std::fmt;

use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

pub use plan::plan_line;
#[cfg(test)]
pub(crate) use run::told;
pub use run::{Agreement, BothRuns, Difference, Level, run_scenario};

use crate::behaviour::SplitStamp;
use crate::wording::json_line;

/// What a vector line records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// One planner call and the answers of both revisions.
    Plan,
    /// The calls of one paged or token allocator.
    Alloc,
    /// The calls of one radix cache.
    Radix,
    /// A whole run of two schedulers.
    Run,
}

impl Format {
    /// As it is printed.
    pub fn name(self) -> &'static str {
        match self {
            Format::Plan => "plan",
            Format::Alloc => "alloc",
            Format::Radix => "radix",
            Format::Run => "run",
        }
    }
}

/// What a line that can be replayed has shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Checked {
    /// Every recorded answer is the model's.
    Answers(Format),
    /// A whole run, as far as it agrees.
    Run(Agreement),
}

/// Why a line does not pass.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum LineError {
    /// The line is not a vector: not JSON, or a field is missing, unknown or of the wrong type.
    #[error("{path}: {message}")]
    Malformed {
        /// JSON path of the field, `line` for the line itself.
        path: String,
        /// What is wrong with it.
        message: String,
    },
    /// The model answers something else: the first difference.
    #[error(transparent)]
    Mismatch(#[from] Mismatch),
}

/// The first place where a recorded answer and the model's differ.
#[derive(Clone, Debug, PartialEq, Error)]
#[error("{path}: recorded {}, model {}", Shown(recorded.as_ref()), Shown(model.as_ref()))]
pub struct Mismatch {
    /// JSON path in the line.
    pub path: String,
    /// What the line has there, `None` for nothing.
    pub recorded: Option<Value>,
    /// What the model has there, `None` for nothing.
    pub model: Option<Value>,
}

/// Replays one vector line against the model, that of a radix cache on the default tree; a whole
/// run is compared up to the level `most`.
pub fn check_line(line: &str, most: Level) -> Result<Checked, LineError> {
    let format = recognise(line)?;
    match format {
        Format::Plan => plan::check(line)?,
        Format::Alloc => alloc::check(line)?,
        Format::Radix => check_tree(line, SplitStamp::default())?,
        Format::Run => return run::check(line, most).map(Checked::Run),
    }
    Ok(Checked::Answers(format))
}

/// Replays a line of a radix cache on the tree of this kind. No line says which its engine has:
/// `sglang` 0.5.23 has two, of which it uses the one that inherits for KV.
pub fn check_tree(line: &str, split_stamp: SplitStamp) -> Result<(), LineError> {
    radix::check(line, split_stamp)
}

/// The keys that tell the formats apart.
#[derive(Deserialize)]
struct Keys {
    input: Option<IgnoredAny>,
    allocator: Option<IgnoredAny>,
    policy: Option<IgnoredAny>,
    events: Option<IgnoredAny>,
}

/// The format that a line's keys name.
pub fn recognise(line: &str) -> Result<Format, LineError> {
    let keys: Keys = parse(line)?;
    match (keys.input, keys.allocator, keys.policy, keys.events) {
        (Some(_), None, None, None) => Ok(Format::Plan),
        (None, Some(_), None, None) => Ok(Format::Alloc),
        (None, None, Some(_), None) => Ok(Format::Radix),
        (None, None, None, Some(_)) => Ok(Format::Run),
        _ => Err(malformed(
            "must have exactly one of the keys input (planner), allocator, policy (radix cache), \
             events (whole run)",
        )),
    }
}

/// A whole line as `T`, with the path of the field in the error.
fn parse<T: DeserializeOwned>(line: &str) -> Result<T, LineError> {
    json_line(line).map_err(|(path, message)| match path.as_str() {
        "" => malformed(&message),
        _ => LineError::Malformed { path, message },
    })
}

/// An error of the line as a whole.
fn malformed(message: &str) -> LineError {
    LineError::Malformed { path: "line".to_owned(), message: message.to_owned() }
}

/// Compares an answer with the model's: every key, every element, every number.
fn compare(path: &str, recorded: &Value, model: &Value) -> Result<(), Mismatch> {
    let differ = |path: String, recorded: Option<&Value>, model: Option<&Value>| {
        Err(Mismatch { path, recorded: recorded.cloned(), model: model.cloned() })
    };
    let both =
        |path: String, recorded: Option<&Value>, model: Option<&Value>| match (recorded, model) {
            (Some(recorded), Some(model)) => compare(&path, recorded, model),
            _ => differ(path, recorded, model),
        };
    match (recorded, model) {
        (Value::Object(left), Value::Object(right)) => {
            let extra = right.keys().filter(|key| !left.contains_key(*key));
            left.keys()
                .chain(extra)
                .try_for_each(|key| both(format!("{path}.{key}"), left.get(key), right.get(key)))
        }
        (Value::Array(left), Value::Array(right)) => {
            if left == right {
                return Ok(());
            }
            (0..left.len().max(right.len()))
                .try_for_each(|at| both(format!("{path}[{at}]"), left.get(at), right.get(at)))
        }
        _ if recorded == model => Ok(()),
        _ => differ(path.to_owned(), Some(recorded), Some(model)),
    }
}

/// A value in a message: compact JSON, cut where it is long, or `nothing`.
struct Shown<'a>(Option<&'a Value>);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// Characters of a value that a message shows: a whole engine message, some rows of a list.
        const SHOWN_MAX: usize = 160;
        let Some(value) = self.0 else {
            return f.write_str("nothing");
        };
        let text = value.to_string();
        match text.char_indices().nth(SHOWN_MAX) {
            Some((cut, _)) => write!(f, "{}…", &text[..cut]),
            None => f.write_str(&text),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn difference(recorded: &Value, model: &Value) -> String {
        compare("answer", recorded, model).unwrap_err().to_string()
    }

    #[test]
    fn the_first_difference_is_named_by_its_path() {
        let model = json!({"ok": {"src": [1, 2], "dst": [3, 4]}});
        assert_eq!(compare("answer", &model, &model), Ok(()));
        let cases = [
            (
                json!({"ok": {"src": [1, 2], "dst": [3, 5]}}),
                "answer.ok.dst[1]: recorded 5, model 4",
            ),
            (
                json!({"ok": {"src": [1], "dst": [3, 4]}}),
                "answer.ok.src[1]: recorded nothing, model 2",
            ),
            (
                json!({"ok": {"src": [1, 2, 9], "dst": [3, 4]}}),
                "answer.ok.src[2]: recorded 9, model nothing",
            ),
            (json!({"ok": {"src": [1, 2]}}), "answer.ok.dst: recorded nothing, model [3,4]"),
            (
                json!({"ok": {"src": [1, 2], "dst": [3, 4], "draft": []}}),
                "answer.ok.draft: recorded [], model nothing",
            ),
            (
                json!({"ok": {"src": [1, 2.0], "dst": [3, 4]}}),
                "answer.ok.src[1]: recorded 2.0, model 2",
            ),
            (json!(7), "answer: recorded 7, model {\"ok\":{\"dst\":[3,4],\"src\":[1,2]}}"),
        ];
        for (recorded, expected) in cases {
            assert_eq!(difference(&recorded, &model), expected);
        }
    }

    #[test]
    fn a_long_value_is_cut_in_the_message() {
        let rows: Vec<u32> = (0..1_000).collect();
        let text = difference(&json!(rows), &json!({}));
        assert!(text.starts_with("answer: recorded [0,1,2,") && text.ends_with("…, model {}"));
        assert!(text.len() < 200);
    }

    #[test]
    fn a_line_s_keys_name_its_format() {
        assert_eq!(recognise(r#"{"input": {}}"#), Ok(Format::Plan));
        assert_eq!(recognise(r#"{"allocator": "paged", "ops": []}"#), Ok(Format::Alloc));
        assert_eq!(recognise(r#"{"policy": "lru", "ops": []}"#), Ok(Format::Radix));
        for line in ["{}", r#"{"input": {}, "policy": "lru"}"#, "[]", "", r#"{"input": {}} 1"#] {
            assert!(matches!(recognise(line), Err(LineError::Malformed { .. })), "{line}");
        }
    }
}
