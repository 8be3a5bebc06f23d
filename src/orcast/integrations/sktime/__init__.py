"""sktime: forecasters whose intervals, quantiles and distributions stay calibrated (extra ``orcast[sktime]``).

Wrap a forecaster, and use it as any other of sktime's:

    model = RecalibratedForecaster(ThetaForecaster(sp=12), low=0).fit(y, fh=[1, 2, 3])
    model.predict_interval(coverage=0.9)
    model.update(y_new)

An outcome is scored against the forecasts that were issued for it: ``update`` issues the forecasts from before
``y_new``, the same that the methods which predict made, settles those that are about ``y_new``, keeps the others
pending, and fits the wrapped forecaster anew, as it was in the replay that taught the games.  All methods that predict
are pure.
"""

from orcast.integrations.optional import needs

with needs("sktime", "pandas", "sktime"):
    from orcast.integrations.sktime.forecaster import RecalibratedForecaster
from orcast.integrations.skpro import ForecastDistribution

__all__ = ["ForecastDistribution", "RecalibratedForecaster"]
