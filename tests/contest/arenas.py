"""Small streams that the tests of the contest play, and what they play them with."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from orcast.contest.play import Game
from orcast.contest.stream import Stream
from orcast.testing.natures import BesideQuantile

LEVELS = np.array([0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99])
NO_LEVELS = np.empty(0)


def one_step(rows: int = 60, late: int = 1, seed: int = 0) -> Stream:
    """An expert that is too low and too narrow; outcomes are known so many rows later."""
    rng = np.random.default_rng(seed)
    mean = rng.normal(0.0, 2.0, rows)
    t = np.arange(rows)
    q = mean[:, None] + 0.7 * ndtri(LEVELS)
    y = mean + 0.5 + rng.standard_normal(rows)
    return Stream("hills", "one-step", "made up", "the hill", LEVELS, {"e": q}, y, t, t + late)


def panel(series: int = 3, weeks: int = 25, horizons: int = 2) -> Stream:
    """Series that are forecast some weeks ahead, all at once in each week."""
    rng = np.random.default_rng(1)
    issued, one, ahead = (
        a.ravel() for a in np.meshgrid(np.arange(weeks), np.arange(series), np.arange(1, horizons + 1), indexing="ij")
    )
    mean = rng.gamma(4.0, 1.0, issued.size)
    q = np.maximum(mean[:, None] + 0.6 * ndtri(LEVELS), 0.0)
    y = np.maximum(mean + rng.standard_normal(issued.size), 0.0)
    knew = "weeks before"
    return Stream("weeks", "weekly-late", "made up", knew, LEVELS, {"e": q}, y, issued, issued + ahead, 0.0,
                  series=one, horizon=ahead)  # fmt: skip


def events(rows: int = 80) -> Stream:
    """Probabilities that are too bold."""
    rng = np.random.default_rng(2)
    right = rng.random(rows)
    y = (rng.random(rows) < right) * 1.0
    bold = right**2 / (right**2 + (1.0 - right) ** 2)
    t = np.arange(rows)
    return Stream("rain", "binary", "made up", "the sky", NO_LEVELS, {"e": bold}, y, t, t + 1, 0.0, 1.0)


def against_nature(rows: int = 40) -> Stream:
    """An adversary who picks outcomes beside the quantiles that she sees."""
    t = np.arange(rows)
    q = np.tile(0.5 + 0.1 * ndtri(LEVELS), (rows, 1))
    return Stream("nature", "adversarial", "made up", "nothing", LEVELS, {"e": q}, np.full(rows, 0.5), t, t + 1,
                  0.0, 1.0, nature=BesideQuantile)  # fmt: skip


MAKERS = {"hills": one_step, "weeks": panel, "rain": events, "nature": against_nature}


@dataclass(frozen=True)
class Small:
    """An entry that a worker can be sent."""

    name: str

    def make(self) -> Stream:
        return MAKERS[self.name]()

    def __getattr__(self, name: str) -> Any:
        if name in ("kind", "source", "rows"):
            return getattr(self.make(), name)
        raise AttributeError(name)


def entries() -> list[Small]:
    """All of them."""
    return [Small(name) for name in MAKERS]


def two_entries() -> list[Small]:
    """A quantity and an event."""
    return [Small("hills"), Small("rain")]


class Spy:
    """Issues what it is given, and writes down what it is told, in order."""

    def __init__(self, told: list[tuple[str, Any, float]]) -> None:
        self.told = told

    def predict(self, forecast: Any, *, id: Any) -> Any:
        value = float(forecast) if isinstance(forecast, float) else float(forecast.quantile(0.5))
        self.told.append(("asked", id, value))
        return forecast

    def update(self, y: float, *, id: Any) -> None:
        self.told.append(("told", id, float(y)))


def spies(told: list[tuple[str, Any, float]]) -> Any:
    """A factory of spies with one notebook."""

    def start(stream: Stream, game: Game) -> Spy:
        return Spy(told)

    return start
