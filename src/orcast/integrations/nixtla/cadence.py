"""Which step ahead a row is: windows of rows with one cutoff, and how their times go on."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orcast.panel.frame import Codes

Array = NDArray[np.float64]

# How far from a whole number of steps a time may be: months are not of one length, nor are days where clocks change.
NEAR = 0.25
# Steps ahead, at most.
FARTHEST = 100_000
# In nanoseconds.
WEEK = 7 * 24 * 3600 * 10**9


# Series, cutoffs and times of some rows.
Stamps = tuple[Codes, NDArray[Any], NDArray[Any]]


def joined(parts: list[Stamps]) -> Stamps:
    """Stamps one after the other."""
    codes, cutoff, time = (np.concatenate([part[i] for part in parts]) for i in range(3))
    return codes, cutoff, time


class Windows:
    """Rows by series and cutoff, in the order of their times; of those that are twice the first."""

    def __init__(self, codes: Codes, cutoff: NDArray[Any], time: NDArray[Any]) -> None:
        order = np.lexsort((time, cutoff, codes))
        new = np.ones(len(order), dtype=bool)
        new[1:] = (np.diff(codes[order]) != 0) | (np.diff(cutoff[order]) != 0)
        other = new.copy()
        other[1:] |= np.diff(time[order]) != 0
        self.order: Codes = order[other]
        self.codes, self.cutoff, self.time = codes[self.order], cutoff[self.order], time[self.order]
        starts = np.flatnonzero(new[other])
        self.which: Codes = np.cumsum(new[other]) - 1
        self.sizes: Codes = np.diff(np.append(starts, len(self.order)))
        self.rank: Codes = np.arange(len(self.order)) - starts[self.which] + 1
        self.before = np.where(self.rank == 1, self.cutoff, np.roll(self.time, 1))

    @property
    def gaps(self) -> NDArray[Any]:
        """From each row of a window to the next."""
        return (self.time - self.before)[self.rank > 1]


@dataclass(frozen=True)
class Cadence:
    """How times go on in windows: how many steps there are, from one to the next, and from a cutoff to the first.

    They are even if no whole window leaves out any; else business days, opening hours, or whatever comes.
    """

    most: int
    unit: float
    lead: float
    even: bool
    dated: Windows  # those with cutoffs

    def steps(self, cutoff: NDArray[Any], time: NDArray[Any]) -> Array:
        """How many steps ahead times are, by the clock."""
        return np.asarray(1.0 + ((time - cutoff) - self.lead) / self.unit)

    def lacks(self, windows: Windows, *, weekly: bool) -> tuple[Codes, NDArray[np.bool_]]:
        """How many steps are missing before each row; and where that is not known."""
        if not self.even:
            return np.zeros(len(windows.order), dtype=np.intp), self.doubtful(windows)
        steps = self.steps(windows.cutoff, windows.time)
        near = np.rint(steps)
        bad = (np.abs(steps - near) > NEAR) | (near < 1) | (near > FARTHEST)
        near = np.where(bad, 0, near).astype(np.intp)
        lacks = near - np.where(windows.rank == 1, 0, np.roll(near, 1)) - 1
        # what goes on beyond the known steps, and leaves some out, may be of another calendar
        bad |= (lacks < 0) | ((near > windows.rank) & (near > self.most))
        if weekly and self.unit < WEEK:
            # so may what leaves out a time of the week that is never there
            rows, time = self.skipped(windows, np.maximum(lacks, 0))
            week = np.unique(np.concatenate((windows.time, self.dated.cutoff[: None if self.on_time else 0])) % WEEK)
            week = np.concatenate((week[-1:] - WEEK, week, week[:1] + WEEK))
            place = np.clip(np.searchsorted(week, time % WEEK), 1, len(week) - 1)
            away = np.minimum(time % WEEK - week[place - 1], week[place] - time % WEEK)
            bad[rows[away > NEAR * self.unit]] = True
        return lacks, bad

    def skipped(self, windows: Windows, lacks: Codes) -> tuple[Codes, NDArray[Any]]:
        """The times of steps that are missing, and the rows that they are missing before."""
        rows = np.repeat(np.arange(len(lacks)), lacks)
        back = np.arange(len(rows)) - np.repeat(np.cumsum(lacks) - lacks, lacks) + 1
        ago = back * self.unit
        return rows, windows.time[rows] - (ago if windows.time.dtype.kind == "f" else np.rint(ago).astype(np.int64))

    @property
    def on_time(self) -> bool:
        """Whether cutoffs are times of the series."""
        return abs(self.lead - self.unit) <= NEAR * self.unit

    def left_out(self, windows: Windows) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Rows that are not next to the one before them, by the clock; and those with a known time in between."""
        usual = np.where(windows.rank == 1, self.lead, self.unit)
        wide = ~(np.abs((windows.time - windows.before) - usual) <= NEAR * self.unit)
        codes, times = [windows.codes], [windows.time]
        if self.on_time:
            codes, times = [*codes, self.dated.codes], [*times, self.dated.cutoff]
        every, place = np.unique(np.concatenate([*times, windows.before]), return_inverse=True)
        here, known, before = np.split(place, [len(wide), len(place) - len(wide)])
        calendar = np.unique(np.concatenate(codes) * len(every) + np.concatenate((here, known)))
        after = np.searchsorted(calendar, windows.codes * len(every) + before, side="right")
        return wide, np.searchsorted(calendar, windows.codes * len(every) + here) > after

    def doubtful(self, windows: Windows) -> NDArray[np.bool_]:
        """Rows, where times are not even, before which others may be missing.

        A window is trusted if it is whole; else it may only leave out what a whole window leaves out too, and nothing
        that is known of its series.
        """
        wide, between = self.left_out(windows)
        full = windows.sizes[windows.which] >= self.most
        pairs = np.column_stack((windows.before, windows.time))
        trusted = set(map(tuple, pairs[wide & full].tolist()))
        rows = np.flatnonzero(wide & ~full)
        between[rows] |= np.array([tuple(pair) not in trusted for pair in pairs[rows].tolist()], dtype=bool)
        return between


def cadence_of(dated: Windows, given: Windows) -> Cadence:
    """The cadence of windows with cutoffs, and of forecasts that may have none."""
    gaps = np.concatenate((dated.gaps, given.gaps)).astype(np.float64)
    near = gaps[gaps < 1.5 * np.median(gaps)] if len(gaps) else gaps
    unit = np.nan if not len(near) else float(near[0]) if (near == near[0]).all() else float(near.mean())
    if not len(dated.order):
        even = bool((np.abs(given.gaps / unit - 1.0) <= NEAR).all()) and unit > 0
        return Cadence(int(given.sizes.max(initial=1)), unit, unit, even, dated)
    most = int(dated.sizes.max())
    full = dated.sizes[dated.which] == most
    lead = float(np.median((dated.time - dated.cutoff)[full & (dated.rank == 1)]))
    cadence = Cadence(most, lead if np.isnan(unit) else unit, lead, False, dated)
    if not (cadence.unit > 0 and lead > 0):
        return cadence
    wide, between = cadence.left_out(dated)
    steps = np.rint(cadence.steps(dated.cutoff, dated.time))
    if (wide & full & ~between).any() or steps.max() > FARTHEST:
        return cadence
    return dataclasses.replace(cadence, most=max(most, int(steps.max())), even=True)
