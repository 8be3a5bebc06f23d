"""Forecasts of items, a game for each step ahead."""

from __future__ import annotations

import math
import os
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orcast import persistence
from orcast.engine import Committee, Oracle
from orcast.engine.ordered import OrderedEngine
from orcast.features import FeatureReader
from orcast.forecasts import as_levels
from orcast.integrations.common import HorizonGame, recalibrator_for
from orcast.integrations.gluonts.parsing import ParsedForecast
from orcast.integrations.gluonts.pool import StepPool
from orcast.integrations.gluonts.series import (
    check_in_step,
    check_new_start,
    known_outcomes,
    named,
    outcomes_of,
    period_of,
    units,
)
from orcast.ledger import Guarantee
from orcast.locks import GameLock, Locked, locked
from orcast.panel.column_names import listed
from orcast.panel.pools import name_of
from orcast.payoffs import Payoff
from orcast.persistence import game_from, state_of
from orcast.pool import Pool
from orcast.recalibrator import Recalibrator
from orcast.residuals import Residuals
from orcast.serialise import id_from_plain, plain_id
from orcast.spaces import OrderedSpace, between
from orcast.spaces.base import whole
from orcast.validation import short, warn_user

Array = NDArray[np.float64]

OWNER = "ForecastRecalibrator"
# The features of the time that a forecast is for.
CALENDAR = ("year", "quarter", "month", "day", "dayofweek", "hour", "minute")
# Parts of a state file.
BLANK, RESIDUALS, POOL = "blank", "residuals", "pool"
# What is the same in the state of every game.
COMMON = ("class", "space", "payoff", "oracle", "memory", "experts", "outside", "max_pending")


@dataclass
class Item:
    """The games of an item by step ahead, from 0, and the time of the last outcome that settled a round."""

    games: dict[int, HorizonGame] = field(default_factory=dict)
    settled_until: int | None = None

    @property
    def pending(self) -> list[Any]:
        """The times whose outcomes are pending."""
        return [time for game in self.games.values() for time in game.times]


class ForecastRecalibrator(Locked):
    """Calibrated forecasts from GluonTS's, at each step ahead of each item by itself, on any sequence of outcomes.

    ``predict`` takes a ``QuantileForecast`` or a ``SampleForecast`` and returns one of the same class: the same keys,
    "mean" among them, or as many samples.  Each sample keeps its rank at each step, so that paths stay paths.
    A forecast of one sample, or of the median or mean alone, is read as Gaussian, as wide as the last ``window`` errors
    of its step.  With ``quantiles``, such as ``[0.1, 0.5, 0.9]``, a ``QuantileForecast`` with these comes out of all.

    ``update`` takes what is known of a series by now, as an entry of a dataset or as a series of pandas, and settles
    the pending rounds.  A missing outcome (nan, or a gap in the index) with others after it never comes; at the end it
    may.  A forecast that starts ``lead_time`` periods after the last outcome it knew, as GluonTS has it, is calibrated
    by no later ones either.

    ``low`` and ``high`` are the bounds of the quantity, if there are any, or ``space`` is given; ``payoff``,
    ``oracle``, ``memory``, ``outside`` and ``max_pending`` are those of :class:`orcast.Recalibrator`.  Items learn
    together, those of a step as games that share an :class:`orcast.Pool`, where the oracle is the default one; settle
    the outcomes of all items before their next forecasts, as ``replay`` and ``RecalibratedPredictor`` do.  An item
    whose series ends before what others have taught is by itself for that time.  ``pool=False`` lets each learn by
    itself.  Contexts such as
    ``oc.by("hour", values=range(24))`` look at the time that a step is for (its year, quarter, month, day, dayofweek,
    hour, minute) or at its "step" (from 1).

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
        self._quantiles = None if quantiles is None else np.unique(as_levels(quantiles)).tolist()
        if self._quantiles is not None and not all(0.0 < level < 1.0 for level in self._quantiles):
            raise ValueError(f"expected quantiles at levels strictly between 0 and 1, got {short(quantiles)}")
        Residuals(window)
        self._window = window
        self.lead_time = whole(lead_time, "periods of lead_time", 0, 10**9)
        self.low, self.high = low, high
        self.payoff, self.oracle, self.memory, self.outside = payoff, oracle, memory, outside
        self.max_pending = max_pending
        if space is not None and (low, high) != (None, None):
            raise ValueError(f"expected bounds or a space, got both: {low!r}, {high!r} and {space!r}")
        self._space = between(low, high) if space is None else _ordered(space)
        if not isinstance(pool, bool):
            raise TypeError(f"expected pool=True or False, got {short(pool)}")
        blank = self._new_recalibrator()  # refuses what does not fit
        self.pool = pool and can_pool(blank)
        self._pools: dict[int, StepPool] = {}
        self._features = FeatureReader(payoff)
        self._freq: str | None = None
        self._crossing_reported = False
        self._items: dict[Hashable, Item] = {}
        self.lock = GameLock()

    # --- the loop
    @locked
    def predict(self, forecast: Any) -> Any:
        """The calibrated forecast; each step is then pending.

        A second forecast of an item from the same time on replaces the first.  Steps that are not finite come back as
        they were.
        """
        parsed = ParsedForecast(forecast)
        item_id, start = forecast.item_id, forecast.start_date
        self._check(item_id, start, self._freq)
        old = self._items[item_id].games if item_id in self._items else {}
        pools = {step: self._pools.get(step) or StepPool() for step in parsed.steps if self.pool}
        games = {step: old[step] if step in old else self._new_game(pools.get(step)) for step in parsed.steps}
        _ask_at(pools, self._last_known(start))
        # read all of it first: what is refused changes nothing
        forecasts = [parsed.at(step, game) for step, game in games.items()]
        if parsed.crossed and not self._crossing_reported:
            self._crossing_reported = True
            warn_user("crossing quantiles were sorted (reported once)", UserWarning)
        levels = None if self._quantiles is None else np.array(self._quantiles)
        out = parsed.blank(levels)
        rounds = [game.recalibrator.rounds for game in games.values()]
        was = [each.snapshot(memory=False) for each in rounds]
        try:
            for (step, game), own in zip(games.items(), forecasts, strict=True):
                p = game.issue(start.ordinal + step * start.freq.n, own, self._features_of(start, step))
                parsed.write(out, step, p, levels)
        except BaseException:
            for each, snapshot in zip(rounds, was, strict=True):
                each.restore(snapshot)
            raise
        self._items.setdefault(item_id, Item()).games |= games
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
        times, values = outcomes_of(series, self._freq)
        if item_id in self._items:
            self.settle(item_id, times, values)
            return
        pending = [time for item in self._items.values() for time in item.pending]
        if np.isin(pending, times[np.isfinite(values)]).any():
            known = listed(self._items)
            raise ValueError(f"expected outcomes of an item that was forecast ({known}), got those of {named(item_id)}")

    @locked
    def replay(self, forecasts: Iterable[Any], series: Iterable[Any]) -> list[Any]:
        """Calibrate the forecasts of a backtest, each by what was known when it starts, and go on from there.

        ``series`` are the outcomes, one for each forecast (as ``make_evaluation_predictions`` gives them) or by item
        (a dict).  Windows may overlap, and come in any order.  In the end all that is known is settled.
        """
        every = list(forecasts)
        freq = self._freq or (every[0].start_date.freqstr if every and hasattr(every[0], "start_date") else None)
        by_item: dict[Hashable, dict[Any, int]] = {}
        for i, forecast in enumerate(every):
            ParsedForecast(forecast)
            self._check(forecast.item_id, forecast.start_date, freq)
            starts = by_item.setdefault(forecast.item_id, {})
            check_new_start(forecast.item_id, forecast.start_date, starts)
            starts[forecast.start_date] = i
        known = known_outcomes(every, series, freq)
        for item_id, starts in by_item.items():
            (times, values), first = known[item_id], min(starts)
            check_in_step(times, first.ordinal, first.freq.n, item_id)
            for value in values[np.isfinite(values)].tolist():
                self._outcome(value)
        answers: list[Any] = [None] * len(every)
        items = sorted(by_item, key=name_of)
        for start in sorted({start for starts in by_item.values() for start in starts}):
            asked = [item_id for item_id in items if start in by_item[item_id]]
            for item_id in asked:
                if item_id in self._items:
                    times, values = known[item_id]
                    before = int(np.searchsorted(times, self._last_known(start), side="right"))
                    self.settle(item_id, times[:before], values[:before])
            for item_id in asked:
                i = by_item[item_id][start]
                answers[i] = self.predict(every[i])
        for item_id in items:
            self.settle(item_id, *known[item_id])
        return answers

    @locked
    def settle(self, item_id: Hashable, times: NDArray[np.int64], values: Array) -> None:
        """Settle the pending rounds of an item, given the ordinals of times and their outcomes; or refuse them all."""
        item = self._items[item_id]
        pending = item.pending
        begin = times[0] if len(times) else 0
        _ask_at(self._pools, int(times[-1]) if len(times) else None)
        # what came before all that is pending is known already
        since = int(np.searchsorted(times, min(pending))) if pending else len(times)
        times, values = times[since:], values[since:]
        if not len(times):
            return
        check_in_step(times, pending[0], units(self._freq), item_id)
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
            game.settle(time, outcome)
            if outcome is not None:
                item.settled_until = time if item.settled_until is None else max(item.settled_until, time)

    def _outcome(self, value: float) -> float:
        """An outcome in its canonical form; GluonTS rounds to 32 bits, and a bound that is rounded so is the bound."""
        space = self._space
        if space.low < value < space.high:
            return value
        value = next((end for end in (space.low, space.high) if value == float(np.float32(end))), value)
        return float(space.outcome(value, self.outside))

    def _last_known(self, start: Any) -> int:
        """The last time whose outcome a forecast could know."""
        return int(start.ordinal - (self.lead_time + 1) * start.freq.n)

    def _new_game(self, pool: StepPool | None) -> HorizonGame:
        return HorizonGame(self._new_recalibrator(pool), Residuals(self._window))

    def _new_recalibrator(self, pool: StepPool | None = None) -> Recalibrator:
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
                f"expected forecasts in the order of time, got one of {named(item_id)} from {start} on, when the "
                f"outcome of {period_of(item.settled_until, start)} was known{lead}"
            )

    # --- what is known of it
    def __contains__(self, item_id: object) -> bool:
        return item_id in self._items

    @property
    @locked
    def pending(self) -> int:
        """How many steps of forecasts are pending, of all items together."""
        return sum(len(item.pending) for item in self._items.values())

    @property
    @locked
    def items(self) -> tuple[Hashable, ...]:
        """The items that it has seen."""
        return tuple(self._items)

    @locked
    def guarantee(self, item_id: Any = None, *, step: int = 1) -> Guarantee:
        """What was promised and what was kept, at one step ahead (from 1) of an item."""
        item = self._items.get(item_id)
        if item is None or step - 1 not in item.games:
            raise ValueError(f"expected an item and a step that were forecast, got {named(item_id)} and {step!r}")
        return item.games[step - 1].recalibrator.guarantee

    def __repr__(self) -> str:
        games = sum(len(item.games) for item in self._items.values())
        return f"ForecastRecalibrator({self._space}, {len(self._items)} items, {games} games, {self.pending} pending)"

    # --- files
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state to a file, without pickle; a crash leaves the old file or the new one, never a part."""
        persistence.write(path, *self._state())

    @locked
    def _state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """A header of plain data, and named arrays: a copy."""
        blank, parts = state_of(self._new_recalibrator(), OWNER)
        arrays: dict[str, NDArray[Any]] = {f"{BLANK}/{name}": part for name, part in parts.items()}
        games: list[Any] = []
        for item_id, item in self._items.items():
            for step, game in item.games.items():
                header, parts = state_of(game.recalibrator, OWNER)
                arrays |= {f"{len(games)}/{name}": part for name, part in parts.items()}
                arrays[f"{len(games)}/{RESIDUALS}"] = np.array(game.residuals.last, dtype=np.float64)
                own = {name: value for name, value in header.items() if name not in COMMON}
                games.append([plain_id(item_id), step, own])
        for step, pool in self._pools.items():
            arrays |= {f"{POOL}{step}/{name}": array for name, array in pool.pool.arrays().items()}
        header = {
            "class": OWNER,
            "pool": self.pool,
            "pools": [[step, pool.until] for step, pool in self._pools.items()],
            "blank": blank,
            "quantiles": self._quantiles,
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
        header, arrays = persistence.read(path)
        if header.get("class") != OWNER:
            raise ValueError(f"expected the state of a {OWNER}, got that of a {header.get('class')}: {path}")
        parts: dict[str, dict[str, NDArray[Any]]] = {}
        for name, array in arrays.items():
            place, _, rest = name.partition("/")
            parts.setdefault(place, {})[rest] = array
        try:
            blank = header["blank"]
            game = game_from(blank, parts[BLANK], OWNER, cls=Recalibrator, payoff=payoff, oracle=oracle)
            self = cls(
                quantiles=header["quantiles"],
                payoff=game.payoff,
                oracle=game.oracle,
                memory=game.memory,
                window=header["window"],
                outside=game.outside,
                max_pending=game.max_pending,
                lead_time=header["lead_time"],
                space=_ordered(game.space),
                pool=header["pool"],
            )
            for step, until in header["pools"]:
                self._pools[int(step)] = StepPool(Pool.from_arrays(parts[f"{POOL}{step}"]), until)
            self._freq, self._crossing_reported = header["freq"], bool(header["crossed"])
            for plain, until in header["items"]:
                self._items[id_from_plain(plain)] = Item(settled_until=None if until is None else int(until))
            for number, (plain, step, own) in enumerate(header["games"]):
                mine = parts[str(number)]
                residuals = Residuals(self._window)
                for residual in mine.pop(RESIDUALS).tolist():
                    residuals.add(residual)
                state = {**own, **{name: blank[name] for name in COMMON}}
                pool: Any = self._pools[int(step)] if own.get("pooled") else None
                recal = game_from(state, mine, OWNER, cls=Recalibrator, payoff=payoff, oracle=oracle, pool=pool)
                if not all(isinstance(time, int) for time in recal.pending):
                    raise TypeError("pending rounds have times as ids")
                self._items[id_from_plain(plain)].games[int(step)] = HorizonGame(recal, residuals)
        except persistence.UNREADABLE as reason:
            if str(reason).startswith("expected"):
                raise
            raise ValueError(f"expected a readable state file, got one that is not ({reason}): {path}") from reason
        return self


def _ask_at(pools: Mapping[int, StepPool], now: int | None) -> None:
    """Tell pools what time it is for the game that asks: the last whose outcome it may know."""
    for pool in pools.values():
        pool.now = now


def can_pool(recal: Recalibrator) -> bool:
    """Whether games like this one may be in a pool: the default oracle plays them on cells."""
    oracle = recal.oracle
    return isinstance(recal.engine, OrderedEngine) and isinstance(oracle, Committee) and oracle.trackers


def _ordered(space: Any) -> OrderedSpace:
    if not isinstance(space, OrderedSpace):
        raise TypeError(f"expected a space of numbers, such as Interval(low, high), got {short(space)}")
    return space


def recalibrate(
    forecasts: Iterable[Any],
    series: Iterable[Any],
    low: float | None = None,
    high: float | None = None,
    **options: Any,
) -> list[Any]:
    """Calibrate the forecasts of a backtest, each by what was known when it starts; in the same order, same classes.

    ``series`` are the outcomes, one for each forecast, as ``make_evaluation_predictions`` gives both, or by item.
    ``options`` are those of :class:`ForecastRecalibrator`, whose ``replay`` this is.

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
