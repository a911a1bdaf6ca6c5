//! Recorded calls of an allocator, replayed on a [`Pool`].
//!
//! The records name token rows and the pool pages, so rows are made here: the rest of a request's
//! open page follows its last row, and new pages are filled from their first row on.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::LineError;
use super::replay::{self, Impossible};
use crate::limits;
use crate::pool::{Growth, Pool, Short, order};
use crate::units::{PageId, PageSize, Pages, Row, Tokens};

/// One allocator and what it was asked; the answers are in the ops.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    allocator: Allocator,
    need_sort: bool,
    page_size: u32,
    pages: u32,
    ops: Vec<Op>,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Allocator {
    Paged,
    Token,
}

/// One call. `rows` and `available` are its answer, but for `rows` of a free.
#[derive(Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
enum Op {
    Extend {
        requests: Vec<u64>,
        prefix_lens: Vec<u32>,
        seq_lens: Vec<u32>,
        last_rows: Vec<i64>,
        // Named, so that null has to be written: a field that is left out is no answer.
        #[serde(deserialize_with = "Option::deserialize")]
        rows: Option<Vec<u32>>,
        available: u64,
    },
    Decode {
        requests: Vec<u64>,
        seq_lens: Vec<u32>,
        last_rows: Vec<i64>,
        #[serde(deserialize_with = "Option::deserialize")]
        rows: Option<Vec<u32>>,
        available: u64,
    },
    Alloc {
        request: u64,
        tokens: u32,
        #[serde(deserialize_with = "Option::deserialize")]
        rows: Option<Vec<u32>>,
        available: u64,
    },
    Free {
        request: u64,
        rows: Vec<u32>,
        available: u64,
    },
}

/// Replays one line and compares every answer.
pub(super) fn check(line: &str) -> Result<(), LineError> {
    replay::check(line, Line::replay)
}

impl Line {
    /// Puts the model's answers in the place of the recorded ones.
    fn replay(&mut self) -> Result<(), Impossible> {
        let mut replay = Replay { pool: self.pool()?, allocator: self.allocator };
        for (index, op) in self.ops.iter_mut().enumerate() {
            replay.op(op).map_err(|reason| reason.in_op(index))?;
        }
        Ok(())
    }

    fn pool(&self) -> Result<Pool, Impossible> {
        let (least, most) = match self.allocator {
            Allocator::Token => (1, 1),
            Allocator::Paged => (2, *limits::PAGE_SIZE.end()),
        };
        let page = PageSize::new(self.page_size)
            .filter(|page| (least..=most).contains(&page.get()))
            .ok_or_else(|| {
                Impossible::new(
                    "page_size",
                    format!(
                        "must be {least} to {most} with this allocator, got {}",
                        self.page_size
                    ),
                )
            })?;
        let most = (limits::POOL_TOKENS_MAX / u64::from(page.get()))
            .min(u64::from(*limits::POOL_PAGES.end()));
        if self.pages == 0 || u64::from(self.pages) > most {
            return Err(Impossible::new(
                "pages",
                format!("must be 1 to {most}, got {}", self.pages),
            ));
        }
        let order = order::of_server(page, self.need_sort);
        Ok(Pool::new(page, Pages(self.pages), order))
    }
}

/// The pool in the middle of a line.
struct Replay {
    pool: Pool,
    allocator: Allocator,
}

impl Replay {
    fn op(&mut self, op: &mut Op) -> Result<(), Impossible> {
        let available = match op {
            Op::Extend { requests, prefix_lens, seq_lens, last_rows, rows, available } => {
                let spans = spans(requests, Some(prefix_lens), seq_lens, last_rows)?;
                *rows = self.extend(&spans)?;
                available
            }
            Op::Decode { requests, seq_lens, last_rows, rows, available } => {
                let spans = spans(requests, None, seq_lens, last_rows)?;
                *rows = self.decode(&spans)?;
                available
            }
            Op::Alloc { tokens, rows, available, .. } => {
                *rows = self.alloc(*tokens)?;
                available
            }
            Op::Free { rows, available, .. } => {
                self.free(rows)?;
                available
            }
        };
        let free = self.pool.available();
        *available = u64::from(free.0) * u64::from(self.pool.page().get());
        Ok(())
    }

    fn extend(&mut self, spans: &[Span]) -> Result<Option<Vec<u32>>, Impossible> {
        self.check_spans(spans)?;
        let growths: Vec<Growth> = spans.iter().map(|span| span.growth).collect();
        let taken = self.pool.extend(&growths);
        Ok(self.rows(spans, taken))
    }

    fn decode(&mut self, spans: &[Span]) -> Result<Option<Vec<u32>>, Impossible> {
        self.check_spans(spans)?;
        let lengths: Vec<Tokens> = spans.iter().map(|span| span.growth.length).collect();
        let taken = self.pool.decode(&lengths);
        let taken = taken.map(|pages| pages.into_iter().map(Vec::from_iter).collect());
        Ok(self.rows(spans, taken))
    }

    fn alloc(&mut self, tokens: u32) -> Result<Option<Vec<u32>>, Impossible> {
        let page = self.pool.page();
        let pages = Tokens(tokens).pages_exact(page).ok_or_else(|| {
            Impossible::new("tokens", format!("must be a multiple of {page}, got {tokens}"))
        })?;
        let taken = self.pool.alloc(pages).ok();
        Ok(taken.map(|pages| {
            let rows = pages.iter().flat_map(|&id| page_rows(page, id));
            rows.collect()
        }))
    }

    fn free(&mut self, rows: &[u32]) -> Result<(), Impossible> {
        let pages = rows
            .iter()
            .map(|&row| self.page_of("rows", i64::from(row)).map(|(page, _)| page))
            .collect::<Result<Vec<PageId>, Impossible>>()?;
        match self.allocator {
            Allocator::Token => self.pool.free(&pages),
            // A page goes back once, however many of its rows are named.
            Allocator::Paged => {
                let once: BTreeSet<PageId> = pages.into_iter().collect();
                self.pool.free(&Vec::from_iter(once));
            }
        }
        Ok(())
    }

    /// The page and offset of a row of this pool.
    fn page_of(&self, field: &str, row: i64) -> Result<(PageId, u32), Impossible> {
        let (page, pages) = (self.pool.page(), self.pool.total());
        u32::try_from(row)
            .map(|row| Row(row).split(page))
            .ok()
            .filter(|(id, _)| (1..=pages.0).contains(&id.0))
            .ok_or_else(|| {
                Impossible::new(
                    field,
                    format!("must lie in pages 1 to {pages} of {page} rows, got row {row}"),
                )
            })
    }

    /// Refuses spans on an allocator without pages, and last rows that cannot be a request's last.
    fn check_spans(&self, spans: &[Span]) -> Result<(), Impossible> {
        if self.allocator == Allocator::Token {
            return Err(Impossible::new(
                "op",
                "must be alloc or free on a token allocator".to_owned(),
            ));
        }
        for span in spans {
            let prefix = span.growth.prefix;
            if prefix == Tokens(0) {
                if span.last_row != -1 {
                    let got = span.last_row;
                    return Err(Impossible::new(
                        "last_rows",
                        format!("must be -1 for an empty request, got {got}"),
                    ));
                }
                continue;
            }
            let (_, offset) = self.page_of("last_rows", span.last_row)?;
            let expected = (prefix.0 - 1) % self.pool.page().get();
            if offset != expected {
                return Err(Impossible::new(
                    "last_rows",
                    format!(
                        "must be at offset {expected} of its page after {prefix} tokens, \
                     got row {}",
                        span.last_row
                    ),
                ));
            }
        }
        Ok(())
    }

    /// The rows of all new tokens, or `None` for a refusal.
    fn rows(&self, spans: &[Span], taken: Result<Vec<Vec<PageId>>, Short>) -> Option<Vec<u32>> {
        let rows = spans
            .iter()
            .zip(taken.ok()?)
            .flat_map(|(span, pages)| span.rows(self.pool.page(), &pages));
        Some(rows.collect())
    }
}

/// One request's growth in a batch, and the row of its last token so far, −1 for none.
struct Span {
    growth: Growth,
    last_row: i64,
}

impl Span {
    /// The rows of the new tokens: those after the last row in its page, then those of `pages`.
    fn rows(&self, page: PageSize, pages: &[PageId]) -> Vec<u32> {
        let Growth { prefix, length } = self.growth;
        let open = prefix.ceil_to(page).min(length) - prefix;
        // A request without rows has no open page; `check_spans` saw to the other last rows.
        let last = u32::try_from(self.last_row).unwrap_or(0);
        let fresh = pages.iter().flat_map(|&id| page_rows(page, id));
        let rest = (length - prefix - open).0 as usize;
        (1..=open.0).map(|step| last + step).chain(fresh.take(rest)).collect()
    }
}

fn page_rows(page: PageSize, id: PageId) -> impl Iterator<Item = u32> {
    (0..page.get()).map(move |offset| id.row(page, offset).0)
}

/// The spans of a batch. A decode leaves its prefixes out: each is one token less than the length.
fn spans(
    requests: &[u64],
    prefix_lens: Option<&[u32]>,
    seq_lens: &[u32],
    last_rows: &[i64],
) -> Result<Vec<Span>, Impossible> {
    let count = requests.len();
    let lengths = [
        ("prefix_lens", prefix_lens.map_or(count, <[u32]>::len)),
        ("seq_lens", seq_lens.len()),
        ("last_rows", last_rows.len()),
    ];
    if let Some((field, got)) = lengths.into_iter().find(|&(_, length)| length != count) {
        return Err(Impossible::new(
            field,
            format!("must have {count} entries, as requests has, got {got}"),
        ));
    }
    (0..count)
        .map(|at| {
            let length = seq_lens[at];
            let least = prefix_lens.map_or(1, |prefixes| prefixes[at]);
            if length < least || u64::from(length) > limits::POOL_TOKENS_MAX {
                let most = limits::POOL_TOKENS_MAX;
                return Err(Impossible::new(
                    "seq_lens",
                    format!("must be {least} to {most}, got {length}"),
                ));
            }
            // A decoded request has its new token, so that its length is at least 1.
            let prefix = prefix_lens.map_or_else(|| length - 1, |prefixes| prefixes[at]);
            Ok(Span {
                growth: Growth { prefix: Tokens(prefix), length: Tokens(length) },
                last_row: last_rows[at],
            })
        })
        .collect()
}
