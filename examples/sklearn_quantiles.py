"""scikit-learn: recalibrated quantiles and class probabilities of fitted models.

python examples/sklearn_quantiles.py
"""

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.linear_model import Ridge
from sklearn.metrics import log_loss
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import orcast as oc
from orcast.integrations.sklearn import RecalibratedClassifier, RecalibratedRegressor

LEVELS = [0.05, 0.25, 0.5, 0.75, 0.95]

# Quantile regression with gradient boosting on the diabetes data: one model is fitted for each level.
X, y = load_diabetes(return_X_y=True)
trees = GradientBoostingRegressor(loss="quantile", n_estimators=30, random_state=0)
model = RecalibratedRegressor(trees, low=0, high=400, levels=LEVELS, batch=1).fit(X[:200], y[:200])

# Row by row: predict, then pass the outcome to `partial_fit`, which corrects later rows.
plain, calibrated = [], []
for t in range(200, len(y)):
    row = X[t : t + 1]
    plain.append([tree.predict(row)[0] for tree in model.estimator_])
    calibrated.append(model.predict_quantiles(row, LEVELS)[0])
    model.partial_fit(row, y[t : t + 1])

print(f"{len(plain)} rows after the fit: frequency of outcomes below each quantile\n")
print(f"{'':>16}" + "".join(f"{level:>8.0%}" for level in LEVELS) + f"{'pinball loss':>16}")
for name, table in {"base forecast": np.sort(plain, axis=1), "recalibrated": np.array(calibrated)}.items():
    shares = (y[200:, None] <= table).mean(axis=0)
    loss = oc.metrics.pinball(table, y[200:], LEVELS).mean()
    print(f"{name:>16}" + "".join(f"{share:>8.1%}" for share in shares) + f"{loss:>16.2f}")
print(model.recalibrator_.guarantee)

# A pipeline; `batch` is the number of rows between a forecast and its outcome.
ridge = RecalibratedRegressor(make_pipeline(StandardScaler(), Ridge()), low=0, high=400, batch=20)
low, high = ridge.fit(X[:400], y[:400]).predict_interval(X[400:], 0.9).T
print(f"\nridge in a pipeline: {np.mean((low <= y[400:]) & (y[400:] <= high)):.1%} of outcomes in the 90% interval")

# Class probabilities of an overconfident naive Bayes classifier.
X, y = load_breast_cancer(return_X_y=True)
bayes = GaussianNB().fit(X[:300], y[:300])
classifier = RecalibratedClassifier(GaussianNB()).fit(X[:300], y[:300])
print(f"\nlog loss on {len(y) - 300} rows: {log_loss(y[300:], bayes.predict_proba(X[300:])):.3f} naive Bayes, ", end="")
print(f"{log_loss(y[300:], classifier.predict_proba(X[300:])):.3f} recalibrated")
