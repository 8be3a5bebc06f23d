"""Times of a series counted in steps, and the seasons of the calendar in rows."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from orcast.constants import LONGEST_SEASON, SHORTEST_SEASON

Stamps = NDArray[Any]  # int64, or float64 where times are numbers
Integers = NDArray[np.int64]

# No gap is longer: by then all that is remembered of a series by the step is gone.
LONGEST_GAP = 2 * LONGEST_SEASON
# In nanoseconds.
DAY = 24 * 3600 * 10**9
WEEK = 7 * DAY
YEAR = 3_652_425 * DAY // 10_000
# Rows a year, by the least and the largest number of days between two rows: weeks, months and quarters.
YEARS = ((7, 7, 52), (28, 31, 12), (89, 92, 4))


def seasons_of(step: int) -> tuple[int, ...]:
    """The seasons of rows that are so many nanoseconds apart, in rows; none where the calendar says nothing.

    >>> hour = 3600 * 10**9
    >>> [seasons_of(hours * hour) for hours in (0.5, 1, 24, 168, 31 * 24)]
    [(48, 336), (24, 168), (7,), (52,), (12,)]
    >>> seasons_of(5 * hour), seasons_of(0)
    ((), ())
    """
    if step <= 0:
        return ()
    found = [period // step for period in (DAY, WEEK) if period % step == 0]
    found += [rows for least, most, rows in YEARS if least * DAY <= step <= most * DAY]
    return tuple(int(lag) for lag in found if SHORTEST_SEASON <= lag <= LONGEST_SEASON - 2)


def unit_of(step: int) -> float:
    """Nanoseconds by which times are counted whose first two are a step apart: of months and quarters the mean length.

    >>> [round(unit_of(days * DAY) / DAY, 2) for days in (1, 7, 31, 90)]
    [1.0, 7.0, 30.44, 91.31]
    """
    rows = next((rows for least, most, rows in YEARS if least * DAY <= step <= most * DAY and least < most), None)
    return step if rows is None else YEAR / rows


class Clock(NamedTuple):
    """Times of a series counted in steps: times that may come again, increasing, and the count of each.

    ``step`` is from the first time to the second: -1 before there are two, 0 if the calendar has no such step.
    Without a step each new time counts one.
    """

    step: int
    times: Stamps
    counts: Integers

    def advanced(self, time: Stamps, cutoff: Stamps, dated: bool) -> tuple[Integers, Clock]:
        """Counts of the times of new rows, in the order of cutoff and time, and the clock after them."""
        if not len(time):
            return np.empty(0, dtype=np.int64), self
        last = self.times[-1:]
        reached = np.maximum.accumulate(np.concatenate((last, time)))
        newest = np.ones(len(time), dtype=bool)
        newest[1 - len(last) :] = time[1 - len(last) :] > reached[:-1]
        fresh = time[newest]
        times, step = np.concatenate((self.times, fresh)), self.step
        if step < 0 and len(times) > 1:
            step = int(times[1] - times[0]) if dated else 0
            step = step if seasons_of(step) else 0
        unit = unit_of(step) if step > 0 else math.inf
        with np.errstate(over="ignore"):
            gaps = np.rint(np.diff(np.concatenate((last, fresh))) / unit)
        gaps = np.clip(gaps, 1, LONGEST_GAP).astype(np.int64)
        start = self.counts[-1] if len(last) else 0
        counts = np.concatenate((self.counts, start + np.cumsum(gaps if len(last) else np.append(0, gaps))))
        place = np.maximum(np.searchsorted(times, time, side="right") - 1, 0)
        beside = np.clip(np.rint((time - times[place]) / unit), -LONGEST_GAP, LONGEST_GAP).astype(np.int64)
        # a time comes again if it lies after the last cutoff, or as far before it as one did
        since = cutoff[-1] + min(np.min(time - cutoff), 0)
        keep = min(int(np.searchsorted(times, since, side="right")), len(times) - 1)
        return counts[place] + beside, Clock(step, times[keep:], counts[keep:])


def new_clock(kind: Any) -> Clock:
    """Clock of a series before its first row, for times of a kind."""
    return Clock(-1, np.zeros(0, dtype=kind), np.zeros(0, dtype=np.int64))
