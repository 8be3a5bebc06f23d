"""sktime: a year of air travel ahead, month after month, with bands of the right coverage.

    python examples/sktime_airline.py [--quick]

A seasonal naive forecaster takes the same month of the year before, and knows nothing of growth: its own bands miss
many outcomes.  The wrapper replays it on the first years, and then corrects it with each month.
"""

import argparse
import logging
from collections.abc import Sequence

import numpy as np
import pandas as pd
from sktime.datasets import load_airline
from sktime.forecasting.naive import NaiveForecaster

import orcast as oc
from orcast.integrations.sktime import RecalibratedForecaster

STEPS = [1, 6, 12]
LEVELS = [0.05, 0.25, 0.5, 0.75, 0.95]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="the last two years instead of the last six")
    quick = parser.parse_args(arguments).quick
    months, first = (24, 48) if quick else (72, 24)

    passengers = load_airline()
    history, coming = passengers[:-months], passengers[-months:]
    naive = NaiveForecaster(sp=12)
    models = {
        "naive": naive.clone().fit(history, fh=STEPS),
        "orcast": RecalibratedForecaster(naive, low=0, initial_window=first).fit(history, fh=STEPS),
    }
    issued: dict[str, list[pd.DataFrame]] = {name: [] for name in models}
    for month in range(months):
        for name, model in models.items():
            issued[name].append(model.predict_quantiles(alpha=LEVELS))  # before the month
            model.update(coming[month : month + 1])  # after it

    print(f"{months} months of air travel, forecast by the same month of the year before\n")
    print(f"{'months ahead':>12}{'':>10}{'90% band covers':>16}{'below the median':>18}{'pinball loss':>14}")
    for i, step in enumerate(STEPS):
        for name, tables in issued.items():
            rows = pd.DataFrame([table.iloc[i] for table in tables])
            rows = rows[rows.index.isin(coming.index)]
            outcomes = coming[rows.index].to_numpy()
            quantiles = rows.to_numpy()
            inside = np.mean((outcomes >= quantiles[:, 0]) & (outcomes <= quantiles[:, -1]))
            below = np.mean(outcomes <= quantiles[:, 2])
            loss = oc.metrics.pinball(quantiles, outcomes, LEVELS).mean()
            print(f"{step:>12}{name:>10}{inside:>16.0%}{below:>18.0%}{loss:>14.2f}")


if __name__ == "__main__":
    logging.captureWarnings(True)  # sktime 1.2 warns of its next version whenever a forecaster is made
    main()
