"""The three times of a row: when its forecast was issued, the time it is about, and when its outcome was known.

A forecast may use the outcomes that were known when it was issued.  Issue times come from a column of cutoffs, from
horizons beside times that are numbers, or from `issued_every`: so many rows, or all of a day, are issued together,
just before the first of them.  Where nothing says it, each forecast is issued just before its own time.  An outcome
is known at its own time, or so much later as `lag` says, or when a column says.
"""

from __future__ import annotations

import contextlib
import datetime
import math
import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from orcast.frame.column_names import rows_text
from orcast.frame.forms import ColumnLayout
from orcast.frame.frame import Codes, Frame, Times
from orcast.spaces.base import whole
from orcast.validation import short

Stamps = NDArray[Any]  # int64, or float64 where times are numbers
# A series' cutoffs and times that were seen before, a row each, in order.
Calendar = dict[Hashable, Stamps]

SECOND = 10**9
MINUTE, HOUR, DAY = 60 * SECOND, 3600 * SECOND, 86_400 * SECOND
UNITS = {"ns": 1, "us": 1000, "ms": 10**6, "s": SECOND, "min": MINUTE, "h": HOUR, "d": DAY, "w": 7 * DAY}
WORDS = {"hourly": "1h", "daily": "1D", "weekly": "1W"}
# 1970-01-05: weeks begin on Mondays.
MONDAY = 4 * DAY


class Timing(NamedTuple):
    """What users say of issue times and of when outcomes are known, where no column says it."""

    lag: Any = None
    issued_every: Any = None
    nowcast: bool = False

    def checked(self) -> Timing:
        """The same in plain form, or one clear sentence on what is wrong with it."""
        together = None if self.issued_every is None else every(self.issued_every)
        if not isinstance(self.nowcast, (bool, np.bool_)):
            raise TypeError(f"expected nowcast=True or False, got {short(self.nowcast)}")
        return Timing(plain_lag(self.lag), together, bool(self.nowcast))

    def completed(self, lag: Any, issued_every: int | str | None, nowcast: bool) -> Timing:
        """Timing of a state, which the given one must not contradict."""
        for name, given, then in (("lag", self.lag, lag), ("issued_every", self.issued_every, issued_every)):
            if given not in (None, then):
                raise ValueError(f"expected {name}= as the state began with it, {then!r}, got {given!r}")
        return Timing(lag, issued_every, nowcast or self.nowcast)


@dataclass(frozen=True)
class RowTimes:
    """The three times of all rows, as stamps that sort; `cutoff` is when the forecast was issued.

    `at_once`: nothing says when forecasts were issued or outcomes known, so each outcome is known before the next
    forecast.  `ranked`: no column says the horizon, so that it is counted from the cutoff on.  `together`: cutoffs lie
    just before the first of the times that were issued together.
    """

    kind: str
    time: Stamps
    cutoff: Stamps
    known: Stamps
    at_once: bool
    ranked: bool
    together: bool = False

    @property
    def times(self) -> Times:
        """The times that rows are about."""
        return Times(self.kind, self.time)


def read_row_times(
    frame: Frame,
    layout: ColumnLayout,
    codes: Codes,
    keys: Sequence[Hashable],
    timing: Timing,
    counted: Stamps,
    calendar: Calendar,
    at_once: bool | None = None,
) -> RowTimes:
    """The three times of all rows; where there is no column of times, rows are counted on from ``counted``.

    ``at_once`` is what earlier frames of a state were, if there are any.
    """
    times, cutoffs = _times_and_cutoffs(frame, layout, codes, counted)
    if cutoffs is not None and timing.issued_every is not None:
        raise ValueError(f"expected cutoffs or issued_every=, got both: cutoffs are in {layout.cutoff!r}")
    ranked = layout.horizon is None and (cutoffs is not None or timing.issued_every is not None)
    cutoff = None if cutoffs is None else cutoffs.values
    if timing.issued_every is not None:
        cutoff = issued_together(times, codes, keys, timing.issued_every, calendar)
    elif cutoff is None and layout.horizon is not None:
        cutoff = _cutoff_from_horizon(frame, layout.horizon, times, at_once is not False)
    known = _known(frame, layout, times, timing.lag)
    at_once = cutoff is None and known is None
    if cutoff is not None:
        _check_issued_before(times, cutoff, timing, known is not None)
    else:
        cutoff = times.values if at_once else just_before(times.values)
    known = times.values if known is None else known
    return RowTimes(times.kind, times.values, cutoff, known, at_once, ranked, timing.issued_every is not None)


def just_before(stamps: Stamps) -> Stamps:
    """The moment before each of some times.

    >>> just_before(np.array([5, 7])).tolist(), just_before(np.array([1.0])).tolist()
    ([4, 6], [0.9999999999999999])
    """
    return np.nextafter(stamps, -math.inf) if stamps.dtype.kind == "f" else stamps - 1


def farthest(stamps: Stamps) -> Any:
    """The stamp of what has not come: later than all others of their kind."""
    return math.inf if stamps.dtype.kind == "f" else np.iinfo(np.int64).max


# --- columns


def _times_and_cutoffs(frame: Frame, layout: ColumnLayout, codes: Codes, counted: Stamps) -> tuple[Times, Times | None]:
    if layout.time is None:
        for name, what in ((layout.cutoff, "cutoffs"), (layout.known, "times of knowledge")):
            if name is not None:
                raise ValueError(f"expected times beside the {what} in {name!r}, got no column: name it by time=")
        order = np.argsort(codes, kind="stable")
        starts = np.searchsorted(codes[order], np.arange(len(counted)))
        places = np.empty(len(codes), dtype=np.int64)
        places[order] = np.arange(len(codes)) - starts[codes[order]]
        return Times("places", places + counted[codes]), None
    times = frame.times(layout.time)
    if layout.cutoff is None:
        return times, None
    cutoffs = frame.times(layout.cutoff, "cutoff")
    return _of_one_kind(times, cutoffs, "cutoffs")


def _of_one_kind(times: Times, others: Times, what: str) -> tuple[Times, Times]:
    """Times and others of the same kind, or one clear sentence."""
    if others.kind != times.kind:
        if {others.kind, times.kind} == {"numbers", "whole numbers"}:
            return Times("numbers", times.values.astype(float)), Times("numbers", others.values.astype(float))
        raise ValueError(f"expected times and {what} of one kind, got {times.kind} and {others.kind}")
    return times, others


def _cutoff_from_horizon(frame: Frame, horizon: Any, times: Times, at_once: bool) -> Stamps | None:
    """When forecasts were issued, from horizons alone: they must be 1, or numbers as the times are.

    One step is the next row only where times are counted, or dates.
    """
    _, names = frame.keys([horizon])
    counted = times.kind != "numbers" and (at_once or times.kind != "whole numbers")
    if counted and all(name == 1 for name in names):
        return None
    if times.kind in ("numbers", "whole numbers") and frame.column(horizon).dtype.is_numeric():
        return np.asarray(times.values - frame.numbers(horizon))
    raise ValueError(f"expected a column of cutoffs beside the horizons in {horizon!r}, got none: name it by cutoff=")


def _check_issued_before(times: Times, cutoff: Stamps, timing: Timing, known: bool) -> None:
    """A forecast is issued before the time that it is about, unless it is said to be a nowcast."""
    after = np.flatnonzero(times.values <= cutoff)
    if not len(after):
        return
    row = int(after[0])
    which = f"{times.show(times.values[row])} issued at {times.show(cutoff[row])}, and so in {rows_text(after)}"
    if not timing.nowcast:
        raise ValueError(
            f"expected forecasts issued before the time that they are about, got one of {which} "
            "(nowcast=True allows it, with known= or lag= to say when outcomes are known)"
        )
    if not known:
        raise ValueError(f"expected known= or lag= beside nowcasts, to say when outcomes are known, got one of {which}")


# --- when outcomes are known


def _known(frame: Frame, layout: ColumnLayout, times: Times, lag: Any) -> Stamps | None:
    """When each outcome was known; None if nothing says it.  Where the column says nothing, it is not known yet."""
    if layout.known is not None:
        if lag is not None:
            raise ValueError(f"expected known= or lag=, got both: {layout.known!r} and {short(lag)}")
        found, there = frame.times_if_any(layout.known, "time at which the outcome was known")
        if {found.kind, times.kind} == {"numbers", "whole numbers"}:
            # known after a whole number is known at the next one
            found = Times(times.kind, np.ceil(found.values) if times.kind == "whole numbers" else found.values)
        if found.kind != times.kind and there.any():
            raise ValueError(f"expected times and known= of one kind, got {times.kind} and {found.kind}")
        return np.where(there, found.values.astype(times.values.dtype), farthest(times.values))
    return None if lag is None else later(times.values, stamps_of(lag, times.kind, "lag"))


def later(stamps: Stamps, by: Any) -> Stamps:
    """Some times, each so much later; beyond what can be counted, the last that can."""
    if stamps.dtype.kind == "f":
        return np.asarray(stamps + by)
    most = farthest(stamps) - 1
    return np.asarray(np.minimum(stamps, most - by) + by)


def check_known(times: RowTimes, known: Stamps, y: NDArray[np.float64]) -> None:
    """Outcomes that are there were known at some time, and after their forecasts were issued."""
    if times.at_once:
        return
    there = ~np.isnan(y)
    never = np.flatnonzero(there & (known == farthest(known)))
    if len(never):
        raise ValueError(f"expected a time at which each outcome was known, got none in {rows_text(never)}")
    before = np.flatnonzero(there & (known <= times.cutoff))
    if len(before):
        row, show = int(before[0]), times.times.show
        raise ValueError(
            f"expected outcomes that were not known when their forecasts were issued, got one known at "
            f"{show(known[row])} whose forecast was issued at {show(times.cutoff[row])}, and so in "
            f"{rows_text(before)}"
        )


def stamps_of(value: Any, kind: str, what: str) -> Any:
    """Length of time in the stamps of a kind of times.

    >>> stamps_of("2D", "dates", "lag") == 2 * 86_400 * 10**9, stamps_of(3, "whole numbers", "lag")
    (True, 3)
    """
    if kind.startswith("dates") or kind == "durations":
        return nanoseconds_of(value, what)
    fine = isinstance(value, (int, float, np.number)) and not isinstance(value, (bool, np.timedelta64))
    if not fine or not 0.0 <= value < 2**62 or (kind != "numbers" and value != int(value)):
        whole_ = "" if kind == "numbers" else "whole "
        raise ValueError(f"expected {what}= as a {whole_}number, since times are {kind}, got {short(value)}")
    return float(value) if kind == "numbers" else int(value)


def nanoseconds_of(value: Any, what: str) -> int:
    """Length of time in nanoseconds; a part of one counts as one, so that nothing is known too early.

    >>> nanoseconds_of("36 h", "lag") // 10**9, nanoseconds_of(datetime.timedelta(seconds=1), "lag")
    (129600, 1000000000)
    """
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


def plain_length(nanoseconds: int) -> str:
    """Length of time as text, in the largest unit that divides it.

    >>> plain_length(14 * 3600 * 10**9), plain_length(2 * 86_400 * 10**9), plain_length(1500)
    ('14h', '2D', '1500ns')
    """
    names = {"D": DAY, "h": HOUR, "min": MINUTE, "s": SECOND, "ns": 1}
    name, unit = next((name, unit) for name, unit in names.items() if nanoseconds % unit == 0)
    return f"{nanoseconds // unit}{name}"


def plain_lag(lag: Any) -> Any:
    """Lag as states keep it: a number, or text.

    >>> plain_lag(datetime.timedelta(days=1)), plain_lag("48h"), plain_lag("7")
    ('1D', '2D', 7.0)
    """
    if isinstance(lag, str) and re.fullmatch(r"\s*\d+(\.\d+)?\s*", lag):
        return float(lag)
    if isinstance(lag, (str, datetime.timedelta, np.timedelta64)):
        return plain_length(nanoseconds_of(lag, "lag"))
    if lag is not None and (isinstance(lag, bool) or not isinstance(lag, (int, float, np.number))):
        raise ValueError(f"expected lag= such as '4D', or a number, got {short(lag)}")
    return lag.item() if isinstance(lag, np.generic) else lag


# --- forecasts that are issued together


def every(value: Any) -> int | str:
    """How forecasts are issued together: a number of rows, or a length of time such as '86400s'; as states keep it.

    >>> every(24), every("daily"), every("12h")
    (24, '86400s', '43200s')
    """
    if isinstance(value, str) and value.strip().isdecimal():
        value = int(value)
    if isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.timedelta64)):
        return whole(value, "rows that are issued together", 1, 10**9)
    text = WORDS.get(value.strip().lower(), value) if isinstance(value, str) else value
    try:
        length = nanoseconds_of(text, "issued_every")
    except ValueError:
        length = 0
    if length < SECOND or length % SECOND:
        raise ValueError(
            "expected issued_every= as a number of rows that are issued together, or as 'daily', 'weekly' or '12h', "
            f"got {short(value)}"
        )
    return f"{length // SECOND}s"


def issued_together(
    times: Times, codes: Codes, keys: Sequence[Hashable], together: int | str, calendar: Calendar
) -> Stamps:
    """When each row was issued: just before the first of those that are issued together."""
    if isinstance(together, str):
        if not times.kind.startswith("dates"):
            raise ValueError(f"expected issued_every= in rows, since times are {times.kind}, got {together!r}")
        length = nanoseconds_of(together, "issued_every")
        start = MONDAY if length % UNITS["w"] == 0 else 0
        return np.asarray((times.values - start) // length * length + start - 1)
    cutoff = np.empty_like(times.values)
    order = np.argsort(codes, kind="stable")
    ends = np.searchsorted(codes[order], np.arange(len(keys) + 1))
    for i, key in enumerate(keys):
        rows = order[ends[i] : ends[i + 1]]
        cutoff[rows] = _blocks(times.values[rows], together, calendar.get(key))
    return cutoff


def _blocks(time: Stamps, together: int, seen: Stamps | None) -> Stamps:
    """The cutoffs of one series: its times in order, so many at a time; those seen before keep theirs.

    >>> _blocks(np.array([1, 2, 3, 4, 5]), 2, None).tolist()
    [0, 0, 2, 2, 4]
    >>> _blocks(np.array([3, 4, 5]), 2, np.array([[0, 1], [0, 2], [2, 3]])).tolist()
    [2, 2, 4]
    """
    if seen is None or not len(seen):
        distinct, places = np.unique(time, return_inverse=True)
        return np.asarray(just_before(distinct[np.arange(len(distinct)) // together * together])[places])
    last, begun = seen[-1, 1], seen[-1, 0]
    room = together - int((seen[:, 0] == begun).sum())
    out = np.empty_like(time)
    new = time > last
    # a time that was never seen and lies before others has the cutoff of those about it; it will be late
    before = seen[np.maximum(np.searchsorted(seen[:, 1], time[~new], side="right") - 1, 0)]
    out[~new] = before[:, 0]
    distinct, places = np.unique(time[new], return_inverse=True)
    at = np.arange(len(distinct)) - room
    starts = just_before(distinct[np.maximum(at // together * together + room, 0)])
    out[new] = np.where(at < 0, begun, starts)[places] if len(distinct) else starts[places]
    return out
