"""Outcomes: series of pandas and entries of datasets, as times and numbers."""

from __future__ import annotations

from collections.abc import Container, Hashable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
from numpy.typing import NDArray

from orcast.validation import short

Array = NDArray[np.float64]
Outcomes = tuple[NDArray[np.int64], Array]

# A frequency for times of which only the order matters.
ANY = "ns"


def outcomes_of(series: Any, freq: str | None) -> Outcomes:
    """Times, as the ordinals of their periods, and outcomes; both in order."""
    if isinstance(series, Mapping):
        if "start" not in series or "target" not in series:
            raise ValueError(f"expected an entry with start and target, got one with {short(sorted(series))}")
        values, start = _numbers(series["target"]), series["start"]
        if not isinstance(start, pd.Period):
            start = pd.Timestamp(start)
            no_zone(start.tz)
            start = pd.Period(start, freq or ANY)
        _same_freq(start.freqstr, freq)
        return start.ordinal + start.freq.n * np.arange(len(values), dtype=np.int64), values
    if isinstance(series, pd.DataFrame) and series.shape[1] == 1:
        series = series.iloc[:, 0]
    if not isinstance(series, pd.Series):
        raise TypeError(f"expected an entry of a dataset or a series of pandas, got {short(series)}")
    index = series.index
    if isinstance(index, pd.DatetimeIndex):
        no_zone(index.tz)
        index = index.to_period(freq or ANY)
    if not isinstance(index, pd.PeriodIndex):
        raise TypeError(f"expected a series with an index of periods or dates, got {type(index).__name__}")
    _same_freq(index.freqstr, freq)
    times, values = index.asi8, _numbers(series.to_numpy())
    if (np.diff(times) <= 0).any():
        order = np.argsort(times, kind="stable")
        times, values = times[order], values[order]
        twice = np.diff(times) == 0
        if twice.any():
            raise ValueError(f"expected one outcome for each time, got two for {index[order[int(twice.argmax())]]!s}")
    return np.asarray(times, dtype=np.int64), values


def no_zone(zone: Any) -> None:
    """One clear sentence if times have a zone."""
    if zone is not None:
        raise ValueError(
            f"expected times without a time zone, as periods are, got them in {zone} (tz_convert(None) gives UTC)"
        )


@lru_cache(maxsize=16)
def units(freq: str | None) -> int:
    """How many units long a period is: 2 for "2h"."""
    return int(pd.Period(ordinal=0, freq=freq).freq.n)


def check_in_step(times: NDArray[np.int64], pending: int, n: int, item_id: Any) -> None:
    """Where a period is several units long, series and forecasts must have the same ones."""
    if n > 1 and ((times - pending) % n).any():
        raise ValueError(
            f"expected the outcomes of {named(item_id)} at times in step with its forecasts, every {n} units of the "
            "frequency, got some in between"
        )


def alike(one: Array, other: Array) -> NDArray[np.bool_]:
    """Whether outcomes are the same, some of them perhaps rounded to 32 bits."""
    with np.errstate(over="ignore"):
        return np.asarray(one.astype(np.float32) == other.astype(np.float32))


def same_series(one: Outcomes, other: Outcomes) -> None:
    """Two entries without item_id must be windows of one series."""
    _, here, there = np.intersect1d(one[0], other[0], assume_unique=True, return_indices=True)
    a, b = one[1][here], other[1][there]
    if not len(here) or not (alike(a, b) | ~np.isfinite(a) | ~np.isfinite(b)).all():
        raise ValueError("expected an item_id in each entry of several series, got two series without one")


def check_new_start(item_id: Any, start: Any, seen: Container[Any]) -> None:
    """Refuse a second forecast of an item from the same time on."""
    if start in seen:
        raise ValueError(
            f"expected one forecast of {named(item_id)} from {start} on, got two"
            " (each series needs an item_id of its own)"
        )


def known_outcomes(forecasts: Sequence[Any], series: Any, freq: str | None) -> dict[Hashable, Outcomes]:
    """Times and outcomes of each item, from all series that are of it."""
    if isinstance(series, Mapping):
        ids = {forecast.item_id for forecast in forecasts}
        lost = [item_id for item_id in ids if item_id not in series]
        if lost:
            raise ValueError(f"expected a series for each item, got none for {named(lost[0])}")
        pairs = [(item_id, series[item_id]) for item_id in ids]
    else:
        every = list(series)
        if len(every) != len(forecasts):
            raise ValueError(f"expected a series for each forecast, got {len(every)} and {len(forecasts)}")
        pairs = [(forecast.item_id, each) for forecast, each in zip(forecasts, every, strict=True)]
    parts: dict[Hashable, list[Outcomes]] = {}
    for item_id, each in pairs:
        parts.setdefault(item_id, []).append(outcomes_of(each, freq))
    return {item_id: _merged(item_id, some, freq) for item_id, some in parts.items()}


def _merged(item_id: Hashable, parts: Sequence[Outcomes], freq: str | None) -> Outcomes:
    """Parts of a series as one; of equal times the first that is there."""
    times, values = (np.concatenate(side) for side in zip(*parts, strict=True))
    order = np.lexsort((~np.isfinite(values), times))
    times, values = times[order], values[order]
    first = np.append(True, np.diff(times) > 0)[: len(times)]
    other = np.isfinite(values) & ~alike(values, values[first][np.cumsum(first) - 1])
    if other.any():
        at = int(other.argmax())
        raise ValueError(
            f"expected one outcome of {named(item_id)} at {pd.Period(ordinal=int(times[at]), freq=freq)}, got "
            f"{values[at - 1]:g} and {values[at]:g} (each series needs an item_id of its own)"
        )
    return times[first], values[first]


def _numbers(values: Any) -> Array:
    try:
        found = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"expected numbers as outcomes, got {short(values)}") from None
    if found.ndim != 1:
        raise ValueError(f"expected outcomes of one number a time, got shape {found.shape}")
    return found


def _same_freq(here: str, freq: str | None) -> None:
    if freq is not None and here != freq:
        raise ValueError(f"expected a series of the frequency {freq}, as the forecasts have it, got {here}")


def period_of(ordinal: int, like: Any) -> Any:
    """The period with an ordinal, of the frequency of another."""
    return pd.Period(ordinal=ordinal, freq=like.freq)


def named(item_id: Any) -> str:
    """An item, in a sentence."""
    return "an item without item_id" if item_id is None else f"item {item_id!r}"
