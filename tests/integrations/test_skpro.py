"""Distributions of skpro that sktime gets: its own checks, and the forecast exactly."""

import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

import orcast as oc

pytest.importorskip("skpro")

from skpro.metrics import CRPS
from skpro.utils.estimator_checks import check_estimator

from orcast.integrations.sktime import ForecastDistribution

ALPHA = [0.05, 0.5, 0.95]


@pytest.mark.filterwarnings("ignore")  # what is drawn in them, and so what warns, differs from version to version
def test_passes_the_checks_of_skpro() -> None:
    results = check_estimator(ForecastDistribution, raise_exceptions=True, verbose=False)
    assert len(results) > 50


# --- the distribution

FORECASTS = [
    oc.Forecast([0, 1], [1, 3], [0.5, 0.5]),
    oc.Forecast([0, 1, 1], [1, 1, 3], [0.25, 0.5, 0.25]),
    oc.Forecast([-np.inf, 0, 1], [0, 1, 2], [0.2, 0.3, 0.5]),
    oc.Forecast([-1, 0, 4], [0, 1, np.inf], [0.2, 0.3, 0.5]),
    oc.Forecast([-np.inf, 0, 1], [0, 1, np.inf], [0.3, 0.4, 0.3]),
]


@pytest.mark.parametrize("p", FORECASTS)
def test_one_forecast_is_itself(p: oc.Forecast) -> None:
    d = ForecastDistribution(p)
    assert d.shape == ()
    assert d.mean() == p.mean()
    assert d.var() == p.var()
    for x in (-3.0, 0.0, 0.5, 1.0, 2.5, 7.0):
        assert d.cdf(x) == p.cdf(x)
        assert d.pdf(x) == p.pdf(x)
    for level in (0.01, 0.3, 0.999):
        assert d.ppf(level) == p.quantile(level)
    with np.errstate(divide="ignore"):
        assert d.log_pdf(0.5) == np.log(p.pdf(0.5))


@pytest.mark.parametrize("p", FORECASTS)
def test_energies_are_those_of_many_draws(p: oc.Forecast) -> None:
    d = ForecastDistribution(p)
    # even in the level, so that the tails are hit as often as they should be
    levels = (np.arange(200_000) + 0.5) / 200_000
    draws: NDArray[np.float64] = p.quantile(levels)
    for x in (-2.0, 0.3, 1.0, 5.0):
        assert d.energy(x) == pytest.approx(np.abs(draws - x).mean(), rel=2e-3)
        assert d.energy(x) - 0.5 * d.energy() == pytest.approx(p.crps(x), rel=1e-12)
    others = p.quantile(np.random.default_rng(0).permutation(levels))
    assert d.energy() == pytest.approx(np.abs(draws - others).mean(), rel=0.02)


def test_a_table_of_forecasts() -> None:
    low, atom, tail = FORECASTS[:3]
    index, columns = pd.Index(["x", "y", "z"]), pd.Index(["a", "b"])
    d = ForecastDistribution([[low, atom], [atom, tail], [tail, tail]], index=index, columns=columns)
    assert d.mean().loc["y", "b"] == tail.mean()
    quantiles = d.quantile(ALPHA)
    np.testing.assert_array_equal(quantiles.loc["x", "b"], atom.quantile(ALPHA))
    assert quantiles.columns.tolist() == [(name, level) for name in columns for level in ALPHA]
    part = d.loc[["z", "x"], ["a"]]
    assert part.shape == (2, 1)
    np.testing.assert_array_equal(part.mean().to_numpy()[:, 0], [tail.mean(), low.mean()])
    assert d.loc["y", "a"].mean() == d.iloc[1, 0].mean() == d.iat[1, 0].mean() == atom.mean()
    assert d.iloc[[2]].shape == (1, 2)
    x = pd.DataFrame(1.0, index=index, columns=columns)
    assert d.energy(x).shape == (3, 1)
    again = pickle.loads(pickle.dumps(d))
    np.testing.assert_array_equal(again.quantile(ALPHA), quantiles)
    scores = CRPS(multioutput="raw_values").evaluate_by_index(x, d)
    assert scores.loc["y"].to_numpy().ravel()[1] == pytest.approx(tail.crps(1.0))
