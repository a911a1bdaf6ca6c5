//! A scenario as a TOML file: reading, printing and setting single fields.
//!
//! Reading is strict: what no field has is refused with its path. Paths are spelled with dots, list
//! indices included (`workload.requests.0.output`), in errors as in assignments.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_path_to_error::Segment;
use thiserror::Error;
use toml::{Table, Value};

use super::{Bound, Scenario, VERSION, WorkloadConfig, is_default};
use crate::wording::{cut, reworded};

/// Why a text is not a scenario.
#[derive(Debug, Error)]
pub enum FileError {
    /// The file could not be read.
    #[error("{file}: {reason}")]
    Read {
        /// The file.
        file: String,
        /// What the system said.
        reason: std::io::Error,
    },
    /// The text is not TOML, or an assignment is not one.
    #[error("{file}: {problem}")]
    Syntax {
        /// The file, or `--set`.
        file: String,
        /// What was wrong, with the line.
        problem: String,
    },
    /// A field is unknown, missing or of the wrong type.
    #[error("{file}: {path}: {problem}")]
    Field {
        /// The file, or `--set`.
        file: String,
        /// The field.
        path: String,
        /// What it must be, and what it is.
        problem: String,
    },
}

/// Reads the scenario file at `path`.
pub fn load(path: &Path) -> Result<Scenario, FileError> {
    let file = path.display().to_string();
    match std::fs::read_to_string(path) {
        Ok(text) => parse(&text, &file),
        Err(reason) => Err(FileError::Read { file, reason }),
    }
}

/// Reads a scenario from a text; errors call it `name`.
pub fn parse(text: &str, name: &str) -> Result<Scenario, FileError> {
    from_table(table(text, name)?, name)
}

/// The fields of a text, for [`set`] before [`from_table`].
pub fn table(text: &str, name: &str) -> Result<Table, FileError> {
    toml::from_str(text).map_err(|error| FileError::Syntax {
        file: name.to_owned(),
        problem: cut(&error.to_string()),
    })
}

/// The scenario of these fields; errors call it `name`.
pub fn from_table(table: Table, name: &str) -> Result<Scenario, FileError> {
    check_version(&table).map_err(|problem| field(name, "version", problem))?;
    serde_path_to_error::deserialize(table).map_err(|error| {
        let (path, problem) = reworded(&dotted(error.path()), error.inner().message());
        field(name, &path, problem)
    })
}

/// Carries out `path=value`. The value is spelled as in TOML; what is no TOML value is a text.
/// Tables on the way are made where they are missing, so [`from_table`] says whether the field
/// exists.
pub fn set(table: &mut Table, assignment: &str) -> Result<(), FileError> {
    let syntax = || FileError::Syntax {
        file: SET.to_owned(),
        problem: format!("must be path=value, got \"{assignment}\""),
    };
    let (path, value) = assignment.split_once('=').ok_or_else(syntax)?;
    let keys = path_keys(path).ok_or_else(syntax)?;
    set_value(table, &keys, single("value", value).unwrap_or_else(|| value.trim().into()))
}

/// Sets the field of this path, list indices included.
pub fn set_value(table: &mut Table, keys: &[String], value: Value) -> Result<(), FileError> {
    let Some((first, rest)) = keys.split_first() else {
        return Err(field(SET, "", "must be the path of a field, got nothing".to_owned()));
    };
    let mut place = table.entry(first).or_insert_with(|| Table::new().into());
    for (depth, key) in rest.iter().enumerate() {
        let refuse = |problem| field(SET, &keys[..depth + 2].join("."), problem);
        place = match place {
            Value::Table(table) => table.entry(key).or_insert_with(|| Table::new().into()),
            Value::Array(list) => {
                let count = list.len();
                key.parse()
                    .ok()
                    .and_then(|index: usize| list.get_mut(index))
                    .ok_or_else(|| refuse(format!("must be an index below {count}, got {key}")))?
            }
            other => {
                let problem = format!("must lie in a table or a list, got a part of {other}");
                return Err(refuse(problem));
            }
        };
    }
    *place = value;
    Ok(())
}

/// What errors of assignments name in place of a file.
const SET: &str = "--set";

/// The keys of a path as TOML spells dotted keys.
fn path_keys(path: &str) -> Option<Vec<String>> {
    let mut table: Table = toml::from_str(&format!("{path} = 0")).ok()?;
    let mut keys = Vec::new();
    loop {
        let (key, value) = table.into_iter().next()?;
        keys.push(key);
        match value {
            Value::Table(inner) => table = inner,
            _ => return Some(keys),
        }
    }
}

/// The value of a text that assigns to `key` and nothing else.
fn single(key: &str, value: &str) -> Option<Value> {
    let mut table: Table = toml::from_str(&format!("{key} = {value}")).ok()?;
    let value = table.remove(key);
    value.filter(|_| table.is_empty())
}

fn check_version(table: &Table) -> Result<(), String> {
    match table.get("version") {
        Some(Value::Integer(version)) if *version == i64::from(VERSION) => Ok(()),
        Some(other) => Err(format!("must be {VERSION}, the only version known, got {other}")),
        None => Err(format!("must be {VERSION}, got nothing")),
    }
}

fn field(file: &str, path: &str, problem: String) -> FileError {
    FileError::Field { file: file.to_owned(), path: path.to_owned(), problem }
}

/// A path as assignments spell it. What has no name, as a key that is not known, is left out.
fn dotted(path: &serde_path_to_error::Path) -> String {
    let names = path.iter().filter_map(|segment| match segment {
        Segment::Seq { index } => Some(index.to_string()),
        Segment::Map { key } => Some(key.clone()),
        Segment::Enum { variant } => Some(variant.clone()),
        Segment::Unknown => None,
    });
    names.collect::<Vec<_>>().join(".")
}

impl Scenario {
    /// The scenario as a file, every field written out but those that are empty; each request and
    /// each fault is one line.
    pub fn to_toml(&self) -> String {
        let Scenario {
            version,
            title,
            seed,
            profile,
            layout,
            prefill,
            decode,
            link,
            pairing,
            behaviour,
            workload,
            faults,
            expect,
        } = self;
        let mut text = format!("version = {version}\ntitle = {}\n", inline(title));
        text += &format!("seed = {seed}\nprofile = {}\n", inline(profile));
        if !faults.is_empty() {
            text += &format!("faults = {}", lines(faults));
        }
        text += &section("layout", layout);
        text += &section("prefill", prefill);
        text += &section("decode", decode);
        text += &section("link", link);
        text += &section("pairing", pairing);
        if !is_default(behaviour) {
            text += &section("behaviour", behaviour);
        }
        text += &match workload {
            WorkloadConfig::Requests(list) => format!("\n[workload]\nrequests = {}", lines(list)),
            // Under its key, so that the headings of inner tables are whole.
            other => format!("\n{}", fields(&BTreeMap::from([("workload", other)]))),
        };
        if let Some(expect) = expect {
            text += &format!("\n[expect]\nfindings = {}\n", inline(&expect.findings));
            if let Some(field) = &expect.invalid {
                text += &format!("invalid = {}\n", inline(field));
            }
            if !expect.marks.is_empty() {
                text += &format!("marks = {}\n", inline(&expect.marks));
            }
        }
        text
    }
}

impl fmt::Debug for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_toml())
    }
}

fn section<T: Serialize>(name: &str, table: &T) -> String {
    format!("\n[{name}]\n{}", fields(table))
}

fn fields<T: Serialize>(table: &T) -> String {
    toml::to_string(table).expect("every field of a scenario has a TOML form")
}

fn lines<T: Serialize>(list: &[T]) -> String {
    let items: String = list.iter().map(|item| format!("    {},\n", inline(item))).collect();
    format!("[\n{items}]\n")
}

fn inline<T: Serialize + ?Sized>(value: &T) -> String {
    let mut text = String::new();
    value
        .serialize(toml::ser::ValueSerializer::new(&mut text))
        .expect("every value of a scenario has a TOML form");
    text
}

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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::tests::{small, strategy};
    use super::*;
    use crate::units::Tokens;

    fn error(text: &str) -> String {
        parse(text, "file").unwrap_err().to_string()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]
        #[test]
        fn what_is_printed_reads_back_as_itself(scenario in strategy()) {
            let text = scenario.to_toml();
            prop_assert_eq!(&parse(&text, "printed").unwrap(), &scenario);
            prop_assert_eq!(format!("{scenario:?}"), text);
        }
    }

    #[test]
    fn a_file_needs_only_what_has_no_default() {
        let text = "version = 1\ntitle = \"t\"\nlayout = { page_size = 2, ranks = 2 }\n\
            prefill.pages = 9\ndecode.pages = 5\n\
            workload.requests = [{ prompt = [{ content = 1, len = 7 }], output = 2 }]\n";
        let scenario = parse(text, "file").unwrap();
        assert_eq!(scenario.prefill.chunk_tokens, 8_192);
        assert_eq!(scenario.link.token_bytes, 70_272);
        assert_eq!(scenario.expect, None);
    }

    #[test]
    fn wrong_fields_are_refused_with_file_path_and_what_they_must_be() {
        let base = small().to_toml();
        for (from, to, expected) in [
            (
                "page_size = 2",
                "page_size = \"2\"",
                "file: layout.page_size: must be a whole number of 1 to 4096, got string",
            ),
            (
                "page_size = 2",
                "page_sise = 2",
                "file: layout.page_sise: must be `page_size` or `ranks`, got `page_sise`",
            ),
            ("page_size = 2\n", "", "file: layout.page_size: must be given, got nothing"),
            (
                "ranks = 2",
                "ranks = 2.0",
                "file: layout.ranks: must be a whole number of 1 to 256, got floating",
            ),
            (
                "len = 7",
                "len = -1",
                "file: workload.requests.0.prompt.0.len: must be a whole number of 0 to 4294967295",
            ),
            (
                "output = 2",
                "outputs = 2",
                "file: workload.requests.0.outputs: must be one of `at`, ",
            ),
            ("requests = [", "synthetics = [", "file: workload: must be one of `requests`, "),
            (
                "[workload]",
                "[workload]\ntrace = { format = \"azure\", path = \"x\" }",
                "file: workload: must have one key only, got several",
            ),
            ("\"sound\"", "\"sglang\"", "file: profile: must be one of `sound`, `sglang-0.5.17`, "),
            (
                "version = 1",
                "version = 2",
                "file: version: must be 1, the only version known, got 2",
            ),
            ("version = 1\n", "", "file: version: must be 1, got nothing"),
            ("title = ", "colour = 1\ntitle = ", "file: colour: must be one of `version`, "),
            (
                "[layout]",
                "[behaviour]\nfree_check = \"fast\"\n[layout]",
                "file: behaviour.free_check: must be `guarded` or `none`, got `fast`",
            ),
            (
                "[layout]",
                "[behaviour]\nplanner = \"the planner that was written last of them\"\n[layout]",
                "file: behaviour.planner: must be a name of at most 32 bytes, got \"the planner",
            ),
            (
                "[layout]",
                "[expect]\nfindings = { \"refused\" = 1 }\n[layout]",
                "file: expect.findings: must be one of `refused.misaligned`, ",
            ),
            (
                "[layout]",
                "[expect]\nfindings = { \"refused.pool\" = \">1\" }\n[layout]",
                "file: expect.findings: must be a number or \">=number\", got \">1\"",
            ),
        ] {
            let text = base.replacen(from, to, 1);
            assert_ne!(text, base, "{from}");
            let error = error(&text);
            assert!(error.starts_with(expected), "{error}\n{expected}");
        }
    }

    #[test]
    fn what_is_not_toml_is_refused_with_its_line() {
        let error = error("version = 1\ntitle = x\n");
        assert!(error.starts_with("file: TOML parse error at line 2"), "{error}");
    }

    #[test]
    fn a_missing_file_is_named() {
        let error = load(Path::new("no/such.toml")).unwrap_err().to_string();
        assert!(error.starts_with("no/such.toml: "), "{error}");
    }

    fn with(assignments: &[&str]) -> Result<Scenario, String> {
        let mut fields = table(&small().to_toml(), "file").unwrap();
        for assignment in assignments {
            set(&mut fields, assignment).map_err(|error| error.to_string())?;
        }
        from_table(fields, "file").map_err(|error| error.to_string())
    }

    #[test]
    fn assignments_reach_every_kind_of_field() {
        let scenario = with(&[
            "layout.ranks=4",
            "title=two words",
            "workload.requests.0.output = 9",
            "behaviour.planner=indexed",
            "expect.findings.\"refused.index\"=\">=1\"",
        ]);
        let scenario = scenario.unwrap();
        assert_eq!(scenario.layout.ranks, 4);
        assert_eq!(scenario.title, "two words");
        assert_eq!(scenario.behaviours().planner.name(), "indexed");
        let WorkloadConfig::Requests(requests) = &scenario.workload else {
            panic!("the assignments keep the kind of workload");
        };
        assert_eq!(requests[0].output, Tokens(9));
        let expect = scenario.expect.unwrap();
        assert_eq!(expect.findings.values().next(), Some(&Bound::AtLeast(1)));
        let other = with(&["workload={ trace = { format = \"azure\", path = \"x\" } }"]).unwrap();
        assert!(matches!(other.workload, WorkloadConfig::Trace(_)));
    }

    #[test]
    fn assignments_to_nothing_are_refused() {
        for (assignment, expected) in [
            ("layout.rank=4", "file: layout.rank: must be `page_size` or `ranks`, got `rank`"),
            ("nothing.at.all=4", "file: nothing: must be one of `version`, "),
            ("layout.ranks", "--set: must be path=value, got \"layout.ranks\""),
            ("=4", "--set: must be path=value, got \"=4\""),
            ("a b=4", "--set: must be path=value, got \"a b=4\""),
            (
                "workload.requests.7.output=1",
                "--set: workload.requests.7: must be an index below 1, got 7",
            ),
            (
                "workload.requests.x.output=1",
                "--set: workload.requests.x: must be an index below 1, got x",
            ),
            (
                "title.first=1",
                "--set: title.first: must lie in a table or a list, got a part of \"small\"",
            ),
            (
                "layout.ranks=1\nlayout.page_size=7",
                "file: layout.ranks: must be a whole number of 1 to 256, got string",
            ),
        ] {
            let error = with(&[assignment]).unwrap_err();
            assert!(error.starts_with(expected), "{error}\n{expected}");
        }
    }
}
