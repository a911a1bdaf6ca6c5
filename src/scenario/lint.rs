//! Whether a configuration is sound, and why not.
//!
//! An *objection* names a switch whose variant can lead to a defect in this scenario. No objection
//! is a claim: this scenario can have no defect. Many variants are harmless where nothing makes
//! them act, so each is judged together with the rest of the configuration. Where the requests
//! cannot be told in advance, the lint objects.

use std::collections::BTreeSet;

use super::validate::{FIRST_COME, NO_CACHE};
use super::{Fault, Lengths, RequestSpec, Scenario, Synthetic, TraceConfig, WorkloadConfig};
use crate::behaviour::{
    AbortCleanup, AdmissionDemand, Behaviours, CacheHashUnit, CacheKey, CapacityUnit, ChunkCut,
    ChunkHash, CommittedLength, CrossStall, DecodeMatchUnit, DecodePrefixCut, DecodeReservation,
    DestinationList, DoubledMessage, DraftRows, DuplicateInsert, EarlySend, EmptyLast, Flush,
    FreeCheck, FreeSegment, LockCount, LockOnMatch, LostMessage, NextStepDemand, Packing,
    PrefillStart, RefusedRequest, Relayout, ReleaseOnAbort, ReplicatedPool, Resumption, Retraction,
    Rows, SendCut, SendSplit, SourceLength, SourceOffset, SourceRelease, TailRelease,
    TransferCompletion,
};

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

/// What the judgements ask of a scenario. `None` and `false` stand for "cannot be told".
struct Facts {
    behaviours: Behaviours,
    page: u64,
    ranks: u64,
    virtual_page: u64,
    /// A decode lookup can find something.
    decode_hits: bool,
    /// A prefill lookup can find something.
    prefill_hits: bool,
    /// Copies can land in another order than they were put on the link.
    reorders: bool,
    aborts: bool,
    /// Messages that a part has landed are lost, or doubled.
    loses: bool,
    doubles: bool,
    flushes: bool,
    /// Tokens kept back for the growth of each request.
    reserved: u64,
    /// A request can come before an earlier one on prefill, or be sent there again.
    overtakes: bool,
    /// No prompt is ever computed in more than one chunk.
    one_chunk: bool,
    /// No request ever has more than one piece.
    one_piece: bool,
    /// No send is larger than the pack buffer.
    sends_fit: bool,
    /// Prompt lengths, where they are written out.
    prompts: Option<Vec<u64>>,
    /// Decode pages that stay free even when every request is at its longest and stays cached.
    spare_pages: Option<u64>,
    requests: Option<u64>,
    /// The longest prompt with its output.
    length_max: Option<u64>,
    /// Requests are of more than one namespace.
    namespaces: bool,
    /// Output can begin inside a virtual page and have a row there.
    output_inside_page: bool,
    /// Decode ranks have rows behind their last page.
    leftover_rows: bool,
    /// Decode keeps tokens back for each request.
    reserves: bool,
    /// Several ranks keep draft KV.
    drafts: bool,
}

impl Facts {
    fn of(scenario: &Scenario) -> Facts {
        let behaviours = scenario.behaviours();
        let page = u64::from(scenario.layout.page_size);
        let virtual_page = page * u64::from(scenario.layout.ranks);
        let sizes = Sizes::of(&scenario.workload);
        let chunk = u64::from(scenario.prefill.chunk_tokens);
        let pack = u64::from(scenario.link.pack_tokens);
        let prefill_hits = scenario.prefill.cache != NO_CACHE;

        // A step admits whole pages of every request, so that requests which wait together can be
        // cut although each alone would fit.
        let computed = match behaviours.retraction {
            Retraction::HostCopy => sizes.prompt_max,
            Retraction::SendAgain => sizes.length_max,
        };
        let all = computed.zip(sizes.requests);
        let one_chunk =
            all.is_some_and(|(longest, count)| count * longest.next_multiple_of(page) <= chunk);
        // A cached prefix goes out with the first chunk, and what was computed before the destination
        // was known with the next one; otherwise only a partial page can wait.
        let waits = behaviours.prefill_start == PrefillStart::AtArrival;
        let more = match behaviours.source_length {
            SourceLength::Prompt => 0,
            SourceLength::OneMore => 1,
        };
        let send_max = if prefill_hits || waits {
            computed.map(|longest| longest + more)
        } else {
            Some(computed.unwrap_or(u64::MAX).min(chunk + page - 1).saturating_add(more))
        };
        let sends_fit = send_max.is_some_and(|send| send <= pack);
        let split = behaviours.send_split == SendSplit::Yes && !sends_fit;
        let early = behaviours.early_send != EarlySend::Off && prefill_hits;

        let needed = sizes.length_max.zip(sizes.requests);
        let needed = needed.map(|(longest, count)| count * longest.div_ceil(virtual_page));
        let pages = u64::from(scenario.decode.pages);
        let has = |is: fn(&Fault) -> bool| scenario.faults.iter().any(is);
        Facts {
            behaviours,
            page,
            ranks: u64::from(scenario.layout.ranks),
            virtual_page,
            decode_hits: scenario.decode.cache != NO_CACHE && sizes.requests != Some(1),
            prefill_hits,
            reorders: scenario.link.delay_every > 0 && scenario.link.delay_ticks > 0,
            aborts: has(|fault| matches!(fault, Fault::Abort { .. })),
            loses: has(|fault| matches!(fault, Fault::Lose { .. })),
            doubles: has(|fault| matches!(fault, Fault::Double { .. })),
            flushes: has(|fault| matches!(fault, Fault::Flush { .. })),
            reserved: u64::from(scenario.decode.reserved_tokens),
            overtakes: scenario.prefill.admission != FIRST_COME
                || behaviours.retraction == Retraction::SendAgain
                || behaviours.refused_request == RefusedRequest::ServedAgain,
            one_chunk,
            one_piece: one_chunk && !early && !split,
            sends_fit,
            prompts: sizes.prompts,
            spare_pages: needed.and_then(|needed| pages.checked_sub(needed)),
            requests: sizes.requests,
            length_max: sizes.length_max,
            namespaces: namespaces(&scenario.workload) > 1,
            output_inside_page: output_inside_page(&scenario.workload, virtual_page),
            leftover_rows: scenario.decode.leftover_rows > 0,
            reserves: scenario.decode.reserved_tokens > 0,
            drafts: scenario.decode.draft && scenario.layout.ranks > 1,
        }
    }

    /// A reported decode hit can end inside a virtual page.
    fn unaligned_hits(&self) -> bool {
        self.decode_hits
            && match self.behaviours.decode_match_unit {
                DecodeMatchUnit::VirtualPage => false,
                DecodeMatchUnit::PhysicalPage => self.ranks > 1,
                DecodeMatchUnit::Token => self.virtual_page > 1,
            }
    }

    /// Whether every reservation is for a prompt of which this holds. After a retraction a longer
    /// sequence is reserved for, so the pool must never run out.
    fn every_prompt(&self, holds: impl Fn(u64) -> bool) -> bool {
        let prompts = self.prompts.as_ref();
        self.spare_pages.is_some() && prompts.is_some_and(|list| list.iter().all(|&len| holds(len)))
    }
}

/// What a workload says of its requests before any is made.
#[derive(Default)]
struct Sizes {
    requests: Option<u64>,
    prompt_max: Option<u64>,
    /// The longest prompt with its output.
    length_max: Option<u64>,
    prompts: Option<Vec<u64>>,
}

impl Sizes {
    fn of(workload: &WorkloadConfig) -> Sizes {
        match workload {
            WorkloadConfig::Requests(list) => Sizes::of_list(list),
            WorkloadConfig::Synthetic(config) => Sizes::of_synthetic(config),
            WorkloadConfig::Trace(TraceConfig { requests_max, .. }) => {
                Sizes { requests: requests_max.map(u64::from), ..Sizes::default() }
            }
        }
    }

    fn of_list(list: &[RequestSpec]) -> Sizes {
        let prompts: Vec<u64> = list.iter().map(prompt_len).collect();
        let outputs = list.iter().map(|spec| u64::from(spec.output.0));
        Sizes {
            requests: Some(prompts.len() as u64),
            prompt_max: prompts.iter().copied().max(),
            length_max: prompts.iter().zip(outputs).map(|(prompt, output)| prompt + output).max(),
            prompts: Some(prompts),
        }
    }

    fn of_synthetic(config: &Synthetic) -> Sizes {
        let turns = u64::from(config.turns);
        let output = longest(&config.output);
        let prefix = config.prefix.as_ref().map_or(0, longest);
        let prompt = prefix + turns * longest(&config.prompt) + (turns - 1) * output;
        Sizes {
            requests: Some(u64::from(config.requests)),
            prompt_max: Some(prompt),
            length_max: Some(prompt + output),
            prompts: None,
        }
    }
}

/// Whether a request can have an output row in the virtual page in which its prompt ends.
fn output_inside_page(workload: &WorkloadConfig, virtual_page: u64) -> bool {
    match workload {
        WorkloadConfig::Requests(list) => list.iter().any(|spec| {
            // The last output token's KV is never stored.
            !prompt_len(spec).is_multiple_of(virtual_page) && spec.output.0 > 1
        }),
        WorkloadConfig::Synthetic(_) | WorkloadConfig::Trace(_) => virtual_page > 1,
    }
}

fn prompt_len(spec: &RequestSpec) -> u64 {
    spec.prompt.iter().map(|run| u64::from(run.len.0)).sum()
}

/// How many namespaces the requests are of.
fn namespaces(workload: &WorkloadConfig) -> usize {
    match workload {
        WorkloadConfig::Requests(list) => {
            list.iter().map(|spec| spec.namespace).collect::<BTreeSet<_>>().len()
        }
        WorkloadConfig::Synthetic(_) | WorkloadConfig::Trace(_) => 1,
    }
}

fn longest(lengths: &Lengths) -> u64 {
    u64::from(match lengths {
        Lengths::Fixed(length) => *length,
        Lengths::Uniform { max, .. } => *max,
        Lengths::OneOf(choices) => choices.iter().copied().max().unwrap_or_default(),
    })
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
            facts.decode_hits && facts.spare_pages.is_none(),
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
    let roomy = facts.spare_pages.is_some() && facts.reserved == 0;
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
mod tests {
    use super::super::file;
    use super::super::tests::small;
    use super::*;
    use crate::behaviour::Profile;

    const TWO: &str = "workload={ requests = [{ prompt = [{ content = 1, len = 7 }], output = 2 }, \
        { prompt = [{ content = 1, len = 9 }], output = 2 }] }";
    const TRACE: &str = "workload={ trace = { format = \"mooncake\", path = \"t\" } }";
    const DRAWN: &str = "workload={ synthetic = { requests = 3, \
        arrivals = { fixed = { gap = 1 } }, prompt = { fixed = 7 }, output = { fixed = 2 } } }";

    fn with(assignments: &[&str]) -> Scenario {
        let mut table = file::table(&small().to_toml(), "base").unwrap();
        for assignment in assignments {
            file::set(&mut table, assignment).unwrap();
        }
        file::from_table(table, "base").unwrap()
    }

    /// The switches objected to in the two requests' scenario, or in that of a later assignment.
    fn objected(assignments: &[&str]) -> Vec<&'static str> {
        let assignments = [&[TWO], assignments].concat();
        let objections = lint(&with(&assignments));
        objections.iter().map(|objection| objection.switch).collect()
    }

    /// Each line of the table: assignments, and whether they make the last-named switch unsound.
    fn check(switch: &str, cases: &[(&[&str], bool)]) {
        for (assignments, unsound) in cases {
            let expected: &[&str] = if *unsound { &[switch] } else { &[] };
            assert_eq!(objected(assignments), expected, "{assignments:?}");
        }
    }

    #[test]
    fn the_sound_profile_has_no_objection_whatever_the_workload() {
        for workload in [TWO, TRACE, DRAWN] {
            let extra =
                ["faults=[{abort={request=0}}]", "link.delay_every=2", "link.delay_ticks=9"];
            assert_eq!(objected(&[&[workload], &extra[..]].concat()), [""; 0]);
        }
    }

    #[test]
    fn sound_alternatives_have_no_objection() {
        for assignment in [
            "behaviour.decode_match_unit=physical_page",
            "behaviour.decode_match_unit=token",
            "behaviour.chunk_cut=exact_budget",
            "behaviour.early_send=settled_cut",
            "behaviour.early_send=settled_skipped",
            "behaviour.refused_request=served_again",
            "behaviour.retraction=send_again",
            "behaviour.packing=none",
            "behaviour.send_split=no",
            "behaviour.planner=indexed",
        ] {
            assert_eq!(objected(&[TRACE, assignment]), [""; 0], "{assignment}");
        }
    }

    #[test]
    fn releases_are_judged_by_what_acts() {
        let release = |name: &str, more: &[&str]| {
            let profile = format!("profile={name}");
            objected(&[&[TRACE, &*profile], more].concat())
        };
        let none = [""; 0];
        assert_eq!(release("sglang-0.5.17", &["decode.cache=none"]), none);
        assert_eq!(release("sglang-0.5.20", &[]), ["packing"]);
        assert_eq!(release("sglang-0.5.23", &[]), none);
        let abort = "faults=[{abort={request=0}}]";
        assert_eq!(release("sglang-0.5.20", &[abort]), ["release_on_abort", "packing"]);
        assert_eq!(release("sglang-0.5.23", &[abort]), ["release_on_abort"]);
        assert_eq!(lint(&with(&["profile=sglang-0.5.20"])), []);
        assert_eq!(Profile::ALL.len(), 4);
    }

    #[test]
    fn a_prefix_cut_matters_where_a_hit_can_end_inside_a_virtual_page() {
        let token = "behaviour.decode_match_unit=token";
        let physical = "behaviour.decode_match_unit=physical_page";
        for cut in ["physical_page", "none", "padded_up"] {
            let cut = &*format!("behaviour.decode_prefix_cut={cut}");
            let to_physical = cut.ends_with("physical_page");
            check(
                "decode_prefix_cut",
                &[
                    (&[cut], false),
                    (&[cut, physical], true),
                    (&[cut, token], true),
                    (&[cut, physical, "decode.cache=none"], false),
                    (&[cut, physical, "layout.ranks=1"], false),
                    (&[cut, token, "layout.ranks=1"], !to_physical),
                    (&[cut, token, "layout.ranks=1", "layout.page_size=1"], false),
                    (&[TRACE, cut, physical], true),
                ],
            );
            let alone = "workload={requests=[{prompt=[{content=1,len=7}],output=2}]}";
            check("decode_prefix_cut", &[(&[alone, cut, physical], false)]);
        }
    }

    #[test]
    fn a_reservation_is_judged_by_the_prompt_lengths() {
        // Virtual pages of 4 tokens, prompts of 7 and 9.
        let [first, second] = [0, 1].map(|request| {
            move |len: u32| format!("workload.requests.{request}.prompt.0.len={len}")
        });
        let floor = "behaviour.decode_reservation=floor";
        let short = "behaviour.decode_reservation=one_short";
        let physical = "behaviour.decode_reservation=by_physical_page";
        let (eight, twelve) = (&*first(8), &*second(12));
        let (one, two) = (&*first(1), &*second(2));
        check(
            "decode_reservation",
            &[
                (&[floor], true),
                (&[floor, eight], true),
                (&[floor, eight, twelve], false),
                // With two pages the pool runs out, and what resumes is of another length.
                (&[floor, eight, twelve, "decode.pages=3"], true),
                (&[floor, "layout.page_size=1", "layout.ranks=1"], false),
                (&[TRACE, floor], true),
                (&[short], false),
                (&[short, eight], true),
                (&[TRACE, short], true),
                (&[physical], true),
                (&[physical, "layout.ranks=1"], false),
                (&[physical, one, two], false),
            ],
        );
    }

    #[test]
    fn piece_cursors_matter_where_there_can_be_a_second_piece() {
        for (switch, assignment) in [
            ("destination_list", "behaviour.destination_list=sliced_by_chunk"),
            ("source_offset", "behaviour.source_offset=pages_of_chunk"),
        ] {
            check(
                switch,
                &[
                    (&[assignment], false),
                    // Eight and ten tokens in whole pages wait together.
                    (&[assignment, "prefill.chunk_tokens=20"], false),
                    (&[assignment, "prefill.chunk_tokens=19"], true),
                    (&[assignment, "link.pack_tokens=8"], true),
                    (&[assignment, "link.pack_tokens=8", "behaviour.send_split=no"], false),
                    (&[assignment, "behaviour.early_send=settled_cut"], true),
                    (
                        &[assignment, "behaviour.early_send=settled_cut", "prefill.cache=none"],
                        false,
                    ),
                    (&[DRAWN, assignment], false),
                    (&[DRAWN, assignment, "prefill.chunk_tokens=23"], true),
                    (&[TRACE, assignment], true),
                ],
            );
        }
        let zero = "behaviour.source_offset=pages_from_zero";
        check("source_offset", &[(&[zero], true), (&[zero, "decode.cache=none"], false)]);
    }

    #[test]
    fn a_partial_send_matters_where_chunks_are_cut_inside_a_page() {
        let none = "behaviour.send_cut=none";
        let exact = "behaviour.chunk_cut=exact_budget";
        check(
            "send_cut",
            &[
                (&[TRACE, none], false),
                (&[TRACE, none, exact], true),
                (&[TRACE, none, exact, "layout.page_size=1"], false),
                (&[none, exact], false),
                (&[none, exact, "prefill.chunk_tokens=5"], true),
            ],
        );
    }

    #[test]
    fn early_sends_matter_with_a_prefill_cache() {
        for variant in ["launched", "settled_rest_dropped"] {
            let early = &*format!("behaviour.early_send={variant}");
            check("early_send", &[(&[early], true), (&[early, "prefill.cache=none"], false)]);
        }
    }

    #[test]
    fn a_dropped_empty_message_matters_for_full_hits_and_idle_ranks() {
        let dropped = "behaviour.empty_last=dropped";
        check(
            "empty_last",
            &[
                (&[dropped], true),
                (&[dropped, "decode.cache=none"], false),
                (&[dropped, "decode.cache=none", "layout.ranks=8"], true),
                (&[dropped, "decode.cache=none", "prefill.chunk_tokens=8"], true),
                (&[TRACE, dropped, "decode.cache=none"], true),
                (&[TRACE, dropped, "decode.cache=none", "layout.ranks=1"], false),
            ],
        );
    }

    #[test]
    fn early_release_matters_with_aborts_and_with_refusals() {
        for variant in ["at_once", "timeout"] {
            let release = &*format!("behaviour.release_on_abort={variant}");
            let abort = "faults=[{abort={request=0}}]";
            check("release_on_abort", &[(&[release], false), (&[release, abort], true)]);
            let floor = "behaviour.decode_reservation=floor";
            let expected = ["decode_reservation", "release_on_abort"];
            assert_eq!(objected(&[release, floor]), expected);
        }
    }

    #[test]
    fn an_unlocked_match_matters_where_the_decode_cache_is_evicted() {
        let none = "behaviour.lock_on_match=none";
        check(
            "lock_on_match",
            &[
                (&[none], false),
                // Eleven tokens each at the most: three pages, six for both.
                (&[none, "decode.pages=6"], false),
                (&[none, "decode.pages=5"], true),
                (&[none, "decode.pages=5", "decode.cache=none"], false),
                (&[TRACE, none], true),
            ],
        );
    }

    #[test]
    fn double_frees_matter_with_a_prefill_cache() {
        let insert = "behaviour.duplicate_insert=free_without_remap";
        let check_off = "behaviour.free_check=none";
        check(
            "duplicate_insert",
            &[(&[insert], true), (&[insert, "prefill.cache=none"], false), (&[check_off], false)],
        );
        assert_eq!(objected(&[insert, check_off]), ["duplicate_insert", "free_check"]);
    }

    #[test]
    fn early_completion_matters_with_reordering_or_with_several_parts() {
        let last = "behaviour.transfer_completion=last_part_seen";
        let any = "behaviour.transfer_completion=any_part";
        let delay = ["link.delay_every=3", "link.delay_ticks=100"];
        check(
            "transfer_completion",
            &[
                (&[TRACE, last], false),
                (&[TRACE, last, delay[0]], false),
                (&[TRACE, last, delay[0], delay[1]], true),
                (&[last, delay[0], delay[1]], false),
                (&[any], true),
                (&[any, "layout.ranks=1"], false),
                (&[any, "layout.ranks=1", "prefill.chunk_tokens=6"], true),
            ],
        );
    }

    #[test]
    fn demand_in_tokens_matters_where_several_requests_can_be_short() {
        let tokens = "behaviour.next_step_demand=tokens";
        check(
            "next_step_demand",
            &[
                (&[tokens], false),
                (&[tokens, "decode.pages=7"], false),
                (&[tokens, "decode.pages=6"], true),
                (&[TRACE, tokens], true),
                (&[TRACE, tokens, "layout.page_size=1", "layout.ranks=1"], false),
            ],
        );
    }

    #[test]
    fn a_key_without_namespace_matters_where_there_are_several() {
        let without = "behaviour.cache_key=without_namespace";
        let other = "workload.requests.1.namespace=3";
        check(
            "cache_key",
            &[
                (&[without], false),
                (&[TRACE, without], false),
                (&[DRAWN, without], false),
                (&[without, other], true),
                (&[without, other, "workload.requests.0.namespace=3"], false),
                (&[without, other, "decode.cache=none"], true),
                (&[without, other, "decode.cache=none", "prefill.cache=none"], false),
            ],
        );
    }

    #[test]
    fn a_physical_hash_matters_for_a_decode_cache_over_several_ranks() {
        let physical = "behaviour.cache_hash_unit=physical_page";
        check(
            "cache_hash_unit",
            &[
                (&[physical], true),
                (&[TRACE, physical], true),
                (&[physical, "layout.ranks=1"], false),
                (&[physical, "decode.cache=none"], false),
            ],
        );
    }

    #[test]
    fn a_hash_of_a_chunk_alone_matters_where_a_chunk_begins_inside_a_prompt() {
        let own = "behaviour.chunk_hash=own_tokens";
        let alone = "workload={requests=[{prompt=[{content=1,len=7}],output=2}]}";
        check(
            "chunk_hash",
            &[
                // The second request's first chunk begins behind a hit.
                (&[own], true),
                (&[own, "prefill.cache=none"], false),
                (&[alone, own], false),
                (&[alone, own, "prefill.chunk_tokens=6"], true),
                (&[TRACE, own], true),
            ],
        );
    }

    #[test]
    fn untranslated_rows_matter_for_several_ranks() {
        for (switch, assignment) in
            [("relayout", "behaviour.relayout=none"), ("rows", "behaviour.rows=virtual_as_local")]
        {
            check(
                switch,
                &[
                    (&[assignment], true),
                    (&[TRACE, assignment], true),
                    (&[assignment, "layout.ranks=1"], false),
                ],
            );
        }
    }

    #[test]
    fn a_token_too_many_matters_where_a_prompt_fills_its_virtual_pages() {
        let more = "behaviour.source_length=one_more";
        check(
            "source_length",
            &[
                (&[more], false),
                (&[more, "workload.requests.0.prompt.0.len=8"], true),
                // With two pages the pool runs out, and what resumes is of another length.
                (&[more, "decode.pages=3"], true),
                (&[TRACE, more], true),
            ],
        );
        // The send that fits the pack buffer without it does not fit with it.
        let buffer = "behaviour.packing=buffer_checked";
        let whole = "behaviour.send_split=no";
        let pack = "link.pack_tokens=9";
        check("packing", &[(&[buffer, whole, pack], false), (&[more, buffer, whole, pack], true)]);
    }

    #[test]
    fn a_capacity_in_another_unit_matters_where_the_units_differ() {
        let rank = "behaviour.capacity_unit=rank_rows";
        let uncut = "behaviour.capacity_unit=not_cut_to_pages";
        let (kept, one) = ("decode.reserved_tokens=1", "layout.ranks=1");
        check(
            "capacity_unit",
            &[
                (&[rank], true),
                (&[rank, one], false),
                (&[rank, one, "decode.leftover_rows=1"], true),
                (&[rank, one, kept], true),
                (&[uncut], false),
                (&[uncut, "decode.leftover_rows=1"], true),
                (&[uncut, kept], true),
                (&[uncut, kept, one, "layout.page_size=1"], false),
            ],
        );
    }

    #[test]
    fn segments_matter_where_an_output_begins_inside_a_page() {
        let any = "behaviour.free_segment=any_start";
        let (eight, twelve) =
            ("workload.requests.0.prompt.0.len=8", "workload.requests.1.prompt.0.len=12");
        let single = ["workload.requests.0.output=1", "workload.requests.1.output=1"];
        check(
            "free_segment",
            &[
                (&[any], true),
                (&[any, eight], true),
                (&[any, eight, twelve], false),
                (&[any, single[0], single[1]], false),
                (&[TRACE, any], true),
                (&[TRACE, any, "layout.page_size=1", "layout.ranks=1"], false),
            ],
        );
        let check_off = "behaviour.free_check=none";
        assert_eq!(objected(&[any, check_off]), ["free_check", "free_segment"]);
    }

    #[test]
    fn draft_kv_matters_over_several_ranks() {
        let kept = ["behaviour.planner=indexed", "decode.draft=true"];
        for (switch, assignment) in [
            ("draft_rows", "behaviour.draft_rows=by_target_list"),
            ("replicated_pool", "behaviour.replicated_pool=rows_and_one_page"),
        ] {
            check(
                switch,
                &[
                    (&[kept[0], assignment], false),
                    (&[kept[0], kept[1], assignment], true),
                    (&[kept[0], kept[1], assignment, "layout.ranks=1"], false),
                ],
            );
        }
    }

    #[test]
    fn a_buffer_check_matters_where_a_send_can_be_larger_than_the_buffer() {
        let (buffer, whole) = ("behaviour.packing=buffer_checked", "behaviour.send_split=no");
        check(
            "packing",
            &[
                (&[TRACE, buffer], false),
                (&[TRACE, buffer, whole], true),
                (&[TRACE, buffer, whole, "layout.ranks=1"], false),
                (&[buffer, whole, "link.pack_tokens=9"], false),
                (&[buffer, whole, "link.pack_tokens=8"], true),
                // Without a prefix, a send is a chunk and at most the page that waited.
                (&[TRACE, buffer, whole, "prefill.cache=none", "link.pack_tokens=8193"], false),
                (&[TRACE, buffer, whole, "prefill.cache=none"], true),
            ],
        );
    }
}
