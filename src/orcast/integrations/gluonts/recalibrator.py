"""Forecasts of items, a game for each step ahead."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
from numpy.typing import ArrayLike, NDArray

from orcast.adapters import Normal
from orcast.engine import Oracle
from orcast.forecasts import as_levels
from orcast.integrations.common import FeatureReader, space_of
from orcast.integrations.gluonts.parsing import ParsedForecast
from orcast.integrations.gluonts.series import alike, in_step, named, outcomes_of, period_of, units
from orcast.ledger import Guarantee
from orcast.panel.column_names import listed
from orcast.payoffs import Payoff
from orcast.persistence import files as storage
from orcast.persistence.state import game_from, state_of
from orcast.recalibrator import Recalibrator
from orcast.residuals import Residuals
from orcast.serialise import id_from_plain, plain_id
from orcast.spaces import OrderedSpace
from orcast.spaces.base import whole
from orcast.validation import short, warn_user

Array = NDArray[np.float64]

OWNER = "ForecastRecalibrator"
# What a context may ask of the time that a forecast is for.
CALENDAR = ("year", "quarter", "month", "day", "dayofweek", "hour", "minute")
# Parts of a state file.
BLANK, RESIDUALS = "blank", "residuals"
# What is the same in the state of every game.
COMMON = ("class", "space", "payoff", "oracle", "memory", "experts", "outside", "max_pending")


@dataclass
class Game:
    """A step ahead of an item: its game, and, where forecasts are points, their errors and those that wait."""

    recal: Recalibrator
    residuals: Residuals
    points: dict[int, float] = field(default_factory=dict)

    def play(self, time: int, told: Any, features: Any) -> Any:
        """A round, in place of an old one for the same time if there is one; the oldest of too many is given up."""
        game = self.recal.game
        if time in game.rounds.pending:
            game.drop(time)
        elif len(game.rounds.pending) >= game.max_pending:
            oldest: Any = next(iter(game.rounds.pending))
            game.drop(oldest)
            self.points.pop(oldest, None)
        p = game.predict(told, x=features, id=time)
        if isinstance(told, Normal):
            self.points[time] = told.mean
        return p

    def held(self) -> tuple[Any, ...]:
        """What rounds that are issued or dropped change."""
        game = self.recal.game
        return game.rounds.pending.copy(), game.rounds.issued, game.rounds.reserved, self.points.copy()

    def hold(self, held: tuple[Any, ...]) -> None:
        """Put it back."""
        game = self.recal.game
        game.rounds.pending, game.rounds.issued, game.rounds.reserved, self.points = held


@dataclass
class Item:
    """The games of an item, a step each, and the time of the last outcome that was booked."""

    games: dict[int, Game] = field(default_factory=dict)
    booked: int | None = None


class ForecastRecalibrator:
    """Calibrated forecasts from GluonTS's, at each step ahead of each item by itself, on any sequence of outcomes.

    ``predict`` takes a ``QuantileForecast`` or a ``SampleForecast`` and returns one of the same class: the same keys,
    "mean" among them, or as many samples.  Each sample keeps its rank at each step, so that paths stay paths.
    A forecast of one sample, or of the median or mean alone, is read as Gaussian, as wide as the last ``window`` errors
    of its step.  With ``quantiles``, such as ``[0.1, 0.5, 0.9]``, a ``QuantileForecast`` with these comes out of all.

    ``update`` takes what is known of a series by now, as an entry of a dataset or as a series of pandas, and books the
    outcomes that forecasts wait for.  A missing one (nan, or a gap in the index) with others after it never comes; at
    the end it may.  A forecast that starts ``lead_time`` periods after the last outcome it knew, as GluonTS has it, is
    calibrated by no later ones either.

    ``low`` and ``high`` are the bounds of the quantity, if there are any, or ``space`` says all of it; ``payoff``,
    ``oracle``, ``memory``, ``outside`` and ``max_pending`` are those of :class:`orcast.Recalibrator`.  Contexts such as
    ``oc.by("hour", values=range(24))`` look at the time that a step is for (its year, quarter, month, day, dayofweek,
    hour, minute) or at its "step" (from 1).

    >>> import numpy as np, pandas as pd
    >>> from gluonts.model.forecast import QuantileForecast
    >>> recal = ForecastRecalibrator(low=0)
    >>> said = np.array([[8.0, 7.0], [9.0, 9.0], [11.0, 12.0]])
    >>> start = pd.Period("2026-01-05", "D")
    >>> p = recal.predict(QuantileForecast(said, start, ["0.1", "0.5", "0.9"], item_id="north"))
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
    ) -> None:
        self._quantiles = None if quantiles is None else np.unique(as_levels(quantiles)).tolist()
        if self._quantiles is not None and not all(0.0 < level < 1.0 for level in self._quantiles):
            raise ValueError(f"expected quantiles at levels strictly between 0 and 1, got {short(quantiles)}")
        Residuals(window)
        self._window = window
        self.lead_time = whole(lead_time, "periods of lead_time", 0, 10**9)
        self._options: dict[str, Any] = {
            "payoff": payoff,
            "oracle": oracle,
            "memory": memory,
            "outside": outside,
            "max_pending": max_pending,
        }
        if space is not None and (low, high) != (None, None):
            raise ValueError(f"expected bounds or a space, got both: {low!r}, {high!r} and {space!r}")
        self._space = space_of(low, high) if space is None else _ordered(space)
        self._spare: Recalibrator | None = Recalibrator(self._space, **self._options)  # refuses what does not fit
        self._asked = FeatureReader(payoff)
        self._freq: str | None = None
        self._said_crossed = False
        self._items: dict[Hashable, Item] = {}

    # --- the loop
    def predict(self, forecast: Any) -> Any:
        """The calibrated forecast; each step then waits for its outcome.

        A second forecast of an item from the same time on replaces the first.  Steps that are not finite come back as
        they were.
        """
        said = ParsedForecast(forecast)
        item_id, start = forecast.item_id, forecast.start_date
        self._check(item_id, start, self._freq)
        item = self._items.get(item_id)
        # read all of it first: what is refused changes nothing
        games = {} if item is None else item.games
        told = [
            said.told(step, games[step].residuals if step in games else None, self._window, self._space)
            for step in said.steps
        ]
        if said.crossed and not self._said_crossed:
            self._said_crossed = True
            warn_user("crossing quantiles were sorted (said once)", UserWarning)
        levels = None if self._quantiles is None else np.array(self._quantiles)
        out = said.blank(levels)
        games = {step: games[step] if step in games else self._new_game() for step in said.steps}
        was = [(game, game.held()) for game in games.values()]
        try:
            for step, each in zip(said.steps, told, strict=True):
                p = games[step].play(start.ordinal + step * start.freq.n, each, self._features(start, step))
                said.write(out, step, p, levels)
        except BaseException:
            for game, held in was:
                game.hold(held)
            raise
        if item is None:
            item = self._items[item_id] = Item()
        item.games |= games
        self._freq = start.freqstr
        return said.forecast(out, levels)

    def update(self, series: Any, *, item_id: Any = None) -> None:
        """Book the outcomes that forecasts wait for.

        ``series`` is an entry of a dataset (``start``, ``target``, ``item_id``), or a series of pandas with an index of
        periods or dates, of the item ``item_id``.  It may hold as much of the past as there is.
        """
        if item_id is None and isinstance(series, Mapping):
            item_id = series.get("item_id")
        times, values = outcomes_of(series, self._freq)
        if item_id in self._items:
            self._book(item_id, times, values)
        elif np.isin(self._awaited(), times[np.isfinite(values)]).any():
            known = listed(self._items)
            raise ValueError(f"expected outcomes of an item that was forecast ({known}), got those of {named(item_id)}")

    def _awaited(self) -> list[Any]:
        """The times that forecasts wait for, of all items."""
        return [id for item in self._items.values() for game in item.games.values() for id in game.recal.pending]

    def replay(self, forecasts: Iterable[Any], series: Iterable[Any]) -> list[Any]:
        """Calibrate the forecasts of a backtest, each by what was known when it starts, and go on from there.

        ``series`` are what came, one for each forecast (as ``make_evaluation_predictions`` gives them) or by item
        (a dict).  Windows may overlap, and come in any order.  In the end all that came is booked.
        """
        every = list(forecasts)
        freq = self._freq or (every[0].start_date.freqstr if every and hasattr(every[0], "start_date") else None)
        for forecast in every:
            ParsedForecast(forecast)
            self._check(forecast.item_id, forecast.start_date, freq)
        items: dict[Hashable, list[int]] = {}
        for i, forecast in enumerate(every):
            items.setdefault(forecast.item_id, []).append(i)
        known = self._known(every, series, freq)
        for item_id, mine in items.items():
            mine.sort(key=lambda i: every[i].start_date.ordinal)
            for a, b in pairwise(mine):
                if every[a].start_date == every[b].start_date:
                    raise ValueError(
                        f"expected one forecast of {named(item_id)} from {every[a].start_date} on, got two"
                        " (each series needs an item_id of its own)"
                    )
            times, values = known[item_id]
            in_step(times, every[mine[0]].start_date.ordinal, every[mine[0]].start_date.freq.n, item_id)
            for value in values[np.isfinite(values)].tolist():
                self._outcome(value)
        answers: list[Any] = [None] * len(every)
        for item_id, mine in items.items():
            times, values = known[item_id]
            for i in mine:
                if item_id in self._items:
                    before = int(np.searchsorted(times, self._knew(every[i].start_date), side="right"))
                    self._book(item_id, times[:before], values[:before])
                answers[i] = self.predict(every[i])
            self._book(item_id, times, values)
        return answers

    def _known(
        self, forecasts: list[Any], series: Any, freq: str | None
    ) -> dict[Hashable, tuple[NDArray[np.int64], Array]]:
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
        parts: dict[Hashable, list[tuple[NDArray[np.int64], Array]]] = {}
        for item_id, each in pairs:
            parts.setdefault(item_id, []).append(outcomes_of(each, freq))
        found = {}
        for item_id, some in parts.items():
            times, values = (np.concatenate([part[side] for part in some]) for side in (0, 1))
            # of equal times the first that is there
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
            found[item_id] = times[first], values[first]
        return found

    def _book(self, item_id: Hashable, times: NDArray[np.int64], values: Array) -> None:
        """Book what has come; nothing of it if anything is refused."""
        item = self._items[item_id]
        waits: list[Any] = [id for game in item.games.values() for id in game.recal.pending]
        begin = times[0] if len(times) else 0
        # what came before all that waits is old news
        since = int(np.searchsorted(times, min(waits))) if waits else len(times)
        times, values = times[since:], values[since:]
        if not len(times):
            return
        in_step(times, waits[0], units(self._freq), item_id)
        finite = np.flatnonzero(np.isfinite(values))
        last = int(times[finite[-1]]) if len(finite) else None
        settled: list[tuple[Game, int, float | None]] = []
        for game in item.games.values():
            waiting: Any = game.recal.pending
            for id in waiting:
                place = int(np.searchsorted(times, id))
                there = place < len(times) and times[place] == id
                value = float(values[place]) if there else np.nan
                if np.isfinite(value):
                    settled.append((game, id, self._outcome(value)))
                elif last is not None and begin <= id < last:
                    settled.append((game, id, None))
        for game, id, outcome in settled:
            point = game.points.pop(id, None)
            if outcome is None:
                game.recal.drop(id)
                continue
            game.recal.update(outcome, id=id)
            if point is not None:
                game.residuals.add(outcome - point)
            item.booked = id if item.booked is None else max(item.booked, id)

    def _outcome(self, value: float) -> float:
        """An outcome as it is booked; GluonTS rounds to 32 bits, and a bound that is rounded so is the bound."""
        space = self._space
        if space.low < value < space.high:
            return value
        value = next((end for end in (space.low, space.high) if value == float(np.float32(end))), value)
        return float(space.outcome(value, self._options["outside"]))

    def _knew(self, start: Any) -> int:
        """The last time whose outcome a forecast could know."""
        return int(start.ordinal - (self.lead_time + 1) * start.freq.n)

    def _new_game(self) -> Game:
        spare, self._spare = self._spare, None
        return Game(spare or Recalibrator(self._space, **self._options), Residuals(self._window))

    def _features(self, start: Any, step: int) -> dict[str, Any] | None:
        if not self._asked:
            return None
        period = start + step
        named = {name: getattr(period, name) for name in CALENDAR if hasattr(period, name)} | {"step": step + 1}
        return named if self._asked.all else {name: named[name] for name in self._asked.names if name in named}

    def _check(self, item_id: Any, start: Any, freq: str | None) -> None:
        plain_id(item_id)
        if freq is not None and start.freqstr != freq:
            raise ValueError(f"expected forecasts of the frequency {freq}, got {start.freqstr}")
        item = self._items.get(item_id)
        if item is not None and item.booked is not None and self._knew(start) < item.booked:
            lead = f" (lead_time={self.lead_time})" if self.lead_time else ""
            raise ValueError(
                f"expected forecasts in the order of time, got one of {named(item_id)} from {start} on, when the "
                f"outcome of {period_of(item.booked, start)} was known{lead}"
            )

    # --- what is known of it
    @property
    def pending(self) -> int:
        """Steps of forecasts that wait for their outcome, of all items together."""
        return sum(len(game.recal.pending) for item in self._items.values() for game in item.games.values())

    @property
    def items(self) -> tuple[Hashable, ...]:
        """The items that it has seen."""
        return tuple(self._items)

    def guarantee(self, item_id: Any = None, *, step: int = 1) -> Guarantee:
        """What was promised and what was kept, at one step ahead (from 1) of an item."""
        item = self._items.get(item_id)
        if item is None or step - 1 not in item.games:
            raise ValueError(f"expected an item and a step that were forecast, got {named(item_id)} and {step!r}")
        return item.games[step - 1].recal.guarantee

    def __repr__(self) -> str:
        games = sum(len(item.games) for item in self._items.values())
        return f"ForecastRecalibrator({self._space}, {len(self._items)} items, {games} games, {self.pending} pending)"

    # --- files
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state to a file, without pickle; a crash leaves the old file or the new one, never a part."""
        blank, parts = state_of(Recalibrator(self._space, **self._options).game, OWNER)
        arrays: dict[str, NDArray[Any]] = {f"{BLANK}/{name}": part for name, part in parts.items()}
        games: list[Any] = []
        for item_id, item in self._items.items():
            for step, game in item.games.items():
                header, parts = state_of(game.recal.game, OWNER)
                arrays |= {f"{len(games)}/{name}": part for name, part in parts.items()}
                arrays[f"{len(games)}/{RESIDUALS}"] = np.array(game.residuals.last, dtype=np.float64)
                own = {name: value for name, value in header.items() if name not in COMMON}
                games.append([plain_id(item_id), step, list(game.points.items()), own])
        header = {
            "class": OWNER,
            "blank": blank,
            "quantiles": self._quantiles,
            "window": self._window,
            "lead_time": self.lead_time,
            "freq": self._freq,
            "crossed": self._said_crossed,
            "items": [[plain_id(item_id), item.booked] for item_id, item in self._items.items()],
            "games": games,
        }
        storage.write(path, header, arrays)

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], *, payoff: Payoff | None = None, oracle: Oracle | None = None
    ) -> ForecastRecalibrator:
        """Continue from a file, bit for bit; a payoff or oracle that has functions is given again."""
        header, arrays = storage.read(path)
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
                lead_time=header.get("lead_time", 0),
                space=_ordered(game.space),
            )
            self._freq, self._said_crossed = header["freq"], bool(header["crossed"])
            for plain, booked in header["items"]:
                self._items[id_from_plain(plain)] = Item(booked=None if booked is None else int(booked))
            for number, (plain, step, points, own) in enumerate(header["games"]):
                mine = parts[str(number)]
                residuals = Residuals(self._window)
                for residual in mine.pop(RESIDUALS).tolist():
                    residuals.add(residual)
                game = game_from(
                    {**own, **{name: blank[name] for name in COMMON}},
                    mine,
                    OWNER,
                    cls=Recalibrator,
                    payoff=payoff,
                    oracle=oracle,
                )
                self._items[id_from_plain(plain)].games[int(step)] = Game(
                    game, residuals, {int(time): float(point) for time, point in points}
                )
        except (AttributeError, IndexError, KeyError, RecursionError, TypeError, ValueError) as reason:
            if str(reason).startswith("expected"):
                raise
            raise ValueError(f"expected a readable state file, got one that is not ({reason}): {path}") from reason
        return self


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

    ``series`` are what came, one for each forecast, as ``make_evaluation_predictions`` gives both, or by item (a dict).
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
