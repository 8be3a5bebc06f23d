"""Several experts: one forecast made of three, better than the best of them.

    python examples/several_experts.py [--quick] [--out FOLDER]

Nobody knows beforehand which will do best: the power of the last hour, a regression on the last 24 hours, or the last
hour plus what changed in this hour of yesterday.  Each takes the errors it made lately for its spread.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import norm

import orcast as oc

LEVELS = oc.metrics.LEVELS
FIRST = 224  # hours before anything is counted


def points(values: np.ndarray) -> dict[str, np.ndarray]:
    """What each expert says, hour by hour."""
    last, change = np.full((2, values.size), np.nan)
    last[1:] = values[:-1]
    change[25:] = values[24:-1] + values[1:-24] - values[:-25]
    return {
        "last hour": last,
        "regression": oc.datasets.recursive_least_squares(values)[0],
        "yesterday's change": change,
    }


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="1,000 hours instead of 8,000")
    parser.add_argument("--out", type=Path, default=Path(), metavar="FOLDER", help="for the picture (default: here)")
    options = parser.parse_args(arguments)

    series = oc.datasets.load("wind")  # hourly, comes with the package
    hours = slice(FIRST, FIRST + (1000 if options.quick else 8000))
    values, y = series.values[: hours.stop], series.values[hours]
    said = {}
    for name, point in points(values).items():
        sd = oc.datasets.residual_scale(values, point)
        quantiles = point[hours, None] + sd[hours, None] * norm.ppf(LEVELS)
        said[name] = np.clip(quantiles, series.low, series.high)

    recal = oc.Recalibrator(oc.Interval(series.low, series.high))
    ours = recal.run(experts=said, outcomes=y, levels=LEVELS)  # the same as predict(experts={...}) and update

    print(f"{series.source}\n{y.size:,} hours, each forecast an hour ahead\n")
    print(f"{'':>20}{'pinball loss':>14}{'QCE':>10}{'90% band holds':>16}")
    losses = {}
    for name, rows in {**said, "orcast": ours}.items():
        losses[name] = oc.metrics.pinball(rows, y)
        error = oc.metrics.qce(rows, y, low=series.low, high=series.high)
        low, high = (rows[:, np.abs(LEVELS - level).argmin()] for level in (0.05, 0.95))
        held = np.mean((low <= y) & (y <= high))
        print(f"{name:>20}{losses[name].mean():>14.2f}{error:>10.4f}{held:>16.1%}")
    print(f"\n{recal.guarantee}")

    figure, axes = plt.subplots(figsize=(8, 4.5), layout="constrained")
    for name in said:
        axes.plot(np.cumsum(losses[name] - losses["orcast"]) / 1000, label=name)
    axes.axhline(0, color="0.5", lw=1)
    axes.set_ylim(top=1.15 * np.sum(losses["regression"] - losses["orcast"]) / 1000)
    axes.set_title("What each expert has lost so far, more than orcast (below zero: less)", loc="left")
    axes.set_xlabel("hour")
    axes.set_ylabel(f"summed pinball loss, 1,000 {series.unit}")
    axes.legend(frameon=False)
    figure.savefig(options.out / "several_experts.png", dpi=150)
    plt.close(figure)
    best = min(said, key=lambda name: losses[name].mean())
    print(f"\npicture: {options.out / 'several_experts.png'}")
    print(f"loss against that of {best}, the best expert: {losses['orcast'].mean() / losses[best].mean():.3f}")


if __name__ == "__main__":
    main()
