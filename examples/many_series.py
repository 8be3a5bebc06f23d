"""Many series and a state: each morning recalibrate the day's forecasts of 24 series from yesterday's state.

python examples/many_series.py
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd

import orcast as oc

LEVELS, HISTORY, DAYS = [0.05, 0.5, 0.95], 200, 60

# Wind power, one series for each hour of the day.  Base forecast: mean and spread of the ten days before.
values = oc.datasets.load("wind").values[: 24 * (HISTORY + DAYS)].reshape(-1, 24)
dates = pd.date_range("2014-01-01", periods=len(values), name="ds")
wide = pd.DataFrame(values, index=dates, columns=[f"hour {hour:02}" for hour in range(24)])
wide.columns.name = "unique_id"
rolling = wide.rolling(10)
parts = {"y": wide, "mean": rolling.mean().shift(), "sd": rolling.std().shift() + 1.0}
frame = pd.concat({name: part.unstack() for name, part in parts.items()}, axis=1).reset_index().dropna()

with TemporaryDirectory() as folder:
    options = {"low": -50, "high": 8200, "levels": LEVELS, "issued_every": 1, "state": Path(folder) / "wind.orcast"}
    # Once: all days of the past.  Series of one frame share information (`pool=False` turns that off).
    oc.recalibrate(frame[frame["ds"] < dates[HISTORY]], **options)
    issued = []
    for day in range(HISTORY, HISTORY + DAYS):
        # Each morning: yesterday's rows with their outcomes, today's without.
        today = frame[frame["ds"] == dates[day]].assign(y=float("nan"))
        yesterday = frame[frame["ds"] == dates[day - 1]]
        after = oc.recalibrate(pd.concat([yesterday, today]), **options)
        issued.append(after[after["orcast_status"] == "pending"])

table = pd.concat(issued).drop(columns="y").merge(frame[["unique_id", "ds", "y"]])
low, high = table["orcast_q0.05"], table["orcast_q0.95"]
half = 1.645 * table["sd"]
inside = pd.DataFrame(
    {
        "base forecast": (table["y"] - table["mean"]).abs() <= half,
        "recalibrated": table["y"].between(low, high),
    }
)
print(f"Coverage of the 90% interval over {DAYS} days: all series, and the worst and best of {wide.shape[1]}\n")
print(f"{'':>16}{'all':>8}{'worst':>8}{'best':>8}{'width':>10}")
for name, width in {"base forecast": 2 * half, "recalibrated": high - low}.items():
    by_series = inside[name].groupby(table["unique_id"]).mean()
    shares = inside[name].mean(), by_series.min(), by_series.max()
    print(f"{name:>16}" + "".join(f"{share:>8.1%}" for share in shares) + f"{width.mean():>10,.0f}")
