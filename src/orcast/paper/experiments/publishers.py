"""Series in the files that their publishers offer: SILSO's text, ERCOT's workbook."""

import csv
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]


def needed(module: str, what: str) -> Any:
    """A module of the extra orcast[research], imported when it is used.

    Examples:
        >>> needed("no_such_module", "a test")
        Traceback (most recent call last):
        ImportError: expected the extra orcast[research] for a test (pip install 'orcast[research]'),
        got no no_such_module
    """
    try:
        return import_module(module)
    except ImportError:
        raise ImportError(
            f"expected the extra orcast[research] for {what} (pip install 'orcast[research]'), "
            f"got no {module.partition('.')[0]}"
        ) from None


# --- SILSO's file ---


def read_silso(path: Path) -> Vector:
    """Year; month; date; monthly mean; deviation; observations; provisional or not; a mean of -1 is missing."""
    values: list[float] = []
    months: list[int] = []
    with path.open(encoding="utf-8-sig", newline="") as lines:
        for row in csv.reader(lines, delimiter=";"):
            if not any(cell.strip() for cell in row):
                continue
            try:
                year, month, value = int(row[0]), int(row[1]), float(row[3])
            except (IndexError, ValueError):
                raise ValueError(
                    f"expected a year, a month, a date and a mean between semicolons in {path.name}, "
                    f"got {';'.join(row)[:60]!r}"
                ) from None
            if value >= 0.0:
                values.append(value)
                months.append(12 * year + month - 1)
    for before, after in pairwise(months):
        if after != before + 1:
            raise ValueError(
                f"expected every month in {path.name}, got {after // 12}-{after % 12 + 1:02d} "
                f"after {before // 12}-{before % 12 + 1:02d}"
            )
    return np.array(values)


# --- ERCOT's workbook ---

YEAR = 2022
DAY, QUARTER = 1440, 15
MONTH = re.compile(
    r"(jan(uary)?|feb(ruary)?|mar(ch)?|apr(il)?|may|june?|july?|aug(ust)?"
    r"|sept?(ember)?|oct(ober)?|nov(ember)?|dec(ember)?)\W*\d*",
    re.IGNORECASE,
)
# Quarter hours by the minute of the day at which they end: those that the clock skips in spring, and those that it
# repeats in autumn.
SKIPPED, REPEATED = (135, 150, 165, 180), (75, 90, 105, 120)
ENDING = re.compile(r"(\d{1,2}):(\d{2})(?::00)?\s*(\(?\s*dst\s*\)?)?", re.IGNORECASE)


@dataclass(frozen=True)
class _Header:
    """Where things are in a sheet: columns by what they hold, quarter hours by the minute at which they end."""

    day: int
    fuel: int
    settlement: int | None
    quarters: dict[int, int]
    repeated: dict[int, int]


class _Row(NamedTuple):
    """A day of wind: what kind of settlement it is of, and its quarter hours as they came."""

    day: date
    settlement: str
    quarters: Vector


def read_ercot(path: Path) -> Vector:
    """A sheet a month, a row a day and fuel, a column for each quarter hour in MWh: wind, summed by the hour.

    The columns bear the time at which their quarter hour ends, "0:15" to "0:00". The cells of the hour that is left out
    in spring are empty; the hour that comes twice in autumn has four more columns, "01:15 (DST)" to "02:00 (DST)".
    """
    days: dict[date, _Row] = {}
    for row in _wind(path):
        if row.day.year != YEAR:
            raise ValueError(f"expected days of {YEAR} in {path.name}, got {row.day}")
        known = days.setdefault(row.day, row)
        if known is not row and known.settlement == row.settlement:
            raise ValueError(f"expected one row of wind a day in {path.name}, got two for {row.day}")
        if row.settlement == "final":
            days[row.day] = row
    first = date(YEAR, 1, 1)
    year = [first + timedelta(days=k) for k in range((date(YEAR + 1, 1, 1) - first).days)]
    missing = [day for day in year if day not in days]
    if missing:
        raise ValueError(
            f"expected wind on the {len(year)} days of {YEAR} in {path.name}, got {len(days)}, none on {missing[0]}"
        )
    total: Vector = np.concatenate([days[day].quarters for day in year]).reshape(-1, 4).sum(axis=1)
    return total


def _wind(path: Path) -> list[_Row]:
    openpyxl = needed("openpyxl", f"reading {path.name}")
    with path.open("rb") as file:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # on styles
                book = openpyxl.load_workbook(file, read_only=True, data_only=True)
        except (BadZipFile, KeyError, ValueError):
            raise ValueError(f"expected an Excel workbook in {path.name}, got something else") from None
        sheets = [sheet for sheet in book.worksheets if MONTH.fullmatch(sheet.title.strip())]
        if not sheets:
            found = ", ".join(book.sheetnames) or "none"
            raise ValueError(f"expected a sheet for each month in {path.name}, got {found}")
        return [
            row
            for sheet in sheets
            for row in _month(sheet.iter_rows(values_only=True), f"{sheet.title} of {path.name}")
        ]


def _month(rows: Iterable[Sequence[Any]], where: str) -> Iterator[_Row]:
    header: _Header | None = None
    for row in rows:
        if header is None:
            header = _header(row)
        elif _text(row, header.fuel) == "wind":
            day = _day(row[header.day], where)
            yield _Row(day, _text(row, header.settlement), _quarters(day, row, header, where))
    if header is None:
        raise ValueError(f"expected columns Date, Fuel and the 96 quarter hours in {where}, got others")


def _text(row: Sequence[Any], column: int | None) -> str:
    return "" if column is None or column >= len(row) else str(row[column]).strip().lower()


def _header(row: Sequence[Any]) -> _Header | None:
    """The columns that a row names, if it is the header: with a date, a fuel and all quarter hours."""
    names: dict[str, int] = {}
    quarters: dict[int, int] = {}
    repeated: dict[int, int] = {}
    for at, cell in enumerate(row):
        ending = _ending(cell)
        if ending is None:
            names.setdefault(str(cell).strip().lower(), at)
        else:
            (repeated if ending[1] else quarters).setdefault(ending[0], at)
    day = names.get("date")
    fuel = names.get("fuel", names.get("fuel type"))
    if day is None or fuel is None or sorted(quarters) != list(range(QUARTER, DAY + 1, QUARTER)):
        return None
    return _Header(day, fuel, names.get("settlement type"), quarters, repeated)


def _ending(cell: object) -> tuple[int, bool] | None:
    """The minute of the day at which a quarter hour ends, and whether the clock has been there before."""
    repeated = False
    if isinstance(cell, (time, datetime)):
        minute = 60 * cell.hour + cell.minute
    elif isinstance(cell, timedelta):
        minute = round(cell.total_seconds() / 60)
    elif isinstance(cell, (int, float)) and 0.0 <= cell <= 1.0:  # a part of the day, as Excel keeps times
        minute = round(DAY * cell)
    elif isinstance(cell, str) and (found := ENDING.fullmatch(cell.strip())):
        minute = 60 * int(found[1]) + int(found[2])
        repeated = found[3] is not None
    else:
        return None
    return (minute or DAY), repeated


def _day(cell: object, where: str) -> date:
    if isinstance(cell, datetime):
        return cell.date()
    if isinstance(cell, date):
        return cell
    for form in ("%m/%d/%Y", "%Y-%m-%d", "%m/%d/%y"):
        try:
            return datetime.strptime(str(cell).strip(), form).date()
        except ValueError:
            continue
    raise ValueError(f"expected a date in every row of {where}, got {cell!r}")


def _quarters(day: date, row: Sequence[Any], header: _Header, where: str) -> Vector:
    columns = [header.quarters[ending] for ending in sorted(header.quarters)]
    if day == _sunday(3, 2):
        if any(_number(row, header.quarters[ending]) > 0.0 for ending in SKIPPED):
            raise ValueError(f"expected no wind from 2 to 3 on {day} in {where}, got some")
        columns = [column for column in columns if column not in {header.quarters[ending] for ending in SKIPPED}]
    elif day == _sunday(11, 1):
        if not all(ending in header.repeated for ending in REPEATED):
            raise ValueError(f"expected columns 01:15 (DST) to 02:00 (DST) in {where}, got none")
        after = columns.index(header.quarters[REPEATED[-1]]) + 1
        columns[after:after] = [header.repeated[ending] for ending in REPEATED]
    values = np.array([_number(row, column) for column in columns])
    if np.isnan(values).any():
        raise ValueError(f"expected a number for every quarter hour of {day} in {where}, got something else")
    return values


def _number(row: Sequence[Any], column: int) -> float:
    try:
        return float(row[column])
    except (IndexError, TypeError, ValueError):
        return float("nan")


def _sunday(month: int, which: int) -> date:
    """The Sunday on which the clocks change in the United States: the second of March, the first of November."""
    first = date(YEAR, month, 1)
    return first + timedelta(days=(6 - first.weekday()) % 7 + 7 * (which - 1))
