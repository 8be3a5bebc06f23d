"""Recalibrate a frame of many series: detect columns, run in parallel, save state."""

from orcast.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
