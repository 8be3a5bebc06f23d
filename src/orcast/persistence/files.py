"""State files: arrays and plain data, without pickle, written beside and then renamed."""

from __future__ import annotations

import errno
import json
import math
import os
import secrets
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orcast import __version__, limits
from orcast.persistence.migrations import migrated

MAGIC = b"ORCAST\x00\n"
VERSION = 3
KINDS = {"f8": np.dtype("<f8"), "i8": np.dtype("<i8")}
# What a file that is not a state of the kind leads to.
UNREADABLE = (
    AssertionError,
    AttributeError,
    IndexError,
    KeyError,
    MemoryError,
    OverflowError,
    RecursionError,
    TypeError,
    ValueError,
)


def write(path: str | os.PathLike[str], header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
    """Write a state file; a reader sees the old one or the new one, never a part.

    Layout: magic, format and lengths (little endian), checksum, JSON header, raw arrays.
    """
    described = {name: ["i8" if array.dtype.kind == "i" else "f8", list(array.shape)] for name, array in arrays.items()}
    text = json.dumps({**header, "writer": __version__, "arrays": described}, allow_nan=False).encode()
    limits.check("header_bytes", len(text))
    # views, not copies: a state may be large
    body = [
        np.ascontiguousarray(array, dtype=KINDS[str(described[name][0])]).reshape(-1).view(np.uint8).data
        for name, array in arrays.items()
    ]
    checksum = zlib.crc32(text, _first_sum(VERSION))
    for part in body:
        checksum = zlib.crc32(part, checksum)
    size = sum(part.nbytes for part in body)
    limits.check("file_bytes", len(text) + size)
    prefix = MAGIC + b"".join(number.to_bytes(8, "little") for number in (VERSION, len(text), size, checksum))
    target = Path(path).resolve()
    if target.exists() and not target.is_file():
        raise ValueError(f"expected a place for a state file, got what is not a file: {path}")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"expected a folder that exists, got {target.parent}")
    with naming(path), replacing(target) as beside, open(beside, "wb") as file:
        file.write(prefix + text)
        for part in body:
            file.write(part)
        file.flush()
        os.fsync(file.fileno())


def _first_sum(version: int) -> int:
    """What a checksum begins with: since format 3 it is also that of the format."""
    return version if version >= 3 else 0


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A new file beside another, whose place and permissions it takes when all went well."""
    target = Path(path).resolve()  # where a link leads
    permissions = target.stat().st_mode & 0o777 if target.exists() else None
    beside = target.with_name(f".{target.name}.{secrets.token_hex(4)}")  # a killed one is found by this name
    # the system takes off the umask: to read it is to change it for a moment, for all threads
    os.close(os.open(beside, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666 if permissions is None else 0o600))
    try:
        yield beside
        if permissions is not None:
            beside.chmod(permissions)
        os.replace(beside, target)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


@contextmanager
def naming(path: str | os.PathLike[str]) -> Iterator[None]:
    """Errors of the system that do not say which file they are about, as on a full disk, do so.

    >>> with naming("wind.orcast"):
    ...     raise OSError(28, "No space left on device")
    Traceback (most recent call last):
    OSError: [Errno 28] No space left on device: 'wind.orcast'
    """
    try:
        yield
    except OSError as reason:
        if reason.errno is None or (reason.filename is not None and reason.errno != errno.ENOSPC):
            raise
        raise OSError(reason.errno, reason.strerror, os.fspath(path)) from reason


def read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Read a state file, of this format or an older one, or say in one sentence why not."""
    if Path(path).exists() and not Path(path).is_file():
        raise ValueError(f"expected an orcast state file, got what is not a file: {path}")
    with naming(path):
        size = Path(path).stat().st_size
        _check_size("file_bytes", size, path)
        data = Path(path).read_bytes()
    start = len(MAGIC) + 32
    if not data.startswith(MAGIC):
        if MAGIC.startswith(data):
            raise ValueError(f"expected an orcast state file, got a truncated one: {path}")
        raise ValueError(f"expected an orcast state file, got something else: {path}")
    numbers = [int.from_bytes(data[i : i + 8], "little") for i in range(len(MAGIC), start, 8)]
    version, text_size, body_size, checksum = numbers
    if len(data) >= len(MAGIC) + 8 and version > VERSION:
        raise ValueError(
            f"expected a state file of format {VERSION} or older, got {version} (a newer orcast wrote it): {path}"
        )
    if len(data) >= len(MAGIC) + 8 and version < 1:
        raise ValueError(f"expected a state file of format 1 or newer, got {version}: {path}")
    if len(data) != start + text_size + body_size:
        raise ValueError(
            f"expected a state file of {start + text_size + body_size} bytes, got {len(data)} (truncated?): {path}"
        )
    _check_size("header_bytes", text_size, path)
    content = memoryview(data)[start:]
    if zlib.crc32(content, _first_sum(version)) != checksum:
        raise ValueError(f"expected an intact state file, got one whose checksum does not match: {path}")
    try:
        header: dict[str, Any] = limits.parsed_json(bytes(content[:text_size]).decode())
        arrays = _unpack(header.pop("arrays"), content[text_size:])
    except UNREADABLE as reason:
        raise ValueError(f"expected a readable state file, got one that is not ({reason}): {path}") from reason
    try:
        return migrated(header, arrays, version, VERSION)
    except UNREADABLE as reason:
        raise unusable(reason, path) from reason


def _check_size(name: str, count: int, path: str | os.PathLike[str]) -> None:
    try:
        limits.check(name, count)
    except ValueError as reason:
        raise ValueError(f"{reason}: {path}") from None


def unusable(reason: BaseException, path: object = "") -> ValueError:
    """What is said of a state whose content led to an error.

    >>> unusable(KeyError("rounds"), "wind.orcast")
    ValueError("expected a state that this version can use, got one that it cannot ('rounds'): wind.orcast")
    """
    where = f": {path}" if path else ""
    return ValueError(f"expected a state that this version can use, got one that it cannot ({reason}){where}")


def _unpack(described: dict[str, Any], body: memoryview) -> dict[str, NDArray[Any]]:
    arrays: dict[str, NDArray[Any]] = {}
    at = 0
    for name, (kind, shape) in described.items():
        dtype = KINDS[kind]
        if not all(isinstance(side, int) and 0 <= side <= len(body) for side in shape):
            raise ValueError(f"{name} has the shape {shape}")
        count = math.prod(shape)
        if at + count * dtype.itemsize > len(body):
            raise ValueError(f"{name} reaches beyond the end")
        values = np.frombuffer(body, dtype=dtype, count=count, offset=at).reshape(shape)
        arrays[name] = values.astype(dtype.newbyteorder("="))
        at += count * dtype.itemsize
    if at != len(body):
        raise ValueError(f"{len(body) - at} bytes are left over")
    return arrays
