"""scikit-learn: regressors and classifiers whose forecasts stay calibrated (extra ``orcast[sklearn]``, 1.6 or newer).

``fit`` learns from rows in the order of time, ``partial_fit`` from those that come later:

    model = RecalibratedRegressor(GaussianProcessRegressor(), low=0, high=100).fit(X, y)
    model.predict_interval(X_today)
    model.partial_fit(X_today, y_today)

The rows of one call belong together: none of their outcomes is known when they are forecast.  ``partial_fit`` first
makes all forecasts for its rows, the same that ``predict`` makes of them, then scores them one row after the other, and
then teaches the wrapped estimator, if that has ``partial_fit`` itself.  All methods that predict are pure: they start
from the calibration as it is now and leave it so.

A forecast of one row may trust the last errors, one of many rows must not, so that it matters how many rows a call has:
predict and learn row by row if outcomes come row by row.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from copy import deepcopy
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orcast.integrations.optional import needs

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

from orcast.adapters import Quantiles
from orcast.engine import Oracle
from orcast.forecasts import Forecast, as_levels
from orcast.forecasts.base import as_share
from orcast.integrations.common import FeatureReader, book_together, issue_together, space_of
from orcast.payoffs import Payoff
from orcast.recalibrator import Recalibrator
from orcast.residuals import Residuals
from orcast.spaces import Binary, Labels
from orcast.validation import short

__all__ = ["RecalibratedClassifier", "RecalibratedRegressor"]

Array = NDArray[np.float64]


class RecalibratedRegressor(RegressorMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """A regressor around any regressor of scikit-learn's, whose forecasts stay calibrated on any sequence.

    ``estimator`` (a ``BayesianRidge`` if None) says more than a number where it can:

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
    will be in use: 1 in a stream, 24 for the hours of the next day, a hundred if many rows come at once.

    ``partial_fit`` scores the rows, given the forecasts of the estimator as it is, and then teaches it if it can be
    taught.  The first call, if nothing was fitted before, has no forecasts to score; it teaches, or is a ``fit``.

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
        self.low = low
        self.high = high
        self.levels = levels
        self.payoff = payoff
        self.oracle = oracle
        self.memory = memory
        self.outside = outside
        self.folds = folds
        self.batch = batch
        self.window = window

    def __sklearn_tags__(self) -> Any:
        return _tags_like(super().__sklearn_tags__(), self._base())

    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Fit the estimator, and calibrate it on the rows that it had not seen."""
        X, y = self._checked(X, y)
        parts, batch = _parts(len(y), self.folds, self._base()), _batch(self.batch)
        fitted = self._fitted(X, y)
        self._begin()
        for past, rows in parts:
            base = fitted if past.stop == 0 else self._fitted(_safe_indexing(X, past), y[past])
            ahead = _safe_indexing(X, rows)
            self._book(self._said(base, ahead), ahead, y[rows], batch)
        self.estimator_ = fitted
        return self

    def partial_fit(self, X: Any, y: ArrayLike) -> Self:
        """Score the outcomes against the forecasts for these rows, then teach the estimator."""
        if hasattr(self, "estimator_"):
            y = self._outcomes(X, y)
            said, taught = self._said(self.estimator_, X), _taught(self.estimator_, X, y)
            self._book(said, X, y, max(len(y), 1))
            self.estimator_ = taught
            return self
        if not _learns(self._base()):
            return self.fit(X, y)
        X, y = self._checked(X, y)
        estimators = self._one_a_level(clone(self._base()))
        for estimator in _each(estimators):
            estimator.partial_fit(X, y)
        self._begin()
        self.estimator_ = estimators
        return self

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """The means of the calibrated forecasts, and with ``return_std`` their standard deviations."""
        if not return_std:
            return np.array([p.mean() for p in self._issued(X)])
        moments = np.array([(p.mean(), p.std()) for p in self._issued(X)]).reshape(-1, 2)
        return moments[:, 0], moments[:, 1]

    def predict_quantiles(self, X: Any, levels: ArrayLike) -> Array:
        """Calibrated quantiles, a row for each row of X and a column for each level."""
        wanted = np.atleast_1d(as_levels(levels))
        rows = [p.quantile(wanted) for p in self._issued(X)]
        return np.array(rows, dtype=np.float64).reshape(len(rows), wanted.size)

    def predict_interval(self, X: Any, confidence: float = 0.9) -> Array:
        """The lower and the upper end of the central intervals, a row for each row of X."""
        share = as_share(confidence)
        return self.predict_quantiles(X, [0.5 - share / 2.0, 0.5 + share / 2.0])

    def predict_distribution(self, X: Any) -> list[Forecast]:
        """The calibrated forecasts themselves, one for each row of X."""
        return list(self._issued(X))

    def _issued(self, X: Any) -> Iterator[Forecast]:
        check_is_fitted(self, "estimator_")
        forecasts = self._forecasts(self._said(self.estimator_, X), self.residuals_)
        return _issued(self.recalibrator_, forecasts, _features(self.payoff, X))

    def _base(self) -> Any:
        return BayesianRidge() if self.estimator is None else self.estimator

    def _checked(self, X: Any, y: Any) -> tuple[Any, Array]:
        """What is fitted to; sets what scikit-learn wants to know of it."""
        y = self._outcomes(X, y)
        X = _rows(X)
        validate_data(self, X, skip_check_array=True)
        return X, y

    def _outcomes(self, X: Any, y: Any) -> Array:
        numbers = np.asarray(column_or_1d(y, warn=True), dtype=np.float64)
        assert_all_finite(numbers, input_name="y")
        check_consistent_length(X, numbers)
        return numbers

    def _begin(self) -> None:
        self.recalibrator_ = Recalibrator(
            space_of(self.low, self.high), self.payoff, oracle=self.oracle, memory=self.memory, outside=self.outside
        )
        self.residuals_ = Residuals(self.window)

    def _fitted(self, X: Any, y: Array) -> Any:
        estimators = self._one_a_level(clone(self._base()))
        for estimator in _each(estimators):
            estimator.fit(X, y)
        return estimators

    def _one_a_level(self, estimator: Any) -> Any:
        name = None if self.levels is None else _level_parameter(estimator)
        if name is None:
            return estimator
        return [clone(estimator).set_params(**{name: level}) for level in _levels(self.levels)]

    def _said(self, estimator: Any, X: Any) -> Array:
        """What the estimator says of each row: a column a level, or a mean and a spread (0 if it has none)."""
        if self.levels is not None:
            columns = [each.predict(X) for each in estimator] if isinstance(estimator, list) else estimator.predict(X)
            table = np.column_stack(columns) if isinstance(columns, list) else np.asarray(columns, dtype=np.float64)
            wanted = len(_levels(self.levels))
            if table.ndim != 2 or table.shape[1] != wanted:
                raise ValueError(f"expected predictions at each of {wanted} levels, got shape {table.shape}")
            return np.sort(table, axis=1)
        if _says_spread(estimator):
            if isinstance(X, np.ndarray) and X.dtype.kind == "O":
                X = X.astype(np.float64)  # some that take objects do so for their predictions, not for the spread
            return np.column_stack(estimator.predict(X, return_std=True))
        points = np.asarray(estimator.predict(X), dtype=np.float64)
        if points.ndim == 2 and points.shape[1] == 1:
            points = points[:, 0]
        if points.ndim != 1:
            raise ValueError(f"expected one prediction a row, or levels= of several, got shape {points.shape}")
        return np.column_stack((points, np.zeros(len(points))))

    def _forecasts(self, said: Array, residuals: Residuals, y: Array | None = None) -> list[Any]:
        """A forecast for each row; with outcomes, each spread also from the residuals of the rows before it."""
        if self.levels is not None:
            levels = _levels(self.levels)
            return [Quantiles(levels, row) for row in said]
        space: Any = self.recalibrator_.space
        forecasts = []
        for i, (point, spread) in enumerate(said.tolist()):
            forecasts.append(residuals.around(point, space, spread))
            if y is not None:
                residuals.add(float(y[i]) - forecasts[-1].mean)
        return forecasts

    def _book(self, said: Array, X: Any, y: Array, batch: int) -> None:
        recal, residuals, features = self.recalibrator_, self.residuals_.copy(), _features(self.payoff, X)
        one_by_one = batch == 1 and _never_late(recal)
        if one_by_one and self.levels is not None:
            recal.run(said, y, x=features, levels=_levels(self.levels), at=[0.5])
        elif one_by_one:
            recal.run(self._forecasts(said, residuals, y), y, x=features, at=[0.5])
        else:
            outcomes = [recal.space.outcome(each, self.outside) for each in y.tolist()]
            for rows in _batches(len(y), batch):
                forecasts = self._forecasts(said[rows], residuals)
                _play(recal, forecasts, None if features is None else features[rows], outcomes[rows])
                if self.levels is None:
                    for outcome, forecast in zip(outcomes[rows], forecasts, strict=True):
                        residuals.add(outcome - forecast.mean)
        self.residuals_ = residuals


class RecalibratedClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier around any classifier of scikit-learn's, whose probabilities stay calibrated on any sequence.

    ``estimator`` (a ``LogisticRegression`` if None) is asked for ``predict_proba``; if it has none, its
    ``decision_function`` goes through a sigmoid or softmax; if it has neither, it is taken to be sure of what it
    predicts.  ``payoff``, ``oracle`` and ``memory`` are those of :class:`orcast.Recalibrator`; of two classes the game
    is about the second (``Binary``).

    ``fit``, ``folds`` and ``partial_fit`` are as for :class:`RecalibratedRegressor`; rows before the second class has
    come are not scored.  The classes are those of ``fit``, or of the first ``partial_fit`` and its ``classes``.

    Fitted, it has ``classes_``, ``estimator_``, ``recalibrator_`` (an :class:`orcast.Recalibrator`: its ``guarantee``),
    ``n_features_in_`` and, from data frames, ``feature_names_in_``.

    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = RecalibratedClassifier(GaussianNB()).fit(X[:400], y[:400])
    >>> model.predict_proba(X[400:]).shape, model.recalibrator_.guarantee.rounds
    ((169, 2), 334)
    >>> model.partial_fit(X[400:], y[400:]).recalibrator_.guarantee.rounds
    503
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        payoff: Payoff | None = None,
        oracle: Oracle | None = None,
        memory: float | None = None,
        folds: int = 5,
        batch: int = 100,
    ) -> None:
        self.estimator = estimator
        self.payoff = payoff
        self.oracle = oracle
        self.memory = memory
        self.folds = folds
        self.batch = batch

    def __sklearn_tags__(self) -> Any:
        return _tags_like(super().__sklearn_tags__(), self._base())

    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Fit the estimator, and calibrate it on the rows that it had not seen."""
        X, y = self._checked(X, y)
        parts, batch = _parts(len(y), self.folds, self._base()), _batch(self.batch)
        fitted = clone(self._base()).fit(X, y)
        self._begin(np.unique(y))
        for past, rows in parts:
            if past.stop == 0 or len(np.unique(y[past])) > 1:
                base = fitted if past.stop == 0 else clone(self._base()).fit(_safe_indexing(X, past), y[past])
                ahead = _safe_indexing(X, rows)
                self._book(self._said(base, ahead), ahead, y[rows], batch)
        self.estimator_ = fitted
        return self

    def partial_fit(self, X: Any, y: ArrayLike, classes: ArrayLike | None = None) -> Self:
        """Score the outcomes against the probabilities of these rows, then teach the estimator."""
        if hasattr(self, "estimator_"):
            y = self._outcomes(X, y)
            self._places(y)
            said, taught = self._said(self.estimator_, X), _taught(self.estimator_, X, y)
            self._book(said, X, y, max(len(y), 1))
            self.estimator_ = taught
            return self
        if not _learns(self._base()):
            return self.fit(X, y)
        X, y = self._checked(X, y)
        self._begin(np.unique(y if classes is None else np.asarray(classes)))
        self._places(y)
        self.estimator_ = clone(self._base()).partial_fit(X, y, classes=self.classes_)
        return self

    def predict_proba(self, X: Any) -> Array:
        """Calibrated probabilities, a row for each row of X and a column for each of ``classes_``."""
        check_is_fitted(self, "estimator_")
        forecasts = self._forecasts(self._said(self.estimator_, X))
        return np.array([p.mass for p in _issued(self.recalibrator_, forecasts, _features(self.payoff, X))])

    def predict(self, X: Any) -> NDArray[Any]:
        """The class with the largest calibrated probability."""
        best = self.predict_proba(X).argmax(axis=1)
        chosen: NDArray[Any] = self.classes_[best]
        return chosen

    def _base(self) -> Any:
        return LogisticRegression() if self.estimator is None else self.estimator

    def _checked(self, X: Any, y: Any) -> tuple[Any, NDArray[Any]]:
        """What is fitted to; sets what scikit-learn wants to know of it."""
        y = self._outcomes(X, y)
        X = _rows(X)
        validate_data(self, X, skip_check_array=True)
        return X, y

    def _outcomes(self, X: Any, y: Any) -> NDArray[Any]:
        labels: NDArray[Any] = column_or_1d(y, warn=True)
        assert_all_finite(labels, input_name="y")
        check_classification_targets(labels)
        check_consistent_length(X, labels)
        return labels

    def _begin(self, classes: NDArray[Any]) -> None:
        if len(classes) < 2:
            raise ValueError(f"expected at least two classes, got one class, {short(classes.tolist()[0])}")
        self.classes_ = classes
        self.recalibrator_ = Recalibrator(
            Binary() if len(classes) == 2 else Labels(classes.tolist()),
            self.payoff,
            oracle=self.oracle,
            memory=self.memory,
        )

    def _places(self, y: NDArray[Any]) -> NDArray[np.intp]:
        """The places of labels among the classes."""
        places = np.minimum(np.searchsorted(self.classes_, y), len(self.classes_) - 1)
        strange = self.classes_[places] != y
        if strange.any():
            raise ValueError(f"expected one of the classes {short(self.classes_.tolist())}, got {y[strange][0]!r}")
        return places

    def _said(self, estimator: Any, X: Any) -> Array:
        """The estimator's probabilities, a column for each class."""
        known = estimator.classes_
        if hasattr(estimator, "predict_proba"):
            masses = np.asarray(estimator.predict_proba(X), dtype=np.float64)
        else:
            masses = _by_margin(estimator, X, len(known))
        table = np.zeros((len(masses), len(self.classes_)))
        table[:, self._places(known)] = masses
        total = table.sum(axis=1, keepdims=True)
        even = np.full_like(table, 1.0 / table.shape[1])
        return np.asarray(np.divide(table, total, out=even, where=total > 0.0))

    def _forecasts(self, said: Array) -> list[Any]:
        return said[:, 1].tolist() if len(self.classes_) == 2 else list(said)

    def _book(self, said: Array, X: Any, y: NDArray[Any], batch: int) -> None:
        places = self._places(y).tolist()
        forecasts, features = self._forecasts(said), _features(self.payoff, X)
        recal = self.recalibrator_
        if batch == 1 and _never_late(recal):
            recal.run(forecasts, places if len(self.classes_) == 2 else y.tolist(), x=features)
            return
        for rows in _batches(len(places), batch):
            _play(recal, forecasts[rows], None if features is None else features[rows], places[rows])


# --- rows and estimators


def _rows(X: Any) -> Any:
    """What rows can be taken of."""
    if hasattr(X, "tocsr"):
        return X.tocsr()
    return X if hasattr(X, "shape") else np.asarray(X)


def _parts(rows: int, folds: object, base: Any) -> Iterator[tuple[slice, slice]]:
    """The rows to fit to and those to score after it, in the order of time; nothing to fit to if it is frozen."""
    if isinstance(folds, bool) or not isinstance(folds, (int, np.integer)) or folds < 1:
        raise ValueError(f"expected at least 1 fold, got {short(folds)}")
    if isinstance(base, FrozenEstimator):
        return iter([(slice(0, 0), slice(0, rows))])
    ends = [rows * part // (int(folds) + 1) for part in range(1, int(folds) + 2)]
    return ((slice(0, a), slice(a, b)) for a, b in pairwise(ends) if 0 < a < b)


def _batch(batch: object) -> int:
    if isinstance(batch, bool) or not isinstance(batch, (int, np.integer)) or batch < 1:
        raise ValueError(f"expected a batch of at least 1 row, got {short(batch)}")
    return int(batch)


def _batches(rows: int, size: int) -> Iterator[slice]:
    """Rows whose outcomes come together."""
    return (slice(start, start + size) for start in range(0, rows, size))


def _each(estimators: Any) -> list[Any]:
    return estimators if isinstance(estimators, list) else [estimators]


def _levels(levels: Any) -> list[float]:
    """Levels in increasing order."""
    return sorted(np.atleast_1d(as_levels(levels)).ravel().tolist())


def _learns(estimator: Any) -> bool:
    return hasattr(estimator, "partial_fit") and not isinstance(estimator, FrozenEstimator)


def _taught(estimators: Any, X: Any, y: Any) -> Any:
    """Copies that have learnt from rows, of those that can: if one fails, all are as they were."""
    if not all(map(_learns, _each(estimators))):
        return estimators
    taught = deepcopy(estimators)
    for estimator in _each(taught):
        estimator.partial_fit(X, y)
    return taught


def _level_parameter(estimator: Any) -> str | None:
    """The parameter that says which quantile an estimator is for, if it is for one."""
    parameters = estimator.get_params()
    for name in parameters:
        place, _, last = name.rpartition("__")
        loss = parameters.get(f"{place}__loss" if place else "loss")
        if (last == "quantile" and loss in (None, "quantile")) or (last == "alpha" and loss == "quantile"):
            return str(name)
    return None


def _says_spread(estimator: Any) -> bool:
    """Whether ``predict`` has the option ``return_std``; of a pipeline its last step's."""
    while isinstance(estimator, (Pipeline, FrozenEstimator)):
        estimator = estimator[-1] if isinstance(estimator, Pipeline) else estimator.estimator
    try:
        return "return_std" in inspect.signature(estimator.predict).parameters
    except (TypeError, ValueError):
        return False


def _by_margin(estimator: Any, X: Any, classes: int) -> Array:
    """Probabilities of a classifier that says none: from its margins, or from what it predicts."""
    from scipy.special import expit, softmax

    if hasattr(estimator, "decision_function"):
        margin = np.asarray(estimator.decision_function(X), dtype=np.float64)
        if margin.ndim == 1:
            return np.column_stack((expit(-margin), expit(margin)))
        if margin.shape[1] == classes:
            return np.asarray(softmax(margin, axis=1))
    return np.asarray(estimator.predict(X)[:, None] == estimator.classes_, dtype=np.float64)


def _tags_like(tags: Any, base: Any) -> Any:
    """What X may be is up to the estimator."""
    theirs = get_tags(base).input_tags
    for name in ("sparse", "allow_nan", "categorical", "string"):
        setattr(tags.input_tags, name, getattr(theirs, name))
    return tags


# --- rounds


def _issued(recal: Recalibrator, forecasts: list[Any], features: list[Any] | None) -> Iterator[Any]:
    """Calibrated forecasts, which nothing waits for."""
    game = recal.game
    return (game.engine.forecast(page) for page in issue_together(game, forecasts, features))


def _never_late(recal: Recalibrator) -> bool:
    """Whether each outcome was known before the next forecast, so that rounds can be played in one compiled loop."""
    return not recal.game.rounds.usual_lag


def _play(recal: Recalibrator, forecasts: list[Any], features: list[Any] | None, outcomes: list[Any]) -> None:
    """Score the same forecasts."""
    book_together(recal.game, list(issue_together(recal.game, forecasts, features)), outcomes)


def _features(payoff: Payoff | None, X: Any) -> list[Any] | None:
    """What the payoff's contexts see of each row: by the names of the columns, or the row itself."""
    asked = FeatureReader(payoff)
    if not asked:
        return None
    import narwhals as nw

    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        return [asked.of(row) for row in frame.iter_rows(named=True)]
    return [asked.of(row) for row in (X.toarray() if hasattr(X, "toarray") else np.asarray(X)).tolist()]
