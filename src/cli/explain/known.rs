//! The answer to a known line: of a modelled engine, or another text.

use serde::Serialize;

use super::{ExplainArgs, counted, items, wrapped};
use crate::explain::causes::{self, Cause};
use crate::explain::foreign::{ForeignText, Says};
use crate::explain::geometry;
use crate::explain::known::KnownSizes;
use crate::explain::line::{Line, LineError};
use crate::explain::log::{Known, Recognised};
use crate::explain::printed::{Printable, Printed};
use crate::explain::{Reading, explain};
use crate::finding::{Code, Named};

/// What is said of a known line.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Answer {
    Line(Box<LineAnswer>),
    Other(Box<OtherAnswer>),
    Unread(UnreadAnswer),
}

/// Of a line of a modelled engine.
#[derive(Serialize)]
pub(super) struct LineAnswer {
    line: String,
    code: Code,
    meaning: &'static str,
    #[serde(flatten)]
    reading: Reading,
    causes: Vec<Cause>,
    #[serde(skip_serializing_if = "Option::is_none")]
    printed: Option<Printed>,
}

/// Of another text.
#[derive(Serialize)]
pub(super) struct OtherAnswer {
    line: String,
    form: &'static str,
    engine: Option<&'static str>,
    written_by: &'static str,
    meaning: &'static str,
    numbers: Vec<String>,
    codes: Vec<Code>,
    causes: Vec<Cause>,
    check: Vec<String>,
    commands: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    printed: Option<Printed>,
}

/// Of a line of a modelled engine whose numbers say nothing.
#[derive(Serialize)]
pub(super) struct UnreadAnswer {
    line: String,
    code: Code,
    meaning: &'static str,
    must_hold: &'static str,
    /// Why nothing is said of the numbers.
    unread: String,
}

/// Characters of a line that are repeated in an answer about a log.
const QUOTED_CHARS: usize = 240;

impl Answer {
    /// What is said of `recognised`, which was given as `text`.
    pub(super) fn of(
        recognised: &Recognised,
        text: &str,
        args: &ExplainArgs,
    ) -> Result<Answer, LineError> {
        Ok(match (recognised.known, recognised.line(), recognised.found()) {
            (Known::Engine(known), Some(line), _) => match line {
                Ok(line) => Answer::line(line, recognised.text(), text, args)?,
                Err(error @ LineError::Numbers { .. }) => Answer::unread(known.code, text, &error),
                Err(error) => return Err(error),
            },
            (Known::Foreign(known), _, Some(found)) => {
                let sizes = args.sizes(None);
                let says = known.says(&found, &sizes);
                Answer::Other(Box::new(OtherAnswer::new(known, says, text, &sizes, args)))
            }
            (Known::Engine(_) | Known::Foreign(_), _, _) => {
                unreachable!("a text that was recognised is found again")
            }
        })
    }

    fn line(line: Line, whole: &str, text: &str, args: &ExplainArgs) -> Result<Answer, LineError> {
        let sizes = args.sizes(Some(line));
        line.check(&sizes)?;
        let mut reading = line.reading(&sizes);
        if line == Line::Peers(Code::RefusedGeometry) {
            reading.holds = geometry::holds(whole);
        }
        let causes = causes::of_line(line.code(), &line.shape(&sizes));
        Ok(Answer::Line(Box::new(LineAnswer {
            line: quoted(text),
            code: line.code(),
            meaning: line.code().doc(),
            reading,
            printed: args.profile.map(|profile| Printed::line(profile, line, &causes)),
            causes,
        })))
    }

    /// What is said where `error` forbids to say anything of the numbers.
    pub(super) fn unread(code: Code, text: &str, error: &LineError) -> Answer {
        Answer::Unread(UnreadAnswer {
            line: quoted(text),
            code,
            meaning: code.doc(),
            must_hold: explain(code).holds,
            unread: error.to_string(),
        })
    }

    pub(super) fn text(&self) -> String {
        match self {
            Answer::Line(answer) => answer.text(),
            Answer::Other(answer) => answer.text(),
            Answer::Unread(answer) => answer.text(),
        }
    }
}

fn quoted(text: &str) -> String {
    match text.char_indices().nth(QUOTED_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// A paragraph of points under a title; nothing where there are none.
fn section(title: &str, points: &[String]) -> String {
    if points.is_empty() {
        return String::new();
    }
    let points: Vec<&str> = points.iter().map(String::as_str).collect();
    format!("\n{title}\n{}", items(&points))
}

fn commands(title: &str, commands: impl Iterator<Item = String>) -> String {
    let lines: String = commands.map(|command| format!("  {command}\n")).collect();
    if lines.is_empty() { lines } else { format!("\n{title}\n{lines}") }
}

/// Whether a release can print the line.
fn printed(printed: Option<&Printed>) -> String {
    let Some(Printed { profile, printable, reason, would_have_to_differ }) = printed else {
        return String::new();
    };
    let answer = match printable {
        Printable::Can => "yes, as modelled",
        Printable::IfSomethingDiffers => "not as it is modelled; only if something differs",
        Printable::Cannot => "no",
        Printable::Unknown => "not known",
    };
    let mut text = format!("\nCan {profile} print it: {answer}\n{}", wrapped("  ", reason));
    if !would_have_to_differ.is_empty() {
        text += "  What would have to differ, one of:\n";
        text += &would_have_to_differ.iter().map(|one| wrapped("  - ", one)).collect::<String>();
    }
    text
}

impl LineAnswer {
    fn text(&self) -> String {
        let mut text = format!("{}: {}\n", self.code.name(), self.meaning);
        let Reading { holds, tokens, pages } = &self.reading;
        text += &section("What must hold", holds);
        text += &section("Which tokens can lead to it", tokens);
        text += &section("How many pages are right", pages);
        let (exact, alike): (Vec<_>, Vec<_>) =
            self.causes.iter().partition(|cause| cause.exact > 0);
        if self.causes.is_empty() {
            text += "\nNo behaviour of the catalogue leads to it.\n";
        }
        if !exact.is_empty() {
            text +=
                "\nBehaviours that lead to exactly this, each planted alone in sound scenarios\n";
            text += &counted(&exact, |cause| cause.exact);
        }
        if !alike.is_empty() {
            text += "\nBehaviours that lead to this text, but to no such numbers\n";
            text += &counted(&alike, |cause| cause.alike);
        }
        text += &printed(self.printed.as_ref());
        text + &format!("\nMore on the code\n  kvseam explain {}\n", self.code.name())
    }
}

impl OtherAnswer {
    fn new(
        known: &ForeignText,
        says: Says,
        text: &str,
        sizes: &KnownSizes,
        args: &ExplainArgs,
    ) -> OtherAnswer {
        let causes = says.causes(sizes);
        let printed = args.profile.map(|profile| Printed::foreign(profile, known, &says, &causes));
        OtherAnswer {
            line: quoted(text),
            form: known.form,
            engine: known.writer.engine,
            written_by: known.writer.part,
            meaning: known.meaning,
            numbers: says.numbers,
            codes: says.codes,
            causes,
            check: says.checks,
            commands: says.commands,
            printed,
        }
    }

    fn text(&self) -> String {
        let writer = match self.engine {
            Some(engine) => format!("{engine}: {}", self.written_by),
            None => self.written_by.to_owned(),
        };
        let mut text = format!("{}\nfrom {writer}\n\n{}", self.form, wrapped("", self.meaning));
        text += &section("What its numbers say", &self.numbers);
        let seen: Vec<&Cause> = self.causes.iter().filter(|cause| cause.alike > 0).collect();
        if let (Some(code), false) = (self.codes.first(), seen.is_empty()) {
            text += &format!(
                "\nBehaviours that do the like (mostly {}), each planted alone in sound scenarios\n",
                code.name()
            );
            text += &counted(&seen, |cause| cause.exact.max(cause.alike));
        }
        text += &section("What to check", &self.check);
        text += &printed(self.printed.as_ref());
        text += &commands("To try", self.commands.iter().cloned());
        text + &commands(
            "More on the codes under which the model finds the like",
            self.codes.iter().map(|code| format!("kvseam explain {}", code.name())),
        )
    }
}

impl UnreadAnswer {
    fn text(&self) -> String {
        format!(
            "{}: {}\n\nWhat must hold\n{}\nNothing is said of its numbers\n{}\nMore on the code\n  kvseam \
             explain {}\n",
            self.code.name(),
            self.meaning,
            wrapped("  ", self.must_hold),
            wrapped("  ", &self.unread),
            self.code.name()
        )
    }
}
