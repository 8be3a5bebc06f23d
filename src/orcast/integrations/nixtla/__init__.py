"""Nixtla: the frames of statsforecast, mlforecast and neuralforecast, with intervals that stay calibrated.

    cv = sf.cross_validation(df=df, h=24, n_windows=60, step_size=24, level=[80, 95])
    tomorrow = recalibrate(sf.forecast(df=df, h=24, level=[80, 95]), cv)

The forecasts come back in the columns that they came in.  Frames are all that is looked at, of pandas or polars, so
none of the three libraries has to be installed.
"""

from orcast.integrations.nixtla.api import recalibrate

__all__ = ["recalibrate"]
