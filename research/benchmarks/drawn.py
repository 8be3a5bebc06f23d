"""Drawn probabilities and actions: errors under attack, price on real streams, regret for any proper score."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

import orcast as oc
from research.benchmarks.lines import Line, Lines, Remark
from research.benchmarks.yardstick import folder, one_step
from tests.adversaries import Greedy

TITLE = "Random draws"
ROUNDS, SEEDS, PRICE_SEEDS = 1000, 200, 20
QUICK_ROUNDS, QUICK_SEEDS = 200, 10
CUT, BINS, SCORES = 7 / 15, 15, 20
CLIP = 0.01
Array = NDArray[np.float64]
Score = Callable[[Array, Array], Array]
GREEDY = Greedy(product=True)


def below_cut(recal: oc.Recalibrator, p: object) -> int:
    """The event comes if the probability before the draw is below CUT."""
    undrawn = p.undrawn  # type: ignore[attr-defined]
    return int((float(p) if undrawn is None else undrawn[1]) < CUT)  # type: ignore[arg-type]


def greedy(recal: oc.Recalibrator, p: object) -> int:
    """Outcome with the largest <S, payoff>."""
    return int(GREEDY.outcome(recal, p, np.random.default_rng(0)))


def attacked(
    outcome: Callable[[oc.Recalibrator, object], int], seed: int | None, rounds: int
) -> tuple[oc.Recalibrator, Array, Array]:
    """Recalibrator, published probabilities and outcomes; the base forecast is 0.5."""
    recal, pairs = oc.Recalibrator(oc.Binary(), randomised=seed), []
    for _ in range(rounds):
        p = recal.predict(0.5)
        pairs.append((float(p), outcome(recal, p)))
        recal.update(pairs[-1][1])
    p, y = np.array(pairs).T
    return recal, p, y


def swap_regret(seed: int, rounds: int) -> tuple[float, float]:
    """Empirical swap regret of drawn actions on three labels, and its bound; the least likely action is right."""
    labels = ["a", "b", "c"]
    payoff = oc.payoffs.SwapRegret(labels, lambda action, y: float(action == y), utility_range=1.0)
    recal = oc.Recalibrator(oc.Labels(labels), payoff, randomised=seed)
    for _ in range(rounds):
        p = recal.predict([1 / 3] * 3)
        recal.decide(p)
        recal.update(labels[int(p.mass.argmin())])
    found = recal.guarantee.empirical
    assert found is not None
    return found.errors["swap regret"], found.bounds["swap regret"]


def v_shaped(nodes: Array, weights: Array) -> Score:
    """Mixture of the losses 1{p > v} (v - y), of those who act if p > v; each takes values of width 1."""

    def loss(p: Array, y: Array) -> Array:
        return ((p[:, None] > nodes) * (nodes - y[:, None])) @ weights

    return loss


def proper_scores() -> dict[str, Score]:
    """Losses of width at most 1."""
    rng, log = np.random.default_rng(0), math.log(1.0 / CLIP)
    found: dict[str, Score] = {
        "Brier": lambda p, y: (p - y) ** 2,
        "log, clipped": lambda p, y: -np.log(np.clip(np.where(y > 0, p, 1.0 - p), CLIP, 1.0 - CLIP)) / log,
        "spherical": lambda p, y: -np.where(y > 0, p, 1.0 - p) / np.hypot(p, 1.0 - p),
    }
    for i in range(SCORES):
        size = int(rng.integers(1, 6))
        found[f"random {i}"] = v_shaped(rng.random(size), rng.dirichlet(np.ones(size)))
    return found


def worst_regret(p: Array, y: Array) -> tuple[float, str]:
    """Largest mean excess loss over the best constant forecast, and its score."""
    constants = np.linspace(0.0, 1.0, 1001)
    regrets = {}
    for name, score in proper_scores().items():
        share, ones, zeros = y.mean(), np.ones(1001), np.zeros(1001)
        best = (share * score(constants, ones) + (1.0 - share) * score(constants, zeros)).min()
        regrets[name] = float(score(p, y).mean() - best)
    name = max(regrets, key=lambda key: regrets[key])
    return regrets[name], name


def measure(quick: bool = False) -> Lines:
    """Attacks, then prices."""
    rounds, seeds = (QUICK_ROUNDS, QUICK_SEEDS) if quick else (ROUNDS, SEEDS)
    for name, outcome in (("event if p < 7/15", below_cut), ("greedy", greedy)):
        _, p, y = attacked(outcome, None, rounds)
        yield Line(name, f"ECE, {BINS} bins, no draw", oc.metrics.ece(p, y, bins=BINS))
        found = [attacked(outcome, seed, rounds) for seed in range(seeds)]
        worst = max(oc.metrics.ece(p, y, bins=BINS) for _, p, y in found)
        yield Line(name, f"ECE, {BINS} bins, worst of {seeds} seeds", worst, 0.12)
        within, ratio, regret = 0, 0.0, (-math.inf, "")
        for recal, p, y in found:
            empirical = recal.guarantee.empirical
            assert empirical is not None
            within += all(empirical.errors[key] <= bound for key, bound in empirical.bounds.items())
            own = worst_regret(p, y)
            regret, ratio = max(regret, own), max(ratio, own[0] / (2.0 * empirical.errors["ece"]))
        yield Line(name, "seeds within both bounds", within, 0.95 * seeds, ">=", ".0f", f"of {seeds}")
        yield Line(name, "regret, worst proper score", regret[0], note=f"{regret[1]}, of {3 + SCORES}")
        yield Line(name, "the same / (2 ECE)", ratio, 1.0, note="Theorem 11")
    pairs = [swap_regret(seed, rounds) for seed in range(max(seeds // 20, 2))]
    yield Line("3 labels, decide()", "swap regret / range, worst", max(pair[0] for pair in pairs), 0.15)
    within = sum(found <= bound for found, bound in pairs)
    yield Line(
        "3 labels, decide()", "seeds within the bound", within, 0.95 * len(pairs), ">=", ".0f", f"of {len(pairs)}"
    )
    yield from prices()


def prices() -> Lines:
    """Brier score with the draw, relative to that without, over seeds."""
    place = folder()
    if place is None:
        yield Remark("no folder of streams: prices are left out")
        return
    for stream in one_step(place, binary=True):
        expert, y = next(iter(stream.experts.values())).ravel(), stream.y
        plain = oc.metrics.brier(oc.Recalibrator(oc.Binary()).run(expert, y), y).mean()
        drawn = []
        for seed in range(PRICE_SEEDS):
            p = oc.Recalibrator(oc.Binary(), randomised=seed).run(expert, y)
            drawn.append(oc.metrics.brier(p, y).mean() / plain - 1.0)
        yield Line(stream.name, "price of the draw, Brier", float(np.mean(drawn)), 0.005, form=".2%")
