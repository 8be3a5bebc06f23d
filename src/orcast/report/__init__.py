"""HTML report on forecasts before and after recalibration: one file without scripts or requests."""

from orcast.report.page import html, write

__all__ = ["html", "write"]
