"""How many steps ahead a row is, by the clock: from its cutoff to its time, in steps of its series.

The step of a series is found from its times: a number of months, working days, or a length of time.  Whole numbers are
counted as they are.  So a row that is missing does not move those after it into another game.  A series without a
step, whose times are irregular or of which there is one only, has places instead: the first, second, ... time of each
cutoff.  Where all series of a frame learn together, one of few times has the step that most others have, if its own
times do not speak against it; else nothing depends on which others are in the frame.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from orcast.frame.calendar import DAY

Stamps = NDArray[Any]  # int64, or float64 where times are numbers
Codes = NDArray[np.intp]

HOUR = DAY // 24
# Fewer gaps between times leave it open whether some are missing.
FEW = 8
# A step is one if so many of the gaps are a whole number of steps, up to such a part of a step.
MOST, NEAR = 0.8, 0.1
# Days of the week on which something happens, from Monday: offices, those that rest on Friday, and shops.
WEEKS = ("1111100", "1111001", "1111110")


class Step(NamedTuple):
    """What horizons are counted in: ``kind`` is "length", "months", "days" (of a week, `WEEKS`) or "places".

    ``day`` is the one of the month on which a month is over; 31 is its last.
    """

    kind: str
    size: Any = 1
    day: int = 0

    def whole(self, other: Step) -> bool:
        """Whether this may be another step of which some are missing."""
        if self in (other, UNKNOWN):
            return True
        daily = {self.kind, other.kind} == {"length", "days"}
        if daily:
            length = self.size if self.kind == "length" else other.size
            return bool(length % DAY == 0 and (other.kind == "days" or length == DAY))
        if self.kind != other.kind or self.kind not in ("length", "months"):
            return False
        times = self.size / other.size
        return bool(times >= 1.0 and abs(times - round(times)) < 1e-9)


PLACES = Step("places")
# What is counted so until there are two times.
UNKNOWN = Step("places", 0)


def step_from_plain(kind: Any, size: Any, day: Any) -> Step:
    """A step from a file, or a reason why it is none."""
    fine = kind in ("length", "months", "days", "places") and isinstance(size, (int, float)) and isinstance(day, int)
    if not fine or not (size > 0 or kind in ("days", "places")) or (kind == "days" and size not in range(len(WEEKS))):
        raise ValueError(f"{kind!r}, {size!r}, {day!r} is no step")
    return Step(kind, size, day)


def find_steps(
    kind: str, codes: Codes, count: int, time: Stamps, cutoff: Stamps, *, pooled: bool = False
) -> list[Step]:
    """The step of each series from its rows; `pooled`: also from those of the others."""
    if kind in ("whole numbers", "places"):
        return [Step("length", 1)] * count
    order = np.lexsort((time, codes))
    codes, time, lead = codes[order], time[order], (time - cutoff)[order]
    new = np.ones(len(codes), dtype=bool)
    new[1:] = (np.diff(codes) != 0) | (np.diff(time) != 0)
    starts = np.searchsorted(codes, np.arange(count + 1))
    found: list[Step] = []
    gaps_of = np.zeros(count, dtype=np.intp)
    dates = kind.startswith("dates")
    for i in range(count):
        rows = slice(starts[i], starts[i + 1])
        own = time[rows][new[rows]]
        gaps_of[i] = len(own) - 1
        found.append(_step(own, lead[rows], dates) if len(own) > 1 else UNKNOWN)
    votes = Counter(step for step in found if step.kind != "places")
    if not votes or not pooled:
        return found
    common = max(votes, key=lambda step: (votes[step], -float(step.size) if step.kind == "length" else 0.0))
    few = gaps_of < FEW
    return [common if few[i] and step.whole(common) else step for i, step in enumerate(found)]


def _step(times: Stamps, lead: Stamps, dates: bool) -> Step:
    """The step of one series: its usual gap, if that is regular."""
    gaps = np.diff(times)
    usual = np.sort(gaps)[(len(gaps) - 1) // 2]
    if dates and usual >= 28 * DAY:
        month, day, last = _months(times)
        over = 31 if last.all() else int(day.max())
        if ((day == over) | (last & (day < over))).mean() >= MOST:
            return Step("months", max(int(np.sort(np.diff(month))[(len(gaps) - 1) // 2]), 1), over)
    if times.dtype.kind == "f" and not (times % 1.0).any() and not (lead % 1.0).any():
        return Step("length", 1.0)
    first = lead.min()
    if len(gaps) < FEW and 0 < first < usual and _regular(np.concatenate((gaps, lead)), first, 1.0):
        usual = first
    if not _regular(gaps, usual, MOST):
        return PLACES
    if dates and usual == DAY:
        here = set(((times // DAY + 3) % 7).tolist())
        week = next((w for w, mask in enumerate(WEEKS) if here <= {d for d in range(7) if mask[d] == "1"}), None)
        if week is not None:
            return Step("days", week)
    return Step("length", usual.item())


def _regular(gaps: Stamps, step: Any, most: float) -> bool:
    """Whether gaps are whole numbers of steps."""
    times = gaps / step
    near = (np.abs(times - np.rint(times)) <= NEAR) & (times > 0.5)
    return bool(near.mean() >= most)


def _months(stamps: Stamps) -> tuple[Stamps, Stamps, NDArray[np.bool_]]:
    """The month of dates, counted from 1970, the day in it, and whether that is the last one."""
    days = stamps.astype("datetime64[ns]").astype("datetime64[D]")
    months = days.astype("datetime64[M]")
    day = (days - months.astype("datetime64[D]")).astype(np.int64) + 1
    length = ((months + 1).astype("datetime64[D]") - months.astype("datetime64[D]")).astype(np.int64)
    return months.astype(np.int64), day, day == length


def steps_ahead(
    kind: str, steps: Sequence[Step], codes: Codes, time: Stamps, cutoff: Stamps, *, first: bool
) -> NDArray[np.int64]:
    """How many steps each row is ahead; 0 where they are places.

    ``first``: cutoffs lie just before the first time of those that were issued together.
    """
    if first:
        cutoff = np.nextafter(cutoff, np.inf) if cutoff.dtype.kind == "f" else cutoff + 1
    ahead = np.zeros(len(codes), dtype=np.int64)
    number = {step: i for i, step in enumerate(dict.fromkeys(steps))}
    which = np.array([number[step] for step in steps], dtype=np.intp)[codes]
    for step, i in number.items():
        rows = np.flatnonzero(which == i)
        if len(rows) and step.kind != "places":
            ahead[rows] = _ahead(kind, step, time[rows], cutoff[rows]) + int(first)
    return ahead


def _ahead(kind: str, step: Step, time: Stamps, cutoff: Stamps) -> Stamps:
    """From cutoffs to times, of one step; a part of a step counts as one."""
    if step.kind == "days":
        mask = WEEKS[step.size]
        since, until = ((each // DAY + 1).astype("datetime64[D]") for each in (cutoff, time))
        return np.asarray(np.busday_count(since, until, weekmask=mask))
    if step.kind == "months":
        since, day, last = _months(cutoff)
        since = since - ((day < step.day) & ~last)
        return np.asarray(-(-(_months(time)[0] - since) // step.size))
    if time.dtype.kind == "f":
        return np.asarray(np.ceil((time - cutoff) / step.size - 0.01), dtype=np.int64)
    # a day is an hour longer where clocks are put back
    spare = HOUR if kind == "dates with a zone" and step.size % DAY == 0 else 0
    return np.asarray(-(-(time - cutoff - spare) // step.size))
