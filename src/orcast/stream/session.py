"""A session: many series, answered line by line."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from typing import Any

from orcast import limits
from orcast.adapters import Quantiles
from orcast.forecaster import Recalibrator
from orcast.spaces import OrderedSpace
from orcast.store import Store, StoredSeries
from orcast.store.calls import LINE, SPACE, answer, checked, plain_space, read_forecast, space_of, verb_of
from orcast.validation import quietly, short


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
    low, high : bounds of the quantities whose first line has none
    levels : quantiles to answer with; by default those of the forecast
    remember : settled rounds of each series that are remembered
    pool : whether new series of quantities learn together
    options : other options of new series, as of a `Recalibrator`

    Examples
    --------
    >>> session = Session()
    >>> print(session.answer(b'{"id": 1, "forecast": {"p": 0.7}}').decode().strip())  # doctest: +ELLIPSIS
    {"id": 1, "forecast": {"p": 0...}, "certificate": {"holds": true, ...}}
    >>> print(session.answer(b'{"id": 1, "y": 1}').decode().strip())  # doctest: +ELLIPSIS
    {"id": 1, "y": 1, "guarantee": {"rounds": 1, ...}}
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        sync: bool = False,
        low: float | None = None,
        high: float | None = None,
        levels: Sequence[float] = (),
        remember: int = 10_000,
        pool: bool = False,
        **options: Any,
    ) -> None:
        bounds = {"low": low, "high": high}
        self.bounds = {name: bound for name, bound in bounds.items() if bound is not None}
        self.levels, self.pool, self.options = [*limits.taken("levels", levels)], pool, options
        if self.levels:
            Quantiles(self.levels, [0.0] * len(self.levels))  # or says what is wrong with them
        Recalibrator(space_of(self.bounds), **options)  # or says what is wrong with it
        self.store = Store(path, sync=sync, remember=remember)

    def answer(self, line: bytes) -> bytes:
        """Answer a line; bad input raises an error and changes nothing."""
        call = checked(_parsed(line), (*LINE, *SPACE))
        with quietly():  # what is dropped, sorted or too narrow
            return to_line(self.store.transact(lambda: self._answer({**call}))).encode()

    def close(self) -> None:
        """Release the store; each line is in it already."""
        self.store.close()

    def _answer(self, call: dict[str, Any]) -> dict[str, Any]:
        stated = {key: call.pop(key) for key in SPACE if key in call}
        series = self._series(call, stated)
        if not stated:
            return answer(series, verb_of(call), call, levels=self.levels, timed=False)
        bounds = {key: bound for key, bound in plain_space(series.space).items() if bound not in (-math.inf, math.inf)}
        if call.keys() <= {"series"}:
            return {**call, "space": bounds}
        return answer(series, verb_of(call), call, levels=self.levels, timed=False) | {"space": bounds}

    def _series(self, call: dict[str, Any], stated: dict[str, Any]) -> StoredSeries:
        """The series of a line, made if it is new; bounds that a line leaves out are those of the session."""
        name = call.get("series")
        found = self.store.find(name)
        if found is not None and not stated:
            return found
        if not stated and "forecast" not in call:
            raise ValueError(f"expected a forecast first, got none of series {short(name)}")
        settings = stated or read_forecast(call["forecast"]).settings
        if not settings.keys() & {"binary", "labels"}:
            settings = self.bounds | settings
        space = space_of(settings)
        if found is not None:
            return self.store.series(name, space=space)
        return self.store.series(name, space=space, pool=self.pool and isinstance(space, OrderedSpace), **self.options)


def _parsed(line: bytes) -> Any:
    try:
        return limits.parsed_json(line.decode())
    except UnicodeDecodeError as reason:
        raise ValueError(f"expected a line in UTF-8, got another byte at place {reason.start + 1}") from None
    except json.JSONDecodeError as reason:
        excerpt, what = short(line[:200].decode(errors="replace")), f"{reason.msg[:1].lower()}{reason.msg[1:]}"
        raise ValueError(
            f"expected a JSON object in a line, got {excerpt} ({what} at place {reason.pos + 1})"
        ) from None
    except RecursionError:
        raise ValueError("expected a JSON object in a line, got one that is nested too deeply") from None


def to_line(answer: dict[str, Any]) -> str:
    r"""Encode an answer as one line of JSON.

    >>> to_line({"series": "\ud800", "mean": float("inf")})
    '{"series": "\\ud800", "mean": null}\n'
    """
    return json.dumps(_finite(answer), allow_nan=False) + "\n"


def _finite(value: Any) -> Any:
    """Without numbers that JSON does not have."""
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
