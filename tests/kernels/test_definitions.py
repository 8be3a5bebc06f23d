"""Statistics of a recalibrator on an ordered space against their definitions, at every outcome of some runs."""

from collections.abc import Iterator
from functools import cache
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest
from kernel_runs import Array

import orcast as oc
from orcast.kernels import records

INFO, STATISTICS = (
    SimpleNamespace(**{name: place for place, name in enumerate(names)}) for names in (records.INFO, records.STATISTICS)
)
NAMES = ["plain", "late", "line", "atoms", "experts", "biased, late", "forgetting"]


class Settled(NamedTuple):
    """A round and its outcome; the memory at the forecast, before the outcome and after it."""

    then: Any
    before: Any
    after: Any
    record: Any
    y: float
    engine: Any


def copied(numbers: Any) -> Any:
    """Arrays of a memory or a round."""
    return SimpleNamespace(**{name: array.copy() for name, array in numbers.views().items()})


def inputs(name: str, rounds: int) -> tuple[Any, list[dict[str, Any]], Array]:
    """A recalibrator, the arguments of each forecast, and the outcomes."""
    rng = np.random.default_rng(0)
    x = 50.0 + 0.5 * rng.normal(size=rounds).cumsum()
    y = x + (8.0 if "biased" in name else 1.0) + 3.0 * rng.standard_t(3, size=rounds)
    if name == "atoms":
        wet = np.clip(y - 48.0, 0.0, 10.0)
        each = [{"forecast": oc.Ensemble([0, 0, 0, max(v - 50, 0), max(v - 46, 0)])} for v in x]
        return oc.Recalibrator(oc.Interval(0, 10)), each, np.where(np.arange(rounds) % 2, wet, 0.0)
    if name == "experts":
        each = [
            {"experts": {"one": oc.Normal(v, 2.0), "other": oc.Normal(v + 2, 4.0) if t % 3 else None}}
            for t, v in enumerate(x)
        ]
        return oc.Recalibrator(oc.Interval(0, 100)), each, y
    space = oc.Line() if name == "line" else oc.Interval(0, 100)
    return (
        oc.Recalibrator(space, memory=30 if name == "forgetting" else None),
        [{"forecast": oc.Normal(v, 2.0 + 0.02 * v)} for v in x],
        y,
    )


@cache
def settled(name: str) -> list[Settled]:
    """Each settled round of a run."""
    return list(settle(name, 3 if "late" in name else 0))


def settle(name: str, late: int, rounds: int = 60) -> Iterator[Settled]:
    recal, forecasts, outcomes = inputs(name, rounds)
    then = {}
    for t, options in enumerate(forecasts):
        recal.predict(**options, id=t)
        engine: Any = recal.engine
        then[t] = copied(engine.memory)
        if t >= late:
            y = float(outcomes[t - late])
            record, before = copied(recal.rounds.pending[t - late].record), copied(engine.memory)
            recal.update(y, id=t - late)
            yield Settled(then[t - late], before, copied(engine.memory), record, y, engine)


def forecast(it: Settled, mass: Array) -> oc.Forecast:
    n = int(it.record.info[INFO.cells])
    return oc.Forecast(*it.record.cells[:2, :n], mass[:n] / mass[:n].sum())


def assert_close(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_losses_of_the_expert_and_level_of_the_outcomes(name: str) -> None:
    for it in settled(name):
        old, info = it.before.statistics, it.record.info
        y = min(max(it.y, info[INFO.low]), info[INFO.high])
        expert = forecast(it, it.record.cells[3])
        loss = expert.crps(y)
        # the expert's own expectation of its CRPS, the integral of F (1 - F), by Simpson's rule on each cell
        left, right, mass = expert.left, expert.right, expert.mass
        above = np.cumsum(mass)
        cdf = np.array([above - mass, above - 0.5 * mass, above])
        expected = (np.array([1, 4, 1]) / 6 @ (cdf * (1 - cdf))) @ (right - left)
        spread = it.record.experts[0, -1] - it.record.experts[0, 0]
        usual = max(old[STATISTICS.robust_loss], expected, 1e-3 * spread, 1e-6 * abs(y))
        step = max(0.002, 1 / (old[STATISTICS.outcomes] + 2))
        mean, variance = it.y, max((0.1 * it.y) ** 2, 1e-280) if it.y else 1e-12
        rounds = it.after.account[records.ACCOUNT.index("rounds")]
        if rounds > 1:
            rate, most = max(0.002, 1 / (rounds + 1)), 6 * np.sqrt(old[STATISTICS.level_variance])
            change = np.clip(it.y - old[STATISTICS.level_mean], -most, most)
            mean = old[STATISTICS.level_mean] + rate * change
            variance = (1 - rate) * (old[STATISTICS.level_variance] + rate * change**2)
        found = {
            "outcomes": old[STATISTICS.outcomes] + 1,
            "loss_sum": 0.998 * old[STATISTICS.loss_sum] + loss,
            "loss_count": 0.998 * old[STATISTICS.loss_count] + 1,
            "robust_loss": old[STATISTICS.robust_loss] + step * (min(loss, 4 * usual) - old[STATISTICS.robust_loss]),
            "last_error": it.y - forecast(it, it.record.cells[4]).quantile(0.5),
            "level_mean": mean,
            "level_variance": variance,
        }
        assert_close([it.after.statistics[getattr(STATISTICS, each)] for each in found], list(found.values()))


@pytest.mark.parametrize("name", NAMES)
def test_scores_and_misses_of_the_experts(name: str) -> None:
    """Discounted losses of each expert that is present, and the excess of the forecast's losses over them."""
    for it in settled(name):
        info, found = it.record.info, it.before.rivals.copy()
        low, high = info[INFO.low], info[INFO.high]
        y, result = min(max(it.y, low), high), forecast(it, it.record.cells[4])
        for e in range(len(found)):
            if len(found) > 1 and np.isnan(it.record.experts[e + 1, 0]):
                continue
            expert = forecast(it, it.record.rivals[e])
            square = (y - expert.mean()) ** 2
            found[e, :3] = 0.998 * found[e, :3] + [expert.crps(y), square / (high - low) ** 2, 1]
            found[e, 3:] += [result.crps(y) - expert.crps(y), (y - result.mean()) ** 2 - square, 1]
        assert_close(it.after.rivals, found)
        q, levels = it.record.experts[0], it.engine.space.levels
        misses = 0.9998 * it.before.misses[:-1] + np.where(it.y == q, 0.0, (it.y < q) - levels)
        assert_close(it.after.misses, [*misses, 0.9998**2 * it.before.misses[-1] + 1 + info[INFO.pending]])


@pytest.mark.parametrize("name", NAMES)
def test_temperature_allows_for_sampling_noise_and_the_budget(name: str) -> None:
    """8 (1 + pending)^0.85, more while the ledger may be noise, less for a bad expert and where the budget ends."""
    usual, discount = 0, settled(name)[0].engine.rules.discount
    for it in settled(name):
        step = it.after.total - discount * it.before.total
        squares = discount**2 * it.before.statistics[STATISTICS.squares] + step @ step
        assert_close(it.after.statistics[STATISTICS.squares], squares)
        then, pending, levels = it.then, it.record.info[INFO.pending], it.engine.space.levels
        sides = it.engine.rules.layout.side_list
        total = np.where((sides > 0) & (then.total < 0), 0.0, then.total)
        square = total @ total
        fault = (then.misses[:-1] @ then.misses[:-1]) / (levels @ (1 - levels) * then.misses[-1] + 1e-9)
        few = 20 * (1 + pending) / (then.statistics[STATISTICS.outcomes] + 1)
        gains = [-excess / rounds * count / crps for crps, _, count, excess, _, rounds in then.rivals if rounds]
        gain = max(min([1.0, *gains]), 0.0)
        trust = max((min(2 / (fault + 1e-9), 1.0) * (1 - gain) ** 2) ** 2, min(few, 1.0))
        chance = 6 * trust * (1 + pending) * then.statistics[STATISTICS.squares]
        softness = 1 + chance / max(square, 1e-3 * chance + 1e-300)
        firm = max(min(4 / (fault + 1e-9), 1.0), 0.5)
        firm *= max(np.clip((1 - square / then.account[0]) / 0.8, 0.0, 1.0) ** 2, 0.02)
        expected = 8 * (1 + pending) ** 0.85 * softness * firm
        # lower only where the bound needs it
        assert it.record.info[INFO.temperature] <= expected * (1 + 1e-9)
        usual += bool(it.record.info[INFO.temperature] >= expected * (1 - 1e-9))
    assert usual > 0.5 * len(settled(name))
