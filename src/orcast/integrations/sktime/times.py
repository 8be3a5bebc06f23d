"""Times of sktime's as numbers of steps, and rows of X by their times."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
from numpy.typing import NDArray
from sktime.forecasting.base import ForecastingHorizon  # type: ignore[import-untyped]


class StepClock:
    """Counts steps from the end of the first history, whose times have one frequency."""

    def __init__(self, origin: Any) -> None:
        if isinstance(origin, pd.DatetimeIndex):
            if origin.tz is not None and origin.tz.utcoffset(None) is None:
                raise ValueError(f"expected times without a time zone, or in UTC, got times of {origin.tz}")
            if origin.freq is None:
                raise ValueError(
                    f"expected times of one frequency (y.asfreq gives them one), got none up to {origin[0]}"
                )
        self.origin = origin

    def times(self, index: Any) -> NDArray[np.int64]:
        """Times as numbers of steps since the origin."""
        if _kind(index) != _kind(self.origin):
            raise TypeError(f"expected times like {self.origin[0]}, got {index[0]}")
        origin = _without_zone(self.origin)
        horizon = ForecastingHorizon(_without_zone(index), is_relative=False, freq=origin)
        return np.asarray(horizon.to_relative(origin).to_numpy(), dtype=np.int64)

    def rows(self, X: Any) -> HorizonRows:
        """Rows of X by their times."""
        return HorizonRows(X, np.empty(0, dtype=np.int64) if X is None else self.times(X.index))

    def horizon(self, steps: Sequence[int]) -> Any:
        """Steps ahead as sktime has them."""
        return ForecastingHorizon(list(steps), is_relative=True, freq=self.origin)

    def dated(self, cutoff: Any) -> Any:
        """A cutoff with the frequency, which one row by itself has not."""
        if not isinstance(cutoff, pd.DatetimeIndex):
            return cutoff
        freq = self.origin.freq
        if not freq.is_on_offset(cutoff[0]):
            raise ValueError(f"expected times of the frequency {freq.freqstr}, got {cutoff[0]}")
        return pd.DatetimeIndex(cutoff, freq=freq)


class HorizonRows:
    """Rows of X by their times; without any, None of each."""

    __slots__ = ("X", "times")

    def __init__(self, X: Any, times: NDArray[np.int64]) -> None:
        self.X, self.times = X, times

    def until(self, time: int) -> Any:
        """Up to a time."""
        return None if self.X is None else self.X[self.times <= time]

    def between(self, start: int, stop: int) -> Any:
        """After a time, up to another."""
        return None if self.X is None else self.X[(self.times > start) & (self.times <= stop)]

    def ahead(self, steps: Sequence[int], now: int, all_or_none: bool) -> tuple[Sequence[int], Any]:
        """The steps whose rows are there, and the rows from the next up to the last of them."""
        if self.X is None or not steps:
            return steps, None
        there = set(self.times.tolist())
        found = [step for step in steps if now + step in there]
        if not found or (all_or_none and len(found) < len(steps)):
            return [], None
        return found, self.between(now, now + found[-1])


def _kind(index: Any) -> Any:
    """What times are: dates of a zone, periods of a frequency, or numbers."""
    if isinstance(index, pd.DatetimeIndex):
        return str(index.tz)
    return index.dtype if isinstance(index, pd.PeriodIndex) else index.dtype.kind in "iu"


def _without_zone(index: Any) -> Any:
    return index if getattr(index, "tz", None) is None else index.tz_localize(None)
