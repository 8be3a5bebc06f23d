"""Series of the experiments: wind and sunspots from a data folder, or the shipped series in their place."""

import csv
import os
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, time
from itertools import pairwise
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from orcast import datasets
from orcast.datasets import EXPERTS, ForecastStream, Series, Vector, stream
from research.output import optional, require

VARIABLE = "ORCAST_DATA"
"""Environment variable that names the data folder."""

STAND_INS = {"wind": "wind-haute-borne", "sunspots": "sunspots-zurich"}
"""Series with a stand-in among the shipped ones, and the name of the stand-in."""


# --- readers ---


def _read_csv(path: Path, column: str) -> Vector:
    with path.open(encoding="utf-8-sig", newline="") as lines:
        rows = csv.DictReader(lines)
        if column not in (rows.fieldnames or ()):
            found = ", ".join(rows.fieldnames or ["none"])
            raise ValueError(f"expected a column {column} in {path.name}, got {found}")
        try:
            return np.array([float(row[column]) for row in rows])
        except (TypeError, ValueError):
            raise ValueError(f"expected a number in every row of {path.name}, got something else") from None


def _read_silso(path: Path) -> Vector:
    """Monthly means of SILSO's file: year; month; date; mean; ...; a mean of -1 is missing."""
    months: list[int] = []
    values: list[float] = []
    with path.open(encoding="utf-8-sig", newline="") as lines:
        for row in filter(None, csv.reader(lines, delimiter=";")):
            try:
                month, value = 12 * int(row[0]) + int(row[1]) - 1, float(row[3])
            except (IndexError, ValueError):
                raise ValueError(f"expected year;month;date;mean in {path.name}, got {';'.join(row)[:60]!r}") from None
            if value >= 0.0:
                months.append(month)
                values.append(value)
    for before, after in pairwise(months):
        if after != before + 1:
            raise ValueError(
                f"expected every month in {path.name}, got a gap after {before // 12}-{before % 12 + 1:02d}"
            )
    return np.array(values)


def _read_ercot(path: Path) -> Vector:
    """Hourly sums of wind in ERCOT's workbook: a sheet a month, a row a day and fuel, MWh by quarter hour.

    Columns are named after the time at which a quarter hour ends, "0:15" to "0:00". The hour that is left out in
    spring has empty cells; the one that comes twice in autumn has columns "01:15 (DST)" to "02:00 (DST)".
    """
    require("openpyxl")
    pandas = optional("pandas")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # on styles
            sheets = pandas.read_excel(path, sheet_name=None, engine="openpyxl")
    except (BadZipFile, KeyError, ValueError):
        raise ValueError(f"expected an Excel workbook in {path.name}, got something else") from None
    days: dict[Any, Vector] = {}
    for sheet in sheets.values():
        quarters = sorted((at, name) for name in sheet if (at := _ending(name)) is not None)
        if not {"Date", "Fuel"} <= set(sheet) or len(quarters) < 96:
            continue
        if "Settlement Type" in sheet:
            sheet = sheet.sort_values("Settlement Type", kind="stable")  # "FINAL" before "INITIAL"
        for _, row in sheet[sheet["Fuel"].astype(str).str.strip() == "Wind"].iterrows():
            values = row[[name for _, name in quarters]].to_numpy(dtype=np.float64)
            days.setdefault(pandas.Timestamp(row["Date"]).date(), values[~np.isnan(values)])
    values = np.concatenate([days[day] for day in sorted(days)]) if days else np.empty(0)
    if len(days) != 365 or values.size != 4 * 8760:
        raise ValueError(
            f"expected 35,040 quarter hours of wind on 365 days in {path.name}, got {values.size:,} on {len(days)}"
        )
    hours: Vector = values.reshape(-1, 4).sum(axis=1)
    return hours


def _ending(name: object) -> float | None:
    """Minute of the day at which a quarter hour ends; of repeated ones, a place between 120 and 135."""
    if isinstance(name, (time, datetime)):
        return float(60 * name.hour + name.minute or 1440)
    hour, _, rest = str(name).strip().partition(":")
    if not (hour.isdigit() and rest[:2].isdigit()):
        return None
    minute = 60 * int(hour) + int(rest[:2]) or 1440
    return 120.0 + minute / 100.0 if "DST" in rest.upper() else float(minute)


# --- series ---


@dataclass(frozen=True)
class _Folder:
    """A series in a data folder: as a CSV file with a column, or in the file of its publisher."""

    file: str
    column: str
    original: str
    reader: Callable[[Path], Vector]
    low: float
    high: float
    period: int
    unit: str
    source: str
    steps: int | None


_FOLDER = {
    "wind": _Folder(
        "wind_ercot_2022_hourly.csv", "wind_mwh", "IntGenbyFuel2022.xlsx", _read_ercot,
        0.0, 36_000.0, 24, "MW", "ERCOT, Interval Generation by Fuel, 2022, summed by the hour", 3000,
    ),
    "sunspots": _Folder(
        "sunspot_silso_v2_monthly.csv", "sunspot_number", "SN_m_tot_V2.0.csv", _read_silso,
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

    The folder has CSV files (`wind_ercot_2022_hourly.csv`, `sunspot_silso_v2_monthly.csv`) or what the publishers
    offer: ERCOT's workbook IntGenbyFuel2022.xlsx, SILSO's SN_m_tot_V2.0.csv.
    """
    if name not in NAMES:
        raise ValueError(f"expected one of {', '.join(NAMES)}, got {name!r}")
    if name not in _FOLDER:
        return datasets.load(name)
    of, place = _FOLDER[name], _place(folder)
    files = f"{of.file} or {of.original}"
    if place is None:
        raise FileNotFoundError(f"expected a folder with {files}, as argument or in {VARIABLE}, got neither")
    path = _found(name, place)
    if path is None:
        raise FileNotFoundError(f"expected {files} in the data folder, got {str(place)!r} without it")
    try:
        values = _read_csv(path, of.column) if path.name == of.file else of.reader(path)
    except UnicodeDecodeError:
        raise ValueError(f"expected text in {path.name}, got something else") from None
    if values.size == 0 or not np.all((values >= of.low) & (values <= of.high)):
        raise ValueError(f"expected values between {of.low:g} and {of.high:g} in {path.name}, got others or none")
    return Series(name, values, of.low, of.high, of.period, of.unit, of.source, of.steps)


def stand_in(name: str) -> Series:
    """Load the shipped series that stands in for "wind" or "sunspots", under its own name."""
    if name not in STAND_INS:
        raise ValueError(f"expected one of {', '.join(STAND_INS)}, got {name!r}")
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


def table_streams(folder: str | Path | None = None) -> Iterator[ForecastStream]:
    """Wind and sunspots of the data folder, each with both experts."""
    return (stream(load(name, folder), expert) for name in _FOLDER for expert in EXPERTS)


def _place(folder: str | Path | None) -> Path | None:
    path = folder if folder is not None else os.environ.get(VARIABLE)
    return Path(path) if path else None


def _found(name: str, place: Path | None) -> Path | None:
    """File of a series in the folder, the CSV first."""
    paths = [] if place is None else [place / _FOLDER[name].file, place / _FOLDER[name].original]
    return next((path for path in paths if path.is_file()), None)
