"""A method on a stream: it sees each outcome when that becomes known, and no sooner."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from orcast.adapters import Ensemble, Quantiles, binary_probability, quantiles_at
from orcast.baselines.quantity import Quantity
from orcast.contest.stream import Array, Stream, Whole
from orcast.forecasts import BinaryForecast
from orcast.forecasts.base import IssuedForecast
from orcast.testing.natures import RoundInputs

# By what share of the range of all that is said and comes bounds are wider than that, where there are none.
WIDER = 0.5


@dataclass(frozen=True, eq=False)
class Game:
    """One series at one horizon of a stream: its rows, and what the games of one play share."""

    rows: Whole
    horizon: int
    shared: dict[Any, Any] = field(default_factory=dict)


class Player(NamedTuple):
    """What plays a game, and what it wants to be given: all experts by name, or the members of an ensemble."""

    method: Any
    several: bool = False
    members: bool = False


class Played(NamedTuple):
    """What was issued, the outcomes that it met, and the CPU seconds of a round."""

    issued: Array
    y: Array
    seconds: float


def bounds(stream: Stream, rows: Whole) -> tuple[float, float]:
    """The bounds of a game; where there are none, for methods that need some, those of all that is said and comes.

    They are known only afterwards, and wider by half on either side: closer than anyone could have named them.
    """
    said = [stream.y[rows], *(given[rows].ravel() for given in stream.experts.values())]
    least, most = min(float(each.min()) for each in said), max(float(each.max()) for each in said)
    spare = WIDER * (most - least) + 1e-9 * (abs(least) + abs(most) + 1.0)
    return (
        stream.low if np.isfinite(stream.low) else least - spare,
        stream.high if np.isfinite(stream.high) else most + spare,
    )


def play(stream: Stream, start: Callable[[Stream, Game], Player | None]) -> Played | None:
    """Play a stream, a player a game; None if it is not for them.

    Where there is a Nature she picks each outcome once she has seen the forecast, from a generator that is the same
    for all who play; it is known when the stream says.
    """
    games = stream.games()
    shared: dict[Any, Any] = {}
    player_of: list[Player] = [Player(None)] * stream.rows
    natures: list[Any] = [None] * stream.rows
    for rows in games:
        horizon = 0 if stream.horizon is None else int(stream.horizon[rows[0]])
        player = start(stream, Game(rows, horizon, shared))
        if player is None:
            return None
        nature = None if stream.nature is None else (stream.nature(), np.random.default_rng(0))
        for row in rows.tolist():
            player_of[row], natures[row] = player, nature
    issued = np.empty((stream.rows, stream.levels.size) if stream.levels.size else stream.rows)
    y = stream.y.copy()
    seconds = 0.0
    for row, asked in stream.timeline():
        player = player_of[row]
        if not asked:
            outcome = int(y[row]) if stream.binary else y.item(row)
            begin = time.process_time()
            player.method.update(outcome, id=row)
            seconds += time.process_time() - begin
            continue
        given = _given(stream, row, player)
        begin = time.process_time()
        if player.several:
            said = player.method.predict(experts=given, id=row)
        else:
            said = player.method.predict(given, id=row)
        seconds += time.process_time() - begin
        issued[row] = _read(stream, said)
        if natures[row] is not None:
            nature, rng = natures[row]
            shown = said if isinstance(said, IssuedForecast) else _shown(stream, issued[row])
            # she sees the forecast and not who made it
            picked = float(nature.outcome(None, shown, rng, RoundInputs(row, given)))
            y[row] = min(max(picked, stream.low), stream.high)
    return Played(issued, y, seconds / max(stream.rows, 1))


def _given(stream: Stream, row: int, player: Player) -> Any:
    """The forecast of the expert, or of each, in this row."""
    if player.members and stream.members is not None:
        members = stream.members[row]
        return Ensemble(members[np.isfinite(members)])
    forecasts = _forecasts(stream)
    if player.several:
        return {name: given[row] for name, given in forecasts.items()}
    return next(iter(forecasts.values()))[row]


@lru_cache(maxsize=4)
def _forecasts(stream: Stream) -> dict[str, list[Any]]:
    """What each expert says in each row, the same objects for all who play."""
    if stream.binary:
        return {name: given.tolist() for name, given in stream.experts.items()}
    return {name: [Quantiles(stream.levels, row) for row in given] for name, given in stream.experts.items()}


def _shown(stream: Stream, row: Any) -> Any:
    """What a method issued that has a form of its own, as a forecast that a Nature can ask."""
    every = np.arange(stream.rows)
    return BinaryForecast(float(row)) if stream.binary else Quantity(*bounds(stream, every), stream.levels).issue(row)


def _read(stream: Stream, said: Any) -> Any:
    """What was issued, at the levels of the stream, in order and finite, or one clear sentence."""
    if stream.binary:
        return binary_probability(said)
    if isinstance(said, np.ndarray):
        if said.shape != stream.levels.shape:
            raise ValueError(f"expected {stream.levels.size} quantiles, one for each level, got {said.shape}")
        row = said
    else:
        row = quantiles_at(said, stream.levels)
    if not np.isfinite(row).all():
        raise ValueError(f"expected finite quantiles, got {row.tolist()}")
    return np.sort(row)
