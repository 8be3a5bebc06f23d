"""References: last known and seasonal outcomes with the quantiles of their past errors, recent outcomes, frequencies.

Each uses only outcomes that were known when the forecast beside it was issued.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orcast.evaluate.dependence import information_of
from orcast.evaluate.evaluation import Evaluation, Matrix, Places, Vector, chunks, computed_once
from orcast.evaluate.information import WINDOW, Information
from orcast.evaluate.losses import Difference, compare, loss, score

DAY = 24 * 3600 * 10**9
# Seasons tried where times are plain numbers, in steps.
STEPS = (7, 12, 24, 52)
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
    def rows(self) -> int:
        """Number of rows with a reference."""
        return int(np.isfinite(self.losses).sum())


@computed_once
def best_reference(evaluation: Evaluation) -> ReferenceScore | None:
    """Reference with the least loss over all rows; None without enough outcomes.

    Where none of its season is known, a seasonal reference is the last known outcome.

    Examples
    --------
    >>> found = best_reference(Evaluation.of([0.5] * 4, [0, 1, 1, 1]))
    >>> found.name, found.losses.round(2)
    ('the frequency so far', array([0.25, 0.56, 0.25, 0.14]))
    """
    if not evaluation.rows or (evaluation.known is None and evaluation.horizon is not None):
        return None
    known, rows = information_of(evaluation)
    losses = dict(_losses(evaluation, known, rows))
    name, best = min(losses.items(), key=lambda each: np.nan_to_num(each[1]).sum())
    there = np.flatnonzero(np.isfinite(best))
    if not there.size:
        return None
    sides = {side: compare(evaluation, best, loss(evaluation, side), there) for side in evaluation.sides}
    return ReferenceScore(name, best, sides)


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
    """Outcomes known before, each with the quantiles of its past errors; and the quantiles of recent outcomes."""
    found = {"the last known outcome": known.last}
    for season, phase in seasons(known.times).items():
        found[f"the last outcome {season}"] = known.newest(_groups(known.series, phase[known.time]))
    centres = {name: np.where(row >= 0, known.y[row], np.nan) for name, row in found.items()}
    for name, centre in {**centres, f"the last {WINDOW} outcomes": np.zeros(known.y.size)}.items():
        table, place = known.past_quantiles(known.y - centre, evaluation.levels)
        there = (place >= 0) & np.isfinite(centre)
        yield name, there, lambda rows, c=centre, t=table, at=place: c[rows, None] + t[at[rows]]  # type: ignore[misc]


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
    """Phase of each time in the seasons of `orcast.recalibrate`, or of `STEPS` steps where times are numbers.

    >>> hours = np.arange("2024-01-01", "2024-01-08", dtype="datetime64[h]")
    >>> list(seasons(hours))
    ['in a season of 24 steps', 'in a season of 168 steps']
    >>> list(seasons(np.array(["2024-01-31", "2024-02-29", "2024-03-31"], dtype="datetime64[D]")))
    ['in a season of 12 steps']
    >>> list(seasons(np.arange(9)))[:1], seasons(np.array(["a", "b"]))
    (['in a season of 7 steps'], {})
    """
    from orcast.frame.times import seasons_of

    kind = times.dtype.kind
    if kind not in "iufM" or times.size < 2:
        return {}
    values = times.astype("datetime64[ns]").astype(np.int64) if kind == "M" else times
    step = np.median(np.diff(values))
    place = np.rint((values - values[0]) / step * 1000.0)  # so that times off the grid have phases of their own
    if kind == "M" and step > 27 * DAY:
        place = 1000.0 * (times.astype("datetime64[M]").astype(np.int64) // round(step / (30.4 * DAY)))
    lengths = seasons_of(int(step)) if kind == "M" else STEPS
    return {
        f"in a season of {many} steps": np.unique(place % (1000 * many), return_inverse=True)[1] for many in lengths
    }
