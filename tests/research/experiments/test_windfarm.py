"""Experiment 3: losses, intervals, information of each method, tables."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import orcast as oc
from orcast.evaluate.metrics import LEVELS
from research.experiments import windfarm as wf
from research.jobs import WorkerPool
from research.learners import HOURS, Days

Vector = NDArray[np.float64]
SMALL = wf.Plan(days=3, rates=(0.01,), steps=5)


def made_days(count: int = 3, **changes: Vector) -> Days:
    """Days with an expert that is biased and overconfident."""
    rng = np.random.default_rng(0)
    mu = 50.0 + 20.0 * np.sin(np.arange(count * HOURS) / 5.0).reshape(count, HOURS)
    y = np.clip(mu + 4.0 + 8.0 * rng.standard_normal(mu.shape), 0.0, 100.0)
    return Days("made", mu, np.full((count, HOURS), 5.0), changes.get("y", y), 0.0, 100.0)


def run_all(days: Days, workers: int = 1) -> dict[str, Vector]:
    return wf.run_all(days, SMALL, pool=lambda jobs: WorkerPool(workers, jobs))


@pytest.fixture(scope="module")
def found() -> dict[str, Vector]:
    return run_all(made_days())


@given(
    st.lists(st.tuples(st.floats(-9, 9), st.floats(-9, 9)), min_size=1, max_size=5), st.sampled_from([0.0, 0.5, 0.9])
)
def test_loss_is_that_of_the_paper(pairs: list[tuple[float, float]], lam: float) -> None:
    slow = sum((1 + lam) * max(y - a, 0.0) + (1 - lam) * max(a - y, 0.0) for a, y in pairs)
    a, y = np.array(pairs).T
    assert wf.daily_loss(a[None], y[None], lam) == pytest.approx([slow], abs=1e-12)
    assert -float(wf._value((a[0], lam), y[0])) == pytest.approx(wf.daily_loss(a[:1], y[:1], lam), abs=1e-12)


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=20))
def test_interval_against_its_slow_twin(differences: list[float]) -> None:
    n = len(differences)
    starts = np.random.default_rng(1).integers(0, n, (wf.RESAMPLES, -(-n // wf.BLOCK)))[:40]
    means = [np.mean([differences[(s + i) % n] for s in row for i in range(wf.BLOCK)][:n]) for row in starts]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(wf, "RESAMPLES", 40)
        low, high = wf.interval(np.array(differences), seed=1)
    assert (low, high) == pytest.approx((np.quantile(means, 0.025), np.quantile(means, 0.975)), abs=1e-9)


def test_forecasts_of_a_day_do_not_use_its_outcomes(found: dict[str, Vector]) -> None:
    y = made_days().y.copy()
    y[1] = 100.0 - y[1]
    for name, other in run_all(made_days(y=y)).items():
        np.testing.assert_array_equal(other[:2], found[name][:2])
        assert not np.array_equal(other[2], found[name][2]), name


def test_methods_for_each_hour_use_their_hour_alone(found: dict[str, Vector]) -> None:
    y = made_days().y.copy()
    y[:, 5] = 10.0
    rest = np.arange(HOURS) != 5
    for name, other in run_all(made_days(y=y)).items():
        alone = name not in wf.STREAMS
        assert np.array_equal(other[:, rest], found[name][:, rest]) is alone, name
        assert not np.array_equal(other[:, 5], found[name][:, 5])
        assert other.shape == (3, HOURS, LEVELS.size)
        assert (np.diff(other, axis=-1) >= 0.0).all()
        assert 0.0 <= other.min() <= other.max() <= 100.0


def test_default_is_one_recalibrator_with_pending_rounds(found: dict[str, Vector]) -> None:
    days = made_days()
    recal = oc.Recalibrator(oc.Interval(0, 100))
    for day in range(3):
        for hour in range(HOURS):
            p = recal.predict(oc.Normal(days.mu[day, hour], days.sd[day, hour]), id=(day, hour))
            np.testing.assert_allclose(p.quantile(LEVELS), found[wf.DEFAULT][day, hour], rtol=1e-12)
        for hour in range(HOURS):
            recal.update(days.y[day, hour], id=(day, hour))


def test_orca_calibrates_decisions() -> None:
    recal = wf.orca(made_days(), rate=0.01, steps=5)
    recal.predict(oc.Normal(50, 5))
    recal.update(60.0)
    assert {"quantile", "moment", "decision"} <= set(recal.guarantee.parts)
    assert sum(name.startswith("regret") for name in recal.guarantee.parts) == 2


def test_rate_is_chosen_by_the_first_half_and_the_claim_needs_every_lambda() -> None:
    def one(*losses: float) -> wf.Comparison:
        change = 100.0 * (float(np.mean(losses)) / 4.0 - 1.0)
        return wf.Comparison(np.array(losses), change, change - 1.0, change + 1.0)

    early, late = f"{wf.ORCA}0.1", f"{wf.ORCA}0.3"
    found = {
        lam: {wf.EXPERT: one(4.0, 4.0, 4.0, 4.0), early: one(2.0, 2.0, 5.0, 5.0), late: one(3.0, 3.0, 1.0, 1.0)}
        for lam in wf.LAMBDAS
    }
    assert (wf.chosen_orca(found), wf.best_orca(found)) == (early, late)
    rule, change, *_ = wf.tables(found, "MW")
    assert [row[1:] for row in rule.rows] == [(-50.0, -12.5, "yes"), (-25.0, -50.0, "")]
    assert change.rows[0][:2] == (early, "-12.5 [-13.5, -11.5]")
    (claim,) = wf.claims(found)
    assert claim.reproduces == "yes"
    assert claim.here.startswith("-12.5% to -12.5%; lower for lambda: 0, 0.2, 0.5, 0.8, 0.9")
    assert claim.bound.startswith("-50.0%")
    found[0.9][early] = one(2.0, 2.0, 7.0, 7.0)
    assert wf.claims(found)[0].reproduces == "no"
