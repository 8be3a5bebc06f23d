"""Two leagues: rivals on the expert as given, and on the expert with what orcast has learnt of it.

Much of what orcast gains is memory of recent errors, which the rivals do not have.  In the second league they are
given it: the expert is replaced by what a default game has learnt of it before its guarantee has its say.  What is
left between the two is the recalibration itself.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from orcast.contest.methods import TRACKED, Method, recalibrator
from orcast.contest.play import Game, Played, Player, play
from orcast.contest.stream import Array, Stream
from orcast.game import Forecaster

LEAGUES = (1, 2)
LEAGUE_NAMES = {1: "the expert as given", 2: "the tracked expert"}


class Learnt:
    """Plays what a game has learnt; `after` makes something of it, a rival for instance."""

    def __init__(self, game: Forecaster, after: Any = None) -> None:
        self.game, self.after = game, after

    def predict(self, forecast: Any = None, *, experts: Any = None, id: Hashable = None) -> Any:
        """What was learnt, with the rival's say if there is one."""
        learnt = self.game.learnt(forecast, experts=experts)
        self.game.predict(forecast, experts=experts, id=id)
        return learnt if self.after is None else self.after.predict(learnt, id=id)

    def update(self, y: Any, *, id: Hashable = None) -> None:
        """Both learn."""
        self.game.update(y, id=id)
        if self.after is not None:
            self.after.update(y, id=id)


class Tracked(NamedTuple):
    """The tracked expert of a stream, and the stream on which it is the expert."""

    played: Played
    stream: Stream


def _tracker(after: Callable[[Stream, Game], Player | None] | None = None) -> Callable[[Stream, Game], Player | None]:
    def start(stream: Stream, game: Game) -> Player | None:
        rival = None
        if after is not None:
            rival = after(stream, game)
            if rival is None:
                return None
        return Player(Learnt(recalibrator(stream, game), rival and rival.method), several=len(stream.experts) > 1)

    return start


def tracked(stream: Stream) -> Tracked:
    """The same stream with the expert replaced by what a default game has learnt of it when each row is issued."""
    played = play(stream, _tracker())
    assert played is not None
    experts: dict[str, Array] = {TRACKED: np.clip(played.issued, *_ends(stream))}
    return Tracked(played, replace(stream, experts=experts, members=None))


def _ends(stream: Stream) -> tuple[float, float]:
    return (0.0, 1.0) if stream.binary else (stream.low, stream.high)


def play_on_tracked(method: Method, stream: Stream, expert: Tracked) -> Played | None:
    """A rival on the tracked expert.

    Where a Nature picks the outcomes they depend on who plays, so the tracked expert is played along.
    """
    if stream.nature is None:
        return method.play(expert.stream)
    return play(stream, _tracker(method.player)) if method.plays(expert.stream) else None
