"""Names of the `cython` module that uncompiled kernels use where Cython is not installed."""

from contextlib import nullcontext

compiled = False
nogil = nullcontext()
