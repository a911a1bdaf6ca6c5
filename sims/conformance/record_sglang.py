#!/usr/bin/env python3
"""Records what the installed `sglang` package answers, as vector files for `kvseam conform`.

    python record_sglang.py --out vectors       writes plan, alloc, radix and radix-unified.jsonl
    kvseam conform vectors/plan.jsonl           checks the model against them

It calls the package's own transfer planner, allocators and both prefix trees on random input, on a
CPU. It needs `sglang` and what its modules import, torch first of all: some gigabytes. README.md
beside this file says what has been tried. The same seed gives the same calls.

A part that cannot be recorded is named with the reason, the others are still written, and the exit
code is 1.
"""

import argparse
import functools
import importlib
import inspect
import itertools
import json
import os
import random
import sys
import traceback
import types
from array import array
from pathlib import Path

# Without it the package looks for a GPU when its modules are imported.
os.environ.setdefault("SGLANG_USE_CPU_ENGINE", "1")
# Releases whose allocators have no path for a CPU run their own Triton kernels in its interpreter.
os.environ.setdefault("TRITON_INTERPRET", "1")


class NoKernels(types.ModuleType):
    """In the place of the compiled kernels, which need a GPU or a CPU build. None is called here."""

    __path__ = []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)

        def missing(*_args, **_kwargs):
            raise NotImplementedError(f"sgl_kernel.{name} is not there")

        return missing


def kernels():
    """Lets the package's modules be imported where its kernels cannot be loaded."""
    try:
        importlib.import_module("sgl_kernel")
    except (ImportError, OSError):
        sys.modules["sgl_kernel"] = NoKernels("sgl_kernel")


def release():
    """The version of the package that is really imported, which need not be the installed one."""
    return importlib.import_module("sglang.version").__version__


POLICIES = ["lru", "lfu", "fifo", "mru", "filo", "priority", "slru"]


def write(path, lines):
    with open(path, "w", encoding="utf-8") as file:
        for line in lines:
            file.write(json.dumps(line, separators=(",", ":")) + "\n")
    print(f"{path}: {len(lines)} lines")


# The planner ---------------------------------------------------------------------------------------


def planner_input(rng):
    """One call, near the edges: lists that fit, or are a page or two off."""
    page = rng.choice([1, 2, 4, 16, 32, 64])
    ranks = rng.choice([1, 2, 3, 4, 8, 16])
    virtual = page * ranks
    prefix = virtual * rng.randrange(4)
    if rng.random() < 0.15:
        prefix += rng.randrange(virtual)
    offset = rng.choice([0, 0, rng.randrange(2 * ranks), rng.randrange(40)])
    sources = rng.randrange(0, 1 + min(24, 256 // page + 2))
    held = sources * page
    tokens = rng.choice([None, held, held - rng.randrange(page), rng.randrange(held + 1)])
    if rng.random() < 0.1:
        tokens = rng.choice([held + 1, held + page, -1, -page, 0])
    count = held if tokens is None else max(tokens, 0)
    needed = -(-(offset * page + count) // virtual)
    targets = max(0, needed + rng.choice([0, 0, 0, 1, -1, -2]))
    return {
        "page_size": page,
        "dcp_size": ranks,
        "dcp_rank": rng.randrange(ranks),
        "src_page_offset": offset,
        "decode_prefix_len": prefix,
        "num_kv_tokens": tokens,
        "src_pages": rng.sample(range(1, 200), sources),
        "dst_pages": rng.sample(range(1, 400), targets),
    }


def planner_answer(build, call):
    """What the planner answers, and under which of the two revisions' keys it belongs."""
    import numpy

    try:
        plan = build(
            numpy.array(call["src_pages"], dtype=numpy.int32),
            numpy.array(call["dst_pages"], dtype=numpy.int32),
            physical_page_size=call["page_size"],
            dcp_size=call["dcp_size"],
            dcp_rank=call["dcp_rank"],
            src_page_offset=call["src_page_offset"],
            decode_prefix_len=call["decode_prefix_len"],
            num_kv_tokens=call["num_kv_tokens"],
        )
    except (ValueError, IndexError) as error:
        return {"error": {"type": type(error).__name__, "message": str(error)}}
    if hasattr(plan, "draft_src_token_indices"):
        rows = {
            "src": plan.target_src_token_indices,
            "dst": plan.target_dst_token_indices,
            "draft_src": plan.draft_src_token_indices,
            "draft_dst": plan.draft_dst_token_indices,
        }
    else:
        rows = {"src": plan.src_token_indices, "dst": plan.dst_token_indices}
    return {"ok": {name: row.tolist() for name, row in rows.items()}}


def record_planner(rng, count):
    module = importlib.import_module("sglang.srt.disaggregation.common.utils")
    build = module.build_dcp_token_transfer_plan
    # The revisions are known by the rows that their plans have.
    fields = module.DCPTokenTransferPlan.__dataclass_fields__
    key = "sglang_0_5_23" if "draft_src_token_indices" in fields else "sglang_0_5_17"
    lines = []
    for _ in range(count):
        call = planner_input(rng)
        lines.append({"input": call, key: planner_answer(build, call)})
    return lines


# The allocators ------------------------------------------------------------------------------------


def accepted(function, arguments):
    """Those of the arguments that this release's function knows."""
    known = inspect.signature(function).parameters
    return {name: value for name, value in arguments.items() if name in known}


def allocator_class(page):
    """Page size 1 has an allocator of its own."""
    name = "PagedTokenToKVPoolAllocator" if page > 1 else "TokenToKVPoolAllocator"
    for module in ["paged" if page > 1 else "token", ""]:
        path = "sglang.srt.mem_cache.allocator" + (f".{module}" if module else "")
        try:
            return getattr(importlib.import_module(path), name)
        except (ModuleNotFoundError, AttributeError):
            continue
    raise ImportError(f"no {name} in sglang.srt.mem_cache.allocator")


class PaddedKernel:
    """A kernel of an allocator that finds free memory behind the list of free pages, as it does on a
    GPU: releases before 0.5.23 launch it before they know that the list is long enough."""

    def __init__(self, kernel, position):
        self.kernel, self.position = kernel, position

    def __getitem__(self, grid):
        def launch(*args):
            import torch

            args = list(args)
            pages = args[self.position]
            args[self.position] = torch.cat((pages, torch.zeros(4096, dtype=pages.dtype)))
            self.kernel[grid](*args)

        return launch


def pad_kernels(allocator):
    module = sys.modules[allocator.__module__]
    for name, position in [("alloc_extend_kernel", 3), ("alloc_decode_kernel", 2)]:
        kernel = getattr(module, name, None)
        if kernel is not None and not isinstance(kernel, PaddedKernel):
            setattr(module, name, PaddedKernel(kernel, position))


class Requests:
    """The rows of the requests that an allocator serves."""

    def __init__(self):
        self.rows = {}
        self.next = 1

    def new(self):
        label = self.next
        self.next += 1
        return label


def rows_of(answer):
    return None if answer is None else answer.tolist()


def extend(rng, pool, requests, page):
    import torch

    grown = [label for label in requests.rows if rng.random() < 0.3][:3]
    labels = grown + [requests.new() for _ in range(rng.randrange(0 if grown else 1, 3))]
    prefix = [len(requests.rows.get(label, [])) for label in labels]
    length = [had + rng.randrange(1, 4 * page + 2) for had in prefix]
    last = [requests.rows[label][-1] if label in requests.rows else -1 for label in labels]
    tensors = {
        "prefix_lens": torch.tensor(prefix, dtype=torch.int64),
        "prefix_lens_cpu": torch.tensor(prefix, dtype=torch.int64),
        "seq_lens": torch.tensor(length, dtype=torch.int64),
        "seq_lens_cpu": torch.tensor(length, dtype=torch.int64),
        "last_loc": torch.tensor(last, dtype=torch.int64),
        "extend_num_tokens": sum(length) - sum(prefix),
    }
    rows = rows_of(pool.alloc_extend(**accepted(pool.alloc_extend, tensors)))
    if rows is not None:
        left = iter(rows)
        for label, had, now in zip(labels, prefix, length):
            new = list(itertools.islice(left, now - had))
            requests.rows[label] = requests.rows.get(label, []) + new
    return {
        "op": "extend",
        "requests": labels,
        "prefix_lens": prefix,
        "seq_lens": length,
        "last_rows": last,
        "rows": rows,
    }


def decode(rng, pool, requests, _page):
    import torch

    labels = [label for label in requests.rows if rng.random() < 0.6] or list(requests.rows)[:1]
    if not labels:
        return None
    length = [len(requests.rows[label]) + 1 for label in labels]
    last = [requests.rows[label][-1] for label in labels]
    tensors = {
        "seq_lens": torch.tensor(length, dtype=torch.int64),
        "seq_lens_cpu": torch.tensor(length, dtype=torch.int64),
        "last_loc": torch.tensor(last, dtype=torch.int64),
    }
    rows = rows_of(pool.alloc_decode(**accepted(pool.alloc_decode, tensors)))
    if rows is not None:
        for label, row in zip(labels, rows):
            requests.rows[label].append(row)
    return {
        "op": "decode",
        "requests": labels,
        "seq_lens": length,
        "last_rows": last,
        "rows": rows,
    }


def alloc(rng, pool, requests, page):
    label = requests.new()
    tokens = page * rng.randrange(1, 6)
    rows = rows_of(pool.alloc(tokens))
    if rows is not None:
        requests.rows[label] = list(rows)
    return {"op": "alloc", "request": label, "tokens": tokens, "rows": rows}


def free(rng, pool, requests, _page):
    import torch

    if not requests.rows:
        return None
    label = rng.choice(list(requests.rows))
    rows = requests.rows.pop(label)
    pool.free(torch.tensor(rows, dtype=torch.int64))
    return {"op": "free", "request": label, "rows": rows}


def record_allocator(rng):
    import torch

    # The package's kernels take powers of two only.
    page = rng.choice([1, 2, 4, 8, 16])
    pages = rng.choice([4, 10, 20, 40])
    need_sort = rng.random() < 0.5
    allocator = allocator_class(page)
    pad_kernels(allocator)
    pool = allocator(
        **accepted(
            allocator.__init__,
            {
                "size": page * pages,
                "page_size": page,
                "dtype": torch.bfloat16,
                "device": "cpu",
                "kvcache": None,
                "need_sort": need_sort,
            },
        )
    )
    requests = Requests()
    kinds = [alloc, free] if page == 1 else [extend, decode, extend, alloc, free, free]
    ops = []
    for _ in range(rng.randrange(8, 40)):
        op = rng.choice(kinds)(rng, pool, requests, page)
        if op is not None:
            ops.append({**op, "available": int(pool.available_size())})
    return {
        "allocator": "paged" if page > 1 else "token",
        "need_sort": need_sort,
        "page_size": page,
        "pages": pages,
        "ops": ops,
    }


def record_allocators(rng, count):
    return [record_allocator(rng) for _ in range(count)]


# The prefix trees ----------------------------------------------------------------------------------


class Freed:
    """In an allocator's place: keeps what the tree frees."""

    device = "cpu"

    def __init__(self, page):
        self.page_size = page
        self.leaves = []

    def available_size(self):
        return 0

    def free(self, rows):
        self.leaves.append(rows.tolist())

    def free_segment(self, rows, *, start_pos):
        self.leaves.append(rows.tolist())

    def free_segments(self, segments):
        self.leaves.extend(rows.tolist() for rows, _start in segments)


class Tree:
    """One `RadixCache` and the calls that are made on it."""

    def __init__(self, rng, policy, page, tail=0):
        self.rng, self.page, self.tail = rng, page, tail
        self.base = importlib.import_module("sglang.srt.mem_cache.base_prefix_cache")
        self.module = importlib.import_module("sglang.srt.mem_cache.radix_cache")
        self.freed = Freed(page)
        self.cache = self.build(policy)
        self.locks = {}
        self.labels = itertools.count(1)
        self.next_page = 1

    def build(self, policy):
        # One logical clock in the place of the machine's, so that the same seed gives the same file.
        clock = itertools.count(1)
        tick = lambda: float(next(clock))  # noqa: E731
        self.module.time = types.SimpleNamespace(monotonic=tick, perf_counter=tick)
        return self.module.RadixCache(self.params(policy))

    def params(self, policy, **more):
        params = importlib.import_module("sglang.srt.mem_cache.cache_init_params")
        arguments = {
            "disable": False,
            "req_to_token_pool": None,
            "token_to_kv_pool_allocator": self.freed,
            "page_size": self.page,
            "eviction_policy": policy,
            "eviction_policy_config": {"threshold": self.tail} if self.tail else None,
            **more,
        }
        return params.CacheInitParams(**accepted(params.CacheInitParams, arguments))

    def key(self):
        letters = self.rng.choice([2, 3, 50])
        return [self.rng.randrange(letters) for _ in range(self.rng.randrange(1, 6 * self.page))]

    def radix_key(self, key):
        return self.module.RadixKey(array("q", key), None)

    def rows(self, matched):
        """The rows of a match, which later releases give by the node they end at."""
        if hasattr(matched, "device_indices"):
            return matched.device_indices.tolist()
        return self.cache.path_device_indices(matched.last_device_node).tolist()

    def lookup(self, key):
        return self.cache.match_prefix(self.base.MatchPrefixParams(key=self.radix_key(key)))

    def match(self):
        key = self.key()
        return {"op": "match", "key": key, "rows": self.rows(self.lookup(key))}

    def insert(self):
        import torch

        key = self.key()
        pages = len(key) // self.page
        rows = list(range(self.next_page * self.page, (self.next_page + pages) * self.page))
        self.next_page += pages
        priority = self.rng.randrange(3)
        value = torch.tensor(rows, dtype=torch.int64)
        result = self.cache.insert(self.insertion(key, value, priority))
        return {
            "op": "insert",
            "key": key,
            "rows": rows,
            "priority": priority,
            "matched": int(result.prefix_len),
        }

    def insertion(self, key, value, priority):
        return self.base.InsertParams(key=self.radix_key(key), value=value, priority=priority)

    def hold(self, node):
        """Locks a node; returns what `release` needs."""
        self.cache.inc_lock_ref(node)
        return node

    def release(self, held):
        self.cache.dec_lock_ref(held)

    def lock(self):
        key = self.key()
        matched = self.lookup(key)
        label = next(self.labels)
        self.locks[label] = self.hold(matched.last_device_node)
        return {"op": "lock", "key": key, "lock": label, "matched": len(self.rows(matched))}

    def unlock(self):
        if not self.locks:
            return None
        label = self.rng.choice(list(self.locks))
        self.release(self.locks.pop(label))
        return {"op": "unlock", "lock": label}

    def evict(self):
        self.freed.leaves = []
        tokens = self.rng.randrange(1, 6 * self.page)
        result = self.cache.evict(self.base.EvictParams(num_tokens=tokens))
        return {
            "op": "evict",
            "tokens": tokens,
            "evicted": int(result.num_tokens_evicted),
            "freed": self.freed.leaves,
        }

    def sizes(self):
        return {
            "evictable": int(self.cache.evictable_size()),
            "protected": int(self.cache.protected_size()),
        }


class UnifiedTree(Tree):
    """The same of a `UnifiedRadixCache` that holds full attention only, in its Python core: what
    0.5.23 builds for KV."""

    def build(self, policy):
        unified = importlib.import_module("sglang.srt.mem_cache.unified_radix_cache")
        kinds = importlib.import_module("sglang.srt.mem_cache.unified_cache.component_type")
        more = {"tree_components": (kinds.ComponentType.FULL,), "tree_core_backend": "python"}
        return unified.UnifiedRadixCache(self.params(policy, **more))

    def insertion(self, key, value, priority):
        # This tree gives back what is there already; a long prefix of the caller's own is kept.
        return self.base.InsertParams(
            key=self.radix_key(key).page_aligned(self.page),
            value=value,
            priority=priority,
            prev_prefix_len=10**6,
        )

    def hold(self, node):
        return node, self.cache.inc_lock_ref(node).to_dec_params()

    def release(self, held):
        self.cache.dec_lock_ref(*held)


def record_tree(tree_class, rng, policy, *, tails=False):
    page = rng.choice([1, 1, 2, 4])
    tail = rng.randrange(1, 4 * page) if tails else 0
    tree = tree_class(rng, policy, page, tail)
    kinds = [tree.match, tree.insert, tree.insert, tree.insert, tree.lock, tree.unlock, tree.evict]
    ops = []
    for _ in range(rng.randrange(8, 40)):
        op = rng.choice(kinds)()
        if op is not None:
            ops.append({**op, **tree.sizes()})
    more = {"tail_tokens": tail} if tail else {}
    return {"policy": policy, "page_size": page, **more, "ops": ops}


def record_trees(tree_class, rng, count):
    policies = itertools.islice(itertools.cycle(POLICIES), count)
    return [record_tree(tree_class, rng, policy) for policy in policies]


def record_tails(rng, count):
    """Trees under the policy that is given a number, which 0.5.21 was the first to have."""
    return [record_tree(UnifiedTree, rng, "tlru", tails=True) for _ in range(count)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="folder for the files")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--plan", type=int, default=1500, help="planner calls, a line each")
    parser.add_argument("--alloc", type=int, default=120, help="allocators, a line each")
    parser.add_argument("--radix", type=int, default=210, help="radix trees, a line each, of both")
    parser.add_argument("--tlru", type=int, default=90, help="trees under tlru, a line each")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    kernels()
    print(f"sglang {release()}", file=sys.stderr)
    # Each has a stream of its own, so that leaving one out does not change the others. Both trees
    # have the same, so that what is asked of one is asked of the other.
    recorders = [
        ("plan", "plan", record_planner, args.plan),
        ("alloc", "alloc", record_allocators, args.alloc),
        ("radix", "radix", functools.partial(record_trees, Tree), args.radix),
        ("radix-unified", "radix", functools.partial(record_trees, UnifiedTree), args.radix),
        ("radix-tlru", "radix-tlru", record_tails, args.tlru),
    ]
    left_out = []
    for name, stream, record, count in recorders:
        if count == 0:
            continue
        try:
            lines = record(random.Random(f"{args.seed} {stream}"), count)
        except Exception:  # Whatever a release raises, the other parts are still wanted.
            traceback.print_exc()
            left_out.append(name)
            continue
        write(args.out / f"{name}.jsonl", lines)
    if left_out:
        print(f"left out: {', '.join(left_out)}", file=sys.stderr)
    return 1 if left_out else 0


if __name__ == "__main__":
    sys.exit(main())
