"""Rivals with offsets against slow twins, by hand, under attack and with late outcomes."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from rival_cases import Vector, forecast_all, offsets, pooled
from scipy.stats import norm

import orcast as oc
from research.rivals import COP, CQR, UPOCP, AcMCP, ConformalPID, DecayingOCP, GradientEquilibrium, MultiQT, NexCP

LEVELS = np.array([0.005, 0.25, 0.5, 0.9])  # the lowest lies beyond the percents


def after(method: Any, *outcomes: float) -> list[float]:
    """Offsets after a base forecast that is always 5."""
    last: list[float] = offsets(method, [oc.Normal(5, 0)] * len(outcomes), outcomes)[-1].tolist()
    return last


# --- by hand ---


def test_cqr_covers_exactly_where_scores_are_exchangeable() -> None:
    """Each of ten scores comes last once: as many are covered as the rank says."""
    values = [0.3, 1.0, 2.2, 3.1, 4.4, 5.5, 6.1, 7.9, 8.8, 9.7]
    hits = np.zeros(5)
    for last in values:
        cqr = CQR(0, 10, levels=[0.15, 0.35, 0.5, 0.72, 0.85])
        offsets(cqr, [oc.Normal(0, 0)] * 9, [y for y in values if y != last])
        hits += last <= cqr.offset
    assert hits.tolist() == [1.0, 3.0, 5.0, 8.0, 9.0]


# --- slow twins, with outcomes at once or late ---


class Twin:
    """One level in plain arithmetic: `settle(score, issued offset)` is the next offset."""

    def __init__(self, a: float) -> None:
        self.a, self.scores, self.errors, self.offset = a, [], [], 0.0
        self.hits = self.misses = 0

    def settle(self, s: float, q: float) -> float:
        self.scores.append(s)
        self.errors.append(self.a - (s <= q))
        self.hits, self.misses = self.hits + (s <= q), self.misses + (s > q)
        return self.next(self.errors[-1])

    def next(self, e: float) -> float:
        raise NotImplementedError

    @property
    def largest(self) -> float:
        return max(map(abs, self.scores))

    def spread(self, window: int) -> float:
        return max(self.scores[-window:]) - min(self.scores[-window:])


class SlowPID(Twin):
    def next(self, e: float) -> float:
        self.offset += 0.2 * self.spread(20) * e
        t = len(self.errors)
        angle = sum(self.errors) * math.log(t + 1) / (0.2 * (t + 1))
        if abs(angle) >= math.pi / 2:
            return math.copysign(math.inf, angle)
        return self.offset + 0.5 * max(map(abs, self.scores[-20:])) * math.tan(angle)


class SlowTracker(Twin):
    def next(self, e: float) -> float:
        self.offset += 0.2 * self.spread(20) * e
        return self.offset


class SlowEquilibrium(Twin):
    def next(self, e: float) -> float:
        self.offset += 0.02 * 100 * e
        return self.offset


class SlowDecaying(Twin):
    def next(self, e: float) -> float:
        self.offset += 0.7 * self.largest * len(self.scores) ** -0.7 * e
        return self.offset


class SlowAcMCP(SlowTracker):
    def next(self, e: float) -> float:
        errors = [s + 4 * norm.ppf(self.a) for s in self.scores[-20:]]  # of the median of N(c, 4)
        return super().next(e) + (sum(errors) / len(errors) if len(errors) >= 10 else 0.0)


class SlowNexCP(Twin):
    def next(self, e: float) -> float:
        side = -1 if self.a < 0.5 else 1
        pairs = sorted((side * s, 0.9 ** (k + 1)) for k, s in enumerate(self.scores[:-31:-1]))
        needed, reached = max(self.a, 1 - self.a) * (1 + sum(w for _, w in pairs)), 0.0
        for s, weight in pairs:
            reached += weight
            if reached >= needed:
                return side * s
        return side * pairs[-1][0]


class SlowCOP(Twin):
    def next(self, e: float) -> float:
        step = 0.3 * self.spread(20)
        self.offset += step * e
        if len(self.scores) < 20:
            return self.offset
        return self.offset + 0.4 * step * (self.a - sum(x <= self.offset for x in self.scores[-20:]) / 20)


class SlowUPOCP(Twin):
    def next(self, e: float) -> float:
        wealth, missed, hit = abs(self.scores[0]), 1 - self.a, self.a
        for _ in range(self.misses):
            wealth, missed = wealth * missed / (missed + hit) / (1 - self.a), missed + 1
        for _ in range(self.hits):
            wealth, hit = wealth * hit / (missed + hit) / self.a, hit + 1
        share = missed / (missed + hit)
        return wealth * (share / (1 - self.a) - (1 - share) / self.a)


class SlowCQR(Twin):
    def next(self, e: float) -> float:
        n = len(self.scores)
        rank = math.floor((n + 1) * self.a + 1e-9) if self.a < 0.5 else math.ceil((n + 1) * self.a - 1e-9)
        return sorted(self.scores)[min(max(rank, 1), n) - 1]


TWINS: dict[str, tuple[Callable[..., Any], dict[str, Any], type[Twin]]] = {
    "PID": (ConformalPID, {"rate": 0.2, "integral": 0.5, "saturation": 0.2, "window": 20}, SlowPID),
    "tracker": (ConformalPID, {"rate": 0.2, "integral": 0.0, "window": 20}, SlowTracker),
    "equilibrium": (GradientEquilibrium, {"rate": 0.02}, SlowEquilibrium),
    "decaying": (DecayingOCP, {"rate": 0.7, "decay": 0.2}, SlowDecaying),
    "COP": (COP, {"rate": 0.3, "optimism": 0.4, "window": 20}, SlowCOP),
    "UPOCP": (UPOCP, {}, SlowUPOCP),
    "AcMCP": (AcMCP, {"rate": 0.2, "integral": 0.0, "window": 20}, SlowAcMCP),
    "NexCP": (NexCP, {"decay": 0.9, "window": 30}, SlowNexCP),
    "CQR": (CQR, {}, SlowCQR),
}


def biased_stream(rounds: int, seed: int) -> tuple[Vector, Vector]:
    """Centres of a base forecast that is too low and too narrow, and outcomes."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(50, 5, size=rounds)
    return centres, np.clip(centres + rng.normal(2, 6, size=rounds), 1, 99)


@pytest.mark.parametrize("late", [0, 3])
@pytest.mark.parametrize("name", TWINS)
def test_against_slow_twins(name: str, late: int) -> None:
    make, options, twin = TWINS[name]
    centres, y = biased_stream(120, 1)
    fast = offsets(make(0, 100, levels=LEVELS, **options), [oc.Normal(c, 4) for c in centres], y, late=late)
    for k, a in enumerate(LEVELS.tolist()):
        scores, slow, settle = (y - norm(centres, 4).ppf(a)).tolist(), [0.0], twin(a).settle
        for t in range(120):
            slow.append(settle(scores[t - late], slow[t - late]) if t >= late else 0.0)
        np.testing.assert_allclose(fast[:, k], slow, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("late", [0, 3])
@pytest.mark.parametrize("least", [0.0, 0.1])
def test_multiqt_against_its_slow_twin(late: int, least: float) -> None:
    rng = np.random.default_rng(4)
    levels = np.array([0.01, 0.025, 0.1, 0.4, 0.5, 0.6, 0.975])
    rows = 50 + rng.normal(0, 3, size=(120, 1)) + norm.ppf(levels)
    y = rows[:, 4] + rng.normal(1, 3, size=120)
    tracking = MultiQT(0, 100, levels=levels, window=20, least=least)
    fast = forecast_all(tracking, [oc.Quantiles(levels, row) for row in rows], y, levels, late=late)
    slow, offset = np.empty_like(rows), np.zeros(levels.size)
    for t in range(120):
        slow[t] = pooled(rows[t] + offset)
        s = t - late
        if s >= 0:
            recent = slice(max(s - 19, 0), s + 1)
            step = max(0.1 * np.quantile(np.abs(y[recent, None] - rows[recent]), 0.9), least)
            offset = offset + step * (levels - (y[s] <= slow[s]))
    assert (np.diff(slow, axis=1) == 0).any()  # there was something to put in order
    np.testing.assert_allclose(fast, slow, atol=1e-9)


# --- bounds on any sequence ---


def attacked(method: Any, level: int, up: bool, rounds: int = 300) -> tuple[Vector, Vector]:
    """Scores and errors for outcomes just below or above one issued quantile, with a bound now and then."""
    levels, rng = method.levels, np.random.default_rng(3)
    scores, errors = [], []
    for t in range(rounds):
        centre, before = rng.uniform(4, 6), method.offset
        q = method.predict(oc.Normal(centre, 1)).quantile(levels)
        near = float(np.clip(q[level] + (-1e-6 if up else 1e-6), 0, 10))
        y = {0: 0.0, 1: 10.0}.get(t % 10, near)
        method.update(y)
        scores.append(y - norm(centre, 1).ppf(levels))
        errors.append(levels - (scores[-1] <= before))
    return np.array(scores), np.array(errors)


def by_parts(steps: Vector) -> Vector:
    """1 / step_1 and the changes of 1 / step since, summed up."""
    return np.cumsum(np.abs(np.diff(1 / steps, axis=0, prepend=0 * steps[:1])), axis=0)


def bound_on_errors(method: Any, scores: Vector) -> Vector:
    """Bound on |sum of errors|, round by round and level by level."""
    t, largest = np.arange(1, len(scores) + 1)[:, None], np.abs(scores).max()
    if isinstance(method, GradientEquilibrium):
        return np.full_like(scores, (2 * largest + 0.5) / 0.5)
    if isinstance(method, DecayingOCP):
        steps = np.maximum.accumulate(np.abs(scores), axis=0) * np.power(t, -0.6)
        return (2 * largest + steps.max()) * by_parts(steps)
    if isinstance(method, ConformalPID):
        return np.where(t > 2, 0.3 * math.pi / 2 * (t + 1) / np.log(t + 1) + 1, t) * np.ones_like(scores)
    steps = np.array([0.1 * np.ptp(scores[max(k - 20, 0) : k], axis=0) for k in range(1, len(scores) + 1)])
    return 1 + (2 * largest + 1.5 * steps.max()) * np.concatenate((np.zeros_like(steps[:1]), by_parts(steps[1:])))


ATTACKED: dict[str, Callable[..., Any]] = {
    "equilibrium": lambda **given: GradientEquilibrium(0, 10, rate=0.05, **given),
    "decaying": lambda **given: DecayingOCP(0, 10, **given),
    "COP": lambda **given: COP(0, 10, window=20, **given),
    "PID": lambda **given: ConformalPID(0, 10, saturation=0.3, **given),
    "PID, integral alone": lambda **given: ConformalPID(0, 10, saturation=0.3, rate=0, **given),
}


@pytest.mark.parametrize("up", [True, False])
@pytest.mark.parametrize("level", [0, 1, 2])
@pytest.mark.parametrize("name", ATTACKED)
def test_bounds_hold_under_attack(name: str, level: int, up: bool) -> None:
    method = ATTACKED[name](levels=[0.05, 0.5, 0.95])
    scores, errors = attacked(method, level, up)
    sums, bound = np.abs(np.cumsum(errors, axis=0)), bound_on_errors(method, scores)
    assert (sums <= bound + 1e-9).all()
    assert bound[-1].min() < 300  # not vacuous
    assert sums.max() > 1.5  # it was an attack


@pytest.mark.parametrize("up", [True, False])
@pytest.mark.parametrize("level", [0, 1, 2])
def test_upocp_holds_its_frequency_under_attack(level: int, up: bool) -> None:
    """A miss needs an offset below a score, so wealth that has not exploded; likewise a hit."""
    method = UPOCP(0, 10, levels=[0.05, 0.5, 0.95])
    _, errors = attacked(method, level, up)
    frequency = np.cumsum(errors < 0, axis=0)[-1] / 300
    assert (np.abs(frequency - method.levels) < 0.2).all()
