"""A session: many series, answered line by line."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from orcast import limits, persistence
from orcast.contexts import by
from orcast.locks import GameLock, Locked, locked
from orcast.packed import pack_row
from orcast.payoffs import default_payoff
from orcast.pool import Pool
from orcast.recalibrator import Recalibrator
from orcast.rounds import MOST_COUNTED, PendingRound, Snapshot
from orcast.spaces import Binary, Labels, OrderedSpace, Space, between, space_from_plain
from orcast.spaces.base import single, whole
from orcast.store import Name
from orcast.stream import protocol
from orcast.stream.protocol import Id, LineForecast, StreamLine
from orcast.validation import number, quietly, short

KIND = Recalibrator.kind
# Recalibrators that are kept, one for each space.
MOST_GAMES = 1000
# Bytes of the answers that are remembered: of settled rounds, and of the pending rounds of a series.
MOST_BYTES, MOST_PENDING_BYTES = 2**26, 2**24
# Bytes of a settled round beside its answers.
OVERHEAD = 400
FORM = {"quantity": "quantiles, mean and sd, or members", "binary": '{"p": ...}', "labels": '{"probabilities": ...}'}
CERTIFICATE = ("holds", "worst_next", "allowed", "bound", "promised")
GUARANTEE = ("rounds", "miscalibration", "promised", "held")


@dataclass(frozen=True)
class StreamSettings:
    """Options of a session.

    Parameters
    ----------
    low, high : bounds of quantities
    binary, labels : other outcomes than quantities; by default the form of a series' first forecast decides
    levels : quantiles to answer with, as text
    by : a feature and its values, each of which is calibrated by itself
    outside, memory, max_pending : as in `orcast.Recalibrator`
    remember : settled rounds of all series that are remembered
    pool : whether quantities of all series share an `orcast.Pool`
    """

    low: float | None = None
    high: float | None = None
    binary: bool = False
    labels: tuple[str, ...] = ()
    levels: tuple[str, ...] = ()
    by: tuple[str, tuple[Any, ...]] | None = None
    outside: str = "raise"
    memory: float | None = None
    max_pending: int = 1000
    remember: int = 10_000
    pool: bool = False

    def __post_init__(self) -> None:
        limits.check("labels", len(self.labels))
        limits.check("levels", len(self.levels))
        for level in self.levels:
            told: object = level
            with suppress(ValueError):
                told = float(level)
            if not 0.0 < number(told, "level", 0.0, 1.0) < 1.0:
                raise ValueError(f"expected levels strictly between 0 and 1, got {level}")
        if len(set(map(float, self.levels))) < len(self.levels):
            raise ValueError(f"expected different levels, got {', '.join(self.levels)}")
        if not isinstance(self.pool, bool):
            raise TypeError(f"expected pool=True or False, got {short(self.pool)}")
        if self.remember < 1:
            raise ValueError(f"expected at least 1 settled round to be remembered, got {self.remember}")
        given = {"low": self.low, "high": self.high, "binary": self.binary or None, "labels": self.labels or None}
        # says what is wrong with the rest
        self.game(stated_space({key: value for key, value in given.items() if value is not None}))

    def space(self, kind: str, labels: tuple[str, ...]) -> Space:
        """Space of a series whose first forecast is of a kind."""
        if self.binary or (kind == "binary" and not self.labels):
            return Binary()
        return Labels(self.labels or labels) if self.labels or kind == "labels" else between(self.low, self.high)

    def game(self, space: Space, pool: Pool | None = None) -> Recalibrator:
        """A new recalibrator on a space; only quantities are in a pool."""
        context = None if self.by is None else by(self.by[0], values=self.by[1])
        return Recalibrator(
            space,
            default_payoff(space, context),
            memory=self.memory,
            outside=self.outside,
            max_pending=self.max_pending,
            pool=pool if isinstance(space, OrderedSpace) else None,
        )


@dataclass(slots=True)
class Settled:
    """A round that is over: digest and answer of its forecast, its outcome (None if it was dropped), and that answer.

    `number` counts such rounds with an id; `saved` is for whoever writes them.
    """

    digest: str
    answer: str
    y: Any
    closing: str
    number: int = 0
    saved: bool = False

    @property
    def size(self) -> int:
        """Bytes that count towards the budget."""
        return len(self.answer) + len(self.closing) + OVERHEAD

    def to_plain(self) -> list[Any]:
        """Plain data."""
        return [self.digest, self.answer, self.y, self.closing, self.number]

    @classmethod
    def from_plain(cls, plain: Any, space: Space | None = None) -> Settled:
        """The inverse of `to_plain`, or a reason why not."""
        digest, answer, y, closing, number = plain
        _check_texts(digest, answer, closing)
        if y is not None and isinstance(space, Labels):
            whole(y, "labels", 0, space.cells - 1)
        elif y is not None:
            single(y)
        return cls(digest, answer, y, closing, whole(number, "rounds", 0, MOST_COUNTED), saved=True)


class SeriesSession:
    """A series: its rounds, the numbers that are carried from round to round, and the last unnamed round that is over.

    A series of a file has none of them until it is first used: `fetch` gets its state.
    """

    __slots__ = ("fetch", "last", "numbers", "rounds", "space")

    def __init__(self, space: Space | None = None, fetch: Callable[[], bytes] | None = None) -> None:
        self.space, self.fetch = space, fetch
        self.rounds: Snapshot | None = None
        self.numbers: NDArray[np.float64] = np.empty(0)
        self.last: Settled | None = None

    @property
    def pending(self) -> dict[Any, PendingRound]:
        """The pending rounds by id, the oldest first; digest and answer of its forecast are attached to each."""
        return {} if self.rounds is None else self.rounds.pending

    def keep(self, game: Recalibrator, *, settled: bool) -> None:
        """Take over the rounds of a recalibrator; only those that are settled change its numbers."""
        if settled:
            self.numbers = pack_row(game.engine.arrays().values())
        self.rounds = game.rounds.snapshot(memory=False)

    def load_into(self, game: Recalibrator) -> None:
        """Give its rounds to a recalibrator."""
        assert self.rounds is not None
        game.rounds.restore(self.rounds)
        game.crossing_reported = False
        at = 0
        for array in game.engine.arrays().values():
            array[...] = self.numbers[at : at + array.size].reshape(array.shape)
            at += array.size


class Recalibrators:
    """Recalibrators by space, the last used ones: series of one space share one, into which their rounds are loaded.

    So a series takes the memory of its numbers, about 17 KB for a quantity.
    """

    def __init__(self, options: StreamSettings, pool: Pool | None) -> None:
        self.options, self.pool = options, pool
        self._games: dict[Space, tuple[Recalibrator, SeriesSession]] = {}  # with a new series
        self._series: dict[Space, SeriesSession] = {}  # whose rounds a recalibrator has

    def _game(self, space: Space) -> tuple[Recalibrator, SeriesSession]:
        found = self._games.pop(space, None)
        if found is None:
            found = self.options.game(space, self.pool), SeriesSession(space)
            found[1].keep(found[0], settled=True)
        self._games[space] = found
        if len(self._games) > MOST_GAMES:
            oldest = next(iter(self._games))
            del self._games[oldest]
            self._series.pop(oldest, None)
        return found

    def new(self, space: Space) -> SeriesSession:
        """Series without rounds."""
        return copy.copy(self._game(space)[1])

    def load(self, data: bytes) -> SeriesSession:
        """Series from its encoded state; raises ValueError if it cannot be read."""
        with persistence.reading(data, KIND) as (header, arrays):
            space = space_from_plain(header["space"])
            game, _ = self._game(space)
            self._series.pop(space, None)
            for key, value in json.loads(json.dumps(persistence.configuration(game, KIND))).items():
                if header[key] != value:
                    raise ValueError(f"{key} was {short(header[key])}, not {short(value)}")
            persistence.restore(game, header, arrays)
            series = SeriesSession(space)
            series.keep(game, settled=True)
            for entry in series.pending.values():
                _check_texts(*entry.attached)
            series.last = None if header["last"] is None else Settled.from_plain(header["last"], space)
            return series

    @contextmanager
    def holding(self, series: SeriesSession) -> Iterator[Recalibrator]:
        """Yield the recalibrator with the rounds of a series, which keeps them if they change."""
        assert series.space is not None
        space, (game, _) = series.space, self._game(series.space)
        if self._series.pop(space, None) is not series:
            series.load_into(game)
        yield game
        self._series[space] = series

    def reset(self) -> None:
        """Load the rounds of each series again when it is next used."""
        self._series.clear()


@dataclass(slots=True)
class StreamAnswer:
    """An answer, and whether anything changed: what changed something has to be kept, a repeat has not."""

    text: bytes
    changed: bool


class Keeper(Protocol):
    """Writes a line that changed something before it is answered."""

    def record(self, series: Name, line: bytes) -> None:
        """Write a line."""

    def recorded(self) -> bool:
        """Return whether the line was written, after an exception."""


class Session(Locked):
    """Answers lines: forecasts with calibrated ones, outcomes with the guarantee, nonsense with what is wrong.

    A line that is refused, or that an exception interrupts, changes nothing.  A line that comes again, recognised by
    its series, id and content, gets the same answer again and changes nothing.

    >>> session = Session()
    >>> print(session.answer(b'{"id": 1, "forecast": {"p": 0.7}}').text.decode().strip())  # doctest: +ELLIPSIS
    {"id": 1, "forecast": {"p": 0...}, "certificate": {"holds": true, ...}}
    >>> print(session.answer(b'{"id": 1, "y": 1}').text.decode().strip())  # doctest: +ELLIPSIS
    {"id": 1, "y": 1, "guarantee": {"rounds": 1, ...}}
    """

    def __init__(self, options: StreamSettings | None = None, *, pool: Pool | None = None) -> None:
        self.lock = GameLock()
        self.options = StreamSettings() if options is None else options
        self.series: dict[Name, SeriesSession] = {}
        self.settled: dict[tuple[Name, Id], Settled] = {}
        self.closed = 0  # rounds with an id that are over
        self.remembered = 0  # bytes of the settled ones
        self.pool = pool
        if self.options.pool and pool is None:
            self.pool = Pool()
            # a pool takes its levels from its first game: from now on no line changes them, be it refused or not
            self.options.game(between(self.options.low, self.options.high), self.pool)
        self.recalibrators = Recalibrators(self.options, self.pool)

    @locked
    def answer(self, line: bytes, keeper: Keeper | None = None) -> StreamAnswer:
        """Answer a line; bad input raises one sentence and changes nothing."""
        read = protocol.read(line)
        known = self._known(read.series)
        again = None if known is None else self._again(read, known)
        if again is not None:
            return StreamAnswer(again.encode(), False)
        series = self._series(read, known)
        undo = self._undo(read.series, series, known is None)
        try:
            text, changed = self._answer(read, series)
            changed |= known is None
            self.series[read.series] = series
            if keeper is not None and changed:
                keeper.record(read.series, line)
        except BaseException:
            if keeper is None or not keeper.recorded():
                undo()
            raise
        self._forget(series, len(text))
        return StreamAnswer(text.encode(), changed)

    def _undo(self, name: Name, series: SeriesSession, fresh: bool) -> Callable[[], None]:
        """Make a function that sets the session as it is now."""
        numbers, rounds, last, over = series.numbers, series.rounds, series.last, len(self.settled)
        closed, remembered = self.closed, self.remembered
        pool = None if self.pool is None else self.pool.snapshot()

        def undo() -> None:
            series.numbers, series.rounds, series.last = numbers, rounds, last
            self.closed, self.remembered = closed, remembered
            self.recalibrators.reset()
            if fresh:
                self.series.pop(name, None)
            while len(self.settled) > over:
                self.settled.popitem()
            if self.pool is not None and pool is not None:
                self.pool.restore(pool)

        return undo

    # --- states
    @locked
    def state(self, name: Name) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """State of a series as plain data and arrays."""
        series = self._known(name)
        assert series is not None
        with self.recalibrators.holding(series) as game:
            header, arrays = persistence.state_of(game, KIND)
        if header["pooled"]:
            header["pooled"] = [0, 0.0]  # the pool is written with the series
        return {**header, "last": series.last and series.last.to_plain()}, arrays

    @locked
    def encode(self, name: Name) -> bytes:
        """State of a series as bytes; raises ValueError if they could not be read back."""
        data = persistence.encode(*self.state(name))
        self.recalibrators.load(data)
        return data

    def decode(self, name: Name, data: bytes) -> None:
        """Add a series, or replace it, by its state as bytes; raises ValueError if they cannot be read."""
        self.series[name] = self.recalibrators.load(data)

    def add(self, name: Name, fetch: Callable[[], bytes]) -> None:
        """Add a series whose state as bytes is read when it is first used."""
        self.series[name] = SeriesSession(fetch=fetch)

    def _known(self, name: Name) -> SeriesSession | None:
        """Series by name, read if it has not been used yet; None if there is none."""
        series = self.series.get(name)
        if series is not None and series.fetch is not None:
            try:
                self.decode(name, series.fetch())
            except ValueError as reason:
                text = f"expected a state of series {short(name)} that can be read, got one that cannot: {reason}"
                raise ValueError(text) from None
        return self.series.get(name)

    # --- what is asked again
    def _again(self, line: StreamLine, series: SeriesSession) -> str | None:
        """The answer to a line that was answered before; None for a new one."""
        entry = series.pending.get(line.id)
        over = series.last if line.id is None else self.settled.get((line.series, line.id))
        if line.forecast is not None:
            return _forecast_again(line, entry, None if line.id is None else over)
        if over is None or not (line.drop or line.y is not None) or (line.id is None and entry is not None):
            return None
        which = "the last round" if line.id is None else f"round {short(line.id)}"
        if line.drop and over.y is not None:
            settled = repr(_shown(over.y, series.space))
            raise ValueError(f"expected a pending round to drop, got {which}, which was settled with {settled}")
        if not line.drop and over.y is None:
            raise ValueError(f"expected the outcome of a pending round, got that of {which}, which was dropped")
        if not line.drop and (y := self._canonical(line.y, series.space)) != over.y:
            settled, got = (repr(_shown(each, series.space)) for each in (over.y, y))
            raise ValueError(f"expected {settled}, with which {which} was settled, got {got}")
        return over.closing

    # --- what a line needs before anything may change
    def _series(self, line: StreamLine, series: SeriesSession | None) -> SeriesSession:
        """The series of a line, made if it is new."""
        wanted = self._stated(line.settings) if line.settings else None
        if series is None:
            limits.check("series", len(self.series) + 1)
            if wanted is None and line.forecast is not None:
                wanted = self.options.space(line.forecast.space, line.forecast.keys)
            if wanted is None:
                what = "drop" if line.drop else "an outcome"
                raise ValueError(f"expected a forecast first, got {what} of a series without any, {short(line.series)}")
            return self.recalibrators.new(wanted)
        if wanted is not None and wanted != series.space:
            began = f"{_described(series.space)}, as series {short(line.series)} began"
            raise ValueError(f"expected {began}, got {_described(wanted)}")
        return series

    def _stated(self, settings: dict[str, Any]) -> Space:
        """The space that a line gives its series; a bound that it leaves out is that of the options."""
        if "low" in settings or "high" in settings:
            bounds = {"low": self.options.low, "high": self.options.high}
            settings = {key: value for key, value in {**bounds, **settings}.items() if value is not None}
        return stated_space(settings)

    def _features(self, line: StreamLine) -> dict[str, Any] | None:
        """The features that matter."""
        if self.options.by is None:
            return None
        key = self.options.by[0]
        if line.x is None or line.x.get(key) is None:
            raise ValueError(f'expected "x": {{"{key}": ...}} beside a forecast (--by {key}), got none')
        return {key: line.x[key]}

    def _canonical(self, y: Any, space: Space | None) -> Any:
        """An outcome as the space has it; labels are text, because in JSON they are keys."""
        assert space is not None
        if isinstance(space, Labels) and not isinstance(y, str):
            y = json.dumps(y)
        elif isinstance(y, bool) and isinstance(space, OrderedSpace):
            raise TypeError(f"expected a number as outcome, got {'true' if y else 'false'}")
        return space.outcome(y, self.options.outside)

    # --- what changes
    def _answer(self, line: StreamLine, series: SeriesSession) -> tuple[str, bool]:
        """The answer to a new line, and whether it changed the rounds."""
        fields: dict[str, Any] = {"space": _plain(series.space)} if line.settings else {}
        if line.forecast is not None:
            return self._predict(line.forecast, line, series, fields), True
        closes = line.drop or line.y is not None
        if closes:
            fields |= self._closed(line, series)
        return protocol.to_line({**_name(line.series, line.id), **fields}), closes

    def _closed(self, line: StreamLine, series: SeriesSession) -> dict[str, Any]:
        """Settle or drop a pending round."""
        what = "drop" if line.drop else "the outcome"
        if line.id is None and None not in series.pending:
            rest = f"({len(series.pending)} rounds with an id are pending)"
            raise ValueError(f"expected {what} with the id of its round, got none {rest}")
        if line.id not in series.pending:
            raise ValueError(f"expected {what} of a pending round, got the id {short(line.id)}")
        entry, y = series.pending[line.id], None
        fields: dict[str, Any] = {"dropped": True}
        with self.recalibrators.holding(series) as game:
            if line.drop:
                game.drop(line.id)
            else:
                y = self._canonical(line.y, series.space)
                shown = _shown(y, series.space)
                game.update(shown, id=line.id)
                fields = {"y": shown, "guarantee": _numbers(game.guarantee, GUARANTEE)}
            series.keep(game, settled=not line.drop)
        self._close(line.series, series, line.id, entry, y, fields)
        return fields

    def _close(
        self, name: Name, series: SeriesSession, id: Id, entry: PendingRound, y: Any, fields: dict[str, Any]
    ) -> None:
        """Remember a round that is over, with its answers, for as long as its lines may come again."""
        digest, answer = entry.attached
        over = Settled(digest, answer, y, protocol.to_line({**_name(name, id), **fields}))
        if id is None:
            series.last = over
        else:
            over.number = self.closed + 1
            self.remember(name, id, over)

    def remember(self, name: Name, id: Id, over: Settled) -> None:
        """Remember a settled round."""
        self.settled[name, id] = over
        self.remembered += over.size
        self.closed = max(self.closed, over.number)

    def _forget(self, series: SeriesSession, size: int) -> None:
        """Forget the oldest settled rounds and answers of pending ones beyond the budgets; the newest stay."""
        while len(self.settled) > self.options.remember or (self.remembered > MOST_BYTES and len(self.settled) > 1):
            self.remembered -= self.settled.pop(next(iter(self.settled))).size
        if size * len(series.pending) > MOST_PENDING_BYTES:
            left = MOST_PENDING_BYTES
            for age, entry in enumerate(reversed(series.pending.values())):
                left -= len(entry.attached[1])
                if left < 0 and age:
                    entry.attached = [entry.attached[0], ""]

    def _predict(self, forecast: LineForecast, line: StreamLine, series: SeriesSession, fields: dict[str, Any]) -> str:
        space = series.space
        kind = "binary" if isinstance(space, Binary) else "labels" if isinstance(space, Labels) else "quantity"
        if forecast.space != kind:
            form = "mean and sd" if forecast.form == "normal" else forecast.form
            raise ValueError(f"expected {FORM[kind]} as forecast on {_described(space)}, got {short(form)}")
        with self.recalibrators.holding(series) as game:
            # the oldest, which is dropped because too many are pending
            lost: list[Any] = [id for id in game.rounds.leaving(line.id) if id != line.id]
            entries = [series.pending[id] for id in lost]
            with quietly():  # what is dropped, sorted or too narrow
                p = game.predict(forecast.expert, x=self._features(line), id=line.id)
            game.rounds.release_unnamed()  # a line is of its series, whichever thread brings it
            series.keep(game, settled=False)
        for id, entry in zip(lost, entries, strict=True):
            self._close(line.series, series, id, entry, None, {"dropped": True})
            fields = {**fields, "lost": id}
        told = protocol.forecast_fields(forecast, p, self.options.levels)
        told |= {"certificate": _numbers(p.certificate, CERTIFICATE), **fields}
        answer = protocol.to_line({**_name(line.series, line.id), **told})
        series.pending[line.id].attached = [line.digest, answer]
        return answer


def _forecast_again(line: StreamLine, entry: PendingRound | None, over: Settled | None) -> str | None:
    """The answer to a forecast that was answered before; None for a new one."""
    if over is not None:
        digest, answer = over.digest, over.answer
    elif entry is not None:
        digest, answer = entry.attached
    else:
        return None
    state = f"got {short(line.id)} once more, which is {'pending' if over is None else 'settled'}"
    if digest != line.digest:
        if line.id is None:
            return None
        raise ValueError(f"expected a new id or the same line again, {state}")
    if not answer:
        raise ValueError(f"expected a line whose answer is remembered, {state}")
    return answer


# --- plain data


def stated_space(given: Mapping[str, Any]) -> Space:
    """Space with bounds, of labels, or binary, as options or a line give it."""
    binary, labels = given.get("binary", False), given.get("labels")
    if not isinstance(binary, bool):
        raise TypeError(f"expected true or false as binary, got {short(binary)}")
    if sum((binary, labels is not None, "low" in given or "high" in given)) > 1:
        raise ValueError(f"expected bounds, binary or labels, got {' and '.join(given)}")
    if binary:
        return Binary()
    if labels is not None:
        if not isinstance(labels, (list, tuple)) or not all(isinstance(label, str) for label in labels):
            raise TypeError(f"expected a list of text as labels, got {short(labels)}")
        return Labels(labels)
    for key, bound in given.items():
        if isinstance(bound, bool) or not isinstance(bound, (int, float)):
            raise TypeError(f"expected a number as {key}, got {short(bound)}")
    return between(given.get("low"), given.get("high"))


def _plain(space: Space | None) -> dict[str, Any]:
    if isinstance(space, Binary):
        return {"binary": True}
    if isinstance(space, Labels):
        return {"labels": list(space.labels)}
    assert isinstance(space, OrderedSpace)
    bounds = {"low": space.low, "high": space.high}
    return {key: bound for key, bound in bounds.items() if math.isfinite(bound)}


def _described(space: Space | None) -> str:
    if isinstance(space, Binary):
        return "a binary outcome"
    if isinstance(space, Labels):
        return f"labels {', '.join(map(str, space.labels))}"
    bounds = ", ".join(f"{key} {bound:g}" for key, bound in _plain(space).items())
    return f"a quantity with {bounds}" if bounds else "a quantity without bounds"


def _check_texts(digest: Any, *answers: Any) -> None:
    """Refuse answers that are no lines; an empty one was forgotten."""
    if not all(isinstance(text, str) for text in (digest, *answers)):
        raise TypeError(f"answers are text, not {short(answers)}")
    if not all(text.startswith("{") and text.endswith("}\n") for text in answers if text):
        raise ValueError(f"answers are lines, not {short(answers)}")


def _numbers(stated: Any, names: tuple[str, ...]) -> dict[str, Any]:
    """Numbers of a certificate or guarantee; also by how much a bound is exceeded, where it is."""
    return {name: getattr(stated, name) for name in (*names, *(("excess",) if stated.excess else ()))}


def _name(series: Name, id: Id) -> dict[str, Any]:
    named: dict[str, Any] = {} if series is None else {"series": series}
    return named if id is None else {**named, "id": id}


def _shown(y: Any, space: Space | None) -> Any:
    return space.value(y) if isinstance(space, Labels) else y
