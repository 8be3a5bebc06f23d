"""River: its own checks, the same numbers as by hand, late and lost outcomes, attacks, pipelines, labels."""

import copy
import math
import pickle
import random
from functools import cache
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import orcast as oc
from helpers import SENTENCE
from orcast.residuals import Residuals
from orcast.spaces import between

river = pytest.importorskip("river")

from river import (  # noqa: E402
    base,
    checks,
    conf,
    datasets,
    linear_model,
    naive_bayes,
    preprocessing,
    proba,
    tree,
)

from orcast.integrations.river import (  # noqa: E402
    RiverClassifier,
    RiverDistribution,
    RiverRegressor,
    has_distributions,
    row_key,
)


def linear() -> Any:
    return preprocessing.StandardScaler() | linear_model.LinearRegression(intercept_lr=0.1)


def logistic() -> Any:
    return preprocessing.StandardScaler() | linear_model.LogisticRegression()


class Echo(base.Regressor):
    """Says the feature "says", learns nothing, and remembers its updates."""

    def __init__(self) -> None:
        self.learnt: list[Any] = []

    def predict_one(self, x: Any) -> Any:
        return x.get("says", 0.0)

    def learn_one(self, x: Any, y: Any) -> None:
        self.learnt.append((dict(x), y))


class Spread(Echo):
    """Says a distribution, around a point that an option shifts."""

    def predict_one(self, x: Any, with_dist: bool = False, shift: float = 0.0) -> Any:
        x = {**x, "says": x["says"] + shift}
        return proba.Gaussian._from_state(n=1, m=x["says"], var=x["var"], ddof=0) if with_dist else x["says"]


class Same(base.Classifier):
    """Says the same probabilities always."""

    def predict_proba_one(self, x: Any, **kwargs: Any) -> Any:
        return {"home": 0.5, "draw": 0.3, "away": 0.2}

    def learn_one(self, x: Any, y: Any) -> None:
        pass


def hours(count: int) -> list[tuple[dict[str, float], float]]:
    v = oc.datasets.load("humidity").values[: count + 24].tolist()
    return [({"1": v[t - 1], "2": v[t - 2], "24": v[t - 24], "hour": t % 24}, v[t]) for t in range(24, len(v))]


@cache
def mails() -> list[Any]:
    return list(datasets.Phishing())


def echoes(seed: int, count: int) -> list[tuple[dict[str, float], float]]:
    rng = np.random.default_rng(seed)
    says = rng.normal(50.0, 10.0, count)
    return [({"says": s, "t": t}, float(s + rng.gumbel(2.0, 4.0))) for t, s in enumerate(says.tolist())]


def state(model: Any) -> bytes:
    return pickle.dumps(model)


# --- River's own checks

CHECKED = {
    "points": lambda: RiverRegressor(linear()),
    "bounded": lambda: RiverRegressor(tree.HoeffdingTreeRegressor(), 0, 100),
    "distributions": lambda: RiverRegressor(preprocessing.StandardScaler() | linear_model.BayesianLinearRegression()),
    "binary": lambda: RiverClassifier(logistic()),
}


def run_checks(model: Any) -> int:
    count = 0
    for check in checks.yield_checks(model):
        if check.__name__ not in model._unit_test_skips():
            random.seed(0)  # they shuffle features
            check(model.clone())
            count += 1
    return count


@pytest.mark.filterwarnings("ignore")  # what is drawn in them, and so what warns, differs from version to version
@pytest.mark.parametrize("name", CHECKED)
def test_passes_the_checks_of_river(name: str) -> None:
    assert run_checks(CHECKED[name]()) >= 15


# --- the same numbers as by hand


def by_hand(stream: list[Any], make: Any, space: Any, late: int = 0) -> tuple[list[Any], oc.Recalibrator]:
    """A model and a Recalibrator side by side; outcomes come `late` rounds after their forecast."""
    model, recal, residuals = make(), oc.Recalibrator(space), Residuals(100)
    forecasts, points = [], []
    for t, (x, _) in enumerate(stream):
        told = residuals.around(model.predict_one(x), space)
        points.append(told.mean)
        forecasts.append(recal.predict(told, id=t))
        if t >= late:
            x, y = stream[t - late]
            model.learn_one(x, y)
            recal.update(y, id=t - late)
            residuals.add(y - points[t - late])
    return forecasts, recal


@pytest.mark.parametrize(("low", "high"), [(None, None), (0, 100)])
def test_is_model_and_recalibrator_bit_for_bit(low: Any, high: Any) -> None:
    stream = hours(200)
    expected, recal = by_hand(stream, linear, between(low, high))
    model = RiverRegressor(linear(), low, high)
    for (x, y), p in zip(stream, expected, strict=True):
        said = model.predict_one(x, with_dist=True)
        np.testing.assert_array_equal(said.forecast.mass, p.mass)
        assert model.predict_one(x) == p.mean() == said.mu
        assert model.predict_one(x, with_interval=True) == conf.Interval(*p.interval(0.95))
        model.learn_one(x, y)
    assert model.guarantee == recal.guarantee
    assert model.pending == 0


@pytest.mark.parametrize("late", [1, 25])
def test_late_outcomes_are_those_of_the_core(late: int) -> None:
    stream = hours(150)
    model = RiverRegressor(linear(), 0, 100)
    expected, recal = by_hand(stream, linear, oc.Interval(0, 100), late)
    for t, (x, _) in enumerate(stream):
        p = model.predict_one(x, with_dist=True).forecast
        np.testing.assert_allclose(p.mass, expected[t].mass, rtol=1e-9, atol=1e-12)
        if t >= late:
            model.learn_one(*stream[t - late])
    assert model.guarantee.promised == pytest.approx(recal.guarantee.promised, rel=1e-12)
    assert model.guarantee.miscalibration == pytest.approx(recal.guarantee.miscalibration, rel=1e-9)


# --- forecasts that are never learnt from


def test_forecasts_that_are_never_corrected_from_change_nothing() -> None:
    stream = hours(160)
    quiet, busy = RiverRegressor(linear(), 0, 100), RiverRegressor(linear(), 0, 100)
    rng = np.random.default_rng(0)
    for t, (x, y) in enumerate(stream):
        for _ in range(int(rng.integers(0, 12)) if t >= 2 else 0):  # how late outcomes are must be known first
            busy.predict_one({**x, "1": float(rng.random())})
        one = quiet.predict_one(x, with_dist=True).forecast
        np.testing.assert_array_equal(one.mass, busy.predict_one(x, with_dist=True).forecast.mass)
        for _ in range(int(rng.integers(0, 12)) if t >= 2 else 0):
            busy.predict_one({**x, "1": float(rng.random())})
        quiet.learn_one(x, y)
        busy.learn_one(x, y)
    assert quiet.guarantee == busy.guarantee


features = st.sampled_from([{"says": float(s), "k": k} for s in (20, 50, 80) for k in range(3)])
moves = st.lists(st.tuples(st.sampled_from(["ask", "ask", "learn"]), features, st.floats(0, 100)), max_size=60)


@given(moves, st.integers(1, 5))
@settings(max_examples=40)
def test_each_outcome_meets_the_last_forecast_for_its_features(moves: list[Any], most: int) -> None:
    """Against a slow twin: the forecasts by their features, the oldest dropped first."""
    model = RiverRegressor(Echo(), 0, 100, max_pending=most)
    waiting: dict[Any, Any] = {}
    for move, x, y in moves:
        key = tuple(sorted(x.items()))
        if move == "ask":
            model.predict_one(x)
            waiting.pop(key, None)
            waiting[key] = x
            while len(waiting) > most:
                del waiting[next(iter(waiting))]
        else:
            expected = waiting.pop(key, None)
            model.learn_one(x, y)
            if expected is None and len(waiting) >= most:
                # a round of its own took a place for a moment
                del waiting[next(iter(waiting))]
        assert model.pending == len(waiting)
        assert all(row_key(other, None) in model.recalibrator.rounds.pending for other in waiting.values())
    assert model.guarantee.rounds == sum(move == "learn" for move, _, _ in moves)
    assert model.guarantee.miscalibration <= model.guarantee.promised + 1e-12


# --- bad input


def test_a_prediction_or_outcome_that_is_refused_changes_nothing() -> None:
    model, binary = RiverRegressor(Echo(), 0, 100), RiverClassifier(logistic())
    for x, outcome in echoes(1, 5):
        model.learn_one(x, outcome)
    model.predict_one({"says": 40.0})
    binary.learn_one({"a": 1.0}, np.bool_(True))
    before = state(model), state(binary)
    wrong = [({"says": says}, y) for y in (math.nan, -1.0, 101.0, "text", None) for says in (40.0, 41.0)]
    for x, y in [*wrong, ({"says": math.nan}, 3.0), ({"says": "text"}, 3.0)]:
        with pytest.raises((TypeError, ValueError), match=SENTENCE):
            model.learn_one(x, y)
    for options in ({}, {"with_dist": True, "with_interval": True}):
        with pytest.raises((TypeError, ValueError), match=SENTENCE):
            model.predict_one({"says": "text" if not options else 1.0}, **options)
    with pytest.raises(ValueError, match=SENTENCE):
        binary.learn_one({"a": 1.0}, "spam")
    assert (state(model), state(binary)) == before


@pytest.mark.parametrize("name", ["high", "low", "confidence_level", "max_pending", "outside", "payoff"])
def test_options_that_make_no_sense(name: str) -> None:
    with pytest.raises((TypeError, ValueError), match=SENTENCE):
        RiverRegressor(Echo(), **{"high": 3.0, name: "much"})
    for make in (RiverRegressor, RiverClassifier):
        for model in (3, Echo):
            with pytest.raises(TypeError, match=SENTENCE):
                make(model)


# --- distributions and intervals


def test_a_model_s_own_distribution_is_used() -> None:
    assert has_distributions(preprocessing.StandardScaler() | linear_model.BayesianLinearRegression())
    assert not has_distributions(linear())
    nested = RiverRegressor(RiverRegressor(linear(), 0, 100), 0, 100)  # by its quantiles
    nested.learn_one(*hours(1)[0])
    assert nested.guarantee.rounds == 1
    model, recal = RiverRegressor(Spread(), 0, 100), oc.Recalibrator(oc.Interval(0, 100))
    rng = np.random.default_rng(0)
    for t in range(50):
        x = {"says": float(rng.normal(50, 5)), "var": 4.0 + t}
        p = recal.predict(oc.Normal(x["says"], math.sqrt(x["var"])))
        np.testing.assert_allclose(model.predict_one(x, with_dist=True).forecast.mass, p.mass, rtol=1e-9, atol=1e-12)
        y = float(rng.normal(x["says"], 4))
        model.learn_one(x, y)
        recal.update(y)
    assert model.predict_one(x, shift=20.0) > model.predict_one(x) + 5.0  # options reach the model


def test_a_distribution_keeps_the_conventions_of_river() -> None:
    model = RiverRegressor(Echo())
    for x, y in echoes(2, 50):
        model.learn_one(x, y)
    p = model.predict_one({"says": 50.0}, with_dist=True)
    assert isinstance(p, proba.base.ContinuousDistribution)
    assert p.n_samples == 50
    assert p.mu == p.forecast.mean() == model.predict_one({"says": 50.0})
    assert p.sigma == p.forecast.to_normal()[1]
    ys = np.linspace(*p.ppf([0.001, 0.999]), 4_001)
    density = np.array([p(float(y)) for y in ys])
    assert math.isclose(np.trapezoid(density, ys), 0.998, abs_tol=0.05)
    assert p(p.mode) >= density.max()
    assert p.cdf(p.ppf(0.3)) == pytest.approx(0.3)
    one, other = (RiverDistribution(p.forecast, seed=3) for _ in range(2))
    draws = [one.sample() for _ in range(200)]
    assert draws == [other.sample() for _ in range(200)]
    assert abs(np.mean(draws) - p.mu) < 4 * p.sigma / math.sqrt(200)
    assert p > RiverDistribution(oc.Forecast([0], [1], [1]))
    for change in (p.update, p.revert):
        with pytest.raises(NotImplementedError, match=SENTENCE):
            change(1.0)


# --- groups


def test_a_context_finds_its_features() -> None:
    rest = oc.MomentMatching(2) + oc.NoRegret(oc.CRPS())
    payoff = oc.QuantileCalibration(context=oc.by("hour", values=range(24))) + rest
    model = RiverRegressor(linear(), 0, 100, payoff=payoff)
    recal = oc.Recalibrator(oc.Interval(0, 100), payoff)
    plain, residuals = linear(), Residuals(100)
    for x, y in hours(60):
        told = residuals.around(plain.predict_one(x), oc.Interval(0, 100))
        p = recal.predict(told, x={"hour": x["hour"]})
        np.testing.assert_array_equal(model.predict_one(x, with_dist=True).forecast.mass, p.mass)
        model.learn_one(x, y)
        plain.learn_one(x, y)
        recal.update(y)
        residuals.add(y - told.mean)
    assert model.guarantee.groups["quantile by hour"].keys() == recal.guarantee.groups["quantile by hour"].keys()
    with pytest.raises(ValueError, match=SENTENCE):
        model.predict_one({"1": 3.0})
    assert model.pending == 0
    model, x = RiverRegressor(Echo(), 0, 100, payoff=payoff), {**x, 7: object, "list": [1, 2]}  # not asked for
    assert model.predict_one(x) == model.predict_one(copy.deepcopy(x))
    model.learn_one({**x, "list": [1, 2]}, 45.0)
    assert model.pending == 0


# --- pipelines


def test_behind_a_scaler_names_help() -> None:
    model = preprocessing.StandardScaler() | RiverRegressor(linear_model.LinearRegression(), 0, 100)
    for t, (x, y) in enumerate(hours(15)):
        for part in "ab":
            model.predict_one(x, id=(t, part))
        assert model["RiverRegressor"].pending == 2
        for part in "ba":
            model.learn_one(x, y, id=(t, part))
        assert model["RiverRegressor"].pending == 0
    assert model["RiverRegressor"].guarantee.rounds == 30


# --- copies


@pytest.mark.parametrize("again", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_copies_go_on_bit_for_bit(again: Any) -> None:
    payoff = oc.QuantileCalibration(context=oc.by("hour", values=range(24))) + oc.NoRegret(oc.CRPS())
    stream = hours(90)
    model = RiverRegressor(linear(), 0, 100, payoff=payoff)
    for t, (x, _) in enumerate(stream[:60]):
        model.predict_one(x)
        model.predict_one({**x, "1": -1.0})  # never learnt from
        if t >= 4:
            model.learn_one(*stream[t - 4])
    other = again(model)
    for t in range(60, 90):
        for each in (model, other):
            each.learn_one(*stream[t - 4])
        one, two = (each.predict_one(stream[t][0], with_dist=True).forecast for each in (model, other))
        np.testing.assert_array_equal(one.mass, two.mass)
    assert model.guarantee == other.guarantee
    assert model.pending == other.pending


# --- classifiers


def test_binary_is_model_and_recalibrator_bit_for_bit() -> None:
    model, plain, recal = RiverClassifier(logistic()), logistic(), oc.Recalibrator(oc.Binary())
    for x, y in mails()[:300]:
        p = float(recal.predict(plain.predict_proba_one(x)[True]))
        assert model.predict_proba_one(x) == {False: 1.0 - p, True: p}
        assert model.predict_one(x) is (p > 0.5)
        model.learn_one(x, y)
        plain.learn_one(x, y)
        recal.update(y)
    assert model.guarantee == recal.guarantee


def test_labels_are_those_of_the_recalibrator() -> None:
    labels, plain = ["home", "draw", "away"], Same()
    model, recal = RiverClassifier(Same(), labels), oc.Recalibrator(oc.Labels(labels))
    rng = np.random.default_rng(0)
    for t in range(60):
        y = labels[int(rng.integers(3))]
        p = recal.predict(list(plain.predict_proba_one({}).values())).mass
        np.testing.assert_allclose(list(model.predict_proba_one({"t": t}).values()), p, rtol=1e-9)
        model.learn_one({"t": t}, y)
        recal.update(y)
    with pytest.raises(ValueError, match=SENTENCE):
        model.learn_one({"t": 0}, "abandoned")
    assert model.guarantee.rounds == 60
    with pytest.raises(ValueError, match="expected labels="):
        RiverClassifier(naive_bayes.GaussianNB())


def test_monitor_is_a_drift_detector() -> None:
    """It detects each change once, keeps its options in a clone, and raises no alarm on calibrated forecasts."""
    from orcast.integrations.river import RiverMonitor

    rng = np.random.default_rng(0)
    detector = RiverMonitor(run_length=10_000)
    found = []
    for t, u in enumerate(np.concatenate([rng.random(400), rng.beta(4, 1, 400), rng.random(400)])):
        detector.update(u)
        found += [t] if detector.drift_detected else []
    assert len(found) == 2
    assert 400 < found[0] < 440
    assert 800 < found[1] < 860
    assert isinstance(detector, base.DriftDetector)
    assert detector.clone().monitor.run_length == 10_000
    assert detector.clone().monitor.rounds == 0
