"""River: prediction intervals for a market whose volatility drifts, with River's jackknife and with orcast.

    python examples/river_drift.py [--quick] [--out FOLDER]

Both wrap the same model and see each day's returns of ten stocks before they forecast the next day's mean return.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from river import conf, datasets, linear_model, preprocessing

from orcast.integrations.river import RiverRegressor

LEVEL = 0.9
WARM_UP = 100  # days before anything is counted
PERIOD = 126  # trading days of half a year


def market_model():
    return preprocessing.StandardScaler() | linear_model.LinearRegression(intercept_lr=0.1)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="two years around the change instead of five")
    parser.add_argument("--out", type=Path, default=Path(), metavar="FOLDER", help="for the picture (default: here)")
    options = parser.parse_args(arguments)

    models = {
        "jackknife": conf.RegressionJackknife(market_model(), confidence_level=LEVEL),
        "orcast": RiverRegressor(market_model(), confidence_level=LEVEL),
    }
    held = {name: [] for name in models}
    width = {name: [] for name in models}
    for day, (x, y) in enumerate(list(datasets.SP500Stocks())[slice(400, 880) if options.quick else slice(None)]):
        for name, model in models.items():
            interval = model.predict_one(x, with_interval=True)  # before the outcome
            if day >= WARM_UP:
                held[name].append(y in interval)
                width[name].append(interval.width)
            model.learn_one(x, y)  # after it

    print(f"Share of days within the {LEVEL:.0%} interval, and its mean width in %, by half-year\n")
    print(f"{'':>9}{'days':>6}" + "".join(f"{name:>12}{'width':>8}" for name in models))
    days = len(held["orcast"])
    error = dict.fromkeys(models, 0.0)
    for number, start in enumerate(range(0, days, PERIOD), start=1):
        part = slice(start, min(start + PERIOD, days))
        count = part.stop - part.start
        cells = (f"{np.mean(held[name][part]):12.1%}{np.mean(width[name][part]):8.2f}" for name in models)
        print(f"{number:>9}{count:>6}" + "".join(cells))
        for name in models:
            error[name] += count / days * abs(np.mean(held[name][part]) - LEVEL)
    print(f"{'off by':>9}{'':>6}" + f"{'':8}".join(f"{each:12.1%}" for each in error.values()))

    figure, axes = plt.subplots(figsize=(8, 4.5), layout="constrained")
    looks = {"jackknife": {"color": "#D55E00", "ls": "--"}, "orcast": {"color": "#0072B2"}}
    for name, look in looks.items():
        share = np.convolve(held[name], np.full(PERIOD, 1 / PERIOD), mode="valid")
        axes.plot(np.arange(PERIOD, days + 1), share, label=name, **look)
    axes.axhline(LEVEL, color="0.3", ls=":")
    axes.set_title(f"Share of the last {PERIOD} days in the {LEVEL:.0%} interval", loc="left")
    axes.set_xlabel("trading day")
    axes.yaxis.set_major_formatter("{x:.0%}")
    axes.legend(frameon=False)
    figure.savefig(options.out / "river_drift.png", dpi=150)
    plt.close(figure)
    print(f"\npicture: {options.out / 'river_drift.png'}")
    print(models["orcast"].guarantee)


if __name__ == "__main__":
    main()
