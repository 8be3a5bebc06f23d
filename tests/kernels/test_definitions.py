"""The learners on ordered spaces against their definitions, at every forecast and outcome of some games."""

from collections.abc import Iterator
from functools import cache
from types import SimpleNamespace
from typing import Any, NamedTuple

import definitions
import numpy as np
import pytest
from definitions import Array, Settled, Taught

import orcast as oc
from orcast.kernels import records
from orcast.kernels.seasons import find_seasons_arrays

# soft edges: an hour on one of them belongs to two groups, half to each
HOUR = oc.by("hour", edges=[1.0, 2.0], soft=0.5)
# Rows of the cells of a round, places of numbers in the signal of a pool and in records.
LEFT, TILT, LEARNT, MEMBERS = 0, 5, 6, 7
POOL_EVIDENCE, POOL_EXCESS = 1, 2
INFO, STATISTICS, SEASONS, RECORD = (
    SimpleNamespace(**{name: place for place, name in enumerate(names)})
    for names in (records.INFO, records.STATISTICS, records.SEASONS, records.TRACKER_RECORD)
)


def copied(numbers: Any) -> Any:
    """Arrays of a memory or a round."""
    return SimpleNamespace(**{name: array.copy() for name, array in numbers.views().items()})


def series(rounds: int, seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    x = 50.0 + 0.5 * rng.normal(size=rounds).cumsum()
    return x, x + 1.0 + 3.0 * rng.standard_t(3, size=rounds)


def game(name: str) -> tuple[Any, list[dict[str, Any]], Array, int]:
    """A recalibrator, what it is given each round, the outcomes, and how many rounds late they come."""
    late = 20 if "stale" in name else 3 if "late" in name else 0
    rounds = 130 if "line" in name else 60 if "season" in name else 40
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
    if "jumps" in name:
        # an expert that moves further than it usually does
        x, y = x + 20.0 * (np.arange(rounds) // 12 % 2), y + 20.0 * (np.arange(rounds) // 12 % 2)
    seasons = (10, 20) if "presumed" in name else ()
    if "season" in name:
        y = x + 6.0 * (np.arange(rounds) % 7 == 2) + 0.3 * (y - x)
    one = [{"forecast": oc.Normal(v, 2.0 + 0.02 * v)} for v in x]
    space = oc.Line() if "line" in name else oc.Interval(0, 100)
    memory = 30 if "forgetting" in name else None
    pool = oc.Pool() if "pool" in name else None
    return oc.Recalibrator(space, memory=memory, pool=pool, seasons=seasons), one, y, late


def hearing(engine: Any, signals: list[Array]) -> None:
    """Let an engine hear other things of its pool than there are, of either sign, and note what it hears."""

    def changed(method: Any) -> Any:
        def heard(*inputs: Any, signal: Array, **options: Any) -> Any:
            if len(signals) % 11 == 7:
                signal = signal[:0]
            if signal.size:
                signal = signal.copy()
                signal[POOL_EVIDENCE] += np.sin(len(signals))
                signal[POOL_EXCESS] = len(signals) % 5
                signal[-1] = 0.4 * np.sin(2 * len(signals))
            signals.append(signal)
            return method(*inputs, signal=signal, **options)

        return heard

    engine.predict, engine.update = changed(engine.predict), changed(engine.update)


class Then(NamedTuple):
    """The memory and what was heard of a pool when a forecast was made."""

    memory: Any
    signal: Array


@cache
def settled(name: str) -> list[tuple[Settled, Then, Any]]:
    """Each settled round, and what there was when its forecast was made."""
    return list(settle(name))


def settle(name: str) -> Iterator[tuple[Settled, Then, Any]]:
    recal, inputs, outcomes, late = game(name)
    engine: Any = recal.engine
    signals = [np.empty(0)]
    if "pool" in name:
        # another game of the pool has learnt something already
        other = oc.Recalibrator(oc.Interval(0, 100), pool=recal.pool)
        hearing(engine, signals)
        for options, y in zip(inputs[:5], outcomes[:5], strict=True):
            other.predict(**options)
            other.update(float(y))
    then = {}
    for t, options in enumerate(inputs):
        recal.predict(**options, id=t)
        engine = recal.engine
        then[t] = Then(copied(engine.memory), signals[-1])
        if "pool" in name:
            other.predict(**options)
            other.update(float(outcomes[t]))
        if t >= late:
            y = float(outcomes[t - late])
            record = copied(recal.rounds.pending[t - late].record)
            before = copied(engine.memory)
            recal.update(y, id=t - late)
            after = copied(engine.memory)
            rules = SimpleNamespace(**engine.rules.options, sides=engine.rules.layout.side_list)
            yield (
                Settled(before, record, y, after, engine.space, rules, signals[-1]),
                then[t - late],
                record,
            )


NAMES = [
    "plain",
    "late",
    "stale",
    "line",
    "line, late",
    "atoms",
    "atoms, late",
    "experts",
    "experts, late",
    "pool",
    "pool, late",
    "season",
    "season, late",
    "season, presumed",
    "jumps",
    "forgetting",
]


def assert_close(found: Any, expected: Any, name: Any = "") -> None:
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-9, err_msg=str(name))


@pytest.mark.parametrize("name", NAMES)
def test_tracker(name: str) -> None:
    found_season = moved = 0
    for it, then, record in settled(name):
        expected = definitions.tracked(then.memory, record, it.space, it.rules, then.signal)
        assert_close(record.record, expected.record)
        assert_close(record.learners, expected.learners)
        assert_close(record.tracked, expected.tracked)
        if record.info[INFO.regular]:
            # the inner edges of the cells are the quantiles of the corrected expert
            first = it.space.tail_cells + 1
            left = record.cells[LEFT, first : first + expected.quantiles.size]
            assert_close(left, expected.quantiles)
        found = definitions.tracker(it)
        statistics = found.pop("statistics")
        known = ~np.isnan(statistics)
        assert_close(it.after.statistics[known], statistics[known])
        for field, values in found.items():
            assert_close(getattr(it.after, field), values, field)
        found_season += bool(record.record[RECORD.season_1])
        moved += bool(record.record[RECORD.usual_move] < 1.0)
    assert (found_season > 5) == ("season" in name)
    assert "jumps" not in name or moved > 2


@pytest.mark.parametrize("name", NAMES)
def test_quantile_trackers(name: str) -> None:
    cold = silent = False
    for it, then, _ in settled(name):
        for field, values in definitions.quantile_trackers(it).items():
            assert_close(getattr(it.after, field), values, field)
        assert_close(it.after.track_loss, definitions.track_loss(it))
        assert_close(it.after.level_offsets, definitions.learnt_levels(it))
        cold = cold or bool(then.signal.size and then.memory.statistics[STATISTICS.outcomes] == 0.0)
        silent = silent or bool(it.rules.pooled and not it.signal.size)
    assert cold == silent == ("pool" in name)


@pytest.mark.parametrize("name", NAMES)
def test_evidence(name: str) -> None:
    for it, _, _ in settled(name):
        for field, values in definitions.evidence(it).items():
            assert_close(getattr(it.after, field), values, field)
        assert_close(it.after.member_evidence, definitions.member_evidence(it))


@pytest.mark.parametrize("name", NAMES)
def test_pit_members(name: str) -> None:
    for it, then, record in settled(name):
        at_forecast = Taught(it._replace(before=then.memory))
        n = at_forecast.prior.size
        assert_close(record.cells[MEMBERS:, :n], definitions.members(at_forecast))
        learnt, mix = definitions.mixed(at_forecast)
        assert_close(record.cells[LEARNT, :n], learnt)
        # the last layer plays the mix times exp(tilt)
        tilt = record.cells[TILT, :n]
        if np.abs(tilt).max() < 6.0:
            assert_close(at_forecast.played, mix * np.exp(tilt))
        assert_close(it.after.shape, definitions.shape(it))
        assert_close(it.after.member_loss, definitions.member_loss(it))
        assert_close(it.after.statistics[STATISTICS.last_pit], definitions.last_pit(it))


@pytest.mark.parametrize("name", NAMES)
def test_the_last_layer_makes_allowance_for_chance(name: str) -> None:
    usual = rounds = 0
    for it, then, record in settled(name):
        assert_close(it.after.statistics[STATISTICS.squares], definitions.squares(it))
        pending = record.info[INFO.pending]
        temperature = definitions.usual_temperature(then.memory, pending, it.rules.sides)
        # lower only where the promise asks for it
        assert record.info[INFO.temperature] <= temperature * (1.0 + 1e-9)
        usual += bool(record.info[INFO.temperature] >= temperature * (1.0 - 1e-9))
        rounds += 1
    assert usual > 0.5 * rounds


def test_the_two_highest_peaks_are_the_seasons() -> None:
    """Autocorrelations of all kinds, and seasons that come, stay and go."""
    rng = np.random.default_rng(0)
    state = np.zeros(len(records.SEASONS))
    kinds = set()
    for i in range(400):
        state[SEASONS.count] = rng.integers(1, 1500)
        c = rng.normal(0.0, 0.1, 60)
        c[0] = 1.0
        for lag in rng.integers(4, 59, rng.integers(0, 4)):
            c[lag] = rng.uniform(0.0, 1.0)
        if i % 3:
            for lag in np.abs(state[:2].astype(int)):
                c[lag] = max(c[lag], rng.uniform(0.3, 1.0))
        if i % 5 == 0:
            # presumed ones begin anew
            state[:2] = -rng.choice(np.arange(4, 59), 2, replace=False) * rng.integers(0, 2, 2)
        if i % 10 == 0:
            # a day and a week, which cannot be measured yet, and two days, which can
            day = int(rng.integers(4, 8))
            state[:2], state[SEASONS.count] = (-day, -7 * day), rng.integers(5 * day, 17 * day)
            c[2 * day] = 5.0
        was = state[:2].astype(int)
        expected = definitions.peaks(c, state[SEASONS.count], was)
        changed = find_seasons_arrays(c, state)
        assert state[:2].tolist() == expected
        assert changed == (expected[0] != was[0]) + 2 * (expected[1] != was[1])
        assert i % 10 or 2 * day not in expected
        kinds.add((changed, *np.sign(expected).tolist()))
    assert len(kinds) > 15


@pytest.mark.parametrize("name", ["atoms", "atoms, late"])
def test_groups(name: str) -> None:
    blurred = shared = 0
    for it, then, record in settled(name):
        location, spread = definitions.wanted_correction(then.memory.by_group, record.context[: it.rules.group_count])
        assert_close(record.info[INFO.group_location], location)
        assert_close(record.info[INFO.group_spread], spread)
        behind = then.memory.group_loss[1] - then.memory.group_loss[0]
        share = 1.0 / (1.0 + np.exp(2.0 * behind) * (1.0 + record.info[INFO.pending]) ** 0.5)
        expert = definitions.Quantiles(record.raw, it.space, record.info[INFO.smallest_slope])
        assert_close(record.experts[0], expert.corrected(share * location, 1.0 + share * (spread - 1.0)))
        shared += 0.4 < np.abs(record.context[: it.rules.group_count]).max() < 0.6
        groups, loss = definitions.by_group(it)
        assert_close(it.after.by_group, groups)
        assert_close(it.after.group_loss, loss)
        blurred += expert.score(it.y)[1] > 0.0
    assert min(blurred, shared) > 5


@pytest.mark.parametrize("name", NAMES)
def test_losses_of_the_experts(name: str) -> None:
    for it, _, _ in settled(name):
        if it.rules.experts > 1:
            assert_close(it.after.expert_loss, definitions.expert_loss(it))
        assert_close(it.after.rivals, definitions.rivals(it))
        for place, value in definitions.statistics(it).items():
            assert_close(it.after.statistics[place], value, records.STATISTICS[place])


def test_the_pool_weighs_experts_by_their_losses() -> None:
    for it, then, record in settled("experts"):
        there = ~np.isnan(record.experts[1:, 0])
        scores = definitions.smoothed(definitions.log_weights(then.memory.expert_loss[there]))
        weights = np.exp(scores.min(axis=0) - scores)
        pooled = (weights * record.experts[1:][there]).sum(axis=0) / weights.sum(axis=0)
        assert_close(record.raw, np.sort(pooled))
        assert it.rules.experts == 2
