//! What the readers of TOML and JSON say, in this project's words: what a field must be, and what
//! it is.

use serde::de::DeserializeOwned;

use crate::limits;

/// Characters of one line of a reader's message; a line of a file can be any length.
const LINE_MAX: usize = 200;

/// The path and the problem of a reader's message; a message of another form is kept. `path` is
/// that of the field, `.` or empty for the whole.
pub(crate) fn reworded(path: &str, message: &str) -> (String, String) {
    let path = if path == "." { "" } else { path };
    if let Some(name) = message.strip_prefix("missing field ") {
        let name = name.trim_matches('`');
        let path = if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
        return (path, "must be given, got nothing".to_owned());
    }
    let problem = [
        ("unknown field ", ", expected "),
        ("unknown variant ", ", expected "),
        ("invalid type: ", ", expected "),
        ("invalid value: ", ", expected "),
        ("invalid length ", ", expected "),
    ]
    .iter()
    .find_map(|(start, middle)| message.strip_prefix(start)?.rsplit_once(middle))
    .map(|(got, wanted)| format!("must be {}, got {}", spelled_out(path, wanted), given(got)));
    let problem = problem.unwrap_or_else(|| match message {
        "wanted exactly 1 element, more than 1 element" => {
            "must have one key only, got several".to_owned()
        }
        "data did not match any variant of untagged enum BoundText" => {
            "must be a number or \">=number\", got another kind of value".to_owned()
        }
        "wanted string or table" => "must be one of the variants, got another value".to_owned(),
        other => other.to_owned(),
    });
    (path.to_owned(), cut(&problem))
}

/// Refuses a title that cannot stand in a line of a terminal: what it must be, and what it is.
pub(crate) fn title(title: &str) -> Result<(), (&'static str, String)> {
    if title.contains(['\n', '\r']) {
        return Err(("one line", "several".to_owned()));
    }
    if title.trim().is_empty() {
        return Err(("a text", "an empty one".to_owned()));
    }
    match title.chars().find(|letter| letter.is_control()) {
        Some(letter) => {
            Err(("without control characters", format!("one with {}", letter.escape_unicode())))
        }
        None => Ok(()),
    }
}

/// What must be one of `names`; where there is none, `none` says what forbids all.
pub(crate) fn one_of(names: &[&str], none: &str) -> String {
    match names {
        [] => format!("left out, since {none}"),
        names => format!("one of {}", names.join(", ")),
    }
}

/// What serde wants: an integer with its range, or a kind of value.
fn spelled_out(path: &str, wanted: &str) -> String {
    let whole = |min: i64, max: i64| format!("a whole number of {min} to {max}");
    match wanted {
        "u32" => {
            let (min, max) = range(path);
            whole(min.into(), max.into()) + narrowed(path)
        }
        // TOML has no larger integer.
        "u64" => whole(0, i64::MAX),
        "i64" => whole(i64::MIN, i64::MAX),
        "a string" | "a borrowed string" => "a text".to_owned(),
        "a boolean" => "true or false".to_owned(),
        "a sequence" => "a list".to_owned(),
        "a map" => "a table".to_owned(),
        "unit variant" | "variant identifier" | "string or table" | "string only" => {
            "one of the variants".to_owned()
        }
        other if other.starts_with("enum ") => "one of the variants".to_owned(),
        other if other.starts_with("struct ") || other.ends_with(" variant") => {
            "a table".to_owned()
        }
        other if other.starts_with("tuple ") => "a list".to_owned(),
        other => other.to_owned(),
    }
}

/// The range of a 32-bit field.
fn range(path: &str) -> (u32, u32) {
    let range = match path {
        "prefill.pages" | "decode.pages" => &limits::POOL_PAGES,
        "layout.page_size" => &limits::PAGE_SIZE,
        "layout.ranks" => &limits::RANKS,
        "prefill.workers" | "decode.workers" => &limits::WORKERS,
        "prefill.chunk_tokens" => &limits::CHUNK_TOKENS,
        _ => return (0, u32::MAX),
    };
    (*range.start(), *range.end())
}

/// What is said of a range that other fields narrow: a file that does not parse has none of them.
fn narrowed(path: &str) -> &'static str {
    match path {
        "prefill.pages" | "decode.pages" | "prefill.chunk_tokens" => {
            " (or less, where other fields narrow it)"
        }
        _ => "",
    }
}

/// What serde got.
fn given(got: &str) -> String {
    match got {
        "map" => "a table".to_owned(),
        "sequence" => "a list".to_owned(),
        "null" | "unit value" => "null".to_owned(),
        "unit variant" | "newtype variant" | "struct variant" | "tuple variant" => {
            "another kind of value".to_owned()
        }
        // The length of a list; a table was wanted.
        length if length.parse::<u64>().is_ok() => "a list".to_owned(),
        other => other.to_owned(),
    }
}

/// A message with every line cut where it is long.
pub(crate) fn cut(message: &str) -> String {
    let lines = message.trim_end().lines().map(|line| match line.char_indices().nth(LINE_MAX) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    });
    lines.collect::<Vec<String>>().join("\n")
}

/// A value of one line of JSON, or the path of the field (empty for the line) and its problem.
pub(crate) fn json_line<T: DeserializeOwned>(line: &str) -> Result<T, (String, String)> {
    let mut json = serde_json::Deserializer::from_str(line);
    let value = serde_path_to_error::deserialize(&mut json)
        .map_err(|error| json_problem(&error.path().to_string(), error.inner()))?;
    json.end().map_err(|error| json_problem("", &error))?;
    Ok(value)
}

/// The line of JSON is always the first, so that the column alone is said, and only where the text
/// is no JSON.
fn json_problem(path: &str, error: &serde_json::Error) -> (String, String) {
    let text = error.to_string();
    let message = text.rsplit_once(" at line ").map_or(&*text, |(message, _)| message);
    let (path, problem) = reworded(path, message);
    if error.is_data() {
        (path, problem)
    } else {
        (String::new(), format!("must be JSON, got column {}: {problem}", error.column()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_values_are_named_in_words() {
        for (message, problem) in [
            ("invalid type: integer `3`, expected struct LayoutConfig", "a table, got integer `3`"),
            ("invalid length 0, expected struct Keys with 3 elements", "a table, got a list"),
            ("invalid type: map, expected a sequence", "a list, got a table"),
            (
                "invalid type: unit variant, expected string only",
                "one of the variants, got another kind of value",
            ),
            ("invalid type: map, expected unit variant", "one of the variants, got a table"),
            (
                "data did not match any variant of untagged enum BoundText",
                "a number or \">=number\", got another kind of value",
            ),
        ] {
            assert_eq!(reworded("x", message), ("x".to_owned(), format!("must be {problem}")));
        }
    }

    #[test]
    fn an_empty_list_of_choices_says_what_forbids_all() {
        assert_eq!(one_of(&["a", "b"], "none is there"), "one of a, b");
        assert_eq!(one_of(&[], "the plan has no axis"), "left out, since the plan has no axis");
    }

    #[test]
    fn a_long_line_is_cut() {
        let text = cut(&format!("short\n{}\nshort", "é".repeat(1_000)));
        assert_eq!(text, format!("short\n{}…\nshort", "é".repeat(LINE_MAX)));
    }

    #[test]
    fn a_line_of_json_names_the_field_and_only_what_is_no_json_a_column() {
        let error = |line| json_line::<std::collections::BTreeMap<String, u32>>(line).unwrap_err();
        assert_eq!(error("[]").0, "");
        assert_eq!(error("[]").1, "must be a table, got a list");
        assert_eq!(error("{\"a\": true}").0, "a");
        assert!(error("{\"a\": 1").1.starts_with("must be JSON, got column 7: EOF"));
    }
}
