"""Numbers behind the pictures: PIT histogram, reliability, rolling coverage, recent forecasts, the guarantee."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orcast.evidence.base import Evidence, Places, Vector, computed_once
from orcast.evidence.blocks import design_effect, frequencies, steps_of
from orcast.evidence.statistics import (
    band,
    bins_of,
    ends_of,
    independent_rows,
    inside,
    level_band,
    level_name,
    main_share,
    place_of,
    shares,
    tie_excess,
)
from orcast.evidence.tables import by_series
from orcast.validation import number, short

# Bins of a PIT histogram at most.
PIT_BINS = 20
# Rounding allowed in a guarantee.
ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Histogram:
    """PIT histogram: `shares` of the outcomes between `edges` (levels), and their chance band."""

    edges: Vector
    shares: Vector
    low: Vector
    high: Vector

    @property
    def density(self) -> Vector:
        """Shares over bin widths; 1 if calibrated."""
        return np.asarray(self.shares / np.diff(self.edges))

    @property
    def outside(self) -> int:
        """Number of bins outside the chance band."""
        return int(np.count_nonzero((self.shares < self.low - 1e-9) | (self.shares > self.high + 1e-9)))


def pit(evidence: Evidence, side: str = "before") -> Histogram:
    """PIT histogram with at most 20 bins between levels; ties count in favour of the forecast.

    >>> pit(Evidence.of([[1.0, 3.0]] * 4, [0.5, 2.0, 2.5, 5.0], levels=[0.25, 0.75])).shares
    array([0.25, 0.5 , 0.25])
    """
    _need_quantiles(evidence)
    a = evidence.levels
    places = np.arange(a.size)
    if a.size + 1 > PIT_BINS:
        places = np.unique(np.abs(a[:, None] - np.arange(1, PIT_BINS) / PIT_BINS).argmin(axis=0))
    edges = np.concatenate(([0.0], a[places], [1.0]))
    found = np.diff(np.concatenate(([0.0], frequencies(evidence, side)[places], [1.0])))
    low, high = level_band(evidence, side, places=places)
    return Histogram(edges, found, low, high)


@dataclass(frozen=True, eq=False)
class Reliability:
    """Observed `frequency` at each `nominal` level or mean probability of a bin, its chance band and its `count`."""

    nominal: Vector
    frequency: Vector
    low: Vector
    high: Vector
    count: Vector

    @property
    def outside(self) -> int:
        """Number of points outside the chance band."""
        return int(np.count_nonzero((self.frequency < self.low - 1e-9) | (self.frequency > self.high + 1e-9)))


def reliability(evidence: Evidence, side: str = "before") -> Reliability:
    """Share of outcomes below each quantile, or frequency of the event by its probability; labels are binned together.

    >>> found = reliability(Evidence.of([0.1, 0.1, 0.9, 0.9], [0, 1, 1, 1]))
    >>> found.nominal, found.frequency, found.count
    (array([0.1, 0.9]), array([0.5, 1. ]), array([2., 2.]))
    """
    if evidence.kind == "quantiles":
        low, high = level_band(evidence, side)
        count = np.full(evidence.levels.size, float(evidence.rows))
        return Reliability(evidence.levels, frequencies(evidence, side), low, high, count)
    sums = bins_of(evidence, side)
    gap, count, total = (part.sum(axis=(0, 1)) for part in (sums.gap, sums.forecasts, sums.probability))
    there = count > 0
    nominal, count = total[there] / count[there], count[there]
    low, high = band(count / design_effect(evidence, side).max(), nominal)
    return Reliability(nominal, np.clip(nominal + gap[there] / count, 0.0, 1.0), low, high, count)


@dataclass(frozen=True, eq=False)
class Rolling:
    """Coverage by side over the last `window` forecasts at each time, and the chance band of one window."""

    time: NDArray[Any]
    share: float
    sides: dict[str, Vector]
    low: float
    high: float
    window: int


def rolling(evidence: Evidence, share: float | None = None, *, window: int | None = None, points: int = 400) -> Rolling:
    """Coverage of a central interval over the last `window` forecasts of all series, in the order of time.

    By default the interval nearest to 90%, and a tenth of the rows (at least 100).

    >>> found = rolling(Evidence.of([[0.0, 1.0]] * 4, [0.5, 2.0, 0.5, 0.5], levels=[0.25, 0.75]), window=2)
    >>> found.sides["before"]
    array([0.5, 0.5, 1. ])
    """
    _need_quantiles(evidence)
    chosen = main_share(evidence) if share is None else share
    if chosen is None:
        raise ValueError(f"expected quantiles at symmetric levels for an interval, got levels {short(evidence.levels)}")
    rows = evidence.rows
    size = max(100, rows // 10) if window is None else int(number(window, "window", 1, 1e12))
    size = max(1, min(size, rows))
    order = np.argsort(steps_of(evidence), kind="stable")
    ends = np.unique(np.linspace(size - 1, rows - 1, num=min(points, max(rows - size + 1, 0))).astype(np.intp))

    def smooth(side: str) -> Vector:
        total = np.concatenate(([0.0], np.cumsum(inside(evidence, chosen, side)[order])))
        return np.asarray((total[ends + 1] - total[ends + 1 - size]) / size)

    low, high = band(size * independent_rows(evidence, chosen) / max(rows, 1), chosen)
    labels = np.arange(rows) + 1 if evidence.time is None else evidence.time[order]
    sides = {side: smooth(side) for side in evidence.sides}
    upper = min(float(high) + tie_excess(evidence, chosen), 1.0)
    return Rolling(labels[ends], chosen, sides, float(low), upper, size)


def _need_quantiles(evidence: Evidence) -> None:
    if evidence.kind != "quantiles":
        raise ValueError(f"expected evidence about quantiles, got kind {evidence.kind!r}")


@dataclass(frozen=True, eq=False)
class Fan:
    """Last rows of a series: indices, times, the number of its rows, the bands (columns and name), the median."""

    name: str
    rows: Places
    time: NDArray[Any]
    total: int
    bands: tuple[tuple[int, int, str], ...]
    median: int | None


def fan(evidence: Evidence, *, series: str | None = None, last: int = 120, share: float | None = None) -> Fan:
    """Last rows of a named series, or of the most miscalibrated one, one per time; `share` is the outer interval.

    >>> found = fan(Evidence.of([[0.0]] * 6, [1, -1, 1, 1, 1, 1], levels=[0.5], series=list("aabbbb")), last=3)
    >>> found.name, found.rows.tolist(), found.total
    ('b', [3, 4, 5], 4)
    """
    _need_quantiles(evidence)
    if series is None:
        names = by_series(evidence).names if len(evidence.names) > 1 else evidence.names
        series = names[0] if names else ""
    elif series not in evidence.names:
        raise ValueError(f"expected the name of a series, got {series!r}")
    mine = np.flatnonzero(evidence.series == evidence.names.index(series)) if evidence.names else np.empty(0, np.intp)
    total = mine.size
    # of several forecasts of one time the last is shown
    if evidence.time is not None and evidence.overlap and total:
        own = evidence.time[mine]
        mine = mine[np.append(own[1:] != own[:-1], True)]
    mine = mine[-last:]
    time = np.arange(total - mine.size, total) + 1 if evidence.time is None else evidence.time[mine]
    return Fan(series, mine, time, total, _fan_bands(evidence, share), place_of(evidence, 0.5))


def _fan_bands(evidence: Evidence, share: float | None) -> tuple[tuple[int, int, str], ...]:
    """Main interval and about 50%, or from the lowest level to the highest."""
    share = main_share(evidence) if share is None else share
    if share is None:
        if evidence.levels.size < 2:
            return ()
        first, last = evidence.levels[0], evidence.levels[-1]
        return ((0, evidence.levels.size - 1, f"{level_name(first)} to {level_name(last)} quantile"),)
    inner = min((s for s in shares(evidence) if s < share), key=lambda s: abs(s - 0.5), default=None)
    return tuple((*ends_of(evidence, s), f"{level_name(s)} interval") for s in (share, inner) if s is not None)


@dataclass(frozen=True)
class GuaranteeCheck:
    """Rows whose miscalibration stayed below the bound, the share of certificates that held, and the final values.

    `final` are the last miscalibration and bound of a series, the median over series.
    """

    kept: int
    rows: int
    held: float | None
    final: tuple[float, float]


@computed_once
def guarantee_check(evidence: Evidence) -> GuaranteeCheck | None:
    """Compare the miscalibration with its bound; None without a bound.

    >>> columns = {"promised": np.ones(2), "miscalibration": np.zeros(2)}
    >>> found = guarantee_check(Evidence.of([[0.0]] * 2, [1, -1], levels=[0.5], **columns))
    >>> found.kept, found.rows, found.final
    (2, 2, (0.0, 1.0))
    """
    if evidence.promised is None or evidence.miscalibration is None:
        return None
    there = np.isfinite(evidence.promised) & np.isfinite(evidence.miscalibration)
    bound, size, series = evidence.promised[there], evidence.miscalibration[there], evidence.series[there]
    if bound.size == 0:
        return None
    known = np.zeros(0) if evidence.holds is None else evidence.holds[np.isfinite(evidence.holds)]
    # each horizon has a bound of its own: the tightest of a series is its last
    order = np.lexsort((bound, series)) if evidence.overlap else np.arange(series.size)[::-1]
    last = order[np.unique(series[order], return_index=True)[1]]
    return GuaranteeCheck(
        kept=int(np.count_nonzero(size <= bound * (1.0 + ROUNDING))),
        rows=bound.size,
        held=float(known.mean()) if known.size else None,
        final=(float(np.median(size[last])), float(np.median(bound[last]))),
    )
