"""An unbounded series: the price of oil, day after day for 32 years, with no bounds given.

    python examples/oil_price.py [--quick] [--out FOLDER]

Tomorrow's price is today's, with normal errors as large as those of the last 250 days: what a simple risk report
assumes.  Calm and wild years take turns and large moves are not rare, so its outermost quantiles fail.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from river.drift import datasets

import orcast as oc

LEVELS = [0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99]
YEAR = 250  # trading days


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="the first 2,000 days instead of all")
    parser.add_argument("--out", type=Path, default=Path(), metavar="FOLDER", help="for the picture (default: here)")
    options = parser.parse_args(arguments)

    history = list(datasets.BrentSpotPrice())[: 2000 if options.quick else None]
    days, prices = (np.array(each) for each in zip(*((x["day"], price) for x, price in history), strict=True))
    changes = np.diff(prices)
    recal = oc.Recalibrator()  # any number
    before, after = [], []
    for today in range(YEAR, len(prices) - 1):
        expert = oc.Normal(prices[today], changes[today - YEAR : today].std())
        before.append(expert.quantile(LEVELS))
        after.append(recal.predict(expert).quantile(LEVELS))  # today
        recal.update(prices[today + 1])  # a day later

    y, days = prices[YEAR + 1 :], days[YEAR + 1 :]
    said = {"as given": np.array(before), "orcast": np.array(after)}
    print(f"Brent crude oil, {y.size:,} days from {days[0]:%Y} to {days[-1]:%Y}: share of prices below each quantile\n")
    print(f"{'':>10}" + "".join(f"{level:>8.0%}" for level in LEVELS) + f"{'pinball loss':>16}")
    gaps = []
    for name, rows in said.items():
        shares = (y[:, None] <= rows).mean(axis=0)
        gaps.append(np.abs(shares - LEVELS).max())
        loss = oc.metrics.pinball(rows, y, LEVELS).mean()
        print(f"{name:>10}" + "".join(f"{share:>8.1%}" for share in shares) + f"{loss:>16.4f}")
    print(f"\n{recal.guarantee}")

    evaluation = oc.Evaluation.of(before, y, after=after, levels=LEVELS, time=days.astype("datetime64[D]"))
    oc.plots.fan(evaluation, last=120).save(options.out / "oil_price.html")
    print(f"picture: {options.out / 'oil_price.html'}")
    print(f"largest gap between a level and its share: {gaps[0]:.2%} as given, {gaps[1]:.2%} with orcast")


if __name__ == "__main__":
    main()
