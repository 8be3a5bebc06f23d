"""The games of one series in a stream: a state of bytes and some events in, answers and a new state out.

Nothing here knows of Spark; rounds are played by the runners of panels.  An event is a forecast with an id, an outcome
with the id of its forecast, or both.  What comes of events does not depend on how they are cut into batches, as long as
the batches are in the order of play.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orcast import limits
from orcast.frame.experts import ForecastShape, rows_with_forecast
from orcast.frame.groups import committee_bounds, plan_of
from orcast.frame.names import Form
from orcast.frame.runner import CompiledRun, NewForecasts, PythonRun, Runner, RunnerPool, RunState, events_of
from orcast.frame.statuses import Status
from orcast.frame.times import seasons_of
from orcast.integrations.spark.alone import LoneState, run_alone
from orcast.kernels.records import DROP, PREDICT, SETTLE
from orcast.ledger import RoundLog
from orcast.packed import PackedRounds, record_fields
from orcast.payoffs import Payoff
from orcast.persistence import UNREADABLE, unusable
from orcast.serialise import features_from_json, features_to_json
from orcast.spaces import OrderedSpace

Array = NDArray[np.float64]
Time = int | float


class RoundColumn(IntEnum):
    """What is kept of a round and model; the answers follow."""

    STATUS = 0
    HOLDS = 1
    PROMISED = 2
    MISCALIBRATION = 3


ANSWERS_AT = len(RoundColumn)


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
    there: list[bool] = field(default_factory=list)  # which models have a forecast, once it is read

    def rank(self) -> Any:
        """The order of play: by time, forecasts before outcomes, then by id; equal ones by what they hold."""
        content = b"" if self.given is None else b"".join(row.tobytes() for row in self.given)
        return self.time, self.given is None, self.order, repr(self.y), content

    def read(self, forms: Sequence[Form]) -> None:
        """Read the forecasts; one that is none, such as a negative deviation, is why the event is refused."""
        if self.given is None:
            return
        self.there = []
        try:
            for number, form in enumerate(forms):
                columns = [np.array([value]) for value in self.given[number].tolist()]
                self.there.append(bool(rows_with_forecast(form, columns)[0]))
                self.given[number] = np.concatenate(columns)
        except (TypeError, ValueError) as reason:
            self.refused = refusal_text(reason)


@dataclass
class SeriesRound:
    """A forecast that was made, with a row of numbers for each model: see `RoundColumn`."""

    id: str
    time: Time
    low: float
    high: float
    models: Array
    y: float = np.nan

    @property
    def pending(self) -> bool:
        """Whether a model has no outcome yet."""
        return bool((self.models[:, RoundColumn.STATUS] == Status.PENDING).any())

    @property
    def bounds(self) -> tuple[Array, Array]:
        """Its bounds, as those of one row."""
        return np.array([self.low]), np.array([self.high])


@dataclass
class SeriesAnswer:
    """The answer to an event: by model a status, and the numbers of its round as far as they are known by then."""

    event: Event
    status: list[int]
    round: SeriesRound | None = None
    settled: bool = False  # whether the miscalibration after the outcome is part of it
    reason: str | None = None

    def numbers(self, model: int, width: int) -> Array:
        """The numbers of a model as a row of `SeriesRound.models` has them; nan where there are none."""
        if self.round is None:
            return np.full(width, np.nan)
        numbers = self.round.models[model, :width].copy()
        if self.event.given is None:
            numbers[ANSWERS_AT:] = np.nan  # the row of an outcome does not repeat the forecast
        if not self.settled:
            numbers[RoundColumn.MISCALIBRATION] = np.nan
        return numbers


def forecasts_of(runner: Runner, events: list[Event], number: int) -> NewForecasts:
    """The forecasts of a model in some events."""
    given = [event.given[number] for event in events if event.given is not None]
    low, high = (np.array([getattr(event, side) for event in events], dtype=np.float64) for side in ("low", "high"))
    features = None if not events or events[0].features is None else [event.features for event in events]
    return runner.new(np.array(given).reshape(len(events), runner.shape.columns), low, high, features)


def refusal_text(reason: Exception) -> str:
    """Why, without the number of a row that nobody knows."""
    text = str(reason)
    if not text.startswith("expected "):
        text = f"expected an event that can be played, got {type(reason).__name__}: {text}"
    return re.sub(r" in row \d+$", "", text)


def _resumed(
    runner: Runner,
    game: RunState | None,
    committee: LoneState | None,
    new: NewForecasts,
    values: Array,
    events: NDArray[np.int64],
    points: list[float],
    seasons: Sequence[int] = (),
) -> tuple[CompiledRun | PythonRun, LoneState | None]:
    """Run the committee of a game, where it has one, and let the game go on with what comes of it."""
    space, none = runner.space, np.empty(0)
    if not isinstance(space, OrderedSpace):
        experts = runner.experts(new, none, none)
        return runner.resume(game, new, values, events, experts, experts), None
    more: dict[str, Any] = {}
    if runner.shape.kind == "point":
        more = {"points": np.array(points), "spreads": runner.first_spreads(new)}
        experts = np.empty((len(new.given), len(space.levels)))
    else:
        experts = runner.experts(new, none, none)
    issued = 0 if game is None else game.before().rounds
    bounds = committee_bounds(space, float(new.low[0])) if len(new.low) else (space.low, space.high)
    priors, committee = run_alone(
        committee, space, bounds, values, experts, events, issued=issued, seasons=seasons, **more
    )
    return runner.resume(game, new, values, events, experts, priors), committee


# --- games

MAGIC = b"ORC1"

# What a round of a model may be remembered as.
KEPT = (Status.OK, Status.PENDING, Status.NO_FORECAST, Status.OUTSIDE, Status.LOST)
# Streams whose runners a Python process keeps, times their models.
MOST_POOLS = 64

_pools: dict[Any, RunnerPool] = {}


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
    tick: int = 0  # nanoseconds of a unit of time, where times are those of a calendar

    def runner(self, number: int, low: float, high: float) -> Runner:
        """What plays a model's games with these bounds; kept from batch to batch."""
        key = (self.mark, number, id(self.payoff) if self.functions else None)
        if key not in _pools:
            if len(_pools) >= MOST_POOLS:
                _pools.clear()
            _pools[key] = RunnerPool(self.shapes[number], self.payoff, None, self.by_row)
        return _pools[key].between(low, high)

    @property
    def width(self) -> int:
        """Numbers that are kept of a round and model."""
        return ANSWERS_AT + max(len(shape.outputs) for shape in self.shapes)


def mark_of(*options: Any) -> bytes:
    """A mark of options that are plain data."""
    return hashlib.blake2b(json.dumps(options, sort_keys=True, default=str).encode(), digest_size=8).digest()


@dataclass
class _ModelEvents:
    """What happens in one model's game; its entries are the rounds that were pending, then the new ones."""

    pending: dict[str, int]  # entries by id
    points: list[float]  # of every entry, if its forecast is a point
    events: list[tuple[int, int]] = field(default_factory=list)  # kind and entry
    new: list[tuple[SeriesRound, Event]] = field(default_factory=list)
    settled: dict[int, tuple[SeriesRound, float]] = field(default_factory=dict)  # by entry, with outcomes as played
    runner: Runner | None = None
    step: Time | None = None  # from the first forecast of the game to the second, if that is among the new ones


class Games:
    """The games of a series, one for each model, and the rounds that are remembered.

    At most ``max_pending`` rounds of a model are pending, then the oldest is lost; the last ``remember`` that are over
    are remembered.  A forecast that is not later than one that was forgotten is not answered: it may be one that was.
    """

    def __init__(self, options: SeriesOptions, state: bytes | None = None) -> None:
        self.options = options
        self._restore(state)

    def _restore(self, state: bytes | None) -> None:
        """Be as a state has it, or at the start."""
        self._state = state
        self.rounds: dict[str, SeriesRound] = {}
        self.games: list[RunState | None] = [None] * len(self.options.forms)
        self.committees: list[LoneState | None] = [None] * len(self.options.forms)
        self.pending: list[dict[str, float]] = [{} for _ in self.options.forms]  # points, if there are, by id
        self.forgotten: Time | None = None
        self.bounds: tuple[float, float] | None = None  # that are not those of rows
        self.over = 0
        if state is not None:
            try:
                self._read(state)
            except UNREADABLE as reason:
                if str(reason).startswith("expected"):
                    raise
                raise unusable(reason) from reason

    # --- events
    def play(self, events: Sequence[Event]) -> list[SeriesAnswer]:
        """Play events in the order of play; what is refused, or cannot be played, changes nothing."""
        ordered = sorted((event for event in events if event.refused is None), key=Event.rank)
        self._refuse_other_bounds(ordered)
        for event in ordered:
            if event.refused is None:
                event.read(self.options.forms)
        ordered = [event for event in ordered if event.refused is None]
        try:
            answers = self._played(ordered)
        except MemoryError:
            raise
        except Exception:
            self._restore(self._state)
            answers = self._one_by_one(ordered)
        bad = [event for event in events if event.refused is not None]
        models = len(self.options.forms)
        return [*answers, *(SeriesAnswer(event, [Status.REFUSED] * models, reason=event.refused) for event in bad)]

    def _one_by_one(self, events: list[Event]) -> list[SeriesAnswer]:
        """Play events of which some cannot be: these are found and refused."""
        answers = []
        for event in events:
            try:
                self._try_forecasts(event)
                answers += self._played([event])
            except MemoryError:
                raise
            except Exception as reason:
                event.refused = refusal_text(reason)
                self._restore(self._state)
        return answers

    def _try_forecasts(self, event: Event) -> None:
        """Play the forecasts of an event alone: features that a context or a function cannot take are named so."""
        for number in np.flatnonzero(event.there).tolist():
            runner = self.options.runner(number, event.low, event.high)
            new, first = forecasts_of(runner, [event], number), events_of([PREDICT], [0])
            points = runner.points(new.given, new.units).tolist()
            _resumed(runner, None, None, new, np.full(1, np.nan), first, points)[0].play(first)

    def _played(self, events: list[Event]) -> list[SeriesAnswer]:
        """Play events, and write the state after them."""
        plans = [
            _ModelEvents({id: entry for entry, id in enumerate(pending)}, list(pending.values()))
            for pending in self.pending
        ]
        answers = [self._answer(event, plans) for event in events]
        for number, plan in enumerate(plans):
            if plan.events:
                self._play_model(number, plan)
        self._state = self._written()
        return answers

    def _refuse_other_bounds(self, events: list[Event]) -> None:
        """Forecasts with other bounds than the series began with."""
        if self.options.by_row:
            return
        began = self.bounds
        for event in events:
            if event.given is None:
                continue
            bounds = event.low, event.high
            began = began or bounds
            if bounds != began:
                then, now = (f"{low:g} to {high:g}" for low, high in (began, bounds))
                event.refused = f"expected the bounds that the series began with, {then}, got {now}"

    def _answer(self, event: Event, plans: list[_ModelEvents]) -> SeriesAnswer:
        """What an event leads to in each game, and its answer, whose numbers are still to come."""
        forms, known, usual = self.options.forms, self.rounds.get(event.id), Status.SEEN
        if known is None:
            if event.given is None:
                return SeriesAnswer(event, [Status.UNKNOWN] * len(forms))
            if self.forgotten is not None and event.time <= self.forgotten:
                return SeriesAnswer(event, [Status.LATE] * len(forms))
            if not any(event.there):
                return SeriesAnswer(event, [Status.NO_FORECAST] * len(forms))
            known, usual = self._issue(event, plans), Status.PENDING
        missing = known.models[:, RoundColumn.STATUS] == Status.NO_FORECAST
        if np.isnan(event.y):
            status: list[int] = [Status.NO_FORECAST if none else usual for none in missing]
            answer = SeriesAnswer(event, status, known, settled=not known.pending)
        else:
            answer = SeriesAnswer(event, self._settle(event, known, plans), known, settled=True)
        for number in np.flatnonzero(missing & event.there if event.there else ()).tolist():
            answer.status[number] = Status.REFUSED
            model = forms[number].model
            answer.reason = f"expected the forecasts of an id in one event, got that of {model!r} after others"
        return answer

    def _issue(self, event: Event, plans: list[_ModelEvents]) -> SeriesRound:
        """A new round, and its forecast in each game that has one."""
        options = self.options
        numbers = np.full((len(options.forms), options.width), np.nan)
        numbers[:, RoundColumn.STATUS] = np.where(event.there, Status.PENDING, Status.NO_FORECAST)
        fresh = SeriesRound(event.id, event.time, event.low, event.high, numbers)
        self.rounds[event.id] = fresh
        if not options.by_row:
            self.bounds = event.low, event.high
        for number in np.flatnonzero(event.there).tolist():
            plan = plans[number]
            if len(plan.pending) >= options.max_pending:
                oldest = next(iter(plan.pending))
                plan.events.append((DROP, plan.pending.pop(oldest)))
                self._lose(self.rounds[oldest], number)
            if self._issued(number) + len(plan.new) == 1:
                plan.step = self._first_step(number, fresh)
            plan.runner = runner = options.runner(number, event.low, event.high)
            plan.pending[event.id] = entry = len(plan.points)
            point = options.shapes[number].kind == "point"
            new = forecasts_of(runner, [event], number)
            plan.points.append(float(runner.points(new.given, new.units)[0]) if point else np.nan)
            plan.events.append((PREDICT, entry))
            plan.new.append((fresh, event))
        return fresh

    def _issued(self, number: int) -> int:
        """Forecasts of a model before the events that are being played."""
        game = self.games[number]
        return 0 if game is None else game.before().rounds

    def _first_step(self, number: int, second: SeriesRound) -> Time | None:
        """How long after the first forecast of a model its second one comes, if that is still remembered."""
        other = [each for each in self.rounds.values() if each is not second]
        there = [each.time for each in other if each.models[number, RoundColumn.STATUS] != Status.NO_FORECAST]
        return second.time - there[0] if there else None

    def _settle(self, event: Event, known: SeriesRound, plans: list[_ModelEvents]) -> list[int]:
        """Settle every game in which the round of an outcome is pending; the status in each."""
        found: list[int] = []
        was_pending = known.pending
        changed = not np.isnan(known.y) and known.y != event.y
        for number, plan in enumerate(plans):
            status = int(known.models[number, RoundColumn.STATUS])
            if status != Status.PENDING:
                corrected = changed and status in (Status.OK, Status.OUTSIDE)
                found.append(Status.CORRECTED if corrected else Status.SEEN if status == Status.OK else status)
                continue
            plan.runner = runner = self.options.runner(number, known.low, known.high)
            value = float(runner.outcomes(np.array([event.y]), runner.units(*known.bounds), self.options.clip)[0])
            entry = plan.pending.pop(known.id)
            plan.events.append((DROP if np.isnan(value) else SETTLE, entry))
            if not np.isnan(value):
                plan.settled[entry] = known, value
            found.append(Status.OUTSIDE if np.isnan(value) else Status.OK)
            known.models[number, RoundColumn.STATUS] = found[-1]
        if was_pending:
            known.y = event.y
            self._end(known)
        return found

    def _lose(self, known: SeriesRound, number: int) -> None:
        known.models[number, RoundColumn.STATUS] = Status.LOST
        if not known.pending:
            self._end(known)

    def _end(self, known: SeriesRound) -> None:
        """A round is over: it comes last among those that are, of which the first may be forgotten."""
        self.rounds[known.id] = self.rounds.pop(known.id)
        self.over += 1
        if self.over > self.options.remember:
            gone = next(each for each in self.rounds.values() if not each.pending)
            del self.rounds[gone.id]
            self.over -= 1
            self.forgotten = gone.time if self.forgotten is None else max(self.forgotten, gone.time)

    # --- one model's game
    def _play_model(self, number: int, plan: _ModelEvents) -> None:
        """Play what happens in one model's game."""
        shape, runner = self.options.shapes[number], plan.runner
        assert runner is not None
        values = np.full(len(plan.points), np.nan)
        for entry, (_, value) in plan.settled.items():
            values[entry] = value
        new = forecasts_of(runner, [event for _, event in plan.new], number)
        events = np.array(plan.events, dtype=np.int64)
        step = 0 if plan.step is None else int(plan.step * self.options.tick)
        run, self.committees[number] = _resumed(
            runner, self.games[number], self.committees[number], new, values, events, plan.points, seasons_of(step)
        )
        run.play(events)
        answers = runner.answers(run, new)
        if np.isnan(answers).any():
            raise ValueError("expected a forecast and bounds that an answer can be computed from, got others")
        for (fresh, _), log, answer in zip(plan.new, run.outputs.round_log, answers, strict=True):
            row = fresh.models[number]
            row[RoundColumn.HOLDS], row[RoundColumn.PROMISED] = log[RoundLog.HOLDS], log[RoundLog.PROMISED]
            row[ANSWERS_AT : ANSWERS_AT + len(shape.outputs)] = answer
        for entry, (known, _) in plan.settled.items():
            known.models[number, RoundColumn.MISCALIBRATION] = run.outputs.settled[entry]
        self.games[number] = run.state()
        ids = {entry: id for id, entry in plan.pending.items()}
        self.pending[number] = {ids[entry]: plan.points[entry] for entry in run.pending.tolist()}
        self._check(number, runner)

    def _check(self, number: int, runner: Runner) -> None:
        """Refuse a state that cannot go on: its numbers are finite, or else it is tried."""
        game, pending = self.games[number], self.pending[number]
        assert game is not None
        if np.isfinite(game.memory).all() and np.isfinite(game.rounds.records).all():
            return
        new, none = forecasts_of(runner, [], number), events_of([], [])
        try:
            _resumed(
                runner,
                game,
                self.committees[number],
                new,
                np.full(len(pending), np.nan),
                none,
                list(pending.values()),
            )
        except ValueError as reason:
            raise ValueError(f"expected an event after which a game can go on, got {str(reason)!r}") from None

    # --- the state
    def state(self) -> bytes:
        """All of it as bytes, without pickle."""
        return self._written() if self._state is None else self._state

    def _written(self) -> bytes:
        rounds = list(self.rounds.values())
        parts = [np.array([[each.low, each.high, each.y] for each in rounds], dtype=np.float64)]
        parts += [each.models for each in rounds]
        models: list[Any] = []
        for game, committee, pending in zip(self.games, self.committees, self.pending, strict=True):
            if game is None:
                models.append(None)
                continue
            packed, features = game.rounds, None
            if any(each is not None for each in packed.features):
                features = [features_to_json(each) for each in packed.features]
            numbers = np.concatenate((packed.counters, game.memory))
            width = packed.records.shape[1] if len(pending) else 0
            models.append(
                [len(numbers), game.sizes, packed.fields, width, list(pending), features, committee is not None]
            )
            parts += [numbers, packed.issued, np.array(list(pending.values())), packed.records]
            parts += [] if committee is None else list(committee)
        header = {
            "ids": [each.id for each in rounds],
            "times": [each.time for each in rounds],
            "forgotten": self.forgotten,
            "ends": self.bounds,
            "models": models,
        }
        text = json.dumps(header, separators=(",", ":")).encode()
        body = np.concatenate([np.asarray(part, dtype="<f8").ravel() for part in parts]).astype("<f8").tobytes()
        return MAGIC + self.options.mark + len(text).to_bytes(4, "little") + text + body

    def _read(self, state: bytes) -> None:
        start = len(MAGIC) + 8
        if state[: len(MAGIC)] != MAGIC:
            raise ValueError(f"expected a state of a stream that this version can use, got {state[:4]!r}")
        if state[len(MAGIC) : start] != self.options.mark:
            raise ValueError(
                "expected the columns and options that the stream began with, got others: "
                "a stream with other ones needs a new checkpoint"
            )
        size = int.from_bytes(state[start : start + 4], "little")
        header = limits.parsed_json(state[start + 4 : start + 4 + size].decode(), parse_constant=float)
        numbers = np.frombuffer(state, dtype="<f8", offset=start + 4 + size).astype(np.float64)
        at = 0

        def cut(*shape: int) -> Array:
            nonlocal at
            part = numbers[at : at + int(np.prod(shape))]
            at += part.size
            return part.reshape(shape)

        edges = cut(len(header["ids"]), 3).tolist()
        for id, time, (low, high, y) in zip(header["ids"], header["times"], edges, strict=True):
            self.rounds[id] = SeriesRound(id, time, low, high, cut(len(self.options.forms), self.options.width), y)
        times = [each.time for each in self.rounds.values()]
        if not all(isinstance(time, (int, float)) and not isinstance(time, bool) for time in times):
            raise TypeError("times are numbers")
        if not all(isinstance(id, str) for id in self.rounds) or len(self.rounds) < len(header["ids"]):
            raise ValueError("ids are text, each once")
        for each in self.rounds.values():
            if not np.isin(each.models[:, RoundColumn.STATUS], KEPT).all():
                raise ValueError("a round is in no known state")
        self.over = sum(not each.pending for each in self.rounds.values())
        self.forgotten = header["forgotten"]
        if header["ends"] is not None:
            low, high = map(float, header["ends"])
            self.bounds = low, high
        if not isinstance(self.forgotten, (int, float, type(None))):
            raise TypeError("times are numbers")
        for number, model in enumerate(header["models"]):
            if model is None:
                continue
            length, sizes, fields, width, ids, features, corrected = model
            game, issued, points = cut(length), cut(len(ids)), cut(len(ids)).tolist()
            own = [None] * len(ids) if features is None else [features_from_json(each) for each in features]
            packed = PackedRounds(game[:3], record_fields(fields), cut(len(ids), width), issued, own)
            self.games[number] = RunState(packed, game[3:], None if sizes is None else tuple(sizes))
            if corrected:
                plan = plan_of(False, True)
                rows = cut(plan.stream_size), cut(plan.series_size), cut(len(ids), plan.memo_size)
                self.committees[number] = LoneState(*rows)
            self.pending[number] = dict(zip(ids, points, strict=True))
        if at != len(numbers):
            raise ValueError(f"expected a state of {at} numbers, got {len(numbers)}")
