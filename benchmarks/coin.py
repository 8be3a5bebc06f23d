"""The coin: what it promises against a Nature that hunts hard indicators, and what it costs on real streams."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import orcast as oc
from benchmarks.results import Line, Remark, as_text, geometric_mean
from benchmarks.streams import play
from benchmarks.yardstick import BINARY, VARIABLE, read, stream_files
from orcast.metrics import LEVELS, pinball

TITLE = "Coin: hard counts against a Nature that sees the forecast, and the cost in pinball loss"
ROUNDS, QUICK_ROUNDS = (250, 1000, 5000), (250,)
RUNS, QUICK_RUNS = 20, 3
MOST_COST = 0.002
SEEDS = 5

Vector = NDArray[np.float64]


class HardGreedy:
    """She sees cells and plain quantiles, not the coin, and picks the very point after which the count is worst.

    Between two neighbouring quantiles the indicators are the same, so she looks at each quantile and just beyond it.
    """

    def __init__(self, seed: int) -> None:
        self.sums = np.zeros(LEVELS.size)
        self.rng = np.random.default_rng(seed)

    def __call__(self, p: oc.Forecast) -> float:
        q = oc.Forecast(p.left, p.right, p.mass).quantile(LEVELS)
        points = np.unique(np.clip(np.concatenate((q, np.nextafter(q, np.inf))), 0.0, 1.0))
        after = self.sums + (points[:, None] <= q) - LEVELS
        worst = (after * after).sum(axis=1)
        return float(self.rng.choice(points[worst >= worst.max() * (1.0 - 1e-12)]))

    def see(self, p: oc.Forecast, y: float) -> None:
        """What was reported is seen with the outcome."""
        self.sums += (y <= p.quantile(LEVELS)) - LEVELS


def duel(rounds: int, seed: int, *, coin: bool) -> tuple[oc.Guarantee, float]:
    """Quantile calibration around a good expert; the guarantee, and the QCE of what an observer has counted."""
    game = oc.Recalibrator(oc.Interval(0.0, 1.0), oc.QuantileCalibration(), randomised=seed if coin else None)
    nature = HardGreedy(seed)
    for t in range(rounds):
        p = game.predict(oc.Normal(0.5 + 0.2 * np.sin(t / 7.0), 0.1))
        y = nature(p)
        nature.see(p, y)
        game.update(y)
    return game.guarantee, float(((nature.sums / rounds) ** 2).sum())


def attack(rounds: int, runs: int) -> Iterator[Line]:
    """How often the count stays within its bound, of so many runs."""
    ratios, counts, bounds, held = [], [], [], 1.0
    for seed in range(runs):
        guarantee, seen = duel(rounds, seed, coin=True)
        counted = guarantee.counted
        assert counted is not None
        assert counted.bound is not None
        assert abs(counted.qce - seen) < 1e-9
        ratios.append(counted.qce / counted.bound)
        counts.append(counted.qce)
        bounds.append(counted.bound)
        held = min(held, guarantee.held)
    without, bare = duel(rounds, 0, coin=False)
    note = f"counted QCE {np.mean(counts):.4f}, bound {np.mean(bounds):.4f}, held {held:.1%}"
    note += f"; without the coin counted {bare:.3f}, booked {without.parts['quantile'] ** 2:.4f}"
    name = f"hard-greedy, {rounds:,} rounds"
    yield Line(name, "runs within the bound", float(np.mean(np.array(ratios) <= 1.0)), 1.0, "=", form=".0%", note=note)
    yield Line(name, "counted / bound, largest", max(ratios), 1.0, form=".3f")


def cost(quick: bool = False) -> Iterator[Line | Remark]:
    """Pinball loss with the coin over that without, on the streams of the yardstick; each the mean over some seeds."""
    place = os.environ.get(VARIABLE)
    files = [file for file in stream_files(Path(place)) if not file.name.startswith(BINARY)] if place else []
    if not files:
        yield Remark(f"cost skipped: {VARIABLE} names no folder with streams")
        return
    ratios = []
    for file in files:
        case = read(file)
        before = float(pinball(play(case, case.reveal)[0], case.y).mean())
        seeds = range(1 if quick else SEEDS)
        after = [float(pinball(play(case, case.reveal, randomised=seed)[0], case.y).mean()) for seed in seeds]
        ratios.append(float(np.mean(after)) / before)
        yield Line(case.name, "pinball with the coin / without", ratios[-1], form=".5f")
    yield Line("geometric mean", "cost of the coin in pinball", geometric_mean(ratios) - 1.0, MOST_COST, form=".3%")
    yield Line("worst stream", "cost of the coin in pinball", max(ratios) - 1.0, form=".3%")


def measure(quick: bool = False) -> Iterator[Line | Remark]:
    """The attack, then the cost."""
    for rounds in QUICK_ROUNDS if quick else ROUNDS:
        yield from attack(rounds, QUICK_RUNS if quick else RUNS)
    yield from cost(quick)


def main(arguments: list[str] | None = None) -> None:
    """Print what is measured."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.coin", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds, runs and seeds")
    parser.add_argument("--cost", action="store_true", help="the cost alone")
    options = parser.parse_args(arguments)
    print(TITLE)
    for line in cost(options.quick) if options.cost else measure(options.quick):
        print(as_text(line), flush=True)


if __name__ == "__main__":
    main()
