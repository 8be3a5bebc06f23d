"""Wrappers serve what they learnt: sktime's forecasters alone and wrapped, at cutoffs that none of them has seen."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.results import Line, Remark

CUTOFFS, STEPS = (120, 126, 132, 138), [1, 2, 3]
MOST_ERROR, LEAST_COVERED = 1.05, 0.8


def models() -> dict[str, Callable[[], Any]]:
    """Forecasters that are updated, or not, in different ways."""
    from sklearn.linear_model import LinearRegression
    from sktime.forecasting.compose import TransformedTargetForecaster, make_reduction
    from sktime.forecasting.naive import NaiveForecaster
    from sktime.forecasting.theta import ThetaForecaster
    from sktime.transformations.series.boxcox import LogTransformer
    from sktime.transformations.series.detrend import Deseasonalizer

    return {
        "ThetaForecaster(sp=12)": lambda: ThetaForecaster(sp=12),
        "make_reduction(LinearRegression, 13)": lambda: make_reduction(LinearRegression(), window_length=13),
        "NaiveForecaster(sp=12)": lambda: NaiveForecaster(sp=12),
        "log, deseasonalised, drift": lambda: TransformedTargetForecaster(
            [LogTransformer(), Deseasonalizer(sp=12), NaiveForecaster(strategy="drift")]
        ),
    }


def series() -> dict[str, Any]:
    """Air travel, and two seasonal series of another kind: carbon dioxide in the air, and one that is made up."""
    import statsmodels.api as sm
    from sktime.datasets import load_airline

    carbon = sm.datasets.co2.load_pandas().data["co2"].resample("MS").mean().interpolate()[-144:]
    carbon.index = carbon.index.to_period("M")
    rng, errors = np.random.default_rng(5), np.zeros(144)
    for month in range(1, 144):
        errors[month] = 0.6 * errors[month - 1] + rng.normal(0, 0.05)
    year = 2 * np.pi * np.arange(144) / 12
    level = 0.004 * np.arange(144) + 0.25 * np.sin(year) + 0.1 * np.cos(2 * year)
    made_up = pd.Series(200 * np.exp(level + errors), index=pd.period_range("2000-01", periods=144, freq="M"))
    return {"airline": load_airline(), "co2": carbon, "made up": made_up}


def compare(y: Any, make: Callable[[], Any]) -> dict[str, float]:
    """Mean absolute errors alone and wrapped, and the share in the 90% band, of forecasts from each cutoff."""
    from orcast.integrations.sktime import RecalibratedForecaster

    alone, wrapped, inside = [], [], []
    for cutoff in CUTOFFS:
        came = y[cutoff : cutoff + len(STEPS)].to_numpy()
        model = RecalibratedForecaster(make(), low=0).fit(y[:cutoff], fh=STEPS)
        low, high = model.predict_interval(coverage=0.9).to_numpy().T
        inside.append((low <= came) & (came <= high))
        wrapped.append(np.abs(model.predict().to_numpy() - came))
        alone.append(np.abs(make().fit(y[:cutoff], fh=STEPS).predict().to_numpy() - came))
    return {"alone": float(np.mean(alone)), "wrapped": float(np.mean(wrapped)), "inside": float(np.mean(inside))}


def sktime(quick: bool = False) -> Iterator[Line | Remark]:
    """MAE of the wrapped forecaster over its own, and coverage; in a quick run of one series and two forecasters."""
    logging.captureWarnings(True)  # sktime warns, for every forecaster, that a default will change
    yield Remark(f"sktime: fitted at {len(CUTOFFS)} cutoffs, {len(STEPS)} steps ahead each, 12 outcomes a line")
    for name, y in series().items():
        if quick and name != "airline":
            continue
        for label, make in models().items():
            if quick and "make_reduction" not in label and "Naive" not in label:
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = compare(y, make)
            note = f"alone {found['alone']:.4g}, wrapped {found['wrapped']:.4g}"
            case = f"{name}: {label}"[:37]
            yield Line(case, "MAE / that of the forecaster", found["wrapped"] / found["alone"], MOST_ERROR, form=".3f",
                       note=note)  # fmt: skip
            yield Line(case, "outcomes in the 90% band", found["inside"], LEAST_COVERED, ">=", form=".2f")
