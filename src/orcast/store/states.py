"""States of series and rounds as bytes with a checksum, and the recalibrators into which they are loaded."""

from __future__ import annotations

import json
import math
import struct
import zlib
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from orcast import limits
from orcast.engine.ordered import OrderedEngine
from orcast.forecaster import Recalibrator
from orcast.forecasts import BinaryForecast, Forecast, forecast_on
from orcast.kernels.reading import read_cells_arrays
from orcast.ledger import Certificate
from orcast.packed import pack_row, record_fields, unpack_row
from orcast.rounds import PendingRound, check_counters
from orcast.spaces import Binary, FiniteSpace, OrderedSpace, Space

Array = NDArray[np.float64]
Value = TypeVar("Value")
Shapes = dict[str, tuple[Any, tuple[int, ...]]]

COUNTERS = 5  # issued, reserved slack, usual lag (nan before any), pending rounds, event of the series
CERTIFICATE = tuple(Certificate.__dataclass_fields__)
_CERTIFICATE, _NUMBER = struct.Struct(f"<{len(CERTIFICATE)}d").pack, struct.Struct("<d").pack
# Bytes of the recalibrators that are kept, one for each set of options, and of one beside its tables.
RECALIBRATORS_BYTES, RECALIBRATOR_BYTES = 2**28, 2**18
# Bytes of a series in memory beside its numbers, and of a pending round.
SERIES_BYTES, ROUND_BYTES = 1500, 1500


def seal(plain: object, numbers: Array, series: int = 0) -> bytes:
    """Plain data and numbers as bytes, with a checksum that is another for each series."""
    text = b"" if plain is None else json.dumps(plain).encode()
    body = b"".join((len(text).to_bytes(4, "little"), text, np.ascontiguousarray(numbers, "<f8").tobytes()))
    return zlib.crc32(body, series).to_bytes(4, "little") + body


def unseal(data: bytes, series: int = 0) -> tuple[Any, Array]:
    """The inverse of `seal`, or a reason why not."""
    if zlib.crc32(memoryview(data)[4:], series).to_bytes(4, "little") != data[:4]:
        raise ValueError("its checksum is another")
    end = 8 + int.from_bytes(data[4:8], "little")
    plain = limits.parsed_json(data[8:end].decode()) if end > 8 else None
    return plain, np.frombuffer(memoryview(data)[end:], "<f8").astype(np.float64)


# --- forecasts


def forecast_bytes(p: Any) -> bytes:
    """A forecast: its certificate, then draw, left and right ends and masses, or the masses alone."""
    stated = vars(p.certificate)
    certificate = _CERTIFICATE(*[math.nan if stated[name] is None else stated[name] for name in CERTIFICATE])
    if isinstance(p, BinaryForecast):
        return certificate + _NUMBER(p.probability())
    if not isinstance(p, Forecast):
        return certificate + _bytes(p.mass)
    draw = _NUMBER(math.nan if p.draw is None else p.draw)
    return b"".join((certificate, draw, _bytes(p.left), _bytes(p.right), _bytes(p.mass)))


def _bytes(numbers: Array) -> bytes:
    return numbers.astype("<f8", copy=False).tobytes()


def numbers_from(rows: Sequence[bytes]) -> Array:
    """Rows of bytes of one size as numbers."""
    return np.frombuffer(b"".join(rows), "<f8").astype(np.float64).reshape(len(rows), -1)


def forecast_from(space: Space, data: bytes) -> Any:
    """The forecast of `forecast_bytes`, bit for bit, with its certificate."""
    (numbers,) = numbers_from([data])
    stated = certificate_from(numbers[: len(CERTIFICATE)].tolist())
    numbers = numbers[len(CERTIFICATE) :]
    if isinstance(space, Binary):
        return BinaryForecast.trusted(space, numbers.item(0), stated)
    if not isinstance(space, OrderedSpace):
        return forecast_on(space, numbers, stated)  # type: ignore[arg-type]
    draw = numbers.item(0)
    left, right, mass = numbers[1:].reshape(3, -1)
    return Forecast.trusted(left, right, mass, stated, None if draw != draw else draw)


def quantiles_from(numbers: Array, levels: Array) -> Array:
    """Quantiles of the forecast of `forecast_bytes` on an ordered space, without the object."""
    draw = numbers.item(len(CERTIFICATE))
    left, right, mass = numbers[len(CERTIFICATE) + 1 :].reshape(3, -1)
    plain = mass.size, left, right, mass, left[0] == -math.inf, right[-1] == math.inf
    found: Array = read_cells_arrays(*plain, 0.0 if math.isnan(draw) else draw, levels)
    return found


def certificate_from(numbers: list[float]) -> Certificate:
    """Certificate from its numbers."""
    stated: dict[str, Any] = dict(zip(CERTIFICATE, numbers, strict=True))
    unstated = {name: None for name in ("half_space", "approximation") if stated[name] != stated[name]}
    return Certificate(**{**stated, **unstated, "holds": stated["holds"] > 0.0})


def rows_bytes(rows: Array | float | None) -> bytes:
    """Base forecasts, as `Forecaster.read` returns them: the number of rows, then theirs."""
    if rows is None or isinstance(rows, float):
        return _NUMBER(0.0) + _NUMBER(math.nan if rows is None else rows)
    return _NUMBER(len(rows)) + _bytes(rows)


def rows_from(data: bytes) -> Array | float | None:
    """The inverse of `rows_bytes`."""
    (numbers,) = numbers_from([data])
    count, first = int(numbers[0]), numbers.item(1)
    if count:
        rows: Array = numbers[1:].reshape(count, -1)
        return rows
    return None if math.isnan(first) else first


# --- states


class State(NamedTuple):
    """State of a recalibrator without its pending rounds: sizes of its parts, counters, engine and monitors."""

    sizes: Any
    issued: int
    reserved: float
    lag: float
    pending: int
    event: int
    numbers: list[Array]
    monitors: list[Array]

    @classmethod
    def of(cls, recal: Recalibrator, event: int = 0, before: State | None = None) -> Self:
        """State of a recalibrator after an event; its engine and monitors may be known to be those of another."""
        rounds = recal.rounds
        lag = math.nan if rounds.usual_lag is None else rounds.usual_lag
        if before is None:
            numbers, monitors = _copies(_rows(recal)), _copies(rounds.monitor_rows())
        else:
            numbers, monitors = before.numbers, before.monitors
        return cls(sizes_of(recal), rounds.issued, rounds.reserved, lag, len(rounds.pending), event, numbers, monitors)

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        return sum(row.nbytes for row in (*self.numbers, *self.monitors))

    def load_into(self, recal: Recalibrator) -> None:
        """Make it the state of a recalibrator."""
        if sizes_of(recal) != self.sizes:
            recal.begin(recal.experts, self.sizes)
        for row, own in zip(_rows(recal), self.numbers, strict=True):
            row[...] = own
        recal.rounds.restore_monitors(recal.rounds.adapted(_copies(self.monitors)), trusted=True)
        self._count(recal)

    def _count(self, recal: Recalibrator) -> None:
        rounds = recal.rounds
        rounds.pending, rounds.issued, rounds.reserved = {}, self.issued, self.reserved
        rounds.usual_lag = None if self.lag != self.lag else self.lag

    def encode(self, series: int) -> bytes:
        """State as bytes."""
        counters = np.array((self.issued, self.reserved, self.lag, self.pending, self.event))
        plain = self.sizes, [row.size for row in self.monitors]
        return seal(plain, pack_row((counters, *self.numbers, *self.monitors)), series)

    @classmethod
    def decode(cls, recal: Recalibrator, data: bytes, series: int) -> Self:
        """The inverse of `encode`, checked and loaded into a recalibrator, or a reason why not."""
        (sizes, lengths), numbers = unseal(data, series)
        if sizes_of(recal) != sizes:
            recal.begin(recal.experts, sizes)
        arrays = recal.engine.arrays()
        issued, reserved, lag, pending, event = numbers[:COUNTERS].tolist()
        shapes: Shapes = {name: (array.dtype, array.shape) for name, array in arrays.items()}
        end = COUNTERS + sum(array.size for array in arrays.values())
        recal.engine.restore(unpack_row(numbers[COUNTERS:end], shapes))
        monitors = _monitor_rows(recal, numbers[end:], lengths)
        recal.rounds.restore_monitors(_copies(monitors))
        check_counters(issued, None if lag != lag else lag, reserved, ())
        engine = _copies(_rows(recal))
        found = cls(sizes, int(issued), reserved, lag, int(pending), int(event), engine, monitors)
        found._count(recal)
        return found


def _copies(rows: Iterable[Array]) -> list[Array]:
    return [row.copy() for row in rows]


def _rows(recal: Recalibrator) -> list[Array]:
    """Arrays of the engine; those that lie in one row as that row."""
    engine: Any = recal.engine
    if isinstance(engine, OrderedEngine):
        group = () if engine.group is None else engine.group.arrays().values()
        return [engine.memory.row, *group]
    return list(engine.arrays().values())


def sizes_of(recal: Recalibrator) -> Any:
    """Sizes that a recalibrator took from its first round."""
    return getattr(recal.engine, "sizes", None)


def _monitor_rows(recal: Recalibrator, numbers: Array, lengths: list[int]) -> list[Array]:
    """Rows of the monitors; none before the first outcome."""
    if any(type(each) is not int or each < 0 for each in lengths) or sum(lengths) != numbers.size:
        raise ValueError("expected monitors of each side, got others")
    return recal.rounds.adapted(np.split(numbers, np.cumsum(lengths)[:-1]) if lengths else [])


@dataclass(slots=True)
class SeriesState:
    """State of a series in memory: its version, its numbers, and its pending rounds by id, the oldest first.

    The event of its issue is attached to each pending round.  An issue changes no numbers of the engine, so the
    database has the state `kept` after the last other event, and the numbers of the rounds that were pending then.
    Those that were issued since are computed again from their base forecasts when another process reads the series.
    """

    number: int
    name: Hashable
    options: int
    version: int
    trimmed: int
    held: State
    kept: State
    pending: dict[Hashable, PendingRound] = field(default_factory=dict)
    written: int = 0  # version in the database
    rewritten: bool = False  # since then
    record: int = 0  # bytes of a pending round
    seen: int = -1  # last count of foreign changes at which its version was right

    @property
    def size(self) -> int:
        """Bytes in memory."""
        if self.pending and not self.record:
            self.record = sum(array.nbytes for array in next(iter(self.pending.values())).record.arrays().values())
        return SERIES_BYTES + self.held.nbytes + len(self.pending) * (ROUND_BYTES + self.record)

    def take(self, recal: Recalibrator, *, issued: bool) -> list[tuple[Hashable, PendingRound]]:
        """Take over the rounds of a recalibrator as the next version; `issued`: one was issued, nothing else.

        Returns the pending rounds whose numbers have to be written now.
        """
        self.version += 1
        before = self.kept.event
        self.held = State.of(recal, self.version, self.held if issued else None)
        if issued:
            id = next(reversed(recal.rounds.pending))
            self.pending[id] = recal.rounds.pending[id]  # one is added, since a copy of many takes long
            return []
        self.pending, self.kept, self.rewritten = dict(recal.rounds.pending), self.held, True
        return [(id, entry) for id, entry in self.pending.items() if entry.attached > before]


def encode_record(entry: PendingRound, series: int) -> bytes:
    """Numbers of a pending round."""
    arrays = entry.record.arrays()
    fields = [[name, array.dtype.str, list(array.shape)] for name, array in arrays.items()]
    return seal([entry.issued, entry.attached, fields], pack_row(arrays.values()), series)


def decode_record(recal: Recalibrator, data: bytes, features: Any, event: int, series: int) -> PendingRound:
    """The inverse of `encode_record` on the recalibrator of its series, or a reason why not."""
    (issued, attached, fields), numbers = unseal(data, series)
    if attached != event or issued > recal.rounds.issued:
        raise ValueError("a pending round is of another event")
    shapes: Shapes = {name: (np.dtype(kind), shape) for name, kind, shape in record_fields(fields)}
    return PendingRound(recal.engine.restored_record(unpack_row(numbers, shapes), features), issued, event)


@dataclass(slots=True, eq=False)
class Shared:
    """A recalibrator that all series with the same options share, the state of a new one, and the series in it.

    So a series takes the memory of its numbers, about 16 KB for a quantity.
    """

    recal: Recalibrator
    fresh: State
    loaded: SeriesState | None = None

    @property
    def size(self) -> int:
        """Bytes in memory, about; labels have a payoff for each pair."""
        space = self.recal.space
        pairs = 8 * space.cells**2 if isinstance(space, FiniteSpace) else 0
        return RECALIBRATOR_BYTES + pairs + self.fresh.nbytes

    def load(self, state: SeriesState) -> Recalibrator:
        """The recalibrator with the rounds of a series."""
        if self.loaded is not state:
            self.loaded = None
            state.held.load_into(self.recal)
            self.recal.rounds.pending = dict(state.pending)
            self.loaded = state
            self.recal.reported.discard("crossing")
        return self.recal


class Cache(Generic[Value]):
    """Values that were used last, up to a sum of their sizes."""

    def __init__(self, most: int) -> None:
        self.most, self.size = most, 0
        self._held: OrderedDict[Hashable, tuple[Value, int]] = OrderedDict()

    def __iter__(self) -> Iterator[Value]:
        return (value for value, _ in self._held.values())

    def get(self, key: Hashable) -> Value | None:
        """Value, if it is in memory."""
        found = self._held.get(key)
        if found is None:
            return None
        self._held.move_to_end(key)
        return found[0]

    def put(self, key: Hashable, value: Value, size: int) -> None:
        """Keep a value as the last used one; evict the oldest beyond the budget."""
        self.drop(key)
        self._held[key] = value, size
        self.size += size
        while self.size > self.most and len(self._held) > 1:
            self.drop(next(iter(self._held)))

    def clear(self) -> None:
        """Forget all values."""
        self._held.clear()
        self.size = 0

    def drop(self, key: Hashable) -> None:
        """Forget a value."""
        found = self._held.pop(key, None)
        if found is not None:
            self.size -= found[1]
