"""States of series and rounds as bytes with a checksum, and the recalibrators into which they are loaded."""

from __future__ import annotations

import json
import math
import zlib
from collections import OrderedDict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from orcast import limits
from orcast.engine.ordered import OrderedEngine
from orcast.forecasts import BinaryForecast, Forecast, forecast_on
from orcast.kernels.reading import read_quantiles_arrays, read_randomised_arrays
from orcast.ledger import Certificate
from orcast.packed import pack_row, record_fields, unpack_row
from orcast.recalibrator import Recalibrator
from orcast.rounds import PendingRound, check_counters
from orcast.spaces import Binary, OrderedSpace, Space

Array = NDArray[np.float64]
Shapes = dict[str, tuple[Any, tuple[int, ...]]]

COUNTERS = 5  # issued, reserved slack, usual lag (nan before any), pending rounds, event of the series
CERTIFICATE = tuple(Certificate.__dataclass_fields__)
# Recalibrators that are kept, one for each set of options.
MOST_RECALIBRATORS = 1000
# Bytes of a series in memory beside its numbers, and of a pending round.
SERIES_BYTES, ROUND_BYTES = 1000, 1500


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
    certificate = [math.nan if each is None else each for each in map(vars(p.certificate).get, CERTIFICATE)]
    if isinstance(p, BinaryForecast):
        return _bytes([*certificate, p.probability()])
    if not isinstance(p, Forecast):
        return _bytes(certificate) + _bytes(p.mass)
    certificate.append(math.nan if p.draw is None else p.draw)
    return b"".join((_bytes(certificate), _bytes(p.left), _bytes(p.right), _bytes(p.mass)))


def _bytes(numbers: Any) -> bytes:
    return np.asarray(numbers, "<f8").tobytes()


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
    plain, found = (mass.size, left, right, mass, left[0] == -math.inf, right[-1] == math.inf), np.empty(levels.size)
    if draw != draw:
        read_quantiles_arrays(*plain, levels, found)
    else:
        read_randomised_arrays(*plain, draw, levels, found)
    return found


def certificate_from(numbers: list[float]) -> Certificate:
    """Certificate from its numbers."""
    stated: dict[str, Any] = dict(zip(CERTIFICATE, numbers, strict=True))
    unstated = {name: None for name in ("half_space", "approximation") if stated[name] != stated[name]}
    return Certificate(**{**stated, **unstated, "holds": stated["holds"] > 0.0})


def rows_bytes(rows: Array | float | None) -> bytes:
    """Base forecasts, as `Forecaster.read` returns them: the number of rows, then theirs."""
    if rows is None or isinstance(rows, float):
        return _bytes([0.0, math.nan if rows is None else rows])
    return _bytes([len(rows)]) + _bytes(rows)


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
    numbers: Array
    monitors: list[Array]

    @classmethod
    def of(cls, recal: Recalibrator, event: int = 0, before: State | None = None) -> Self:
        """State of a recalibrator after an event; its engine and monitors may be known to be those of another."""
        rounds = recal.rounds
        lag = math.nan if rounds.usual_lag is None else rounds.usual_lag
        if before is None:
            numbers, monitors = pack_row(_rows(recal)), [row.copy() for row in rounds.monitor_rows()]
        else:
            numbers, monitors = before.numbers, before.monitors
        return cls(_sizes(recal), rounds.issued, rounds.reserved, lag, len(rounds.pending), event, numbers, monitors)

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        return self.numbers.nbytes + sum(row.nbytes for row in self.monitors)

    def load_into(self, recal: Recalibrator) -> None:
        """Make it the state of a recalibrator."""
        if _sizes(recal) != self.sizes:
            recal.begin(recal.experts, self.sizes)
        at = 0
        for row in _rows(recal):
            row[...] = self.numbers[at : at + row.size].reshape(row.shape)
            at += row.size
        rows = recal.rounds.adapted([row.copy() for row in self.monitors])
        recal.rounds.restore_monitors(rows, trusted=True)
        self._count(recal)

    def _count(self, recal: Recalibrator) -> None:
        rounds = recal.rounds
        rounds.pending, rounds.issued, rounds.reserved = {}, self.issued, self.reserved
        rounds.usual_lag = None if self.lag != self.lag else self.lag

    def encode(self, series: int) -> bytes:
        """State as bytes."""
        counters = (self.issued, self.reserved, self.lag, self.pending, self.event)
        lengths = (len(self.monitors), *(row.size for row in self.monitors))
        return seal(self.sizes, np.concatenate((counters, self.numbers, lengths, *self.monitors)), series)

    @classmethod
    def decode(cls, recal: Recalibrator, data: bytes, series: int) -> Self:
        """The inverse of `encode`, checked and loaded into a recalibrator, or a reason why not."""
        sizes, numbers = unseal(data, series)
        if _sizes(recal) != sizes:
            recal.begin(recal.experts, sizes)
        arrays = recal.engine.arrays()
        issued, reserved, lag, pending, event = numbers[:COUNTERS].tolist()
        shapes: Shapes = {name: (array.dtype, array.shape) for name, array in arrays.items()}
        end = COUNTERS + sum(array.size for array in arrays.values())
        recal.engine.restore(unpack_row(numbers[COUNTERS:end], shapes))
        monitors = _monitor_rows(recal, numbers[end:])
        recal.rounds.restore_monitors([row.copy() for row in monitors])
        check_counters(issued, None if lag != lag else lag, reserved, ())
        found = cls(sizes, int(issued), reserved, lag, int(pending), int(event), numbers[COUNTERS:end], monitors)
        found._count(recal)
        return found


def _rows(recal: Recalibrator) -> list[Array]:
    """Arrays of the engine; those that lie in one row as that row."""
    engine: Any = recal.engine
    if isinstance(engine, OrderedEngine):
        group = () if engine.group is None else engine.group.arrays().values()
        return [engine.memory.row, *group]
    return list(engine.arrays().values())


def _sizes(recal: Recalibrator) -> Any:
    return getattr(recal.engine, "sizes", None)


def _monitor_rows(recal: Recalibrator, numbers: Array) -> list[Array]:
    """Rows of the monitors, which follow their number and sizes; none before the first outcome."""
    wholes = numbers[: 1 + int(numbers[0])].tolist() if numbers.size and 0.0 <= numbers[0] <= numbers.size else []
    sizes, at = wholes[1:], len(wholes)
    if not wholes or any(each != each // 1 or each < 0 for each in wholes) or sum(sizes) != numbers.size - at:
        raise ValueError("expected monitors of each side, got others")
    rows = []
    for size in map(int, sizes):
        rows.append(numbers[at : at + size])
        at += size
    return recal.rounds.adapted(rows)


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
        self.pending, before = dict(recal.rounds.pending), self.kept.event
        self.held = State.of(recal, self.version, self.held if issued else None)
        if issued:
            return []
        self.kept, self.rewritten = self.held, True
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


class Recalibrators:
    """Recalibrators by options, the last used ones; series with the same options share one.

    So a series takes the memory of its numbers, about 16 KB for a quantity.  `loaded` says whose rounds one has.
    """

    def __init__(self) -> None:
        self._recals: OrderedDict[Hashable, tuple[Recalibrator, State]] = OrderedDict()
        self._loaded: dict[int, SeriesState] = {}  # by the identity of the recalibrator

    def find(self, key: Hashable, make: Any) -> tuple[Recalibrator, State]:
        """Recalibrator of some options, and the state of a new series."""
        found = self._recals.get(key)
        if found is None:
            recal = make()
            found = self._recals[key] = recal, State.of(recal)
            if len(self._recals) > MOST_RECALIBRATORS:
                _, (oldest, _) = self._recals.popitem(last=False)
                self._loaded.pop(id(oldest), None)
        self._recals.move_to_end(key)
        return found

    def load(self, recal: Recalibrator, state: SeriesState) -> None:
        """Load a series into its recalibrator, unless it is there."""
        if self._loaded.get(id(recal)) is not state:
            self._loaded.pop(id(recal), None)
            state.held.load_into(recal)
            recal.rounds.pending = dict(state.pending)
            self._loaded[id(recal)] = state
            recal.reported.discard("crossing")

    def forget(self) -> None:
        """Load every series again when it is next used, as after a failure."""
        self._loaded.clear()


class Cache:
    """States of the series that were used last, up to a number of bytes."""

    def __init__(self, memory: int) -> None:
        self.memory, self.bytes = memory, 0
        self._states: OrderedDict[int, tuple[SeriesState, int]] = OrderedDict()

    def __iter__(self) -> Iterator[SeriesState]:
        return (state for state, _ in self._states.values())

    def get(self, number: int) -> SeriesState | None:
        """State of a series, if it is in memory."""
        found = self._states.get(number)
        return None if found is None else found[0]

    def put(self, state: SeriesState) -> None:
        """Keep a state as the last used one; evict the oldest beyond the budget."""
        self.drop(state.number)
        size = state.size
        self._states[state.number] = state, size
        self.bytes += size
        while self.bytes > self.memory and len(self._states) > 1:
            _, (_, size) = self._states.popitem(last=False)
            self.bytes -= size

    def drop(self, number: int) -> None:
        """Forget a state."""
        found = self._states.pop(number, None)
        if found is not None:
            self.bytes -= found[1]
