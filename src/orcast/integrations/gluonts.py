"""GluonTS: forecasts in, calibrated forecasts of the same class out (extra ``orcast[gluonts]``).

Wrap a predictor, and use it as any other predictor of GluonTS.  The dataset that it is given holds the outcomes of its
earlier forecasts.

    predictor = RecalibratedPredictor(predictor, ForecastRecalibrator(low=0))
    forecasts = list(predictor.predict(dataset))

Or keep your own loop (:class:`ForecastRecalibrator`), or correct the forecasts of a backtest (:func:`recalibrate`).
"""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orcast import persistence
from orcast.adapters import Ensemble, Quantiles
from orcast.engine import Committee, Oracle
from orcast.engine.ordered import OrderedEngine
from orcast.features import FeatureReader
from orcast.forecasts import as_levels
from orcast.frame.experts import ranks_of
from orcast.frame.groups import name_of
from orcast.frame.names import listed
from orcast.integrations.common import HorizonGame, recalibrator_for
from orcast.integrations.optional import needs
from orcast.ledger import Guarantee
from orcast.locks import GameLock, Locked, locked
from orcast.payoffs import Payoff
from orcast.persistence import game_from, inside, state_of
from orcast.pool import Pool
from orcast.recalibrator import Recalibrator
from orcast.residuals import Residuals
from orcast.serialise import id_from_plain, plain_id
from orcast.spaces import OrderedSpace, between
from orcast.spaces.base import whole
from orcast.validation import short, warn_user

with needs("gluonts", "gluonts", "pandas"), warnings.catch_warnings():
    # GluonTS warns about the JSON reader that it found
    warnings.filterwarnings("ignore", message="Using `json`-module")
    import pandas as pd  # type: ignore[import-untyped]
    from gluonts.model.forecast import QuantileForecast, SampleForecast  # type: ignore[import-untyped]
    from gluonts.model.predictor import Predictor  # type: ignore[import-untyped]

__all__ = ["ForecastRecalibrator", "RecalibratedPredictor", "recalibrate"]

Array = NDArray[np.float64]
Outcomes = tuple[NDArray[np.int64], Array]

OWNER = "ForecastRecalibrator"
MEAN = "mean"
# A frequency for times of which only the order matters.
ANY = "ns"
# Features of the time that a forecast is for.
CALENDAR = ("year", "quarter", "month", "day", "dayofweek", "hour", "minute")
# Entries of the header that all games of a recalibrator share.
COMMON = ("class", "space", "payoff", "oracle", "memory", "experts", "outside", "max_pending")


# --- forecasts


class _ParsedForecast:
    """Samples or quantiles of a forecast at each step, a row each, in the order they came in."""

    def __init__(self, forecast: Any) -> None:
        self.original = forecast
        self.crossed = False
        self.samples = isinstance(forecast, SampleForecast)
        if self.samples:
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
        if self.samples:
            count = len(self.table)
            self.point = count == 1
            self.levels = (np.arange(count) + 0.5) / max(count, 1)
            self.ranks = ranks_of(self.table.T).T
            return
        by_level = sorted((float(key), row) for row, key in enumerate(self.keys) if key != MEAN)
        self.levels, self.rows = np.array([level for level, _ in by_level]), [row for _, row in by_level]
        self.point = len(self.keys) == 1 and self.keys[0] in (MEAN, "0.5")
        if len(self.rows) < 2 and not self.point:
            raise ValueError(f"expected quantiles at 2 levels or more, or a median, got {short(self.keys)}")
        if len(set(self.keys)) < len(self.keys):
            raise ValueError(f"expected each key once, got {short(self.keys)}")

    def at(self, step: int, game: HorizonGame) -> Any:
        """Read the forecast of a step for its game."""
        column = self.table[:, step]
        if self.point:
            return game.around(column[0])
        if self.samples:
            return Ensemble(column)
        quantiles = Quantiles(self.levels, column[self.rows])
        self.crossed |= quantiles.crossed
        quantiles.crossed = False  # reported once, not for each game
        return quantiles

    def write(self, out: Array, step: int, p: Any, levels: Array | None) -> None:
        """Write the answer of a step into a table."""
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
        """Make the forecast with the numbers of a table."""
        original = self.original
        about = {"start_date": original.start_date, "item_id": original.item_id, "info": original.info}
        if levels is not None:
            return QuantileForecast(out, forecast_keys=[repr(level) for level in levels.tolist()], **about)
        given = original.samples if self.samples else original.forecast_array
        out = out.astype(given.dtype if given.dtype.kind == "f" else np.float64, copy=False)
        if self.samples:
            return SampleForecast(out, **about)
        return QuantileForecast(out, forecast_keys=original.forecast_keys, **about)


# --- outcomes


def _outcomes(series: Any, freq: str | None) -> Outcomes:
    """Times, as the ordinals of their periods, and outcomes; both in order."""
    if isinstance(series, Mapping):
        if "start" not in series or "target" not in series:
            raise ValueError(f"expected an entry with start and target, got one with {short(sorted(series))}")
        values, start = _numbers(series["target"]), series["start"]
        if not isinstance(start, pd.Period):
            start = pd.Timestamp(start)
            _check_zone(start.tz)
            start = pd.Period(start, freq or ANY)
        _check_freq(start.freqstr, freq)
        return start.ordinal + start.freq.n * np.arange(len(values), dtype=np.int64), values
    if isinstance(series, pd.DataFrame) and series.shape[1] == 1:
        series = series.iloc[:, 0]
    if not isinstance(series, pd.Series):
        raise TypeError(f"expected an entry of a dataset or a series of pandas, got {short(series)}")
    index = series.index
    if isinstance(index, pd.DatetimeIndex):
        _check_zone(index.tz)
        index = index.to_period(freq or ANY)
    if not isinstance(index, pd.PeriodIndex):
        raise TypeError(f"expected a series with an index of periods or dates, got {type(index).__name__}")
    _check_freq(index.freqstr, freq)
    order = np.argsort(index.asi8, kind="stable")
    times, values = index.asi8[order], _numbers(series.to_numpy())[order]
    twice = np.diff(times) == 0
    if twice.any():
        raise ValueError(f"expected one outcome for each time, got two for {index[order[int(twice.argmax())]]!s}")
    return np.asarray(times, dtype=np.int64), values


def _numbers(values: Any) -> Array:
    try:
        found = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"expected numbers as outcomes, got {short(values)}") from None
    if found.ndim != 1:
        raise ValueError(f"expected outcomes of one number a time, got shape {found.shape}")
    return found


def _check_zone(zone: Any) -> None:
    if zone is not None:
        raise ValueError(
            f"expected times without a time zone, as periods are, got them in {zone} (tz_convert(None) gives UTC)"
        )


def _check_freq(here: str, freq: str | None) -> None:
    if freq is not None and here != freq:
        raise ValueError(f"expected a series of the frequency {freq}, as the forecasts have it, got {here}")


def _check_in_step(times: NDArray[np.int64], pending: int, units: int, item_id: Any) -> None:
    """Refuse outcomes between the times of the forecasts, where a period has several units."""
    if units > 1 and ((times - pending) % units).any():
        raise ValueError(
            f"expected the outcomes of {_named(item_id)} at times in step with its forecasts, every {units} units of "
            "the frequency, got some in between"
        )


@lru_cache(maxsize=16)
def _units(freq: str | None) -> int:
    """Number of units in a period: 2 for "2h"."""
    return int(pd.Period(ordinal=0, freq=freq).freq.n)


def _outcomes_by_item(forecasts: Sequence[Any], series: Any, freq: str | None) -> dict[Hashable, Outcomes]:
    """Times and outcomes of each item, merged from all its series."""
    if isinstance(series, Mapping):
        ids = {forecast.item_id for forecast in forecasts}
        missing = [item_id for item_id in ids if item_id not in series]
        if missing:
            raise ValueError(f"expected a series for each item, got none for {_named(missing[0])}")
        pairs = [(item_id, series[item_id]) for item_id in ids]
    else:
        every = list(series)
        if len(every) != len(forecasts):
            raise ValueError(f"expected a series for each forecast, got {len(every)} and {len(forecasts)}")
        pairs = [(forecast.item_id, each) for forecast, each in zip(forecasts, every, strict=True)]
    parts: dict[Hashable, list[Outcomes]] = {}
    for item_id, each in pairs:
        parts.setdefault(item_id, []).append(_outcomes(each, freq))
    return {item_id: _merged(item_id, some, freq) for item_id, some in parts.items()}


def _merged(item_id: Hashable, parts: Sequence[Outcomes], freq: str | None) -> Outcomes:
    """Parts of a series as one; values may be rounded to 32 bits, and of equal times the first finite one counts."""
    times, values = (np.concatenate(side) for side in zip(*parts, strict=True))
    order = np.lexsort((~np.isfinite(values), times))
    times, values = times[order], values[order]
    first = np.append(True, np.diff(times) > 0)[: len(times)]
    with np.errstate(over="ignore"):
        rounded = values.astype(np.float32)
    other = np.isfinite(values) & (rounded != rounded[first][np.cumsum(first) - 1])
    if other.any():
        at = int(other.argmax())
        raise ValueError(
            f"expected one outcome of {_named(item_id)} at {pd.Period(ordinal=int(times[at]), freq=freq)}, got "
            f"{values[at - 1]:g} and {values[at]:g} (each series needs an item_id of its own)"
        )
    return times[first], values[first]


def _named(item_id: Any) -> str:
    return "an item without item_id" if item_id is None else f"item {item_id!r}"


# --- the recalibrator


class _StepPool(Pool):
    """Pool of the recalibrators of one step, for items that are asked in turn.

    A recalibrator that is behind the pool, as when items are replayed one after the other, neither uses it nor adds to
    it: the pool has outcomes of times that are still to come.
    """

    def __init__(self) -> None:
        super().__init__()
        self.until: int | None = None  # last time known to a recalibrator that added an outcome
        self.now: int | None = None  # last time known to the one that asks; the caller sets it

    @property
    def open(self) -> bool:
        """Return whether the item that asks is not behind its pool."""
        return self.until is None or (self.now is not None and self.now >= self.until)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Let a recalibrator use the pool, or an empty one if it is behind."""
        if self.open:
            yield
            return
        was = self.snapshot()
        self.rows[...] = 0.0
        try:
            yield
        finally:
            self.restore(was)


def _turn(game: HorizonGame) -> AbstractContextManager[None]:
    """Turn of a game in its pool, if it has one."""
    pool: Any = game.recalibrator.rounds.pool
    return nullcontext() if pool is None else pool.turn()


@dataclass
class _Item:
    """Games of an item by step ahead, from 0, and the time of the last outcome that settled a round."""

    games: dict[int, HorizonGame] = field(default_factory=dict)
    settled_until: int | None = None

    @property
    def pending(self) -> list[Any]:
        """Times whose outcomes are pending."""
        return [time for game in self.games.values() for time in game.times]


class ForecastRecalibrator(Locked):
    """Recalibrate forecasts of GluonTS, at each step ahead of each item by itself, on any sequence of outcomes.

    ``predict`` takes a ``QuantileForecast`` or a ``SampleForecast`` and returns one of the same class: the same keys,
    "mean" among them, or as many samples.  Each sample keeps its rank at each step, so that paths stay paths.
    A forecast of one sample, or of the median or mean alone, is read as Gaussian, with the spread of the last
    ``window`` errors of its step.

    ``update`` takes the known part of a series, as an entry of a dataset or as a series of pandas, and settles the
    pending rounds.  A missing outcome (nan, or a gap in the index) with others after it never comes; at the end it may.

    Parameters
    ----------
    low, high, space
        Bounds of the quantity, if there are any, or its space.
    quantiles
        Levels, such as ``[0.1, 0.5, 0.9]``: every answer is a ``QuantileForecast`` at these.
    payoff, oracle, memory, outside, max_pending
        As in :class:`orcast.Recalibrator`.  Contexts such as ``oc.by("hour", values=range(24))`` read the time that a
        step is for (year, quarter, month, day, dayofweek, hour, minute) or its "step" (from 1).
    lead_time
        Periods between the last outcome that a forecast knew and its first step, as in GluonTS.
    pool
        Share an :class:`orcast.Pool` among the items at each step, where the oracle is the default one.  Settle the
        outcomes of all items before their next forecasts, as ``replay`` and ``RecalibratedPredictor`` do.  An item
        whose series ends before the pool's last outcome is not pooled at that time.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from gluonts.model.forecast import QuantileForecast
    >>> recal = ForecastRecalibrator(low=0)
    >>> values = np.array([[8.0, 7.0], [9.0, 9.0], [11.0, 12.0]])
    >>> start = pd.Period("2026-01-05", "D")
    >>> p = recal.predict(QuantileForecast(values, start, ["0.1", "0.5", "0.9"], item_id="north"))
    >>> p.forecast_keys, p.start_date, p.forecast_array.shape
    (['0.1', '0.5', '0.9'], Period('2026-01-05', 'D'), (3, 2))
    >>> recal.update({"item_id": "north", "start": pd.Period("2026-01-01", "D"), "target": [7.0, 8.5, 9.5, 9.0, 10.0]})
    >>> recal.pending, recal.guarantee("north").rounds
    (1, 1)
    """

    def __init__(
        self,
        low: float | None = None,
        high: float | None = None,
        *,
        quantiles: ArrayLike | None = None,
        payoff: Payoff | None = None,
        oracle: Oracle | None = None,
        memory: float | None = None,
        window: int = 100,
        outside: str = "raise",
        max_pending: int = 1000,
        lead_time: int = 0,
        space: OrderedSpace | None = None,
        pool: bool = True,
    ) -> None:
        self._quantiles = None if quantiles is None else np.unique(as_levels(quantiles))
        if self._quantiles is not None and not ((self._quantiles > 0.0) & (self._quantiles < 1.0)).all():
            raise ValueError(f"expected quantiles at levels strictly between 0 and 1, got {short(quantiles)}")
        Residuals(window)
        self._window = window
        self.lead_time = whole(lead_time, "periods of lead_time", 0, 10**9)
        self.low, self.high = low, high
        self.payoff, self.oracle, self.memory, self.outside = payoff, oracle, memory, outside
        self.max_pending = max_pending
        if space is not None and (low, high) != (None, None):
            raise ValueError(f"expected bounds or a space, got both: {low!r}, {high!r} and {space!r}")
        self._space = between(low, high) if space is None else space
        if not isinstance(self._space, OrderedSpace):
            raise TypeError(f"expected a space of numbers, such as Interval(low, high), got {short(space)}")
        if not isinstance(pool, bool):
            raise TypeError(f"expected pool=True or False, got {short(pool)}")
        blank = self._new_recalibrator()  # refuses options that do not fit
        self.pool = pool and isinstance(blank.engine, OrderedEngine) and isinstance(blank.oracle, Committee)
        self._pools: dict[int, _StepPool] = {}
        self._features = FeatureReader(payoff)
        self._freq: str | None = None
        self._crossing_reported = False
        self._items: dict[Hashable, _Item] = {}
        self.lock = GameLock()

    # --- the loop
    @locked
    def predict(self, forecast: Any) -> Any:
        """Return the calibrated forecast; each step is then pending.

        A second forecast of an item from the same time on replaces the first.  Steps that are not finite come back as
        they were.
        """
        parsed = _ParsedForecast(forecast)
        item_id, start = forecast.item_id, forecast.start_date
        self._check(item_id, start, self._freq)
        old = self._items[item_id].games if item_id in self._items else {}
        pools = {step: self._pools.get(step) or _StepPool() for step in parsed.steps if self.pool}
        games = {step: old[step] if step in old else self._new_game(pools.get(step)) for step in parsed.steps}
        _set_time(pools, self._last_known(start))
        # read all of it first: a refused forecast changes nothing
        forecasts = [parsed.at(step, game) for step, game in games.items()]
        if parsed.crossed and not self._crossing_reported:
            self._crossing_reported = True
            warn_user("crossing quantiles were sorted (reported once)", UserWarning)
        levels = self._quantiles
        out = parsed.table.copy() if levels is None else np.full((len(levels), parsed.table.shape[1]), np.nan)
        rounds = [game.recalibrator.rounds for game in games.values()]
        was = [each.snapshot(memory=False) for each in rounds]
        try:
            for (step, game), own in zip(games.items(), forecasts, strict=True):
                with _turn(game):
                    p = game.issue(start.ordinal + step * start.freq.n, own, self._features_of(start, step))
                parsed.write(out, step, p, levels)
        except BaseException:
            for each, snapshot in zip(rounds, was, strict=True):
                each.restore(snapshot)
            raise
        self._items.setdefault(item_id, _Item()).games |= games
        self._pools |= pools
        self._freq = start.freqstr
        return parsed.forecast(out, levels)

    @locked
    def update(self, series: Any, *, item_id: Any = None) -> None:
        """Settle the pending rounds whose outcomes are known.

        ``series`` is an entry of a dataset (``start``, ``target``, ``item_id``), or a series of pandas with an index of
        periods or dates, of the item ``item_id``.  It may hold as much of the past as there is.
        """
        if item_id is None and isinstance(series, Mapping):
            item_id = series.get("item_id")
        times, values = _outcomes(series, self._freq)
        if item_id in self._items:
            self._settle(item_id, times, values)
            return
        pending = [time for item in self._items.values() for time in item.pending]
        if np.isin(pending, times[np.isfinite(values)]).any():
            known = listed(self._items)
            raise ValueError(
                f"expected outcomes of an item that was forecast ({known}), got those of {_named(item_id)}"
            )

    @locked
    def replay(self, forecasts: Iterable[Any], series: Iterable[Any]) -> list[Any]:
        """Calibrate the forecasts of a backtest, each by the outcomes known when it starts, and continue from there.

        ``series`` are the outcomes, one for each forecast (as ``make_evaluation_predictions`` gives them) or by item
        (a dict).  Windows may overlap, and come in any order.  In the end all known outcomes are settled.
        """
        every = list(forecasts)
        freq = self._freq or (every[0].start_date.freqstr if every and hasattr(every[0], "start_date") else None)
        by_item: dict[Hashable, dict[Any, int]] = {}
        for i, forecast in enumerate(every):
            _ParsedForecast(forecast)
            item_id, start = forecast.item_id, forecast.start_date
            self._check(item_id, start, freq)
            if start in by_item.setdefault(item_id, {}):
                raise ValueError(
                    f"expected one forecast of {_named(item_id)} from {start} on, got two"
                    " (each series needs an item_id of its own)"
                )
            by_item[item_id][start] = i
        known = _outcomes_by_item(every, series, freq)
        for item_id, starts in by_item.items():
            (times, values), first = known[item_id], min(starts)
            _check_in_step(times, first.ordinal, first.freq.n, item_id)
            for value in values[np.isfinite(values)].tolist():
                self._outcome(value)
        answers: list[Any] = [None] * len(every)
        items = sorted(by_item, key=name_of)
        for start in sorted({start for starts in by_item.values() for start in starts}):
            asked = [item_id for item_id in items if start in by_item[item_id]]
            # the outcomes of all items come before their forecasts
            for item_id in asked:
                if item_id in self._items:
                    times, values = known[item_id]
                    before = int(np.searchsorted(times, self._last_known(start), side="right"))
                    self._settle(item_id, times[:before], values[:before])
            for item_id in asked:
                i = by_item[item_id][start]
                answers[i] = self.predict(every[i])
        for item_id in items:
            self._settle(item_id, *known[item_id])
        return answers

    def _settle(self, item_id: Hashable, times: NDArray[np.int64], values: Array) -> None:
        """Settle the pending rounds of an item, given ordinals of times and their outcomes; or refuse them all."""
        item = self._items[item_id]
        pending = item.pending
        begin = times[0] if len(times) else 0
        _set_time(self._pools, int(times[-1]) if len(times) else None)
        # outcomes before all that is pending are known already
        since = int(np.searchsorted(times, min(pending))) if pending else len(times)
        times, values = times[since:], values[since:]
        if not len(times):
            return
        _check_in_step(times, pending[0], _units(self._freq), item_id)
        finite = np.flatnonzero(np.isfinite(values))
        last = int(times[finite[-1]]) if len(finite) else None
        outcomes = dict(zip(times.tolist(), values.tolist(), strict=True))
        settled: list[tuple[HorizonGame, int, float | None]] = []
        for game in item.games.values():
            for time in game.times:
                value = outcomes.get(time, math.nan)
                if math.isfinite(value):
                    settled.append((game, time, self._outcome(value)))
                elif last is not None and begin <= time < last:
                    settled.append((game, time, None))
        for game, time, outcome in settled:
            pool: Any = game.recalibrator.rounds.pool
            with _turn(game):
                game.settle(time, outcome)
            if outcome is not None:
                if pool is not None and pool.open:
                    pool.until = pool.now
                item.settled_until = time if item.settled_until is None else max(item.settled_until, time)

    def _outcome(self, value: float) -> float:
        """Canonical form of an outcome; GluonTS rounds to 32 bits, and a bound rounded so is the bound."""
        space = self._space
        if space.low < value < space.high:
            return value
        value = next((end for end in (space.low, space.high) if value == float(np.float32(end))), value)
        return float(space.outcome(value, self.outside))

    def _last_known(self, start: Any) -> int:
        """Last time whose outcome a forecast could know."""
        return int(start.ordinal - (self.lead_time + 1) * start.freq.n)

    def _new_game(self, pool: _StepPool | None) -> HorizonGame:
        return HorizonGame(self._new_recalibrator(pool), Residuals(self._window))

    def _new_recalibrator(self, pool: _StepPool | None = None) -> Recalibrator:
        return recalibrator_for(self, space=self._space, max_pending=self.max_pending, pool=pool)

    def _features_of(self, start: Any, step: int) -> Any:
        if not self._features:
            return None
        period = start + step
        every = {name: getattr(period, name) for name in CALENDAR if hasattr(period, name)} | {"step": step + 1}
        return self._features.of(every)

    def _check(self, item_id: Any, start: Any, freq: str | None) -> None:
        plain_id(item_id)
        if freq is not None and start.freqstr != freq:
            raise ValueError(f"expected forecasts of the frequency {freq}, got {start.freqstr}")
        item = self._items.get(item_id)
        if item is not None and item.settled_until is not None and self._last_known(start) < item.settled_until:
            lead = f" (lead_time={self.lead_time})" if self.lead_time else ""
            raise ValueError(
                f"expected forecasts in the order of time, got one of {_named(item_id)} from {start} on, when the "
                f"outcome of {pd.Period(ordinal=item.settled_until, freq=start.freq)} was known{lead}"
            )

    # --- state
    @property
    @locked
    def pending(self) -> int:
        """Number of pending steps, of all items together."""
        return sum(len(item.pending) for item in self._items.values())

    @property
    @locked
    def items(self) -> tuple[Hashable, ...]:
        """Ids of the items that were forecast."""
        return tuple(self._items)

    @locked
    def guarantee(self, item_id: Any = None, *, step: int = 1) -> Guarantee:
        """Guarantee at one step ahead (from 1) of an item."""
        item = self._items.get(item_id)
        if item is None or step - 1 not in item.games:
            raise ValueError(f"expected an item and a step that were forecast, got {_named(item_id)} and {step!r}")
        return item.games[step - 1].recalibrator.guarantee

    def __repr__(self) -> str:
        games = sum(len(item.games) for item in self._items.values())
        return f"ForecastRecalibrator({self._space}, {len(self._items)} items, {games} games, {self.pending} pending)"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state to a file, without pickle; a crash leaves the old file or the new one, never a part."""
        persistence.write(path, *self._state())

    @locked
    def _state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Copy the state into a header of plain data and named arrays."""
        blank, parts = state_of(self._new_recalibrator(), OWNER)
        arrays: dict[str, NDArray[Any]] = {f"blank/{name}": part for name, part in parts.items()}
        games: list[Any] = []
        for item_id, item in self._items.items():
            for step, game in item.games.items():
                header, parts = state_of(game.recalibrator, OWNER)
                arrays |= {f"{len(games)}/{name}": part for name, part in parts.items()}
                arrays[f"{len(games)}/residuals"] = np.array(game.residuals.last, dtype=np.float64)
                own = {name: value for name, value in header.items() if name not in COMMON}
                games.append([plain_id(item_id), step, own])
        for step, pool in self._pools.items():
            arrays |= {f"pool{step}/{name}": array for name, array in pool.arrays().items()}
        header = {
            "class": OWNER,
            "pool": self.pool,
            "pools": [[step, pool.until] for step, pool in self._pools.items()],
            "blank": blank,
            "quantiles": None if self._quantiles is None else self._quantiles.tolist(),
            "window": self._window,
            "lead_time": self.lead_time,
            "freq": self._freq,
            "crossed": self._crossing_reported,
            "items": [[plain_id(item_id), item.settled_until] for item_id, item in self._items.items()],
            "games": games,
        }
        return header, arrays

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], *, payoff: Payoff | None = None, oracle: Oracle | None = None
    ) -> ForecastRecalibrator:
        """Continue from a file, as `Recalibrator.load` does; a payoff or oracle that has functions is given again."""
        with persistence.reading(path, OWNER) as (header, arrays):
            blank = header["blank"]
            game = game_from(blank, inside(arrays, "blank/"), OWNER, cls=Recalibrator, payoff=payoff, oracle=oracle)
            space: Any = game.space
            self = cls(
                payoff=game.payoff,
                oracle=game.oracle,
                memory=game.memory,
                outside=game.outside,
                max_pending=game.max_pending,
                space=space,
                **{name: header[name] for name in ("quantiles", "window", "lead_time", "pool")},
            )
            for step, until in header["pools"]:
                self._pools[int(step)] = _StepPool.from_arrays(inside(arrays, f"pool{step}/"))  # type: ignore[assignment]
                self._pools[int(step)].until = until
            self._freq, self._crossing_reported = header["freq"], bool(header["crossed"])
            for plain, until in header["items"]:
                self._items[id_from_plain(plain)] = _Item(settled_until=None if until is None else int(until))
            for number, (plain, step, own) in enumerate(header["games"]):
                mine = inside(arrays, f"{number}/")
                residuals = Residuals(self._window)
                for residual in mine.pop("residuals").tolist():
                    residuals.add(residual)
                state = {**own, **{name: blank[name] for name in COMMON}}
                pool: Any = self._pools[int(step)] if own.get("pooled") else None
                recal = game_from(state, mine, OWNER, cls=Recalibrator, payoff=payoff, oracle=oracle, pool=pool)
                if not all(isinstance(time, int) for time in recal.pending):
                    raise TypeError("pending rounds have times as ids")
                self._items[id_from_plain(plain)].games[int(step)] = HorizonGame(recal, residuals)
        return self


def _set_time(pools: Mapping[int, _StepPool], now: int | None) -> None:
    """Set the last time whose outcome the game that asks may know."""
    for pool in pools.values():
        pool.now = now


def recalibrate(
    forecasts: Iterable[Any],
    series: Iterable[Any],
    low: float | None = None,
    high: float | None = None,
    **options: Any,
) -> list[Any]:
    """Recalibrate the forecasts of a backtest; see :meth:`ForecastRecalibrator.replay`.

    >>> import numpy as np, pandas as pd
    >>> from gluonts.model.forecast import SampleForecast
    >>> y = pd.Series(np.random.default_rng(0).normal(50, 10, 60), pd.period_range("2026-01-01", periods=60, freq="D"))
    >>> samples = np.linspace(48, 52, 20)[:, None]  # far too narrow
    >>> forecasts = [SampleForecast(samples, start) for start in y.index]
    >>> after = recalibrate(forecasts, {None: y})
    >>> after[-1].samples.shape, bool(np.ptp(after[-1].samples) > 20)
    ((20, 1), True)
    """
    return ForecastRecalibrator(low, high, **options).replay(forecasts, series)


class RecalibratedPredictor(Predictor):  # type: ignore[misc]
    """Predictor around any predictor of GluonTS, whose forecasts stay calibrated.

    The entries that ``predict`` is given hold the outcomes of earlier forecasts of the same ``item_id``: their rounds
    are settled, then the new forecast is calibrated.  Ask it as time goes by; or, to begin with, for windows of the
    past:

        _, template = split(dataset, offset=-240)
        list(predictor.predict(template.generate_instances(24, windows=10).input))

    The windows must come after the training data of the predictor: forecasts of rows that it has seen have smaller
    errors than those of the future.  Begin with a new recalibrator when the predictor is trained anew.

    ``recalibrator`` is a :class:`ForecastRecalibrator`, one without bounds by default.  ``serialize`` writes both,
    without pickle.  Entries without ``item_id`` are windows of one series.

    >>> import numpy as np, pandas as pd
    >>> from gluonts.model.seasonal_naive import SeasonalNaivePredictor
    >>> naive = SeasonalNaivePredictor(prediction_length=2, season_length=7)
    >>> predictor = RecalibratedPredictor(naive, ForecastRecalibrator(low=0, quantiles=[0.1, 0.5, 0.9]))
    >>> y = np.random.default_rng(0).normal(50, 10, 60)
    >>> for days in range(30, 60):
    ...     entry = {"item_id": "north", "start": pd.Period("2026-01-01", "D"), "target": y[:days]}
    ...     (p,) = predictor.predict([entry])
    >>> p.forecast_array.shape, predictor.recalibrator.guarantee("north").rounds
    ((3, 2), 29)
    """

    def __init__(self, predictor: Any, recalibrator: ForecastRecalibrator | None = None) -> None:
        if not isinstance(predictor, Predictor):
            raise TypeError(f"expected a predictor of GluonTS, got {short(predictor)}")
        if recalibrator is not None and not isinstance(recalibrator, ForecastRecalibrator):
            raise TypeError(f"expected a ForecastRecalibrator, got {short(recalibrator)}")
        super().__init__(predictor.prediction_length, predictor.lead_time)
        self.predictor = predictor
        self.recalibrator = ForecastRecalibrator(lead_time=self.lead_time) if recalibrator is None else recalibrator
        if self.recalibrator.lead_time != self.lead_time:
            raise ValueError(
                f"expected a recalibrator with lead_time={self.lead_time}, as the predictor has it, "
                f"got lead_time={self.recalibrator.lead_time}"
            )

    def predict(self, dataset: Any, **kwargs: Any) -> Iterator[Any]:
        """Yield calibrated forecasts in the order of the dataset; the outcomes in its entries are settled."""
        if iter(dataset) is dataset:
            dataset = list(dataset)
        pairs = list(zip(dataset, self.predictor.predict(dataset, **kwargs), strict=True))
        yield from self.recalibrator.replay((forecast for _, forecast in pairs), [entry for entry, _ in pairs])

    def serialize(self, path: Path) -> None:
        """Write predictor and recalibrator into a folder."""
        super().serialize(path)
        (path / "predictor").mkdir(exist_ok=True)
        self.predictor.serialize(path / "predictor")
        self.recalibrator.save(path / "recalibrator.orcast")

    @classmethod
    def deserialize(cls, path: Path, **kwargs: Any) -> RecalibratedPredictor:
        """Read both again."""
        predictor = Predictor.deserialize(path / "predictor", **kwargs)
        return cls(predictor, ForecastRecalibrator.load(path / "recalibrator.orcast"))
