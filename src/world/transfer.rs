//! From computed rows to copies: cutting pieces, asking the planner, feeding the links, landing.

use super::World;
use super::handoff::{Action, Part as HandoffPart, Signal};
use super::link::Copy;
use super::observer::Call;
use super::queue::Timer;
use crate::behaviour::{
    DestinationList, DraftRows, EarlySend, EmptyLast, Packing, Relayout, Rows, SendCut, SendSplit,
    SourceLength, SourceOffset,
};
use crate::event::{Event, Part, Write, Writes};
use crate::finding::{Chance, Code, Mark, Metric};
use crate::memory::Memory;
use crate::planner::descriptors::DescriptorCount;
use crate::planner::packing::{PackRegions, SendPart};
use crate::planner::{Piece, PlanInput, Refusal, RunPlan, untranslated};
use crate::scenario::Moment;
use crate::units::{PageId, PageSize, Pages, Rank, RequestId, Tick, Tokens};

/// The rows of one rank's part of a piece, and the draft rows that go with them.
type Layouts = (RunPlan, RunPlan);

/// Source pages and tokens of one planner call.
struct Send {
    pages: Vec<PageId>,
    offset: Pages,
    tokens: i64,
    last: bool,
}

impl World<'_> {
    /// Sends the part of the cached prefix that may go before its chunk is computed. `settled` rows
    /// are written, `launched` ones will be.
    pub(super) fn send_early(&mut self, request: RequestId, settled: Tokens, launched: Tokens) {
        if !self.live(request).destination.is_known {
            return;
        }
        let page = self.layout.page();
        let reach = match self.switches.early_send {
            EarlySend::Off => return,
            EarlySend::SettledCut | EarlySend::SettledRestDropped => settled.floor_to(page),
            EarlySend::SettledSkipped => match settled.pages_exact(page) {
                Some(_) => settled,
                None => return,
            },
            EarlySend::Launched => launched.floor_to(page),
        };
        let source = self.live_mut(request).source_mut();
        // Without a prefix there is nothing to send early.
        if settled == Tokens(0) || reach <= source.cursor || source.drops_rest {
            return;
        }
        self.log.mark(Mark::PieceEarly);
        self.send_up_to(request, reach, false);
        if self.switches.early_send == EarlySend::SettledRestDropped {
            self.live_mut(request).source_mut().drops_rest = true;
        }
    }

    /// Sends what is new once `done` positions are computed.
    pub(super) fn send_computed(&mut self, request: RequestId, done: Tokens, last: bool) {
        let reach = match (last, self.switches.send_cut) {
            (true, _) => {
                let length = self.live_mut(request).source_mut().length;
                match self.switches.source_length {
                    SourceLength::Prompt => length,
                    SourceLength::OneMore => length + Tokens(1),
                }
            }
            (false, SendCut::FullPage) => done.floor_to(self.layout.page()),
            (false, SendCut::None) => done,
        };
        if !last && reach <= self.live_mut(request).source_mut().cursor {
            self.log.mark(Mark::PieceSkipped);
            return;
        }
        self.send_up_to(request, reach, last);
    }

    /// Sends positions from the cursor up to `reach` in one piece, or in several if the pack buffer
    /// says so.
    fn send_up_to(&mut self, request: RequestId, reach: Tokens, last: bool) {
        let page = self.layout.page();
        let prefix = self.live(request).destination.prefix;
        let source_offset = self.switches.source_offset;
        let source = self.live_mut(request).source_mut();
        if source.drops_rest && !last {
            return;
        }
        let tokens = match source.drops_rest {
            true => 0,
            false => i64::from(reach.0) - i64::from(source.cursor.0),
        };
        let count = Tokens(u32::try_from(tokens).unwrap_or(0)).pages_ceil(page);
        let first = source.cursor.pages_floor(page).index();
        // An entry of the table that was never filled names the padding page.
        let table = source.table.iter().copied().chain([PageId(0)]);
        let pages = table.skip(first).take(count.index()).collect();
        let offset = match source_offset {
            SourceOffset::PagesSincePrefix => source.pages_sent,
            SourceOffset::PagesOfChunk => 0,
            SourceOffset::PagesFromZero => prefix.pages_floor(page).0 + source.pages_sent,
        };
        source.cursor = reach;
        source.pages_sent += count.0;
        let send = Send { pages, offset: Pages(offset), tokens, last };
        for send in self.split(send) {
            if !self.send_piece(request, &send) {
                break;
            }
        }
    }

    /// The planner calls that a send is made of.
    fn split(&mut self, send: Send) -> Vec<Send> {
        let page = self.layout.page();
        let regions = self.regions();
        let tokens = u32::try_from(send.tokens).unwrap_or(0);
        if self.switches.send_split == SendSplit::No || tokens <= regions.max_tokens.0 {
            return vec![send];
        }
        let whole = SendPart { src_page_offset: send.offset, tokens: Tokens(tokens) };
        let parts =
            regions.split(page, whole).expect("validation keeps pack_tokens in whole pages");
        self.log.mark(Mark::PieceSplit);
        let count = parts.len();
        (1..)
            .zip(parts)
            .map(|(number, part)| {
                let first = (part.src_page_offset - send.offset).index();
                let pages = part.tokens.pages_ceil(page).index();
                Send {
                    pages: send.pages.iter().skip(first).take(pages).copied().collect(),
                    offset: part.src_page_offset,
                    tokens: i64::from(part.tokens.0),
                    last: send.last && number == count,
                }
            })
            .collect()
    }

    fn regions(&self) -> PackRegions {
        let max_tokens = Tokens(self.scenario.link.pack_tokens);
        PackRegions { max_tokens, ranks: self.layout.ranks() }
    }

    /// The destination pages of a planner call.
    fn destination(&self, request: RequestId, send: &Send) -> Vec<PageId> {
        let whole = &self.live(request).destination.pages;
        match self.switches.destination_list {
            DestinationList::Whole => whole.clone(),
            DestinationList::SlicedByChunk => {
                let chunk = whole.iter().skip(send.offset.index()).take(send.pages.len());
                chunk.copied().collect()
            }
        }
    }

    /// Plans one piece for every rank and queues its copies. False if a rank refused.
    fn send_piece(&mut self, request: RequestId, send: &Send) -> bool {
        let destination = self.destination(request, send);
        let piece = Piece {
            src_page_offset: send.offset,
            decode_prefix_len: self.live(request).destination.prefix,
            num_kv_tokens: Some(send.tokens),
        };
        let source = self.live_mut(request).source_mut();
        let number = source.pieces;
        source.pieces += 1;
        match number {
            0 => self.log.chance(Chance::Planned),
            _ => self.log.mark(Mark::PieceSecond),
        }
        self.log.count(Metric::Pieces, 1);
        if send.last && send.tokens == 0 {
            self.log.mark(Mark::PieceEmpty);
        }
        let mut refused: Option<(Code, Vec<Rank>, String)> = None;
        let mut plans = Vec::new();
        match PlanInput::new(self.layout, Rank(0), piece, &send.pages, &destination) {
            Ok(input) => {
                for rank in self.layout.each_rank() {
                    let input = input.for_rank(rank).expect("the rank is one of the layout");
                    match self.lay_out(&input) {
                        Ok(plan) => plans.push((rank, plan)),
                        Err(refusal) => {
                            let first = || (code_of(&refusal), Vec::new(), refusal.to_string());
                            refused.get_or_insert_with(first).1.push(rank);
                        }
                    }
                }
            }
            Err(error) => {
                let ranks = self.layout.each_rank().collect();
                refused = Some((Code::RefusedInput, ranks, error.to_string()));
            }
        }
        let attempt = self.live(request).attempt;
        self.log.planned(&Call {
            request,
            attempt,
            number,
            piece,
            source_pages: &send.pages,
            target_pages: &destination,
            refused: refused.as_ref().map(|(code, ranks, _)| (*code, ranks.as_slice())),
        });
        for (rank, plan) in plans {
            let part = Part { request, attempt, piece: number, rank, last: send.last };
            self.queue_copy(part, plan, &send.pages);
        }
        let Some((code, ranks, said)) = refused else {
            self.log.count(Metric::SentTokens, u64::try_from(send.tokens).unwrap_or(0));
            if number == 0 {
                self.moment(request, Moment::Copying);
            }
            return true;
        };
        self.log.tell(&Event::Refused { request, code, ranks: &ranks, said: &said }, &[]);
        self.live_mut(request).was_refused = true;
        self.close_transfer(request, Signal::Refused);
        false
    }

    /// The rows of one rank's part of a piece, and its draft rows.
    fn lay_out(&self, input: &PlanInput<'_>) -> Result<Layouts, Refusal> {
        let plan = match self.switches.relayout {
            Relayout::PerRank => self.planner.plan_runs(input)?,
            Relayout::None => untranslated::page_by_page(input),
        };
        let draft = match self.switches.draft_rows {
            _ if !self.scenario.decode.draft => RunPlan::default(),
            DraftRows::Own => self.planner.draft_runs(input)?.unwrap_or_default(),
            DraftRows::ByTargetList => plan.clone(),
        };
        let plan = match self.switches.rows {
            Rows::PerRank => plan,
            Rows::VirtualAsLocal => untranslated::virtual_rows(&plan, input.layout(), input.rank()),
        };
        Ok((plan, draft))
    }

    fn queue_copy(&mut self, part: Part, (plan, draft): Layouts, source_pages: &[PageId]) {
        let rows = plan.tokens();
        if rows == 0 {
            self.log.mark(Mark::PartEmpty);
            if part.last && draft.runs.is_empty() && self.switches.empty_last == EmptyLast::Dropped
            {
                return;
            }
        }
        let packed = self.pack(part.rank, rows);
        self.count_descriptors(&plan, packed.is_some());
        let live = self.live(part.request);
        let (prefill, decode) = (live.prefill, live.decode);
        let link_config = &self.scenario.link;
        let transfer = (rows * link_config.token_bytes).div_ceil(link_config.bytes_per_tick);
        let service = Tick(link_config.copy_ticks + transfer);
        let mut target_pages = destination_pages(&plan, self.layout.page());
        target_pages.extend(destination_pages(&draft, self.layout.virtual_page()));
        let event = Event::Queued {
            part,
            source: self.prefills[prefill].store.server,
            target: self.decodes[decode].store.server,
            source_pages,
            target_pages: &target_pages,
        };
        self.log.tell(&event, &[]);
        self.log.count(Metric::Copies, 1);
        let link = prefill * self.decodes.len() + decode;
        let draft_writes = Vec::new();
        let copy = Copy { part, plan, draft, packed, service, writes: None, draft_writes };
        self.links[link].spills |= copy.packed.is_some() && !self.regions().fits_region(rows);
        self.links[link].queue.push_back(copy);
        if self.links[link].queue.len() == 1 {
            self.serve(link);
        } else {
            self.gather(link);
        }
        self.hand(part.request, Signal::PartQueued(handoff_part(part)));
    }

    /// The rows of the pack buffer that a part is gathered into, if it is.
    fn pack(&mut self, rank: Rank, rows: u64) -> Option<std::ops::Range<u64>> {
        let regions = self.regions();
        let fits = match self.switches.packing {
            Packing::RegionChecked => regions.fits_region(rows),
            Packing::BufferChecked => regions.fits_buffer(rank, rows),
            Packing::None => return None,
        };
        if rows == 0 {
            return None;
        }
        let start = u64::from(rank.0) * regions.region_rows();
        self.log.mark(if fits { Mark::PartPacked } else { Mark::PartUnpacked });
        self.log.count(Metric::CopiesPacked, u64::from(fits));
        fits.then_some(start..start + rows)
    }

    fn count_descriptors(&mut self, plan: &RunPlan, is_packed: bool) {
        let DescriptorCount { unpacked, packed } = DescriptorCount::of_runs(plan);
        self.log.count(Metric::DescriptorsPacked, packed);
        self.log.count(Metric::DescriptorsUnpacked, unpacked);
        self.log.count(Metric::Descriptors, if is_packed { packed } else { unpacked });
    }

    /// Begins to serve the copy at the head of `link`.
    fn serve(&mut self, link: usize) {
        if let Some(copy) = self.links[link].queue.front() {
            self.queue.plan(self.log.now + copy.service, Timer::CopyServed { link });
            self.gather(link);
        }
    }

    /// Reads the sources of the copies on `link` whose time it is.
    fn gather(&mut self, link: usize) {
        let store = &self.prefills[link / self.decodes.len()].store;
        let link = &mut self.links[link];
        for index in link.gather(&store.memory[0], self.layout) {
            let copy = &link.queue[index];
            let writes = Writes(copy.writes.as_deref().unwrap_or_default());
            self.log.tell(&Event::Read { part: copy.part, writes }, &store.memory);
        }
    }

    /// The copy at the head of `link` is through: it lands now, or later if the link delays it.
    pub(super) fn copy_served(&mut self, link: usize) {
        let copy = self.links[link].queue.pop_front().expect("a copy was being served");
        self.links[link].served += 1;
        let served = self.links[link].served;
        self.serve(link);
        let config = &self.scenario.link;
        if config.delay_every > 0 && served.is_multiple_of(u64::from(config.delay_every)) {
            self.log.mark(Mark::CopyDelayed);
            let number = self.late.last_key_value().map_or(0, |(number, _)| number + 1);
            self.late.insert(number, copy);
            let timer = Timer::CopyLands { copy: number };
            self.queue.plan(self.log.now + Tick(config.delay_ticks), timer);
        } else {
            self.land(copy);
        }
    }

    /// A delayed copy lands.
    pub(super) fn copy_lands(&mut self, number: u64) {
        let copy = self.late.remove(&number).expect("a delayed copy lands once");
        self.land(copy);
    }

    fn land(&mut self, copy: Copy) {
        let part = copy.part;
        let mut writes = copy.writes.expect("a served copy has read its rows");
        let mut draft = copy.draft_writes;
        let all = writes.iter_mut().chain(&mut draft);
        for (stamp, _) in all.filter_map(|write| write.content.as_mut()) {
            stamp.written = self.log.now;
        }
        let ranks = self.layout.ranks() as usize;
        let decode = self.live(part.request).decode;
        let store = &mut self.decodes[decode].store;
        if !draft.is_empty() {
            self.log.mark(Mark::DraftSent);
            let event = Event::DraftLanded { part, writes: Writes(&draft) };
            self.log.tell(&event, &store.memory);
        }
        self.log.tell(&Event::Landed { part, writes: Writes(&writes) }, &store.memory);
        let memory = &mut store.memory[part.rank.index()];
        write_all(memory, &writes);
        if let Some(memory) = store.memory.get_mut(ranks + part.rank.index()) {
            write_all(memory, &draft);
        }
        self.send_message(part);
    }

    /// Tells the handoff of `request` a signal and does what follows.
    pub(super) fn hand(&mut self, request: RequestId, signal: Signal) {
        for action in self.live_mut(request).handoff.step(signal) {
            match action {
                Action::Activate => self.activate(request),
                Action::ReleaseDestination => self.release_target(request),
                Action::ReleaseSource => self.release_source(request),
                Action::End => self.transfer_ended(request),
            }
        }
    }
}

pub(super) fn handoff_part(part: Part) -> HandoffPart {
    HandoffPart { piece: part.piece, rank: part.rank, last: part.last }
}

fn write_all(memory: &mut Memory, writes: &[Write]) {
    for write in writes {
        match write.extent() {
            Some(extent) => memory.write(write.page, extent),
            None => memory.erase(write.page, write.start, write.len),
        }
    }
}

/// The pages that a plan writes, in order, neighbours once.
fn destination_pages(plan: &RunPlan, page: PageSize) -> Vec<PageId> {
    let mut pages: Vec<PageId> = Vec::new();
    for run in &plan.runs {
        let (first, _) = run.dst.split(page);
        let (last, _) = run.at(run.len - 1).1.split(page);
        for id in (first.0..=last.0).map(PageId) {
            if pages.last() != Some(&id) {
                pages.push(id);
            }
        }
    }
    pages
}

/// The code under which a planner's refusal is found.
fn code_of(refusal: &Refusal) -> Code {
    match refusal {
        Refusal::Misaligned { .. } => Code::RefusedMisaligned,
        Refusal::Source { .. } => Code::RefusedSource,
        Refusal::Shortage { .. } => Code::RefusedShortfall,
        Refusal::Index { .. } => Code::RefusedIndex,
    }
}
