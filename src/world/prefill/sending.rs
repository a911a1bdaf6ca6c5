//! Which computed rows go out when, and in which pieces.

use super::super::context::Context;
use super::super::handoff::Stage;
use super::super::transfer::{Destination, Transfer};
use super::Prefill;
use super::chunk::Chunk;
use crate::behaviour::{AbortedChunk, EarlySend, SendCut, SendSplit, SourceLength, SourceOffset};
use crate::engine::sglang::packing::SendPart;
use crate::finding::Mark;
use crate::units::{PageId, Pages, RequestId, Tokens};

/// One piece of a transfer as the sender has cut it: the source pages and tokens of one planner
/// call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::world) struct CutPiece {
    /// Which piece of the transfer, from 0.
    pub(in crate::world) number: u32,
    pub(in crate::world) pages: Vec<PageId>,
    /// The first page's place in the transfer, as the sender counts.
    pub(in crate::world) offset: Pages,
    /// Tokens of the piece; negative where the sender has counted wrong.
    pub(in crate::world) tokens: i64,
    /// Whether no piece follows.
    pub(in crate::world) last: bool,
}

impl Prefill {
    /// Where decode wants the transfer of `request`; a broken invariant if it is not known.
    pub(in crate::world) fn destination(&self, request: RequestId) -> &Destination {
        let destination = &self.requests[request].destination;
        destination.as_ref().expect("pieces are cut for a known destination")
    }

    /// The message with the destination has come. Returns what is sent at once.
    pub(in crate::world) fn destination_known(
        &mut self,
        request: RequestId,
        destination: Destination,
        is_first_attempt: bool,
        cx: &mut Context<'_>,
    ) -> Vec<CutPiece> {
        let state = &mut self.requests[request];
        let prefix = destination.prefix;
        state.length = destination.length;
        state.destination = Some(destination);
        if !is_first_attempt || !cx.setup.begins_at_arrival() {
            self.wait(request, cx);
            return Vec::new();
        }
        let Some(source) = &mut state.source else {
            // A request without a destination may have to give way to it now.
            cx.wake(self.store.server);
            return Vec::new();
        };
        source.cursor = prefix;
        let (done, length) = (source.done, source.length);
        // If chunks are still to come, the next one takes along what waited.
        match done == length {
            true => self.cut_computed(request, length, cx),
            false => Vec::new(),
        }
    }

    /// What may go out of the cached prefix before its chunk is computed. The rows before the chunk
    /// are written, its own are launched.
    pub(in crate::world) fn cut_early(
        &mut self,
        chunk: Chunk,
        cx: &mut Context<'_>,
    ) -> Vec<CutPiece> {
        let page = cx.setup.page();
        let state = &mut self.requests[chunk.request];
        if state.destination.is_none() {
            return Vec::new();
        }
        let (settled, launched) = (chunk.from, chunk.to);
        let (reach, drops_rest) = match cx.setup.switches.early_send {
            EarlySend::Off => return Vec::new(),
            EarlySend::SettledCut => (settled.floor_to(page), false),
            EarlySend::SettledRestDropped => (settled.floor_to(page), true),
            EarlySend::SettledSkipped => match settled.pages_exact(page) {
                Some(_) => (settled, false),
                None => return Vec::new(),
            },
            EarlySend::Launched => (launched.floor_to(page), false),
        };
        let source = state.source_mut();
        // Without a prefix there is nothing to send early.
        if settled == Tokens(0) || reach <= source.cursor || source.drops_rest {
            return Vec::new();
        }
        cx.log.mark(Mark::PieceEarly);
        let sends = self.cut_up_to(chunk.request, reach, false, cx);
        self.requests[chunk.request].source_mut().drops_rest = drops_rest;
        sends
    }

    /// What is sent after a chunk has been computed, if the transfer is still wanted and knows
    /// where to.
    pub(in crate::world) fn cut_chunk(
        &mut self,
        chunk: Chunk,
        transfer: &Transfer,
        cx: &mut Context<'_>,
    ) -> Vec<CutPiece> {
        let is_known = self.requests[chunk.request].destination.is_some();
        let is_wanted =
            transfer.handoff().wants_more() || self.is_sent_in_vain(chunk, transfer, cx);
        match is_wanted && is_known {
            true => self.cut_computed(chunk.request, chunk.to, cx),
            false => Vec::new(),
        }
    }

    /// Whether a chunk that was just computed is sent although its client has given up.
    pub(in crate::world) fn is_sent_in_vain(
        &self,
        chunk: Chunk,
        transfer: &Transfer,
        cx: &Context<'_>,
    ) -> bool {
        let state = &self.requests[chunk.request];
        match cx.setup.switches.aborted_chunk {
            AbortedChunk::Kept | AbortedChunk::KeptIfLast => false,
            AbortedChunk::SentIfLast => {
                transfer.handoff().stage() == Stage::Closing
                    && state.destination.is_some()
                    && state.source.as_ref().is_some_and(|source| source.length == chunk.to)
            }
        }
    }

    /// What is new once `done` positions are computed.
    fn cut_computed(
        &mut self,
        request: RequestId,
        done: Tokens,
        cx: &mut Context<'_>,
    ) -> Vec<CutPiece> {
        let source = self.requests[request].source();
        let (length, cursor) = (source.length, source.cursor);
        let last = done == length;
        let reach = match (last, cx.setup.switches.send_cut) {
            (true, _) => match cx.setup.switches.source_length {
                SourceLength::Prompt => length,
                SourceLength::OneMore => length + Tokens(1),
            },
            (false, SendCut::FullPage) => done.floor_to(cx.setup.page()),
            (false, SendCut::None) => done,
        };
        if !last && reach <= cursor {
            cx.log.mark(Mark::PieceSkipped);
            return Vec::new();
        }
        self.cut_up_to(request, reach, last, cx)
    }

    /// Positions from the cursor up to `reach` in one piece, or in several if the pack buffer says
    /// so.
    fn cut_up_to(
        &mut self,
        request: RequestId,
        reach: Tokens,
        last: bool,
        cx: &mut Context<'_>,
    ) -> Vec<CutPiece> {
        let page = cx.setup.page();
        let prefix = self.destination(request).prefix;
        let source = self.requests[request].source_mut();
        if source.drops_rest && !last {
            return Vec::new();
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
        let offset = match cx.setup.switches.source_offset {
            SourceOffset::PagesSincePrefix => source.pages_sent,
            SourceOffset::PagesOfChunk => 0,
            SourceOffset::PagesFromZero => prefix.pages_floor(page).0 + source.pages_sent,
        };
        source.cursor = reach;
        source.pages_sent += count.0;
        let number = source.pieces;
        let sends = split(CutPiece { number, pages, offset: Pages(offset), tokens, last }, cx);
        source.pieces += sends.len() as u32;
        sends
    }
}

/// The planner calls that a send is made of.
fn split(send: CutPiece, cx: &mut Context<'_>) -> Vec<CutPiece> {
    let page = cx.setup.page();
    let regions = cx.setup.regions();
    let tokens = u32::try_from(send.tokens).unwrap_or(0);
    let is_whole = match cx.setup.switches.send_split {
        SendSplit::Yes => tokens <= regions.max_tokens.0,
        SendSplit::Crossings => regions.ranks == 1,
        SendSplit::No => true,
    };
    if is_whole {
        return vec![send];
    }
    let whole = SendPart { src_page_offset: send.offset, tokens: Tokens(tokens) };
    let parts = regions.split(page, whole).expect("validation keeps pack_tokens in whole pages");
    if let [_] = parts[..] {
        return vec![send];
    }
    cx.log.mark(Mark::PieceSplit);
    let count = parts.len();
    (1..)
        .zip(send.number..)
        .zip(parts)
        .map(|((place, number), part)| {
            let first = (part.src_page_offset - send.offset).index();
            let pages = part.tokens.pages_ceil(page).index();
            CutPiece {
                number,
                pages: send.pages.iter().skip(first).take(pages).copied().collect(),
                offset: part.src_page_offset,
                tokens: i64::from(part.tokens.0),
                last: send.last && place == count,
            }
        })
        .collect()
}
