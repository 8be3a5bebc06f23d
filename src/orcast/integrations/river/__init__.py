"""River: regressors, classifiers and forecasters whose forecasts stay calibrated (extra ``orcast[river]``).

Wrap the whole model, and use it as any other of River's:

    model = RiverRegressor(preprocessing.StandardScaler() | linear_model.LinearRegression(), low=0, high=100)

An outcome settles the forecast that was issued for it.  ``learn_one(x, y)`` looks for the last forecast for the same
features ``x``, however old; where there is none it issues one, before the model learns.  Forecasts that are never
learnt from are dropped (see :class:`RiverRegressor`).
"""

from orcast.integrations.optional import needs

with needs("river", "river"):
    from orcast.integrations.river.classifier import RiverClassifier
    from orcast.integrations.river.distribution import RiverDistribution
    from orcast.integrations.river.forecaster import RiverForecaster
    from orcast.integrations.river.regressor import RiverRegressor

__all__ = ["RiverClassifier", "RiverDistribution", "RiverForecaster", "RiverRegressor"]
