//! Lines as they come: those of users and of public reports are known, whatever stands around
//! them, and are explained by their numbers.

use std::fs;
use std::path::Path;

use kvseam::engine::error_texts;
use kvseam::explain::foreign;
use serde::Deserialize;

#[expect(dead_code, reason = "files are for other tests")]
mod common;
use common::{kvseam, with_input};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Lines {
    line: Vec<Brought>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Brought {
    /// Where the line stands.
    report: String,
    text: String,
    /// What the answer must say, whatever the white space.
    says: Vec<String>,
}

fn brought() -> Vec<Brought> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lines.toml");
    toml::from_str::<Lines>(&fs::read_to_string(path).unwrap()).unwrap().line
}

fn joined(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn lines_that_users_brought_are_explained_by_their_numbers() {
    let lines = brought();
    assert!(lines.len() >= 12 + 20, "only {} lines", lines.len());
    let mut missed = Vec::new();
    for Brought { report, text, says } in lines {
        let said = joined(&kvseam(&["explain", text.trim()]).data(0));
        let lacks: Vec<&String> = says.iter().filter(|words| !said.contains(*words)).collect();
        if !lacks.is_empty() {
            missed.push(format!("{report}: {text}\nlacks {lacks:?} in\n{said}\n"));
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

/// Each line is wrapped at 80 columns as a terminal does, in colour, and quoted as in JSON.
#[test]
fn a_line_is_the_same_wrapped_coloured_and_quoted() {
    for Brought { report, text, .. } in brought() {
        let text = joined(&text);
        let plain = kvseam(&["explain", "--format", "json", &text]).json(0);
        let mut wrapped = String::new();
        let mut column = 0;
        for word in text.split(' ') {
            column += word.len() + 1;
            let is_over = column > 80;
            wrapped += if is_over { "\n    " } else { " " };
            wrapped += word;
            column = if is_over { word.len() } else { column };
        }
        for other in [
            wrapped,
            format!("\u{1b}[31mERROR\u{1b}[0m {text}"),
            format!("{{\"level\": \"error\", \"msg\": \"{text}\\n\"}}"),
            format!("> `{text}`"),
        ] {
            let said = kvseam(&["explain", "--format", "json", &other]).json(0);
            for key in ["code", "codes", "form", "numbers", "holds"] {
                assert_eq!(said[key], plain[key], "{report}: {other}");
            }
        }
    }
}

#[test]
fn a_log_is_read_to_its_end_and_each_kind_is_explained_once() {
    let lines = brought();
    let mut log = String::from("[2026-08-23 09:10:52 TP0] Prefill batch, #new-seq: 1\n");
    for Brought { text, .. } in lines.iter().chain(&lines) {
        log += &format!("Traceback (most recent call last):\n{}\n\n", text.trim());
    }
    log += "ready\nready\nready\ntorch.OutOfMemoryError: CUDA out of memory\n";
    for words in [&["explain"][..], &["explain", "-"], &["explain", "--log", "-"]] {
        let words = [words, &["--format", "json"]].concat();
        let summary = with_input(&words, &log).json(0);
        assert_eq!(summary["lines"], log.lines().count());
        let kinds = summary["kinds"].as_array().unwrap();
        let counts: u64 = kinds.iter().map(|kind| kind["count"].as_u64().unwrap()).sum();
        assert_eq!(counts, 2 * lines.len() as u64, "{summary:#}");
        assert_eq!(summary["unknown"], 1, "{summary:#}");
        let forms: Vec<&str> = kinds.iter().map(|kind| kind["form"].as_str().unwrap()).collect();
        let mut distinct = forms.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), forms.len(), "each kind once");
    }
    let said = with_input(&["explain", "-"], &log).data(0);
    assert!(said.starts_with("stdin: "), "{said}");
    let nothing = with_input(&["explain"], "all is well\n").data(0);
    assert!(nothing.contains("1 lines, 0 of them known"), "{nothing}");
}

#[test]
fn a_release_says_whether_it_can_print_a_line_and_what_would_have_to_differ() {
    let line = "index 102 is out of bounds for axis 0 with size 102";
    let said = joined(&kvseam(&["explain", "--profile", "sglang-0.5.23", line]).data(0));
    assert!(said.contains("Can sglang-0.5.23 print it: not as it is modelled"), "{said}");
    assert!(said.contains("sound as modelled"), "{said}");
    assert!(said.contains("instead of"), "{said}");
    let said = joined(&kvseam(&["explain", "--profile", "sglang-0.5.17", line]).data(0));
    assert!(said.contains("Can sglang-0.5.17 print it: no"), "{said}");
    let unknown = kvseam(&["explain", "--profile", "sglang-0.5.1", line]).message();
    assert!(unknown.contains("sglang-0.5.17"), "{unknown}");
    let code = kvseam(&["explain", "--profile", "sglang-0.5.23", "placed.missing"]).message();
    assert!(code.contains("must be given with a line"), "{code}");
}

#[test]
fn a_near_miss_is_answered_with_the_nearest() {
    for (word, meant) in [
        ("placed.mising", "did you mean placed.missing"),
        ("page_leaked", "did you mean page.leaked"),
        ("insuficient destination DCP pages", "did you mean \"Insufficient destination DCP pages"),
        ("Local block size is no divisor of remote block size", "did you mean \"Local block size"),
    ] {
        let message = kvseam(&["explain", word]).message();
        assert!(message.contains(meant), "{message}");
    }
}

/// No text of a modelled engine has a row of its own in the other table. Another backend's planner
/// has a text of its own that ends like one of them.
#[test]
fn no_text_stands_in_both_tables() {
    for text in error_texts() {
        let others = foreign::all().filter(|other| !other.form.starts_with("Ascend"));
        assert!(others.into_iter().all(|other| !other.form.contains(text.mark)), "{}", text.mark);
    }
}
