"""Times of the rows: when a forecast was issued (cutoff), what it is about, and when its outcome was known.

**Equality**: an outcome that is known at the very time at which a forecast is issued is used (known <= issued), unless
it is the outcome of that time itself.  Issue times come from a column of cutoffs or from ``issued_every``; else a
forecast is issued at its own time.  An outcome is known at its own time, or
``lag`` later, or when a column says.  Where nothing says either, each outcome is known before the next time.

**Horizons** are counted by the clock: from the cutoff to the time, in steps, which are found from the times of all
series: a number of months, working days, or a length of time; whole numbers are counted as they are.  So a missing row
does not move others to another horizon.
"""

from __future__ import annotations

import contextlib
import datetime
import math
import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from orcast.constants import LONGEST_SEASON, SHORTEST_SEASON
from orcast.frame.names import ColumnLayout, rows_text, show_time
from orcast.frame.reader import Codes, Frame, Times
from orcast.spaces.base import whole
from orcast.validation import short

Stamps = NDArray[np.int64]
Integers = NDArray[np.int64]
# A series' cutoffs and times that were seen before, a row each, in order.
Calendar = dict[Hashable, Stamps]

# Lengths in nanoseconds.
SECOND = 10**9
MINUTE, HOUR, DAY = 60 * SECOND, 3600 * SECOND, 86_400 * SECOND
WEEK, YEAR = 7 * DAY, 3_652_425 * DAY // 10_000
UNITS = {"ns": 1, "us": 1000, "ms": 10**6, "s": SECOND, "min": MINUTE, "h": HOUR, "d": DAY, "w": WEEK}
WORDS = {"hourly": "1h", "daily": "1D", "weekly": "1W"}
# Cutoffs that hubs date by a day that forecasts may be about.
HUB_CUTOFF = ("reference_date", "forecast_date", "origin_date")
# 1970-01-05: weeks begin on Mondays.
MONDAY = 4 * DAY
# When an outcome is known that has not come: after all others.
NOT_YET = np.iinfo(np.int64).max


@dataclass(frozen=True)
class RowTimes:
    """Times of all rows, as stamps that sort."""

    kind: str
    time: Stamps
    cutoff: Stamps
    known: Stamps
    at_once: bool  # each outcome is known before the next time, since nothing says more
    ranked: bool  # horizons are counted from the cutoff on, since no column says them
    together: bool = False  # cutoffs lie just before the first of the times that were issued together
    events: Stamps | None = None  # tell events of one time apart; None where a series has one row for each time
    event_columns: tuple[str, ...] = ()  # that tell them apart
    tied: bool = False  # some events have the same time


def read_row_times(
    frame: Frame,
    layout: ColumnLayout,
    codes: Codes,
    keys: Sequence[Hashable],
    timing: tuple[Any, Any],
    calendar: Calendar,
) -> RowTimes:
    """Times of all rows, or their places in their series; ``timing`` is that of `checked_timing`."""
    times, cutoff = _times_and_cutoffs(frame, layout, codes, keys)
    lag, every = timing
    together = every is not None
    if cutoff is not None and together:
        raise ValueError(f"expected cutoffs or issued_every=, got both: cutoffs are in {layout.cutoff!r}")
    ranked = layout.horizon is None and (cutoff is not None or together)
    if together:
        cutoff = issued_together(times, codes, keys, every, calendar)
    elif cutoff is None and layout.horizon is not None and frame.keys([layout.horizon])[1] != [1]:
        raise ValueError(
            f"expected a column of cutoffs beside the horizons in {layout.horizon!r}, got none: name it by cutoff="
        )
    known = _known(frame, layout, times, lag)
    at_once = cutoff is None and known is None
    if known is not None and (cutoff is None or together):
        # cutoffs lie just before a time, so that its own outcome is not used; others that are known at it are
        known = np.where(known == NOT_YET, known, np.maximum(known - 1, times.values))
    if cutoff is not None:
        _check_issued_before(times, cutoff)
    else:
        cutoff = times.values if at_once else times.values - 1
    known = times.values if known is None else known
    return RowTimes(times.kind, times.values, cutoff, known, at_once, ranked, together)


def by_series(codes: Codes, count: int) -> list[Codes]:
    """Rows of each series, in their order."""
    order = np.argsort(codes, kind="stable")
    return np.split(order, np.searchsorted(codes[order], np.arange(1, count))) if count else []


def last_cutoffs(calendar: Stamps | None, rows: Stamps, most: int) -> Stamps:
    """A series' cutoffs and times, with new ones, of at most ``most`` cutoffs."""
    rows = np.unique(rows if calendar is None else np.concatenate((calendar, rows)), axis=0)
    cutoffs = np.unique(rows[:, 0])[-most:]
    return rows[rows[:, 0] >= cutoffs[0]] if len(cutoffs) else rows


# --- columns


def _times_and_cutoffs(
    frame: Frame, layout: ColumnLayout, codes: Codes, keys: Sequence[Hashable]
) -> tuple[Times, Stamps | None]:
    if layout.time is None:
        for name, what in ((layout.cutoff, "cutoffs"), (layout.known, "times of knowledge")):
            if name is not None:
                raise ValueError(f"expected times beside the {what} in {name!r}, got no column: name it by time=")
        places = np.empty(len(codes), dtype=np.int64)
        for rows in by_series(codes, len(keys)):
            places[rows] = np.arange(len(rows))
        return Times("places", places), None
    times = frame.times(layout.time)
    if layout.cutoff is None:
        return times, None
    cutoffs = frame.times(layout.cutoff, "cutoff")
    if cutoffs.kind != times.kind:
        raise ValueError(f"expected times and cutoffs of one kind, got {times.kind} and {cutoffs.kind}")
    if str(layout.cutoff).lower() in HUB_CUTOFF and times.kind.startswith("dates") and len(times.values):
        # all go back, so that the first lies just before what it is about
        return times, cutoffs.values + min(int((times.values - cutoffs.values).min()) - 1, 0)
    return times, cutoffs.values


def _check_issued_before(times: Times, cutoff: Stamps) -> None:
    """A forecast is issued before the time that it is about."""
    after = np.flatnonzero(times.values <= cutoff)
    if len(after):
        row = int(after[0])
        time, issued = (show_time(times.kind, each[row]) for each in (times.values, cutoff))
        raise ValueError(
            f"expected forecasts issued before their time, got one for {time} issued at {issued}, "
            f"and so in {rows_text(after)}: name their column by cutoff="
        )


def _known(frame: Frame, layout: ColumnLayout, times: Times, lag: Any) -> Stamps | None:
    """When each outcome was known; None if nothing says it.  Where the column says nothing, it is not known yet."""
    if layout.known is not None:
        if lag is not None:
            raise ValueError(f"expected known= or lag=, got both: {layout.known!r} and {short(lag)}")
        there = ~frame.missing(layout.known)
        found = frame.times(layout.known, "time at which the outcome was known", there)
        if found.kind != times.kind and there.any():
            raise ValueError(
                f"expected times of one kind in {layout.time!r} and {layout.known!r}, got {times.kind} and {found.kind}"
            )
        known = np.full_like(times.values, NOT_YET)
        known[there] = found.values
        return known
    if lag is None:
        return None
    by = stamps_of(lag, times.kind)
    return np.minimum(times.values, NOT_YET - 1 - by) + by


def check_known(times: RowTimes, known: Stamps, y: NDArray[np.float64]) -> None:
    """Outcomes that are there were known at some time, and after their forecasts were issued."""
    if times.at_once:
        return
    there = ~np.isnan(y)
    never = np.flatnonzero(there & (known == NOT_YET))
    if len(never):
        raise ValueError(f"expected a time at which each outcome was known, got none in {rows_text(never)}")
    before = np.flatnonzero(there & (known <= times.cutoff))
    if len(before):
        time, issued = (show_time(times.kind, each[before[0]]) for each in (known, times.cutoff))
        raise ValueError(
            f"expected outcomes that were not known when their forecasts were issued, got one known at {time} "
            f"whose forecast was issued at {issued}, and so in {rows_text(before)}"
        )


# --- lengths of time


def stamps_of(lag: Any, kind: str) -> int:
    """A lag in the stamps of a kind of times."""
    if kind.startswith("dates"):
        return nanoseconds_of(lag, "lag")
    if isinstance(lag, str) or not 0 <= lag < 2**62 or lag != int(lag):
        raise ValueError(f"expected lag= as a whole number, since times are {kind}, got {short(lag)}")
    return int(lag)


def nanoseconds_of(value: Any, what: str) -> int:
    """Length of time in nanoseconds; a part of one counts as one, so that nothing is known too early."""
    found: Any = None
    if isinstance(value, (datetime.timedelta, np.timedelta64)):
        with contextlib.suppress(TypeError, OverflowError):  # months and years of numpy have no length
            if value / np.timedelta64(1, "D") < 50_000:
                found = int(np.timedelta64(getattr(value, "value", value), "ns").astype(np.int64))
    elif isinstance(value, str) and (m := re.fullmatch(r"(\d+(?:\.\d+)?)?\s*([A-Za-z]+)", value.strip())):
        unit = UNITS.get(m[2].lower()) if m[2] != "M" else None
        found = None if unit is None else math.ceil(Fraction(m[1] or "1") * unit)
    if found is None or not 0 <= found < 2**62:
        raise ValueError(f"expected {what}= such as '4D', '36h' or '30min', or a timedelta, got {short(value)}")
    return int(found)


def plain_length(value: Any, what: str) -> Any:
    """A lag, or the time between issues, as states keep it: a number, or text in the largest unit that divides it."""
    if isinstance(value, str):
        with contextlib.suppress(ValueError):
            return float(value) if "." in value else int(value)
    if isinstance(value, (int, float, np.number)) and not isinstance(value, (bool, np.timedelta64)):
        return value.item() if isinstance(value, np.generic) else value
    length = nanoseconds_of(WORDS.get(str(value).lower(), value), what)
    names = {"D": DAY, "h": HOUR, "min": MINUTE, "s": SECOND, "ns": 1}
    name, unit = next((name, unit) for name, unit in names.items() if length % unit == 0)
    return f"{length // unit}{name}"


def checked_timing(lag: Any, issued_every: Any) -> tuple[Any, Any]:
    """Lag and the time or rows between issues in plain form."""
    lag = None if lag is None else plain_length(lag, "lag")
    if issued_every is not None:
        issued_every = plain_length(issued_every, "issued_every")
        if not isinstance(issued_every, str):
            issued_every = whole(issued_every, "rows that are issued together", 1, 10**9)
        elif issued_every.startswith("0"):
            raise ValueError(f"expected issued_every= above 0, got {issued_every}")
    return lag, issued_every


# --- forecasts that are issued together


def issued_together(
    times: Times, codes: Codes, keys: Sequence[Hashable], together: int | str, calendar: Calendar
) -> Stamps:
    """Issue time of each row: just before the first of those that are issued together."""
    if isinstance(together, str):
        if not times.kind.startswith("dates"):
            raise ValueError(f"expected issued_every= in rows, since times are {times.kind}, got {together!r}")
        length = nanoseconds_of(together, "issued_every")
        start = MONDAY if length % WEEK == 0 else 0
        if times.offset is None:
            return np.asarray((times.values - start) // length * length + start - 1)
        # by the clock of the zone; where that is set within a block, its first row tells when it began
        local = (times.values + times.offset - start) // length * length + start
        order = np.lexsort((times.values, local))
        begins = np.append(True, np.diff(local[order]) != 0)
        cutoff = np.empty_like(times.values)
        cutoff[order] = (local - times.offset)[order][begins][np.cumsum(begins) - 1]
        return cutoff - 1
    cutoff = np.empty_like(times.values)
    for key, rows in zip(keys, by_series(codes, len(keys)), strict=True):
        cutoff[rows] = _blocks(times.values[rows], together, calendar.get(key))
    return cutoff


def _blocks(time: Stamps, together: int, seen: Stamps | None) -> Stamps:
    """The cutoffs of one series: its times in order, a block at a time; times of earlier frames keep theirs."""
    out, new, room = np.empty_like(time), np.ones(len(time), dtype=bool), 0
    if seen is not None and len(seen):
        new, room = time > seen[-1, 1], together - int((seen[:, 0] == seen[-1, 0]).sum())
        # a time that was never seen and lies before others has the cutoff of those about it; it will be late
        out[~new] = seen[np.maximum(np.searchsorted(seen[:, 1], time[~new], side="right") - 1, 0), 0]
    distinct, places = np.unique(time[new], return_inverse=True)
    first = (np.arange(len(distinct)) - room) // together * together + room
    begun = distinct[np.maximum(first, 0)] - 1
    if seen is not None and room:
        begun[:room] = seen[-1, 0]
    out[new] = begun[places]
    return out


# --- steps

# Fewer gaps between times leave it open whether some are missing.
FEW = 8
# Share of the gaps that must be whole numbers of steps, and the tolerance in steps.
MOST, NEAR = 0.8, 0.1
# Days of the week on which something happens, from Monday: offices, those that rest on Friday, and shops.
WEEKS = ("1111100", "1111001", "1111110")


class Step(NamedTuple):
    """Unit of horizons."""

    kind: str  # "length", "months", "days" (of a week) or "none"
    size: Any = 1
    day: int = 0  # on which a month is over (31 is its last), or the number of a week in `WEEKS`

    def longer(self, other: Step) -> bool:
        """True if this may be another step of which some are missing."""
        mine, its = (each.size * (YEAR // 12 if each.kind == "months" else 1) for each in (self, other))
        return self == NO_STEP or mine > its > 0 or (mine == its and self.kind == "days" != other.kind)

    def ahead(self, kind: str, time: Stamps, cutoff: Stamps, *, first: bool) -> Integers:
        """Steps from cutoffs, that lie just before the `first` time if so, to times; a part of a step counts as one."""
        if self.kind == "none":
            return np.ones(len(time), dtype=np.int64)
        cutoff = cutoff + int(first)
        if self.kind == "days":
            since, until = ((each // DAY + 1).astype("datetime64[D]") for each in (cutoff, time))
            found = np.busday_count(since, until, weekmask=WEEKS[self.day])
        elif self.kind == "months":
            since, day, last = _months(cutoff)
            since = since - ((day < self.day) & ~last)
            found = -(-(_months(time)[0] - since) // self.size)
        else:
            # a day is an hour longer where clocks are put back
            spare = HOUR if kind == "dates with a zone" and self.size % DAY == 0 else 0
            found = -(-(time - cutoff - spare) // self.size)
        return np.asarray(found, dtype=np.int64) + int(first)


# Of series with one time, and of irregular times with one of them for each cutoff: all are one step ahead.
NO_STEP = Step("none", 0)


def step_from_plain(kind: Any, size: Any, day: Any) -> Step:
    """A step from a file."""
    fine = isinstance(size, (int, float)) and isinstance(day, int) and (size > 0) == (kind != "none")
    if not fine or kind not in ("length", "months", "days", "none") or (kind == "days" and day not in range(3)):
        raise ValueError(f"{kind!r}, {size!r}, {day!r} is no step")
    return Step(kind, size, day)


def find_step(kind: str, codes: Codes, time: Stamps, cutoff: Stamps) -> Step:
    """The step of the series of a frame: their usual gap, if that is regular."""
    if kind in ("whole numbers", "places"):
        return Step("length", 1)
    order = np.lexsort((time, codes))
    then, after = order[:-1], order[1:]
    pairs = np.flatnonzero((codes[then] == codes[after]) & (time[then] < time[after]))
    if not len(pairs):
        return NO_STEP
    step = _step(time, then[pairs], after[pairs], time - cutoff, kind.startswith("dates"))
    if step is None and not is_alone(codes, time, cutoff):
        raise ValueError(
            "expected times in regular steps, to count horizons, got irregular ones: name their column by horizon="
        )
    return step or NO_STEP


def is_alone(codes: Codes, time: Stamps, cutoff: Stamps) -> bool:
    """True if there is one time for each series and cutoff."""
    order = np.lexsort((cutoff, codes))
    same = (np.diff(codes[order]) == 0) & (np.diff(cutoff[order]) == 0)
    return not (same & (np.diff(time[order]) != 0)).any()


def _step(time: Stamps, then: Codes, after: Codes, lead: Stamps, dates: bool) -> Step | None:
    """The step of times, of which some follow one another; None if it is irregular."""
    gaps = time[after] - time[then]
    usual = _usual(gaps)
    if dates and usual >= 28 * DAY:
        month, day, last = _months(time)
        over = 31 if last.all() else int(day.max())
        size = max(int(_usual(month[after] - month[then])), 1)
        if ((day == over) | (last & (day < over))).mean() >= MOST:
            return Step("months", size, over)
    # the cutoff of rows that are issued together lies just before the first of them
    first = lead[lead >= SECOND if dates else lead > NEAR * usual].min(initial=usual)
    # a day with a clock change is an hour longer or shorter than others
    if len(gaps) < FEW and 0 < first < (1.0 - NEAR) * usual and _regular(np.concatenate((gaps, lead)), first, 1.0):
        usual = first
    if not _regular(gaps, usual, MOST):
        return None
    if dates and usual == DAY:
        here = set(((time // DAY + 3) % 7).tolist())
        week = next((w for w, mask in enumerate(WEEKS) if here <= {d for d in range(7) if mask[d] == "1"}), None)
        if week is not None:
            return Step("days", DAY, week)
    return Step("length", usual.item())


def _usual(gaps: Stamps) -> Any:
    return np.sort(gaps)[(len(gaps) - 1) // 2]


def _regular(gaps: Stamps, step: Any, most: float) -> bool:
    """True if gaps are whole numbers of steps."""
    times = gaps / step
    near = (np.abs(times - np.rint(times)) <= NEAR) & (times > 0.5)
    return bool(near.mean() >= most)


def _months(stamps: Stamps) -> tuple[Stamps, Stamps, NDArray[np.bool_]]:
    """The month of dates, counted from 1970, the day in it, and True if that is the last one."""
    days = stamps.astype("datetime64[ns]").astype("datetime64[D]")
    months = days.astype("datetime64[M]")
    day = (days - months.astype("datetime64[D]")).astype(np.int64) + 1
    return months.astype(np.int64), day, (days + 1).astype("datetime64[M]") > months


def count_horizons(
    rows: RowTimes, codes: Codes, keys: Sequence[Hashable], calendar: Calendar, before: Step | None = None
) -> tuple[Integers, Step]:
    """Steps ahead of each row, and the step; rows that were seen before, in the calendar, keep their horizon."""
    n, cutoff, time = len(codes), rows.cutoff, rows.time
    if calendar:
        place = {key: i for i, key in enumerate(dict.fromkeys((*keys, *calendar)))}
        codes = np.concatenate([codes, *(np.full(len(seen), place[key]) for key, seen in calendar.items())])
        cutoff, time = (
            np.concatenate([each, *(seen[:, side] for seen in calendar.values())])
            for side, each in enumerate((cutoff, time))
        )
    step = find_step(rows.kind, codes, time, cutoff)
    ahead = step.ahead(rows.kind, time, cutoff, first=rows.together)
    if before is not None and before != step:
        was, longer = before.ahead(rows.kind, time, cutoff, first=rows.together), step.longer(before)
        changes = bool((ahead != was)[n:].any())
        if changes and not longer and (before != NO_STEP or not is_alone(codes, time, cutoff)):
            raise ValueError(
                "expected times in the steps of earlier frames, got other steps: name a column of horizons by horizon="
            )
        if changes or longer:
            step, ahead = before, was
    return ahead[:n], step


# --- the clock of a series, and the seasons of the calendar

# No gap is longer: by then all that is remembered of a series by the step is gone.
LONGEST_GAP = 2 * LONGEST_SEASON
# Rows a year, by the least and the largest number of days between two rows: weeks, months and quarters.
YEARS = ((7, 7, 52), (28, 31, 12), (89, 92, 4))


@lru_cache(maxsize=256)
def seasons_of(step: int) -> tuple[int, ...]:
    """Seasons of rows with a step in nanoseconds, in rows; none where the calendar has no such step.

    >>> hour = 3600 * 10**9
    >>> [seasons_of(hours * hour) for hours in (0.5, 1, 24, 168, 31 * 24, 5, 0)]
    [(48, 336), (24, 168), (7,), (52,), (12,), (), ()]
    """
    if step <= 0:
        return ()
    found = [period // step for period in (DAY, WEEK) if period % step == 0]
    found += [rows for least, most, rows in YEARS if least * DAY <= step <= most * DAY]
    return tuple(int(lag) for lag in found if SHORTEST_SEASON <= lag <= LONGEST_SEASON - 2)


@lru_cache(maxsize=256)
def _unit_of(step: int) -> float:
    """Nanoseconds by which times are counted whose first two are a step apart: of months and quarters the mean."""
    rows = next((rows for least, most, rows in YEARS if least * DAY <= step <= most * DAY and least < most), None)
    return step if rows is None else YEAR / rows


class Clock(NamedTuple):
    """Times of a series counted in steps: times that may come again, increasing, and the count of each."""

    # from the first time to the second; -1 before there are two, 0 if the calendar has none: each new time counts one
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
        unit = _unit_of(step) if step > 0 else math.inf
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


# Clock of a series before its first row.
NEW_CLOCK = Clock(-1, np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))
