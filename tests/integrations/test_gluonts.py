"""GluonTS: forecasts of the real library, the same numbers as by hand, backtests, predictors, files, attacks."""

from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings

import orcast as oc
from helpers import SENTENCE
from orcast.residuals import Residuals

pytest.importorskip("gluonts")

from orcast.integrations.gluonts import (  # noqa: I001 (quietly, before the library itself)
    ForecastRecalibrator,
    RecalibratedPredictor,
    recalibrate,
)

from gluonts.dataset.pandas import PandasDataset
from gluonts.dataset.split import split
from gluonts.evaluation import make_evaluation_predictions
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


def quantiles(at: int, h: int = 3, item_id: Any = "A", start: Any = START, shift: float = 0.0) -> Any:
    """A forecast from the time `at` on, too narrow, another at each step."""
    middle = 50.0 + np.sin(at + np.arange(h)) + shift
    return QuantileForecast(np.array([middle + 4, middle + 0.5, middle - 3, middle]), start + at, KEYS, item_id)


def samples(at: int, h: int = 3, count: int = 20, item_id: Any = "A") -> Any:
    rng = np.random.default_rng(at)
    return SampleForecast(rng.normal(50.0, 3.0, (count, h)).cumsum(axis=1) / 2 + 25, START + at, item_id)


def table(forecast: Any) -> np.ndarray:
    return forecast.samples if isinstance(forecast, SampleForecast) else forecast.forecast_array


def same(one: Any, other: Any) -> bool:
    return bool(np.array_equal(table(one), table(other), equal_nan=True))


# --- the same numbers as by hand


@pytest.mark.parametrize("late", [0, 4])
def test_quantiles_are_games_by_step_bit_for_bit(late: int) -> None:
    y, h = outcomes(), 3
    recal = ForecastRecalibrator(0, 100)
    games = [oc.Recalibrator(oc.Interval(0, 100), pool=oc.Pool()) for _ in range(h)]
    for t in range(20, 50):
        recal.update(entry(y[: t - late]))
        for game in games:
            for time in [time for time in game.pending if time < t - late]:
                game.update(y[time], id=time)
        given = quantiles(t)
        p = recal.predict(given)
        assert (p.forecast_keys, p.start_date, p.item_id) == (given.forecast_keys, given.start_date, "A")
        for step, game in enumerate(games):
            told = oc.Quantiles(LEVELS, [given.quantile(level)[step] for level in LEVELS])
            expected = game.predict(told, id=t + step)
            assert [p.quantile(level)[step] for level in LEVELS] == expected.quantile(LEVELS).tolist()
            assert p.mean[step] == expected.mean()
    assert [recal.guarantee("A", step=k + 1) for k in range(h)] == [game.guarantee for game in games]
    assert recal.pending == sum(len(game.pending) for game in games)


def test_samples_keep_their_ranks_bit_for_bit() -> None:
    y, h, count = outcomes(), 3, 20
    recal = ForecastRecalibrator()
    games = [oc.Recalibrator(pool=oc.Pool()) for _ in range(h)]
    levels = (np.arange(count) + 0.5) / count
    for t in range(20, 50):
        recal.update(entry(y[:t]))
        for game in games:
            for time in [time for time in game.pending if time < t]:
                game.update(y[time], id=time)
        given = samples(t, h, count)
        p = recal.predict(given)
        for step, game in enumerate(games):
            expected = game.predict(oc.Ensemble(given.samples[:, step]), id=t + step).quantile(levels)
            order = np.argsort(given.samples[:, step])
            np.testing.assert_array_equal(p.samples[order, step], expected)
    assert p.samples.dtype == np.float64
    assert recal.predict(SampleForecast(given.samples.astype(np.float32), START + 60, "A")).samples.dtype == np.float32


def test_points_are_as_wide_as_their_last_errors_bit_for_bit() -> None:
    y = outcomes()
    recal = ForecastRecalibrator(0, 100, quantiles=LEVELS, window=7)
    game, residuals = oc.Recalibrator(oc.Interval(0, 100), pool=oc.Pool()), Residuals(7)
    for t in range(10, 40):
        recal.update(entry(y[:t]))
        if t > 10:
            game.update(y[t - 1])
            residuals.add(y[t - 1] - 50.0)
        given: Any = SampleForecast(np.full((1, 1), 50.0), START + t, "A")
        if t % 3 == 0:
            given = QuantileForecast(np.full((1, 1), 50.0), START + t, ["mean" if t % 2 else "0.5"], "A")
        p = recal.predict(given)
        assert p.forecast_keys == ["0.1", "0.5", "0.9"]
        expected = game.predict(residuals.around(50.0, oc.Interval(0, 100)))
        np.testing.assert_array_equal(p.forecast_array[:, 0], expected.quantile(LEVELS))


def test_contexts_look_at_the_time_that_a_step_is_for() -> None:
    y = outcomes(count=200)
    payoff = oc.QuantileCalibration(context=oc.by("hour", values=range(24)) * oc.by("step", values=[1, 2]))
    recal = ForecastRecalibrator(0, 100, payoff=payoff)
    games = [oc.Recalibrator(oc.Interval(0, 100), payoff, pool=oc.Pool()) for _ in range(2)]
    for t in range(20, 60):
        recal.update(entry(y[:t]))
        for game in games:
            for time in [time for time in game.pending if time < t]:
                game.update(y[time], id=time)
        p = recal.predict(quantiles(t, 2))
        for step, game in enumerate(games):
            told = {level: quantiles(t, 2).quantile(level)[step] for level in LEVELS}
            expected = game.predict(told, x={"hour": (t + step) % 24, "step": step + 1}, id=t + step)
            assert p.quantile(0.1)[step] == expected.quantile(0.1)


# --- rounds


def test_missing_outcomes() -> None:
    y = outcomes()
    y[21] = np.nan
    recal = ForecastRecalibrator()
    recal.predict(quantiles(20, 3))
    recal.update(entry(y[:22]))  # 20 came, 21 may come
    assert recal.pending == 2
    recal.update(entry(y[:23]))  # 21 does not
    assert recal.pending == 0
    assert [recal.guarantee("A", step=k).rounds for k in (1, 2, 3)] == [1, 0, 1]


def test_a_gap_in_the_index_is_a_missing_outcome() -> None:
    y = pd.Series(outcomes(), pd.period_range(START, periods=60, freq="h"))
    gaps = y[y.index.hour % 5 > 1]
    one, other = ForecastRecalibrator(), ForecastRecalibrator()
    for t in range(20, 50):
        one.update(gaps[gaps.index < START + t], item_id="A")
        other.update(y.where(y.index.isin(gaps.index))[:t], item_id="A")
        assert same(one.predict(quantiles(t)), other.predict(quantiles(t))) or (START + t - 1) not in gaps.index
    for recal in (one, other):
        recal.update(gaps, item_id="A")
    assert one.pending == other.pending == 0
    assert one.guarantee("A", step=2) == other.guarantee("A", step=2)
    before = ForecastRecalibrator()
    before.predict(quantiles(20))
    before.update(y[25:], item_id="A")  # what came before it begins may still come
    assert before.pending == 3


def test_a_series_out_of_step_is_refused() -> None:
    odd, recal = pd.Period("2026-01-01 01:00", "2h"), ForecastRecalibrator()
    recal.predict(quantiles(0, start=odd))
    even = pd.Series(outcomes()[:20], pd.date_range("2026-01-01", periods=20, freq="2h"))
    with pytest.raises(ValueError, match="in step with its forecasts"):
        recal.update(even, item_id="A")
    with pytest.raises(ValueError, match="in step with its forecasts"):
        recalibrate([quantiles(0, start=odd)], {"A": even})
    recal.update(pd.Series(even.to_numpy(), even.index + pd.Timedelta(hours=1)), item_id="A")
    assert recal.pending == 0


def test_a_bound_in_32_bits_is_the_bound() -> None:
    for low, high in ((0.0, 16.2), (-16.2, 1.0), (0.3, 1.1)):
        recal = ForecastRecalibrator(low, high)
        ends = np.array([low, high], dtype=np.float32)
        middle = (low + high) / 2
        recal.predict(QuantileForecast(np.array([[middle - 0.1] * 2, [middle + 0.1] * 2]), START, ["0.1", "0.9"], "A"))
        recal.update(entry(ends))
        assert recal.pending == 0
        recalibrate([quantiles(0, 2)], {"A": pd.Series(ends, pd.period_range(START, periods=2))}, low, high)
        recal.predict(quantiles(2, 1))
        with pytest.raises(ValueError, match=SENTENCE):
            recal.update(entry([*ends, np.float32(high + 1e-3)]))


def test_steps_without_a_forecast_come_back_as_they_were() -> None:
    recal = ForecastRecalibrator()
    given = quantiles(20, 3)
    given.forecast_array[:, 1] = np.nan
    p = recal.predict(given)
    assert np.isnan(p.forecast_array[:, 1]).all()
    assert np.isfinite(p.forecast_array[:, [0, 2]]).all()
    assert recal.pending == 2


def test_series_of_pandas_are_entries() -> None:
    y = outcomes()
    made = []
    index = pd.period_range(START, periods=60, freq="h")
    whole = pd.Series(y, index)
    for read in (
        lambda t: entry(y[:t]),
        lambda t: whole[:t],
        lambda t: whole[10:t],
        lambda t: whole[:t].to_frame(),
        lambda t: pd.Series(y[:t], index[:t].to_timestamp()),
        lambda t: whole[:t].sample(frac=1.0, random_state=0),
    ):
        recal = ForecastRecalibrator()
        for t in range(20, 40):
            recal.update(read(t), item_id="A")
            last = recal.predict(quantiles(t))
        made.append(last)
    assert all(same(made[0], each) for each in made)


@pytest.mark.parametrize("freq", ["h", "15min", "2h", "D", "W-SUN", "ME", "QE"])
def test_frequencies(freq: str) -> None:
    start = pd.Period("2026-01-01", freq.replace("ME", "M").replace("QE", "Q"))
    y, recal, other = outcomes(), ForecastRecalibrator(), ForecastRecalibrator()
    for t in range(20, 40):
        recal.update(entry(y[:t], start=start))
        other.update(entry(y[:t]))
        assert same(recal.predict(quantiles(t, start=start)), other.predict(quantiles(t)))
    assert recal.guarantee("A", step=3).rounds == 17


def test_an_adversary_that_sees_the_forecast_cannot_break_the_promise() -> None:
    recal = ForecastRecalibrator(0, 100)
    y = [50.0] * 20
    for t in range(20, 220):
        p = recal.predict(quantiles(t, 1))
        low, high = p.quantile(0.1)[0], p.quantile(0.9)[0]
        y.append(min(max(high + 1e-3 if t % 3 else low - 1e-3, 0.0), 100.0))
        recal.update(entry(y))
        assert recal.guarantee("A").miscalibration <= recal.guarantee("A").promised
    assert recal.guarantee("A").rounds == 200


# --- items that learn together


def test_items_are_games_that_share_a_pool_for_each_step() -> None:
    y = {"A": outcomes(0), "B": outcomes(1), "C": outcomes(2)}
    h, index = 3, pd.period_range(START, periods=60, freq="h")
    pools = [oc.Pool() for _ in range(h)]
    games = {key: [oc.Recalibrator(oc.Interval(0, 100), pool=pool) for pool in pools] for key in y}
    forecasts, expected = [], []
    for t in range(20, 50):
        for key, own in games.items():
            for game in own:
                for time in [time for time in game.pending if time < t]:
                    game.update(y[key][time], id=time)
        for key, own in games.items():
            given = quantiles(t, h, key)
            forecasts.append(given)
            for step, game in enumerate(own):
                told = oc.Quantiles(LEVELS, [given.quantile(level)[step] for level in LEVELS])
                expected.append(game.predict(told, id=t + step).quantile(LEVELS).tolist())
    series = {key: pd.Series(values, index) for key, values in y.items()}
    order = np.random.default_rng(0).permutation(len(forecasts)).tolist()
    after = recalibrate([forecasts[i] for i in order], series, 0, 100)
    found = {order[place]: each for place, each in enumerate(after)}
    rows = [[found[i].quantile(level)[k] for level in LEVELS] for i in range(len(forecasts)) for k in range(h)]
    assert rows == expected
    alone = recalibrate(forecasts, series, 0, 100, pool=False)
    assert not same(alone[-1], found[len(forecasts) - 1])


def test_items_together_lose_less_to_an_expert_that_is_right() -> None:
    """Twenty items, and forecasts that are perfect: chance in one is not mistaken for a fault of all."""
    rng, index = np.random.default_rng(0), pd.period_range(START, periods=60, freq="h")
    y = {f"item {i}": pd.Series(50.0 + rng.normal(0.0, 3.0, 60), index) for i in range(20)}
    rows = 50.0 + 3.0 * np.array([[-1.2816], [0.0], [1.2816]])
    forecasts = [QuantileForecast(rows, start, ["0.1", "0.5", "0.9"], key) for key in y for start in index]

    def loss(after: list[Any]) -> float:
        outcome = np.array([y[each.item_id][each.start_date] for each in after])
        over = outcome[:, None] - np.array([[each.quantile(level)[0] for level in LEVELS] for each in after])
        return float(np.maximum(np.array(LEVELS) * over, (np.array(LEVELS) - 1.0) * over).mean())

    raw, together, alone = (
        loss(forecasts),
        *(loss(recalibrate(forecasts, y, pool=pool)) for pool in (True, False)),
    )
    assert together - raw < 0.7 * (alone - raw)


@given(st.integers(0, 10**6), st.integers(20, 50))
@settings(max_examples=10)
def test_no_item_knows_a_later_outcome_of_another(seed: int, when: int) -> None:
    y, z = outcomes(seed), outcomes(seed + 1)
    index = pd.period_range(START, periods=60, freq="h")
    moved = z.copy()
    moved[when] += 30.0
    forecasts = [quantiles(t, 2, item_id) for item_id in "AB" for t in range(20, 55)]
    one, other = (
        recalibrate(forecasts, {"A": pd.Series(y, index), "B": pd.Series(values, index)}) for values in (z, moved)
    )
    for forecast, a, b in zip(forecasts, one, other, strict=True):
        if (forecast.start_date - START).n <= when:
            assert same(a, b)
    # nor if they are asked one after the other, when all of B is known before A begins
    answers = []
    for values in (z, moved):
        recal = ForecastRecalibrator()
        recal.replay(forecasts[35:], {"B": pd.Series(values, index)})
        answers.append(recal.replay(forecasts[:35], {"A": pd.Series(y, index)}))
    assert all(map(same, *answers))


def test_pools_are_saved_with_the_items(tmp_path: Path) -> None:
    y, path = {"A": outcomes(0), "B": outcomes(1)}, tmp_path / "state.orcast"
    recal = ForecastRecalibrator(0, 100)
    for t in range(20, 50):
        if t == 35:
            recal.save(path)
            again = ForecastRecalibrator.load(path)
        for item_id, values in y.items():
            recal.update(entry(values[:t], item_id))
            if t >= 35:
                again.update(entry(values[:t], item_id))
        for item_id in y:
            p = recal.predict(quantiles(t, item_id=item_id))
            assert t < 35 or same(p, again.predict(quantiles(t, item_id=item_id)))


def test_what_cannot_be_pooled_is_not() -> None:
    assert ForecastRecalibrator().pool
    assert not ForecastRecalibrator(0, 10, oracle=oc.Equilibrium()).pool
    with pytest.raises(TypeError, match=SENTENCE):
        ForecastRecalibrator(pool="region")


# --- backtests


def test_a_backtest_is_the_loop_bit_for_bit() -> None:
    y = {"A": outcomes(0), "B": outcomes(1)}
    live = ForecastRecalibrator(0, 100)
    expected, forecasts, series = [], [], []
    index = pd.period_range(START, periods=60, freq="h")
    for t in range(20, 50, 2):
        for item_id, values in y.items():
            live.update(entry(values[:t], item_id))
        for item_id, values in y.items():
            forecasts.append(quantiles(t, 5, item_id))
            expected.append(live.predict(forecasts[-1]))
            series.append(pd.DataFrame(values[: t + 5], index[: t + 5]))
    order = np.random.default_rng(0).permutation(len(forecasts)).tolist()
    after = recalibrate([forecasts[i] for i in order], [series[i] for i in order], 0, 100)
    assert all(same(after[place], expected[i]) for place, i in enumerate(order))
    by_item = recalibrate(forecasts, {key: pd.Series(values, index) for key, values in y.items()}, 0, 100)
    assert all(map(same, by_item, expected))
    warm = ForecastRecalibrator(0, 100)
    warm.replay(forecasts, series)
    for item_id, values in y.items():
        live.update(entry(values[:53], item_id))
    assert warm.pending == live.pending == 0
    assert same(warm.predict(quantiles(55)), live.predict(quantiles(55)))


@given(st.integers(0, 10**6), st.integers(1, 4), st.integers(1, 4), st.integers(20, 59))
@settings(max_examples=25)
def test_later_outcomes_change_nothing(seed: int, h: int, step: int, when: int) -> None:
    y = outcomes(seed)
    z = y.copy()
    z[when] += 30.0
    index = pd.period_range(START, periods=60, freq="h")
    starts = list(range(20, 60 - h, step))
    make = [lambda t: quantiles(t, h), lambda t: samples(t, h)][seed % 2]
    one, other = (recalibrate([make(t) for t in starts], {"A": pd.Series(values, index)}) for values in (y, z))
    for t, a, b in zip(starts, one, other, strict=True):
        if t <= when:
            assert same(a, b)
    known = [t for t in starts if t > when]
    played = any(s <= when < s + h for s in starts)
    if known and played:
        assert not all(same(a, b) for t, a, b in zip(starts, one, other, strict=True) if t > when)


def test_of_the_real_library() -> None:
    v = oc.datasets.load("humidity").values[: 24 * 40]
    frames = {
        name: pd.DataFrame({"target": values}, index=pd.period_range("2013-01-01", periods=len(v), freq="h"))
        for name, values in {"north": v, "south": 100 - v[::-1]}.items()
    }
    dataset = PandasDataset(frames)
    predictor = NPTSPredictor(prediction_length=6, context_length=48)
    forecasts, series = make_evaluation_predictions(dataset, predictor, num_samples=50)
    forecasts, series = list(forecasts), list(series)
    after = recalibrate(forecasts, series, 0, 100)
    assert [each.item_id for each in after] == ["north", "south"]
    assert all(each.samples.shape == (50, 6) for each in after)
    _, template = split(dataset, offset=-24 * 10)
    test = template.generate_instances(prediction_length=6, windows=20, distance=12)
    naive = SeasonalNaivePredictor(prediction_length=6, season_length=24)
    wrapped = RecalibratedPredictor(naive, ForecastRecalibrator(0, 100, quantiles=LEVELS))
    found = list(wrapped.predict(test.input))
    # the same windows as a backtest of their labels
    whole = {name: frame["target"] for name, frame in frames.items()}
    expected = recalibrate(naive.predict(test.input), whole, 0, 100, quantiles=LEVELS)
    assert all(map(same, found, expected))
    assert wrapped.recalibrator.guarantee("north", step=6).rounds == 19


# --- predictors


def rolling(predictor: Any, y: np.ndarray, begin: int, end: int, item_id: Any = "A") -> list[Any]:
    return [next(iter(predictor.predict([entry(y[:t], item_id)]))) for t in range(begin, end)]


def naive(h: int = 2) -> Any:
    return SeasonalNaivePredictor(prediction_length=h, season_length=7)


def test_a_predictor_is_written_and_read(tmp_path: Path) -> None:
    y = outcomes()
    predictor = RecalibratedPredictor(naive(), ForecastRecalibrator(low=0, quantiles=LEVELS, window=9))
    assert (predictor.prediction_length, predictor.lead_time) == (2, 0)
    rolling(predictor, y, 20, 30)
    predictor.serialize(tmp_path)
    again: Any = Predictor.deserialize(tmp_path)
    assert isinstance(again, RecalibratedPredictor)
    assert all(map(same, rolling(predictor, y, 30, 50), rolling(again, y, 30, 50)))


def test_asking_a_predictor_again_is_the_same() -> None:
    y = outcomes()
    predictor = RecalibratedPredictor(naive())
    rolling(predictor, y, 20, 40)
    dataset = [entry(y[:40])]
    one, other = (next(predictor.predict(dataset)) for _ in range(2))
    assert same(one, other)
    assert same(next(predictor.predict(iter(dataset))), one)


def test_a_predictor_refuses_what_would_look_ahead() -> None:
    y = outcomes()
    predictor = RecalibratedPredictor(naive())
    rolling(predictor, y, 20, 40)
    with pytest.raises(ValueError, match="order of time"):
        rolling(predictor, y, 25, 26)
    with pytest.raises(ValueError, match="item_id of its own"):
        list(RecalibratedPredictor(naive()).predict([entry(y, None), entry(y, None)]))
    with pytest.raises(TypeError, match=SENTENCE):
        RecalibratedPredictor("naive")
    with pytest.raises(TypeError, match=SENTENCE):
        RecalibratedPredictor(naive(), oc.Recalibrator())


class Ahead(Predictor):  # type: ignore[misc]
    """Forecasts that start some periods after the last outcome."""

    def predict(self, dataset: Any, **kwargs: Any) -> Any:
        for each in dataset:
            yield quantiles(len(each["target"]) + self.lead_time, self.prediction_length, each.get("item_id"))


def test_a_lead_time_is_not_looked_into() -> None:
    """A forecast from t on knew the outcomes before t - lead only, in a backtest as in the loop."""
    y, lead, h = outcomes(), 3, 2
    index = pd.period_range(START, periods=60, freq="h")
    forecasts = [quantiles(t + lead, h) for t in range(10, 50)]
    after = recalibrate(forecasts, {"A": pd.Series(y, index)}, lead_time=lead)
    for when in (20, 21, 35):
        z = y.copy()
        z[when] += 30.0
        moved = recalibrate(forecasts, {"A": pd.Series(z, index)}, lead_time=lead)
        assert [same(a, b) for a, b in zip(after, moved, strict=True)] == [t <= when for t in range(10, 50)]
    predictor = RecalibratedPredictor(Ahead(h, lead))
    assert predictor.recalibrator.lead_time == lead
    assert all(map(same, rolling(predictor, y, 10, 50), after))
    with pytest.raises(ValueError, match="lead_time=3, as the predictor"):
        RecalibratedPredictor(Ahead(h, lead), ForecastRecalibrator())
    recal = ForecastRecalibrator(lead_time=lead)
    recal.predict(quantiles(20, 1))
    recal.update(entry(y[:21]))
    with pytest.raises(ValueError, match=r"order of time.*lead_time=3"):
        recal.predict(quantiles(23))
    recal.predict(quantiles(24))


def test_series_without_item_id_are_not_mixed() -> None:
    y, z = outcomes(0), outcomes(1)
    dataset = [entry(y[:30], None), entry(z[:33], None)]
    predictor = RecalibratedPredictor(naive())
    with pytest.raises(ValueError, match="item_id of its own"):
        list(predictor.predict(dataset))
    assert predictor.recalibrator.items == ()
    windows = [entry(y[: t + 1], None) if t % 2 else entry(y[5 : t + 1], None, START + 5) for t in range(30, 50)]
    list(predictor.predict(windows))  # of one series, with as much of the past as it likes
    assert predictor.recalibrator.guarantee().rounds == 19
    whole = pd.Series(y, pd.period_range(START, periods=60, freq="h"))
    with pytest.raises(ValueError, match="item_id of its own"):
        recalibrate([quantiles(30, item_id=None), quantiles(33, item_id=None)], [whole, whole + 900.0])


# --- files


@pytest.mark.parametrize("kind", ["quantiles", "samples", "points"])
def test_goes_on_from_a_file_bit_for_bit(kind: str, tmp_path: Path) -> None:
    y, path = outcomes(), tmp_path / "state.orcast"
    make: Any = {
        "quantiles": quantiles,
        "samples": samples,
        "points": lambda t: SampleForecast(np.full((1, 2), 50.0), START + t, "A"),
    }[kind]
    payoff = oc.QuantileCalibration(context=oc.by("hour", values=range(24))) if kind == "samples" else None
    recal = ForecastRecalibrator(0, payoff=payoff, memory=50, outside="clip", window=5, max_pending=20)
    for t in range(20, 30):
        recal.update(entry(y[: t - 1]))
        recal.predict(make(t))
    recal.save(path)
    again = ForecastRecalibrator.load(path)
    assert repr(again) == repr(recal)
    for t in range(30, 45):
        for each in (recal, again):
            each.update(entry([*y[: t - 2], -5.0]))
        assert same(recal.predict(make(t)), again.predict(make(t)))
    first, second = tmp_path / "one", tmp_path / "two"
    recal.save(first)
    again.save(second)
    assert first.read_bytes() == second.read_bytes()


def test_an_empty_one_and_one_with_functions(tmp_path: Path) -> None:
    path = tmp_path / "state.orcast"
    ForecastRecalibrator(0, 10, quantiles=[0.2, 0.8]).save(path)
    assert ForecastRecalibrator.load(path).predict(quantiles(3)).forecast_keys == ["0.2", "0.8"]
    oc.Recalibrator().save(path)
    with pytest.raises(ValueError, match=SENTENCE):
        ForecastRecalibrator.load(path)
    path.write_bytes(b"nothing")
    with pytest.raises(ValueError, match=SENTENCE):
        ForecastRecalibrator.load(path)


# --- bad input


def refused() -> dict[str, Any]:
    y = outcomes()
    index = pd.period_range(START, periods=60, freq="h")
    multivariate = SampleForecast(np.zeros((5, 2, 3)), START + 40, "A")
    one = QuantileForecast(np.zeros((1, 2)), START + 40, ["0.9"], "A")
    huge = QuantileForecast(np.array([[1e308, 1.0], [1e309, 2.0]]) * 1e-10, START + 40, ["0.1", "0.1"], "A")
    return {
        "no forecast": lambda r: r.predict(oc.Normal(1, 1)),
        "several dimensions": lambda r: r.predict(multivariate),
        "one quantile": lambda r: r.predict(one),
        "one level twice": lambda r: r.predict(huge),
        "another frequency": lambda r: r.predict(quantiles(40, start=pd.Period("2026-01-01", "D"))),
        "an earlier start": lambda r: r.predict(quantiles(25)),
        "an item that is no id": lambda r: r.predict(quantiles(40, item_id=START)),
        "a series of another frequency": lambda r: r.update(entry(y, start=pd.Period("2026-01-01", "D"))),
        "an entry without a start": lambda r: r.update({"target": y, "item_id": "A"}),
        "text": lambda r: r.update(entry(["a", "b"])),
        "vectors": lambda r: r.update(entry(np.zeros((2, 3)))),
        "numbers": lambda r: r.update([1.0, 2.0], item_id="A"),
        "an index of numbers": lambda r: r.update(pd.Series(y), item_id="A"),
        "times of a zone": lambda r: r.update(pd.Series(y, index.to_timestamp().tz_localize("UTC")), item_id="A"),
        "a start in a zone": lambda r: r.update(entry(y, start=pd.Timestamp("2026-01-01", tz="Europe/Berlin"))),
        "outcomes of no item": lambda r: r.update(pd.Series(y, index)),
        "outcomes of an unknown item": lambda r: r.update(entry(y, "a")),
        "two series of an item": lambda r: r.replay(
            [quantiles(40), quantiles(41)], [pd.Series(y, index), pd.Series(y + 1, index)]
        ),
        "two outcomes for a time": lambda r: r.update(pd.Series(y[:2], index[[3, 3]]), item_id="A"),
        "an outcome outside": lambda r: r.update(entry([*y[:30], 50.0, 101.0])),
        "an earlier start in a backtest": lambda r: r.replay(
            [quantiles(40, item_id="B"), quantiles(25)], {"A": pd.Series(y, index), "B": pd.Series(y, index)}
        ),
        "too few series": lambda r: r.replay([quantiles(40)], []),
        "no series for an item": lambda r: r.replay([quantiles(40)], {"B": pd.Series(y, index)}),
        "two forecasts of a time": lambda r: r.replay([quantiles(40)] * 2, {"A": pd.Series(y, index)}),
        "two frequencies": lambda r: r.replay(
            [quantiles(40), quantiles(4, item_id="B", start=pd.Period("2026-01-01", "D"))], [pd.Series(y, index)] * 2
        ),
        "outcomes outside": lambda r: r.replay([quantiles(40)], {"A": pd.Series(3 * y, index)}),
        "no such step": lambda r: r.guarantee("A", step=9),
    }


@pytest.mark.parametrize("name", refused())
def test_what_is_refused_changes_nothing(name: str, tmp_path: Path) -> None:
    recal = ForecastRecalibrator(0, 100)
    for t in range(20, 30):
        recal.update(entry(outcomes()[:t]))
        recal.predict(quantiles(t))
    recal.save(tmp_path / "before")
    with pytest.raises((ValueError, TypeError), match=SENTENCE):
        refused()[name](recal)
    recal.save(tmp_path / "after")
    assert (tmp_path / "before").read_bytes() == (tmp_path / "after").read_bytes()


def test_a_context_that_refuses_a_step_leaves_the_steps_before_it_alone(tmp_path: Path) -> None:
    payoff = oc.QuantileCalibration(context=oc.by("step", values=[1, 2]))
    recal = ForecastRecalibrator(payoff=payoff)
    recal.predict(quantiles(20, 2))
    recal.save(tmp_path / "before")
    for t, item_id in ((21, "A"), (20, "A"), (21, "B")):
        with pytest.raises(ValueError, match=SENTENCE):
            recal.predict(quantiles(t, 3, item_id))
    recal.save(tmp_path / "after")
    assert (tmp_path / "before").read_bytes() == (tmp_path / "after").read_bytes()
    assert recal.items == ("A",)


def test_options_are_checked() -> None:
    for options in ({"high": "much"}, {"lead_time": -1}, {"lead_time": 0.5},
                    {"low": 5, "high": 5}, {"low": 0, "space": oc.Line()}, {"space": oc.Binary()},
                    {"quantiles": [0.0]}, {"window": 0}, {"outside": "maybe"}, {"memory": 0}):  # fmt: skip
        with pytest.raises((ValueError, TypeError), match=SENTENCE):
            ForecastRecalibrator(**options)
