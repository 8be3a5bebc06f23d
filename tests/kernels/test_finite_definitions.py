"""The committee on finite spaces against its definition: the expert's log masses, tempered and shifted."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from definitions import Array

import orcast as oc

# Memory, whether it shifts, prior observations of its curvatures.
MEMBERS = [(0.998, False, 5.0), (0.998, True, 20.0), (0.99, True, 20.0)]
LABELS = ["a", "b", "c", "d"]
NAMES = ("scale", "scale_sum", "shift", "shift_sum", "loss", "pool")


def floored(x: Array) -> Array:
    value: Array = np.log(np.maximum(x, 1e-6))
    return value


def pooled(pool: Array, experts: Array) -> Array:
    """The experts that are there, weighed by their discounted log losses."""
    there = ~np.isnan(experts[:, 0])
    weights = np.exp(-(pool[there] - pool[there].min()))
    value: Array = weights @ experts[there] / weights.sum()
    return value


def members(memory: dict[str, Array], base: Array) -> Array:
    """p ~ x^(1 + a) exp(b)."""
    masses = np.exp((1 + memory["scale"])[:, None] * floored(base) + memory["shift"])
    value: Array = masses / masses.sum(axis=1, keepdims=True)
    return value


def mixed(memory: dict[str, Array], base: Array, pending: float) -> Array:
    """Members and the expert by their losses, with a little even mass."""
    odds = np.exp(-(memory["loss"] - memory["loss"].min()))
    odds[:-1] *= (1 + pending) ** -0.5
    blend = odds @ np.vstack((members(memory, base), base)) / odds.sum()
    value: Array = (1 - 1e-4) * blend + 1e-4 / base.size
    return value


def lost(mass: float) -> float:
    return min(-float(np.log(mass)), 8.0) if mass > 0 else 8.0


def taught(memory: dict[str, Array], round: Any, k: int) -> dict[str, Array]:
    """The memory after an outcome in cell k."""
    new = {name: array.copy() for name, array in memory.items()}
    pending = float(round.info[0])
    weight = (1 + pending) ** -0.5
    kept = 1 - 0.002 * weight
    best = memory["pool"].min()
    for e, expert in enumerate(round.experts):
        own = lost(round.pool[k] if np.isnan(expert[0]) else expert[k])
        new["pool"][e] = kept * min(memory["pool"][e], best + 8) + weight * own
    masses = [*round.members[:, k], round.pool[k]]
    new["loss"] = kept * memory["loss"] + weight * np.array([lost(mass) for mass in masses])
    logs = floored(round.pool)
    for m, (keeps, shifts, start) in enumerate(MEMBERS):
        p, discount = round.members[m], 1 - (1 - keeps) * weight
        mean = p @ logs
        new["scale_sum"][m] = discount * memory["scale_sum"][m] + weight * (p @ (logs - mean) ** 2)
        step = weight * (logs[k] - mean) / (new["scale_sum"][m] + start)
        new["scale"][m] = np.clip(memory["scale"][m] + step, -0.9, 3.0)
        if shifts:
            new["shift_sum"][m] = discount * memory["shift_sum"][m] + weight * p * (1 - p)
            gradient = np.eye(p.size)[k] - p
            steps = weight * gradient / (new["shift_sum"][m] + start)
            new["shift"][m] = np.clip(memory["shift"][m] + steps, -4.0, 4.0)
    return new


@pytest.mark.parametrize("several", [False, True], ids=["one", "several"])
@pytest.mark.parametrize("late", [0, 3])
@pytest.mark.parametrize("payoff", [None, oc.payoffs.TopLabelCalibration()], ids=["compiled", "dense"])
def test_members_of_several_cells_match_their_definition(payoff: Any, late: int, several: bool) -> None:
    rng = np.random.default_rng(5)
    recal = oc.Recalibrator(oc.Labels(LABELS), payoff)
    outcomes = rng.choice(4, size=40, p=[0.1, 0.2, 0.3, 0.4])

    def state() -> dict[str, Array]:
        arrays = recal.engine.arrays()
        return {name: arrays[name if payoff is None else f"prior/{name}"].copy() for name in NAMES}

    def round_of(t: int) -> Any:
        record = recal.rounds.pending[t].record
        return SimpleNamespace(**(record if payoff is None else record.round).views())

    for t in range(40):
        x = rng.dirichlet([3.0, 2.0, 2.0, 1e-3])
        if several:
            other = [0.25] * 4 if t % 3 else None
            recal.predict(experts={"one": list(x / x.sum()), "other": other}, id=t)
        else:
            recal.predict(list(x / x.sum()), id=t)
        memory, round = state(), round_of(t)
        assert round.pool == pytest.approx(pooled(memory["pool"], round.experts), abs=1e-12)
        assert round.members == pytest.approx(members(memory, round.pool), abs=1e-12)
        assert round.prior == pytest.approx(mixed(memory, round.pool, float(round.info[0])), abs=1e-12)
        if t >= late:
            k = int(outcomes[t - late])
            expected = taught(memory, round_of(t - late), k)
            recal.update(LABELS[k], id=t - late)
            for name, values in state().items():
                assert values == pytest.approx(expected[name], rel=1e-9, abs=1e-12), name
