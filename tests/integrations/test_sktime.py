"""sktime: its own checks, the same numbers as a frame by hand, histories that no model has seen, attacks."""

import math
import pickle
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import orcast as oc
from helpers import SENTENCE

pytest.importorskip("sktime")
pytest.importorskip("skpro")

from sklearn.linear_model import LinearRegression
from sktime.base import load
from sktime.datasets import load_airline
from sktime.forecasting.base import BaseForecaster, ForecastingHorizon
from sktime.forecasting.compose import make_reduction
from sktime.forecasting.naive import NaiveForecaster
from sktime.forecasting.trend import TrendForecaster
from sktime.utils.estimator_checks import check_estimator

from orcast.integrations.sktime import FINE, LEVELS, ForecastDistribution, RecalibratedForecaster

# what sktime 1.2 says of its next version whenever a forecaster is made
pytestmark = pytest.mark.filterwarnings("ignore:The default of config:FutureWarning")

ALPHA = [0.05, 0.5, 0.95]

# --- forecasters that watch


class Last(BaseForecaster):
    """Says the last value, and a little more for each step ahead; remembers when it was asked, updated and fitted."""

    _tags = {  # noqa: RUF012
        "requires-fh-in-fit": False,
        "capability:update": True,
        "capability:missing_values": True,
        "capability:exogenous": False,
    }
    _config = {"remember_data": False}  # noqa: RUF012
    log: list[tuple[str, Any, Any]] = []  # noqa: RUF012

    def __init__(self, slope: float = 0.5) -> None:
        self.slope = slope
        super().__init__()

    def _fit(self, y: Any, X: Any, fh: Any) -> Any:
        Last.log.append(("fit", y.index[0], y.index[-1]))
        self.last_ = float(y.dropna().iloc[-1])
        return self

    def _update(self, y: Any, X: Any = None, update_params: bool = True) -> Any:
        Last.log.append(("update" if update_params else "move", y.index[0], y.index[-1]))
        if y.notna().any():
            self.last_ = float(y.dropna().iloc[-1])
        return self

    def _predict(self, fh: Any, X: Any) -> Any:
        steps = fh.to_relative(self.cutoff).to_numpy()
        Last.log.append(("predict", self.cutoff[0], tuple(steps)))
        return pd.Series(self.last_ + self.slope * steps, index=fh.to_absolute_index(self.cutoff))


class Band(Last):
    """Says quantiles, of a Gaussian that is far too narrow."""

    _tags = {"capability:pred_int": True, "capability:pred_int:insample": False}  # noqa: RUF012

    def _predict_quantiles(self, fh: Any, X: Any, alpha: Any) -> Any:
        steps = fh.to_relative(self.cutoff).to_numpy()
        rows = [oc.Normal(self.last_ + self.slope * step, 0.5).quantile(alpha) for step in steps]
        names = pd.MultiIndex.from_product([self._get_varnames(), alpha])
        return pd.DataFrame(rows, index=fh.to_absolute_index(self.cutoff), columns=names)


class Told(Last):
    """Says what stands in X."""

    _tags = {"capability:exogenous": True}  # noqa: RUF012

    def _predict(self, fh: Any, X: Any) -> Any:
        index = fh.to_absolute_index(self.cutoff)
        return pd.Series(X.loc[index, "says"].to_numpy(), index=index)


def walk(count: int, seed: int = 0) -> pd.Series:
    rng = np.random.default_rng(seed)
    return pd.Series(50 + 8 * np.sin(np.arange(count) / 7) + rng.gumbel(1.0, 3.0, count)).clip(0, 100)


def wrapped(forecaster: Any = None, **options: Any) -> RecalibratedForecaster:
    return RecalibratedForecaster(Last() if forecaster is None else forecaster, 0, 100, **options)


def same(one: RecalibratedForecaster, other: RecalibratedForecaster, **ask: Any) -> bool:
    return one.predict_quantiles(alpha=ALPHA, **ask).equals(other.predict_quantiles(alpha=ALPHA, **ask))


def fine(after: pd.DataFrame) -> Any:
    """Quantiles at FINE levels, the columns before the certificate."""
    end = next(place for place, name in enumerate(after.columns) if name.endswith("_holds"))
    return after.iloc[:, end - len(FINE) : end].to_numpy()


def by_hand(y: pd.Series, cutoffs: list[int], steps: list[int], quantiles: bool, slope: float = 0.5) -> Any:
    """Quantiles at FINE levels of the last cutoff, from one frame with nothing of sktime's."""
    rows = [(now, now + step, step, y[now] + slope * step) for now in cutoffs for step in steps]
    frame = pd.DataFrame(rows, columns=["cutoff", "time", "h", "point"])
    frame["y"] = frame["time"].map(y[: cutoffs[-1] + 1])
    if quantiles:
        table = [oc.Normal(point, 0.5).quantile(LEVELS) for point in frame.pop("point")]
        frame = pd.concat([frame, pd.DataFrame(table, columns=[f"q{level}" for level in LEVELS])], axis=1)
    model = None if quantiles else "point"
    after = oc.recalibrate(frame, model=model, horizon="h", low=0, high=100, levels=FINE)
    return fine(after)[-len(steps) :]


# --- its own checks

QUICK = [
    "test_constructor",
    "test_set_params_sklearn",
    "test_fit_does_not_overwrite_hyper_params",
    "test_update_with_exogenous_variables",
    "test_predict_series_name_preserved",
    "test_cutoff",
]


@pytest.mark.filterwarnings("ignore")  # what is drawn in them, and so what warns, differs from version to version
def test_passes_the_checks_of_sktime() -> None:
    check_estimator(RecalibratedForecaster, raise_exceptions=True, verbose=False, tests_to_run=QUICK)


@pytest.mark.slow
@pytest.mark.parametrize("reduction", [False, True])
@pytest.mark.filterwarnings("ignore")  # of the forecasters, whose histories in these checks are short
def test_passes_all_the_checks_of_sktime(reduction: bool) -> None:
    inner = make_reduction(LinearRegression(), "direct", 3) if reduction else None
    model = wrapped(inner, initial_window=0.8, step_length=4) if reduction else RecalibratedForecaster
    check_estimator(model, raise_exceptions=True, verbose=False)


# --- what is fitted to, and what is scored


@pytest.mark.parametrize(("quantiles", "size"), [(False, 1), (True, 2)], ids=["points", "quantiles"])
def test_it_is_a_frame_bit_for_bit(quantiles: bool, size: int) -> None:
    y, steps, first = walk(50), [1, 3], 20
    model = wrapped(Band() if quantiles else Last(), initial_window=first).fit(y[:40], fh=steps)
    cutoffs = list(range(first - 1, 39))
    for row in range(40, 50, size):
        cutoffs.append(row - 1)
        expected = by_hand(y, cutoffs, steps, quantiles)
        np.testing.assert_allclose(model.predict_quantiles(alpha=list(FINE)), expected, rtol=1e-12)
        model.update(y[row : row + size])
    assert model.state_.pending == sum(time > 49 for now in cutoffs for time in (now + 1, now + 3))


def test_no_outcome_is_scored_by_a_model_that_has_seen_it() -> None:
    Last.log.clear()
    wrapped(initial_window=0.5, step_length=4).fit(walk(40), fh=[1, 3])
    asked = range(19, 39, 4)
    # each time fitted to all that was known, as the one that is served, and asked about what it has not seen
    parts = [each for now in asked for each in (("fit", 0, now), ("predict", now, (1, 3)))]
    assert Last.log == [("fit", 0, 39), *parts]


def test_a_later_fit_is_as_going_on() -> None:
    y = load_airline()[:60]
    make = lambda: make_reduction(LinearRegression(), window_length=13)  # noqa: E731
    early, late = (RecalibratedForecaster(make(), initial_window=40).fit(y[:end], fh=[1, 3]) for end in (48, 60))
    for row in range(48, 60):
        early.update(y[row : row + 1])
    assert same(early, late)
    # a forecaster that cannot be updated is fitted to all rows again, with their revisions
    revised = walk(45)
    model = wrapped(TrendForecaster(), initial_window=0.8).fit(revised[:40], fh=[1])
    revised[38] = 0.0
    model.update(revised[38:41])
    np.testing.assert_allclose(model.forecaster_.predict(), TrendForecaster().fit(revised[:41], fh=[1]).predict())


def test_a_forecaster_that_needs_a_longer_history_is_replayed_from_where_it_can() -> None:
    class Slow(Last):
        def _fit(self, y: Any, X: Any, fh: Any) -> Any:
            if len(y) < 25:
                raise ValueError("too short")
            return super()._fit(y, X, fh)

        def _predict(self, fh: Any, X: Any) -> Any:
            said = super()._predict(fh, X)
            return said if self.cutoff[0] >= 30 else said * math.nan

    assert same(wrapped(Slow()).fit(walk(40), fh=[1]), wrapped(initial_window=31).fit(walk(40), fh=[1]))
    with pytest.raises(ValueError, match="too short"):
        wrapped(Slow()).fit(walk(20), fh=[1])
    early = wrapped(Slow()).fit(walk(28), fh=[1])  # a forecast that is not finite comes out as it is
    assert early.predict().isna().all()
    assert early.predict_interval().isna().all().all()
    with pytest.raises(ValueError, match=SENTENCE):
        early.predict_proba()


def test_old_rows_are_not_scored_twice() -> None:
    y = walk(60)
    model = wrapped(initial_window=0.8).fit(y[:40], fh=[1, 2])
    model.update(y[40:45])
    before = pickle.dumps(model.state_)
    model.update(y[30:45])
    model.update(y[:20])
    assert pickle.dumps(model.state_) == before
    assert model.cutoff == model.forecaster_.cutoff == 44
    model.update(y[40:50])
    assert model.state_.pending == 0
    model.update(y[50:51])
    assert model.state_.pending == 1


# --- steps and times


def test_steps_that_fit_was_not_told_of_are_replayed() -> None:
    y = walk(50)
    told, untold = wrapped().fit(y[:40], fh=[1, 2, 4]), wrapped().fit(y[:40], fh=[1])
    before = pickle.dumps(untold.state_)
    assert same(told, untold, fh=[1, 2, 4])
    assert pickle.dumps(untold.state_) == before
    for each in (told, untold):
        each.update(y[40:43])
    assert same(told, untold, fh=[1, 2, 4])
    assert len(untold.state_) == 3
    with pytest.raises(ValueError, match="fh"):
        wrapped().fit(y).predict()


@pytest.mark.parametrize("kind", ["int", "period", "datetime"])
def test_steps_may_be_times_with_gaps(kind: str) -> None:
    y = walk(50)
    if kind != "int":
        make = pd.period_range if kind == "period" else pd.date_range
        y.index = make("2020-01-01", periods=50, freq="D")
    twin = wrapped().fit(y[:40], fh=[2, 5])
    model = wrapped().fit(y[:40], fh=ForecastingHorizon(y.index[[41, 44]], is_relative=False))
    assert list(model.predict().index) == list(y.index[[41, 44]])
    np.testing.assert_array_equal(model.predict(), twin.predict([2, 5]))
    model.update(y[40:41])
    assert len(model.state_) == 2
    model.update(y[41:45])  # from the next day on it is one step less
    assert len(model.state_) == 4


@pytest.mark.filterwarnings("ignore:Period")  # of business days, from within sktime
@pytest.mark.parametrize(
    ("make", "freq"),
    [(Last, "B"), (Last, "MS"), (NaiveForecaster, "D")],
)
def test_dates_without_a_frequency_are_as_those_with_one(make: Any, freq: str) -> None:
    y = walk(40)
    y.index = pd.date_range("2026-01-01", periods=40, freq=freq)
    bare = pd.Series(y.to_numpy(), index=pd.DatetimeIndex(list(y.index)))
    assert bare.index.freq is None
    model, twin = (wrapped(make(), initial_window=26).fit(each[:30], fh=[1, 3]) for each in (bare, y))
    for row in range(30, 33):
        model.update(bare[row : row + 1])
        twin.update(y[row : row + 1])
        assert same(model, twin)
    assert same(model, twin, fh=[2])  # a step that is new
    assert list(model.predict([2]).index) == [y.index[34]]
    for each, rows in ((model, bare), (twin, y)):
        each.update(rows[34:35])  # a row is left out
        each.update(rows[35:])
    np.testing.assert_array_equal(model.predict([1]), twin.predict([1]))


# --- missing values, bounds and refusals


def test_missing_outcomes_are_not_scored() -> None:
    y = walk(60)
    y[[30, 45]] = math.nan
    model = wrapped(initial_window=20).fit(y[:40], fh=[1, 2])
    model.update(y[40:44])
    model.update(y[44:46])  # the last of them is nan
    model.update(y[48:50])  # rows that are left out
    model.update(y[50:52])
    assert np.isfinite(model.predict()).all()
    with pytest.raises(ValueError, match="missing"):
        wrapped(TrendForecaster()).fit(y, fh=[1])


def test_outcomes_outside_the_bounds_are_reported_or_clipped() -> None:
    y = walk(45)
    model = wrapped(initial_window=0.8).fit(y[:40], fh=[1, 2])
    with pytest.warns(UserWarning, match="ignored outcomes outside the bounds"):
        model.update(pd.Series([50.0, 101.0], index=[40, 41]))
    assert np.isfinite(model.predict()).all()
    clipped = wrapped(outside="clip", initial_window=0.8).fit(y[:40], fh=[1])
    assert clipped.update(pd.Series([101.0], index=[40])).state_.pending == 0


def test_a_forecaster_that_fails_changes_nothing() -> None:
    class Fails(Last):
        def _fit(self, y: Any, X: Any, fh: Any) -> Any:
            if y.index[-1] >= 40:
                raise RuntimeError("no")
            return super()._fit(y, X, fh)

    y = walk(45)
    model, twin = (wrapped(each, initial_window=0.8).fit(y[:40], fh=[1, 2]) for each in (Fails(), Last()))
    with pytest.raises(RuntimeError):
        model.update(y[40:])
    assert model.cutoff == model.forecaster_.cutoff == 39
    assert same(model, twin)
    assert pickle.dumps(model.state_) == pickle.dumps(twin.state_)


@pytest.mark.parametrize("name", ["high", "step_length", "initial_window", "outside", "payoff"])
def test_bad_input_is_one_clear_sentence(name: str) -> None:
    for value in ("much", -1):
        with pytest.raises((ValueError, TypeError), match=SENTENCE):
            RecalibratedForecaster(Last(), **{"low": 0, name: value}).fit(walk(20), fh=[1])
    with pytest.raises(TypeError, match=SENTENCE):
        RecalibratedForecaster(LinearRegression())
    model = wrapped(initial_window=0.8).fit(walk(20), fh=[1])
    before = pickle.dumps(model.state_)
    with pytest.raises(NotImplementedError, match=SENTENCE):
        model.predict_proba(marginal=False)
    with pytest.raises(NotImplementedError):
        model.predict([-3, 0, 1])
    for index in (pd.period_range("2026-01-01", periods=2), pd.date_range("2026-01-01", periods=2, tz="UTC")):
        with pytest.raises(TypeError, match=SENTENCE):
            model.update(pd.Series([50.0, 60.0], index))
    assert model.cutoff[0] == model.forecaster_.cutoff[0] == 19
    assert pickle.dumps(model.state_) == before


# --- copies, and methods that predict


def test_predicting_changes_nothing() -> None:
    model = wrapped(Band(), initial_window=0.7).fit(walk(40), fh=[1, 2, 3])
    before = pickle.dumps((model.state_, model._seen))
    forecasts = model.predict_proba()
    assert isinstance(forecasts, ForecastDistribution)
    both = wrapped(Band(), initial_window=0.7).fit(pd.DataFrame({"a": walk(40), "b": walk(40, seed=1)}), fh=[1, 2, 3])
    np.testing.assert_array_equal(both.predict()["a"], model.predict())
    pd.testing.assert_series_equal(forecasts.mean().iloc[:, 0], model.predict(), check_names=False)
    pd.testing.assert_frame_equal(forecasts.var(), model.predict_var())
    pd.testing.assert_frame_equal(forecasts.quantile(ALPHA), model.predict_quantiles(alpha=ALPHA))
    bands = model.predict_interval(coverage=[0.9])
    np.testing.assert_array_equal(bands, model.predict_quantiles(alpha=[0.5 - 0.45, 0.5 + 0.45]))
    assert pickle.dumps((model.state_, model._seen)) == before


def test_copies_go_on_bit_for_bit(tmp_path: Path) -> None:
    y = walk(60)
    model = wrapped(initial_window=0.7).fit(y[:40], fh=[1, 4])
    model.update(y[40:42])
    model.save(tmp_path / "model")
    copies = [pickle.loads(pickle.dumps(model)), deepcopy(model), load(tmp_path / "model.zip")]
    for row in range(42, 50):
        for each in (model, *copies):
            each.update(y[row : row + 1])
    assert all(same(each, model) for each in copies)
    fresh = model.clone()
    assert not fresh.is_fitted
    assert fresh.get_params()["forecaster__slope"] == 0.5
    assert fresh.set_params(forecaster__slope=2.0, step_length=7).forecaster.slope == 2.0


# --- features, and several series


def test_x_reaches_the_forecaster_and_the_payoff() -> None:
    y = walk(60)
    X = pd.DataFrame({"says": y + 3.0, "hour": np.arange(60) % 2})
    payoff = oc.QuantileCalibration(context=oc.by("hour", values=[0, 1]))
    model = wrapped(Told(), payoff=payoff, initial_window=20).fit(y[:40], X[:40], fh=[1, 3])
    rows = [(now, now + step, step) for now in range(19, 40) for step in (1, 3) if now + step < 40 or now == 39]
    frame = pd.DataFrame(rows, columns=["cutoff", "time", "h"])
    frame = frame.assign(point=frame["time"].map(X["says"]), hour=frame["time"] % 2, y=frame["time"].map(y[:40]))
    hand = oc.recalibrate(frame, model="point", horizon="h", low=0, high=100, levels=FINE, payoff=payoff)
    found = model.predict_quantiles(alpha=list(FINE), X=X[40:43])
    np.testing.assert_allclose(found, fine(hand)[-2:], rtol=1e-12)
    model.update(y[40:41], X[40:41])  # of the third step no X is known
    assert model.state_.pending == 0
    model.update(y[41:42], X[41:44])
    assert model.state_.pending == 1
    model.update(y[42:43])  # without X nothing is forecast
    model.update(y[43:44], X[43:44])
    assert model.state_.pending == 0
