"""Games to attack: every payoff on every space, random sums with contexts, and the experts that they are given."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

import orcast as oc
from orcast.contexts import Context
from orcast.payoffs import Payoff
from orcast.spaces import FiniteSpace, OrderedSpace, Space
from orcast.testing.checks import random_masses, some_expert
from orcast.testing.natures import Nature, natures_on

PERIOD = 24.0

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


# --- what is asked for
def utility(name: str) -> tuple[list[Any], Callable[[Any, Any], float], float | None]:
    """Five actions, what each is worth, and how much that can vary where the space does not tell."""
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
    """Two numbers from -1 to 1 that depend on the outcome, one with a jump."""
    if name in ORDERED:
        unit = UNIT[name]
        return lambda y: [math.tanh(3.0 * (y / unit - 0.5)), float(y > 0.625 * unit)]
    if name in ("Binary", "Labels"):
        return lambda y: [float(y in (1, "a")), float(y in (0, "c", "d"))]
    if name == "Circle":
        return lambda y: [math.sin(4.0 * math.pi * y / PERIOD), float(y < 8.0)]
    return lambda y: [math.tanh(3.0 * (y[0] - 0.5)), float(y[1] > 0.5)]


def certainty(name: str) -> Callable[[Any, Any], list[float]]:
    """A context that depends on the forecast: how high it is, or how sure, smoothed."""

    def context(x: Any, p: Any) -> list[float]:
        if name in ORDERED:
            share = 0.5 + 0.5 * math.tanh(5.0 * (float(p.median()) / UNIT[name] - 0.5))
        else:
            share = float(p.mass @ p.mass)
        return [share, 1.0 - share]

    return context


def custom(name: str) -> Payoff:
    """Written by a user who knows nothing of cells: the chance of an event minus whether it happened, and a product."""
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
    """By name, each payoff that makes sense on a space; a context and a weight may be given."""
    found: dict[str, Callable[..., Payoff]] = {}
    actions, worth, span = utility(name)
    if name in ORDERED:
        unit = UNIT[name]
        thresholds = [0.2 * unit, 0.5 * unit, 0.8 * unit]
        found["quantiles"] = lambda **k: oc.QuantileCalibration(**k)
        found["intervals"] = lambda **k: oc.IntervalCalibration([0.5, 0.8, 0.95], **k)
        found["moments"] = lambda **k: oc.MomentMatching(3, **k)
        found["marginal"] = lambda **k: oc.payoffs.MarginalCalibration(thresholds, **k)
        found["threshold"] = lambda **k: oc.payoffs.ThresholdCalibration(thresholds, **k)
        found["regret CRPS, MSE"] = lambda **k: oc.NoRegret(oc.CRPS(), oc.MSE(), **k)
        found["regret pinball"] = lambda **k: oc.NoRegret(oc.scores.QuantileScore(np.arange(1, 20) / 20), **k)
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
    jumps = {"jumps": [0.625 * UNIT[name]]} if name in ORDERED else {}
    found["recipe"] = lambda **k: oc.Recipe(witness(name), bound=8.0, **jumps, **k)
    found["recipe given p"] = lambda **k: oc.Recipe(witness(name), certainty(name), bound=8.0, **jumps, **k)
    found["custom"] = lambda **k: custom(name)
    return found


def contexts(name: str, rng: np.random.Generator) -> list[tuple[str, Context]]:
    """Contexts to choose from."""
    day = oc.by("day", values="MTW")
    wind = oc.by("wind", edges=[0.3, 0.7])
    expert = oc.by_expert("level", edges=[0.5 * UNIT.get(name, 1.0)])
    found = [("values", day), ("bins", wind), ("product", day * wind), ("union", day | wind), ("expert", expert)]

    def overlapping(x: Any) -> list[float]:
        return [float(x["wind"] > 0.2), float(x["wind"] < 0.8), float(x["day"] == "M")]

    found.append(("overlapping", oc.by(overlapping, size=3, bound=3.0)))
    if name in (*ORDERED, "Binary"):
        found += [("last error", oc.by_last_error()), ("last error by day", oc.by_last_error() * day)]
    return found


def random_sum(number: int) -> tuple[str, Payoff]:
    """A direct sum of two to four payoffs, some with contexts, on one of the spaces."""
    rng = np.random.default_rng(100 + number)
    name = list(SPACES)[number % len(SPACES)]
    makers = payoffs_on(name)
    for slow in ("custom", "recipe given p"):
        makers.pop(slow)  # they have lines of their own
    chosen = rng.choice(list(makers), size=int(rng.integers(2, 5)), replace=False)
    total: Payoff | None = None
    for i, kind in enumerate(chosen):
        given: dict[str, Any] = {"weight": float(rng.choice([0.5, 1.0, 2.0]))}
        if i == 0 or rng.random() < 0.6:
            some = [c for _, c in contexts(name, rng) if not (kind.startswith("regret") and c.signed)]
            given["context"] = some[int(rng.integers(len(some)))]
        part = makers[kind](**given)
        total = part if total is None else total + part
    assert total is not None
    return name, total


# --- the games
SUMS = 10


def random_expert(seed: int, t: int) -> Any:
    return some_expert(oc.Interval(0.0, 1.0), np.random.default_rng([seed, t]))


EXPERTS: dict[str, Callable[[int], Any]] = {
    "steady": lambda t: oc.Normal(0.5 + 0.2 * math.sin(t / 7.0), 0.1),
    "narrow": lambda t: oc.Normal(0.5 + 0.3 * math.sin(t / 20.0), 1e-5),
    "edge": lambda t: oc.Normal(0.0, 0.02),
    # nothing that was learnt fits what comes next
    **{f"random {seed}": partial(random_expert, seed) for seed in range(4)},
}
"""Experts on [0, 1] for the default payoff, beside the mixed one that all others meet."""


@dataclass(frozen=True)
class Game:
    """A game and who plays against it; it is made in the process that plays it, because functions do not travel."""

    space: str
    what: str  # a name in payoffs_on, "default", or the number of a random sum
    nature: str  # a name in natures_on
    expert: str = ""  # a name in EXPERTS, else the mixed one

    @property
    def name(self) -> str:
        payoff = f"sum {self.what}" if self.what.isdigit() else self.what
        return ", ".join([self.space, payoff, self.nature] + [f"{self.expert} expert"] * bool(self.expert))

    def on(self) -> Space:
        space = SPACES[self.space]()
        if self.what == "custom" and isinstance(space, oc.Interval | oc.Line | oc.HalfLine):
            return replace(space, cells=24, tail_cells=3)  # a function of the user's is called for every cell
        return space

    def payoff(self) -> Payoff:
        if self.what == "default":
            return oc.Forecaster(SPACES[self.space]()).payoff
        if self.what.isdigit():
            return random_sum(int(self.what))[1]
        return payoffs_on(self.space)[self.what]()

    def opponent(self) -> Nature:
        return natures_of(self.space)[self.nature]()

    def experts(self) -> Callable[[int], Any]:
        """Two rounds of three a slowly moving forecast, else a random one, perhaps absurdly sure."""
        if self.expert:
            return EXPERTS[self.expert]
        space, rng = self.on(), np.random.default_rng(1)
        # on a line a custom payoff is exact only where its threshold lies within the window
        steady = self.what == "custom" and self.space in ("Line", "HalfLine")
        return lambda t: some_expert(space, rng) if t % 3 == 2 and not steady else moving_expert(space, t, rng)


def natures_of(name: str) -> dict[str, Callable[[], Nature]]:
    return natures_on(SPACES[name](), low=0.0, high=UNIT.get(name, 1.0), group_of=lambda x: x["day"], group="M")


def all_games() -> list[Game]:
    payoffs = [(name, what) for name in SPACES for what in (*payoffs_on(name), "default")]
    payoffs += [(random_sum(number)[0], str(number)) for number in range(1, SUMS + 1)]
    games = [Game(name, what, nature) for name, what in payoffs for nature in natures_of(name)]
    return games + [
        Game("Interval", "default", nature, expert) for expert in EXPERTS for nature in natures_of("Interval")
    ]


def moving_expert(space: Space, t: int, rng: np.random.Generator) -> Any:
    if isinstance(space, OrderedSpace):
        unit = 1.0 if isinstance(space, oc.Interval) else 10.0
        return oc.Normal(unit * (0.5 + 0.3 * math.sin(t / 20.0)), 0.1 * unit)
    k = np.arange(space.cells)
    mass = np.exp(1.5 * np.cos(2.0 * np.pi * (k / space.cells - t / 60.0))) + 0.02 * random_masses(space.cells, rng)
    return mass / mass.sum()


def features_of(rng: np.random.Generator) -> dict[str, Any]:
    return {"day": str(rng.choice(list("MTW"))), "wind": float(rng.random())}
