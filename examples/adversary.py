"""An adversary sees each forecast before choosing the outcome: which method stays calibrated?

    python examples/adversary.py [--quick] [--out FOLDER]

The forecasts are those of a regression on the hourly humidity at JFK airport.  The adversary chooses the cell of the
forecast after which the quantiles are most wrong in sum, and draws the outcome inside it.  Each method meets its own
adversary: the base forecast, adaptive conformal inference (ACI) and orcast.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import orcast as oc
from orcast.testing.adversaries import CellGreedy

LEVELS = oc.metrics.LEVELS
BOUND = float(np.sum(LEVELS**2))  # the most that squared errors of all levels can sum up to


class ACI:
    """Adaptive conformal inference at each level: the base forecast is evaluated at levels that follow the errors."""

    def __init__(self, rate: float) -> None:
        self.rate, self.alpha = rate, LEVELS.copy()

    def predict(self, base: oc.Normal) -> oc.Forecast:
        inside = np.clip(self.alpha, 1e-9, 1 - 1e-9)
        found = np.where(self.alpha <= 0, 0, np.where(self.alpha >= 1, 100, base.quantile(inside)))
        self.quantiles = np.clip(found, 0, 100)
        edges = np.concatenate(([0.0], np.sort(self.quantiles), [100.0]))
        return oc.Forecast(edges[:-1], edges[1:], np.diff(LEVELS, prepend=0, append=1))

    def update(self, y: float) -> None:
        self.alpha = self.alpha + self.rate * (LEVELS - (y <= self.quantiles))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="500 rounds instead of 3,000")
    parser.add_argument("--out", type=Path, default=Path(), metavar="FOLDER", help="for the picture (default: here)")
    options = parser.parse_args(arguments)

    stream = oc.datasets.stream(oc.datasets.load("humidity"), "rls")
    rounds = 500 if options.quick else 3000
    recal = oc.Recalibrator(oc.Interval(0, 100))
    methods = {
        "base forecast": ACI(rate=0.0),
        "conformal (ACI)": ACI(rate=0.005),
        "orcast": recal,
    }
    errors = {name: np.empty(rounds) for name in methods}
    promised, kept = np.empty(rounds), np.empty(rounds, dtype=bool)
    for name, method in methods.items():
        adversary, rng = CellGreedy(), np.random.default_rng(0)
        for t in range(rounds):
            p = method.predict(oc.Normal(stream.mu[t], stream.sd[t]))
            method.update(adversary.outcome(method, p, rng))
            errors[name][t] = np.sqrt(adversary.qce / BOUND)
            if name == "orcast":
                promised[t] = p.certificate.promised  # known before the outcome
                kept[t] = recal.guarantee.miscalibration <= promised[t]

    print("Miscalibration of the quantiles (1: as wrong as can be) after ... rounds\n")
    shown = [t for t in (100, 200, 500, 1000, 2000, 3000) if t <= rounds]
    print(f"{'':>16}" + "".join(f"{t:>9,}" for t in shown))
    for name, each in {**errors, "promised": promised}.items():
        print(f"{name:>16}" + "".join(f"{each[t - 1]:>9.3f}" for t in shown))

    figure, axes = plt.subplots(figsize=(8, 5), layout="constrained")
    colors = ["#7a7a7a", "#009E73", "#0072B2"]
    for (name, each), color in zip(errors.items(), colors, strict=True):
        axes.loglog(np.arange(1, rounds + 1), each, color=color, lw=3 if name == "orcast" else 1.4, label=name)
    axes.loglog(np.arange(1, rounds + 1), promised, "k--", lw=1.2, label="promised by orcast")
    axes.set_xlim(10, rounds)
    axes.set_ylim(0.5 * promised[-1], 1.3)
    axes.set_title("Miscalibration against an adversary who sees each forecast", loc="left")
    axes.set_xlabel("round")
    axes.set_ylabel("miscalibration of the quantiles (1: all wrong)")
    axes.legend(frameon=False)
    figure.savefig(options.out / "adversary.png", dpi=150)
    plt.close(figure)
    print(f"\npicture: {options.out / 'adversary.png'}")
    print(f"{kept.mean():.1%} of {rounds:,} rounds below the promise; at last {recal.guarantee.miscalibration:.4f}")


if __name__ == "__main__":
    main()
