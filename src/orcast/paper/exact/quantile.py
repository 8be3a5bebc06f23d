"""The exact oracle for quantiles: all mass at the two ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orcast.engine.bound_payoff import BoundPayoff
from orcast.engine.dense.engine import DenseEngine
from orcast.engine.dense.minimax import downward_zero
from orcast.engine.dense.priors import GridPrior
from orcast.engine.dense.search import CandidateSearch, DenseRound
from orcast.kernels.equilibrium import field_tables_arrays
from orcast.paper.exact.base import ExactOracle, ExactSolver, play
from orcast.payoffs import Part
from orcast.spaces import Interval

Array = NDArray[np.float64]
Places = NDArray[np.intp]


@dataclass(frozen=True)
class TwoCells(ExactOracle):
    """Half-space oracle for quantiles on an `Interval`: mass u at its low end, 1 - u at the high.

    For sums of `QuantileCalibration` and `IntervalCalibration`.  The ledger adds up to s_a on the union of the levels;
    with

        H(u) = sum_a s_a (min(u, a) - a u),        h = H',

    outcomes at the low end, between the ends and at the high end have the inner products H(u) / u, h(u) and
    -H(u) / (1 - u).  All three are at most 0 at u = 0 if h(0) <= 0, at u = 1 if h(1) <= 0, else at a downward zero of
    H, found in O(M) for M levels.  This is the oracle of the paper's appendix C.1.2, fixed (docs/theory.md).  Its
    forecasts are step functions.

    >>> import orcast as oc
    >>> from orcast.paper.exact.quantile import TwoCells
    >>> game = oc.Forecaster(oc.Interval(0, 1), oc.QuantileCalibration([0.25, 0.75]), oracle=TwoCells())
    >>> for y in (0.3, 0.9, 1.0):
    ...     p = game.predict()
    ...     game.update(y)
    >>> p.support(), p.certificate.holds, p.certificate.half_space < 1e-12
    ((0.0, 1.0), True, True)
    """

    def bind(self, bound_payoff: BoundPayoff, sizes: Sequence[int] | None = None) -> DenseEngine:
        """An engine with an empty ledger."""
        if not isinstance(bound_payoff.space, Interval):
            raise TypeError(f"expected an Interval for TwoCells, got {bound_payoff.space!r}")
        for part in bound_payoff.parts:
            if part.kind not in ("quantile", "interval"):
                raise TypeError(
                    f"expected QuantileCalibration and IntervalCalibration only for TwoCells, got {part.payoff!r}"
                )
        low, high = bound_payoff.space.low, bound_payoff.space.high
        prior = GridPrior(bound_payoff, 3, np.array([low, low, high, high]))
        return DenseEngine(bound_payoff, prior, EndsSolver(bound_payoff.parts), sizes)


class EndsSolver(ExactSolver):
    """Plays mass at the two ends."""

    def __init__(self, parts: Sequence[Part]) -> None:
        grids = [part.payoff.levels for part in parts]  # type: ignore[attr-defined]
        self.levels = np.unique(np.concatenate(grids)) if grids else np.array([0.5])
        # for each part, where its coordinates lie among the levels; those of an interval are two, and its lower one
        # counts against it
        self.places: list[tuple[Places, Places | None]] = []
        for part, grid in zip(parts, grids, strict=True):
            at = np.searchsorted(self.levels, grid)
            ends = None if part.kind == "quantile" else part.payoff.ends  # type: ignore[attr-defined]
            self.places.append((at, None) if ends is None else (at[ends[:, 1]], at[ends[:, 0]]))
        self.knots, self.slopes = np.empty(self.levels.size + 1), np.empty(self.levels.size + 1)

    def owed_on_levels(self, owed: Sequence[Array]) -> Array:
        """What all parts are owed, as owed on the union of the levels."""
        s = np.zeros(self.levels.size)
        for own, (upper, lower) in zip(owed, self.places, strict=True):
            np.add.at(s, upper, own)
            if lower is not None:
                np.subtract.at(s, lower, own)
        return s

    def solve(self, search: CandidateSearch, setup: DenseRound) -> None:
        """One forecast."""
        field_tables_arrays(self.owed_on_levels(search.owed), self.levels, self.knots, self.slopes)
        u = downward_zero(self.levels, self.knots, self.slopes)
        play(search, np.array([u, 0.0, 1.0 - u]))
