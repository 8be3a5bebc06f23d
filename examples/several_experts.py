"""Several experts: one calibrated forecast from three models of wind power.

python examples/several_experts.py
"""

import numpy as np
from scipy.stats import norm

import orcast as oc

LEVELS = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
FIRST, HOURS = 224, 4000

# Three point forecasts for the next hour, each with the spread of its past errors.
series = oc.datasets.load("wind")
values = series.values[: FIRST + HOURS]
last_hour, same_change = np.full((2, values.size), np.nan)
last_hour[1:] = values[:-1]
same_change[25:] = values[24:-1] + values[1:-24] - values[:-25]  # the last hour plus yesterday's change
points = {
    "last hour": last_hour,
    "regression": oc.datasets.recursive_least_squares(values)[0],
    "yesterday's change": same_change,
}
experts = {}
for name, point in points.items():
    sd = oc.datasets.residual_scale(values, point)
    quantiles = point[FIRST:, None] + sd[FIRST:, None] * norm.ppf(LEVELS)
    experts[name] = np.clip(quantiles, series.low, series.high)
y = values[FIRST:]

# `run` does the loop: predict(experts={...}) before each outcome, update after it.
recal = oc.Recalibrator(oc.Interval(series.low, series.high))
ours = recal.run(experts=experts, outcomes=y, levels=LEVELS, at=LEVELS)

print(f"{HOURS:,} hours of wind power, each forecast one hour ahead\n")
print(f"{'':>20}{'pinball loss':>14}{'coverage of 90%':>18}")
for name, rows in {**experts, "orcast": ours}.items():
    loss = oc.metrics.pinball(rows, y, LEVELS).mean()
    covered = np.mean((rows[:, 0] <= y) & (y <= rows[:, -1]))
    print(f"{name:>20}{loss:>14.2f}{covered:>18.1%}")
print(f"\n{recal.guarantee}")

# An expert may be missing in a round: leave it out.
p = recal.predict(experts={"last hour": oc.Normal(values[-1], 300)})
low, high = p.interval(0.9)
print(f"one expert alone: 90% interval {low:,.0f} to {high:,.0f} {series.unit}")
