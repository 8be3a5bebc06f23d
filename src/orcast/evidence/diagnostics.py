"""What is drawn and tabulated: PIT histogram, reliability, coverage over time, series by series, scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orcast.evidence.accuracy import difference, loss, steps_of
from orcast.evidence.base import Evidence, Vector, frequencies, outcomes_of, rows_of, tally
from orcast.evidence.statistics import (
    band,
    bins_of,
    chance_limit,
    coverage,
    ends_of,
    error,
    half_normal_limit,
    inside,
    limit_of,
    picked,
    shares,
    width,
)
from orcast.validation import number, short

# Bins of a PIT histogram at most.
PIT_BINS = 20


@dataclass(frozen=True, eq=False)
class Histogram:
    """A PIT histogram: `shares` of the outcomes between `edges`, and what chance allows.

    The bins are made from the levels and may have different widths; `density` is the share over the width, 1 if
    calibrated.

    >>> found = pit(Evidence.of([[1.0, 3.0]] * 4, [0.5, 2.0, 2.5, 5.0], levels=[0.25, 0.75]))
    >>> found.edges, found.density
    (array([0.  , 0.25, 0.75, 1.  ]), array([1., 1., 1.]))
    """

    edges: Vector
    shares: Vector
    low: Vector
    high: Vector

    @property
    def density(self) -> Vector:
        """Shares over widths."""
        return np.asarray(self.shares / np.diff(self.edges))

    @property
    def outside(self) -> int:
        """How many bins are outside what chance allows."""
        return int(np.count_nonzero((self.shares < self.low - 1e-9) | (self.shares > self.high + 1e-9)))


def pit(evidence: Evidence, side: str = "before", *, bins: int = PIT_BINS) -> Histogram:
    """Where in the forecast the outcomes fell, in at most `bins` bins between levels; ties counted fairly.

    >>> pit(Evidence.of([[1.0, 3.0]] * 4, [0.5, 2.0, 2.5, 5.0], levels=[0.25, 0.75])).shares
    array([0.25, 0.5 , 0.25])
    """
    _need_quantiles(evidence)
    a = evidence.levels
    places = np.arange(a.size)
    if a.size + 1 > bins:
        places = np.unique(np.abs(a[:, None] - np.arange(1, bins) / bins).argmin(axis=0))
    edges = np.concatenate(([0.0], a[places], [1.0]))
    found = np.diff(np.concatenate(([0.0], frequencies(evidence, side)[places], [1.0])))
    low, high = band(evidence.rows, np.diff(edges))
    return Histogram(edges, found, low, high)


@dataclass(frozen=True, eq=False)
class Reliability:
    """How often it happened (`frequency`) against what was said (`said`), and what chance allows there.

    For quantiles `said` are the levels, for probabilities their means in bins; `count` is the number of forecasts.

    >>> found = reliability(Evidence.of([[1.0, 3.0]] * 4, [0.5, 2.0, 2.5, 5.0], levels=[0.25, 0.75]))
    >>> found.said, found.frequency
    (array([0.25, 0.75]), array([0.25, 0.75]))
    """

    said: Vector
    frequency: Vector
    low: Vector
    high: Vector
    count: Vector

    @property
    def outside(self) -> int:
        """How many points are outside what chance allows."""
        return int(np.count_nonzero((self.frequency < self.low - 1e-9) | (self.frequency > self.high + 1e-9)))


def reliability(evidence: Evidence, side: str = "before") -> Reliability:
    """How often the outcome was below each quantile, or how often it came by the probability given to it.

    Labels are looked at one by one, their probabilities binned together.

    >>> found = reliability(Evidence.of([0.1, 0.1, 0.9, 0.9], [0, 1, 1, 1]))
    >>> found.said, found.frequency, found.count
    (array([0.1, 0.9]), array([0.5, 1. ]), array([2., 2.]))
    """
    if evidence.kind == "quantiles":
        low, high = band(evidence.rows, evidence.levels)
        count = np.full(evidence.levels.size, float(evidence.rows))
        return Reliability(evidence.levels, frequencies(evidence, side), low, high, count)
    gaps, _, counts = (part.sum(axis=(0, 1)) for part in bins_of(evidence, side))
    total = evidence._memo["said", side].sum(axis=(0, 1))
    there = counts > 0
    said, count = total[there] / counts[there], counts[there]
    frequency = said + gaps[there] / count
    low, high = band(count, said)
    return Reliability(said, np.clip(frequency, 0.0, 1.0), low, high, count)


@dataclass(frozen=True, eq=False)
class Rolling:
    """Coverage of the last `window` forecasts as time goes; `low` and `high` are what chance allows in a window.

    `time` are labels of the rows, or their numbers.

    >>> found = rolling(Evidence.of([[0.0, 1.0]] * 4, [0.5, 2.0, 0.5, 0.5], levels=[0.25, 0.75]), window=2)
    >>> found.share, found.window, found.before
    (0.5, 2, array([0.5, 0.5, 1. ]))
    """

    time: NDArray[Any]
    share: float
    before: Vector
    after: Vector | None
    low: float
    high: float
    window: int


def rolling(evidence: Evidence, share: float | None = None, *, window: int | None = None, points: int = 400) -> Rolling:
    """Coverage of a central interval over the last `window` forecasts, all series together in the order of time.

    The interval nearest to 90% and a tenth of the rows (100 at least) if not said otherwise; at most `points` points.

    >>> found = rolling(Evidence.of([[0.0, 1.0]] * 4, [0.5, 2.0, 0.5, 0.5], levels=[0.25, 0.75]), window=2)
    >>> found.before
    array([0.5, 0.5, 1. ])
    """
    _need_quantiles(evidence)
    there = shares(evidence)
    if share is None and not there:
        raise ValueError(f"expected quantiles at symmetric levels for an interval, got levels {short(evidence.levels)}")
    chosen = picked(evidence)[0] if share is None else share
    rows = evidence.rows
    size = max(100, rows // 10) if window is None else int(number(window, "window", 1, 1e12))
    size = max(1, min(size, rows))
    order = np.argsort(steps_of(evidence), kind="stable")
    ends = np.unique(np.linspace(size - 1, rows - 1, num=min(points, max(rows - size + 1, 0))).astype(np.intp))

    def smooth(side: str) -> Vector:
        total = np.concatenate(([0.0], np.cumsum(inside(evidence, chosen, side)[order])))
        return np.asarray((total[ends + 1] - total[ends + 1 - size]) / size)

    low, high = band(size, chosen)
    labels = np.arange(rows) + 1 if evidence.time is None else evidence.time[order]
    after = None if evidence.after is None else smooth("after")
    return Rolling(labels[ends], chosen, smooth("before"), after, float(low), float(high), size)


def _need_quantiles(evidence: Evidence) -> None:
    if evidence.kind != "quantiles":
        raise ValueError(f"expected evidence about quantiles, got kind {evidence.kind!r}")


# --- series by series


@dataclass(frozen=True, eq=False)
class SeriesTable:
    """The series of a panel, the worst first; each array has an entry a series, `*_after` is None in a check.

    `error` is as in `error`, `limit` what chance allows it (`SURE`), `outside` whether it is above.  `coverage`
    is that of the interval nearest to 90%, `share`; None for probabilities.

    >>> table = by_series(Evidence.of([[0.0]] * 8, [1, -1] * 2 + [1] * 4, levels=[0.5], series=list("aaaabbbb")))
    >>> table.names, table.rows
    (('b', 'a'), array([4., 4.]))
    """

    names: tuple[str, ...]
    rows: Vector
    share: float | None
    coverage_before: Vector | None
    coverage_after: Vector | None
    error_before: Vector
    error_after: Vector | None
    limit_before: Vector
    limit_after: Vector | None
    loss_before: Vector
    loss_after: Vector | None

    @property
    def outside_before(self) -> NDArray[np.bool_]:
        """Which series were outside what chance allows before."""
        return np.asarray(self.error_before > self.limit_before)

    @property
    def outside_after(self) -> NDArray[np.bool_] | None:
        """Which series are outside what chance allows after."""
        if self.error_after is None or self.limit_after is None:
            return None
        return np.asarray(self.error_after > self.limit_after)


def by_series(evidence: Evidence) -> SeriesTable:
    """Every series by itself, the one furthest above what chance allows first; those without an outcome left out.

    >>> table = by_series(Evidence.of([[0.0]] * 8, [1, -1] * 2 + [1] * 4, levels=[0.5], series=list("aaaabbbb")))
    >>> table.names, table.error_before
    (('b', 'a'), array([0.25, 0.  ]))
    """
    rows = rows_of(evidence)
    there = np.flatnonzero(rows > 0)
    errors: dict[str, Vector] = {}
    limits: dict[str, Vector] = {}
    covered: dict[str, Vector] = {}
    losses: dict[str, Vector] = {}
    main = picked(evidence)[0] if shares(evidence) else None
    for side in evidence.sides:
        count = rows[there]
        if evidence.kind == "quantiles":
            hits = tally(evidence, side)[there] / count[:, None]
            errors[side] = ((hits - evidence.levels) ** 2).sum(axis=1)
            limits[side] = chance_limit(evidence, count)
            if main is not None:
                lower, upper = ends_of(evidence, main)
                covered[side] = hits[:, upper] - hits[:, lower]
        else:
            gaps, variances, _ = (part[there].reshape(there.size, -1) for part in bins_of(evidence, side))
            scale = count * len(evidence.labels)
            errors[side] = np.abs(gaps).sum(axis=1) / scale
            limits[side] = half_normal_limit(variances) / scale
        losses[side] = np.bincount(evidence.series, loss(evidence, side), minlength=rows.size)[there] / count
    last = evidence.sides[-1]
    worst = errors[last] / np.maximum(limits[last], 1e-300)
    order = np.argsort(-worst, kind="stable")

    def sort(part: dict[str, Vector], side: str) -> Vector | None:
        return part[side][order] if side in part else None

    return SeriesTable(
        names=tuple(evidence.names[i] for i in there[order]),
        rows=rows[there][order],
        share=main,
        coverage_before=sort(covered, "before"),
        coverage_after=sort(covered, "after"),
        error_before=errors["before"][order],
        error_after=sort(errors, "after"),
        limit_before=limits["before"][order],
        limit_after=sort(limits, "after"),
        loss_before=losses["before"][order],
        loss_after=sort(losses, "after"),
    )


# --- the numbers in one table


@dataclass(frozen=True)
class ScoreRow:
    """One line of the table of scores.

    `target` is what a calibrated forecaster shows, `chance` between what it stays; `low` and `high` are the 95%
    interval of after - before.  What does not apply is None.  `form` is "percent" or "number".

    >>> first = scores(Evidence.of([[0.0, 1.0]] * 4, [0.5, 0.7, 1.5, 0.1], levels=[0.25, 0.75]))[0]
    >>> first.name, first.before, first.target
    ('coverage of the 50% interval', 0.75, 0.5)
    """

    name: str
    before: float
    after: float | None = None
    target: float | None = None
    chance: tuple[float, float] | None = None
    low: float | None = None
    high: float | None = None
    form: str = "number"


def scores(evidence: Evidence) -> list[ScoreRow]:
    """Coverage and width of the intervals, calibration error and accuracy, before and after.

    >>> found = scores(Evidence.of([[0.0, 1.0]] * 4, [0.5, 0.7, 1.5, 0.1], levels=[0.25, 0.75]))
    >>> [(score.name, score.before) for score in found][:2]
    [('coverage of the 50% interval', 0.75), ('width of the 50% interval', 1.0)]
    """
    sides = evidence.sides

    def both(measure: Any) -> tuple[float, float | None]:
        values = [float(measure(side)) for side in sides]
        return values[0], values[1] if len(values) > 1 else None

    table: list[ScoreRow] = []
    for share in sorted(picked(evidence), reverse=True):
        low, high = band(evidence.rows, share)
        before, after = both(lambda side, share=share: coverage(evidence, share, side))
        name = f"{100.0 * share:.6g}% interval"
        chance = (float(low), float(high))
        table.append(ScoreRow(f"coverage of the {name}", before, after, share, chance, form="percent"))
        before, after = both(lambda side, share=share: width(evidence, share, side))
        table.append(ScoreRow(f"width of the {name}", before, after))
    if evidence.kind != "quantiles" and evidence.rows:
        happened = outcomes_of(evidence, slice(None)).mean(axis=0)
        for k, label in enumerate(evidence.labels):
            before, after = both(lambda side, k=k: evidence.side(side)[:, k].mean())
            what = "mean probability" if evidence.kind == "binary" else f"mean probability of {label!r}"
            table.append(ScoreRow(what, before, after, float(happened[k]), form="percent"))
    before, after = both(lambda side: error(evidence, side))
    name = "calibration error (QCE)" if evidence.kind == "quantiles" else "calibration error (ECE)"
    table.append(ScoreRow(name, before, after, 0.0, (0.0, limit_of(evidence, sides[-1]))))
    found = difference(evidence)
    before, after = both(lambda side: loss(evidence, side).mean() if evidence.rows else np.nan)
    what = "pinball loss" if evidence.kind == "quantiles" else "Brier score"
    table.append(
        ScoreRow(
            what, before, after, low=None if found is None else found.low, high=None if found is None else found.high
        )
    )
    return table
