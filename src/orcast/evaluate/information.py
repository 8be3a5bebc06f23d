"""Outcomes, errors and losses that were known when each forecast was issued."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orcast.constants import PER_ABSOLUTE
from orcast.evaluate.evaluation import Matrix, Places, Vector, chunks

# Later than every time.
NEVER = np.iinfo(np.int64).max // 4
# Fewest and most past values of a window.
FEWEST, WINDOW = 5, 256


@dataclass(frozen=True, eq=False)
class Information:
    """Ranks of the issue time and of the time at which the outcome was known: i knew j if known[j] <= issued[i].

    `time` is a rank too, its place in `times`; `horizon` counts steps ahead from 1.  Rows are in the order of series
    and time.
    """

    series: Places
    time: Places
    issued: Places
    known: Places
    horizon: Vector
    times: NDArray[Any]

    @classmethod
    def of(
        cls,
        series: Places,
        time: NDArray[Any],
        issued: NDArray[Any] | None = None,
        known: NDArray[Any] | None = None,
        horizon: Vector | None = None,
        stamps: NDArray[Any] | None = None,
    ) -> Information:
        """Rank the times; by default outcomes are known at their time and forecasts issued just before theirs.

        Without `horizon`, it is the place of a row among those of its series that were issued together.  `stamps` are
        the times as dates, if they are.
        """
        times, at, when = np.unique(time, return_index=True, return_inverse=True)
        first = time if known is None else known
        ranks = np.unique(np.concatenate((first, time if issued is None else issued)), return_inverse=True)[1] + 1
        since = ranks[time.size :]
        if issued is None:
            since = since - 1
        if horizon is None and issued is None:
            horizon = np.ones(time.size)
        elif horizon is None:
            order = np.lexsort((when, since, series))
            group = series[order] * (int(ranks.max(initial=0)) + 1) + since[order]
            horizon = np.empty(time.size)
            horizon[order] = np.arange(1, time.size + 1) - np.searchsorted(group, group, side="left")
        times = times if stamps is None else stamps[at]
        return cls(series, when, since, ranks[: time.size], horizon, times)

    @cached_property
    def size(self) -> int:
        """Number larger than all ranks."""
        return int(max(self.known.max(initial=0), self.issued.max(initial=0), self.time.max(initial=0))) + 2

    @cached_property
    def _past(self) -> tuple[Places, Places, Places]:
        """Rows by series, horizon and publication, and the slice of them that each row knew: start and end."""
        step = np.unique(self.horizon, return_inverse=True)[1]
        stream = (self.series * (int(step.max(initial=0)) + 1) + step) * self.size
        order = np.lexsort((self.known, stream))
        keys = (stream + self.known)[order]
        start = np.searchsorted(keys, stream)
        return order, start, np.maximum(start, np.searchsorted(keys, stream + self.issued, side="right"))

    def past_spread(self, errors: Vector) -> Vector:
        """Spread of the errors of the same series and horizon known at each forecast; nan if there are none."""
        order, start, end = self._past
        e = errors[order]
        there = np.isfinite(e)
        sizes = np.concatenate(([0.0], np.cumsum(np.abs(np.where(there, e, 0.0)))))
        counts = np.concatenate(([0], np.cumsum(there)))
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = np.maximum(sizes[end] - sizes[start], 0.0) / (counts[end] - counts[start])
        return np.asarray(PER_ABSOLUTE * mean)

    def past_windows(self, values: Vector, summary: Callable[[Matrix], Matrix]) -> tuple[Matrix, Places]:
        """Summaries of the last values of the same series and horizon that each row knew, and the place of each row's.

        `summary` takes windows, one a row, of at most `WINDOW` values with nan in front.  A window is renewed whenever
        there are an eighth more values, or 32.  The place is -1 with fewer than `FEWEST` values.
        """
        order, start, end = self._past
        there = np.isfinite(values[order])
        counts = np.concatenate(([0], np.cumsum(there)))
        past = values[order][there]
        many = counts[end] - counts[start]
        many -= many % (1 << np.clip(np.frexp(many)[1] - 4, 0, 5))
        ends, enough = counts[start] + many, many >= FEWEST
        sizes = np.zeros(past.size + 1, dtype=np.intp)
        sizes[ends[enough]] = np.minimum(many[enough], WINDOW)
        place = np.where(enough, np.cumsum(sizes > 0)[ends] - 1, -1)
        ends = np.flatnonzero(sizes)
        sizes = sizes[ends]
        table = np.empty((ends.size, summary(np.zeros((1, FEWEST))).shape[1]))
        # windows of about one size together, or most of the memory would be filled with nan
        kinds = np.frexp(sizes)[1]
        for kind in np.unique(kinds):
            alike = np.flatnonzero(kinds == kind)
            back = np.arange(sizes[alike].max(), 0, -1)
            for chunk in chunks(alike.size, 1 << 14):
                at = alike[chunk]
                window = past[np.maximum(ends[at, None] - back, 0)]
                window[back > sizes[at, None]] = np.nan
                table[at] = summary(window)
        return table, place


@dataclass(frozen=True, eq=False)
class OutcomeTable:
    """One entry per series and time: the outcome and the rank at which it was known.

    `place` is the entry of each row, `y` its outcome.
    """

    information: Information
    y: Vector
    place: Places
    series: Places
    time: Places
    outcome: Vector
    known: Places

    @classmethod
    def of(cls, information: Information, y: Vector) -> OutcomeTable:
        """Make the table from rows in the order of series and time."""
        series, when = information.series, information.time
        new = np.ones(y.size, dtype=np.bool_)
        new[1:] = (series[1:] != series[:-1]) | (when[1:] != when[:-1])
        place = np.cumsum(new) - 1
        count = int(place[-1]) + 1 if y.size else 0
        outcome = np.full(count, np.nan)
        known = np.full(count, NEVER, dtype=np.int64)
        there = np.flatnonzero(np.isfinite(y))[::-1]
        outcome[place[there]] = y[there]
        known[place[there]] = information.known[there]
        return cls(information, y, place, series[new], when[new], outcome, known)

    def known_in(self, group: Places) -> tuple[Places, Places, Places]:
        """Entries by group and publication, and the slice of them that each row knew: start and end.

        `group` is the group of each entry.
        """
        size = self.information.size
        here = np.flatnonzero(self.known < NEVER)
        order = here[np.lexsort((self.known[here], group[here]))]
        keys, own = group[order] * size + self.known[order], group[self.place] * size
        start = np.searchsorted(keys, own)
        return order, start, np.maximum(start, np.searchsorted(keys, own + self.information.issued, side="right"))

    def newest(self, group: Places) -> Places:
        """Newest entry of its group that was known to each row, never its own or a later one; -1 if there is none."""
        order, start, end = self.known_in(group)
        count, found = self.known.size, np.full(self.place.size, -1, dtype=np.intp)
        rows = np.flatnonzero(end > start)
        found[rows] = np.maximum.accumulate(group[order] * count + order)[end[rows] - 1] % count
        # a nowcast: later times may be known, only the entry before its own counts
        rows = np.flatnonzero(found >= self.place)
        if rows.size:
            order = np.argsort(group, kind="stable")
            before = np.empty(count, dtype=np.intp)
            before[order] = np.where(np.diff(group[order], prepend=-1) == 0, np.roll(order, 1), -1)
            entry = before[self.place[rows]]
            found[rows] = np.where(self.known[entry] <= self.information.issued[rows], entry, -1)
        return found

    @cached_property
    def last(self) -> Places:
        """Newest entry of its series that was known to each row, or -1."""
        return self.newest(self.series)

    def overlap(self) -> int:
        """Number of times before its own whose outcome was unknown when a forecast was issued (99% quantile)."""
        if not self.place.size:
            return 0
        there = np.isfinite(self.outcome)
        empirical = np.cumsum(there)
        rows = np.flatnonzero((self.last >= 0) & there[self.place])
        last, own = self.last[rows], self.place[rows]
        pending = empirical[own] - 1 - empirical[last]
        following = np.flatnonzero(there)[np.minimum(empirical[last], empirical[-1] - 1)]
        steps = np.where(pending > 0, self.time[own] - self.time[following], 0)
        return int(np.quantile(steps, 0.99, method="higher")) if steps.size else 0
