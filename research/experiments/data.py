"""Series of the experiments: wind and sunspots from a data folder, or the shipped series in their place."""

import csv
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from orcast import datasets
from orcast.datasets import Series

VARIABLE = "ORCAST_DATA"
"""Environment variable that names the data folder."""

# File and column of the data folder, and the rest of the series.
_FOLDER: dict[str, tuple[str, str, tuple[Any, ...]]] = {
    "wind": (
        "wind_ercot_2022_hourly.csv", "wind_mwh",
        (0.0, 36_000.0, 24, "MW", "ERCOT, Interval Generation by Fuel, 2022, summed by the hour", 3000),
    ),
    "sunspots": (
        "sunspot_silso_v2_monthly.csv", "sunspot_number",
        (0.0, 500.0, 132, "monthly mean number", "WDC-SILSO, Royal Observatory of Belgium, Brussels, version 2.0",
         None),
    ),
}  # fmt: skip
STAND_INS = {"wind": "wind-haute-borne", "sunspots": "sunspots-zurich"}
NAMES = (*_FOLDER, "humidity")


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
    (file, column, (low, high, *rest)), place = _FOLDER[name], _place(folder)
    if place is None:
        raise FileNotFoundError(f"expected a folder with {file}, as argument or in {VARIABLE}, got neither")
    path = _found(name, place)
    if path is None:
        raise FileNotFoundError(f"expected {file} in the data folder, got {str(place)!r} without it")
    with path.open(encoding="utf-8-sig", newline="") as lines:
        values = np.array([float(row[column]) for row in csv.DictReader(lines)])
    if values.size == 0 or not np.all((values >= low) & (values <= high)):
        raise ValueError(f"expected values between {low:g} and {high:g} in {path.name}, got others or none")
    return Series(name, values, low, high, *rest)


def stand_in(name: str) -> Series:
    """Load the shipped series that stands in for "wind" or "sunspots", under its own name."""
    return replace(datasets.load(name), name=STAND_INS[name])


def best(name: str, folder: str | Path | None = None) -> Series:
    """Load the series itself if it is in the data folder, else its stand-in."""
    place = _place(folder)
    if name in STAND_INS and place is not None and not place.is_dir():
        raise FileNotFoundError(f"expected a folder, as argument or in {VARIABLE}, got {str(place)!r}")
    return stand_in(name) if name in STAND_INS and _found(name, place) is None else load(name, folder)


def _place(folder: str | Path | None) -> Path | None:
    path = folder if folder is not None else os.environ.get(VARIABLE)
    return Path(path) if path else None


def _found(name: str, place: Path | None) -> Path | None:
    path = None if place is None else place / _FOLDER[name][0]
    return path if path is not None and path.is_file() else None
