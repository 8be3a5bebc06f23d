"""Run a method on a stream: it observes each outcome when it becomes known, and no sooner."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from orcast.adapters import Ensemble, Quantiles, binary_probability, quantiles_at
from orcast.forecasts import BinaryForecast
from orcast.forecasts.ordered import IssuedForecast
from research.comparison.stream import Array, Stream, Whole
from research.rivals.base import Quantity
from tests.adversaries import RoundInputs

WIDER = 0.5  # bounds are wider than all forecasts and outcomes by this share of their range, where there are none


@dataclass(frozen=True, eq=False)
class Group:
    """Rows of one series at one horizon, and a dictionary that all groups of a run share."""

    rows: Whole
    horizon: int
    shared: dict[Any, Any] = field(default_factory=dict)


class Model(NamedTuple):
    """Object with `predict` and `update` for one group; it takes all experts by name, or members, if asked for."""

    method: Any
    several: bool = False
    members: bool = False


class Run(NamedTuple):
    """Issued forecasts, the outcomes they met, and CPU seconds per round."""

    issued: Array
    y: Array
    seconds: float


def bounds(stream: Stream, rows: Whole) -> tuple[float, float]:
    """Bounds for methods that need some; where the stream has none, from all forecasts and outcomes of a group.

    These are known only afterwards, so such methods get closer bounds than a user could have given.
    """
    values = [stream.y[rows], *(forecasts[rows].ravel() for forecasts in stream.experts.values())]
    least, most = min(float(each.min()) for each in values), max(float(each.max()) for each in values)
    spare = WIDER * (most - least) + 1e-9 * (abs(least) + abs(most) + 1.0)
    return (
        stream.low if np.isfinite(stream.low) else least - spare,
        stream.high if np.isfinite(stream.high) else most + spare,
    )


def run_stream(stream: Stream, start: Callable[[Stream, Group], Model | None]) -> Run | None:
    """Run a stream with one model per group; None if the method has none for it.

    An adversary chooses each outcome from the issued forecast, with a generator that is the same for all methods.
    """
    shared: dict[Any, Any] = {}
    models: list[Model] = [Model(None)] * stream.rows
    adversaries: list[Any] = [None] * stream.rows
    for rows in stream.groups():
        model = start(stream, Group(rows, 0 if stream.horizon is None else int(stream.horizon[rows[0]]), shared))
        if model is None:
            return None
        adversary = None if stream.adversary is None else (stream.adversary(), np.random.default_rng(0))
        for row in rows.tolist():
            models[row], adversaries[row] = model, adversary
    issued = np.empty((stream.rows, stream.levels.size) if stream.levels.size else stream.rows)
    y, seconds = stream.y.copy(), 0.0
    for row, predicts in stream.timeline():
        model = models[row]
        if not predicts:
            outcome = int(y[row]) if stream.binary else y.item(row)
            begin = time.process_time()
            model.method.update(outcome, id=row)
            seconds += time.process_time() - begin
            continue
        given = _given(stream, row, model)
        begin = time.process_time()
        if model.several:
            forecast = model.method.predict(experts=given, id=row)
        else:
            forecast = model.method.predict(given, id=row)
        seconds += time.process_time() - begin
        issued[row] = _read(stream, forecast)
        if adversaries[row] is not None:
            adversary, rng = adversaries[row]
            shown = forecast if isinstance(forecast, IssuedForecast) else _as_forecast(stream, issued[row])
            chosen = float(adversary.outcome(None, shown, rng, RoundInputs(row, given)))
            y[row] = min(max(chosen, stream.low), stream.high)
    return Run(issued, y, seconds / max(stream.rows, 1))


def _given(stream: Stream, row: int, model: Model) -> Any:
    """Base forecast of a row as the model takes it."""
    if model.members and stream.members is not None:
        members = stream.members[row]
        return Ensemble(members[np.isfinite(members)])
    forecasts = _forecasts(stream)
    if model.several:
        return {name: given[row] for name, given in forecasts.items()}
    return next(iter(forecasts.values()))[row]


@lru_cache(maxsize=4)
def _forecasts(stream: Stream) -> dict[str, list[Any]]:
    """Base forecasts as objects, the same for all methods."""
    if stream.binary:
        return {name: given.tolist() for name, given in stream.experts.items()}
    return {name: [Quantiles(stream.levels, row) for row in given] for name, given in stream.experts.items()}


def _as_forecast(stream: Stream, row: Any) -> Any:
    """Issued quantiles or a probability as a forecast that an adversary can evaluate."""
    every = np.arange(stream.rows)
    return BinaryForecast(float(row)) if stream.binary else Quantity(*bounds(stream, every), stream.levels).issue(row)


def _read(stream: Stream, forecast: Any) -> Any:
    """Probability, or sorted finite quantiles at the levels of the stream."""
    if stream.binary:
        return binary_probability(forecast)
    row = forecast if isinstance(forecast, np.ndarray) else quantiles_at(forecast, stream.levels)
    if row.shape != stream.levels.shape:
        raise ValueError(f"expected {stream.levels.size} quantiles, one for each level, got {row.shape}")
    if not np.isfinite(row).all():
        raise ValueError(f"expected finite quantiles, got {row.tolist()}")
    return np.sort(row)
