//! The command that repeats a run of a sweep.

use std::fmt::Write as _;

use toml::{Table, Value};

use crate::sweep::cell::CellId;
use crate::sweep::plan::Plan;

/// The command that repeats one run.
pub fn command(plan: &Plan, cell: CellId, seed: u64) -> String {
    let base = plan.sources.base_path.display().to_string();
    let mut command = format!("kvseam run {}", shell(&base));
    for point in plan.points(cell) {
        for (path, value) in &point.set {
            let setting = format!("{path}={}", spelled(value));
            write!(command, " --set {}", shell(&setting)).expect("writing to a text");
        }
    }
    write!(command, " --set seed={seed}").expect("writing to a text");
    command
}

/// A value as `--set` takes it: a text needs quotes only where it could be another value.
fn spelled(value: &Value) -> String {
    match value.as_str() {
        Some(text) if toml::from_str::<Table>(&format!("value = {text}")).is_err() => {
            text.to_owned()
        }
        _ => value.to_string(),
    }
}

/// A word of a command line.
pub(crate) fn shell(word: &str) -> String {
    let safe = |letter: char| letter.is_ascii_alphanumeric() || "-_./=:,+".contains(letter);
    if !word.is_empty() && word.chars().all(safe) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::plan::tests::small;

    #[test]
    fn commands_repeat_a_run_of_the_cell() {
        assert_eq!(
            command(&small(), CellId(3), 7),
            "kvseam run base.toml --set layout.page_size=16 --set layout.ranks=2 \
             --set behaviour.decode_match_unit=physical_page \
             --set behaviour.decode_prefix_cut=padded_up --set seed=7"
        );
        assert_eq!(shell("it's"), r"'it'\''s'");
    }

    #[test]
    fn settings_mean_what_the_plan_says() {
        for (value, text) in [
            (Value::from("padded_up"), "padded_up"),
            (Value::from("16"), "\"16\""),
            (Value::from(16), "16"),
            (Value::from(vec![1, 2]), "[1, 2]"),
        ] {
            assert_eq!(spelled(&value), text);
        }
    }
}
