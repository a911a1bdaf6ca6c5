//! The link from one prefill to one decode server: copies served in turn, and their pack buffer.
//!
//! A copy reads its source rows when its turn comes, or, if it is packed, when its rank's region of
//! the pack buffer falls free; it writes its destination rows when it lands. Regions that do not
//! overlap cannot disturb each other; a copy larger than its region spills into the next one, and
//! whatever is gathered there later goes out in its place.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use super::context::Context;
use super::observer::Note;
use super::piece::{PartRows, RankPlan, destination_pages};
use super::queue::Timer;
use super::reading::{read_rows, single_rows};
use super::store::Store;
use crate::behaviour::{EmptyLast, Packing};
use crate::event::{Event, Part, Server, SourcePages, Write, Writes};
use crate::finding::{Mark, Metric};
use crate::layout::Layout;
use crate::memory::{Memory, Stamp};
use crate::planner::RunPlan;
use crate::planner::descriptors::DescriptorCount;
use crate::units::{PageId, Rank, Tick};

/// A piece's part for one rank, on its way.
pub(super) struct Copy {
    pub(super) part: Part,
    rows: PartRows,
    /// The draft rows that go with it; they are never packed.
    draft: RunPlan,
    /// Its rows of the pack buffer, if it is packed.
    packed: Option<Range<u64>>,
    /// How long the link is busy with it.
    service: Tick,
    /// What it read; `None` until then.
    pub(super) writes: Option<Vec<Write>>,
    /// What it read of draft rows; empty until then.
    pub(super) draft_writes: Vec<Write>,
}

/// The link of one pair of servers.
pub(super) struct Link {
    /// Its number among the links.
    index: usize,
    pub(super) prefill: Server,
    pub(super) decode: Server,
    /// The first is being served.
    queue: VecDeque<Copy>,
    /// How many copies are queued for each rank.
    queued: Vec<u32>,
    /// Copies that were served and land later.
    delayed: BTreeMap<u64, Copy>,
    /// Copies served so far.
    served: u64,
    /// Whether a packed copy was ever larger than its region. Only then can copies disturb each
    /// other.
    spills: bool,
    /// Whether the thread that sends has ended. What it had queued before still lands.
    has_ended: bool,
}

impl Link {
    /// An idle link.
    pub(super) fn new(index: usize, prefill: Server, decode: Server) -> Link {
        Link {
            index,
            prefill,
            decode,
            queue: VecDeque::new(),
            queued: Vec::new(),
            delayed: BTreeMap::new(),
            served: 0,
            spills: false,
            has_ended: false,
        }
    }

    /// Whether nothing more is sent.
    pub(super) fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// From now on nothing more is sent.
    pub(super) fn end(&mut self, cx: &mut Context<'_>) {
        self.has_ended = true;
        cx.log.note(&Note::ThreadEnded { source: self.prefill, target: self.decode });
    }

    /// Queues one rank's part of a piece, whose pages are `source_pages` of the prefill server's
    /// `store`. False if nothing of it goes out.
    pub(super) fn queue_copy(
        &mut self,
        part: Part,
        RankPlan { rows, draft }: RankPlan,
        source_pages: &[PageId],
        store: &Store,
        cx: &mut Context<'_>,
    ) -> bool {
        let count = rows.count(part.rank);
        if count == 0 {
            cx.log.mark(Mark::PartEmpty);
            let is_empty = part.last && draft.runs.is_empty();
            if is_empty && cx.setup.switches.empty_last == EmptyLast::Dropped {
                return false;
            }
        }
        let packed = pack(part.rank, count, cx);
        count_descriptors(rows.descriptors(part.rank), packed.is_some(), cx);
        let config = &cx.setup.scenario.link;
        let transfer = (count * config.token_bytes).div_ceil(config.bytes_per_tick);
        let service = Tick(config.copy_ticks + transfer);
        let mut target_pages = rows.target_pages(part.rank, cx.setup.page());
        if !draft.runs.is_empty() {
            target_pages.to_mut().extend(destination_pages(&draft, cx.setup.virtual_page()));
        }
        let event = Event::Queued {
            part,
            source: self.prefill,
            target: self.decode,
            source_pages: SourcePages(source_pages),
            target_pages: &target_pages,
        };
        cx.log.tell(&event, &[]);
        cx.log.count(Metric::Copies, 1);
        self.spills |= packed.is_some() && !cx.setup.regions().fits_region(count);
        drop(target_pages);
        let draft_writes = Vec::new();
        let copy = Copy { part, rows, draft, packed, service, writes: None, draft_writes };
        self.queued.resize(cx.setup.layout.ranks() as usize, 0);
        let before = &mut self.queued[part.rank.index()];
        // A rank's region of the pack buffer is free unless a copy of it is queued before.
        let is_due = *before == 0 && copy.packed.is_some();
        *before += 1;
        self.queue.push_back(copy);
        match self.queue.len() {
            1 => self.serve(None, store, cx),
            behind if is_due => self.read_due([None, Some(behind - 1)], store, cx),
            _ => {}
        }
        true
    }

    /// Begins to serve the copy at the head of the queue, where a region of `freed` has fallen
    /// free.
    fn serve(&mut self, freed: Option<Rank>, store: &Store, cx: &mut Context<'_>) {
        let Some(copy) = self.queue.front() else { return };
        cx.set_after(copy.service, Timer::CopyServed { link: self.index });
        let next = freed.and_then(|rank| self.queue.iter().position(|copy| copy.part.rank == rank));
        let next = next.filter(|&next| self.queue[next].packed.is_some());
        self.read_due([Some(0), next], store, cx);
    }

    /// Reads the sources of those of the copies `due` that have not been read, and says so.
    fn read_due(&mut self, due: [Option<usize>; 2], store: &Store, cx: &mut Context<'_>) {
        let read = due.map(|index| {
            let index = index.filter(|&index| self.queue[index].writes.is_none())?;
            self.gather(index, &store.memory[0], cx.setup.layout);
            Some(index)
        });
        for index in read.into_iter().flatten() {
            let copy = &self.queue[index];
            let writes = Writes(copy.writes.as_deref().unwrap_or_default());
            cx.log.tell(&Event::Read { part: copy.part, writes }, &store.memory);
        }
    }

    /// The copy at the head of the queue has been served. Returns it if it lands now; a delayed one
    /// is kept until it does.
    pub(super) fn copy_served(&mut self, store: &Store, cx: &mut Context<'_>) -> Option<Copy> {
        let copy = self.queue.pop_front().expect("a copy was being served");
        self.served += 1;
        self.queued[copy.part.rank.index()] -= 1;
        self.serve(Some(copy.part.rank), store, cx);
        let config = &cx.setup.scenario.link;
        let every = u64::from(config.delay_every);
        if every == 0 || !self.served.is_multiple_of(every) {
            return Some(copy);
        }
        cx.log.mark(Mark::CopyDelayed);
        let delay = Tick(config.delay_ticks);
        cx.set_after(delay, Timer::CopyLands { link: self.index, served: self.served });
        self.delayed.insert(self.served, copy);
        None
    }

    /// Takes the delayed copy that was served as the `served`-th, to land now.
    pub(super) fn take_delayed(&mut self, served: u64) -> Copy {
        self.delayed.remove(&served).expect("a delayed copy lands once")
    }

    /// Reads the sources of one copy: the one being served, or a rank's first one if it is packed.
    fn gather(&mut self, index: usize, memory: &Memory, layout: Layout) {
        let (page, copy) = (layout.page(), &mut self.queue[index]);
        let request = copy.part.request;
        copy.writes = Some(copy.rows.read(copy.part.rank, request, memory, page));
        let pages = (page, layout.virtual_page());
        copy.draft_writes = read_rows(&copy.draft, request, memory, pages);
        self.spill(index);
    }

    /// Lets the rows that copy `newest` has just gathered replace those of other gathered copies in
    /// the same rows of the pack buffer.
    fn spill(&mut self, newest: usize) {
        let packed = self.queue[newest].packed.clone().filter(|_| self.spills);
        let Some(rows) = packed else { return };
        let overlaps = |other: &Range<u64>| other.start < rows.end && rows.start < other.end;
        for index in 0..self.queue.len() {
            let copy = &self.queue[index];
            let Some(theirs) = copy.packed.clone().filter(|theirs| overlaps(theirs)) else {
                continue;
            };
            if index == newest || copy.writes.is_none() {
                continue;
            }
            let ours = single_rows(self.queue[newest].writes.as_deref().unwrap_or_default());
            let copy = &mut self.queue[index];
            let mut held = single_rows(copy.writes.as_deref().unwrap_or_default());
            for row in rows.start.max(theirs.start)..rows.end.min(theirs.end) {
                let at = |range: &Range<u64>| usize::try_from(row - range.start).ok();
                if let (Some(from), Some(to)) = (at(&rows), at(&theirs)) {
                    held[to].content = ours[from]
                        .content
                        .map(|(stamp, step)| (Stamp { writer: copy.part.request, ..stamp }, step));
                }
            }
            copy.writes = Some(held);
        }
    }
}

/// The rows of the pack buffer that a part is gathered into, if it is.
fn pack(rank: Rank, rows: u64, cx: &mut Context<'_>) -> Option<Range<u64>> {
    let regions = cx.setup.regions();
    let fits = match cx.setup.switches.packing {
        Packing::RegionChecked => regions.fits_region(rows),
        Packing::BufferChecked => regions.fits_buffer(rank, rows),
        Packing::None => return None,
    };
    if rows == 0 {
        return None;
    }
    let start = u64::from(rank.0) * regions.region_rows();
    cx.log.mark(if fits { Mark::PartPacked } else { Mark::PartUnpacked });
    cx.log.count(Metric::CopiesPacked, u64::from(fits));
    fits.then_some(start..start + rows)
}

fn count_descriptors(count: DescriptorCount, is_packed: bool, cx: &mut Context<'_>) {
    let DescriptorCount { unpacked, packed } = count;
    cx.log.count(Metric::DescriptorsPacked, packed);
    cx.log.count(Metric::DescriptorsUnpacked, unpacked);
    cx.log.count(Metric::Descriptors, if is_packed { packed } else { unpacked });
}

#[cfg(test)]
mod serving_tests;
