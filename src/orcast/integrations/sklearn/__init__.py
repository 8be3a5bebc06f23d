"""scikit-learn: regressors and classifiers whose forecasts stay calibrated (extra ``orcast[sklearn]``, 1.6 or newer).

``fit`` learns from rows in the order of time, ``partial_fit`` from those that come later:

    model = RecalibratedRegressor(GaussianProcessRegressor(), low=0, high=100).fit(X, y)
    model.predict_interval(X_today)
    model.partial_fit(X_today, y_today)

Methods that predict are pure, and forecast each row by itself from the calibration as it is now: it does not matter
which other rows are in the call.  ``partial_fit`` first makes the forecasts for its rows, the same that ``predict``
makes of them, then scores them, and then updates the wrapped estimator, if that has ``partial_fit`` itself.
``predict_then_fit`` goes through rows in their order, each forecast with what came before it.

A forecast for the next row may trust the last errors, one for the hundredth must not: ``batch`` says how many rows
there are between a forecast and its outcome.
"""

from orcast.integrations.optional import needs

with needs("sklearn", "sklearn"):
    from orcast.integrations.sklearn.classifier import RecalibratedClassifier
    from orcast.integrations.sklearn.regressor import RecalibratedRegressor

__all__ = ["RecalibratedClassifier", "RecalibratedRegressor"]
