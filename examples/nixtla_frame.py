"""Nixtla: recalibrate the intervals of a statsforecast cross-validation, then those of tomorrow's forecast.

python examples/nixtla_frame.py
"""

import warnings

import pandas as pd
from statsforecast import StatsForecast
from statsforecast.models import Naive

import orcast as oc
from orcast.integrations.nixtla import recalibrate

WINDOWS, HOURS, LEVEL = 120, 6, [80, 95]

values = oc.datasets.load("humidity").values[: 24 * (WINDOWS + 30)]
ds = pd.date_range("2013-01-01", periods=len(values), freq="h")
df = pd.DataFrame({"unique_id": "JFK", "ds": ds, "y": values})

# Each midnight a model is fitted to the three weeks before and forecasts the next hours.
sf = StatsForecast([Naive()], freq="h")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    cv = sf.cross_validation(df=df, h=HOURS, n_windows=WINDOWS, step_size=24, input_size=24 * 21, level=LEVEL)
    tomorrow = sf.forecast(df=df.tail(24 * 21), h=HOURS, level=LEVEL)

# A window is corrected by the windows whose outcomes were known at its cutoff.
after = recalibrate(cv, low=0, high=100)
counted = cv["cutoff"] > cv["cutoff"].unique()[13]  # without the first two weeks
print(f"{WINDOWS - 14} windows of {HOURS} hours: coverage and mean width of each interval\n")
print(f"{'interval':>10}{'':>16}{'coverage':>10}{'width':>8}")
for level in LEVEL:
    for name, frame in {"base forecast": cv[counted], "recalibrated": after[counted]}.items():
        low, high = (frame[f"Naive-{end}-{level}"].clip(0, 100) for end in ("lo", "hi"))
        print(f"{level:>9}%{name:>16}{frame['y'].between(low, high).mean():>10.1%}{(high - low).mean():>8.1f}")

print("\nTomorrow, recalibrated from the cross-validation\n")
print(recalibrate(tomorrow, cv, low=0, high=100).head(3).to_string(index=False, float_format="%.1f"))
