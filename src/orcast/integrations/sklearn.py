"""scikit-learn: regressors and classifiers whose forecasts stay calibrated (extra ``orcast[sklearn]``, 1.6 or newer).

``fit`` takes rows in the order of time, ``partial_fit`` later ones: it scores the forecasts of its rows, then updates
the wrapped estimator, if that has ``partial_fit``.  Methods that predict are pure, and forecast each row by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orcast.adapters import Normal, Quantiles, expert_row
from orcast.forecaster import Recalibrator
from orcast.forecasts import Forecast, as_levels
from orcast.forecasts.ordered import as_share
from orcast.inputs import FeatureReader
from orcast.integrations.common import has_parameter, increasing_levels, label_space, needs, recalibrator_for
from orcast.payoffs import Payoff
from orcast.residuals import Residuals
from orcast.serialise import plain_features
from orcast.spaces.base import whole
from orcast.validation import short

with needs("sklearn", "sklearn"):
    from sklearn.base import (  # type: ignore[import-untyped]
        BaseEstimator,
        ClassifierMixin,
        MetaEstimatorMixin,
        RegressorMixin,
        clone,
    )
    from sklearn.frozen import FrozenEstimator  # type: ignore[import-untyped]
    from sklearn.linear_model import BayesianRidge, LogisticRegression  # type: ignore[import-untyped]
    from sklearn.pipeline import Pipeline  # type: ignore[import-untyped]
    from sklearn.utils import _safe_indexing, get_tags  # type: ignore[import-untyped]
    from sklearn.utils.multiclass import check_classification_targets  # type: ignore[import-untyped]
    from sklearn.utils.validation import (  # type: ignore[import-untyped]
        assert_all_finite,
        check_consistent_length,
        check_is_fitted,
        column_or_1d,
        validate_data,
    )

__all__ = ["RecalibratedClassifier", "RecalibratedRegressor"]

Array = NDArray[np.float64]

# Rows in a batch, and folds.
MOST = 10**9


class RowEstimator(MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """Rows that are fitted to, forecast and settled in the order of time.

    Subclasses ``_begin`` a recalibrator, return a ``_fitted`` estimator (None if it cannot be), its ``_predictions`` of
    rows, the ``_forecasts`` of predictions, and the ``_outcome_list`` in canonical form.
    """

    default_estimator: ClassVar[Any]
    outcome_type: ClassVar[Any] = None  # any
    recalibrator_: Recalibrator

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        theirs = get_tags(self._base()).input_tags  # what X may be is up to the estimator
        for name in ("sparse", "allow_nan", "categorical", "string"):
            setattr(tags.input_tags, name, getattr(theirs, name))
        return tags

    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Fit the estimator, and calibrate it on the rows that it had not seen.

        Parameters
        ----------
        X : array or data frame
            Rows in the order of time.
        y : array
            Outcomes.
        """
        return self._fit(X, y)

    def _fit(self, X: Any, y: Any, classes: ArrayLike | None = None) -> Self:
        y = self._outcomes(X, y)
        X = X.tocsr() if hasattr(X, "tocsr") else X if hasattr(X, "shape") else np.asarray(X)
        validate_data(self, X, skip_check_array=True)  # sets n_features_in_ and feature_names_in_
        parts = _parts(len(y), whole(self.folds, "folds", 1, MOST), self._base())
        batch = whole(self.batch, "rows as batch", 1, MOST)
        fitted = self._fitted(X, y)
        self._begin(y if classes is None else np.asarray(classes))
        for past, rows in parts:
            base = fitted if past.stop == 0 else self._fitted(_safe_indexing(X, past), y[past])
            if base is not None:
                ahead = _safe_indexing(X, rows)
                self._settle(self._predictions(base, ahead), ahead, y[rows], batch)
        self.estimator_ = fitted
        return self

    def partial_fit(self, X: Any, y: ArrayLike, classes: ArrayLike | None = None) -> Self:
        """Score the outcomes against the forecasts for these rows, then update the estimator; the first call fits.

        Parameters
        ----------
        X, y : array or data frame, array
            Rows in the order of time, and their outcomes.
        classes : array, optional
            All classes of a classifier, for its first call, which fits.
        """
        if not hasattr(self, "estimator_"):
            return self._fit(X, y, classes)
        y = self._outcomes(X, y)
        self._outcome_list(y)
        with self.recalibrator_.lock:
            updated = self.estimator_
            predictions = self._predictions(updated, X)
            if hasattr(updated, "partial_fit") and not isinstance(updated, FrozenEstimator):
                updated = deepcopy(updated).partial_fit(X, y)
            self._settle(predictions, X, y)
            self.estimator_ = updated
        return self

    def _base(self) -> Any:
        return self.default_estimator() if self.estimator is None else self.estimator

    def _outcomes(self, X: Any, y: Any) -> NDArray[Any]:
        """Outcomes as an array, one for each row."""
        outcomes = np.asarray(column_or_1d(y, warn=True), dtype=self.outcome_type)
        assert_all_finite(outcomes, input_name="y")
        if isinstance(self, ClassifierMixin):
            check_classification_targets(outcomes)
        check_consistent_length(X, outcomes)
        return outcomes

    def _calibrated(self, X: Any) -> Iterator[Any]:
        """Calibrated forecasts of rows; nothing is kept."""
        check_is_fitted(self, "estimator_")
        forecasts = self._forecasts(self._predictions(self.estimator_, X))
        return map(
            self.recalibrator_.engine.forecast, self._peeked(forecasts, features_of(self.payoff, X, len(forecasts)))
        )

    def _peeked(self, forecasts: Sequence[object], features: Sequence[Any], outstanding: float = 0.0) -> Iterator[Any]:
        """Records of rounds, each computed by itself, with at least as many outcomes outstanding as usual."""
        recal = self.recalibrator_
        rows = [expert_row(forecast, recal.space)[0][None, :] for forecast in forecasts]
        late = max(outstanding, recal.rounds.usual_lag or 0.0)
        for row, x in zip(rows, features, strict=True):
            with recal.lock:
                record = recal.rounds.peek(row, x, outstanding=late, reserved=0.0)
            yield record

    def _settle(self, predictions: Array, X: Any, y: NDArray[Any], batch: int | None = None) -> None:
        """Settle rows a batch at a time, or all at once as `predict` forecasts them."""
        outcomes, features = self._outcome_list(y), features_of(self.payoff, X, len(y))
        size = len(outcomes) if batch is None else batch
        for start in range(0, len(outcomes), size or 1):
            rows = slice(start, start + size)
            late = float(len(outcomes[rows]) - 1)
            forecasts = self._forecasts(predictions[rows])
            with self.recalibrator_.lock:
                records = list(self._peeked(forecasts, features[rows], 0.0 if batch is None else late))
                for record, outcome in zip(records, outcomes[rows], strict=True):
                    self.recalibrator_.rounds.settle_unkept(record, outcome, lag=late)
            for forecast, outcome in zip(forecasts, outcomes[rows], strict=True):
                if isinstance(forecast, Normal):
                    self.residuals_.add(outcome - forecast.mean)


class RecalibratedRegressor(RegressorMixin, RowEstimator):  # type: ignore[misc]
    """Calibrated regressor around any regressor of scikit-learn.

    Parameters
    ----------
    estimator
        ``BayesianRidge`` if None.  With ``levels`` its ``predict`` returns a column for each level, or it has a
        parameter ``quantile`` (or ``alpha`` with the loss "quantile") and one is fitted for each level; else it gives
        a spread (``return_std``) or a number, the mean of a Gaussian with
        sd = sqrt(pi / 2) * mean of the last 100 |outcome - prediction|.
    levels
        Levels of the quantiles that the estimator predicts, if it does.
    low, high, payoff, outside
        As in :class:`orcast.Recalibrator`.  A context finds features in the columns of a data frame, or in a row.
    folds
        ``fit`` cuts the rows, in their order, into ``folds`` + 1 parts.  Each part but the first is forecast by a copy
        that was fitted to all rows before it, and scored.  A ``FrozenEstimator`` forecasts all rows.
    batch
        Rows that are forecast before their outcomes are known: 1 in a stream, 24 for the hours of the next day.

    Examples
    --------
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
        outside: str = "raise",
        folds: int = 5,
        batch: int = 100,
    ) -> None:
        self.estimator = estimator
        self.low, self.high, self.levels = low, high, levels
        self.payoff, self.outside = payoff, outside
        self.folds, self.batch = folds, batch

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Means of the calibrated forecasts, and with ``return_std`` their standard deviations.

        Parameters
        ----------
        X, return_std
            Rows; True also returns standard deviations.
        """
        moments = [(p.mean(), p.std() if return_std else 0.0) for p in self.predict_distribution(X)]
        means, deviations = np.array(moments).reshape(-1, 2).T
        return (means, deviations) if return_std else means

    def predict_quantiles(self, X: Any, levels: ArrayLike) -> Array:
        """Calibrated quantiles, a row for each row of X and a column for each level.

        Parameters
        ----------
        X, levels
            Rows, and levels of the quantiles.
        """
        wanted = np.atleast_1d(as_levels(levels))
        rows = [p.quantile(wanted) for p in self.predict_distribution(X)]
        return np.array(rows, dtype=np.float64).reshape(len(rows), wanted.size)

    def predict_interval(self, X: Any, confidence: float = 0.9) -> Array:
        """The lower and the upper end of the central intervals, a row for each row of X.

        Parameters
        ----------
        X, confidence
            Rows, and nominal coverage.
        """
        share = as_share(confidence)
        return self.predict_quantiles(X, [0.5 - share / 2.0, 0.5 + share / 2.0])

    def predict_distribution(self, X: Any) -> list[Forecast]:
        """Calibrated forecasts, one for each row of X."""
        return list(self._calibrated(X))

    def _begin(self, y: Array) -> None:
        self.recalibrator_ = recalibrator_for(self)
        self.residuals_ = Residuals()

    def _fitted(self, X: Any, y: Array) -> Any:
        base = self._base()
        name, levels = level_parameter(base), self._levels
        if levels is None or name is None:
            return clone(base).fit(X, y)
        return [clone(base).set_params(**{name: level}).fit(X, y) for level in levels]

    def _predictions(self, estimator: Any, X: Any) -> Array:
        """A column for each level, or a mean and a spread (0 if it has none)."""
        levels = self._levels
        if levels is not None:
            one_each = isinstance(estimator, list)
            table = np.column_stack([each.predict(X) for each in estimator]) if one_each else estimator.predict(X)
            table = np.asarray(table, dtype=np.float64)
            if table.shape != (len(table), len(levels)):
                raise ValueError(f"expected predictions at each of {len(levels)} levels, got shape {table.shape}")
            return np.sort(table, axis=1)
        if has_spread(estimator):
            if isinstance(X, np.ndarray) and X.dtype.kind == "O":
                X = X.astype(np.float64)  # some that take objects do so for their predictions, not for the spread
            return np.column_stack(estimator.predict(X, return_std=True))
        points = np.asarray(estimator.predict(X), dtype=np.float64)
        if points.size != len(points):
            raise ValueError(f"expected one prediction a row, or levels= of several, got shape {points.shape}")
        return np.column_stack((points, np.zeros(len(points))))

    def _forecasts(self, predictions: Array) -> list[Any]:
        levels = self._levels
        if levels is not None:
            return [Quantiles(levels, row) for row in predictions]
        space: Any = self.recalibrator_.space
        return [self.residuals_.around(point, space, spread) for point, spread in predictions.tolist()]

    @property
    def _levels(self) -> list[float] | None:
        return None if self.levels is None else increasing_levels(self.levels)

    def _outcome_list(self, y: Array) -> list[float]:
        return [self.recalibrator_.space.outcome(each, self.outside) for each in y.tolist()]


class RecalibratedClassifier(ClassifierMixin, RowEstimator):  # type: ignore[misc]
    """Calibrated classifier around any classifier of scikit-learn.

    Parameters
    ----------
    estimator
        ``LogisticRegression`` if None.  Asked for ``predict_proba``; without it its predictions have probability 1.
    payoff, folds, batch
        As in :class:`RecalibratedRegressor`.  Rows before the second class are not scored.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = RecalibratedClassifier(GaussianNB()).fit(X[:400], y[:400])
    >>> model.predict_proba(X[400:]).shape, model.recalibrator_.guarantee.rounds
    ((169, 2), 334)
    >>> model.partial_fit(X[400:], y[400:]).recalibrator_.guarantee.rounds
    503
    """

    default_estimator = LogisticRegression

    def __init__(
        self,
        estimator: Any = None,
        *,
        payoff: Payoff | None = None,
        folds: int = 5,
        batch: int = 100,
    ) -> None:
        self.estimator = estimator
        self.payoff, self.folds, self.batch = payoff, folds, batch

    def predict_proba(self, X: Any) -> Array:
        """Calibrated probabilities, a row for each row of X and a column for each of ``classes_``."""
        return np.array([p.mass for p in self._calibrated(X)])

    def predict(self, X: Any) -> NDArray[Any]:
        """The class with the largest calibrated probability."""
        best = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def _begin(self, y: NDArray[Any]) -> None:
        classes = np.unique(y)
        if len(classes) < 2:
            raise ValueError(f"expected at least two classes, got one class, {short(classes.tolist()[0])}")
        self.classes_ = classes
        self.recalibrator_ = recalibrator_for(self, label_space(classes.tolist()))

    def _fitted(self, X: Any, y: NDArray[Any]) -> Any:
        return None if len(np.unique(y)) == 1 else clone(self._base()).fit(X, y)

    def _places(self, y: NDArray[Any]) -> NDArray[np.intp]:
        """The places of labels among the classes."""
        places = np.minimum(np.searchsorted(self.classes_, y), len(self.classes_) - 1)
        strange = self.classes_[places] != y
        if strange.any():
            raise ValueError(f"expected one of the classes {short(self.classes_.tolist())}, got {y[strange][0]!r}")
        return places

    def _predictions(self, estimator: Any, X: Any) -> Array:
        """The estimator's probabilities, a column for each class; 1 for its prediction if it has none."""
        known = estimator.classes_
        if hasattr(estimator, "predict_proba"):
            masses = np.asarray(estimator.predict_proba(X), dtype=np.float64)
        else:
            masses = np.asarray(estimator.predict(X)[:, None] == known, dtype=np.float64)
        table = np.zeros((len(masses), len(self.classes_)))
        table[:, self._places(known)] = masses
        total = table.sum(axis=1, keepdims=True)
        even = np.full_like(table, 1.0 / table.shape[1])
        return np.asarray(np.divide(table, total, out=even, where=total > 0.0))

    def _forecasts(self, masses: Array) -> list[Any]:
        return masses[:, 1].tolist() if len(self.classes_) == 2 else list(masses)

    def _outcome_list(self, y: NDArray[Any]) -> list[int]:
        return [int(place) for place in self._places(y)]


# --- helpers


def _parts(rows: int, folds: int, base: Any) -> Iterator[tuple[slice, slice]]:
    """The rows to fit to and those to score after it, in the order of time; nothing to fit to if it is frozen."""
    if isinstance(base, FrozenEstimator):
        return iter([(slice(0, 0), slice(0, rows))])
    ends = [rows * part // (folds + 1) for part in range(1, folds + 2)]
    return ((slice(0, a), slice(a, b)) for a, b in pairwise(ends) if 0 < a < b)


def features_of(payoff: Payoff | None, X: Any, rows: int) -> list[Any]:
    """Features of each row for the payoff's contexts, or None: by the names of the columns, or the row itself."""
    asked = FeatureReader(payoff)
    if not asked:
        return [None] * rows
    import narwhals as nw

    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        found = frame.iter_rows(named=True)
    else:
        found = (X.toarray() if hasattr(X, "toarray") else np.asarray(X)).tolist()
    return [plain_features(asked.of(row)) for row in found]


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
    """Return True if ``predict`` has the option ``return_std``; of a pipeline its last step's."""
    while isinstance(estimator, (Pipeline, FrozenEstimator)):
        estimator = estimator[-1] if isinstance(estimator, Pipeline) else estimator.estimator
    return has_parameter(estimator.predict, "return_std")
