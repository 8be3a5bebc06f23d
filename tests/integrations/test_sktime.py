"""sktime: its own checks, forecasts that are scored as they were issued, histories that no model has seen, attacks."""

import math
import pickle
import warnings
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import orcast as oc
from helpers import SENTENCE
from orcast.residuals import Residuals

pytest.importorskip("sktime")
pytest.importorskip("skpro")

from sklearn.linear_model import LinearRegression
from sktime.base import load
from sktime.forecasting.base import BaseForecaster, ForecastingHorizon
from sktime.forecasting.compose import TransformedTargetForecaster, make_reduction
from sktime.forecasting.exp_smoothing import ExponentialSmoothing
from sktime.forecasting.naive import NaiveForecaster
from sktime.forecasting.theta import ThetaForecaster
from sktime.forecasting.trend import TrendForecaster
from sktime.transformations.exponent import ExponentTransformer
from sktime.utils.estimator_checks import check_estimator

from orcast.integrations.skpro import LEVELS
from orcast.integrations.sktime import ForecastDistribution, RecalibratedForecaster

# what sktime 1.2 says of its next version whenever a forecaster is made
pytestmark = pytest.mark.filterwarnings("ignore:The default of config:FutureWarning")

SPACE = oc.Interval(0, 100)
ALPHA = [0.05, 0.5, 0.95]

# --- forecasters that watch


class Last(BaseForecaster):
    """Says the last value, and a little more for each step ahead; remembers when it was asked, taught and fitted."""

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


def rounds(model: RecalibratedForecaster) -> dict[int, int]:
    return {step: each.guarantee.rounds for step, each in model.recalibrators_.items()}


def masses(model: RecalibratedForecaster, **ask: Any) -> list[Any]:
    return [p.mass for p in model.predict_proba(**ask)._forecasts.flat]


class ByHand:
    """The same with nothing of sktime's: a recalibrator a step, played in the order of time."""

    def __init__(self, steps: list[int], before: pd.Series, quantiles: bool, slope: float = 0.5) -> None:
        self.recals = {step: oc.Recalibrator(SPACE) for step in steps}
        self.usual = {step: math.sqrt(math.pi / 2) * float(np.mean(np.abs(before.diff(step)[step:]))) for step in steps}
        self.residuals = {step: Residuals(100) for step in steps}
        self.quantiles, self.slope = quantiles, slope

    def forecasts(self, last: float) -> dict[int, Any]:
        told = {}
        for step, residuals in self.residuals.items():
            point = last + self.slope * step
            if self.quantiles:
                told[step] = oc.Quantiles(LEVELS, oc.Normal(point, 0.5).quantile(LEVELS))
            else:
                told[step] = residuals.around(point, SPACE, None if len(residuals) else self.usual[step])
        return told

    def issue(self, now: int, last: float) -> dict[int, Any]:
        self.points = getattr(self, "points", {})
        said = {}
        for step, told in self.forecasts(last).items():
            said[step] = self.recals[step].predict(told, id=now + step)
            self.points[step, now + step] = getattr(told, "mean", 0.0)
        return said

    def learn(self, time: int, outcome: float) -> None:
        for step, recal in self.recals.items():
            if time in recal.pending:
                recal.update(outcome, id=time)
                self.residuals[step].add(outcome - self.points[step, time])


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
@pytest.mark.parametrize(
    "make",
    [
        lambda: make_reduction(LinearRegression(), "direct", 3),
        lambda: ExponentialSmoothing(trend="add"),
        lambda: ThetaForecaster(deseasonalize=False),
        lambda: None,
    ],
    ids=["direct reduction", "exponential smoothing", "theta", "all examples"],
)
@pytest.mark.filterwarnings("ignore")  # of the forecasters, whose histories in these checks are short
def test_passes_all_the_checks_of_sktime(make: Any) -> None:
    inner = make()
    model = (
        RecalibratedForecaster if inner is None else RecalibratedForecaster(inner, initial_window=0.8, step_length=4)
    )
    check_estimator(model, raise_exceptions=True, verbose=False)


# --- what is fitted to, and what is scored


@pytest.mark.parametrize("step_length", [1, 4])
def test_no_outcome_is_scored_by_a_model_that_has_seen_it(step_length: int) -> None:
    y = walk(40)
    Last.log.clear()
    model = wrapped(initial_window=0.5, step_length=step_length).fit(y, fh=[1, 3])
    assert Last.log[0] == ("fit", 0, 39)
    asked = [now for what, now, _ in Last.log if what == "predict"]
    assert asked == list(range(19, 39, step_length))
    # each time fitted to all that was known, as the one that is served, and asked about what it has not seen
    assert Last.log[1:] == [each for now in asked for each in (("fit", 0, now), ("predict", now, (1, 3)))]
    assert rounds(model) == {step: sum(now + step <= 39 for now in asked) for step in (1, 3)}


@pytest.mark.parametrize("size", [1, 3])
def test_the_forecaster_is_fitted_anew_in_use_as_in_the_replay(size: int) -> None:
    y = walk(50)
    Last.log.clear()
    model = wrapped(initial_window=20, refit_every=4).fit(y[:30], fh=[1])
    fits = [stop for what, _, stop in Last.log if what == "fit"]
    assert fits == [29, 19, 23, 27]  # to all rows for comparison, and then every four rows
    assert [stop for what, _, stop in Last.log if what == "update"] == [20, 21, 22, 24, 25, 26, 28, 29]
    Last.log.clear()
    for row in range(30, 42, size):
        model.update(y[row : row + size])
    fits = [stop for what, _, stop in Last.log if what == "fit"]
    assert fits == ([31, 35, 39] if size == 1 else [32, 38])
    assert all(start == 0 for what, start, _ in Last.log if what == "fit")


@pytest.mark.parametrize("refit_every", [1, 5, None])
def test_a_later_fit_is_as_going_on(refit_every: int | None) -> None:
    """What is served was made as what was replayed: it does not matter where the one ends and the other begins."""
    y = seasonal(60)
    make = lambda: make_reduction(LinearRegression(), window_length=13)  # noqa: E731
    options: dict[str, Any] = {"initial_window": 40, "refit_every": refit_every}
    early, late = (RecalibratedForecaster(make(), **options).fit(y[:end], fh=[1, 3]) for end in (48, 60))
    for row in range(48, 60):
        early.update(y[row : row + 1])
    np.testing.assert_array_equal(early.predict_quantiles(alpha=ALPHA), late.predict_quantiles(alpha=ALPHA))
    np.testing.assert_array_equal(early.predict(), late.predict())
    assert early.guarantee(3) == late.guarantee(3)


def test_an_update_that_fits_nothing_is_reported_once() -> None:
    y = walk(45)
    model = wrapped(initial_window=0.8).fit(y[:40], fh=[1])
    with pytest.warns(UserWarning, match="update_params=False leaves the forecaster as it was fitted"):
        model.update(y[40:41], update_params=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        model.update(y[41:42], update_params=False)
        same = wrapped(initial_window=0.8, refit_every=None, update_params=False).fit(y[:40], fh=[1])
        same.update(y[40:41], update_params=False)


def test_a_revised_row_reaches_the_next_fit() -> None:
    y = walk(45)
    model = wrapped(TrendForecaster(), initial_window=0.8).fit(y[:40], fh=[1])
    revised = y.copy()
    revised[38] = 0.0
    model.update(revised[38:41])
    anew = TrendForecaster().fit(revised[:41], fh=[1])
    np.testing.assert_allclose(model.forecaster_.predict(), anew.predict())


# --- no worse than the forecaster alone


def seasonal(count: int) -> pd.Series:
    """Growth, two waves a year, and errors that last a while."""
    rng, errors = np.random.default_rng(5), np.zeros(count)
    for month in range(1, count):
        errors[month] = 0.6 * errors[month - 1] + rng.normal(0, 0.05)
    year = 2 * np.pi * np.arange(count) / 12
    level = 0.004 * np.arange(count) + 0.25 * np.sin(year) + 0.1 * np.cos(2 * year)
    return pd.Series(200 * np.exp(level + errors), index=pd.period_range("2000-01", periods=count, freq="M"))


def test_points_are_the_forecasters_own_where_those_were_closer() -> None:
    y = walk(80)

    class Biased(Last):
        def _predict(self, fh: Any, X: Any) -> Any:
            return super()._predict(fh, X) + 20.0

    for make, own_is_better in ((Biased, False), (lambda: TrendForecaster(), None)):
        model = wrapped(make(), initial_window=20, levels=()).fit(y[:60], fh=[1, 2])
        for row in range(60, 70):
            own, means = model.forecaster_.predict(fh=[1, 2]), model.predict_proba().mean().iloc[:, 0]
            for step in (1, 2):
                points = model._games[step].points
                assert own_is_better in (None, points.own_is_better)
                expected = own if points.own_is_better else means
                assert model.predict().iloc[step - 1] == expected.iloc[step - 1]
            model.update(y[row : row + 1])


def test_a_long_history_is_replayed_in_its_last_rows() -> None:
    model = wrapped(step_length=25).fit(walk(1000), fh=[1])
    assert rounds(model) == {1: 12}
    assert rounds(wrapped(initial_window=1000).fit(walk(1000), fh=[1])) == {1: 0}


def test_a_forecaster_that_needs_a_longer_history_is_replayed_from_where_it_can() -> None:
    class Slow(Last):
        def _fit(self, y: Any, X: Any, fh: Any) -> Any:
            if len(y) < 25:
                raise ValueError("too short")
            return super()._fit(y, X, fh)

        def _predict(self, fh: Any, X: Any) -> Any:
            said = super()._predict(fh, X)
            return said if self.cutoff[0] >= 30 else said * math.nan

    model = wrapped(Slow()).fit(walk(40), fh=[1])
    assert rounds(model) == {1: 9}
    with pytest.raises(ValueError, match="too short"):
        wrapped(Slow()).fit(walk(20), fh=[1])
    early = wrapped(Slow()).fit(walk(28), fh=[1])  # what is not finite is not scored, and comes out as it is
    assert rounds(early) == {1: 0}
    assert early.predict().isna().all()
    assert early.predict_interval().isna().all().all()
    with pytest.raises(ValueError, match=SENTENCE):
        early.predict_proba()


# --- the same numbers as by hand


@pytest.mark.parametrize("quantiles", [False, True], ids=["points", "quantiles"])
@pytest.mark.parametrize("size", [1, 2])
def test_it_is_the_recalibrator_bit_for_bit(quantiles: bool, size: int) -> None:
    y, steps, first = walk(60), [1, 3], 20
    hand = ByHand(steps, y[:first], quantiles)
    model = wrapped(Band() if quantiles else Last(), initial_window=first).fit(y[:40], fh=steps)
    for row in range(first, 40):
        hand.issue(row - 1, y[row - 1])
        hand.learn(row, y[row])
    for row in range(40, 60, size):
        said = masses(model)
        means, table = model.predict_proba().mean().iloc[:, 0], model.predict_quantiles(alpha=ALPHA)
        for i, p in enumerate(hand.issue(row - 1, y[row - 1]).values()):
            np.testing.assert_array_equal(said[i], p.mass)
            assert means.iloc[i] == p.mean()
            np.testing.assert_array_equal(table.iloc[i], p.quantile(ALPHA))
        model.update(y[row : row + size])
        for time in range(row, row + size):
            hand.learn(time, y[time])
    for step in steps:
        assert model.guarantee(step) == hand.recals[step].guarantee
        assert [39 + time for time in model.recalibrators_[step].pending] == list(hand.recals[step].pending)


def test_what_is_scored_is_what_was_predicted(monkeypatch: pytest.MonkeyPatch) -> None:
    y = walk(80)
    model = wrapped(initial_window=0.8).fit(y[:30], fh=[1, 2, 5])
    engine = type(model.recalibrators_[1].engine)
    update, booked = engine.update, []

    def watched(self: Any, page: Any, outcome: Any, **options: Any) -> None:
        booked.append((outcome, self.forecast(page).mass))
        update(self, page, outcome, **options)

    monkeypatch.setattr(engine, "update", watched)
    row = 30
    said = {
        (step, 29 + time): each.engine.forecast(waits.record).mass
        for step, each in model.recalibrators_.items()
        for time, waits in each.rounds.pending.items()
    }
    assert len(said) == 0 + 1 + 4  # that the replay has left
    for size in (1, 2, 1, 7, 3, 10, 1):
        for step, mass in zip((1, 2, 5), masses(model), strict=True):
            said[step, row - 1 + step] = mass
        booked.clear()
        model.update(y[row : row + size])
        row += size
        expected = [(time, mass) for (_, time), mass in said.items() if time < row]
        assert len(booked) == len(expected)
        for time, mass in expected:
            assert any(outcome == y[time] and np.array_equal(mass, each) for outcome, each in booked)
            said = {key: value for key, value in said.items() if key[1] != time}
    assert {(step, time) for step, each in model.recalibrators_.items() for time in each.pending} == {
        (step, time - 29) for step, time in said
    }


def test_old_rows_are_not_scored_twice() -> None:
    y = walk(60)
    model = wrapped(initial_window=0.8).fit(y[:40], fh=[1, 2])
    model.update(y[40:45])
    before = rounds(model)
    model.update(y[30:45])
    assert rounds(model) == before
    model.update(y[:20])  # leads the forecaster back; what it says now is no forecast
    assert model.cutoff == 19
    model.update(y[40:50])
    assert rounds(model) == before
    model.update(y[50:51])
    assert rounds(model) == {1: before[1] + 1, 2: before[2]}


def test_the_forecaster_is_asked_once_for_what_is_issued_and_scored() -> None:
    y = walk(45)
    model = wrapped(initial_window=0.8).fit(y[:40], fh=[1, 2])
    Last.log.clear()
    for row in range(40, 44):
        model.predict().index.name = "mine"  # as it may be: what the next call says has its own
        assert model.predict_quantiles(alpha=ALPHA).index.name is None
        model.predict([2])
        model.predict([1, 2])
        model.update(y[row : row + 1])
        asked = [("predict", row - 1, (1, 2)), ("predict", row - 1, (2,))]
        assert Last.log == [*asked, ("fit", 0, row)]
        Last.log.clear()


# --- which steps


def test_steps_that_fit_was_not_told_of_are_replayed() -> None:
    y = walk(50)
    told, untold = wrapped().fit(y[:40], fh=[1, 2, 4]), wrapped().fit(y[:40], fh=[1])
    before = pickle.dumps(untold._games)
    np.testing.assert_array_equal(told.predict(), untold.predict([1, 2, 4]))
    np.testing.assert_array_equal(wrapped().fit(y[:40]).predict([4]), told.predict([4]))
    assert pickle.dumps(untold._games) == before
    untold.predict_interval([1, 2, 4])
    for each in (told, untold):
        each.update(y[40:43])
    assert rounds(told) == rounds(untold) == {1: 27, 2: 27, 4: 26}
    np.testing.assert_array_equal(told.predict([1, 2, 4]), untold.predict([1, 2, 4]))
    with pytest.raises(ValueError, match="fh"):
        wrapped().fit(y).predict()


@pytest.mark.parametrize("kind", ["int", "period", "datetime"])
def test_steps_may_be_times_with_gaps(kind: str) -> None:
    y = walk(50)
    if kind != "int":
        make = pd.period_range if kind == "period" else pd.date_range
        y.index = make("2020-01-01", periods=50, freq="D")
    steps, twin = [2, 5], wrapped().fit(y[:40], fh=[2, 5])
    times = ForecastingHorizon(y.index[[41, 44]], is_relative=False)
    model = wrapped().fit(y[:40], fh=times)
    assert list(model.predict().index) == list(y.index[[41, 44]])
    np.testing.assert_array_equal(model.predict(), twin.predict(steps))
    for each in (model, twin):
        each.update(y[40:41])
    # from the next day on it is one step less
    assert sorted(model.recalibrators_) == [2, 5]
    np.testing.assert_array_equal(model.predict().iloc[1], wrapped().fit(y[:41]).predict([4]).iloc[0])
    model.update(y[41:45])
    assert sorted(model.recalibrators_) == [1, 2, 4, 5]


# --- times


@pytest.mark.filterwarnings("ignore:Period")  # of business days, from within sktime
@pytest.mark.parametrize(
    ("make", "freq"),
    [(Last, "B"), (Last, "h"), (Last, "MS"), (Band, "W-WED"), (Band, "D"), (NaiveForecaster, "D")],
)
def test_dates_without_a_frequency_are_as_those_with_one(make: Any, freq: str) -> None:
    y = walk(40)
    y.index = pd.date_range("2026-01-01", periods=40, freq=freq)
    bare = pd.Series(y.to_numpy(), index=pd.DatetimeIndex(list(y.index)))
    assert bare.index.freq is None
    model, twin = (wrapped(make(), initial_window=26).fit(each[:30], fh=[1, 3]) for each in (bare, y))
    for row in range(30, 36):
        model.update(bare[row : row + 1])
        twin.update(y[row : row + 1])
        np.testing.assert_array_equal(model.predict_quantiles(alpha=ALPHA), twin.predict_quantiles(alpha=ALPHA))
    np.testing.assert_array_equal(model.predict([2]), twin.predict([2]))  # steps that are new
    assert list(model.predict([2]).index) == [y.index[37]]
    with pytest.raises(ValueError, match=SENTENCE):
        model.update(bare[36:37] + 1000)
    for each, rows in ((model, bare), (twin, y)):
        each.update(rows[37:38])  # a row is left out
        each.update(rows[38:])
    assert rounds(model) == rounds(twin)
    np.testing.assert_array_equal(model.predict([1]), twin.predict([1]))


@pytest.mark.parametrize("kind", ["int", "period", "datetime", "zone"])
def test_times_of_another_kind_change_nothing(kind: str) -> None:
    indexes = {
        "int": pd.RangeIndex(40),
        "period": pd.period_range("2026-01-01", periods=40, freq="D"),
        "datetime": pd.date_range("2026-01-01", periods=40, freq="D"),
        "zone": pd.date_range("2026-01-01", periods=40, freq="D", tz="UTC"),
        "hours": pd.period_range("2026-01-01", periods=40, freq="h"),
    }
    y = walk(40)
    y.index = indexes.pop(kind)
    model = wrapped(initial_window=0.8).fit(y[:30], fh=[1, 2])
    before = pickle.dumps(model._games)
    for index in indexes.values():
        with pytest.raises(TypeError, match=SENTENCE):
            model.update(pd.Series(y.to_numpy(), index=index)[30:32])
        assert model.cutoff[0] == model.forecaster_.cutoff[0] == y.index[29]
        assert pickle.dumps(model._games) == before
    assert rounds(model.update(y[30:31])) == {1: 7, 2: 6}


def test_within_the_history_the_forecaster_speaks() -> None:
    y = walk(40)
    model = wrapped(NaiveForecaster(), levels=()).fit(y)
    inner = NaiveForecaster().fit(y)
    fh = [-3, 0, 1, 2]
    mixed = model.predict(fh)
    np.testing.assert_array_equal(mixed.iloc[:2], inner.predict(fh).iloc[:2])
    np.testing.assert_array_equal(mixed.iloc[2:], model.predict([1, 2]))
    with pytest.raises(NotImplementedError):
        model.predict_interval(fh)
    model.update(walk(42)[40:])
    assert sorted(model.recalibrators_) == [1, 2]


def test_a_forecaster_that_wants_its_steps_early() -> None:
    y = walk(60)
    model = wrapped(make_reduction(LinearRegression(), "direct", 4), initial_window=0.7, step_length=3)
    assert model.get_tag("requires-fh-in-fit")
    with pytest.raises(ValueError, match="fh"):
        model.fit(y[:40])
    model.fit(y[:40], fh=[1, 3])
    before = rounds(model)
    assert before == {1: 4, 3: 4}
    model.update(y[40:43])
    assert rounds(model) == {1: 5, 3: 5}
    assert model.predict_interval().shape == (2, 2)


# --- what sktime remembers


def trend(remember: bool) -> Any:
    return TrendForecaster().set_config(remember_data=remember)


def pipeline(remember: bool) -> Any:
    steps = [ExponentTransformer(2), trend(remember)]
    return TransformedTargetForecaster(steps).set_config(remember_data=remember)


@pytest.mark.filterwarnings("ignore:NotImplementedWarning:UserWarning")
@pytest.mark.parametrize("remember", [False, True], ids=["as by default in sktime 1.3", "as in 1.2"])
@pytest.mark.parametrize("make", [trend, pipeline])
def test_a_forecaster_without_an_update_is_fitted_anew(make: Any, remember: bool) -> None:
    y = walk(60)
    model = wrapped(make(remember), initial_window=37, levels=()).fit(y[:40], fh=[1, 2])
    for rows in (y[40:41], y[41:50]):
        model.update(rows)
        anew = make(remember).fit(y[: rows.index[-1] + 1], fh=[1, 2])
        np.testing.assert_allclose(model.forecaster_.predict(), anew.predict(), rtol=1e-9)
    assert rounds(model) == {1: 5, 2: 5}


# --- missing values and bounds


def test_missing_outcomes_end_their_rounds() -> None:
    y = walk(60)
    y[[30, 45]] = math.nan
    model = wrapped(initial_window=20).fit(y[:40], fh=[1, 2])
    assert rounds(model) == {1: 19, 2: 18}
    model.update(y[40:44])
    model.update(y[44:46])  # the last of them is nan
    assert rounds(model) == {1: 21, 2: 20}
    assert model.recalibrators_[2].pending == ()
    model.update(y[48:50])  # rows that are left out
    assert rounds(model) == {1: 21, 2: 20}
    assert model.recalibrators_[1].pending == model.recalibrators_[2].pending == ()
    model.update(y[50:52])
    assert rounds(model) == {1: 22, 2: 21}
    assert np.isfinite(model.predict()).all()
    with pytest.raises(ValueError, match="missing"):
        wrapped(TrendForecaster()).fit(y, fh=[1])


def test_a_refused_outcome_changes_nothing() -> None:
    y = walk(45)
    model = wrapped(initial_window=0.8).fit(y[:40], fh=[1, 2])
    before, cutoff = pickle.dumps(model._games), model.cutoff
    with pytest.raises(ValueError, match=SENTENCE):
        model.update(pd.Series([50.0, 101.0], index=[40, 41]))
    assert pickle.dumps(model._games) == before
    assert model.cutoff == cutoff == model.forecaster_.cutoff
    model.update(y[40:])
    assert rounds(model) == {1: 9, 2: 9}
    with pytest.raises(ValueError, match=SENTENCE):
        wrapped().fit(y * 10, fh=[1])
    clipped = wrapped(outside="clip", initial_window=0.8).fit(y[:40], fh=[1])
    assert rounds(clipped.update(pd.Series([101.0], index=[40]))) == {1: 9}


@pytest.mark.parametrize("refit_every", [1, None])
def test_a_forecaster_that_fails_changes_nothing(refit_every: int | None) -> None:
    class Fails(Last):
        def _fit(self, y: Any, X: Any, fh: Any) -> Any:
            if y.index[-1] >= 40:
                raise RuntimeError("no")
            return super()._fit(y, X, fh)

        def _update(self, y: Any, X: Any = None, update_params: bool = True) -> Any:
            if y.index[-1] >= 40:
                raise RuntimeError("no")
            return super()._update(y, X, update_params)

    y, options = walk(45), {"initial_window": 0.8, "refit_every": refit_every}
    model, twin = (wrapped(each, **options).fit(y[:40], fh=[1, 2]) for each in (Fails(), Last()))
    with pytest.raises(RuntimeError):
        model.update(y[40:])
    assert model.cutoff == model.forecaster_.cutoff == 39
    assert rounds(model) == rounds(twin)
    np.testing.assert_array_equal(model.predict(), twin.predict())
    for step, each in model.recalibrators_.items():
        own, other = each.rounds, twin.recalibrators_[step].rounds
        assert (own.ids, own.issued, own.reserved) == (other.ids, other.issued, other.reserved)
        assert [p.attached for p in own.pending.values()] == [p.attached for p in other.pending.values()]


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"low": 5, "high": 1}, ValueError),
        ({"high": 1}, ValueError),
        ({"levels": [0.5]}, ValueError),
        ({"levels": [0.1, 0.9]}, ValueError),
        ({"levels": [0.1, 1.9]}, ValueError),
        ({"step_length": 0}, ValueError),
        ({"refit_every": 0}, ValueError),
        ({"refit_every": 1.5}, ValueError),
        ({"initial_window": -1}, ValueError),
        ({"initial_window": 2.5}, ValueError),
        ({"initial_window": "much"}, ValueError),
        ({"initial_window": True}, ValueError),
        ({"window": 0}, ValueError),
        ({"outside": "ignore"}, ValueError),
        ({"payoff": 3}, TypeError),
    ],
)
def test_bad_options_are_one_clear_sentence(options: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error, match=SENTENCE):
        RecalibratedForecaster(Last(), **options).fit(walk(20), fh=[1])


def test_other_bad_input_is_one_clear_sentence() -> None:
    with pytest.raises(TypeError, match=SENTENCE):
        RecalibratedForecaster(LinearRegression())
    model = wrapped(initial_window=0.8).fit(walk(20), fh=[1])
    with pytest.raises(ValueError, match=SENTENCE):
        model.guarantee(2)
    with pytest.raises(NotImplementedError, match=SENTENCE):
        model.predict_proba(marginal=False)


# --- copies, and methods that predict


def test_predicting_changes_nothing() -> None:
    model = wrapped(Band(), initial_window=0.7).fit(walk(40), fh=[1, 2, 3])
    before = pickle.dumps((model._games, model._seen_y))
    forecasts = model.predict_proba()
    assert isinstance(forecasts, ForecastDistribution)
    assert model.predict().index.equals(forecasts.mean().index)
    pd.testing.assert_frame_equal(forecasts.var(), model.predict_var())
    pd.testing.assert_frame_equal(forecasts.quantile(ALPHA), model.predict_quantiles(alpha=ALPHA))
    bands = model.predict_interval(coverage=[0.9])
    np.testing.assert_array_equal(bands, model.predict_quantiles(alpha=[0.5 - 0.45, 0.5 + 0.45]))
    assert pickle.dumps((model._games, model._seen_y)) == before


def test_copies_go_on_bit_for_bit(tmp_path: Path) -> None:
    y = walk(60)
    model = wrapped(initial_window=0.7).fit(y[:40], fh=[1, 4])
    model.update(y[40:42])
    model.save(tmp_path / "model")
    copies = [pickle.loads(pickle.dumps(model)), deepcopy(model), load(tmp_path / "model.zip")]
    for row in range(42, 50):
        for each in (model, *copies):
            each.update(y[row : row + 1])
    for each in copies:
        np.testing.assert_array_equal(each.predict_interval(), model.predict_interval())
        assert each.guarantee(4) == model.guarantee(4)
    fresh = model.clone()
    assert not fresh.is_fitted
    assert fresh.get_params()["forecaster__slope"] == 0.5
    assert fresh.set_params(forecaster__slope=2.0, window=7).forecaster.slope == 2.0


# --- features, and several series


def test_x_reaches_the_forecaster_and_the_payoff() -> None:
    y = walk(60)
    X = pd.DataFrame({"says": y + 3.0, "hour": np.arange(60) % 2})
    payoff = oc.QuantileCalibration(context=oc.by("hour", values=[0, 1]))
    model = wrapped(Told(), payoff=payoff, initial_window=20).fit(y[:40], X[:40], fh=[1, 3])
    assert rounds(model) == {1: 20, 3: 18}
    hand, residuals = oc.Recalibrator(SPACE, payoff), Residuals(100)
    usual = math.sqrt(math.pi / 2) * float(np.mean(np.abs(y[:20].diff()[1:])))
    for row in range(20, 40):
        told = residuals.around(X["says"][row], SPACE, None if len(residuals) else usual)
        hand.predict(told, x={"hour": row % 2})
        hand.update(y[row])
        residuals.add(y[row] - X["says"][row])
    p = hand.predict(residuals.around(X["says"][40], SPACE), x={"hour": 0})
    assert model.predict(X=X[40:43]).iloc[0] == p.mean()
    assert model.guarantee(1) == hand.guarantee
    model.update(y[40:41], X[40:41])  # of the third step no X is known
    assert rounds(model) == {1: 21, 3: 18}
    assert model.recalibrators_[3].pending == ()
    model.update(y[41:42], X[41:44])
    assert rounds(model) == {1: 22, 3: 18}
    assert len(model.recalibrators_[3].pending) == 1
    model.update(y[42:43])  # without X nothing can be said
    model.update(y[43:44], X[43:44])
    assert rounds(model) == {1: 23, 3: 19}


def test_several_series_are_several_games() -> None:
    y = pd.DataFrame({"a": walk(40), "b": walk(40, seed=1)})
    model = wrapped(initial_window=0.8).fit(y, fh=[1, 2])
    for name in y:
        alone = wrapped(initial_window=0.8).fit(y[name], fh=[1, 2])
        np.testing.assert_array_equal(model.predict()[name], alone.predict())
    assert model.predict_interval(coverage=[0.5, 0.9]).shape == (2, 8)
    with pytest.raises(ValueError, match=SENTENCE):
        model.guarantee()
    assert model.forecasters_.iloc[0, 0].guarantee().rounds == 8


# --- attacks


def test_the_promise_holds_against_an_adversary_that_sees_the_forecasts() -> None:
    model = wrapped(initial_window=0.8).fit(walk(20), fh=[1, 2])
    for time in range(20, 120):
        low, high = model.predict_interval(coverage=0.8).iloc[0]
        outcome = high + 0.01 if time % 3 else low - 0.01
        model.update(pd.Series([min(max(outcome, 0.0), 100.0)], index=[time]))
        for step in (1, 2):
            guarantee = model.guarantee(step)
            assert guarantee.miscalibration <= guarantee.promised
    assert model.guarantee(1).held > 0.99


# --- the library itself
