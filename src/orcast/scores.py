"""Proper scoring rules: smaller is better, and the true distribution has the smallest expected score."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orcast.forecasts import Forecast
from orcast.spaces import Binary, FiniteSpace, OrderedSpace, Space

Array = NDArray[np.float64]


class Score:
    """Proper scoring rule: called with a forecast and an outcome."""

    name: str

    def __call__(self, forecast: Any, y: Any) -> float:
        """Score of one forecast."""
        if isinstance(forecast, Forecast):
            raise TypeError(f"expected a forecast on a finite space for {self!r}, got {forecast!r}")
        space = forecast.space
        return float(self.on_cells(space, np.asarray(forecast.mass))[space.cell(space.outcome(y))])

    def on_cells(self, space: Space, mass: Array) -> Array:
        """Scores of masses on a finite space, for an outcome in each cell."""
        raise AttributeError(f"{type(self).__name__} has no value")

    def check(self, space: Space) -> None:
        """Refuse an unsuitable space."""

    def bound(self, space: Space) -> float:
        """Largest score on a space, where the smallest is 0; inf if there is none."""
        return math.inf

    def to_plain(self) -> dict[str, Any]:
        """Plain data."""
        return {"kind": type(self).__name__}


def _span(space: Space) -> float:
    """Largest distance of two outcomes."""
    if isinstance(space, OrderedSpace):
        return space.high - space.low
    assert isinstance(space, FiniteSpace)
    return float(space.distances.max())


@dataclass(frozen=True)
class CRPS(Score):
    """Continuous ranked probability score (Gneiting and Raftery 2007).

        score(p, y) = integral of (F_p(z) - 1{z >= y})^2 dz

    On a finite space it is the energy score E d(Y, y) - E d(Y, Y') / 2 with the space's own distance: arcs on a circle,
    Euclidean in a box; on labels half the Brier score.

    >>> import orcast as oc
    >>> oc.CRPS()(oc.Forecast([0.0], [1.0], [1.0]), 0.5)
    0.08333333333333333
    """

    name = "crps"

    def __call__(self, forecast: Any, y: Any) -> float:
        if isinstance(forecast, Forecast):
            return forecast.crps(y)
        return super().__call__(forecast, y)

    def on_cells(self, space: Space, mass: Array) -> Array:
        away: Array = space.distances @ mass  # type: ignore[attr-defined]
        return away - 0.5 * (mass @ away)

    def bound(self, space: Space) -> float:
        """Score with all mass at one end and the outcome at the other."""
        return _span(space)


@dataclass(frozen=True)
class MSE(Score):
    """Squared error of the mean (Gneiting 2011).

        score(p, y) = (E_p[y'] - y)^2

    >>> import orcast as oc
    >>> oc.MSE()(oc.Forecast([0.0], [1.0], [1.0]), 1.0)
    0.25
    """

    name = "mse"

    def __call__(self, forecast: Any, y: Any) -> float:
        return float((forecast.mean() - y) ** 2)

    def on_cells(self, space: Space, mass: Array) -> Array:
        return np.array([mass[1] ** 2, (1.0 - mass[1]) ** 2])

    def check(self, space: Space) -> None:
        """Refuse spaces without means and differences."""
        if not isinstance(space, (OrderedSpace, Binary)):
            raise TypeError(f"expected an ordered space or Binary() for {self!r}, got {space!r}")

    def bound(self, space: Space) -> float:
        """Score with the mean at one end and the outcome at the other."""
        return _span(space) ** 2 if isinstance(space, OrderedSpace) else 1.0


@dataclass(frozen=True)
class Brier(Score):
    """Brier score of probabilities (Brier 1950).

        score(p, y) = (p - y)^2 for a binary outcome,    sum_j (p_j - 1{y = j})^2 for labels and other cells

    >>> import orcast as oc
    >>> round(oc.Brier()(oc.forecasts.BinaryForecast(0.7), 1), 3)
    0.09
    """

    name = "brier"

    def on_cells(self, space: Space, mass: Array) -> Array:
        if isinstance(space, Binary):
            return np.array([mass[1] ** 2, (1.0 - mass[1]) ** 2])
        return np.asarray(mass @ mass - 2.0 * mass + 1.0)

    def check(self, space: Space) -> None:
        """Refuse spaces that are not finite."""
        if not isinstance(space, FiniteSpace):
            raise TypeError(f"expected a finite space such as Binary() or Labels([...]) for {self!r}, got {space!r}")

    def bound(self, space: Space) -> float:
        """Score with all mass on other cells."""
        return 1.0 if isinstance(space, Binary) else 2.0


SCORES: dict[str, type[Score]] = {kind.__name__: kind for kind in (CRPS, MSE, Brier)}


def score_from_plain(data: dict[str, Any]) -> Score:
    """Rebuild a score from its plain form."""
    kind = data.get("kind")
    if kind not in SCORES:
        raise ValueError(f"expected a known score in the state, got {kind!r}")
    return SCORES[kind]()
