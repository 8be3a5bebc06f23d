"""Stand-ins for C in uncompiled kernels: functions of the C library, structs and pointers into arrays of structs."""

from __future__ import annotations

import math
from collections.abc import Callable
from math import ceil, erf, fabs, floor, isnan, log1p, nextafter, sin
from typing import Any

from orcast.kernels import records

__all__ = ["ceil", "erf", "fabs", "floor", "isnan", "log1p", "nextafter", "sin"]

inf, nan = math.inf, math.nan

# Constants of `state.pxd`.
# Cosines in the tilt of a PIT member.
BASIS = 8
# Groups of losses, by the number of outstanding outcomes.
HORIZONS = 3
# Features of a learner's location and of its spread.
LOCATION_FEATURES, SPREAD_FEATURES = 9, 5
# Rows of cells before those of the members.
CELL_ROWS = 7


def exp(x: float) -> float:
    """e^x; inf where the result overflows."""
    try:
        return math.exp(x)
    except OverflowError:
        return inf


def log(x: float) -> float:
    """Natural logarithm; -inf at 0, nan below."""
    if x > 0.0:
        return math.log(x)
    return -inf if x == 0.0 else nan


def sqrt(x: float) -> float:
    """Square root; nan below 0."""
    return math.sqrt(x) if x >= 0.0 else nan


def struct(names: tuple[str, ...]) -> Callable[[Any], Any]:
    """Class of objects with named numbers that lie in a memoryview, as the members of a C struct do."""

    def member(i: int) -> property:
        return property(lambda self: self._row[i], lambda self, value: self._row.__setitem__(i, value))

    def init(self: Any, row: Any) -> None:
        self._row = row

    return type("Struct", (), {"__slots__": ("_row",), "__init__": init, **{n: member(i) for i, n in enumerate(names)}})


def structs(names: tuple[str, ...]) -> Callable[[Any], list[Any]]:
    """Function that cuts a memoryview into a list of such objects, as an array of C structs."""
    one, size = struct(names), len(names)
    return lambda row: [one(row[i : i + size]) for i in range(0, len(row), size)]


def at(items: list[Any], i: int) -> Any:
    """Item of an array of structs; compiled code has one such function for each struct, which returns a pointer."""
    return items[i]


as_account, as_certificate, as_counts = map(struct, (records.ACCOUNT, records.CERTIFICATE, records.COUNTS))
as_statistics, as_info, as_record = map(struct, (records.STATISTICS, records.INFO, records.TRACKER_RECORD))
as_counters, as_log = map(struct, (records.COUNTERS, records.ROUND_LOG))
as_seasons, as_tracker_unit, as_group_loss = map(struct, (records.SEASONS, records.TRACKER_UNIT, records.GROUP_LOSS))
as_group_accounts, as_parts, as_evidence = map(structs, (records.GROUP_ACCOUNT, records.PART, records.EVIDENCE))
as_rivals, as_expert_losses, as_spreads = map(structs, (records.RIVAL, records.EXPERT_LOSS, records.SPREAD))
as_group_statistics, as_learner_records = map(structs, (records.GROUP_STATISTICS, records.LEARNER_RECORD))
as_learner_options, as_tracker_options = map(structs, (records.LEARNER_OPTIONS, records.TRACKER_OPTIONS))
as_member_options = structs(records.MEMBER_OPTIONS)
evidence_at = expert_loss_at = rival_at = group_account_at = group_statistics_at = spread_at = learner_record_at = at
part_at = at

# --- finite spaces
as_finite_info, as_cell_features = map(struct, (records.FINITE_INFO, records.CELL_FEATURES))
as_finite_rivals, as_finite_members = map(structs, (records.FINITE_RIVAL, records.FINITE_MEMBER))
finite_rival_at = finite_member_at = at
