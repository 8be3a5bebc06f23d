"""BOA, AgACI, equal weights, outcome-only forecasts against plain loops, with missing experts and late outcomes."""

import math
from typing import Any

import numpy as np
import pytest
from rival_cases import PERCENTS, Vector

import orcast as oc
from research.rivals import BOA, AgACI, EqualWeights, Laplace, LaplaceCorrection, LaplacePortfolio, LastOutcome

LEVELS = np.array([0.1, 0.5, 0.9])
Round = dict[str, Any]


def combined(method: Any, rounds: list[Round], outcomes: Any, *, levels: Vector = LEVELS, late: int = 0) -> Vector:
    rows = []
    for t, experts in enumerate(rounds):
        rows.append(method.predict(experts=experts, id=t).quantile(levels))
        if t >= late:
            method.update(outcomes[t - late], id=t - late)
    return np.array(rows)


def three_experts(count: int, seed: int, absent: float = 0.0) -> tuple[list[Round], Vector]:
    """One is good, one too high, one too wide; each may be missing, but not all."""
    rng = np.random.default_rng(seed)
    centres = rng.uniform(40, 60, size=count)
    rounds: list[Round] = []
    for c in centres:
        there = {"good": oc.Normal(c, 3), "high": oc.Normal(c + 5, 3), "wide": oc.Normal(c, 12)}
        kept = {name: e for name, e in there.items() if rng.random() >= absent}
        rounds.append(kept or there)
    return rounds, rng.normal(centres, 3)


def slow_boa(rounds: list[Round], outcomes: Vector, late: int) -> list[list[float]]:
    """One expert and one level after the other, in plain arithmetic."""
    count, names = len(LEVELS), []
    regret: dict[str, list[float]] = {}
    square: dict[str, list[float]] = {}
    scale = [0.0] * count
    issued: list[list[float]] = []
    for t, experts in enumerate(rounds):
        rows = {name: e.quantile(LEVELS).tolist() for name, e in experts.items()}
        known = [*names, *[n for n in rows if n not in names]]
        found = []
        for a in range(count):
            fresh = sum(square[n][a] for n in names) / len(names) if names else 0.0
            weights = {}
            for n in rows:
                eta = rate(square[n][a] if n in names else fresh, scale[a], len(known))
                weights[n] = math.log(eta) + eta * (regret[n][a] if n in names else 0.0)
            top = max(weights.values())
            weights = {n: math.exp(w - top) for n, w in weights.items()}
            found.append(sum(weights[n] * rows[n][a] for n in rows) / sum(weights.values()))
        issued.append(sorted(found))
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
            scale[a] = max(scale[a], *map(abs, r.values()))
            for n in r:
                square[n][a] += r[n] ** 2
                eta = rate(square[n][a], scale[a], len(names))
                jump = 2 * scale[a] if eta * r[n] > 0.5 else 0.0
                regret[n][a] += 0.5 * (r[n] - eta * r[n] ** 2 + jump)
    return issued


def rate(square: float, scale: float, experts: int) -> float:
    bound = 1 / (2 * scale) if scale else 1e100
    return min(bound, math.sqrt(math.log(max(experts, 2)) / square)) if square else bound


@pytest.mark.parametrize("late", [0, 6])
@pytest.mark.parametrize("absent", [0.0, 0.5])
def test_boa_against_its_slow_twin(late: int, absent: float) -> None:
    rounds, y = three_experts(80, 1, absent)
    rounds = [e if t > 40 else {n: f for n, f in e.items() if n != "high"} or e for t, e in enumerate(rounds)]
    found = combined(BOA(0, 100, levels=LEVELS), rounds, y, late=late)
    np.testing.assert_allclose(found, slow_boa(rounds, y, late), atol=1e-7)


def test_mean_of_quantiles_of_present_experts() -> None:
    rounds, y = three_experts(30, 5, absent=0.4)
    expected = [np.mean([e.quantile(LEVELS) for e in experts.values()], axis=0) for experts in rounds]
    np.testing.assert_allclose(combined(EqualWeights(0, 100, levels=LEVELS), rounds, y, late=3), expected, atol=1e-9)


@pytest.mark.parametrize("late", [0, 1, 4])
def test_last_outcome_against_the_whole_series(late: int) -> None:
    y = np.clip(50 + np.cumsum(np.random.default_rng(6).normal(size=700)), 0, 100)
    last, expert, early = LastOutcome(0, 100), oc.Normal(30, 2), 0
    for t in range(y.size):
        row = last.predict(expert, id=t).quantile(PERCENTS)
        known, lag = y[: max(t - late, 0)], 1 + late
        changes = (known[lag:] - known[:-lag])[-500:]
        early += changes.size < 5
        expected = expert if changes.size < 5 else oc.Normal(known[-1], math.sqrt(np.mean(np.square(changes))))
        np.testing.assert_allclose(row, np.clip(expected.quantile(PERCENTS), 0, 100), atol=1e-6)
        if t >= late:
            last.update(y[t - late], id=t - late)
    assert early == 6 + 2 * late


@pytest.mark.parametrize("late", [0, 3])
def test_agaci_is_boa_of_adaptive_levels(late: int) -> None:
    rng, rates = np.random.default_rng(3), (0.02, 0.08)
    y = rng.normal(51, 5, size=80)
    fast = AgACI(0, 100, levels=LEVELS, rates=rates)
    found = combined(fast, [{"expert": oc.Normal(50, 3)}] * 80, y, late=late)
    alphas, boa, slow, issued = np.tile(LEVELS, (2, 1)), BOA(0, 100, levels=LEVELS), [], []
    for t in range(80):
        inside = np.clip(alphas, 1e-12, 1 - 1e-12)
        rows = np.where(alphas <= 0, 0.0, np.where(alphas >= 1, 100.0, oc.Normal(50, 3).quantile(inside)))
        issued.append(rows)
        slow.append(
            boa.predict(experts={str(k): oc.Quantiles(LEVELS, np.sort(row)) for k, row in enumerate(rows)}, id=t)
        )
        if t >= late:
            boa.update(y[t - late], id=t - late)
            hits = y[t - late] <= issued[t - late]
            alphas = alphas + np.array(rates)[:, None] * (LEVELS - hits)
    assert all((np.diff(row) >= 0).all() for rows in issued for row in rows), "no levels crossed in this stream"
    np.testing.assert_allclose(found, [p.quantile(LEVELS) for p in slow], atol=1e-6)


def test_laplace_by_hand() -> None:
    """After six outcomes: candidates and their mixture by definition, two steps ahead of the last one."""
    outcomes = [10.0, 12.0, 11.0, 13.0, 12.0, 14.0]
    method = Laplace(0, 100)
    for t, y in enumerate(outcomes):
        method.predict(oc.Normal(50, 1), id=t)
        method.update(y, id=t)
    means, deviations = method.mixture.issue(2)
    trend, smooth = 0.0, [0.0, 0.0, 0.0]
    for t, y in enumerate(outcomes):
        trend += 0.1 * (y - outcomes[t - 1] - trend) if t else 0.0
        smooth = [s + max(rate, 1 / (t + 1)) * (y - s) for s, rate in zip(smooth, (0.02, 0.1, 0.3), strict=True)]
    assert means[[0, 1]] == pytest.approx([14.0, 14.0 + (0.9 + 0.81) * trend])
    assert means[3:] == pytest.approx(smooth)
    usual = np.mean(np.diff(outcomes) ** 2)
    error = 14.0 - 12.0  # of the last value, the only one that was forecast, with a first count of 1
    assert deviations[0] == pytest.approx(math.sqrt((error**2 + usual) / 2.0))
    method.predict(oc.Normal(50, 1), id="pending")
    q = method.predict(oc.Normal(50, 1), id="two ahead").quantile([0.05, 0.5, 0.95])
    np.testing.assert_allclose(
        q, method.mixture.quantile(method.mixture.issue(2), np.array([0.05, 0.5, 0.95])), atol=0.1
    )
    assert 10 < q[1] < 15


def test_laplace_follows_outcomes_and_its_correction_follows_the_base_forecast() -> None:
    """On a random walk the former is right, on errors of a constant bias the latter; the portfolio is near the best."""
    rng, losses = np.random.default_rng(5), {}
    walk, noise = 50 + np.cumsum(rng.normal(0, 0.5, 600)), rng.uniform(30, 70, 600)
    for case, y, centre in (("walk", walk, np.full(600, 50.0)), ("bias", noise + rng.normal(0, 1, 600), noise - 2.0)):
        for make in (Laplace, LaplaceCorrection, LaplacePortfolio):
            method, rows = make(0, 100), []
            for t in range(600):
                rows.append(method.predict(oc.Normal(centre[t], 2.0), id=t).quantile(PERCENTS))
                method.update(y[t], id=t)
            losses[case, make] = oc.metrics.pinball(np.array(rows)[200:], y[200:]).mean()
    assert losses["walk", Laplace] < 1.1 * 0.5 * 0.282  # the loss of the true normal distribution
    assert losses["bias", LaplaceCorrection] < 1.1 * 0.282
    assert losses["bias", Laplace] > 5 * losses["bias", LaplaceCorrection]
    for case in ("walk", "bias"):
        assert losses[case, LaplacePortfolio] < 1.05 * min(losses[case, Laplace], losses[case, LaplaceCorrection])
