//! Texts that no engine of the model writes: those of other engines, of libraries, and of parts of
//! a modelled engine that the model has not. They are only ever read.
//!
//! Each is a row of a table: how it is known, who writes it, what it means, and what its numbers
//! say. What the model can say of it is under codes and behaviours of the catalogue, whose counts
//! are those of [`super::causes`].

use super::causes::{self, Cause};
use super::known::KnownSizes;
use super::line::Line;
use super::pattern::{Found, Piece, heads};
use crate::finding::Code;

mod leaks;
mod library;
mod lists;
mod sglang;
mod vllm;

/// One text.
#[derive(Debug)]
pub struct ForeignText {
    /// The text for a reader: values by their names in braces.
    pub form: &'static str,
    /// The wordings by which it is known.
    pub(super) patterns: &'static [&'static str],
    /// Who writes it.
    pub writer: Writer,
    /// What it means, whatever its numbers.
    pub meaning: &'static str,
    /// What its numbers say.
    says: fn(&Found, &KnownSizes) -> Says,
}

/// Who writes a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Writer {
    /// The engine, as its package is called; `None` for a library.
    pub engine: Option<&'static str>,
    /// Which part of it, in which releases, as far as is known.
    pub part: &'static str,
}

/// What a text says with its numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Says {
    /// What follows from the numbers, in sentences.
    pub numbers: Vec<String>,
    /// What to look at, most telling first.
    pub checks: Vec<String>,
    /// Commands that show the like.
    pub commands: Vec<String>,
    /// Under which codes the model finds the like, the nearest first.
    pub codes: Vec<Code>,
    /// Switches and variants that do the like; all that lead to the codes where it is empty.
    behaviours: &'static [(&'static str, &'static str)],
    /// A line of a modelled engine with the same numbers.
    pub line: Option<Line>,
}

/// All tables, the more particular texts first: of two in one line the first is taken.
static TABLES: [&[ForeignText]; 5] = [leaks::ALL, lists::ALL, sglang::ALL, vllm::ALL, library::ALL];

/// Every text.
pub fn all() -> impl Iterator<Item = &'static ForeignText> {
    TABLES.into_iter().flatten()
}

/// Causes that are told of one text.
const CAUSES_MAX: usize = 8;

impl ForeignText {
    /// What the piece says from word number `at` on, if it has this text there.
    pub(super) fn find<'t>(&self, piece: &Piece<'t>, at: usize) -> Option<Found<'t>> {
        self.patterns.iter().find_map(|pattern| piece.find(pattern, at))
    }

    /// The words that it can begin with.
    pub(super) fn heads(&self) -> impl Iterator<Item = &'static str> {
        self.patterns.iter().flat_map(|pattern| heads(pattern))
    }

    /// What the numbers say.
    pub fn says(&self, found: &Found, known: &KnownSizes) -> Says {
        (self.says)(found, known)
    }
}

impl Says {
    /// Whether it is about packing, which the model has.
    pub(super) fn is_of_packing(&self) -> bool {
        self.behaviours.iter().any(|(switch, _)| *switch == "packing")
    }

    /// The behaviours of the catalogue that do the like, those first that most often led to its
    /// first code.
    pub fn causes(&self, known: &KnownSizes) -> Vec<Cause> {
        if let Some(line) = self.line {
            return causes::of_line(line.code(), &line.shape(known));
        }
        let mut ranked = match self.behaviours {
            [] => self.codes.first().map(|&code| causes::of_code(code)).unwrap_or_default(),
            behaviours => causes::of_behaviours(behaviours, &self.codes),
        };
        ranked.truncate(CAUSES_MAX);
        ranked
    }
}

/// A text without numbers that says all it has to in its table.
fn plain(codes: &[Code], checks: &[&str]) -> Says {
    Says {
        codes: codes.to_vec(),
        checks: checks.iter().map(|&check| check.to_owned()).collect(),
        ..Says::default()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::behaviour::SWITCHES;
    use crate::explain::known::KnownSizes;

    /// A piece that the text's first pattern finds.
    fn example(text: &ForeignText) -> String {
        let words = text.patterns[0].split(' ').filter(|item| !["..", "?", "$"].contains(item));
        let spelled = words.map(|word| match word {
            word if word.ends_with("~}") => "(7, 3)",
            word if word.ends_with("+}") => "pages",
            word if word.starts_with('{') => "7",
            word => word.split('|').next().unwrap(),
        });
        spelled.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn every_text_is_found_in_its_own_words_and_says_something() {
        let known = KnownSizes::default();
        assert!(all().count() >= 40);
        for text in all() {
            let said = example(text);
            let piece = Piece::new(&said);
            let found = text.find(&piece, 0).unwrap_or_else(|| panic!("{said}"));
            let Says { numbers, checks, commands, codes, behaviours, line } =
                text.says(&found, &known);
            assert!(text.meaning.ends_with('.'), "{}", text.form);
            assert!(!checks.is_empty(), "{}", text.form);
            for sentence in numbers.iter().chain(&checks) {
                assert!(sentence.ends_with(['.', ')']) && !sentence.contains("  "), "{sentence}");
            }
            for command in &commands {
                let file = command.split(' ').find(|word| word.ends_with(".toml"));
                let root = Path::new(env!("CARGO_MANIFEST_DIR"));
                assert!(file.is_none_or(|file| root.join(file).is_file()), "{command}");
            }
            assert!(behaviours.is_empty() || !codes.is_empty() || line.is_some(), "{}", text.form);
            for (switch, variant) in behaviours {
                let known = SWITCHES.iter().find(|known| known.name == *switch);
                let known = known
                    .and_then(|known| known.variants.iter().find(|known| known.name == *variant));
                assert!(known.is_some(), "{switch} = {variant}");
            }
        }
    }

    #[test]
    fn no_text_hides_another() {
        for (place, text) in all().enumerate() {
            let said = example(text);
            let piece = Piece::new(&said);
            let first = all().position(|other| other.find(&piece, 0).is_some());
            assert_eq!(first, Some(place), "{said}");
        }
    }
}
