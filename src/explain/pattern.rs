//! The pattern of a text that is only ever read: words, and named values between them.

use std::ops::Range;

use super::words::{number, words};

/// A piece of a log with its words.
pub struct Piece<'t> {
    /// The piece.
    pub text: &'t str,
    words: Vec<Range<usize>>,
    /// How many of the words stand in the line that the piece is about; the others follow it.
    own: usize,
}

/// What a pattern found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found<'t> {
    /// The piece from the first word of the pattern on.
    pub text: &'t str,
    values: Vec<(&'static str, &'t str)>,
}

/// One item of a pattern; items are separated by spaces.
enum Item {
    /// One of these words, whatever their case: `src` or `shape|shapes`.
    Word(&'static str),
    /// A number: `{name}`.
    Number(&'static str),
    /// Any word: `{name*}`.
    Any(&'static str),
    /// A word that has to do with a transfer: `{name+}`.
    Ours(&'static str),
    /// What stands between brackets: `{name~}`.
    List(&'static str),
    /// A few words of no interest: `..`.
    Gap,
    /// What follows may be missing: `?`.
    Rest,
    /// The end of the line: `$`.
    End,
}

/// What a word has in it that has to do with a transfer.
const OURS: [&str; 8] = ["block", "page", "desc", "indices", "slot", "kv_", "remote", "prefix"];

/// Words that a gap may have: a request's name can be several.
const GAP_WORDS: usize = 16;

impl Item {
    fn of(text: &'static str) -> Item {
        match text {
            ".." => return Item::Gap,
            "?" => return Item::Rest,
            "$" => return Item::End,
            _ => {}
        }
        let Some(name) = text.strip_prefix('{').and_then(|text| text.strip_suffix('}')) else {
            return Item::Word(text);
        };
        match name.split_at(name.len() - 1) {
            (name, "*") => Item::Any(name),
            (name, "+") => Item::Ours(name),
            (name, "~") => Item::List(name),
            _ => Item::Number(name),
        }
    }
}

/// The words that a pattern can begin with.
pub(super) fn heads(pattern: &'static str) -> impl Iterator<Item = &'static str> {
    pattern.split(' ').next().unwrap_or_default().split('|')
}

impl<'t> Piece<'t> {
    /// A piece; it should be [`clean`](super::words::clean).
    pub fn new(text: &'t str) -> Piece<'t> {
        Piece::with_rest(text, text.len())
    }

    /// A line of `own` bytes with what follows it in the log.
    pub(super) fn with_rest(text: &'t str, own: usize) -> Piece<'t> {
        let words = words(text);
        let own = words.iter().take_while(|word| word.start < own).count();
        Piece { text, words, own }
    }

    /// The numbers of words that stand in the line itself.
    pub(super) fn own(&self) -> Range<usize> {
        0..self.own
    }

    /// The words, in order.
    pub(super) fn words(&self) -> impl Iterator<Item = &'t str> {
        self.words.iter().map(|word| &self.text[word.clone()])
    }

    /// Where the words are.
    pub(super) fn places(&self) -> &[Range<usize>] {
        &self.words
    }

    /// What `pattern` finds, beginning with word number `at`.
    pub(super) fn find(&self, pattern: &'static str, at: usize) -> Option<Found<'t>> {
        let items: Vec<Item> = pattern.split(' ').map(Item::of).collect();
        let mut values = Vec::new();
        self.follow(&items, at, &mut values)?;
        Some(Found { text: &self.text[self.words[at].start..], values })
    }

    /// Follows items from word number `at` on.
    fn follow(
        &self,
        items: &[Item],
        at: usize,
        values: &mut Vec<(&'static str, &'t str)>,
    ) -> Option<()> {
        let Some((item, rest)) = items.split_first() else { return Some(()) };
        let place = self.words.get(at);
        let word = place.map(|place| &self.text[place.clone()]);
        match item {
            Item::Rest => {
                let known = values.len();
                if self.follow(rest, at, values).is_none() {
                    values.truncate(known);
                }
                Some(())
            }
            Item::End => {
                if at == self.own {
                    Some(())
                } else {
                    None
                }
            }
            Item::Gap => (0..=GAP_WORDS).find_map(|skipped| {
                let known = values.len();
                let found = self.follow(rest, at + skipped, values);
                if found.is_none() {
                    values.truncate(known);
                }
                found
            }),
            Item::Word(one_of) => {
                let word = word?;
                one_of.split('|').find(|known| known.eq_ignore_ascii_case(word))?;
                self.follow(rest, at + 1, values)
            }
            Item::Number(name) => {
                let word = word.filter(|word| is_number(word))?;
                values.push((name, word));
                self.follow(rest, at + 1, values)
            }
            Item::Ours(name) => {
                let lower = word?.to_lowercase();
                OURS.iter().find(|part| lower.contains(*part))?;
                values.push((name, word?));
                self.follow(rest, at + 1, values)
            }
            Item::Any(name) => {
                values.push((name, word?));
                self.follow(rest, at + 1, values)
            }
            Item::List(name) => {
                let from = at.checked_sub(1).map_or(0, |before| self.words[before].end);
                let (list, end) = list(self.text, from)?;
                values.push((name, list));
                let behind = self.words.iter().take_while(|word| word.start < end).count();
                self.follow(rest, behind, values)
            }
        }
    }
}

/// Whether a word is a number, of any length.
fn is_number(word: &str) -> bool {
    let digits = word.strip_prefix('-').unwrap_or(word);
    !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit())
}

/// What stands between the first brackets at or behind `from`, of which a few letters that are no
/// words can stand before, and where it ends.
fn list(text: &str, from: usize) -> Option<(&str, usize)> {
    let rest = &text[from..];
    let open = rest.find(['(', '['])?;
    if rest[..open].chars().any(char::is_alphanumeric) {
        return None;
    }
    let inner = &rest[open + 1..];
    let close = inner.find([')', ']'])?;
    Some((&inner[..close], from + open + 1 + close + 1))
}

impl<'t> Found<'t> {
    /// The number of this name, if it was there and can be reckoned with.
    pub(super) fn number(&self, name: &str) -> Option<i128> {
        number(self.word(name)?)
    }

    /// The word or list of this name, if it was there.
    pub(super) fn word(&self, name: &str) -> Option<&'t str> {
        self.values.iter().find(|(known, _)| *known == name).map(|&(_, word)| word)
    }

    /// The length that a shape of one dimension says, such as `(525,)`.
    pub(super) fn length(&self, name: &str) -> Option<i128> {
        let mut lengths =
            self.word(name)?.split(',').map(str::trim).filter(|part| !part.is_empty());
        let length = number(lengths.next()?);
        if lengths.next().is_none() { length } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(
        pattern: &'static str,
        text: &'static str,
    ) -> Option<Vec<(&'static str, &'static str)>> {
        let piece = Piece::new(text);
        (0..piece.words.len()).find_map(|at| piece.find(pattern, at)).map(|found| found.values)
    }

    #[test]
    fn words_match_in_any_case_and_numbers_lists_and_gaps_are_taken() {
        let pattern = "got {a} and|or {b}";
        assert_eq!(find(pattern, "x: Got 525 AND 66."), Some(vec![("a", "525"), ("b", "66")]));
        assert_eq!(find(pattern, "got many and 66"), None);
        let shapes = "with shape|shapes {a~} {b~}";
        let found = Some(vec![("a", "2,"), ("b", "")]);
        assert_eq!(find(shapes, "with shapes (2,) ()"), found);
        assert_eq!(find(shapes, "with shape(2,) ()"), found);
        assert_eq!(find(shapes, "with shapes 2 and (2,)"), None);
        let gap = "blocks for request .. were {what*}";
        assert_eq!(find(gap, "blocks for request a-1 were gone"), Some(vec![("what", "gone")]));
    }

    #[test]
    fn the_rest_may_be_missing() {
        let pattern = "too small ? for {a} bytes have {b}";
        assert_eq!(find(pattern, "too small, falling back"), Some(vec![]));
        assert_eq!(find(pattern, "too small for 8 bytes, have none"), Some(vec![]));
        let found = Some(vec![("a", "8"), ("b", "4")]);
        assert_eq!(find(pattern, "too small for 8 bytes (have 4)"), found);
    }

    #[test]
    fn a_length_is_that_of_one_dimension() {
        let piece = Piece::new("a (391,) b (2, 3) c () d (99999999999999999999999999999999999,)");
        let found = piece.find("a {a~} b {b~} c {c~} d {d~}", 0).unwrap();
        assert_eq!(
            ["a", "b", "c", "d"].map(|name| found.length(name)),
            [Some(391), None, None, None]
        );
    }
}
