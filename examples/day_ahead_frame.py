"""Day-ahead forecasts in a data frame: recalibrate them with their issue times, read the verdict, write a report.

python examples/day_ahead_frame.py
"""

import pandas as pd

import orcast as oc

LEVELS = [0.05, 0.25, 0.5, 0.75, 0.95]

# Hourly humidity, forecast from the same hour of the day before.  Each midnight 24 forecasts are issued together.
stream = oc.datasets.stream(oc.datasets.load("humidity"), "naive")
frame = pd.DataFrame(stream.quantile(LEVELS), columns=[f"q{level}" for level in LEVELS])
frame.insert(0, "time", pd.date_range("2013-01-08", periods=len(frame), freq="h"))
frame.insert(1, "cutoff", frame["time"].dt.floor("D") - pd.Timedelta("1h"))  # the last hour known when issued
frame.insert(2, "y", stream.y)
frame = frame.head(24 * 100)

# Columns are detected by their names.  A forecast uses only outcomes that were known at its cutoff.
after = oc.recalibrate(frame, low=0, high=100)
print(after[["time", "y", "orcast_q0.05", "orcast_q0.5", "orcast_q0.95"]].tail(4).round(1).to_string(index=False))

# The verdict compares base and recalibrated forecasts, and both with simple references.
(evaluation,) = oc.check(after, low=0, high=100)
print()
print(*oc.evaluate.verdict(evaluation), sep="\n")

print("\nCoverage of the 90% interval and pinball loss by hours ahead\n")
table = pd.DataFrame(oc.evaluate.by_horizon(evaluation))
COLUMNS = ["horizon", "coverage_before", "coverage_after", "loss_before", "loss_after"]
print(table.loc[[0, 5, 11, 17, 23], COLUMNS].round(3).to_string(index=False))

oc.evaluate.report.write("day_ahead.html", [evaluation], source="humidity at JFK airport")
print("\nwrote: day_ahead.html")
