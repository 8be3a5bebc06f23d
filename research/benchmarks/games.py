"""Games of the guarantee benchmark: every payoff on every space, random sums with contexts, and base forecasts."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import orcast as oc
from orcast.contexts import Context
from orcast.payoffs import Payoff
from orcast.spaces import FiniteSpace, OrderedSpace, Space
from orcast.testing.adversaries import Adversary, adversaries_on
from orcast.testing.checks import random_masses, some_expert

PERIOD = 24.0
SUMS = 10

SPACES: dict[str, Callable[[], Space]] = {
    "Interval": lambda: oc.Interval(0.0, 1.0),
    "Line": oc.Line,
    "HalfLine": oc.HalfLine,
    "Binary": oc.Binary,
    "Labels": lambda: oc.Labels(["a", "b", "c", "d"]),
    "Circle": lambda: oc.Circle(PERIOD, cells=24),
    "Box": lambda: oc.Box([(0.0, 1.0), (0.0, 1.0)], cells=6),
    "Points": lambda: oc.Points(np.random.default_rng(0).random((30, 2))),
}
ORDERED = ("Interval", "Line", "HalfLine")
UNIT = {"Interval": 1.0, "Line": 10.0, "HalfLine": 10.0}


# --- payoffs ---


def utility(name: str) -> tuple[list[Any], Callable[[Any, Any], float], float | None]:
    """Five actions, their utility, and its range where the space does not bound it."""
    if name in ORDERED:
        unit = UNIT[name]
        actions = [unit * share for share in (0.1, 0.3, 0.5, 0.7, 0.9)]
        return actions, lambda a, y: -max(2.0 * (a - y), y - a) / unit, None if name == "Interval" else 3.0
    if name == "Binary":
        return [0.1, 0.3, 0.5, 0.7, 0.9], lambda a, y: -((a - y) ** 2), None
    if name == "Labels":
        worth = np.random.default_rng(5).random((5, 4))
        return [0, 1, 2, 3, 4], lambda a, y: float(worth[a, "abcd".index(y)]), None
    if name == "Circle":
        return [0.0, 5.0, 10.0, 15.0, 20.0], lambda a, y: math.cos(2.0 * math.pi * (y - a) / PERIOD), None
    centres = [(0.5, 0.5), (0.2, 0.2), (0.8, 0.2), (0.2, 0.8), (0.8, 0.8)]
    return centres, lambda a, y: -math.hypot(y[0] - a[0], y[1] - a[1]), None


def witness(name: str) -> Callable[[Any], list[float]]:
    """Two functions of the outcome with values from -1 to 1, one with a jump."""
    if name in ORDERED:
        unit = UNIT[name]
        return lambda y: [math.tanh(3.0 * (y / unit - 0.5)), float(y > 0.625 * unit)]
    if name in ("Binary", "Labels"):
        return lambda y: [float(y in (1, "a")), float(y in (0, "c", "d"))]
    if name == "Circle":
        return lambda y: [math.sin(4.0 * math.pi * y / PERIOD), float(y < 8.0)]
    return lambda y: [math.tanh(3.0 * (y[0] - 0.5)), float(y[1] > 0.5)]


def certainty(name: str) -> Callable[[Any, Any], list[float]]:
    """Context that depends on the forecast, smoothly: its level, or its concentration."""

    def context(x: Any, p: Any) -> list[float]:
        if name in ORDERED:
            share = 0.5 + 0.5 * math.tanh(5.0 * (float(p.median()) / UNIT[name] - 0.5))
        else:
            share = float(p.mass @ p.mass)
        return [share, 1.0 - share]

    return context


def custom(name: str) -> Payoff:
    """Payoff as a plain function of forecast and outcome: error of the probability of an event, and a product."""
    if name in ORDERED:
        at = 0.5 * UNIT[name]

        def below(x: Any, p: Any, y: float) -> list[float]:
            error = float(p.cdf(at)) - float(y <= at)
            return [0.7 * error, 0.7 * error * float(p.cdf(at))]

        return oc.Custom(below, bound=1.0, jumps=[at])
    space = SPACES[name]()
    assert isinstance(space, FiniteSpace)

    def first_half(x: Any, p: Any, y: Any) -> list[float]:
        half = space.cells // 2
        chance = float(p.mass[:half].sum())
        error = chance - float(space.cell(space.outcome(y)) < half)
        return [0.7 * error, 0.7 * error * chance]

    return oc.Custom(first_half, bound=1.0)


def payoffs_on(name: str) -> dict[str, Callable[..., Payoff]]:
    """Payoffs on a space by name; each takes a context and a weight."""
    found: dict[str, Callable[..., Payoff]] = {}
    actions, worth, span = utility(name)
    if name in ORDERED:
        thresholds = [share * UNIT[name] for share in (0.2, 0.5, 0.8)]
        found["quantiles"] = lambda **k: oc.QuantileCalibration(**k)
        found["intervals"] = lambda **k: oc.IntervalCalibration([0.5, 0.8, 0.95], **k)
        found["moments"] = lambda **k: oc.MomentMatching(3, **k)
        found["marginal"] = lambda **k: oc.payoffs.MarginalCalibration(thresholds, **k)
        found["threshold"] = lambda **k: oc.payoffs.ThresholdCalibration(thresholds, **k)
        found["regret CRPS, MSE"] = lambda **k: oc.NoRegret(oc.CRPS(), oc.MSE(), **k)
        found["regret log"] = lambda **k: oc.NoRegret(oc.scores.LogScore(), **k)
    if name == "Binary":
        found["binary"] = lambda **k: oc.BinaryCalibration(**k)
        found["regret Brier, MSE, log"] = lambda **k: oc.NoRegret(oc.Brier(), oc.MSE(), oc.scores.LogScore(), **k)
    if name == "Labels":
        found["label"] = lambda **k: oc.LabelCalibration(**k)
        found["top label"] = lambda **k: oc.payoffs.TopLabelCalibration(**k)
    if name in ("Binary", "Labels"):
        found["calibeating"] = lambda **k: oc.payoffs.Calibeating(**k)
    if name == "Box":
        found["quantiles"] = lambda **k: oc.QuantileCalibration(**k)
    if name in ("Binary", "Circle", "Box", "Points"):
        found["moments"] = lambda **k: oc.MomentMatching(2, **k)
    if name not in (*ORDERED, "Binary"):
        found["regret CRPS"] = lambda **k: oc.NoRegret(oc.CRPS(), **k)
        found["regret Brier, log"] = lambda **k: oc.NoRegret(oc.Brier(), oc.scores.LogScore(), **k)
    if name not in ("Line", "HalfLine"):
        found["distribution"] = lambda **k: oc.payoffs.DistributionCalibration(4, **k)
    found["decision"] = lambda **k: oc.payoffs.DecisionCalibration(actions, worth, utility_range=span, **k)
    found["swap regret"] = lambda **k: oc.payoffs.SwapRegret(actions, worth, utility_range=span, **k)
    jumps: dict[str, Any] = {"jumps": [0.625 * UNIT[name]]} if name in ORDERED else {}
    found["recipe"] = lambda **k: oc.Recipe(witness(name), bound=8.0, **jumps, **k)
    found["recipe given p"] = lambda **k: oc.Recipe(witness(name), certainty(name), bound=8.0, **jumps, **k)
    found["custom"] = lambda **k: custom(name)
    return found


def contexts(name: str) -> list[Context]:
    """Contexts on a space: values, bins, product, union, base forecast, overlapping, last error."""
    day, wind = oc.by("day", values="MTW"), oc.by("wind", edges=[0.3, 0.7])

    def overlapping(x: Any) -> list[float]:
        return [float(x["wind"] > 0.2), float(x["wind"] < 0.8), float(x["day"] == "M")]

    found = [day, wind, day * wind, day | wind, oc.by_expert("level", edges=[0.5 * UNIT.get(name, 1.0)])]
    found.append(oc.by(overlapping, size=3, bound=3.0))
    return found + ([oc.by_last_error(), oc.by_last_error() * day] if name in (*ORDERED, "Binary") else [])


def random_sum(number: int) -> tuple[str, Payoff]:
    """Name of a space, and a direct sum of two to four payoffs on it, some with contexts."""
    rng = np.random.default_rng(100 + number)
    name = list(SPACES)[number % len(SPACES)]
    makers = {what: make for what, make in payoffs_on(name).items() if what not in ("custom", "recipe given p")}
    total: Payoff | None = None
    for i, kind in enumerate(rng.choice(list(makers), size=int(rng.integers(2, 5)), replace=False)):
        given: dict[str, Any] = {"weight": float(rng.choice([0.5, 1.0, 2.0]))}
        if i == 0 or rng.random() < 0.6:
            some = [c for c in contexts(name) if not (kind.startswith("regret") and c.signed)]
            given["context"] = some[int(rng.integers(len(some)))]
        part = makers[kind](**given)
        total = part if total is None else total + part
    assert total is not None
    return name, total


# --- games ---


@dataclass(frozen=True)
class Game:
    """Space, payoff ("default", a name, or the number of a random sum) and adversary, by name."""

    space: str
    what: str
    adversary: str

    @property
    def name(self) -> str:
        """Name of the game."""
        return ", ".join((self.space, f"sum {self.what}" if self.what.isdigit() else self.what, self.adversary))

    def on(self) -> Space:
        """Make the space."""
        space = SPACES[self.space]()
        if self.what == "custom" and isinstance(space, oc.Interval | oc.Line | oc.HalfLine):
            return replace(space, cells=24, tail_cells=3)  # the user's function is called for every cell
        return space

    def payoff(self) -> Payoff:
        """Make the payoff."""
        if self.what == "default":
            return oc.Forecaster(SPACES[self.space]()).payoff
        return random_sum(int(self.what))[1] if self.what.isdigit() else payoffs_on(self.space)[self.what]()

    def opponent(self) -> Adversary:
        """Make the adversary."""
        return adversaries(self.space)[self.adversary]()

    def experts(self) -> Callable[[int], Any]:
        """Base forecasts: two rounds of three a slowly moving one, else a random one."""
        space, rng = self.on(), np.random.default_rng(1)
        # on a line a custom payoff is exact only where its threshold lies within the window
        steady = self.what == "custom" and self.space in ("Line", "HalfLine")
        return lambda t: some_expert(space, rng) if t % 3 == 2 and not steady else moving_expert(space, t, rng)


def adversaries(name: str) -> dict[str, Callable[[], Adversary]]:
    """Adversaries on a space by name."""
    return adversaries_on(SPACES[name](), low=0.0, high=UNIT.get(name, 1.0))


def all_games() -> list[Game]:
    """Every payoff on every space, and random sums, against every adversary."""
    payoffs = [(name, what) for name in SPACES for what in (*payoffs_on(name), "default")]
    payoffs += [(random_sum(number)[0], str(number)) for number in range(1, SUMS + 1)]
    return [Game(name, what, adversary) for name, what in payoffs for adversary in adversaries(name)]


def moving_expert(space: Space, t: int, rng: np.random.Generator) -> Any:
    """Base forecast that moves slowly over the space."""
    if isinstance(space, OrderedSpace):
        unit = 1.0 if isinstance(space, oc.Interval) else 10.0
        return oc.Normal(unit * (0.5 + 0.3 * math.sin(t / 20.0)), 0.1 * unit)
    k = np.arange(space.cells)
    mass = np.exp(1.5 * np.cos(2.0 * np.pi * (k / space.cells - t / 60.0))) + 0.02 * random_masses(space.cells, rng)
    return mass / mass.sum()


def features_of(rng: np.random.Generator) -> dict[str, Any]:
    """Features of a round."""
    return {"day": str(rng.choice(list("MTW"))), "wind": float(rng.random())}
