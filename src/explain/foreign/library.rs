//! Index errors of libraries and of Python itself, and assertions without a text.

use super::{ForeignText, Found, Says, Writer, plain};
use crate::explain::known::KnownSizes;
use crate::explain::line::Line;
use crate::finding::Code;

pub(super) const ALL: &[ForeignText] = &[
    ForeignText {
        form: "index {i} is out of bounds for dimension {dimension} with size {s}",
        patterns: &["index {i} is out of bounds for dimension|axis {dimension} with size {s}"],
        writer: Writer {
            engine: None,
            part: "torch (\"dimension\") or numpy (\"axis\"): the list is a tensor or an array",
        },
        meaning: "A list was indexed outside its bounds. The text names neither the list nor the \
                  request.",
        says: index,
    },
    ForeignText {
        form: "list index out of range",
        patterns: &["list index out of range", "tuple index out of range"],
        writer: Writer { engine: None, part: "Python, without any number" },
        meaning: "A Python list was indexed past its end: of a transfer, a list of block ids that has \
                  fewer entries than there are ranks, groups or blocks.",
        says: |_, _| {
            plain(
                &[],
                &[
                    "The line above it in the traceback names the list. Print its length there, and \
                     what the other side announced.",
                    "Unequal numbers of ranks, of KV cache groups, or of draft layers on the two sides \
                     make such lists shorter than their reader expects.",
                ],
            )
        },
    },
    ForeignText {
        form: "assert {condition on blocks, pages or descriptors}",
        patterns: &["assert .. {what+}"],
        writer: Writer { engine: None, part: "Python: an assertion, which prints no numbers" },
        meaning: "A condition on the lists of a transfer does not hold. A bare assertion says which, \
                  and none of the numbers.",
        says: assertion,
    },
    ForeignText {
        form: "AssertionError",
        patterns: &["AssertionError $"],
        writer: Writer { engine: None, part: "Python: an assertion without a text" },
        meaning: "A condition does not hold. The line above it in the traceback has the condition.",
        says: |_, _| {
            plain(
                &[],
                &["Give the line of the traceback that begins with \"assert\": it says what was \
                   compared."],
            )
        },
    },
];

fn index(found: &Found, _: &KnownSizes) -> Says {
    let mut says = Says {
        codes: vec![Code::RefusedIndex],
        checks: vec![
            "The line above it in the traceback names the list: a page list of the transfer, a block \
             table, or a table of requests."
                .to_owned(),
        ],
        ..Says::default()
    };
    let read = |name| found.number(name).and_then(|number| i64::try_from(number).ok());
    let (Some(index), Some(size)) = (read("i"), read("s")) else {
        says.numbers.push("Its numbers are too large to be those of a list.".to_owned());
        return says;
    };
    if (-size..size).contains(&index) {
        says.numbers.push(format!(
            "An index of {index} lies within a list of {size}: these numbers give no such error."
        ));
        return says;
    }
    says.numbers.push(match index {
        0.. if index == size => format!(
            "{index} is one past the end of a list of {size}, whose last index is {}: short by at least \
             one.",
            size - 1
        ),
        0.. => format!("{index} is {} past the end of a list of {size}.", index - size + 1),
        _ => format!("{index} counts from the end, before the beginning of a list of {size}."),
    });
    if found.number("dimension") == Some(0)
        && index.unsigned_abs() <= crate::limits::LINE_NUMBER_MAX
    {
        says.numbers.push(
            "It is the same as numpy's \"is out of bounds for axis 0\", which the indexed planner gives \
             for its page lists; behaviours are those that lead to that line."
                .to_owned(),
        );
        says.line = Some(Line::Index { index, size });
    }
    says
}

fn assertion(found: &Found, _: &KnownSizes) -> Says {
    let condition: String = found.text.chars().skip("assert ".len()).take(120).collect();
    let condition = condition.split(" AssertionError").next().unwrap_or_default().trim().to_owned();
    let mut says = plain(
        &[],
        &[
            "Print both sides of the condition with the request's length, its cached prefix and the \
             block sizes of both peers.",
            "Compare the peers: block size, ranks, KV cache groups, draft layers. Lists of unequal \
             length come from there.",
        ],
    );
    says.numbers.push(format!("What does not hold: {condition}."));
    if condition.contains("prefix") && condition.contains('%') {
        says.codes = vec![Code::RefusedMisaligned];
        says.numbers.push("A prefix must be a multiple of the page: S mod V = 0 (H05).".to_owned());
    } else if condition.contains(">=") || condition.contains("<=") {
        says.codes = vec![Code::RefusedShortfall, Code::RefusedIndex];
        says.numbers
            .push("One list must be at least as long as the other, and is shorter.".to_owned());
    } else if condition.contains("==") {
        says.codes = vec![Code::PlacedMissing, Code::RefusedShortfall];
        says.numbers.push("Both must be equal, and are not.".to_owned());
    }
    says
}
