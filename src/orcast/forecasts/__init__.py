"""Forecasts: masses on cells, with everything one asks of a distribution."""

from orcast.forecasts.finite import (
    BinaryForecast,
    BoxForecast,
    CircleForecast,
    FiniteForecast,
    LabelForecast,
    as_masses,
    forecast_on,
)
from orcast.forecasts.ordered import PERCENTS, Forecast, as_levels

__all__ = [
    "PERCENTS",
    "BinaryForecast",
    "BoxForecast",
    "CircleForecast",
    "FiniteForecast",
    "Forecast",
    "LabelForecast",
    "as_levels",
    "as_masses",
    "forecast_on",
]
