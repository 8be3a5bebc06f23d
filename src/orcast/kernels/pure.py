"""Uncompiled kernels: stand-ins for C, and a loader that gives each module the names that its .pxd file imports."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable
from contextlib import nullcontext
from importlib import import_module
from importlib.machinery import SourceFileLoader
from math import ceil, erf, fabs, floor, isnan, log1p, nextafter, sin
from pathlib import Path
from types import ModuleType
from typing import Any

from orcast.kernels import records

__all__ = ["ceil", "erf", "fabs", "floor", "isnan", "log1p", "nextafter", "sin"]

inf, nan = math.inf, math.nan
whole_number = int
# Stand-in for Cython's module of that name.
cython = ModuleType("cython")
cython.compiled, cython.nogil = False, nullcontext()  # type: ignore[attr-defined]

# Rows of cells of a round.
CELL_ROWS = 6


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
as_statistics, as_info = map(struct, (records.STATISTICS, records.INFO))
as_counters, as_log = map(struct, (records.COUNTERS, records.ROUND_LOG))
as_group_accounts, as_parts, as_rivals = map(structs, (records.GROUP_ACCOUNT, records.PART, records.RIVAL))
rival_at = group_account_at = part_at = at


def cell_count(round: Any) -> int:
    """Number of cells of a round."""
    return int(round.info.cells)


# --- finite spaces
as_cell_features = struct(records.CELL_FEATURES)
as_finite_rivals, as_finite_members = map(structs, (records.FINITE_RIVAL, records.FINITE_MEMBER))
finite_rival_at = finite_member_at = at


CIMPORT = re.compile(r"^from (orcast\.[\w.]+) cimport (?:\(([^)]*)\)|(.+))$", re.MULTILINE)


class PlainLoader(SourceFileLoader):
    """Loader of uncompiled kernels: before a module runs it has the names above, and those that its .pxd imports."""

    def exec_module(self, module: ModuleType) -> None:
        """Run the module."""
        types = Path(self.path).with_suffix(".pxd")
        if types.exists():
            vars(module).update({name: value for name, value in globals().items() if not name.startswith("_")})
            for source, several, one in CIMPORT.findall(types.read_text("utf-8")):
                names = [name.strip() for name in (several or one).split(",")]
                found = vars(import_module(source))
                vars(module).update({name: found[name] for name in names if name in found})
        before = sys.modules.get("cython")
        sys.modules["cython"] = cython
        try:
            super().exec_module(module)
        finally:
            sys.modules.pop("cython")
            if before is not None:
                sys.modules["cython"] = before
