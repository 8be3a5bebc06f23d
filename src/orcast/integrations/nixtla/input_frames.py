"""One of the frames of a call: its series, times and outcomes."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orcast.panel.column_names import listed, of_series
from orcast.panel.frame import Frame, show_time

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


def by_key(table: InputFrame, rows: NDArray[np.intp]) -> dict[Hashable, NDArray[np.intp]]:
    """Rows of a frame by series."""
    order = rows[np.argsort(table.codes[rows], kind="stable")]
    ends = np.searchsorted(table.codes[order], np.arange(len(table.keys) + 1))
    return {key: order[ends[i] : ends[i + 1]] for i, key in enumerate(table.keys) if ends[i] < ends[i + 1]}


class KnownOutcomes:
    """Outcomes by series and time."""

    def __init__(self, table: InputFrame, kind: str) -> None:
        assert table.y is not None
        there = np.flatnonzero(~np.isnan(table.y))
        self.times, self.y = table.times.values, table.y
        order = there[np.lexsort((self.times[there], table.codes[there]))]
        a, b = order[:-1], order[1:]
        differ = (table.codes[a] == table.codes[b]) & (self.times[a] == self.times[b]) & (self.y[a] != self.y[b])
        if differ.any():
            one, other = sorted((int(a[differ][0]), int(b[differ][0])))
            raise ValueError(
                f"expected one outcome{of_series(table.keys[table.codes[one]])} at {show_time(kind, self.times[one])}, "
                f"got {self.y[one]:g} in row {one} of history and {self.y[other]:g} in row {other}"
            )
        self.rows = {
            key: rows[np.argsort(self.times[rows], kind="stable")] for key, rows in by_key(table, there).items()
        }

    def at(self, key: Hashable, times: Any) -> Array:
        """The outcomes at some times; nan where there is none."""
        rows = self.rows.get(key)
        if rows is None:
            return np.full(len(times), np.nan)
        known = self.times[rows]
        wanted = np.asarray(times).astype(known.dtype)
        place = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
        return np.where(known[place] == wanted, self.y[rows[place]], np.nan)
