"""Outcomes known when each forecast was issued, and the simple forecasts that they give."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orcast.constants import PER_ABSOLUTE
from orcast.evidence.base import Places, Reference, Vector

# Past errors needed for a reference's spread, and the largest number of seasons to go back.
FEWEST, BACK = 5, 64
# Later than every time.
NEVER = np.iinfo(np.int64).max // 4
DAY = 86_400 * 10**9
# Seasons tried where times are plain numbers, in steps.
STEPS = (7, 12, 24, 52)


@dataclass(frozen=True, eq=False)
class Information:
    """Ranks of the issue time and of the time at which the outcome was known: i knew j if known[j] <= issued[i].

    `time` is a rank too; `horizon` counts steps ahead from 1.  Rows are in the order of series and time.
    """

    series: Places
    time: Places
    issued: Places
    known: Places
    horizon: Vector

    @classmethod
    def of(
        cls,
        series: Places,
        time: NDArray[Any],
        issued: NDArray[Any] | None,
        known: NDArray[Any] | None,
        horizon: Vector | None,
    ) -> Information:
        """Rank the times; by default outcomes are known at their time and forecasts issued just before theirs.

        Without `horizon`, it is the place of a row among those of its series that were issued together.

        >>> of = Information.of(np.zeros(3, np.intp), np.array([10, 20, 30]), None, None, None)
        >>> of.known.tolist(), of.issued.tolist(), of.horizon.tolist()
        ([1, 2, 3], [0, 1, 2], [1.0, 1.0, 1.0])
        """
        when = np.unique(time, return_inverse=True)[1]
        first = time if known is None else known
        ranks = np.unique(np.concatenate((first, time if issued is None else issued)), return_inverse=True)[1] + 1
        at, since = ranks[: time.size], ranks[time.size :]
        if issued is None:
            since = since - 1
        if horizon is None and issued is None:
            horizon = np.ones(time.size)
        elif horizon is None:
            order = np.lexsort((when, since, series))
            group = series[order] * (int(ranks.max(initial=0)) + 1) + since[order]
            horizon = np.empty(time.size)
            horizon[order] = np.arange(1, time.size + 1) - np.searchsorted(group, group, side="left")
        return cls(series, when.astype(np.intp), since.astype(np.intp), at.astype(np.intp), horizon)

    @cached_property
    def size(self) -> int:
        """Number larger than all ranks."""
        return int(max(self.known.max(initial=0), self.issued.max(initial=0), self.time.max(initial=0))) + 2

    def past_spread(self, errors: Vector, fewest: int = 1) -> Vector:
        """Spread of the errors of the same series and horizon known at each forecast; nan with fewer than `fewest`."""
        step = np.unique(self.horizon, return_inverse=True)[1]
        stream = self.series * (int(step.max(initial=0)) + 1) + step
        order = np.lexsort((self.known, stream))
        e, key = errors[order], stream[order] * self.size
        there = np.isfinite(e)
        sizes = np.concatenate(([0.0], np.cumsum(np.abs(np.where(there, e, 0.0)))))
        counts = np.concatenate(([0], np.cumsum(there)))
        first = np.searchsorted(key, key, side="left")
        until = np.searchsorted(key + self.known[order], key + self.issued[order], side="right")
        until = np.maximum(until, first)
        many = counts[until] - counts[first]
        out = np.empty(e.size)
        with np.errstate(invalid="ignore", divide="ignore"):
            total = np.maximum(sizes[until] - sizes[first], 0.0)
            out[order] = np.where(many >= fewest, PER_ABSOLUTE * total / many, np.nan)
        return out

    def outcomes(self, y: Vector) -> OutcomeTable:
        """Outcomes of these rows, one per series and time."""
        return OutcomeTable.of(self, y)


@dataclass(frozen=True, eq=False)
class OutcomeTable:
    """One entry per series and time: the outcome and the rank at which it was known.

    `place` is the entry of each row, `last` the newest entry known to each row, or -1.
    """

    information: Information
    series: Places
    time: Places
    y: Vector
    known: Places
    place: Places
    last: Places

    @classmethod
    def of(cls, information: Information, y: Vector) -> OutcomeTable:
        """Make the table from rows in the order of series and time."""
        series, when = information.series, information.time
        new = np.ones(y.size, dtype=np.bool_)
        new[1:] = (series[1:] != series[:-1]) | (when[1:] != when[:-1])
        place = np.cumsum(new) - 1
        count = int(place[-1]) + 1 if y.size else 0
        values = np.full(count, np.nan)
        known = np.full(count, NEVER, dtype=np.int64)
        there = np.flatnonzero(np.isfinite(y))[::-1]
        values[place[there]] = y[there]
        known[place[there]] = information.known[there]
        table = cls(information, series[new], when[new], values, known, place, np.empty(0, dtype=np.intp))
        return cls(information, table.series, table.time, values, known, place, table._newest())

    def _newest(self) -> Places:
        """Newest entry that was known to each row, never its own or a later one."""
        here = np.flatnonzero(self.known < NEVER)
        order = here[np.lexsort((self.known[here], self.series[here]))]
        rows, issued = self.information.series, self.information.issued
        if not order.size:
            return np.full(rows.size, -1, dtype=np.intp)
        size = self.information.size
        # entries grow with the series, so the running maximum stays in the series from its first entry on
        newest = np.maximum.accumulate(order)
        at = np.searchsorted(self.series[order] * size + self.known[order], rows * size + issued, side="right") - 1
        none = (at < 0) | (self.series[order[np.maximum(at, 0)]] != rows)
        found = np.where(none, -1, newest[np.maximum(at, 0)])
        # a nowcast: later times may be known, only the entry before its own counts
        before = self.place - 1
        fine = (before >= 0) & (self.series[before] == rows) & (self.known[before] <= issued)
        return np.asarray(np.where(found >= self.place, np.where(fine, before, -1), found), dtype=np.intp)

    def overlap(self) -> int:
        """Number of times before its own whose outcome was unknown when a forecast was issued (99% quantile)."""
        if not self.place.size:
            return 0
        there = np.isfinite(self.y)
        counted = np.cumsum(there)
        rows = np.flatnonzero((self.last >= 0) & there[self.place])
        last, own = self.last[rows], self.place[rows]
        pending = counted[own] - 1 - counted[last]
        following = np.flatnonzero(there)[np.minimum(counted[last], counted[-1] - 1)]
        steps = np.where(pending > 0, self.time[own] - self.time[following], 0)
        return int(np.quantile(steps, 0.99, method="higher")) if steps.size else 0

    def references(self, y: Vector, stamps: NDArray[Any]) -> tuple[Reference, ...]:
        """Simple forecasts of each row: the last known outcome, and that of the same season before.

        The spread is that of the reference's own errors known at the issue time.  `stamps` are the rows' times.
        """
        last = np.full(self.place.size, np.nan)
        rows = np.flatnonzero(self.last >= 0)
        last[rows] = self.y[self.last[rows]]
        found = {"the last known outcome": last}
        counted, lags = seasons(stamps)
        for name, lag in lags.items():
            centre = self._seasonal(counted, lag)
            if 2 * np.count_nonzero(np.isfinite(centre)) >= centre.size:
                found[name] = centre
        spreads = {name: self.information.past_spread(y - centre, FEWEST) for name, centre in found.items()}
        return tuple(Reference(name, centre, spreads[name]) for name, centre in found.items())

    def _seasonal(self, stamps: NDArray[Any], lag: float) -> Vector:
        """Outcome one season before each row, or the fewest seasons before that were known when it was issued."""
        size, information = self.information.size, self.information
        times = np.unique(stamps)
        keys = self.series * size + self.time
        centre = np.full(self.place.size, np.nan)
        rows = np.arange(self.place.size)
        for back in range(1, BACK + 1):
            target = stamps[rows] - back * lag
            rows, target = rows[target >= times[0]], target[target >= times[0]]
            if not rows.size:
                break
            rank = np.searchsorted(times, target)
            key = information.series[rows] * size + rank
            at = np.minimum(np.searchsorted(keys, key), keys.size - 1)
            fine = (times[rank] == target) & (keys[at] == key) & (self.known[at] <= information.issued[rows])
            centre[rows[fine]] = self.y[at[fine]]
            rows = rows[~fine]
        return centre


def seasons(stamps: NDArray[Any]) -> tuple[NDArray[Any], dict[str, float]]:
    """Times as numbers, and the lags of the seasons that fit their spacing: day, week, year.

    Times at most one a month are counted in months, so that a year is 12 of them; a year of days is 52 weeks.

    >>> hours = np.arange("2024-01-01", "2024-01-08", dtype="datetime64[h]")
    >>> list(seasons(hours)[1])
    ['the same time a day before', 'the same time a week before', 'the same time a year before']
    >>> seasons(np.array(["2024-01-31", "2024-02-29", "2024-03-31"], dtype="datetime64[D]"))[1]
    {'the same time a year before': 12}
    """
    if stamps.dtype.kind not in "iufmM":
        return stamps, {}
    if stamps.dtype.kind in "iuf":
        step = _step(np.unique(stamps))
        return stamps, {f"the outcome {many} steps before": many * step for many in STEPS} if step > 0 else {}
    months = stamps.astype("datetime64[M]").astype(np.int64) if stamps.dtype.kind == "M" else None
    moments = stamps.astype(f"{stamps.dtype.kind}8[ns]").astype(np.int64)
    step = _step(np.unique(moments))
    if months is not None and step >= 27 * DAY and np.unique(months).size == np.unique(moments).size:
        return months, {"the same time a year before": 12}
    lags = {"day": DAY, "week": 7 * DAY, "year": 364 * DAY}
    return moments, {f"the same time a {name} before": lag for name, lag in lags.items() if 0 < 2 * step <= lag}


def _step(times: NDArray[Any]) -> float:
    """Median spacing of sorted times; 0 for fewer than two."""
    return np.median(np.diff(times)).item() if times.size > 1 else 0


def one_step_references(series: Places, time: NDArray[Any] | None, y: Vector) -> tuple[Reference, ...]:
    """References of rows issued one step ahead, after the outcomes of all earlier times of their series.

    >>> one_step_references(np.zeros(7, np.intp), None, np.arange(7.0))[0].centre
    array([nan,  0.,  1.,  2.,  3.,  4.,  5.])
    """
    counted = np.arange(y.size) if time is None else time
    order = np.lexsort((counted, series))
    if time is None:
        rows = np.bincount(series)
        counted = np.empty(y.size, dtype=np.intp)
        counted[order] = np.arange(y.size) - np.repeat(np.cumsum(rows) - rows, rows)
    information = Information.of(series[order], counted[order], None, None, None)
    found = information.outcomes(y[order]).references(y[order], counted[order])
    back = np.argsort(order, kind="stable")
    return tuple(Reference(each.name, each.centre[back], each.spread[back]) for each in found)
