"""GluonTS: forecasts of the real library, the same numbers as a frame by hand, backtests, predictors, files."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import orcast as oc
from helpers import SENTENCE

pytest.importorskip("gluonts")

from orcast.integrations.gluonts import RecalibratedPredictor, recalibrate  # noqa: I001 (quietly, before the library)

from gluonts.dataset.pandas import PandasDataset
from gluonts.dataset.split import split
from gluonts.evaluation import Evaluator, make_evaluation_predictions
from gluonts.model.forecast import QuantileForecast, SampleForecast
from gluonts.model.npts import NPTSPredictor
from gluonts.model.predictor import Predictor
from gluonts.model.seasonal_naive import SeasonalNaivePredictor

KEYS = ["0.9", "mean", "0.1", "0.5"]  # in no order
LEVELS = [0.1, 0.5, 0.9]
START = pd.Period("2026-01-01 00:00", "h")


def outcomes(seed: int = 0, count: int = 60) -> np.ndarray:
    return np.random.default_rng(seed).normal(52.0, 10.0, count)


def entry(y: Any, item_id: Any = "A", start: Any = START) -> dict[str, Any]:
    return {"start": start, "target": np.asarray(y), "item_id": item_id}


def quantiles(at: int, h: int = 3, item_id: Any = "A", start: Any = START) -> Any:
    """A forecast from the time `at` on, too narrow, another at each step."""
    middle = 50.0 + np.sin(at + np.arange(h))
    return QuantileForecast(np.array([middle + 4, middle + 0.5, middle - 3, middle]), start + at, KEYS, item_id)


def samples(at: int, h: int = 3, count: int = 20, item_id: Any = "A") -> Any:
    rng = np.random.default_rng(at)
    return SampleForecast(rng.normal(50.0, 3.0, (count, h)).cumsum(axis=1) / 2 + 25, START + at, item_id)


def points(at: int, h: int = 3, item_id: Any = "A") -> Any:
    return SampleForecast(50.0 + np.sin(at + np.arange(h))[None, :], START + at, item_id)


FORMS = {"quantiles": quantiles, "samples": samples, "points": points}


def table(forecast: Any) -> np.ndarray:
    return forecast.samples if isinstance(forecast, SampleForecast) else forecast.forecast_array


def same(one: Any, other: Any) -> bool:
    return bool(np.array_equal(table(one), table(other), equal_nan=True))


# --- the same numbers as a frame by hand


@pytest.mark.parametrize("form", FORMS)
def test_forecasts_are_a_frame_bit_for_bit(form: str) -> None:
    """Two items and three steps, a row for each."""
    y, h = {"A": outcomes(0), "B": outcomes(1)}, 3
    forecasts = [FORMS[form](t, h, item_id=item) for t in range(20, 45) for item in y]
    after = recalibrate(forecasts, [entry(y[each.item_id], each.item_id) for each in forecasts], low=0, high=100)
    named = {"quantiles": ["q0.9", "mean", "q0.1", "q0.5"], "points": ["point"]}
    names = named.get(form, [f"sample_{i}" for i in range(20)])
    frame = pd.concat(
        pd.DataFrame(table(each).T, columns=names).assign(
            unique_id=each.item_id,
            cutoff=(each.start_date - 1).to_timestamp(),
            ds=pd.period_range(each.start_date, periods=h).to_timestamp(),
            y=y[each.item_id][(each.start_date - START).n :][:h],
        )
        for each in forecasts
    )
    expected = oc.recalibrate(frame, low=0, high=100, replace=True, model="point" if form == "points" else None)
    np.testing.assert_array_equal(np.concatenate([table(each).T for each in after]), expected[names].to_numpy())
    for given_, found in zip(forecasts, after, strict=True):
        assert (type(found), found.item_id, found.start_date) == (type(given_), given_.item_id, given_.start_date)


def test_samples_keep_ranks_and_type() -> None:
    forecasts = [samples(t) for t in range(20, 50)]
    forecasts = [SampleForecast(each.samples.astype(np.float32), each.start_date, "A") for each in forecasts]
    for before, found in zip(forecasts, recalibrate(forecasts, [entry(outcomes())] * 30), strict=True):
        assert found.samples.dtype == np.float32
        np.testing.assert_array_equal(before.samples.argsort(axis=0), found.samples.argsort(axis=0))


@pytest.mark.parametrize("form", FORMS)
def test_quantiles_at_levels_that_are_asked_for(form: str) -> None:
    forecasts = [FORMS[form](t) for t in range(20, 50)]
    after = recalibrate(forecasts, [entry(outcomes())] * 30, quantiles=[0.9, 0.05, 0.5])
    assert after[-1].forecast_keys == ["0.05", "0.5", "0.9"]
    assert (np.diff(after[-1].forecast_array, axis=0) > 0).all()
    own = recalibrate(forecasts, [entry(outcomes())] * 30)[-1]
    median = own.samples[0] if form == "points" else own.quantile(0.5)
    if form != "samples":
        np.testing.assert_array_equal(after[-1].quantile(0.5), median)
    payoff = oc.QuantileCalibration(context=oc.by("hour", values=range(24)))  # of the time that a step is for
    assert not same(recalibrate(forecasts, [entry(outcomes())] * 30, payoff=payoff)[-1], own)


# --- days one by one


@pytest.mark.parametrize(("form", "lead"), [("quantiles", 0), ("quantiles", 2), ("samples", 0), ("points", 0)])
def test_days_one_by_one_are_a_backtest(form: str, lead: int, tmp_path: Path) -> None:
    y = {"A": outcomes(0), "B": outcomes(1)}
    state, days, forecasts = tmp_path / "state.orcast", [], []
    for t in range(20, 34):
        today = [FORMS[form](t + lead, item_id=item) for item in y]
        known = [entry(values[:t], item) for item, values in y.items()]
        days += recalibrate(today, known, state=state, lead_time=lead, low=0)
        forecasts += today
    series = [entry(y[each.item_id], each.item_id) for each in forecasts]
    order = np.random.default_rng(0).permutation(len(forecasts)).tolist()
    after = recalibrate([forecasts[i] for i in order], [series[i] for i in order], lead_time=lead, low=0)
    assert all(same(after[place], days[i]) for place, i in enumerate(order))


@pytest.mark.parametrize("freq", ["15min", "W-SUN", "Q"])
def test_frequencies(freq: str) -> None:
    start, y, state = pd.Period("2026-01-01", freq), outcomes(), oc.FrameState()
    for t in range(20, 40):  # an entry, or a series or frame of pandas
        whole = pd.Series(y[:t], pd.period_range(start, periods=t))
        known = (entry(y[:t], start=start), whole, whole.to_frame(), whole.sample(frac=1.0, random_state=0))[t % 4]
        (p,) = recalibrate([quantiles(t, start=start)], [known], state=state)
    forecasts = [quantiles(t, start=start) for t in range(20, 40)]
    assert same(p, recalibrate(forecasts, [entry(y, start=start)] * 20)[-1])
    assert state.pending == 1 + 2 + 3


def test_missing_outcomes_and_steps() -> None:
    y = outcomes()
    y[[21, 30]] = np.nan
    state = oc.FrameState()
    given_ = quantiles(20)
    given_.forecast_array[:, 1] = np.nan
    (p,) = recalibrate([given_], [entry(y[:20])], state=state)
    assert np.isnan(p.forecast_array[:, 1]).all()
    assert np.isfinite(p.forecast_array[:, [0, 2]]).all()
    recalibrate([quantiles(32)], [entry(y[:32])], state=state)
    assert state.pending == 3


def test_a_bound_in_32_bits_is_the_bound() -> None:
    for low, high in ((0.0, 16.2), (-16.2, 1.0), (0.3, 1.1)):
        ends, middle = np.array([low, high], dtype=np.float32), (low + high) / 2
        forecast = QuantileForecast(np.array([[middle - 0.1] * 2, [middle + 0.1] * 2]), START, ["0.1", "0.9"], "A")
        recalibrate([forecast], [entry(ends)], low=low, high=high)  # without a warning


# --- predictors


def naive(h: int = 2) -> Any:
    return SeasonalNaivePredictor(prediction_length=h, season_length=7)


def rolling(predictor: Any, y: np.ndarray, begin: int, end: int) -> list[Any]:
    return [next(iter(predictor.predict([entry(y[:t])]))) for t in range(begin, end)]


def test_of_the_real_library() -> None:
    v = oc.datasets.load("humidity").values[: 24 * 40]
    index = pd.period_range("2013-01-01", periods=len(v), freq="h")
    frames = {name: pd.DataFrame({"target": x}, index) for name, x in {"north": v, "south": 100 - v[::-1]}.items()}
    dataset = PandasDataset(frames)
    plain = NPTSPredictor(prediction_length=6, context_length=48)
    wrapped = RecalibratedPredictor(plain, low=0, high=100)
    _, template = split(dataset, offset=-24 * 10)
    test = template.generate_instances(prediction_length=6, windows=20, distance=12)
    found = list(wrapped.predict(test.input, num_samples=50))
    assert [each.item_id for each in found] == [each["item_id"] for each in test.input]
    assert all(each.samples.shape == (50, 6) for each in found)
    forecasts, series = make_evaluation_predictions(dataset, wrapped, num_samples=50)
    metrics, _ = Evaluator(quantiles=LEVELS, num_workers=0)(series, forecasts)
    assert 0.0 < metrics["mean_wQuantileLoss"] < 1.0


def test_asking_a_predictor_again_is_the_same() -> None:
    y = outcomes()
    predictor = RecalibratedPredictor(naive())
    rolling(predictor, y, 20, 40)
    one, other = (next(predictor.predict(iter([entry(y[:40])]))) for _ in range(2))
    assert same(one, other)
    with pytest.warns(UserWarning, match="no answer for rows that precede"):
        (late,) = rolling(predictor, y, 15, 16)
    assert np.isnan(table(late)).all()


class Ahead(Predictor):  # type: ignore[misc]
    """Forecasts that start some periods after the last outcome."""

    def predict(self, dataset: Any, **kwargs: Any) -> Any:
        for each in dataset:
            yield quantiles(len(each["target"]) + self.lead_time, self.prediction_length, each.get("item_id"))


def test_a_lead_time_is_that_of_the_predictor() -> None:
    y, lead, h = outcomes(), 3, 2
    forecasts = [quantiles(t + lead, h) for t in range(10, 50)]
    after = recalibrate(forecasts, [entry(y)] * 40, lead_time=lead)
    assert all(map(same, rolling(RecalibratedPredictor(Ahead(h, lead)), y, 10, 50), after))


# --- bad input


def refused() -> dict[str, Any]:
    y, day = outcomes(), pd.Period("2026-01-01", "D")
    multivariate = SampleForecast(np.zeros((5, 2, 3)), START + 40, "A")
    return {
        "no forecast": ([oc.Normal(1, 1)], [entry(y)]),
        "several dimensions": ([multivariate], [entry(y)]),
        "two forms": ([quantiles(40), samples(41)], [entry(y)] * 2),
        "a series of another frequency": ([quantiles(40)], [entry(y, start=day)]),
        "an entry without a start": ([quantiles(40)], [{"target": y}]),
        "vectors": ([quantiles(40)], [entry(np.zeros((2, 3)))]),
        "an index of numbers": ([quantiles(40)], [pd.Series(y)]),
        "two series of an item": ([quantiles(40), quantiles(41)], [entry(y), entry(y + 1)]),
        "too few series": ([quantiles(40)], []),
        "two forecasts of a time": ([quantiles(40)] * 2, [entry(y)] * 2),
    }


@pytest.mark.parametrize("name", refused())
def test_bad_input_changes_nothing(name: str) -> None:
    with pytest.raises(TypeError, match=SENTENCE):
        RecalibratedPredictor("naive")
    state = oc.FrameState()
    options: dict[str, Any] = {"state": state, "low": 0, "high": 100}
    for t in range(20, 30):
        recalibrate([quantiles(t)], [entry(outcomes()[:t])], **options)
    before = state.to_bytes()
    with pytest.raises((ValueError, TypeError), match=SENTENCE):
        recalibrate(*refused()[name], **options)
    for wrong in ({"high": "much"}, {"quantiles": [0.0]}, {"outside": "maybe"}):
        with pytest.raises((ValueError, TypeError), match=SENTENCE):
            recalibrate([quantiles(30)], [entry(outcomes())], state=state, **{"low": 0, "high": 100, **wrong})
    assert state.to_bytes() == before
