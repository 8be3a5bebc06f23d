"""scikit-learn: its own checks, forecasts that are scored as they were made, rows that no model has seen, attacks."""

import math
import pickle
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import orcast as oc
from helpers import SENTENCE
from orcast.residuals import Residuals

pytest.importorskip("sklearn")

from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import (
    BayesianRidge,
    LinearRegression,
    LogisticRegression,
    QuantileRegressor,
    Ridge,
    RidgeClassifier,
    SGDRegressor,
)
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from orcast.integrations.sklearn import RecalibratedClassifier, RecalibratedRegressor, has_spread

SPACE = oc.Interval(0, 100)
LEVELS = [0.1, 0.5, 0.9]


@pytest.mark.filterwarnings("ignore")  # what is drawn in them, and so what warns, differs from version to version
@parametrize_with_checks(
    [
        RecalibratedRegressor(),
        RecalibratedRegressor(SGDRegressor(random_state=0)),
        RecalibratedClassifier(GaussianNB()),
    ],
)
def test_passes_the_checks_of_scikit_learn(estimator: Any, check: Any) -> None:
    check(estimator)


# --- models that watch, and streams


class Echo(RegressorMixin, BaseEstimator):
    """Says its first column, and remembers by the second which rows it was fitted to and asked for."""

    log: list[tuple[str, list[int]]] = []  # noqa: RUF012

    def fit(self, X: Any, y: Any) -> Any:
        self.rows_ = {int(row) for row in X[:, 1]}
        Echo.log.append(("fit", [int(row) for row in X[:, 1]]))
        return self

    def predict(self, X: Any) -> Any:
        asked = {int(row) for row in X[:, 1]}
        assert not asked & self.rows_, "asked for rows that it has seen"
        assert min(asked) > max(self.rows_), "asked for rows before those that it has seen"
        Echo.log.append(("predict", [int(row) for row in X[:, 1]]))
        return X[:, 0]


class Learns(Echo):
    """Has partial_fit."""

    def partial_fit(self, X: Any, y: Any) -> Any:
        rows = [int(row) for row in X[:, 1]]
        self.rows_ = getattr(self, "rows_", set()) | set(rows)
        Echo.log.append(("update", rows))
        return self


class Table(RegressorMixin, BaseEstimator):
    """Says several quantiles at once: its columns."""

    def fit(self, X: Any, y: Any) -> Any:
        self.is_fitted_ = True
        return self

    def predict(self, X: Any) -> Any:
        return X[:, :3]


class Knows(ClassifierMixin, BaseEstimator):
    """Says the probabilities that it is given."""

    def fit(self, X: Any, y: Any) -> Any:
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X: Any) -> Any:
        return X[:, : len(self.classes_)]


def echoes(count: int, seed: int = 0) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    rng = np.random.default_rng(seed)
    says = rng.normal(50.0, 8.0, count)
    return np.column_stack((says, np.arange(count))), np.clip(says + rng.gumbel(1.0, 4.0, count), 0, 100)


def humid(count: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    v = oc.datasets.load("humidity").values[: count + 24]
    return np.column_stack([v[24 - lag : len(v) - lag] for lag in (1, 2, 24)]), v[24:]


def frozen(**options: Any) -> RecalibratedRegressor:
    """Around a model that says its first column."""
    model = LinearRegression(fit_intercept=False).fit(np.eye(2), [1.0, 0.0])
    return RecalibratedRegressor(FrozenEstimator(model), low=0, high=100, **options)


# --- what is fitted to, and what is scored


@pytest.mark.parametrize(("rows", "folds"), [(61, 5), (20, 1), (3, 10)])
def test_no_row_is_scored_by_a_model_that_has_seen_it(rows: int, folds: int) -> None:
    X, y = echoes(rows)
    Echo.log.clear()
    model = RecalibratedRegressor(Echo(), low=0, high=100, folds=folds).fit(X, y)
    assert Echo.log[0] == ("fit", list(range(rows)))
    scored: list[int] = []
    for (what, past), (then, part) in zip(Echo.log[1::2], Echo.log[2::2], strict=True):
        assert (what, then) == ("fit", "predict")
        assert past == list(range(part[0]))
        scored += part
    first = rows // (folds + 1) or 1
    assert scored == list(range(first, rows))
    assert model.recalibrator_.guarantee.rounds == rows - first
    assert model.n_features_in_ == 2


def test_a_frozen_model_is_scored_on_all_rows_and_another_before_it_learns() -> None:
    X, y = echoes(50)
    fitted_model = SGDRegressor(random_state=0).partial_fit(X / 100, y)
    before = fitted_model.coef_.copy()
    model = RecalibratedRegressor(FrozenEstimator(fitted_model)).fit(X / 100, y).partial_fit(X / 100, y)
    assert model.recalibrator_.guarantee.rounds == 100
    np.testing.assert_array_equal(fitted_model.coef_, before)
    model = RecalibratedRegressor(Learns(), low=0, high=100, folds=1).partial_fit(X[:10], y[:10])
    Echo.log.clear()
    model.partial_fit(X[10:30], y[10:30])
    assert Echo.log == [("predict", list(range(10, 30))), ("update", list(range(10, 30)))]
    assert model.recalibrator_.guarantee.rounds == 25


def test_a_pipeline_has_the_spread_of_its_last_step_and_may_be_searched() -> None:
    X, y = humid(200)
    for base, spread in ((RecalibratedRegressor(folds=2), True), (LinearRegression(), False), (DummyRegressor(), True)):
        assert has_spread(make_pipeline(StandardScaler(), base)) is spread
        low, high = RecalibratedRegressor(base, low=0, high=100, folds=2).fit(X, y).predict_interval(X[:3]).T
        assert ((low >= 0) & (low < high) & (high <= 100)).all()  # a spread of zero, as of the dummy, is none
    model = RecalibratedRegressor(make_pipeline(StandardScaler(), Ridge()), low=0, high=100)
    search = GridSearchCV(model, {"estimator__ridge__alpha": [1, 10], "folds": [2]}, cv=TimeSeriesSplit(2))
    search.fit(X[:150], y[:150])
    assert search.best_estimator_.predict_interval(X[150:], 0.8).shape == (50, 2)


class Falls(SGDRegressor):  # type: ignore[misc]
    """Learns, but the one of the highest level falls over after it has."""

    falls = False

    def __init__(self, alpha: float = 0.5, loss: str = "quantile") -> None:
        super().__init__()
        self.alpha, self.loss = alpha, loss

    def fit(self, X: Any, y: Any) -> Any:
        self.rows_ = len(y)
        return self

    def partial_fit(self, X: Any, y: Any) -> Any:
        self.rows_ += len(y)
        if Falls.falls and self.alpha > 0.8:
            raise RuntimeError("no")
        return self

    def predict(self, X: Any) -> Any:
        return np.full(len(X), 100 * self.alpha)


@pytest.mark.parametrize("rows", [1, 7])
@pytest.mark.parametrize("levels", [None, [0.1, 0.5, 0.9]], ids=["one", "one a level"])
def test_an_estimator_that_fails_changes_nothing(
    levels: list[float] | None, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = echoes(60)
    model = RecalibratedRegressor(Falls(0.9), low=0, high=100, levels=levels, folds=1, batch=1).fit(X[:40], y[:40])
    before = pickle.dumps((model.recalibrator_, model.residuals_, model.estimator_))
    monkeypatch.setattr(Falls, "falls", True)
    if levels is None:
        with pytest.raises(RuntimeError):
            model.partial_fit(X[40 : 40 + rows], y[40 : 40 + rows])
    assert pickle.dumps((model.recalibrator_, model.residuals_, model.estimator_)) == before
    monkeypatch.setattr(Falls, "falls", False)
    with pytest.raises(ValueError, match=SENTENCE):
        model.partial_fit(X[40 : 40 + rows], y[40 : 40 + rows] + 1000)
    assert pickle.dumps((model.recalibrator_, model.residuals_, model.estimator_)) == before
    model.partial_fit(X[40 : 40 + rows], y[40 : 40 + rows])
    assert model.recalibrator_.guarantee.rounds == 20 + rows
    each = model.estimator_ if levels else [model.estimator_]
    assert {one.rows_ for one in each} == {40 if levels else 40 + rows}


# --- the same numbers as by hand


@pytest.mark.parametrize("streamed", [False, True])
def test_row_by_row_it_is_the_recalibrator_bit_for_bit(streamed: bool) -> None:
    X, y = echoes(120)
    recal, residuals = oc.Recalibrator(SPACE), Residuals(100)
    model = frozen(batch=1)
    if streamed:
        model.fit(X[:1], y[:1])
    else:
        model.fit(X, y)
    for t, (point, outcome) in enumerate(zip(X[:, 0].tolist(), y.tolist(), strict=True)):
        p = recal.predict(residuals.around(point, SPACE))
        if streamed and t:
            row = X[t : t + 1]
            assert model.predict(row)[0] == p.mean()
            np.testing.assert_array_equal(model.predict_quantiles(row, LEVELS)[0], p.quantile(LEVELS))
            model.partial_fit(row, y[t : t + 1])
        recal.update(outcome)
        residuals.add(outcome - point)
    assert model.recalibrator_.guarantee == recal.guarantee
    assert model.predict(X[:1])[0] == recal.predict(residuals.around(X[0, 0], SPACE)).mean()


def test_what_is_scored_is_what_was_predicted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also in batches of any length: the recalibrator receives the masses that the user saw."""
    X, y = echoes(200)
    model = frozen(batch=7).fit(X[:50], y[:50])
    engine = type(model.recalibrator_.engine)
    update, smoothed = engine.update, []

    def watched(self: Any, page: Any, outcome: Any, **options: Any) -> None:
        smoothed.append(self.forecast(page).mass)
        update(self, page, outcome, **options)

    monkeypatch.setattr(engine, "update", watched)
    start = 50
    for size in (1, 10, 3, 80, 1, 55):
        rows = slice(start, start + size)
        said = [p.mass for p in model.predict_distribution(X[rows])]
        smoothed.clear()
        model.partial_fit(X[rows], y[rows])
        assert len(smoothed) == size
        # in a game that has not moved on: the first is the same as it stands, the others as they were issued
        np.testing.assert_array_equal(np.array(said), np.array(smoothed))
        start += size
    assert start == 200


def test_all_ways_to_ask_agree_and_change_nothing() -> None:
    X, y = echoes(60)
    labels = np.where(y > 50, "high", "low")
    classifier = RecalibratedClassifier(LogisticRegression()).fit(X, labels)
    np.testing.assert_allclose(classifier.predict_proba(X[[5, 3]]), classifier.predict_proba(X)[[5, 3]], rtol=1e-12)
    model = frozen(payoff=oc.QuantileCalibration() + oc.NoRegret(oc.CRPS())).fit(X, y)
    before = pickle.dumps(model)
    forecasts = model.predict_distribution(X[:5])
    mean, sd = model.predict(X[:5], return_std=True)
    np.testing.assert_array_equal(mean, [p.mean() for p in forecasts])
    np.testing.assert_array_equal(sd, [p.std() for p in forecasts])
    np.testing.assert_array_equal(model.predict_interval(X[:5], 0.8), [p.interval(0.8) for p in forecasts])
    np.testing.assert_array_equal(model.predict_quantiles(X[:5], 0.5)[:, 0], [p.median() for p in forecasts])
    assert model.predict_quantiles(X[:5], LEVELS).shape == (5, 3)
    for bad in (1.5, "much"):
        for ask in (lambda bad=bad: model.predict_interval(X, bad), lambda bad=bad: model.predict_quantiles(X, [bad])):
            with pytest.raises((TypeError, ValueError), match=SENTENCE):
                ask()
    alone = [model.predict(X[t : t + 1])[0] for t in range(20)]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda t: model.predict(X[t : t + 1])[0], range(20))) == alone
    assert pickle.dumps(model) == before


# --- attacks


def test_the_bound_holds_against_an_adversary_that_sees_the_forecasts() -> None:
    size = 5
    X, y = echoes(10)
    model = frozen().fit(X, y)
    for t in range(200 // size):
        rows = np.column_stack((np.full(size, 50.0), np.arange(size)))
        low, high = model.predict_interval(rows, 0.8).T
        model.partial_fit(rows, np.clip(high + 0.01 if t % 3 else low - 0.01, 0, 100))
        guarantee = model.recalibrator_.guarantee
        assert guarantee.miscalibration <= guarantee.promised
    assert guarantee.held > 0.99


# --- what an estimator can say


def test_a_spread_or_a_column_for_each_level_is_used() -> None:
    X, y = humid(200)
    base = BayesianRidge().fit(X[:100], y[:100])
    model = RecalibratedRegressor(FrozenEstimator(base), low=0, high=100, batch=1).fit(X[100:], y[100:])
    recal = oc.Recalibrator(SPACE)
    forecasts = zip(*base.predict(X[100:], return_std=True), strict=True)
    recal.run([oc.Normal(min(max(m, 0.0), 100.0), s) for m, s in forecasts], y[100:], at=[0.5])
    assert model.recalibrator_.guarantee == recal.guarantee
    rng = np.random.default_rng(0)
    X = np.sort(rng.normal(50, 10, (80, 3)), axis=1)
    y = np.clip(rng.normal(X[:, 1], 8), 0, 100)
    model = RecalibratedRegressor(FrozenEstimator(Table().fit(X, y)), low=0, high=100, levels=LEVELS, batch=1)
    recal = oc.Recalibrator(SPACE)
    recal.run(X, y, levels=LEVELS, at=[0.5])
    assert model.fit(X, y).recalibrator_.guarantee == recal.guarantee
    p = recal.predict(dict(zip(LEVELS, X[0].tolist(), strict=True)))
    np.testing.assert_array_equal(model.predict_quantiles(X[:1], LEVELS)[0], p.quantile(LEVELS))
    # columns in any order, and crossed
    turned = RecalibratedRegressor(FrozenEstimator(Table().fit(X, y)), low=0, high=100, levels=[0.5, 0.9, 0.1], batch=1)
    turned.fit(X[:, [1, 2, 0]], y)
    assert turned.recalibrator_.guarantee == recal.guarantee


@pytest.mark.filterwarnings("ignore:the errors of the last")
@pytest.mark.parametrize(
    "base",
    [
        QuantileRegressor(alpha=0),
        GradientBoostingRegressor(loss="quantile", n_estimators=5),
        make_pipeline(StandardScaler(), QuantileRegressor(alpha=0)),
    ],
    ids=["quantile", "alpha", "pipeline"],
)
def test_one_estimator_for_each_level(base: Any) -> None:
    X, y = humid(120)
    model = RecalibratedRegressor(base, low=0, high=100, levels=LEVELS, folds=2).fit(X, y)
    assert len(model.estimator_) == 3
    low, middle, high = (each.predict(X).mean() for each in model.estimator_)
    assert low < middle < high
    assert model.predict(X).shape == (120,)
    model.partial_fit(X[:5], y[:5])


# --- input


@pytest.mark.parametrize("name", ["folds", "batch", "high", "outside"])
def test_options_that_make_no_sense(name: str) -> None:
    X, y = humid(30)
    for value in ("much", 0, 1.5):
        with pytest.raises((TypeError, ValueError), match=SENTENCE):
            RecalibratedRegressor(LinearRegression(), **{"low": 3, name: value}).fit(X, y)


def test_an_outcome_that_is_refused_changes_nothing() -> None:
    X, y = echoes(40)
    for batch in (100, 1):
        model = frozen(batch=batch).fit(X, y)
        before = pickle.dumps(model)
        for rows in (1, 3):
            bad = np.full(rows, 50.0)
            bad[-1] = 101.0
            with pytest.raises(ValueError, match=SENTENCE):
                model.partial_fit(X[:rows], bad)
            bad[-1] = math.nan
            with pytest.raises(ValueError, match="NaN"):
                model.partial_fit(X[:rows], bad)
        assert pickle.dumps(model) == before
    assert frozen(outside="clip").fit(X, y + 50).recalibrator_.guarantee.rounds == 40


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_context_finds_its_columns(library: str) -> None:
    frames = pytest.importorskip(library)
    X, y = humid(90)
    hour = np.arange(90) % 3
    frame = frames.DataFrame({"a": X[:, 0], "hour": hour})
    payoff = oc.QuantileCalibration(context=oc.by("hour", values=range(3))) + oc.NoRegret(oc.CRPS())
    base = LinearRegression().fit(frame, y)
    model = RecalibratedRegressor(FrozenEstimator(base), low=0, high=100, payoff=payoff, batch=1).fit(frame, y)
    recal, residuals = oc.Recalibrator(SPACE, payoff), Residuals(100)
    for point, outcome, h in zip(base.predict(frame).tolist(), y.tolist(), hour.tolist(), strict=True):
        told = residuals.around(point, SPACE)
        recal.predict(told, x={"hour": h})
        recal.update(outcome)
        residuals.add(outcome - told.mean)
    assert model.recalibrator_.guarantee == recal.guarantee
    assert list(model.feature_names_in_) == ["a", "hour"]
    model.partial_fit(frame[:5], y[:5])
    assert len(model.predict(frame[:7])) == 7


# --- classifiers


@pytest.mark.parametrize("classes", [["no", "yes"], [3, 7, 9]])
def test_a_classifier_is_the_recalibrator_bit_for_bit(classes: list[Any]) -> None:
    rng = np.random.default_rng(0)
    k = len(classes)
    X = rng.dirichlet(np.full(k, 2.0), 90)
    y = np.array([rng.choice(classes, p=0.7 * row + 0.3 / k) for row in X])
    base = Knows().fit(X, np.array(classes))
    model = RecalibratedClassifier(FrozenEstimator(base), batch=1).fit(X[:80], y[:80])
    recal = oc.Recalibrator(oc.Binary() if k == 2 else oc.Labels(classes))
    for t, (row, label) in enumerate(zip(X, y.tolist(), strict=True)):
        p = recal.predict(row[1] / row.sum() if k == 2 else row)
        if t >= 80:
            np.testing.assert_allclose(model.predict_proba(X[t : t + 1])[0], p.mass, rtol=1e-9)
            assert model.predict(X[t : t + 1])[0] == classes[int(p.mass.argmax())]
            model.partial_fit(X[t : t + 1], y[t : t + 1])
        recal.update(classes.index(label) if k == 2 else label)
    assert model.recalibrator_.guarantee.rounds == 90
    assert model.recalibrator_.guarantee.miscalibration == pytest.approx(recal.guarantee.miscalibration)


def test_a_classifier_without_probabilities_has_its_predictions_and_classes_may_come_late() -> None:
    X, y = np.random.default_rng(1).normal(size=(60, 2)), np.zeros(60, dtype=int)
    y[25::2], y[59] = 1, 2
    model = RecalibratedClassifier(LogisticRegression()).fit(sparse.coo_array(X), y)
    # parts of ten rows: the models of the first two have seen one class only
    assert model.recalibrator_.guarantee.rounds == 30
    assert model.predict_proba(sparse.coo_array(X)).shape == (60, 3)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(160, 2))
    y = np.digitize(X[:, 0], [-0.5, 0.0, 0.5])
    model = RecalibratedClassifier(RidgeClassifier(), folds=2).fit(X, y)
    p = model.predict_proba(X)
    assert p.shape == (160, 4)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert (model.predict(X) == y).mean() > 0.6
