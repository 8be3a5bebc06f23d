"""State files: plain data and arrays in binary, without pickle.

Format 1 is a mark, a CRC-32 of the rest, the length of the header, the header, and the numbers of all arrays. The
header is JSON: format, version of the writer, class and options of the state, and name, type and shape of each array.
"""

from __future__ import annotations

import errno
import json
import math
import os
import secrets
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
from orcast.packed import PackedRounds, record_fields
from orcast.payoffs import Payoff, payoff_from_plain
from orcast.serialise import SettledIds, features_from_json, features_to_json, id_from_plain, plain_id
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
    described = [(name, "<i8" if array.dtype.kind == "i" else "<f8", array.shape) for name, array in arrays.items()]
    about = {"format": FORMAT, "writer": __version__, **header, "arrays": described}
    text = json.dumps(about, allow_nan=False).encode()
    limits.check("header_bytes", len(text))
    limits.check("file_bytes", len(text) + sum(8 * array.size for array in arrays.values()))
    numbers = [arrays[name].astype(kind, copy=False).tobytes() for name, kind, _ in described]
    body = b"".join([len(text).to_bytes(4, "little"), text, *numbers])
    return MAGIC + zlib.crc32(body).to_bytes(4, "little") + body


def write_over(path: str | os.PathLike[str], data: bytes, known: bytes | None) -> None:
    """Write a state file in place of one that begins with `known`; refuse if another process saved it since."""
    target = _target(path)
    with naming(path), file_lock(path):
        if known is not None and target.is_file():
            with open(target, "rb") as file:
                if file.read(START) != known:
                    raise ValueError(
                        "expected the state file as this recalibrator loaded or saved it, got one that another "
                        f"process saved since: {path} (load it again, or overwrite=True)"
                    )
        write(path, data)


def _target(path: str | os.PathLike[str]) -> Path:
    """Place of a state file that can be written."""
    target = Path(path).resolve()
    if target.exists() and not target.is_file():
        raise ValueError(f"expected the path of a state file, got something else: {path}")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"expected an existing folder, got {target.parent}")
    return target


def write(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a state file; a reader sees the old file or the new one, never a partial one."""
    with naming(path), replacing(_target(path)) as beside, open(beside, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a new file that replaces another, with its permissions, at the end of the block unless it raises."""
    target = Path(path).resolve()  # follows links
    permissions = target.stat().st_mode & 0o777 if target.exists() else None
    beside = target.with_name(f".{target.name}.{secrets.token_hex(4)}")  # recognisable after a killed process
    # created by the system, because reading the umask changes it for a moment, in all threads
    with naming(path):
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
    """Add the file name to system errors that lack it, or have that of a hidden file beside it."""
    try:
        yield
    except OSError as reason:
        hidden = Path(os.fsdecode(reason.filename or ".")).name.startswith(".")
        if reason.errno is None or (reason.filename is not None and not hidden and reason.errno != errno.ENOSPC):
            raise
        raise OSError(reason.errno, reason.strerror, os.fspath(path)) from reason


def read(path: str | os.PathLike[str]) -> bytes:
    """Read a file that may be a state file."""
    if Path(path).exists() and not Path(path).is_file():
        raise ValueError("expected an orcast state file, got something else")
    with naming(path):
        limits.check("file_bytes", Path(path).stat().st_size)
        return Path(path).read_bytes()


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
        if version == FORMAT:
            return header, _arrays(header.pop("arrays"), data, end)
    except UNREADABLE as reason:
        text = str(reason)[:MOST_REASON]
        raise ValueError(f"expected a readable state file, got an unreadable one ({text})") from reason
    raise ValueError(
        f"expected a state file of format {FORMAT}, got format {short(version)} of orcast {short(writer)}: "
        "load it with that version"
    )


def _arrays(described: list[Any], data: bytes, at: int) -> Arrays:
    """Arrays by name, whose numbers begin at a place."""
    arrays: Arrays = {}
    for name, kind, shape in described:
        if kind not in ("<f8", "<i8") or not all(isinstance(side, int) and 0 <= side <= len(data) for side in shape):
            raise ValueError(f"{short(name)} has the kind {short(kind)} and the shape {short(shape)}")
        size = math.prod(shape)
        # raises if numbers are missing
        own = np.frombuffer(data, kind, size, at) if size else np.empty(0, kind)
        arrays[name] = own.reshape(shape).astype(kind[1:])
        at += own.nbytes
    if at != len(data) or len(arrays) < len(described):
        raise ValueError("numbers of no array remain")
    return arrays


def unusable(reason: BaseException, path: object = "") -> ValueError:
    """Create the error for a state whose content led to another error."""
    where = f": {path}" if path else ""
    text = str(reason)[:MOST_REASON]
    return ValueError(f"expected a state that this version can use, got an invalid one ({text}){where}")


@contextmanager
def reading(source: bytes | str | os.PathLike[str], owner: str) -> Iterator[tuple[Header, Arrays, bytes]]:
    """Yield header, arrays and bytes of a state of one class, a file or bytes; errors of its content name the file."""
    path = "" if isinstance(source, bytes) else source
    where = f": {path}" if path else ""
    try:
        data = source if isinstance(source, bytes) else read(source)
        header, arrays = decode(data)
        if header.get("class") != owner:
            raise ValueError(f"expected the state of a {owner}, got that of a {header.get('class')}")
    except ValueError as reason:
        raise ValueError(f"{reason}{where}") from reason
    try:
        yield header, arrays, data
    except UNREADABLE as reason:
        if _asks_the_user(reason):
            raise
        raise unusable(reason, path) from reason


# --- recalibrators


def configuration(recal: Forecaster) -> Header:
    """Options of a recalibrator as plain data."""
    return {
        "class": recal.kind,
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


def state_of(recal: Forecaster) -> tuple[Header, Arrays]:
    """Copy a recalibrator's state into a header of plain data and named arrays."""
    with recal.lock:
        rounds = recal.rounds.to_packed()
        arrays: Arrays = {f"memory/{name}": array.copy() for name, array in recal.engine.arrays().items()}
        arrays |= {name: getattr(rounds, name) for name in ("counters", "records", "issued")}
        arrays |= {f"monitor/{side}": row.copy() for side, row in enumerate(recal.rounds.monitor_rows())}
        arrays["settled"] = recal.settled.hashes()
        header = {
            **configuration(recal),
            "pooled": recal.pool and recal.pool.told(),
            "ids": [plain_id(id) for id in recal.rounds.ids],
            "fields": rounds.fields,
            "features": [features_to_json(x) for x in rounds.features],
        }
    return header, arrays


def recal_from(header: Header, arrays: Arrays, cls: type[Game], *, pool: Pool | None = None, **given: Any) -> Game:
    """Rebuild the recalibrator of a state, whose content leads to one of the errors `UNREADABLE` if it is invalid."""
    if bool(header["pooled"]) != (pool is not None):
        was, got = ("in a pool", "none") if pool is None else ("in no pool", repr(pool))
        raise ValueError(f"expected pool= as the recalibrator was saved, {was}, got {got}")
    recal = made_from(header, cls=cls, pool=pool, **given)
    restore(recal, header, arrays)
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
    recal = cls(
        as_saved(space, header["space"], space_from_plain, "space"),
        as_saved(payoff, header["payoff"], payoff_from_plain, "payoff"),
        oracle=as_saved(oracle, header["oracle"], oracle_from_plain, "oracle"),
        memory=header["memory"],
        outside=header["outside"],
        max_pending=header["max_pending"],
        randomised=header["randomised"],
        mode=header["mode"],
        seasons=header["seasons"],
        pool=pool,
    )
    recal.begin(tuple(experts), header["sizes"])
    return recal


def restore(recal: Forecaster, header: Header, arrays: Arrays) -> None:
    """Restore the arrays and rounds of a state; after an error the recalibrator must not be used."""
    recal.engine.restore(inside(arrays, "memory/"))
    if recal.pool is not None and not recal.pool.follows(*header["pooled"]):
        text = "expected pool= with the pool of the saved recalibrator, or a later state of it, got"
        raise ValueError(f"{text} {recal.pool!r}")
    fields, features = record_fields(header["fields"]), [features_from_json(x) for x in header["features"]]
    packed = PackedRounds(arrays["counters"], fields, arrays["records"], arrays["issued"], features)
    recal.rounds.from_packed(packed, [id_from_plain(id) for id in header["ids"]])
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
