"""Pending rounds in a few arrays, for panels with very many recalibrators."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
# Name, dtype and shape of each array of a record.
RecordFields = tuple[tuple[str, str, tuple[int, ...]], ...]
# Header of plain data, and arrays by name.
State = tuple[dict[str, Any], dict[str, NDArray[Any]]]
# Largest size of an array of a record.
MOST_NUMBERS = 2**40
# Whole numbers up to this one are exact as floats.
MOST_WHOLE = 2.0**53


class PackedRounds(NamedTuple):
    """Pending rounds and counters of a recalibrator."""

    counters: Array  # issued, usual lag (nan before any), reserved
    fields: RecordFields
    records: Array  # one row per pending round, all its arrays concatenated
    issued: Array
    features: list[Any]

    def arrays(self) -> Iterator[dict[str, NDArray[Any]]]:
        """Arrays of each record."""
        shapes = {name: (np.dtype(kind), shape) for name, kind, shape in self.fields}
        return (unpack_row(row, shapes) for row in self.records)


def record_fields(plain: Any) -> RecordFields:
    """Check the names, types and shapes of a record's arrays in plain form.

    >>> record_fields([["row", "<f8", [4]]])
    (('row', '<f8', (4,)),)
    """
    for name, kind, sides in plain:
        whole = all(isinstance(side, int) and 0 <= side <= MOST_NUMBERS for side in sides)
        if not (isinstance(name, str) and kind in ("<f8", "<i8") and whole):
            raise ValueError(f"a record has no field {name!r} of the kind {kind!r} and shape {sides!r}")
    return tuple((name, kind, tuple(sides)) for name, kind, sides in plain)


def pack_row(arrays: Any) -> Array:
    """Concatenate arrays into one row of numbers."""
    return np.concatenate([np.asarray(array, dtype=np.float64).ravel() for array in arrays])


def unpack_row(row: Array, shapes: dict[str, tuple[Any, tuple[int, ...]]]) -> dict[str, NDArray[Any]]:
    """Split a row of numbers into arrays of given types and shapes."""
    sizes = [math.prod(shape) for _, shape in shapes.values()]
    if sum(sizes) != len(row):
        raise ValueError(f"{len(row)} numbers of a state, not {sum(sizes)}")
    parts = np.split(row, np.cumsum(sizes)[:-1]) if sizes else []
    found = {}
    for part, (name, (kind, shape)) in zip(parts, shapes.items(), strict=True):
        if np.dtype(kind).kind == "i" and not ((part == np.floor(part)) & (np.abs(part) <= MOST_WHOLE)).all():
            raise ValueError(f"{name} has a number that is not whole")
        found[name] = part.reshape(shape).astype(kind)
    return found


def pack(states: Iterable[State], own: tuple[str, ...]) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Join many states, a header and arrays each, into one header and two long arrays.

    Headers that differ only in the keys `own` are written once.

    >>> header, arrays = pack((({"kind": "a", "id": i}, {"x": np.arange(i)}) for i in range(3)), ("id",))
    >>> header["kinds"], header["own"], arrays["wholes"].tolist()
    ([{'kind': 'a'}], [[0], [1], [2]], [0, 0, 1])
    >>> [(state["id"], array["x"].tolist()) for state, array in unpack(header, arrays, ("id",))]
    [(0, []), (1, [0]), (2, [0, 1])]
    """
    kinds: dict[str, int] = {}
    shapes: dict[tuple[Any, ...], int] = {}
    shared: list[dict[str, Any]] = []
    header: dict[str, Any] = {"kind": [], "own": [], "shape": []}
    parts: dict[str, list[NDArray[Any]]] = {"f": [np.empty(0)], "i": [np.empty(0, dtype=np.int64)]}
    for state, arrays in states:
        common = {key: value for key, value in state.items() if key not in own}
        kind = repr(common)
        if kind not in kinds:
            kinds[kind] = len(shared)
            shared.append(common)
        shape = tuple((name, array.dtype.kind, array.shape) for name, array in arrays.items())
        header["kind"].append(kinds[kind])
        header["own"].append([state[key] for key in own])
        header["shape"].append(shapes.setdefault(shape, len(shapes)))
        for array in arrays.values():
            parts[array.dtype.kind].append(array.ravel())
    joined = {"floats": np.concatenate(parts["f"]), "wholes": np.concatenate(parts["i"])}
    return {**header, "kinds": shared, "shapes": list(shapes)}, joined


def unpack(header: dict[str, Any], arrays: dict[str, NDArray[Any]], own: tuple[str, ...]) -> Iterator[State]:
    """Split the result of `pack`; the arrays of a state are views of the long ones."""
    at = {"f": 0, "i": 0}
    long = {"f": arrays["floats"], "i": arrays["wholes"]}
    for kind, mine, shape in zip(header["kind"], header["own"], header["shape"], strict=True):
        parts: dict[str, NDArray[Any]] = {}
        for name, code, sides in header["shapes"][shape]:
            begin, at[code] = at[code], at[code] + math.prod(sides)
            parts[name] = long[code][begin : at[code]].reshape(sides)
        yield {**header["kinds"][kind], **dict(zip(own, mine, strict=True))}, parts
    if any(at[code] != array.size for code, array in long.items()):
        raise ValueError("numbers of no state remain")
