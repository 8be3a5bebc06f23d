"""Base forecasters use only values that were in sight."""

from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

from research.comparison.recipe_list import RECIPES
from research.comparison.recipes import FIVE, Plan, ahead, day_ahead, one_step
from research.comparison.series import load
from research.learners import (
    Analogs,
    BaseRate,
    BoostedQuantiles,
    Bootstrap,
    Climatology,
    Naive,
    Narrowed,
    OnlineClassifier,
    Regression,
    RiverTree,
    Smoothing,
    Task,
    past_quantiles,
    past_spread,
    refits,
)

QUANTITIES = [
    Naive(), Naive(period=1, empirical=True, window=30), Naive(period=7, factor=0.5), Smoothing(),
    Smoothing(period=1), Regression(lags=5), Regression(lags=3, forgetting=0.97), RiverTree("hat", lags=3),
    RiverTree("sgt", lags=3), BoostedQuantiles(every=70, trees=3, least=15), Climatology(),
    BoostedQuantiles("lightgbm", every=70, trees=3, least=15), Narrowed(Naive()),
    Climatology(window=10, period=1), Analogs(members=8, lags=4), Bootstrap(Naive(), members=6),
]  # fmt: skip
EVENTS = [
    BaseRate(), OnlineClassifier(lags=3), OnlineClassifier("bayes", lags=3), OnlineClassifier("tree", lags=3),
    Regression(lags=3), Naive(),
]  # fmt: skip
FEATURES = [Regression(lags=0), OnlineClassifier()]
PLANS = {
    "one step": one_step(150, 60),
    "one step, late": one_step(150, 72, late=24),
    "day ahead": day_ahead(216, 96),
    "ahead": ahead(120, 60),
}


def task_of(y: Any, plan: Plan, *, period: int = 1, levels: Any = FIVE, x: Any = None, event: bool = False) -> Task:
    threshold = float(np.median(y[: plan.seen[0]])) if event else None
    return Task(y, plan.seen, plan.target, plan.horizon, period, np.empty(0) if event else levels, x, threshold)


def check_no_look_ahead(expert: Any, plan: Plan, *, event: bool, x: Any = None) -> None:
    """A row stays the same when all values that were not in sight at its issue are replaced."""
    package = getattr(expert, "package", None)
    if package and find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    y = load("humidity").values[1000:1216].copy()[: plan.target.max() + 1]
    given = expert(task_of(y, plan, period=24, event=event, x=x))
    assert np.isfinite(given).all()
    rng = np.random.default_rng(0)
    for row in (0, plan.seen.size // 2, plan.seen.size - 1):
        seen = plan.seen[row]
        altered = np.concatenate((y[:seen], rng.uniform(-40.0, 300.0, y.size - seen)))
        again = expert(task_of(altered, plan, period=24, event=event, x=x))
        np.testing.assert_array_equal(again[: row + 1], given[: row + 1])


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
@pytest.mark.parametrize(("expert", "event"), [*((e, False) for e in QUANTITIES), *((e, True) for e in EVENTS)])
def test_a_forecast_uses_only_values_in_sight(expert: Any, event: bool, plan: Plan) -> None:
    check_no_look_ahead(expert, plan, event=event)


@pytest.mark.parametrize("expert", FEATURES, ids=repr)
def test_a_forecast_from_features_uses_only_values_in_sight(expert: Any) -> None:
    x = np.random.default_rng(1).normal(size=(150, 3))
    check_no_look_ahead(expert, PLANS["one step"], event=not isinstance(expert, Regression), x=x)


def test_all_classes_of_experts_are_checked_here() -> None:
    used = {type(expert) for recipe in RECIPES for expert in recipe.experts.values()}
    assert used <= {type(expert) for expert in (*QUANTITIES, *EVENTS)}


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_values_in_sight_are_those_known(plan: Plan) -> None:
    assert (np.diff(plan.issued) >= 0).all()
    assert (plan.target >= plan.seen).all()
    for issued, seen in zip(plan.issued, plan.seen, strict=True):
        assert ((plan.target < seen) == (plan.known <= issued)).all()


def test_past_errors_by_hand() -> None:
    task = task_of(np.array([0.0, 1.0, 3.0, 2.0, 6.0, 4.0]), one_step(6, 2), levels=np.array([0.5]))
    mu = Naive().points(task)
    assert mu.tolist() == [1.0, 3.0, 2.0, 6.0]
    # two changes of 1, as the one in sight at first; then errors 2, -1 and 4
    squares = np.array([2.0 / 2.0, (4.0 + 2.0) / 3.0, (5.0 + 2.0) / 4.0, (16.0 + 5.0 + 2.0) / 5.0])
    np.testing.assert_allclose(past_spread(task, mu, 100), np.sqrt(squares))
    np.testing.assert_allclose(past_spread(task, mu, 1)[-1], np.sqrt((16.0 + 2.0) / 3.0))
    assert past_quantiles(task, mu, 100)[:, 0].tolist() == [0.0] * 4


def test_refits_use_outcomes_known_at_their_first_row() -> None:
    plan, served = day_ahead(240, 24), []
    for rows, known in refits(task_of(np.zeros(240), plan), 48, 24):
        assert (plan.target[known] < plan.seen[rows[0]]).all()
        assert rows.size % 24 == 0
        served += rows.tolist()
    assert served == list(range(plan.seen.size))


def test_narrowed_bands_hold_eighty_per_cent() -> None:
    y = np.cumsum(np.random.default_rng(0).standard_normal(2000))
    task = task_of(y, ahead(2000, 100, 3), levels=FIVE)
    q, outcomes, raw = Narrowed(Naive())(task), y[task.target], Naive()(task)
    for rows in task.games():
        late = rows[200:]
        assert ((q[late, 0] <= outcomes[late]) & (outcomes[late] <= q[late, 4])).mean() == pytest.approx(0.8, abs=0.03)
    np.testing.assert_allclose(q[:, 2], raw[:, 2])
