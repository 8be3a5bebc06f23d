"""Games of the attack: payoffs on every space, sums with contexts, base forecasts and adversaries."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np

import orcast as oc
from orcast.contexts import Context
from orcast.payoffs import Payoff
from orcast.spaces import OrderedSpace, Space
from orcast.testing import as_given, candidates, payoffs_of, random_masses, some_expert
from tests.adversaries import Adversary, Greedy, LookAhead, RoundInputs, adversaries_on

PERIOD = 24.0

SPACES: dict[str, Callable[[], Space]] = {
    "Interval": lambda: oc.Interval(0.0, 1.0),
    "Line": oc.Line,
    "HalfLine": oc.HalfLine,
    "Binary": oc.Binary,
    "Labels": lambda: oc.Labels(["a", "b", "c", "d"]),
    "Ten labels": lambda: oc.Labels(list("abcdefghij")),
    "Circle": lambda: oc.Circle(PERIOD, cells=24),
    "Box": lambda: oc.Box([(0.0, 1.0), (0.0, 1.0)], cells=6),
}
ORDERED = ("Interval", "Line", "HalfLine")
LABELS = ("Labels", "Ten labels")
FUNCTIONS = ("decision", "swap regret", "recipe", "recipe given p")
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
    if name in LABELS:
        worth = np.random.default_rng(5).random((5, 10))
        return [0, 1, 2, 3, 4], lambda a, y: float(worth[a, "abcdefghij".index(y)]), None
    if name == "Circle":
        return [0.0, 5.0, 10.0, 15.0, 20.0], lambda a, y: math.cos(2.0 * math.pi * (y - a) / PERIOD), None
    centres = [(0.5, 0.5), (0.2, 0.2), (0.8, 0.2), (0.2, 0.8), (0.8, 0.8)]
    return centres, lambda a, y: -math.hypot(y[0] - a[0], y[1] - a[1]), None


def witness(name: str) -> Callable[[Any], list[float]]:
    """Two functions of the outcome with values from -1 to 1, one with a jump."""
    if name in ORDERED:
        unit = UNIT[name]
        return lambda y: [math.tanh(3.0 * (y / unit - 0.5)), float(y > 0.625 * unit)]
    if name in ("Binary", *LABELS):
        return lambda y: [float(y in (1, "a")), float(y in (0, "c", "d"))]
    if name == "Circle":
        return lambda y: [math.sin(4.0 * math.pi * y / PERIOD), float(y < 8.0)]
    return lambda y: [math.tanh(3.0 * (y[0] - 0.5)), float(y[1] > 0.5)]


def certainty(name: str) -> Callable[[Any, Any], list[float]]:
    """Context that depends on the forecast, smoothly: its level, or its concentration."""

    def context(x: Any, p: Any) -> list[float]:
        level = math.tanh(5.0 * (float(p.median()) / UNIT[name] - 0.5)) if name in ORDERED else float(p.mass @ p.mass)
        return [0.5 + 0.5 * level, 0.5 - 0.5 * level]

    return context


def payoffs_on(name: str) -> dict[str, Callable[..., Payoff]]:
    """Payoffs on a space by name; each takes a context and a weight."""
    found: dict[str, Callable[..., Payoff]] = {}
    actions, worth, span = utility(name)
    if name in ORDERED:
        thresholds = [share * UNIT[name] for share in (0.2, 0.5, 0.8)]
        found["quantiles"] = lambda **k: oc.QuantileCalibration(**k)
        found["intervals"] = lambda **k: oc.IntervalCalibration([0.5, 0.8, 0.95], **k)
        found["moments"] = lambda **k: oc.MomentMatching(3, **k)
        found["marginal"] = lambda **k: oc.payoffs.ThresholdCalibration(thresholds, grid=1, **k)
        found["threshold"] = lambda **k: oc.payoffs.ThresholdCalibration(thresholds, **k)
        found["regret CRPS, MSE"] = lambda **k: oc.NoRegret(oc.CRPS(), oc.MSE(), **k)
    if name == "Binary":
        found["binary"] = lambda **k: oc.BinaryCalibration(**k)
        found["regret Brier, MSE"] = lambda **k: oc.NoRegret(oc.Brier(), oc.MSE(), **k)
    if name in LABELS:
        found["label"] = lambda **k: oc.LabelCalibration(**k)
    if name in ("Binary", *LABELS):
        found["calibeating"] = lambda **k: oc.payoffs.Calibeating(**k)
    if name in ("Binary", "Circle", "Box"):
        found["moments"] = lambda **k: oc.MomentMatching(2, **k)
    if name not in (*ORDERED, "Binary"):
        found["regret CRPS"] = lambda **k: oc.NoRegret(oc.CRPS(), **k)
        found["regret Brier"] = lambda **k: oc.NoRegret(oc.Brier(), **k)
    found["decision"] = lambda **k: oc.payoffs.DecisionCalibration(actions, worth, utility_range=span, **k)
    found["swap regret"] = lambda **k: oc.payoffs.SwapRegret(actions, worth, utility_range=span, **k)
    jumps: dict[str, Any] = {"jumps": [0.625 * UNIT[name]]} if name in ORDERED else {}
    found["recipe"] = lambda **k: oc.Recipe(witness(name), bound=8.0, **jumps, **k)
    found["recipe given p"] = lambda **k: oc.Recipe(witness(name), certainty(name), bound=8.0, **jumps, **k)
    return found


CONTEXTS: dict[str, Callable[[], Context]] = {
    "hour": lambda: oc.by("hour", values=range(24)),  # 24 groups in turn
    "site": lambda: oc.by("site", values=range(8)),  # 8 groups, each with half the rounds of the one before
    "day": lambda: oc.by("day", values="MTW"),
    "wind": lambda: oc.by("wind", edges=[0.3, 0.7]) * oc.by("day", values="MTW"),
    "error": lambda: oc.by_last_error() | oc.by("day", values="MTW"),
    "either": lambda: oc.by(lambda x: [x["wind"] > 0.2, x["wind"] < 0.8, x["day"] == "M"], size=3, bound=3.0),
}


def sums_on(name: str) -> list[str]:
    """Sums of payoffs on a space, some by groups."""
    if name in ORDERED:
        return [
            "quantiles by hour",
            "quantiles by hour + moments",
            "quantiles by hour + moments + regret CRPS, MSE",
            "quantiles by site + moments + regret CRPS, MSE",
            "intervals by wind + threshold by error + decision",
            "recipe by either + swap regret",
        ]
    if name == "Binary":
        return ["binary by hour + regret Brier, MSE", "binary by site + moments by error + swap regret by wind"]
    if name in LABELS:
        return ["label + calibeating", "label by site + regret Brier + decision by either"]
    return ["moments by hour + regret CRPS", "moments + swap regret by wind"]


def payoff_of(name: str, what: str) -> Payoff:
    """Payoff on a space by name: "default", or parts "moments" or "moments by day" with a plus sign between them."""
    if what == "default":
        return oc.Forecaster(SPACES[name]()).payoff
    total: Payoff | None = None
    for text in what.split(" + "):
        kind, _, context = text.partition(" by ")
        part = payoffs_on(name)[kind](**{"context": CONTEXTS[context]()} if context else {})
        total = part if total is None else total + part
    assert total is not None
    return total


# --- adversaries ---


class InGroup(Adversary):
    """Picks the outcome after which the round's group of the first part is largest, whatever the rest."""

    def outcome(self, recal: Any, forecast: Any, rng: np.random.Generator, round: RoundInputs | None = None) -> Any:
        """Return the outcome."""
        id = None if round is None else round.id
        found, ledger = candidates(recal, id), recal.engine.ledger
        start, size, groups, places, at, _ = ledger.layout.part_table[0].tolist()
        context = recal.engine.context_of(recal.rounds.pending[id].record)[at : at + groups]
        g = int(np.abs(context).argmax())
        sums = ledger.total[start + g * size : start + (g + 1) * size]
        own = payoffs_of(recal, found, id)[ledger.layout.place_list[places : places + size]]
        after = sums[:, None] + ledger.layout.scales[0] * context[g] * own
        return as_given(recal.space, found[int(np.einsum("ik,ik->k", after, after).argmax())])


def adversaries(name: str, what: str) -> dict[str, Callable[[], Adversary]]:
    """Adversaries of a payoff on a space by name."""
    found = adversaries_on(SPACES[name](), low=0.0, high=UNIT.get(name, 1.0))
    if " by " in what:
        found["in one group"] = InGroup
    if what == "default":
        found["two rounds"] = LookAhead
    if what in FUNCTIONS and name in ORDERED:
        found["fine"] = lambda: Greedy(points=33)
    return found


# --- games ---


@dataclass(frozen=True)
class Game:
    """Space, payoff and adversary, by name."""

    space: str
    what: str
    adversary: str

    @property
    def name(self) -> str:
        """Name of the game."""
        return ", ".join((self.space, self.what, self.adversary))

    def on(self) -> Space:
        """Make the space."""
        return SPACES[self.space]()

    def payoff(self) -> Payoff:
        """Make the payoff."""
        return payoff_of(self.space, self.what)

    def opponent(self) -> Adversary:
        """Make the adversary."""
        return adversaries(self.space, self.what)[self.adversary]()

    def experts(self) -> Callable[[int], Any]:
        """Base forecasts: two rounds of three a slowly moving one, else a random one."""
        space, rng = self.on(), np.random.default_rng(1)
        return lambda t: some_expert(space, rng) if t % 3 == 2 else moving_expert(space, t, rng)


def all_games() -> list[Game]:
    """Every payoff and sum on every space against every adversary."""
    payoffs = [(name, what) for name in SPACES for what in (*payoffs_on(name), "default", *sums_on(name))]
    return [Game(name, what, adversary) for name, what in payoffs for adversary in adversaries(name, what)]


def moving_expert(space: Space, t: int, rng: np.random.Generator) -> Any:
    """Base forecast that moves slowly over the space."""
    if isinstance(space, OrderedSpace):
        unit = 1.0 if isinstance(space, oc.Interval) else 10.0
        return oc.Normal(unit * (0.5 + 0.3 * math.sin(t / 20.0)), 0.1 * unit)
    k = np.arange(space.cells)
    mass = np.exp(1.5 * np.cos(2.0 * np.pi * (k / space.cells - t / 60.0))) + 0.02 * random_masses(space.cells, rng)
    return mass / mass.sum()


def features() -> Callable[[np.random.Generator], dict[str, Any]]:
    """Features of the rounds of a game: hours in turn, sites of which each has half the rounds of the one before."""
    rounds = count()

    def of_round(rng: np.random.Generator) -> dict[str, Any]:
        site = min(int(rng.geometric(0.5)) - 1, 7)
        return {
            "day": str(rng.choice(list("MTW"))),
            "wind": float(rng.random()),
            "hour": next(rounds) % 24,
            "site": site,
        }

    return of_round
