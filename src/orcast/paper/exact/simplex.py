"""Exact oracle of distribution calibration on a few labels or bins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orcast.engine.base import NO_LEARNING
from orcast.engine.bound_payoff import BoundPayoff
from orcast.engine.dense.engine import DenseEngine
from orcast.engine.dense.priors import OrderedPrior, Prior
from orcast.paper.exact.base import ExactOracle, expert_alone
from orcast.paper.exact.triangles import MeshSolver, one_grid, simplex_faces, simplex_pieces
from orcast.payoffs.triangulated import MeshCellPayoff, SimplexCalibration
from orcast.spaces import FiniteSpace

Array = NDArray[np.float64]

MOST_PIECES = 50_000


@dataclass(frozen=True)
class SimplexGrid(ExactOracle):
    """Half-space oracle of `SimplexCalibration`, by enumeration: for a few labels and a coarse grid.

    Notes
    -----
    With S_v the ledger at the vertices v of the triangulation and c(p) = sum_v lambda_v(p) S_v it finds a distribution
    p such that

        <c(p), p - e_k> <= 0    for every label k.

    On an `Interval` the labels are the payoff's bins, and within each the mass is distributed as the expert's. The
    search solves one linear system for each of the ((1 + N)^K - 1) / N pieces of K labels and a grid of N; more than
    50,000 are refused. The paper (appendix C.2) requires c(p) = 0, which need not exist; the other cases are the faces
    (`orcast.paper.exact.triangles`).

    Examples
    --------
    >>> import orcast as oc
    >>> from orcast.payoffs.triangulated import SimplexCalibration
    >>> recal = oc.Forecaster(oc.Labels(["home", "draw", "away"]), SimplexCalibration(grid=4), oracle=SimplexGrid())
    >>> for y in ("home", "away", "home", "draw"):
    ...     p = recal.predict([0.2, 0.2, 0.6])
    ...     recal.update(y)
    >>> p.certificate.holds, p.certificate.half_space <= 1e-9
    (True, True)
    >>> oc.Forecaster(oc.Labels(range(10)), SimplexCalibration(grid=4), oracle=SimplexGrid())
    Traceback (most recent call last):
    ValueError: expected at most 50,000 pieces of the simplex for SimplexGrid, got 10 labels with a grid of 4: ...
    """

    def bind(self, bound_payoff: BoundPayoff, sizes: Sequence[int] | None = None) -> DenseEngine:
        """Engine with an empty ledger, if the pieces can be enumerated."""
        grid = one_grid(bound_payoff, SimplexCalibration, "SimplexGrid")
        cut = [part.payoff.inner_edges(bound_payoff.space) for part in bound_payoff.parts]  # type: ignore[attr-defined]
        edges = cut[0]
        if edges is None:
            assert isinstance(bound_payoff.space, FiniteSpace)
            labels, what = bound_payoff.space.cells, "labels"
            prior: Prior = expert_alone(bound_payoff)
        else:
            if not all(np.array_equal(edges, other) for other in cut):
                raise TypeError(f"expected the same bins in all payoffs for SimplexGrid, got {bound_payoff.payoffs!r}")
            labels, what = edges.size + 1, "bins"
            prior = OrderedPrior(bound_payoff, 1.0, NO_LEARNING)
        pieces = simplex_pieces(labels, grid)
        if pieces > MOST_PIECES:
            raise ValueError(
                f"expected at most {MOST_PIECES:,} pieces of the simplex for SimplexGrid, got {labels} {what} with a "
                f"grid of {grid}: {pieces:.1e} pieces (use LabelCalibration, or Equilibrium)"
            )
        return DenseEngine(bound_payoff, prior, GridSolver(simplex_faces(labels, grid)), sizes)


class GridSolver(MeshSolver):
    """Forecast the distribution that solves the inequality."""

    def largest(self, c: Array, f: Array) -> float:
        """Largest value, at a label."""
        return float(c @ f - c.min())

    def masses_at(self, point: Array, prior: Array, cell_payoff: MeshCellPayoff) -> Array:
        """Point itself; in a bin of several cells distributed as the prior's mass, uniformly if it has none."""
        inside = cell_payoff.witness.mean
        own = (inside @ prior)[:, None]
        even = inside / inside.sum(axis=1, keepdims=True)
        return point @ np.where(own > 0.0, inside * prior / np.where(own > 0.0, own, 1.0), even)
