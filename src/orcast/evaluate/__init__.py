"""Evaluate forecasts before and after recalibration: numbers, tables, pictures and a verdict in sentences.

`check` makes an `Evaluation` of each model of a frame; the functions take one and return numbers.  `verdict` puts them
in sentences, the first of which says what to do; `report.write` makes a page of them.  Chance bands cover a calibrated
forecaster in 95% of cases, by the effective sample size (`dependence`).
"""

from orcast.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
