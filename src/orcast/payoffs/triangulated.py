"""Calibration given the forecast itself, made continuous by a triangulation (paper, appendix C.2).

The event "the forecast is about v" is replaced by the barycentric weight of v, for the vertices v of a triangulation:

    payoff_v = lambda_v(f) (f - w(y)),        f = E_p[w]

The weights are continuous, nonnegative and sum to one; at most dimension + 1 of them are positive.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from orcast.contexts import Context
from orcast.payoffs.base import NOTHING, CellGrid, Part, Payoff, wrong_space
from orcast.payoffs.cell_payoffs import WideCellPayoff, Witness
from orcast.spaces import Box, Circle, FiniteSpace, Interval, Space, frozen
from orcast.spaces.base import whole

Array = NDArray[np.float64]
Places = NDArray[np.intp]

MOST_TICKS, MOST_COORDINATES = 64, 200_000
# Largest number of bins of a quantity.
MOST_BINS = 10_000
# A leading coefficient below this share of the others moves a root by less than rounding.
NEGLIGIBLE = 1e-12


class Local(NamedTuple):
    """Simplex of a point in a triangulation: corners, weights and their derivatives."""

    corners: Places
    weights: Array
    slopes: Array  # a row a corner, a column a coordinate of the point


class MomentMesh:
    """Triangulated polygon with the corners (i/M, (i/M)^2): the possible (mean, mean square) of t in [0, 1].

    At each mean i/M there is a column of points from the parabola to the chord, about 1/M apart. A point below the
    polygon has the weights of the point above it on the chord.
    """

    def __init__(self, grid: int) -> None:
        self.grid = grid
        points: list[tuple[float, float]] = []
        self.columns: list[list[int]] = []  # places of the points of each column, the lowest first
        for i in range(grid + 1):
            mean = i / grid
            steps = math.ceil(grid * (mean - mean * mean) - 1e-9)
            heights = np.linspace(mean * mean, mean, steps + 1) if steps else np.array([mean])
            self.columns.append(list(range(len(points), len(points) + heights.size)))
            points.extend((mean, float(height)) for height in heights)
        self.points = frozen(np.array(points))
        triangles: list[tuple[int, int, int]] = []
        for left, right in zip(self.columns[:-1], self.columns[1:], strict=True):
            i = j = 0
            while i + 1 < len(left) or j + 1 < len(right):
                # advance on the lower side
                if i + 1 < len(left) and (i + 1) * (len(right) - 1) <= (j + 1) * (len(left) - 1):
                    triangles.append((left[i], right[j], left[i + 1]))
                    i += 1
                else:
                    triangles.append((left[i], right[j], right[j + 1]))
                    j += 1
        self.triangles: Places = np.array(triangles, dtype=np.intp)
        self.triangles.flags.writeable = False
        corners = self.points[self.triangles]
        # weights = inverse @ (1, mean, mean square)
        self._inverse = np.linalg.inv(
            np.concatenate((np.ones((*corners.shape[:2], 1)), corners), axis=2).swapaxes(1, 2)
        )

    def chord(self, mean: float) -> tuple[float, float]:
        """Smallest mean square within the polygon, and its slope."""
        a = min(max(math.floor(mean * self.grid), 0), self.grid - 1) / self.grid
        b = a + 1.0 / self.grid
        return (a + b) * mean - a * b, a + b

    def locate(self, f: Array) -> Local:
        """Triangle of a point, or of the nearest one above or below it."""
        mean = min(max(float(f[0]), 0.0), 1.0)
        lowest, slope = self.chord(mean)
        square = float(f[1])
        weights = self._inverse @ np.array([1.0, mean, min(max(square, lowest), mean)])
        at = int(weights.min(axis=1).argmax())
        own = np.maximum(weights[at], 0.0)
        slopes = self._inverse[at, :, 1:].copy()
        if square < lowest:
            slopes[:, 0] += slope * slopes[:, 1]
            slopes[:, 1] = 0.0
        elif square > mean:
            slopes[:, 0] += slopes[:, 1]
            slopes[:, 1] = 0.0
        return Local(self.triangles[at], own / own.sum(), slopes)


class SimplexMesh:
    """Probabilities of K labels, triangulated with the vertices k/N by Freudenthal and Kuhn.

    In the coordinates x_j = N (p_j + ... + p_{K-1}), j = 1, ..., K - 1, which decrease from at most N to at least 0,
    the simplices are those of the unit cubes, each cut along the orders of the fractional parts of x.
    """

    def __init__(self, labels: int, grid: int) -> None:
        self.labels, self.grid = labels, grid
        self.size = math.comb(grid + labels - 1, labels - 1)
        # the place of a decreasing row x in the list of all of them: the sum over j of ways[j, x_j]
        d = labels - 1
        self._ways = np.array(
            [[math.comb(x + d - 1 - j, d - j) for x in range(grid + 1)] for j in range(d)], dtype=np.intp
        ).reshape(d, grid + 1)
        self._columns = np.arange(d)
        # derivative of x by the probabilities
        self._tails = grid * np.triu(np.ones((d, labels)), 1)

    def places(self, x: Places) -> Places:
        """Index of each vertex, given its x in the last axis."""
        return self._ways[self._columns, x].sum(axis=-1)

    def locate(self, p: Array) -> Local:
        """Simplex that contains given probabilities."""
        x = self.grid * np.maximum(np.cumsum(p[:0:-1])[::-1], 0.0)
        base = np.minimum(np.floor(x), self.grid - 1.0)
        share = np.minimum(x - base, 1.0)
        # a stable order of equal shares keeps x decreasing
        order = np.argsort(-share, kind="stable")
        d = order.size
        steps = np.zeros((d + 1, d), dtype=np.intp)
        steps[np.arange(1, d + 1), order] = 1
        corners = self.places(base.astype(np.intp) + np.cumsum(steps, axis=0))
        ends = np.concatenate(([1.0], share[order], [0.0]))
        slopes = np.zeros((d + 1, self.labels))
        slopes[1:] = self._tails[order]
        slopes[:-1] -= self._tails[order]
        return Local(corners, ends[:-1] - ends[1:], slopes)


@lru_cache(maxsize=32)
def moment_mesh(grid: int) -> MomentMesh:
    """Cached mesh of moments."""
    return MomentMesh(grid)


@lru_cache(maxsize=32)
def simplex_mesh(labels: int, grid: int) -> SimplexMesh:
    """Cached mesh of a simplex."""
    return SimplexMesh(labels, grid)


class MeshCellPayoff(WideCellPayoff):
    """Payoff lambda_v(f) (f - w_k), grouped by vertex; nonzero only at the corners of one simplex."""

    def __init__(self, witness: Witness, vertices: int, locate: Callable[[Array], Local]) -> None:
        super().__init__(witness)
        self.vertices, self.locate = vertices, locate
        self.dimension = witness.mean.shape[0]
        self.size = vertices * self.dimension

    def mean(self, p: Array) -> Array:
        """Mean f of the witness under the forecast."""
        return self.witness.mean @ p

    def rows(self, s: Array) -> Array:
        """Ledger entries, one row per vertex."""
        return s.reshape(self.vertices, self.dimension)

    def wide(self, p: Array, errors: Array) -> Array:
        local = self.locate(self.mean(p))
        out = np.zeros((self.vertices, *errors.shape))
        out[local.corners] = local.weights.reshape(-1, *(1,) * errors.ndim) * errors
        return out.reshape(self.size, *errors.shape[1:])

    def pull(self, s: Array, f: Array) -> tuple[Array, Local]:
        """Vector c(f) = sum_v lambda_v(f) s_v, and the simplex of f."""
        local = self.locate(f)
        value: Array = local.weights @ self.rows(s)[local.corners]
        return value, local

    def field(self, s: Array, p: Array) -> Array:
        """Field <c(f), f - w_k>."""
        f = self.mean(p)
        c, _ = self.pull(s, f)
        return c @ (f[:, None] - self.witness.mean)

    def jacobian(self, s: Array, p: Array, exact: bool = False) -> Array:
        f = self.mean(p)
        local = self.locate(f)
        by_mean = self.rows(s)[local.corners].T @ local.slopes
        return (f[:, None] - self.witness.mean).T @ (by_mean @ self.witness.mean)

    def assess(self, s: Array, factor: float, p: Array) -> tuple[Array, Array]:
        """Exact for a witness that is constant in each cell."""
        f = self.mean(p)
        c, local = self.pull(s, f)
        errors = f[:, None] - self.witness.mean
        square = factor * float(local.weights @ local.weights) * np.einsum("ik,ik->k", errors, errors)
        return 2.0 * (c @ errors) + square, square


class MomentCellPayoff(MeshCellPayoff):
    """Payoff on a mesh for w = (t, t^2) at the outcome itself; cell k is t in [start[k], end[k]]."""

    def __init__(self, cell_grid: CellGrid, mesh: MomentMesh) -> None:
        low, span = cell_grid.low, cell_grid.high - cell_grid.low
        self.start, self.end = np.clip((np.stack((cell_grid.left, cell_grid.right)) - low) / span, 0.0, 1.0)
        a, b = self.start, self.end
        mean = np.stack((0.5 * (a + b), (a * a + a * b + b * b) / 3.0))

        def point(y: Any, k: int) -> Array:
            t = min(max((y - low) / span, 0.0), 1.0)
            return np.array([t, t * t])

        witness = Witness(mean, np.stack((a, a * a)), np.stack((b, b * b)), point)
        super().__init__(witness, len(mesh.points), mesh.locate)

    def assess(self, s: Array, factor: float, p: Array) -> tuple[Array, Array]:
        """Exact: the maximum of a quartic in t is at an end of the cell or at a zero of its derivative."""
        f = self.mean(p)
        c, local = self.pull(s, f)
        scale = factor * float(local.weights @ local.weights)
        return self._largest(c, scale, f), self._largest(np.zeros(2), scale, f)

    def _largest(self, c: Array, scale: float, f: Array) -> Array:
        turns = [np.clip(t, self.start, self.end) for t in turning_points(c, scale, f)]
        t = np.stack((self.start, self.end, *turns))
        first, second = f[0] - t, f[1] - t * t
        return (2.0 * (c[0] * first + c[1] * second) + scale * (first**2 + second**2)).max(axis=0)


def turning_points(c: Array, scale: float, f: Array) -> list[float]:
    """Points with all stationary ones of 2 <c, f - (t, t^2)> + scale ||f - (t, t^2)||^2 in t: roots of a cubic."""
    cubic = np.array([2.0 * scale, 0.0, scale * (1.0 - 2.0 * f[1]) - 2.0 * c[1], -(c[0] + scale * f[0])])
    cubic[np.abs(cubic) <= NEGLIGIBLE * np.abs(cubic).max()] = 0.0
    found: list[float] = np.roots(cubic).real.tolist()
    return found


class _OnMesh(Payoff):
    """Payoff for each vertex of a triangulation."""

    options: tuple[str, ...] = ("grid",)
    grid: int

    def _ticks(self, grid: int, least: int, context: Context | None, weight: float) -> None:
        self.grid = whole(grid, "ticks of the grid", least, MOST_TICKS)
        self._settings(context, weight)


class MomentBasedCalibration(_OnMesh):
    """Among forecasts with mean and mean square about (m, q), those of the outcomes are (m, q) (paper, appendix C.2).

    Parameters
    ----------
    grid
        Number of steps M of the mean; 8 by default.
    context, weight
        Groups that are calibrated separately, and the weight in a sum; see `Payoff`.

    Notes
    -----
    lambda are the barycentric weights of f in a triangulation of the polygon with the corners (i/M, (i/M)^2), the
    possible moments:

        payoff_v = lambda_v(f) (f - (t, t^2)),    t = (y - low) / (high - low),    f = E_p[(t, t^2)]

    Squared bound: 2.

    Examples
    --------
    >>> import orcast as oc
    >>> part = MomentBasedCalibration(grid=8).on(oc.Interval(0, 36_000))
    >>> part.size, part.bound
    (42, 2.0)
    """

    name = "moment calibration"

    def __init__(self, grid: int = 8, *, context: Context | None = None, weight: float = 1.0) -> None:
        self._ticks(grid, 2, context, weight)

    def on(self, space: Space, experts: int = 1) -> Part:
        if not isinstance(space, Interval):
            raise wrong_space(self, "Interval(low, high)", space)
        mesh = moment_mesh(self.grid)
        return Part(self, 2 * len(mesh.points), 2.0, lambda cell_grid, state: MomentCellPayoff(cell_grid, mesh))


class SimplexCalibration(_OnMesh):
    """Among forecasts close to a distribution q, outcomes are distributed like q (paper, appendix C.2).

    Parameters
    ----------
    grid
        N: the vertices have probabilities that are multiples of 1/N; 4 by default.
    bins
        Number of equal bins of a quantity on an `Interval` (appendix C.2.3); 4 by default.
    context, weight
        Groups that are calibrated separately, and the weight in a sum; see `Payoff`.

    Notes
    -----
    lambda are the barycentric weights of p among the vertices v:

        payoff_v = lambda_v(p) (p - e_y)

    There are binomial(N + K - 1, K - 1) K coordinates for K labels. Squared bound: 2. With bins, p and e_y are the
    masses of the bins; an outcome on an edge belongs to the bin on its left.

    Examples
    --------
    >>> import orcast as oc
    >>> part = SimplexCalibration(grid=4).on(oc.Labels(["home", "draw", "away"]))
    >>> part.size, part.bound
    (45, 2.0)
    >>> SimplexCalibration(grid=4, bins=3).on(oc.Interval(0, 100)).size
    45
    """

    name = "simplex"
    options = ("grid", "bins")

    def __init__(
        self,
        grid: int = 4,
        *,
        bins: int = 4,
        context: Context | None = None,
        weight: float = 1.0,
    ) -> None:
        self._ticks(grid, 1, context, weight)
        self.bins = whole(bins, "bins", 2, MOST_BINS)

    def inner_edges(self, space: Space) -> Array | None:
        """Inner edges of the bins of an interval; None on finite spaces."""
        if isinstance(space, Interval):
            return np.linspace(space.low, space.high, self.bins + 1)[1:-1]
        if not isinstance(space, FiniteSpace) or isinstance(space, (Box, Circle)):
            raise wrong_space(self, "Labels([...]), Binary(), a finite space of your own or Interval(low, high)", space)
        return None

    def on(self, space: Space, experts: int = 1) -> Part:
        edges = self.inner_edges(space)
        labels = space.cells if edges is None else edges.size + 1
        size = math.comb(self.grid + labels - 1, labels - 1) * labels
        if size > MOST_COORDINATES:
            what, instead = (
                ("outcomes", "LabelCalibration")
                if edges is None
                else ("bins", "fewer of them, a coarser grid, or ThresholdCalibration")
            )
            raise ValueError(
                f"expected at most {MOST_COORDINATES:,} coordinates for SimplexCalibration, got {labels} {what} with "
                f"a grid of {self.grid}: {size:,} coordinates (use {instead})"
            )
        mesh = simplex_mesh(labels, self.grid)

        def on_cells(cell_grid: CellGrid, state: dict[str, Array]) -> MeshCellPayoff:
            events = np.eye(labels)
            if edges is not None:
                events = events[:, np.searchsorted(edges, cell_grid.right, side="left")]
            return MeshCellPayoff(Witness.constant(events), mesh.size, mesh.locate)

        return Part(self, size, 2.0, on_cells, NOTHING if edges is None else edges)
