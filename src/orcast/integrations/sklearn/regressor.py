"""Any regressor of scikit-learn's, recalibrated."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin, clone  # type: ignore[import-untyped]
from sklearn.frozen import FrozenEstimator  # type: ignore[import-untyped]
from sklearn.linear_model import BayesianRidge  # type: ignore[import-untyped]
from sklearn.pipeline import Pipeline  # type: ignore[import-untyped]
from sklearn.utils import _safe_indexing  # type: ignore[import-untyped]
from sklearn.utils.validation import check_is_fitted  # type: ignore[import-untyped]

from orcast.adapters import Quantiles
from orcast.engine import Oracle
from orcast.forecasts import Forecast, as_levels
from orcast.forecasts.base import as_share
from orcast.integrations.common import has_parameter, increasing_levels, recalibrator_for, settle_together
from orcast.integrations.sklearn.rows import RowEstimator, batches, each_of, features_of, learns
from orcast.payoffs import Payoff
from orcast.residuals import Residuals

Array = NDArray[np.float64]


class RecalibratedRegressor(RegressorMixin, RowEstimator):  # type: ignore[misc]
    """A regressor around any regressor of scikit-learn's, whose forecasts stay calibrated on any sequence.

    ``estimator`` (a ``BayesianRidge`` if None) gives more than a number where it can:

    - with ``levels`` quantiles: ``predict`` returns a column for each level; or the estimator is for one quantile (it
      has a parameter ``quantile``, or ``alpha`` with the loss "quantile"), and one is fitted for each level.  Quantiles
      that cross are sorted;
    - a spread, if ``predict`` has the option ``return_std``;
    - else a number, the mean of a Gaussian with

        sd = sqrt(pi / 2) * mean of |outcome - prediction| over the last ``window`` outcomes that are known

    ``low`` and ``high`` are the bounds of the outcomes, if there are any; ``payoff``, ``oracle``, ``memory`` and
    ``outside`` are those of :class:`orcast.Recalibrator`.  A payoff with a context finds the features in the columns of
    a data frame, or in a row of an array.

    ``fit`` cuts the rows, in their order, into ``folds`` + 1 parts of one length.  Each part but the first is forecast
    by a copy of the estimator that was fitted to all rows before it, and scored.  At last the estimator is fitted to
    all rows.  So no row is scored by a model that has seen it, or a later one.  A ``FrozenEstimator`` was fitted
    elsewhere, and forecasts all rows.  ``batch`` is how many rows are forecast before their outcomes are known, as it
    will be in use: 1 in a stream, 24 for the hours of the next day, a hundred if many rows come at once.  If the errors
    of the last part are clearly unlike those before it, a warning says so: then the estimator as it is served is not
    like those that it was calibrated with.

    ``partial_fit`` scores the rows against the forecasts of the estimator as it is, and then updates it if it can be
    updated.  The first call, if nothing was fitted before, has no forecasts to score; it only updates, or is a ``fit``.
    A warning says, once, if the errors are clearly unlike those that ``fit`` has seen, as they are if a
    ``FrozenEstimator`` had been fitted to the rows of ``fit``.

    As the last step of a pipeline of scikit-learn's it is asked through ``predict``, whose options pipelines pass on:
    ``pipeline.predict(X, interval=0.9)``, ``pipeline.predict(X, quantiles=[0.1, 0.9])``.  With metadata routing it asks
    for them as any other: ``RecalibratedRegressor().set_predict_request(interval=True)``.

    Fitted, it has ``estimator_`` (a list of them if there is one for each level), ``recalibrator_`` (an
    :class:`orcast.Recalibrator`: its ``guarantee``), ``residuals_``, ``n_features_in_`` and, from data frames,
    ``feature_names_in_``.

    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = RecalibratedRegressor(low=0, high=400).fit(X[:300], y[:300])
    >>> model.recalibrator_.guarantee.rounds
    250
    >>> model.predict_quantiles(X[300:], [0.05, 0.5, 0.95]).shape
    (142, 3)
    >>> model.partial_fit(X[300:], y[300:]).recalibrator_.guarantee.rounds
    392
    """

    default_estimator = BayesianRidge
    outcome_type = np.float64

    def __init__(
        self,
        estimator: Any = None,
        *,
        low: float | None = None,
        high: float | None = None,
        levels: ArrayLike | None = None,
        payoff: Payoff | None = None,
        oracle: Oracle | None = None,
        memory: float | None = None,
        outside: str = "raise",
        folds: int = 5,
        batch: int = 100,
        window: int = 100,
    ) -> None:
        self.estimator = estimator
        self.low, self.high, self.levels = low, high, levels
        self.payoff, self.oracle, self.memory, self.outside = payoff, oracle, memory, outside
        self.folds, self.batch, self.window = folds, batch, window

    def partial_fit(self, X: Any, y: ArrayLike) -> Self:
        """Score the outcomes against the forecasts for these rows, then update the estimator."""
        if hasattr(self, "estimator_"):
            return self._settle_and_update(X, self._outcomes(X, y))
        if not learns(self._base()):
            return self.fit(X, y)
        X, y = self._checked(X, y)
        estimators = self._one_a_level(clone(self._base()))
        for estimator in each_of(estimators):
            estimator.partial_fit(X, y)
        self._begin(y)
        self.estimator_ = estimators
        return self

    def predict(
        self, X: Any, return_std: bool = False, *, interval: float | None = None, quantiles: ArrayLike | None = None
    ) -> Any:
        """The means of the calibrated forecasts, and with ``return_std`` their standard deviations.

        With ``interval``, a share, it is ``predict_interval``, with ``quantiles``, levels, ``predict_quantiles``.
        """
        asked = {"return_std": return_std or None, "interval": interval, "quantiles": quantiles}
        asked = {name: value for name, value in asked.items() if value is not None}
        if len(asked) > 1:
            raise ValueError(f"expected one of return_std, interval and quantiles, got {' and '.join(asked)}")
        if interval is not None:
            return self.predict_interval(X, interval)
        if quantiles is not None:
            return self.predict_quantiles(X, quantiles)
        if not return_std:
            return np.array([p.mean() for p in self._calibrated(X)])
        moments = np.array([(p.mean(), p.std()) for p in self._calibrated(X)]).reshape(-1, 2)
        return moments[:, 0], moments[:, 1]

    def predict_quantiles(self, X: Any, levels: ArrayLike) -> Array:
        """Calibrated quantiles, a row for each row of X and a column for each level."""
        wanted = np.atleast_1d(as_levels(levels))
        rows = [p.quantile(wanted) for p in self._calibrated(X)]
        return np.array(rows, dtype=np.float64).reshape(len(rows), wanted.size)

    def predict_interval(self, X: Any, confidence: float = 0.9) -> Array:
        """The lower and the upper end of the central intervals, a row for each row of X."""
        share = as_share(confidence)
        return self.predict_quantiles(X, [0.5 - share / 2.0, 0.5 + share / 2.0])

    def predict_distribution(self, X: Any) -> list[Forecast]:
        """The calibrated forecasts themselves, one for each row of X."""
        return list(self._calibrated(X))

    def predict_then_fit(self, X: Any, y: ArrayLike) -> list[Forecast]:
        """Forecasts of rows in their order, ``batch`` at a time, each batch learnt from before the next is forecast.

        The same as ``predict_distribution`` and ``partial_fit`` for one batch after the other.
        """
        check_is_fitted(self, "estimator_")
        outcomes = self._outcomes(X, y)
        for outcome in outcomes.tolist():
            self.recalibrator_.space.outcome(outcome, self.outside)
        X = X.tocsr() if hasattr(X, "tocsr") else X if hasattr(X, "shape") else np.asarray(X)
        said: list[Forecast] = []
        for rows, _ in batches(len(outcomes), self.batch):
            part = _safe_indexing(X, rows)
            said += self._calibrated(part)
            self._settle_and_update(part, outcomes[rows])
        return said

    def _calibrated(self, X: Any) -> Iterator[Forecast]:
        check_is_fitted(self, "estimator_")
        forecasts = self._forecasts(self._predictions(self.estimator_, X), self.residuals_)
        return self._forecast_rows(forecasts, X)

    def _begin(self, y: Array) -> None:
        self.recalibrator_ = recalibrator_for(self)
        self.residuals_ = Residuals(self.window)

    def _fitted(self, X: Any, y: Array) -> Any:
        estimators = self._one_a_level(clone(self._base()))
        for estimator in each_of(estimators):
            estimator.fit(X, y)
        return estimators

    def _one_a_level(self, estimator: Any) -> Any:
        if self.levels is None:
            return estimator
        name = level_parameter(estimator)
        if name is None:
            return estimator
        return [clone(estimator).set_params(**{name: level}) for level in increasing_levels(self.levels)]

    def _predictions(self, estimator: Any, X: Any) -> Array:
        """A column for each level, or a mean and a spread (0 if it has none)."""
        if self.levels is not None:
            columns = [each.predict(X) for each in estimator] if isinstance(estimator, list) else estimator.predict(X)
            table = np.column_stack(columns) if isinstance(columns, list) else np.asarray(columns, dtype=np.float64)
            wanted = len(increasing_levels(self.levels))
            if table.ndim != 2 or table.shape[1] != wanted:
                raise ValueError(f"expected predictions at each of {wanted} levels, got shape {table.shape}")
            return np.sort(table, axis=1)
        if has_spread(estimator):
            if isinstance(X, np.ndarray) and X.dtype.kind == "O":
                X = X.astype(np.float64)  # some that take objects do so for their predictions, not for the spread
            return np.column_stack(estimator.predict(X, return_std=True))
        points = np.asarray(estimator.predict(X), dtype=np.float64)
        if points.ndim == 2 and points.shape[1] == 1:
            points = points[:, 0]
        if points.ndim != 1:
            raise ValueError(f"expected one prediction a row, or levels= of several, got shape {points.shape}")
        return np.column_stack((points, np.zeros(len(points))))

    def _forecasts(self, predictions: Array, residuals: Residuals, y: Array | None = None) -> list[Any]:
        """A forecast for each row; with outcomes, each spread also from the residuals of the rows before it."""
        if self.levels is not None:
            levels = increasing_levels(self.levels)
            return [Quantiles(levels, row) for row in predictions]
        space: Any = self.recalibrator_.space
        forecasts = []
        for i, (point, spread) in enumerate(predictions.tolist()):
            forecasts.append(residuals.around(point, space, spread))
            if y is not None:
                residuals.add(float(y[i]) - forecasts[-1].mean)
        return forecasts

    def _errors(self, predictions: Array, y: Array) -> list[float]:
        middle = predictions[:, 0] if self.levels is None else predictions[:, predictions.shape[1] // 2]
        found: list[float] = np.abs(y - middle).tolist()
        return found

    def _settle(self, predictions: Array, X: Any, y: Array, batch: int | None = None) -> None:
        recal, residuals, features = self.recalibrator_, self.residuals_.copy(), features_of(self.payoff, X)
        one_by_one = (batch == 1 or len(y) == 1) and self._never_late
        if one_by_one and self.levels is not None:
            recal.run(predictions, y, x=features, levels=increasing_levels(self.levels), at=[0.5])
        elif one_by_one:
            recal.run(self._forecasts(predictions, residuals, y), y, x=features, at=[0.5])
        else:
            outcomes = [recal.space.outcome(each, self.outside) for each in y.tolist()]
            for rows, outstanding in batches(len(y), batch):
                forecasts = self._forecasts(predictions[rows], residuals)
                known = None if features is None else features[rows]
                settle_together(recal, forecasts, known, outcomes[rows], outstanding)
                if self.levels is None:
                    for outcome, forecast in zip(outcomes[rows], forecasts, strict=True):
                        residuals.add(outcome - forecast.mean)
        self.residuals_ = residuals


def level_parameter(estimator: Any) -> str | None:
    """The name of the parameter for the level of a quantile, if the estimator is for one."""
    parameters = estimator.get_params()
    for name in parameters:
        place, _, last = name.rpartition("__")
        loss = parameters.get(f"{place}__loss" if place else "loss")
        if (last == "quantile" and loss in (None, "quantile")) or (last == "alpha" and loss == "quantile"):
            return str(name)
    return None


def has_spread(estimator: Any) -> bool:
    """Whether ``predict`` has the option ``return_std``; of a pipeline its last step's."""
    while isinstance(estimator, (Pipeline, FrozenEstimator)):
        estimator = estimator[-1] if isinstance(estimator, Pipeline) else estimator.estimator
    return has_parameter(estimator.predict, "return_std")
