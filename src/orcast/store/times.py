"""Times of rounds: microseconds since 1970 in UTC."""

from __future__ import annotations

import datetime
from datetime import UTC, timedelta
from functools import lru_cache
from typing import Any

import numpy as np

from orcast.validation import short

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
# First and last time that can be written with four digits of the year.
FIRST, LAST = -62_135_596_800_000_000, 253_402_300_799_999_999


def now() -> int:
    """The present time."""
    return (datetime.datetime.now(UTC) - EPOCH) // MICROSECOND


def microseconds(time: Any, what: str, *, end: bool = False) -> int:
    """A time that a user gives; one without a zone is in UTC, a date is its first moment, with `end` its last.

    >>> microseconds("2026-03-03", "as_of", end=True) - microseconds("2026-03-03T00:00+01:00", "issued")
    89999999999
    """
    found = _parsed(time)
    if found is None:
        raise TypeError(f"expected a time such as 2026-03-03T14:00Z as {what}, got {short(time)}")
    if not isinstance(found, datetime.datetime):
        found = datetime.datetime.combine(found, datetime.time.max if end else datetime.time.min)
    if found.tzinfo is None:
        found = found.replace(tzinfo=UTC)
    since = (found - EPOCH) // MICROSECOND
    if not FIRST <= since <= LAST:
        raise ValueError(f"expected a time in the years 1 to 9999 of UTC as {what}, got {short(time)}")
    return since


def _parsed(time: Any) -> datetime.date | None:
    """A date or a time."""
    if isinstance(time, np.datetime64):
        time = time.astype("datetime64[us]").item()
    if isinstance(time, str) and len(time) <= 50:
        try:
            day = len(time) == len("2026-03-03")
            return datetime.date.fromisoformat(time) if day else datetime.datetime.fromisoformat(time)
        except ValueError:
            return None
    # NaT is a datetime, but not equal to itself
    return time if isinstance(time, datetime.date) and time == time else None


def as_datetime(time: int | None) -> datetime.datetime | None:
    """The inverse of `microseconds`."""
    return None if time is None else EPOCH + time * MICROSECOND


@lru_cache(1024)
def text_of(time: int) -> str:
    """A time as text that `microseconds` reads.

    >>> text_of(1772546400000000)
    '2026-03-03T14:00:00Z'
    """
    return (EPOCH + time * MICROSECOND).isoformat().removesuffix("+00:00") + "Z"


def shown(time: int) -> str:
    """A time in words, to the second.

    >>> shown(1772546400000000)
    '2026-03-03 14:00 UTC'
    """
    text = str(np.datetime_as_string(np.datetime64(time // 1_000_000, "s"), unit="auto"))
    return f"{text.replace('T', ' ')} UTC" if "T" in text else text
