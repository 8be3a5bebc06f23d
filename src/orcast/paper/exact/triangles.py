"""Half-space problem on a triangulated polytope, solved exactly by enumeration: one small linear system per piece.

A payoff lambda_v(f) (f - w(y)) on the vertices v of a triangulation of C = conv w(Y), with the ledger S_v, requires

    f in C  with  <c(f), f - g> <= 0  for all g in C,        c(f) = sum_v lambda_v(f) S_v

a variational inequality with a piecewise linear c, which has a solution: C is compact and convex, and c continuous. The
paper (appendix C.2) requires c(f) = 0, which need not exist: where the adversary can push the same way at every f, the
solution is on the boundary, and c(f) is normal to it. Let F be the face of C that has f in its interior. Then <c(f), t>
= 0 for all directions t within F, and f is in a simplex of the triangulation that is part of F and has its dimension: a
*piece*. On each piece this is a square linear system for the barycentric weights; of its solutions with weights >= 0 at
least one passes the test at all extreme points of C.

At corners that were never forecast S_v = 0 and systems are singular: e (v - target) is added to every S_v, which costs
at most e times the squared diameter of C and pulls towards the target (docs/theory.md).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import lru_cache
from itertools import combinations, product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from orcast.engine.bound_payoff import BoundPayoff
from orcast.engine.dense.search import CandidateSearch, DenseRound
from orcast.paper.exact.base import ExactSolver, run_rounds
from orcast.payoffs.triangulated import MeshCellPayoff, moment_mesh, probabilities, simplex_mesh

Array = NDArray[np.float64]
Places = NDArray[np.intp]

# Share of the target that is added, in units of the largest S; the first usually suffices.
PULLS = (1e-11, 1e-10, 1e-9, 1e-8)
# Weights this far below zero may be rounding: they are clipped, and the result is measured.
BELOW = 1e-6
# Number of pieces solved together, the nearest to the target first.
FIRST_BLOCK, GROWTH = 256, 4


class Pieces(NamedTuple):
    """Simplices of one dimension in faces of the same dimension."""

    corners: Places  # a row of places of vertices a piece
    directions: Array  # for each piece directions that span its face, a row each


class Faces:
    """Triangulated polytope: its vertices, its extreme points, and the pieces of its faces."""

    def __init__(self, points: Array, extremes: Array, pieces: list[Pieces]) -> None:
        self.points, self.extremes, self.pieces = points, extremes, pieces
        self.count = sum(len(kind.corners) for kind in pieces)
        self._kind = np.repeat(np.arange(len(pieces)), [len(kind.corners) for kind in pieces])
        self._row = np.concatenate([np.arange(len(kind.corners)) for kind in pieces])
        self._centres = np.concatenate([points[kind.corners].mean(axis=1) for kind in pieces])

    def nearest(self, target: Array) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Dimension and row of every piece, the one with the nearest centre first."""
        away = self._centres - target
        order = np.argsort(np.einsum("ij,ij->i", away, away), kind="stable")
        return self._kind[order], self._row[order]


class Found(NamedTuple):
    """Solution: the corners of its piece, their weights, the point, and the largest <c(f), f - g>."""

    corners: Places
    weights: Array
    point: Array
    worst: float


def solve(faces: Faces, cumulative: Array, target: Array) -> Found:
    """Solution in the nearest block of pieces, and among these the nearest to the target.

    `cumulative` has a row S_v for each vertex. The remaining violation of the inequality is measured; it is of the
    order of the smallest of PULLS times the largest S.
    """
    size = float(np.abs(cumulative).max())
    scaled = cumulative / size if size > 0.0 else cumulative
    best: Found | None = None
    for pull in PULLS:
        found = _search(faces, scaled, target, pull)
        if found is not None and (best is None or found.worst < best.worst):
            best = found
        if best is not None and best.worst <= 10.0 * pull:
            break
    assert best is not None
    return best._replace(worst=size * best.worst)


def _search(faces: Faces, cumulative: Array, target: Array, pull: float) -> Found | None:
    kinds, rows = faces.nearest(target)
    drawn = cumulative + pull * (faces.points - target)
    best: Found | None = None
    start, step = 0, FIRST_BLOCK
    while start < faces.count:
        block = slice(start, start + step)
        near = np.inf
        for kind in np.unique(kinds[block]):
            own = rows[block][kinds[block] == kind]
            pieces = faces.pieces[kind]
            corners = pieces.corners[own]
            weights = _weights(drawn[corners], pieces.directions[own])
            good = np.flatnonzero(weights.min(axis=1) >= -BELOW)
            if not good.size:
                continue
            corners, weights = corners[good], np.maximum(weights[good], 0.0)
            weights /= weights.sum(axis=1, keepdims=True)
            points = np.einsum("ij,ijk->ik", weights, faces.points[corners])
            pulls = np.einsum("ij,ijk->ik", weights, cumulative[corners])
            worst = np.einsum("ij,ij->i", pulls, points) - (pulls @ faces.extremes.T).min(axis=1)
            away = np.linalg.norm(points - target, axis=1)
            solved = worst <= 10.0 * pull
            i = int(np.where(solved, away, np.inf).argmin()) if solved.any() else int(worst.argmin())
            if solved[i] and away[i] < near:
                near = float(away[i])
                best = Found(corners[i], weights[i], points[i], float(worst[i]))
            elif not np.isfinite(near) and (best is None or worst[i] < best.worst):
                best = Found(corners[i], weights[i], points[i], float(worst[i]))
        if np.isfinite(near):
            return best
        start, step = start + step, step * GROWTH
    return best


def _weights(cumulative: Array, directions: Array) -> Array:
    """Barycentric weights with <c, direction> = 0, one row per piece; nan for a singular system."""
    count, n, _ = cumulative.shape
    system = np.concatenate((directions @ cumulative.swapaxes(1, 2), np.ones((count, 1, n))), axis=1)
    right = np.zeros((count, n, 1))
    right[:, -1] = 1.0
    try:
        found = np.asarray(np.linalg.solve(system, right)[..., 0], dtype=np.float64)
    except np.linalg.LinAlgError:
        found = np.full((count, n), np.nan)
        for i in range(count):
            try:
                found[i] = np.linalg.solve(system[i], right[i])[:, 0]
            except np.linalg.LinAlgError:
                continue
    return np.where(np.isfinite(found).all(axis=1, keepdims=True), found, -1.0)


@lru_cache(maxsize=32)
def moment_faces(grid: int) -> Faces:
    """Polygon of possible (mean, mean square): its triangles, the segments of its boundary, its corners."""
    mesh = moment_mesh(grid)
    low = np.array([column[0] for column in mesh.columns])
    high = np.array([column[-1] for column in mesh.columns])
    edges = np.concatenate((np.stack((low[:-1], low[1:]), axis=1), np.stack((high[:-1], high[1:]), axis=1)))
    along = mesh.points[edges[:, 1]] - mesh.points[edges[:, 0]]
    along /= np.linalg.norm(along, axis=1, keepdims=True)
    plane = np.broadcast_to(np.eye(2), (len(mesh.triangles), 2, 2))
    return Faces(
        mesh.points,
        mesh.points[low],
        [
            Pieces(low[:, None], np.empty((low.size, 0, 2))),
            Pieces(edges, along[:, None, :]),
            Pieces(mesh.triangles, plane),
        ],
    )


def simplex_pieces(labels: int, grid: int) -> int:
    """Number of pieces of the simplex of some labels: sum over n of binomial(K, n) N^(n - 1)."""
    value: int = ((1 + grid) ** labels - 1) // grid
    return value


@lru_cache(maxsize=8)
def simplex_faces(labels: int, grid: int) -> Faces:
    """All distributions on some labels, with a face for each set of labels of positive probability."""
    mesh = simplex_mesh(labels, grid)
    pieces = []
    for n in range(1, labels + 1):
        own = probabilities(_simplices(n, grid), grid)
        corners, directions = [], []
        for names in combinations(range(labels), n):
            wide = np.zeros((*own.shape[:2], labels))
            wide[:, :, names] = own
            tails = np.rint(grid * np.cumsum(wide[:, :, :0:-1], axis=2)[:, :, ::-1]).astype(np.intp)
            corners.append(mesh.places(tails))
            across = np.eye(labels)[list(names[1:])] - np.eye(labels)[names[0]]
            directions.append(np.broadcast_to(across, (len(own), n - 1, labels)))
        pieces.append(Pieces(np.concatenate(corners), np.concatenate(directions)))
    return Faces(mesh.points, np.eye(labels), pieces)


def _simplices(labels: int, grid: int) -> Places:
    """Tails of the corners of all N^(K - 1) simplices: a sequence of K - 1 numbers below N orders the tails' growth."""
    d = labels - 1
    sequences = np.array(list(product(range(grid), repeat=d)), dtype=np.intp).reshape(grid**d, d)
    order = np.argsort(-sequences, axis=1, kind="stable")
    base = np.take_along_axis(sequences, order, axis=1)
    grows = np.argsort(order, axis=1)  # for each number, the tail that it stands for
    steps = np.zeros((len(sequences), labels, d), dtype=np.intp)
    np.put_along_axis(steps[:, 1:], grows[:, :, None], 1, axis=2)
    return base[:, None, :] + np.cumsum(steps, axis=1)


class MeshSolver(ExactSolver, ABC):
    """Forecast whose mean is the point that solves the inequality."""

    def __init__(self, faces: Faces) -> None:
        self.faces = faces

    @abstractmethod
    def largest(self, c: Array, f: Array) -> float:
        """Largest <c, f - w(y)> over the outcomes y."""

    @abstractmethod
    def masses_at(self, point: Array, prior: Array, cell_payoff: MeshCellPayoff) -> Array:
        """Forecast with a given mean in the polytope."""

    def approximation(self, c: Array) -> float:
        """Amount by which the true value may exceed the largest value over the polytope."""
        return 0.0

    def solve(self, search: CandidateSearch, setup: DenseRound) -> None:
        """Propose the expert's forecast if it is a solution, else one at the point found."""
        cell_payoff = search.cell_payoffs[0]
        assert isinstance(cell_payoff, MeshCellPayoff)
        # parts with different contexts share the triangulation, so their ledgers add up
        cumulative = cell_payoff.rows(np.sum(search.cumulative, axis=0))
        masses = setup.prior
        f = cell_payoff.mean(masses)
        c, _ = cell_payoff.pull(cumulative, f)
        if self.largest(c, f) > 0.0:
            masses = self.masses_at(solve(self.faces, cumulative, f).point, masses, cell_payoff)
            f = cell_payoff.mean(masses)
            c, _ = cell_payoff.pull(cumulative, f)
        run_rounds(search, masses, float(c @ f - (self.faces.extremes @ c).min()), self.approximation(c))


def one_grid(bound_payoff: BoundPayoff, kind: type[Any], oracle: str) -> int:
    """Grid of all payoffs, which must be of one kind."""
    grids = {payoff.grid if isinstance(payoff, kind) else 0 for payoff in bound_payoff.payoffs}
    if len(grids) != 1 or 0 in grids:
        got = " + ".join(map(repr, bound_payoff.payoffs))
        raise TypeError(f"expected {kind.__name__}, with one grid, for {oracle}, got {got}")
    return int(grids.pop())
