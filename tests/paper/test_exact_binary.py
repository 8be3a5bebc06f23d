"""The exact oracle on binary outcomes: its choice among roots and its cost."""

import math
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

import orcast as oc
from helpers import SENTENCE
from orcast.engine.bound_payoff import BoundPayoff
from orcast.engine.dense.engine import DenseEngine
from orcast.paper.exact import ROOT_STEP, ROOT_TOLERANCE, BinaryRoot, nearest_root
from orcast.payoffs import Payoff


def bind(payoff: Payoff) -> DenseEngine:
    engine = BinaryRoot().bind(BoundPayoff(oc.Binary(), payoff, ("expert",), None))
    assert isinstance(engine, DenseEngine)
    engine.predict(np.array([[0.5, 0.5]]), {"hour": 0})  # a size may be known only now
    return engine


# --- which root, and what it costs ---


def test_without_debts_it_is_the_expert_who_speaks() -> None:
    recal = oc.Forecaster(oc.Binary(), oc.BinaryCalibration(), oracle=BinaryRoot())
    assert float(recal.predict(0.73)) == pytest.approx(0.73, abs=1e-12)
    assert float(recal.predict()) == pytest.approx(0.5, abs=1e-12)


def test_the_root_is_the_first_one_in_the_direction_of_the_cumulative() -> None:
    engine = bind(oc.BinaryCalibration(grid=10))
    # zeros at the soft edges 0.2, 0.4, 0.6 and 0.8
    engine.ledger.total[:] = [-1, -1, 1, 1, -1, -1, 1, 1, -1, -1]
    for x, expected in ((0.05, 0.2), (0.18, 0.2), (0.35, 0.2), (0.45, 0.6), (0.62, 0.6), (0.7, 0.6), (0.85, 1.0)):
        record = engine.predict(np.array([[1.0 - x, x]]))
        assert engine.prior.result(record.round)[1] == pytest.approx(expected, abs=1e-9)


@given(
    st.lists(st.floats(-5, 5) | st.sampled_from([0.0, 1.0, -1.0]), min_size=2, max_size=12),
    st.floats(0.0, 1.0),
)
def test_a_root_is_found_by_few_evaluations(heights: list[float], start: float) -> None:
    knots = np.linspace(0.0, 1.0, len(heights))
    asked: list[float] = []

    def gap(q: float) -> float:
        asked.append(q)
        return float(np.interp(q, knots, heights))

    ends = nearest_root(gap, start)
    assert len(asked) <= 1 / ROOT_STEP + 2 + math.log2(1 / ROOT_TOLERANCE)
    steepest = float(np.abs(np.diff(heights)).max()) * (len(heights) - 1)
    for q in ends:
        assert 0.0 <= q <= 1.0
        # both bounds of the docstring
        assert max((1.0 - q) * gap(q), -q * gap(q)) <= steepest * ROOT_TOLERANCE + 1e-12
        # on the way that d points
        assert (q - start) * gap(start) >= 0.0


# --- at the edge ---


@pytest.mark.parametrize("space", [oc.Interval(0, 1), oc.Labels(["a", "b"]), oc.Line()], ids=str)
def test_it_is_for_binary_outcomes(space: Any) -> None:
    with pytest.raises(TypeError, match=SENTENCE):
        oc.Forecaster(space, oracle=BinaryRoot())
