"""The desk: many series, each with a game of its own, answered line by line."""

from __future__ import annotations

import json
import math
import warnings
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

from orcast.adapters import expert_row
from orcast.contexts import by
from orcast.payoffs import (
    BinaryCalibration,
    Calibeating,
    LabelCalibration,
    MomentMatching,
    NoRegret,
    Payoff,
    QuantileCalibration,
)
from orcast.persistence.state import game_from, state_of
from orcast.recalibrator import Recalibrator
from orcast.scores import CRPS, Brier
from orcast.spaces import Binary, HalfLine, Interval, Labels, OrderedSpace, Space
from orcast.spaces import Line as AnyNumber
from orcast.streaming import protocol as lines
from orcast.streaming.protocol import Given, Id, StreamLine
from orcast.validation import number, short

Name = str | int | None
# A game's state: a header of plain data, and arrays.
State = tuple[dict[str, Any], dict[str, NDArray[Any]]]
OWNER = "Recalibrator"
FORM = {
    "quantity": "quantiles, mean and sd, or members",
    "binary": '{"p": ...}',
    "labels": '{"probabilities": ...}',
}


@dataclass(frozen=True)
class StreamSettings:
    """How series begin, and what is told of them.

    `low` and `high` bound quantities; without them any number may come.  `binary` or `labels` say that
    outcomes are none; else the first forecast of a series says it.  `levels` are quantiles to tell, as text.
    `by` keeps the values of a feature calibrated each by itself.  `memory` is in rounds.  At most
    `max_pending` rounds of a series wait, and `remember` settled rounds of all series are remembered.
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

    def __post_init__(self) -> None:
        if self.labels and self.binary:
            raise ValueError("expected binary or labels, got both")
        if (self.low is not None or self.high is not None) and (self.binary or self.labels):
            raise ValueError("expected bounds, binary or labels, got two of them")
        for level in self.levels:
            number(level, "level", 0.0, 1.0)
            if not 0.0 < float(level) < 1.0:
                raise ValueError(f"expected levels strictly between 0 and 1, got {level}")
        if len({float(level) for level in self.levels}) < len(self.levels):
            raise ValueError(f"expected different levels, got {', '.join(self.levels)}")
        if self.remember < 1:
            raise ValueError(f"expected at least 1 settled round to be remembered, got {self.remember}")
        if self.low is not None or self.high is not None:
            quantity(self.low, self.high)
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
        return quantity(self.low, self.high)

    def game(self, space: Space) -> Recalibrator:
        """A new game on a space."""
        return Recalibrator(
            space, self._payoff(space), memory=self.memory, outside=self.outside, max_pending=self.max_pending
        )

    def _payoff(self, space: Space) -> Payoff | None:
        if self.by is None:
            return None
        context = by(self.by[0], values=self.by[1])
        if isinstance(space, Binary):
            parts = BinaryCalibration(context=context) + Calibeating(weight=0.5)
            return parts + MomentMatching(1, weight=0.25) + NoRegret(Brier())
        if isinstance(space, Labels):
            return LabelCalibration(context=context) + NoRegret(Brier())
        return QuantileCalibration(context=context) + MomentMatching(2) + NoRegret(CRPS())


def quantity(low: Any, high: Any) -> Space:
    """The space of a quantity with these bounds, either of which may be None."""
    if low is None and high is None:
        return AnyNumber()
    if low is None:
        raise ValueError(f"expected a lower bound beside the upper one, got high={high!r} alone")
    return HalfLine(low) if high is None else Interval(low, high)


@dataclass(slots=True)
class IssuedAnswer:
    """What was answered to a forecast that waits: the mark of the line's content, and the answer."""

    print: str
    answer: bytes


@dataclass(slots=True)
class Settled:
    """A round that is over: its forecast's mark and answer, its outcome (None if it was dropped), and that answer."""

    print: str
    answer: bytes
    y: Any
    closing: bytes


class SeriesSession:
    """A series: its game, and what was said of the rounds that wait, in the order of the game's own.

    A game that comes from a file is made when it is first used.
    """

    __slots__ = ("_game", "_state", "last", "space", "waiting")

    def __init__(self, space: Space, game: Recalibrator | None, state: State | None = None) -> None:
        self.space = space
        self._game, self._state = game, state
        self.waiting: dict[Id, IssuedAnswer] = {}
        self.last: Settled | None = None  # the last round without a name

    @property
    def game(self) -> Recalibrator:
        """The game."""
        if self._game is None:
            assert self._state is not None
            self._game = Recalibrator._of(game_from(*self._state, OWNER))
            self._state = None
        return self._game

    def state(self) -> State:
        """Its state as plain data and arrays."""
        if self._game is None:
            assert self._state is not None
            return self._state
        return state_of(self._game.game, OWNER)


@dataclass(slots=True)
class StreamAnswer:
    """An answer, and whether anything changed: what changed something has to be kept, a repeat has not."""

    text: bytes
    changed: bool


@dataclass
class Session:
    """Answers lines: forecasts with calibrated ones, outcomes with the guarantee, nonsense with what is wrong.

    A line that is refused changes nothing.  A line that comes again, told by its series, id and content, gets the
    same answer again and changes nothing.

    >>> desk = Desk(Options(low=0, high=10))
    >>> print(desk.answer(b'{"id": 1, "forecast": {"p": 0.7}}').text.decode().strip())  # doctest: +ELLIPSIS
    {"id": 1, "forecast": {"p": 0...}, "certificate": {"holds": true, ...}}
    >>> print(desk.answer(b'{"id": 1, "y": 1}').text.decode().strip())  # doctest: +ELLIPSIS
    {"id": 1, "y": 1, "guarantee": {"rounds": 1, ...}}
    """

    options: StreamSettings = field(default_factory=StreamSettings)
    strict: bool = False  # whether a repeat must always be told from a new line
    series: dict[Name, SeriesSession] = field(default_factory=dict)
    settled: dict[tuple[Name, Id], Settled] = field(default_factory=dict)

    def answer(self, line: bytes) -> StreamAnswer:
        """The answer to a line; bad input raises one sentence and changes nothing."""
        read = lines.read(line)
        again = self._again(read)
        if again is not None:
            return StreamAnswer(again, False)
        series = self._series(read)
        of, y = self._outcome(read, series)
        if read.given is not None:
            self._check_forecast(read, series)
        told: dict[str, Any] = {}
        if read.drop:
            told = self._drop(read, series)
        else:
            if read.settings:
                told["space"] = _plain(series.space)
            # the outcome first: it is of an earlier round, and the forecast should know it
            booked = {} if y is None else self._book(read, series, of, y)
            if read.given is not None:
                return StreamAnswer(self._predict(read, series, told, booked), True)
            told |= booked
        fresh = read.series not in self.series
        self.series[read.series] = series
        answer = lines.text({**_name(read.series, read.id), **told})
        return StreamAnswer(answer, fresh or y is not None or read.drop)

    # --- what is asked again
    def _again(self, line: StreamLine) -> bytes | None:
        """The answer to a line that was answered before; None for a new one."""
        series = self.series.get(line.series)
        if line.id is None:
            return None if series is None else _unnamed_again(line, series)
        over = self.settled.get((line.series, line.id))
        if line.given is not None:
            said = over or (None if series is None else series.waiting.get(line.id))
            if said is None:
                return None
            if said.print == line.print:
                return said.answer
            state = "is settled" if over is not None else "waits for its outcome"
            raise ValueError(f"expected a new id or the same line again, got {short(line.id)} once more, which {state}")
        if over is None or series is None or not (line.drop or line.y is not None):
            return None
        return _closed_again(line, series, over, f"round {short(line.id)}")

    # --- what a line needs before anything may change
    def _series(self, line: StreamLine) -> SeriesSession:
        series = self.series.get(line.series)
        if series is None:
            if line.given is None and not line.settings:
                raise ValueError(f"expected a forecast first, got {'drop' if line.drop else 'an outcome'} "
                                 f"of a series without any, {short(line.series)}")  # fmt: skip
            space = self._new_space(line)
            return SeriesSession(space, self.options.game(space))
        if line.settings:
            wanted = self._stated(line.settings)
            if wanted != series.space:
                raise ValueError(f"expected {_words(series.space)}, as series {short(line.series)} began, "
                                 f"got {_words(wanted)}")  # fmt: skip
        return series

    def _new_space(self, line: StreamLine) -> Space:
        if line.settings:
            return self._stated(line.settings)
        assert line.given is not None
        return self.options.space(line.given.space, line.given.keys)

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
        return quantity(bounds.get("low", self.options.low), bounds.get("high", self.options.high))

    def _check_forecast(self, line: StreamLine, series: SeriesSession) -> None:
        given, space = line.given, series.space
        assert given is not None
        kind = "binary" if isinstance(space, Binary) else "labels" if isinstance(space, Labels) else "quantity"
        if given.space != kind:
            raise ValueError(f"expected {FORM[kind]} as forecast on {_words(space)}, got {short(_form(given))}")
        row, _ = expert_row(given.expert, space)
        if self.options.by is not None:
            # the groups of a round are found by its features: a trial finds what is wrong with them
            series.game.game.engine.predict(row[None, :], self._features(line))

    def _features(self, line: StreamLine) -> dict[str, Any] | None:
        """The features that matter."""
        if self.options.by is None:
            return None
        key = self.options.by[0]
        if line.x is None or line.x.get(key) is None:
            raise ValueError(f'expected "x": {{"{key}": ...}} beside a forecast (--by {key}), got none')
        return {key: line.x[key]}

    def _outcome(self, line: StreamLine, series: SeriesSession) -> tuple[Id, Any]:
        """Which round the outcome of a line is of, and the outcome; None if there is none."""
        if line.y is None and not line.drop:
            return None, None
        of = line.id
        if line.given is not None:
            of = self._earlier(line, series)
        if of not in series.waiting:
            over = self.settled.get((line.series, of)) if of is not None else series.last
            raise ValueError(_not_waiting(of, over, series, line))
        return of, None if line.drop else _canonical(line.y, series)

    def _earlier(self, line: StreamLine, series: SeriesSession) -> Id:
        """The round that an outcome beside a forecast is of."""
        if line.id is None and self.strict:
            raise ValueError("expected an id in a line with both a forecast and an outcome y, got none: "
                             "with --state a repeat must be told from a new line")  # fmt: skip
        if line.id is None or line.of is not None:
            return line.of
        if len(series.waiting) > 1:
            raise ValueError(f'expected "of", the id of the round that y belongs to, got none while '
                             f"{len(series.waiting)} rounds wait")  # fmt: skip
        return next(iter(series.waiting), None)

    # --- what changes
    def _book(self, line: StreamLine, series: SeriesSession, of: Id, y: Any) -> dict[str, Any]:
        series.game.update(series.space.value(y) if isinstance(series.space, Labels) else y, id=of)
        guarantee = series.game.guarantee
        shown = series.space.value(y) if isinstance(series.space, Labels) else y
        told = {
            "y": shown,
            "guarantee": {
                "rounds": guarantee.rounds,
                "miscalibration": guarantee.miscalibration,
                "promised": guarantee.promised,
                "held": guarantee.held,
            },
        }
        self._close(line.series, of, series, y, lines.text({**_name(line.series, of), **told}))
        return {"of": of, **told} if line.given is not None and of is not None else told

    def _drop(self, line: StreamLine, series: SeriesSession) -> dict[str, Any]:
        series.game.drop(line.id)
        told = {"dropped": True}
        self._close(line.series, line.id, series, None, lines.text({**_name(line.series, line.id), **told}))
        return told

    def _close(self, name: Name, id: Id, series: SeriesSession, y: Any, closing: bytes) -> None:
        said = series.waiting.pop(id)
        over = Settled(said.print, said.answer, y, closing)
        if id is None:
            series.last = over
            return
        self.settled[name, id] = over
        while len(self.settled) > self.options.remember:
            del self.settled[next(iter(self.settled))]

    def _predict(self, line: StreamLine, series: SeriesSession, told: dict[str, Any], booked: dict[str, Any]) -> bytes:
        given = line.given
        assert given is not None
        lost: dict[str, Any] = {}
        if line.id not in series.waiting and len(series.waiting) >= self.options.max_pending:
            oldest = next(iter(series.waiting))
            lost = {"lost": oldest}  # too many wait: the game drops it
        with warnings.catch_warnings():
            # both are said in the answer
            warnings.simplefilter("ignore")
            p = series.game.predict(given.expert, x=self._features(line), id=line.id)
        if lost:
            text = lines.text({**_name(line.series, lost["lost"]), "dropped": True})
            self._close(line.series, lost["lost"], series, None, text)
        certificate = p.certificate
        told = {
            **_name(line.series, line.id),
            **lines.told(given, p, self.options.levels),
            "certificate": {
                "holds": certificate.holds,
                "worst_next": certificate.worst_next,
                "allowed": certificate.allowed,
                "bound": certificate.bound,
                "promised": certificate.promised,
            },
            **told,
            **booked,
            **lost,
        }
        answer = lines.text(told)
        self.series[line.series] = series
        # a round without a name takes the place of the one before, at the end of those that wait
        series.waiting.pop(line.id, None)
        series.waiting[line.id] = IssuedAnswer(line.print, answer)
        return answer


def _name(series: Name, id: Id) -> dict[str, Any]:
    named: dict[str, Any] = {} if series is None else {"series": series}
    return named if id is None else {**named, "id": id}


def _unnamed_again(line: StreamLine, series: SeriesSession) -> bytes | None:
    """A line without an id is a repeat if it could be nothing else."""
    waits = series.waiting.get(None)
    if line.given is not None:
        return waits.answer if waits is not None and line.y is None and waits.print == line.print else None
    if waits is not None or series.last is None or not (line.drop or line.y is not None):
        return None
    return _closed_again(line, series, series.last, "the last round")


def _closed_again(line: StreamLine, series: SeriesSession, over: Settled, which: str) -> bytes:
    if line.drop and over.y is None:
        return over.closing
    if line.drop:
        raise ValueError(f"expected a round that waits to drop, got {which}, which was settled with "
                         f"{_shown(over.y, series)}")  # fmt: skip
    if over.y is None:
        raise ValueError(f"expected the outcome of a round that waits, got that of {which}, which was dropped")
    y = _canonical(line.y, series)
    if y == over.y:
        return over.closing
    raise ValueError(f"expected {_shown(over.y, series)}, which was booked as the outcome of {which}, "
                     f"got {_shown(y, series)}")  # fmt: skip


def _shown(y: Any, series: SeriesSession) -> str:
    return repr(series.space.value(y) if isinstance(series.space, Labels) else y)


def _not_waiting(of: Id, over: Settled | None, series: SeriesSession, line: StreamLine) -> str:
    what = "drop" if line.drop else "the outcome"
    if line.given is not None and of is None and line.of is None:
        return (f"expected {what} of an earlier round beside a forecast, got a series in which none waits: "
                "send the outcome of a forecast in a later line")  # fmt: skip
    if over is not None:
        end = "was dropped" if over.y is None else f"was settled with {_shown(over.y, series)}"
        return f"expected {what} of a round that waits, got that of {short(of)}, which {end}"
    if of is None:
        return f"expected {what} with the id of its round, got none ({len(series.waiting)} rounds with an id wait)"
    return f"expected {what} of a round that waits, got the id {short(of)}"


def _canonical(y: Any, series: SeriesSession) -> Any:
    """An outcome as the space has it; labels are text, because in JSON they are keys."""
    if isinstance(series.space, Labels) and not isinstance(y, str):
        y = json.dumps(y)
    elif isinstance(y, bool) and isinstance(series.space, OrderedSpace):
        raise TypeError(f"expected a number as outcome, got {'true' if y else 'false'}")
    return series.space.outcome(y, series.game.game.outside)


def _plain(space: Space) -> dict[str, Any]:
    if isinstance(space, Binary):
        return {"binary": True}
    if isinstance(space, Labels):
        return {"labels": list(space.labels)}
    assert isinstance(space, OrderedSpace)
    bounds = {"low": space.low, "high": space.high}
    return {key: bound for key, bound in bounds.items() if math.isfinite(bound)}


def _words(space: Space) -> str:
    if isinstance(space, Binary):
        return "a binary outcome"
    if isinstance(space, Labels):
        return f"labels {', '.join(map(str, space.labels))}"
    bounds = ", ".join(f"{key} {bound:g}" for key, bound in _plain(space).items())
    return f"a quantity with {bounds}" if bounds else "a quantity without bounds"


def _form(given: Given) -> str:
    return {"quantiles": "quantiles", "normal": "mean and sd", "p": "p"}.get(given.form, given.form)
