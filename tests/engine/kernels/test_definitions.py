"""The learners on ordered spaces against their definitions, at every forecast and outcome of some games."""

from collections.abc import Iterator
from typing import Any

import definitions
import numpy as np
import pytest
from definitions import Array, Settled, Taught

import orcast as oc
from orcast.engine.kernels.records import CellRow, RoundInfo, Statistic

# soft edges: an hour on one of them belongs to two groups, half to each
HOUR = oc.by("hour", edges=[1.0, 2.0], soft=0.5)


def copied(arrays: Any) -> Any:
    return type(arrays)(*(array.copy() for array in arrays))


def series(rounds: int, seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    x = 50.0 + 0.5 * rng.normal(size=rounds).cumsum()
    return x, x + 1.0 + 3.0 * rng.standard_t(3, size=rounds)


def game(name: str) -> tuple[Any, list[dict[str, Any]], Array, int]:
    """A recalibrator, what it is given each round, the outcomes, and how many rounds late they come."""
    late = 20 if "stale" in name else 3 if "late" in name else 0
    rounds = 130 if "line" in name else 40
    x, y = series(rounds)
    if "atoms" in name:
        # dry days and wet ones, and an expert who often says that it stays dry
        wet = np.clip(y - 48.0, 0.0, 10.0)
        inputs = [
            {"forecast": oc.Ensemble([0, 0, 0, max(v - 50, 0), max(v - 46, 0)]), "x": {"hour": t % 3}}
            for t, v in enumerate(x)
        ]
        payoff = oc.QuantileCalibration(context=HOUR) + oc.NoRegret(oc.CRPS())
        return oc.Recalibrator(oc.Interval(0, 10), payoff), inputs, np.where(np.arange(rounds) % 2, wet, 0.0), late
    if "experts" in name:
        both = [
            {"experts": {"one": oc.Normal(v, 2.0), "other": oc.Normal(v + 2, 4.0) if t % 3 else None}}
            for t, v in enumerate(x)
        ]
        return oc.Recalibrator(oc.Interval(0, 100)), both, y, late
    one = [{"forecast": oc.Normal(v, 2.0 + 0.02 * v)} for v in x]
    space = oc.Line() if "line" in name else oc.Interval(0, 100)
    return oc.Recalibrator(space), one, y, late


def settled(name: str) -> Iterator[tuple[Settled, Any, Any]]:
    """Each settled round, and the memory and the context when its forecast was made."""
    recal, inputs, outcomes, late = game(name)
    then = {}
    for t, options in enumerate(inputs):
        recal.predict(**options, id=t)
        engine: Any = recal.engine
        then[t] = copied(engine.memory)
        if t >= late:
            y = float(outcomes[t - late])
            record = copied(recal.rounds.pending[t - late].record.round)
            before = copied(engine.memory)
            recal.update(y, id=t - late)
            yield Settled(before, record, y, copied(engine.memory), engine.space, engine.rules), then[t - late], record


NAMES = ["plain", "late", "stale", "line", "line, late", "atoms", "atoms, late", "experts", "experts, late"]


def close(expected: Any) -> Any:
    return pytest.approx(expected, rel=1e-7, abs=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_tracker(name: str) -> None:
    for it, then, record in settled(name):
        expected, quantiles = definitions.tracked(then, record, it.space, it.rules)
        assert record.tracker_record == close(expected)
        if record.info[RoundInfo.REGULAR]:
            # the inner edges of the cells are the quantiles of the corrected expert
            first = it.space.tail_cells + 1
            assert record.cells[CellRow.LEFT, first : first + quantiles.size] == close(quantiles)
        found = definitions.tracker(it)
        statistics = found.pop("statistics")
        assert it.after.statistics[: statistics.size] == close(statistics)
        for field, values in found.items():
            assert getattr(it.after, field) == close(values), field


@pytest.mark.parametrize("name", NAMES)
def test_pit_members(name: str) -> None:
    for it, then, record in settled(name):
        at_forecast = Taught(it._replace(before=then))
        assert record.cells[CellRow.MEMBERS :, : at_forecast.prior.size] == close(definitions.members(at_forecast))
        mix = definitions.mixed(at_forecast, then.member_loss)
        # the last layer plays the mix times exp(tilt)
        tilt = record.cells[CellRow.TILT, : mix.size]
        if np.abs(tilt).max() < 6.0:
            assert at_forecast.played == pytest.approx(mix * np.exp(tilt), rel=1e-7, abs=1e-9)
        assert it.after.shape == close(definitions.shape(it))
        assert it.after.member_loss == close(definitions.member_loss(it))
        assert it.after.statistics[Statistic.LAST_PIT] == close(definitions.last_pit(it))


@pytest.mark.parametrize("name", ["atoms", "atoms, late"])
def test_groups(name: str) -> None:
    blurred = shared = 0
    for it, then, record in settled(name):
        location, spread = definitions.wanted_correction(then.by_group, record.context[: it.rules.group_count])
        assert record.info[RoundInfo.GROUP_LOCATION] == close(location)
        assert record.info[RoundInfo.GROUP_SPREAD] == close(spread)
        behind = then.group_loss[1] - then.group_loss[0]
        share = 1.0 / (1.0 + np.exp(2.0 * behind) * (1.0 + record.info[RoundInfo.PENDING]) ** 0.5)
        expert = definitions.Quantiles(record.raw, it.space, record.info[RoundInfo.SMALLEST_SLOPE])
        assert record.experts[0] == close(expert.corrected(share * location, 1.0 + share * (spread - 1.0)))
        shared += 0.4 < np.abs(record.context[: it.rules.group_count]).max() < 0.6
        groups, loss = definitions.by_group(it)
        assert it.after.by_group == close(groups)
        assert it.after.group_loss == close(loss)
        blurred += expert.score(it.y)[1] > 0.0
    assert min(blurred, shared) > 5


@pytest.mark.parametrize("name", NAMES)
def test_losses_of_the_experts(name: str) -> None:
    for it, _, _ in settled(name):
        if it.rules.experts > 1:
            assert it.after.expert_loss == close(definitions.expert_loss(it))
        assert it.after.rivals == close(definitions.rivals(it))
        for place, value in definitions.statistics(it).items():
            assert it.after.statistics[place] == close(value), Statistic(place)


def test_the_pool_weighs_experts_by_their_losses() -> None:
    for it, then, record in settled("experts"):
        there = ~np.isnan(record.experts[1:, 0])
        scores = definitions.smoothed(definitions.log_weights(then.expert_loss[there]))
        weights = np.exp(scores.min(axis=0) - scores)
        pooled = (weights * record.experts[1:][there]).sum(axis=0) / weights.sum(axis=0)
        assert record.raw == close(np.sort(pooled))
        assert it.rules.experts == 2
