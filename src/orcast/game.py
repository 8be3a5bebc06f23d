"""Forecaster: the loop of the game, predict and update, with rounds that wait for their outcome."""

from __future__ import annotations

import datetime
import math
import os
import sys
import warnings
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orcast import ledger as _ledger
from orcast import storage
from orcast.adapters import expert_quantiles, expert_table
from orcast.forecasts import PERCENTS, Forecast, as_levels
from orcast.ledger import Guarantee
from orcast.oracles import Equilibrium, Oracle, oracle_from_plain
from orcast.oracles._state import Round
from orcast.oracles.engine import forecast_of
from orcast.payoffs import MomentMatching, NoRegret, Payoff, QuantileCalibration, payoff_from_plain
from orcast.scores import CRPS
from orcast.spaces import Interval, space_from_plain

Array = NDArray[np.float64]

# How fast the usual lag is learnt.
LAG_RATE = 0.05


@dataclass
class _Waiting:
    page: Round
    issued: int


class Forecaster:
    """Forecasts that stay calibrated on any sequence, with or without an expert (paper, procedure 1 and algorithm 1).

    ``predict`` issues a forecast and keeps the round waiting; ``update`` books its outcome.  Without ``id`` there is
    one unnamed round: a second unnamed ``predict`` replaces it.  Named rounds may be settled late, in any order, or
    dropped; at most ``max_pending`` wait, then the oldest is dropped with a warning.  ``predict`` changes nothing but
    the waiting rounds.

    >>> import orcast as oc
    >>> game = oc.Forecaster(oc.Interval(0, 1), oc.QuantileCalibration())
    >>> p = game.predict(); game.update(0.3)
    >>> game.guarantee.rounds
    1
    """

    def __init__(
        self,
        space: Interval,
        payoff: Payoff | None = None,
        *,
        oracle: Oracle | None = None,
        outside: str = "raise",
        max_pending: int = 1000,
    ) -> None:
        if not isinstance(space, Interval):
            raise TypeError(f"expected a space such as Interval(low, high), got {space!r}")
        if payoff is not None and not isinstance(payoff, Payoff):
            raise TypeError(f"expected a payoff such as QuantileCalibration(), got {payoff!r}")
        if oracle is not None and not hasattr(oracle, "bind"):
            raise TypeError(f"expected an oracle such as Committee() or Equilibrium(), got {oracle!r}")
        if outside not in ("raise", "clip"):
            raise ValueError(f"expected outside='raise' or 'clip', got {outside!r}")
        if not isinstance(max_pending, (int, np.integer)) or isinstance(max_pending, bool) or max_pending < 1:
            raise ValueError(f"expected max_pending of at least 1, got {max_pending!r}")
        self.space = space
        self.payoff = default_payoff() if payoff is None else payoff
        self.oracle: Oracle = Equilibrium() if oracle is None else oracle
        self.outside = outside
        self.max_pending = int(max_pending)
        self._engine = self.oracle.bind(space, self.payoff)
        self._waiting: dict[Hashable, _Waiting] = {}
        self._reserved = 0.0
        self._issued = 0
        self._usual_lag: float | None = None
        self._said_crossed = False

    # --- the loop
    def predict(self, forecast: object = None, *, id: Hashable = None) -> Forecast:
        """A calibrated forecast for the next outcome, around the expert's forecast if there is one."""
        plain_id(id)
        if id is not None and id in self._waiting:
            raise ValueError(f"expected a new id, got {id!r}, which already waits for its outcome")
        expert = None if forecast is None else self._expert(forecast)
        if id is None and None in self._waiting:
            self._take(None)
        dropped: list[Hashable] = []
        if len(self._waiting) >= self.max_pending:
            dropped = [next(iter(self._waiting))]
            self._take(dropped[0])
        page = self._engine.predict(expert, pending=self._outstanding(), reserved=self._reserved)
        self._reserved += float(page.note[_ledger.OVERDRAFT])
        self._issued += 1
        self._waiting[id] = _Waiting(page, self._issued)
        for oldest in dropped:
            _say(
                f"{self.max_pending} rounds wait for their outcome (max_pending); the oldest, {oldest!r}, is dropped",
                RuntimeWarning,
            )
        return forecast_of(page)

    def update(self, y: float, *, id: Hashable = None) -> None:
        """Book the outcome of the unnamed round, or of a named one."""
        value = self.space.outcome(y, self.outside)
        waiting = self._take(self._known(id))
        self._learn_lag(float(self._issued - waiting.issued))
        self._engine.update(waiting.page, value, reserved=self._reserved)

    def drop(self, id: Hashable = None) -> None:
        """Forget a round whose outcome will never come.

        Nothing can be promised about rounds that are dropped because of their outcome.
        """
        self._take(self._known(id))

    @property
    def pending(self) -> tuple[Hashable, ...]:
        """Ids of the rounds that wait, the oldest first; None is the unnamed one."""
        return tuple(self._waiting)

    @property
    def guarantee(self) -> Guarantee:
        """What was promised and what was kept, so far."""
        return self._engine.guarantee()

    def _expert(self, forecast: object) -> Array:
        quantiles, crossed = expert_quantiles(forecast, self.space)
        self._say_crossed(crossed)
        return quantiles

    def _say_crossed(self, crossed: bool) -> None:
        if crossed and not self._said_crossed:
            self._said_crossed = True
            _say("crossing quantiles were sorted (said once)", UserWarning)

    def _outcome(self, y: object, row: int) -> float:
        try:
            return self.space.outcome(y, self.outside)
        except (TypeError, ValueError) as reason:
            raise type(reason)(f"{reason} in row {row}") from None

    def _known(self, id: Hashable) -> Hashable:
        try:
            known = id in self._waiting
        except TypeError:
            raise TypeError(f"expected an id that can be a key, got {id!r}") from None
        if not known:
            if id is None:
                named = f" ({len(self._waiting)} named ones wait)" if self._waiting else ""
                raise ValueError(f"expected an unnamed round that waits for its outcome, got none{named}")
            raise ValueError(f"expected the id of a waiting round, got {id!r}")
        return id

    def _take(self, id: Hashable) -> _Waiting:
        waiting = self._waiting.pop(id)
        self._reserved = max(self._reserved - float(waiting.page.note[_ledger.OVERDRAFT]), 0.0)
        if not self._waiting:
            self._reserved = 0.0
        return waiting

    def _learn_lag(self, lag: float) -> None:
        self._usual_lag = lag if self._usual_lag is None else self._usual_lag + LAG_RATE * (lag - self._usual_lag)

    def _outstanding(self) -> float:
        """Rounds whose outcome is still to come; those far older than the usual lag are lost, not late."""
        waiting = float(len(self._waiting))
        return waiting if self._usual_lag is None else min(waiting, 2.0 * self._usual_lag + 2.0)

    # --- many rounds at once
    def run(
        self, forecasts: Any, outcomes: Any, *, levels: ArrayLike | None = None, at: ArrayLike | None = None
    ) -> Array:
        """Play a whole history in one compiled loop; returns the quantiles played, a row a round.

        ``forecasts`` is a sequence of anything that ``predict`` takes, or, with ``levels``, an array with a row of
        quantiles a round.  Each outcome is known before the next forecast; no round may be waiting.  All input is
        checked before anything changes.  The quantiles are those at the levels ``at``: 0.01, ..., 0.99 by default.
        """
        if self._waiting:
            raise ValueError(f"expected no waiting rounds, got {len(self._waiting)}: update or drop them first")
        wanted = np.atleast_1d(as_levels(PERCENTS if at is None else at))
        if wanted.ndim != 1 or (np.diff(wanted) <= 0.0).any():
            raise ValueError(f"expected increasing levels, got {at!r}")
        values = np.array([self._outcome(y, row) for row, y in enumerate(_each(outcomes, "outcomes"))])
        if levels is not None:
            experts, crossed = expert_table(levels, forecasts, self.space)
        else:
            rows = [expert_quantiles(forecast, self.space) for forecast in _each(forecasts, "forecasts")]
            experts = np.array([row for row, _ in rows]).reshape(len(rows), len(self.space.levels))
            crossed = any(sorted_ for _, sorted_ in rows)
        if len(experts) != len(values):
            raise ValueError(f"expected as many outcomes as forecasts, got {len(values)} and {len(experts)}")
        self._say_crossed(crossed)
        quantiles, _ = self._engine.run(experts, values, np.ascontiguousarray(wanted))
        self._issued += len(values)
        for _ in values:
            self._learn_lag(0.0)
        return quantiles

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.space}, {self.guarantee})"

    # --- state
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state to a file, without pickle; a crash leaves the old file or the new one, never a part."""
        write_state(self, path, "Forecaster")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Forecaster:
        """Continue from a file, bit for bit; refuses what it cannot read, in one sentence."""
        return read_state(path, "Forecaster")


def _each(values: Any, what: str) -> list[Any]:
    try:
        return list(values)
    except TypeError:
        raise TypeError(f"expected a sequence of {what}, got {values!r}") from None


def _say(message: str, kind: type[Warning]) -> None:
    """Warn, and point at the line of the user's that led here."""
    depth = 1
    while sys._getframe(depth).f_globals.get("__name__", "").startswith("orcast."):
        depth += 1
    warnings.warn(message, kind, stacklevel=depth + 1)


def plain_id(id: object) -> Any:
    """An id as plain data, so that a waiting round can be saved, or one clear sentence."""
    if id is None or isinstance(id, (str, bool, int)) or (isinstance(id, float) and math.isfinite(id)):
        return id
    if isinstance(id, np.integer):
        return int(id)
    if isinstance(id, tuple):
        return {"tuple": [plain_id(part) for part in id]}
    if isinstance(id, np.datetime64) and not np.isnat(id):
        return {"datetime64": str(id), "unit": np.datetime_data(id.dtype)[0]}
    if isinstance(id, datetime.date) and id == id:
        return {"datetime" if isinstance(id, datetime.datetime) else "date": id.isoformat()}
    raise TypeError(f"expected an id of text, whole or finite numbers, dates, or tuples of these, got {id!r}")


def id_from_plain(data: Any) -> Hashable:
    """The inverse of :func:`plain_id`."""
    if not isinstance(data, dict):
        return data  # type: ignore[no-any-return]
    if "tuple" in data:
        return tuple(id_from_plain(part) for part in data["tuple"])
    if "datetime64" in data:
        return np.datetime64(data["datetime64"], data["unit"])
    if "datetime" in data:
        return datetime.datetime.fromisoformat(data["datetime"])
    return datetime.date.fromisoformat(data["date"])


def write_state(game: Forecaster, path: str | os.PathLike[str], owner: str) -> None:
    """Write a game's state under the name of the class that owns it."""
    ids = []
    arrays: dict[str, NDArray[Any]] = {f"memory/{name}": a for name, a in game._engine.arrays().items()}
    for number, (id, waiting) in enumerate(game._waiting.items()):
        ids.append([plain_id(id), waiting.issued])
        for name, array in waiting.page._asdict().items():
            arrays[f"page/{number}/{name}"] = array
    header = {
        "class": owner,
        "space": game.space.to_plain(),
        "payoff": game.payoff.to_plain(),
        "oracle": game.oracle.to_plain(),
        "outside": game.outside,
        "max_pending": game.max_pending,
        "issued": game._issued,
        "usual_lag": game._usual_lag,
        "reserved": game._reserved,
        "said_crossed": game._said_crossed,
        "waiting": ids,
    }
    storage.write(path, header, arrays)


def read_state(path: str | os.PathLike[str], owner: str) -> Forecaster:
    """Read a game's state that was written under the name of the class that owns it."""
    header, arrays = storage.read(path)
    if header.get("class") != owner:
        raise ValueError(f"expected the state of a {owner}, got that of a {header.get('class')}: {path}")
    try:
        game = Forecaster(
            space_from_plain(header["space"]),
            payoff_from_plain(header["payoff"]),
            oracle=oracle_from_plain(header["oracle"]),
            outside=header["outside"],
            max_pending=header["max_pending"],
        )
        game._engine.restore({name[7:]: a for name, a in arrays.items() if name.startswith("memory/")})
        game._issued = int(header["issued"])
        lag = header["usual_lag"]
        game._usual_lag = None if lag is None else float(lag)
        game._reserved = float(header["reserved"])
        if not (game._reserved >= 0.0 and game._issued >= 0 and (game._usual_lag or 0.0) >= 0.0):
            raise ValueError("a counter is negative or not a number")
        game._said_crossed = bool(header["said_crossed"])
        for number, (id, issued) in enumerate(header["waiting"]):
            page = {name: arrays[f"page/{number}/{name}"] for name in Round._fields}
            game._waiting[id_from_plain(id)] = _Waiting(game._engine.restored_round(page), int(issued))
    except (AttributeError, KeyError, OverflowError, RecursionError, TypeError, ValueError) as reason:
        raise ValueError(
            f"expected a state that this version can use, got one that it cannot ({reason}): {path}"
        ) from reason
    return game


def default_payoff() -> Payoff:
    """Quantiles, two moments, and no regret in CRPS."""
    return QuantileCalibration() + MomentMatching(2) + NoRegret(CRPS())
