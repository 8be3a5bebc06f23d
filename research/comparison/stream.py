"""A stream: base forecasts, from one expert or several, with their outcomes and the times of both."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Whole = NDArray[np.int64]

KINDS = ("one-step", "day-ahead", "weekly-late", "multi-step", "binary", "ensembles", "several experts", "adversarial")


@dataclass(frozen=True, eq=False)
class Stream:
    """Rows in the order in which they were issued.

    Parameters
    ----------
    experts : quantiles at `levels`, a row for each forecast, or probabilities of an event if there are no levels.
    issued, known : times, on one clock, of each forecast and of its outcome.  A row may be issued with the outcomes
        of all rows t with known[t] <= its time of issue, and no others.
    series, horizon : rows with the same values of both are one group, which a rival forecasts by itself.
    members : members of the ensemble, where the expert is one.
    adversary : makes the object that chooses outcomes from issued forecasts; `y` is then used only for bounds.
    clock : unit of the times since 1970, "h" or "D"; "" is a clock without a calendar.
    """

    name: str
    kind: str
    levels: Array
    experts: Mapping[str, Array]
    y: Array
    issued: Whole
    known: Whole
    low: float = -np.inf
    high: float = np.inf
    series: Whole | None = None
    horizon: Whole | None = None
    members: Array | None = None
    adversary: Callable[[], Any] | None = None
    clock: str = ""

    def __post_init__(self) -> None:
        shape = (self.rows, self.levels.size) if self.levels.size else (self.rows,)
        if self.kind not in KINDS:
            raise ValueError(f"expected a kind among {', '.join(KINDS)}, got {self.kind!r}")
        if not self.experts or any(rows.shape != shape for rows in self.experts.values()):
            found = ", ".join(str(rows.shape) for rows in self.experts.values()) or "none"
            raise ValueError(f"expected forecasts of shape {shape} in {self.name!r}, got {found}")
        if self.issued.shape != self.y.shape or self.known.shape != self.y.shape:
            raise ValueError(f"expected {self.rows} times of issue and of outcomes in {self.name!r}, got others")
        if (np.diff(self.issued) < 0).any() or (self.known <= self.issued).any():
            raise ValueError(f"expected rows of {self.name!r} in order, outcomes after their forecasts, got others")
        if self.binary and not all(((rows >= 0.0) & (rows <= 1.0)).all() for rows in self.experts.values()):
            raise ValueError(f"expected probabilities in {self.name!r}, got others")
        allowed = np.isin(self.y, (0.0, 1.0)) if self.binary else (self.y >= self.low) & (self.y <= self.high)
        if not (np.isfinite(self.y) & allowed).all():
            raise ValueError(f"expected outcomes within the bounds in {self.name!r}, got others")

    @property
    def rows(self) -> int:
        """Number of forecasts."""
        return self.y.size

    @property
    def binary(self) -> bool:
        """True if forecasts are probabilities and outcomes 0 or 1."""
        return self.levels.size == 0

    @property
    def base(self) -> Array:
        """Forecasts of the only expert, or of the first."""
        return next(iter(self.experts.values()))

    def groups(self) -> list[Whole]:
        """Rows of each series and horizon, in the order of their issue."""
        keys = np.stack([np.zeros(self.rows, np.int64) if k is None else k for k in (self.series, self.horizon)])
        _, which = np.unique(keys, axis=1, return_inverse=True)
        which = which.ravel()
        order = np.argsort(which, kind="stable")
        return np.split(order, np.flatnonzero(np.diff(which[order])) + 1)

    def timeline(self) -> Iterator[tuple[int, bool]]:
        """Events in order: (row, True) when it is issued, (row, False) when its outcome becomes known."""
        arrivals = np.argsort(self.known, kind="stable")
        done = 0
        for row in range(self.rows):
            while done < self.rows and self.known[arrivals[done]] <= self.issued[row]:
                yield int(arrivals[done]), False
                done += 1
            yield row, True
        for row in arrivals[done:]:
            yield int(row), False
