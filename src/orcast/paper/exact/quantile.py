"""Exact oracle for quantiles: all mass at the two ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from orcast.engine.bound_payoff import BoundPayoff
from orcast.engine.dense.engine import DenseEngine
from orcast.engine.dense.minimax import two_ends
from orcast.engine.dense.priors import GridPrior
from orcast.engine.dense.search import CandidateSearch, DenseRound
from orcast.paper.exact.base import ExactOracle, ExactSolver, run_rounds
from orcast.spaces import Interval


@dataclass(frozen=True)
class TwoCells(ExactOracle):
    """Half-space oracle for quantiles on an `Interval`: mass u at its low end, 1 - u at the high end.

    Notes
    -----
    For sums of `QuantileCalibration` and `IntervalCalibration`. The ledger sums to s_a on the union of the levels; with

        H(u) = sum_a s_a (min(u, a) - a u),        h = H',

    outcomes at the low end, between the ends and at the high end have the inner products H(u) / u, h(u) and -H(u) / (1
    - u). All three are at most 0 at u = 0 if h(0) <= 0, at u = 1 if h(1) <= 0, else at a downward zero of H, found in
    O(M) for M levels. This is the oracle of the paper's appendix C.1.2, corrected (docs/theory.md). Its forecasts are
    step functions.

    Examples
    --------
    >>> import orcast as oc
    >>> from orcast.paper.exact.quantile import TwoCells
    >>> recal = oc.Forecaster(oc.Interval(0, 1), oc.QuantileCalibration([0.25, 0.75]), oracle=TwoCells())
    >>> for y in (0.3, 0.9, 1.0):
    ...     p = recal.predict()
    ...     recal.update(y)
    >>> p.support(), p.certificate.holds, p.certificate.half_space < 1e-12
    ((0.0, 1.0), True, True)
    """

    def bind(self, bound_payoff: BoundPayoff, sizes: Sequence[int] | None = None) -> DenseEngine:
        """Engine with an empty ledger."""
        if not isinstance(bound_payoff.space, Interval):
            raise TypeError(f"expected an Interval for TwoCells, got {bound_payoff.space!r}")
        for part in bound_payoff.parts:
            if part.kind not in ("quantile", "interval"):
                raise TypeError(
                    f"expected QuantileCalibration and IntervalCalibration only for TwoCells, got {part.payoff!r}"
                )
        low, high = bound_payoff.space.low, bound_payoff.space.high
        prior = GridPrior(bound_payoff, 3, np.array([low, low, high, high]))
        return DenseEngine(bound_payoff, prior, EndsSolver(), sizes)


class EndsSolver(ExactSolver):
    """Forecasts mass at the two ends."""

    def solve(self, search: CandidateSearch, setup: DenseRound) -> None:
        """Propose one forecast."""
        ends = two_ends(search.cell_payoffs, search.cumulative, 3)
        run_rounds(search, np.array([0.0, 0.0, 1.0]) if ends is None else ends)
