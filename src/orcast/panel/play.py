"""Playing streams: arrays in, arrays out, one stream after the other at one table.

Nothing here knows of frames.  A stream that has begun comes as a `Stream` and goes as a new one; the old one is left as
it was, so that whoever asked can still refuse the whole.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orcast import ledger as _ledger
from orcast.game import ALONE, Waiting
from orcast.panel.bounds import placed, scale_between, space_between
from orcast.panel.experts import Shape, expert_rows, first_spread, normal_rows, ranks_of
from orcast.payoffs import Payoff
from orcast.payoffs.base import UNKNOWN
from orcast.recalibrator import Recalibrator
from orcast.spaces import OrderedSpace, Space

Array = NDArray[np.float64]
Stamps = NDArray[Any]

# What is said of a row in the column "status", by its code.
STATUSES = ("ok", "pending", "no forecast", "outside", "corrected", "seen", "late", "lost")
OK, PENDING, NO_FORECAST, OUTSIDE, CORRECTED, SEEN, LATE, LOST = range(len(STATUSES))

# Columns of what a stream remembers of its rows; the answers follow.
SERIAL, Y, STATE, HOLDS, PROMISED, MISCALIBRATION, ANSWERS = range(7)
# Counters of a stream, before the numbers of its game; ROWS is the next serial.
ISSUED, LAG, RESERVED, ERRORS, ERROR_COUNT, ROWS, COUNTERS = range(7)
# What is kept of a waiting row, before the numbers of its page.
WAIT_SERIAL, WAIT_ISSUED, WAIT_POINT, WAIT_VALUE, WAIT_LOW, WAIT_HIGH, WAIT_SIZE = range(7)


@dataclass(frozen=True)
class Ask:
    """What is asked of all streams of a model; ``remember`` is 0 if no state is wanted."""

    number: int  # of the model
    shape: Shape
    payoff: Payoff | None
    by_row: bool
    at_once: bool
    remember: int
    replay: bool
    clip: bool
    max_pending: int


@dataclass
class Stream:
    """A stream between frames: counters and memory of its game, rounds that wait, and its last rows."""

    game: Array
    pages: Array  # a row for each that waits
    when: Stamps  # cutoff and time of the last rows
    said: Array  # what was said of them
    sizes: tuple[int, ...] | None = None  # of the parts of its payoff, where only a first round tells
    fields: tuple[tuple[str, str, tuple[int, ...]], ...] = ()  # of a page: name, kind and shape
    features: list[Any] = field(default_factory=list)  # of the rounds that wait


@dataclass
class Batch:
    """The rows of some streams of one model, one after the other; bounds are of rows, or of streams."""

    ask: Ask
    starts: list[int]
    low: Array
    high: Array
    time: Stamps
    cutoff: Stamps
    there: NDArray[np.bool_]
    y: Array
    given: Array
    streams: list[Stream | None]
    features: list[Any] | None = None
    known: list[tuple[Stamps, Array]] | None = None  # times and outcomes of each stream's series, where rows may wait

    def with_payoff(self, payoff: Payoff | None) -> Batch:
        """The same with another payoff: it travels by itself."""
        return replace(self, ask=replace(self.ask, payoff=payoff))


@dataclass
class Told:
    """What came of a batch: a row of answers and of the certificate for each of its rows, and the streams after it."""

    answers: Array
    certificate: Array  # holds, promised, miscalibration
    status: NDArray[np.uint8]
    streams: list[Stream | None]
    short: list[tuple[int, int, int]]  # streams that cannot be replayed: rows in the frame, rows that were played


class Table:
    """A game at which streams of one model and one space sit down one after the other."""

    def __init__(self, ask: Ask, space: Space) -> None:
        self.ask, self.space = ask, space
        self.game = Recalibrator(space, ask.payoff, max_pending=2**31)._game
        # quantiles that cross have been sorted, and spoken of, before they come here
        self.game._said_crossed = True
        self.grows = UNKNOWN in [part.size for part in self.engine.terms.parts]
        self._blank = [array.copy() for array in self.engine.arrays().values()]
        self._levels: dict[tuple[int, bool], Array] = {}

    @property
    def engine(self) -> Any:
        """The engine of the game."""
        return self.game._engine

    def seat(self, stream: Stream | None) -> None:
        """Let a stream go on, or a new one begin."""
        game = self.game
        game._waiting = {}
        if stream is None:
            if self.grows:
                game._bind((ALONE,))
            for mine, blank in zip(self.engine.arrays().values(), self._blank, strict=True):
                mine[...] = blank
            game._issued, game._usual_lag, game._reserved = 0, None, 0.0
            return
        if self.grows:
            game._bind((ALONE,), stream.sizes)
        counters, memory = stream.game[:COUNTERS], stream.game[COUNTERS:]
        self.engine.restore(_cut(memory, {name: (a.dtype, a.shape) for name, a in self.engine.arrays().items()}))
        lag = float(counters[LAG])
        game._issued, game._reserved = int(counters[ISSUED]), float(counters[RESERVED])
        game._usual_lag = None if math.isnan(lag) else lag
        shapes = {name: (np.dtype(kind), shape) for name, kind, shape in stream.fields}
        for row, features in zip(stream.pages, stream.features, strict=True):
            page = self.engine.restored_page(_cut(row[WAIT_SIZE:], shapes), features)
            game._waiting[int(row[WAIT_SERIAL])] = Waiting(page, int(row[WAIT_ISSUED]))

    def levels(self, members: int, flip: bool) -> Array:
        """Levels to be read of each forecast."""
        if (members, flip) not in self._levels:
            self._levels[members, flip] = self.ask.shape.at(members, flip)
        return self._levels[members, flip]


def _cut(row: Array, shapes: dict[str, tuple[Any, tuple[int, ...]]]) -> dict[str, NDArray[Any]]:
    """Arrays from one row of numbers."""
    found: dict[str, NDArray[Any]] = {}
    at = 0
    for name, (kind, shape) in shapes.items():
        size = math.prod(shape)
        found[name] = row[at : at + size].reshape(shape).astype(kind)
        at += size
    if at != len(row):
        raise ValueError(f"expected {at} numbers of a game, got {len(row)}")
    return found


def _joined(arrays: Sequence[NDArray[Any]]) -> Array:
    return np.concatenate([np.asarray(array, dtype=np.float64).ravel() for array in arrays])


@dataclass(slots=True)
class _Open:
    """A row that waits to be settled: where it stands, and what came of it if that is known."""

    at: int
    time: Any
    cutoff: Any
    point: float
    value: float  # nan if it is unknown or outside
    low: float
    high: float


def play_batch(batch: Batch, tables: dict[Any, Table]) -> Told:
    """Play the streams of a batch; the tables are kept from one to the next."""
    n, ask = len(batch.time), batch.ask
    told = Told(
        np.full((n, len(ask.shape.outputs)), np.nan),
        np.full((n, 3), np.nan),
        np.full(n, NO_FORECAST, dtype=np.uint8),
        [],
        [],
    )
    for i, (start, stop) in enumerate(zip(batch.starts, batch.starts[1:], strict=False)):
        at = slice(start, stop)
        low, high = (side[at] if ask.by_row else np.full(stop - start, side[i]) for side in (batch.low, batch.high))
        space = ask.shape.space(space_between(low[0], high[0], ask.by_row) if ask.shape.ordered else None)
        key = (ask.number, space)
        if key not in tables:
            if len(tables) > 256:
                tables.clear()
            tables[key] = Table(ask, space)
        stream = batch.streams[i]
        played = _Play(tables[key], batch, i, at, low, high, stream)
        if ask.replay and played.changed():
            have, need = played.rows_until_now()
            if have != need:
                told.short.append((i, have, need))
            corrected = played.corrected
            played = _Play(tables[key], batch, i, at, low, high, None)
            played.corrected = corrected
        elif stream is not None and not played.busy():
            played.tell(told)
            told.streams.append(stream)
            continue
        played.play()
        played.tell(told)
        told.streams.append(played.stream() if ask.remember else None)
    return told


class _Play:
    """One stream of a batch, at the table."""

    def __init__(
        self, table: Table, batch: Batch, number: int, at: slice, low: Array, high: Array, before: Stream | None
    ) -> None:
        self.table, self.ask, self.at = table, batch.ask, at
        self.game, self.shape = table.game, batch.ask.shape
        self.there = np.flatnonzero(batch.there[at])
        self.before = before
        self.time, self.cutoff = batch.time[at][self.there], batch.cutoff[at][self.there]
        self.y = batch.y[at][self.there]
        self.given = batch.given[at][self.there]
        self.low, self.high = low[self.there], high[self.there]
        self.features = None if batch.features is None else [batch.features[at.start + i] for i in self.there]
        self.known = None if batch.known is None else batch.known[number]
        self.shift, self.scale = scale_between(self.low, self.high, self.ask.by_row)
        self.flip = bool(len(self.scale) and self.scale[0] < 0.0)
        self.value = self._values(self.y, self.shift, self.scale)
        self._match()

    def _values(self, y: Array, shift: Array, scale: Array) -> Array:
        """Outcomes as they are played; nan where they are missing or outside."""
        space = self.table.space
        if isinstance(space, OrderedSpace):
            return placed(y, shift, scale, space, self.ask.clip)
        return np.where((y >= 0.0) & (y < space.cells) & (y == np.floor(y)), y, np.nan)

    # --- what was seen before
    def _match(self) -> None:
        """Which rows the stream remembers, which are new, and which come too late."""
        n = len(self.there)
        self.old = np.full(n, -1, dtype=np.intp)
        self.corrected: NDArray[np.bool_] = np.zeros(n, dtype=bool)
        if self.before is None or not len(self.before.when):
            self.first_new = 0
            self.late = np.zeros(n, dtype=bool)
            return
        cutoff, time = self.before.when[-1]
        new = (self.cutoff > cutoff) | ((self.cutoff == cutoff) & (self.time > time))
        self.first_new = int(new.argmax()) if new.any() else n
        if self.first_new:
            places = {key: i for i, key in enumerate(zip(*self.before.when.T.tolist(), strict=True))}
            for i in range(self.first_new):
                self.old[i] = places.get((self.cutoff[i].item(), self.time[i].item()), -1)
            was = self.before.said[self.old[: self.first_new], Y]
            now = self.y[: self.first_new]
            self.corrected[: self.first_new] = (
                (self.old[: self.first_new] >= 0) & ~np.isnan(was) & ~np.isnan(now) & (was != now)
            )
        self.late = (self.old < 0) & ~new

    def changed(self) -> bool:
        """Whether an outcome that was used is another now."""
        if not self.corrected.any():
            return False
        assert self.before is not None
        waiting = set(self.before.pages[:, WAIT_SERIAL].tolist())
        serials = self.before.said[self.old[self.corrected], SERIAL].tolist()
        return not all(serial in waiting for serial in serials)

    def rows_until_now(self) -> tuple[int, int]:
        """Rows of the frame that are not later than what was played, and rows that were played."""
        assert self.before is not None
        return self.first_new, int(self.before.game[ROWS])

    def busy(self) -> bool:
        """Whether there is anything to play or to settle."""
        assert self.before is not None
        if self.first_new < len(self.there) or self.corrected.any():
            return True
        if not len(self.before.pages):
            return False
        brought = (self.old >= 0) & ~np.isnan(self.y)
        return bool(brought.any()) or self.known is not None

    # --- the loop
    def play(self) -> None:
        """Play the new rows, each after the outcomes that it could know."""
        self._sit_down()
        new, m = self.first_new, len(self.there)
        if self.ask.at_once:
            immediate = ~np.isnan(self.value)
            self._settle()
        else:
            immediate = ~np.isnan(self.value)
            immediate[:-1] &= self.time[:-1] <= self.cutoff[1:]
            immediate[-1:] = False
        rows = self._expert_rows(new)
        counts = self._counts()
        ends = np.flatnonzero(~immediate | (np.diff(counts, append=-1) != 0)) if m else np.empty(0, dtype=np.intp)
        runs = self.table.engine.runs
        j = new
        while j < m:
            if not self.ask.at_once:
                self._settle(self.cutoff[j])
            if runs and not self.open and immediate[j]:
                end = int(ends[np.searchsorted(ends, j)])
                stop = end + 1 if immediate[end] else end
                self._run(j, stop, rows)
                j = stop
                continue
            self._predict(j, rows)
            if self.ask.at_once:
                self._settle()
            j += 1
        self._look_ahead()

    def _sit_down(self) -> None:
        before = self.before
        self.table.seat(before)
        m = len(self.there) - self.first_new
        fresh = np.full((m, ANSWERS + len(self.shape.outputs)), np.nan)
        self.open: dict[int, _Open] = {}
        if before is None:
            self.said = fresh
            self.when: Stamps = np.empty((0, 2), dtype=self.time.dtype)
            self.errors, self.error_count, self.serial = 0.0, 0.0, 0
        else:
            self.said = np.concatenate((before.said, fresh))
            self.when = before.when
            counters = before.game
            self.errors, self.error_count = float(counters[ERRORS]), float(counters[ERROR_COUNT])
            self.serial = int(counters[ROWS])
        self.begin = len(self.said) - m
        self.said[self.begin :, SERIAL] = self.serial + np.arange(m)
        self.said[self.begin :, Y] = self.y[self.first_new :]
        self.said[self.begin :, STATE] = PENDING
        self.serial += m
        if before is not None and len(before.pages):
            self._reopen(before)

    def _reopen(self, before: Stream) -> None:
        """The rows that wait, with outcomes that have come since."""
        places = {int(serial): i for i, serial in enumerate(before.said[:, SERIAL].tolist())}
        brought = {int(old): i for i, old in enumerate(self.old.tolist()) if old >= 0}
        for row in before.pages:
            serial = int(row[WAIT_SERIAL])
            at = places[serial]
            cutoff, time = before.when[at]
            entry = _Open(at, time, cutoff, *row[[WAIT_POINT, WAIT_VALUE, WAIT_LOW, WAIT_HIGH]].tolist())
            y = self.y[brought[at]] if at in brought else math.nan
            if math.isnan(y) and self.known is not None:
                times, outcomes = self.known
                place = int(np.searchsorted(times, time))
                if place < len(times) and times[place] == time:
                    y = outcomes[place]
            if not math.isnan(y):
                shift, scale = scale_between(np.array([entry.low]), np.array([entry.high]), self.ask.by_row)
                if y != self.said[at, Y]:
                    self.said[at, Y], self.said[at, STATE] = y, PENDING
                entry.value = float(self._values(np.array([y]), shift, scale)[0])
            self.open[serial] = entry

    def _counts(self) -> NDArray[np.intp]:
        """Members of each row's ensemble, on which depends what is read of its forecast."""
        if self.shape.kind != "members":
            return np.zeros(len(self.there), dtype=np.intp)
        counts: NDArray[np.intp] = (~np.isnan(self.given)).sum(axis=1)
        return counts

    def _expert_rows(self, new: int) -> Array:
        if self.shape.kind == "point":
            return (self.given[:, 0] - self.shift) / self.scale
        rows = np.empty((0, 0))
        if new < len(self.there):
            own = expert_rows(self.shape, self.table.space, self.given[new:], self.shift[new:], self.scale[new:])
            rows = np.empty((len(self.there), own.shape[1]))
            rows[new:] = own
        return rows

    def _settle(self, until: Any = None) -> None:
        """Book the outcomes that are known by then, in the order of their times."""
        if not self.open:
            return
        due = [
            (entry.time, entry.cutoff, serial)
            for serial, entry in self.open.items()
            if not math.isnan(self.said[entry.at, Y]) and (until is None or entry.time <= until)
        ]
        for _, _, serial in sorted(due):
            entry = self.open.pop(serial)
            if math.isnan(entry.value):
                self.game.drop(serial)
                self.said[entry.at, STATE] = OUTSIDE
                continue
            self.said[entry.at, MISCALIBRATION] = self._book(serial, entry)
            self.said[entry.at, STATE] = OK

    def _book(self, serial: int, entry: _Open) -> float:
        y: Any = entry.value
        if self.shape.kind == "labels":
            y = self.shape.labels[int(y)]
        self.game.update(y, id=serial)
        error = entry.value - entry.point
        if not math.isnan(error):
            self.errors += error * error
            self.error_count += 1.0
        return float(self.table.engine.ledger.miscalibration)

    def _run(self, start: int, stop: int, rows: Array) -> None:
        """Rows whose outcomes are known before the next, in one compiled loop."""
        values = self.value[start:stop]
        if self.shape.kind == "point":
            own = self._point_rows(rows[start:stop], values)
        else:
            own = rows[start:stop]
        members = int(self._counts()[start]) if self.shape.kind == "members" else 0
        levels = self.table.levels(members, self.flip)
        features = None if self.features is None else self.features[start:stop]
        outcomes = values if self.shape.ordered else values.astype(np.int64)
        played, tales = self.table.engine.run(np.ascontiguousarray(own[:, None, :]), features, outcomes, levels)
        game, count = self.game, stop - start
        game._issued += count
        if game._usual_lag:
            for _ in range(count):
                game._learn_lag(0.0)
        else:
            game._usual_lag = 0.0
        said = self.said[self.begin + start - self.first_new : self.begin + stop - self.first_new]
        said[:, STATE] = OK
        said[:, HOLDS] = tales[:, _ledger.TOLD_HOLDS]
        said[:, PROMISED] = tales[:, _ledger.TOLD_PROMISED]
        said[:, MISCALIBRATION] = tales[:, _ledger.TOLD_MISCALIBRATION]
        mean, std = tales[:, _ledger.TOLD_MEAN], tales[:, _ledger.TOLD_STD]
        said[:, ANSWERS:] = self._answers(start, stop, np.asarray(played).reshape(count, -1), mean, std)

    def _point_rows(self, points: Array, values: Array) -> Array:
        """Gaussians around points, as wide as their errors so far were."""
        space: Any = self.table.space
        errors = values - points
        sums = np.cumsum(np.concatenate(([self.errors], errors * errors)))
        counts = self.error_count + np.arange(len(points) + 1)
        spread = np.sqrt(sums[:-1] / np.maximum(counts[:-1], 1.0))
        if counts[0] == 0.0:
            spread[0] = first_spread(float(points[0]), space)
        self.errors, self.error_count = float(sums[-1]), float(counts[-1])
        return normal_rows(points, spread, space)

    def _answers(self, start: int, stop: int, played: Array, mean: Array, std: Array) -> Array:
        """Rows as they come out, within the bounds."""
        if not self.shape.ordered:
            return played
        at = slice(start, stop)
        ranks = ranks_of(self.given[at]) if self.shape.kind == "members" else None
        out = self.shape.answers(played, mean, std, self.shift[at], self.scale[at], ranks)
        if self.ask.by_row:
            # rounding does not lead out
            for i, (what, _, _) in enumerate(self.shape.outputs):
                if what != "sd":
                    out[:, i] = np.minimum(np.maximum(out[:, i], self.low[at]), self.high[at])
        return out

    def _predict(self, j: int, rows: Array) -> None:
        """One row, which then waits."""
        serial = int(self.said[self.begin + j - self.first_new, SERIAL])
        if len(self.open) >= self.ask.max_pending:
            lost = next(iter(self.open))
            self.said[self.open.pop(lost).at, STATE] = LOST
            self.game.drop(lost)
        point = math.nan
        if self.shape.kind == "point":
            point = float(rows[j])
            space: Any = self.table.space
            if self.error_count == 0.0:
                spread = first_spread(point, space)
            else:
                spread = float(np.sqrt(self.errors / self.error_count))
            row = normal_rows(np.array([point]), np.array([spread]), space)[0]
        else:
            row = rows[j]
        waiting = [each.page.note for each in self.game._waiting.values()]
        forecast = _Quoted(row) if self.shape.ordered else row if self.shape.kind == "labels" else float(row[1])
        p = self.game.predict(forecast, id=serial, x=None if self.features is None else self.features[j])
        at = self.begin + j - self.first_new
        said = self.said[at]
        said[HOLDS] = float(p.certificate.holds)
        said[PROMISED] = p.certificate.promised
        if waiting:
            note = self.game._waiting[serial].page.note
            said[PROMISED] = max(said[PROMISED], promised(self.table.engine.ledger.account, waiting, note))
        if self.shape.ordered:
            members = int(self._counts()[j]) if self.shape.kind == "members" else 0
            played = p.quantile(self.table.levels(members, self.flip))[None, :]
            moments = np.array([p.mean()]), np.array([p.std()])
        else:
            played = np.array([[p.probability()]]) if self.shape.kind == "binary" else np.asarray(p.mass)[None, :]
            moments = np.zeros(1), np.zeros(1)
        said[ANSWERS:] = self._answers(j, j + 1, played, *moments)[0]
        self.open[serial] = _Open(
            at, self.time[j], self.cutoff[j], point, float(self.value[j]), float(self.low[j]), float(self.high[j])
        )

    def _look_ahead(self) -> None:
        """Say the miscalibration after outcomes that are known but that no forecast could know yet.

        They are booked as they will be, and then the game is put back to where it was.
        """
        known = [
            (entry.time, entry.cutoff, serial, entry)
            for serial, entry in self.open.items()
            if not math.isnan(self.said[entry.at, Y])
        ]
        if all(self.said[entry.at, STATE] != PENDING for *_, entry in known):
            return
        engine, game = self.table.engine, self.game
        arrays = {name: array.copy() for name, array in engine.arrays().items()}
        was = dict(game._waiting), game._issued, game._usual_lag, game._reserved, self.errors, self.error_count
        for *_, serial, entry in sorted(known, key=lambda each: each[:3]):
            if math.isnan(entry.value):
                self.said[entry.at, STATE] = OUTSIDE
            else:
                self.said[entry.at, MISCALIBRATION] = self._book(serial, entry)
                self.said[entry.at, STATE] = OK
        for name, array in engine.arrays().items():
            array[...] = arrays[name]
        game._waiting, game._issued, game._usual_lag, game._reserved, self.errors, self.error_count = was

    # --- what came of it
    def tell(self, told: Told) -> None:
        """Write down what came of each row of the frame."""
        old = self.old >= 0
        if self.before is not None and not hasattr(self, "said"):
            self.said, self.begin = self.before.said, len(self.before.said)
        places = np.where(old, self.old, self.begin + np.arange(len(self.there)) - self.first_new)
        rows = self.at.start + self.there
        fine = old | (np.arange(len(self.there)) >= self.first_new)
        said = self.said[places[fine]]
        told.answers[rows[fine]] = said[:, ANSWERS:]
        told.certificate[rows[fine]] = said[:, [HOLDS, PROMISED, MISCALIBRATION]]
        status = np.full(len(self.there), LATE, dtype=np.uint8)
        status[fine] = said[:, STATE].astype(np.uint8)
        if self.before is not None:
            was = np.full(len(self.there), -1.0)
            was[old] = self.before.said[self.old[old], STATE]
            status[old & (was == OK) & (status == OK)] = SEEN
        status[self.corrected] = CORRECTED
        told.status[rows] = status

    def stream(self) -> Stream:
        """The stream after the batch."""
        game = self.game
        lag = math.nan if game._usual_lag is None else game._usual_lag
        counters = np.array(
            [game._issued, lag, game._reserved, self.errors, self.error_count, self.serial], dtype=np.float64
        )
        when = np.concatenate(
            (self.when, np.column_stack((self.cutoff[self.first_new :], self.time[self.first_new :])))
        )
        keep = np.zeros(len(self.said), dtype=bool)
        keep[-self.ask.remember :] = True
        keep[[entry.at for entry in self.open.values()]] = True
        pages: list[Array] = []
        features: list[Any] = []
        fields: tuple[tuple[str, str, tuple[int, ...]], ...] = ()
        for serial, waiting in game._waiting.items():
            entry = self.open[int(serial)]  # type: ignore[call-overload]
            arrays = waiting.page.arrays()
            fields = tuple((name, array.dtype.str, array.shape) for name, array in arrays.items())
            head = [serial, waiting.issued, entry.point, entry.value, entry.low, entry.high]
            pages.append(_joined([np.array(head, dtype=np.float64), *arrays.values()]))
            features.append(getattr(waiting.page, "features", None))
        return Stream(
            _joined([counters, *self.table.engine.arrays().values()]),
            np.array(pages) if pages else np.empty((0, WAIT_SIZE)),
            when[keep],
            self.said[keep],
            tuple(self.table.engine.sizes) if self.table.grows and self.table.engine.sizes else None,
            fields,
            features,
        )


class _Quoted:
    """Quantiles at the levels of a space, which need no reading."""

    __slots__ = ("row",)

    def __init__(self, row: Array) -> None:
        self.row = row

    def ppf(self, levels: Array) -> Array:
        """The quantiles."""
        return self.row


def promised(account: Array, waiting: Sequence[Array], note: Array) -> float:
    """The bound on the miscalibration after a round, whichever of the rounds that wait are booked before it.

    If k of them are, the budget has grown by their own bounds and by the cross terms of their delays; those k count
    that make it grow most.
    """
    notes = np.array(waiting)
    root = max(float(notes[:, _ledger.ROOT].max()), float(note[_ledger.ROOT]))
    growth = notes[:, _ledger.BOUND] + 2.0 * root * (account[_ledger.ROOTS] - notes[:, _ledger.ROOTS_THEN])
    k = np.arange(1, len(notes) + 1)
    budget = account[_ledger.BUDGET] + np.cumsum(np.sort(growth)[::-1]) + root * root * k * (k - 1.0)
    budget += note[_ledger.BOUND] + 2.0 * root * root * k
    bound: float = np.sqrt(budget / (account[_ledger.WEIGHT] + k + 1.0) ** 2).max()
    return float(bound)
