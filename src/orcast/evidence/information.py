"""What was known when: the outcomes that a forecast could use, and what the last of them alone would have said."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orcast.constants import PER_ABSOLUTE
from orcast.evidence.base import Places, Reference, Vector

# So many of the latest changes give the spread of the last known outcome; with fewer than this it has none yet.
CHANGES, FEWEST = 500, 5
# Lags times outcomes that are looked at: what lies beyond (very irregular times) has no reference.
WORK = 200_000_000
# Later than every time.
NEVER = np.iinfo(np.int64).max // 4


@dataclass(frozen=True, eq=False)
class Information:
    """When each row was issued and its outcome known, as ranks: row j was known to row i if known[j] <= issued[i].

    `series` and `time` (a rank too) say what a row is about; rows stand in the order of series and time.  `horizon` is
    how many steps ahead a row is, from 1.
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
        """From times that can be compared; outcomes are known at theirs and forecasts issued just before theirs.

        The horizon is the place of a row among those of its series that were issued together, if nothing says it.

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
        """Larger than all ranks, so that a series and a rank make one number."""
        return int(max(self.known.max(initial=0), self.issued.max(initial=0))) + 2

    def past_spread(self, errors: Vector) -> Vector:
        """The spread of the errors, so many steps ahead, that were known at each forecast; nan before the first."""
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
        out = np.empty(e.size)
        with np.errstate(invalid="ignore", divide="ignore"):
            total = np.maximum(sizes[until] - sizes[first], 0.0)
            out[order] = PER_ABSOLUTE * total / (counts[until] - counts[first])
        return out

    def outcomes(self, y: Vector) -> OutcomeTable:
        """The outcomes of these rows, one a series and time."""
        return OutcomeTable.of(self, y)


@dataclass(frozen=True, eq=False)
class OutcomeTable:
    """One row a series and time: the outcome, when it was known (never, if it is missing), and the place of each row.

    `last` is the newest outcome that was known to each row, as a place; -1 if there was none.
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
        """From rows in the order of series and time."""
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
        """The newest outcome that was known to each row, never its own or a later one."""
        here = np.flatnonzero(self.known < NEVER)
        order = here[np.lexsort((self.known[here], self.series[here]))]
        size = self.information.size
        # places grow with the series, so the newest of those before is of the same series from its first on
        newest = np.maximum.accumulate(order) if order.size else order
        keys = self.series[order] * size + self.known[order]
        rows, issued = self.information.series, self.information.issued
        at = np.searchsorted(keys, rows * size + issued, side="right") - 1
        none = (at < 0) | (self.series[order[np.maximum(at, 0)]] != rows) if order.size else np.ones(rows.size, bool)
        found = np.where(none, -1, newest[np.maximum(at, 0)] if order.size else -1)
        # a row about the past: what came before it, if that was known
        late = found >= self.place
        before = self.place - 1
        fine = (before >= 0) & (self.series[before] == rows) & (self.known[before] <= issued)
        return np.asarray(np.where(late, np.where(fine, before, -1), found), dtype=np.intp)

    def overlap(self) -> int:
        """How many times before its own had an outcome that was still to come when a forecast was issued."""
        if not self.place.size:
            return 0
        there = np.isfinite(self.y)
        counted = np.cumsum(there)
        rows = np.flatnonzero((self.last >= 0) & there[self.place])
        last, own = self.last[rows], self.place[rows]
        pending = counted[own] - 1 - counted[last]
        # the first outcome that is still to come
        following = np.flatnonzero(there)[np.minimum(counted[last], counted[-1] - 1)]
        steps = np.where(pending > 0, self.time[own] - self.time[following], 0)
        # a few rows that were issued long before do not make all overlap
        return int(np.quantile(steps, 0.99, method="higher")) if steps.size else 0

    def reference(self) -> Reference:
        """The last known outcome of each row, and the spread of changes over the same lag that were known by then."""
        rows = np.flatnonzero(self.last >= 0)
        lag = self.place[rows] - self.last[rows]
        last, spread = np.full((2, self.place.size), np.nan)
        last[rows] = self.y[self.last[rows]]
        lags, counts = np.unique(lag, return_counts=True)
        for step in lags[np.argsort(-counts)][: max(1, WORK // max(self.y.size, 1))]:
            mine = rows[lag == step]
            spread[mine] = self._spread(int(step), mine)
        last[~np.isfinite(spread)] = np.nan
        return Reference(last, spread)

    def _spread(self, step: int, rows: Places) -> Vector:
        """The spread of the latest changes over so many steps that were known to the rows."""
        size, information = self.information.size, self.information
        later = np.arange(step, self.y.size)
        change = np.abs(self.y[later] - self.y[later - step])
        there = (self.series[later] == self.series[later - step]) & np.isfinite(change)
        known = np.maximum(self.known[later], self.known[later - step])[there]
        key = self.series[later][there] * size + known
        change = change[there]
        if (np.diff(key) < 0).any():
            order = np.argsort(key, kind="stable")
            key, change = key[order], change[order]
        total = np.concatenate(([0.0], np.cumsum(change)))
        own = information.series[rows] * size
        until = np.searchsorted(key, own + information.issued[rows], side="right")
        since = np.maximum(np.searchsorted(key, own, side="left"), until - CHANGES)
        many = until - since
        with np.errstate(invalid="ignore", divide="ignore"):
            found = PER_ABSOLUTE * np.maximum(total[until] - total[since], 0.0) / many
        return np.where(many >= FEWEST, found, np.nan)
