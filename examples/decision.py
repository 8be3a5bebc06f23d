"""A decision: how much power a wind farm commits to deliver, when a shortfall costs more than a surplus.

python examples/decision.py
"""

import numpy as np

import orcast as oc

HOURS, PRICES = 3000, [1, 2, 4, 9]  # cost of a missing unit, if a surplus unit costs 1

# Hourly wind power; the base forecast is a regression on the hours before.
series = oc.datasets.load("wind")
stream = oc.datasets.stream(series, "rls")
recal = oc.Recalibrator(oc.Interval(series.low, series.high))


def cost(amount: np.ndarray, y: np.ndarray, price: float) -> np.ndarray:
    return np.where(amount > y, price * (amount - y), y - amount)


base, ours, expected = np.empty((3, len(PRICES), HOURS))
for hour in range(HOURS):
    given = oc.Normal(stream.mu[hour], stream.sd[hour])
    p = recal.predict(given)
    for k, price in enumerate(PRICES):
        # The best amount is the quantile at under / (under + over): `under` is the cost of committing too little.
        base[k, hour] = np.clip(given.quantile(1 / (1 + price)), series.low, series.high)
        ours[k, hour] = amount = oc.decisions.commitment(p, under=1, over=price)
        expected[k, hour] = p.expect(lambda y, amount=amount, price=price: cost(amount, y, price))
    recal.update(stream.y[hour])

y = stream.y[:HOURS]
print(f"Mean cost of an hour, {HOURS:,} hours; a surplus {series.unit}h costs 1, a missing one costs ...\n")
print(f"{'':>26}" + "".join(f"{price:>8}" for price in PRICES))
costs = {
    name: np.array([cost(amount, y, price).mean() for amount, price in zip(amounts, PRICES, strict=True)])
    for name, amounts in {"base forecast": base, "recalibrated": ours}.items()
}
for name, each in {**costs, "expected by recalibrated": expected.mean(axis=1)}.items():
    print(f"{name:>26}" + "".join(f"{value:>8.1f}" for value in each))
changes = costs["recalibrated"] / costs["base forecast"] - 1
print(f"{'change':>26}" + "".join(f"{change:>+8.1%}" for change in changes))

# A few actions instead of an amount: the one with the highest expected utility.
choice = oc.decisions.best_action(p, [0, 500, 1500, 3000], lambda action, y: min(action, y) - 2 * max(action - y, 0))
print(f"\nlast hour, best of four amounts: commit {choice.action}, expected utility {choice.expected:.0f}")
