"""Forgetting: the stated bound on the discounted mean holds on any sequence, and a change in the world is forgotten."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import orcast as oc
from helpers import SENTENCE, default_payoff, engine_of
from orcast import ledger
from orcast.spaces import Space
from orcast.testing import check_guarantee, worst_outcome

SPACE = oc.Interval(0, 1, cells=24, tail_cells=3)


def stated(g: float, rounds: int, bound: float) -> float:
    """The bound on the squared discounted mean that Forecaster states, plus what is left of the credit."""
    weight = (1 - g**rounds) / (1 - g)
    rate = bound * (1 - g) * (1 + g**rounds) / ((1 + g) * (1 - g**rounds))
    return rate + ledger.CREDIT * bound * g ** (2 * rounds) / weight**2


PAYOFFS: dict[str, Callable[[], Any]] = {
    "quantile": oc.QuantileCalibration,
    "default": default_payoff,
    "by hour": lambda: oc.QuantileCalibration([0.1, 0.5, 0.9], context=oc.by("hour", values=range(2))),
}


@pytest.mark.parametrize("memory", [2.0, 10.0, 100.0])
@pytest.mark.parametrize("name", PAYOFFS)
def test_the_stated_bound_holds_against_a_greedy_adversary(name: str, memory: float) -> None:
    recal = oc.Recalibrator(SPACE, PAYOFFS[name](), memory=memory)
    g, bound = 1.0 - 1.0 / memory, engine_of(recal).ledger.bound
    rng = np.random.default_rng(0)
    total = np.zeros_like(engine_of(recal).ledger.total)
    for t in range(1, 251):
        p = recal.predict(oc.Normal(rng.uniform(0.2, 0.8), 0.1), x={"hour": t % 2})
        y, worst = worst_outcome(recal)
        assert worst <= p.certificate.worst_next * (1 + 1e-9)
        before = engine_of(recal).ledger.total.copy()
        recal.update(y)
        # the sum is discounted once a round
        total = g * total + (engine_of(recal).ledger.total - g * before)
        guarantee = recal.guarantee
        assert guarantee.miscalibration <= guarantee.promised * (1 + 1e-12)
        if guarantee.held == 1.0:
            assert guarantee.promised**2 <= stated(g, t, bound) * (1 + 1e-9)
        assert guarantee.rounds == t
    assert engine_of(recal).ledger.total == pytest.approx(total, abs=1e-9)
    assert guarantee.held > 0.98
    if guarantee.held == 1.0:
        assert engine_of(recal).ledger.account[ledger.Account.EXCESS] == 0.0


@pytest.mark.parametrize(
    ("space", "payoff"),
    [
        (oc.Binary(), oc.BinaryCalibration(grid=11)),
        (oc.Labels(["a", "b", "c"]), oc.LabelCalibration(grid=6)),
        (oc.Line(cells=24, tail_cells=3), oc.QuantileCalibration([0.1, 0.5, 0.9])),
        (oc.Circle(24, cells=12), oc.MomentMatching(1)),
    ],
    ids=["binary", "labels", "line", "circle"],
)
def test_discounted_bound_holds_on_other_spaces(space: Space, payoff: Any) -> None:
    check_guarantee(payoff, space, rounds=100, memory=15.0)
    # without an expert an adversary may chase the window of a line to the largest numbers there are
    recal = oc.Forecaster(space, payoff, memory=15.0, outside="clip")
    for t in range(1, 101):
        recal.predict()
        recal.update(worst_outcome(recal)[0])
        bound = engine_of(recal).ledger.bound
        if recal.guarantee.held == 1.0:
            assert recal.guarantee.miscalibration**2 <= stated(1 - 1 / 15, t, bound) * (1 + 1e-9)
    assert recal.guarantee.held >= 0.99


def shares_below(memory: float | None) -> float:
    """After 400 rounds of one world comes another, where the expert is too high; how its median fares there."""
    recal = oc.Recalibrator(SPACE, oc.QuantileCalibration([0.5]), oracle=oc.Equilibrium(3.0), memory=memory)
    rng, below = np.random.default_rng(0), []
    for t in range(600):
        p = recal.predict(oc.Normal(0.5, 0.1))
        y = float(np.clip(rng.normal(0.62 if t < 400 else 0.38, 0.05), 0, 1))
        if t >= 440:
            below.append(y <= p.median())
        recal.update(y)
    return float(np.mean(below))


def test_a_change_in_the_world_is_forgotten() -> None:
    """Without forgetting an old cumulative payoff is reduced after a change, at the cost of calibration."""
    assert abs(shares_below(20.0) - 0.5) < 0.12


@pytest.mark.parametrize("memory", [1.0, 0, -3, float("nan"), float("inf"), "long", True])
def test_a_bad_memory_is_refused(memory: Any) -> None:
    with pytest.raises((TypeError, ValueError), match=SENTENCE):
        oc.Recalibrator(SPACE, memory=memory)
