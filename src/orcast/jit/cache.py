"""Where compiled kernels are kept: a folder that is named by all that they depend on."""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from importlib import metadata
from pathlib import Path

# Where kernels are, and the constants they use.
SOURCES = ("constants.py", "ledger.py", "jit/*.py", "*/kernels.py", "*/*_kernels.py", "engine/kernels/*.py")
# Folders that are kept beside each other, so that two branches do not compile all over again in turn.
KEPT = 3
PACKAGE = Path(__file__).parents[1]


@cache
def digest() -> str:
    """A digest of the sources of all kernels, of what compiles them, and of the processor."""
    found = hashlib.sha256()
    for path in sorted({path for pattern in SOURCES for path in PACKAGE.glob(pattern)}):
        found.update(path.relative_to(PACKAGE).as_posix().encode() + b"\0" + path.read_bytes())
    versions = [metadata.version(name) for name in ("numba", "llvmlite", "numpy")]
    chosen = [value for name, value in sorted(os.environ.items()) if name.startswith("NUMBA_CPU")]
    found.update(repr((sys.implementation.cache_tag, versions, chosen, processor())).encode())
    return found.hexdigest()[:16]


def processor() -> str:
    """What tells one kind of processor from another."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith(("flags", "Features")):
                return platform.machine() + line
    return platform.machine() + platform.processor()


def places() -> Iterator[Path]:
    """Where a cache may be, the best first."""
    if chosen := os.environ.get("NUMBA_CACHE_DIR"):
        yield Path(chosen)
        return
    yield PACKAGE / "__pycache__"
    with contextlib.suppress(RuntimeError):  # no home
        home = Path.home()
        users = {"win32": home / "AppData/Local", "darwin": home / "Library/Caches"}.get(sys.platform, home / ".cache")
        yield Path(os.environ.get("XDG_CACHE_HOME", users)) / "orcast"


@cache
def folder() -> Path | None:
    """The folder of today's kernels, none where nothing can be written; those used longest ago go."""
    for place in places():
        found = place / f"orcast-{digest()}"
        try:
            found.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=found):
                found.touch()
        except OSError:
            continue
        for _, other in sorted(_used(place), reverse=True)[KEPT:]:
            shutil.rmtree(other, ignore_errors=True)
        return found
    return None


def _used(place: Path) -> Iterator[tuple[float, Path]]:
    """Folders of kernels, and when each was used; what only has a similar name is somebody else's."""
    for other in place.iterdir():
        if re.fullmatch("orcast-[0-9a-f]{16}", other.name):
            with contextlib.suppress(OSError):  # another process may remove it meanwhile
                yield other.stat().st_mtime, other


def read(key: str) -> bytes | None:
    """Compiled code, if there is any that is whole; also from a folder that cannot be written to."""
    for place in places():
        with contextlib.suppress(OSError):
            head, _, code = (place / f"orcast-{digest()}" / key).read_bytes().partition(b"\n")
            if head == _head(key, code):
                return code
    return None


def _head(key: str, code: bytes) -> bytes:
    """What code begins with in its file: whose it is, and a checksum."""
    return f"{key} {hashlib.sha256(code).hexdigest()}".encode()


def write(key: str, code: bytes) -> None:
    """Keep compiled code; whoever reads it sees all of it or nothing."""
    place = folder()
    if place is None:
        return
    place.mkdir(parents=True, exist_ok=True)
    partial = place / f"{key}.{os.getpid()}.partial"
    try:
        partial.write_bytes(_head(key, code) + b"\n" + code)
        os.replace(partial, place / key)
    finally:
        partial.unlink(missing_ok=True)


def remove_partial_files() -> None:
    """Remove what a compiler left that was stopped while it wrote; for the one that holds the lock."""
    place = folder()
    for partial in place.glob("*.partial") if place else ():
        partial.unlink(missing_ok=True)


@contextlib.contextmanager
def lock(name: str = "all", *, wait: bool) -> Iterator[bool]:
    """The right to compile something into the cache, and whether it was had; a process that ends, however, loses it."""
    place = folder()
    if place is None:
        yield True
        return
    try:
        place.mkdir(parents=True, exist_ok=True)
        opened = (place / f"{name}.lock").open("a+b")
    except OSError:  # the folder is gone, or cannot be written to any more
        yield wait
        return
    with opened as file:
        if not _acquire(file.fileno(), wait=wait):
            yield False
            return
        try:
            yield True
        finally:
            _release(file.fileno())


if sys.platform == "win32":
    import msvcrt
    import time

    def _acquire(number: int, *, wait: bool) -> bool:
        while True:
            try:
                os.lseek(number, 0, os.SEEK_SET)
                msvcrt.locking(number, msvcrt.LK_NBLCK, 1)
            except OSError:
                if not wait:
                    return False
                time.sleep(0.1)
            else:
                return True

    def _release(number: int) -> None:
        os.lseek(number, 0, os.SEEK_SET)
        msvcrt.locking(number, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _acquire(number: int, *, wait: bool) -> bool:
        try:
            fcntl.flock(number, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True

    def _release(number: int) -> None:
        fcntl.flock(number, fcntl.LOCK_UN)
