"""Actions drawn with the weights of a `SwapRegret`: their empirical swap regret and its bound."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import orcast as oc
from helpers import engine_of

LABELS = oc.Labels(["a", "b", "c"])
EVEN = [1 / 3] * 3


def hit(action: str, y: str) -> float:
    return float(action == y)


def swap(**options: Any) -> oc.payoffs.SwapRegret:
    return oc.payoffs.SwapRegret(["a", "b", "c"], hit, **options)


def weights_of(recal: oc.Forecaster, p: Any) -> np.ndarray:
    number = next(i for i, part in enumerate(recal.payoff) if part.name == "swap regret")
    record: Any = recal.rounds.pending[None].record
    return np.asarray(record.cell_payoffs[number].answer(np.asarray(p.mass)))


def attacked(rounds: int, *, decide: bool, seed: int = 0) -> tuple[float, Any]:
    """The adversary sees the forecast and the weights, not the draw: the label that the decider takes least comes."""
    recal, table = oc.Recalibrator(LABELS, swap(), randomised=seed), np.zeros((3, 3))
    for _ in range(rounds):
        p = recal.predict(EVEN)
        action = recal.decide(p) if decide else p.mode()
        weights = weights_of(recal, p) if decide else p.mass
        y = LABELS.labels[int(np.argmin(weights))]
        table[LABELS.labels.index(action), LABELS.labels.index(y)] += 1.0
        recal.update(y)
    return float((table.max(axis=1) - np.diag(table)).sum()) / rounds, recal.guarantee


def test_swap_regret_of_drawn_actions_is_small_and_within_its_bound() -> None:
    for seed in range(3):
        regret, g = attacked(400, decide=True, seed=seed)
        assert regret < 0.15
        # in units of the range, which is measured and 5% wider
        assert g.empirical.errors["swap regret"] == pytest.approx(regret / 1.05)
        assert regret / 1.05 <= g.empirical.bounds["swap regret"]
        assert g.held == 1.0
        assert sum(action.rounds for action in g.empirical.actions.values()) == 400
    assert attacked(400, decide=False)[0] > 0.4


def test_ledger_adds_the_expectation_over_actions() -> None:
    recal = oc.Recalibrator(LABELS, swap(sharpness=5.0), randomised=1)
    for t in range(5):
        recal.predict([0.5, 0.3, 0.2])
        recal.update("abc"[t % 3])
    p = recal.predict([0.2, 0.5, 0.3])
    record: Any = recal.rounds.pending[None].record
    weights = weights_of(recal, p)
    for k in range(3):
        error = (np.asarray(p.mass) - np.eye(3)[k]) / 1.05
        expected = sum(w * np.outer(np.eye(3)[a], error) for a, w in enumerate(weights))
        assert recal.engine.payoff(record, k) == pytest.approx(expected.ravel())
    engine, times = engine_of(recal), np.zeros(3)
    for u in (np.arange(1000) + 0.5) / 1000:
        record.decision[:] = u, 1.0
        times["abc".index(engine.decide(record, None))] += 1.0
    assert times / 1000 == pytest.approx(weights, abs=2e-3)


@pytest.mark.parametrize("space", [LABELS, oc.Interval(0, 1)], ids=["labels", "quantities"])
@pytest.mark.parametrize("seed", [None, 3])
def test_action_belongs_to_the_round(space: Any, seed: int | None, tmp_path: Path) -> None:
    """Asked again, after a load, by a forecast that replaces the first: one draw for one round."""
    labels = space is LABELS
    payoff = (
        swap() if labels else oc.payoffs.SwapRegret([0.2, 0.5], lambda a, y: -abs(a - y)) + oc.QuantileCalibration()
    )
    forecast, y = (EVEN, "b") if labels else (oc.Normal(0.4, 0.2), 0.3)
    recal, rng = oc.Recalibrator(space, payoff, randomised=seed), np.random.default_rng(0)
    if seed is None:
        with pytest.raises(TypeError, match="expected rng="):
            recal.decide(recal.predict(forecast))
    for _ in range(4):
        p = recal.predict(forecast)
        action = recal.decide(p, rng=rng)
        p = recal.predict(forecast)
        assert {recal.decide(p, rng=rng) for _ in range(5)} == {action}
        recal.save(tmp_path / "a.orcast")
        recal = oc.Recalibrator.load(tmp_path / "a.orcast", payoff=payoff)
        assert recal.decide(p, rng=rng) == action
        recal.update(y)
    g = recal.guarantee
    assert g.empirical is not None
    assert g.empirical.errors["swap regret"] <= g.empirical.bounds["swap regret"]
    recal.predict(forecast)
    recal.update(y)
    # a round without a drawn action is in the ledger, but not in the sums
    assert recal.guarantee.empirical is not None
    assert "swap regret" not in recal.guarantee.empirical.bounds


def test_bad_calls_change_nothing() -> None:
    recal = oc.Recalibrator(LABELS, swap(), randomised=1)
    p, other = recal.predict(EVEN), recal.peek([0.8, 0.1, 0.1])
    for wrong in (other, 0.5, None):
        with pytest.raises(ValueError, match="expected the forecast of the pending round None"):
            recal.decide(wrong)
    with pytest.raises(ValueError, match="expected the id of a pending round"):
        recal.decide(p, id="gone")
    plain = oc.Recalibrator(LABELS)
    with pytest.raises(TypeError, match="expected a payoff with one SwapRegret"):
        plain.decide(plain.predict(EVEN))
    assert not recal.rounds.pending[None].record.decision.any()
