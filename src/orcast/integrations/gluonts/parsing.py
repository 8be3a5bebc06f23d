"""A forecast of GluonTS's as numbers, and the same forecast with other numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from gluonts.model.forecast import QuantileForecast, SampleForecast  # type: ignore[import-untyped]
from numpy.typing import NDArray

from orcast.adapters import Ensemble, Quantiles
from orcast.integrations.common import HorizonGame
from orcast.panel.experts import ranks_of
from orcast.validation import short

Array = NDArray[np.float64]

MEAN = "mean"


class ParsedForecast:
    """The samples or quantiles of a forecast at each step, a row each, in the order they came in."""

    def __init__(self, forecast: Any) -> None:
        self.original = forecast
        self.crossed = False
        if isinstance(forecast, SampleForecast):
            values, self.keys = forecast.samples, []
        elif isinstance(forecast, QuantileForecast):
            values, self.keys = forecast.forecast_array, list(forecast.forecast_keys)
        else:
            more = " (its to_quantile_forecast gives one)" if hasattr(forecast, "to_quantile_forecast") else ""
            raise TypeError(f"expected a QuantileForecast or a SampleForecast, got {short(forecast)}{more}")
        if np.ndim(values) != 2:
            raise ValueError(
                f"expected forecasts of one number a step, got shape {np.shape(values)} (copy_dim takes one)"
            )
        self.table: Array = np.asarray(values, dtype=np.float64)
        finite = np.isfinite(self.table).all(axis=0) if len(self.table) else np.zeros(self.table.shape[1], dtype=bool)
        self.steps: list[int] = np.flatnonzero(finite).tolist()
        self.samples = isinstance(forecast, SampleForecast)
        if self.samples:
            self._read_samples()
        else:
            self._read_quantiles()

    def _read_samples(self) -> None:
        count = len(self.table)
        self.point = count == 1
        self.levels = (np.arange(count) + 0.5) / max(count, 1)
        self.ranks = ranks_of(self.table.T).T

    def _read_quantiles(self) -> None:
        self.rows = sorted(
            (row for row, key in enumerate(self.keys) if key != MEAN), key=lambda row: float(self.keys[row])
        )
        self.levels = np.array([float(self.keys[row]) for row in self.rows])
        self.point = len(self.keys) == 1 and self.keys[0] in (MEAN, "0.5")
        if len(self.rows) < 2 and not self.point:
            raise ValueError(f"expected quantiles at 2 levels or more, or a median, got {short(self.keys)}")
        if len(set(self.keys)) < len(self.keys):
            raise ValueError(f"expected each key once, got {short(self.keys)}")

    def at(self, step: int, game: HorizonGame) -> Any:
        """The forecast of a step, as its game reads it."""
        column = self.table[:, step]
        if self.point:
            return game.around(column[0])
        if self.samples:
            return Ensemble(column)
        quantiles = Quantiles(self.levels, column[self.rows])
        self.crossed |= quantiles.crossed
        quantiles.crossed = False  # it is reported once, not for each game
        return quantiles

    def blank(self, levels: Array | None) -> Array:
        """Where the answers go; steps that are not answered are as they were, or missing."""
        return self.table.copy() if levels is None else np.full((len(levels), self.table.shape[1]), np.nan)

    def write(self, out: Array, step: int, p: Any, levels: Array | None) -> None:
        """The answer of a step."""
        if levels is not None:
            out[:, step] = p.quantile(levels)
        elif self.samples:
            out[:, step] = p.quantile(self.levels)[self.ranks[:, step]]
        else:
            if self.rows:
                out[self.rows, step] = p.quantile(self.levels)
            if len(self.rows) < len(self.keys):
                out[self.keys.index(MEAN), step] = p.mean()

    def forecast(self, out: Array, levels: Array | None) -> Any:
        """A forecast with other numbers."""
        original = self.original
        about = {"start_date": original.start_date, "item_id": original.item_id, "info": original.info}
        if levels is not None:
            return QuantileForecast(out, forecast_keys=[repr(level) for level in levels.tolist()], **about)
        given = original.samples if self.samples else original.forecast_array
        out = out.astype(given.dtype if given.dtype.kind == "f" else np.float64, copy=False)
        if self.samples:
            return SampleForecast(out, **about)
        return QuantileForecast(out, forecast_keys=original.forecast_keys, **about)
