//! Findings about files as SARIF 2.1.0, which code hosts show beside the files.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::{Value, json};

/// Where the format is described.
const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";

/// What is said of one file.
pub(super) struct Result {
    /// The kind, by which results are grouped.
    pub(super) rule: String,
    /// Whether it is an error, or else a warning.
    pub(super) is_error: bool,
    /// The sentence.
    pub(super) message: String,
    /// The file, if it is one.
    pub(super) file: Option<String>,
}

/// A log of one run of this program, whose kinds of result are described by `rules`.
pub(super) fn log(rules: &BTreeMap<String, String>, results: &[Result]) -> String {
    let rules =
        rules.iter().map(|(id, text)| json!({"id": id, "shortDescription": {"text": text}}));
    let driver = json!({
        "name": "kvseam",
        "version": env!("CARGO_PKG_VERSION"),
        "rules": rules.collect::<Vec<_>>(),
    });
    let results: Vec<Value> = results.iter().map(result).collect();
    let log = json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": results}],
    });
    serde_json::to_string_pretty(&log).expect("it is made of texts and lists")
}

fn result(Result { rule, is_error, message, file }: &Result) -> Value {
    let location = file.as_ref().map(|file| {
        json!({"physicalLocation": {
            "artifactLocation": {"uri": uri(file)},
            "region": {"startLine": 1},
        }})
    });
    json!({
        "ruleId": rule,
        "level": if *is_error { "error" } else { "warning" },
        "message": {"text": message},
        "locations": location.into_iter().collect::<Vec<_>>(),
    })
}

/// A path as a relative reference: what is no plain letter of a path is escaped.
fn uri(path: &str) -> String {
    let mut uri = String::new();
    for &byte in path.as_bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            write!(uri, "%{byte:02X}").expect("a text takes what is written");
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_names_its_rule_and_its_file() {
        let rules = BTreeMap::from([("a=b".to_owned(), "why".to_owned())]);
        let result = Result {
            rule: "a=b".to_owned(),
            is_error: false,
            message: "wrong".to_owned(),
            file: Some("sims/a b.toml".to_owned()),
        };
        let log: Value = serde_json::from_str(&log(&rules, &[result])).unwrap();
        let run = &log["runs"][0];
        assert_eq!(log["version"], "2.1.0");
        assert_eq!(run["tool"]["driver"]["rules"][0]["id"], run["results"][0]["ruleId"]);
        assert_eq!(run["results"][0]["level"], "warning");
        let location = &run["results"][0]["locations"][0]["physicalLocation"];
        assert_eq!(location["artifactLocation"]["uri"], "sims/a%20b.toml");
    }
}
