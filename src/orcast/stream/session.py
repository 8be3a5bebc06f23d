"""A session: many series, answered line by line."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from numpy.typing import NDArray

from orcast import limits, persistence
from orcast.locks import GameLock, Locked, locked
from orcast.pool import Pool
from orcast.rounds import PendingRound
from orcast.spaces import Binary, Labels, OrderedSpace, Space, between
from orcast.store import Name
from orcast.stream import protocol
from orcast.stream.protocol import Id, LineForecast, StreamLine
from orcast.stream.series import KIND, Recalibrators, SeriesSession, Settled, StreamSettings, stated_space
from orcast.validation import quietly, short

# Bytes of the answers that are remembered: of settled rounds, and of the pending rounds of a series.
MOST_BYTES, MOST_PENDING_BYTES = 2**26, 2**24
FORM = {"quantity": "quantiles, mean and sd, or members", "binary": '{"p": ...}', "labels": '{"probabilities": ...}'}
CERTIFICATE = ("holds", "worst_next", "allowed", "bound", "promised")
GUARANTEE = ("rounds", "miscalibration", "promised", "held")


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


def _numbers(stated: Any, names: tuple[str, ...]) -> dict[str, Any]:
    """Numbers of a certificate or guarantee; also by how much a bound is exceeded, where it is."""
    return {name: getattr(stated, name) for name in (*names, *(("excess",) if stated.excess else ()))}


def _name(series: Name, id: Id) -> dict[str, Any]:
    named: dict[str, Any] = {} if series is None else {"series": series}
    return named if id is None else {**named, "id": id}


def _shown(y: Any, space: Space | None) -> Any:
    return space.value(y) if isinstance(space, Labels) else y
