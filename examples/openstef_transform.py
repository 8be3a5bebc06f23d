"""OpenSTEF: a calibrator of quantile_P10, ... as the last step of a pipeline, fitted again each day.

    python examples/openstef_transform.py [--quick]

Each midnight the humidity of the next day is forecast by the quantiles of the same hour in the week before.  The
calibrator learns from the forecasts and outcomes of the past, and keeps its state in a file.
"""

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

import orcast as oc
from orcast.integrations.openstef import QuantileCalibrator

LEVELS = [0.1, 0.3, 0.5, 0.7, 0.9]
NAMES = [f"quantile_P{100 * level:02.0f}" for level in LEVELS]


def forecasts(days: int) -> pd.DataFrame:
    """Outcomes, and quantiles of the same hour of the seven days before."""
    y = oc.datasets.load("humidity").values[: 24 * (days + 7)].reshape(-1, 24)
    weeks = np.stack([y[day : day + 7] for day in range(days)])
    table = np.quantile(weeks, LEVELS, axis=1).reshape(len(LEVELS), -1)
    index = pd.date_range("2013-01-08", periods=24 * days, freq="h", tz="UTC", name="timestamp")
    return pd.DataFrame({"load": y[7:].ravel(), **dict(zip(NAMES, table, strict=True))}, index=index)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="30 days instead of 120")
    days, learnt = (30 if parser.parse_args(arguments).quick else 120), 60
    frame, issued = forecasts(learnt + days), []
    with tempfile.TemporaryDirectory() as folder:
        calibrator = QuantileCalibrator(issued_every="daily", low=0, high=100, state=Path(folder) / "load.orcast")
        calibrator.fit(frame[: 24 * learnt])
        for start in range(24 * learnt, len(frame), 24):
            today = frame[start : start + 24]
            issued.append(calibrator.transform(today.drop(columns="load")))
            calibrator.fit(today)

    y = frame["load"][24 * learnt :]
    print(f"{days} days: share of outcomes below each quantile, and pinball loss\n")
    for name, table in {"base": frame[24 * learnt :], "orcast": pd.concat(issued)}.items():
        shares = [(y <= table[column]).mean() for column in NAMES]
        loss = oc.metrics.pinball(table[NAMES].to_numpy(), y.to_numpy(), LEVELS).mean()
        print(f"{name:>8}" + "".join(f"{share:>8.1%}" for share in shares) + f"{loss:>10.3f}")


if __name__ == "__main__":
    main()
