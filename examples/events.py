"""Probabilities of an event: will a wind farm deliver anything in the next hour?

    python examples/events.py [--quick] [--out FOLDER]

Least squares forecast the power of the next hour, and with it the chance that it is above 5% of what the farm can
deliver.  Power is not normal, so the chances are wrong; recalibrated ones are not.
"""

import argparse
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
from scipy.stats import norm

import orcast as oc

SHARE = 0.05
EDGES = [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="1,000 hours instead of 3,000")
    parser.add_argument("--out", type=Path, default=Path(), metavar="FOLDER", help="for the picture (default: here)")
    options = parser.parse_args(arguments)

    series = oc.datasets.load("wind")  # hourly, comes with the package
    stream = oc.datasets.stream(series, "rls")
    hours = slice(1000 if options.quick else 3000)
    threshold = SHARE * series.high
    before = norm.sf(threshold, stream.mu[hours], stream.sd[hours])
    happened = (stream.y[hours] > threshold).astype(int)

    recal = oc.Recalibrator(oc.Binary())
    after = []
    for chance, y in zip(before, happened, strict=True):
        after.append(float(recal.predict(chance)))  # before the hour
        recal.update(y)  # after it
    said = {"as given": before, "orcast": np.array(after)}

    print(f"Power above {threshold:.0f} {series.unit} in {happened.mean():.0%} of {happened.size:,} hours.\n")
    print("When the chance was said to be ... it happened in ... of the hours\n")
    columns = [f"{low:.0%}-{high:.0%}" for low, high in pairwise(EDGES)]
    print(f"{'':>10}" + "".join(f"{column:>10}" for column in columns) + f"{'Brier':>10}")
    for name, chances in said.items():
        groups = np.digitize(chances, EDGES[1:-1])
        rates = [happened[groups == k].mean() if (groups == k).any() else np.nan for k in range(len(columns))]
        score = oc.metrics.brier(chances, happened).mean()
        print(f"{name:>10}" + "".join(f"{rate:>10.0%}" for rate in rates) + f"{score:>10.4f}")

    evaluation = oc.Evaluation.of(before, happened, after=said["orcast"])
    oc.plots.reliability(evaluation).save(options.out / "events.html")
    errors = [oc.metrics.ece(chances, happened) for chances in said.values()]
    print(f"\npicture: {options.out / 'events.html'}")
    print(f"calibration error (ECE): {errors[0]:.4f} as given, {errors[1]:.4f} with orcast")


if __name__ == "__main__":
    main()
