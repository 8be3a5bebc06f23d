"""What the calendar says of a stream: after how many rows a day, a week or a year is over."""

from __future__ import annotations

from orcast.constants import LONGEST_SEASON, SHORTEST_SEASON

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
