"""Series of a session: options, states, and the recalibrators that they share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from orcast import limits, persistence
from orcast.contexts import by
from orcast.payoffs import default_payoff
from orcast.pool import Pool
from orcast.recalibrator import Recalibrator
from orcast.rounds import PendingRound, Snapshot
from orcast.serialise import features_from_json, features_to_json
from orcast.spaces import Binary, Labels, OrderedSpace, Space, between, space_from_plain
from orcast.store.lines import Id, Name
from orcast.validation import number, short

KIND, ROUND = Recalibrator.kind, "StreamRound"
# Recalibrators that are kept, one for each space.
MOST_GAMES = 1000
COUNTERS = ("issued", "usual_lag", "reserved")


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
        self.recal(stated_space({key: value for key, value in given.items() if value is not None}))

    def space(self, kind: str, labels: tuple[str, ...]) -> Space:
        """Space of a series whose first forecast is of a kind."""
        if self.binary or (kind == "binary" and not self.labels):
            return Binary()
        return Labels(self.labels or labels) if self.labels or kind == "labels" else between(self.low, self.high)

    def recal(self, space: Space, pool: Pool | None = None) -> Recalibrator:
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
class StreamRound:
    """Round of a series: digest and answer of its forecast; once it is over, outcome (None if dropped) and answer."""

    digest: str
    answer: str
    y: Any = None
    closing: str = ""

    def encode(self, name: Name, id: Id, entry: PendingRound | None) -> bytes:
        """Round as bytes, with its numbers while it is pending."""
        texts = {"digest": self.digest, "answer": self.answer, "closing": self.closing}
        header = {"class": ROUND, "series": name, "id": id, "y": self.y, **texts}
        if entry is None:
            return persistence.encode(header, {})
        header |= {"issued": entry.issued, "features": features_to_json(getattr(entry.record, "features", None))}
        return persistence.encode(header, entry.record.arrays())

    @classmethod
    def from_header(cls, header: dict[str, Any], name: Name) -> StreamRound:
        """Round of a series from its header, or a reason why not."""
        _check_owner(header, name)
        texts = [header[key] for key in ("digest", "answer", "closing")]
        if not all(isinstance(text, str) for text in texts):
            raise TypeError(f"answers are text, not {short(texts)}")
        return cls(texts[0], texts[1], header["y"], texts[2])

    @classmethod
    def decode(cls, data: bytes, name: Name) -> StreamRound:
        """Round that is over, from its bytes; raises ValueError if they cannot be read."""
        with persistence.reading(data, ROUND) as (header, _):
            return cls.from_header(header, name)


@dataclass(slots=True)
class SeriesSession:
    """A series: its name, its space, its rounds, and the number by which the store has it, 0 for a new one."""

    name: Name
    space: Space
    rounds: Snapshot
    number: int = 0

    @property
    def pending(self) -> dict[Any, PendingRound]:
        """The pending rounds by id, the oldest first; a `StreamRound` is attached to each."""
        return self.rounds.pending

    def encode(self) -> bytes:
        """State as bytes, without the pending rounds."""
        rounds = self.rounds
        header = {
            "class": KIND,
            "series": self.name,
            "space": self.space.to_plain(),
            "pending": len(rounds.pending),
            **{key: getattr(rounds, key) for key in COUNTERS},
        }
        return persistence.encode(header, rounds.memory)


class Recalibrators:
    """Recalibrators by space, the last used ones: series of one space share one, into which their rounds are loaded.

    So a series takes the memory of its numbers, about 15 KB for a quantity.
    """

    def __init__(self, options: StreamSettings, pool: Pool | None) -> None:
        self.options, self.pool = options, pool
        self._recals: dict[Space, tuple[Recalibrator, Snapshot]] = {}  # with the rounds of a new series
        self._series: dict[Space, SeriesSession] = {}  # whose rounds a recalibrator has

    def _recal(self, space: Space) -> tuple[Recalibrator, Snapshot]:
        found = self._recals.pop(space, None)
        if found is None:
            recal = self.options.recal(space, self.pool)
            found = recal, recal.rounds.snapshot()
        self._recals[space] = found
        if len(self._recals) > MOST_GAMES:
            oldest = next(iter(self._recals))
            del self._recals[oldest]
            self._series.pop(oldest, None)
        return found

    def new(self, name: Name, space: Space) -> SeriesSession:
        """Series without rounds."""
        return SeriesSession(name, space, self._recal(space)[1])

    def load(self, name: Name, number: int, state: bytes, pending: Iterable[bytes]) -> SeriesSession:
        """Series from its state and its pending rounds; raises ValueError if they cannot be read."""
        with persistence.reading(state, KIND) as (header, arrays):
            _check_owner(header, name)
            space = space_from_plain(header["space"])
            recal, _ = self._recal(space)
            self._series.pop(space, None)
            recal.engine.restore(arrays)
            entries, records = [], {}
            for at, (own, record) in enumerate(sorted(map(_pending, pending), key=lambda each: each[0]["issued"])):
                features = features_from_json(own["features"])
                entries.append([own["id"], own["issued"], features, StreamRound.from_header(own, name)])
                records.update({f"{at}/{field}": array for field, array in record.items()})
            if len(entries) != header["pending"]:
                raise ValueError(f"{len(entries)} rounds are pending, not {short(header['pending'])}")
            recal.rounds.resume({**{key: header[key] for key in COUNTERS}, "pending": entries}, records)
            return SeriesSession(name, space, recal.rounds.snapshot(), number)

    @contextmanager
    def holding(self, series: SeriesSession) -> Iterator[Recalibrator]:
        """Yield the recalibrator with the rounds of a series, which gets them back at the end."""
        space, (recal, _) = series.space, self._recal(series.space)
        if self._series.pop(space, None) is not series:
            recal.rounds.restore(series.rounds)
        recal.crossing_reported = False
        yield recal
        series.rounds = recal.rounds.snapshot()
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


def _pending(data: bytes) -> tuple[persistence.Header, persistence.Arrays]:
    with persistence.reading(data, ROUND) as found:
        return found


def _check_owner(header: dict[str, Any], name: Name) -> None:
    if header["series"] != name:
        raise ValueError(f"it is of series {short(header['series'])}, not {short(name)}")
