"""The installed `sglang` package's own prefill and decode schedulers, in one process on a CPU.

`package` makes it importable, `servers` builds the two schedulers, `transfer` is the way of the KV
between them, `world` is the clock that drives them, `ablations` bends them where a difference is to
be attributed.
"""
