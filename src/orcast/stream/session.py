"""A session: many series, each with a game of its own, answered line by line."""

from __future__ import annotations

import json
import math
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

from orcast import limits
from orcast.adapters import FINEST, expert_row
from orcast.contexts import ContextInputs, by
from orcast.ledger import Certificate, Guarantee
from orcast.locks import GameLock, Locked, locked
from orcast.payoffs import default_payoff
from orcast.persistence import game_from, state_of
from orcast.pool import Pool
from orcast.recalibrator import Recalibrator
from orcast.rounds import PendingRound
from orcast.spaces import Binary, Labels, OrderedSpace, Space, between
from orcast.stream import protocol
from orcast.stream.protocol import Id, LineForecast, StreamLine
from orcast.validation import number, quietly, short

Name = str | int | None
# A game's state: a header of plain data, and arrays.
State = tuple[dict[str, Any], dict[str, NDArray[Any]]]
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
class IssuedAnswer:
    """What was answered to the forecast of a pending round: the digest of the line's content, and the answer."""

    digest: str
    answer: str


@dataclass(slots=True)
class Settled:
    """A round that is over: its forecast's digest and answer, its outcome (None if it was dropped), and that answer."""

    digest: str
    answer: str
    y: Any
    closing: bytes


class SeriesSession:
    """A series and its game, whose pending rounds have the answers to their forecasts attached.

    A game that comes from a file is made when it is first used.
    """

    __slots__ = ("_game", "_pool", "_state", "last", "space")

    def __init__(
        self, space: Space, game: Recalibrator | None, state: State | None = None, pool: Pool | None = None
    ) -> None:
        self.space = space
        self._game, self._state, self._pool = game, state, pool
        self.last: Settled | None = None  # the last unnamed round

    @property
    def game(self) -> Recalibrator:
        """The game."""
        if self._game is None:
            assert self._state is not None
            pool = self._pool if isinstance(self.space, OrderedSpace) else None
            self._game = game_from(*self._state, Recalibrator.kind, cls=Recalibrator, pool=pool)
            self._state = None
        return self._game

    @property
    def pending(self) -> dict[Any, PendingRound]:
        """The pending rounds by id, the oldest first."""
        return self.game.rounds.pending

    def issued(self, id: Id) -> IssuedAnswer | None:
        """What was answered to the forecast of a pending round; None if there is no such round."""
        entry = self.pending.get(id)
        return None if entry is None else IssuedAnswer(*entry.attached)

    def state(self) -> State:
        """Its state as plain data and arrays."""
        if self._game is None:
            assert self._state is not None
            return self._state
        return state_of(self._game, Recalibrator.kind)


@dataclass(slots=True)
class StreamAnswer:
    """An answer, and whether anything changed: what changed something has to be kept, a repeat has not."""

    text: bytes
    changed: bool


@dataclass
class Session(Locked):
    """Answers lines: forecasts with calibrated ones, outcomes with the guarantee, nonsense with what is wrong.

    A line that is refused changes nothing.  A line that comes again, recognised by its series, id and content, gets
    the same answer again and changes nothing.

    >>> session = Session(StreamSettings(low=0, high=10))
    >>> print(session.answer(b'{"id": 1, "forecast": {"p": 0.7}}').text.decode().strip())  # doctest: +ELLIPSIS
    {"id": 1, "forecast": {"p": 0...}, "certificate": {"holds": true, ...}}
    >>> print(session.answer(b'{"id": 1, "y": 1}').text.decode().strip())  # doctest: +ELLIPSIS
    {"id": 1, "y": 1, "guarantee": {"rounds": 1, ...}}
    """

    options: StreamSettings = field(default_factory=StreamSettings)
    series: dict[Name, SeriesSession] = field(default_factory=dict)
    settled: dict[tuple[Name, Id], Settled] = field(default_factory=dict)
    pool: Pool | None = None
    lock: GameLock = field(default_factory=GameLock, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.options.pool and self.pool is None:
            self.pool = Pool()
            # a pool takes its levels from its first game: from now on no line changes them, be it refused or not
            self.options.game(self.options.space("quantity", ()), self.pool)

    @locked
    def answer(self, line: bytes) -> StreamAnswer:
        """The answer to a line; bad input raises one sentence and changes nothing."""
        read = protocol.read(line)
        again = self._again(read)
        if again is not None:
            return StreamAnswer(again, False)
        series = self._series(read)
        y = self._outcome(read, series)
        fields: dict[str, Any] = {"space": _plain(series.space)} if read.settings else {}
        if read.forecast is not None:
            if self._check_forecast(read.forecast, read, series):
                fields["beyond_doubles"] = True
            return StreamAnswer(self._predict(read.forecast, read, series, fields), True)
        if read.drop:
            fields = self._drop(read, series)
        elif y is not None:
            fields |= self._settle(read, series, y)
        fresh = read.series not in self.series
        self.series[read.series] = series
        answer = protocol.to_line({**_name(read.series, read.id), **fields})
        return StreamAnswer(answer, fresh or y is not None or read.drop)

    # --- what is asked again
    def _again(self, line: StreamLine) -> bytes | None:
        """The answer to a line that was answered before; None for a new one."""
        series = self.series.get(line.series)
        if line.id is None:
            return None if series is None else _unnamed_again(line, series)
        over = self.settled.get((line.series, line.id))
        if line.forecast is not None:
            issued = over or (None if series is None else series.issued(line.id))
            if issued is None:
                return None
            if issued.digest == line.digest:
                return issued.answer.encode()
            state = "is settled" if over is not None else "is pending"
            raise ValueError(f"expected a new id or the same line again, got {short(line.id)} once more, which {state}")
        if over is None or series is None or not (line.drop or line.y is not None):
            return None
        return _closed_again(line, series, over, f"round {short(line.id)}")

    # --- what a line needs before anything may change
    def _series(self, line: StreamLine) -> SeriesSession:
        series = self.series.get(line.series)
        if series is None:
            if line.forecast is None and not line.settings:
                raise ValueError(f"expected a forecast first, got {'drop' if line.drop else 'an outcome'} "
                                 f"of a series without any, {short(line.series)}")  # fmt: skip
            limits.check("series", len(self.series) + 1)
            space = self._new_space(line)
            return SeriesSession(space, self.options.game(space, self.pool))
        if line.settings:
            wanted = self._stated(line.settings)
            if wanted != series.space:
                raise ValueError(f"expected {_described(series.space)}, as series {short(line.series)} began, "
                                 f"got {_described(wanted)}")  # fmt: skip
        return series

    def _new_space(self, line: StreamLine) -> Space:
        if line.settings:
            return self._stated(line.settings)
        assert line.forecast is not None
        return self.options.space(line.forecast.space, line.forecast.keys)

    def _stated(self, settings: dict[str, Any]) -> Space:
        """The space that a line says its series has; a bound that it leaves out is that of the options."""
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

    def _check_forecast(self, forecast: LineForecast, line: StreamLine, series: SeriesSession) -> bool:
        """Refuse a forecast that the series cannot have; whether its quantiles are too few numbers apart."""
        space = series.space
        kind = "binary" if isinstance(space, Binary) else "labels" if isinstance(space, Labels) else "quantity"
        if forecast.space != kind:
            form = "mean and sd" if forecast.form == "normal" else forecast.form
            raise ValueError(f"expected {FORM[kind]} as forecast on {_described(space)}, got {short(form)}")
        row, _ = expert_row(forecast.expert, space)
        if self.options.by is not None:
            # the groups of the round, which its features decide: refused here if there is none
            series.game.engine.bound_payoff.context(ContextInputs(self._features(line)))
        low, high = row.item(0), row.item(-1)
        return kind == "quantity" and low < high and high - low < FINEST * max(high, -low)

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
        return None if line.drop else _canonical(line.y, series)

    # --- what changes
    def _settle(self, line: StreamLine, series: SeriesSession, y: Any) -> dict[str, Any]:
        issued = series.issued(line.id)
        shown = series.space.value(y) if isinstance(series.space, Labels) else y
        series.game.update(shown, id=line.id)
        guarantee = series.game.guarantee
        fields = {
            "y": shown,
            "guarantee": {
                "rounds": guarantee.rounds,
                "miscalibration": guarantee.miscalibration,
                "promised": guarantee.promised,
                "held": guarantee.held,
                **_excess(guarantee),
            },
        }
        self._remember(line.series, line.id, issued, y, fields)
        return fields

    def _drop(self, line: StreamLine, series: SeriesSession) -> dict[str, Any]:
        issued = series.issued(line.id)
        series.game.drop(line.id)
        fields = {"dropped": True}
        self._remember(line.series, line.id, issued, None, fields)
        return fields

    def _remember(self, name: Name, id: Id, issued: IssuedAnswer | None, y: Any, fields: dict[str, Any]) -> None:
        """Remember a round that is over, and what was answered, for as long as its line may come again."""
        assert issued is not None
        over = Settled(issued.digest, issued.answer, y, protocol.to_line({**_name(name, id), **fields}))
        if id is None:
            self.series[name].last = over
            return
        self.settled[name, id] = over
        while len(self.settled) > self.options.remember:
            del self.settled[next(iter(self.settled))]

    def _predict(
        self, forecast: LineForecast, line: StreamLine, series: SeriesSession, fields: dict[str, Any]
    ) -> bytes:
        # the oldest, which the game drops because too many are pending
        leaving: list[Any] = series.game.rounds.leaving(line.id)
        lost = [(id, series.issued(id)) for id in leaving if id != line.id]
        with quietly():  # what is dropped, sorted or too narrow is in the answer
            p = series.game.predict(forecast.expert, x=self._features(line), id=line.id)
        for id, issued in lost:
            self._remember(line.series, id, issued, None, {"dropped": True})
            fields = {**fields, "lost": id}
        certificate = p.certificate
        answer = protocol.to_line(
            {
                **_name(line.series, line.id),
                **protocol.forecast_fields(forecast, p, self.options.levels),
                "certificate": {
                    "holds": certificate.holds,
                    "worst_next": certificate.worst_next,
                    "allowed": certificate.allowed,
                    "bound": certificate.bound,
                    "promised": certificate.promised,
                    **_excess(certificate),
                },
                **fields,
            }
        )
        self.series[line.series] = series
        series.pending[line.id].attached = [line.digest, answer.decode()]
        return answer


def _excess(stated: Certificate | Guarantee) -> dict[str, float]:
    """By how much a promise may be, or was, exceeded, where a certificate did not hold."""
    return {"excess": stated.excess} if stated.excess else {}


def _name(series: Name, id: Id) -> dict[str, Any]:
    named: dict[str, Any] = {} if series is None else {"series": series}
    return named if id is None else {**named, "id": id}


def _unnamed_again(line: StreamLine, series: SeriesSession) -> bytes | None:
    """A line without an id is a repeat if it could be nothing else."""
    issued = series.issued(None)
    if line.forecast is not None:
        return issued.answer.encode() if issued is not None and issued.digest == line.digest else None
    if issued is not None or series.last is None or not (line.drop or line.y is not None):
        return None
    return _closed_again(line, series, series.last, "the last round")


def _closed_again(line: StreamLine, series: SeriesSession, over: Settled, which: str) -> bytes:
    if line.drop and over.y is None:
        return over.closing
    if line.drop:
        raise ValueError(f"expected a pending round to drop, got {which}, which was settled with "
                         f"{_shown(over.y, series)}")  # fmt: skip
    if over.y is None:
        raise ValueError(f"expected the outcome of a pending round, got that of {which}, which was dropped")
    y = _canonical(line.y, series)
    if y == over.y:
        return over.closing
    raise ValueError(f"expected {_shown(over.y, series)}, with which {which} was settled, "
                     f"got {_shown(y, series)}")  # fmt: skip


def _shown(y: Any, series: SeriesSession) -> str:
    return repr(series.space.value(y) if isinstance(series.space, Labels) else y)


def _canonical(y: Any, series: SeriesSession) -> Any:
    """An outcome as the space has it; labels are text, because in JSON they are keys."""
    if isinstance(series.space, Labels) and not isinstance(y, str):
        y = json.dumps(y)
    elif isinstance(y, bool) and isinstance(series.space, OrderedSpace):
        raise TypeError(f"expected a number as outcome, got {'true' if y else 'false'}")
    return series.space.outcome(y, series.game.outside)


def _plain(space: Space) -> dict[str, Any]:
    if isinstance(space, Binary):
        return {"binary": True}
    if isinstance(space, Labels):
        return {"labels": list(space.labels)}
    assert isinstance(space, OrderedSpace)
    bounds = {"low": space.low, "high": space.high}
    return {key: bound for key, bound in bounds.items() if math.isfinite(bound)}


def _described(space: Space) -> str:
    if isinstance(space, Binary):
        return "a binary outcome"
    if isinstance(space, Labels):
        return f"labels {', '.join(map(str, space.labels))}"
    bounds = ", ".join(f"{key} {bound:g}" for key, bound in _plain(space).items())
    return f"a quantity with {bounds}" if bounds else "a quantity without bounds"
