"""River: prediction intervals for a market whose volatility drifts, with River's jackknife and with orcast.

    python examples/river_drift.py [--quick]

Both wrap the same model and see each day's returns of ten stocks before they forecast the next day's mean return.
"""

import argparse

from river import conf, datasets, linear_model, preprocessing, stats

from orcast.integrations.river import Recalibrated

LEVEL = 0.9
WARM_UP = 100  # days before anything is counted
PERIOD = 126  # trading days of half a year


def market_model():
    return preprocessing.StandardScaler() | linear_model.LinearRegression(intercept_lr=0.1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="two years instead of five")
    quick = parser.parse_args().quick

    models = {
        "jackknife": conf.RegressionJackknife(market_model(), confidence_level=LEVEL),
        "orcast": Recalibrated(market_model(), confidence_level=LEVEL),
    }
    periods = []
    days = 480 if quick else 1257
    for day, (x, y) in enumerate(datasets.SP500Stocks().take(days)):
        if day >= WARM_UP and (day - WARM_UP) % PERIOD == 0:
            periods.append({name: (stats.Mean(), stats.Mean()) for name in models})
        for name, model in models.items():
            interval = model.predict_one(x, with_interval=True)  # before the outcome
            if periods:
                held, width = periods[-1][name]
                held.update(y in interval)
                width.update(interval.width)
            model.learn_one(x, y)  # after it

    print(f"Share of days within the {LEVEL:.0%} interval, and its mean width in %, by half-year\n")
    print(f"{'':>9}{'days':>6}" + "".join(f"{name:>12}{'width':>8}" for name in models))
    error = dict.fromkeys(models, 0.0)
    for number, period in enumerate(periods, start=1):
        count = period["orcast"][0].n
        cells = (f"{held.get():12.1%}{width.get():8.2f}" for held, width in period.values())
        print(f"{number:>9}{count:>6.0f}" + "".join(cells))
        for name, (held, _) in period.items():
            error[name] += count * abs(held.get() - LEVEL) / (days - WARM_UP)
    print(f"{'off by':>9}{'':>6}" + f"{'':8}".join(f"{each:12.1%}" for each in error.values()))
    print(f"\n{models['orcast'].guarantee}")


if __name__ == "__main__":
    main()
