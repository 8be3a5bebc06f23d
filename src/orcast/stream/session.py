"""A session: many series, answered line by line."""

from __future__ import annotations

import json
import math
import os
from dataclasses import asdict, fields, replace
from typing import Any

from orcast import limits, persistence
from orcast.locks import StateLock, locked
from orcast.pool import Pool
from orcast.spaces import Binary, Labels, OrderedSpace, Space, between
from orcast.store.lines import Id, Name, Store
from orcast.stream import protocol
from orcast.stream.protocol import LineForecast, StreamLine
from orcast.stream.series import Recalibrators, SeriesSession, StreamRound, StreamSettings, stated_space
from orcast.validation import quietly, short

# Series that are kept in memory, the last used ones.
MOST_SERIES = 10_000
# Options that may change from one start to the next: they change answers, not how series are recalibrated.
FREE = ("levels", "remember")
OPTIONS = "StreamSettings"
FORM = {"quantity": "quantiles, mean and sd, or members", "binary": '{"p": ...}', "labels": '{"probabilities": ...}'}
CERTIFICATE = ("holds", "worst_next", "allowed", "bound", "promised")
GUARANTEE = ("rounds", "miscalibration", "promised", "held")


class Session:
    """Answers lines: forecasts with calibrated ones, outcomes with the guarantee.

    A line that is refused, or that an exception interrupts, changes nothing.  A line that comes again, recognised by
    its series, id and content, gets the same answer again and changes nothing.

    With a path, each line is one transaction of a store.  A process that is killed at any moment and started again on
    the same file continues after the last line; if that was not answered, it gets its answer when it is sent again.  A
    state that cannot be read concerns its series alone.

    Parameters
    ----------
    path : file of the store; None keeps it in a temporary one
    sync : wait for the disk at each line, so that it survives a loss of power
    options : those of `StreamSettings`; a store has them from its first start

    Examples
    --------
    >>> session = Session()
    >>> print(session.answer(b'{"id": 1, "forecast": {"p": 0.7}}').decode().strip())  # doctest: +ELLIPSIS
    {"id": 1, "forecast": {"p": 0...}, "certificate": {"holds": true, ...}}
    >>> print(session.answer(b'{"id": 1, "y": 1}').decode().strip())  # doctest: +ELLIPSIS
    {"id": 1, "y": 1, "guarantee": {"rounds": 1, ...}}
    """

    def __init__(self, path: str | os.PathLike[str] | None = None, *, sync: bool = False, **options: Any) -> None:
        self.lock = StateLock()
        self.pool: Pool | None = None
        self._recent: dict[Name, SeriesSession] = {}
        self.store = Store(path, sync=sync)
        try:
            with self.store.transaction():
                self._open(options)
        except BaseException:
            self.close()
            raise

    def _open(self, wanted: dict[str, Any]) -> None:
        saved = self.store.about("options")
        try:
            had = None if saved is None else _settings(saved)
            if had is not None and had.pool:
                self.pool = Pool.load(self.store.about("pool") or b"")
        except ValueError as reason:
            raise ValueError(f"{reason}: {self.store.path}") from reason
        self.options = StreamSettings(**wanted) if had is None else self._continued(had, wanted)
        self.store.put_about("options", persistence.encode({"class": OPTIONS, "options": asdict(self.options)}, {}))
        if self.options.pool and self.pool is None:
            self.pool = Pool()
            # a pool takes its levels from its first game: from now on no line changes them, be it refused or not
            self.options.recal(between(self.options.low, self.options.high), self.pool)
            self.store.put_about("pool", self.pool.encode())
        self.recalibrators = Recalibrators(self.options, self.pool)

    def _continued(self, had: StreamSettings, wanted: dict[str, Any]) -> StreamSettings:
        """The options of the store, but for those that may change."""
        for each in fields(StreamSettings):
            old = getattr(had, each.name)
            if each.name not in FREE and wanted.get(each.name, old) != old:
                raise ValueError(
                    f"expected {each.name} as in the state file, {old!r}, got {wanted[each.name]!r}: {self.store.path}"
                )
        return replace(had, **{key: wanted[key] for key in FREE if key in wanted})

    @locked
    def answer(self, line: bytes) -> bytes:
        """Answer a line; bad input raises an error and changes nothing."""
        read = protocol.read(line)
        try:
            with self.store.transaction():
                return self._answer(read).encode()
        except BaseException:
            self._read_again(read.series)
            raise

    @locked
    def close(self) -> None:
        """Release the file; each line is in it already."""
        self.store.close()

    def _read_again(self, name: Name) -> None:
        """Continue from the store, after an exception."""
        self._recent.pop(name, None)
        self.recalibrators.reset()
        if self.pool is not None:
            with self.store.transaction():
                self.pool.restore(Pool.load(self.store.about("pool") or b"").snapshot())

    def _answer(self, line: StreamLine) -> str:
        series = self._known(line.series)
        if series is not None and (again := self._again(line, series)) is not None:
            return again
        series = self._series(line, series)
        fields: dict[str, Any] = {"space": _plain(series.space)} if line.settings else {}
        if line.forecast is not None:
            return self._predict(line.forecast, line, series, fields)
        if line.drop or line.y is not None:
            return self._settle(line, series, fields)
        return protocol.to_line({**_name(line.series, line.id), **fields})

    # --- series and rounds of the store
    def _known(self, name: Name) -> SeriesSession | None:
        """Series by name, read if it is not in memory; None if there is none."""
        series = self._recent.pop(name, None)
        if series is None and (row := self.store.series(name)) is not None:
            try:
                series = self.recalibrators.load(name, *row, self.store.pending(row[0]))
            except ValueError as reason:
                raise _unreadable(name, reason) from None
        if series is not None:
            self._keep(series)
        return series

    def _keep(self, series: SeriesSession) -> None:
        """Keep a series in memory, as the last used one."""
        self._recent[series.name] = series
        if len(self._recent) > MOST_SERIES:
            del self._recent[next(iter(self._recent))]

    def _save(self, series: SeriesSession) -> None:
        """Write the state of a series and of the pool."""
        series.number = self.store.put_series(series.number, series.name, series.encode())
        if self.pool is not None:
            self.store.put_about("pool", self.pool.encode())

    def _round(self, series: SeriesSession, id: Id) -> StreamRound | None:
        """Round of a series, pending or remembered."""
        if id in series.pending:
            return series.pending[id].attached  # type: ignore[no-any-return]
        data = self.store.round(series.number, id)
        try:
            return None if data is None else StreamRound.decode(data, series.name)
        except ValueError as reason:
            raise _unreadable(series.name, reason) from None

    def _again(self, line: StreamLine, series: SeriesSession) -> str | None:
        """The answer to a line that was answered before; None for a new one."""
        known = self._round(series, line.id)
        if known is None:
            return None
        if line.forecast is not None:
            return _forecast_again(line, known)
        if not known.closing or not (line.drop or line.y is not None):
            return None
        which = "the last round" if line.id is None else f"round {short(line.id)}"
        if line.drop and known.y is not None:
            settled = repr(_shown(known.y, series.space))
            raise ValueError(f"expected a pending round to drop, got {which}, which was settled with {settled}")
        if not line.drop and known.y is None:
            raise ValueError(f"expected the outcome of a pending round, got that of {which}, which was dropped")
        if not line.drop and (y := self._canonical(line.y, series.space)) != known.y:
            settled, got = (repr(_shown(each, series.space)) for each in (known.y, y))
            raise ValueError(f"expected {settled}, with which {which} was settled, got {got}")
        return known.closing

    # --- what a line needs before anything may change
    def _series(self, line: StreamLine, series: SeriesSession | None) -> SeriesSession:
        """The series of a line, made if it is new."""
        wanted = self._stated(line.settings) if line.settings else None
        if series is None:
            limits.check("series", self.store.count() + 1)
            if wanted is None and line.forecast is not None:
                wanted = self.options.space(line.forecast.space, line.forecast.keys)
            if wanted is None:
                what = "drop" if line.drop else "an outcome"
                raise ValueError(f"expected a forecast first, got {what} of a series without any, {short(line.series)}")
            series = self.recalibrators.new(line.series, wanted)
            self._save(series)
            self._keep(series)
        elif wanted is not None and wanted != series.space:
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

    def _canonical(self, y: Any, space: Space) -> Any:
        """An outcome as the space has it; labels are text, because in JSON they are keys."""
        if isinstance(space, Labels) and not isinstance(y, str):
            y = json.dumps(y)
        elif isinstance(y, bool) and isinstance(space, OrderedSpace):
            raise TypeError(f"expected a number as outcome, got {'true' if y else 'false'}")
        return space.outcome(y, self.options.outside)

    # --- what changes
    def _settle(self, line: StreamLine, series: SeriesSession, fields: dict[str, Any]) -> str:
        """Settle or drop a pending round."""
        what = "drop" if line.drop else "the outcome"
        if line.id is None and None not in series.pending:
            rest = f"({len(series.pending)} rounds with an id are pending)"
            raise ValueError(f"expected {what} with the id of its round, got none {rest}")
        if line.id not in series.pending:
            raise ValueError(f"expected {what} of a pending round, got the id {short(line.id)}")
        y, entry = None, series.pending[line.id]
        with self.recalibrators.holding(series) as recal:
            if line.drop:
                recal.drop(line.id)
                fields |= {"dropped": True}
            else:
                y = self._canonical(line.y, series.space)
                shown = _shown(y, series.space)
                recal.update(shown, id=line.id)
                fields |= {"y": shown, "guarantee": _numbers(recal.guarantee, GUARANTEE)}
        self._save(series)
        return self._close(series, line.id, entry.attached, y, fields)

    def _close(self, series: SeriesSession, id: Id, pending: StreamRound, y: Any, fields: dict[str, Any]) -> str:
        """Remember a round that is over, with its answers, for as long as its lines may come again."""
        over = replace(pending, y=y, closing=protocol.to_line({**_name(series.name, id), **fields}))
        self.store.put_round(series.number, id, over.encode(series.name, id, None), closed=True)
        self.store.forget(self.options.remember)
        return over.closing

    def _predict(self, forecast: LineForecast, line: StreamLine, series: SeriesSession, fields: dict[str, Any]) -> str:
        space = series.space
        kind = "binary" if isinstance(space, Binary) else "labels" if isinstance(space, Labels) else "quantity"
        if forecast.space != kind:
            form = "mean and sd" if forecast.form == "normal" else forecast.form
            raise ValueError(f"expected {FORM[kind]} as forecast on {_described(space)}, got {short(form)}")
        with self.recalibrators.holding(series) as recal:
            # the oldest, which is dropped because too many are pending
            evicted: list[Any] = [id for id in recal.rounds.evicted_by(line.id) if id != line.id]
            entries = [series.pending[id] for id in evicted]
            with quietly():  # what is dropped, sorted or too narrow
                p = recal.predict(forecast.expert, x=self._features(line), id=line.id)
        self._save(series)
        for id, entry in zip(evicted, entries, strict=True):
            self._close(series, id, entry.attached, None, {"dropped": True})
            fields = {**fields, "evicted": id}
        told = protocol.forecast_fields(forecast, p, self.options.levels)
        told |= {"certificate": _numbers(p.certificate, CERTIFICATE), **fields}
        answer = protocol.to_line({**_name(line.series, line.id), **told})
        round, entry = StreamRound(line.digest, answer), series.pending[line.id]
        entry.attached = round
        self.store.put_round(series.number, line.id, round.encode(line.series, line.id, entry))
        return answer


def _settings(data: bytes) -> StreamSettings:
    """Settings from their bytes."""
    with persistence.reading(data, OPTIONS) as (header, _):
        plain = header["options"]
        lists = {key: tuple(plain[key]) for key in ("labels", "levels")}
        by = None if plain["by"] is None else (plain["by"][0], tuple(plain["by"][1]))
        return StreamSettings(**{**plain, **lists, "by": by})


def _unreadable(name: Name, reason: Exception) -> ValueError:
    return ValueError(f"expected a state of series {short(name)} that can be read, got one that cannot: {reason}")


def _forecast_again(line: StreamLine, known: StreamRound) -> str | None:
    """The answer to a forecast that was answered before; None for a new one."""
    if line.id is None and (known.closing or known.digest != line.digest):
        return None
    if known.digest != line.digest:
        state = "settled" if known.closing else "pending"
        raise ValueError(f"expected a new id or the same line again, got {short(line.id)} once more, which is {state}")
    return known.answer


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


def _numbers(stated: Any, names: tuple[str, ...]) -> dict[str, Any]:
    """Numbers of a certificate or guarantee; also by how much a bound is exceeded, where it is."""
    return {name: getattr(stated, name) for name in (*names, *(("excess",) if stated.excess else ()))}


def _name(series: Name, id: Id) -> dict[str, Any]:
    named: dict[str, Any] = {} if series is None else {"series": series}
    return named if id is None else {**named, "id": id}


def _shown(y: Any, space: Space) -> Any:
    return space.value(y) if isinstance(space, Labels) else y
