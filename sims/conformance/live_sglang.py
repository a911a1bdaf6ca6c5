#!/usr/bin/env python3
"""The driver of `kvseam conform --live` for the installed `sglang` package.

    kvseam conform --live 'python3 sims/conformance/live_sglang.py' --runs 100

Reads requests and writes answers as JSON lines on standard input and output; PROTOCOL.md beside
this file describes them. It runs the package's own prefill and decode schedulers on a CPU, under a
clock in ticks, and tells what they did. README.md says what has been tried.
"""

import argparse
import json
import logging
import os
import random
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from sglang_live import package  # noqa: E402

PROTOCOL = 1

STUBS = [
    "the model's forward pass (a row gets a number for its token with all before it)",
    "the KV tensors",
    "the network below the transfer worker, and the worker's thread",
    "the decode side's manager and receiver",
    "metrics, streams, tokenizer",
    "the overlapped event loops (the normal ones run), CUDA streams, the pack buffer's copies",
    "LoRA, HiCache, sliding windows, Mamba, speculative decoding, priorities",
]

CAN = {
    "calls": ["plan", "alloc", "radix"],
    "page_sizes": [1, 2, 3, 4, 8, 16, 32, 64],
    "ranks": [1, 2, 3, 4, 8],
    "caches": ["radix", "none"],
    "evictions": ["lru", "lfu", "fifo", "mru", "filo", "slru"],
    "admissions": ["first_come"],
    "aborts": True,
    "namespaces": True,
    "costs": False,
}

PLANTED = {
    "short_list": "decode leaves the last page out of the list that it sends to prefill",
    "swapped_rows": "the network swaps the first two rows of a copy",
}


class Driver:
    """Answers one message after the other."""

    def __init__(self, out, bent, planted):
        self.out, self.bent, self.planted = out, bent, planted
        self.version = package.version()
        self.group = package.prepare()

    def say(self, message):
        self.out.write(json.dumps(message, separators=(",", ":")) + "\n")
        self.out.flush()

    def answer(self, message):
        kinds = {"hello": self.hello, "scenario": self.scenario, "calls": self.calls}
        ((kind, body),) = message.items()
        kinds[kind](body)

    def hello(self, body):
        if body["protocol"] != PROTOCOL:
            self.say({"refused": f"protocol must be {PROTOCOL}, got {body['protocol']}"})
            return
        # Imported now, so that the first scenario's time is its own.
        from sglang_live import world  # noqa: F401

        self.say(
            {
                "hello": {
                    "protocol": PROTOCOL,
                    "engine": "sglang",
                    "version": self.version,
                    "can": CAN,
                    "stubs": STUBS,
                    "changed": sorted(self.bent) + ([self.planted] if self.planted else []),
                }
            }
        )

    def scenario(self, body):
        from sglang_live.world import World

        crashed, events = None, []
        try:
            world = World(body, self.group, self.bent, self.planted)
            events = world.events
            world.run()
        except Exception as error:  # noqa: BLE001  what the engine raises is an answer
            crashed = f"{type(error).__name__}: {error}"
        for event in events:
            self.say({"event": event})
        self.say({"done": {"crashed": crashed}})

    def calls(self, body):
        import record_sglang

        draw = {
            "plan": lambda rng: record_sglang.record_planner(rng, 1)[0],
            "alloc": record_sglang.record_allocator,
            "radix": lambda rng: record_sglang.record_tree(
                rng.choice([record_sglang.Tree, record_sglang.UnifiedTree]),
                rng,
                rng.choice(record_sglang.POLICIES),
            ),
        }
        rng = random.Random(f"{body['seed']} {body['kind']}")
        self.say({"answer": draw[body["kind"]](rng)})


def arguments():
    planted = "; ".join(f"{name}: {text}" for name, text in PLANTED.items())
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--as-modelled", default="", metavar="NAME,…",
        help="bends the engine to a simpler model, to attribute a difference. "
        + "; ".join(f"{name}: {text}" for name, text in package.BENDS.items()),
    )
    parser.add_argument(
        "--plant", choices=PLANTED, help=f"a fault, to see that it is found. {planted}"
    )
    return parser.parse_args()


def main():
    args = arguments()
    # The engine prints to standard output, which is for answers.
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    logging.disable(logging.CRITICAL)
    bent = [name for name in args.as_modelled.split(",") if name]
    try:
        if strange := sorted(set(bent) - set(package.BENDS)):
            known = ", ".join(package.BENDS)
            raise package.Unknown(f"--as-modelled must be of {known}, got {', '.join(strange)}")
        driver = Driver(out, bent, args.plant)
    except package.Unknown as unknown:
        out.write(json.dumps({"refused": str(unknown)}) + "\n")
        out.flush()
        return 2
    for line in sys.stdin:
        driver.answer(json.loads(line))
    return 0


if __name__ == "__main__":
    sys.exit(main())
