//! Tables of a report as comma-separated values (RFC 4180), with a head and unrounded numbers.

use super::value::Value;

/// A head and rows of the same length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Csv {
    /// Names of the columns.
    pub head: Vec<String>,
    /// The rows.
    pub rows: Vec<Vec<String>>,
}

/// The columns that [`value`] fills.
pub(crate) const VALUE: [&str; 6] = ["state", "hits", "chances", "share", "low", "high"];

/// The columns that begin with `names` and end with others.
pub(crate) fn head(names: &[&str], others: &[&str]) -> Vec<String> {
    names.iter().chain(others).map(|&name| name.to_owned()).collect()
}

/// Whether a cell was run, its rate and the 95 % interval. What it does not have is empty.
pub(crate) fn value(value: Value) -> [String; 6] {
    let bare = |state: &str| {
        let empty = String::new;
        [state.to_owned(), empty(), empty(), empty(), empty(), empty()]
    };
    let rate = match value {
        Value::Share(rate) => rate,
        Value::Impossible => return bare("impossible"),
        Value::NotRun => return bare("not run yet"),
    };
    match rate.interval() {
        None => bare("not reached"),
        Some(interval) => [
            "ran".to_owned(),
            rate.hits.to_string(),
            rate.chances.to_string(),
            interval.share.to_string(),
            interval.low.to_string(),
            interval.high.to_string(),
        ],
    }
}

impl Csv {
    /// As a file.
    pub fn text(&self) -> String {
        let mut writer = csv::Writer::from_writer(Vec::new());
        for row in std::iter::once(&self.head).chain(&self.rows) {
            writer
                .write_record(row)
                .expect("rows have the length of the head, and memory takes them");
        }
        let bytes = writer.into_inner().expect("memory takes what is written");
        String::from_utf8(bytes).expect("texts make a text")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::Rate;

    #[test]
    fn fields_are_quoted_where_they_must_be() {
        let csv = Csv {
            head: head(&["a"], &["b"]),
            rows: vec![vec!["1, \"2\"".to_owned(), "3 %".to_owned()]],
        };
        assert_eq!(csv.text(), "a,b\n\"1, \"\"2\"\"\",3 %\n");
    }

    #[test]
    fn what_is_not_there_is_empty_and_never_zero() {
        assert_eq!(value(Value::Impossible), ["impossible", "", "", "", "", ""]);
        assert_eq!(value(Value::NotRun)[0], "not run yet");
        let none = Value::Share(Rate { hits: 0, chances: 0 });
        assert_eq!(value(none), ["not reached", "", "", "", "", ""]);
        let some = Value::Share(Rate { hits: 1, chances: 4 });
        assert_eq!(value(some)[..4], ["ran", "1", "4", "0.25"]);
    }
}
