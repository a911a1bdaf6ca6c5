//! Two recordings of the same calls, made with two releases: what is answered differently.
//!
//! Lines are paired by what was asked: a planner call by its input, a whole run by its scenario, an
//! allocator or tree by its configuration and first call. Of a pair the first difference counts:
//! what comes after it may follow from it. Differences of one kind are one [`Change`].

use std::collections::{BTreeMap, VecDeque};

use serde::Serialize;
use serde_json::{Map, Value};

use super::{Format, LineError, malformed, parse, recognise};

type Object = Map<String, Value>;

/// A line that was read.
#[derive(Clone, Debug)]
pub struct Line {
    number: u64,
    format: Format,
    fields: Object,
}

/// Lines of one format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Pairs {
    /// Pairs that are answered equally.
    pub equal: u64,
    /// Pairs that are not.
    pub different: u64,
    /// Lines of the first file that the second does not ask.
    pub only_first: u64,
    /// Lines of the second file that the first does not ask.
    pub only_second: u64,
}

/// Differences of one kind.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    /// How many pairs first differ so.
    pub lines: u64,
    /// The smallest pair that does.
    pub smallest: Example,
}

/// A pair that differs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Example {
    /// Its line in the first file, from 1.
    pub first_line: u64,
    /// Its line in the second file, from 1.
    pub second_line: u64,
    /// Where it differs.
    pub path: String,
    /// What was asked there.
    pub asked: Value,
    /// What the first answered.
    pub first: Value,
    /// What the second answered.
    pub second: Value,
    /// Calls up to the difference, then characters of the line: what smaller means.
    #[serde(skip)]
    size: (usize, usize),
}

/// Two recordings side by side.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Watched {
    /// Pairs by format.
    pub formats: BTreeMap<Format, Pairs>,
    /// Changes by kind.
    pub changes: BTreeMap<String, Change>,
}

/// A difference before it is counted.
struct Difference {
    kind: String,
    path: String,
    asked: Value,
    first: Value,
    second: Value,
    calls: usize,
}

/// Reads a line.
///
/// # Errors
/// Names the field that is missing or of the wrong type.
pub fn read(number: u64, line: &str) -> Result<Line, LineError> {
    let format = recognise(line)?;
    let fields: Object = parse(line)?;
    let (list, name) = match format {
        Format::Plan => {
            let mut answers = fields.iter().filter(|(key, _)| *key != "input").peekable();
            let is_given = answers.peek().is_some();
            return match is_given && answers.all(|(_, answer)| answer.is_object()) {
                true => Ok(Line { number, format, fields }),
                false => Err(malformed("must have the answer of a release beside input")),
            };
        }
        Format::Alloc | Format::Radix => ("ops", "op"),
        Format::Run => ("events", "ev"),
    };
    let items = fields.get(list).and_then(Value::as_array);
    let is_named = |item: &Value| item.get(name).is_some_and(Value::is_string);
    match items {
        Some(items) if items.iter().all(is_named) => Ok(Line { number, format, fields }),
        Some(_) | None => {
            let message = format!("must be a list of objects with the text {name}");
            Err(LineError::Malformed { path: list.to_owned(), message })
        }
    }
}

impl Watched {
    /// Pairs the lines of two recordings and compares them.
    pub fn new(first: &[Line], second: Vec<Line>) -> Watched {
        let mut watched = Watched::default();
        let mut waiting: BTreeMap<String, VecDeque<Line>> = BTreeMap::new();
        for line in second {
            waiting.entry(line.question()).or_default().push_back(line);
        }
        for line in first {
            let pair = waiting.get_mut(&line.question()).and_then(VecDeque::pop_front);
            match pair {
                Some(pair) => watched.pair(line, &pair),
                None => watched.of(line).only_first += 1,
            }
        }
        for line in waiting.values().flatten() {
            watched.of(line).only_second += 1;
        }
        watched
    }

    /// Whether both answer the same questions, and the same.
    pub fn is_equal(&self) -> bool {
        let is_equal = |pairs: &Pairs| pairs.different + pairs.only_first + pairs.only_second == 0;
        self.formats.values().all(is_equal)
    }

    /// Whether any line of one has a pair in the other.
    pub fn has_pairs(&self) -> bool {
        self.formats.values().any(|pairs| pairs.equal + pairs.different > 0)
    }

    fn of(&mut self, line: &Line) -> &mut Pairs {
        self.formats.entry(line.format).or_default()
    }

    fn pair(&mut self, first: &Line, second: &Line) {
        let Some(difference) = first.difference(second) else {
            self.of(first).equal += 1;
            return;
        };
        self.of(first).different += 1;
        let Difference { kind, path, asked, first: one, second: other, calls } = difference;
        let smallest = Example {
            first_line: first.number,
            second_line: second.number,
            path,
            asked,
            first: one,
            second: other,
            size: (calls, Value::Object(first.fields.clone()).to_string().len()),
        };
        let kind = format!("{}: {kind}", first.format.name());
        let change = self.changes.entry(kind);
        let change = change.or_insert_with(|| Change { lines: 0, smallest: smallest.clone() });
        change.lines += 1;
        if smallest.size < change.smallest.size {
            change.smallest = smallest;
        }
    }
}

/// The fields of a call that are its answer; `rows` of what gives rows back are none.
fn is_answer(op: &Object, field: &str) -> bool {
    let gives = op.get("op").is_some_and(|op| op == "free" || op == "insert");
    match field {
        "rows" => !gives,
        "available" | "matched" | "evicted" | "freed" | "evictable" | "protected" => true,
        _ => false,
    }
}

fn asked(op: &Object) -> Object {
    let fields = op.iter().filter(|(field, _)| !is_answer(op, field));
    fields.map(|(field, value)| (field.clone(), value.clone())).collect()
}

impl Line {
    fn list(&self, name: &str) -> Vec<&Object> {
        let items = self.fields.get(name).and_then(Value::as_array);
        items.into_iter().flatten().filter_map(Value::as_object).collect()
    }

    /// What is known to be asked before anything is answered.
    fn question(&self) -> String {
        let mut fields: Object = self.fields.clone();
        match self.format {
            Format::Plan => fields.retain(|key, _| key == "input"),
            Format::Run => {
                fields.retain(|key, _| ["format", "kind", "number", "scenario"].contains(&&**key));
            }
            Format::Alloc | Format::Radix => {
                let first = self.list("ops").first().map(|op| asked(op));
                fields.insert("ops".to_owned(), first.map_or(Value::Null, Value::Object));
            }
        }
        Value::Object(fields).to_string()
    }

    fn difference(&self, other: &Line) -> Option<Difference> {
        match self.format {
            Format::Plan => self.answer_difference(other),
            Format::Alloc | Format::Radix => self.op_difference(other),
            Format::Run => self.event_difference(other),
        }
    }

    /// The answers of a planner call, by release.
    fn answers(&self) -> impl Iterator<Item = (&String, &Object)> {
        let answers = self.fields.iter().filter(|(key, _)| *key != "input");
        answers.filter_map(|(key, answer)| Some((key, answer.as_object()?)))
    }

    /// Compares the answers of the releases that both lines name; of lines that name none in
    /// common, the first of each.
    fn answer_difference(&self, other: &Line) -> Option<Difference> {
        let mut shared = self
            .answers()
            .filter_map(|(key, first)| Some((first, other.fields.get(key)?.as_object()?)))
            .peekable();
        if shared.peek().is_some() {
            return shared.find_map(|(first, second)| self.other_answer(first, second));
        }
        let ((_, first), (_, second)) = (self.answers().next()?, other.answers().next()?);
        self.other_answer(first, second)
    }

    fn other_answer(&self, first: &Object, second: &Object) -> Option<Difference> {
        if first == second {
            return None;
        }
        let error = |answer: &Object| {
            let kind = answer.get("error").and_then(|error| error.get("type"));
            kind.and_then(Value::as_str).map(str::to_owned)
        };
        let (kind, path) = match (error(first), error(second)) {
            (Some(one), Some(two)) if one == two => (format!("another text of {one}"), "error"),
            (Some(one), Some(two)) => (format!("{one} is now {two}"), "error"),
            (Some(one), None) => (format!("{one} is now answered"), "ok"),
            (None, Some(two)) => (format!("answered before, now {two}"), "ok"),
            (None, None) => (other_fields(&rows(first), &rows(second)), "ok"),
        };
        Some(Difference {
            kind,
            path: path.to_owned(),
            asked: self.fields["input"].clone(),
            first: Value::Object(first.clone()),
            second: Value::Object(second.clone()),
            calls: 1,
        })
    }

    fn op_difference(&self, other: &Line) -> Option<Difference> {
        let (first, second) = (self.list("ops"), other.list("ops"));
        for (at, (&one, &two)) in first.iter().zip(&second).enumerate() {
            if one == two {
                continue;
            }
            let op = one["op"].as_str().unwrap_or_default();
            let kind = match asked(one) == asked(two) {
                true => format!("{op}, {}", other_fields(one, two)),
                false => "something else is asked".to_owned(),
            };
            return Some(Difference {
                kind,
                path: format!("ops[{at}]"),
                asked: Value::Object(asked(one)),
                first: Value::Object(one.clone()),
                second: Value::Object(two.clone()),
                calls: at + 1,
            });
        }
        (first.len() != second.len()).then(|| ended("ops", first.len(), second.len()))
    }

    fn event_difference(&self, other: &Line) -> Option<Difference> {
        let (first, second) = (self.list("events"), other.list("events"));
        for (at, (&one, &two)) in first.iter().zip(&second).enumerate() {
            if one == two {
                continue;
            }
            let name = |event: &Object| event["ev"].as_str().unwrap_or_default().to_owned();
            let kind = match name(one) == name(two) {
                true => format!("{}, {}", name(one), other_fields(one, two)),
                false => format!("{} is now {}", name(one), name(two)),
            };
            return Some(Difference {
                kind,
                path: format!("events[{at}]"),
                asked: self.fields.get("scenario").cloned().unwrap_or_default(),
                first: Value::Object(one.clone()),
                second: Value::Object(two.clone()),
                calls: self.requests(),
            });
        }
        (first.len() != second.len()).then(|| ended("events", first.len(), second.len()))
    }

    /// Requests of a whole run.
    fn requests(&self) -> usize {
        let requests = self.fields.get("scenario").and_then(|scenario| scenario.get("requests"));
        requests.and_then(Value::as_array).map_or(0, Vec::len)
    }
}

fn rows(answer: &Object) -> Object {
    answer.get("ok").and_then(Value::as_object).cloned().unwrap_or_default()
}

/// Which fields differ, or which only one side has where the common ones are equal.
fn other_fields(first: &Object, second: &Object) -> String {
    let list = |fields: Vec<&String>| {
        let names: Vec<&str> = fields.into_iter().map(String::as_str).collect();
        names.join(", ")
    };
    let differs = |field: &&String| second.get(*field).is_some_and(|two| *two != first[*field]);
    let other: Vec<&String> = first.keys().filter(differs).collect();
    if !other.is_empty() {
        return format!("other {}", list(other));
    }
    let gone: Vec<&String> = first.keys().filter(|field| !second.contains_key(*field)).collect();
    let new: Vec<&String> = second.keys().filter(|field| !first.contains_key(*field)).collect();
    match gone.is_empty() {
        true => format!("with {} now", list(new)),
        false => format!("without {} now", list(gone)),
    }
}

/// One side goes on where the other has ended.
fn ended(list: &str, first: usize, second: usize) -> Difference {
    Difference {
        kind: "one goes on where the other ends".to_owned(),
        path: list.to_owned(),
        asked: Value::Null,
        first: first.into(),
        second: second.into(),
        calls: first.min(second),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watch(first: &[&str], second: &[&str]) -> Watched {
        let lines = |texts: &[&str]| {
            let lines = (1..).zip(texts).map(|(number, text)| read(number, text).unwrap());
            lines.collect::<Vec<Line>>()
        };
        Watched::new(&lines(first), lines(second))
    }

    fn kinds(watched: &Watched) -> Vec<(&str, u64)> {
        watched.changes.iter().map(|(kind, change)| (&**kind, change.lines)).collect()
    }

    #[test]
    fn equal_answers_are_equal_in_whatever_order_and_under_whichever_release() {
        let [one, two] = [
            r#"{"input":{"a":1},"x":{"ok":{"src":[1]}}}"#,
            r#"{"input":{"a":2},"x":{"error":{"type":"E","message":"m"}}}"#,
        ];
        let other = two.replace("\"x\"", "\"y\"");
        let watched = watch(&[one, two], &[&other, one]);
        assert!(watched.is_equal() && watched.has_pairs());
    }

    #[test]
    fn differences_of_a_kind_are_one_change_with_the_smallest_example() {
        let line = |n: &str, rows: &str| {
            format!(r#"{{"input":{{"a":[{n}]}},"x":{{"ok":{{"src":[{rows}]}}}}}}"#)
        };
        let (long, short) = (line("1,2,3", "1"), line("1", "1"));
        let watched = watch(&[&long, &short], &[&line("1,2,3", "2"), &line("1", "2")]);
        assert_eq!(kinds(&watched), [("plan: other src", 2)]);
        let smallest = &watched.changes["plan: other src"].smallest;
        assert_eq!((smallest.first_line, smallest.second_line), (2, 2));
        assert!(!watched.is_equal());
    }

    #[test]
    fn of_a_tree_the_first_other_answer_counts_and_nothing_behind_it() {
        let tree = |freed: &str, size: u32| {
            format!(
                r#"{{"policy":"lru","page_size":1,"ops":[
            {{"op":"insert","key":[1],"rows":[1],"matched":0,"evictable":1}},
            {{"op":"evict","tokens":1,"freed":{freed},"evictable":{size}}},
            {{"op":"match","key":[{size}],"rows":[],"evictable":{size}}}]}}"#
            )
        };
        let watched = watch(&[&tree("[[1]]", 0)], &[&tree("[]", 1)]);
        assert_eq!(kinds(&watched), [("radix: evict, other evictable, freed", 1)]);
        let smallest = watched.changes.values().next().unwrap();
        assert_eq!(smallest.smallest.path, "ops[1]");
    }

    #[test]
    fn of_a_whole_run_the_first_other_event_counts() {
        let run = |version: &str, prefix: u32, last: &str| {
            format!(
                r#"{{"format":"f","version":"{version}",
            "kind":"seq","number":1,"scenario":{{"requests":[{{}}]}},
            "events":[{{"t":0,"ev":"reserved","S":{prefix}}},{{"t":1,"ev":"{last}"}}]}}"#
            )
        };
        let one = run("1", 0, "finished");
        assert!(watch(&[&one], &[&run("2", 0, "finished")]).is_equal());
        let kinds_of = |other: &str| {
            kinds(&watch(&[&one], &[other])).into_iter().map(|(kind, _)| kind.to_owned()).collect()
        };
        let prefix: Vec<String> = kinds_of(&run("2", 4, "stuck"));
        assert_eq!(prefix, ["run: reserved, other S"]);
        let ending: Vec<String> = kinds_of(&run("2", 0, "stuck"));
        assert_eq!(ending, ["run: finished is now stuck"]);
    }

    #[test]
    fn what_only_one_recording_asks_is_counted() {
        let line = |n: u32| format!(r#"{{"input":{{"a":{n}}},"x":{{"ok":{{}}}}}}"#);
        let watched = watch(&[&line(1)], &[&line(2), &line(3)]);
        let pairs = Pairs { only_first: 1, only_second: 2, ..Pairs::default() };
        assert_eq!(watched.formats[&Format::Plan], pairs);
        assert!(!watched.is_equal() && !watched.has_pairs());
    }

    #[test]
    fn a_line_that_is_no_recording_is_refused() {
        for line in [
            "{}",
            "[]",
            "{\"input\":{}}",
            "{\"policy\":\"lru\",\"ops\":[{}]}",
            "{\"events\":3}",
            "{\"input\":{},\"policy\":\"lru\"}",
        ] {
            assert!(matches!(read(1, line), Err(LineError::Malformed { .. })), "{line}");
        }
    }
}
