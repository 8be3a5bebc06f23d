"""Experiment 3: losses, intervals, who knows what when, the tables."""

from collections.abc import Iterator
from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import orcast as oc
from helpers import forecasts
from orcast.metrics import LEVELS
from orcast.paper.experiments import data, windfarm
from orcast.paper.experiments import windfarm_runs as wf
from orcast.paper.experiments import windfarm_tables as tables
from orcast.paper.experiments.learners import HOURS, Days
from orcast.paper.experiments.output import Result

Vector = NDArray[np.float64]

needs_learners = pytest.mark.skipif(
    find_spec("sklearn") is None or find_spec("matplotlib") is None, reason="scikit-learn or matplotlib is missing"
)
SMALL = wf.WindFarmPlan(days=3, rates=(0.01,), steps=5)
NAMES = wf.methods_of(SMALL)


def made_days(count: int = 3, seed: int = 0) -> Days:
    """Days with an expert that is biased and too sure of itself."""
    rng = np.random.default_rng(seed)
    mu = 50.0 + 20.0 * np.sin(np.arange(count * HOURS) / 5.0).reshape(count, HOURS)
    sd = np.full((count, HOURS), 5.0)
    return Days("made", mu, sd, np.clip(mu + 4.0 + 8.0 * rng.standard_normal(mu.shape), 0.0, 100.0), 0.0, 100.0)


# --- losses ---


@given(
    st.lists(st.tuples(st.floats(-9, 9), st.floats(-9, 9)), min_size=1, max_size=5), st.sampled_from([0.0, 0.5, 0.9])
)
def test_loss_is_the_one_of_the_paper(pairs: list[tuple[float, float]], lam: float) -> None:
    slow = sum((1 + lam) * max(y - a, 0.0) + (1 - lam) * max(a - y, 0.0) for a, y in pairs)
    a, y = np.array(pairs).T
    assert wf.daily_loss(a[None], y[None], lam) == pytest.approx([slow], abs=1e-12)


@given(forecasts(0.0, 10.0), st.sampled_from(wf.LAMBDAS))
def test_the_commitment_is_the_quantile_that_is_read(p: oc.Forecast, lam: float) -> None:
    read = p.quantile(LEVELS)[wf.column(lam)]
    assert oc.decisions.commitment(p, under=1.0 + lam, over=1.0 - lam) == pytest.approx(read, abs=1e-9)

    def expected(a: float) -> float:
        # many places of every cell, each with its part of the mass
        places = p.left[:, None] + (np.arange(200) + 0.5) / 200 * (p.right - p.left)[:, None]
        cost = np.where(places > a, (1 + lam) * (places - a), (1 - lam) * (a - places))
        return float(p.mass @ cost.mean(axis=1))

    best = min(expected(a) for a in np.linspace(0.0, 10.0, 41))
    assert expected(read) <= best + 1e-2


def test_a_lambda_must_ask_for_a_percent() -> None:
    with pytest.raises(ValueError, match=r"expected a lambda whose level \(1 \+ lambda\) / 2 is a percent, got 0.333"):
        wf.column(0.333)
    with pytest.raises(ValueError, match=r"got 1\.0"):
        wf.column(1.0)


def test_the_best_level_is_the_best_of_all() -> None:
    days = made_days(4)
    quantiles = wf.forecasts(wf.EXPERT, days)
    for lam in wf.LAMBDAS:
        level, loss = wf.best_level(quantiles, days.y, lam)
        losses = {a: float(wf.daily_loss(quantiles[..., i], days.y, lam).mean()) for i, a in enumerate(LEVELS)}
        assert losses[level] == loss == min(losses.values())
        assert level > LEVELS[wf.column(lam)]  # the expert is too low


# --- intervals ---


def slow_interval(differences: Vector, block: int, resamples: int, seed: int) -> tuple[float, float]:
    rng = np.random.default_rng(seed)
    n = len(differences)
    blocks = -(-n // block)
    starts = rng.integers(0, n, (resamples, blocks))
    means = []
    for row in starts:
        drawn = [differences[(start + i) % n] for start in row for i in range(block)]
        means.append(sum(drawn[:n]) / n)
    return float(np.quantile(means, 0.025)), float(np.quantile(means, 0.975))


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=20), st.integers(1, 8))
def test_interval_against_its_slow_twin(differences: list[float], block: int) -> None:
    d = np.array(differences)
    assert wf.interval(d, block=block, resamples=20, seed=1) == pytest.approx(slow_interval(d, block, 20, 1), abs=1e-9)


def test_interval_of_independent_days_is_the_usual_one() -> None:
    d = np.random.default_rng(0).normal(1.0, 2.0, 400)
    low, high = wf.interval(d)
    usual = 1.96 * d.std() / 20.0
    assert low == pytest.approx(d.mean() - usual, abs=0.05)
    assert high == pytest.approx(d.mean() + usual, abs=0.05)


def test_days_that_follow_each_other_widen_the_interval() -> None:
    rng = np.random.default_rng(0)
    d = np.repeat(rng.normal(size=60), 7)  # weeks that are alike
    weeks, single = wf.interval(d), wf.interval(d, block=1)
    assert weeks[1] - weeks[0] > 1.8 * (single[1] - single[0])


# --- who knows what when ---


@pytest.fixture(scope="module")
def said() -> dict[str, Vector]:
    return {name: wf.forecasts(name, made_days(), steps=5) for name in NAMES}


@pytest.mark.parametrize("name", NAMES)
def test_no_forecast_of_a_day_has_seen_its_outcomes(name: str, said: dict[str, Vector]) -> None:
    days = made_days()
    y = days.y.copy()
    y[1] = 100.0 - y[1]
    other = wf.forecasts(name, Days(days.name, days.mu, days.sd, y, 0.0, 100.0), steps=5)
    np.testing.assert_array_equal(other[:2], said[name][:2])
    assert np.array_equal(other[2], said[name][2]) == (name == wf.EXPERT)  # the others have learnt something


@pytest.mark.parametrize("name", [wf.EACH, f"{wf.ORCA}0.01", "isotonic, one for each hour"])
def test_one_for_each_hour_knows_of_its_hour_alone(name: str, said: dict[str, Vector]) -> None:
    days = made_days()
    y = days.y.copy()
    y[:, 5] = 10.0
    other = wf.forecasts(name, Days(days.name, days.mu, days.sd, y, 0.0, 100.0), steps=5)
    rest = np.arange(HOURS) != 5
    np.testing.assert_array_equal(other[:, rest], said[name][:, rest])
    assert not np.array_equal(other[:, 5], said[name][:, 5])


@pytest.mark.parametrize("name", NAMES)
def test_quantiles_are_quantiles(name: str, said: dict[str, Vector]) -> None:
    assert said[name].shape == (3, HOURS, LEVELS.size)
    assert (np.diff(said[name], axis=-1) >= 0.0).all()
    assert said[name].min() >= 0.0
    assert said[name].max() <= 100.0


def test_the_default_by_hand(said: dict[str, Vector]) -> None:
    days = made_days()
    game = oc.Recalibrator(oc.Interval(0, 100))
    for day in range(3):
        for hour in range(HOURS):
            p = game.predict(oc.Normal(days.mu[day, hour], days.sd[day, hour]), id=hour)
            np.testing.assert_allclose(p.quantile(LEVELS), said[wf.DEFAULT][day, hour], rtol=1e-12)
        for hour in range(HOURS):
            game.update(days.y[day, hour], id=hour)


def test_orca_calibrates_decisions() -> None:
    game = wf.orca(made_days(), rate=0.01, steps=5)
    game.predict(oc.Normal(50, 5))
    game.update(60.0)
    parts = game.guarantee.parts
    assert {"quantile", "moment", "decision"} <= set(parts)
    assert sum(name.startswith("regret") for name in parts) == 2
    assert -float(wf._cost((40.0, 0.5), 50.0)) == 15.0
    assert -float(wf._cost((40.0, 0.5), 20.0)) == 10.0


@pytest.mark.slow
def test_the_number_of_workers_does_not_matter(said: dict[str, Vector]) -> None:
    shares: list[float] = []
    plan = wf.WindFarmPlan(rates=(0.01,), steps=5)
    spread = wf.play_all(made_days(), plan, workers=2, progress=lambda what, share: shares.append(share))
    assert tuple(spread) == NAMES
    for name in NAMES:
        np.testing.assert_array_equal(spread[name], said[name])
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


# --- what came of it ---


def test_judgements() -> None:
    days = made_days(30)
    expert = wf.forecasts(wf.EXPERT, days)
    higher, lower = np.clip(expert + 4.0, 0.0, 100.0), np.clip(expert - 9.0, 0.0, 100.0)
    for lam in wf.LAMBDAS:
        found = wf.compare_losses({wf.EXPERT: expert, "higher": higher, "lower": lower}, days.y, lam)
        assert found[wf.EXPERT][1:4] == (0.0, 0.0, 0.0)
        assert not found[wf.EXPERT].better
        assert found["higher"].better  # the expert is too low by 4
        assert found["lower"].low > 0.0
        base = found[wf.EXPERT].losses.mean()
        for name, one in found.items():
            assert one.change == pytest.approx(100.0 * (one.losses.mean() / base - 1.0))
            assert one.low <= one.change <= one.high
            assert one.own_regret >= 0.0
            assert one.regret - found[wf.EXPERT].regret == pytest.approx(one.change)
            assert one.losses.shape == (30,), name


def test_targets_and_the_best_rate() -> None:
    def one(change: float, high: float) -> wf.LossComparison:
        return wf.LossComparison(np.ones(9), change, change - 1.0, high, 0.0, 0.0)

    judged = {
        lam: {
            wf.EXPERT: one(0.0, 0.0),
            f"{wf.ORCA}0.1": one(1.0 - 5.0 * (lam == 0.0), 2.0),
            f"{wf.ORCA}0.3": one(0.9, 2.0),
            wf.DEFAULT: one(-1.0, 0.1),
            wf.EACH: one(-1.0, -0.1 if lam < 0.9 else 0.0),
            wf.BY_HOUR: one(-1.0, -0.1),
        }
        for lam in wf.LAMBDAS
    }
    assert wf.best_orca(judged) == f"{wf.ORCA}0.1"
    assert tables.claims(judged)[0].reproduces == "no"
    rows = tables.target_table(judged).rows
    assert [row[-1] for row in rows] == ["no", "no", "yes"]
    assert rows[0][1:3] == ("0, 0.2, 0.5, 0.8, 0.9", "none")
    assert rows[1][2] == "0, 0.2, 0.5, 0.8"
    assert tables.change_table(judged).rows[0][1] == "-4.0 [-5.0, +2.0]"


def test_the_rate_is_chosen_by_the_first_half() -> None:
    def one(losses: list[float]) -> wf.LossComparison:
        change = 100.0 * (float(np.mean(losses)) / 4.0 - 1.0)
        return wf.LossComparison(np.array(losses), change, change - 1.0, change + 1.0, 0.0, 0.0)

    early, late = f"{wf.ORCA}0.1", f"{wf.ORCA}0.3"
    judged = {
        lam: {wf.EXPERT: one([4.0] * 4), early: one([2.0, 2.0, 5.0, 5.0]), late: one([3.0, 3.0, 1.0, 1.0])}
        for lam in wf.LAMBDAS
    }
    assert wf.chosen_orca(judged) == early
    assert wf.best_orca(judged) == late
    rows = tables.rule_table(judged).rows
    assert [row[1:] for row in rows] == [(-50.0, -12.5, "yes"), (-25.0, -50.0, "")]
    (claim,) = tables.claims(judged)
    assert claim.reproduces == "yes"
    assert claim.here.startswith("-12.5% to -12.5%; lower for lambda: 0, 0.2, 0.5, 0.8, 0.9")
    assert claim.bound.startswith("-50.0%")
    judged[0.9][early] = one([2.0, 2.0, 7.0, 7.0])
    assert tables.claims(judged)[0].reproduces == "no"


# --- the whole ---


@pytest.fixture(scope="module")
def quick() -> Iterator[Result]:
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv(data.VARIABLE, raising=False)
        yield windfarm.run(quick=True)


@needs_learners
def test_quick_run(quick: Result) -> None:
    assert [table.name for table in quick.tables] == [
        "windfarm_targets",
        "windfarm_rule",
        "windfarm",
        "windfarm_losses",
        "windfarm_regret",
        "windfarm_own_regret",
    ]
    losses = quick.tables[3]
    expert, *others = wf.methods_of(wf.QUICK)
    assert [row[0] for row in losses.rows] == [expert, wf.LAST, *others]
    assert all(float(str(value)) > 0.0 for row in losses.rows for value in row[1:])
    assert all(float(str(value)) >= 0.0 for row in quick.tables[5].rows for value in row[1:])
    assert "stand-in" in quick.notes[0]
    assert len(quick.figures["windfarm"].axes) == 3


@needs_learners
@pytest.mark.slow
def test_the_same_seed_gives_the_same_tables(quick: Result, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(data.VARIABLE, raising=False)
    again, other = windfarm.run(quick=True), windfarm.run(quick=True, seed=1)
    assert [table.rows for table in again.tables] == [table.rows for table in quick.tables]
    assert other.tables[3].rows != quick.tables[3].rows
