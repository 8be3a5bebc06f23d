"""Streams of forecasts with outcomes, recalibrated with outcomes at once or late, and scored."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

import orcast as oc
from orcast.metrics import LEVELS, pinball, qce, worst_rolling_qce
from research.benchmarks.command import YARDSTICK
from research.experiments import data

Vector = NDArray[np.float64]
Whole = NDArray[np.int64]

CHANGES, FEWEST = 500, 5


@dataclass(frozen=True, eq=False)
class Case:
    """Stream: `forecasts` are arguments of predict, `quantiles` the same at 99 levels.

    `reveal[t]` is the round before whose forecast the outcome of round t is known; None: at once.
    """

    name: str
    forecasts: Sequence[object]
    quantiles: Vector
    y: Vector
    low: float
    high: float
    reveal: Whole | None = None


@dataclass(frozen=True)
class Score:
    """Measures of forecasts at 99 levels; `relative` is pinball loss over that of the base forecast."""

    qce: float
    worst: float
    pinball: float
    relative: float
    coverage: float


def yardstick_folder() -> Path | None:
    """Folder of stored streams, from the environment."""
    named = os.environ.get(YARDSTICK)
    if named and not Path(named).is_dir():
        raise ValueError(f"expected a folder as --yardstick or in {YARDSTICK}, got {named!r}")
    return Path(named) if named else None


def shipped_cases(rounds: int | None = None) -> list[Case]:
    """Both experts of wind and sunspots, from the data folder or the shipped series, and of humidity."""
    found = []
    for name in data.NAMES:
        for expert in oc.datasets.EXPERTS:
            stream = oc.datasets.stream(data.best(name), expert)
            normals = [oc.Normal(mu, sd) for mu, sd in zip(stream.mu[:rounds], stream.sd[:rounds], strict=True)]
            q = stream.quantile(LEVELS)[:rounds]
            found.append(Case(stream.name, normals, q, stream.y[:rounds], stream.low, stream.high))
    return found


def read_case(file: Path, rounds: int | None = None) -> Case:
    """Read a stream of the yardstick: q, y, lo, hi, and perhaps times of issue and of revelation."""
    with np.load(file, allow_pickle=False) as arrays:
        q, y = np.sort(np.asarray(arrays["q"], dtype=np.float64), axis=1), np.asarray(arrays["y"], dtype=np.float64)
        low, high = float(arrays["lo"]), float(arrays["hi"])
        issue = np.asarray(arrays["issue"]) if "issue" in arrays else np.arange(y.size)
        reveal = np.asarray(arrays["reveal"]) if "reveal" in arrays else issue + 1
    order = np.argsort(issue, kind="stable")[:rounds]
    q, y, issue, reveal = q[order], y[order], issue[order], reveal[order]
    at_once = np.array_equal(reveal, issue + 1) and np.unique(issue).size == issue.size
    # a time of revelation becomes the first round that is issued at or after it
    late = None if at_once else np.maximum(np.searchsorted(issue, reveal), np.arange(y.size) + 1)
    return Case(file.stem, [oc.Quantiles(LEVELS, row) for row in q], q, y, low, high, late)


def batches(rounds: int, batch: int = 50, late: int = 2) -> Whole:
    """Outcomes in batches: those of batch b are known when batch b + late is complete."""
    return (np.arange(rounds) // batch + 1 + late) * batch


def run_case(case: Case, reveal: Whole | None) -> tuple[Vector, oc.Guarantee]:
    """Quantiles of the default recalibrator, and its guarantee."""
    recal = oc.Recalibrator(oc.Interval(case.low, case.high))
    if reveal is None:
        return recal.run(case.forecasts, case.y, at=LEVELS), recal.guarantee
    found = np.empty_like(case.quantiles)
    order = np.argsort(reveal, kind="stable")
    known = 0
    for t, forecast in enumerate(case.forecasts):
        while known < t and reveal[order[known]] <= t:
            recal.update(case.y[order[known]], id=int(order[known]))
            known += 1
        found[t] = recal.predict(forecast, id=t).quantile(LEVELS)
    for t in order[known:]:
        recal.update(case.y[t], id=int(t))
    return found, recal.guarantee


def score(case: Case, quantiles: Vector) -> Score:
    """Measures of quantiles at 99 levels."""
    space: dict[str, Any] = {"low": case.low, "high": case.high}
    loss = float(pinball(quantiles, case.y).mean())
    inside = (quantiles[:, 4] <= case.y) & (case.y <= quantiles[:, 94])
    return Score(
        qce(quantiles, case.y, **space),
        worst_rolling_qce(quantiles, case.y, **space),
        loss,
        loss / float(pinball(case.quantiles, case.y).mean()),
        float(inside.mean()),
    )


def last_known(y: Vector, known: Whole, levels: Vector, low: float = -np.inf) -> Vector:
    """Normal quantiles around outcome known[t] for row t, as wide as past changes over t - known[t] steps.

    Rows are nan where fewer than five such changes were known.
    """
    rows = np.arange(y.size)
    spread = np.full(y.size, np.nan)
    for lag in np.unique(rows - known):
        squares = np.cumsum(np.append(0.0, (y[lag:] - y[:-lag]) ** 2))
        at = rows[(rows - known == lag) & (known - lag + 1 >= FEWEST)]
        stop = known[at] - lag + 1
        start = np.maximum(stop - CHANGES, 0)
        spread[at] = np.sqrt((squares[stop] - squares[start]) / (stop - start))
    last = np.where(known >= 0, y[np.maximum(known, 0)], np.nan)
    return np.asarray(np.maximum(last[:, None] + spread[:, None] * ndtri(levels), low))


def relative(q: Vector, raw: Vector, y: Vector, levels: Vector) -> float:
    """Pinball loss of quantiles over that of the base forecasts, on the rows that have both."""
    there = np.isfinite(q[:, 0])
    if not there.any():
        return float("nan")
    return float(pinball(q[there], y[there], levels).mean() / pinball(raw[there], y[there], levels).mean())
