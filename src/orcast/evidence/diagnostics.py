"""What is drawn: PIT histogram, reliability, coverage over time, recent forecasts, widths, the promise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orcast.evidence.base import Evidence, Places, Vector, chunks, computed_once, indicators
from orcast.evidence.blocks import design_effect, frequencies, steps_of
from orcast.evidence.statistics import (
    BINS,
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
    width,
)
from orcast.evidence.tables import by_series
from orcast.validation import number, short

# Bins of a PIT histogram at most.
PIT_BINS = 20


@dataclass(frozen=True, eq=False)
class Histogram:
    """A PIT histogram: `shares` of the outcomes between `edges`, and what chance allows.

    The bins are made from the levels and may have different widths; `density` is the share over the width, 1 if
    calibrated.
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
    low, high = level_band(evidence, side, places=places)
    return Histogram(edges, found, low, high)


@dataclass(frozen=True, eq=False)
class Reliability:
    """How often it happened (`frequency`) against the `nominal` probability, and what chance allows there.

    For quantiles `nominal` are the levels, for probabilities their means in bins; `count` is the number of forecasts.
    """

    nominal: Vector
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


def probability_shares(evidence: Evidence, side: str = "before") -> tuple[Vector, Vector]:
    """How often each range of probabilities was forecast: the edges of the bins, and the share in each.

    >>> probability_shares(Evidence.of([0.1, 0.1, 0.9, 0.9], [0, 1, 1, 1]))[1][[1, 13]]
    array([0.5, 0.5])
    """
    count = bins_of(evidence, side).forecasts.sum(axis=(0, 1))
    return np.linspace(0.0, 1.0, BINS + 1), count / count.sum()


@dataclass(frozen=True, eq=False)
class Rolling:
    """Coverage of the last `window` forecasts as time goes; `low` and `high` are what chance allows in a window.

    `time` are labels of the rows, or their numbers.
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
    after = None if evidence.after is None else smooth("after")
    return Rolling(labels[ends], chosen, smooth("before"), after, float(low), float(high), size)


def _need_quantiles(evidence: Evidence) -> None:
    if evidence.kind != "quantiles":
        raise ValueError(f"expected evidence about quantiles, got kind {evidence.kind!r}")


# --- recent forecasts


@dataclass(frozen=True)
class FanBand:
    """A band of a fan: the columns of its ends, and its name."""

    lower: int
    upper: int
    name: str


@dataclass(frozen=True, eq=False)
class Fan:
    """The last rows of a series: which they are, their times, how many rows it has in all, and what to draw of them.

    `bands` are the widest first; `median` is the column of the median, if there is one.
    """

    name: str
    rows: Places
    time: NDArray[Any]
    total: int
    bands: tuple[FanBand, ...]
    median: int | None

    @property
    def columns(self) -> list[int]:
        """The columns that are drawn, the lowest level first."""
        ends = {end for band in self.bands for end in (band.lower, band.upper)}
        return sorted(ends | ({self.median} if self.median is not None else set())) or [0]


def fan(evidence: Evidence, *, series: str | None = None, last: int = 120, share: float | None = None) -> Fan:
    """The last rows of the worst series, or of a named one, a row a time; `share` is the outer interval.

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
    # of forecasts several steps ahead the last one is shown; others would draw a zigzag
    if evidence.time is not None and evidence.overlap and total:
        own = evidence.time[mine]
        mine = mine[np.append(own[1:] != own[:-1], True)]
    mine = mine[-last:]
    time = np.arange(total - mine.size, total) + 1 if evidence.time is None else evidence.time[mine]
    return Fan(series, mine, time, total, _fan_bands(evidence, share), place_of(evidence, 0.5))


def _fan_bands(evidence: Evidence, share: float | None) -> tuple[FanBand, ...]:
    """The main interval and about 50%, or from the lowest level to the highest."""
    share = main_share(evidence) if share is None else share
    if share is None:
        if evidence.levels.size < 2:
            return ()
        first, last = evidence.levels[0], evidence.levels[-1]
        return (FanBand(0, evidence.levels.size - 1, f"{level_name(first)} to {level_name(last)} quantile"),)
    inner = min((s for s in shares(evidence) if s < share), key=lambda s: abs(s - 0.5), default=None)
    return tuple(FanBand(*ends_of(evidence, s), f"{level_name(s)} interval") for s in (share, inner) if s is not None)


# --- widths


@dataclass(frozen=True, eq=False)
class Widths:
    """Widths of a few central intervals: for each side the means, and between what 8 of 10 lie."""

    shares: tuple[float, ...]
    sides: dict[str, tuple[Vector, Vector, Vector]]


def widths(evidence: Evidence) -> Widths:
    """How wide the intervals are: at most four, those closest to 50%, 80%, 90% and 95%.

    >>> widths(Evidence.of([[0.0, 1.0], [0.0, 3.0]], [0.5, 0.7], levels=[0.25, 0.75])).sides["before"][0]
    array([2.])
    >>> widths(Evidence.of([np.arange(19.0)], [2.0], levels=np.arange(1, 20) / 20)).shares
    (0.5, 0.8, 0.9)
    """
    there = shares(evidence)
    wanted = (0.5, 0.8, 0.9, 0.95) if there else ()
    chosen = sorted({min(there, key=lambda share: (round(abs(share - w), 9), -share)) for w in wanted})
    sides = {}
    for side in evidence.sides:
        q, rows = evidence.side(side), np.full((len(chosen), 3), np.nan)
        for row, share in zip(rows, chosen, strict=True):
            if evidence.rows:
                lower, upper = ends_of(evidence, share)
                row[:] = width(evidence, share, side), *np.quantile(q[:, upper] - q[:, lower], [0.1, 0.9])
        sides[side] = (rows[:, 0], rows[:, 1], rows[:, 2])
    return Widths(tuple(chosen), sides)


# --- the promise

# A promise is kept up to rounding.
ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class PromiseCheck:
    """The miscalibration against what was promised, thinned.

    With one stream `x` are its rounds, and `before` is the error of the quantiles before.  With several `single` is
    False, `x` is what was promised, and `median` that of the miscalibration there.  Of each group of rows the one that
    came closest to its promise is shown, so nothing that was broken is thinned away.  `kept` of `rows` rows kept it;
    `held` is the share of certificates that held before the outcome; `final` are miscalibration and promise in the end,
    of several series the medians.
    """

    single: bool
    x: Vector
    promised: Vector
    miscalibration: Vector
    median: Vector | None
    before: Vector | None
    kept: int
    rows: int
    held: float | None
    final: tuple[float, float]

    @property
    def summary(self) -> str:
        """Whether it was kept."""
        if self.kept == self.rows:
            return "The promise was kept after every outcome."
        return f"The promise was not kept after {self.rows - self.kept:,} of {self.rows:,} outcomes."


@computed_once
def promise_check(evidence: Evidence) -> PromiseCheck | None:
    """The miscalibration against what was promised; None if nothing was promised.

    >>> columns = {"promised": np.ones(2), "miscalibration": np.zeros(2)}
    >>> found = promise_check(Evidence.of([[0.0]] * 2, [1, -1], levels=[0.5], **columns))
    >>> found.summary, found.final
    ('The promise was kept after every outcome.', (0.0, 1.0))
    """
    if evidence.promised is None or evidence.miscalibration is None:
        return None
    there = np.isfinite(evidence.promised) & np.isfinite(evidence.miscalibration)
    bound, size = evidence.promised[there], evidence.miscalibration[there]
    if bound.size == 0:
        return None
    ratio = size / np.maximum(bound, 1e-300)
    single = len(evidence.names) == 1 and not evidence.overlap
    x = np.arange(1.0, bound.size + 1.0) if single else bound
    groups = _log_groups(x, 150 if single else 40)
    order = np.lexsort((ratio, groups))
    shown = order[np.append(np.diff(groups[order]) > 0, True)]
    before = median = None
    if single:
        shown = np.union1d(shown, [0, bound.size - 1])
        if evidence.kind == "quantiles":
            before = running_error(evidence)[np.flatnonzero(there)[shown]]
    else:
        starts = np.flatnonzero(np.append(True, np.diff(groups[order]) > 0))
        median = np.array([float(np.median(part)) for part in np.split(size[order], starts[1:])])
    return PromiseCheck(
        single,
        x[shown],
        bound[shown],
        size[shown],
        median,
        before,
        kept=int(np.count_nonzero(ratio <= 1.0 + ROUNDING)),
        rows=bound.size,
        held=_held(evidence),
        final=_final(evidence.series[there], size, bound, evidence.overlap > 0),
    )


def _log_groups(x: Vector, count: int) -> Places:
    """Groups of neighbours, evenly spaced in the logarithm."""
    low, high = max(float(x.min()), 1e-300), float(x.max())
    if not high > low:
        return np.zeros(x.size, dtype=np.intp)
    groups: Places = np.minimum((np.log(x / low) / np.log(high / low) * count).astype(np.intp), count - 1)
    return groups


def _held(evidence: Evidence) -> float | None:
    if evidence.holds is None or not (known := np.isfinite(evidence.holds)).any():
        return None
    return float(evidence.holds[known].mean())


def _final(series: Places, size: Vector, bound: Vector, overlap: bool) -> tuple[float, float]:
    # each step ahead has a promise of its own: that of the last row would be that of the furthest
    order = np.lexsort((bound, series)) if overlap else np.arange(series.size)[::-1]
    last = order[np.unique(series[order], return_index=True)[1]]
    return float(np.median(size[last])), float(np.median(bound[last]))


def running_error(evidence: Evidence, side: str = "before") -> Vector:
    """The size of the quantile errors after each row, normalised as in the game.

        sqrt( sum_a (mean_{s <= t} I_a(s) - a)^2 / sum_a a^2 )

    >>> evidence = Evidence.of([[0.25, 0.5, 0.75]] * 3, [0.4, 0.1, 0.9], levels=[0.25, 0.5, 0.75])
    >>> running_error(evidence).round(3)
    array([0.655, 0.655, 0.218])
    """
    a, out = evidence.levels, np.empty(evidence.rows)
    total = np.zeros(a.size)
    for chunk in chunks(evidence.rows, 1 << 14):
        sums = total + np.cumsum(indicators(evidence, side, chunk) - a, axis=0)
        out[chunk] = np.sqrt((sums**2).sum(axis=1) / (a**2).sum())
        total = sums[-1]
    return out / np.arange(1, evidence.rows + 1)
