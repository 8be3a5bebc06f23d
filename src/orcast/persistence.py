"""State files: plain data and arrays in binary, without pickle.

Format 1 is a mark, a CRC-32 of the rest, the length of the header, the header, and the numbers of all arrays, first
floats, then integers. The header is JSON: format, version of the writer, class and options of the state, and the name,
type and shape of each array.
"""

from __future__ import annotations

import errno
import json
import math
import os
import secrets
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from orcast import __version__, limits
from orcast.engine import Committee, Equilibrium, Oracle
from orcast.locks import file_lock
from orcast.payoffs import Payoff, payoff_from_plain
from orcast.serialise import SettledIds
from orcast.spaces import Space, space_from_plain
from orcast.validation import short

if TYPE_CHECKING:
    from orcast.forecaster import Forecaster
    from orcast.pool import Pool

Header = dict[str, Any]
Arrays = dict[str, NDArray[Any]]
Game = TypeVar("Game", bound="Forecaster")

FORMAT = 1
MAGIC = b"\x93orcast\n"
START = len(MAGIC) + 8  # of the header: after the checksum and the length, 4 bytes each
KINDS = {"f8": np.dtype("<f8"), "i8": np.dtype("<i8")}
# Exceptions that the content of a file can lead to, once it is parsed.
UNREADABLE = (
    *(AssertionError, AttributeError, IndexError, KeyError),
    *(MemoryError, OverflowError, RecursionError, TypeError, ValueError),
)
# Characters of a reason that a message quotes: it may hold bytes of the file.
MOST_REASON = 300
# Arguments of `load`: objects with functions, which are not saved and have to be passed again.
GIVEN = ("payoff", "space", "oracle", "pool")
PAPER_ORACLES = ("BinaryRoot", "LogitPath", "Orca", "TwoCells")


# --- files


def encode(header: Header, arrays: Arrays) -> bytes:
    """Encode a state, with a checksum."""
    described = {name: ["i8" if array.dtype.kind == "i" else "f8", list(array.shape)] for name, array in arrays.items()}
    about = {"format": FORMAT, "writer": __version__, **header, "arrays": described}
    text = json.dumps(about, allow_nan=False).encode()
    limits.check("header_bytes", len(text))
    limits.check("file_bytes", len(text) + sum(8 * array.size for array in arrays.values()))
    numbers = [
        np.ascontiguousarray(arrays[name], dtype=dtype).tobytes()
        for wanted, dtype in KINDS.items()
        for name, (kind, _) in described.items()
        if kind == wanted
    ]
    body = b"".join([len(text).to_bytes(4, "little"), text, *numbers])
    return MAGIC + zlib.crc32(body).to_bytes(4, "little") + body


def write(path: str | os.PathLike[str], header: Header, arrays: Arrays) -> None:
    """Write a state file; a reader sees the old file or the new one, never a partial one."""
    _write_bytes(path, encode(header, arrays))


def write_over(path: str | os.PathLike[str], data: bytes, known: bytes | None) -> None:
    """Write a state file in place of one that begins with `known`; refuse if another process saved it since."""
    if not Path(path).resolve().parent.is_dir() or Path(path).is_dir():
        _write_bytes(path, data)  # raises the error with the path
    with file_lock(path):
        if known is not None and Path(path).is_file():
            with open(path, "rb") as file:
                if file.read(START) != known:
                    raise ValueError(
                        "expected the state file as this recalibrator loaded or saved it, got one that another "
                        f"process saved since: {path} (load it again, or overwrite=True)"
                    )
        _write_bytes(path, data)


def _write_bytes(path: str | os.PathLike[str], data: bytes) -> None:
    target = Path(path).resolve()
    if target.exists() and not target.is_file():
        raise ValueError(f"expected the path of a state file, got something else: {path}")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"expected an existing folder, got {target.parent}")
    with naming(path):
        with replacing(target) as beside, open(beside, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        flush_folder(target.parent)


def flush_folder(path: Path) -> None:
    """Flush a folder to disk, so that a renamed file survives a loss of power."""
    if sys.platform != "win32":
        folder = os.open(path, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a new file that replaces another, with its permissions, at the end of the block unless it raises."""
    target = Path(path).resolve()  # follows links
    permissions = target.stat().st_mode & 0o777 if target.exists() else None
    beside = target.with_name(f".{target.name}.{secrets.token_hex(4)}")  # recognisable after a killed process
    # created by the system, because reading the umask changes it for a moment, in all threads
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
    """Add the file name to system errors that lack it, as on a full disk."""
    try:
        yield
    except OSError as reason:
        if reason.errno is None or (reason.filename is not None and reason.errno != errno.ENOSPC):
            raise
        raise OSError(reason.errno, reason.strerror, os.fspath(path)) from reason


def read(path: str | os.PathLike[str]) -> tuple[Header, Arrays]:
    """Read the header and the arrays of a state file; raises ValueError for every other content."""
    header, arrays, _ = read_all(path)
    return header, arrays


def read_all(path: str | os.PathLike[str]) -> tuple[Header, Arrays, bytes]:
    """Header, arrays and bytes of a state file."""
    if Path(path).exists() and not Path(path).is_file():
        raise ValueError(f"expected an orcast state file, got something else: {path}")
    try:
        with naming(path):
            limits.check("file_bytes", Path(path).stat().st_size)
            data = Path(path).read_bytes()
        return *decode(data), data
    except ValueError as reason:
        raise ValueError(f"{reason}: {path}") from reason


def decode(data: bytes) -> tuple[Header, Arrays]:
    """Decode a state; never allocates more than the data contains."""
    if not data.startswith(MAGIC):
        what = "a truncated one" if MAGIC.startswith(data) else "something else"
        raise ValueError(f"expected an orcast state file, got {what}")
    if zlib.crc32(data[len(MAGIC) + 4 :]).to_bytes(4, "little") != data[len(MAGIC) : len(MAGIC) + 4]:
        raise ValueError("expected a whole state file, got a truncated or damaged one")
    end = START + int.from_bytes(data[START - 4 : START], "little")
    limits.check("header_bytes", end - START)
    try:
        header = limits.parsed_json(data[START:end].decode())
        version, writer = header.pop("format"), header.get("writer")
    except Exception as reason:
        raise ValueError(f"expected an intact state file, got a damaged one ({str(reason)[:MOST_REASON]})") from reason
    if version != FORMAT:
        raise ValueError(
            f"expected a state file of format {FORMAT}, got format {short(version)} of orcast {short(writer)}: "
            "load it with that version"
        )
    try:
        return header, _cut(header.pop("arrays"), data[end:])
    except UNREADABLE as reason:
        raise ValueError(f"expected a readable state file, got an unreadable one ({reason})") from reason


def _cut(described: dict[str, Any], numbers: bytes) -> Arrays:
    """Split the numbers of all arrays into arrays by name."""
    arrays: Arrays = dict.fromkeys(described, np.empty(0))
    at = 0
    for wanted, dtype in KINDS.items():
        for name, (kind, shape) in described.items():
            if kind not in KINDS or not all(isinstance(side, int) and 0 <= side <= len(numbers) for side in shape):
                raise ValueError(f"{name} has the kind {short(kind)} and the shape {short(shape)}")
            if kind == wanted:
                # raises if numbers are missing
                own = np.frombuffer(numbers, dtype, math.prod(shape), at) if math.prod(shape) else np.empty(0, dtype)
                arrays[name] = own.reshape(shape).astype(dtype.newbyteorder("="))
                at += own.nbytes
    if at != len(numbers):
        raise ValueError("numbers of no array remain")
    return arrays


def unusable(reason: BaseException, path: object = "") -> ValueError:
    """Create the error for a state whose content led to another error."""
    where = f": {path}" if path else ""
    text = str(reason)[:MOST_REASON]
    return ValueError(f"expected a state that this version can use, got an invalid one ({text}){where}")


@contextmanager
def reading(source: bytes | str | os.PathLike[str], owner: str) -> Iterator[tuple[Header, Arrays]]:
    """Yield the header and arrays of a file or of bytes of one class; errors of their content name the file."""
    header, arrays = decode(source) if isinstance(source, bytes) else read(source)
    path = "" if isinstance(source, bytes) else source
    if header.get("class") != owner:
        where = f": {path}" if path else ""
        raise ValueError(f"expected the state of a {owner}, got that of a {header.get('class')}{where}")
    try:
        yield header, arrays
    except UNREADABLE as reason:
        raise unusable(reason, path) from reason


# --- recalibrators


def configuration(recal: Forecaster, owner: str) -> Header:
    """Options of a recalibrator as plain data."""
    return {
        "class": owner,
        "space": recal.space.to_plain(),
        "payoff": recal.payoff.to_plain(),
        "oracle": recal.oracle.to_plain(),
        "memory": recal.memory,
        "experts": list(recal.experts),
        "sizes": getattr(recal.engine, "sizes", None),
        "outside": recal.outside,
        "max_pending": recal.max_pending,
        "randomised": recal.randomised,
        "seasons": list(recal.seasons),
        "mode": recal.mode,
    }


def state_of(recal: Forecaster, owner: str) -> tuple[Header, Arrays]:
    """Copy a recalibrator's state into a header of plain data and named arrays, under the name of its class."""
    with recal.lock:
        rounds, pending = recal.rounds.to_plain()
        arrays: Arrays = {f"memory/{name}": array.copy() for name, array in recal.engine.arrays().items()}
        arrays |= {f"pending/{name}": array.copy() for name, array in pending.items()}
        arrays |= {f"monitor/{side}": row.copy() for side, row in enumerate(recal.rounds.monitor_rows())}
        arrays["settled"] = recal.settled.hashes()
        header = {
            **configuration(recal, owner),
            "pooled": recal.pool and recal.pool.told(),
            "rounds": rounds,
        }
    return header, arrays


def recal_from(
    header: Header,
    arrays: Arrays,
    owner: str,
    *,
    cls: type[Game],
    path: object = "",
    payoff: Payoff | None = None,
    space: Space | None = None,
    oracle: Oracle | None = None,
    pool: Pool | None = None,
) -> Game:
    """Rebuild the recalibrator of a state; raises ValueError, with the path if known, for an invalid state."""
    where = f": {path}" if path else ""
    if header.get("class") != owner:
        raise ValueError(f"expected the state of a {owner}, got that of a {header.get('class')}{where}")
    if bool(header.get("pooled")) != (pool is not None):
        was, got = ("in a pool", "none") if pool is None else ("in no pool", repr(pool))
        raise ValueError(f"expected pool= as the recalibrator was saved, {was}, got {got}")
    try:
        recal = made_from(header, cls=cls, payoff=payoff, space=space, oracle=oracle, pool=pool)
        restore(recal, header, arrays)
    except UNREADABLE as reason:
        if _asks_the_user(reason):
            raise
        raise unusable(reason, path) from reason
    return recal


def made_from(
    header: Header,
    *,
    cls: type[Game],
    payoff: Payoff | None = None,
    space: Space | None = None,
    oracle: Oracle | None = None,
    pool: Pool | None = None,
) -> Game:
    """Make a game from its `configuration`; it has no rounds."""
    experts = header["experts"]
    if not (isinstance(experts, list) and all(isinstance(name, str) for name in experts)):
        raise TypeError(f"experts are names, not {short(experts)}")
    if len(set(experts)) < len(experts) or not experts:
        raise ValueError(f"experts have different names, not {short(experts)}")
    optional: dict[str, Any] = {"seasons": header["seasons"]} if header["seasons"] else {}
    if pool is not None:
        optional["pool"] = pool
    recal = cls(
        as_saved(space, header["space"], space_from_plain, "space"),
        as_saved(payoff, header["payoff"], payoff_from_plain, "payoff"),
        oracle=as_saved(oracle, header["oracle"], oracle_from_plain, "oracle"),
        memory=header["memory"],
        outside=header["outside"],
        max_pending=header["max_pending"],
        randomised=header["randomised"],
        mode=header["mode"],
        **optional,
    )
    recal.begin(tuple(experts), header["sizes"])
    return recal


def restore(recal: Forecaster, header: Header, arrays: Arrays) -> None:
    """Restore the arrays and rounds of a state; after an error the recalibrator must not be used."""
    recal.engine.restore(inside(arrays, "memory/"))
    if recal.pool is not None and not recal.pool.follows(*header["pooled"]):
        text = "expected pool= with the pool of the saved recalibrator, or a later state of it, got"
        raise ValueError(f"{text} {recal.pool!r}")
    recal.rounds.from_plain(header["rounds"], inside(arrays, "pending/"))
    monitors = inside(arrays, "monitor/")
    recal.rounds.restore_monitors([monitors[str(side)] for side in range(len(monitors))])
    if arrays["settled"].dtype != np.int64 or arrays["settled"].ndim != 1:
        raise ValueError("the settled ids are not whole numbers")
    recal.settled = SettledIds(arrays["settled"])


def inside(arrays: Arrays, prefix: str) -> Arrays:
    """Select the arrays whose names begin with a prefix, and remove the prefix."""
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def oracle_from_plain(data: dict[str, Any]) -> Oracle:
    """Rebuild an oracle from its plain form."""
    import orcast.paper

    options = dict(data)
    kind = str(options.pop("kind", None))
    ours: dict[str, Callable[..., Oracle]] = {"Committee": Committee, "Equilibrium": Equilibrium}
    if kind not in ours and kind not in PAPER_ORACLES:
        raise ValueError(f"expected a known oracle in the state, got {kind!r}")
    make: Callable[..., Oracle] = ours[kind] if kind in ours else getattr(orcast.paper, kind)
    return make(**options)


def as_saved(given: Any, saved: dict[str, Any], read: Callable[[dict[str, Any]], Any], what: str) -> Any:
    """Return the saved object, or the passed one if its configuration is equal."""
    if given is None:
        return read(saved)
    other = json.loads(json.dumps(given.to_plain()))
    if other != saved:
        where, theirs, ours = _difference(saved, other, what)
        raise ValueError(f"expected the same {what} as was saved: {where} was {short(theirs)}, got {short(ours)}")
    return given


def _asks_the_user(reason: BaseException) -> bool:
    """Separate errors about arguments of `load` from errors about the file."""
    return str(reason).startswith("expected the same") or any(f" {name}= " in str(reason) for name in GIVEN)


def _difference(saved: Any, given: Any, where: str) -> tuple[str, Any, Any]:
    """Find the first key with different values, and both values."""
    while isinstance(saved, dict) and isinstance(given, dict):
        key = next(key for key in [*saved, *given] if saved.get(key) != given.get(key))
        where, saved, given = f"{where}.{key}", saved.get(key), given.get(key)
    return where, saved, given
