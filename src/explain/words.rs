//! A piece of a log as words: how lines are read that came through terminals, quotes and JSON.
//!
//! A word is a run of letters, digits and underscores; everything else separates words. So a text
//! is the same whatever stands around it, however its lines are wrapped and whether it is quoted.

use std::ops::Range;

/// A text without what a terminal or a quotation has put into it: escape sequences are dropped,
/// `\n`, `\t` and `\"` spelled out in letters are what they stand for, and white space of any kind
/// and length is one space.
pub fn clean(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(letter) = rest.next() {
        let letter = match (letter, rest.peek()) {
            ('\u{1b}', Some('[')) => {
                // Up to the letter that ends the sequence.
                rest.by_ref().skip(1).find(|letter| ('@'..='~').contains(letter));
                continue;
            }
            ('\\', Some('n' | 't' | 'r')) => {
                rest.next();
                ' '
            }
            ('\\', Some('"' | '\'')) => continue,
            (letter, _) => letter,
        };
        if !letter.is_whitespace() && !letter.is_control() {
            clean.push(letter);
        } else if !clean.ends_with(' ') {
            clean.push(' ');
        }
    }
    clean.trim().to_owned()
}

/// Where the words of a text are, in order. A minus sign directly before a digit belongs to its
/// number, unless it stands behind another word: `-1` is a number, `h05-1` two words.
pub(super) fn words(text: &str) -> Vec<Range<usize>> {
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    let mut words: Vec<Range<usize>> = Vec::new();
    let mut last = ' ';
    let mut rest = text.char_indices().peekable();
    while let Some((at, letter)) = rest.next() {
        let end = at + letter.len_utf8();
        let is_sign = letter == '-'
            && !is_word(last)
            && rest.peek().is_some_and(|(_, next)| next.is_ascii_digit());
        if is_sign || is_word(letter) {
            match words.last_mut() {
                Some(word) if word.end == at && (is_word(last) || last == '-') => word.end = end,
                Some(_) | None => words.push(at..end),
            }
        }
        last = letter;
    }
    words
}

/// The number that a word is, of up to thirty digits.
pub(super) fn number(word: &str) -> Option<i128> {
    let digits = word.strip_prefix('-').unwrap_or(word);
    let is_number = digits.bytes().all(|digit| digit.is_ascii_digit());
    (is_number && (1..=30).contains(&digits.len())).then(|| word.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spelled(text: &str) -> Vec<&str> {
        words(text).into_iter().map(|word| &text[word]).collect()
    }

    #[test]
    fn escapes_quotes_and_wrapped_lines_leave_no_trace() {
        let wrapped = "\u{1b}[1;31mindex 4\n    is  out\\nof \\\"bounds\\\"\u{1b}[0m\r\n";
        assert_eq!(clean(wrapped), "index 4 is out of \"bounds\"");
    }

    #[test]
    fn a_sign_belongs_to_its_number_and_other_marks_separate() {
        assert_eq!(spelled("(2,) x=-12, 2 -> 4 h05-1"), ["2", "x", "-12", "2", "4", "h05", "1"]);
        assert_eq!(spelled("self.size()=7 [1152 x24]"), ["self", "size", "7", "1152", "x24"]);
    }

    #[test]
    fn numbers_are_of_any_length_that_can_be_reckoned_with() {
        assert_eq!(number("-12"), Some(-12));
        assert_eq!(number("123456789012345678901234567890"), Some(123456789012345678901234567890));
        assert_eq!([number("x1"), number("-"), number(""), number(&"9".repeat(31))], [None; 4]);
    }
}
