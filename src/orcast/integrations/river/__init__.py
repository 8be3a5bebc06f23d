"""River: regressors, classifiers and forecasters whose forecasts stay calibrated (extra ``orcast[river]``).

Wrap the whole model, and use it as any other of River's:

    model = Recalibrated(preprocessing.StandardScaler() | linear_model.LinearRegression(), low=0, high=100)

An outcome is scored against the forecast that was issued for it.  ``learn_one(x, y)`` looks for the last forecast that
was asked for the same features ``x``, however long ago; where there is none it makes one, before the model learns.
Forecasts that are never learnt from are given up (:class:`Recalibrated` says when).
"""

from orcast.integrations.optional import needs

with needs("river", "river"):
    from orcast.integrations.river.classifier import RiverClassifier
    from orcast.integrations.river.distribution import RiverDistribution
    from orcast.integrations.river.forecaster import RiverForecaster
    from orcast.integrations.river.regressor import RiverRegressor

__all__ = ["RiverClassifier", "RiverDistribution", "RiverForecaster", "RiverRegressor"]
