"""skpro: its own checks, a distribution that is the forecast exactly, a regressor that is scikit-learn's wrapper."""

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

import orcast as oc
from helpers import SENTENCE

pytest.importorskip("skpro")

from sklearn.datasets import load_diabetes
from sklearn.linear_model import LinearRegression
from skpro.metrics import CRPS
from skpro.regression.online import OnlineRefit
from skpro.regression.residual import ResidualDouble
from skpro.utils.estimator_checks import check_estimator

from orcast.integrations.skpro import LEVELS, ForecastDistribution, RecalibratedProbaRegressor

SPACE = oc.Interval(0, 400)
ALPHA = [0.05, 0.5, 0.95]


def diabetes() -> tuple[pd.DataFrame, pd.DataFrame]:
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    return X, y.to_frame()


def double() -> Any:
    return ResidualDouble(LinearRegression())


@pytest.mark.filterwarnings("ignore")  # what is drawn in them, and so what warns, differs from version to version
@pytest.mark.parametrize("kind", [ForecastDistribution, RecalibratedProbaRegressor])
def test_passes_the_checks_of_skpro(kind: Any) -> None:
    results = check_estimator(kind, raise_exceptions=True, verbose=False)
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
        assert d.pmf(x) == (0.5 if p is FORECASTS[1] and x == 1.0 else 0.0)
    for level in (0.01, 0.3, 0.999):
        assert d.ppf(level) == p.quantile(level)
    with np.errstate(divide="ignore"):
        assert d.log_pdf(0.5) == np.log(p.pdf(0.5))
        assert d.log_pmf(1.0) == np.log(d.pmf(1.0))


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
    np.testing.assert_array_equal(d.pmf(x), [[0, 0.5], [0.5, 0], [0, 0]])
    assert d.energy(x).shape == (3, 1)
    again = pickle.loads(pickle.dumps(d))
    np.testing.assert_array_equal(again.quantile(ALPHA), quantiles)
    scores = CRPS(multioutput="raw_values").evaluate_by_index(x, d)
    assert scores.loc["y"].to_numpy().ravel()[1] == pytest.approx(tail.crps(1.0))


# --- the regressor


@pytest.mark.parametrize("learns", [False, True])
def test_it_is_the_recalibrator_bit_for_bit(learns: bool) -> None:
    X, y = diabetes()
    inner = OnlineRefit(double()) if learns else double()
    model = RecalibratedProbaRegressor(inner, 0, 400, folds=1, batch=1).fit(X[:100], y[:100])
    recal, plain = oc.Recalibrator(SPACE), double().fit(X[:50], y[:50])
    for rows in range(50, 100):
        said = plain.predict_quantiles(X[rows : rows + 1], alpha=list(LEVELS)).to_numpy()[0]
        recal.predict(oc.Quantiles(LEVELS, np.sort(said)))
        recal.update(y.iloc[rows, 0])
    for rows in range(100, 130):
        fitted = rows if learns else 100
        plain = double().fit(X[:fitted].reset_index(drop=True), y[:fitted].reset_index(drop=True))
        row = X[rows : rows + 1]
        said = plain.predict_quantiles(row, alpha=list(LEVELS)).to_numpy()[0]
        p = recal.predict(oc.Quantiles(LEVELS, np.sort(said)))
        np.testing.assert_allclose(
            model.predict_quantiles(row, alpha=ALPHA).to_numpy()[0], p.quantile(ALPHA), rtol=1e-9
        )
        model.update(row, y[rows : rows + 1])
        recal.update(y.iloc[rows, 0])
    assert model.guarantee.rounds == 80
    assert model.guarantee.miscalibration == pytest.approx(recal.guarantee.miscalibration, rel=1e-6)


def test_all_ways_to_ask_agree_and_change_nothing() -> None:
    X, y = diabetes()
    model = RecalibratedProbaRegressor(double(), 0, 400, folds=2).fit(X[:120], y[:120])
    before = pickle.dumps(model._model.recalibrator_)
    d = model.predict_proba(X[120:125])
    pd.testing.assert_frame_equal(d.mean(), model.predict(X[120:125]))
    pd.testing.assert_frame_equal(d.var(), model.predict_var(X[120:125]))
    pd.testing.assert_frame_equal(d.quantile(ALPHA), model.predict_quantiles(X[120:125], alpha=ALPHA))
    bands = model.predict_interval(X[120:125], coverage=[0.5, 0.8])
    np.testing.assert_array_equal(bands.iloc[:, 2:], model.predict_quantiles(X[120:125], alpha=[0.5 - 0.4, 0.5 + 0.4]))
    assert pickle.dumps(model._model.recalibrator_) == before


def test_refused_input_and_no_rows_change_nothing() -> None:
    X, y = diabetes()
    model = RecalibratedProbaRegressor(double(), 0, 400, folds=2).fit(X[:60], y[:60])
    before = pickle.dumps(model._model.recalibrator_)
    for bad in (y[60:62] + 1000, pd.concat([y[60:62], y[60:62].add_prefix("other")], axis=1)):
        with pytest.raises(ValueError, match=SENTENCE):
            model.update(X[60:62], bad)
    assert model.update(X[:0], y[:0]).guarantee.rounds == 40
    assert pickle.dumps(model._model.recalibrator_) == before
    with pytest.raises(TypeError, match=SENTENCE):
        RecalibratedProbaRegressor(LinearRegression())
    for forecasts in ([[3.0]], [FORECASTS[0]]):
        with pytest.raises(TypeError, match=SENTENCE):
            ForecastDistribution(forecasts)
    with pytest.raises(ValueError, match=SENTENCE):
        ForecastDistribution([[FORECASTS[0]]], index=pd.Index([1, 2]), columns=pd.Index([0]))
    with pytest.raises(ValueError, match=SENTENCE):
        ForecastDistribution([[FORECASTS[0]]])._iat(0)
