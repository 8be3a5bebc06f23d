"""States of panels that earlier versions wrote, as this version reads them."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orcast.residuals import PER_ABSOLUTE

Arrays = dict[str, NDArray[Any]]

FORMAT = 2


def absolute_errors(squares: NDArray[np.float64], count: NDArray[np.float64]) -> NDArray[np.float64]:
    """The sum of absolute errors that gives the spread which a sum of squares gave.

    Until format 2 the spread of a point forecast was the root mean square of its errors.

    >>> import numpy as np
    >>> from orcast.residuals import Residuals
    >>> residuals = Residuals(); residuals.count = 4
    >>> residuals.total = float(absolute_errors(np.array(36.0), np.array(4.0)))
    >>> residuals.scale(0.0, None)
    3.0
    """
    return np.sqrt(squares * count) / PER_ABSOLUTE


def migrated(header: dict[str, Any], arrays: Arrays) -> tuple[dict[str, Any], Arrays]:
    """A state's header and arrays in the format of this version."""
    found = header.get("format", 1)
    if found not in (1, FORMAT):
        raise ValueError(f"format {found}, not {FORMAT} or older")
    return _from_1(header, arrays) if found == 1 else (header, arrays)


def _from_1(header: dict[str, Any], arrays: Arrays) -> tuple[dict[str, Any], Arrays]:
    """Format 1: counters before the memory, and what a pending row keeps before its record."""
    new = {"calendar": arrays["calendar"], "calendar/shapes": arrays["calendar/shapes"], "bounds": arrays["ends"]}
    models = []
    for number, model in enumerate(header["models"]):
        own = {name.partition("/")[2]: array for name, array in arrays.items() if name.startswith(f"{number}/")}
        games = _rows(own["game"], own["game/shapes"])
        for game in games:
            game[3] = absolute_errors(game[3], game[4])
        pages = _rows(own["pages"], own["pages/shapes"])
        shapes = own["pages/shapes"].reshape(-1, 2)
        pages = [page.reshape(tuple(shape)) for page, shape in zip(pages, shapes.tolist(), strict=True)]
        parts = {
            "counters": [game[:5] for game in games],
            "memory": [game[5:] for game in games],
            "issued": [page[:, 1] for page in pages],
            "records": [page[:, 6:] for page in pages],
            "pending": [page[:, [0, 2, 3, 4, 5]] if len(page) else np.empty((0, 5)) for page in pages],
        }
        for part, each in parts.items():
            new[f"{number}/{part}"] = np.concatenate([np.empty(0), *(array.ravel() for array in each)])
            sides = [(len(array), array.shape[1] if array.ndim == 2 else 1) for array in each]
            new[f"{number}/{part}/shapes"] = np.array(sides, dtype=np.int64).ravel()
        for part, was in (("stamps", "when"), ("log", "said")):
            new[f"{number}/{part}"], new[f"{number}/{part}/shapes"] = own[was], own[f"{was}/shapes"]
        new[f"{number}/rows"] = own["rows"]
        models.append({**model, "records": model["rounds"], "record": model["round"]})
    return {**header, "options": header["terms"], "models": models}, new


def _rows(stacked: NDArray[np.float64], shapes: NDArray[np.int64]) -> list[NDArray[np.float64]]:
    cuts = [0, *np.cumsum(shapes.reshape(-1, 2).prod(axis=1)).tolist()]
    return [stacked[a:b].copy() for a, b in pairwise(cuts)]
