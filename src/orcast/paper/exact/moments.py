"""Exact oracle of moment calibration: a point of the hull of {(t, t^2)}, and a forecast with these moments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orcast.engine.bound_payoff import BoundPayoff
from orcast.engine.dense.engine import DenseEngine
from orcast.engine.dense.fixed_point import normalised
from orcast.engine.dense.priors import GridPrior
from orcast.paper.exact.base import ExactOracle
from orcast.paper.exact.triangles import MeshSolver, moment_faces, one_grid
from orcast.payoffs.triangulated import MeshCellPayoff, MomentBasedCalibration, moment_mesh
from orcast.spaces import Interval

Array = NDArray[np.float64]

# Approximate number of cells between the atoms, which resolve the shape of the expert's forecast.
BETWEEN = 64
# Share of uniform masses mixed with the expert's: without mass on the atoms few moments are possible.
MIXED = 1e-4
# Newton's method for the two multipliers: steps, how much a log mass may change in one, how exact the moments are.
STEPS, LONGEST, EXACT, TRIES = 60, 30.0, 1e-13, 30
GOOD_ENOUGH = 1e-11


@dataclass(frozen=True)
class MomentHull(ExactOracle):
    """Half-space oracle of `MomentBasedCalibration`.

    Notes
    -----
    With S_v the ledger at the vertices v of the triangulation and c(f) = sum_v lambda_v(f) S_v it finds a point f of
    the polygon with the corners (i/M, (i/M)^2) such that

        <c(f), f - g> <= 0    for all g of the polygon,

    and forecasts the distribution with mean f_1 and mean square f_2 that is nearest to the expert, by one linear system
    for each triangle, boundary segment and corner (`orcast.paper.exact.triangles` has the proof). The hull extends
    below each side of the polygon: `approximation` is max(c_2(f), 0) / (4 M^2). The paper (appendix C.2) enumerates a
    grid on a box (docs/theory.md).

    Examples
    --------
    >>> import orcast as oc
    >>> from orcast.payoffs.triangulated import MomentBasedCalibration
    >>> recal = oc.Forecaster(oc.Interval(0, 10), MomentBasedCalibration(grid=8), oracle=MomentHull())
    >>> for y in (9.0, 8.0, 8.5, 2.0):
    ...     p = recal.predict(oc.Normal(5, 1))
    ...     recal.update(y)
    >>> p.certificate.holds, p.certificate.half_space <= 1e-9
    (True, True)
    """

    def bind(self, bound_payoff: BoundPayoff, sizes: Sequence[int] | None = None) -> DenseEngine:
        """Engine with an empty ledger."""
        grid, space = one_grid(bound_payoff, MomentBasedCalibration, "MomentHull"), bound_payoff.space
        assert isinstance(space, Interval)
        if grid > space.cells:
            raise ValueError(
                f"expected a grid of at most {space.cells} ticks, the cells of the space, for MomentHull, got {grid}"
            )
        finer = max(BETWEEN // grid, 1)
        edges = np.linspace(space.low, space.high, grid * finer + 1)
        edges = np.sort(np.concatenate((edges, edges[::finer])))
        return DenseEngine(bound_payoff, GridPrior(bound_payoff, 0, edges), HullSolver(grid, finer), sizes)


class HullSolver(MeshSolver):
    """Forecast the moments that solve the inequality."""

    def __init__(self, grid: int, finer: int) -> None:
        super().__init__(moment_faces(grid))
        self.grid, self.mesh = grid, moment_mesh(grid)
        self.atoms = np.arange(grid + 1) * (finer + 1)

    def largest(self, c: Array, f: Array) -> float:
        """Largest value over the parabola: at an end, or at a stationary point."""
        return largest(c, f)

    def approximation(self, c: Array) -> float:
        """Extent of the hull of the parabola below the polygon."""
        return max(float(c[1]), 0.0) / (4.0 * self.grid**2)

    def masses_at(self, point: Array, prior: Array, cell_payoff: MeshCellPayoff) -> Array:
        """Masses with these moments, near the prior."""
        return self.with_moments(prior, cell_payoff.witness.mean, point)

    def with_moments(self, prior: Array, witness: Array, f: Array) -> Array:
        """Masses with these moments: the nearest to the prior, or atoms on the boundary of the possible moments."""
        even = np.full(prior.size, 1.0 / prior.size)
        masses = nearest_with_mean((1.0 - MIXED) * prior + MIXED * even, witness, f)
        return self._on_atoms(prior.size, f) if masses is None else masses

    def _on_atoms(self, cells: int, f: Array) -> Array:
        mean = float(np.clip(f[0], 0.0, 1.0))
        below = min(int(mean * self.grid), self.grid - 1)
        share = mean * self.grid - below
        lowest, _ = self.mesh.chord(mean)
        apart = float(np.clip((f[1] - lowest) / (mean - lowest), 0.0, 1.0)) if mean - lowest > 1e-15 else 0.0
        masses = np.zeros(cells)
        masses[self.atoms[below : below + 2]] += (1.0 - apart) * np.array([1.0 - share, share])
        masses[self.atoms[[0, -1]]] += apart * np.array([1.0 - mean, mean])
        return masses


def largest(c: Array, f: Array) -> float:
    """Largest <c, f - (t, t^2)> over t in [0, 1]: at an end, or at the vertex of a parabola."""
    ts = [0.0, 1.0]
    if c[1] > 0.0:
        ts.append(float(np.clip(-0.5 * c[0] / c[1], 0.0, 1.0)))
    return max(float(c[0] * (f[0] - t) + c[1] * (f[1] - t * t)) for t in ts)


def nearest_with_mean(prior: Array, witness: Array, f: Array) -> Array | None:
    """Masses p_k ~ prior_k exp(<theta, w_k>) with E_p[w] = f, by Newton's method; None if there are none.

    theta minimises the convex function log sum_k prior_k exp(<theta, w_k - f>), whose gradient is E_p[w] - f.
    """
    away = witness - f[:, None]
    log_prior = np.log(prior)
    theta = np.zeros(f.size)
    height = 0.0
    for _ in range(STEPS):
        p = np.exp(normalised(log_prior + theta @ away))
        gradient = away @ p
        if float(np.abs(gradient).max()) <= EXACT:
            return p
        curvature = (away * p) @ away.T - np.outer(gradient, gradient)
        try:
            step = -np.linalg.solve(curvature, gradient)
        except np.linalg.LinAlgError:
            break
        change = float(np.abs(step @ away).max())
        if not np.isfinite(change):
            break
        step *= min(LONGEST / max(change, 1e-300), 1.0)
        for _ in range(TRIES):
            lifted = log_prior + (theta + step) @ away
            top = float(lifted.max())
            new = top + float(np.log(np.exp(lifted - top).sum()))
            if new <= height:
                break
            step *= 0.5
        theta, height = theta + step, new
    return p if float(np.abs(gradient).max()) <= GOOD_ENOUGH else None
