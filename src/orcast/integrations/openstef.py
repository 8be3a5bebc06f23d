"""OpenSTEF: a calibrator of quantile columns as a step of a pipeline; OpenSTEF does not have to be installed."""

from __future__ import annotations

import os
from copy import deepcopy
from pathlib import Path
from typing import Any, Self

import narwhals.stable.v2 as nw

from orcast.frame import FrameState
from orcast.frame import recalibrate as recalibrate_frame
from orcast.validation import short

__all__ = ["QuantileCalibrator"]


class QuantileCalibrator:
    """Calibrator of quantile columns such as ``quantile_P10``, from base forecasts and outcomes of the past.

    Parameters
    ----------
    target
        Column of outcomes.
    state
        Path or :class:`orcast.FrameState` to continue from; ``fit`` writes the file.
    **options
        Options of :func:`orcast.recalibrate`: ``low``, ``high``, ``series``, and ``issued_every`` or ``cutoff``, which
        say what was known when forecasts were issued.  The time is the index of a pandas frame, or named by ``time``.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> hours = pd.date_range("2026-01-01", periods=24 * 40, freq="h")
    >>> load = 100 + np.random.default_rng(0).normal(0, 10, len(hours))
    >>> frame = pd.DataFrame({"quantile_P10": 95.0, "quantile_P50": 100.0, "quantile_P90": 105.0, "load": load}, hours)
    >>> calibrator = QuantileCalibrator(issued_every="daily").fit(frame[:-24])
    >>> after = calibrator.transform(frame[-24:].drop(columns="load"))
    >>> list(after.columns), bool((after["quantile_P90"] - after["quantile_P10"]).mean() > 20)
    (['quantile_P10', 'quantile_P50', 'quantile_P90'], True)
    """

    def __init__(
        self, target: str = "load", *, state: FrameState | str | os.PathLike[str] | None = None, **options: Any
    ) -> None:
        self.target, self.options = target, options
        self.path = None if state is None or isinstance(state, FrameState) else Path(state)
        self.state = state if isinstance(state, FrameState) else FrameState()
        if self.path is not None and self.path.exists():
            self.state = FrameState.load(self.path)

    def fit(self, frame: Any) -> Self:
        """Learn from base forecasts and their outcomes; rows that the state has seen are skipped."""
        self.fit_transform(frame)
        return self

    def fit_transform(self, frame: Any) -> Any:
        """Calibrate each row from the outcomes known when it was issued, and learn from all."""
        columns = nw.from_native(frame, eager_only=True).columns
        if self.target not in columns:
            raise ValueError(f"expected outcomes in a column {self.target!r}, got {short(columns)}")
        state = deepcopy(self.state)
        result = self._recalibrated(frame, state)
        if self.path is not None:
            state.save(self.path)
        self.state = state
        return result

    def transform(self, frame: Any) -> Any:
        """Return the frame with calibrated quantiles; other columns and the order of rows stay."""
        if not len(self.state):
            raise ValueError("expected fit before transform, got a calibrator without a history")
        return self._recalibrated(frame, deepcopy(self.state))

    def _recalibrated(self, frame: Any, state: FrameState) -> Any:
        columns = nw.from_native(frame, eager_only=True).columns
        y = self.target if self.target in columns else None
        after = recalibrate_frame(frame, y=y, state=state, replace=True, **self.options)
        return nw.from_native(after, eager_only=True).select(columns).to_native()
