//! The request that a planner answers: one piece of a prompt, for one rank.
//!
//! A [`PlanInput`] exists only when it lies in the planner's domain. The real planner accepts a
//! negative page id, a page listed twice or a rank past the last and answers something; here such a
//! request is an [`InputError`], so that no plan is ever built on it.

use std::borrow::Cow;

use serde::Deserialize;
use thiserror::Error;

use crate::layout::{Layout, LayoutError};
use crate::limits;
use crate::units::{PageId, PageSize, Pages, Rank, Tokens};

/// Which tokens of a request are sent: the chunk's place and length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Source pages of this request sent before, counted from the decode side's prefix.
    pub src_page_offset: Pages,
    /// What the decode side has cached, S.
    pub decode_prefix_len: Tokens,
    /// Tokens of the piece, n; `None` is all that the source pages hold. Can be negative: a prefix
    /// padded past the prompt's end asks for that, and the revisions differ in their answer.
    pub num_kv_tokens: Option<i64>,
}

/// A request to the planner, valid and immutable. Lists are borrowed where they can be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanInput<'a> {
    layout: Layout,
    rank: Rank,
    piece: Piece,
    src: Cow<'a, [PageId]>,
    dst: Cow<'a, [PageId]>,
}

/// A request as it stands in a file or on a command line, under the engine's names and unchecked.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawInput {
    /// Rows of a physical page, P.
    pub page_size: i64,
    /// Number of ranks, N.
    pub dcp_size: i64,
    /// The rank that receives.
    pub dcp_rank: i64,
    /// Source pages sent before this piece.
    pub src_page_offset: i64,
    /// Tokens that decode has cached, S.
    pub decode_prefix_len: i64,
    /// Tokens of the piece; absent or null is all that the source pages hold.
    #[serde(default)]
    pub num_kv_tokens: Option<i64>,
    /// Physical pages of the piece on prefill.
    pub src_pages: Vec<i64>,
    /// All virtual pages reserved on decode, from position S on.
    pub dst_pages: Vec<i64>,
}

/// Why a request lies outside the planner's domain.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum InputError {
    /// A value past its bounds.
    #[error("{field}: must be in {min}..={max}, got {got}")]
    Range {
        /// The engine's name of the field, with an index in a list.
        field: String,
        /// The smallest allowed value.
        min: i64,
        /// The largest allowed value.
        max: i64,
        /// The value.
        got: i64,
    },
    /// Page size and ranks do not make a layout.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// The planner stripes token by token only.
    #[error("layout: interleave must be 1 for a plan")]
    Interleaved,
    /// A list names a page twice.
    #[error("{list}: every page must occur once, got page {page} more than once")]
    Duplicate {
        /// The engine's name of the list.
        list: &'static str,
        /// The lowest page that occurs more than once.
        page: PageId,
    },
    /// The piece starts past 32 bits.
    #[error(
        "src_page_offset: decode_prefix_len + src_page_offset · page_size must be in \
         0..=4294967295, got {prefix} + {offset} · {page_size}"
    )]
    Start {
        /// S.
        prefix: Tokens,
        /// Source pages sent before.
        offset: Pages,
        /// P.
        page_size: PageSize,
    },
}

impl<'a> PlanInput<'a> {
    /// A request over lists that the caller keeps. Costs one pass over ascending lists, a sort of
    /// the others.
    pub fn new(
        layout: Layout,
        rank: Rank,
        piece: Piece,
        src: &'a [PageId],
        dst: &'a [PageId],
    ) -> Result<PlanInput<'a>, InputError> {
        let input = PlanInput::with_duplicates(layout, rank, piece, src, dst)?;
        input.check_duplicates()?;
        Ok(input)
    }

    /// The same where a list may name a page twice, which the released planners do not look for.
    pub fn with_duplicates(
        layout: Layout,
        rank: Rank,
        piece: Piece,
        src: &'a [PageId],
        dst: &'a [PageId],
    ) -> Result<PlanInput<'a>, InputError> {
        PlanInput::from_lists(layout, rank, piece, Cow::Borrowed(src), Cow::Borrowed(dst))
    }

    fn check_duplicates(&self) -> Result<(), InputError> {
        check_duplicates("src_pages", &self.src)?;
        check_duplicates("dst_pages", &self.dst)
    }

    fn from_lists(
        layout: Layout,
        rank: Rank,
        piece: Piece,
        src: Cow<'a, [PageId]>,
        dst: Cow<'a, [PageId]>,
    ) -> Result<PlanInput<'a>, InputError> {
        if Layout::striped(layout.page().get(), layout.ranks()) != Ok(layout) {
            return Err(InputError::Interleaved);
        }
        check_rank(layout, rank)?;
        let start = u64::from(piece.decode_prefix_len.0)
            + u64::from(piece.src_page_offset.0) * u64::from(layout.page().get());
        if start > u64::from(u32::MAX) {
            return Err(InputError::Start {
                prefix: piece.decode_prefix_len,
                offset: piece.src_page_offset,
                page_size: layout.page(),
            });
        }
        check_pages("src_pages", &src, layout.page())?;
        // Draft rows reach V rows a page, so that is the bound for every revision.
        check_pages("dst_pages", &dst, layout.virtual_page())?;
        Ok(PlanInput { layout, rank, piece, src, dst })
    }

    /// The same piece for another rank, without a second look at the lists.
    pub fn for_rank(&self, rank: Rank) -> Result<PlanInput<'_>, InputError> {
        check_rank(self.layout, rank)?;
        Ok(PlanInput {
            rank,
            src: Cow::Borrowed(&self.src),
            dst: Cow::Borrowed(&self.dst),
            ..*self
        })
    }

    /// P, N and V.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// The rank that receives.
    pub fn rank(&self) -> Rank {
        self.rank
    }

    /// The piece's place and length.
    pub fn piece(&self) -> Piece {
        self.piece
    }

    /// Physical pages of the piece on prefill.
    pub fn src_pages(&self) -> &[PageId] {
        &self.src
    }

    /// All virtual pages reserved on decode, from position S on.
    pub fn dst_pages(&self) -> &[PageId] {
        &self.dst
    }

    /// Tokens that the source pages hold, |src|·P.
    pub fn capacity(&self) -> u64 {
        self.src.len() as u64 * u64::from(self.layout.page().get())
    }

    /// Tokens asked for, n, with the default filled in.
    pub fn tokens(&self) -> i64 {
        // Distinct pages with 32-bit rows hold at most 2^32 tokens.
        self.piece.num_kv_tokens.unwrap_or(self.capacity().cast_signed())
    }
}

impl TryFrom<&RawInput> for PlanInput<'static> {
    type Error = InputError;

    fn try_from(raw: &RawInput) -> Result<PlanInput<'static>, InputError> {
        let layout = Layout::striped(
            word("page_size", raw.page_size, 1)?,
            word("dcp_size", raw.dcp_size, 1)?,
        )?;
        let piece = Piece {
            src_page_offset: Pages(word("src_page_offset", raw.src_page_offset, 0)?),
            decode_prefix_len: Tokens(word("decode_prefix_len", raw.decode_prefix_len, 0)?),
            num_kv_tokens: raw.num_kv_tokens,
        };
        let highest_rank = i64::from(layout.ranks()) - 1;
        let rank = ranged(|| "dcp_rank".to_owned(), raw.dcp_rank, 0, highest_rank)?;
        let src = page_ids("src_pages", &raw.src_pages, layout.page())?;
        let dst = page_ids("dst_pages", &raw.dst_pages, layout.virtual_page())?;
        let input =
            PlanInput::from_lists(layout, Rank(rank), piece, Cow::Owned(src), Cow::Owned(dst))?;
        input.check_duplicates()?;
        // More tokens than the pages hold are for the planner to refuse.
        let (max, got) = (i64::from(*limits::PROMPT_TOKENS.end()), input.tokens());
        if got > max && got <= input.capacity().cast_signed() {
            let field = "num_kv_tokens (of one piece)".to_owned();
            return Err(InputError::Range { field, min: 0, max, got });
        }
        Ok(input)
    }
}

/// `got` as a 32-bit number within bounds that fit 32 bits.
fn ranged(field: impl FnOnce() -> String, got: i64, min: i64, max: i64) -> Result<u32, InputError> {
    u32::try_from(got)
        .ok()
        .filter(|_| (min..=max).contains(&got))
        .ok_or_else(|| InputError::Range { field: field(), min, max, got })
}

fn word(field: &str, got: i64, min: i64) -> Result<u32, InputError> {
    ranged(|| field.to_owned(), got, min, i64::from(u32::MAX))
}

/// The highest page id whose last row still is a [`crate::units::Row`].
fn highest_page(page: PageSize) -> i64 {
    (1 << 32) / i64::from(page.get()) - 1
}

fn page_ids(list: &str, raw: &[i64], page: PageSize) -> Result<Vec<PageId>, InputError> {
    let max = highest_page(page);
    raw.iter()
        .enumerate()
        .map(|(at, &id)| ranged(|| format!("{list}[{at}]"), id, 0, max).map(PageId))
        .collect()
}

fn check_rank(layout: Layout, rank: Rank) -> Result<(), InputError> {
    if rank.0 < layout.ranks() {
        return Ok(());
    }
    Err(InputError::Range {
        field: "dcp_rank".to_owned(),
        min: 0,
        max: i64::from(layout.ranks()) - 1,
        got: i64::from(rank.0),
    })
}

fn check_pages(list: &'static str, pages: &[PageId], page: PageSize) -> Result<(), InputError> {
    let max = highest_page(page);
    if let Some(at) = pages.iter().position(|id| i64::from(id.0) > max) {
        return Err(InputError::Range {
            field: format!("{list}[{at}]"),
            min: 0,
            max,
            got: i64::from(pages[at].0),
        });
    }
    Ok(())
}

fn check_duplicates(list: &'static str, pages: &[PageId]) -> Result<(), InputError> {
    if pages.is_sorted_by(|a, b| a < b) {
        return Ok(());
    }
    let mut sorted = pages.to_vec();
    sorted.sort_unstable();
    match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(InputError::Duplicate { list, page: pair[0] }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn valid() -> RawInput {
        RawInput {
            page_size: 4,
            dcp_size: 2,
            dcp_rank: 1,
            src_page_offset: 0,
            decode_prefix_len: 0,
            num_kv_tokens: None,
            src_pages: vec![5, 3],
            dst_pages: vec![0],
        }
    }

    fn refusal(change: impl FnOnce(&mut RawInput)) -> String {
        let mut raw = valid();
        change(&mut raw);
        PlanInput::try_from(&raw).unwrap_err().to_string()
    }

    #[test]
    fn a_valid_request_keeps_its_numbers_and_fills_in_the_token_count() {
        let input = PlanInput::try_from(&valid()).unwrap();
        assert_eq!(input.src_pages(), [PageId(5), PageId(3)]);
        assert_eq!(input.dst_pages(), [PageId(0)]);
        assert_eq!((input.capacity(), input.tokens()), (8, 8));
        assert_eq!(input.layout().virtual_page().get(), 8);
        assert_eq!(input.for_rank(Rank(0)).unwrap().rank(), Rank(0));
    }

    #[test]
    fn every_value_past_its_bounds_is_refused_with_field_range_and_value() {
        let cases = [
            (refusal(|raw| raw.page_size = 0), "page_size: must be in 1..=4294967295, got 0"),
            (refusal(|raw| raw.dcp_size = -1), "dcp_size: must be in 1..=4294967295, got -1"),
            (refusal(|raw| raw.dcp_rank = 2), "dcp_rank: must be in 0..=1, got 2"),
            (
                refusal(|raw| raw.dcp_rank = i64::MIN),
                "dcp_rank: must be in 0..=1, got -9223372036854775808",
            ),
            (
                refusal(|raw| raw.src_page_offset = -1),
                "src_page_offset: must be in 0..=4294967295, got -1",
            ),
            (
                refusal(|raw| raw.decode_prefix_len = 1 << 32),
                "decode_prefix_len: must be in 0..=4294967295, got 4294967296",
            ),
            (
                refusal(|raw| raw.src_pages[1] = -3),
                "src_pages[1]: must be in 0..=1073741823, got -3",
            ),
            (
                refusal(|raw| raw.src_pages[0] = 1 << 30),
                "src_pages[0]: must be in 0..=1073741823, got 1073741824",
            ),
            (
                refusal(|raw| raw.dst_pages[0] = 1 << 29),
                "dst_pages[0]: must be in 0..=536870911, got 536870912",
            ),
            (
                refusal(|raw| raw.src_pages = vec![5, 3, 5]),
                "src_pages: every page must occur once, got page 5 more than once",
            ),
            (
                refusal(|raw| raw.dst_pages = vec![2, 2]),
                "dst_pages: every page must occur once, got page 2 more than once",
            ),
            (
                refusal(|raw| (raw.page_size, raw.dcp_size) = (1 << 20, 1 << 12)),
                "page_size · ranks: must fit into 32 bits, got 1048576 · 4096",
            ),
            (
                refusal(|raw| raw.src_page_offset = 1 << 30),
                "src_page_offset: decode_prefix_len + src_page_offset · page_size must be in \
                 0..=4294967295, got 0 + 1073741824 · 4",
            ),
        ];
        for (got, expected) in cases {
            assert_eq!(got, expected);
        }
    }

    #[test]
    fn trusted_lists_are_held_to_the_same_bounds() {
        let piece =
            Piece { src_page_offset: Pages(0), decode_prefix_len: Tokens(0), num_kv_tokens: None };
        let striped = Layout::striped(4, 2).unwrap();
        let top = [PageId((1 << 29) - 1)];
        assert!(PlanInput::new(striped, Rank(0), piece, &top, &top).is_ok());
        let past = [PageId(1 << 29)];
        let error = PlanInput::new(striped, Rank(0), piece, &top, &past).unwrap_err();
        assert!(matches!(error, InputError::Range { got, .. } if got == 1 << 29));
        let error = PlanInput::new(striped, Rank(2), piece, &top, &top).unwrap_err();
        assert!(matches!(error, InputError::Range { max: 1, got: 2, .. }));
        let by_page = Layout::new(4, 2, 4).unwrap();
        let error = PlanInput::new(by_page, Rank(0), piece, &top, &top).unwrap_err();
        assert_eq!(error, InputError::Interleaved);
    }
}
