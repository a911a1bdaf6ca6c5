//! The releases of `sglang` whose behaviour is known.

use crate::behaviour::{
    AbortedChunk, AbortedStep, AdmissionDemand, Behaviours, DecodeInsert, DecodeTurn,
    DuplicatePage, EarlySend, EvictionDemand, FrontCheck, HitCount, LastRunning, OutputLimit,
    Packing, PlannerName, PrefillBatch, PromptNode, ReleaseInsert, ReleaseOnAbort, ReservationCall,
    ResumptionDemand, RetractionOrder, SendSplit, ShortList, SourceRelease, SplitStamp,
    TransferError,
};
use crate::engine::Release;

/// The oldest first.
pub(super) const ALL: &[Release] = &[V0_5_17, V0_5_20, V0_5_22, V0_5_23];

/// The checked planner, no packing, release at once; no decode cache with more than one rank.
///
/// The planner was run; the rest was read in the wheel: the tree in `mem_cache/radix_cache.py` (the
/// prompt has no node of its own, the upper node of a split is a new one, a chunk that is not the
/// last is not counted), and what [`schedulers`] says.
const V0_5_17: Release = Release {
    name: "sglang-0.5.17",
    behaviours: || Behaviours {
        planner: PlannerName::CHECKED,
        packing: Packing::None,
        send_split: SendSplit::No,
        release_on_abort: ReleaseOnAbort::AtOnce,
        hit_count: HitCount::NotChunks,
        ..schedulers()
    },
    forbids_striped_decode_cache: true,
    forbids_chunks_inside_pages: true,
};
/// The indexed planner; packs against the whole buffer; releases at once unless a switch of its own
/// has transfers drained.
///
/// Planner, allocators and tree were run; the rest was read in the wheel: KV is in the unified tree
/// (`mem_cache/registry.py`), which keeps a node's age when it splits it and gives the prompt a
/// node of its own, but does not count a chunk that is not the last (`unified_radix_cache.py`,
/// `unified_cache/unified_tree_core.py`), and what [`schedulers`] says.
const V0_5_20: Release = Release {
    name: "sglang-0.5.20",
    behaviours: || Behaviours {
        packing: Packing::BufferChecked,
        send_split: SendSplit::No,
        release_on_abort: ReleaseOnAbort::AtOnce,
        prompt_node: PromptNode::Own,
        split_stamp: SplitStamp::Inherited,
        hit_count: HitCount::NotChunks,
        ..schedulers()
    },
    forbids_striped_decode_cache: false,
    forbids_chunks_inside_pages: true,
};
/// In no switch other than 0.5.23. Both its schedulers were run live; what was mended after it lies
/// outside of what is modelled (a host tier, forward passes that overlap, ranks out of step).
const V0_5_22: Release = Release { name: "sglang-0.5.22", ..V0_5_23 };
/// The indexed planner; packs region by region and splits; drained or after a timeout. Both its
/// schedulers were run: [`crate::conform`] holds this profile against what they did.
const V0_5_23: Release = Release {
    name: "sglang-0.5.23",
    behaviours: || Behaviours {
        release_on_abort: ReleaseOnAbort::Timeout,
        send_split: SendSplit::Crossings,
        prompt_node: PromptNode::Own,
        split_stamp: SplitStamp::Inherited,
        hit_count: HitCount::OncePerRequest,
        ..schedulers()
    },
    forbids_striped_decode_cache: false,
    forbids_chunks_inside_pages: true,
};

/// What the schedulers of all these do around planner, allocators and tree. It was run with 0.5.23;
/// in the wheels of 0.5.17 and 0.5.20 the same was read:
///
/// - `disaggregation/decode.py`: `process_decode_queue` resumes, then reserves nothing while
///   anything is retracted; `pop_preallocated` admits by `max_new_tokens`; `_pre_alloc` extends;
///   `resume_retracted_reqs` asks for the reserve, too; `get_new_prebuilt_batch` puts the prompt
///   into the tree;
/// - `managers/schedule_batch.py`: `retract_decode` keeps the order of the batch and aborts the
///   last request; `release_req` evicts for 20 tokens of each that goes on;
/// - `mem_cache/allocation.py`: a page a request more is evicted for;
/// - `managers/schedule_policy.py`: `add_one_req` wants a page and a token beside a prompt;
/// - `managers/scheduler.py`, `managers/tp_worker.py`: the pool clips output and refuses prompts;
/// - `disaggregation/prefill.py`: what was sent is put into the tree once more when it is released;
/// - `disaggregation/mooncake/conn.py`: a planner error ends the worker's thread; with one rank a
///   short list cuts the source list.
///
/// Only run, with 0.5.23: `aborted_chunk`, `aborted_step`, `source_release`.
fn schedulers() -> Behaviours {
    Behaviours {
        early_send: EarlySend::SettledSkipped,
        planner: PlannerName::INDEXED,
        transfer_error: TransferError::EndsThread,
        short_list: ShortList::Cut,
        duplicate_page: DuplicatePage::Planned,
        admission_demand: AdmissionDemand::WithOutput,
        decode_insert: DecodeInsert::AtActivation,
        decode_turn: DecodeTurn::BetweenSteps,
        eviction_demand: EvictionDemand::Padded,
        reservation_call: ReservationCall::Extend,
        resumption_demand: ResumptionDemand::Reserved,
        last_running: LastRunning::Aborted,
        prefill_batch: PrefillBatch::AtOnce,
        output_limit: OutputLimit::Clipped,
        front_check: FrontCheck::InputLength,
        source_release: SourceRelease::LandedOrAborted,
        release_insert: ReleaseInsert::Again,
        aborted_chunk: AbortedChunk::KeptIfLast,
        aborted_step: AbortedStep::Counted,
        retraction_order: RetractionOrder::Batch,
        ..Behaviours::default()
    }
}
