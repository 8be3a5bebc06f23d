"""Conformal levels: attacked by brute force and by adversaries who see the level, and the paper's rule that fails."""

import copy
import math
import pickle
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from numpy.typing import NDArray

import orcast as oc
from helpers import SENTENCE
from orcast.paper.conformal import ConformalLevel, root_near

Vector = NDArray[np.float64]
# Rounding of the root: this share of the larger of the two accounts in use.
ROUNDING = 1e-15


def accounts(aci: ConformalLevel) -> Vector:
    """What the half-space argument is about: payoffs and head start."""
    return np.array(aci._sums) + np.array(aci._head)


def state_of(aci: ConformalLevel) -> dict[str, Any]:
    return {name: np.asarray(value).tolist() for name, value in vars(aci).items() if name != "lock"}


def possible(level: float) -> list[bool]:
    """What Nature can do at a level."""
    return [e for e in (False, True) if (level > 0 or not e) and (level < 1 or e)]


def after(aci: ConformalLevel, covered: bool) -> ConformalLevel:
    other = copy.deepcopy(aci)
    other.update(covered)
    return other


def realised(aci: ConformalLevel, covered: bool) -> Vector:
    """The payoff that is really booked."""
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


def planted(beta: float, sums: Sequence[float], head_start: float = 0.0, **options: Any) -> ConformalLevel:
    """In the midst of a game with these sums."""
    aci = ConformalLevel(beta, grid=len(sums) - 1, head_start=head_start, **options)
    aci._sums, aci.rounds = [float(s) for s in sums], 1
    return aci


def play(aci: ConformalLevel, nature: Callable[[Any, float], bool], rounds: int) -> Iterator[tuple[float, bool]]:
    for _ in range(rounds):
        level = aci.predict()
        allowed = possible(level)
        covered = nature(aci, level) if len(allowed) == 2 else allowed[0]
        aci.update(covered)
        yield level, covered


def greedy(aci: ConformalLevel, level: float) -> bool:
    """Whatever makes the sums largest."""
    sizes = [float(np.square(after(aci, e)._sums).sum()) for e in (False, True)]
    return sizes[1] > sizes[0]


def stubborn(covered: bool) -> Callable[[Any, float], bool]:
    return lambda aci, level: covered


def coin(rng: np.random.Generator, chance: float) -> Callable[[Any, float], bool]:
    return lambda aci, level: bool(rng.random() < chance)


def levels_and_coverage(aci: ConformalLevel, us: Vector) -> tuple[Vector, Vector]:
    """Levels and hits; outcomes pass by while the level is 0 or 1, as in life."""
    levels, hits = [], []
    for u in us:
        level = aci.predict()
        covered = bool(u <= level) if 0 < level < 1 else level >= 1
        aci.update(covered)
        levels.append(level)
        hits.append(covered)
    return np.array(levels), np.array(hits)


# --- the half-space, by brute force ---


def test_adversarially_grown_ledgers() -> None:
    rng = np.random.default_rng(2)
    for case in range(200):
        beta, grid = float(rng.choice([0.05, 0.5, 0.77, 0.9, 0.99])), int(rng.choice([1, 2, 7, 20, 50]))
        aci = ConformalLevel(beta, grid=grid, head_start=float(rng.choice([0.0, 0.3])))
        nature = [greedy, stubborn(True), stubborn(False), coin(rng, beta), coin(rng, 0.5)][case % 5]
        for _ in play(aci, nature, int(rng.integers(1, 120))):
            pass
        for _ in play(aci, greedy, 10):
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
        place = sum(root_near(sums.tolist().__getitem__, grid, *start))
        assert np.abs(np.array(crossings(sums)) - place).min() < 1e-12
        # and on the side to which the accounts point
        here = np.interp(sum(start), np.arange(grid + 1), sums)
        assert (place <= sum(start)) == (here > 0)


def test_it_starts_at_beta() -> None:
    for beta in (0.9, 0.905, 0.29, 0.001, 0.999):
        for grid in (1, 7, 20, 100):
            for head_start in (0.0, 0.3):
                aci = ConformalLevel(beta, grid=grid, head_start=head_start)
                assert aci.predict() == beta
                assert hats(beta, grid) @ accounts(aci) == pytest.approx(0.0, abs=1e-12)
                check_half_space(aci)


# --- the guarantee ---


@pytest.mark.parametrize(
    ("beta", "grid", "head_start"), [(0.9, 20, 0.3), (0.5, 20, 0.0), (0.99, 100, 0.3), (0.05, 1, 0.0)]
)
def test_guarantee_against_a_greedy_adversary(beta: float, grid: int, head_start: float) -> None:
    aci = ConformalLevel(beta, grid=grid, head_start=head_start)
    for rounds, _ in enumerate(play(aci, greedy, 5000), start=1):
        assert aci.rounds == rounds
        assert aci.miscalibration <= aci.promised
        assert abs(aci.coverage - beta) <= aci.coverage_bound
    assert aci.promised < 1.2 * max(beta, 1 - beta) / math.sqrt(5000)
    # a bound that binds: the adversary gets a good part of the way
    assert aci.miscalibration > 0.1 * aci.promised


@given(st.lists(st.booleans(), min_size=1, max_size=200), st.floats(0.01, 0.99), st.integers(1, 30), st.floats(0, 2))
def test_guarantee_on_any_sequence(wishes: list[bool], beta: float, grid: int, head_start: float) -> None:
    aci = ConformalLevel(beta, grid=grid, head_start=head_start)
    stream = iter(wishes)
    payoffs = np.zeros(grid + 1)
    budget = 0.0
    for level, covered in play(aci, lambda aci, level: next(stream), len(wishes)):
        weights = hats(level, grid)
        payoffs += weights * (covered - beta)
        budget += float(weights @ weights) * max((e - beta) ** 2 for e in possible(level))
        assert aci.miscalibration <= aci.promised
        assert abs(aci.coverage - beta) <= aci.coverage_bound
    assert aci.miscalibration == pytest.approx(float(np.linalg.norm(payoffs)) / aci.rounds, abs=1e-12)
    assert sum(aci._sums) / aci.rounds == pytest.approx(aci.coverage - beta, abs=1e-12)
    if head_start == 0.0:
        assert aci.promised == pytest.approx(math.sqrt(budget) / aci.rounds, rel=1e-9)


# --- at random ---


def expected_inner(aci: ConformalLevel, covered: tuple[bool, bool]) -> float:
    """The expected inner product, if the lower and the upper of the two levels are covered or not."""
    s = accounts(aci)
    cell, share = aci._place()
    return float((1 - share) * s[cell] * (covered[0] - aci.beta) + share * s[cell + 1] * (covered[1] - aci.beta))


def test_randomised_keeps_its_stated_tolerance_and_needs_it() -> None:
    rng = np.random.default_rng(11)
    needed = 0.0
    for _ in range(500):
        grid = int(rng.integers(1, 30))
        sums = np.sort(rng.normal(size=grid + 1))
        aci = planted(float(rng.uniform(0.05, 0.95)), sums)
        size = float(np.linalg.norm(sums))
        cell, share = aci._place()
        if share in (0.0, 1.0):
            vertex = cell + int(share)
            assert all(sums[vertex] * (e - aci.beta) <= 1e-12 * size for e in possible(vertex / grid))
            continue
        assert abs(expected_inner(aci, (False, False))) <= 1e-12 * size
        assert abs(expected_inner(aci, (True, True))) <= 1e-12 * size
        a, b = abs(sums[cell]), sums[cell + 1]
        between = expected_inner(aci, (False, True))
        assert between == pytest.approx(a * b / (a + b))
        assert between <= size / math.sqrt(8)
        needed = max(needed, between / size)
    assert needed > 0.1
    tight = planted(0.7, [-1.0, 1.0])
    assert expected_inner(tight, (False, True)) == pytest.approx(math.sqrt(2) / math.sqrt(8))


def test_randomised_predicts_the_same_twice_and_books_what_was_asked() -> None:
    aci = ConformalLevel(0.9, grid=10, randomised=True, seed=3)
    twin = ConformalLevel(0.9, grid=10, randomised=True, seed=3)
    other = ConformalLevel(0.9, grid=10, randomised=True, seed=4)
    rng = np.random.default_rng(12)
    levels, others = [], []
    for u in rng.random(300):
        level = aci.predict()
        assert level == aci.predict() == twin.predict()
        assert level * 10 == pytest.approx(round(level * 10))
        before = np.array(aci._sums)
        covered = bool(u <= level) if 0 < level < 1 else level == 1
        aci.update(covered)
        twin.update(covered)
        payoff = np.array(aci._sums) - before
        np.testing.assert_allclose(payoff, hats(level, 10) * (covered - 0.9), atol=1e-12)
        levels.append(level)
        others.append(other.predict())
        other.update(bool(u <= others[-1]) if 0 < others[-1] < 1 else others[-1] == 1)
    assert len(set(levels)) > 1
    assert levels != others


def test_randomised_promise_in_mean_square() -> None:
    # outcomes even over the levels: given the past, one falls between two neighbours with probability 1/grid
    grid, rounds, runs = 20, 300, 40
    rng = np.random.default_rng(13)
    squares, errors = [], []
    for seed in range(runs):
        aci = ConformalLevel(0.9, grid=grid, randomised=True, seed=seed)
        levels_and_coverage(aci, rng.random(rounds))
        squares.append(aci.miscalibration**2)
        errors.append(abs(aci.coverage - 0.9))
    assert math.sqrt(np.mean(squares)) <= aci.promised + 1 / (grid * math.sqrt(8))
    assert np.mean(errors) <= aci.coverage_bound
    assert aci.promised < 0.08


# --- input and state ---


@pytest.mark.parametrize(
    "make",
    [
        lambda: ConformalLevel(0.0),
        lambda: ConformalLevel(math.nan),
        lambda: ConformalLevel(0.9, grid=0),
        lambda: ConformalLevel(0.9, grid=2.5),  # type: ignore[arg-type]
        lambda: ConformalLevel(0.9, grid=10**9),
        lambda: ConformalLevel(0.9, head_start=-1),
        lambda: ConformalLevel(0.9, randomised="yes"),  # type: ignore[arg-type]
        lambda: ConformalLevel(0.9, seed=-1),
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
    before = pickle.dumps(aci)
    with pytest.raises(ValueError, match=SENTENCE) as refused:
        aci.update(wish)
    assert ("-infinity" in str(refused.value)) == wish
    assert pickle.dumps(aci) == before
    aci.update(not wish)
    assert aci.rounds == pickle.loads(before).rounds + 1


@pytest.mark.parametrize("options", [{}, {"grid": 7, "head_start": 0.0}, {"randomised": True, "seed": 5}])
@pytest.mark.parametrize("rounds", [0, 1, 137])
def test_save_and_load_bit_for_bit(tmp_path: Path, options: dict[str, Any], rounds: int) -> None:
    aci = ConformalLevel(0.83, **options)
    rng = np.random.default_rng(16)
    levels_and_coverage(aci, rng.random(rounds))
    aci.save(tmp_path / "level")
    again = ConformalLevel.load(tmp_path / "level")
    pickled, copied = pickle.loads(pickle.dumps(aci)), copy.deepcopy(aci)
    us = rng.random(200)
    expected = levels_and_coverage(aci, us)[0].tolist()
    for other in (again, pickled, copied):
        assert levels_and_coverage(other, us)[0].tolist() == expected
        assert state_of(other) == state_of(aci)
        other.save(tmp_path / "other")
        aci.save(tmp_path / "level")
        assert (tmp_path / "other").read_bytes() == (tmp_path / "level").read_bytes()


def test_load_refuses_other_files(tmp_path: Path) -> None:
    path = tmp_path / "state"
    game = oc.Forecaster(oc.Interval(0, 1))
    game.save(path)
    with pytest.raises(ValueError, match=r"expected the state of a ConformalLevel, got that of a Forecaster"):
        ConformalLevel.load(path)
    path.write_bytes(b"something else")
    with pytest.raises(ValueError, match=SENTENCE):
        ConformalLevel.load(path)


@pytest.mark.parametrize(
    "spoilt",
    [
        {"beta": 2.0},
        {"grid": 19},
        {"rounds": -1},
        {"rounds": "many"},
        {"covered": 5},
        {"budget": -1.0},
        {"seed": None},
        {"randomised": 1},
    ],
)
def test_load_refuses_a_state_that_cannot_be(tmp_path: Path, spoilt: dict[str, Any]) -> None:
    from orcast import persistence

    path = tmp_path / "state"
    aci = ConformalLevel(0.9)
    aci.update(True)
    aci.save(path)
    header, arrays = persistence.read(path)
    persistence.write(path, {**header, **spoilt}, arrays)
    with pytest.raises(ValueError, match=SENTENCE):
        ConformalLevel.load(path)
    persistence.write(path, header, {"sums": np.full(21, np.nan)})
    with pytest.raises(ValueError, match=SENTENCE):
        ConformalLevel.load(path)
    persistence.write(path, header, {})
    with pytest.raises(ValueError, match=SENTENCE):
        ConformalLevel.load(path)


def test_the_bound_of_the_coverage_is_not_missed_by_rounding() -> None:
    aci = ConformalLevel(0.9, grid=100, head_start=0.0)
    for _ in range(9):
        aci.update(aci.predict() >= 1.0)
        assert abs(aci.coverage - 0.9) <= aci.coverage_bound
