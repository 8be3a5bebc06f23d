"""What is shown of a large body of evidence: which interval, which series, which rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orcast.evidence import Evidence, by_series, shares, width
from orcast.evidence.base import hits_of, remember
from orcast.evidence.statistics import ends_of, picked

Vector = NDArray[np.float64]
Places = NDArray[np.intp]

# A promise is kept up to rounding.
HAIR = 1e-9
# Rows looked at together.
CHUNK = 1 << 14


def main_share(evidence: Evidence) -> float | None:
    """The central interval that the verdict speaks of, if the levels allow any.

    >>> main_share(Evidence.of([[1.0, 2.0, 3.0, 4.0]], [2.0], levels=[0.05, 0.25, 0.75, 0.95]))
    0.9
    """
    found = picked(evidence)
    return found[0] if found else None


def some_shares(evidence: Evidence) -> tuple[float, ...]:
    """At most four central intervals: those closest to 50%, 80%, 90% and 95%.

    >>> some_shares(Evidence.of([np.arange(19.0)], [2.0], levels=np.arange(1, 20) / 20))
    (0.5, 0.8, 0.9)
    """
    there = shares(evidence)
    wanted = (0.5, 0.8, 0.9, 0.95)
    return (
        tuple(sorted({min(there, key=lambda share: (round(abs(share - w), 9), -share)) for w in wanted}))
        if there
        else ()
    )


@dataclass(frozen=True)
class Spread:
    """Columns of a band and what to call it."""

    lower: int
    upper: int
    words: str


def spreads(evidence: Evidence, share: float | None = None) -> tuple[Spread, ...]:
    """The bands of a fan, the widest first: the main one and about 50%, or from the lowest level to the highest.

    >>> [spread.words for spread in spreads(Evidence.of([[1.0, 2.0]], [2.0], levels=[0.1, 0.5]))]
    ['10% to 50% quantile']
    """
    share = main_share(evidence) if share is None else share
    if share is None:
        if evidence.levels.size < 2:
            return ()
        first, last = evidence.levels[0], evidence.levels[-1]
        return (Spread(0, evidence.levels.size - 1, f"{100 * first:g}% to {100 * last:g}% quantile"),)
    inner = min((s for s in shares(evidence) if s < share), key=lambda s: abs(s - 0.5), default=None)
    return tuple(Spread(*ends_of(evidence, s), f"{100 * s:.4g}% interval") for s in (share, inner) if s is not None)


@dataclass(frozen=True, eq=False)
class Widths:
    """Widths of a few central intervals: for each side the means, and between what 8 of 10 lie."""

    shares: tuple[float, ...]
    sides: dict[str, tuple[Vector, Vector, Vector]]


def widths(evidence: Evidence) -> Widths:
    """How wide the intervals are.

    >>> widths(Evidence.of([[0.0, 1.0], [0.0, 3.0]], [0.5, 0.7], levels=[0.25, 0.75])).sides["before"][0]
    array([2.])
    """
    chosen = some_shares(evidence)
    sides = {}
    for side in evidence.sides:
        q, mean, low, high = evidence.side(side), [], [], []
        for share in chosen:
            lower, upper = ends_of(evidence, share)
            ends = np.quantile(q[:, upper] - q[:, lower], [0.1, 0.9]) if evidence.rows else np.full(2, np.nan)
            mean.append(width(evidence, share, side))
            low.append(float(ends[0]))
            high.append(float(ends[1]))
        sides[side] = (np.array(mean), np.array(low), np.array(high))
    return Widths(chosen, sides)


@dataclass(frozen=True, eq=False)
class Stretch:
    """The last rows of a series: its name, which rows, their times, and how many rows it has in all."""

    name: str
    rows: Places
    time: NDArray[Any]
    total: int


def stretch(evidence: Evidence, *, name: str | None = None, last: int = 120) -> Stretch:
    """The last rows of the worst series, or of a named one, a row a time.

    >>> found = stretch(Evidence.of([[0.0]] * 6, [1, -1, 1, 1, 1, 1], levels=[0.5], series=list("aabbbb")), last=3)
    >>> found.name, found.rows.tolist(), found.total
    ('b', [3, 4, 5], 4)
    """
    if name is None:
        names = by_series(evidence).names if len(evidence.names) > 1 else evidence.names
        name = names[0] if names else ""
    elif name not in evidence.names:
        raise ValueError(f"expected the name of a series, got {name!r}")
    mine = np.flatnonzero(evidence.series == evidence.names.index(name)) if evidence.names else np.empty(0, np.intp)
    total = mine.size
    # of forecasts several steps ahead the one that stands last is shown; others would draw a zigzag
    if evidence.time is not None and evidence.overlap and total:
        own = evidence.time[mine]
        mine = mine[np.append(own[1:] != own[:-1], True)]
    mine = mine[-last:]
    time = np.arange(total - mine.size, total) + 1 if evidence.time is None else evidence.time[mine]
    return Stretch(name, mine, time, total)


@dataclass(frozen=True, eq=False)
class Promise:
    """What was promised and what was kept, thinned.

    With one stream `place` are its rounds, and `given` is the error of the quantiles as they were given.  With
    several `rounds` is False, `place` is what was promised, and `middle` the median of the miscalibration there.
    Of each group of rows the one that came closest to its promise is shown, so nothing that was broken is thinned away.
    `kept` of `rows` rows kept it; `held` is the share of certificates that held before the outcome.
    """

    rounds: bool
    place: Vector
    promised: Vector
    miscalibration: Vector
    middle: Vector | None
    given: Vector | None
    kept: int
    rows: int
    held: float | None
    last: tuple[float, float] | None

    @property
    def words(self) -> str:
        """Whether it was kept."""
        if self.kept == self.rows:
            return "The promise was kept after every outcome."
        return f"The promise was not kept after {self.rows - self.kept:,} of {self.rows:,} outcomes."


def promise(evidence: Evidence) -> Promise | None:
    """The miscalibration against what was promised; None if nothing was promised.

    >>> booked = {"promised": np.ones(2), "miscalibration": np.zeros(2)}
    >>> found = promise(Evidence.of([[0.0]] * 2, [1, -1], levels=[0.5], **booked))
    >>> found.words, found.last
    ('The promise was kept after every outcome.', (0.0, 1.0))
    """
    found: Promise | None = remember(evidence, "promise", lambda: _promise(evidence))
    return found


def _promise(evidence: Evidence) -> Promise | None:
    if evidence.promised is None or evidence.miscalibration is None:
        return None
    there = np.isfinite(evidence.promised) & np.isfinite(evidence.miscalibration)
    bound, size = evidence.promised[there], evidence.miscalibration[there]
    if bound.size == 0:
        return None
    near = size / np.maximum(bound, 1e-300)
    kept = int(np.count_nonzero(near <= 1.0 + HAIR))
    held = None
    if evidence.holds is not None and (told := np.isfinite(evidence.holds)).any():
        held = float(evidence.holds[told].mean())
    one = len(evidence.names) == 1 and not evidence.overlap
    place = np.arange(1.0, bound.size + 1.0) if one else bound
    points = 150 if one else 40
    low, high = max(float(place.min()), 1e-300), float(place.max())
    groups = np.zeros(bound.size, dtype=np.intp)
    if high > low:
        groups = np.minimum((np.log(place / low) / np.log(high / low) * points).astype(np.intp), points - 1)
    given = None
    order = np.lexsort((near, groups))
    worst = order[np.append(np.diff(groups[order]) > 0, True)]
    if one:
        worst = np.union1d(worst, [0, bound.size - 1])
        middles, last = None, (float(size[-1]), float(bound[-1]))
        if evidence.kind == "quantiles":
            given = running_error(evidence)[np.flatnonzero(there)[worst]]
    else:
        starts = np.flatnonzero(np.append(True, np.diff(groups[order]) > 0))
        middles, last = np.array([float(np.median(part)) for part in np.split(size[order], starts[1:])]), None
    return Promise(one, place[worst], bound[worst], size[worst], middles, given, kept, bound.size, held, last)


def running_error(evidence: Evidence, side: str = "before") -> Vector:
    """The size of the quantile errors after each row, normalised as in the game.

        sqrt( sum_a (mean_{s <= t} I_a(s) - a)^2 / sum_a a^2 )

    >>> evidence = Evidence.of([[0.25, 0.5, 0.75]] * 3, [0.4, 0.1, 0.9], levels=[0.25, 0.5, 0.75])
    >>> running_error(evidence).round(3)
    array([0.655, 0.655, 0.218])
    """
    a, out = evidence.levels, np.empty(evidence.rows)
    total = np.zeros(a.size)
    for start in range(0, evidence.rows, CHUNK):
        piece = slice(start, min(start + CHUNK, evidence.rows))
        sums = total + np.cumsum(hits_of(evidence, side, piece) - a, axis=0)
        out[piece] = np.sqrt((sums**2).sum(axis=1) / (a**2).sum())
        total = sums[-1]
    return out / np.arange(1, evidence.rows + 1)
