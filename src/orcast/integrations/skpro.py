"""skpro: calibrated forecasts as its distributions, and a regressor that issues them (extra ``orcast[sktime]``).

``fit`` takes rows in the order of time, ``update`` later ones; methods that predict are pure.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orcast.integrations.common import needs

with needs("sktime", "pandas", "sklearn", "skpro"):
    import pandas as pd  # type: ignore[import-untyped]
    from skpro.distributions.base import BaseDistribution  # type: ignore[import-untyped]
    from skpro.regression.base import BaseProbaRegressor  # type: ignore[import-untyped]

from orcast.forecasts import Forecast
from orcast.integrations.sklearn import RecalibratedRegressor
from orcast.ledger import Guarantee
from orcast.payoffs import Payoff
from orcast.validation import short

__all__ = ["LEVELS", "ForecastDistribution", "RecalibratedProbaRegressor"]

Array = NDArray[np.float64]

# The quantiles that a model is asked for by default; a Gaussian comes through as it is.
LEVELS = (0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)


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


class _Rows(RecalibratedRegressor):
    """Rows of a regressor of skpro's, of which a column of quantiles is asked for each level."""

    names: list[Any]  # of the outcomes

    def fit_rows(self, X: Any, y: Array) -> Self:
        """Fit rows that skpro has checked; it takes names of columns that scikit-learn does not."""
        return self._fit_checked(X, y)

    def _base(self) -> Any:
        return self.default_estimator()  # with tags of scikit-learn's

    def _fitted(self, X: Any, y: Array) -> Any:
        return self.estimator.clone().fit(X, self._frame(X, y))

    def _updated(self, X: Any, y: Array) -> Any:
        if not self.estimator_.get_tag("capability:update"):
            return self.estimator_
        return deepcopy(self.estimator_).update(X, self._frame(X, y))

    def _predictions(self, estimator: Any, X: Any) -> Array:
        return np.sort(np.asarray(estimator.predict_quantiles(X, alpha=self._levels), dtype=np.float64), axis=1)

    def _frame(self, X: Any, y: Array) -> Any:
        return pd.DataFrame(y[:, None], index=X.index, columns=self.names)


class RecalibratedProbaRegressor(BaseProbaRegressor):  # type: ignore[misc]
    """Calibrated regressor around any regressor of skpro.

    Parameters
    ----------
    regressor, levels
        Regressor, and levels of the quantiles that it is asked for.
    low, high, payoff, outside, folds, batch
        As in :class:`orcast.integrations.sklearn.RecalibratedRegressor`, whose ``partial_fit`` is ``update`` here.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import LinearRegression
    >>> from skpro.regression.residual import ResidualDouble
    >>> from orcast.integrations.skpro import RecalibratedProbaRegressor
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = RecalibratedProbaRegressor(ResidualDouble(LinearRegression()), low=0, high=400).fit(X[:300], y[:300])
    >>> model.predict_interval(X[300:], coverage=0.9).shape, model.guarantee.rounds
    ((142, 2), 250)
    >>> model.update(X[300:], y[300:]).guarantee.rounds
    392
    """

    _tags = {  # noqa: RUF012
        "capability:survival": False,
        "capability:multioutput": False,
        "capability:missing": True,
        "capability:update": True,
        "X_inner_mtype": "pd_DataFrame_Table",
        "y_inner_mtype": "pd_DataFrame_Table",
    }

    def __init__(
        self,
        regressor: Any,
        low: float | None = None,
        high: float | None = None,
        *,
        levels: ArrayLike = LEVELS,
        payoff: Payoff | None = None,
        outside: str = "raise",
        folds: int = 5,
        batch: int = 100,
    ) -> None:
        self.regressor = regressor
        self.low, self.high, self.levels = low, high, levels
        self.payoff, self.outside, self.folds, self.batch = payoff, outside, folds, batch
        super().__init__()
        if not isinstance(regressor, BaseProbaRegressor):
            raise TypeError(f"expected a regressor of skpro's, got {short(regressor)}")
        self.clone_tags(regressor, ["capability:missing"])

    @property
    def guarantee(self) -> Guarantee:
        """Guarantee over the settled rows."""
        self.check_is_fitted()
        return self._model.recalibrator_.guarantee

    def _fit(self, X: Any, y: Any) -> Self:
        options = self.get_params(deep=False)
        model = _Rows(options.pop("regressor"), **options)
        model.names = list(y.columns)
        self._model = model.fit_rows(X, _outcomes(y))
        return self

    def _update(self, X: Any, y: Any) -> Self:
        if len(y):
            self._model.partial_fit(X, _outcomes(y))
        return self

    def _predict_proba(self, X: Any) -> ForecastDistribution:
        forecasts = np.array(self._model.predict_distribution(X), dtype=object).reshape(-1, 1)
        return ForecastDistribution(forecasts, index=X.index, columns=pd.Index(self._get_columns(method="predict")))

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:
        """Examples for skpro's checks."""
        from sklearn.linear_model import LinearRegression  # type: ignore[import-untyped]
        from skpro.regression.online import OnlineRefit  # type: ignore[import-untyped]
        from skpro.regression.residual import ResidualDouble  # type: ignore[import-untyped]

        double = ResidualDouble(LinearRegression())
        return [
            {"regressor": double, "folds": 2},
            {"regressor": OnlineRefit(double), "low": 0, "high": 400, "batch": 1},
        ]


def _outcomes(y: Any) -> Array:
    if y.shape[1] != 1:
        raise ValueError(f"expected one column of outcomes, got {y.shape[1]}")
    return np.asarray(y.iloc[:, 0], dtype=np.float64)
