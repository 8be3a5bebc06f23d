"""Rivals for several experts, and what costs nothing: by hand, against plain loops, absent and late."""

import math
import pickle
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import orcast as oc
from helpers import SENTENCE
from orcast.baselines import AsGiven, BernsteinAggregation, EqualWeights, LastOutcome

Vector = NDArray[np.float64]
LEVELS = np.array([0.1, 0.5, 0.9])
PERCENTS = np.arange(1, 100) / 100
Round = dict[str, Any]


def play(method: Any, rounds: list[Round], outcomes: Any, *, levels: Vector = LEVELS, late: int = 0) -> Vector:
    rows = []
    for t, experts in enumerate(rounds):
        rows.append(method.predict(experts=experts, id=t).quantile(levels))
        if t >= late:
            method.update(outcomes[t - late], id=t - late)
    return np.array(rows)


def panel(count: int, seed: int, absent: float = 0.0) -> tuple[list[Round], Vector]:
    """One is good, one too high, one too wide; each may be absent, but not all."""
    rng = np.random.default_rng(seed)
    centres = rng.uniform(40, 60, size=count)
    rounds: list[Round] = []
    for c in centres:
        there = {"good": oc.Normal(c, 3), "high": oc.Normal(c + 5, 3), "wide": oc.Normal(c, 12)}
        kept = {name: e for name, e in there.items() if rng.random() >= absent}
        rounds.append(kept or there)
    return rounds, rng.normal(centres, 3)


# --- Bernstein online aggregation ---


def slow_boa(rounds: list[Round], outcomes: Vector, late: int, forget: float) -> list[list[float]]:
    """One expert and one level after the other, in plain arithmetic."""
    count, names = len(LEVELS), []
    regret: dict[str, list[float]] = {}
    square: dict[str, list[float]] = {}
    scale = [0.0] * count
    issued: list[list[float]] = []
    for t, experts in enumerate(rounds):
        rows = {name: e.quantile(LEVELS).tolist() for name, e in experts.items()}
        known = [*names, *[n for n in rows if n not in names]]
        played = []
        for a in range(count):
            fresh = sum(square[n][a] for n in names) / len(names) if names else 0.0
            weights = {}
            for n in rows:
                v = square[n][a] if n in names else fresh
                eta = rate(v, scale[a], len(known))
                weights[n] = math.log(eta) + eta * (regret[n][a] if n in names else 0.0)
            top = max(weights.values())
            weights = {n: math.exp(w - top) for n, w in weights.items()}
            played.append(sum(weights[n] * rows[n][a] for n in rows) / sum(weights.values()))
        issued.append(sorted(played))
        if t < late:
            continue
        s, y = t - late, outcomes[t - late]
        rows = {name: e.quantile(LEVELS).tolist() for name, e in rounds[s].items()}
        joined = [n for n in rows if n not in names]
        for n in joined:
            square[n] = [sum(square[m][a] for m in names) / max(len(names), 1) for a in range(count)]
            regret[n] = [0.0] * count
        names += joined
        for a, level in enumerate(LEVELS.tolist()):
            slope = (1.0 if y < issued[s][a] else 0.0) - level
            r = {n: slope * (issued[s][a] - rows[n][a]) for n in rows}
            scale[a] = max((1 - forget) * scale[a], *map(abs, r.values()))
            for n in names:
                square[n][a] = (1 - forget) * square[n][a] + r.get(n, 0.0) ** 2
                regret[n][a] *= 1 - forget
                if n in r:
                    eta = rate(square[n][a], scale[a], len(names))
                    jump = 2 * scale[a] if eta * r[n] > 0.5 else 0.0
                    regret[n][a] += 0.5 * (r[n] - eta * r[n] ** 2 + jump)
    return issued


def rate(square: float, scale: float, experts: int) -> float:
    bound = 1 / (2 * scale) if scale else 1e100
    return min(bound, math.sqrt(math.log(max(experts, 2)) / square)) if square else bound


@pytest.mark.parametrize("late", [0, 6])
@pytest.mark.parametrize("absent", [0.0, 0.5])
@pytest.mark.parametrize("forget", [0.0, 0.1])
def test_aggregation_against_its_slow_twin(late: int, absent: float, forget: float) -> None:
    rounds, y = panel(80, 1, absent)
    rounds = [e if t > 40 else {n: f for n, f in e.items() if n != "high"} or e for t, e in enumerate(rounds)]
    boa = BernsteinAggregation(0, 100, levels=LEVELS, forget=forget)
    played = play(boa, rounds, y, late=late)
    np.testing.assert_allclose(played, slow_boa(rounds, y, late, forget), atol=1e-7)


def test_aggregation_by_hand() -> None:
    boa = BernsteinAggregation(0, 10, levels=[0.25, 0.75])
    experts = {"low": oc.Normal(4, 0), "high": oc.Normal(6, 0)}
    assert play(boa, [experts], [5.5], levels=np.array([0.25, 0.75])).tolist() == [[5.0, 5.0]]
    # y is above 5, so r = -a (5 - q) = (-a, a): E = a, V = a^2, eta = min(1 / (2 a), sqrt(log 2) / a) = 1 / (2 a)
    # R = (-a - a / 2) / 2 and (a - a / 2) / 2, eta R = -3/8 and 1/8 at both levels
    share = 1 / (1 + math.exp(-0.5))
    assert boa.weights["high"] == pytest.approx([share, share])
    assert boa.predict(experts=experts).median() == pytest.approx(4 + 2 * share)


def test_weight_goes_to_the_best_at_each_level() -> None:
    rng = np.random.default_rng(2)
    y = rng.normal(50, 5, size=1500)
    tails = oc.Quantiles([0.1, 0.5, 0.9], [50 - 6.4, 58, 50 + 26.4])
    heads = oc.Quantiles([0.1, 0.5, 0.9], [50 - 26.4, 50, 50 + 6.4])
    boa = BernsteinAggregation(0, 100, levels=LEVELS)
    play(boa, [{"tails": tails, "heads": heads}] * 1500, y)
    assert boa.weights["tails"][0] > 0.9
    assert boa.weights["heads"][1] > 0.9
    assert boa.weights["heads"][2] > 0.9


def test_aggregation_is_nearly_as_good_as_the_best() -> None:
    rounds, y = panel(800, 3)
    q = play(BernsteinAggregation(0, 100), rounds, y, levels=PERCENTS)
    alone = {n: np.array([e[n].quantile(PERCENTS) for e in rounds]) for n in rounds[0]}
    losses = {n: oc.metrics.pinball(row, y).mean() for n, row in alone.items()}
    mean = oc.metrics.pinball(play(EqualWeights(0, 100), rounds, y, levels=PERCENTS), y).mean()
    assert oc.metrics.pinball(q, y).mean() < 1.03 * min(losses.values())
    assert mean > 1.15 * min(losses.values())


def test_the_middle_one_does_not_win_for_being_in_the_middle() -> None:
    """Its first regret is exactly 0, which says nothing."""
    experts = {"low": oc.Normal(4, 0), "middle": oc.Normal(5, 0), "high": oc.Normal(6, 0)}
    boa = BernsteinAggregation(0, 10, levels=LEVELS)
    play(boa, [experts] * 200, [6.0] * 200)
    assert (boa.weights["high"] > 0.95).all()


def test_newcomers_and_those_who_sleep() -> None:
    rounds, y = panel(300, 4)
    boa = BernsteinAggregation(0, 100, levels=LEVELS)
    play(boa, [{"good": e["good"], "high": e["high"]} for e in rounds], y)
    before = boa.weights
    p = boa.predict(experts={"wide": oc.Normal(50, 12)})  # alone, it has all of the weight
    np.testing.assert_allclose(p.quantile(LEVELS), oc.Normal(50, 12).quantile(LEVELS), atol=1e-9)
    boa.update(50)
    after = boa.weights
    for name in ("good", "high"):  # its one round told nothing of the others
        others = after["good"] + after["high"]
        np.testing.assert_allclose(after[name] / others, before[name], rtol=0.3)
    assert (after["wide"] < 0.8).all()


def test_predict_registers_nobody() -> None:
    boa = BernsteinAggregation(0, 100)
    boa.predict(experts={"one": oc.Normal(50, 1)})
    assert boa.weights == {}
    boa.update(50)
    assert list(boa.weights) == ["one"]


# --- equal weights ---


def test_mean_of_quantiles() -> None:
    rounds, y = panel(30, 5, absent=0.4)
    q = play(EqualWeights(0, 100, levels=LEVELS), rounds, y, late=3)
    wanted = [np.mean([e.quantile(LEVELS) for e in experts.values()], axis=0) for experts in rounds]
    np.testing.assert_allclose(q, wanted, atol=1e-9)


BAD: list[Any] = [
    {},
    {"one": None},
    {1: oc.Normal(5, 1)},
    {"one": "high"},
    {"one": oc.Normal(5, 1), "two": 3.0},
    [1],
    "x",
]


@pytest.mark.parametrize("make", [BernsteinAggregation, EqualWeights])
@pytest.mark.parametrize("bad", BAD)
def test_bad_experts_change_nothing(make: Any, bad: Any) -> None:
    method = make(0, 10)
    play(method, [{"one": oc.Normal(4, 1), "two": oc.Normal(6, 1)}], [5])
    before = pickle.dumps(method)
    with pytest.raises((TypeError, ValueError), match=SENTENCE):
        method.predict(experts=bad)
    with pytest.raises(TypeError, match=SENTENCE):
        method.predict(oc.Normal(5, 1), experts={"one": oc.Normal(5, 1)})
    assert pickle.dumps(method) == before


def test_absent_by_none_or_left_out() -> None:
    one, two = EqualWeights(0, 10), EqualWeights(0, 10)
    p = one.predict(experts={"a": oc.Normal(4, 1), "b": None})
    assert p.quantile(PERCENTS).tolist() == two.predict(oc.Normal(4, 1)).quantile(PERCENTS).tolist()


# --- what costs nothing ---


def walk(count: int, seed: int) -> Vector:
    return np.asarray(np.clip(50 + np.cumsum(np.random.default_rng(seed).normal(size=count)), 0, 100))


@pytest.mark.parametrize("late", [0, 1, 4])
def test_last_outcome_against_whole_series(late: int) -> None:
    y = walk(700, 6)
    last, expert = LastOutcome(0, 100), oc.Normal(30, 2)
    rows = []
    for t in range(y.size):
        rows.append(last.predict(expert, id=t).quantile(PERCENTS))
        if t >= late:
            last.update(y[t - late], id=t - late)
    lag, early = 1 + late, 0
    for t, row in enumerate(rows):
        known = y[: max(t - late, 0)]
        changes = [known[s + lag] - known[s] for s in range(known.size - lag)][-500:]
        early += len(changes) < 5
        wanted = expert if len(changes) < 5 else oc.Normal(known[-1], math.sqrt(np.mean(np.square(changes))))
        np.testing.assert_allclose(row, np.clip(wanted.quantile(PERCENTS), 0, 100), atol=1e-6)
    assert early == 6 + 2 * late


def test_last_outcome_with_gaps() -> None:
    """Outcomes in any order, and one that never comes."""
    last = LastOutcome(0, 100)
    for t in range(10):
        last.predict(oc.Normal(30, 2), id=t)
    for t in (9, 1, 3, 2, 0, 5, 4, 6, 8):
        last.update(10.0 * (t % 2) + t, id=t)
    # round 10 is one after the last known, and 8 changes of one round are not all known: without round 7 it is 7
    changes = [11, -9, 11, -9, 11, -9, 11]
    p = last.predict(oc.Normal(30, 2))
    assert p.median() == pytest.approx(19.0)
    assert p.quantile(norm_one()) == pytest.approx(19 + math.sqrt(np.mean(np.square(changes))), rel=1e-3)


def test_last_outcome_forgets() -> None:
    last = LastOutcome(0, 100)
    for t in range(3000):
        last.predict(oc.Normal(50, 1))
        last.update(50 + (t % 2) * (10 if t < 2400 else 1))
    assert last._outcomes.size == 2000
    assert last.predict(oc.Normal(50, 1)).quantile([0.5, norm_one()]).tolist() == pytest.approx([51, 52], abs=1e-3)


def norm_one() -> float:
    return 0.5 * (1 + math.erf(math.sqrt(0.5)))


def test_as_given_learns_nothing() -> None:
    method, expert = AsGiven(0, 100), oc.Ensemble([20.0, 30.0, 30.0, 90.0])
    for y in (0, 100, 50):
        q = method.predict(expert).quantile(PERCENTS)
        np.testing.assert_allclose(q, np.clip(expert.quantile(PERCENTS), 0, 100), atol=1e-9)
        method.update(y)
