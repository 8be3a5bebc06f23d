"""What the regressor and the classifier share: rows in the order of time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from copy import deepcopy
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin  # type: ignore[import-untyped]
from sklearn.frozen import FrozenEstimator  # type: ignore[import-untyped]
from sklearn.utils import _safe_indexing, get_tags  # type: ignore[import-untyped]
from sklearn.utils.multiclass import check_classification_targets  # type: ignore[import-untyped]
from sklearn.utils.validation import (  # type: ignore[import-untyped]
    assert_all_finite,
    check_consistent_length,
    column_or_1d,
    validate_data,
)

from orcast.features import FeatureReader
from orcast.integrations.common import at_least_one, peek_each, ratio_of_errors
from orcast.payoffs import Payoff
from orcast.recalibrator import Recalibrator
from orcast.validation import warn_user

Array = NDArray[np.float64]

# So many errors after a fit are compared with those in it.
COMPARED = 100


class RowEstimator(MetaEstimatorMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """What both wrappers share: rows are fitted to, forecast and settled in the order of time."""

    default_estimator: ClassVar[Any]
    outcome_type: ClassVar[Any] = None  # any
    estimator: Any
    payoff: Payoff | None
    folds: int
    batch: int
    recalibrator_: Recalibrator
    _learnt: Sequence[float] = ()  # errors of the predictions in `fit`
    _served: Sequence[float] | None = ()  # and of the first ones after it; None once they need no more comparison

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        theirs = get_tags(self._base()).input_tags  # what X may be is up to the estimator
        for name in ("sparse", "allow_nan", "categorical", "string"):
            setattr(tags.input_tags, name, getattr(theirs, name))
        return tags

    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Fit the estimator, and calibrate it on the rows that it had not seen."""
        return self.fit_checked(*self._checked(X, y))

    def fit_checked(self, X: Any, y: NDArray[Any]) -> Self:
        """``fit``, with rows and outcomes that need no check."""
        parts = _parts(len(y), at_least_one(self.folds, "at least 1 fold"), self._base())
        batch = at_least_one(self.batch, "a batch of at least 1 row")
        fitted = self._fitted(X, y)
        self._begin(y)
        errors: list[list[float]] = []
        for past, rows in parts:
            base = fitted if past.stop == 0 else self._fitted(_safe_indexing(X, past), y[past])
            if base is not None:
                ahead = _safe_indexing(X, rows)
                predictions = self._predictions(base, ahead)
                self._settle(predictions, ahead, y[rows], batch)
                errors.append(self._errors(predictions, y[rows]))
        self.estimator_ = fitted
        self._learnt, self._served = [each for part in errors for each in part], ()
        _warn_of_last_part(errors)
        return self

    def _settle_and_update(self, X: Any, y: NDArray[Any]) -> Self:
        """Score rows against the forecasts of the estimator as it is, then update it; all of it or nothing."""
        with self.recalibrator_.lock:
            predictions, updated = self._predictions(self.estimator_, X), _updated(self.estimator_, X, y)
            self._settle(predictions, X, y)
            self.estimator_ = updated
            self._compare(self._errors(predictions, y))
        return self

    def _compare(self, errors: list[float]) -> None:
        """Warn, once, if the errors of what is served are unlike those that were learnt from."""
        if self._served is None:
            return
        self._served = [*self._served, *errors]
        ratio = ratio_of_errors(self._learnt, self._served)
        if ratio is not None:
            warn_user(
                f"the errors since fit are {ratio:.2g} times those that fit has seen: what is applied was learnt from "
                "forecasts of another kind (a model that was fitted to the rows of fit, or a change; reported once)",
                UserWarning,
            )
        if ratio is not None or len(self._served) >= COMPARED:
            self._served = None

    def _base(self) -> Any:
        return self.default_estimator() if self.estimator is None else self.estimator

    def _checked(self, X: Any, y: Any) -> tuple[Any, NDArray[Any]]:
        """Rows and outcomes to fit to; sets ``n_features_in_`` and ``feature_names_in_``."""
        y = self._outcomes(X, y)
        X = X.tocsr() if hasattr(X, "tocsr") else X if hasattr(X, "shape") else np.asarray(X)
        validate_data(self, X, skip_check_array=True)
        return X, y

    def _outcomes(self, X: Any, y: Any) -> NDArray[Any]:
        """Outcomes as an array, one for each row."""
        outcomes = np.asarray(column_or_1d(y, warn=True), dtype=self.outcome_type)
        assert_all_finite(outcomes, input_name="y")
        if isinstance(self, ClassifierMixin):
            check_classification_targets(outcomes)
        check_consistent_length(X, outcomes)
        return outcomes

    def _forecast_rows(self, forecasts: list[Any], X: Any) -> Iterator[Any]:
        """Calibrated forecasts of rows; nothing is kept."""
        game = self.recalibrator_
        records = peek_each(game, forecasts, features_of(self.payoff, X))
        return (game.engine.forecast(record) for record in records)

    @property
    def _never_late(self) -> bool:
        """Whether each outcome was known before the next forecast, so that one compiled loop can play them."""
        return not self.recalibrator_.rounds.usual_lag

    @abstractmethod
    def _begin(self, y: NDArray[Any]) -> None:
        """A new game."""

    @abstractmethod
    def _fitted(self, X: Any, y: NDArray[Any]) -> Any:
        """A new estimator, fitted; None if it cannot be."""

    @abstractmethod
    def _predictions(self, estimator: Any, X: Any) -> Array:
        """What the estimator predicts, a row for each row of X."""

    @abstractmethod
    def _errors(self, predictions: Array, y: NDArray[Any]) -> list[float]:
        """How far predictions were from their outcomes."""

    @abstractmethod
    def _settle(self, predictions: Array, X: Any, y: NDArray[Any], batch: int | None = None) -> None:
        """Play the rounds of rows and record their outcomes, a batch at a time; all at once if they were served."""


def _warn_of_last_part(errors: list[list[float]]) -> None:
    """Warn if the errors of the last part that was scored are unlike those before it."""
    ratio = ratio_of_errors([each for part in errors[:-1] for each in part], errors[-1]) if errors else None
    if ratio is not None:
        warn_user(
            f"the errors of the last of {len(errors)} parts are {ratio:.2g} times those of the parts before it: the "
            "estimator that is fitted to all rows may be of another kind than those that it was calibrated with (rows "
            "are taken to be in the order of time; partial_fit with new outcomes corrects it)",
            UserWarning,
        )


def _parts(rows: int, folds: int, base: Any) -> Iterator[tuple[slice, slice]]:
    """The rows to fit to and those to score after it, in the order of time; nothing to fit to if it is frozen."""
    if isinstance(base, FrozenEstimator):
        return iter([(slice(0, 0), slice(0, rows))])
    ends = [rows * part // (folds + 1) for part in range(1, folds + 2)]
    return ((slice(0, a), slice(a, b)) for a, b in pairwise(ends) if 0 < a < b)


def batches(rows: int, size: int | None) -> Iterator[tuple[slice, float]]:
    """Rows whose outcomes come together, and how many others are outstanding for each; by default all rows."""
    if size is None:
        yield slice(0, rows), 0.0  # they were forecast as `predict` does, each by itself
        return
    for start in range(0, rows, size):
        yield slice(start, start + size), float(min(size, rows - start) - 1)


def each_of(estimators: Any) -> list[Any]:
    """One estimator, or one for each level, as a list."""
    return estimators if isinstance(estimators, list) else [estimators]


def learns(estimator: Any) -> bool:
    """Whether an estimator can be updated."""
    return hasattr(estimator, "partial_fit") and not isinstance(estimator, FrozenEstimator)


def _updated(estimators: Any, X: Any, y: Any) -> Any:
    """Copies that have learnt from rows, of those that can: if one fails, all are as they were."""
    if not all(map(learns, each_of(estimators))):
        return estimators
    updated = deepcopy(estimators)
    for estimator in each_of(updated):
        estimator.partial_fit(X, y)
    return updated


def features_of(payoff: Payoff | None, X: Any) -> list[Any] | None:
    """What the payoff's contexts see of each row: by the names of the columns, or the row itself."""
    asked = FeatureReader(payoff)
    if not asked:
        return None
    import narwhals as nw

    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        return [asked.of(row) for row in frame.iter_rows(named=True)]
    return [asked.of(row) for row in (X.toarray() if hasattr(X, "toarray") else np.asarray(X)).tolist()]
