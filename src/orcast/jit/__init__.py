"""Kernels at two speeds: their Python source at once, compiled code as soon as there is some.

A kernel is a plain Python function of numbers and arrays, marked by a decorator; kernels call each other as Python
functions do.  Python calls the entry kernels.  Each of them plays its source until its compiled code is in the cache,
which a process beside this one fills (see `orcast.jit.background`), and both give the same bits: kernels take
functions from `orcast.jit.ieee` instead of `math` and write powers as products, so that no operation is left whose
result the compiler may choose.

`ORCAST_KERNELS` says which: `auto`, `compiled` (compile now and wait for it) or `python`.
"""

from orcast.jit.entry import EntryKernel, Mode, entry_kernel, expect_rounds, many_rounds, mode, use
from orcast.jit.registry import compiled_only, kernel, kernel_part

__all__ = [
    "EntryKernel",
    "Mode",
    "compiled_only",
    "entry_kernel",
    "expect_rounds",
    "kernel",
    "kernel_part",
    "many_rounds",
    "mode",
    "use",
]
