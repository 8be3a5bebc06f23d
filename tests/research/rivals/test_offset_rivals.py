"""Rivals with offsets against slow twins, by hand, under attack and with late outcomes."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from rival_cases import Vector, forecast_all, offsets
from scipy.optimize import isotonic_regression
from scipy.stats import norm

import orcast as oc
from research.rivals import COP, CQR, AcMCP, ConformalPID, DecayingOCP, MultiQT, NexCP

LEVELS = np.array([0.005, 0.25, 0.5, 0.9])  # the lowest lies beyond the percents


# --- slow twins, with outcomes at once or late ---


class Twin:
    """One level in plain arithmetic: `settle(score, issued offset)` is the next offset."""

    def __init__(self, a: float) -> None:
        self.a, self.scores, self.errors, self.offset = a, [], [], 0.0

    def settle(self, s: float, q: float) -> float:
        self.scores.append(s)
        self.errors.append(self.a - (s <= q))
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


class SlowCQR(Twin):
    def next(self, e: float) -> float:
        n = len(self.scores)
        rank = math.floor((n + 1) * self.a + 1e-9) if self.a < 0.5 else math.ceil((n + 1) * self.a - 1e-9)
        return sorted(self.scores)[min(max(rank, 1), n) - 1]


TWINS: dict[str, tuple[Callable[..., Any], dict[str, Any], type[Twin]]] = {
    "PID": (ConformalPID, {"rate": 0.2, "integral": 0.5, "saturation": 0.2, "window": 20}, SlowPID),
    "tracker": (ConformalPID, {"rate": 0.2, "integral": 0.0, "window": 20}, SlowTracker),
    "decaying": (DecayingOCP, {"rate": 0.7, "decay": 0.2}, SlowDecaying),
    "COP": (COP, {"rate": 0.3, "optimism": 0.4, "window": 20}, SlowCOP),
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
        slow[t] = isotonic_regression(rows[t] + offset).x
        s = t - late
        if s >= 0:
            recent = slice(max(s - 19, 0), s + 1)
            step = max(0.1 * np.quantile(np.abs(y[recent, None] - rows[recent]), 0.9), least)
            offset = offset + step * (levels - (y[s] <= slow[s]))
    assert (np.diff(slow, axis=1) == 0).any()  # there was something to put in order
    np.testing.assert_allclose(fast, slow, atol=1e-9)
