"""River's regressors, classifiers and forecasters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import orcast as oc
from benchmarks.integrations.case import ROUNDS, Case, Work, lagged

HORIZON = 3


def cases() -> Iterator[Case]:
    from river import datasets, linear_model, naive_bayes, preprocessing

    from orcast.integrations.river import RiverClassifier, RiverRegressor

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
        p = model.predict_one(x, with_dist=True)
        return oc.Normal(p.mu, p.sigma)

    def probability(model: Any, x: Any) -> Any:
        return model.predict_proba_one(x)[True]

    def masses(model: Any, x: Any) -> Any:
        found = model.predict_proba_one(x)
        return found if len(found) > 1 else [1.0 / len(labels)] * len(labels)

    space = oc.Interval(0, 100)
    bayesian, naive = linear_model.BayesianLinearRegression, naive_bayes.GaussianNB
    yield river_case("points", space, hours, linear, point, lambda: RiverRegressor(linear(), 0, 100))
    yield river_case("distributions", space, hours, bayesian, distribution, lambda: RiverRegressor(bayesian(), 0, 100))
    yield river_case("yes or no", oc.Binary(), mails, logistic, probability, lambda: RiverClassifier(logistic()))
    name, wrapped = f"{len(labels)} labels", lambda: RiverClassifier(naive(), labels)
    yield river_case(name, oc.Labels(labels), images, naive, masses, wrapped)
    yield forecaster_case(y.tolist())


def river_case(
    name: str,
    space: Any,
    stream: list[tuple[Any, Any]],
    make: Callable[[], Any],
    forecast: Callable[[Any, Any], Any],
    wrapped: Callable[[], Any],
) -> Case:
    ordered = isinstance(space, oc.Interval)
    read: Callable[[Any], Any] = oc.Forecast.mean if ordered else float if space.cells == 2 else (lambda p: p.mass)

    def alone() -> Work:
        model = make()

        def work() -> None:
            for x, y in stream:
                forecast(model, x)
                model.learn_one(x, y)

        return work

    def by_hand() -> Work:
        model, recal = make(), oc.Recalibrator(space)

        def work() -> None:
            for x, y in stream:
                read(recal.predict(forecast(model, x)))
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

    from orcast.integrations.river import RiverForecaster

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
        lambda: ahead(lambda: RiverForecaster(trend(), 0, 100)),
        rounds=ROUNDS * HORIZON,
    )
