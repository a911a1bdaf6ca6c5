//! Whether a configuration is sound, and why not.
//!
//! An *objection* names a switch whose variant can lead to a defect in this scenario. No objection
//! is a claim: this scenario can have no defect. Many variants are harmless where nothing makes
//! them act, so each is judged together with the rest of the configuration. Where the requests
//! cannot be told in advance, the lint objects. `RULES` is the whole judgement.

use super::Scenario;
use crate::behaviour::{
    AbortCleanup, AbortedChunk, AdmissionDemand, Behaviours, CacheHashUnit, CacheKey, CapacityUnit,
    ChunkCut, ChunkHash, CommittedLength, CrossStall, DecodePrefixCut, DecodeReservation,
    DecodeTurn, DestinationList, DoubledMessage, DraftRows, DuplicateInsert, DuplicatePage,
    EarlySend, EmptyLast, EvictionDemand, Flush, FreeCheck, FreeSegment, FrontCheck, LockCount,
    LockOnMatch, LostMessage, NextStepDemand, Packing, PrefillBatch, PrefillStart, Relayout,
    ReleaseOnAbort, ReplicatedPool, Resumption, ResumptionDemand, Retraction, Rows, SendCut,
    SendSplit, ShortList, SourceLength, SourceOffset, SourceRelease, TailRelease,
    TransferCompletion, TransferError,
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
    RULES.iter().filter_map(|rule| rule.objection(&facts)).collect()
}

/// When a variant is not sound.
struct Rule {
    /// The switch, as spelled in files.
    switch: &'static str,
    /// The variant's name as spelled in files, if these behaviours have this variant.
    variant: fn(&Behaviours) -> Option<&'static str>,
    /// Whether the variant can lead to a defect in a scenario with these facts.
    acts: fn(&Facts) -> bool,
    reason: &'static str,
}

impl Rule {
    fn objection(&self, facts: &Facts) -> Option<Objection> {
        let variant = (self.variant)(&facts.behaviours)?;
        let objection = Objection { switch: self.switch, variant, reason: self.reason };
        (self.acts)(facts).then_some(objection)
    }
}

/// Whether there is an objection to one of these switches.
fn objects_to(facts: &Facts, switches: &[&str]) -> bool {
    let mut rules = RULES.iter().filter(|rule| switches.contains(&rule.switch));
    rules.any(|rule| rule.objection(facts).is_some())
}

/// A rule for each variant: when it acts, and what then goes wrong.
macro_rules! rules {
    ($($field:ident: $name:ident {
        $($variant:ident if $acts:expr => $reason:literal,)+
    })+) => {
        &[$($(Rule {
            switch: stringify!($field),
            variant: |set| (set.$field == $name::$variant).then(|| set.$field.name()),
            acts: $acts,
            reason: $reason,
        },)+)+]
    };
}

/// Every variant that can lead to a defect. All others are sound in any scenario.
static RULES: &[Rule] = rules! {
    decode_prefix_cut: DecodePrefixCut {
        PhysicalPage if |facts| facts.ranks > 1 && facts.unaligned_hits() =>
            "a hit that ends inside a virtual page is sent as the prefix, which the planner refuses",
        None if |facts| facts.unaligned_hits() =>
            "a hit is sent as reported, and the planner refuses what does not end on a virtual page",
        PaddedUp if |facts| facts.unaligned_hits() =>
            "the positions between a hit and the virtual page it is padded up to are never sent",
    }
    decode_reservation: DecodeReservation {
        Floor if |facts| {
            let page = facts.virtual_page;
            page > 1 && !facts.every_prompt(|len| len.is_multiple_of(page))
        } => "a prompt that ends inside a virtual page gets no page for its rest",
        ByPhysicalPage if |facts| facts.ranks > 1 && !facts.every_prompt(|len| len <= facts.page) =>
            "a page is reserved for every physical page, of which a virtual one holds several",
        OneShort if |facts| facts.can_fill_its_pages() =>
            "a prompt that fills its virtual pages exactly gets one too few",
    }
    destination_list: DestinationList {
        SlicedByChunk if |facts| !facts.one_piece =>
            "a later piece looks for its pages in a slice that was cut by physical pages",
    }
    send_cut: SendCut {
        None if |facts| match facts.behaviours.chunk_cut {
            ChunkCut::PageBoundary => false,
            ChunkCut::ExactBudget => facts.page > 1 && !facts.one_chunk,
        } => "a page that a chunk leaves partial is sent twice, and what follows lies behind it",
    }
    source_offset: SourceOffset {
        PagesOfChunk if |facts| !facts.one_piece =>
            "every piece is laid out at the start of the request's pages, over the one before",
        PagesFromZero if |facts| facts.decode_hits =>
            "after a decode hit every piece is laid out too far by the length of the prefix",
    }
    cross_stall: CrossStall {
        None if |facts| facts.behaviours.prefill_start == PrefillStart::AtArrival
            && facts.several_requests()
            && facts.overtakes =>
            "two requests can each hold on one side what the other needs there, for ever",
    }
    early_send: EarlySend {
        // To a later chunk, the chunks before it are a prefix, too.
        Launched if |facts| facts.prefill_hits || !facts.one_chunk =>
            "rows can be sent before the step that computes them has ended",
        SettledRestDropped if |facts| facts.prefill_hits =>
            "after a cached prefix went out early, the rest of the prompt is never sent",
    }
    empty_last: EmptyLast {
        Dropped if |facts| facts.decode_hits || facts.idle_rank() =>
            "decode waits for ever for the message of a full hit, or of a rank without a token",
    }
    release_on_abort: ReleaseOnAbort {
        AtOnce if can_fail => "pages are given back while copies into them are in flight",
        Timeout if can_fail => "a copy can take longer than the timeout that frees its pages",
    }
    source_release: SourceRelease {
        BeforeSent if |_| true =>
            "pages are given back, and can be written over, before they have been read",
        LandedOrAborted if can_fail =>
            "pages of a transfer that fails are given back while copies still read them",
    }
    abort_cleanup: AbortCleanup {
        ForgetsWaiting if |facts| facts.aborts =>
            "an aborted request keeps its pages for ever, or is still given some",
        ForgetsReserved if |facts| facts.aborts =>
            "an aborted request keeps its pages for ever, or is still given some",
        ForgetsChunking if |facts| facts.aborts =>
            "an aborted request keeps its pages for ever, or is still given some",
        ForgetsCopying if |facts| facts.aborts =>
            "an aborted request keeps its pages for ever, or is still given some",
        ForgetsRunning if |facts| facts.aborts =>
            "an aborted request keeps its pages for ever, or is still given some",
        ForgetsRetracted if |facts| facts.aborts && facts.spare_pages.is_none() =>
            "an aborted request keeps its pages for ever, or is still given some",
    }
    tail_release: TailRelease {
        // The last output token is never stored.
        AsRun if |facts| facts.length_max.is_none_or(|longest| longest - 1 > facts.virtual_page) =>
            "pages that do not follow the request's first one are another's, and its own are lost",
    }
    lock_on_match: LockOnMatch {
        // A flush empties the cache, room or not.
        None if |facts| {
            let evicts_more = facts.behaviours.eviction_demand == EvictionDemand::Padded;
            facts.decode_hits && (facts.spare_pages.is_none() || facts.flushes || evicts_more)
        } =>
            "the pages of a decode hit can be evicted to make room for their own request",
    }
    lock_count: LockCount {
        ReleasedOnce if |facts| facts.prefill_hits =>
            "cached pages stay locked for ever, until none can be evicted",
    }
    duplicate_insert: DuplicateInsert {
        // A request that is served again computes the last page of its hit once more, so even one
        // request alone meets its own pages.
        FreeWithoutRemap if |facts| facts.prefill_hits =>
            "a request goes on using pages that were freed because the tree had the same",
        FreeAfterRemap if |facts| facts.prefill_hits =>
            "pages of the tree are freed, and the request's own that they replace are lost",
    }
    free_check: FreeCheck {
        None if |facts| objects_to(facts, &["duplicate_insert", "free_segment"]) =>
            "pages that are freed twice are handed out twice",
    }
    transfer_completion: TransferCompletion {
        LastPartSeen if |facts| facts.reorders && !facts.one_piece =>
            "the last piece can overtake an earlier one, which is then still missing",
        AnyPart if |facts| facts.several_parts() =>
            "decode starts at the first part, while others are still missing",
    }
    lost_message: LostMessage {
        Ignored if |facts| facts.loses =>
            "a part counts as on its way for ever, so the request never starts and never ends",
    }
    doubled_message: DoubledMessage {
        Counted if |facts| facts.doubles && facts.several_parts() =>
            "a message that comes twice stands for a part that is still missing",
    }
    resumption: Resumption {
        WithArrivals if |facts| facts.spare_pages.is_none() && facts.several_requests() =>
            "a request that is retracted after the last arrival never comes back",
    }
    admission_demand: AdmissionDemand {
        Tokens if |facts| {
            facts.several_requests() && (facts.spare_pages.is_none() || facts.reserves)
        } => "requests are let in together whose pages are more than their tokens would fill",
        WithOutput if |facts| {
            let comes_back = facts.behaviours.retraction == Retraction::SendAgain
                && facts.reserves
                && facts.spare_pages.is_none();
            comes_back || !facts.fits_with_last_token()
        } => "a request that fits without its last token, or comes back longer, is never let in",
    }
    next_step_demand: NextStepDemand {
        Tokens if |facts| {
            facts.virtual_page > 1 && facts.several_requests() && !facts.has_token_for_each()
        } => "requests that cross into a page at once need more pages than their tokens would fill",
    }
    committed_length: CommittedLength {
        Sequence if |facts| facts.decode_hits && facts.virtual_page > 1 =>
            "a page is cached as full whose last row was never computed",
    }
    flush: Flush {
        AtOnce if |facts| facts.flushes => "pages that requests hold are handed out again",
    }
    packing: Packing {
        BufferChecked if |facts| {
            facts.ranks > 1 && facts.behaviours.send_split == SendSplit::No && !facts.sends_fit
        } => "a send larger than the buffer runs from one rank's region into the next",
    }
    cache_key: CacheKey {
        WithoutNamespace if |facts| facts.namespaces && (facts.prefill_hits || facts.decode_hits) =>
            "a prompt finds the KV of equal tokens under another adapter or salt",
    }
    cache_hash_unit: CacheHashUnit {
        PhysicalPage if |facts| facts.ranks > 1 && facts.decode_hits =>
            "a virtual page is found by its first physical page, whatever its other tokens are",
    }
    chunk_hash: ChunkHash {
        // Behind a hit, even a first chunk begins inside the prompt.
        OwnTokens if |facts| facts.prefill_hits && (!facts.one_chunk || facts.several_requests()) =>
            "a chunk's pages are found by prompts that begin with its tokens",
    }
    relayout: Relayout {
        None if |facts| facts.ranks > 1 =>
            "every rank gets the same rows, of which it owns one out of as many as there are ranks",
    }
    rows: Rows {
        VirtualAsLocal if |facts| facts.ranks > 1 =>
            "rows go where another page of the rank lies, or behind its memory",
    }
    source_length: SourceLength {
        // Elsewhere the row too much lies in the last page, where decode writes it again.
        OneMore if |facts| facts.can_fill_its_pages() =>
            "a prompt that fills its virtual pages exactly asks for one more than was reserved",
    }
    capacity_unit: CapacityUnit {
        RankRows if |facts| facts.ranks > 1 || facts.has_rows_in_no_page() =>
            "a request that fits over all ranks is refused for the size of one",
        NotCutToPages if |facts| facts.has_rows_in_no_page() =>
            "a request is let in for rows that are in no page",
    }
    free_segment: FreeSegment {
        AnyStart if |facts| facts.output_inside_page =>
            "the page in which the output begins is given back with it, and again with the prompt",
    }
    draft_rows: DraftRows {
        ByTargetList if |facts| facts.drafts =>
            "a rank gets its share of the draft rows only, and in the place of others",
    }
    replicated_pool: ReplicatedPool {
        RowsAndOnePage if |facts| facts.drafts =>
            "the draft rows of the highest page lie behind the pool's end",
    }
    decode_turn: DecodeTurn {
        BetweenSteps if |facts| facts.spare_pages.is_none() && facts.several_requests() =>
            "a retracted request waits for pages of a transfer that has landed, and that for it",
    }
    resumption_demand: ResumptionDemand {
        Reserved if |facts| {
            facts.reserves && facts.spare_pages.is_none() && facts.several_requests()
        } => "a retracted request asks for what is kept back, too, which can be more than a pool has",
    }
    prefill_batch: PrefillBatch {
        AtOnce if |facts| !facts.leaves_prefill_margin() =>
            "a prompt within a page of its pool is never let in",
    }
    front_check: FrontCheck {
        InputLength if |facts| !facts.fits_by_every_measure() =>
            "a prompt is refused that would fit, or let in and never admitted, with all behind it",
    }
    aborted_chunk: AbortedChunk {
        SentIfLast if can_fail =>
            "what is sent for a request that has failed goes into pages that decode has given away",
    }
    transfer_error: TransferError {
        EndsThread if |facts| objects_to(facts, &REFUSED_BY) =>
            "a request that the planner refuses never ends, nor do those sent behind it",
    }
    short_list: ShortList {
        Cut if |facts| facts.ranks == 1 && objects_to(facts, &["decode_reservation"]) =>
            "the end of a prompt for which too few pages were reserved is left out in silence",
    }
    duplicate_page: DuplicatePage {
        Planned if |facts| objects_to(facts, &["free_check"]) =>
            "of two places in a request that name the same page, the first is written over",
    }
};

/// Switches with variants by which the planner can come to refuse.
const REFUSED_BY: [&str; 4] =
    ["decode_prefix_cut", "decode_reservation", "destination_list", "source_offset"];

/// Whether a request can fail, or be aborted. What the planner refuses fails, and gives its pages
/// back as an abort does.
fn can_fail(facts: &Facts) -> bool {
    facts.aborts || facts.loses || objects_to(facts, &REFUSED_BY)
}

#[cfg(test)]
mod tests;
