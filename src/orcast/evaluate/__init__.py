"""Evaluate forecasts before and after recalibration: numbers, pictures, a report and a verdict in sentences."""

from orcast.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
