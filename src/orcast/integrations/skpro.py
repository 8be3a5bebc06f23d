"""skpro: calibrated forecasts as its distributions (extra ``orcast[sktime]``)."""

from __future__ import annotations

from typing import Any

import numpy as np

from orcast.integrations.optional import needs

with needs("sktime", "pandas", "skpro"):
    import pandas as pd  # type: ignore[import-untyped]
    from skpro.distributions.base import BaseDistribution  # type: ignore[import-untyped]

from orcast.forecasts import Forecast
from orcast.validation import short

__all__ = ["ForecastDistribution"]


class ForecastDistribution(BaseDistribution):  # type: ignore[misc]
    """Forecasts as a distribution of skpro, exact in ``ppf``, ``cdf``, ``mean``, ``var``, ``pdf``, ``pmf``, ``energy``.

    Parameters
    ----------
    forecasts
        One :class:`orcast.Forecast`, or rows of them.
    index, columns
        Names of the rows and columns.

    Examples
    --------
    >>> import orcast as oc
    >>> from orcast.integrations.skpro import ForecastDistribution
    >>> p = ForecastDistribution(oc.Forecast([0, 1, 1], [1, 1, 3], [0.25, 0.5, 0.25]))     # half the mass on 1
    >>> float(p.mean()), float(p.cdf(0.5)), float(p.ppf(0.875)), float(p.pmf(1))
    (1.125, 0.125, 2.0, 0.5)
    """

    _tags = {  # noqa: RUF012
        "capabilities:approx": ["pdfnorm"],
        "capabilities:exact": ["mean", "var", "energy", "pdf", "log_pdf", "pmf", "log_pmf", "cdf", "ppf"],
        "distr:measuretype": "mixed",
        "distr:paramtype": "nonparametric",
        "broadcast_init": "off",
    }

    def __init__(self, forecasts: Any, index: Any = None, columns: Any = None) -> None:
        self.forecasts = forecasts
        grid = self._forecasts = np.array(forecasts, dtype=object)
        if grid.ndim not in (0, 2) or not all(isinstance(p, Forecast) for p in grid.flat):
            raise TypeError(f"expected a Forecast or rows of them, got {short(forecasts)}")
        if grid.ndim:
            index = pd.RangeIndex(grid.shape[0]) if index is None else index
            columns = pd.RangeIndex(grid.shape[1]) if columns is None else columns
            named = len(index), len(columns)
            if grid.shape != named:
                raise ValueError(f"expected forecasts in the shape of index and columns, {named}, got {grid.shape}")
        super().__init__(index=index if grid.ndim else None, columns=columns if grid.ndim else None)

    def _each(self, read: Any, *at: Any) -> Any:
        """A number of each forecast, and of a number for each."""
        if self.ndim == 0:
            return np.float64(read(self._forecasts[()], *(float(np.asarray(x).reshape(())) for x in at)))
        out = np.empty(self.shape)
        for place in np.ndindex(*self.shape):
            out[place] = read(self._forecasts[place], *(float(x[place]) for x in at))
        return out

    def _mean(self) -> Any:
        return self._each(Forecast.mean)

    def _var(self) -> Any:
        return self._each(Forecast.var)

    def _cdf(self, x: Any) -> Any:
        return self._each(Forecast.cdf, x)

    def _ppf(self, p: Any) -> Any:
        return self._each(Forecast.quantile, p)

    def _pdf(self, x: Any) -> Any:
        return self._each(Forecast.pdf, x)

    def _log_pdf(self, x: Any) -> Any:
        with np.errstate(divide="ignore"):
            return np.log(self._pdf(x))

    def _pmf(self, x: Any) -> Any:
        return self._each(_atom, x)

    def _log_pmf(self, x: Any) -> Any:
        with np.errstate(divide="ignore"):
            return np.log(self._pmf(x))

    def _energy_self(self) -> Any:
        return self._each(_spread).sum(axis=-1 if self.ndim else None)

    def _energy_x(self, x: Any) -> Any:
        return self._each(_distance, x).sum(axis=-1 if self.ndim else None)

    def _iat(self, rowidx: Any = None, colidx: Any = None) -> ForecastDistribution:
        if rowidx is None or colidx is None:
            raise ValueError(f"expected a row and a column, got {rowidx!r} and {colidx!r}")
        return type(self)(self._forecasts[rowidx, colidx])

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:
        """Examples for skpro's checks."""
        low, high = Forecast([0, 1], [1, 3], [0.5, 0.5]), Forecast([-np.inf, 2], [2, 3], [0.2, 0.8])
        atom = Forecast([0, 1, 1], [1, 1, 3], [0.25, 0.5, 0.25])
        rows = {"forecasts": [[low, high], [atom, low], [high, high]], "columns": pd.Index(["a", "b"])}
        return [{**rows, "index": pd.Index([3, 1, 2])}, {"forecasts": low}, {"forecasts": [[atom]]}]


def _atom(p: Forecast, x: float) -> float:
    below, upto = p.pit(x)
    return upto - below


def _distance(p: Forecast, x: float) -> float:
    """E|X - x|."""
    return p.crps(x) + 0.5 * _spread(p)


def _spread(p: Forecast) -> float:
    """E|X - Y| = 2 (E|X - x| - crps(x)) of two draws, at an end of a cell as x, where quadrature is exact."""
    x = float(p.right[0] if np.isfinite(p.right[0]) else p.left[0])
    return 2.0 * (p.expect(lambda y: np.abs(y - x)) - p.crps(x))
