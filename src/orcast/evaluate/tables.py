"""Tables of series and of horizons."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from orcast.evaluate.calibration import SURE, inside, main_share
from orcast.evaluate.evaluation import Evaluation, Places, computed_once
from orcast.evaluate.losses import compare, loss

# A change of the loss by less than this part is a tie.
TIE = 1e-9
Columns = dict[str, NDArray[Any]]


@computed_once
def by_series(evaluation: Evaluation) -> Columns:
    """Coverage and loss of each series with an outcome; first the coverage furthest from nominal, or the largest loss.

    Returns
    -------
    dict of str to array
        Columns of a table: "series", "outcomes", and for each side "coverage_before" (of the interval nearest to 90%,
        if there is one), "loss_before", "coverage_after", "loss_after".

    Examples
    --------
    >>> found = by_series(Evaluation.of([[-1, 1]] * 4, [0, 1, 2, 0], levels=[0.25, 0.75], series=list("aabb")))
    >>> found["series"].tolist(), found["coverage_before"].tolist()
    (['a', 'b'], [1.0, 0.5])
    """
    there, codes = np.unique(evaluation.series, return_inverse=True)
    found = {"series": np.array(evaluation.names, dtype=object)[there]} | _means(evaluation, codes, there.size)
    last, share = evaluation.sides[-1], main_share(evaluation.levels)
    worst = found[f"loss_{last}"] if share is None else np.abs(found[f"coverage_{last}"] - share)
    order = np.argsort(-worst, kind="stable")
    return {name: values[order] for name, values in found.items()}


@computed_once
def by_horizon(evaluation: Evaluation) -> Columns:
    """Coverage and loss at each horizon; one row if there is one horizon.

    Returns
    -------
    dict of str to array
        "horizon" and columns as of `by_series`; with recalibrated forecasts also the relative "change" of the loss,
        intervals "change_low" and "change_high" that hold for all horizons together with 95%, and the number of
        "series", of which the loss rose in "worse".

    Examples
    --------
    >>> found = by_horizon(Evaluation.of([[0.0]] * 4, [1.0, 1.0, 1.0, 1.0], after=[[0.5]] * 2 + [[-1.0]] * 2,
    ...     levels=[0.5], series=list("abab"), horizon=[1.0, 1.0, 2.0, 2.0]))
    >>> found["horizon"].tolist(), found["worse"].tolist(), found["series"].tolist()
    ([1.0, 2.0], [0, 2], [2, 2])
    """
    horizon = np.ones(evaluation.rows) if evaluation.horizon is None else evaluation.horizon
    steps, codes = np.unique(horizon, return_inverse=True)
    found = {"horizon": steps} | _means(evaluation, codes, steps.size)
    return found if evaluation.after is None else found | _changes(evaluation, codes, steps.size)


def _means(evaluation: Evaluation, codes: Places, count: int) -> Columns:
    rows = np.bincount(codes, minlength=count)
    share = main_share(evaluation.levels)
    found: Columns = {"outcomes": rows}
    for side in evaluation.sides:
        values = {"loss": loss(evaluation, side)}
        if share is not None:
            values = {"coverage": inside(evaluation, share, side)} | values
        found |= {f"{name}_{side}": np.bincount(codes, own, minlength=count) / rows for name, own in values.items()}
    return found


def _changes(evaluation: Evaluation, codes: Places, count: int) -> Columns:
    """Change of the loss in each group."""
    losses = loss(evaluation, "before"), loss(evaluation, "after")
    found: dict[str, list[Any]] = {name: [] for name in ("change", "change_low", "change_high", "worse", "series")}
    for rows in np.split(np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes, minlength=count))[:-1]):
        own = compare(evaluation, *losses, rows, 1.0 - (1.0 - SURE) / count)
        there, series = np.unique(evaluation.series[rows], return_inverse=True)
        before, after = (np.bincount(series, each[rows]) for each in losses)
        worse = int((after > before * (1.0 + TIE)).sum())
        values = (own.relative, own.relative_low, own.relative_high, worse, there.size)
        for column, value in zip(found.values(), values, strict=True):
            column.append(value)
    return {name: np.array(column) for name, column in found.items()}
