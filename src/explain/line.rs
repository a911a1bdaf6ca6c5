//! An error line of an engine: which text it is, its numbers, and what they say together with what
//! is known of the request.

use thiserror::Error;

use super::known::{KnownSizes, own_last};
use crate::engine::error_texts;
use crate::engine::texts::ErrorText;
use crate::finding::Code;

/// An error line, read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    /// The prefix does not end on a virtual page (both revisions).
    Misaligned {
        /// V.
        virtual_page: i64,
        /// S.
        prefix: i64,
    },
    /// More tokens than the source pages hold, or fewer than none (checked).
    Source {
        /// n.
        tokens: i64,
        /// Source pages times P.
        capacity: i64,
    },
    /// A rank needs more destination pages than there are (checked).
    Shortage {
        /// The rank's highest page ordinal and 1.
        required: i64,
        /// Length of the destination list.
        provided: i64,
        /// off.
        offset: i64,
        /// The rank.
        rank: i64,
    },
    /// A page list is too short; the text does not say which (indexed).
    Index {
        /// The first index past the end; negative where it counts from the end, before the first.
        index: i64,
        /// The list's length.
        size: i64,
    },
    /// Two peers cannot be connected, under this code.
    Peers(Code),
}

/// Why a text cannot be read as an error line, or why what is known of the request contradicts it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LineError {
    /// No known text.
    #[error("must be one of the known texts, got \"{text}\"\n{}", known())]
    Unknown {
        /// What was given.
        text: String,
    },
    /// A known text whose numbers cannot be read.
    #[error("must read \"{form}\" with numbers, got \"{text}\"")]
    Numbers {
        /// The known text.
        form: String,
        /// What was given.
        text: String,
    },
    /// A known text with numbers that no call leads to.
    #[error("no call gives this line: {why}")]
    Impossible {
        /// What the numbers contradict.
        why: String,
    },
    /// What is known of the request contradicts the line.
    #[error("{field}: must be {wanted}, got {got}")]
    Contradiction {
        /// The argument.
        field: &'static str,
        /// What the line asks for.
        wanted: String,
        /// What was given.
        got: String,
    },
}

fn known() -> String {
    error_texts().map(|text| format!("  {}\n", text.form())).collect()
}

/// Why no two peers can have refused each other with this line, which has `text`, if they cannot.
/// `None` where its numbers cannot be read.
fn peers(text: &ErrorText, line: &str) -> Option<Option<String>> {
    let pair = |least: i64| {
        let (prefill, decode) = (text.number(line, "a")?, text.number(line, "b")?);
        Some(if prefill.min(decode) < least {
            Some(format!("both numbers must be {least} or more, got {prefill} and {decode}"))
        } else if prefill == decode {
            Some(format!("both sides have {prefill}, so nothing differs"))
        } else {
            None
        })
    };
    match text.code {
        Code::RefusedPageSize | Code::RefusedTopology => pair(1),
        Code::RefusedRank => pair(0),
        Code::RefusedPrefillCp => Some(match text.number(line, "a")? {
            cp @ ..=0 => Some(format!("attention CP must be 1 or more, got {cp}")),
            1 => Some("attention CP = 1 is what is required".to_owned()),
            _ => None,
        }),
        Code::RefusedGeometry => {
            let (source, target) = (text.list(line, "a"), text.list(line, "b"));
            Some(
                (source.is_some() && source == target).then(|| {
                    "the entries of both sides are the same, so nothing differs".to_owned()
                }),
            )
        }
        _ => Some(None),
    }
}

impl Line {
    /// Reads a line, whatever stands before and behind the text.
    pub fn read(text: &str) -> Result<Line, LineError> {
        match error_texts().find(|known| known.is_in(text)) {
            Some(known) => Line::read_as(known, text),
            None => Err(LineError::Unknown { text: text.to_owned() }),
        }
    }

    /// Reads a line that has the text `known`.
    pub(super) fn read_as(known: &ErrorText, text: &str) -> Result<Line, LineError> {
        let unread = || LineError::Numbers { form: known.form(), text: text.to_owned() };
        let line = Line::numbers(known, text).ok_or_else(unread)?;
        let why = match line {
            Line::Peers(_) => peers(known, text).ok_or_else(unread)?,
            _ => line.impossible(),
        };
        why.map_or(Ok(line), |why| Err(LineError::Impossible { why }))
    }

    /// The numbers of a line that has `text`.
    fn numbers(text: &ErrorText, line: &str) -> Option<Line> {
        let number = |name| text.number(line, name);
        Some(match text.code {
            Code::RefusedMisaligned => {
                Line::Misaligned { virtual_page: number("V")?, prefix: number("S")? }
            }
            Code::RefusedSource => Line::Source { tokens: number("n")?, capacity: number("c")? },
            Code::RefusedShortfall => Line::Shortage {
                required: number("r")?,
                provided: number("p")?,
                offset: number("off")?,
                rank: number("k")?,
            },
            Code::RefusedIndex => Line::Index { index: number("i")?, size: number("s")? },
            other => Line::Peers(other),
        })
    }

    /// Why no planner can have written this line, if none can.
    fn impossible(self) -> Option<String> {
        let negative = |numbers: &[(&str, i64)]| {
            let (name, number) = numbers.iter().find(|(_, number)| *number < 0)?;
            Some(format!("{name} must be 0 or more, got {number}"))
        };
        match self {
            Line::Misaligned { virtual_page: ..1, .. } => Some("V must be 1 or more".to_owned()),
            Line::Misaligned { virtual_page, prefix } => negative(&[("S", prefix)]).or_else(|| {
                (prefix % virtual_page == 0)
                    .then(|| format!("S = {prefix} is a multiple of V = {virtual_page}"))
            }),
            Line::Source { tokens, capacity } => {
                negative(&[("capacity", capacity)]).or_else(|| {
                    (0..=capacity)
                        .contains(&tokens)
                        .then(|| format!("{tokens} tokens fit into a capacity of {capacity}"))
                })
            }
            Line::Shortage { required, provided, offset, rank } => {
                let numbers =
                    [("provided", provided), ("src_page_offset", offset), ("dcp_rank", rank)];
                negative(&numbers).or_else(|| {
                    (required <= provided).then(|| {
                        format!("{provided} pages are enough where {required} are required")
                    })
                })
            }
            // A negative index counts from the end, so that it is out of bounds before the first.
            Line::Index { index, size } => negative(&[("size", size)]).or_else(|| {
                (-size..size)
                    .contains(&index)
                    .then(|| format!("index {index} lies within a list of {size}"))
            }),
            Line::Peers(_) => None,
        }
    }

    /// The code of a finding with this text.
    pub fn code(self) -> Code {
        match self {
            Line::Misaligned { .. } => Code::RefusedMisaligned,
            Line::Source { .. } => Code::RefusedSource,
            Line::Shortage { .. } => Code::RefusedShortfall,
            Line::Index { .. } => Code::RefusedIndex,
            Line::Peers(code) => code,
        }
    }

    /// Refuses what is known of the request if it contradicts this line.
    pub fn check(self, known: &KnownSizes) -> Result<(), LineError> {
        let contradiction = |field, wanted: String, got: i64| {
            Err(LineError::Contradiction { field, wanted, got: got.to_string() })
        };
        if let Some((most, why)) = self.prefix_max(known)
            && known.prefix() > most
        {
            return contradiction("prefix", format!("at most {most}, since {why}"), known.prefix());
        }
        if let Some(virtual_page) = known.virtual_page()
            && matches!(self, Line::Source { .. } | Line::Shortage { .. } | Line::Index { .. })
            && known.prefix() % virtual_page != 0
        {
            let prefix = known.prefix();
            let why = format!(
                "S = {prefix} is no multiple of V = {virtual_page}, for which a call is refused first"
            );
            return Err(LineError::Impossible { why });
        }
        match self {
            Line::Misaligned { virtual_page, prefix } => {
                if let Some(got) = known.virtual_page().filter(|&got| got != virtual_page) {
                    return contradiction("page_size * dcp_size", virtual_page.to_string(), got);
                }
                let parts = [("page_size", known.page_size), ("dcp_size", known.ranks)];
                for (field, part) in parts {
                    if let Some(part) = part.map(i64::from).filter(|part| virtual_page % part != 0)
                    {
                        return contradiction(field, format!("a divisor of {virtual_page}"), part);
                    }
                }
                match known.prefix.map(i64::from).filter(|&got| got != prefix) {
                    Some(got) => contradiction("prefix", prefix.to_string(), got),
                    None => Ok(()),
                }
            }
            Line::Source { capacity, .. } => match known.page_size.map(i64::from) {
                Some(page) if capacity % page != 0 => {
                    contradiction("page_size", format!("a divisor of {capacity}"), page)
                }
                Some(_) | None => Ok(()),
            },
            Line::Shortage { required, offset, rank, .. } => {
                let Some(ranks) = known.ranks.map(i64::from) else { return Ok(()) };
                if rank >= ranks {
                    return contradiction("dcp_size", format!("above dcp_rank {rank}"), ranks);
                }
                let Some(page) = known.page_size.map(i64::from) else { return Ok(()) };
                let (sent, last) = (offset * page, own_last(required, rank, page, ranks));
                if sent > last {
                    let why = format!(
                        "off * P = {sent} tokens went before, and the last token of rank {rank} in \
                         page {} is the one {last} after S",
                        required - 1
                    );
                    return Err(LineError::Impossible { why });
                }
                Ok(())
            }
            Line::Index { .. } | Line::Peers(_) => Ok(()),
        }
    }

    /// The longest prefix with which an engine can write this line, and the reason. `None` if the
    /// prompt is not known.
    fn prefix_max(self, known: &KnownSizes) -> Option<(i64, String)> {
        let prompt = i64::from(known.prompt?);
        let nothing = format!("a prompt of {prompt} tokens leaves nothing to send from there on");
        match self {
            // A hit that is padded up, if at most to the next physical page: V divides the others.
            // P is at most half of V, or no prefix would be refused for it.
            Line::Misaligned { virtual_page, .. } => {
                let of_ranks = known.ranks.map(|ranks| virtual_page / i64::from(ranks));
                let page = known.page_size.map(i64::from).or(of_ranks).unwrap_or(virtual_page / 2);
                let why = format!("a prompt of {prompt} tokens is padded by less than a page");
                Some((prompt + page - 1, why))
            }
            // Fewer than no tokens are asked for where the prefix is padded past the prompt's end.
            Line::Source { tokens: ..0, .. } | Line::Peers(_) => None,
            Line::Source { .. } | Line::Shortage { .. } | Line::Index { .. } => {
                Some((prompt, nothing))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORTAGE: &str = "Insufficient destination DCP pages: required=5, provided=4, \
                            src_page_offset=2, dcp_rank=3";

    #[test]
    fn every_known_text_is_read_with_what_stands_around_it() {
        let cases = [
            (
                "PD DCP transfer requires decode_prefix_len to align to the virtual DCP page size \
                 (256), got 320",
                Line::Misaligned { virtual_page: 256, prefix: 320 },
            ),
            (
                "num_kv_tokens must fit in the provided source pages, got tokens=-28, capacity=0",
                Line::Source { tokens: -28, capacity: 0 },
            ),
            (SHORTAGE, Line::Shortage { required: 5, provided: 4, offset: 2, rank: 3 }),
            ("index 4 is out of bounds for axis 0 with size 3", Line::Index { index: 4, size: 3 }),
            (
                "index -1 is out of bounds for axis 0 with size 0",
                Line::Index { index: -1, size: 0 },
            ),
            ("Unsupported PD DCP topology: 2 -> 4", Line::Peers(Code::RefusedTopology)),
        ];
        for (text, line) in cases {
            assert_eq!(Line::read(text), Ok(line));
            let logged = format!("[rank 9] index 7 ValueError: {text}. (request 12, size 99)");
            assert_eq!(Line::read(&logged), Ok(line), "{logged}");
        }
    }

    #[test]
    fn unknown_texts_are_refused_with_the_known_ones_and_missing_numbers_too() {
        let error = Line::read("CUDA error: an illegal memory access").unwrap_err().to_string();
        assert!(error_texts().all(|text| error.contains(&text.form())), "{error}");
        for text in [
            "Insufficient destination DCP pages: required=",
            "index 9223372036854775807 is out of bounds for axis 0 with size 3",
            "PD peers must use equal page sizes, got prefill=4, decode=x",
        ] {
            assert!(matches!(Line::read(text), Err(LineError::Numbers { .. })), "{text}");
        }
    }

    #[test]
    fn a_line_that_no_call_gives_is_refused_with_the_reason() {
        let shortage = |numbers: &str| format!("Insufficient destination DCP pages: {numbers}");
        let misaligned = |numbers: &str| {
            let text = "requires decode_prefix_len to align to the virtual DCP page size";
            format!("PD DCP transfer {text} {numbers}")
        };
        let source = |numbers: &str| {
            format!("num_kv_tokens must fit in the provided source pages, got {numbers}")
        };
        let text = str::to_owned;
        for (line, why) in [
            (
                shortage("required=4, provided=4, src_page_offset=2, dcp_rank=3"),
                "4 pages are enough where 4 are required",
            ),
            (
                shortage("required=4, provided=3, src_page_offset=-2, dcp_rank=3"),
                "src_page_offset must be 0 or more, got -2",
            ),
            (misaligned("(256), got 512"), "S = 512 is a multiple of V = 256"),
            (misaligned("(256), got -1"), "S must be 0 or more, got -1"),
            (misaligned("(0), got 3"), "V must be 1 or more"),
            (source("tokens=3, capacity=4"), "3 tokens fit into a capacity of 4"),
            (
                text("index 2 is out of bounds for axis 0 with size 3"),
                "index 2 lies within a list of 3",
            ),
            (
                text("index -3 is out of bounds for axis 0 with size 3"),
                "index -3 lies within a list of 3",
            ),
            (
                text("PD peers must use equal page sizes, got prefill=4, decode=4"),
                "both sides have 4, so nothing differs",
            ),
            (
                text("PD peers must use equal page sizes, got prefill=0, decode=4"),
                "both numbers must be 1 or more, got 0 and 4",
            ),
            (
                text("PD peers must connect matching DCP ranks, got prefill=1, decode=1"),
                "both sides have 1, so nothing differs",
            ),
            (text("Unsupported PD DCP topology: 2 -> 2"), "both sides have 2, so nothing differs"),
            (
                text("PD decode DCP currently requires prefill attention CP=1, got 1"),
                "attention CP = 1 is what is required",
            ),
            (
                text("PD DCP source/destination KV geometry differs: src=[8, 4], dst=[8, 4]"),
                "the entries of both sides are the same, so nothing differs",
            ),
        ] {
            let error = Line::read(&line).unwrap_err().to_string();
            assert_eq!(error, format!("no call gives this line: {why}"), "{line}");
        }
        let other = "PD DCP source/destination KV geometry differs: src=[8], dst=[8, 4]";
        assert_eq!(Line::read(other), Ok(Line::Peers(Code::RefusedGeometry)));
    }

    /// With nothing left to send, no page is short; only a padded prefix lies past the prompt.
    #[test]
    fn a_prefix_past_the_prompt_is_refused_where_no_line_can_follow() {
        let known = |prompt, prefix| KnownSizes {
            prompt: Some(prompt),
            prefix: Some(prefix),
            ..KnownSizes::default()
        };
        let shortage = Line::read(SHORTAGE).unwrap();
        let index = Line::Index { index: 4, size: 3 };
        let source = Line::Source { tokens: 9, capacity: 8 };
        for line in [shortage, index, source] {
            assert_eq!(line.check(&known(100, 100)), Ok(()));
            let error = line.check(&known(100, 200)).unwrap_err().to_string();
            assert!(error.starts_with("prefix: must be at most 100, since"), "{error}");
            assert!(error.ends_with(", got 200"), "{error}");
        }
        assert_eq!(Line::Source { tokens: -4, capacity: 0 }.check(&known(100, 104)), Ok(()));
        // H06, P = 4: a hit of 9 tokens padded to 12, which no V of 8 divides.
        let padded = Line::Misaligned { virtual_page: 8, prefix: 12 };
        assert_eq!(padded.check(&known(9, 12)), Ok(()));
        let error = padded.check(&known(4, 12)).unwrap_err().to_string();
        assert!(error.starts_with("prefix: must be at most 7, since"), "{error}");
    }

    #[test]
    fn a_prefix_that_is_refused_first_gives_no_other_line() {
        let known = |prefix| KnownSizes {
            page_size: Some(4),
            ranks: Some(4),
            prefix: Some(prefix),
            ..KnownSizes::default()
        };
        let line = Line::read(SHORTAGE).unwrap();
        assert_eq!(line.check(&known(16)), Ok(()));
        let error = line.check(&known(5)).unwrap_err().to_string();
        let why = "S = 5 is no multiple of V = 16, for which a call is refused first";
        assert_eq!(error, format!("no call gives this line: {why}"));
    }

    /// P = 4, N = 2, V = 8: rank 1 has tokens 1, 3, 5 and 7 of page 0.
    #[test]
    fn a_piece_that_begins_behind_the_page_in_question_is_refused() {
        let known = KnownSizes { page_size: Some(4), ranks: Some(2), ..KnownSizes::default() };
        let check =
            |offset| Line::Shortage { required: 1, provided: 0, offset, rank: 1 }.check(&known);
        assert_eq!(check(1), Ok(()));
        let error = check(2).unwrap_err().to_string();
        let why = "off * P = 8 tokens went before, and the last token of rank 1 in page 0 is the one \
                   7 after S";
        assert_eq!(error, format!("no call gives this line: {why}"));
    }

    #[test]
    fn facts_that_contradict_the_line_are_refused() {
        let known = |page_size, ranks| KnownSizes {
            page_size: Some(page_size),
            ranks: Some(ranks),
            ..KnownSizes::default()
        };
        let line = Line::read(SHORTAGE).unwrap();
        assert_eq!(line.check(&known(4, 4)), Ok(()));
        let error = line.check(&known(4, 3)).unwrap_err().to_string();
        assert_eq!(error, "dcp_size: must be above dcp_rank 3, got 3");
        let line = Line::Misaligned { virtual_page: 256, prefix: 320 };
        let error = line.check(&known(64, 8)).unwrap_err().to_string();
        assert_eq!(error, "page_size * dcp_size: must be 256, got 512");
        let error =
            line.check(&KnownSizes { ranks: Some(3), ..KnownSizes::default() }).unwrap_err();
        assert_eq!(error.to_string(), "dcp_size: must be a divisor of 256, got 3");
    }
}
