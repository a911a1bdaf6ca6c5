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
pub(super) const ALL: &[Release] = &[V0_5_17, V0_5_20, V0_5_23];

/// The checked planner, no packing, release at once; no decode cache with more than one rank. Its
/// schedulers were neither read nor run: where switches decide about them they are at the default.
const V0_5_17: Release = Release {
    name: "sglang-0.5.17",
    behaviours: || Behaviours {
        planner: PlannerName::CHECKED,
        packing: Packing::None,
        send_split: SendSplit::No,
        release_on_abort: ReleaseOnAbort::AtOnce,
        ..common()
    },
    forbids_striped_decode_cache: true,
    forbids_chunks_inside_pages: true,
};
/// The indexed planner; packs against the whole buffer; releases at once. As to its schedulers, see
/// 0.5.17.
const V0_5_20: Release = Release {
    name: "sglang-0.5.20",
    behaviours: || Behaviours {
        packing: Packing::BufferChecked,
        send_split: SendSplit::No,
        release_on_abort: ReleaseOnAbort::AtOnce,
        ..common()
    },
    forbids_striped_decode_cache: false,
    forbids_chunks_inside_pages: true,
};
/// The indexed planner; packs region by region and splits; drained or after a timeout. Both its
/// schedulers were run: [`crate::conform`] holds this profile against what they did.
const V0_5_23: Release = Release {
    name: "sglang-0.5.23",
    behaviours: || Behaviours {
        release_on_abort: ReleaseOnAbort::Timeout,
        admission_demand: AdmissionDemand::WithOutput,
        decode_insert: DecodeInsert::AtActivation,
        decode_turn: DecodeTurn::BetweenSteps,
        eviction_demand: EvictionDemand::Padded,
        prompt_node: PromptNode::Own,
        reservation_call: ReservationCall::Extend,
        resumption_demand: ResumptionDemand::Reserved,
        last_running: LastRunning::Aborted,
        split_stamp: SplitStamp::Inherited,
        hit_count: HitCount::OncePerRequest,
        send_split: SendSplit::Crossings,
        prefill_batch: PrefillBatch::AtOnce,
        output_limit: OutputLimit::Clipped,
        front_check: FrontCheck::InputLength,
        source_release: SourceRelease::LandedOrAborted,
        release_insert: ReleaseInsert::Again,
        aborted_chunk: AbortedChunk::SentIfLast,
        aborted_step: AbortedStep::Counted,
        retraction_order: RetractionOrder::Batch,
        ..common()
    },
    forbids_striped_decode_cache: false,
    forbids_chunks_inside_pages: true,
};

/// What all three share; the oldest one names another planner.
fn common() -> Behaviours {
    Behaviours {
        early_send: EarlySend::SettledSkipped,
        planner: PlannerName::INDEXED,
        transfer_error: TransferError::EndsThread,
        short_list: ShortList::Cut,
        duplicate_page: DuplicatePage::Planned,
        ..Behaviours::default()
    }
}
