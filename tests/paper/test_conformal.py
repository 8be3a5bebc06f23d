"""Conformal levels: attacked by brute force and by adversaries who see the level, and the paper's rule that fails."""

import copy
import math
import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from numpy.typing import NDArray

from helpers import SENTENCE
from orcast.paper.conformal import ConformalLevel, root_near

Vector = NDArray[np.float64]
# Rounding of the root: this share of the larger of the two accounts in use.
ROUNDING = 1e-15


def accounts(aci: ConformalLevel) -> Vector:
    """What the half-space argument is about: payoffs and head start."""
    return np.array(aci._sums) + np.array(aci._head)


def possible(level: float) -> list[bool]:
    """Choices of the adversary at a level."""
    return [e for e in (False, True) if (level > 0 or not e) and (level < 1 or e)]


def after(aci: ConformalLevel, covered: bool) -> ConformalLevel:
    other = copy.deepcopy(aci)
    other.update(covered)
    return other


def realised(aci: ConformalLevel, covered: bool) -> Vector:
    """The payoff that is added to the ledger."""
    return np.array(after(aci, covered)._sums) - np.array(aci._sums)


def hats(level: float, grid: int) -> Vector:
    vertices = np.arange(grid + 1) / grid
    return np.maximum(1.0 - np.abs(level - vertices) * grid, 0.0)


def check_half_space(aci: ConformalLevel) -> None:
    """Whatever happens: the payoff is the one defined, and its inner product with the accounts is not positive."""
    level, s = aci.predict(), accounts(aci)
    weights = hats(level, aci.grid)
    for covered in possible(level):
        defined = weights * (covered - aci.beta)
        pi = realised(aci, covered)
        # the sums themselves round when a payoff is added to them
        np.testing.assert_allclose(pi, defined, rtol=0, atol=1e-15 * (aci.grid + np.abs(aci._sums).max()))
    cell, share = aci._place()
    assert level == pytest.approx((cell + share) / aci.grid, rel=1e-15)
    worst = max(((1 - share) * s[cell] + share * s[cell + 1]) * (e - aci.beta) for e in possible(level))
    assert worst <= ROUNDING * max(abs(s[cell]), abs(s[cell + 1]))


def planted(beta: float, sums: Sequence[float]) -> ConformalLevel:
    """In the midst of a game with these sums."""
    aci = ConformalLevel(beta, grid=len(sums) - 1)
    aci._sums, aci._head, aci.rounds = [float(s) for s in sums], [0.0] * len(sums), 1
    return aci


def run_rounds(
    aci: ConformalLevel, adversary: Callable[[Any, float], bool], rounds: int
) -> Iterator[tuple[float, bool]]:
    for _ in range(rounds):
        level = aci.predict()
        allowed = possible(level)
        covered = adversary(aci, level) if len(allowed) == 2 else allowed[0]
        aci.update(covered)
        yield level, covered


def greedy(aci: ConformalLevel, level: float) -> bool:
    """Whatever makes the sums largest."""
    sizes = [float(np.square(after(aci, e)._sums).sum()) for e in (False, True)]
    return sizes[1] > sizes[0]


def stubborn(covered: bool) -> Callable[[Any, float], bool]:
    return lambda aci, level: covered


def draw(rng: np.random.Generator, chance: float) -> Callable[[Any, float], bool]:
    return lambda aci, level: bool(rng.random() < chance)


# --- the half-space, by brute force ---


def test_adversarially_grown_ledgers() -> None:
    rng = np.random.default_rng(2)
    for case in range(200):
        beta, grid = float(rng.choice([0.05, 0.5, 0.77, 0.9, 0.99])), int(rng.choice([1, 2, 7, 20, 50]))
        aci = ConformalLevel(beta, grid=grid)
        adversary = [greedy, stubborn(True), stubborn(False), draw(rng, beta), draw(rng, 0.5)][case % 5]
        for _ in run_rounds(aci, adversary, int(rng.integers(1, 120))):
            pass
        for _ in run_rounds(aci, greedy, 10):
            check_half_space(aci)


@given(
    st.lists(st.sampled_from([0.0, 1.0, -1.0]) | st.floats(-1e6, 1e6), min_size=2, max_size=30),
    st.floats(1e-3, 1 - 1e-3),
)
def test_any_ledger(sums: list[float], beta: float) -> None:
    check_half_space(planted(beta, sums))


# --- which root ---


def crossings(sums: Vector) -> list[float]:
    """All places, in cells, where the accounts go from - to +, slowly; the ends count if they are beyond them."""
    found = [0.0] if sums[0] > 0 else []
    found += [
        i + sums[i] / (sums[i] - sums[i + 1])
        for i in range(sums.size - 1)
        if sums[i] <= 0 <= sums[i + 1] and sums[i] < sums[i + 1]
    ]
    return found + ([float(sums.size - 1)] if sums[-1] < 0 else [])


def test_it_is_a_crossing_from_minus_to_plus() -> None:
    rng = np.random.default_rng(3)
    for _ in range(500):
        sums = rng.normal(size=int(rng.integers(2, 40)))
        grid = sums.size - 1
        start = (int(rng.integers(0, grid)), float(rng.random()))
        place = sum(root_near(sums.tolist(), *start))
        assert np.abs(np.array(crossings(sums)) - place).min() < 1e-12
        # and on the side to which the accounts point
        here = np.interp(sum(start), np.arange(grid + 1), sums)
        assert (place <= sum(start)) == (here > 0)


def test_it_starts_at_beta() -> None:
    for beta in (0.9, 0.905, 0.29, 0.001, 0.999):
        for grid in (1, 7, 20, 100):
            aci = ConformalLevel(beta, grid=grid)
            assert aci.predict() == beta
            assert hats(beta, grid) @ accounts(aci) == pytest.approx(0.0, abs=1e-12)
            check_half_space(aci)


# --- the guarantee ---


@pytest.mark.parametrize(("beta", "grid"), [(0.9, 20), (0.5, 20), (0.99, 100), (0.05, 1)])
def test_guarantee_against_a_greedy_adversary(beta: float, grid: int) -> None:
    aci = ConformalLevel(beta, grid=grid)
    budget = 0.0
    for rounds, (level, _) in enumerate(run_rounds(aci, greedy, 5000), start=1):
        assert aci.rounds == rounds
        weights = hats(level, grid)
        budget += float(weights @ weights) * max((e - beta) ** 2 for e in possible(level))
        assert abs(aci.coverage - beta) <= aci.coverage_bound
    # the sums are bounded, and the adversary gets a good part of the way
    head = math.hypot(*aci._head)
    promised, reached = head + math.sqrt(head**2 + budget), float(np.linalg.norm(aci._sums))
    assert 0.1 * promised < reached <= promised * (1 + 1e-9)


@given(st.lists(st.booleans(), min_size=1, max_size=200), st.floats(0.01, 0.99), st.integers(1, 30))
def test_guarantee_on_any_sequence(wishes: list[bool], beta: float, grid: int) -> None:
    aci = ConformalLevel(beta, grid=grid)
    stream = iter(wishes)
    payoffs = np.zeros(grid + 1)
    for level, covered in run_rounds(aci, lambda aci, level: next(stream), len(wishes)):
        weights = hats(level, grid)
        payoffs += weights * (covered - beta)
        assert abs(aci.coverage - beta) <= aci.coverage_bound
    np.testing.assert_allclose(aci._sums, payoffs, rtol=0, atol=1e-12 * aci.rounds)
    assert sum(aci._sums) / aci.rounds == pytest.approx(aci.coverage - beta, abs=1e-12)


# --- input and state ---


@pytest.mark.parametrize(
    "make",
    [
        lambda: ConformalLevel(0.0),
        lambda: ConformalLevel(math.nan),
        lambda: ConformalLevel(0.9, grid=0),
        lambda: ConformalLevel(0.9, grid=2.5),  # type: ignore[arg-type]
        lambda: ConformalLevel(0.9, grid=10**9),
    ],
)
def test_bad_settings(make: Callable[[], ConformalLevel]) -> None:
    with pytest.raises((TypeError, ValueError), match=SENTENCE):
        make()


@pytest.mark.parametrize("covered", [None, "yes", 2, -1, 0.9, 1.0, math.nan, [True], np.array([True, False])])
def test_bad_answers_change_nothing(covered: Any) -> None:
    aci = ConformalLevel(0.9)
    aci.update(True)
    before = pickle.dumps(aci)
    with pytest.raises(TypeError, match=SENTENCE):
        aci.update(covered)
    assert pickle.dumps(aci) == before


@pytest.mark.parametrize("wish", [True, False])
def test_what_cannot_be_is_refused(wish: bool) -> None:
    aci = ConformalLevel(0.5)
    while len(possible(aci.predict())) == 2:
        aci.update(wish)
    assert aci.predict() == (0.0 if wish else 1.0)
    rounds = aci.rounds
    with pytest.raises(ValueError, match=SENTENCE) as refused:
        aci.update(wish)
    assert ("-infinity" in str(refused.value)) == wish
    assert aci.rounds == rounds


def test_the_bound_of_the_coverage_is_not_missed_by_rounding() -> None:
    aci = ConformalLevel(0.9, grid=100)
    for _ in range(9):
        aci.update(aci.predict() >= 1.0)
        assert abs(aci.coverage - 0.9) <= aci.coverage_bound
