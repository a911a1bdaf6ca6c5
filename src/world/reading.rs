//! What a copy reads: the source rows of its plan, as the writes of its destination rows.
//!
//! A piece that was laid out for all ranks at once is read once for all of them, as long as nothing
//! is written on prefill in between.

use std::cell::RefCell;

use crate::event::Write;
use crate::memory::{Extent, Memory, Stamp};
use crate::planner::{PiecePlan, RankShare, RunPlan};
use crate::units::{PageId, PageSize, Rank, RequestId, Row, Tokens};

/// A piece that is laid out for all ranks at once, with what its source rows held when they were
/// last read.
pub(super) struct SharedPiece {
    pub(super) plan: PiecePlan,
    read: RefCell<Read>,
}

/// What the source of a piece held.
#[derive(Default)]
struct Read {
    /// The count of writes to the memory by then; `None` if it has not been read.
    at: Option<u64>,
    contents: Vec<Content>,
}

/// Consecutive tokens of a piece whose rows continue each other, or were never written.
struct Content {
    /// The first token, counted from the piece's start.
    start: u32,
    /// The token after the last.
    end: u32,
    /// The first token's stamp, and how far positions rise from token to token.
    held: Option<(Stamp, u32)>,
}

impl SharedPiece {
    pub(super) fn new(plan: PiecePlan) -> SharedPiece {
        SharedPiece { plan, read: RefCell::default() }
    }

    /// Reads the source rows of `rank`'s share, and says what its destination rows will hold.
    pub(super) fn read(&self, rank: Rank, request: RequestId, memory: &Memory) -> Vec<Write> {
        let mut read = self.read.borrow_mut();
        if read.at != Some(memory.writes()) {
            read.at = Some(memory.writes());
            read.contents.clear();
            read_source(&self.plan, memory, &mut read.contents);
        }
        let share = self.plan.share(rank);
        let mut writes = Vec::with_capacity(share.pages.len());
        for content in &read.contents {
            put_share(&self.plan, &share, content, request, &mut writes);
        }
        writes
    }
}

/// What the source rows of all tokens hold, page by page.
fn read_source(plan: &PiecePlan, memory: &Memory, contents: &mut Vec<Content>) {
    let page = plan.page();
    let mut token = 0;
    for stretch in plan.source() {
        // A piece begins with a page, so a stretch does, too.
        let (mut id, _) = stretch.row.split(page);
        let end = token + stretch.len;
        while token < end {
            let len = page.get().min(end - token);
            read_page(memory.page(id), token, len, contents);
            token += len;
            id = PageId(id.0 + 1);
        }
    }
}

/// The same for the first `len` rows of one page, of which `extents` are written.
fn read_page(extents: &[Extent], token: u32, len: u32, contents: &mut Vec<Content>) {
    let mut at = 0;
    for extent in extents.iter().filter_map(|extent| extent.within(0, len)) {
        if at < extent.start {
            put_content(contents, token + at, token + extent.start, None);
        }
        at = extent.end();
        let held = Some((extent.stamp, extent.step));
        put_content(contents, token + extent.start, token + at, held);
    }
    if at < len {
        put_content(contents, token + at, token + len, None);
    }
}

/// Adds what tokens `start..end` hold, to the last content if it goes on there.
fn put_content(contents: &mut Vec<Content>, start: u32, end: u32, held: Option<(Stamp, u32)>) {
    // What was written at another time is kept apart: which time a rank is shown is that of its own
    // first row.
    let written = |held: Option<(Stamp, u32)>| held.map(|(stamp, _)| stamp.written);
    if let Some(last) = contents.last_mut()
        && written(last.held) == written(held)
        && goes_on(last.held, last.end - last.start, held)
    {
        last.end = end;
    } else {
        contents.push(Content { start, end, held });
    }
}

/// Adds the writes of a rank's share of `content`, cut at page ends.
fn put_share(
    plan: &PiecePlan,
    share: &RankShare<'_>,
    content: &Content,
    request: RequestId,
    writes: &mut Vec<Write>,
) {
    let (ranks, page) = (plan.ranks(), plan.page());
    // How many of the rank's tokens lie before a token of the piece.
    let before = |token: u32| token.saturating_sub(share.first).div_ceil(ranks).min(share.count);
    let (mut next, end) = (before(content.start), before(content.end));
    if next == end {
        return;
    }
    let skipped = share.first + next * ranks - content.start;
    let mut held = content.held.map(|(stamp, step)| {
        let position = Tokens(stamp.position.0 + skipped * step);
        (Stamp { position, writer: request, ..stamp }, step * ranks)
    });
    let place = share.offset + next;
    let (mut ordinal, mut start) = ((place / page.get()) as usize, place % page.get());
    while next < end {
        let len = (page.get() - start).min(end - next);
        let write = Write { page: share.pages[ordinal], start, len, content: held };
        if !writes.last_mut().is_some_and(|last| continues(last, &write)) {
            writes.push(write);
        }
        if let Some((stamp, step)) = &mut held {
            stamp.position += Tokens(len * *step);
        }
        next += len;
        (ordinal, start) = (ordinal + 1, 0);
    }
}

/// The same writes row by row.
pub(super) fn single_rows(writes: &[Write]) -> Vec<Write> {
    let row = |write: &Write, at: u32| Write {
        start: write.start + at,
        len: 1,
        content: write.extent().map(|extent| (extent.at(write.start + at), extent.step)),
        ..*write
    };
    writes.iter().flat_map(|write| (0..write.len).map(move |at| row(write, at))).collect()
}

/// Reads the plan's source rows of `memory` and says what its destination rows will hold. Pages are
/// of the source's and of the destination's size.
pub(super) fn read_rows(
    plan: &RunPlan,
    request: RequestId,
    memory: &Memory,
    (page, dst_page): (PageSize, PageSize),
) -> Vec<Write> {
    let mut reader = Reader { writes: Vec::new(), request, page: dst_page };
    for run in &plan.runs {
        let mut at = 0;
        while at < run.len {
            let (src, dst) = run.at(at);
            let (id, offset) = src.split(page);
            // Rows of the run in this source page.
            let in_page = (page.get() - offset).div_ceil(run.src_step).min(run.len - at);
            reader.read_page(memory, id, offset, run.src_step, dst, in_page);
            at += in_page;
        }
    }
    reader.writes
}

struct Reader {
    writes: Vec<Write>,
    request: RequestId,
    /// Of the destination.
    page: PageSize,
}

impl Reader {
    /// Reads `len` rows of one source page, `step` apart from `offset` on, for neighbouring
    /// destination rows from `dst` on.
    fn read_page(
        &mut self,
        memory: &Memory,
        id: PageId,
        offset: u32,
        step: u32,
        dst: Row,
        len: u32,
    ) {
        let mut at = 0;
        let extents = memory.page(id);
        let first = extents.partition_point(|extent| extent.end() <= offset);
        for extent in &extents[first..] {
            let here = offset + at * step;
            if extent.start > here {
                let gap = (extent.start - here).div_ceil(step).min(len - at);
                self.put(Row(dst.0 + at), gap, None);
                at += gap;
            }
            let here = offset + at * step;
            if at >= len {
                break;
            }
            if here < extent.end() {
                let rows = (extent.end() - here).div_ceil(step).min(len - at);
                let content = (extent.at(here), extent.step * step);
                self.put(Row(dst.0 + at), rows, Some(content));
                at += rows;
            }
        }
        if at < len {
            self.put(Row(dst.0 + at), len - at, None);
        }
    }

    /// Adds writes of `len` rows from `dst` on, cut at page ends and joined to the last write where
    /// they continue it.
    fn put(&mut self, dst: Row, len: u32, content: Option<(Stamp, u32)>) {
        let mut at = 0;
        while at < len {
            let (page, start) = Row(dst.0 + at).split(self.page);
            let rows = (self.page.get() - start).min(len - at);
            let content = content.map(|(stamp, step)| {
                let position = Tokens(stamp.position.0 + at * step);
                (Stamp { position, writer: self.request, ..stamp }, step)
            });
            let write = Write { page, start, len: rows, content };
            if !self.writes.last_mut().is_some_and(|last| continues(last, &write)) {
                self.writes.push(write);
            }
            at += rows;
        }
    }
}

/// Takes `next` into `last` if its rows and stamps go on from there.
fn continues(last: &mut Write, next: &Write) -> bool {
    let adjacent = last.page == next.page && last.start + last.len == next.start;
    let goes_on = adjacent && goes_on(last.content, last.len, next.content);
    if goes_on {
        last.len += next.len;
    }
    goes_on
}

/// Whether `next` is what follows `len` rows of `last`.
fn goes_on(last: Option<(Stamp, u32)>, len: u32, next: Option<(Stamp, u32)>) -> bool {
    match (last, next) {
        (Some((stamp, step)), Some((other, other_step))) => {
            let position = Tokens(stamp.position.0 + len * step);
            step == other_step
                && position == other.position
                && (stamp.text, stamp.writer) == (other.text, other.writer)
        }
        (None, None) => true,
        (Some(_), None) | (None, Some(_)) => false,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::planner::RowRun;
    use crate::units::Tick;

    proptest! {
        #[test]
        fn reading_by_extents_equals_reading_row_by_row(
            (rows, dst_rows) in (1u32..6, 1u32..9),
            (step, src, dst, len) in (1u32..7, 0u32..12, 0u32..12, 1u32..8),
            extents in proptest::collection::vec(
                (0u32..10, 0u32..5, 1u32..5, 0u32..50, 1u32..3), 0..9,
            ),
        ) {
            let page = PageSize::new(rows).unwrap();
            let dst_page = PageSize::new(dst_rows).unwrap();
            let mut memory = Memory::new(60);
            for (id, start, len, position, step) in extents {
                let start = start.min(rows - 1);
                let len = len.min(rows - start);
                let stamp = Stamp {
                    text: RequestId(0),
                    position: Tokens(position),
                    written: Tick(3),
                    writer: RequestId(1),
                };
                memory.write(PageId(id), Extent::new(start, len, stamp, step));
            }
            let run = RowRun { src: Row(src), src_step: step, dst: Row(dst), len };
            let plan = RunPlan { runs: vec![run] };
            let writes = read_rows(&plan, RequestId(2), &memory, (page, dst_page));
            let by_row: Vec<_> = (0..len)
                .map(|at| {
                    let (from, to) = run.at(at);
                    let (id, offset) = from.split(page);
                    let held = memory.row(id, offset);
                    let held = held.map(|stamp| Stamp { writer: RequestId(2), ..stamp });
                    (to.split(dst_page), held)
                })
                .collect();
            let read: Vec<_> = single_rows(&writes)
                .iter()
                .map(|write| ((write.page, write.start), write.content.map(|(stamp, _)| stamp)))
                .collect();
            prop_assert_eq!(read, by_row);
        }
    }
}
