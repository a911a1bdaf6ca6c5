//! The nearest of what is known to something that is not: a mistyped code, a misquoted line.

use std::collections::BTreeSet;

use super::foreign;
use super::pattern::Piece;
use super::words::clean;
use crate::behaviour::SWITCHES;
use crate::engine::error_texts;
use crate::finding::{Code, Named};

/// Names that are offered.
const NAMES_MAX: usize = 3;

/// The codes that a word may have been meant as, the nearest first.
pub fn codes(word: &str) -> Vec<&'static str> {
    let word = word.to_lowercase().replace([' ', '-', ':'], ".");
    let parts = |name: &str| name.split(['.', '_']).map(str::to_owned).collect::<Vec<String>>();
    let own = parts(&word);
    let rank = |code: &Code| {
        let name = code.name();
        let whole = distance(&word, name);
        // Parts that are the same, or nearly.
        let theirs = parts(name);
        let alike = own.iter().filter(|one| theirs.iter().any(|other| is_near(one, other))).count();
        let near = whole * 3 <= name.len() || alike > 0;
        near.then_some((std::cmp::Reverse(alike), whole, name))
    };
    let mut ranked: Vec<_> = Code::ALL.iter().filter_map(rank).collect();
    ranked.sort();
    ranked.into_iter().take(NAMES_MAX).map(|(_, _, name)| name).collect()
}

/// What else a word is the name of: a switch, or a variant of some.
pub fn other_name(word: &str) -> Option<String> {
    if SWITCHES.iter().any(|switch| switch.name == word) {
        return Some(format!("{word} is a switch: kvseam list switches"));
    }
    let of = |switch: &&crate::behaviour::SwitchInfo| {
        switch.variants.iter().any(|variant| variant.name == word)
    };
    let switches: Vec<&str> = SWITCHES.iter().filter(of).map(|switch| switch.name).collect();
    (!switches.is_empty())
        .then(|| format!("{word} is a variant of {}: kvseam list switches", switches.join(", ")))
}

/// The form of the known text that has most words of `line`, if these are half of either's words.
pub fn text(line: &str) -> Option<String> {
    let line = clean(line).to_lowercase();
    let own: BTreeSet<&str> = Piece::new(&line).words().collect();
    let forms = error_texts()
        .map(|text| text.form())
        .chain(foreign::all().map(|text| text.form.to_owned()));
    let rank = |form: String| {
        let lower = form.to_lowercase();
        let theirs: BTreeSet<&str> =
            Piece::new(&lower).words().filter(|word| word.len() > 2).collect();
        let alike = theirs.iter().filter(|word| own.iter().any(|one| is_near(one, word))).count();
        let shorter = theirs.len().min(own.len());
        (alike >= 2 && alike * 2 >= shorter).then_some((alike * 100 / theirs.len(), form))
    };
    forms.filter_map(rank).max().map(|(_, form)| form)
}

/// Whether two words are the same but for a letter in four.
fn is_near(one: &str, other: &str) -> bool {
    let length = one.len().max(other.len());
    one == other || length >= 4 && distance(one, other) * 4 <= length
}

/// Letters to insert, drop or replace to make one word of the other.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, letter) in one.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = at + 1;
        for (place, known) in other.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *known);
            diagonal = row[place + 1];
            row[place + 1] = replaced.min(diagonal + 1).min(row[place] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistyped_code_is_answered_with_the_nearest() {
        for (word, code) in [
            ("placed.mising", "placed.missing"),
            ("Placed.Missing", "placed.missing"),
            ("page_leaked", "page.leaked"),
            ("refused.shortfal", "refused.shortfall"),
            ("count.drfit", "count.drift"),
            ("leaked", "page.leaked"),
            ("stall", "stall.no_progress"),
        ] {
            assert_eq!(codes(word).first(), Some(&code), "{word}");
        }
        assert_eq!(codes("xyzzy"), Vec::<&str>::new());
        assert!(other_name("send_split").unwrap().contains("switch"));
        assert!(other_name("padded_up").unwrap().contains("decode_prefix_cut"));
    }

    #[test]
    fn a_misquoted_line_is_answered_with_the_nearest_text() {
        let near = text("insufficent destination DCP page: required 5 provided 4").unwrap();
        assert!(near.starts_with("Insufficient destination DCP pages"), "{near}");
        let near = text("local block sizes 16 not divisible by remote block size").unwrap();
        assert!(near.starts_with("Local block size"), "{near}");
        assert_eq!(text("CUDA out of memory"), None);
    }

    #[test]
    fn distances_count_letters() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("abc", "abc"), 0);
    }
}
