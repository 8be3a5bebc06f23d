"""scikit-learn: regressors and classifiers whose forecasts stay calibrated (extra ``orcast[sklearn]``, 1.6 or newer).

``fit`` learns from rows in the order of time, ``partial_fit`` from those that come later:

    model = RecalibratedRegressor(GaussianProcessRegressor(), low=0, high=100).fit(X, y)
    model.predict_interval(X_today)
    model.partial_fit(X_today, y_today)

The rows of one call belong together: none of their outcomes is known when they are forecast.  ``partial_fit`` first
makes all forecasts for its rows, the same that ``predict`` makes of them, then scores them one row after the other, and
then updates the wrapped estimator, if that has ``partial_fit`` itself.  All methods that predict are pure: they start
from the calibration as it is now and leave it so.

A forecast of one row may trust the last errors, one of many rows must not, so that it matters how many rows a call has:
predict and learn row by row if outcomes come row by row.
"""

from orcast.integrations.optional import needs

with needs("sklearn", "sklearn"):
    from orcast.integrations.sklearn.classifier import RecalibratedClassifier
    from orcast.integrations.sklearn.regressor import RecalibratedRegressor

__all__ = ["RecalibratedClassifier", "RecalibratedRegressor"]
