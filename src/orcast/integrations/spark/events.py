"""The events of one series in a stream, its rounds, and the answers to events."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orcast.panel.columns import Form
from orcast.panel.experts import rows_with_forecast
from orcast.panel.runner import NewForecasts, Runner
from orcast.panel.statuses import Status

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
