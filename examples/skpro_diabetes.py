"""skpro: a probabilistic regressor whose intervals are too narrow, before and after recalibration.

python examples/skpro_diabetes.py
"""

# %% Two regressors: one that ignores the features, and one whose spread is fitted to residuals of its own rows
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LinearRegression
from skpro.metrics import CRPS
from skpro.regression.dummy import DummyProbaRegressor
from skpro.regression.residual import ResidualDouble

from orcast.integrations.skpro import RecalibratedProbaRegressor

X, y = load_diabetes(return_X_y=True, as_frame=True)
y = y.to_frame()
trained, tested = slice(0, 250), slice(250, None)
regressors = {"dummy": DummyProbaRegressor(), "linear": ResidualDouble(LinearRegression())}

# %% `fit` scores each part of the rows by a regressor that has not seen them; `predict_proba` is a skpro distribution
print("share of outcomes in the intervals, and CRPS\n")
print(f"{'':>22}{'50%':>8}{'90%':>8}{'CRPS':>8}")
for name, regressor in regressors.items():
    recalibrated = RecalibratedProbaRegressor(regressor, low=0, high=400)
    for label, model in {name: regressor, f"{name}, recalibrated": recalibrated}.items():
        model.fit(X[trained], y[trained])
        bands = model.predict_interval(X[tested], coverage=[0.5, 0.9])
        bands.columns = bands.columns.droplevel(0)
        outcomes = y[tested].iloc[:, 0]
        shares = [outcomes.between(bands[c, "lower"], bands[c, "upper"]).mean() for c in (0.5, 0.9)]
        score = CRPS()(y[tested], model.predict_proba(X[tested]))
        print(f"{label:>22}{shares[0]:>8.1%}{shares[1]:>8.1%}{score:>8.1f}")

# %% `update` scores new rows and corrects the forecasts that follow
before = recalibrated.guarantee.rounds
recalibrated.update(X[tested], y[tested])
print(f"\nrounds: {before} after fit, {recalibrated.guarantee.rounds} after update")
