"""How kernels are compiled: once, cached on disk where that is possible.

The cache of numba knows a kernel by its own file and does not see that a kernel in another file has changed, which it
calls.  So compiled kernels lie in a folder that is named by a digest of the sources of all kernels.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from numba import njit
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.registry import CPUDispatcher

# Where kernels are, and the constants they use.
SOURCES = ("constants.py", "jit.py", "ledger.py", "*/kernels.py", "*/*_kernels.py", "engine/kernels/*.py")
# Folders of digests that are kept beside each other, so that two branches do not compile all over again in turn.
KEPT = 3


@cache
def digest() -> str:
    """A digest of the sources of all kernels; empty where there are none to read, as in an archive."""
    package = Path(__file__).parent
    found = hashlib.sha256()
    files = sorted({path for pattern in SOURCES for path in package.glob(pattern)})
    for path in files:
        found.update(path.relative_to(package).as_posix().encode() + b"\0" + path.read_bytes())
    return found.hexdigest()[:16] if files else ""


@cache
def folder_in(path: str) -> Path:
    """The folder of today's kernels in a cache; those used longest ago go."""
    folder = Path(path) / f"orcast-{digest()}"
    folder.mkdir(parents=True, exist_ok=True)
    folder.touch()
    others = sorted(Path(path).glob("orcast-*"), key=lambda other: other.stat().st_mtime, reverse=True)
    for other in others[KEPT:]:
        shutil.rmtree(other, ignore_errors=True)
    return folder


class KernelCache(FunctionCache):
    """The cache of a kernel: where numba would have it, in the folder of the digest."""

    def __init__(self, function: Callable[..., Any], suffix: str) -> None:
        super().__init__(function)
        stamp = digest() or self._impl.locator.get_source_stamp()
        if digest():
            self._cache_path = str(folder_in(self._cache_path))
        self._cache_file = IndexDataCacheFile(self._cache_path, self._impl.filename_base + suffix, stamp)

    def save_overload(self, sig: Any, data: Any) -> None:
        """Save a compiled kernel; another process may have removed the folder meanwhile."""
        Path(self._cache_path).mkdir(parents=True, exist_ok=True)
        super().save_overload(sig, data)


class KernelDispatcher(CPUDispatcher):
    """A kernel for kernels; called from Python it is compiled once more, with a way in."""

    entry: Any = None

    def __call__(self, *args: Any) -> Any:
        """The entry, made when it is first asked for."""
        if self.entry is None:
            self.entry = entry_kernel(self.py_func)
        return self.entry(*args)


def compiled(function: Callable[..., Any], suffix: str, **options: Any) -> Any:
    """Compile on the first call, with the cache if there is a place for it (a read-only install may have none)."""
    dispatcher: Any = njit(error_model="numpy", **options)(function)
    if dispatcher is not function:  # numba can be told not to compile
        with suppress(RuntimeError, OSError):
            dispatcher._cache = KernelCache(function, suffix)
    return dispatcher


def kernel(function: Callable[..., Any]) -> Any:
    """A kernel that kernels call: without a way in from Python, which can take longer to compile than the kernel."""
    dispatcher = compiled(function, "", no_cpython_wrapper=True, no_cfunc_wrapper=True)
    if dispatcher is not function:
        dispatcher.__class__ = KernelDispatcher
    return dispatcher


def kernel_part(function: Callable[..., Any]) -> Any:
    """A part of the kernels that call it, and compiled in its place: a call with many arrays would cost as much."""
    return njit(error_model="numpy", inline="always")(function)


def entry_kernel(function: Callable[..., Any]) -> Any:
    """A kernel that Python calls in every round."""
    return compiled(function, ".entry")


def python_source(dispatcher: Any) -> Any:
    """The Python function of a kernel."""
    return getattr(dispatcher, "py_func", dispatcher)
