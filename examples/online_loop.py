"""Online loop: forecast, observe the outcome, update; outcomes arrive three hours late, and the state is saved.

python examples/online_loop.py
"""

from collections import deque
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import orcast as oc

DELAY, ROUNDS = 3, 2000

# Hourly wind power, and a regression on past hours whose standard deviation we halve: intervals are too narrow.
stream = oc.datasets.stream(oc.datasets.load("wind"), "rls")
recal = oc.Recalibrator(oc.Interval(stream.low, stream.high))  # without known bounds: oc.Recalibrator()

pending: deque[int] = deque()
covered = {"base forecast": [], "recalibrated": []}
for hour in range(ROUNDS):
    base = oc.Normal(stream.mu[hour], stream.sd[hour] / 2)
    p = recal.predict(base, id=hour)  # before the outcome; `id` names the round
    for name, (low, high) in {"base forecast": base.quantile([0.05, 0.95]), "recalibrated": p.interval(0.9)}.items():
        covered[name].append(low <= stream.y[hour] <= high)
    pending.append(hour)
    if len(pending) > DELAY:
        late = pending.popleft()
        recal.update(stream.y[late], id=late)  # the outcome of an earlier round

print(f"Coverage of the 90% interval, {ROUNDS:,} hours, outcomes {DELAY} hours late\n")
print(f"{'':>16}{'first half':>12}{'second half':>13}")
for name, hits in covered.items():
    halves = np.split(np.array(hits), 2)
    print(f"{name:>16}{halves[0].mean():>12.1%}{halves[1].mean():>13.1%}")
print(f"\n{recal.guarantee}")

# The state holds everything, pending rounds included: a service saves it after each update.
with TemporaryDirectory() as folder:
    path = Path(folder) / "wind.orcast"
    recal.save(path)
    again = oc.Recalibrator.load(path)
print(f"loaded: {again.guarantee.rounds:,} rounds, pending {again.pending}")
