"""Catalogue of the streams that can be made here; each is made when it is needed."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from research.comparison import series
from research.comparison.recipe_list import RECIPES
from research.comparison.recipes import Recipe
from research.comparison.stream import Stream

STORED = "ORCAST_YARDSTICK"  # folder of stored forecasts: `streams/*.npz` and `short/*.npz`
MOST = 2_000  # rows of a stored stream


@dataclass(frozen=True, eq=False)
class Entry:
    """A stream that can be made, also in another process; `rows` is about its number of rows."""

    name: str
    kind: str
    rows: int
    make: Callable[[], Stream]
    quick: bool = False


def catalogue(data: str | Path | None = None, stored: str | Path | None = None, *, quick: bool = False) -> list[Entry]:
    """Return the streams of installed packages, of the folder ORCAST_DATA and of stored forecasts in ORCAST_YARDSTICK.

    >>> [entry.name for entry in catalogue(quick=True)][:2]
    ['humidity at noon, regression', 'humidity at noon, regression, 1 to 12 ahead']
    """
    found = [
        Entry(each.name, each.kind, each.rows, partial(each.make, data), each.quick)
        for each in RECIPES
        if not _missing(each, data)
    ]
    return [entry for entry in found if entry.quick] if quick else found + _stored(stored)


def left_out(data: str | Path | None = None) -> list[str]:
    """A sentence for each package or folder without which streams are left out."""
    gone: dict[str, list[str]] = {}
    for recipe in RECIPES:
        if where := _missing(recipe, data):
            gone.setdefault(where, []).append(recipe.name)
    return [f"not found: {where}; {len(names)} streams left out ({'; '.join(names)})" for where, names in gone.items()]


def _missing(recipe: Recipe, data: str | Path | None) -> str | None:
    """Package or folder that a recipe needs and that is not here."""
    if not series.available(recipe.series, data):
        shipped = series.SHIPPED.get(recipe.series)
        return "the data folder" if shipped is None else f"the package {shipped.package}"
    needed = sorted(recipe.packages)
    return next((f"the package {name}" for name in needed if series.package_folder(name) is None), None)


# --- stored forecasts ---


def _stored(given: str | Path | None) -> list[Entry]:
    place = given or os.environ.get(STORED)
    if not place:
        return []
    found = []
    for path in sorted(Path(place, "streams").glob("*.npz")):
        with np.load(path) as stored:
            kind = "binary" if "p" in stored else "one-step"
            rows = min(stored["y"].size, MOST)
        found.append(Entry(f"yardstick, {path.stem}", kind, rows, partial(stored_stream, str(path))))
    found += [
        Entry(f"covid, {path.stem}", "weekly-late", MOST, partial(hub_stream, str(path)))
        for path in sorted(Path(place, "short").glob("*.npz"))
    ]
    if not found:
        raise FileNotFoundError(f"expected streams/*.npz or short/*.npz in {str(place)!r}, got none")
    return found


def stored_stream(path: str, most: int | None = MOST) -> Stream:
    """Stream of a file with one-step forecasts: quantiles `q` or probabilities `p`, `y`, `issue`, `reveal`.

    Quantiles are at even levels, 99 of them at 0.01 to 0.99, with bounds `lo` and `hi`.
    """
    with np.load(path) as stored:
        binary = "p" in stored
        kept = slice(0, most)
        expert = np.asarray(stored["p" if binary else "q"][kept], dtype=np.float64)
        return Stream(
            name=f"yardstick, {Path(path).stem}",
            kind="binary" if binary else "one-step",
            levels=np.empty(0) if binary else np.arange(1, expert.shape[1] + 1) / (expert.shape[1] + 1.0),
            experts={"expert": expert},
            y=np.asarray(stored["y"][kept], dtype=np.float64),
            issued=np.asarray(stored["issue"][kept], dtype=np.int64),
            known=np.asarray(stored["reveal"][kept], dtype=np.int64),
            low=0.0 if binary else float(stored["lo"]),
            high=1.0 if binary else float(stored["hi"]),
        )


def hub_stream(path: str, every: int | None = None) -> Stream:
    """Stream of a team's weekly forecasts of COVID-19 deaths, 1 to 4 weeks ahead (by way of MultiQT).

    Step between its places; None chooses it from the largest number of rows.
    """
    with np.load(path, allow_pickle=False) as stored:
        size = np.diff(stored["start"])
        ahead, (_, place) = np.repeat(stored["h"], size).astype(np.int64), np.unique(stored["geo"], return_inverse=True)
        place, known = np.repeat(place, size), stored["day"].astype(np.int64)
        rows = np.flatnonzero(place % (every or -(-known.size // MOST)) == 0)
        rows = rows[np.lexsort((ahead[rows], place[rows], known[rows] - 7 * ahead[rows]))]
        y, q, levels = stored["y"][rows].astype(np.float64), stored["q"][rows].astype(np.float64), stored["levels"]
    low = 0.0 if y.min() >= 0.0 else -np.inf
    return Stream(
        f"covid, {Path(path).stem}", "weekly-late", levels, {"expert": np.maximum(np.sort(q, axis=1), low)}, y,
        known[rows] - 7 * ahead[rows], known[rows], low, np.inf, place[rows], ahead[rows], clock="D",
    )  # fmt: skip
