"""Groups of rows to be compared: by a column, by a number, by a part of the time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from orcast.evidence.base import Grouping, Places, Vector

if TYPE_CHECKING:
    from orcast.panel.frame import Frame

# So many groups at most; numbers of more kinds than this are cut into this many groups of one size.
MOST, KINDS, CUT = 200, 50, 5
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)


def number_groups(name: str, values: Vector, *, most: int | None = KINDS) -> Grouping:
    """Rows by a number, in its order; what is not finite belongs to no group.

    >>> number_groups("h", np.array([2.0, 1.0, np.nan, 2.0])).codes.tolist()
    [1, 0, -1, 1]
    >>> number_groups("load", np.arange(100.0)).labels
    ('0 to 19', '20 to 39', '40 to 59', '60 to 79', '80 to 99')
    """
    there = np.isfinite(values)
    codes: Places = np.full(values.size, -1, dtype=np.intp)
    kinds, codes[there] = np.unique(values[there], return_inverse=True)
    if most is None or kinds.size <= most:
        return Grouping(name, codes, tuple(f"{kind:.12g}" for kind in kinds))
    ends = np.unique(np.quantile(values[there], np.arange(1, CUT) / CUT, method="lower"))
    codes[there] = np.searchsorted(ends, values[there], side="left")
    parts = [values[codes == k] for k in range(ends.size + 1)]
    there_too = [part.size > 0 for part in parts]
    codes[there] = (np.cumsum(there_too) - 1)[codes[there]]
    return Grouping(name, codes, tuple(f"{part.min():.4g} to {part.max():.4g}" for part in parts if part.size))


def column_groups(name: str, table: Frame, column: Any, order: Places) -> Grouping:
    """Rows by a column of a frame."""
    if table.column(column).dtype.is_numeric():
        return number_groups(name, table.numbers(column)[order])
    values = table.column(column).to_list()
    kinds = sorted({value for value in values if value is not None}, key=lambda value: (str(type(value)), value))
    if len(kinds) > MOST:
        raise ValueError(f"expected a column of at most {MOST} kinds to compare by, got {len(kinds):,} in {name!r}")
    places = {kind: k for k, kind in enumerate(kinds)}
    codes = np.fromiter((places.get(value, -1) for value in values), dtype=np.intp, count=len(values))
    return Grouping(name, codes[order], tuple(map(str, kinds)))


def time_groups(name: str, time: NDArray[Any] | None) -> Grouping:
    """Rows by a part of their time.

    >>> days = np.array(["2024-01-01T05", "2024-02-04T05"], dtype="datetime64[h]")
    >>> time_groups("weekday", days).codes.tolist(), time_groups("month", days).labels[:2]
    ([0, 6], ('January', 'February'))
    """
    if name not in ("hour", "weekday", "month", "quarter"):
        raise ValueError(f"expected by= a column, 'horizon', 'hour', 'weekday', 'month' or 'quarter', got {name!r}")
    if time is None or time.dtype.kind != "M":
        raise ValueError(f"expected dates as times to compare by {name}, got {'none' if time is None else 'numbers'}")
    if name == "hour":
        hours = time.astype("datetime64[h]").astype(np.int64) % 24
        return Grouping(name, hours.astype(np.intp), tuple(f"{hour:02d}:00" for hour in range(24)))
    if name == "weekday":
        # the first day of 1970 was a Thursday
        return Grouping(name, ((time.astype("datetime64[D]").astype(np.int64) + 3) % 7).astype(np.intp), DAYS)
    months = (time.astype("datetime64[M]").astype(np.int64) % 12).astype(np.intp)
    if name == "month":
        return Grouping(name, months, MONTHS)
    return Grouping(
        name, months // 3, ("January to March", "April to June", "July to September", "October to December")
    )
