"""Series of a session: options, states, and the recalibrators that they share."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orcast import limits, persistence
from orcast.contexts import by
from orcast.packed import pack_row
from orcast.payoffs import default_payoff
from orcast.pool import Pool
from orcast.recalibrator import Recalibrator
from orcast.rounds import MOST_COUNTED, PendingRound, Snapshot
from orcast.spaces import Binary, Labels, OrderedSpace, Space, between, space_from_plain
from orcast.spaces.base import single, whole
from orcast.validation import number, short

KIND = Recalibrator.kind
# Recalibrators that are kept, one for each space.
MOST_GAMES = 1000
# Bytes of a settled round beside its answers.
OVERHEAD = 400


@dataclass(frozen=True)
class StreamSettings:
    """Options of a session.

    Parameters
    ----------
    low, high : bounds of quantities
    binary, labels : other outcomes than quantities; by default the form of a series' first forecast decides
    levels : quantiles to answer with, as text
    by : a feature and its values, each of which is calibrated by itself
    outside, memory, max_pending : as in `orcast.Recalibrator`
    remember : settled rounds of all series that are remembered
    pool : whether quantities of all series share an `orcast.Pool`
    """

    low: float | None = None
    high: float | None = None
    binary: bool = False
    labels: tuple[str, ...] = ()
    levels: tuple[str, ...] = ()
    by: tuple[str, tuple[Any, ...]] | None = None
    outside: str = "raise"
    memory: float | None = None
    max_pending: int = 1000
    remember: int = 10_000
    pool: bool = False

    def __post_init__(self) -> None:
        limits.check("labels", len(self.labels))
        limits.check("levels", len(self.levels))
        for level in self.levels:
            told: object = level
            with suppress(ValueError):
                told = float(level)
            if not 0.0 < number(told, "level", 0.0, 1.0) < 1.0:
                raise ValueError(f"expected levels strictly between 0 and 1, got {level}")
        if len(set(map(float, self.levels))) < len(self.levels):
            raise ValueError(f"expected different levels, got {', '.join(self.levels)}")
        if not isinstance(self.pool, bool):
            raise TypeError(f"expected pool=True or False, got {short(self.pool)}")
        if self.remember < 1:
            raise ValueError(f"expected at least 1 settled round to be remembered, got {self.remember}")
        given = {"low": self.low, "high": self.high, "binary": self.binary or None, "labels": self.labels or None}
        # says what is wrong with the rest
        self.game(stated_space({key: value for key, value in given.items() if value is not None}))

    def space(self, kind: str, labels: tuple[str, ...]) -> Space:
        """Space of a series whose first forecast is of a kind."""
        if self.binary or (kind == "binary" and not self.labels):
            return Binary()
        return Labels(self.labels or labels) if self.labels or kind == "labels" else between(self.low, self.high)

    def game(self, space: Space, pool: Pool | None = None) -> Recalibrator:
        """A new recalibrator on a space; only quantities are in a pool."""
        context = None if self.by is None else by(self.by[0], values=self.by[1])
        return Recalibrator(
            space,
            default_payoff(space, context),
            memory=self.memory,
            outside=self.outside,
            max_pending=self.max_pending,
            pool=pool if isinstance(space, OrderedSpace) else None,
        )


@dataclass(slots=True)
class Settled:
    """A round that is over: digest and answer of its forecast, its outcome (None if it was dropped), and that answer.

    `number` counts such rounds with an id; `saved` is for whoever writes them.
    """

    digest: str
    answer: str
    y: Any
    closing: str
    number: int = 0
    saved: bool = False

    @property
    def size(self) -> int:
        """Bytes that count towards the budget."""
        return len(self.answer) + len(self.closing) + OVERHEAD

    def to_plain(self) -> list[Any]:
        """Plain data."""
        return [self.digest, self.answer, self.y, self.closing, self.number]

    @classmethod
    def from_plain(cls, plain: Any, space: Space | None = None) -> Settled:
        """The inverse of `to_plain`, or a reason why not."""
        digest, answer, y, closing, number = plain
        _check_texts(digest, answer, closing)
        if y is not None and isinstance(space, Labels):
            whole(y, "labels", 0, space.cells - 1)
        elif y is not None:
            single(y)
        return cls(digest, answer, y, closing, whole(number, "rounds", 0, MOST_COUNTED), saved=True)


class SeriesSession:
    """A series: its rounds, the numbers that are carried from round to round, and the last unnamed round that is over.

    A series of a file has none of them until it is first used: `fetch` gets its state.
    """

    __slots__ = ("fetch", "last", "numbers", "rounds", "space")

    def __init__(self, space: Space | None = None, fetch: Callable[[], bytes] | None = None) -> None:
        self.space, self.fetch = space, fetch
        self.rounds: Snapshot | None = None
        self.numbers: NDArray[np.float64] = np.empty(0)
        self.last: Settled | None = None

    @property
    def pending(self) -> dict[Any, PendingRound]:
        """The pending rounds by id, the oldest first; digest and answer of its forecast are attached to each."""
        return {} if self.rounds is None else self.rounds.pending

    def keep(self, game: Recalibrator, *, settled: bool) -> None:
        """Take over the rounds of a recalibrator; only those that are settled change its numbers."""
        if settled:
            self.numbers = pack_row(game.engine.arrays().values())
        self.rounds = game.rounds.snapshot(memory=False)

    def load_into(self, game: Recalibrator) -> None:
        """Give its rounds to a recalibrator."""
        assert self.rounds is not None
        game.rounds.restore(self.rounds)
        game.crossing_reported = False
        at = 0
        for array in game.engine.arrays().values():
            array[...] = self.numbers[at : at + array.size].reshape(array.shape)
            at += array.size


class Recalibrators:
    """Recalibrators by space, the last used ones: series of one space share one, into which their rounds are loaded.

    So a series takes the memory of its numbers, about 17 KB for a quantity.
    """

    def __init__(self, options: StreamSettings, pool: Pool | None) -> None:
        self.options, self.pool = options, pool
        self._games: dict[Space, tuple[Recalibrator, SeriesSession]] = {}  # with a new series
        self._series: dict[Space, SeriesSession] = {}  # whose rounds a recalibrator has

    def _game(self, space: Space) -> tuple[Recalibrator, SeriesSession]:
        found = self._games.pop(space, None)
        if found is None:
            found = self.options.game(space, self.pool), SeriesSession(space)
            found[1].keep(found[0], settled=True)
        self._games[space] = found
        if len(self._games) > MOST_GAMES:
            oldest = next(iter(self._games))
            del self._games[oldest]
            self._series.pop(oldest, None)
        return found

    def new(self, space: Space) -> SeriesSession:
        """Series without rounds."""
        return copy.copy(self._game(space)[1])

    def load(self, data: bytes) -> SeriesSession:
        """Series from its encoded state; raises ValueError if it cannot be read."""
        with persistence.reading(data, KIND) as (header, arrays):
            space = space_from_plain(header["space"])
            game, _ = self._game(space)
            self._series.pop(space, None)
            for key, value in json.loads(json.dumps(persistence.configuration(game, KIND))).items():
                if header[key] != value:
                    raise ValueError(f"{key} was {short(header[key])}, not {short(value)}")
            persistence.restore(game, header, arrays)
            series = SeriesSession(space)
            series.keep(game, settled=True)
            for entry in series.pending.values():
                _check_texts(*entry.attached)
            series.last = None if header["last"] is None else Settled.from_plain(header["last"], space)
            return series

    @contextmanager
    def holding(self, series: SeriesSession) -> Iterator[Recalibrator]:
        """Yield the recalibrator with the rounds of a series, which keeps them if they change."""
        assert series.space is not None
        space, (game, _) = series.space, self._game(series.space)
        if self._series.pop(space, None) is not series:
            series.load_into(game)
        yield game
        self._series[space] = series

    def reset(self) -> None:
        """Load the rounds of each series again when it is next used."""
        self._series.clear()


def stated_space(given: Mapping[str, Any]) -> Space:
    """Space with bounds, of labels, or binary, as options or a line give it."""
    binary, labels = given.get("binary", False), given.get("labels")
    if not isinstance(binary, bool):
        raise TypeError(f"expected true or false as binary, got {short(binary)}")
    if sum((binary, labels is not None, "low" in given or "high" in given)) > 1:
        raise ValueError(f"expected bounds, binary or labels, got {' and '.join(given)}")
    if binary:
        return Binary()
    if labels is not None:
        if not isinstance(labels, (list, tuple)) or not all(isinstance(label, str) for label in labels):
            raise TypeError(f"expected a list of text as labels, got {short(labels)}")
        return Labels(labels)
    for key, bound in given.items():
        if isinstance(bound, bool) or not isinstance(bound, (int, float)):
            raise TypeError(f"expected a number as {key}, got {short(bound)}")
    return between(given.get("low"), given.get("high"))


def _check_texts(digest: Any, *answers: Any) -> None:
    """Refuse answers that are no lines; an empty one was forgotten."""
    if not all(isinstance(text, str) for text in (digest, *answers)):
        raise TypeError(f"answers are text, not {short(answers)}")
    if not all(text.startswith("{") and text.endswith("}\n") for text in answers if text):
        raise ValueError(f"answers are lines, not {short(answers)}")
