//! Planner vectors: one call, and the answers of both revisions.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{LineError, compare, parse};
use crate::engine::sglang::{Checked, Indexed};
use crate::planner::{Plan, PlanInput, Planner, RawInput};
use crate::units::Row;

/// Why an answer always can be written.
const ANSWER_IS_JSON: &str = "rows and texts are JSON";

/// A vector line: a call with the answer of one revision or of both, each under the name of a
/// release that has it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    input: RawInput,
    sglang_0_5_17: Option<Value>,
    sglang_0_5_23: Option<Value>,
}

/// A line to plan: a request on its own, or as part of a vector line.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    input: RawInput,
    #[serde(default, rename = "sglang_0_5_17")]
    _checked: Option<serde::de::IgnoredAny>,
    #[serde(default, rename = "sglang_0_5_23")]
    _indexed: Option<serde::de::IgnoredAny>,
}

/// An answer in the shape of the vectors.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Answer {
    Ok {
        src: Vec<Row>,
        dst: Vec<Row>,
        #[serde(flatten)]
        draft: Option<DraftRows>,
    },
    Error {
        r#type: &'static str,
        message: String,
    },
}

/// The part of an answer that only the indexed revision has.
#[derive(Serialize)]
struct DraftRows {
    draft_src: Vec<Row>,
    draft_dst: Vec<Row>,
}

pub(super) fn check(line: &str) -> Result<(), LineError> {
    let line: Line = parse(line)?;
    if line.sglang_0_5_17.is_none() && line.sglang_0_5_23.is_none() {
        let message = "must have an answer: sglang_0_5_17 (checked) or sglang_0_5_23 (indexed)";
        return Err(super::malformed(message));
    }
    let revisions: [(&str, &Option<Value>, &dyn Planner); 2] = [
        ("sglang_0_5_17", &line.sglang_0_5_17, &Checked),
        ("sglang_0_5_23", &line.sglang_0_5_23, &Indexed),
    ];
    for (name, recorded, planner) in revisions {
        let Some(recorded) = recorded else { continue };
        let model = serde_json::to_value(answer(&line.input, planner)).expect(ANSWER_IS_JSON);
        compare(name, recorded, &model)?;
    }
    Ok(())
}

/// Plans the request of one line with `planner`. The line is a bare request or a whole vector line,
/// whose recorded answers are passed over. The answer is one line of JSON: `{"ok":{..}}` with the
/// rows, or `{"error":{"type","message"}}` with the engine's exception, or with type `InputError`
/// for a request outside the planner's domain.
pub fn plan_line(line: &str, planner: &dyn Planner) -> Result<String, LineError> {
    let keys: super::Keys = parse(line)?;
    let input = match keys.input {
        Some(_) => parse::<Request>(line)?.input,
        None => parse::<RawInput>(line)?,
    };
    Ok(serde_json::to_string(&answer(&input, planner)).expect(ANSWER_IS_JSON))
}

/// What `planner` answers.
fn answer(raw: &RawInput, planner: &dyn Planner) -> Answer {
    let input = match PlanInput::try_from(raw) {
        Ok(input) => input,
        Err(error) => {
            return Answer::Error { r#type: "InputError", message: error.to_string() };
        }
    };
    match planner.plan(&input) {
        Ok(plan) => Answer::from(plan),
        Err(refusal) => Answer::Error { r#type: refusal.exception(), message: refusal.to_string() },
    }
}

impl From<Plan> for Answer {
    fn from(plan: Plan) -> Answer {
        Answer::Ok {
            src: plan.target.src,
            dst: plan.target.dst,
            draft: plan.draft.map(|rows| DraftRows { draft_src: rows.src, draft_dst: rows.dst }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conform::{Format, check_line};

    /// Recorded lines that cover every error of both revisions, P = 1, N = 3 and N = 16.
    const LINES: &str = include_str!("../../tests/vectors/plan.jsonl");

    /// The places of all numbers in a line's recorded answers, in lists and inside messages.
    fn numbers(line: &str) -> Vec<std::ops::Range<usize>> {
        let answers = line.find("\"sglang_0_5_17\":").unwrap();
        let bytes = line.as_bytes();
        let mut found = Vec::new();
        let mut at = answers;
        while at < bytes.len() {
            let digits = bytes[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
            // A number stands on its own; the digits of a release's name do not.
            if digits > 0 && bytes[at - 1] != b'_' {
                found.push(at..at + digits);
            }
            at += digits.max(1);
        }
        found
    }

    #[test]
    fn recorded_lines_pass() {
        for line in LINES.lines() {
            assert_eq!(check_line(line), Ok(Format::Plan), "{line}");
        }
    }

    #[test]
    fn a_change_of_any_recorded_number_is_a_mismatch() {
        let mut changes = 0;
        for line in LINES.lines() {
            for place in numbers(line) {
                let number: u64 = line[place.clone()].parse().unwrap();
                let mut changed = line.to_owned();
                changed.replace_range(place, &(number + 1).to_string());
                let verdict = check_line(&changed);
                assert!(matches!(verdict, Err(LineError::Mismatch(_))), "{changed}");
                changes += 1;
            }
        }
        assert!(changes > 500, "only {changes} numbers were found");
    }

    #[test]
    fn a_missing_draft_or_an_extra_list_is_a_mismatch() {
        let line = LINES.lines().find(|line| line.contains("draft_dst")).unwrap();
        let mut vector: Value = serde_json::from_str(line).unwrap();
        let rows = vector["sglang_0_5_23"]["ok"].as_object_mut().unwrap();
        let draft = rows.remove("draft_dst").unwrap();
        let text = check_line(&vector.to_string()).unwrap_err().to_string();
        assert!(text.starts_with("sglang_0_5_23.ok.draft_dst: recorded nothing, model ["));
        let rows = vector["sglang_0_5_23"]["ok"].as_object_mut().unwrap();
        rows.insert("draft_dst".to_owned(), draft);
        vector["sglang_0_5_17"]["ok"]["draft_src"] = Value::Array(Vec::new());
        let text = check_line(&vector.to_string()).unwrap_err().to_string();
        assert_eq!(text, "sglang_0_5_17.ok.draft_src: recorded [], model nothing");
    }

    #[test]
    fn one_revision_s_answer_is_enough_and_none_is_malformed() {
        for line in LINES.lines() {
            for name in ["sglang_0_5_17", "sglang_0_5_23"] {
                let mut vector: Value = serde_json::from_str(line).unwrap();
                vector.as_object_mut().unwrap().remove(name);
                assert_eq!(check_line(&vector.to_string()), Ok(Format::Plan), "{line}");
                let other = vector.as_object_mut().unwrap();
                other.retain(|key, _| key == "input");
                let error = check_line(&vector.to_string()).unwrap_err().to_string();
                assert!(error.starts_with("line: must have an answer"), "{error}");
            }
        }
    }

    #[test]
    fn a_malformed_line_names_the_field() {
        let line = r#"{"page_size":2,"dcp_size":2,"dcp_rank":0,"src_page_offset":0,
            "decode_prefix_len":0,"src_pages":[3,"x"],"dst_pages":[5]}"#;
        let error = plan_line(line, &Checked).unwrap_err().to_string();
        assert!(error.starts_with("src_pages[1]: must be a whole number of"), "{error}");
        let vector = format!(r#"{{"input":{line},"sglang_0_5_17":{{}},"sglang_0_5_23":{{}}}}"#);
        let error = check_line(&vector).unwrap_err().to_string();
        assert!(error.starts_with("input.src_pages[1]: must be a whole number of"), "{error}");
        for (change, field) in [("\"dcp\":1,", "dcp"), ("", "page_size: must be given")] {
            let line = line.replace("\"x\"", "4").replace("\"page_size\":2,", change);
            let error = plan_line(&line, &Checked).unwrap_err();
            assert!(matches!(error, LineError::Malformed { .. }));
            assert!(error.to_string().contains(field), "{error}");
        }
    }

    #[test]
    fn a_bare_request_and_a_vector_line_get_the_recorded_answers() {
        for line in LINES.lines() {
            let vector: Value = serde_json::from_str(line).unwrap();
            let bare = vector["input"].to_string();
            let revisions: [(&str, &dyn Planner); 2] =
                [("sglang_0_5_17", &Checked), ("sglang_0_5_23", &Indexed)];
            for (name, planner) in revisions {
                for text in [line, &bare] {
                    let answer = plan_line(text, planner).unwrap();
                    assert_eq!(serde_json::from_str::<Value>(&answer).unwrap(), vector[name]);
                    assert!(line.contains(&answer), "{answer}");
                }
            }
        }
    }

    #[test]
    fn a_request_outside_the_domain_is_an_input_error() {
        let line = r#"{"page_size":2,"dcp_size":2,"dcp_rank":2,"src_page_offset":0,
            "decode_prefix_len":0,"num_kv_tokens":null,"src_pages":[3],"dst_pages":[5]}"#;
        assert_eq!(
            plan_line(line, &Indexed).unwrap(),
            r#"{"error":{"type":"InputError","message":"dcp_rank: must be in 0..=1, got 2"}}"#
        );
    }
}
