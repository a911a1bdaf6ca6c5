"""The way of the KV from prefill to decode.

The sender, its manager's bookkeeping, the transfer worker, and what it makes of a piece (the layout
of rows, the grouping into blocks) are the engine's own. Two things are not: the worker runs when a
piece is queued, without a thread, and the network call at its end hands the rows to the world's
link. A row counts as one byte at an address that is its number.
"""

import concurrent.futures
import threading
import types
from collections import defaultdict

import numpy as np
from sglang.srt.disaggregation.base.conn import KVPoll
from sglang.srt.disaggregation.common.utils import FastQueue
from sglang.srt.disaggregation.mooncake import conn
from sglang.srt.disaggregation.utils import DisaggregationMode

FOREVER = 1e9


class Drained(BaseException):
    """The queue of a worker is empty. No `Exception`, which the worker would take for its own."""


class Queue(FastQueue):
    """The worker's queue; where the engine's would block until there is more, this one raises."""

    def get(self):
        if not self._buf:
            raise Drained
        return self._buf.popleft()


def session(rank):
    return f"decode:{rank}"


class PrefillManager(conn.MooncakeKVManager):
    """The prefill side's transfer manager without an engine, sockets and threads."""

    def __init__(self, world):
        self.world = world
        self.is_dead = False
        self.disaggregation_mode = DisaggregationMode.PREFILL
        self._requests()
        self._sessions(world)
        self._topology(world)

    def _requests(self):
        self.request_status = {}
        self.failure_records = {}
        self.failure_lock = threading.Lock()
        self.req_to_decode_prefix_len = {}
        self.transfer_infos = {}
        self._staging_outstanding = defaultdict(int)
        self._deferred_ack_targets = {}
        self._deferred_ack_poisoned_rooms = set()
        self.enable_deferred_decode_kv_release = True
        self.bootstrap_timeout = FOREVER
        self.is_dummy_cp_rank = False

    def _sessions(self, world):
        self.transfer_queues = [Queue()]
        self.session_lock = threading.Lock()
        self.session_failures = defaultdict(int)
        self.failed_sessions = set()
        self.failed_session_probes = {}
        self.state_layout_rejections = {}
        self.state_strides_validated = set()
        self.decode_kv_args_table = {
            session(rank): types.SimpleNamespace(
                requires_dcp_relayout=world.ranks > 1,
                dst_kv_ptrs=[0],
                dst_aux_ptrs=[],
                dcp_token_item_lens=[1],
                dst_dcp_size=world.ranks,
                dst_dcp_rank=rank,
                dst_kv_layer_ids=[],
                dst_kv_item_lens=None,
                dst_kv_item_len=world.page_size,
                dst_tp_rank=0,
                dst_attn_tp_size=1,
                staging_base_ptr=0,
                staging_total_size=0,
            )
            for rank in range(world.ranks)
        }

    def _topology(self, world):
        self.kv_args = types.SimpleNamespace(
            page_size=world.page_size,
            kv_data_ptrs=[0],
            kv_item_lens=[world.page_size],
            kv_layer_ids=[],
            num_draft_entries=0,
            engine_rank=0,
            state_types=[],
        )
        self.is_mla_backend, self.is_hybrid_mla_backend = True, False
        self.attn_tp_size = self.attn_cp_size = self.pp_size = 1
        self.attn_tp_rank = self.attn_cp_rank = self.attn_dp_rank = self.pp_rank = 0
        self.enable_all_cp_ranks_for_transfer = False
        self.enable_custom_mem_pool, self.custom_mem_pool_type = False, None
        self.max_transfer_batch_indices = 0
        self.enable_trace = self.enable_staging = False
        self.kv_item_lens_sum, self.state_item_lens_sum = 1, 0
        self.bootstrap_port = 1
        # The buffer is a tensor of a GPU; that a send is cut at its size is not.
        self._dcp_pack_buffers, self._dcp_pack_max_tokens = None, world.pack_tokens

    def get_kv_replica_factor(self):
        return 1

    def connect(self, room, pages, prefix):
        """Decode's message: where the pages of a request are, and what it has already."""
        self.req_to_decode_prefix_len[room] = prefix
        self.transfer_infos[room] = {
            session(rank): conn.TransferInfo(
                room=room,
                endpoint="decode",
                dst_port=rank,
                mooncake_session_id=session(rank),
                dst_kv_indices=np.array(pages, dtype=np.int32),
                dst_aux_index=0,
                dst_state_indices=[],
                required_dst_info_num=self.world.ranks,
                is_dummy=False,
                decode_prefix_len=prefix,
            )
            for rank in range(self.world.ranks)
        }
        self.update_status(room, KVPoll.WaitingForInput)

    def add_transfer_request(self, bootstrap_room, kv_indices, index_slice, is_last_chunk, **rest):
        queue = self.transfer_queues[0]._buf
        before = len(queue)
        if "failed_rooms_send" in self.world.bent and bootstrap_room in self.request_status:
            self.request_status[bootstrap_room] = KVPoll.Transferring
        super().add_transfer_request(
            bootstrap_room, kv_indices, index_slice, is_last_chunk, **rest
        )
        if len(queue) == before:
            return  # the room has failed
        self.world.planned(queue[-1])
        if not self.is_dead:
            self._work(queue[-1])
        self.update_status(bootstrap_room, KVPoll.Transferring)

    def _work(self, chunk):
        """Lets the engine's worker take the chunk, and puts what it copied on the link."""
        # A rank without rows of a piece still takes part in its completion.
        self.rows = {rank: [] for rank in range(self.world.ranks)}
        self.reached = -1
        is_last, room = chunk.is_last_chunk, chunk.room
        aux, tokens = chunk.prefill_aux_index, chunk.num_kv_tokens
        try:
            with concurrent.futures.ThreadPoolExecutor(1) as executor:
                self.transfer_worker(self.transfer_queues[0], executor)
        except Drained:
            pass
        except RuntimeError as error:
            self.is_dead = True
            self.world.thread_died(room, str(error))
            return
        for rank, blocks in self.rows.items():
            self.world.link.carry(room, rank, blocks, tokens, aux if is_last else None, is_last)

    def _transfer_data(self, mooncake_session_id, transfer_blocks):
        self.rows[int(mooncake_session_id.rsplit(":", 1)[1])] += transfer_blocks
        return 0

    def send_aux(self, req, prefill_aux_index, dst_aux_ptrs):
        return 0

    def conclude_transfer(self, *, bootstrap_room, status, **rest):
        # The worker has returned from the call; when the copy has landed, the link says so.
        return status

    def abort(self, room):
        """Decode's message that it has given the request up."""
        self.record_failure(room, "aborted by decode")
        self.update_status(room, KVPoll.Failed)

    def landed(self, room):
        self.update_status(room, KVPoll.Success)


class Sender(conn.MooncakeKVSender):
    """The engine's sender, given page numbers as they are and not by an asynchronous copy."""

    supports_host_tensor_indices = False


class DecodeManager:
    """Stands for the decode side's manager: what is known of each request's transfer."""

    defer_decode_allocation = False
    deferred_bootstrap = None
    enable_deferred_decode_kv_release = True
    is_dummy_cp_rank = False
    attn_dp_rank = 0

    def __init__(self, world):
        self.world = world
        self.request_status = {}
        self.failure_records = {}
        self.kv_args = types.SimpleNamespace(state_types=[], page_size=world.page_size)
        self.prefill_info_table = {
            "prefill:1": types.SimpleNamespace(dp_size=1, follow_bootstrap_room=True)
        }

    def check_status(self, room):
        return self.request_status[room]

    def update_status(self, room, status):
        if self.request_status.get(room) != KVPoll.Failed:
            self.request_status[room] = status

    def is_abort_release_safe(self, room, _acknowledged):
        return not self.world.link.carries(room)

    def clear_deferred_abort_state(self, room):
        pass


class Receiver:
    """Stands for the decode side's end of one transfer: its messages take the world's time."""

    require_staging = False
    supports_host_destination = False

    def __init__(self, mgr, bootstrap_addr, bootstrap_room=None):
        self.kv_mgr, self.bootstrap_room = mgr, bootstrap_room
        self.conclude_state, self.init_time = None, None
        self.abort_notified = False
        self.bootstrap_infos = [bootstrap_addr]
        mgr.request_status[bootstrap_room] = KVPoll.Bootstrapping

    def init(self, _prefill_dp_rank):
        self.kv_mgr.update_status(self.bootstrap_room, KVPoll.WaitingForInput)

    def poll(self):
        if self.conclude_state is not None:
            return self.conclude_state
        return self.kv_mgr.check_status(self.bootstrap_room)

    def send_metadata(
        self, kv_indices, aux_index=None, _state=None, decode_prefix_len=None, **_rest
    ):
        self.kv_mgr.update_status(self.bootstrap_room, KVPoll.Transferring)
        pages = [int(page) for page in kv_indices]
        self.kv_mgr.world.reserved(self.bootstrap_room, pages, aux_index, decode_prefix_len or 0)

    def abort(self):
        self.kv_mgr.failure_records[self.bootstrap_room] = "aborted"
        self.conclude_state = KVPoll.Failed
        self.ensure_abort_notified()

    def ensure_abort_notified(self, *, force_arm=False):
        self.abort_notified = True
        self.kv_mgr.world.abort_told(self.bootstrap_room)

    def clear(self):
        pass

    def failure_exception(self):
        raise RuntimeError(self.kv_mgr.failure_records.get(self.bootstrap_room, "failed"))


class Link:
    """The wire: one copy at a time, in the order of sending. Rows are read when a copy begins."""

    def __init__(self, world):
        self.world = world
        self.copies = []
        # By room: parts begun and landed, whether the last piece has been sent, the metadata slot.
        self.transfers = {}

    def open(self, room, aux):
        self.transfers[room] = {"parts": 0, "landed": 0, "is_whole": False, "aux": aux}

    def carries(self, room):
        return any(copy["room"] == room for copy in self.copies)

    def carry(self, room, rank, blocks, tokens, aux, is_last):
        """Queues the blocks (source, destination, rows) of a piece for one rank."""
        source, target = rows_of(blocks, 0), rows_of(blocks, 1)
        if self.world.planted == "swapped_rows":
            source[:2] = source[1::-1].copy() if len(source) > 1 else source[:2]
        transfer = self.transfers[room]
        transfer["parts"] += 1
        transfer["is_whole"] |= is_last
        # Without DCP whole pages are copied; what is behind the last token costs nothing here.
        priced = len(source) if self.world.ranks > 1 or tokens is None else min(tokens, len(source))
        self.copies.append(
            {"room": room, "rank": rank, "source": source, "target": target, "aux": aux,
             "priced": priced, "is_last": is_last}
        )
        if len(self.copies) == 1:
            self._begin()

    def _begin(self):
        copy, world = self.copies[0], self.world
        copy["data"] = world.prefill_memory[copy["source"]]
        ticks = -(-copy["priced"] * world.token_bytes // world.bytes_per_tick)
        world.at(world.now + world.copy_ticks + ticks, self._land)

    def _land(self):
        copy, world = self.copies.pop(0), self.world
        world.decode_memory[copy["rank"]][copy["target"]] = copy["data"]
        transfer = self.transfers[copy["room"]]
        transfer["landed"] += 1
        if self.copies:
            self._begin()
        if copy["is_last"] and copy["rank"] == world.ranks - 1:
            world.hand_metadata(copy["aux"], transfer["aux"])
        is_done = transfer["is_whole"] and transfer["landed"] == transfer["parts"]
        world.landed(copy["room"], is_done)


def rows_of(blocks, side):
    """The row numbers of the blocks, which count a byte a row."""
    if not blocks:
        return np.zeros(0, dtype=np.int64)
    return np.concatenate([np.arange(block[side], block[side] + block[2]) for block in blocks])
