"""The exact oracle for quantiles: all mass at the two ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orcast.engine.base import Engine
from orcast.engine.bound_payoff import BoundPayoff
from orcast.engine.dense.engine import DenseEngine
from orcast.engine.dense.priors import GridPrior
from orcast.engine.dense.search import CandidateSearch, DenseRound
from orcast.engine.dense.two_ends import downward_zero
from orcast.kernels.equilibrium import field_tables_arrays
from orcast.paper.exact.base import ExactOracle, ExactSolver, play
from orcast.payoffs import Part
from orcast.spaces import Interval

Array = NDArray[np.float64]
Places = NDArray[np.intp]


@dataclass(frozen=True)
class TwoCells(ExactOracle):
    """The half-space oracle for quantiles on an `Interval`: mass u at its low end, 1 - u at the high.

    For sums of `QuantileCalibration` and `IntervalCalibration`, whatever their levels, weights and contexts.  What is
    owed adds up to s_a on the union of the levels; with

        H(u) = sum_a s_a (min(u, a) - a u),        h = H',

    the cells are the two ends, as atoms, and all that lies between, and an outcome there has the inner products

        v_low = H(u) / u,        v_between = h(u),        v_high = -H(u) / (1 - u).

    If h(0) <= 0 all mass goes to the high end (then v_high = 0 and the rest is h(0)); else if h(1) <= 0 all to the low
    end; else H rises from H(0) = 0 and rises to H(1) = 0, so it has a downward zero u in between, where all three are
    at most 0.  Payoffs of outcomes between the ends are hard indicators, so this promise does not depend on cells.

    *Cost.*  O(M) for M levels to add up what is owed and its prefix sums, as booking an outcome is O(M); given these,
    O(log M): bisection over the levels, where H is known, then the zero of one straight piece.  *Tolerance.*  Rounding:
    a zero that lies on a level is played 1e-13 below it, which costs 1e-13 |h| / a; and the payoff is constant on each
    cell, so the certificate says the very value, with `approximation` 0.

    This is the oracle of the paper's appendix C.1.2, fixed.  The paper takes a zero of the ledger itself, s(a') = 0,
    instead of one of H, and weighs the areas on its two sides: with levels 1/4 and 3/4 and s = (1, -1/2) it plays
    u = 7/12, and an outcome at the low end has an inner product of 3/56 > 0; a zero of H is u = 2/3.

    *Practical:* hardly.  These forecasts are step functions, and say nothing about the outcome: calibrated and
    useless, as the paper says itself.  Use `Equilibrium` or `Committee` instead.

    >>> import orcast as oc
    >>> from orcast.paper.exact.quantile import TwoCells
    >>> game = oc.Forecaster(oc.Interval(0, 1), oc.QuantileCalibration([0.25, 0.75]), oracle=TwoCells())
    >>> for y in (0.3, 0.9, 1.0):
    ...     p = game.predict()
    ...     game.update(y)
    >>> p.support(), p.certificate.holds, p.certificate.half_space < 1e-12
    ((0.0, 1.0), True, True)
    """

    def bind(self, bound_payoff: BoundPayoff, sizes: Sequence[int] | None = None) -> Engine:
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
