"""Forecasts of GluonTS's: quantiles, samples, and a predictor that is asked again and again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import orcast as oc
from benchmarks.integrations.case import ROUNDS, Case, Work, lagged

HORIZON = 4
KEYS = ["0.1", "0.5", "0.9"]
SAMPLES = 100


def cases() -> Iterator[Case]:
    import pandas as pd
    from gluonts.model.forecast import QuantileForecast, SampleForecast

    from orcast.integrations.gluonts import ForecastRecalibrator, RecalibratedPredictor

    _, y = lagged(ROUNDS)
    start = pd.Period("2013-01-01 00:00", "h")
    draws = np.random.default_rng(0).normal(0.0, 4.0, (SAMPLES, HORIZON))
    times = list(range(24, len(y) - HORIZON, HORIZON))
    levels, ranks = (np.arange(SAMPLES) + 0.5) / SAMPLES, draws.argsort(axis=0).argsort(axis=0)

    def entry(t: int) -> dict[str, Any]:
        return {"item_id": "JFK", "start": start, "target": y[:t]}

    def quantiles(t: int, values: Any = None) -> Any:
        if values is None:
            values = y[t - 1] + np.array([[-5.0], [0.0], [5.0]]) + np.zeros((3, HORIZON))
        return QuantileForecast(values, start + t, KEYS, item_id="JFK")

    def samples(t: int, values: Any = None) -> Any:
        return SampleForecast(y[t - 1] + draws if values is None else values, start + t, item_id="JFK")

    def read_quantiles(forecast: Any, step: int) -> Any:
        return oc.Quantiles([0.1, 0.5, 0.9], forecast.forecast_array[:, step])

    def read_samples(forecast: Any, step: int) -> Any:
        return oc.Ensemble(forecast.samples[:, step])

    def write_quantiles(p: Any, step: int) -> Any:
        return p.quantile([0.1, 0.5, 0.9])

    def write_samples(p: Any, step: int) -> Any:
        return p.quantile(levels)[ranks[:, step]]

    def model(make: Callable[..., Any]) -> Callable[[], Work]:
        return lambda: lambda: [make(t) for t in times] and None

    def by_hand(make: Callable[..., Any], read: Any, write: Any) -> Callable[[], Work]:
        def works() -> Work:
            def work() -> None:
                recals = [oc.Recalibrator(oc.Interval(0, 100)) for _ in range(HORIZON)]
                for t in times:
                    forecast = make(t)
                    columns = [
                        write(recal.predict(read(forecast, step), id=t + step), step)
                        for step, recal in enumerate(recals)
                    ]
                    make(t, np.column_stack(columns))
                    for step, recal in enumerate(recals):
                        recal.update(y[t + step], id=t + step)

            return work

        return works

    def wrapped(make: Callable[..., Any]) -> Callable[[], Work]:
        def works() -> Work:
            def work() -> None:
                recal = ForecastRecalibrator(0, 100)
                for t in times:
                    recal.predict(make(t))
                    recal.update(entry(t + HORIZON))

            return work

        return works

    rounds = HORIZON * len(times)
    cases = {
        "quantiles": (quantiles, read_quantiles, write_quantiles),
        "samples": (samples, read_samples, write_samples),
    }
    for name, (make, read, write) in cases.items():
        yield Case(f"GluonTS, {name}", model(make), by_hand(make, read, write), wrapped(make), rounds)

    def predicted() -> Work:
        from gluonts.model.predictor import RepresentablePredictor

        class Says(RepresentablePredictor):  # type: ignore[misc, unused-ignore]
            def predict_item(self, item: Any) -> Any:
                return quantiles(len(item["target"]))

        def work() -> None:
            predictor = RecalibratedPredictor(Says(HORIZON), ForecastRecalibrator(0, 100))
            for t in times:
                list(predictor.predict([entry(t)]))

        return work

    hand = by_hand(quantiles, read_quantiles, write_quantiles)
    yield Case("GluonTS, a predictor", model(quantiles), hand, predicted, rounds)
