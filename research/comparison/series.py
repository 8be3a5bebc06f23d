"""Real series: shipped with orcast, in the data folder, and in files of installed packages, which are not imported."""

from __future__ import annotations

import csv
import gzip
import io
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from orcast import datasets
from research.comparison.stream import Array
from research.experiments import data as folder

Table = dict[str, list[str]]
Reader = Callable[[Path], tuple[Array, Array | None]]


@dataclass(frozen=True, eq=False)
class Series:
    """A series, or a panel with a series in each row.

    `period` is the season in steps, 1 without one.  `x` are features of each value, known before it.  Values lie
    between `low` and `high`.
    """

    name: str
    values: Array
    period: int = 1
    low: float = -np.inf
    high: float = np.inf
    x: Array | None = None


@dataclass(frozen=True)
class Shipped:
    """A series in a file of a package; `read` returns values and features, `about` says what it is."""

    package: str
    file: str
    read: Reader
    about: str
    period: int = 1
    low: float = -np.inf
    high: float = np.inf

    @property
    def path(self) -> Path | None:
        """Path of the file; None if it is not there."""
        place = package_folder(self.package)
        return place / self.file if place is not None and (place / self.file).is_file() else None


def available(name: str, data: str | Path | None = None) -> bool:
    """Return True if `load` can read a series here."""
    if name in SHIPPED:
        return SHIPPED[name].path is not None
    return name in OWN or name in folder.available(data)


def load(name: str, data: str | Path | None = None) -> Series:
    """Load a series by name; `data` is the data folder, by default that of ORCAST_DATA.

    >>> load("humidity").values.shape, load("humidity").period
    ((8706,), 24)
    """
    if name in SHIPPED:
        shipped = SHIPPED[name]
        if shipped.path is None:
            raise FileNotFoundError(f"expected {shipped.file} in the package {shipped.package}, got none for {name!r}")
        values, x = shipped.read(shipped.path)
        return Series(name, values, shipped.period, shipped.low, shipped.high, x)
    found = datasets.load(OWN[name]) if name in OWN else folder.load(name, data)
    return Series(name, found.values, found.period, found.low, found.high)


@cache
def package_folder(package: str) -> Path | None:
    """Folder of an installed package, without importing it."""
    try:
        spec = find_spec(package)
    except (ImportError, ValueError):
        return None
    return None if spec is None or not spec.submodule_search_locations else Path(spec.submodule_search_locations[0])


# --- reading ---


def _text(path: Path) -> str:
    if path.suffix == ".gz":
        return gzip.decompress(path.read_bytes()).decode("utf-8-sig")
    if path.suffix == ".zip":
        with zipfile.ZipFile(path) as archive:
            return archive.read(archive.namelist()[0]).decode("utf-8-sig")
    return path.read_text(encoding="utf-8-sig")


def _table(path: Path, separator: str = ",") -> Table:
    """Columns of a table with a header; lines that begin with # are left out."""
    lines = (line for line in io.StringIO(_text(path)) if not line.startswith("#"))
    names, *rows = csv.reader(lines, delimiter=separator, skipinitialspace=True)
    rows = [row for row in rows if row]
    return {name.strip("'"): [row[k] for row in rows] for k, name in enumerate(names)}


def _numbers(texts: list[str]) -> Array:
    """Numbers; a missing one is the last before it."""
    values = np.array([float(text) if text.strip() else np.nan for text in texts])
    there = np.maximum.accumulate(np.where(np.isnan(values), 0, np.arange(values.size)))
    return values[there]


def _matrix(table: Table, columns: list[str]) -> Array:
    return np.stack([_numbers(table[name]) for name in columns], axis=1)


def column(name: str | int, separator: str = ",", unit: float = 1.0) -> Reader:
    """Read one column, by name or place, times a unit."""

    def read(path: Path) -> tuple[Array, None]:
        table = _table(path, separator)
        return _numbers(table[name if isinstance(name, str) else list(table)[name]]) * unit, None

    return read


def columns(*names: str, growth: bool = False) -> Reader:
    """Read a panel of columns, or of their growth in percent a step."""

    def read(path: Path) -> tuple[Array, None]:
        values = _matrix(_table(path), list(names)).T
        return 100.0 * np.diff(np.log(values), axis=1) if growth else values, None

    return read


def pairs(outcome: str, *left: str, separator: str = ",", above: float | None = None) -> Reader:
    """Read a column with all others but `left` as features; with `above`, 1 where it is above that number.

    Of text, there is a feature for each word but the last.
    """

    def read(path: Path) -> tuple[Array, Array]:
        table = _table(path, separator)
        y, x = _numbers(table[outcome]), _features(table, {outcome, *left})
        y = y if above is None else (y > above).astype(np.float64)
        return y, x

    return read


def _features(table: Table, left: set[str]) -> Array:
    found: list[Array] = []
    for name, texts in table.items():
        if name in left:
            continue
        try:
            found.append(_numbers(texts))
        except ValueError:
            words = sorted(set(texts))
            found += [np.array([text == word for text in texts]) * 1.0 for word in words[:-1]]
    return np.stack(found, axis=1)


def _elnino(path: Path) -> tuple[Array, None]:
    table = _table(path)
    return _matrix(table, list(table)[1:]).ravel(), None


def _fertility(path: Path) -> tuple[Array, None]:
    """Every fifth of the countries without a gap from 1960 to 2011."""
    table = _table(path)
    rows = np.array([table[str(year)] for year in range(1960, 2012)]).T
    return np.asarray(rows[(rows != "").all(axis=1)][::5], dtype=np.float64), None


def _firms(path: Path) -> tuple[Array, None]:
    table = _table(path)
    invest, firms = _numbers(table["invest"]), np.array(table["firm"])
    return np.stack([invest[firms == firm] for firm in dict.fromkeys(table["firm"])]), None


def _chicks(path: Path) -> tuple[Array, None]:
    """Chicks that were weighed all 12 times."""
    table = _table(path)
    weight, chick = _numbers(table["weight"]), _numbers(table["chick"])
    each = [weight[chick == one] for one in np.unique(chick)]
    return np.stack([rows for rows in each if rows.size == 12]), None


def _stocks(path: Path) -> tuple[Array, None]:
    """Monthly returns in percent of titles listed from the first month on."""
    table = _table(path)
    first = [day.endswith("-01") for day in table["Date"]]
    names = [name for name, texts in table.items() if name != "Date" and texts[0]]
    prices = _matrix(table, names)[first].T
    return 100.0 * np.diff(np.log(prices), axis=1), None


# --- tables of series ---

OWN = {"humidity": "humidity", "wind-haute-borne": "wind", "sunspots-zurich": "sunspots"}
"""Series shipped with orcast: by name, their name in `orcast.datasets`."""

_SM, _RIVER, _DRIFT = "datasets/{0}/{0}.csv", "datasets/{}", "drift/datasets/{}.csv"
_SKT = "datasets/data/{0}/{0}.csv"

SHIPPED: dict[str, Shipped] = {
    # statsmodels
    "co2": Shipped("statsmodels", _SM.format("co2"), column("co2"), "CO2 at Mauna Loa, weekly, ppm", 52, 0.0),
    "elnino": Shipped("statsmodels", _SM.format("elnino"), _elnino, "Sea surface temperature of El Nino, monthly", 12),
    "nile": Shipped("statsmodels", _SM.format("nile"), column("volume"), "Flow of the Nile, yearly", 1, 0.0),
    "sunspots-yearly": Shipped(
        "statsmodels", _SM.format("sunspots"), column("SUNACTIVITY"), "Sunspot numbers, yearly from 1700", 11, 0.0
    ),
    "elec-equip": Shipped(
        "statsmodels", _SM.format("elec_equip"), column(1), "Turnover of electrical equipment, euro area, monthly", 12
    ),
    "us-inflation": Shipped("statsmodels", _SM.format("macrodata"), column("infl"), "Inflation, USA, quarterly"),
    "us-unemployment": Shipped(
        "statsmodels", _SM.format("macrodata"), column("unemp"), "Unemployment, USA, quarterly", 1, 0.0, 100.0
    ),
    "us-growth": Shipped(
        "statsmodels", _SM.format("macrodata"),
        columns("realgdp", "realcons", "realinv", "realgovt", "realdpi", "cpi", "m1", growth=True),
        "Growth of seven figures of the USA, quarterly, %",
    ),
    "german-inflation": Shipped(
        "statsmodels", "datasets/interest_inflation/E6.csv", column("Dp"), "Inflation, Germany, quarterly", 4
    ),
    "fertility": Shipped(
        "statsmodels", _SM.format("fertility"), _fertility, "Births a woman by country, yearly", 1, 0.0
    ),
    "investment": Shipped("statsmodels", _SM.format("grunfeld"), _firms, "Investment of 11 firms, yearly", 1, 0.0),
    # river
    "water-flow": Shipped(
        "river", _RIVER.format("water-flow.csv"), column(1), "Flow of water in a district, hourly, l/s", 24, 0.0
    ),
    "approval": Shipped(
        "river", _RIVER.format("trump_approval.csv.gz"),
        pairs("five_thirty_eight", "ordinal_date"),
        "Approval of a president, daily, with five polls", 1, 0.0, 100.0,
    ),
    "sp500": Shipped(
        "river", _RIVER.format("sp500.csv.gz"), pairs("next_day_return", "date"),
        "Return of the S&P 500, daily, with those of ten titles the day before",
    ),
    "chicks": Shipped("river", _RIVER.format("chick-weights.csv"), _chicks, "Weight of chicks in 12 weighings", 1, 0.0),
    "flights": Shipped(
        "river", _DRIFT.format("airline_passengers"), column(1, unit=1e-3), "Passengers, monthly, thousands", 12, 0.0
    ),
    "apple-volume": Shipped(
        "river", _DRIFT.format("apple"), column("Volume", unit=1e-6), "Shares of Apple traded, daily, millions", 5, 0
    ),
    "bitcoin": Shipped("river", _DRIFT.format("bitcoin"), column("price"), "Price of a bitcoin", 1, 0.0),
    "brent": Shipped("river", _DRIFT.format("brent_crude_oil"), column("DPB"), "Price of Brent oil, daily", 1, 0.0),
    "office": Shipped("river", _DRIFT.format("occupancy"), column("V1"), "Temperature of an office, by 16 minutes"),
    "running": Shipped("river", _DRIFT.format("run_log"), column("Pace"), "Pace of a runner, by 5 seconds", 1, 0.0),
    "coal": Shipped(
        "river", _DRIFT.format("uk_coal_employment"), column("Employment", unit=1e-3),
        "Employment in British coal mines, yearly, thousands", 1, 0.0,
    ),
    "phishing": Shipped(
        "river", _RIVER.format("phishing.csv.gz"), pairs("is_phishing"),
        "Phishing pages, file order",
    ),
    "shuttle": Shipped(
        "river", _RIVER.format("shuttle.csv.gz"), pairs("anomaly"),
        "Anomalies of a space shuttle, file order",
    ),
    "flares": Shipped(
        "river", _RIVER.format("solar-flare.csv.zip"),
        pairs("c-class-flares", "m-class-flares", "x-class-flares", above=0.0),
        "Any solar flare of class C in 24 hours, file order",
    ),
    # sktime
    "airline": Shipped("sktime", _SKT.format("Airline"), column(1), "Airline passengers, monthly, thousands", 12, 0.0),
    "lynx": Shipped("sktime", _SKT.format("Lynx"), column(1), "Lynx trapped in Canada, yearly", 10, 0.0),
    "shampoo": Shipped("sktime", _SKT.format("ShampooSales"), column("Sales"), "Sales of shampoo, monthly", 1, 0.0),
    "scripts": Shipped("sktime", _SKT.format("PBS_dataset"), column("Scripts"), "Prescriptions, monthly", 12, 0.0),
    "us-change": Shipped(
        "sktime", _SKT.format("Uschange"),
        columns("Consumption", "Income", "Production", "Savings", "Unemployment"),
        "Change of five figures of the USA, quarterly, %",
    ),
    "solar": Shipped("sktime", _SKT.format("solar"), column("solar_gen"), "Solar power, GB, by half hour", 48, 0.0),
    "heart": Shipped("sktime", _SKT.format("mitdb"), column("data"), "Electrocardiogram (MIT-BIH)"),
    "yahoo": Shipped("sktime", _SKT.format("yahoo"), column("data"), "Traffic of a server (Yahoo), hourly", 24),
    "seatbelts": Shipped(
        "sktime", _SKT.format("seatbelts"), column("KSI"), "Killed or hurt on British roads, monthly", 12, 0.0
    ),
    # matplotlib
    "stocks": Shipped(
        "matplotlib", "mpl-data/sample_data/Stocks.csv", _stocks, "Monthly returns of seven titles and indices, %"
    ),
}  # fmt: skip
