"""Real series for the contest: those inside packages that may be installed, our own, and those of the data folder.

Nothing is downloaded, and no package is imported: only the files that it ships are read.  A package that is not
installed, or ships a file no longer, has its series left out (`orcast.contest.catalogue.left_out` names them).  What
statsforecast ships is the airline's series alone, and gluonts ships none.
"""

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

from orcast.contest.stream import Array
from orcast.paper.experiments import data as ours

Table = dict[str, list[str]]


@dataclass(frozen=True, eq=False)
class Series:
    """A series, or a panel with a series in each row; `period` is its season in steps, 1 if there is none.

    `x` are features of each value, a row a value, known before it.  Values between `low` and `high` are possible.
    """

    name: str
    values: Array
    source: str
    period: int = 1
    low: float = -np.inf
    high: float = np.inf
    x: Array | None = None


@dataclass(frozen=True)
class Shipped:
    """A series in a file of a package: `read` makes the values of it, and the features where there are some."""

    package: str
    file: str
    read: Callable[[Path], Array | tuple[Array, Array]]
    about: str
    period: int = 1
    low: float = -np.inf
    high: float = np.inf

    @property
    def path(self) -> Path | None:
        """Where the file is; None if it is not there."""
        place = _folder_of(self.package)
        return place / self.file if place is not None and (place / self.file).is_file() else None


def available(name: str, data: str | Path | None = None) -> bool:
    """Whether `load` can read a series here."""
    if name in SHIPPED:
        return SHIPPED[name].path is not None
    return name in PACKAGED or (name in FOLDER and name in ours.available(data))


def load(name: str, data: str | Path | None = None) -> Series:
    """Read a series by name; `data` is the data folder, by default the one that ORCAST_DATA names.

    >>> load("humidity").values.shape, load("humidity").period
    ((8706,), 24)
    """
    if name in PACKAGED or name in FOLDER:
        stands_for = PACKAGED.get(name)
        found = ours.load(name, data) if stands_for is None else ours.stand_in(stands_for)
        return Series(name, found.values, found.source, found.period, found.low, found.high)
    if name not in SHIPPED:
        raise ValueError(f"expected one of {', '.join((*PACKAGED, *FOLDER, *SHIPPED))}, got {name!r}")
    shipped = SHIPPED[name]
    if shipped.path is None:
        raise FileNotFoundError(f"expected {shipped.file} in the package {shipped.package}, got none for {name!r}")
    read = shipped.read(shipped.path)
    values, x = read if isinstance(read, tuple) else (read, None)
    return Series(name, values, source_of(name), shipped.period, shipped.low, shipped.high, x)


def source_of(name: str) -> str:
    """What a series is, and where it is from."""
    return f"{SHIPPED[name].about}, by way of {SHIPPED[name].package}" if name in SHIPPED else f"orcast, {name}"


def installed(package: str) -> bool:
    """Whether a package is there; it is not imported."""
    return _folder_of(package) is not None


@cache
def _folder_of(package: str) -> Path | None:
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
    """The columns of a table with a line of names; lines that begin with # are left out."""
    lines = (line for line in io.StringIO(_text(path)) if not line.startswith("#"))
    names, *rows = csv.reader(lines, delimiter=separator, skipinitialspace=True)
    rows = [row for row in rows if row]
    return {name.strip("'"): [row[k] for row in rows] for k, name in enumerate(names)}


def _numbers(texts: list[str]) -> Array:
    """Numbers, each missing one as the last before it: what was known then."""
    values = np.array([float(text) if text.strip() else np.nan for text in texts])
    there = np.maximum.accumulate(np.where(np.isnan(values), 0, np.arange(values.size)))
    return values[there]


def _matrix(table: Table, columns: list[str]) -> Array:
    return np.stack([_numbers(table[name]) for name in columns], axis=1)


def column(name: str | int, separator: str = ",") -> Callable[[Path], Array]:
    """One column, by name or place."""

    def read(path: Path) -> Array:
        table = _table(path, separator)
        return _numbers(table[name if isinstance(name, str) else list(table)[name]])

    return read


def columns(*names: str, growth: bool = False) -> Callable[[Path], Array]:
    """A panel of columns, of their growth in percent a step if asked for."""

    def read(path: Path) -> Array:
        values = _matrix(_table(path), list(names)).T
        return 100.0 * np.diff(np.log(values), axis=1) if growth else values

    return read


def pairs(
    outcome: str, features: Callable[[Table], Array], *, separator: str = ",", above: float | None = None
) -> Callable[[Path], tuple[Array, Array]]:
    """A column with features in the same rows; 1 where it is above a number and else 0, if there is one."""

    def read(path: Path) -> tuple[Array, Array]:
        table = _table(path, separator)
        y = _numbers(table[outcome])
        return (y if above is None else (y > above).astype(np.float64)), features(table)

    return read


def but(*left: str) -> Callable[[Table], Array]:
    """All columns but some, as features; of text, a column for each word but the last."""

    def read(table: Table) -> Array:
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

    return read


def shuffled(read: Callable[[Path], tuple[Array, Array]], seed: int = 0) -> Callable[[Path], tuple[Array, Array]]:
    """The same rows in a random order, of a table in which they are sorted or have no order."""

    def mixed(path: Path) -> tuple[Array, Array]:
        y, x = read(path)
        order = np.random.default_rng(seed).permutation(y.size)
        return y[order], x[order]

    return mixed


def _last_column(skip: int, yes: Callable[[Array], Array]) -> Callable[[Path], tuple[Array, Array]]:
    """A file of numbers whose last column is a label."""

    def read(path: Path) -> tuple[Array, Array]:
        rows = np.loadtxt(io.StringIO(_text(path)), delimiter=",", skiprows=skip)
        return yes(rows[:, -1]) * 1.0, rows[:, :-1]

    return read


def _diabetes(path: Path) -> tuple[Array, Array]:
    target = np.loadtxt(io.StringIO(_text(path.with_name("diabetes_target.csv.gz"))))
    return target, np.loadtxt(io.StringIO(_text(path)))


def _bananas(path: Path) -> tuple[Array, Array]:
    """Lines such as `-1 1:0.5 2:-0.9`."""
    rows = np.array([[float(part.rpartition(":")[2]) for part in line.split()] for line in _text(path).splitlines()])
    return (rows[:, 0] > 0).astype(np.float64), rows[:, 1:]


def _elnino(path: Path) -> Array:
    table = _table(path)
    return _matrix(table, list(table)[1:]).ravel()


def _fertility(path: Path) -> Array:
    """The countries without a gap from 1960 to 2011, every fifth of them."""
    table = _table(path)
    rows = np.array([table[str(year)] for year in range(1960, 2012)]).T
    return np.asarray(rows[(rows != "").all(axis=1)][::5], dtype=np.float64)


def _firms(path: Path) -> Array:
    table = _table(path)
    invest, firms = _numbers(table["invest"]), np.array(table["firm"])
    return np.stack([invest[firms == firm] for firm in dict.fromkeys(table["firm"])])


def _chicks(path: Path) -> Array:
    """The chicks that were weighed all 12 times."""
    table = _table(path)
    weight, chick = _numbers(table["weight"]), _numbers(table["chick"])
    each = [weight[chick == one] for one in np.unique(chick)]
    return np.stack([rows for rows in each if rows.size == 12])


def _stocks(path: Path) -> Array:
    """Monthly returns in percent of the titles that are there from the first month on."""
    table = _table(path)
    first = [day.endswith("-01") for day in table["Date"]]
    names = [name for name, texts in table.items() if name != "Date" and texts[0]]
    prices = _matrix(table, names)[first].T
    return 100.0 * np.diff(np.log(prices), axis=1)


def _times(read: Callable[[Path], Array], unit: float) -> Callable[[Path], Array]:
    return lambda path: read(path) * unit


# --- what there is ---

PACKAGED = {"humidity": None, "wind-haute-borne": "wind", "sunspots-zurich": "sunspots"}
"""Our own series: by name, what they stand in for."""

FOLDER = ("wind", "sunspots")
"""The series of the data folder."""

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
    "food": Shipped(
        "statsmodels", _SM.format("engel"), shuffled(pairs("foodexp", but("foodexp"))),
        "Engel's expenses for food, shuffled", 1, 0.0,
    ),
    "affairs": Shipped(
        "statsmodels", _SM.format("fair"), shuffled(pairs("affairs", but("affairs"), above=0.0)),
        "Fair's survey of affairs, shuffled",
    ),
    "vote": Shipped(
        "statsmodels", _SM.format("anes96"), shuffled(pairs("vote", but("vote", "popul"), separator="\t", above=0.0)),
        "Vote in the USA in 1996, shuffled",
    ),
    "doctor": Shipped(
        "statsmodels", _SM.format("randhie"), pairs("mdvis", but("mdvis"), above=0.0),
        "Any visit to a doctor, RAND, file order",
    ),
    "grades": Shipped(
        "statsmodels", _SM.format("spector"), pairs("GRADE", but("GRADE", "OBS"), separator=" ", above=0.0),
        "A better grade in economics, file order",
    ),
    # river
    "water-flow": Shipped(
        "river", _RIVER.format("water-flow.csv"), column(1), "Flow of water in a district, hourly, l/s", 24, 0.0
    ),
    "approval": Shipped(
        "river", _RIVER.format("trump_approval.csv.gz"),
        pairs("five_thirty_eight", but("ordinal_date", "five_thirty_eight")),
        "Approval of a president, daily, with five polls", 1, 0.0, 100.0,
    ),
    "sp500": Shipped(
        "river", _RIVER.format("sp500.csv.gz"), pairs("next_day_return", but("date", "next_day_return")),
        "Return of the S&P 500, daily, with those of ten titles the day before",
    ),
    "chicks": Shipped("river", _RIVER.format("chick-weights.csv"), _chicks, "Weight of chicks in 12 weighings", 1, 0.0),
    "flights": Shipped(
        "river", _DRIFT.format("airline_passengers"), _times(column(1), 1e-3), "Passengers, monthly, thousands", 12, 0.0
    ),
    "apple-volume": Shipped(
        "river", _DRIFT.format("apple"), _times(column("Volume"), 1e-6), "Shares of Apple traded, daily, millions", 5, 0
    ),
    "bitcoin": Shipped("river", _DRIFT.format("bitcoin"), column("price"), "Price of a bitcoin", 1, 0.0),
    "brent": Shipped("river", _DRIFT.format("brent_crude_oil"), column("DPB"), "Price of Brent oil, daily", 1, 0.0),
    "office": Shipped("river", _DRIFT.format("occupancy"), column("V1"), "Temperature of an office, by 16 minutes"),
    "running": Shipped("river", _DRIFT.format("run_log"), column("Pace"), "Pace of a runner, by 5 seconds", 1, 0.0),
    "coal": Shipped(
        "river", _DRIFT.format("uk_coal_employment"), _times(column("Employment"), 1e-3),
        "Employment in British coal mines, yearly, thousands", 1, 0.0,
    ),
    "phishing": Shipped(
        "river", _RIVER.format("phishing.csv.gz"), pairs("is_phishing", but("is_phishing")),
        "Phishing pages, file order",
    ),
    "bananas": Shipped("river", _RIVER.format("banana.zip"), _bananas, "Two banana shapes, file order"),
    "shuttle": Shipped(
        "river", _RIVER.format("shuttle.csv.gz"), pairs("anomaly", but("anomaly")),
        "Anomalies of a space shuttle, file order",
    ),
    "flares": Shipped(
        "river", _RIVER.format("solar-flare.csv.zip"),
        pairs("c-class-flares", but("c-class-flares", "m-class-flares", "x-class-flares"), above=0.0),
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
    # scikit-learn
    "diabetes": Shipped(
        "sklearn", "datasets/data/diabetes_data_raw.csv.gz", _diabetes,
        "Progression of diabetes in a year, file order", 1, 0.0,
    ),
    "breast-cancer": Shipped(
        "sklearn", "datasets/data/breast_cancer.csv", _last_column(1, lambda label: label == 0),
        "Malignant tumours, file order",
    ),
    "wine": Shipped(
        "sklearn", "datasets/data/wine_data.csv", shuffled(_last_column(1, lambda label: label == 1)),
        "Wine of the second of three growers, shuffled",
    ),
    "digits": Shipped(
        "sklearn", "datasets/data/digits.csv.gz", _last_column(0, lambda label: label % 2 == 1),
        "Odd digits, written by hand, file order",
    ),
    # matplotlib
    "stocks": Shipped(
        "matplotlib", "mpl-data/sample_data/Stocks.csv", _stocks, "Monthly returns of seven titles and indices, %"
    ),
}  # fmt: skip
