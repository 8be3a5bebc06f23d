"""A session: many series, answered line by line."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from orcast import limits, persistence
from orcast.contexts import by
from orcast.ledger import Certificate, Guarantee
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
FORM = {
    "quantity": "quantiles, mean and sd, or members",
    "binary": '{"p": ...}',
    "labels": '{"probabilities": ...}',
}


@dataclass(frozen=True)
class StreamSettings:
    """How series begin, and what is answered.

    `low` and `high` bound quantities; without them any number may come.  With `binary` or `labels` outcomes are no
    quantities; else the form of a series' first forecast decides.  `levels` are quantiles to answer with, as text.
    `by` keeps the values of a feature calibrated each by itself.  `memory` is in rounds.  At most
    `max_pending` rounds of a series are pending, and `remember` settled rounds of all series are remembered.  With
    `pool` quantities of all series learn together, as games that share an `orcast.Pool`.
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
        if self.labels and self.binary:
            raise ValueError("expected binary or labels, got both")
        if (self.low is not None or self.high is not None) and (self.binary or self.labels):
            raise ValueError("expected bounds, binary or labels, got two of them")
        for level in self.levels:
            told: object = level
            with suppress(ValueError):
                told = float(level)
            if not 0.0 < number(told, "level", 0.0, 1.0) < 1.0:
                raise ValueError(f"expected levels strictly between 0 and 1, got {level}")
        if len({float(level) for level in self.levels}) < len(self.levels):
            raise ValueError(f"expected different levels, got {', '.join(self.levels)}")
        if not isinstance(self.pool, bool):
            raise TypeError(f"expected pool=True or False, got {short(self.pool)}")
        if self.remember < 1:
            raise ValueError(f"expected at least 1 settled round to be remembered, got {self.remember}")
        between(self.low, self.high)
        if self.labels:
            Labels(self.labels)
        # says what is wrong with the rest
        self.game(self.space("quantity", ()))

    def space(self, kind: str, labels: tuple[str, ...]) -> Space:
        """The space of a series whose first forecast is of a kind."""
        if self.binary:
            return Binary()
        if self.labels:
            return Labels(self.labels)
        if kind == "binary":
            return Binary()
        if kind == "labels":
            return Labels(labels)
        return between(self.low, self.high)

    def game(self, space: Space, pool: Pool | None = None) -> Recalibrator:
        """A new game on a space; only quantities are in a pool."""
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

    `number` counts such rounds; `saved` is for whoever writes them.
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
        """The pending rounds by id, the oldest first."""
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

    def issued(self, id: Id) -> tuple[str, str] | None:
        """Digest and answer of the forecast of a pending round; None if there is no such round."""
        entry = self.pending.get(id)
        return None if entry is None else tuple(entry.attached)


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
            game, blank = self.options.game(space, self.pool), SeriesSession(space)
            blank.keep(game, settled=True)
            found = game, blank
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
            own = json.loads(json.dumps(persistence.configuration(game, KIND)))
            for key, value in own.items():
                if header[key] != value:
                    raise ValueError(f"{key} was {short(header[key])}, not {short(value)}")
            persistence.restore(game, header, arrays)
            series = SeriesSession(space)
            series.keep(game, settled=True)
            for entry in series.pending.values():
                _check_texts(*entry.attached)
            series.last = None if header["last"] is None else settled_from_plain(header["last"], space)
            return series

    @contextmanager
    def holding(self, series: SeriesSession) -> Iterator[Recalibrator]:
        """Yield the recalibrator with the rounds of a series; whoever changes them keeps a snapshot."""
        assert series.space is not None
        space, (game, _) = series.space, self._game(series.space)
        if self._series.pop(space, None) is not series:
            series.load_into(game)
        yield game
        self._series[space] = series

    def reset(self) -> None:
        """Load the rounds of each series again: one was changed elsewhere."""
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

    >>> session = Session(StreamSettings(low=0, high=10))
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
        self.closed = 0  # rounds that are over
        self.remembered = 0  # bytes of the settled ones
        self.pool = pool
        if self.options.pool and pool is None:
            self.pool = Pool()
            # a pool takes its levels from its first game: from now on no line changes them, be it refused or not
            self.options.game(self.options.space("quantity", ()), self.pool)
        self.recalibrators = Recalibrators(self.options, self.pool)

    @locked
    def answer(self, line: bytes, keeper: Keeper | None = None) -> StreamAnswer:
        """The answer to a line; bad input raises one sentence and changes nothing."""
        read = protocol.read(line)
        known = self._known(read.series)
        again = self._again(read, known)
        if again is not None:
            return StreamAnswer(again.encode(), False)
        series = self._series(read, known)
        undo = self._undo(read.series, series, known is None)
        try:
            text, changed = self._new_answer(read, series)
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
        """Make what brings back the session as it is now."""
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

    def _new_answer(self, line: StreamLine, series: SeriesSession) -> tuple[str, bool]:
        y = self._outcome(line, series)
        fields: dict[str, Any] = {"space": _plain(series.space)} if line.settings else {}
        if line.forecast is not None:
            self._check_forecast(line.forecast, series.space)
            return self._predict(line.forecast, line, series, fields), True
        if line.drop:
            fields = self._drop(line, series)
        elif y is not None:
            fields |= self._settle(line, series, y)
        answer = protocol.to_line({**_name(line.series, line.id), **fields})
        return answer, y is not None or line.drop or line.series not in self.series

    # --- states
    def state(self, name: Name) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """State of a series as plain data and arrays."""
        series = self._known(name)
        assert series is not None
        with self.recalibrators.holding(series) as game:
            header, arrays = persistence.state_of(game, KIND)
        if header["pooled"]:
            header["pooled"] = [0, 0.0]  # the pool is written with the series
        return {**header, "last": None if series.last is None else settled_to_plain(series.last)}, arrays

    @locked
    def encode(self, name: Name) -> bytes:
        """State of a series as bytes, which were read back."""
        series = self.series[name]
        if series.fetch is not None:
            return series.fetch()
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
        if series is None or series.fetch is None:
            return series
        try:
            self.decode(name, series.fetch())
        except ValueError as reason:
            raise ValueError(
                f"expected a state of series {short(name)} that can be read, got one that cannot: {reason}"
            ) from None
        return self.series[name]

    # --- what is asked again
    def _again(self, line: StreamLine, series: SeriesSession | None) -> str | None:
        """The answer to a line that was answered before; None for a new one."""
        if series is None:
            return None
        issued = series.issued(line.id)
        over = series.last if line.id is None else self.settled.get((line.series, line.id))
        if line.forecast is not None:
            return _forecast_again(line, issued, over)
        if over is None or not (line.drop or line.y is not None) or (line.id is None and issued is not None):
            return None
        return self._closed_again(line, series.space, over)

    def _closed_again(self, line: StreamLine, space: Space | None, over: Settled) -> str:
        which = "the last round" if line.id is None else f"round {short(line.id)}"
        if line.drop and over.y is not None:
            raise ValueError(f"expected a pending round to drop, got {which}, which was settled with "
                             f"{_shown(over.y, space)!r}")  # fmt: skip
        if not line.drop and over.y is None:
            raise ValueError(f"expected the outcome of a pending round, got that of {which}, which was dropped")
        if not line.drop and (y := self._canonical(line.y, space)) != over.y:
            raise ValueError(f"expected {_shown(over.y, space)!r}, with which {which} was settled, "
                             f"got {_shown(y, space)!r}")  # fmt: skip
        return over.closing

    # --- what a line needs before anything may change
    def _series(self, line: StreamLine, series: SeriesSession | None) -> SeriesSession:
        """The series of a line, made if it is new."""
        wanted = self._stated(line.settings) if line.settings else None
        if series is None:
            if line.forecast is None and wanted is None:
                raise ValueError(f"expected a forecast first, got {'drop' if line.drop else 'an outcome'} "
                                 f"of a series without any, {short(line.series)}")  # fmt: skip
            limits.check("series", len(self.series) + 1)
            if wanted is None:
                assert line.forecast is not None
                wanted = self.options.space(line.forecast.space, line.forecast.keys)
            return self.recalibrators.new(wanted)
        if wanted is not None and wanted != series.space:
            raise ValueError(f"expected {_described(series.space)}, as series {short(line.series)} began, "
                             f"got {_described(wanted)}")  # fmt: skip
        return series

    def _stated(self, settings: dict[str, Any]) -> Space:
        """The space that a line gives its series; a bound that it leaves out is that of the options."""
        binary, labels = settings.get("binary", False), settings.get("labels")
        bounds = {key: settings[key] for key in ("low", "high") if key in settings}
        if not isinstance(binary, bool):
            raise TypeError(f"expected true or false as binary, got {short(binary)}")
        if sum((binary, labels is not None, bool(bounds))) > 1:
            raise ValueError(f"expected bounds, binary or labels, got {' and '.join(settings)}")
        if binary:
            return Binary()
        if labels is not None:
            if not isinstance(labels, list) or not all(isinstance(label, str) for label in labels):
                raise TypeError(f"expected a list of text as labels, got {short(labels)}")
            return Labels(labels)
        for key, bound in bounds.items():
            if isinstance(bound, bool) or not isinstance(bound, (int, float)):
                raise TypeError(f"expected a number as {key}, got {short(bound)}")
        return between(bounds.get("low", self.options.low), bounds.get("high", self.options.high))

    def _features(self, line: StreamLine) -> dict[str, Any] | None:
        """The features that matter."""
        if self.options.by is None:
            return None
        key = self.options.by[0]
        if line.x is None or line.x.get(key) is None:
            raise ValueError(f'expected "x": {{"{key}": ...}} beside a forecast (--by {key}), got none')
        return {key: line.x[key]}

    def _outcome(self, line: StreamLine, series: SeriesSession) -> Any:
        """Outcome of a line as the space has it; None if there is none.  Its round must be pending."""
        if line.y is None and not line.drop:
            return None
        if line.id not in series.pending:
            what = "drop" if line.drop else "the outcome"
            if line.id is None:
                count = len(series.pending)
                raise ValueError(
                    f"expected {what} with the id of its round, got none ({count} rounds with an id are pending)"
                )
            raise ValueError(f"expected {what} of a pending round, got the id {short(line.id)}")
        return None if line.drop else self._canonical(line.y, series.space)

    # --- what changes
    def _settle(self, line: StreamLine, series: SeriesSession, y: Any) -> dict[str, Any]:
        issued = series.issued(line.id)
        shown = _shown(y, series.space)
        with self.recalibrators.holding(series) as game:
            game.update(shown, id=line.id)
            guarantee = game.guarantee
            series.keep(game, settled=True)
        names = ("rounds", "miscalibration", "promised", "held")
        told = {name: getattr(guarantee, name) for name in names} | _excess(guarantee)
        return self._close(line, series, line.id, issued, y, {"y": shown, "guarantee": told})

    def _drop(self, line: StreamLine, series: SeriesSession) -> dict[str, Any]:
        issued = series.issued(line.id)
        with self.recalibrators.holding(series) as game:
            game.drop(line.id)
            series.keep(game, settled=False)
        return self._close(line, series, line.id, issued, None, {"dropped": True})

    def _close(
        self, line: StreamLine, series: SeriesSession, id: Id, issued: Any, y: Any, fields: dict[str, Any]
    ) -> dict[str, Any]:
        """Remember a round that is over, with its answers, for as long as its lines may come again."""
        digest, answer = issued
        over = Settled(digest, answer, y, protocol.to_line({**_name(line.series, id), **fields}))
        if id is None:
            series.last = over
        else:
            over.number = self.closed + 1
            self.remember(line.series, id, over)
        return fields

    def remember(self, name: Name, id: Id, over: Settled) -> None:
        """Remember a settled round."""
        self.settled[name, id] = over
        self.remembered += over.size
        self.closed = max(self.closed, over.number)

    def _forget(self, series: SeriesSession, size: int) -> None:
        """Forget the oldest settled rounds beyond the budgets, and such answers of pending ones; the newest stays."""
        if size * len(series.pending) > MOST_PENDING_BYTES:
            _forget_answers(series)
        while len(self.settled) > self.options.remember or (self.remembered > MOST_BYTES and len(self.settled) > 1):
            self.remembered -= self.settled.pop(next(iter(self.settled))).size

    def _predict(self, forecast: LineForecast, line: StreamLine, series: SeriesSession, fields: dict[str, Any]) -> str:
        with self.recalibrators.holding(series) as game:
            # the oldest, which is dropped because too many are pending
            leaving: list[Any] = [id for id in game.rounds.leaving(line.id) if id != line.id]
            lost = [(id, series.issued(id)) for id in leaving]
            with quietly():  # what is dropped, sorted or too narrow
                p = game.predict(forecast.expert, x=self._features(line), id=line.id)
            game.rounds.release_unnamed()  # a line is of its series, whichever thread brings it
            series.keep(game, settled=False)
        for id, issued in lost:
            self._close(line, series, id, issued, None, {"dropped": True})
            fields = {**fields, "lost": id}
        names = ("holds", "worst_next", "allowed", "bound", "promised")
        told = {name: getattr(p.certificate, name) for name in names} | _excess(p.certificate)
        form = protocol.forecast_fields(forecast, p, self.options.levels)
        answer = protocol.to_line({**_name(line.series, line.id), **form, "certificate": told, **fields})
        series.pending[line.id].attached = [line.digest, answer]
        return answer

    def _check_forecast(self, forecast: LineForecast, space: Space | None) -> None:
        """Refuse a form of forecast that the series cannot have."""
        kind = "binary" if isinstance(space, Binary) else "labels" if isinstance(space, Labels) else "quantity"
        if forecast.space != kind:
            form = "mean and sd" if forecast.form == "normal" else forecast.form
            raise ValueError(f"expected {FORM[kind]} as forecast on {_described(space)}, got {short(form)}")

    def _canonical(self, y: Any, space: Space | None) -> Any:
        """An outcome as the space has it; labels are text, because in JSON they are keys."""
        assert space is not None
        if isinstance(space, Labels) and not isinstance(y, str):
            y = json.dumps(y)
        elif isinstance(y, bool) and isinstance(space, OrderedSpace):
            raise TypeError(f"expected a number as outcome, got {'true' if y else 'false'}")
        return space.outcome(y, self.options.outside)


def _forecast_again(line: StreamLine, issued: tuple[str, str] | None, over: Settled | None) -> str | None:
    """The answer to a forecast that was answered before; None for a new one."""
    if line.id is not None and over is not None:
        issued = over.digest, over.answer
    if issued is None or (line.id is None and issued[0] != line.digest):
        return None
    state = "is pending" if over is None else "is settled"
    if issued[0] != line.digest:
        raise ValueError(f"expected a new id or the same line again, got {short(line.id)} once more, which {state}")
    if not issued[1]:
        raise ValueError(f"expected a line whose answer is remembered, got {short(line.id)} once more, which {state}")
    return issued[1]


def _forget_answers(series: SeriesSession) -> None:
    """Forget the answers of the oldest pending rounds beyond the budget; the newest one stays."""
    left = MOST_PENDING_BYTES
    for age, entry in enumerate(reversed(series.pending.values())):
        digest, answer = entry.attached
        left -= len(answer)
        if left < 0 and age:
            entry.attached = [digest, ""]


# --- plain data


def settled_to_plain(over: Settled) -> list[Any]:
    """A settled round as plain data."""
    return [over.digest, over.answer, over.y, over.closing, over.number]


def settled_from_plain(plain: Any, space: Space | None = None) -> Settled:
    """A settled round from plain data, or a reason why not."""
    digest, answer, y, closing, number = plain
    _check_texts(digest, answer, closing)
    if y is not None and isinstance(space, Labels):
        whole(y, "labels", 0, space.cells - 1)
    elif y is not None:
        single(y)
    return Settled(digest, answer, y, closing, whole(number, "rounds", 0, MOST_COUNTED), saved=True)


def _check_texts(digest: Any, *answers: Any) -> None:
    """Refuse answers that are no lines; an empty one was forgotten."""
    for text in (digest, *answers):
        if not isinstance(text, str):
            raise TypeError(f"answers are text, not {short(text)}")
    if not all(text.startswith("{") and text.endswith("}\n") for text in answers if text):
        raise ValueError(f"answers are lines, not {short(answers)}")


def _excess(stated: Certificate | Guarantee) -> dict[str, float]:
    """By how much a bound may be, or was, exceeded, where a certificate did not hold."""
    return {"excess": stated.excess} if stated.excess else {}


def _name(series: Name, id: Id) -> dict[str, Any]:
    named: dict[str, Any] = {} if series is None else {"series": series}
    return named if id is None else {**named, "id": id}


def _shown(y: Any, space: Space | None) -> Any:
    return space.value(y) if isinstance(space, Labels) else y


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
