//! Whether a configuration is sound, and why not.
//!
//! An *objection* names a switch whose variant can lead to a defect in this scenario. No objection
//! is a claim: this scenario can have no defect. Many variants are harmless where nothing makes
//! them act, so each is judged together with the rest of the configuration. Where the requests
//! cannot be told in advance, the lint objects.

use super::Scenario;
use crate::behaviour::{
    AbortCleanup, AdmissionDemand, CacheHashUnit, CacheKey, CapacityUnit, ChunkCut, ChunkHash,
    CommittedLength, CrossStall, DecodePrefixCut, DecodeReservation, DestinationList,
    DoubledMessage, DraftRows, DuplicateInsert, EarlySend, EmptyLast, Flush, FreeCheck,
    FreeSegment, LockCount, LockOnMatch, LostMessage, NextStepDemand, Packing, PrefillStart,
    Relayout, ReleaseOnAbort, ReplicatedPool, Resumption, Rows, SendCut, SendSplit, SourceLength,
    SourceOffset, SourceRelease, TailRelease, TransferCompletion,
};

mod facts;

use facts::Facts;

/// Why a variant is not sound here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Objection {
    /// The switch, as spelled in files.
    pub switch: &'static str,
    /// Its variant, as spelled in files.
    pub variant: &'static str,
    /// What goes wrong, in one sentence.
    pub reason: &'static str,
}

/// The objections to a validated scenario, in the order of the switches.
pub fn lint(scenario: &Scenario) -> Vec<Objection> {
    let facts = Facts::of(scenario);
    let judged = [
        prefix_cut(&facts),
        reservation(&facts),
        destination_list(&facts),
        send_cut(&facts),
        source_offset(&facts),
        cross_stall(&facts),
        early_send(&facts),
        empty_last(&facts),
        release_on_abort(&facts),
        source_release(&facts),
        abort_cleanup(&facts),
        tail_release(&facts),
        lock_on_match(&facts),
        lock_count(&facts),
        duplicate_insert(&facts),
        free_check(&facts),
        transfer_completion(&facts),
        lost_message(&facts),
        doubled_message(&facts),
        resumption(&facts),
        admission_demand(&facts),
        next_step_demand(&facts),
        committed_length(&facts),
        flush(&facts),
        packing(&facts),
        cache_key(&facts),
        cache_hash_unit(&facts),
        chunk_hash(&facts),
        relayout(&facts),
        rows(&facts),
        source_length(&facts),
        capacity_unit(&facts),
        free_segment(&facts),
        draft_rows(&facts),
        replicated_pool(&facts),
    ];
    judged.into_iter().flatten().collect()
}

fn prefix_cut(facts: &Facts) -> Option<Objection> {
    let cut = facts.behaviours.decode_prefix_cut;
    let reason = match cut {
        DecodePrefixCut::VirtualPage => return None,
        DecodePrefixCut::PhysicalPage if facts.ranks == 1 => return None,
        DecodePrefixCut::PhysicalPage => {
            "a hit that ends inside a virtual page is sent as the prefix, which the planner refuses"
        }
        DecodePrefixCut::None => {
            "a hit is sent as reported, and the planner refuses what does not end on a virtual page"
        }
        DecodePrefixCut::PaddedUp => {
            "the positions between a hit and the virtual page it is padded up to are never sent"
        }
    };
    object("decode_prefix_cut", cut.name(), facts.unaligned_hits(), reason)
}

fn reservation(facts: &Facts) -> Option<Objection> {
    let reservation = facts.behaviours.decode_reservation;
    let (harmless, reason) = match reservation {
        DecodeReservation::Ceil => return None,
        DecodeReservation::Floor => (
            facts.virtual_page == 1
                || facts.every_prompt(|len| len.is_multiple_of(facts.virtual_page)),
            "a prompt that ends inside a virtual page gets no page for its rest",
        ),
        DecodeReservation::ByPhysicalPage => (
            facts.ranks == 1 || facts.every_prompt(|len| len <= facts.page),
            "a page is reserved for every physical page, of which a virtual one holds several",
        ),
        DecodeReservation::OneShort => (
            facts.every_prompt(|len| !len.is_multiple_of(facts.virtual_page)),
            "a prompt that fills its virtual pages exactly gets one too few",
        ),
    };
    object("decode_reservation", reservation.name(), !harmless, reason)
}

fn destination_list(facts: &Facts) -> Option<Objection> {
    let list = facts.behaviours.destination_list;
    match list {
        DestinationList::Whole => None,
        DestinationList::SlicedByChunk => object(
            "destination_list",
            list.name(),
            !facts.one_piece,
            "a later piece looks for its pages in a slice that was cut by physical pages",
        ),
    }
}

fn send_cut(facts: &Facts) -> Option<Objection> {
    let cut = facts.behaviours.send_cut;
    let inside = match facts.behaviours.chunk_cut {
        ChunkCut::PageBoundary => false,
        ChunkCut::ExactBudget => facts.page > 1 && !facts.one_chunk,
    };
    match cut {
        SendCut::FullPage => None,
        SendCut::None => object(
            "send_cut",
            cut.name(),
            inside,
            "a page that a chunk leaves partial is sent twice, and what follows lies behind it",
        ),
    }
}

fn source_offset(facts: &Facts) -> Option<Objection> {
    let offset = facts.behaviours.source_offset;
    let (acts, reason) = match offset {
        SourceOffset::PagesSincePrefix => return None,
        SourceOffset::PagesOfChunk => (
            !facts.one_piece,
            "every piece is laid out at the start of the request's pages, over the one before",
        ),
        SourceOffset::PagesFromZero => (
            facts.decode_hits,
            "after a decode hit every piece is laid out too far by the length of the prefix",
        ),
    };
    object("source_offset", offset.name(), acts, reason)
}

fn cross_stall(facts: &Facts) -> Option<Objection> {
    let stall = facts.behaviours.cross_stall;
    match stall {
        CrossStall::LatestGivesWay => None,
        CrossStall::None => object(
            "cross_stall",
            stall.name(),
            facts.behaviours.prefill_start == PrefillStart::AtArrival
                && facts.requests != Some(1)
                && facts.overtakes,
            "two requests can each hold on one side what the other needs there, for ever",
        ),
    }
}

fn early_send(facts: &Facts) -> Option<Objection> {
    let early = facts.behaviours.early_send;
    let (acts, reason) = match early {
        EarlySend::Off | EarlySend::SettledCut | EarlySend::SettledSkipped => return None,
        // To a later chunk, the chunks before it are a prefix, too.
        EarlySend::Launched => (
            facts.prefill_hits || !facts.one_chunk,
            "rows can be sent before the step that computes them has ended",
        ),
        EarlySend::SettledRestDropped => (
            facts.prefill_hits,
            "after a cached prefix went out early, the rest of the prompt is never sent",
        ),
    };
    object("early_send", early.name(), acts, reason)
}

fn empty_last(facts: &Facts) -> Option<Objection> {
    let last = facts.behaviours.empty_last;
    // A piece of fewer tokens than ranks leaves one without; only a lone piece has a known length.
    let idle_rank =
        facts.ranks > 1 && !(facts.one_piece && facts.every_prompt(|len| len >= facts.ranks));
    match last {
        EmptyLast::Sent => None,
        EmptyLast::Dropped => object(
            "empty_last",
            last.name(),
            facts.decode_hits || idle_rank,
            "decode waits for ever for the message of a full hit, or of a rank without a token",
        ),
    }
}

fn release_on_abort(facts: &Facts) -> Option<Objection> {
    let release = facts.behaviours.release_on_abort;
    // What the planner refuses fails, and gives its pages back in the same way.
    let refusals =
        [prefix_cut(facts), reservation(facts), destination_list(facts), source_offset(facts)];
    let acts = facts.aborts || facts.loses || refusals.iter().any(Option::is_some);
    let reason = match release {
        ReleaseOnAbort::Drained => return None,
        ReleaseOnAbort::AtOnce => "pages are given back while copies into them are in flight",
        ReleaseOnAbort::Timeout => "a copy can take longer than the timeout that frees its pages",
    };
    object("release_on_abort", release.name(), acts, reason)
}

fn source_release(facts: &Facts) -> Option<Objection> {
    let release = facts.behaviours.source_release;
    match release {
        SourceRelease::Landed => None,
        SourceRelease::BeforeSent => object(
            "source_release",
            release.name(),
            true,
            "pages are given back, and can be written over, before they have been read",
        ),
    }
}

fn abort_cleanup(facts: &Facts) -> Option<Objection> {
    let cleanup = facts.behaviours.abort_cleanup;
    let acts = match cleanup {
        AbortCleanup::Everywhere => return None,
        AbortCleanup::ForgetsRetracted => facts.aborts && facts.spare_pages.is_none(),
        AbortCleanup::ForgetsWaiting
        | AbortCleanup::ForgetsReserved
        | AbortCleanup::ForgetsChunking
        | AbortCleanup::ForgetsCopying
        | AbortCleanup::ForgetsRunning => facts.aborts,
    };
    let reason = "an aborted request keeps its pages for ever, or is still given some";
    object("abort_cleanup", cleanup.name(), acts, reason)
}

fn tail_release(facts: &Facts) -> Option<Objection> {
    let release = facts.behaviours.tail_release;
    // The last output token is never stored.
    let one_page = facts.length_max.is_some_and(|longest| longest - 1 <= facts.virtual_page);
    match release {
        TailRelease::ByTable => None,
        TailRelease::AsRun => object(
            "tail_release",
            release.name(),
            !one_page,
            "pages that do not follow the request's first one are another's, and its own are lost",
        ),
    }
}

fn lock_on_match(facts: &Facts) -> Option<Objection> {
    let lock = facts.behaviours.lock_on_match;
    match lock {
        LockOnMatch::Held => None,
        LockOnMatch::None => object(
            "lock_on_match",
            lock.name(),
            // A flush empties the cache, room or not.
            facts.decode_hits && (facts.spare_pages.is_none() || facts.flushes),
            "the pages of a decode hit can be evicted to make room for their own request",
        ),
    }
}

fn lock_count(facts: &Facts) -> Option<Objection> {
    let count = facts.behaviours.lock_count;
    match count {
        LockCount::Paired => None,
        LockCount::ReleasedOnce => object(
            "lock_count",
            count.name(),
            facts.prefill_hits,
            "cached pages stay locked for ever, until none can be evicted",
        ),
    }
}

fn duplicate_insert(facts: &Facts) -> Option<Objection> {
    let insert = facts.behaviours.duplicate_insert;
    let reason = match insert {
        DuplicateInsert::Remap => return None,
        DuplicateInsert::FreeWithoutRemap => {
            "a request goes on using pages that were freed because the tree had the same"
        }
        DuplicateInsert::FreeAfterRemap => {
            "pages of the tree are freed, and the request's own that they replace are lost"
        }
    };
    // A request that is served again computes the last page of its hit once more, so even one
    // request alone meets its own pages.
    object("duplicate_insert", insert.name(), facts.prefill_hits, reason)
}

fn free_check(facts: &Facts) -> Option<Objection> {
    let check = facts.behaviours.free_check;
    match check {
        FreeCheck::Guarded => None,
        FreeCheck::None => object(
            "free_check",
            check.name(),
            duplicate_insert(facts).is_some() || free_segment(facts).is_some(),
            "pages that are freed twice are handed out twice",
        ),
    }
}

fn transfer_completion(facts: &Facts) -> Option<Objection> {
    let completion = facts.behaviours.transfer_completion;
    let (acts, reason) = match completion {
        TransferCompletion::EveryPart => return None,
        TransferCompletion::LastPartSeen => (
            facts.reorders && !facts.one_piece,
            "the last piece can overtake an earlier one, which is then still missing",
        ),
        TransferCompletion::AnyPart => (
            facts.ranks > 1 || !facts.one_piece,
            "decode starts at the first part, while others are still missing",
        ),
    };
    object("transfer_completion", completion.name(), acts, reason)
}

fn lost_message(facts: &Facts) -> Option<Objection> {
    let lost = facts.behaviours.lost_message;
    match lost {
        LostMessage::Fails => None,
        LostMessage::Ignored => object(
            "lost_message",
            lost.name(),
            facts.loses,
            "a part counts as on its way for ever, so the request never starts and never ends",
        ),
    }
}

fn doubled_message(facts: &Facts) -> Option<Objection> {
    let doubled = facts.behaviours.doubled_message;
    match doubled {
        DoubledMessage::Harmless => None,
        DoubledMessage::Counted => object(
            "doubled_message",
            doubled.name(),
            facts.doubles && (facts.ranks > 1 || !facts.one_piece),
            "a message that comes twice stands for a part that is still missing",
        ),
    }
}

fn resumption(facts: &Facts) -> Option<Objection> {
    let resumption = facts.behaviours.resumption;
    match resumption {
        Resumption::First => None,
        Resumption::WithArrivals => object(
            "resumption",
            resumption.name(),
            facts.spare_pages.is_none() && facts.requests != Some(1),
            "a request that is retracted after the last arrival never comes back",
        ),
    }
}

fn admission_demand(facts: &Facts) -> Option<Objection> {
    let demand = facts.behaviours.admission_demand;
    let roomy = facts.spare_pages.is_some() && !facts.reserves;
    match demand {
        AdmissionDemand::Pages => None,
        AdmissionDemand::Tokens => object(
            "admission_demand",
            demand.name(),
            facts.requests != Some(1) && !roomy,
            "requests are let in together whose pages are more than their tokens would fill",
        ),
    }
}

fn committed_length(facts: &Facts) -> Option<Objection> {
    let committed = facts.behaviours.committed_length;
    match committed {
        CommittedLength::Stored => None,
        CommittedLength::Sequence => object(
            "committed_length",
            committed.name(),
            facts.decode_hits && facts.virtual_page > 1,
            "a page is cached as full whose last row was never computed",
        ),
    }
}

fn flush(facts: &Facts) -> Option<Objection> {
    let flush = facts.behaviours.flush;
    match flush {
        Flush::Refused => None,
        Flush::AtOnce => object(
            "flush",
            flush.name(),
            facts.flushes,
            "pages that requests hold are handed out again",
        ),
    }
}

fn next_step_demand(facts: &Facts) -> Option<Objection> {
    let demand = facts.behaviours.next_step_demand;
    // With a free token for every request the two ways to count agree that nothing is short.
    let roomy = facts
        .spare_pages
        .zip(facts.requests)
        .is_some_and(|(pages, requests)| pages * facts.virtual_page >= requests);
    match demand {
        NextStepDemand::Pages => None,
        NextStepDemand::Tokens => object(
            "next_step_demand",
            demand.name(),
            facts.virtual_page > 1 && facts.requests != Some(1) && !roomy,
            "requests that cross into a page at once need more pages than their tokens would fill",
        ),
    }
}

fn packing(facts: &Facts) -> Option<Objection> {
    let packing = facts.behaviours.packing;
    let whole = facts.behaviours.send_split == SendSplit::No && !facts.sends_fit;
    match packing {
        Packing::RegionChecked | Packing::None => None,
        Packing::BufferChecked => object(
            "packing",
            packing.name(),
            facts.ranks > 1 && whole,
            "a send larger than the buffer runs from one rank's region into the next",
        ),
    }
}

fn cache_key(facts: &Facts) -> Option<Objection> {
    let key = facts.behaviours.cache_key;
    match key {
        CacheKey::WithNamespace => None,
        CacheKey::WithoutNamespace => object(
            "cache_key",
            key.name(),
            facts.namespaces && (facts.prefill_hits || facts.decode_hits),
            "a prompt finds the KV of equal tokens under another adapter or salt",
        ),
    }
}

fn cache_hash_unit(facts: &Facts) -> Option<Objection> {
    let unit = facts.behaviours.cache_hash_unit;
    match unit {
        CacheHashUnit::VirtualPage => None,
        CacheHashUnit::PhysicalPage => object(
            "cache_hash_unit",
            unit.name(),
            facts.ranks > 1 && facts.decode_hits,
            "a virtual page is found by its first physical page, whatever its other tokens are",
        ),
    }
}

fn chunk_hash(facts: &Facts) -> Option<Objection> {
    let hash = facts.behaviours.chunk_hash;
    match hash {
        ChunkHash::WholePrefix => None,
        // Behind a hit, even a first chunk begins inside the prompt.
        ChunkHash::OwnTokens => object(
            "chunk_hash",
            hash.name(),
            facts.prefill_hits && (!facts.one_chunk || facts.requests != Some(1)),
            "a chunk's pages are found by prompts that begin with its tokens",
        ),
    }
}

fn relayout(facts: &Facts) -> Option<Objection> {
    let relayout = facts.behaviours.relayout;
    match relayout {
        Relayout::PerRank => None,
        Relayout::None => object(
            "relayout",
            relayout.name(),
            facts.ranks > 1,
            "every rank gets the same rows, of which it owns one out of as many as there are ranks",
        ),
    }
}

fn rows(facts: &Facts) -> Option<Objection> {
    let rows = facts.behaviours.rows;
    match rows {
        Rows::PerRank => None,
        Rows::VirtualAsLocal => object(
            "rows",
            rows.name(),
            facts.ranks > 1,
            "rows go where another page of the rank lies, or behind its memory",
        ),
    }
}

fn source_length(facts: &Facts) -> Option<Objection> {
    let length = facts.behaviours.source_length;
    match length {
        SourceLength::Prompt => None,
        // Elsewhere the row too much lies in the last page, where decode writes it again.
        SourceLength::OneMore => object(
            "source_length",
            length.name(),
            !facts.every_prompt(|len| !len.is_multiple_of(facts.virtual_page)),
            "a prompt that fills its virtual pages exactly asks for one more than was reserved",
        ),
    }
}

fn capacity_unit(facts: &Facts) -> Option<Objection> {
    let unit = facts.behaviours.capacity_unit;
    // Where neither is kept back, tokens fit exactly if their pages do.
    let counts_parts = facts.leftover_rows || (facts.reserves && facts.virtual_page > 1);
    let (acts, reason) = match unit {
        CapacityUnit::VirtualPages => return None,
        CapacityUnit::RankRows => (
            facts.ranks > 1 || counts_parts,
            "a request that fits over all ranks is refused for the size of one",
        ),
        CapacityUnit::NotCutToPages => {
            (counts_parts, "a request is let in for rows that are in no page")
        }
    };
    object("capacity_unit", unit.name(), acts, reason)
}

fn free_segment(facts: &Facts) -> Option<Objection> {
    let segment = facts.behaviours.free_segment;
    match segment {
        FreeSegment::WholePages => None,
        FreeSegment::AnyStart => object(
            "free_segment",
            segment.name(),
            facts.output_inside_page,
            "the page in which the output begins is given back with it, and again with the prompt",
        ),
    }
}

fn draft_rows(facts: &Facts) -> Option<Objection> {
    let rows = facts.behaviours.draft_rows;
    match rows {
        DraftRows::Own => None,
        DraftRows::ByTargetList => object(
            "draft_rows",
            rows.name(),
            facts.drafts,
            "a rank gets its share of the draft rows only, and in the place of others",
        ),
    }
}

fn replicated_pool(facts: &Facts) -> Option<Objection> {
    let pool = facts.behaviours.replicated_pool;
    match pool {
        ReplicatedPool::WithPages => None,
        ReplicatedPool::RowsAndOnePage => object(
            "replicated_pool",
            pool.name(),
            facts.drafts,
            "the draft rows of the highest page lie behind the pool's end",
        ),
    }
}

fn object(
    switch: &'static str,
    variant: &'static str,
    acts: bool,
    reason: &'static str,
) -> Option<Objection> {
    acts.then_some(Objection { switch, variant, reason })
}

#[cfg(test)]
mod tests;
