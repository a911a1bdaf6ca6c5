"""Bends the engine in one respect to what a simpler model says of it.

A difference that goes away with one of them has found its cause. Never for judging the engine.
"""

from array import array

from sglang.srt.disaggregation import decode_schedule_batch_mixin as mixin
from sglang.srt.mem_cache import allocation

# The engine's own, before a world has bent them.
CHECKPOINT = mixin.checkpoint_kv_cache
DECODE_SLOTS = allocation.alloc_paged_token_slots_decode


def bend(world):
    """Bends the servers of `world` as it asks, and what they share back to the engine's own."""
    mixin.checkpoint_kv_cache = CHECKPOINT
    allocation.alloc_paged_token_slots_decode = DECODE_SLOTS
    # Two are the affair of the world and of the transfer.
    for name in sorted(world.bent - {"any_time", "failed_rooms_send"}):
        globals()[f"_{name}"](world)


def _alloc_pages(world):
    pool, page = world.decode.token_to_kv_pool_allocator, world.virtual_page
    if page == 1:
        return

    def extend(_prefixes, prefixes_cpu, _lengths, lengths_cpu, _last, extend_num_tokens, **_rest):
        assert len(lengths_cpu) == 1 and int(prefixes_cpu[0]) % page == 0
        rows = pool.alloc(-(-extend_num_tokens // page) * page)
        return None if rows is None else rows[:extend_num_tokens]

    pool.alloc_extend = extend


def _no_activation_cache(_world):
    def keep_out(request, _tree):
        request.prefix_len = request.extend_end

    mixin.checkpoint_kv_cache = keep_out


def _no_split(world):
    for server in [world.prefill, world.decode]:
        checkpoint = server.tree_cache.checkpoint_into_tree

        def whole(request, *, up_to, checkpoint=checkpoint, **rest):
            prompt, request.origin_input_ids = request.origin_input_ids, array("q", [])
            try:
                checkpoint(request, up_to=up_to, **rest)
            finally:
                request.origin_input_ids = prompt

        server.tree_cache.checkpoint_into_tree = whole


def _exact_evict(world):
    for server in [world.prefill, world.decode]:
        pool = server.token_to_kv_pool_allocator

        def demand(prefixes, lengths, page=pool.page_size, **_rest):
            pages = sum(-(-int(n) // page) - -(-int(s) // page) for s, n in zip(prefixes, lengths))
            return pages * page

        pool.get_extend_allocation_demand = demand

    def slots(*args, **rest):
        evict = allocation.evict_from_tree_cache
        allocation.evict_from_tree_cache = lambda *_: None
        try:
            return DECODE_SLOTS(*args, **rest)
        finally:
            allocation.evict_from_tree_cache = evict

    allocation.alloc_paged_token_slots_decode = slots


def _no_refresh(world):
    # Every 32nd turn under lru it marks them as just used; how often the loop turns is its own affair.
    world.prefill.policy._touch_waiting_prefixes = lambda _policy, _queue: None


def _plain_admission(world):
    queue = world.decode.disagg_decode_prealloc_queue
    queue._need_space_for_single_req = lambda *_args, **_rest: 0

    def required(_request, pages, _prefix, _retractable):
        return pages + queue.num_reserved_decode_tokens

    queue._required_admission_tokens = required
