//! A log: which of its lines are known, how often each comes, and where it came first.
//!
//! Lines come with time stamps, levels, ranks and tracebacks around them, and a text can go on in
//! the next lines. A line is looked at with the few that follow it, up to where a new record
//! begins.

use std::collections::VecDeque;
use std::sync::LazyLock;

use rustc_hash::FxHashMap;

use super::foreign::{self, ForeignText};
use super::line::{Line, LineError};
use super::pattern::{Found, Piece};
use super::words::{clean, words};
use crate::engine::error_texts;
use crate::engine::texts::ErrorText;
use crate::limits;

/// A known text.
#[derive(Clone, Copy, Debug)]
pub enum Known {
    /// One that a modelled engine writes.
    Engine(&'static ErrorText),
    /// One of the others.
    Foreign(&'static ForeignText),
}

/// All known texts, in the order in which they are preferred, and by the words that they begin
/// with.
struct Texts {
    all: Vec<Known>,
    by_head: FxHashMap<String, Vec<usize>>,
}

static TEXTS: LazyLock<Texts> = LazyLock::new(|| {
    let engines = error_texts().map(Known::Engine);
    let all: Vec<Known> = engines.chain(foreign::all().map(Known::Foreign)).collect();
    let mut by_head: FxHashMap<String, Vec<usize>> = FxHashMap::default();
    for (index, known) in all.iter().enumerate() {
        let heads: Vec<&str> = match known {
            Known::Engine(text) => vec![&text.mark[words(text.mark)[0].clone()]],
            Known::Foreign(text) => text.heads().collect(),
        };
        for head in heads {
            let texts = by_head.entry(head.to_lowercase()).or_default();
            if !texts.contains(&index) {
                texts.push(index);
            }
        }
    }
    Texts { all, by_head }
});

/// A piece of a log in which a text was found.
#[derive(Clone, Debug)]
pub struct Recognised {
    /// Which text.
    pub known: Known,
    /// The piece, clean: a line and what follows it.
    piece: String,
    /// Bytes of it that are the line itself.
    own: usize,
    /// The number of the word at which the text begins.
    at: usize,
    /// Its place among all texts.
    index: usize,
}

impl Recognised {
    /// The known text in a piece of a log; of several the one that says most.
    pub fn of(text: &str) -> Option<Recognised> {
        let own = clean(text);
        let length = own.len();
        recognise(own, length)
    }

    /// The line with what follows it.
    pub fn text(&self) -> &str {
        &self.piece
    }

    /// The line of a modelled engine. `None` for other texts.
    pub fn line(&self) -> Option<Result<Line, LineError>> {
        match self.known {
            Known::Engine(text) => Some(Line::read_as(text, &self.piece)),
            Known::Foreign(_) => None,
        }
    }

    /// What the pattern of another text found. `None` for a modelled engine's.
    pub fn found(&self) -> Option<Found<'_>> {
        match self.known {
            Known::Engine(_) => None,
            Known::Foreign(text) => text.find(&Piece::with_rest(&self.piece, self.own), self.at),
        }
    }

    /// What tells lines of one text apart: the numbers from the text on.
    fn numbers(&self) -> String {
        let piece = Piece::with_rest(&self.piece, self.own);
        if let Some(line) = self.line() {
            return format!("{line:?}");
        }
        let own = piece.words().take(piece.own().end).skip(self.at);
        let numbers = own.filter(|word| super::words::number(word).is_some());
        numbers.collect::<Vec<_>>().join(" ")
    }
}

/// The text that is preferred of those that begin in the first `own` bytes of a clean piece.
fn recognise(piece: String, own: usize) -> Option<Recognised> {
    let words = Piece::with_rest(&piece, own);
    let mut best: Option<(usize, usize)> = None;
    for (at, word) in words.words().enumerate().take(words.own().end) {
        let Some(texts) = TEXTS.by_head.get(&word.to_lowercase()) else { continue };
        for &index in texts {
            if best.is_none_or(|(known, _)| index < known) && is_at(TEXTS.all[index], &words, at) {
                best = Some((index, at));
            }
        }
    }
    let (index, at) = best?;
    Some(Recognised { known: TEXTS.all[index], piece, own, at, index })
}

/// Whether a text begins with word number `at`.
fn is_at(known: Known, piece: &Piece, at: usize) -> bool {
    match known {
        Known::Engine(text) => {
            let mark = words(text.mark).into_iter().map(|word| &text.mark[word]);
            let mut own = piece.words().skip(at);
            mark.into_iter().all(|word| own.next() == Some(word)) && text.is_in(piece.text)
        }
        Known::Foreign(text) => text.find(piece, at).is_some(),
    }
}

/// Lines that a line is looked at with: the longest text known is two, wrapped at 80 columns.
const WINDOW: usize = 5;
/// Behind so many lines of a traceback a bare "AssertionError" repeats the condition above it.
const ASSERTION_LINES: u64 = 3;

/// All lines of one text.
#[derive(Clone, Debug)]
pub struct Kind {
    /// The first of them.
    pub first: Recognised,
    /// Its number in the log, from 1.
    pub first_line: u64,
    /// How many there are.
    pub count: u64,
    /// How many of them have other numbers than the first.
    pub others: u64,
    numbers: String,
}

/// What a log has.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// Its lines.
    pub lines: u64,
    /// The known texts, in the order in which they come first.
    pub kinds: Vec<Kind>,
    /// Lines that name an error and are not known.
    pub unknown: u64,
    /// The first of these, with its number.
    pub unknown_first: Option<(u64, String)>,
}

/// A log as it is read.
#[derive(Debug, Default)]
pub struct Log {
    pending: VecDeque<String>,
    summary: Summary,
    /// The number of the last line that was known.
    known_last: Option<u64>,
}

impl Log {
    /// Takes the next line.
    pub fn line(&mut self, line: &str) {
        let end = line.char_indices().nth(limits::LOG_LINE_CHARS_MAX);
        self.pending.push_back(end.map_or(line, |(end, _)| &line[..end]).to_owned());
        if self.pending.len() == WINDOW {
            self.first();
        }
    }

    /// Ends the log.
    pub fn end(mut self) -> Summary {
        while !self.pending.is_empty() {
            self.first();
        }
        self.summary.kinds.sort_by_key(|kind| kind.first_line);
        self.summary
    }

    /// Reads the first line that is pending.
    fn first(&mut self) {
        let Some(line) = self.pending.pop_front() else { return };
        self.summary.lines += 1;
        let number = self.summary.lines;
        let mut piece = clean(&line);
        let own = piece.len();
        let lower = |word: std::ops::Range<usize>| piece[word].to_lowercase();
        if words(&piece).into_iter().any(|word| TEXTS.by_head.contains_key(&lower(word))) {
            for next in self.pending.iter().take_while(|next| !begins_record(next)) {
                piece.push(' ');
                piece += &clean(next);
            }
            if let Some(found) = recognise(piece, own) {
                self.count(found, number);
                return;
            }
        }
        if names_error(&line) && !self.is_near(number) {
            self.summary.unknown += 1;
            self.summary.unknown_first.get_or_insert((number, clean(&line)));
        }
    }

    /// Whether a known line is just above.
    fn is_near(&self, number: u64) -> bool {
        self.known_last.is_some_and(|last| number - last <= ASSERTION_LINES)
    }

    fn count(&mut self, found: Recognised, number: u64) {
        let is_bare = matches!(found.known, Known::Foreign(text) if text.form == "AssertionError");
        if is_bare && self.is_near(number) {
            return;
        }
        self.known_last = Some(number);
        let numbers = found.numbers();
        match self.summary.kinds.iter_mut().find(|kind| kind.first.index == found.index) {
            Some(kind) => {
                kind.count += 1;
                kind.others += u64::from(kind.numbers != numbers);
            }
            None => self.summary.kinds.push(Kind {
                first: found,
                first_line: number,
                count: 1,
                others: 0,
                numbers,
            }),
        }
    }
}

/// Whether a line begins a record of its own, so that the one above it has ended: it has the time
/// of day near its beginning, is blank, or belongs to a traceback.
fn begins_record(line: &str) -> bool {
    const TIME_WITHIN: usize = 80;
    let start = line.trim_start();
    let head: Vec<u8> = start.bytes().take(TIME_WITHIN).collect();
    let is_time = |window: &[u8]| {
        window.iter().enumerate().all(|(at, &byte)| match at % 3 {
            2 => byte == b':',
            _ => byte.is_ascii_digit(),
        })
    };
    start.is_empty()
        || ["Traceback", "File \"", "During handling", "Exception in thread", "raise ", "assert "]
            .iter()
            .any(|word| start.starts_with(word))
        || names_error(start.split(' ').next().unwrap_or_default())
        || head.windows(8).any(is_time)
}

/// Whether a line ends a traceback: it begins, perhaps behind a prefix, with a name such as
/// `ValueError:`.
fn names_error(line: &str) -> bool {
    line.split([' ', ']', '\t']).any(|word| {
        let word = word.trim_end_matches(':');
        let name = word.rsplit('.').next().unwrap_or_default();
        let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric());
        is_name
            && name.len() > "Error".len()
            && name.starts_with(|letter: char| letter.is_ascii_uppercase())
            && (name.ends_with("Error") || name.ends_with("Exception"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(log: &str) -> Summary {
        let mut reader = Log::default();
        log.lines().for_each(|line| reader.line(line));
        reader.end()
    }

    #[test]
    fn known_lines_are_counted_with_their_first_place_and_others_are_named() {
        let summary = read(
            "[2026-08-23 09:10:52 TP0] Prefill batch, #new-seq: 1\n\
             Traceback (most recent call last):\n\
             ValueError: Insufficient destination DCP pages: required=5, provided=4, \
             src_page_offset=2, dcp_rank=3\n\
             [2026-08-23 09:10:53 TP1] ValueError: Insufficient destination DCP pages: required=6, \
             provided=4, src_page_offset=2, dcp_rank=1\n\
             (Worker_TP1 pid=7) ERROR 08-23 09:10:54 [x.py:7] index 7 is out of bounds for dimension 0 \
             with size 7\n\
             \n\n\n\n\
             torch.OutOfMemoryError: CUDA out of memory\n",
        );
        let kinds: Vec<_> =
            summary.kinds.iter().map(|kind| (kind.first_line, kind.count, kind.others)).collect();
        assert_eq!((summary.lines, kinds), (10, vec![(3, 2, 1), (5, 1, 0)]));
        assert_eq!(summary.unknown, 1);
        assert_eq!(summary.unknown_first.unwrap().0, 10);
    }

    #[test]
    fn a_text_goes_on_in_the_next_lines_until_a_record_begins() {
        let wrapped = "RuntimeError: Insufficient destination\n   DCP pages: required=5,\n   \
                       provided=4, src_page_offset=2,\n   dcp_rank=3\n";
        let summary = read(wrapped);
        assert_eq!(summary.kinds.len(), 1);
        let line = summary.kinds[0].first.line().unwrap();
        assert_eq!(line, Ok(Line::Shortage { required: 5, provided: 4, offset: 2, rank: 3 }));
        let other = "Insufficient destination DCP pages: required=5,\n\
                     [2026-08-23 09:10:53 TP1] provided=4, src_page_offset=2, dcp_rank=3\n";
        assert!(read(other).kinds[0].first.line().unwrap().is_err());
    }

    #[test]
    fn a_condition_and_the_bare_error_below_it_are_one() {
        let log = "    assert len(local_block_descs_ids) == len(remote_block_descs_ids)\n           \
                   ^^^^^^^\nAssertionError\n";
        let summary = read(log);
        assert_eq!(summary.kinds.len(), 1);
        assert_eq!(summary.kinds[0].count, 1);
        assert_eq!(read("AssertionError\n").kinds.len(), 1);
        assert_eq!(read("AssertionError: weights are missing\n").kinds.len(), 0);
    }
}
