"""Last known and seasonal outcomes with the quantiles of their past errors, or frequencies, as references."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from orcast.constants import PER_ABSOLUTE
from orcast.evaluate.dependence import steps_of
from orcast.evaluate.evaluation import Evaluation, Matrix, Places, Vector, chunks, computed_once, sample_quantiles
from orcast.evaluate.information import Information
from orcast.evaluate.losses import Difference, compare, loss, score

HOUR, DAY = 3600 * 10**9, 24 * 3600 * 10**9
# Least spacing of the times by its name.
UNITS = {"month": 27 * DAY, "week": 7 * DAY, "day": DAY, "hour": HOUR, "time": 0}
# Seasons tried where times are plain numbers, in steps.
STEPS = (7, 12, 24, 52)
# Quantiles of errors: weight of the normal distribution in errors, and standard errors of its mean that are noise.
PRIOR, NOISE = 64, 2

# Name of a simple forecast, mask of the rows that have one, and the forecasts of such rows.
Candidate = tuple[str, NDArray[np.bool_], Callable[[Places], Matrix]]


@dataclass(frozen=True, eq=False)
class ReferenceScore:
    """Loss of a reference in each row, nan where too few outcomes were known, and the change from it to each side."""

    name: str
    losses: Vector
    changes: dict[str, Difference]

    @property
    def loss(self) -> float:
        """Mean loss."""
        return float(np.nanmean(self.losses))

    @property
    def short_name(self) -> str:
        """Name without the share of the rows."""
        return self.name.partition(" (")[0]

    @property
    def rows(self) -> int:
        """Number of rows with a reference."""
        return int(np.isfinite(self.losses).sum())

    def gain(self, side: str) -> float:
        """Relative change of the loss from the reference to a side."""
        return self.changes[side].relative


@computed_once
def best_reference(evaluation: Evaluation) -> ReferenceScore | None:
    """Best reference so far at the information of each row; None without enough outcomes.

    A seasonal reference is the last known outcome where none of its season is known.

    Parameters
    ----------
    evaluation : Evaluation
        Forecasts with their outcomes.

    Returns
    -------
    ReferenceScore or None
        Its loss in each row, and the change to each side.

    Examples
    --------
    >>> found = best_reference(Evaluation.of([0.5] * 4, [0, 1, 1, 1]))
    >>> found.name, found.losses.round(2)
    ('the frequency so far', array([0.25, 0.56, 0.25, 0.14]))
    """
    if not evaluation.rows or (evaluation.known is None and evaluation.horizon is not None):
        return None
    known, rows = evaluation.known or _one_step(evaluation)
    name, best = _best(known, rows, dict(_losses(evaluation, known, rows)))
    there = np.flatnonzero(np.isfinite(best))
    if not there.size:
        return None
    sides = {side: compare(evaluation, best, loss(evaluation, side), there) for side in evaluation.sides}
    return ReferenceScore(name, best, sides)


def _best(known: Information, rows: Any, losses: dict[str, Vector]) -> tuple[str, Vector]:
    """Name and losses of the candidate that led when each row was issued."""
    names, columns = list(losses), list(losses.values())
    gaps = np.full(known.y.size, np.nan)
    ranked = []
    for column in columns:
        gaps[rows] = column - columns[0]
        sums, place = known.past_windows(gaps, _clear_gap)
        ranked.append(sums[:, 0])
    leader = np.append(np.argmin(ranked, axis=0), 0)[place][rows]
    best = np.choose(leader, columns)
    chosen = np.bincount(leader[np.isfinite(best)], minlength=len(names))
    name = names[int(chosen.argmax())]
    if np.count_nonzero(chosen) > 1:
        name = f"{name} ({min(chosen.max() / chosen.sum(), 0.99):.0%} of the rows, else another)"
    return name, best


def _clear_gap(gaps: Matrix) -> Matrix:
    """Sum of each row and one standard error, so that a lead by chance is none."""
    return np.asarray(np.nansum(gaps, axis=1) + np.sqrt(np.nansum(gaps**2, axis=1)))[:, None]


def _one_step(evaluation: Evaluation) -> tuple[Information, Places]:
    """Outcomes of rows issued one step ahead, after those of all earlier times of their series."""
    time = steps_of(evaluation)
    order = np.lexsort((time, evaluation.series))
    stamps = None if evaluation.time is None else evaluation.time[order]
    known = Information.of(evaluation.series[order], time[order], evaluation.y[order], stamps=stamps)
    return known, np.argsort(order, kind="stable")


def _losses(evaluation: Evaluation, known: Information, rows: Any) -> Iterator[tuple[str, Vector]]:
    """Losses of the candidates; the first one stands in where another has no forecast."""
    quantiles = evaluation.kind == "quantiles"
    of_row = np.arange(known.y.size)[rows]
    first = None
    for name, there, forecast in _centres(evaluation, known) if quantiles else _frequencies(evaluation, known):
        losses = np.full(evaluation.rows, np.nan) if first is None else first.copy()
        mine = np.flatnonzero(there[of_row] & (True if first is None else np.isfinite(first)))
        for chunk in chunks(mine.size):
            at = mine[chunk]
            p = forecast(of_row[at])
            if quantiles:
                np.clip(p, evaluation.low[at, None], evaluation.high[at, None], out=p)
            losses[at] = score(evaluation, p, at)
        first = losses if first is None else first
        yield name, losses


def _centres(evaluation: Evaluation, known: Information) -> Iterator[Candidate]:
    """Outcomes known before, each with the quantiles of its past errors."""
    found = {"the last known outcome": known.last}
    for season, phase in seasons(known.times).items():
        found[f"the last outcome {season}"] = known.newest(_groups(known.series, phase[known.time]))
    for name, row in found.items():
        centre = np.where(row >= 0, known.y[row], np.nan)
        errors, place = known.past_windows(known.y - centre, lambda window: _error_quantiles(window, evaluation.levels))
        there = (place >= 0) & (row >= 0)
        yield name, there, lambda rows, c=centre, e=errors, at=place: c[rows, None] + e[at[rows]]  # type: ignore[misc]


def _error_quantiles(errors: Matrix, levels: Vector) -> Matrix:
    """Quantiles of rows of errors, drawn to those of a normal distribution by as much as `PRIOR` errors would.

    Its mean is that of the errors, drawn to 0 as far as sampling noise explains it (James and Stein).
    """
    count = np.isfinite(errors).sum(axis=1)[:, None]
    mean = np.nansum(errors, axis=1)[:, None] / count
    spread = PER_ABSOLUTE * np.nansum(np.abs(errors - mean), axis=1)[:, None] / count
    noise = np.minimum(NOISE * spread / np.sqrt(count), np.abs(mean)) / np.maximum(np.abs(mean), 1e-300)
    normal = mean * (1.0 - noise**2) + spread * ndtri(levels)
    return np.asarray((count * sample_quantiles(errors, levels) + PRIOR * normal) / (count + PRIOR))


def _frequencies(evaluation: Evaluation, known: Information) -> Iterator[Candidate]:
    """Frequencies of the labels among the outcomes known: all, and those of the same season."""
    kinds = np.arange(len(evaluation.labels)) + (evaluation.kind == "binary")
    came = (known.y[:, None] == kinds).astype(np.float64)
    there = known.known > known.issued

    def frequency(group: Places, prior: Matrix) -> Matrix:
        order, start, end = known.known_in(group)
        total = np.concatenate((np.zeros((1, kinds.size)), np.cumsum(came[order], axis=0)))
        return np.asarray((total[end] - total[start] + prior) / (end - start + 1.0)[:, None])

    whole = frequency(known.stream, np.full((1, kinds.size), 1.0 / max(kinds.size, 2)))
    found = {"the frequency so far": whole}
    for season, phase in seasons(known.times).items():
        found[f"the frequency {season}"] = frequency(_groups(known.stream, phase[known.time]), whole)
    for name, p in found.items():
        yield name, there, lambda rows, p=p: p[rows]  # type: ignore[misc]


def _groups(first: Places, second: Places) -> Places:
    return np.asarray(first * (int(second.max(initial=0)) + 1) + second)


def seasons(times: NDArray[Any]) -> dict[str, Places]:
    """Phase of each time in the seasons that fit the spacing: day, week, year; 7, 12, 24 and 52 steps of numbers.

    Times at most one a month are counted in months, so that a year is 12 of them; a year of days is 52 weeks.

    >>> hours = np.arange("2024-01-01", "2024-01-08", dtype="datetime64[h]")
    >>> list(seasons(hours))
    ['of the same hour of the day', 'of the same hour of the week', 'of the same hour of the year']
    >>> list(seasons(np.array(["2024-01-31", "2024-02-29", "2024-03-31"], dtype="datetime64[D]")))
    ['of the same month of the year']
    """
    kind = times.dtype.kind
    if kind not in "iufM" or times.size < 2:
        return {}
    if kind != "M":
        steps = np.rint((times - times[0]) * (1000.0 / np.median(np.diff(times)))).astype(np.int64)
        return {f"at multiples of {many} steps": _phase(steps, 1000 * many) for many in STEPS}
    stamps = times.astype("datetime64[ns]").astype(np.int64)
    step = float(np.median(np.diff(stamps)))
    months = times.astype("datetime64[M]").astype(np.int64)
    if step >= 27 * DAY and np.unique(months).size == times.size:
        return {"of the same month of the year": _phase(months, 12)}
    unit = next(name for name, least in UNITS.items() if step >= least)
    lags = {"day": DAY, "week": 7 * DAY, "year": 364 * DAY}
    return {f"of the same {unit} of the {name}": _phase(stamps, lag) for name, lag in lags.items() if 2 * step <= lag}


def _phase(stamps: NDArray[np.int64], lag: int) -> Places:
    """Phase of each time, numbered from 0."""
    return np.unique(stamps % lag, return_inverse=True)[1]
