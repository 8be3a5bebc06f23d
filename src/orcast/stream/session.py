"""A session: many series, answered line by line."""

from __future__ import annotations

import json
import math
import os
import threading
from dataclasses import asdict, fields, replace
from typing import Any

from orcast import persistence
from orcast.locks import locked
from orcast.recalibrator import Recalibrator
from orcast.spaces import Binary, Labels, OrderedSpace, Space, between
from orcast.store import Store, StoredSeries
from orcast.stream import protocol
from orcast.stream.protocol import Id, LineForecast, Name, StreamLine
from orcast.stream.series import StreamSettings, stated_space
from orcast.validation import quietly, short

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
    path : file or URL of the store; None keeps it in a temporary one
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
        self.lock = threading.RLock()
        self.store = Store(path, sync=sync)
        try:
            self.options = self.store.transact(lambda: self._open(options))
        except BaseException:
            self.close()
            raise
        self.store.remember = self.options.remember

    def _open(self, wanted: dict[str, Any]) -> StreamSettings:
        """The options of the store, or of a new one."""
        saved = self.store.tables.about("stream")
        try:
            had = None if saved is None else _settings(saved[1])
            options = StreamSettings(**wanted) if had is None else self._continued(had, wanted)
            if options.pool and self.store.tables.about("pool") is None:
                # a pool takes its levels from its first game: from now on no line changes them, be it refused or not
                Recalibrator(between(options.low, options.high), pool=self.store.pool())
                self.store.pool_changed()
            elif options.pool:
                self.store.pool()
        except ValueError as reason:
            raise ValueError(f"{reason}: {self.store.database.name}") from reason
        data = persistence.encode({"class": OPTIONS, "options": asdict(options)}, {})
        if saved is None or saved[1] != data:
            self.store.tables.put_about("stream", 1, data)
        return options

    def _continued(self, had: StreamSettings, wanted: dict[str, Any]) -> StreamSettings:
        """The options of the store, but for those that may change."""
        for each in fields(StreamSettings):
            old = getattr(had, each.name)
            if each.name not in FREE and wanted.get(each.name, old) != old:
                raise ValueError(f"expected {each.name} as in the state file, {old!r}, got {wanted[each.name]!r}")
        return replace(had, **{key: wanted[key] for key in FREE if key in wanted})

    @locked
    def answer(self, line: bytes) -> bytes:
        """Answer a line; bad input raises an error and changes nothing."""
        read = protocol.read(line)
        with quietly():  # what is dropped, sorted or too narrow
            return self.store.transact(lambda: self._answer(read)).encode()

    @locked
    def close(self) -> None:
        """Release the store; each line is in it already."""
        self.store.close()

    def _answer(self, line: StreamLine) -> str:
        series = self._series(line)
        fields: dict[str, Any] = {"space": _plain(series.space)} if line.settings else {}
        if line.forecast is not None:
            fields = self._predict(line.forecast, line, series) | fields
        elif line.drop:
            series.withdraw(line.id)
            fields |= {"dropped": True}
        elif line.y is not None:
            settled = series.settle(_outcome(line.y, series.space), id=line.id)
            fields |= {"y": settled.y, "guarantee": _numbers(settled.guarantee, GUARANTEE)}
            alarms = [alarm.to_plain() for alarm in settled.alarms]
            fields |= {"alarm": alarms} if alarms else {}
        return protocol.to_line({**_name(line.series, line.id), **fields})

    def _series(self, line: StreamLine) -> StoredSeries:
        """The series of a line, made if it is new."""
        wanted = self._stated(line.settings) if line.settings else None
        if line.series not in self.store:
            if wanted is None and line.forecast is not None:
                wanted = self.options.space(line.forecast.space, line.forecast.keys)
            if wanted is None:
                what = "drop" if line.drop else "an outcome"
                raise ValueError(f"expected a forecast first, got {what} of a series without any, {short(line.series)}")
            return self.store.series(line.series, space=wanted, **self.options.series(wanted))
        series = self.store.series(line.series)
        if wanted is not None and wanted != series.space:
            began, given = (_plain(each) or "no bounds" for each in (series.space, wanted))
            raise ValueError(f"expected {began}, as series {short(line.series)} began, got {given}")
        return series

    def _stated(self, settings: dict[str, Any]) -> Space:
        """The space that a line gives its series; a bound that it leaves out is that of the options."""
        if "low" in settings or "high" in settings:
            bounds = {"low": self.options.low, "high": self.options.high}
            settings = {key: value for key, value in {**bounds, **settings}.items() if value is not None}
        return stated_space(settings)

    def _predict(self, forecast: LineForecast, line: StreamLine, series: StoredSeries) -> dict[str, Any]:
        space = series.space
        kind = "binary" if isinstance(space, Binary) else "labels" if isinstance(space, Labels) else "quantity"
        if forecast.space != kind:
            form = "mean and sd" if forecast.form == "normal" else forecast.form
            raise ValueError(f"expected {FORM[kind]} as forecast of series {short(line.series)}, got {short(form)}")
        round = series.issue(forecast.expert, id=line.id)
        told = protocol.forecast_fields(forecast, round.forecast, [f"{level:g}" for level in self.options.levels])
        told |= {"certificate": _numbers(vars(round.recalibrated.certificate), CERTIFICATE)}
        return told | ({"evicted": round.evicted[0]} if round.evicted else {})


def _settings(data: bytes) -> StreamSettings:
    """Settings from their bytes."""
    with persistence.reading(data, OPTIONS) as (header, _, _):
        plain = header["options"]
        return StreamSettings(**{**plain, "levels": tuple(plain["levels"])})


def _outcome(y: Any, space: Space) -> Any:
    """An outcome of a line; labels are text, because in JSON they are keys."""
    if isinstance(space, Labels) and not isinstance(y, str):
        return json.dumps(y)
    if isinstance(y, bool) and isinstance(space, OrderedSpace):
        raise TypeError(f"expected a number as outcome, got {'true' if y else 'false'}")
    return y


def _plain(space: Space) -> dict[str, Any]:
    if isinstance(space, Binary):
        return {"binary": True}
    if isinstance(space, Labels):
        return {"labels": list(space.labels)}
    assert isinstance(space, OrderedSpace)
    bounds = {"low": space.low, "high": space.high}
    return {key: bound for key, bound in bounds.items() if math.isfinite(bound)}


def _numbers(stated: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    """Numbers of a certificate or guarantee; also by how much a bound is exceeded, where it is."""
    return {name: stated[name] for name in (*names, *(("excess",) if stated["excess"] else ()))}


def _name(series: Name, id: Id) -> dict[str, Any]:
    named: dict[str, Any] = {} if series is None else {"series": series}
    return named if id is None else {**named, "id": id}
