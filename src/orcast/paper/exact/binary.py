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
from orcast.payoffs import CellPayoff
from orcast.payoffs.regret import RegretCellPayoff
from orcast.spaces import Binary
from orcast.validation import number

Array = NDArray[np.float64]
Gap = Callable[[float], float]

# From the expert's probability on, a change of sign is searched in steps of this size.
STEP = 1.0 / 32.0


@dataclass(frozen=True)
class BinaryRoot(ExactOracle):
    """Half-space oracle on `Binary`, for every payoff.

    Parameters
    ----------
    tolerance
        Width of the final bracket around the probability.

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

    tolerance: float = 1e-12

    def __post_init__(self) -> None:
        object.__setattr__(self, "tolerance", number(self.tolerance, "tolerance", 1e-15, 0.01))

    def bind(self, bound_payoff: BoundPayoff, sizes: Sequence[int] | None = None) -> DenseEngine:
        """Engine with an empty ledger."""
        if not isinstance(bound_payoff.space, Binary):
            raise TypeError(f"expected Binary() for BinaryRoot, got {bound_payoff.space!r}")
        return DenseEngine(bound_payoff, expert_alone(bound_payoff), RootSolver(self.tolerance), sizes)


class RootSolver(ExactSolver):
    """Forecast the zero of d next to the expert's probability."""

    def __init__(self, tolerance: float) -> None:
        self.tolerance = tolerance

    def solve(self, search: CandidateSearch, setup: DenseRound) -> None:
        """Propose the better end of the last bracket."""
        ends = nearest_root(gap_of(search), float(setup.cell_grid.expert[1]), self.tolerance)
        found = [np.array([1.0 - q, q]) for q in ends]
        run_rounds(search, min(found, key=lambda masses: worst_value(search, log_masses(masses))))


def gap_of(search: CandidateSearch) -> Gap:
    """Difference d = v_1 - v_0 as a function of the probability; its constant terms are summed once."""
    fixed = 0.0
    moving: list[tuple[CellPayoff, Array]] = []
    half = np.array([0.5, 0.5])
    for cell_payoff, cumulative in zip(search.cell_payoffs, search.cumulative, strict=True):
        if not cumulative.any():
            continue
        if cell_payoff.explicit:
            field = cell_payoff.field(cumulative, half)
            fixed += float(field[1] - field[0])
        else:
            moving.append((cell_payoff, cumulative))

    def gap(q: float) -> float:
        p = np.array([1.0 - q, q])
        value = fixed
        for cell_payoff, cumulative in moving:
            # the units of regrets move with p
            field = (
                cumulative @ cell_payoff.table(p)
                if isinstance(cell_payoff, RegretCellPayoff)
                else cell_payoff.field(cumulative, p)
            )
            value += float(field[1] - field[0])
        return value

    return gap


def nearest_root(gap: Gap, start: float, tolerance: float) -> tuple[float, ...]:
    """Bracket around the first zero of d from `start` in the direction of d, or the one point to forecast."""
    a, at_a = start, gap(start)
    end = 1.0 if at_a > 0.0 else 0.0
    sign = 1.0 if at_a > 0.0 else -1.0
    while True:
        if at_a == 0.0 or a == end:
            return (a,)
        b = min(a + STEP, 1.0) if end else max(a - STEP, 0.0)
        at_b = gap(b)
        if sign * at_b < 0.0:
            return _bisect(gap, a, at_a, b, at_b, tolerance)
        a, at_a = b, at_b


def _bisect(gap: Gap, a: float, at_a: float, b: float, at_b: float, tolerance: float) -> tuple[float, ...]:
    """Halve the bracket until it or d is small; every other point is the zero of the chord."""
    small = tolerance * max(abs(at_a), abs(at_b))
    chord = True
    while abs(b - a) > tolerance:
        middle = a - at_a * (b - a) / (at_b - at_a) if chord else 0.5 * (a + b)
        chord = not chord
        if not min(a, b) < middle < max(a, b):
            middle = 0.5 * (a + b)
            if not min(a, b) < middle < max(a, b):
                break
        value = gap(middle)
        if abs(value) <= small:
            return (middle,)
        if (value > 0.0) == (at_a > 0.0):
            a, at_a = middle, value
        else:
            b, at_b = middle, value
    return a, b
