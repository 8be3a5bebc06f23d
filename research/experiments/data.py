"""Series of the experiments: wind and sunspots from a data folder, or the shipped series in their place."""

import csv
import os
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from orcast import datasets
from orcast.datasets import Series, Vector

VARIABLE = "ORCAST_DATA"
"""Environment variable that names the data folder."""

STAND_INS = {"wind": "wind-haute-borne", "sunspots": "sunspots-zurich"}
"""Series with a stand-in among the shipped ones, and the name of the stand-in."""


# --- readers ---


def _read_csv(path: Path, column: str) -> Vector:
    with path.open(encoding="utf-8-sig", newline="") as lines:
        return np.array([float(row[column]) for row in csv.DictReader(lines)])


# --- series ---


@dataclass(frozen=True)
class _Folder:
    """A series in a CSV file of the data folder."""

    file: str
    column: str
    low: float
    high: float
    period: int
    unit: str
    source: str
    steps: int | None


_FOLDER = {
    "wind": _Folder(
        "wind_ercot_2022_hourly.csv", "wind_mwh",
        0.0, 36_000.0, 24, "MW", "ERCOT, Interval Generation by Fuel, 2022, summed by the hour", 3000,
    ),
    "sunspots": _Folder(
        "sunspot_silso_v2_monthly.csv", "sunspot_number",
        0.0, 500.0, 132, "monthly mean number", "WDC-SILSO, Royal Observatory of Belgium, Brussels, version 2.0", None,
    ),
}  # fmt: skip

NAMES = (*_FOLDER, "humidity")
"""Names of the series."""


def available(folder: str | Path | None = None) -> tuple[str, ...]:
    """Names that `load` can read: those found in the data folder, and "humidity"."""
    return (*(name for name in _FOLDER if _found(name, _place(folder)) is not None), "humidity")


def load(name: str, folder: str | Path | None = None) -> Series:
    """Load "wind" or "sunspots" from the data folder (default: $ORCAST_DATA), or the shipped "humidity".

    The folder has `wind_ercot_2022_hourly.csv` and `sunspot_silso_v2_monthly.csv`; see orcast/data/SOURCES.md.
    """
    if name not in NAMES:
        raise ValueError(f"expected one of {', '.join(NAMES)}, got {name!r}")
    if name not in _FOLDER:
        return datasets.load(name)
    of, place = _FOLDER[name], _place(folder)
    if place is None:
        raise FileNotFoundError(f"expected a folder with {of.file}, as argument or in {VARIABLE}, got neither")
    path = _found(name, place)
    if path is None:
        raise FileNotFoundError(f"expected {of.file} in the data folder, got {str(place)!r} without it")
    values = _read_csv(path, of.column)
    if values.size == 0 or not np.all((values >= of.low) & (values <= of.high)):
        raise ValueError(f"expected values between {of.low:g} and {of.high:g} in {path.name}, got others or none")
    return Series(name, values, of.low, of.high, of.period, of.unit, of.source, of.steps)


def stand_in(name: str) -> Series:
    """Load the shipped series that stands in for "wind" or "sunspots", under its own name."""
    return replace(datasets.load(name), name=STAND_INS[name])


def best(name: str, folder: str | Path | None = None) -> Series:
    """Load the series itself if it is in the data folder, else its stand-in."""
    if name in STAND_INS:
        place = _place(folder)
        if place is not None and not place.is_dir():
            raise FileNotFoundError(f"expected a folder, as argument or in {VARIABLE}, got {str(place)!r}")
        if _found(name, place) is None:
            return stand_in(name)
    return load(name, folder)


def _place(folder: str | Path | None) -> Path | None:
    path = folder if folder is not None else os.environ.get(VARIABLE)
    return Path(path) if path else None


def _found(name: str, place: Path | None) -> Path | None:
    path = None if place is None else place / _FOLDER[name].file
    return path if path is not None and path.is_file() else None
