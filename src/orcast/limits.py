"""Caps on sizes in calls, lines and files, checked before memory is allocated.

>>> from orcast import limits
>>> limits.check("labels", 50_000)
Traceback (most recent call last):
ValueError: expected at most 4096 labels, got 50000 (orcast.limits.LIMITS.labels raises the cap)
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeVar

T = TypeVar("T")

MORE = "raises the cap)"


@dataclass
class Limits:
    """The caps."""

    cells: int = 4096  # of a finite space: tables of distances and payoffs have cells x cells numbers
    labels: int = 4096
    dims: int = 1000  # sides of a box
    levels: int = 10_000
    members: int = 1_000_000
    groups: int = 10_000
    experts: int = 1000
    coordinates: int = 5_000_000  # in the ledger of one recalibrator, all groups together
    pending: int = 1_000_000
    series: int = 1_000_000
    id_characters: int = 2000
    line_bytes: int = 16 * 2**20
    header_bytes: int = 2**28
    file_bytes: int = 2**34


LIMITS = Limits()
_NAMES = {
    "dims": "sides of a box",
    "coordinates": "coordinates of a payoff",
    "pending": "pending rounds",
    "id_characters": "characters in an id or name",
    "line_bytes": "bytes in a line",
    "header_bytes": "bytes in the header of a state file",
    "file_bytes": "bytes in a state file",
}


def _too_many(name: str, found: object) -> ValueError:
    most, what = getattr(LIMITS, name), _NAMES.get(name, name)
    return ValueError(f"expected at most {most} {what}, got {found} (orcast.limits.LIMITS.{name} {MORE}")


def check(name: str, count: int) -> None:
    """Refuse more than a cap allows."""
    if count > getattr(LIMITS, name):
        raise _too_many(name, count)


def taken(name: str, values: Iterable[T]) -> list[T]:
    """List of a possibly infinite sequence; refused as soon as it exceeds the cap."""
    found = list(islice(values, getattr(LIMITS, name) + 1))
    if len(found) > getattr(LIMITS, name):
        raise _too_many(name, "more")
    return found


def parsed_json(text: str, **hooks: Any) -> Any:
    """Parse JSON of finite numbers; Python refuses integers of more than 4,300 digits."""
    try:
        return json.loads(text, **{"parse_constant": _refuse, **hooks})
    except ValueError as reason:
        if "integer string conversion" in str(reason):
            raise ValueError(
                f"expected numbers of at most {sys.get_int_max_str_digits()} digits, got a longer one"
            ) from None
        raise


def _refuse(name: str) -> None:
    raise ValueError(f"expected finite numbers, got {name}")
