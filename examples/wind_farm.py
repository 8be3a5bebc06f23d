"""A wind farm's commitments: how much power to sell for each hour of tomorrow, when too much and too little cost money.

    python examples/wind_farm.py [--quick] [--out FOLDER]

Each evening trees forecast the 24 hours of the next day.  They are recalibrated hour by hour, and the farm commits to
the quantile that its prices ask for.  The series is the wind power of Texas if ORCAST_DATA names a folder with it, else
that of a wind farm in France, which comes with the package.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import orcast as oc
from orcast.paper.experiments import data, learners

HOURS = range(24)
PRICES = [1, 2, 3, 9]  # what a unit too little costs, if one too much costs 1
SHOWN = 2


def cost(committed: np.ndarray, came: np.ndarray, price: float) -> np.ndarray:
    """What the commitments of each day cost."""
    short = came - committed
    return np.where(short > 0, price * short, -short).sum(axis=1)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="100 days instead of all")
    parser.add_argument("--out", type=Path, default=Path(), metavar="FOLDER", help="for the picture (default: here)")
    options = parser.parse_args(arguments)

    series = data.best("wind")
    days = learners.day_ahead(series, **({"days": 100, "trees": 8} if options.quick else {}))
    hourly = oc.by("hour", values=HOURS)  # calibrated in each hour of the day by itself
    payoff = (
        oc.QuantileCalibration(context=hourly)
        + oc.MomentMatching(2, context=hourly)
        + oc.NoRegret(oc.CRPS(), context=hourly)
    )
    recal = oc.Recalibrator(oc.Interval(series.low, series.high), payoff)
    before, after = (np.empty((len(PRICES), len(days), 24)) for _ in range(2))
    for day in range(len(days)):
        for hour in HOURS:
            expert = oc.Normal(days.mu[day, hour], days.sd[day, hour])
            p = recal.predict(expert, x={"hour": hour}, id=(day, hour))  # the evening before
            for k, price in enumerate(PRICES):
                level = price / (price + 1)
                before[k, day, hour] = np.clip(expert.quantile(level), series.low, series.high)
                after[k, day, hour] = oc.decisions.commitment(p, under=price, over=1)
        for hour in HOURS:
            recal.update(days.y[day, hour], id=(day, hour))  # the evening after

    print(f"{series.source}\n")
    print(f"Mean cost of a day, {len(days)} days, if a {series.unit} h too much costs 1 and one too little costs ...\n")
    print(f"{'':>14}" + "".join(f"{price:>10}" for price in PRICES))
    costs = {
        name: [cost(one, days.y, price) for one, price in zip(each, PRICES, strict=True)]
        for name, each in {"as given": before, "orcast": after}.items()
    }
    for name, each in costs.items():
        print(f"{name:>14}" + "".join(f"{one.mean():>10,.0f}" for one in each))
    changes = [b.mean() / a.mean() - 1 for a, b in zip(*costs.values(), strict=True)]
    print(f"{'change':>14}" + "".join(f"{change:>+10.1%}" for change in changes))

    figure, axes = plt.subplots(figsize=(8, 4.5), layout="constrained")
    for price, a, b in zip(PRICES, *costs.values(), strict=True):
        axes.plot(np.arange(1, len(days) + 1), np.cumsum(a - b) / a.mean(), label=f"{price} : 1")
    axes.axhline(0, color="0.5", lw=1)
    axes.set_title("Saved so far with recalibrated forecasts, in mean costs of a day", loc="left")
    axes.set_xlabel("day")
    axes.set_ylabel("days' worth of cost")
    axes.legend(title="too little : too much", frameon=False)
    figure.savefig(options.out / "wind_farm.png", dpi=150)
    plt.close(figure)
    print(f"\npicture: {options.out / 'wind_farm.png'}")
    print(f"mean cost of a day at {SHOWN} : 1: {changes[PRICES.index(SHOWN)]:+.1%} with orcast, over {len(days)} days")


if __name__ == "__main__":
    main()
