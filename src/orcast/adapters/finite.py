"""Forecasts on finite spaces as masses: probabilities, directions, vectors."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orcast.adapters.ordered import ACCEPTED, Ensemble, Normal, Quantiles, called, known_kind, risen
from orcast.forecasts import BinaryForecast, FiniteForecast, LabelForecast, as_masses
from orcast.spaces import Binary, Box, Circle, FiniteSpace, Space
from orcast.validation import number, short

Array = NDArray[np.float64]


def masses_on(forecast: object, space: Space) -> Array:
    """Masses of a user's forecast on the cells of a finite space."""
    if isinstance(space, Binary):
        p = binary_probability(forecast)
        return np.array([1.0 - p, p])
    if isinstance(forecast, FiniteForecast) and not isinstance(forecast, LabelForecast):
        if forecast.space != space:
            raise ValueError(f"expected a forecast on {short(space)}, got one on {short(forecast.space)}")
        return as_masses(forecast.mass, forecast.mass.size)
    read: Callable[[object, Any], Array] = _READERS.get(type(space), _value_masses)
    return read(forecast, space)


def binary_probability(forecast: object) -> float:
    """Probability of the outcome 1, given as itself or with that of 0 before it.

    >>> binary_probability(0.75), binary_probability([0.25, 0.75])
    (0.75, 0.75)
    """
    if type(forecast) is float and 0.0 <= forecast <= 1.0:
        return forecast
    if isinstance(forecast, BinaryForecast):
        return float(forecast)
    if isinstance(forecast, (list, tuple)) or (isinstance(forecast, np.ndarray) and forecast.ndim > 0):
        return as_masses(forecast, 2).item(1)
    try:
        if isinstance(forecast, (str, bytes)):
            raise TypeError
        p = float(forecast)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"expected a probability between 0 and 1, or a pair [p0, p1], got {short(forecast)}") from None
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"expected a probability between 0 and 1, got {p!r}")
    return p


def _value_masses(forecast: object, space: FiniteSpace) -> Array:
    if hasattr(forecast, "to_dict"):
        forecast = forecast.to_dict()  # a pandas Series, or a `LabelForecast` with the labels in any order
    if not isinstance(forecast, Mapping):
        return _plain_masses(forecast, space, "probabilities in the order of the labels or cells, or by label or value")
    masses = [0.0] * space.cells
    for value, probability in forecast.items():
        masses[space.cell(space.outcome(value))] += number(probability, "probability")
    return as_masses(masses, space.cells)


def _plain_masses(forecast: object, space: FiniteSpace, accepted: str) -> Array:
    if isinstance(forecast, (Sequence, np.ndarray)) and not isinstance(forecast, (str, bytes)):
        return as_masses(forecast, space.cells)
    if hasattr(forecast, "__array__"):
        return as_masses(np.asarray(forecast), space.cells)
    raise TypeError(f"expected {accepted}, got {short(forecast)}")


def _circle_masses(forecast: object, space: Circle) -> Array:
    if isinstance(forecast, Normal):
        return _wrapped(np.array([forecast.mean]), forecast.sd, space)
    if isinstance(forecast, Ensemble):
        if forecast.members.ndim != 1:
            raise TypeError(f"expected an ensemble of directions, got vectors of length {forecast.members.shape[1]}")
        return _wrapped(forecast.members, space.period / space.cells, space)
    if callable(getattr(forecast, "pdf", None)):
        return _by_density(forecast, space)
    return _plain_masses(
        forecast,
        space,
        f"{space.cells} masses, Normal(direction, spread), an Ensemble of directions, or an object with pdf",
    )


def _wrapped(centres: Array, spread: float, space: Circle) -> Array:
    """Average mass of normal distributions wrapped around the circle."""
    from scipy.special import ndtr  # imported late, because it is slow

    centres = np.array([space.outcome(centre) for centre in centres.tolist()])
    if spread == 0.0:
        return np.bincount([space.cell(centre) for centre in centres.tolist()], minlength=space.cells) / centres.size
    if spread > 2.0 * space.period:
        return np.full(space.cells, 1.0 / space.cells)  # up to exp(-78)
    turns = math.ceil(10.0 * spread / space.period) + 1
    edges = np.linspace(0.0, space.period, space.cells + 1)
    below = np.zeros((centres.size, edges.size))
    for turn in range(-turns, turns + 1):
        below += ndtr((edges + turn * space.period - centres[:, None]) / spread)
    return _normalised(np.maximum(np.diff(below, axis=1), 0.0).mean(axis=0))


def _normalised(weights: Array) -> Array:
    masses: Array = weights / weights.sum()
    return masses


def _by_density(forecast: Any, space: FiniteSpace) -> Array:
    """Masses proportional to a density at the centres of the cells."""
    name = "logpdf" if callable(getattr(forecast, "logpdf", None)) else "pdf"
    density = getattr(forecast, name)
    try:
        values = np.asarray(density(space.points), dtype=np.float64).reshape(-1)
    except (TypeError, ValueError) as reason:
        text = " ".join(str(reason).split())
        raise TypeError(f"expected {name} to take the centres of the cells, got {text}") from reason
    if values.size != space.cells:
        raise ValueError(f"expected {name} to return a number for each of {space.cells} cells, got {values.size}")
    if name == "logpdf" and values.max() > -np.inf:
        values = np.exp(values - values.max())
    if not (values.min() >= 0.0 and 0.0 < values.max() < np.inf):
        raise ValueError(
            f"expected a nonnegative, finite density that is positive somewhere, got {values.min():g} to "
            f"{values.max():g} from {name}"
        )
    return _normalised(values / values.max())


def _box_masses(forecast: object, space: Box) -> Array:
    d = len(space.bounds)
    if isinstance(forecast, Ensemble):
        members = forecast.members if forecast.members.ndim == 2 else forecast.members[:, None]
        if members.shape[1] != d:
            raise ValueError(f"expected an ensemble of vectors of length {d}, got {members.shape[1]}")
        return _empirical([space.cell(space.outcome(member, "clip")) for member in members], space)
    if isinstance(forecast, (list, tuple)) and len(forecast) == d:
        product = np.ones(1)
        for part, edges in zip(forecast, space.edges, strict=True):
            product = np.multiply.outer(product, _side_masses(part, edges)).reshape(-1)
        return _normalised(product)
    if callable(getattr(forecast, "logpdf", None)) or callable(getattr(forecast, "pdf", None)):
        return _by_density(forecast, space)
    return _plain_masses(
        forecast,
        space,
        f"masses of the cells, {d} forecasts of one component each, an Ensemble of vectors, or an object with pdf",
    )


def _empirical(cells: list[int], space: FiniteSpace) -> Array:
    """Frequencies of cells, with one uniform member added so that no cell has mass 0."""
    counts = np.bincount(cells, minlength=space.cells).astype(np.float64)
    return _normalised(counts + 1.0 / space.cells)


# Levels at which a forecast without a cdf is evaluated.
_FINE = (np.arange(2000) + 0.5) / 2000


def _side_masses(forecast: object, edges: Array) -> Array:
    """Masses of one component on the cells of its side; mass outside is moved to the bounds."""
    known = known_kind(forecast)
    if isinstance(known, Normal) and known.sd > 0.0:
        from scipy.special import ndtr

        below = ndtr((edges[1:-1] - known.mean) / known.sd)
    elif callable(getattr(known, "cdf", None)):
        below = risen(called(known.cdf, edges[1:-1], "cdf"))  # type: ignore[attr-defined]
    elif isinstance(known, (Normal, Quantiles, Ensemble)) or callable(getattr(known, "ppf", None)):
        read = known.quantile if isinstance(known, (Normal, Quantiles, Ensemble)) else known.ppf  # type: ignore[attr-defined]
        values = np.maximum.accumulate(called(read, _FINE, "ppf"))
        below = np.searchsorted(values, edges[1:-1], side="right") / _FINE.size
    else:
        raise TypeError(f"expected {ACCEPTED} for each component, got {short(forecast)}")
    below = np.maximum.accumulate(np.clip(below, 0.0, 1.0))
    return np.diff(np.concatenate(([0.0], below, [1.0])))


_READERS: dict[type, Callable[[object, Any], Array]] = {
    Circle: _circle_masses,
    Box: _box_masses,
}
