"""Integrations: what a wrapper adds to the model and the core that it consists of, over batches of 1,000 rounds."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

import orcast as oc
from benchmarks.results import Line, Remark
from orcast.experiments import data

TITLE = "Integrations"
ROUNDS = 1000
LIMIT = 1.30
HORIZON = 3

Work = Callable[[], None]


@dataclass(frozen=True)
class Case:
    """Three works over the same rounds, each made anew: the model alone, model and core by hand, the wrapper."""

    name: str
    model: Callable[[], Work]
    hand: Callable[[], Work]
    wrapper: Callable[[], Work]
    rounds: int = ROUNDS


def measure(quick: bool = False) -> Iterator[Line | Remark]:
    repetitions = 5 if quick else 15
    yield Remark("what the wrapper takes beside its model, over what the core takes in a loop written by hand:")
    yield Remark(
        f"(wrapper - model) / (by hand - model), {ROUNDS:,} rounds each, medians of {repetitions} runs in turn"
    )
    for case in cases():
        yield timed(case, repetitions)


def timed(case: Case, repetitions: int) -> Line:
    times: list[tuple[float, ...]] = []
    for repetition in range(repetitions + 1):
        row = []
        for make in (case.model, case.hand, case.wrapper):
            work = make()
            gc.collect()
            gc.disable()
            try:
                begin = perf_counter()
                work()
                row.append(perf_counter() - begin)
            finally:
                gc.enable()
        if repetition:
            times.append(tuple(row))
    model, hand, wrapper = (1e6 * median(column) / case.rounds for column in zip(*times, strict=True))
    note = f"a round: wrapper {wrapper:.0f} us, by hand {hand:.0f}, model alone {model:.0f}"
    return Line(case.name, "times the core", (wrapper - model) / (hand - model), LIMIT, form=".2f", note=note)


def lagged(count: int) -> tuple[np.ndarray, np.ndarray]:
    """The humidity of an hour, and of those that tell of it."""
    values = data.load("humidity").values[: count + 24]
    lags = np.column_stack([values[24 - lag : len(values) - lag] for lag in (1, 2, 3, 24)])
    return lags, values[24:]


def cases() -> Iterator[Case]:
    yield from river_cases()
    yield from sklearn_cases()


# --- River


def river_cases() -> Iterator[Case]:
    from river import datasets, linear_model, naive_bayes, preprocessing

    from orcast.integrations.river import Recalibrated, RecalibratedClassifier

    X, y = lagged(ROUNDS)
    hours = [
        (dict(zip("abcd", row, strict=True)), outcome) for row, outcome in zip(X.tolist(), y.tolist(), strict=True)
    ]
    mails = list(islice(datasets.Phishing(), ROUNDS))
    images = list(islice(datasets.ImageSegments(), ROUNDS))
    labels = sorted({label for _, label in images})

    def linear() -> Any:
        return preprocessing.StandardScaler() | linear_model.LinearRegression(intercept_lr=0.1)

    def logistic() -> Any:
        return preprocessing.StandardScaler() | linear_model.LogisticRegression()

    def point(model: Any, x: Any) -> Any:
        return oc.Normal(model.predict_one(x), 5.0)

    def distribution(model: Any, x: Any) -> Any:
        said = model.predict_one(x, with_dist=True)
        return oc.Normal(said.mu, said.sigma)

    def probability(model: Any, x: Any) -> Any:
        return model.predict_proba_one(x)[True]

    def masses(model: Any, x: Any) -> Any:
        said = model.predict_proba_one(x)
        return said if len(said) > 1 else [1.0 / len(labels)] * len(labels)

    space = oc.Interval(0, 100)
    bayesian, naive = linear_model.BayesianLinearRegression, naive_bayes.GaussianNB
    yield river_case("points", space, hours, linear, point, lambda: Recalibrated(linear(), 0, 100))
    yield river_case("distributions", space, hours, bayesian, distribution, lambda: Recalibrated(bayesian(), 0, 100))
    yield river_case("yes or no", oc.Binary(), mails, logistic, probability, lambda: RecalibratedClassifier(logistic()))
    name, wrapped = f"{len(labels)} labels", lambda: RecalibratedClassifier(naive(), labels)
    yield river_case(name, oc.Labels(labels), images, naive, masses, wrapped)
    yield forecaster_case(y.tolist())


def river_case(
    name: str,
    space: Any,
    stream: list[tuple[Any, Any]],
    make: Callable[[], Any],
    said: Callable[[Any, Any], Any],
    wrapped: Callable[[], Any],
) -> Case:
    ordered = isinstance(space, oc.Interval)
    read: Callable[[Any], Any] = oc.Forecast.mean if ordered else float if space.cells == 2 else (lambda p: p.mass)

    def alone() -> Work:
        model = make()

        def work() -> None:
            for x, y in stream:
                said(model, x)
                model.learn_one(x, y)

        return work

    def by_hand() -> Work:
        model, recal = make(), oc.Recalibrator(space)

        def work() -> None:
            for x, y in stream:
                read(recal.predict(said(model, x)))
                model.learn_one(x, y)
                recal.update(y)

        return work

    def together() -> Work:
        model = wrapped()
        predict = model.predict_one if ordered else model.predict_proba_one

        def work() -> None:
            for x, y in stream:
                predict(x)
                model.learn_one(x, y)

        return work

    return Case(f"River, {name}", alone, by_hand, together)


def forecaster_case(values: list[float]) -> Case:
    from river import time_series

    from orcast.integrations.river import RecalibratedForecaster

    def trend() -> Any:
        return time_series.HoltWinters(alpha=0.3, beta=0.1)

    def ahead(make: Callable[[], Any]) -> Work:
        model = make()

        def work() -> None:
            for t, value in enumerate(values):
                if t >= 2:
                    model.forecast(HORIZON)
                model.learn_one(value)

        return work

    def by_hand() -> Work:
        model, recals = trend(), [oc.Recalibrator(oc.Interval(0, 100)) for _ in range(HORIZON)]

        def work() -> None:
            for t, value in enumerate(values):
                if t >= 2:
                    for step, point in enumerate(model.forecast(HORIZON)):
                        recals[step].predict(oc.Normal(point, 5.0), id=t + step).mean()
                for step, recal in enumerate(recals):
                    if t - step >= 2:
                        recal.update(value, id=t)
                model.learn_one(value)

        return work

    return Case(
        f"River, {HORIZON} steps ahead",
        lambda: ahead(trend),
        by_hand,
        lambda: ahead(lambda: RecalibratedForecaster(trend(), 0, 100)),
        rounds=ROUNDS * HORIZON,
    )


# --- scikit-learn


def sklearn_cases() -> Iterator[Case]:
    from sklearn.frozen import FrozenEstimator
    from sklearn.linear_model import SGDClassifier, SGDRegressor
    from sklearn.preprocessing import StandardScaler

    from orcast.integrations.sklearn import RecalibratedClassifier, RecalibratedRegressor

    X, y = lagged(2 * ROUNDS)
    X = StandardScaler().fit_transform(X)
    wet = (y > np.median(y)).astype(int)
    early, late = slice(0, ROUNDS), slice(ROUNDS, 2 * ROUNDS)
    space = oc.Interval(0, 100)

    def regressor() -> Any:
        return SGDRegressor(random_state=0).fit(X[early], y[early])

    def classifier() -> Any:
        return SGDClassifier(loss="log_loss", random_state=0).fit(X[early], wet[early])

    def recalibrated(model: Any) -> Any:
        return RecalibratedRegressor(FrozenEstimator(model), low=0, high=100, batch=1)

    def normals(model: Any) -> list[oc.Normal]:
        return [oc.Normal(point, 5.0) for point in model.predict(X[late]).tolist()]

    def predict() -> Work:
        model = regressor()
        return lambda: nothing(model.predict(X[late]))

    def run_by_hand() -> Work:
        model, recal = regressor(), oc.Recalibrator(space)
        return lambda: nothing(recal.run(normals(model), y[late], at=[0.5]))

    def fit_wrapped() -> Work:
        model = recalibrated(regressor())
        return lambda: nothing(model.fit(X[late], y[late]))

    yield Case("scikit-learn, history (compiled)", predict, run_by_hand, fit_wrapped)

    def predict_by_hand() -> Work:
        model, recal = regressor(), oc.Recalibrator(space)
        recal.run(normals(model), y[late], at=[0.5])
        return lambda: nothing([recal.predict(forecast).mean() for forecast in normals(model)])

    def predict_wrapped() -> Work:
        model = recalibrated(regressor()).fit(X[late], y[late])
        return lambda: nothing(model.predict(X[late]))

    yield Case("scikit-learn, predict", predict, predict_by_hand, predict_wrapped)

    def learn_by_hand() -> Work:
        model, recal = regressor(), oc.Recalibrator(space)

        def work() -> None:
            for forecast, outcome in zip(normals(model), y[late].tolist(), strict=True):
                recal.predict(forecast)
                recal.update(outcome)

        return work

    def learn_wrapped() -> Work:
        model = recalibrated(regressor()).fit(X[early], y[early])
        return lambda: nothing(model.partial_fit(X[late], y[late]))

    yield Case("scikit-learn, partial_fit", predict, learn_by_hand, learn_wrapped)

    def classify() -> Work:
        model = classifier()
        return lambda: nothing(model.predict_proba(X[late]))

    def classify_by_hand() -> Work:
        model, recal = classifier(), oc.Recalibrator(oc.Binary())

        def work() -> None:
            said = model.predict_proba(X[late])[:, 1].tolist()
            for probability, outcome in zip(said, wet[late].tolist(), strict=True):
                recal.predict(probability)
                recal.update(outcome)

        return work

    def classify_wrapped() -> Work:
        model = RecalibratedClassifier(FrozenEstimator(classifier()), batch=1).fit(X[early], wet[early])
        return lambda: nothing(model.partial_fit(X[late], wet[late]))

    yield Case("scikit-learn, yes or no, partial_fit", classify, classify_by_hand, classify_wrapped)


def nothing(_: object) -> None:
    """What a work returns."""
