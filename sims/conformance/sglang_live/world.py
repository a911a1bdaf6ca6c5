"""A clock in whole ticks that drives the event loops of both schedulers, and the record of what
they do.

What takes time is what `kvseam` lets take time: a step, a token of prefill, a request of a decode
step, a copy, a message. The loops are the engine's normal (not overlapped) ones; where the engine's
spin, these turn until nothing changes any more.
"""

import heapq
from array import array

import numpy as np
import torch
from sglang.srt import runtime_context
from sglang.srt.disaggregation.base.conn import KVPoll
from sglang.srt.environ import envs
from sglang.srt.managers.io_struct import AbortReq
from sglang.srt.managers.schedule_batch import Req
from sglang.srt.managers.utils import GenerationBatchResult, validate_input_length
from sglang.srt.sampling.sampling_params import SamplingParams

from . import ablations
from .servers import VOCABULARY, Server, connect, context
from .transfer import Link

# Turns of a loop at one tick: each lets at least one request go on.
TURNS = 20
# Timers of one scenario; one that needs more goes round in circles.
TIMERS = 200_000
# Orders of prefill's waiting, as a scenario and as the engine calls them.
ADMISSIONS = {"first_come": "fcfs"}
# Wrong rows of a request that are reported one by one.
ROWS_SHOWN = 4


class World:
    def __init__(self, scenario, group, bent=(), planted=None):
        self.bent, self.planted = frozenset(bent), planted
        self.page_size, self.ranks = scenario["page_size"], scenario["ranks"]
        self.virtual_page = self.page_size * self.ranks
        self.prefill_config, self.decode_config = scenario["prefill"], scenario["decode"]
        self.chunk_tokens = self.prefill_config["chunk_tokens"]
        self.admission = ADMISSIONS[self.prefill_config["admission"]]
        for name, value in scenario["link"].items():
            setattr(self, name, value)
        self.requests = scenario["requests"]
        longest = max(len(request["prompt"]) + len(request["output"]) for request in self.requests)
        self.context_tokens = longest + 64
        self.events, self.now, self.timers, self.sequence = [], 0, [], 0
        self.link = Link(self)
        self.live, self.slots = {}, {}
        self.histories = Histories(self.requests)
        # What each row holds: the number of a token's history, 0 for nothing.
        self.prefill_memory = np.zeros(
            (self.prefill_config["pages"] + 1) * self.page_size, dtype=np.int64
        )
        rows = (self.decode_config["pages"] + 1) * self.page_size
        self.decode_memory = np.zeros((self.ranks, rows), dtype=np.int64)
        self._servers(group)
        self.is_prefill_busy = self.is_decode_busy = False

    def _servers(self, group):
        envs.SGLANG_DISAGG_PREFILL_EARLY_SEND_CACHED_PREFIX.set(True)
        connect(self)
        cache = self.decode_config["cache"]
        of_prefill = context(
            "prefill", self, group, disaggregation_decode_enable_radix_cache=False
        )
        of_decode = context(
            "decode", self, group,
            disaggregation_decode_enable_radix_cache=cache,
            disable_radix_cache=not cache,
            num_reserved_decode_tokens=self.decode_config["reserved_tokens"],
            disaggregation_decode_retraction_backup="cpu_tensor",
        )
        with runtime_context.use_context(of_prefill):
            self.prefill = Server(self, "prefill", of_prefill, group)
        with runtime_context.use_context(of_decode):
            self.decode = Server(self, "decode", of_decode, group)
        for server, side in [(self.prefill, "prefill"), (self.decode, "decode")]:
            self._watch_evictions(server.tree_cache, side, server.token_to_kv_pool_allocator)
        ablations.bend(self)

    # The record ---------------------------------------------------------------------------------

    def log(self, kind, request=None, **fields):
        self.events.append({"t": self.now, "ev": kind, "r": request, **fields})

    def _watch_evictions(self, tree, side, allocator):
        evict_for_alloc = tree.evict_for_alloc

        def watched(params, **rest):
            result = evict_for_alloc(params, **rest)
            if result.num_tokens_evicted:
                pages = result.num_tokens_evicted // allocator.page_size
                self.log("evicted", side=side, asked=params.num_tokens, pages=pages)
            return result

        tree.evict_for_alloc = watched

    def planned(self, chunk):
        slot = self.slots[chunk.room]
        self.log(
            "planned", chunk.room - 1, off=chunk.index_slice.start, n=chunk.num_kv_tokens,
            S=slot["prefix"], src=[int(page) for page in chunk.prefill_kv_indices],
            dst=slot["pages"], last=bool(chunk.is_last_chunk),
        )

    def thread_died(self, room, error):
        self.log("thread_died", room - 1, error=error)

    # The clock ----------------------------------------------------------------------------------

    def at(self, tick, action, *arguments):
        """Has an action done at a tick, after those that were asked for before."""
        self.sequence += 1
        heapq.heappush(self.timers, (tick, self.sequence, action, arguments))

    def run(self):
        """Runs to the end; the events are complete even where the engine raises."""
        for number, request in enumerate(self.requests):
            self.at(request["at"], self._arrive, number)
            if request["abort"] is not None:
                self.at(request["abort"], self._abort, number)
        for _ in range(TIMERS):
            if not self.timers:
                break
            self.now, _, action, arguments = heapq.heappop(self.timers)
            action(*arguments)
        self._census()

    # Requests -----------------------------------------------------------------------------------

    def _request(self, number, server):
        request = self.requests[number]
        parameters = SamplingParams(
            max_new_tokens=len(request["output"]), temperature=0, ignore_eos=False
        )
        parameters.normalize(None)
        namespace = request["namespace"]
        made = Req(
            rid=rid_of(number),
            origin_input_text="",
            origin_input_ids=array("q", request["prompt"]),
            sampling_params=parameters,
            bootstrap_host="prefill",
            bootstrap_port=1,
            bootstrap_room=number + 1,
            vocab_size=VOCABULARY,
            disagg_mode=server.disaggregation_mode,
            extra_key=str(namespace) if namespace else None,
        )
        made.eos_token_ids = None
        server.init_req_max_new_tokens(made)
        refusal = validate_input_length(made, server.max_req_input_len, False)
        if refusal:
            made.set_finish_with_abort(refusal)
        return made

    def _arrive(self, number):
        self.log("arrives", number, prompt=len(self.requests[number]["prompt"]))
        made = {}
        for side in ["prefill", "decode"]:
            server = getattr(self, side)
            with runtime_context.use_context(server.context):
                made[side] = self._request(number, server)
                server._add_request_to_queue(made[side])
        self.live[number] = {**made, "has_ended": False, "is_retracted": False, "is_seen": False}
        refused = {side: bool(request.finished()) for side, request in made.items()}
        if any(refused.values()):
            self.log("rejected", number, **refused)
            # A router that has an error from one side gives the request up on the other.
            self._give_up(number)
        self._turn_decode()
        self._turn_prefill()

    def _abort(self, number):
        self.log("abort", number)
        self._give_up(number)
        self._turn_decode()
        self._turn_prefill()

    def _give_up(self, number):
        for server in [self.decode, self.prefill]:
            with runtime_context.use_context(server.context):
                server.abort_request(AbortReq(rid=rid_of(number)))

    def _finish(self, request):
        number = number_of(request)
        if not self.live[number]["has_ended"]:
            self.live[number]["has_ended"] = True
            reason = type(request.finished_reason).__name__
            self.log("finished", number, out=len(request.output_ids), reason=reason)

    # The handoff --------------------------------------------------------------------------------

    def reserved(self, room, pages, aux, prefix):
        """Decode has taken pages, and sends prefill their list."""
        self.log("reserved", room - 1, S=prefix, pages=pages)
        self.slots[room] = {"pages": pages, "prefix": prefix}
        self.link.open(room, aux)
        told = pages[:-1] if self.planted == "short_list" else pages
        self.at(self.now + self.message_ticks, self._connected, room, told, prefix)

    def _connected(self, room, pages, prefix):
        manager = self.prefill.manager
        # The sender of a request that was aborted meanwhile is gone, or has failed.
        if manager.request_status.get(room, 0) != 0:
            manager.connect(room, pages, prefix)
            self._turn_prefill()

    def abort_told(self, room):
        self.at(self.now + self.message_ticks, self._abort_known, room)

    def _abort_known(self, room):
        self.prefill.manager.abort(room)
        self._turn_prefill()

    def hand_metadata(self, source, target):
        """The metadata of a request arrives with the last part of its last piece."""
        theirs, ours = self.prefill.disagg_metadata_buffers, self.decode.disagg_metadata_buffers
        for name, value in vars(theirs).items():
            if isinstance(value, torch.Tensor) and value.dim() >= 1:
                getattr(ours, name)[target] = value[source]

    def landed(self, room, is_done):
        if is_done:
            self.prefill.manager.landed(room)
            self.decode.manager.update_status(room, KVPoll.Success)
        self._turn_prefill()
        self._turn_decode()

    # The event loops ----------------------------------------------------------------------------

    def _turn_prefill(self):
        if self.is_prefill_busy:
            return
        server = self.prefill
        with runtime_context.use_context(server.context):
            batch = self._until_still(server, self._prefill_turn)
            if batch is None:
                return
            tokens = 0
            for request in batch.reqs:
                tokens += request.extend_len
                self._chunk(request)
            for request in batch.reqs:
                # As `Scheduler.run_batch` does before the forward pass.
                server.maybe_send_cached_prefix_chunk(request)
        self.is_prefill_busy = True
        config = self.prefill_config
        ticks = config["step_ticks"] + config["token_ticks"] * tokens
        self.at(self.now + ticks, self._prefill_ends, batch)

    def _until_still(self, server, turn):
        """Turns until there is a batch, or nothing has changed."""
        before = None
        for _ in range(TURNS):
            state = signature(server)
            if state == before:
                return None
            before = state
            batch = turn(server)
            if batch:
                return batch
        return None

    def _prefill_turn(self, server):
        server.waiting_queue.extend(server.disagg_prefill_bootstrap_queue.pop_bootstrapped())
        plan = server.get_next_disagg_prefill_batch_to_run(
            running_batch=server.running_batch, last_batch=server.last_batch
        )
        server.running_batch = plan.running_batch
        if not plan.batch_to_run:
            server.process_disagg_prefill_inflight_queue()
            server.last_batch = None
        return plan.batch_to_run

    def _chunk(self, request):
        number = number_of(request)
        if not self.live[number]["is_seen"]:
            self.live[number]["is_seen"] = True
            self.log("prefill_hit", number, tokens=request.prefix_len)
        self.log("chunk", number, start=request.prefix_len, end=request.extend_end)

    def _prefill_ends(self, batch):
        server = self.prefill
        self.is_prefill_busy = False
        with runtime_context.use_context(server.context):
            for request in batch.reqs:
                start, end = request.prefix_len, request.extend_end
                rows = table(server, request)[start:end]
                self.prefill_memory[rows] = self.histories.of(number_of(request))[start:end]
            result = self._outputs(batch, lambda _request: 0)
            server.process_batch_result_disagg_prefill(batch, result)
            server.process_disagg_prefill_inflight_queue()
            server.last_batch = batch
        self._turn_prefill()

    def _outputs(self, batch, place):
        """The forward pass of a batch: each request's output token at its place."""
        tokens = [
            self.requests[number_of(request)]["output"][place(request)] for request in batch.reqs
        ]
        return GenerationBatchResult(next_token_ids=torch.tensor(tokens), logits_output=None)

    def _turn_decode(self):
        server = self.decode
        if self.is_decode_busy:
            if "any_time" in self.bent:
                with runtime_context.use_context(server.context):
                    self._take_up(server)
            return
        with runtime_context.use_context(server.context):
            batch = self._until_still(server, self._decode_turn)
        if batch is None:
            return
        self.is_decode_busy = True
        config = self.decode_config
        ticks = config["step_ticks"] + config["request_ticks"] * len(batch.reqs)
        self.at(self.now + ticks, self._decode_ends, batch)

    def _take_up(self, server):
        """Resumes, reserves and activates; looks at the rows of what is new. Returns what waits."""
        before = list(server.waiting_queue)
        server.process_decode_queue()
        waiting = list(server.waiting_queue)
        for request in waiting:
            if request not in before:
                self._activated(request)
        return waiting

    def _decode_turn(self, server):
        waiting = self._take_up(server)
        plan = server.get_next_disagg_decode_batch_to_run(running_batch=server.running_batch)
        for request in waiting:
            if request.finished():
                self._finish(request)
        server.running_batch = plan.running_batch
        for request in server.disagg_decode_prealloc_queue.retracted_queue:
            known = self.live[number_of(request)]
            if not known["is_retracted"]:
                known["is_retracted"] = True
                self.log("retracted", number_of(request), seqlen=request.seqlen)
        server.last_batch = plan.batch_to_run
        return plan.batch_to_run

    def _decode_ends(self, batch):
        server = self.decode
        self.is_decode_busy = False
        with runtime_context.use_context(server.context):
            for request in batch.reqs:
                if request.kv.holds_kv:
                    at = len(request.origin_input_ids) + len(request.output_ids) - 1
                    row = table(server, request)[at : at + 1]
                    history = self.histories.of(number_of(request))[at : at + 1]
                    self.set_decode_rows(row, history)
            result = self._outputs(batch, lambda request: len(request.output_ids))
            server.batch_result_processor.process_batch_result_decode(batch, result)
            for request in batch.reqs:
                if request.finished():
                    self._finish(request)
        self._turn_decode()
        self._turn_prefill()

    # Rows and pages -----------------------------------------------------------------------------

    def decode_rows(self, rows):
        rows = np.asarray(rows)
        return self.decode_memory[rows % self.ranks, rows // self.ranks].copy()

    def set_decode_rows(self, rows, contents):
        rows = np.asarray(rows)
        self.decode_memory[rows % self.ranks, rows // self.ranks] = contents

    def _activated(self, request):
        """Every row that the request will read, against the history that belongs there."""
        number, stored = number_of(request), request.kv.kv_committed_len
        rows = table(self.decode, request)[:stored]
        positions = np.arange(stored)
        is_strange = rows % self.ranks != positions % self.ranks
        is_wrong = self.decode_rows(rows) != self.histories.of(number)[:stored]
        pages = [int(row) // self.virtual_page for row in rows[:: self.virtual_page]]
        self.live[number]["is_retracted"] = False
        self.log("activated", number, pages=pages, stored=stored)
        wrong = np.flatnonzero(is_strange | is_wrong)
        if len(wrong):
            named = [
                [int(at), "owner" if is_strange[at] else "content"] for at in wrong[:ROWS_SHOWN]
            ]
            self.log("WRONG", number, rows=named, count=len(wrong))

    def _census(self):
        """What is left in the pools, and who never ended."""
        for server, side in [(self.prefill, "prefill"), (self.decode, "decode")]:
            pool, tree = server.token_to_kv_pool_allocator, server.tree_cache
            self.log(
                "census", side=side, total=pool.size, free=pool.available_size(),
                evictable=tree.evictable_size(), protected=tree.protected_size(),
            )
        open_ones = [number for number, known in self.live.items() if not known["has_ended"]]
        gone = [
            number
            for number in open_ones
            if self.live[number]["decode"].to_finish is not None
            and not self.live[number]["decode"].kv.holds_kv
        ]
        if gone:
            self.log("aborted_for_memory", requests=gone)
        stuck = [
            number
            for number in open_ones
            if number not in gone and not self.live[number]["decode"].finished()
        ]
        if stuck:
            self.log("stuck", requests=stuck)


class Histories:
    """A number for every token with all that precedes it: equal numbers are equal KV."""

    def __init__(self, requests):
        self.requests, self.known, self.made = requests, {}, {}

    def of(self, number):
        """The histories of a request's prompt and output, by position."""
        if number not in self.made:
            request = self.requests[number]
            # Requests of different namespaces share nothing.
            chain, chains = -1 - request["namespace"], []
            for token in request["prompt"] + request["output"]:
                chain = self.known.setdefault((chain, token), len(self.known) + 1)
                chains.append(chain)
            self.made[number] = np.array(chains, dtype=np.int64)
        return self.made[number]


def rid_of(number):
    """All of one length: the engine aborts every request whose id *begins* with the one named."""
    return f"r{number:06}"


def number_of(request):
    return int(request.rid[1:])


def table(server, request):
    """The rows of a request's positions."""
    return server.req_to_token_pool.req_to_token[request.kv.req_pool_idx].numpy()


def signature(server):
    """What changes whenever a turn of a loop did something."""
    state = [
        len(server.waiting_queue),
        len(server.running_batch.reqs),
        server.token_to_kv_pool_allocator.available_size(),
        server.tree_cache.evictable_size(),
    ]
    if reservations := server.disagg_decode_prealloc_queue:
        transfers = server.disagg_decode_transfer_queue
        state += [
            len(reservations.queue),
            len(reservations.retracted_queue),
            len(transfers.queue),
            transfers.num_pending_deferred_releases(),
        ]
    if arrivals := server.disagg_prefill_bootstrap_queue:
        state += [
            len(arrivals.queue),
            len(server.disagg_prefill_inflight_queue),
            server.chunked_req is None,
        ]
    return state
