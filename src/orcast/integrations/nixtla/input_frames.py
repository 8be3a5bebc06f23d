"""One of the frames of a call: its series, times and outcomes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orcast.panel.column_names import listed, of_series
from orcast.panel.frame import Codes, Frame

Array = NDArray[np.float64]

# How Nixtla names columns, and how they are named in the frame that is played.
ID, TIME, TARGET, CUTOFF = "unique_id", "ds", "y", "cutoff"
ROLES = (ID, TIME, TARGET, CUTOFF)


class InputFrame:
    """One of the two frames: its series and times, and its other columns when they are asked for."""

    def __init__(self, native: Any, names: Mapping[str, str], what: str) -> None:
        self.frame = Frame(native)
        self.names, self.what = names, what
        self.labels = list(self.frame.searched.columns)
        missing = [names[role] for role in (ID, TIME) if names[role] not in self.labels]
        if missing:
            raise ValueError(
                f"expected a column {missing[0]!r} in {what}, got {listed(self.labels)}"
                " (id_col=, time_col= and target_col= say other names)"
            )
        self.codes, self.keys = self.frame.keys([names[ID]])
        self.times = self.frame.times(names[TIME])
        self.cutoffs = self.frame.times(CUTOFF, "cutoff") if CUTOFF in self.labels else None
        if self.cutoffs is not None and self.cutoffs.kind != self.times.kind:
            raise ValueError(
                f"expected times and cutoffs of one kind in {what}, got {self.times.kind} and {self.cutoffs.kind}"
            )
        self.y = self.frame.numbers(names[TARGET]) if names[TARGET] in self.labels else None
        taken = {names[role] for role in ROLES}
        self.others = [label for label in self.labels if label not in taken and str(label) not in ROLES]

    def __len__(self) -> int:
        return self.frame.rows

    def numeric(self, label: Any) -> bool:
        """Whether a column holds numbers."""
        return self.frame.holds_numbers(label)


class ByTime:
    """Numbers by series and time."""

    def __init__(self, codes: Codes, times: NDArray[Any], values: Array) -> None:
        self.times, rank = np.unique(times, return_inverse=True)
        place = codes * len(self.times) + rank
        self.order = np.argsort(place, kind="stable")
        self.places, self.values = place[self.order], values[self.order]

    def at(self, codes: Codes, times: NDArray[Any]) -> Array:
        """The numbers of some series at some times; nan where there is none."""
        if not len(self.places):
            return np.full(len(codes), np.nan)
        rank = np.minimum(np.searchsorted(self.times, times), len(self.times) - 1)
        place = codes * len(self.times) + rank
        at = np.minimum(np.searchsorted(self.places, place), len(self.places) - 1)
        return np.where((self.times[rank] == times) & (self.places[at] == place), self.values[at], np.nan)


def known_outcomes(table: InputFrame, codes: Codes) -> ByTime:
    """The outcomes of a frame whose series have these codes; or one sentence if there are two for one time."""
    assert table.y is not None
    there = np.flatnonzero(~np.isnan(table.y))
    known = ByTime(codes[there], table.times.values[there], table.y[there])
    differ = np.flatnonzero((np.diff(known.places) == 0) & (np.diff(known.values) != 0.0))
    if len(differ):
        one, other = there[known.order[differ[0] : differ[0] + 2]].tolist()
        whose, when = of_series(table.keys[table.codes[one]]), table.times.show(table.times.values[one])
        raise ValueError(
            f"expected one outcome{whose} at {when}, "
            f"got {table.y[one]:g} in row {one} of history and {table.y[other]:g} in row {other}"
        )
    return known
