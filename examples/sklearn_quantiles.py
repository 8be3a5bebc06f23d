"""scikit-learn: quantiles of gradient boosting that stay calibrated after the fit, hour after hour.

    python examples/sklearn_quantiles.py [--quick] [--out FOLDER]

The humidity of each hour is forecast from the hours before it.  The trees are fitted to the first weeks of the year and
then left alone; the outcome of each hour is passed to ``partial_fit``, which corrects the hours to come.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from sklearn.ensemble import GradientBoostingRegressor

import orcast as oc
from orcast.integrations.sklearn import RecalibratedRegressor

LEVELS = [0.05, 0.25, 0.5, 0.75, 0.95]
FITTED = 50 * 24


def lagged(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The hour of the day, the outcomes 1, 2, 3 and 24 hours before, and the outcome."""
    hour = np.arange(24, len(values)) % 24
    before = [values[24 - lag : len(values) - lag] for lag in (1, 2, 3, 24)]
    return np.column_stack([hour, *before]), values[24:]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="five days instead of fifty")
    parser.add_argument("--out", type=Path, default=Path(), metavar="FOLDER", help="for the picture (default: here)")
    options = parser.parse_args(arguments)
    hours = 120 if options.quick else 1200

    X, y = lagged(oc.datasets.load("humidity").values)
    trees = GradientBoostingRegressor(loss="quantile", n_estimators=30, random_state=0)  # one is fitted for each level
    model = RecalibratedRegressor(trees, low=0, high=100, levels=LEVELS, batch=1).fit(X[:FITTED], y[:FITTED])

    plain, calibrated = [], []
    for hour in range(FITTED, FITTED + hours):
        now = slice(hour, hour + 1)
        plain.append([tree.predict(X[now])[0] for tree in model.estimator_])
        calibrated.append(model.predict_quantiles(X[now], LEVELS)[0])  # before the outcome
        model.partial_fit(X[now], y[now])  # after it

    outcomes = y[FITTED : FITTED + hours]
    tables = {"trees": np.sort(plain, axis=1), "orcast": np.array(calibrated)}
    print(f"{hours:,} hours after the fit: share of outcomes below each quantile\n")
    print(f"{'':>10}" + "".join(f"{level:>8.0%}" for level in LEVELS) + f"{'pinball loss':>16}")
    for name, table in tables.items():
        shares = (outcomes[:, None] <= table).mean(axis=0)
        loss = oc.metrics.pinball(table, outcomes, LEVELS).mean()
        print(f"{name:>10}" + "".join(f"{share:>8.1%}" for share in shares) + f"{loss:>16.4f}")

    evaluation = oc.Evaluation.of(tables["trees"], outcomes, after=tables["orcast"], levels=LEVELS, low=0, high=100)
    oc.plots.fan(evaluation, last=120).save(options.out / "sklearn_quantiles.svg")
    print(f"\npicture: {options.out / 'sklearn_quantiles.svg'}")
    print(model.recalibrator_.guarantee)


if __name__ == "__main__":
    main()
