"""Outcomes, errors and losses that were known when each forecast was issued."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orcast.constants import PER_ABSOLUTE
from orcast.evaluate.evaluation import Matrix, Places, Vector, chunks, sample_quantiles

# Fewest and most past values of a window.
FEWEST, WINDOW = 5, 256


@dataclass(frozen=True, eq=False)
class Information:
    """Outcomes by series and time, with ranks of times: row i knew the outcome of row j if known[j] <= issued[i]."""

    series: Places
    time: Places  # rank, the place in `times`
    issued: Places
    known: Places
    horizon: Vector  # steps ahead, from 1
    times: NDArray[Any]
    y: Vector  # nan where there is no outcome yet

    @classmethod
    def of(
        cls,
        series: Places,
        time: NDArray[Any],
        y: Vector,
        issued: NDArray[Any] | None = None,
        known: NDArray[Any] | None = None,
        horizon: Vector | None = None,
        stamps: NDArray[Any] | None = None,  # times as dates, if they are
    ) -> Information:
        """Rank the times; by default outcomes are known at their time and forecasts issued just before theirs."""
        times, at, when = np.unique(time, return_index=True, return_inverse=True)
        since, ranks = when, when + 1
        if known is not None or issued is not None:
            both = (time if known is None else known, time if issued is None else issued)
            ranks = np.unique(np.concatenate(both), return_inverse=True)[1] + 1
            since = ranks[time.size :] - (issued is None)
        if horizon is None and issued is None:
            horizon = np.ones(time.size)
        elif horizon is None:  # the place of a row among those of its series that were issued together
            order = np.lexsort((when, since, series))
            group = series[order] * (int(ranks.max(initial=0)) + 1) + since[order]
            horizon = np.empty(time.size)
            horizon[order] = np.arange(1, time.size + 1) - np.searchsorted(group, group, side="left")
        times = times if stamps is None else stamps[at]
        return cls(series, when, since, ranks[: time.size], horizon, times, y)

    @cached_property
    def size(self) -> int:
        """Number larger than all ranks."""
        return int(max(self.known.max(initial=0), self.issued.max(initial=0), self.time.max(initial=0))) + 2

    @cached_property
    def stream(self) -> Places:
        """Group of each row: its series and horizon."""
        step = np.unique(self.horizon, return_inverse=True)[1]
        return np.asarray(self.series * (int(step.max(initial=0)) + 1) + step)

    def known_in(self, group: Places) -> tuple[Places, Places, Places]:
        """Rows with an outcome by group and publication, and the slice of them that each row knew: start and end."""
        here = np.flatnonzero(np.isfinite(self.y))
        order = here[np.lexsort((self.known[here], group[here]))]
        keys, own = group[order] * self.size + self.known[order], group * self.size
        start = np.searchsorted(keys, own)
        return order, start, np.maximum(start, np.searchsorted(keys, own + self.issued, side="right"))

    def newest(self, group: Places) -> Places:
        """Newest row of its group whose outcome was known to each row; -1 if there is none, or it is not earlier."""
        order, start, end = self.known_in(group)
        count, found = self.y.size, np.full(self.y.size, -1, dtype=np.intp)
        rows = np.flatnonzero(end > start)
        found[rows] = np.maximum.accumulate(group[order] * count + order)[end[rows] - 1] % count
        found[self.time[found] >= self.time] = -1
        return found

    @cached_property
    def last(self) -> Places:
        """Newest row of its series whose outcome was known to each row, or -1."""
        return self.newest(self.series)

    def overlap(self) -> int:
        """Number of times before its own whose outcome was unknown when a forecast was issued (99% quantile)."""
        there = np.isfinite(self.y)
        rows, key = np.flatnonzero((self.last >= 0) & there), self.series * self.size + self.time
        known = np.unique(key[there])
        steps = key[rows] - known[np.searchsorted(known, key[self.last[rows]], side="right")]
        return int(np.quantile(steps, 0.99, method="higher")) if steps.size else 0

    @cached_property
    def _past(self) -> tuple[Places, Places, Places]:
        return self.known_in(self.stream)

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

    def past_quantiles(self, values: Vector, levels: Vector) -> tuple[Matrix, Places]:
        """Quantiles of the last values of the same series and horizon that each row knew, and the place of each row's.

        They are of at most `WINDOW` values, and renewed whenever there are an eighth more, or 32.  The place is -1
        with fewer than `FEWEST` values.
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
        table = np.empty((ends.size, levels.size))
        back = np.arange(WINDOW, 0, -1)
        for chunk in chunks(ends.size, 1 << 14):
            window = past[np.maximum(ends[chunk, None] - back, 0)]
            window[back > sizes[chunk, None]] = np.nan
            table[chunk] = sample_quantiles(window, levels)
        return table, place
