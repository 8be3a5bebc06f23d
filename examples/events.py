"""Event probabilities: will a wind farm deliver more than 5% of its capacity in the next hour?

python examples/events.py
"""

from itertools import pairwise

import numpy as np
from scipy.stats import norm

import orcast as oc

EDGES = [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
HOURS = 3000

# A regression forecasts the power as a normal distribution.  Power is not normal, so the probabilities are wrong.
series = oc.datasets.load("wind")
stream = oc.datasets.stream(series, "rls")
threshold = 0.05 * series.high
base = norm.sf(threshold, stream.mu[:HOURS], stream.sd[:HOURS])
happened = (stream.y[:HOURS] > threshold).astype(int)

recal = oc.Recalibrator(oc.Binary())
after = np.empty(HOURS)
for hour in range(HOURS):
    after[hour] = float(recal.predict(base[hour]))  # before the hour
    recal.update(happened[hour])  # after it: 0 or 1

print(f"Power above {threshold:.0f} {series.unit} in {happened.mean():.0%} of {HOURS:,} hours.")
print("Frequency of the event by forecast probability, Brier score and calibration error (ECE)\n")
columns = [f"{low:.0%}-{high:.0%}" for low, high in pairwise(EDGES)]
print(f"{'':>16}" + "".join(f"{column:>10}" for column in [*columns, "Brier", "ECE"]))
for name, p in {"base forecast": base, "recalibrated": after}.items():
    bins = np.digitize(p, EDGES[1:-1])
    rates = "".join(f"{happened[bins == k].mean():>10.0%}" for k in range(len(columns)))
    print(f"{name:>16}{rates}{oc.metrics.brier(p, happened).mean():>10.4f}{oc.metrics.ece(p, happened):>10.4f}")
print(f"\n{recal.guarantee}")

# Several labels work alike: the base forecast has a probability for each.
weather = oc.Recalibrator(oc.Labels(["dry", "rain", "snow"]))
p = weather.predict([0.7, 0.2, 0.1])
weather.update("rain")
print(f"labels: {p.probability('rain'):.2f} for rain before the first outcome, 0.20 in the base forecast")
