//! Which rows decode's memory gets besides those of its own steps: copies that land, parts of
//! cached pages, and what comes back from the host.

use std::ops::Range;

use super::super::context::Context;
use super::super::link::Copy;
use super::Decode;
use crate::event::{Event, Write, Writes};
use crate::finding::Mark;
use crate::memory::{Extent, Memory};
use crate::units::{PageId, RequestId, Tick, Tokens};

impl Decode {
    /// A copy lands: its rows are written, draft rows beside them.
    pub(in crate::world) fn land(&mut self, copy: Copy, cx: &mut Context<'_>) {
        let part = copy.part;
        let mut writes = copy.writes.expect("a served copy has read its rows");
        let mut draft = copy.draft_writes;
        let all = writes.iter_mut().chain(&mut draft);
        for (stamp, _) in all.filter_map(|write| write.content.as_mut()) {
            stamp.written = cx.log.now;
        }
        let ranks = cx.setup.layout.ranks() as usize;
        self.catch_up_pages(writes.iter().chain(&draft).map(|write| write.page), &cx.setup);
        let store = &mut self.store;
        if !draft.is_empty() {
            cx.log.mark(Mark::DraftSent);
            let event = Event::DraftLanded { part, writes: Writes(&draft) };
            cx.log.tell(&event, &store.memory);
        }
        cx.log.tell(&Event::Landed { part, writes: Writes(&writes) }, &store.memory);
        write_all(&mut store.memory[part.rank.index()], &writes);
        if let Some(memory) = store.memory.get_mut(ranks + part.rank.index()) {
            write_all(memory, &draft);
        }
    }

    /// Copies the rows of `positions`, which lie in one virtual page, from a cached page into the
    /// request's own.
    pub(super) fn copy_within_page(
        &mut self,
        request: RequestId,
        pages: (PageId, PageId),
        positions: Range<Tokens>,
        cx: &mut Context<'_>,
    ) {
        let layout = cx.setup.layout;
        let Range { start: from, end: to } = positions;
        self.catch_up_pages([pages.0, pages.1], &cx.setup);
        let store = &mut self.store;
        let event = Event::Restored { server: store.server, request, from, to };
        cx.log.tell(&event, &store.memory);
        let now = cx.now();
        for rank in layout.each_rank() {
            let memory = &mut store.memory[rank.index()];
            let first = from.pages_floor(layout.virtual_page()).0 * layout.page().get();
            let start = layout.rows_of_rank(rank, from) - first;
            let end = layout.rows_of_rank(rank, to) - first;
            copy_rows(memory, pages, start..end, request, now);
        }
        let first = from.floor_to(layout.virtual_page());
        for memory in &mut store.memory[layout.ranks() as usize..] {
            let rows = (from - first).0..(to - first).0;
            copy_rows(memory, pages, rows, request, now);
        }
    }

    /// Writes `rows`, as `Store::read_pages` returned them, to other pages.
    pub(super) fn restore(
        &mut self,
        request: RequestId,
        pages: &[PageId],
        rows: Vec<Vec<Vec<Extent>>>,
        cx: &Context<'_>,
    ) {
        self.catch_up_pages(pages.iter().copied(), &cx.setup);
        for (&page, ranks) in pages.iter().zip(rows) {
            for (memory, extents) in self.store.memory.iter_mut().zip(ranks) {
                for extent in extents {
                    memory.write(page, extent.copied(request, cx.now()));
                }
            }
        }
    }
}

fn write_all(memory: &mut Memory, writes: &[Write]) {
    for write in writes {
        match write.extent() {
            Some(extent) => memory.write(write.page, extent),
            None => memory.erase(write.page, write.start, write.len),
        }
    }
}

/// Copies `rows` of one page into another, for `request`.
fn copy_rows(
    memory: &mut Memory,
    (from, to): (PageId, PageId),
    rows: Range<u32>,
    request: RequestId,
    now: Tick,
) {
    let within = |extent: &Extent| extent.within(rows.start, rows.end);
    let copied: Vec<Extent> = memory.page(from).iter().filter_map(within).collect();
    for extent in copied {
        memory.write(to, extent.copied(request, now));
    }
}
