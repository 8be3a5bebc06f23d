"""Forecasters of sktime's, many steps ahead: what its own calls cost is shared by the rounds of a batch."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pandas as pd

import orcast as oc
from benchmarks.integrations.case import ROUNDS, Case, Work, nothing

STEPS = 250
BATCHES = ROUNDS // STEPS
LEVELS = [0.05, 0.5, 0.95]


def cases() -> Iterator[Case]:
    logging.captureWarnings(True)  # sktime warns, for every forecaster, that a default will change
    from sktime.forecasting.trend import TrendForecaster

    from orcast.integrations.sktime import RecalibratedForecaster

    y = pd.Series(oc.datasets.load("humidity").values[: 2 * STEPS + 2 * ROUNDS])
    first = 2 * STEPS
    space, steps = oc.Interval(0, 100), list(range(1, STEPS + 1))
    history, later = y[: first + ROUNDS], y[first + ROUNDS :]

    def trend(rows: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return TrendForecaster().fit(rows, fh=steps)

    def wrapped() -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            options: Any = {"levels": (), "initial_window": first, "step_length": STEPS}
            return RecalibratedForecaster(TrendForecaster(), 0, 100, **options)

    def by_hand(recals: list[oc.Recalibrator], points: Any, outcomes: Any) -> None:
        for recal, point, outcome in zip(recals, points.tolist(), outcomes.tolist(), strict=True):
            recal.predict(oc.Normal(point, 5.0))
            recal.update(outcome)

    def batches(rows: Any) -> Iterator[Any]:
        return (rows[start : start + STEPS] for start in range(0, ROUNDS, STEPS))

    def replay(score: Callable[[Any, Any], None]) -> None:
        """What the fit to a history asks of the forecaster."""
        trend(history)
        model, last = trend(history[:first]), None
        for rows in batches(history[first:]):
            if last is not None:
                model.update(last)
            score(model.predict(), rows)
            last = rows

    def fit_alone() -> Work:
        return lambda: replay(lambda points, rows: None)

    def fit_by_hand() -> Work:
        def work() -> None:
            recals = [oc.Recalibrator(space) for _ in steps]
            replay(lambda points, rows: by_hand(recals, points, rows))

        return work

    def fit_wrapped() -> Work:
        model = wrapped()
        return lambda: nothing(model.fit(history, fh=steps))

    yield Case("sktime, history", fit_alone, fit_by_hand, fit_wrapped)

    def update_alone() -> Work:
        model = trend(history)

        def work() -> None:
            for rows in batches(later):
                model.predict()
                model.update(rows)

        return work

    def update_by_hand() -> Work:
        model, recals = trend(history), [oc.Recalibrator(space) for _ in steps]

        def work() -> None:
            for rows in batches(later):
                by_hand(recals, model.predict(), rows)
                model.update(rows)

        return work

    def update_wrapped() -> Work:
        model = wrapped().fit(history, fh=steps)

        def work() -> None:
            for rows in batches(later):
                model.update(rows)

        return work

    yield Case("sktime, update", update_alone, update_by_hand, update_wrapped)

    def predict_alone() -> Work:
        model = trend(history)
        return lambda: nothing([model.predict() for _ in range(BATCHES)])

    def predict_by_hand() -> Work:
        model, recals = trend(history), [oc.Recalibrator(space) for _ in steps]

        def work() -> None:
            for _ in range(BATCHES):
                for recal, point in zip(recals, model.predict().tolist(), strict=True):
                    recal.predict(oc.Normal(point, 5.0)).quantile(LEVELS)

        return work

    def predict_wrapped() -> Work:
        model = wrapped().fit(history, fh=steps)
        return lambda: nothing([model.predict_quantiles(alpha=LEVELS) for _ in range(BATCHES)])

    yield Case("sktime, predict_quantiles", predict_alone, predict_by_hand, predict_wrapped)
