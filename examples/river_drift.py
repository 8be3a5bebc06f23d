"""River: prediction intervals for a market whose volatility drifts, with River's jackknife and with orcast.

python examples/river_drift.py
"""

# %% Two intervals around one model: each day's returns of ten stocks forecast the next day's mean return
from river import conf, datasets, linear_model, metrics, preprocessing, stats

from orcast.integrations.river import RiverClassifier, RiverRegressor

LEVEL = 0.9
WARM_UP = 100  # days before anything is counted
PERIOD = 126  # trading days of half a year


def market_model():
    return preprocessing.StandardScaler() | linear_model.LinearRegression(intercept_lr=0.1)


models = {
    "jackknife": conf.RegressionJackknife(market_model(), confidence_level=LEVEL),
    "orcast": RiverRegressor(market_model(), confidence_level=LEVEL),
}

# %% Forecast each day before its outcome, and learn from it afterwards
stream = list(datasets.SP500Stocks())
print(f"Share of days in the {LEVEL:.0%} interval and its mean width in %, by half-year\n")
print("half-year" + "".join(f"{name:>12}{'width':>8}" for name in models))
error = dict.fromkeys(models, 0.0)
for half_year, start in enumerate(range(WARM_UP, len(stream), PERIOD)):
    inside = {name: stats.Mean() for name in models}
    width = {name: stats.Mean() for name in models}
    for day, (x, y) in enumerate(stream[start if half_year else 0 : start + PERIOD]):
        for name, model in models.items():
            interval = model.predict_one(x, with_interval=True)
            if half_year or day >= WARM_UP:
                inside[name].update(y in interval)
                width[name].update(interval.width)
            model.learn_one(x, y)
    print(f"{half_year + 1:>9}" + "".join(f"{inside[n].get():12.1%}{width[n].get():8.2f}" for n in models))
    for name in models:
        error[name] += inside[name].n / (len(stream) - WARM_UP) * abs(inside[name].get() - LEVEL)
print(f"{'off by':>9}" + f"{'':8}".join(f"{each:12.1%}" for each in error.values()))
print(models["orcast"].guarantee)

# %% Outcomes that come three rounds late: `learn_one` settles the forecast for the same `x`
phishing = list(datasets.Phishing())
classifier = RiverClassifier(preprocessing.StandardScaler() | linear_model.LogisticRegression())
loss = metrics.LogLoss()
for t, (x, y) in enumerate(phishing):
    loss.update(y, classifier.predict_proba_one(x))
    if t >= 3:
        classifier.learn_one(*phishing[t - 3])
print(f"\nPhishing, outcomes three rounds late: log loss {loss.get():.3f}, {classifier.guarantee.rounds} rounds")
