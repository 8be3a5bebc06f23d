"""Numbers at the public edge: as floats, or one clear sentence."""

from __future__ import annotations

import math
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray


def short(value: object) -> str:
    """What was given, on one line of a message."""
    try:
        text = " ".join(repr(value).split())
    except (RecursionError, ValueError):  # nested too deeply, or a whole number of too many digits
        return f"<{type(value).__name__}>"
    return text if len(text) <= 80 else f"{text[:77]}..."


def number(value: object, what: str, low: float = -math.inf, high: float = math.inf) -> float:
    """A finite number from low to high that is not text.

    >>> number(3, "temperature", 1e-6, 1e12)
    3.0
    >>> number(0, "temperature", 1e-6, 1e12)
    Traceback (most recent call last):
    ValueError: expected a number from 1e-06 to 1e+12 as temperature, got 0
    """
    try:
        if isinstance(value, (str, bytes)):
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
    """An array of numbers that are not text, in float64; a TypeError or ValueError without a sentence if there is none.

    >>> floats([1, 2.5]).tolist()
    [1.0, 2.5]
    """
    given = np.asarray(values)
    kind = given.dtype.kind
    if kind not in "biufO" or (kind == "O" and any(isinstance(each, (str, bytes)) for each in given.flat)):
        raise TypeError
    return given.astype(np.float64, copy=False)


def as_count(value: object, what: str) -> int:
    """A whole number of 1 or more."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise ValueError(f"expected {what}, got {value!r}")
    return int(value)


class InputError(ValueError):
    """Invalid input with its parts: what was expected, what was found and where, and the option to change.

    >>> error = InputError("numbers in column 'y'", "'abc'", rows=(3,), option="model")
    >>> str(error), error.rows, error.option
    ("expected numbers in column 'y', got 'abc' in row 3", (3,), 'model')
    """

    def __init__(self, expected: str, found: str, *, rows: Sequence[int] = (), option: str = "") -> None:
        self.expected, self.found, self.rows, self.option = expected, found, tuple(rows), option
        super().__init__(self.text("row", 0))

    def text(self, unit: str, first: int) -> str:
        """Sentence with the rows counted from `first` in this unit, such as lines of a file."""
        numbers = ", ".join(str(first + row) for row in self.rows)
        at = f" in {unit}{'s' if len(self.rows) > 1 else ''} {numbers}" if self.rows else ""
        return f"expected {self.expected}, got {self.found}{at}"


class _Quiet(threading.local):
    on = False


_quiet = _Quiet()


@contextmanager
def quietly() -> Iterator[None]:
    """Without the warnings of `warn_user`, in this thread; Python's own filters are those of all threads."""
    before, _quiet.on = _quiet.on, True
    try:
        yield
    finally:
        _quiet.on = before


def warn_user(message: str, kind: type[Warning]) -> None:
    """Warn, and point at the line of the user's that led here."""
    if _quiet.on:
        return
    depth = 1
    while sys._getframe(depth).f_globals.get("__name__", "").startswith("orcast."):
        depth += 1
    warnings.warn(message, kind, stacklevel=depth + 1)
