"""One stream of the contest: forecasts of an expert, or of several, with their outcomes and the times of both."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Whole = NDArray[np.int64]

KINDS = ("one-step", "day-ahead", "weekly-late", "binary", "ensembles", "several experts", "adversarial")


@dataclass(frozen=True, eq=False)
class Stream:
    """Rows in the order in which they were issued.

    `experts` are quantiles at `levels`, a row for each forecast, or probabilities of a yes if there are no levels.
    Row s may be issued with the outcomes of all rows t with settled[t] <= issued[s] in sight, and no others; both are
    times of one clock that all series of a panel share.  Rows of one `series` and `horizon` are one game.

    `members` are the ensemble's members, where the expert is an ensemble.  `nature` makes the outcomes of an
    adversarial stream, from the forecast that was issued; `y` is then only what the expert would have met.
    `source` says where the data are from, `knew` what the expert knew when it issued a row.
    """

    name: str
    kind: str
    source: str
    knew: str
    levels: Array
    experts: Mapping[str, Array]
    y: Array
    issued: Whole
    settled: Whole
    low: float = -np.inf
    high: float = np.inf
    series: Whole | None = None
    horizon: Whole | None = None
    members: Array | None = None
    nature: Callable[[], Any] | None = None

    def __post_init__(self) -> None:
        rows = self.y.size
        if self.kind not in KINDS:
            raise ValueError(f"expected a kind among {', '.join(KINDS)}, got {self.kind!r}")
        if not self.experts:
            raise ValueError(f"expected an expert in the stream {self.name!r}, got none")
        shape = (rows, self.levels.size) if self.levels.size else (rows,)
        for name, given in self.experts.items():
            if given.shape != shape:
                raise ValueError(f"expected {shape} forecasts of {name!r} in {self.name!r}, got {given.shape}")
        for what, times in (("issue times", self.issued), ("times of outcomes", self.settled)):
            if times.shape != (rows,):
                raise ValueError(f"expected {rows} {what} in {self.name!r}, got {times.shape}")
        if (np.diff(self.issued) < 0).any():
            raise ValueError(f"expected rows in the order of their issue in {self.name!r}, got others")
        if (self.settled <= self.issued).any():
            raise ValueError(f"expected outcomes after their forecasts in {self.name!r}, got some before")
        if self.binary:
            for name, given in self.experts.items():
                wrong = given[~((given >= 0.0) & (given <= 1.0))]
                if wrong.size:
                    raise ValueError(f"expected probabilities of {name!r} in {self.name!r}, got {wrong[0]:g}")
            if not np.isin(self.y, (0.0, 1.0)).all():
                raise ValueError(f"expected outcomes 0 and 1 in {self.name!r}, got others")
        if not np.isfinite(self.y).all() or (self.y < self.low).any() or (self.y > self.high).any():
            raise ValueError(f"expected outcomes within the bounds in {self.name!r}, got others")

    @property
    def rows(self) -> int:
        """How many forecasts there are."""
        return self.y.size

    @property
    def binary(self) -> bool:
        """Whether outcomes are 0 or 1, and forecasts probabilities."""
        return self.levels.size == 0

    @property
    def expert(self) -> Array:
        """The forecasts of the only expert, or of the first."""
        return next(iter(self.experts.values()))

    def games(self) -> list[Whole]:
        """The rows of each series and horizon, in the order of their issue."""
        keys = np.stack([np.zeros(self.rows, np.int64) if k is None else k for k in (self.series, self.horizon)])
        _, which = np.unique(keys, axis=1, return_inverse=True)
        which = which.ravel()
        order = np.argsort(which, kind="stable")
        return np.split(order, np.flatnonzero(np.diff(which[order])) + 1)

    def timeline(self) -> Iterator[tuple[int, bool]]:
        """What happens, in order: (row, True) when it is issued, (row, False) when its outcome becomes known."""
        arrivals = np.argsort(self.settled, kind="stable")
        known = 0
        for row in range(self.rows):
            while known < self.rows and self.settled[arrivals[known]] <= self.issued[row]:
                yield int(arrivals[known]), False
                known += 1
            yield row, True
        for row in arrivals[known:]:
            yield int(row), False
