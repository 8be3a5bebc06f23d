"""The compiled loop of a stream's events against the loop in Python, and the bound of a round among others."""

from __future__ import annotations

import itertools
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from helpers import certify
from orcast.frame.experts import normal_rows
from orcast.frame.runner import NEW, CompiledRun, Inputs, PythonRun, Runner, RunState
from orcast.kernels.events import promised
from orcast.kernels.records import DROP, PREDICT, SETTLE
from orcast.kernels.state import LedgerState
from orcast.ledger import Account, CertificateField, Ledger, PartShape, ledger_layout
from orcast.spaces import Interval

# outcomes come late and out of order, one never
FIRST = np.array([[PREDICT, PREDICT, SETTLE, PREDICT, PREDICT, SETTLE, PREDICT], [0, 1, 0, 2, 3, 2, 4]]).T
REST = np.array([[SETTLE, PREDICT, DROP, SETTLE, PREDICT, SETTLE, SETTLE], [1, 5, 3, 4, 6, 6, 5]]).T


def runs() -> Any:
    """One stream, by the compiled loop and by the one in Python; one is to be played before the other is made."""
    rng = np.random.default_rng(3)
    runner = Runner(Interval(0, 100), None)
    experts = normal_rows(rng.uniform(30.0, 70.0, 7), np.full(7, 2.0), runner.space)
    priors = experts + rng.uniform(-1.0, 1.0, (7, 1))
    sets = np.array([[0.1, 0.5, 0.9]]), np.array([3]), np.zeros(7, dtype=np.int64)
    inputs = Inputs(rng.uniform(20.0, 80.0, 7), experts, priors, *sets)
    events = np.concatenate((FIRST, REST))
    run = runner.resume(None, inputs, None, events)
    assert isinstance(run, CompiledRun)
    yield runner, run
    runner.resume(None, inputs, None, events)
    yield runner, PythonRun(runner, NEW, inputs, None, events)


def numbers(state: RunState) -> list[Any]:
    """A state as plain numbers."""
    rounds = state.rounds
    return [rounds.counters, rounds.records.ravel(), rounds.issued, state.memory]


def test_both_loops_run_rounds_alike() -> None:
    """Also once the budget is used up, so that what each round is settled against is all that there is."""
    found = []
    for runner, run in runs():
        run.run_rounds(FIRST)
        first = numbers(run.state())
        assert list(run.pending) == [1, 3, 4]
        assert first[0][2] > 0.1  # reserved
        runner.rounds.engine.ledger.account[Account.BUDGET] = 1.0
        run.run_rounds(REST)
        assert list(run.pending) == []
        found.append([*first, *numbers(run.state()), run.quantiles, run.round_log[:, :3], run.settled])
    for compiled, plain in zip(*found, strict=True):
        np.testing.assert_array_equal(compiled, plain)


@pytest.mark.parametrize("which", [0, 1], ids=["compiled", "python"])
def test_a_state_does_not_change_with_later_rounds(which: int) -> None:
    _, run = next(itertools.islice(runs(), which, None))
    run.run_rounds(FIRST)
    state, pending = numbers(run.state()), run.pending
    before = [np.array(part) for part in (*state, pending)]
    run.run_rounds(np.array([[SETTLE, 1], [SETTLE, 4]]))
    assert np.isfinite(run.settled[[1, 4]]).all()
    for part, was in zip((*state, pending), before, strict=True):
        np.testing.assert_array_equal(part, was)


@given(
    st.integers(0, 3), st.lists(st.floats(0.1, 2.0), min_size=5, max_size=5), st.lists(st.integers(0, 2), min_size=4)
)
def test_what_is_promised_is_the_worst_over_all_orders(before: int, bounds: list[float], gaps: list[int]) -> None:
    """Whichever of the pending rounds are settled first, in whichever order: no more than that, and as much in one."""
    book = Ledger(LedgerState(ledger_layout([PartShape([0], 1, False, 1.0, 2.0)])))
    one, nothing = np.ones(1), np.zeros(1)

    def settle_some(count: int) -> None:
        for _ in range(count):
            book.book(nothing, one, certify(book, one, linear=1.0, bound=1.0))

    settle_some(before)
    certificates = []
    for bound, gap in zip(bounds[: min(len(gaps), 4)], gaps, strict=False):
        certificates.append(certify(book, one, linear=0.0, bound=bound))
        settle_some(gap)
    own = certify(book, one, linear=0.0, bound=bounds[-1])
    after = []
    was = {name: array.copy() for name, array in book.arrays().items()}
    for count in range(len(certificates) + 1):
        for some in itertools.permutations(certificates, count):
            for certificate in (*some, own):
                book.book(nothing, one, certificate)
            after.append(book.promised)
            for name, array in book.arrays().items():
                array[:] = was[name]
    said = promised(book.account, np.array(certificates), own)
    assert own[CertificateField.PROMISED] <= said
    assert said == pytest.approx(max(after), rel=1e-12)
