"""Real series: shipped with orcast, in the data folder, and in files of installed packages, which are not imported."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from orcast import datasets
from research.comparison.stream import Array
from research.experiments import data as folder
from research.output import optional

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
    """A series in a file of a package; `read` returns values and features."""

    package: str
    file: str
    read: Reader
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


def _table(path: Path) -> Any:
    """Table with a header; a missing number is the last before it, and lines that begin with # are left out."""
    read = optional("pandas").read_csv
    table = read(path, comment="#", skipinitialspace=True, float_precision="round_trip").ffill()
    return table.rename(columns=lambda name: name.strip("'"))


def _numbers(values: Any) -> Array:
    return np.asarray(values, dtype=np.float64)


def column(name: str | int, unit: float = 1.0) -> Reader:
    """Read one column, by name or place, times a unit."""

    def read(path: Path) -> tuple[Array, None]:
        table = _table(path)
        return _numbers(table[name] if isinstance(name, str) else table.iloc[:, name]) * unit, None

    return read


def columns(*names: str, growth: bool = False) -> Reader:
    """Read a panel of columns, or of their growth in percent a step."""

    def read(path: Path) -> tuple[Array, None]:
        values = _numbers(_table(path)[list(names)]).T
        return 100.0 * np.diff(np.log(values), axis=1) if growth else values, None

    return read


def pairs(outcome: str, *left: str, above: float | None = None) -> Reader:
    """Read a column with all others but `left` as features; with `above`, 1 where it is above that number.

    Of text, there is a feature for each word but the last.
    """

    def read(path: Path) -> tuple[Array, Array]:
        table = _table(path)
        y, x = _numbers(table[outcome]), _features(table, {outcome, *left})
        y = y if above is None else (y > above).astype(np.float64)
        return y, x

    return read


def _features(table: Any, left: set[str]) -> Array:
    found: list[Array] = []
    for name in table.columns.difference(list(left), sort=False):
        words = [] if table[name].dtype.kind in "if" else sorted(table[name].unique())[:-1]
        found += [_numbers(table[name] == word) for word in words] or [_numbers(table[name])]
    return np.stack(found, axis=1)


def _elnino(path: Path) -> tuple[Array, None]:
    return _numbers(_table(path).iloc[:, 1:]).ravel(), None


def _stocks(path: Path) -> tuple[Array, None]:
    """Monthly returns in percent of titles listed from the first month on."""
    table = _table(path)
    table = table[table["Date"].str.endswith("-01")].set_index("Date")
    prices = _numbers(table.loc[:, table.iloc[0].notna()]).T
    return 100.0 * np.diff(np.log(prices), axis=1), None


# --- tables of series ---

OWN = {"humidity": "humidity", "wind-haute-borne": "wind", "sunspots-zurich": "sunspots"}
"""Series shipped with orcast: by name, their name in `orcast.datasets`."""

_SM, _RIVER, _DRIFT = "datasets/{0}/{0}.csv", "datasets/{}", "drift/datasets/{}.csv"
_SKT = "datasets/data/{0}/{0}.csv"

SHIPPED: dict[str, Shipped] = {
    "co2": Shipped("statsmodels", _SM.format("co2"), column("co2"), 52, 0.0),
    "elnino": Shipped("statsmodels", _SM.format("elnino"), _elnino, 12),
    "sunspots-yearly": Shipped("statsmodels", _SM.format("sunspots"), column("SUNACTIVITY"), 11, 0.0),
    "us-growth": Shipped(
        "statsmodels",
        _SM.format("macrodata"),
        columns("realgdp", "realcons", "realinv", "realgovt", "realdpi", "cpi", "m1", growth=True),
    ),
    "water-flow": Shipped("river", _RIVER.format("water-flow.csv"), column(1), 24, 0.0),
    "approval": Shipped(
        "river", _RIVER.format("trump_approval.csv.gz"), pairs("five_thirty_eight", "ordinal_date"), 1, 0.0, 100.0
    ),
    "sp500": Shipped("river", _RIVER.format("sp500.csv.gz"), pairs("next_day_return", "date")),
    "flights": Shipped("river", _DRIFT.format("airline_passengers"), column(1, unit=1e-3), 12, 0.0),
    "apple-volume": Shipped("river", _DRIFT.format("apple"), column("Volume", unit=1e-6), 5, 0),
    "bitcoin": Shipped("river", _DRIFT.format("bitcoin"), column("price"), 1, 0.0),
    "brent": Shipped("river", _DRIFT.format("brent_crude_oil"), column("DPB"), 1, 0.0),
    "phishing": Shipped("river", _RIVER.format("phishing.csv.gz"), pairs("is_phishing")),
    "shuttle": Shipped("river", _RIVER.format("shuttle.csv.gz"), pairs("anomaly")),
    "flares": Shipped(
        "river",
        _RIVER.format("solar-flare.csv.zip"),
        pairs("c-class-flares", "m-class-flares", "x-class-flares", above=0.0),
    ),
    "airline": Shipped("sktime", _SKT.format("Airline"), column(1), 12, 0.0),
    "us-change": Shipped(
        "sktime", _SKT.format("Uschange"), columns("Consumption", "Income", "Production", "Savings", "Unemployment")
    ),
    "solar": Shipped("sktime", _SKT.format("solar"), column("solar_gen"), 48, 0.0),
    "heart": Shipped("sktime", _SKT.format("mitdb"), column("data")),
    "yahoo": Shipped("sktime", _SKT.format("yahoo"), column("data"), 24),
    "stocks": Shipped("matplotlib", "mpl-data/sample_data/Stocks.csv", _stocks),
}
