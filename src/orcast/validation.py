"""Checks of numbers in public functions, and messages."""

from __future__ import annotations

import math
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray


def short(value: object) -> str:
    """Representation of a value on one line of a message, at most 80 characters."""
    try:
        text = " ".join(repr(value).split())
    except (RecursionError, ValueError):  # nested too deeply, or a whole number of too many digits
        return f"<{type(value).__name__}>"
    return text if len(text) <= 80 else f"{text[:77]}..."


def number(value: object, what: str, low: float = -math.inf, high: float = math.inf) -> float:
    """Check a finite number from low to high that is not text."""
    try:
        # older versions of numpy convert an array of one number, with a warning
        if type(value) is not float and (isinstance(value, (str, bytes)) or np.ndim(value)):  # type: ignore[arg-type]
            raise TypeError
        result = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"expected a finite number as {what}, got {short(value)}") from None
    if not math.isfinite(result):
        raise ValueError(f"expected a finite number as {what}, got {short(value)}")
    if not low <= result <= high:
        raise ValueError(f"expected a number from {low:g} to {high:g} as {what}, got {short(value)}")
    return result


def floats(values: object) -> NDArray[np.float64]:
    """Convert numbers that are not text to float64; raises TypeError or ValueError without a message."""
    given = np.asarray(values)
    kind = given.dtype.kind
    if kind not in "biufO" or (kind == "O" and any(isinstance(each, (str, bytes)) for each in given.flat)):
        raise TypeError
    return given.astype(np.float64, copy=False)


def vector(function: Callable[..., Any], *arguments: Any, what: str) -> NDArray[np.float64]:
    """Check the finite numbers that a user's function returns."""
    value = function(*arguments)
    try:
        array = np.atleast_1d(np.asarray(value, dtype=np.float64))
    except (TypeError, ValueError):
        raise TypeError(f"expected numbers from the {what}, got {short(value)}") from None
    if array.ndim != 1:
        raise ValueError(f"expected a sequence of numbers from the {what}, got shape {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError(f"expected finite numbers from the {what}, got {short(array.tolist())}")
    return array


_first_line: list[int | None] = [None]


@contextmanager
def line_numbers(first: int | None) -> Iterator[None]:
    """Use lines of a file whose first row is in line `first` as names of rows in messages."""
    _first_line.append(first)
    try:
        yield
    finally:
        _first_line.pop()


def row_name(*rows: int, join: str = ", ") -> str:
    """Name of rows in a message: row 3, or line 5 of a file."""
    first = _first_line[-1]
    unit, first = ("row", 0) if first is None else ("line", first)
    return f"{unit}{'s' if len(rows) > 1 else ''} {join.join(str(first + int(row)) for row in rows)}"


class _Quiet(threading.local):
    on = False


_quiet = _Quiet()


@contextmanager
def quietly() -> Iterator[None]:
    """Silence `warn_user` in this thread."""
    before = _quiet.on
    try:
        _quiet.on = True
        yield
    finally:
        _quiet.on = before


def warn_user(message: str, kind: type[Warning]) -> None:
    """Warn at the user's line of code."""
    if _quiet.on:
        return
    depth = 1
    while sys._getframe(depth).f_globals.get("__name__", "").startswith("orcast."):
        depth += 1
    warnings.warn(message, kind, stacklevel=depth + 1)
