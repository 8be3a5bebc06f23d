"""Exact oracle on binary outcomes: a root of one continuous function on [0, 1]."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orcast.engine.bound_payoff import BoundPayoff
from orcast.engine.dense.engine import DenseEngine
from orcast.engine.dense.search import CandidateSearch, DenseRound, log_masses
from orcast.paper.exact.base import ExactOracle, ExactSolver, expert_alone, run_rounds, worst_value
from orcast.payoffs.regret import RegretCellPayoff
from orcast.spaces import Binary

Array = NDArray[np.float64]
Gap = Callable[[float], float]

# From the expert's probability on, a change of sign is searched in steps of this size, then bracketed this closely.
STEP, TOLERANCE = 1.0 / 32.0, 1e-12


@dataclass(frozen=True)
class BinaryRoot(ExactOracle):
    """Half-space oracle on `Binary`, for every payoff.

    Notes
    -----
    With v_k(p) = <S_+, payoff(p, k)> and d = v_1 - v_0 it forecasts p = 0 if d(0) <= 0, p = 1 if d(1) >= 0, else a zero
    of d. By (semi-)consistency

        v_1 <= (1 - p) d(p),        v_0 <= -p d(p),

    so both are at most 0 there. The search goes from the expert's p (1/2 without one) in the direction of d, by steps
    of 1/32, to the first change of sign, then bisects. It is the scalar case of the paper's appendix C.2
    (docs/theory.md).

    Examples
    --------
    >>> import orcast as oc
    >>> from orcast.paper.exact.binary import BinaryRoot
    >>> recal = oc.Forecaster(oc.Binary(), oc.BinaryCalibration(), oracle=BinaryRoot())
    >>> for y in (1, 0, 1, 1):
    ...     p = recal.predict(0.7)
    ...     recal.update(y)
    >>> p.certificate.holds, p.certificate.half_space < 1e-12, p.certificate.approximation
    (True, True, 0.0)
    """

    def bind(self, bound_payoff: BoundPayoff, sizes: Sequence[int] | None = None) -> DenseEngine:
        """Engine with an empty ledger."""
        if not isinstance(bound_payoff.space, Binary):
            raise TypeError(f"expected Binary() for BinaryRoot, got {bound_payoff.space!r}")
        return DenseEngine(bound_payoff, expert_alone(bound_payoff), RootSolver(), sizes)


class RootSolver(ExactSolver):
    """Forecast the zero of d next to the expert's probability."""

    def solve(self, search: CandidateSearch, setup: DenseRound) -> None:
        """Propose the better end of the bracket: d may jump, where the unit of a regret vanishes."""
        ends = nearest_root(gap_of(search), float(setup.cell_grid.expert[1]))
        found = [np.array([1.0 - q, q]) for q in ends]
        run_rounds(search, min(found, key=lambda masses: worst_value(search, log_masses(masses))))


def gap_of(search: CandidateSearch) -> Gap:
    """Difference d = v_1 - v_0 as a function of the probability."""
    parts = [(each, s) for each, s in zip(search.cell_payoffs, search.cumulative, strict=True) if s.any()]

    def gap(q: float) -> float:
        p, value = np.array([1.0 - q, q]), 0.0
        for cell_payoff, s in parts:
            # the units of regrets move with p
            regret = isinstance(cell_payoff, RegretCellPayoff)
            field = s @ cell_payoff.table(p) if regret else cell_payoff.field(s, p)
            value += float(field[1] - field[0])
        return value

    return gap


def nearest_root(gap: Gap, start: float) -> tuple[float, float]:
    """Bracket of the first zero or jump of d from `start` in its direction, or the end of [0, 1] there, twice."""
    a, sign = start, float(np.sign(gap(start)))
    while sign != 0.0 and a != max(sign, 0.0):
        b = min(max(a + sign * STEP, 0.0), 1.0)
        value = sign * gap(b)
        if value == 0.0:
            return b, b
        if value < 0.0:
            while abs(b - a) > TOLERANCE:
                middle = 0.5 * (a + b)
                a, b = (middle, b) if sign * gap(middle) > 0.0 else (a, middle)
            return a, b
        a = b
    return a, a
