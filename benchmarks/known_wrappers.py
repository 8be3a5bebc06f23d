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

    alone, wrapped, means, inside = [], [], [], []
    for cutoff in CUTOFFS:
        came = y[cutoff : cutoff + len(STEPS)].to_numpy()
        model = RecalibratedForecaster(make(), low=0).fit(y[:cutoff], fh=STEPS)
        low, high = model.predict_interval(coverage=0.9).to_numpy().T
        inside.append((low <= came) & (came <= high))
        wrapped.append(np.abs(model.predict().to_numpy() - came))
        means.append(np.abs(model.predict_proba().mean().to_numpy()[:, 0] - came))
        alone.append(np.abs(make().fit(y[:cutoff], fh=STEPS).predict().to_numpy() - came))
    found = {"alone": alone, "wrapped": wrapped, "means": means, "inside": inside}
    return {name: float(np.mean(values)) for name, values in found.items()}


def unseen(seed: int) -> tuple[float, float, float]:
    """A series of random growth, season and errors, on which no default was chosen: 22 cutoffs, 3 steps, a reduction.

    The errors of `predict`, and of the calibrated means, over those of the forecaster, and the share in the 90% band.
    """
    from sklearn.linear_model import LinearRegression
    from sktime.forecasting.compose import make_reduction

    from orcast.integrations.sktime import RecalibratedForecaster

    rng, errors, months = np.random.default_rng(seed), np.zeros(144), np.arange(144)
    lasting, spread, growth = rng.uniform(0.2, 0.9), rng.uniform(0.02, 0.08), rng.uniform(-0.003, 0.008)
    for month in range(1, 144):
        errors[month] = lasting * errors[month - 1] + rng.normal(0, spread)
    year = 2 * np.pi * months / 12
    level = growth * months + rng.uniform(0.1, 0.3) * np.sin(year) + rng.uniform(0, 0.15) * np.cos(2 * year) + errors
    y = pd.Series(200 * np.exp(level), index=pd.period_range("2000-01", periods=144, freq="M"))
    reduction = make_reduction(LinearRegression(), window_length=13)
    model = RecalibratedForecaster(reduction, low=0, initial_window=40).fit(y[:120], fh=STEPS)
    alone, wrapped, means, inside = [], [], [], []
    for row in range(120, 142):
        came = y[row : row + 3].to_numpy()
        low, high = model.predict_interval(coverage=0.9).to_numpy().T
        inside.append((low <= came) & (came <= high))
        alone.append(np.abs(model.forecaster_.predict(fh=STEPS).to_numpy() - came))
        wrapped.append(np.abs(model.predict().to_numpy() - came))
        means.append(np.abs(model.predict_proba().mean().to_numpy()[:, 0] - came))
        model.update(y[row : row + 1])
    own = float(np.mean(alone))
    return float(np.mean(wrapped)) / own, float(np.mean(means)) / own, float(np.mean(inside))


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
            note = f"alone {found['alone']:.4g}, means of the calibrated forecasts {found['means']:.4g}"
            case = f"{name}: {label}"[:37]
            yield Line(case, "MAE / that of the forecaster", found["wrapped"] / found["alone"], MOST_ERROR, form=".3f",
                       note=note)  # fmt: skip
            yield Line(case, "outcomes in the 90% band", found["inside"], LEAST_COVERED, ">=", form=".2f")
    yield Remark("the defaults were chosen with those cutoffs in sight; 12 random series that no choice was made on:")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        points, means, inside = np.array([unseen(seed) for seed in range(100, 103 if quick else 112)]).T
    case = "random series, make_reduction"
    note = f"worst {points.max():.3f}; calibrated means {means.mean():.3f}, {means.max():.3f}"
    yield Line(case, "MAE / that of the forecaster, mean", float(points.mean()), None if quick else MOST_ERROR,
               form=".3f", note=note)  # fmt: skip
    yield Line(case, "outcomes in the 90% band, mean", float(inside.mean()), None if quick else LEAST_COVERED, ">=",
               form=".2f", note=f"least {inside.min():.2f}")  # fmt: skip
