"""A wind farm's commitments: how much power to sell for each hour of tomorrow, when too much and too little cost money.

    python examples/wind_farm.py [--quick] [--out FOLDER]

Each evening bagged trees forecast the 24 hours of the next day.  They are recalibrated hour by hour, and the farm
commits to the quantile that its prices ask for.  The series is the power of a wind farm in France.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import BaggingRegressor
from sklearn.tree import DecisionTreeRegressor

import orcast as oc

HOURS = range(24)
PRICES = [1, 2, 3, 9]  # what a unit too little costs, if one too much costs 1
SHOWN = 2
WARMUP = 60  # days before the first forecast that is used


def day_ahead(values: np.ndarray, trees: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Means, deviations and outcomes after the warm-up, days by hours: trees are fitted to the days before each day."""
    y = values[: values.size // 24 * 24].reshape(-1, 24)
    mu = np.full(y.shape, np.nan)
    for day in range(WARMUP // 2, len(y)):
        model = BaggingRegressor(DecisionTreeRegressor(min_samples_leaf=3), n_estimators=trees, random_state=0)
        mu[day] = model.fit(y[: day - 1], y[1:day]).predict(y[day - 1 : day])[0]
    sd = np.stack([oc.datasets.residual_scale(y[:, hour], mu[:, hour]) for hour in HOURS], axis=1)
    return mu[WARMUP:], sd[WARMUP:], y[WARMUP:]


def cost(committed: np.ndarray, came: np.ndarray, price: float) -> np.ndarray:
    """What the commitments of each day cost."""
    short = came - committed
    return np.where(short > 0, price * short, -short).sum(axis=1)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="100 days instead of all")
    parser.add_argument("--out", type=Path, default=Path(), metavar="FOLDER", help="for the picture (default: here)")
    options = parser.parse_args(arguments)

    series = oc.datasets.load("wind")
    days = WARMUP + 100 if options.quick else None
    mu, sd, y = day_ahead(series.values[: days and 24 * days], trees=8 if options.quick else 20)
    hourly = oc.by("hour", values=HOURS)  # calibrated in each hour of the day by itself
    payoff = (
        oc.QuantileCalibration(context=hourly)
        + oc.MomentMatching(2, context=hourly)
        + oc.NoRegret(oc.CRPS(), context=hourly)
    )
    recal = oc.Recalibrator(oc.Interval(series.low, series.high), payoff)
    before, after = (np.empty((len(PRICES), *y.shape)) for _ in range(2))
    for day in range(len(y)):
        for hour in HOURS:
            expert = oc.Normal(mu[day, hour], sd[day, hour])
            p = recal.predict(expert, x={"hour": hour}, id=(day, hour))  # the evening before
            for k, price in enumerate(PRICES):
                level = price / (price + 1)
                before[k, day, hour] = np.clip(expert.quantile(level), series.low, series.high)
                after[k, day, hour] = oc.decisions.commitment(p, under=price, over=1)
        for hour in HOURS:
            recal.update(y[day, hour], id=(day, hour))  # the evening after

    print(f"{series.source}\n")
    print(f"Mean cost of a day, {len(y)} days, if a {series.unit} h too much costs 1 and one too little costs ...\n")
    print(f"{'':>14}" + "".join(f"{price:>10}" for price in PRICES))
    costs = {
        name: [cost(one, y, price) for one, price in zip(each, PRICES, strict=True)]
        for name, each in {"as given": before, "orcast": after}.items()
    }
    for name, each in costs.items():
        print(f"{name:>14}" + "".join(f"{one.mean():>10,.0f}" for one in each))
    changes = [b.mean() / a.mean() - 1 for a, b in zip(*costs.values(), strict=True)]
    print(f"{'change':>14}" + "".join(f"{change:>+10.1%}" for change in changes))

    figure, axes = plt.subplots(figsize=(8, 4.5), layout="constrained")
    for price, a, b in zip(PRICES, *costs.values(), strict=True):
        axes.plot(np.arange(1, len(y) + 1), np.cumsum(a - b) / a.mean(), label=f"{price} : 1")
    axes.axhline(0, color="0.5", lw=1)
    axes.set_title("Saved so far with recalibrated forecasts, in mean costs of a day", loc="left")
    axes.set_xlabel("day")
    axes.set_ylabel("days' worth of cost")
    axes.legend(title="too little : too much", frameon=False)
    figure.savefig(options.out / "wind_farm.png", dpi=150)
    plt.close(figure)
    print(f"\npicture: {options.out / 'wind_farm.png'}")
    print(f"mean cost of a day at {SHOWN} : 1: {changes[PRICES.index(SHOWN)]:+.1%} with orcast, over {len(y)} days")


if __name__ == "__main__":
    main()
