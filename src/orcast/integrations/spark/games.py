"""The games of one series in a stream: a state of bytes and some events in, answers and a new state out.

Nothing here knows of Spark; rounds are played by the runners of panels.  An event is a forecast with an id, an outcome
with the id of its forecast, or both.  What comes of events does not depend on how they are cut into batches, as long as
the batches are in the order of play.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orcast import limits
from orcast.kernels.records import DROP, PREDICT, SETTLE
from orcast.packed import PackedRounds, record_fields
from orcast.integrations.spark.events import (
    ANSWERS_AT,
    Event,
    RoundColumn,
    SeriesAnswer,
    SeriesRound,
    Time,
    forecasts_of,
    refusal_text,
)
from orcast.ledger import RoundLog
from orcast.panel.calendar import seasons_of
from orcast.panel.columns import Form
from orcast.panel.experts import ForecastShape
from orcast.panel.runner import Runner, RunnerPool, RunState, events_of, with_heard
from orcast.panel.statuses import Status
from orcast.payoffs import Payoff
from orcast.persistence import UNREADABLE, unusable
from orcast.serialise import features_from_json, features_to_json

Array = NDArray[np.float64]

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
            runner.resume(None, new, np.full(1, np.nan), runner.points(new), first).play(first)

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
            plan.points.append(float(runner.points(forecasts_of(runner, [event], number))[0]) if point else np.nan)
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
        events = with_heard(np.array(plan.events, dtype=np.int64), -1)
        run = runner.resume(self.games[number], new, values, self._points(number, plan.points), events)
        if plan.step is not None and self.options.tick:
            runner.presume_seasons(seasons_of(int(plan.step * self.options.tick)))
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

    def _points(self, number: int, points: Iterable[float]) -> Array:
        return np.array(list(points)) if self.options.shapes[number].kind == "point" else np.empty(0)

    def _check(self, number: int, runner: Runner) -> None:
        """A game must be such that it can go on: its numbers are finite, or else it is tried."""
        game, pending = self.games[number], self.pending[number]
        assert game is not None
        if np.isfinite(game.memory).all() and np.isfinite(game.rounds.records).all():
            return
        points = self._points(number, pending.values())
        try:
            runner.resume(
                game, forecasts_of(runner, [], number), np.full(len(pending), np.nan), points, events_of([], [])
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
        for game, pending in zip(self.games, self.pending, strict=True):
            if game is None:
                models.append(None)
                continue
            packed, features = game.rounds, None
            if any(each is not None for each in packed.features):
                features = [features_to_json(each) for each in packed.features]
            numbers = np.concatenate((packed.counters, game.errors, game.memory))
            width = packed.records.shape[1] if len(pending) else 0
            models.append([len(numbers), game.sizes, packed.fields, width, list(pending), features])
            parts += [numbers, packed.issued, np.array(list(pending.values())), packed.records]
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
            length, sizes, fields, width, ids, features = model
            game, issued, points = cut(length), cut(len(ids)), cut(len(ids)).tolist()
            own = [None] * len(ids) if features is None else [features_from_json(each) for each in features]
            packed = PackedRounds(game[:3], record_fields(fields), cut(len(ids), width), issued, own)
            self.games[number] = RunState(packed, game[3:5], game[5:], None if sizes is None else tuple(sizes))
            self.pending[number] = dict(zip(ids, points, strict=True))
        if at != len(numbers):
            raise ValueError(f"expected a state of {at} numbers, got {len(numbers)}")
