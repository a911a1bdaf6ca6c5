"""The installed package: which release it is, and what stands in for what a CPU has not got.

Nothing of the engine is changed here. Importing this module imports torch, but not the engine.
"""

import importlib
import importlib.metadata
import os
import sys
import types
from unittest.mock import MagicMock

# Without it the package looks for a GPU when its modules are imported.
os.environ.setdefault("SGLANG_USE_CPU_ENGINE", "1")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("OMP_NUM_THREADS", "1")

# Releases whose interfaces this driver was written and tried against.
KNOWN = ["0.5.22", "0.5.23"]


# In what `ablations` can bend the engine.
BENDS = {
    "alloc_pages": "reservations take whole pages with `alloc`, not with `alloc_extend`",
    "no_activation_cache": "the prompt does not enter the decode tree at activation",
    "any_time": "decode reserves and activates during a step, too",
    "no_split": "no node of a tree ends at the prompt's end",
    "exact_evict": "no more is evicted than is needed",
    "plain_admission": "decode admission looks at the reserve alone, not at max_new_tokens",
    "no_refresh": "prefill does not touch the cached prefixes of prompts that wait",
    "failed_rooms_send": "prefill sends what it has computed of a request that was aborted",
}


class Unknown(Exception):
    """The installed release, or what was asked of the driver, is none of those that are known."""


def version():
    """The installed release, which must be a known one."""
    try:
        installed = importlib.metadata.version("sglang")
    except importlib.metadata.PackageNotFoundError:
        installed = "none"
    if installed not in KNOWN:
        known = ", ".join(KNOWN)
        raise Unknown(f"the installed sglang must be one of {known}, got {installed}")
    return installed


class NoKernels(types.ModuleType):
    """In the place of the compiled kernels, which need a GPU or a CPU build. None is called here."""

    __path__ = []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)

        def missing(*_args, **_kwargs):
            raise NotImplementedError(f"sgl_kernel.{name} is not there")

        return missing


def prepare():
    """Puts the stand-ins in place and returns the process group of this one process."""
    try:
        importlib.import_module("sgl_kernel")
    except (ImportError, OSError):
        sys.modules["sgl_kernel"] = NoKernels("sgl_kernel")
    for name in ["mooncake", "mooncake.engine"]:
        sys.modules.setdefault(name, MagicMock())
    import torch
    import torch.distributed as distributed

    torch.set_num_threads(1)
    if not distributed.is_initialized():
        store = distributed.HashStore()
        distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    return distributed.group.WORLD
