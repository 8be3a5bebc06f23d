"""Small streams for the tests of the comparison, and a method that records its calls."""

from typing import Any

import numpy as np
from scipy.special import ndtri

from research.comparison.catalogue import Entry
from research.comparison.runner import Group
from research.comparison.stream import Stream
from tests.adversaries import BesideQuantile

LEVELS = np.array([0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99])
Calls = list[tuple[str, Any, float]]


def one_step(rows: int = 60, late: int = 1, seed: int = 0) -> Stream:
    """Base forecast that is too low and too narrow; outcomes are known `late` rows later."""
    rng = np.random.default_rng(seed)
    mean, t = rng.normal(0.0, 2.0, rows), np.arange(rows)
    q = mean[:, None] + 0.7 * ndtri(LEVELS)
    y = mean + 0.5 + rng.standard_normal(rows)
    return Stream("hills", "one-step", LEVELS, {"e": q}, y, t, t + late)


def panel(series: int = 3, weeks: int = 25, horizons: int = 2) -> Stream:
    """Series that are forecast some weeks ahead, all at once in each week."""
    rng = np.random.default_rng(1)
    issued, one, ahead = (
        a.ravel() for a in np.meshgrid(np.arange(weeks), np.arange(series), np.arange(1, horizons + 1), indexing="ij")
    )
    means = rng.gamma(4.0, 1.0, (weeks + horizons, series))
    outcomes = np.maximum(means + rng.standard_normal(means.shape), 0.0)
    mean, y = means[issued + ahead, one], outcomes[issued + ahead, one]
    q = np.maximum(mean[:, None] + 0.6 * ndtri(LEVELS), 0.0)
    return Stream("weeks", "weekly-late", LEVELS, {"e": q}, y, issued, issued + ahead, 0.0,
                  series=one, horizon=ahead)  # fmt: skip


def events(rows: int = 80) -> Stream:
    """Overconfident probabilities."""
    rng = np.random.default_rng(2)
    right, t = rng.random(rows), np.arange(rows)
    y = (rng.random(rows) < right) * 1.0
    bold = right**2 / (right**2 + (1.0 - right) ** 2)
    return Stream("rain", "binary", np.empty(0), {"e": bold}, y, t, t + 1, 0.0, 1.0)


def adversarial(rows: int = 40) -> Stream:
    """Outcomes beside an issued quantile."""
    t = np.arange(rows)
    q = np.tile(0.5 + 0.1 * ndtri(LEVELS), (rows, 1))
    return Stream("adversary", "adversarial", LEVELS, {"e": q}, np.full(rows, 0.5), t, t + 1,
                  0.0, 1.0, adversary=BesideQuantile)  # fmt: skip


MAKERS = {"hills": one_step, "weeks": panel, "rain": events, "adversary": adversarial}


def entries(*names: str) -> list[Entry]:
    """Entries of these streams, or of all."""
    made = {name: MAKERS[name]() for name in names or MAKERS}
    return [Entry(name, s.kind, s.rows, MAKERS[name]) for name, s in made.items()]


class Spy:
    """Issues the base forecast and records its calls in order."""

    def __init__(self, calls: Calls) -> None:
        self.calls = calls

    def predict(self, forecast: Any, *, id: Any) -> Any:
        value = float(forecast) if isinstance(forecast, float) else float(forecast.quantile(0.5))
        self.calls.append(("predict", id, value))
        return forecast

    def update(self, y: float, *, id: Any) -> None:
        self.calls.append(("update", id, float(y)))


def spies(calls: Calls) -> Any:
    """Factory of spies with one record."""

    def start(stream: Stream, group: Group) -> Spy:
        return Spy(calls)

    return start
