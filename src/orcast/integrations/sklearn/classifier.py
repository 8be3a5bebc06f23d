"""Any classifier of scikit-learn's, recalibrated."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, clone  # type: ignore[import-untyped]
from sklearn.linear_model import LogisticRegression  # type: ignore[import-untyped]
from sklearn.utils.validation import check_is_fitted  # type: ignore[import-untyped]

from orcast.engine import Oracle
from orcast.integrations.common import settle_together
from orcast.integrations.sklearn.rows import RowEstimator, batches, features_of, learns
from orcast.payoffs import Payoff
from orcast.recalibrator import Recalibrator
from orcast.spaces import Binary, Labels
from orcast.validation import short

Array = NDArray[np.float64]


class RecalibratedClassifier(ClassifierMixin, RowEstimator):  # type: ignore[misc]
    """A classifier around any classifier of scikit-learn's, whose probabilities stay calibrated on any sequence.

    ``estimator`` (a ``LogisticRegression`` if None) is asked for ``predict_proba``; if it has none, its
    ``decision_function`` goes through a sigmoid or softmax; if it has neither, it is taken to be sure of what it
    predicts.  ``payoff``, ``oracle`` and ``memory`` are those of :class:`orcast.Recalibrator`; of two classes the game
    is about the second (``Binary``).

    ``fit``, ``folds`` and ``partial_fit`` are as for :class:`RecalibratedRegressor`; rows before the second class
    are not scored.  The classes are those of ``fit``, or of the first ``partial_fit`` and its ``classes``.

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

    default_estimator = LogisticRegression

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
        self.payoff, self.oracle, self.memory = payoff, oracle, memory
        self.folds, self.batch = folds, batch

    def partial_fit(self, X: Any, y: ArrayLike, classes: ArrayLike | None = None) -> Self:
        """Score the outcomes against the probabilities of these rows, then update the estimator."""
        if hasattr(self, "estimator_"):
            y = self._outcomes(X, y)
            self._places(y)
            return self._settle_and_update(X, y)
        if not learns(self._base()):
            return self.fit(X, y)
        X, y = self._checked(X, y)
        self._begin(y if classes is None else np.asarray(classes))
        self._places(y)
        self.estimator_ = clone(self._base()).partial_fit(X, y, classes=self.classes_)
        return self

    def predict_proba(self, X: Any) -> Array:
        """Calibrated probabilities, a row for each row of X and a column for each of ``classes_``."""
        check_is_fitted(self, "estimator_")
        forecasts = self._forecasts(self._predictions(self.estimator_, X))
        return np.array([p.mass for p in self._forecast_rows(forecasts, X)])

    def predict(self, X: Any) -> NDArray[Any]:
        """The class with the largest calibrated probability."""
        best = self.predict_proba(X).argmax(axis=1)
        chosen: NDArray[Any] = self.classes_[best]
        return chosen

    def _begin(self, y: NDArray[Any]) -> None:
        classes = np.unique(y)
        if len(classes) < 2:
            raise ValueError(f"expected at least two classes, got one class, {short(classes.tolist()[0])}")
        self.classes_ = classes
        space = Binary() if len(classes) == 2 else Labels(classes.tolist())
        self.recalibrator_ = Recalibrator(space, self.payoff, oracle=self.oracle, memory=self.memory)

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

    def _forecasts(self, masses: Array) -> list[Any]:
        return masses[:, 1].tolist() if len(self.classes_) == 2 else list(masses)

    def _errors(self, predictions: Array, y: NDArray[Any]) -> list[float]:
        said: list[float] = (1.0 - predictions[np.arange(len(y)), self._places(y)]).tolist()
        return said

    def _settle(self, predictions: Array, X: Any, y: NDArray[Any], batch: int | None = None) -> None:
        places = self._places(y).tolist()
        recal, forecasts, features = self.recalibrator_, self._forecasts(predictions), features_of(self.payoff, X)
        if (batch == 1 or len(y) == 1) and self._never_late:
            recal.run(forecasts, places if len(self.classes_) == 2 else y.tolist(), x=features)
            return
        for rows, outstanding in batches(len(places), batch):
            known = None if features is None else features[rows]
            settle_together(recal, forecasts[rows], known, places[rows], outstanding)


def _by_margin(estimator: Any, X: Any, classes: int) -> Array:
    """Probabilities of a classifier that has none: from its margins, or from what it predicts."""
    from scipy.special import expit, softmax

    if hasattr(estimator, "decision_function"):
        margin = np.asarray(estimator.decision_function(X), dtype=np.float64)
        if margin.ndim == 1:
            return np.column_stack((expit(-margin), expit(margin)))
        if margin.shape[1] == classes:
            return np.asarray(softmax(margin, axis=1))
    return np.asarray(estimator.predict(X)[:, None] == estimator.classes_, dtype=np.float64)
