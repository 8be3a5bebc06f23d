"""The games of one series in a stream: a state of bytes and some events in, what is said of them and a new state out.

Nothing here knows of Spark.  An event is a forecast with an id, an outcome with the id of its forecast, or both.  What
comes of events does not depend on how they are cut into batches, as long as the batches are in the order of play.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orcast import ledger as _ledger
from orcast.engine.kernels.events import COUNTERS_SIZE
from orcast.panel.bounds import scale_between, space_between
from orcast.panel.columns import Form
from orcast.panel.experts import ForecastShape
from orcast.panel.runner import DROP, PREDICT, SETTLE, Fields, RunInput, Runner, RunState, events_of
from orcast.panel.stream import answers_of, inputs_of, values_of
from orcast.panel.validation import rows_with_forecast
from orcast.payoffs import Payoff
from orcast.persistence.migrations import renamed
from orcast.serialise import features_from_json, features_to_json

Array = NDArray[np.float64]
Time = int | float

# What is said of an event in the column "status", by its code.
STATUSES = ("ok", "pending", "no forecast", "outside", "corrected", "seen", "late", "lost", "unknown", "refused")
OK, PENDING, NO_FORECAST, OUTSIDE, CORRECTED, SEEN, LATE, LOST, UNKNOWN, REFUSED = range(len(STATUSES))

MAGIC = b"ORC1"
# Columns of what is kept of a round and model; the answers follow.
STATE, HOLDS, PROMISED, MISCALIBRATION, ANSWERS = range(5)
# Tables that are kept, of series with other bounds.
MOST_TABLES = 256

_tables: dict[Any, Runner] = {}


@dataclass(frozen=True)
class SeriesOptions:
    """What all series of a stream share.

    ``mark`` tells the options of one stream from those of another: a state goes on only under its own.  It does not
    tell functions of a payoff apart, if it has ``functions``.
    """

    forms: tuple[Form, ...]
    shapes: tuple[ForecastShape, ...]
    payoff: Payoff | None
    by_row: bool
    clip: bool
    max_pending: int
    remember: int
    mark: bytes
    functions: bool = False

    def table(self, number: int, low: float, high: float) -> Runner:
        """Where a model's games with these bounds are played; kept from batch to batch."""
        shape = self.shapes[number]
        space = shape.space(space_between(low, high, self.by_row) if shape.ordered else None)
        key = (self.mark, number, space, id(self.payoff) if self.functions else None)
        if key not in _tables:
            if len(_tables) >= MOST_TABLES:
                _tables.clear()
            _tables[key] = Runner(shape, space, self.payoff)
        return _tables[key]


def mark_of(*options: Any) -> bytes:
    """A mark of options that are plain data."""
    return hashlib.blake2b(json.dumps(options, sort_keys=True, default=str).encode(), digest_size=8).digest()


@dataclass
class Event:
    """One event: a forecast if ``given`` has it (a row of numbers for each model), an outcome if ``y`` is no nan.

    ``order`` is what breaks ties of time among its likes; ``refused`` is why it cannot be used, if so.
    """

    id: str
    time: Time
    given: list[Array] | None
    y: float
    low: float = -np.inf
    high: float = np.inf
    features: Any = None
    order: Any = ""
    refused: str | None = None
    place: int = 0  # among the rows that it came with

    def rank(self) -> Any:
        """The order of play: by time, forecasts before outcomes, then by id; equal ones by what they hold."""
        told = b"" if self.given is None else b"".join(row.tobytes() for row in self.given)
        return self.time, self.given is None, self.order, repr(self.y), told


@dataclass
class SeriesRound:
    """A forecast that was made, and what was said of it, a row for each model."""

    id: str
    time: Time
    low: float
    high: float
    said: Array
    y: float = np.nan

    @property
    def waits(self) -> bool:
        """Whether a model waits for its outcome."""
        return bool((self.said[:, STATE] == PENDING).any())


@dataclass
class SeriesAnswer:
    """What is said of an event: by model a status, and the numbers of its round as far as they are known by then."""

    event: Event
    status: list[int]
    round: SeriesRound | None = None
    booked: bool = False  # whether the miscalibration after the outcome is told
    reason: str | None = None


@dataclass
class _Wait:
    """A round that waits in one model's game, and its entry there."""

    entry: int
    round: SeriesRound
    point: float


@dataclass
class _Moves:
    """What happens in one model's game."""

    waiting: dict[str, _Wait]
    old: int
    kinds: list[int] = field(default_factory=list)
    entries: list[int] = field(default_factory=list)
    new: list[tuple[_Wait, Event]] = field(default_factory=list)
    settled: list[tuple[int, SeriesRound, float]] = field(default_factory=list)  # entry, round, outcome as it is played

    def add(self, kind: int, entry: int) -> None:
        """One more event."""
        self.kinds.append(kind)
        self.entries.append(entry)


class Games:
    """The games of a series, one for each model, and the rounds that are remembered.

    At most ``max_pending`` rounds of a model wait, then the oldest is given up; the last ``remember`` that are over are
    remembered.  A forecast that is not later than one that was forgotten is not answered: it may be one that was.
    """

    def __init__(self, rules: SeriesOptions, state: bytes | None = None) -> None:
        self.rules = rules
        self._go_back(state)

    def _go_back(self, state: bytes | None) -> None:
        """Be as a state says, or at the start."""
        self._state = state
        self.rounds: dict[str, SeriesRound] = {}
        self.lefts: list[RunState | None] = [None] * len(self.rules.forms)
        self.waiting: list[dict[str, _Wait]] = [{} for _ in self.rules.forms]
        self.forgotten: Time | None = None
        self.ends: tuple[float, float] | None = None  # bounds that are not those of rows
        self.over = 0
        if state is not None:
            self._read(state)

    # --- events
    def play(self, events: Sequence[Event]) -> list[SeriesAnswer]:
        """Play events in the order of play; what is refused, or cannot be played, changes nothing."""
        ordered = sorted((event for event in events if event.refused is None), key=Event.rank)
        self._refuse_bad(ordered)
        try:
            answers = self._played([event for event in ordered if event.refused is None])
        except MemoryError:
            raise
        except Exception:
            self._go_back(self._state)
            answers = self._one_by_one(ordered)
        bad = [event for event in events if event.refused is not None]
        models = len(self.rules.forms)
        return [*answers, *(SeriesAnswer(event, [REFUSED] * models, reason=event.refused) for event in bad)]

    def _one_by_one(self, events: list[Event]) -> list[SeriesAnswer]:
        """Play events of which some cannot be: these are found and refused."""
        # features that a context or a function of the user's cannot take: a trial of each forecast alone finds them
        self._refuse_strange(events)
        answers = []
        for event in events:
            if event.refused is not None:
                continue
            try:
                answers += self._played([event])
            except MemoryError:
                raise
            except Exception as reason:
                event.refused = _told(reason)
                self._go_back(self._state)
        return answers

    def _played(self, events: list[Event]) -> list[SeriesAnswer]:
        """Play events, and write what is left."""
        answers = self._play(events)
        self._state = self._written()
        return answers

    def _refuse_bad(self, events: list[Event]) -> None:
        """Forecasts that are none, such as a negative deviation, and those with other bounds than before."""
        began = self.ends
        for event in events:
            if event.given is None or self.rules.by_row:
                continue
            ends = event.low, event.high
            began = began or ends
            if ends != began:
                then, now = (f"{low:g} to {high:g}" for low, high in (began, ends))
                event.refused = f"expected the bounds that the series began with, {then}, got {now}"
        for number, form in enumerate(self.rules.forms):
            there = [event for event in events if event.given is not None and event.refused is None]
            if not there:
                return
            try:
                _present(form, np.stack([event.given[number] for event in there if event.given is not None]))
            except (TypeError, ValueError):
                for event in there:
                    assert event.given is not None
                    try:
                        _present(form, event.given[number][None, :])
                    except (TypeError, ValueError) as reason:
                        event.refused = _told(reason)

    def _refuse_strange(self, events: list[Event]) -> None:
        for event in events:
            if event.given is None or event.refused is not None:
                continue
            for number, form in enumerate(self.rules.forms):
                given, there = _present(form, event.given[number][None, :])
                if not there[0]:
                    continue
                try:
                    table = self.rules.table(number, event.low, event.high)
                    points = np.array([self._point(number, event, given[0])])
                    inputs, *_ = self._deal(number, table, [event], given, np.full(1, np.nan), points)
                    table.resume(None, inputs, 1).play(events_of([PREDICT], [0]))
                except MemoryError:
                    raise
                except Exception as reason:
                    event.refused = _told(reason)

    def _play(self, events: list[Event]) -> list[SeriesAnswer]:
        moves = [_Moves(dict(waiting), len(waiting)) for waiting in self.waiting]
        answers = [self._take(event, moves) for event in events]
        for number, each in enumerate(moves):
            if each.kinds:
                self._move(number, each)
        return answers

    def _take(self, event: Event, moves: list[_Moves]) -> SeriesAnswer:
        """What an event does, and what will be said of it."""
        known, models = self.rounds.get(event.id), range(len(self.rules.forms))
        if event.given is None:
            if known is None:
                return SeriesAnswer(event, [UNKNOWN for _ in models])
            return SeriesAnswer(event, self._settle(event, known, moves), known, booked=True)
        if known is not None:
            new = [m for m in models if known.said[m, STATE] == NO_FORECAST and self._there(m, event.given[m])]
            if np.isnan(event.y):
                status = [SEEN if known.said[m, STATE] != NO_FORECAST else NO_FORECAST for m in models]
                answer = SeriesAnswer(event, status, known, booked=not known.waits)
            else:
                answer = SeriesAnswer(event, self._settle(event, known, moves), known, booked=True)
            for m in new:
                answer.status[m] = REFUSED
                model = self.rules.forms[m].model
                answer.reason = f"expected the forecasts of an id in one event, got that of {model!r} after others"
            return answer
        if self.forgotten is not None and event.time <= self.forgotten:
            return SeriesAnswer(event, [LATE for _ in models])
        return self._issue(event, moves)

    def _there(self, number: int, given: Array) -> bool:
        return bool(_present(self.rules.forms[number], given[None, :])[1][0])

    def _issue(self, event: Event, moves: list[_Moves]) -> SeriesAnswer:
        rules = self.rules
        widest = ANSWERS + max(len(shape.outputs) for shape in rules.shapes)
        fresh = SeriesRound(event.id, event.time, event.low, event.high, np.full((len(rules.forms), widest), np.nan))
        assert event.given is not None
        for number, form in enumerate(rules.forms):
            given, there = _present(form, event.given[number][None, :])
            event.given[number] = given[0]
            fresh.said[number, STATE] = PENDING if there[0] else NO_FORECAST
        if not fresh.waits:
            return SeriesAnswer(event, [NO_FORECAST for _ in rules.forms])
        self.rounds[event.id] = fresh
        if not rules.by_row:
            self.ends = event.low, event.high
        for number in np.flatnonzero(fresh.said[:, STATE] == PENDING).tolist():
            each = moves[number]
            if len(each.waiting) >= rules.max_pending:
                oldest = next(iter(each.waiting))
                each.add(DROP, each.waiting.pop(oldest).entry)
                self._end(self.rounds[oldest], number, LOST)
            wait = _Wait(each.old + len(each.new), fresh, self._point(number, event, event.given[number]))
            each.add(PREDICT, wait.entry)
            each.new.append((wait, event))
            each.waiting[event.id] = wait
        status = fresh.said[:, STATE].astype(int).tolist()
        if np.isnan(event.y):
            return SeriesAnswer(event, status, fresh)
        return SeriesAnswer(event, self._settle(event, fresh, moves), fresh, booked=True)

    def _settle(self, event: Event, known: SeriesRound, moves: list[_Moves]) -> list[int]:
        """Book an outcome in every game that waits for it."""
        told, waited = [], known.waits
        changed = not np.isnan(known.y) and known.y != event.y
        for number, shape in enumerate(self.rules.shapes):
            state = int(known.said[number, STATE])
            if state != PENDING:
                told.append(CORRECTED if changed and state in (OK, OUTSIDE) else SEEN if state == OK else state)
                continue
            table = self.rules.table(number, known.low, known.high)
            shift, scale = (
                _scaled(known.low, known.high, self.rules.by_row) if shape.ordered else (np.zeros(1), np.ones(1))
            )
            value = float(values_of(np.array([event.y]), shift, scale, table.space, self.rules.clip)[0])
            each = moves[number]
            entry = each.waiting.pop(known.id).entry
            each.add(DROP if np.isnan(value) else SETTLE, entry)
            if not np.isnan(value):
                each.settled.append((entry, known, value))
            told.append(OUTSIDE if np.isnan(value) else OK)
            known.said[number, STATE] = told[-1]
        if waited:
            known.y = event.y
            self._over(known)
        return told

    def _end(self, known: SeriesRound, number: int, state: int) -> None:
        known.said[number, STATE] = state
        if not known.waits:
            self._over(known)

    def _over(self, known: SeriesRound) -> None:
        """A round no longer waits: it comes last among those that are over, of which the first may be forgotten."""
        self.rounds[known.id] = self.rounds.pop(known.id)
        self.over += 1
        if self.over > self.rules.remember:
            gone = next(each for each in self.rounds.values() if not each.waits)
            del self.rounds[gone.id]
            self.over -= 1
            self.forgotten = gone.time if self.forgotten is None else max(self.forgotten, gone.time)

    # --- one model's game
    def _point(self, number: int, event: Event, given: Array) -> float:
        """A point forecast as it is played."""
        if self.rules.shapes[number].kind != "point":
            return np.nan
        shift, scale = _scaled(event.low, event.high, self.rules.by_row)
        return float((given[0] - shift[0]) / scale[0])

    def _deal(
        self, number: int, table: Runner, events: list[Event], given: Array, values: Array, points: Array
    ) -> tuple[RunInput, Array, Array]:
        shape = self.rules.shapes[number]
        low, high = (np.array([getattr(event, side) for event in events]) for side in ("low", "high"))
        shift, scale = scale_between(low, high, self.rules.by_row)
        if shape.kind != "point":
            points = np.empty(0)
        features = None if not events or events[0].features is None else [event.features for event in events]
        return inputs_of(shape, table.space, given, shift, scale, values, points, features), shift, scale

    def _move(self, number: int, moves: _Moves) -> None:
        """Play what happens in one model's game."""
        rules, shape = self.rules, self.rules.shapes[number]
        waits = [*self.waiting[number].values(), *(each for each, _ in moves.new)]
        table = rules.table(number, waits[0].round.low, waits[0].round.high)
        values, points = np.full(len(waits), np.nan), np.array([each.point for each in waits])
        for entry, _, value in moves.settled:
            values[entry] = value
        new = [event for _, event in moves.new]
        given = np.empty((0, shape.columns))
        if new:
            given = np.stack([event.given[number] for event in new if event.given is not None])
        inputs, shift, scale = self._deal(number, table, new, given, values, points)
        events = events_of(moves.kinds, moves.entries)
        most = moves.old + int(np.cumsum(np.where(events[:, 0] == PREDICT, 1, -1)).max(initial=0))
        seat = table.resume(self.lefts[number], inputs, max(most, 1))
        seat.play(events)
        limits = None
        if rules.by_row and shape.ordered:
            limits = (np.array([event.low for event in new]), np.array([event.high for event in new]))
        answers = answers_of(shape, seat, inputs, given, shift, scale, limits)
        if np.isnan(answers).any():
            raise ValueError("expected a forecast and bounds that an answer can be computed from, got others")
        for i, (wait, _) in enumerate(moves.new):
            said = wait.round.said[number]
            said[HOLDS] = seat.round_log[i, _ledger.RoundLog.HOLDS]
            said[PROMISED] = seat.round_log[i, _ledger.RoundLog.PROMISED]
            said[ANSWERS : ANSWERS + len(shape.outputs)] = answers[i]
        for entry, each, _ in moves.settled:
            each.said[number, MISCALIBRATION] = seat.settled[entry]
        self.lefts[number] = seat.left()
        # entries are numbered anew, in the order of the game's own
        whose = {each.entry: (id, each) for id, each in moves.waiting.items()}
        self.waiting[number] = {}
        for i, entry in enumerate(seat.waits().tolist()):
            id, wait = whose[entry]
            self.waiting[number][id] = _Wait(i, wait.round, wait.point)
        self._check(number, table)

    def _check(self, number: int, table: Runner) -> None:
        """What is left of a game must be such that it can go on: its numbers are finite, or else it is tried."""
        left = self.lefts[number]
        assert left is not None
        if np.isfinite(left.numbers[COUNTERS_SIZE:]).all() and all(np.isfinite(page).all() for page in left.records):
            return
        waits = self.waiting[number].values()
        values, points = np.full(len(waits), np.nan), np.array([each.point for each in waits])
        inputs, *_ = self._deal(number, table, [], np.empty((0, self.rules.shapes[number].columns)), values, points)
        try:
            table.resume(left, inputs, max(len(waits), 1))
        except ValueError as reason:
            raise ValueError(f"expected an event after which a game can go on, got {str(reason)!r}") from None

    # --- the state
    def state(self) -> bytes:
        """All of it as bytes, without pickle."""
        return self._written() if self._state is None else self._state

    def _written(self) -> bytes:
        rounds = list(self.rounds.values())
        parts = [np.array([[each.low, each.high, each.y] for each in rounds], dtype=np.float64).ravel()]
        parts += [each.said.ravel() for each in rounds]
        models: list[Any] = []
        for left, waiting in zip(self.lefts, self.waiting, strict=True):
            if left is None:
                models.append(None)
                continue
            width = len(left.records[0]) if left.records else 0
            features = None
            if any(each is not None for each in left.features):
                features = [features_to_json(each) for each in left.features]
            models.append([len(left.numbers), left.sizes, left.fields, width, list(waiting), features])
            parts += [left.numbers, np.array(left.issued), np.array([each.point for each in waiting.values()])]
            parts += left.records
        header = {
            "ids": [each.id for each in rounds],
            "times": [each.time for each in rounds],
            "forgotten": self.forgotten,
            "ends": self.ends,
            "models": models,
        }
        text = json.dumps(header, separators=(",", ":")).encode()
        body = np.concatenate([np.asarray(part, dtype="<f8") for part in parts]).astype("<f8").tobytes()
        return MAGIC + self.rules.mark + len(text).to_bytes(4, "little") + text + body

    def _read(self, state: bytes) -> None:
        start = len(MAGIC) + 8
        if state[: len(MAGIC)] != MAGIC:
            raise ValueError(f"expected a state of a stream that this version can use, got {state[:4]!r}")
        if state[len(MAGIC) : start] != self.rules.mark:
            raise ValueError(
                "expected the columns and options that the stream began with, got others: "
                "a stream with other ones needs a new checkpoint"
            )
        size = int.from_bytes(state[start : start + 4], "little")
        header = json.loads(state[start + 4 : start + 4 + size])
        numbers = np.frombuffer(state, dtype="<f8", offset=start + 4 + size).astype(np.float64)
        at = 0

        def cut(count: int) -> Array:
            nonlocal at
            at += count
            return numbers[at - count : at]

        shapes = self.rules.shapes
        widest = ANSWERS + max(len(shape.outputs) for shape in shapes)
        edges = cut(3 * len(header["ids"])).reshape(-1, 3).tolist()
        for id, time, (low, high, y) in zip(header["ids"], header["times"], edges, strict=True):
            said = cut(len(shapes) * widest).reshape(len(shapes), widest)
            self.rounds[id] = SeriesRound(id, time, low, high, said, y)
        self.over = sum(not each.waits for each in self.rounds.values())
        self.forgotten = header["forgotten"]
        self.ends = None if header["ends"] is None else tuple(header["ends"])
        for number, model in enumerate(header["models"]):
            if model is None:
                continue
            length, sizes, fields, width, ids, features = model
            game = cut(length)
            issued, points = cut(len(ids)).tolist(), cut(len(ids)).tolist()
            pages = [cut(width) for _ in ids]
            described: Fields = tuple((renamed(name), kind, tuple(sides)) for name, kind, sides in fields)
            waiting = [None] * len(ids) if features is None else [features_from_json(each) for each in features]
            self.lefts[number] = RunState(
                game, None if sizes is None else tuple(sizes), described, pages, issued, waiting
            )
            self.waiting[number] = {
                id: _Wait(i, self.rounds[id], point) for i, (id, point) in enumerate(zip(ids, points, strict=True))
            }
        if at != len(numbers):
            raise ValueError(f"expected a state of {at} numbers, got {len(numbers)}")


def _present(form: Form, given: Array) -> tuple[Array, NDArray[np.bool_]]:
    """Forecasts as they are read, and which are there."""
    columns = [given[:, i].copy() for i in range(given.shape[1])]
    there = rows_with_forecast(form, columns)
    return np.column_stack(columns), there


def _scaled(low: float, high: float, by_row: bool) -> tuple[Array, Array]:
    return scale_between(np.array([low]), np.array([high]), by_row)


def _told(reason: Exception) -> str:
    """Why, without the number of a row that nobody knows."""
    said = str(reason)
    if not said.startswith("expected "):
        said = f"expected an event that can be played, got {type(reason).__name__}: {said}"
    return re.sub(r" in row \d+$", "", said)
