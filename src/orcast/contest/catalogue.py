"""All streams of the contest that can be made here, by name: each is made when it is asked for."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from orcast.contest import datasets
from orcast.contest.files import forecast_files, read_stream
from orcast.contest.recipe_list import RECIPES
from orcast.contest.recipes import Recipe
from orcast.contest.stream import Stream

YARDSTICK = "ORCAST_YARDSTICK"
"""The environment variable that names a folder with `streams/*.npz` and `short/*.npz`, forecasts made elsewhere."""
MOST = 2_000


@dataclass(frozen=True, eq=False)
class Entry:
    """A stream that can be made; workers can be sent it.  `rows` is about how many there will be."""

    name: str
    kind: str
    source: str
    rows: int
    maker: Callable[[], Stream]
    quick: bool = False

    def make(self) -> Stream:
        """The stream, the same each time."""
        return self.maker()


def catalogue(data: str | Path | None = None, folder: str | Path | None = None, *, quick: bool = False) -> list[Entry]:
    """The streams that can be made here: of installed packages, of the data folder, and of a folder of one's own files.

    `data` is the data folder, by default the one that ORCAST_DATA names.  `folder` has tables of forecasts, CSV or
    Parquet, as `orcast check` reads them; each is a stream.  `quick` takes a few small streams, and one's own.

    >>> [entry.name for entry in catalogue(quick=True)][:2]
    ['humidity at noon, regression', 'humidity at noon, smoothing']
    """
    found = [_entry(recipe, data) for recipe in RECIPES if not _missing(recipe, data)]
    found += _yardstick()
    if quick:
        found = [entry for entry in found if entry.quick]
    return found + own_streams(folder)[0]


def left_out(data: str | Path | None = None) -> list[str]:
    """A sentence for each package or folder without which streams are left out."""
    gone: dict[str, list[str]] = {}
    for recipe in RECIPES:
        if where := _missing(recipe, data):
            gone.setdefault(where, []).append(recipe.name)
    notes = [f"not found, {where}: {len(names)} streams left out ({'; '.join(names)})" for where, names in gone.items()]
    if not os.environ.get(YARDSTICK):
        notes.append(f"not named, the folder {YARDSTICK}: its streams left out")
    return notes


def _missing(recipe: Recipe, data: str | Path | None) -> str | None:
    """The package or folder that a recipe needs and that is not here."""
    if not datasets.available(recipe.series, data):
        shipped = datasets.SHIPPED.get(recipe.series)
        return "the data folder" if shipped is None else f"the package {shipped.package}"
    return next((f"the package {name}" for name in sorted(recipe.packages) if not datasets.installed(name)), None)


def _entry(recipe: Recipe, data: str | Path | None) -> Entry:
    about = datasets.source_of(recipe.series)
    return Entry(recipe.name, recipe.kind, about, recipe.rows, partial(recipe.make, data), recipe.quick)


def own_streams(folder: str | Path | None) -> tuple[list[Entry], list[str]]:
    """The streams in a folder of files, and a sentence for each file that holds none."""
    if folder is None:
        return [], []
    if not Path(folder).is_dir():
        raise FileNotFoundError(f"expected a folder of forecasts, got {str(folder)!r}")
    found, notes = [], []
    for path in forecast_files(Path(folder)):
        name = str(path.relative_to(folder))
        try:
            stream = read_stream(str(path), name)
        except (TypeError, ValueError) as reason:
            notes.append(f"left out, {name}: {reason}")
        else:
            maker = partial(read_stream, str(path), name)
            found.append(Entry(name, stream.kind, stream.source, stream.rows, maker, quick=True))
    return found, notes


# --- forecasts made elsewhere ---


def _yardstick() -> list[Entry]:
    place = os.environ.get(YARDSTICK)
    if not place:
        return []
    found = []
    for path in sorted(Path(place, "streams").glob("*.npz")):
        with np.load(path) as stored:
            kind = "binary" if "p" in stored else "one-step"
            rows, about = min(stored["y"].size, MOST), str(stored["note"])
        found.append(Entry(f"yardstick, {path.stem}", kind, about, rows, partial(stored_stream, str(path))))
    for path in sorted(Path(place, "short").glob("*.npz")):
        about = f"COVID-19 deaths, weekly, forecast by {path.stem} (COVID-19 Forecast Hub, by way of MultiQT)"
        found.append(Entry(f"covid, {path.stem}", "weekly-late", about, MOST, partial(hub_stream, str(path))))
    return found


def stored_stream(path: str) -> Stream:
    """One-step forecasts in a file: quantiles `q` at 99 levels, or probabilities `p`, with `issue` and `reveal`."""
    with np.load(path) as stored:
        binary = "p" in stored
        kept = slice(0, MOST)
        expert = np.asarray(stored["p" if binary else "q"][kept], dtype=np.float64)
        return Stream(
            name=f"yardstick, {Path(path).stem}",
            kind="binary" if binary else "one-step",
            source=str(stored["note"]),
            knew="outcomes before, as its makers say",
            levels=np.empty(0) if binary else np.arange(1, expert.shape[1] + 1) / (expert.shape[1] + 1.0),
            experts={"expert": expert},
            y=np.asarray(stored["y"][kept], dtype=np.float64),
            issued=np.asarray(stored["issue"][kept], dtype=np.int64),
            settled=np.asarray(stored["reveal"][kept], dtype=np.int64),
            low=0.0 if binary else float(stored["lo"]),
            high=1.0 if binary else float(stored["hi"]),
        )


def hub_stream(path: str) -> Stream:
    """Weekly forecasts 1 to 4 weeks ahead of as many places, evenly spread, as there is room for."""
    with np.load(path) as stored:
        start, ahead, places = stored["start"], stored["h"], stored["geo"]
        y, q, day, levels = (stored[name] for name in ("y", "q", "day", "levels"))
    names = np.unique(places)
    chosen = names[np.linspace(0, names.size - 1, max(MOST * names.size // y.size, 1)).astype(int)]
    which = np.flatnonzero(np.isin(places, chosen))
    rows = np.concatenate([np.arange(start[i], start[i + 1]) for i in which])
    of = np.repeat(which, [start[i + 1] - start[i] for i in which])
    horizon, settled = ahead[of].astype(np.int64), day[rows].astype(np.int64)
    issued, series = settled - 7 * horizon, np.searchsorted(names, places[of])
    order = np.lexsort((horizon, series, issued))
    rows = rows[order]
    outcomes = y[rows].astype(np.float64)
    low = 0.0 if outcomes.min() >= 0.0 else -np.inf
    return Stream(
        name=f"covid, {Path(path).stem}",
        kind="weekly-late",
        source="COVID-19 Forecast Hub, by way of MultiQT",
        knew="deaths reported up to the day of issue, as its makers say",
        levels=levels,
        experts={Path(path).stem: np.maximum(q[rows].astype(np.float64), low)},
        y=outcomes,
        issued=issued[order],
        settled=settled[order],
        low=low,
        series=series[order].astype(np.int64),
        horizon=horizon[order],
    )
