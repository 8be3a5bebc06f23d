"""The report on forecasts before and after recalibration: one HTML file, nothing fetched, nothing run."""

from orcast.report.page import html, write

__all__ = ["html", "write"]
