"""The two schedulers, as `Scheduler.__init__` would leave them on a GPU with a loaded model.

Every method is the installed package's. What is given here are the attributes that the constructor
gets from the model, the GPU, the network and the command line.
"""

import types

import torch
from sglang.srt import runtime_context
from sglang.srt.arg_groups.overrides import declare_resolution
from sglang.srt.disaggregation import decode, prefill
from sglang.srt.disaggregation.utils import (
    DisaggregationMode,
    KVClassType,
    MetadataBuffers,
    ReqToMetadataIdxAllocator,
    TransferBackend,
)
from sglang.srt.managers.schedule_batch import ScheduleBatch
from sglang.srt.managers.schedule_policy import SchedulePolicy
from sglang.srt.managers.scheduler import Scheduler
from sglang.srt.managers.scheduler_components.batch_result_processor import (
    SchedulerBatchResultProcessor,
)
from sglang.srt.mem_cache.allocator.paged import PagedTokenToKVPoolAllocator
from sglang.srt.mem_cache.allocator.token import TokenToKVPoolAllocator
from sglang.srt.mem_cache.cache_init_params import CacheInitParams
from sglang.srt.mem_cache.memory_pool import ReqToTokenPool
from sglang.srt.mem_cache.unified_cache.component_type import ComponentType
from sglang.srt.mem_cache.unified_radix_cache import UnifiedRadixCache
from sglang.srt.server_args import ServerArgs
from sglang.srt.speculative.spec_info import SpeculativeAlgorithm

from .transfer import DecodeManager, PrefillManager, Receiver, Sender

# Token ids of a scenario stay below it.
VOCABULARY = 1 << 30
# Requests that a server has room for.
REQUESTS = 256
# Slots for the metadata of requests.
METADATA = 1024
MAX_PREFILL_TOKENS = 16384

# The schedulers' features that are off, and switches of theirs that no scenario sets.
OFF = """
    enable_overlap enable_overlap_mlx enable_lora enable_priority_scheduling
    enable_priority_preemption schedule_low_priority_values_first abort_on_priority_when_disabled
    is_hybrid_swa is_mixed_chunk enable_hisparse enable_decode_hicache enable_hicache_storage
    enable_hierarchical_cache enable_unified_cache_external_linker enable_lmcache
    enable_skip_finishing_decode enable_staging enable_continuous_input_polling
    enable_unified_memory
""".split()
ABSENT = """
    max_new_tokens_limit chunked_req last_batch sliding_window_size hisparse_coordinator
    decode_offload_manager dllm_config dynamic_chunk_sizer truncation_align_size
    min_free_slots_delayer prefill_delayer lora_drainer mm_receiver kv_checksum_computer
    _pending_chunked_abort_req cur_batch_for_debug rust_server draft_worker
    disagg_prefill_bootstrap_queue disagg_prefill_inflight_queue disagg_decode_prealloc_queue
    disagg_decode_transfer_queue
""".split()
QUIET = """
    metrics_collector output_streamer scheduler_stage_metrics ipc_channels load_inquirer
    ngram_embedding_manager future_map pool_stats_observer metrics_reporter
""".split()


class Quiet:
    """In the place of metrics, streams and outputs: takes every call and keeps nothing."""

    enable_metrics = enabled = False
    num_generated_tokens = forward_ct_decode = num_retracted_reqs = 0

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Quiet()

    def __call__(self, *_args, **_kwargs):
        return Quiet()

    def __enter__(self):
        return self

    def __exit__(self, *_error):
        return False


class Pool:
    """In the place of the KV tensors; what the rows hold is kept by the world."""

    device = "cpu"
    dtype = torch.float16
    start_layer = end_layer = 0
    cpu_copy_carries_mamba = True

    def __init__(self, world):
        self.world = world
        self.page_size = world.page_size

    def maybe_get_custom_mem_pool(self):
        return None

    def get_cpu_copy(self, indices, *_args, **_kwargs):
        return self.world.decode_rows(indices)

    def load_cpu_copy(self, contents, indices, *_args, **_kwargs):
        self.world.set_decode_rows(indices, contents)


def connect(world):
    """Lets the queues of both servers find this world's transfer classes."""

    def kv_class(_backend, kind):
        return {KVClassType.SENDER: Sender, KVClassType.RECEIVER: Receiver}[kind]

    prefill.get_kv_class = decode.get_kv_class = kv_class
    prefill.PrefillBootstrapQueue._init_kv_manager = lambda _queue: PrefillManager(world)
    decode.DecodePreallocQueue._init_kv_manager = lambda _queue: DecodeManager(world)


def context(role, world, group, **disaggregation):
    """The configuration of one server, published as the engine's processes do."""
    ranks = world.ranks if role == "decode" else 1
    args = ServerArgs(model_path="dummy")
    args.resolve_once()
    declare_resolution(
        args,
        "kvseam",
        page_size=world.page_size,
        chunked_prefill_size=world.chunk_tokens,
        disaggregation_mode=role,
        device="cpu",
        disable_overlap_schedule=True,
        schedule_policy=world.admission,
        **disaggregation,
    )
    made = runtime_context.RuntimeContext(parallel=runtime_context.ParallelContext())
    made.set_server_args(args)
    made._publish_role = "scheduler"
    alone = types.SimpleNamespace(
        cpu_group=group, device_group=group, world_size=1, rank_in_group=0
    )
    first = dict.fromkeys(
        ["tp_rank", "pp_rank", "attn_tp_rank", "attn_cp_rank", "attn_dp_rank", "attn_dcp_rank",
         "dcp_rank"], 0
    )
    single = dict.fromkeys(["attn_tp_size", "attn_cp_size", "tp_size", "pp_size"], 1)
    groups = dict.fromkeys(["tp_group", "attn_tp_group", "attn_cp_group", "pp_group"], alone)
    made.parallel._stamp.update(
        first, **single, **groups, dp_rank=None, attn_dcp_size=ranks, dcp_size=ranks,
        dcp_enabled=ranks > 1, pp_max_micro_batch_size=1 << 20,
    )
    made.config_bag("device")._set("gpu_id", 0)
    return made


def allocator(size, page, pool):
    """The allocator of a disaggregated server: freed pages are staged and sorted."""
    if page == 1:
        return TokenToKVPoolAllocator(size, torch.float16, "cpu", pool, True)
    made = PagedTokenToKVPoolAllocator(size, page, torch.float16, "cpu", pool, True)
    made.use_triton_kernels = False
    return made


class Server(Scheduler):
    """A scheduler of either role."""

    def __init__(self, world, role, made_context, group):
        self.context = made_context
        self.disaggregation_mode = DisaggregationMode(role)
        self._memory(world, role)
        self._limits(world)
        self._features(group)
        self._components(world)
        queues = {
            "req_to_metadata_buffer_idx_allocator": self.req_to_metadata_buffer_idx_allocator,
            "metadata_buffers": self.disagg_metadata_buffers,
            "scheduler": self,
        }
        if role == "decode":
            self._decode_queues(world, queues)
        else:
            self._prefill_queues(queues)
        self._results()

    def _memory(self, world, role):
        is_decode = role == "decode"
        config = world.decode_config if is_decode else world.prefill_config
        page = world.virtual_page if is_decode else world.page_size
        self.size = config["pages"] * page
        self.pool = Pool(world)
        self.token_to_kv_pool_allocator = allocator(self.size, page, self.pool)
        if is_decode:
            self.req_to_token_pool = decode.DecodeReqToTokenPool(
                REQUESTS, world.context_tokens, "cpu", False, REQUESTS
            )
        else:
            self.req_to_token_pool = ReqToTokenPool(REQUESTS, world.context_tokens, "cpu", False)
        self.tree_cache = UnifiedRadixCache(
            CacheInitParams(
                disable=not config["cache"],
                req_to_token_pool=self.req_to_token_pool,
                token_to_kv_pool_allocator=self.token_to_kv_pool_allocator,
                page_size=page,
                eviction_policy=config["eviction"],
                tree_components=(ComponentType.FULL,),
                tree_core_backend=None,
            )
        )

    def _limits(self, world):
        self.page_size = world.page_size
        self.server_args = self.context._server_args
        self.max_total_num_tokens = self.size
        self.max_prefill_tokens = MAX_PREFILL_TOKENS
        # As the engine derives them from the pool.
        self.max_req_len = self.size - 1
        self.max_req_input_len = self.max_req_len - 5
        self.chunked_prefill_size = world.chunk_tokens
        self.max_running_requests = REQUESTS
        self.max_prefill_bs = 0
        self.priority_scheduling_preemption_threshold = 10

    def _features(self, group):
        for name in OFF:
            setattr(self, name, False)
        for name in ABSENT:
            setattr(self, name, None)
        for name in QUIET:
            setattr(self, name, Quiet())
        self.waiting_queue, self.result_queue, self.return_health_check_ipcs = [], [], []
        self.running_batch = ScheduleBatch(reqs=[], batch_is_full=False)
        self.spec_algorithm = SpeculativeAlgorithm.NONE
        self.forward_ct = self.processed_tokens_counter = self.random_seed = 0
        self.attn_tp_cpu_group = self.attn_cp_cpu_group = group
        self.tp_size = self.kv_shard_widening = 1
        self.is_generation, self.device = True, "cpu"

    def _components(self, world):
        runner = types.SimpleNamespace(
            effective_logical_max_total_num_tokens=self.size,
            attn_backend=types.SimpleNamespace(),
            prefill_aware_swa=False,
            max_token_pool_size=self.size,
        )
        worker = types.SimpleNamespace(is_hybrid_swa=False, model_runner=runner)
        self.tp_worker = self.model_worker = worker
        self.model_config = types.SimpleNamespace(
            vocab_size=VOCABULARY, is_encoder_decoder=False, num_key_value_heads=1,
            num_hidden_layers=1, hf_config=types.SimpleNamespace(), is_multimodal=False,
            self_opened_think_start_ids=None, think_end_id=None, think_end_ids=None,
            think_start_id=None,
        )
        self.load_inquirer._get_num_pending_tokens = lambda **_: 0
        self.ngram_embedding_manager.prepare_for_forward = lambda batch, **_: batch
        self.dp_attn_adapter = types.SimpleNamespace(
            maybe_prepare_mlp_sync_batch=lambda batch: batch
        )
        self.grammar_manager = types.SimpleNamespace(
            has_waiting_grammars=lambda: False, abort_requests=lambda _abort: None
        )
        self.beam_coordinator = types.SimpleNamespace(
            pending_member_rows=lambda _batch: 0,
            commit_decode=lambda _batch: set(),
            retire_group=lambda _request: None,
        )
        self.new_token_ratio_tracker = types.SimpleNamespace(
            current=0.7, decay_step=lambda: None
        )
        self.policy = SchedulePolicy(world.admission, self.tree_cache, False, False, False)
        self.req_to_metadata_buffer_idx_allocator = ReqToMetadataIdxAllocator(METADATA)
        self.disagg_metadata_buffers = MetadataBuffers(
            METADATA, hidden_size=16, hidden_states_dtype=torch.float32, max_sampling_mask_tokens=1
        )

    def _decode_queues(self, world, queues):
        self.disagg_decode_transfer_queue = decode.DecodeTransferQueue(
            tree_cache=self.tree_cache, **queues
        )
        # As the engine does with a transfer backend that can say when a copy has drained.
        self.disagg_decode_transfer_queue.enable_deferred_kv_release = True
        self.disagg_decode_prealloc_queue = decode.DecodePreallocQueue(
            req_to_token_pool=self.req_to_token_pool,
            token_to_kv_pool_allocator=self.token_to_kv_pool_allocator,
            draft_token_to_kv_pool=None,
            transfer_queue=self.disagg_decode_transfer_queue,
            tree_cache=self.tree_cache,
            gpu_id=0,
            bootstrap_port=1,
            max_total_num_tokens=self.size,
            num_reserved_decode_tokens=world.decode_config["reserved_tokens"],
            transfer_backend=TransferBackend.MOONCAKE,
            **queues,
        )
        self.manager = self.disagg_decode_prealloc_queue.kv_manager

    def _prefill_queues(self, queues):
        self.disagg_prefill_bootstrap_queue = prefill.PrefillBootstrapQueue(
            token_to_kv_pool=self.pool,
            draft_token_to_kv_pool=None,
            gpu_id=0,
            bootstrap_port=1,
            max_total_num_tokens=self.size,
            scheduler_stage_metrics=Quiet(),
            transfer_backend=TransferBackend.MOONCAKE,
            **queues,
        )
        self.disagg_prefill_inflight_queue = []
        self.disagg_prefill_pending_chunk_rids = set()
        self.manager = self.disagg_prefill_bootstrap_queue.kv_manager

    def _results(self):
        self.batch_result_processor = SchedulerBatchResultProcessor(
            is_generation=True,
            disaggregation_mode=self.disaggregation_mode,
            enable_overlap=False,
            enable_overlap_mlx=False,
            model_config=self.model_config,
            token_to_kv_pool_allocator=self.token_to_kv_pool_allocator,
            tree_cache=self.tree_cache,
            hisparse_coordinator=None,
            req_to_token_pool=self.req_to_token_pool,
            decode_offload_manager=None,
            metrics_collector=self.metrics_collector,
            metrics_reporter=self.metrics_reporter,
            draft_worker=None,
            model_worker=self.model_worker,
            logprob_result_processor=Quiet(),
            output_streamer=self.output_streamer,
            beam_coordinator=self.beam_coordinator,
            abort_request=self.abort_request,
        )

    def send_abort_output(self, *_args, **_kwargs):
        pass

    def _prefetch_kvcache(self, _request):
        pass
