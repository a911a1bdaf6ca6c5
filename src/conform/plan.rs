//! Planner vectors: one call, and the answers of both revisions.

use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::{LineError, compare, malformed, parse};
use crate::engine::{Revision, revisions};
use crate::planner::{Plan, PlanInput, Planner, RawInput};
use crate::units::Row;

/// Why an answer always can be written.
const ANSWER_IS_JSON: &str = "rows and texts are JSON";

/// A vector line: a call with the answers of revisions, each under its key
/// ([`Revision::recorded_as`]).
#[derive(Deserialize)]
struct Line {
    input: RawInput,
    #[serde(flatten)]
    answers: Answers,
}

/// The keys of a line beside the call's, as often as each is given.
struct Answers(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for Answers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Answers, D::Error> {
        struct Keys;

        impl<'de> Visitor<'de> for Keys {
            type Value = Answers;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Answers, A::Error> {
                let mut answers = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    answers.push(entry);
                }
                Ok(Answers(answers))
            }
        }

        deserializer.deserialize_map(Keys)
    }
}

impl Line {
    /// Reads a line that has no keys but those of revisions beside the call, and each once.
    fn read(line: &str) -> Result<Line, LineError> {
        let line: Line = parse(line)?;
        let answers = &line.answers.0;
        for (at, (key, _)) in answers.iter().enumerate() {
            let malformed = |message| LineError::Malformed { path: key.clone(), message };
            if revisions().all(|revision| revision.recorded_as != key) {
                let known: Vec<String> =
                    revisions().map(|revision| format!("`{}`", revision.recorded_as)).collect();
                let known = known.join(", ");
                return Err(malformed(format!("must be one of `input`, {known}, got `{key}`")));
            }
            if answers[..at].iter().any(|(earlier, _)| earlier == key) {
                return Err(malformed("must be given once, got it twice".to_owned()));
            }
        }
        Ok(line)
    }

    /// The answer of this revision; `null` is none.
    fn answer(&self, revision: &Revision) -> Option<&Value> {
        let recorded = self.answers.0.iter().find(|(key, _)| key == revision.recorded_as);
        recorded.map(|(_, answer)| answer).filter(|answer| !answer.is_null())
    }
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
    let line = Line::read(line)?;
    if revisions().all(|revision| line.answer(revision).is_none()) {
        let key =
            |revision: &Revision| format!("{} ({})", revision.recorded_as, revision.name.name());
        let keys: Vec<String> = revisions().map(key).collect();
        return Err(malformed(&format!("must have an answer: {}", keys.join(" or "))));
    }
    for revision in revisions() {
        let Some(recorded) = line.answer(revision) else { continue };
        let planner = (revision.make)();
        let model = serde_json::to_value(answer(&line.input, &*planner)).expect(ANSWER_IS_JSON);
        compare(revision.recorded_as, recorded, &model)?;
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
        Some(_) => Line::read(line)?.input,
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
    use crate::conform::{Checked as Verdict, Format, Level};
    use crate::engine::sglang::{Checked, Indexed};

    fn check_line(line: &str) -> Result<Verdict, LineError> {
        crate::conform::check_line(line, Level::Ticks)
    }

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
            assert_eq!(check_line(line), Ok(Verdict::Answers(Format::Plan)), "{line}");
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
                assert_eq!(
                    check_line(&vector.to_string()),
                    Ok(Verdict::Answers(Format::Plan)),
                    "{line}"
                );
                let other = vector.as_object_mut().unwrap();
                other.retain(|key, _| key == "input");
                let error = check_line(&vector.to_string()).unwrap_err().to_string();
                assert!(error.starts_with("line: must have an answer"), "{error}");
            }
        }
    }

    #[test]
    fn a_key_of_no_revision_and_a_second_answer_are_malformed() {
        let line = LINES.lines().next().unwrap();
        for (more, expected) in [
            (
                "\"sglang_0_5_20\"",
                "sglang_0_5_20: must be one of `input`, `sglang_0_5_17`, `sglang_0_5_23`, got \
                 `sglang_0_5_20`",
            ),
            ("\"sglang_0_5_17\"", "sglang_0_5_17: must be given once, got it twice"),
        ] {
            let changed = line.replacen('{', &format!("{{{more}: {{}}, "), 1);
            assert_eq!(check_line(&changed).unwrap_err().to_string(), expected);
            assert_eq!(plan_line(&changed, &Checked).unwrap_err().to_string(), expected);
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
