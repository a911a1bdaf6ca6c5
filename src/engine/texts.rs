//! Error texts: what an engine says when it refuses, as a form with named values.
//!
//! A form is written once, here is how it is written out with values and how the values are read
//! back from a line of a log.

use std::fmt::{self, Display};

use crate::finding::Code;
use crate::limits;

/// One error text. Its form is `before`, `mark` and `after` in a row; a value stands in it as its
/// name in braces.
#[derive(Debug, PartialEq, Eq)]
pub struct ErrorText {
    /// The code of a refusal with this text.
    pub code: Code,
    /// What stands before the mark.
    pub before: &'static str,
    /// The words by which the text is known in a log. No value is among them.
    pub mark: &'static str,
    /// What stands behind the mark.
    pub after: &'static str,
}

impl ErrorText {
    /// The text with these values, one for each name, in the form's order.
    pub fn write(&self, f: &mut fmt::Formatter<'_>, values: &[&dyn Display]) -> fmt::Result {
        let mut values = values.iter();
        for part in [self.before, self.mark, self.after] {
            let mut rest = part;
            while let Some((words, name, behind)) = next_name(rest) {
                let value = values.next().unwrap_or_else(|| panic!("no value for {name}"));
                write!(f, "{words}{value}")?;
                rest = behind;
            }
            f.write_str(rest)?;
        }
        assert!(values.next().is_none(), "a value without a name in \"{}\"", self.form());
        Ok(())
    }

    /// The form for a reader: names without braces, no full stop.
    pub fn form(&self) -> String {
        let form = [self.before, self.mark, self.after].concat().replace(['{', '}'], "");
        form.trim_end_matches('.').to_owned()
    }

    /// Whether `line` has the text, whatever stands around it.
    pub fn is_in(&self, line: &str) -> bool {
        line.contains(self.mark)
    }

    /// The number of this name in a line that has the text. `None` where no number stands in its
    /// place, or one past [`limits::LINE_NUMBER_MAX`].
    pub fn number(&self, line: &str, name: &str) -> Option<i64> {
        let rest = self.behind_cue(line, name)?;
        let digits = rest
            .char_indices()
            .find(|&(at, letter)| !(letter.is_ascii_digit() || at == 0 && letter == '-'));
        let number: i64 = rest[..digits.map_or(rest.len(), |(at, _)| at)].parse().ok()?;
        (number.unsigned_abs() <= limits::LINE_NUMBER_MAX).then_some(number)
    }

    /// The list of this name in a line that has the text, with its brackets, as Python or Rust
    /// prints them.
    pub fn list<'l>(&self, line: &'l str, name: &str) -> Option<&'l str> {
        let rest = self.behind_cue(line, name)?;
        Some(&rest[..=rest.find([']', ')'])?])
    }

    /// What follows the cue of this name in a line: the last word before the name in the form. What
    /// the form has behind the mark is looked for behind it, the rest as near before it as can be.
    fn behind_cue<'l>(&self, line: &'l str, name: &str) -> Option<&'l str> {
        let mark = line.find(self.mark)?;
        let rest = if let Some(cue) = cue(self.after, name) {
            let tail = &line[mark..];
            &tail[tail.find(cue)? + cue.len()..]
        } else {
            let cue = cue(self.before, name)?;
            let head = &line[..mark];
            &head[head.rfind(cue)? + cue.len()..]
        };
        Some(rest.trim_start())
    }
}

/// The first name of a part of a form: what stands before it, the name, and what stands behind it.
fn next_name(part: &'static str) -> Option<(&'static str, &'static str, &'static str)> {
    let (words, rest) = part.split_once('{')?;
    let (name, behind) = rest.split_once('}')?;
    Some((words, name, behind))
}

/// The last word before `name` in a part of a form that has the name.
fn cue(part: &'static str, name: &str) -> Option<&'static str> {
    let mut rest = part;
    while let Some((words, other, behind)) = next_name(rest) {
        if other == name {
            return words.split_whitespace().last();
        }
        rest = behind;
    }
    None
}
