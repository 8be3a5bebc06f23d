"""Regressors and classifiers of scikit-learn's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import orcast as oc
from benchmarks.integrations.case import ROUNDS, Case, Work, lagged, nothing


def cases() -> Iterator[Case]:
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
            probabilities = model.predict_proba(X[late])[:, 1].tolist()
            for probability, outcome in zip(probabilities, wet[late].tolist(), strict=True):
                recal.predict(probability)
                recal.update(outcome)

        return work

    def classify_wrapped() -> Work:
        model = RecalibratedClassifier(FrozenEstimator(classifier()), batch=1).fit(X[early], wet[early])
        return lambda: nothing(model.partial_fit(X[late], wet[late]))

    yield Case("scikit-learn, yes or no, partial_fit", classify, classify_by_hand, classify_wrapped)
