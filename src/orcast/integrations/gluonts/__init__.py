"""GluonTS: forecasts in, forecasts of the same class out, calibrated (extra ``orcast[gluonts]``).

Wrap a predictor, and use it as any other of GluonTS's: the dataset that it is given holds the outcomes of its earlier
forecasts.

    predictor = RecalibratedPredictor(predictor, ForecastRecalibrator(low=0))
    forecasts = list(predictor.predict(dataset))

Or keep your own loop (:class:`ForecastRecalibrator`), or correct the forecasts of a backtest (:func:`recalibrate`).
"""

import warnings

from orcast.integrations.optional import needs

with needs("gluonts", "gluonts", "pandas"), warnings.catch_warnings():
    # which reader of JSON it has found is its own affair
    warnings.filterwarnings("ignore", message="Using `json`-module")
    from orcast.integrations.gluonts.predictor import RecalibratedPredictor
    from orcast.integrations.gluonts.recalibrator import ForecastRecalibrator, recalibrate

__all__ = ["ForecastRecalibrator", "RecalibratedPredictor", "recalibrate"]
