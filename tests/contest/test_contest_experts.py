"""Experts of the contest use nothing that was not in sight."""

from importlib.util import find_spec

import numpy as np
import pytest

from orcast.contest.datasets import load
from orcast.contest.forecasters import (
    Analogs,
    BaseRate,
    Bootstrap,
    Climatology,
    Drift,
    Naive,
    Smoothing,
    Task,
    past_quantiles,
    past_spread,
)
from orcast.contest.learners import (
    BatchLogistic,
    BoostedQuantiles,
    OnlineClassifier,
    Regression,
    RiverTree,
    lag_features,
    refits,
)
from orcast.contest.recipe_list import RECIPES
from orcast.contest.recipes import FIVE, HUB, Plan, ahead, day_ahead, one_step

QUANTITIES = [
    Naive(),
    Naive(period=1, empirical=True, window=30),
    Naive(period=7, factor=0.5),
    Drift(),
    Smoothing(),
    Smoothing(period=1),
    Regression(lags=5),
    Regression(lags=3, forgetting=0.97),
    RiverTree("hat", lags=3),
    RiverTree("sgt", lags=3),
    BoostedQuantiles(every=70, trees=3, least=15),
    Climatology(),
    Climatology(window=10, period=1),
    Analogs(members=8, lags=4),
    Bootstrap(Naive(), members=6),
]
EVENTS = [
    BaseRate(),
    OnlineClassifier(lags=3),
    OnlineClassifier("bayes", lags=3),
    OnlineClassifier("tree", lags=3),
    BatchLogistic(every=60, lags=3, least=10),
    Regression(lags=3),
    Naive(),
]
PLANS = {
    "one step": one_step(150, 60),
    "one step, late": one_step(150, 72, late=24),
    "day ahead": day_ahead(216, 96),
    "ahead": ahead(120, 60),
}


def task_of(y, plan, *, events=False, x=None):
    threshold = float(np.median(y[: plan.seen[0]])) if events else None
    levels = np.empty(0) if events else FIVE
    return Task(y, plan.seen, plan.target, plan.horizon, 24, levels, x, threshold)


def needs(expert):
    package = getattr(expert, "package", None)
    if package and find_spec(package) is None:
        pytest.skip(f"{package} is not installed")


def cases(experts):
    return [pytest.param(expert, plan, id=f"{expert!r}, {name}") for expert in experts for name, plan in PLANS.items()]


def rows_unchanged(expert, plan, *, events, x=None):
    """Each of a few rows is the same when all that was not in sight when it was issued is another."""
    needs(expert)
    y = load("humidity").values[1000:1216].copy()[: plan.target.max() + 1]
    given = expert(task_of(y, plan, events=events, x=x))
    assert np.isfinite(given).all()
    rng = np.random.default_rng(0)
    for row in (0, plan.seen.size // 2, plan.seen.size - 1):
        seen = plan.seen[row]
        altered = np.concatenate((y[:seen], rng.uniform(-40.0, 300.0, y.size - seen)))
        again = expert(task_of(altered, plan, events=events, x=x))
        np.testing.assert_array_equal(again[: row + 1], given[: row + 1])


@pytest.mark.parametrize(("expert", "plan"), cases(QUANTITIES))
def test_a_row_uses_what_was_in_sight(expert, plan):
    rows_unchanged(expert, plan, events=False)


@pytest.mark.parametrize(("expert", "plan"), cases(EVENTS))
def test_a_probability_uses_what_was_in_sight(expert, plan):
    rows_unchanged(expert, plan, events=True)


@pytest.mark.parametrize(
    "expert", [Regression(lags=0), OnlineClassifier(), BatchLogistic(every=20, least=10)], ids=repr
)
def test_with_features(expert):
    plan = PLANS["one step"]
    x = np.random.default_rng(1).normal(size=(150, 3))
    rows_unchanged(expert, plan, events=not isinstance(expert, Regression), x=x)


def test_an_expert_that_peeks_is_found():
    class Peeks:
        def __call__(self, task):
            return np.repeat(task.y[task.target][:, None], task.levels.size, axis=1)

    with pytest.raises(AssertionError):
        rows_unchanged(Peeks(), PLANS["one step"], events=False)


def test_all_kinds_of_experts_are_tried_here():
    used = {type(expert) for recipe in RECIPES for expert in recipe.experts.values()}
    assert used <= {type(expert) for expert in (*QUANTITIES, *EVENTS)}


# --- what they say


def test_past_errors_by_hand():
    y = np.array([0.0, 1.0, 3.0, 2.0, 6.0, 4.0])
    plan = one_step(6, 2)
    task = Task(y, plan.seen, plan.target, plan.horizon, 1, np.array([0.5]))
    mu = Naive().points(task)
    assert mu.tolist() == [1.0, 3.0, 2.0, 6.0]
    # two changes of 1, the one that was in sight at first; then errors 2, -1 and 4
    squares = np.array([2.0 / 2.0, (4.0 + 2.0) / 3.0, (5.0 + 2.0) / 4.0, (16.0 + 5.0 + 2.0) / 5.0])
    np.testing.assert_allclose(past_spread(task, mu, 100), np.sqrt(squares))
    np.testing.assert_allclose(past_spread(task, mu, 1)[-1], np.sqrt((16.0 + 2.0) / 3.0))
    assert past_quantiles(task, mu, 100)[:, 0].tolist() == [0.0] * 4


def test_late_outcomes_give_no_errors():
    y = np.arange(12.0) ** 2
    plan = one_step(12, 4, late=4)
    task = Task(y, plan.seen, plan.target, plan.horizon, 1, FIVE)
    mu = Naive().points(task)
    assert mu.tolist() == [9.0] * 4 + [49.0] * 4
    spread = past_spread(task, mu, 100)
    assert len(set(spread[:4])) == len(set(spread[4:])) == 1


def test_seasons_and_trends():
    y = np.tile([1.0, 5.0, 2.0, 8.0], 30)
    plan = ahead(120, 40)
    task = Task(y, plan.seen, plan.target, plan.horizon, 4, FIVE)
    for expert in (Naive(), Smoothing()):
        np.testing.assert_allclose(expert.points(task), y[plan.target], atol=1e-9)
    line = task._replace(y=np.arange(120.0))
    np.testing.assert_allclose(Drift().points(line), line.y[plan.target])


def test_regression_learns_a_line_of_features():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 2))
    y = 3.0 + 2.0 * x[:, 0] - x[:, 1]
    plan = one_step(400, 20)
    task = Task(y, plan.seen, plan.target, plan.horizon, 1, HUB, x)
    errors = np.abs(Regression(lags=0).points(task) - y[plan.target])
    assert errors[-50:].max() < 0.05 < errors[:5].max()


def test_analogs_follow_their_likes():
    y = np.tile([1.0, 5.0, 2.0, 8.0], 30)
    plan = one_step(120, 60)
    task = Task(y, plan.seen, plan.target, plan.horizon, 4, FIVE)
    np.testing.assert_allclose(Analogs(members=5, lags=2)(task), y[plan.target][:, None] * np.ones(5))


def test_features_far_off_are_cut():
    x = np.concatenate((np.zeros((5, 1)), np.ones((5, 1)), np.full((5, 1), 1e9)))
    plan = one_step(15, 10)
    features = lag_features(Task(x[:, 0], plan.seen, plan.target, plan.horizon, x=x), 0)
    assert features[:, 0].tolist() == [5.0] * 5


def test_refits_use_what_is_known_when_the_first_row_is_issued():
    plan = day_ahead(240, 24)
    task = Task(np.zeros(240), plan.seen, plan.target, plan.horizon)
    served = []
    for rows, known in refits(task, 48, 24):
        assert (plan.target[known] < plan.seen[rows[0]]).all()
        served += rows.tolist()
        assert rows.size % 24 == 0
    assert served == list(range(plan.seen.size))


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_what_is_in_sight_is_what_was_settled(plan: Plan):
    assert (np.diff(plan.issued) >= 0).all()
    assert (plan.target >= plan.seen).all()
    settled = dict(zip(plan.target.tolist(), plan.settled.tolist(), strict=True))
    for issued, seen in zip(plan.issued, plan.seen, strict=True):
        assert all((target < seen) == (known <= issued) for target, known in settled.items())
