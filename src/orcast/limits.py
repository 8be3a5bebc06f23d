"""Caps on what a call, a line or a file may ask for, checked before anything is allocated.

The environment variable ORCAST_LIMITS sets others; it is read when orcast is imported.

>>> from orcast import limits
>>> limits.check("labels", 3)
>>> limits.check("labels", 50_000)
Traceback (most recent call last):
ValueError: expected at most 4096 labels, got 50000 (ORCAST_LIMITS allows more)
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from itertools import islice
from typing import Any, TypeVar

T = TypeVar("T")

VARIABLE = "ORCAST_LIMITS"
MORE = f"({VARIABLE} allows more)"


def _cap(most: int, what: str) -> Any:
    return field(default=most, metadata={"what": what})


@dataclass
class Limits:
    """The caps; `what` is how a message names what there is too much of."""

    cells: int = _cap(4096, "cells")  # of a finite space: tables of distances and payoffs have cells x cells numbers
    labels: int = _cap(4096, "labels")  # of a space of labels, each a cell
    dims: int = _cap(1000, "numbers in a point")  # sides of a box, numbers in a point
    levels: int = _cap(10_000, "levels")  # of a forecast by quantiles, of a payoff, or to answer with
    members: int = _cap(1_000_000, "members")  # of an ensemble
    groups: int = _cap(10_000, "groups")  # of a context
    experts: int = _cap(1000, "experts")  # in one game: each round keeps the masses of each
    coordinates: int = _cap(5_000_000, "coordinates of a payoff")  # in the ledger of one game, all groups together
    pending: int = _cap(1_000_000, "pending rounds")  # of one game, as max_pending
    series: int = _cap(1_000_000, "series")  # of one stream of lines
    id_characters: int = _cap(10_000, "characters in an id")  # of a round or a series, where it is text
    line_bytes: int = _cap(16 * 2**20, "bytes in a line")  # of a stream: a client may forget its line ends
    header_bytes: int = _cap(2**28, "bytes in the header of a state file")  # JSON takes several times that to read
    file_bytes: int = _cap(2**34, "bytes in a state file")


NAMES = {each.name: str(each.metadata["what"]) for each in fields(Limits)}


def from_text(text: str) -> Limits:
    """The caps, with those that a text sets.

    >>> from_text("labels=20000, cells=20000").labels
    20000
    """
    caps = {}
    for part in filter(None, text.split(",")):
        name, _, most = (each.strip() for each in part.partition("="))
        if name not in NAMES or not re.fullmatch(r"[1-9]\d{0,17}", most):
            raise ValueError(f"expected {VARIABLE} such as 'labels=20000,cells=20000', got {part[:40]!r} in it")
        caps[name] = int(most)
    return Limits(**caps)


LIMITS = from_text(os.environ.get(VARIABLE, ""))


def check(name: str, count: int) -> None:
    """Refuse more than a cap allows, in one sentence."""
    most = getattr(LIMITS, name)
    if count > most:
        raise ValueError(f"expected at most {most} {NAMES[name]}, got {count} {MORE}")


def taken(name: str, values: Iterable[T]) -> list[T]:
    """All of a sequence that may have no end, or one sentence as soon as there are too many.

    >>> taken("labels", "abc")
    ['a', 'b', 'c']
    """
    most = getattr(LIMITS, name)
    found = list(islice(values, most + 1))
    if len(found) > most:
        raise ValueError(f"expected at most {most} {NAMES[name]}, got more {MORE}")
    return found


def parsed_json(text: str, **hooks: Any) -> Any:
    """JSON of finite numbers; Python refuses whole numbers of more than 4,300 digits before it parses them.

    >>> parsed_json('{"y": 3}')
    {'y': 3}
    >>> parsed_json('{"y": ' + 5000 * "9" + "}")
    Traceback (most recent call last):
    ValueError: expected numbers of at most 4300 digits, got a longer one
    """
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
