"""Forecast families for ORCA: parameters to masses on the cells of a round, and gradients back."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from orcast.payoffs import CellGrid
from orcast.spaces.base import whole

Array = NDArray[np.float64]

# No cell starts with less than this share of an even mass, and a mixture leaves every cell that much.
LEAST = 1e-4
# A component's standard deviation is at least this share of the window.
NARROWEST = 1e-4
MOST_COMPONENTS = 100


@runtime_checkable
class Family(Protocol):
    """Parametrised family of forecasts (paper, section 5); the parameters are a row of numbers."""

    def start(self, cell_grid: CellGrid, masses: Array) -> Array:
        """Parameters of a forecast near given masses."""
        ...

    def masses(self, cell_grid: CellGrid, parameters: Array) -> Array:
        """Masses on the cells, with sum one."""
        ...

    def pull(self, cell_grid: CellGrid, parameters: Array, gradient: Array) -> Array:
        """Convert a gradient by the masses to one by the parameters."""
        ...

    def to_plain(self) -> dict[str, Any]:
        """Plain data."""
        ...


@dataclass(frozen=True)
class Softmax:
    """Histogram on the cells; the parameters are log masses (paper, section 5).

        p_k = exp(a_k) / sum_j exp(a_j)

    >>> import numpy as np
    >>> Softmax().masses(None, np.log([1.0, 3.0])).round(2).tolist()
    [0.25, 0.75]
    """

    def start(self, cell_grid: CellGrid, masses: Array) -> Array:
        """Logarithms of the masses."""
        return np.log((1.0 - LEAST) * masses + LEAST / masses.size)

    def masses(self, cell_grid: CellGrid | None, parameters: Array) -> Array:
        """Normalised exponentials."""
        e = np.exp(parameters - parameters.max())
        value: Array = e / e.sum()
        return value

    def pull(self, cell_grid: CellGrid, parameters: Array, gradient: Array) -> Array:
        """Product p (g - E_p g)."""
        p = self.masses(cell_grid, parameters)
        return p * (gradient - p @ gradient)

    def to_plain(self) -> dict[str, Any]:
        """Plain data."""
        return {"kind": "Softmax"}


@dataclass(frozen=True)
class GaussianMixture:
    """Mixture of Gaussians truncated at the ends of an ordered space (paper, section 5).

    Parameters
    ----------
    n
        Number of components, each with a mean, a log standard deviation and a log weight.

    Notes
    -----
    With Phi the normal distribution function:

        p_k  ~  sum_i w_i (Phi((right_k - m_i) / s_i) - Phi((left_k - m_i) / s_i))

    It has fewer parameters than a histogram, so it can satisfy fewer ledgers.

    Examples
    --------
    >>> import orcast as oc
    >>> oracle = oc.Orca(family=oc.paper.GaussianMixture(3))
    >>> recal = oc.Forecaster(oc.Interval(0, 1), oc.MomentMatching(2), oracle=oracle)
    >>> recal.predict().certificate.holds
    True
    """

    n: int = 3

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", whole(self.n, "components", 1, MOST_COMPONENTS))

    def _edges(self, cell_grid: CellGrid) -> tuple[Array, Array]:
        if not cell_grid.ordered:
            raise TypeError(
                f"expected an ordered space such as Interval(low, high) for GaussianMixture, got {cell_grid.space!r}"
            )
        span = cell_grid.high - cell_grid.low
        return (cell_grid.left - cell_grid.low) / span, (cell_grid.right - cell_grid.low) / span

    def start(self, cell_grid: CellGrid, masses: Array) -> Array:
        """Components that cover equal shares of the masses."""
        a, b = self._edges(cell_grid)
        below = np.concatenate(([0.0], np.cumsum(masses) / masses.sum()))
        cuts = np.linspace(0.0, 1.0, self.n + 1)
        # the masses of each cell that lie in each share
        shared = np.minimum(below[1:], cuts[1:, None]) - np.maximum(below[:-1], cuts[:-1, None])
        shared = self.n * np.maximum(shared, 0.0)
        middle = 0.5 * (a + b)
        mean = shared @ middle
        spread = np.sqrt(np.maximum(shared @ middle**2 - mean**2, 0.0))
        sizes = np.log(np.maximum(spread, 10.0 * NARROWEST))
        return np.concatenate((mean, sizes, np.zeros(self.n)))

    def _parts(self, cell_grid: CellGrid, parameters: Array) -> tuple[Array, Array, Array, Array, Array]:
        from scipy.special import ndtr

        a, b = self._edges(cell_grid)
        mean, size, weight = np.split(parameters, 3)
        mean = np.clip(mean, 0.0, 1.0)  # a component beyond an end counts as one at the end
        deviation = NARROWEST + np.exp(np.minimum(size, 5.0))
        za, zb = (a - mean[:, None]) / deviation[:, None], (b - mean[:, None]) / deviation[:, None]
        share = Softmax().masses(None, weight)
        return za, zb, deviation, share, ndtr(zb) - ndtr(za)

    def masses(self, cell_grid: CellGrid, parameters: Array) -> Array:
        """Truncated mixture of the components' masses, plus a small uniform mass."""
        _, _, _, share, inside = self._parts(cell_grid, parameters)
        raw = share @ inside
        wide = (cell_grid.right - cell_grid.left) / (cell_grid.high - cell_grid.low)
        value: Array = (1.0 - LEAST) * raw / max(float(raw.sum()), 1e-300) + LEAST * wide / wide.sum()
        return value

    def pull(self, cell_grid: CellGrid, parameters: Array, gradient: Array) -> Array:
        """Gradient through the distribution functions at the edges."""
        za, zb, deviation, share, inside = self._parts(cell_grid, parameters)
        raw = share @ inside
        total = max(float(raw.sum()), 1e-300)
        by_raw = (1.0 - LEAST) * (gradient - float(gradient @ raw) / total) / total
        size = np.split(parameters, 3)[1]
        density_a, density_b = (np.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi) for z in (za, zb))
        by_mean = -(density_b - density_a) / deviation[:, None] @ by_raw
        by_size = -(zb * density_b - za * density_a) @ by_raw * (np.exp(np.minimum(size, 5.0)) / deviation)
        by_share = inside @ by_raw
        return np.concatenate((share * by_mean, share * by_size, share * (by_share - share @ by_share)))

    def to_plain(self) -> dict[str, Any]:
        """Plain data."""
        return {"kind": "GaussianMixture", "n": self.n}
