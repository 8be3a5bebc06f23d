"""Forecasts on finite spaces against their definitions: sums over cells, integrals, draws."""

import copy
import pickle
from collections.abc import Callable

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from numpy.typing import NDArray

from helpers import SENTENCE, numbers_of
from orcast.forecasts import (
    BinaryForecast,
    BoxForecast,
    CircleForecast,
    FiniteForecast,
    LabelForecast,
    as_masses,
    forecast_on,
)
from orcast.spaces import Binary, Box, Circle, FiniteSpace, Labels

Vector = NDArray[np.float64]


SPACES: dict[str, Callable[[], FiniteSpace]] = {
    "binary": Binary,
    "labels": lambda: Labels(["home", "draw", "away"]),
    "mixed": lambda: Labels(["a", 1, 2.5]),
    "circle": lambda: Circle(24, cells=5),
    "box": lambda: Box([(0, 1), (-5, 5)], cells=(3, 4)),
}
every = pytest.mark.parametrize("name", SPACES)


def some(name: str, seed: int = 0) -> FiniteForecast:
    space = SPACES[name]()
    mass = np.random.default_rng(seed).random(space.cells)
    return forecast_on(space, mass / mass.sum())


@st.composite
def masses(draw: st.DrawFn, cells: int) -> Vector:
    drawn = np.array(draw(st.lists(st.sampled_from([0.0, 1.0]) | st.floats(1e-3, 1), min_size=cells, max_size=cells)))
    drawn[draw(st.integers(0, cells - 1))] += 1.0
    return drawn / drawn.sum()


# --- what they have in common ---


@every
def test_masses_are_shared_and_read_only(name: str) -> None:
    space = SPACES[name]()
    mass = np.full(space.cells, 1 / space.cells)
    p = forecast_on(space, mass)
    assert p.mass is mass
    with pytest.raises(ValueError, match="read-only"):
        p.mass[0] = 0.0


@every
def test_mode_and_probability_are_those_of_the_cells(name: str) -> None:
    p = some(name)
    for k in range(p.space.cells):
        assert p.probability(p.space.value(k)) == pytest.approx(p.mass[k], abs=1e-15)
    assert p.probability(p.mode()) == p.mass.max()


@every
def test_expectations_are_sums_over_cells_that_hold_mass(name: str) -> None:
    space = SPACES[name]()
    mass = np.zeros(space.cells)
    mass[:2] = 0.25, 0.75
    seen = []

    def function(value: object) -> float:
        seen.append(value)
        return float(len(seen))

    assert forecast_on(space, mass).expect(function) == 0.25 * 1 + 0.75 * 2
    assert all(np.all(a == space.value(k)) for k, a in enumerate(seen))
    assert len(seen) == 2
    with pytest.raises(TypeError, match=SENTENCE):
        forecast_on(space, mass).expect(lambda value: "x")  # type: ignore[arg-type, return-value]


@every
def test_draws_follow_the_masses_and_the_generator(name: str) -> None:
    p = some(name)
    draws = p.sample(20_000, rng=np.random.default_rng(1))
    assert np.array_equal(draws, p.sample(20_000, rng=np.random.default_rng(1)))
    cells = [p.space.cell(p.space.outcome(draw)) for draw in draws]
    assert np.bincount(cells, minlength=p.space.cells) / 20_000 == pytest.approx(p.mass, abs=0.015)
    assert p.sample((2, 3), rng=np.random.default_rng(0)).shape[:2] == (2, 3)
    with pytest.raises(TypeError, match=SENTENCE):
        p.sample(3, rng=7)  # type: ignore[arg-type]


@every
@pytest.mark.parametrize("twin_of", [copy.copy, copy.deepcopy, lambda p: pickle.loads(pickle.dumps(p))])
def test_copies_keep_masses_and_certificate(name: str, twin_of) -> None:  # type: ignore[no-untyped-def]
    first = some(name)
    p = forecast_on(first.space, first.mass, "certificate")  # type: ignore[arg-type]
    twin = twin_of(p)
    assert type(twin) is type(p)
    assert twin.mass.tolist() == p.mass.tolist()
    assert not twin.mass.flags.writeable
    assert twin.space == p.space
    assert twin.certificate == "certificate"


@pytest.mark.parametrize(
    ("make", "takes"),
    [
        (lambda mass: LabelForecast(["a", "b", "c"], mass), 3),
        (lambda mass: CircleForecast(Circle(cells=3), mass), 3),
        (lambda mass: BoxForecast(Box([(0, 1)], cells=3), mass), 3),
        (lambda mass: as_masses(mass, 3), 3),
    ],
)
@pytest.mark.parametrize(
    "mass",
    [
        [0.5, 0.5],
        [1.5, -0.5, 0.0],
        [0.5, 0.5, float("nan")],
        ["a", "b", "c"],
        [[1.0, 0.0, 0.0]],
        None,
        [0, 0, 0],
    ],
    ids=str,
)
def test_what_are_no_masses(make: Callable[[object], object], takes: int, mass: object) -> None:
    with pytest.raises((TypeError, ValueError), match=SENTENCE):
        make(mass)


@pytest.mark.parametrize("kind", [CircleForecast, BoxForecast])
@pytest.mark.parametrize("space", [Binary(), None, "circle", Labels(["a", "b"]), {}], ids=repr)
def test_the_wrong_space_is_refused(kind: Callable[..., object], space: object) -> None:
    with pytest.raises((TypeError, ValueError), match=SENTENCE):
        kind(space, [0.5, 0.5])


# --- Binary ---


@given(st.floats(0, 1))
def test_a_probability(p: float) -> None:
    forecast = BinaryForecast(p)
    assert forecast.probability() == forecast.probability(1) == forecast.probability(True) == float(forecast) == p
    assert forecast.probability(0) == 1.0 - p
    assert forecast.mean() == p
    assert forecast.var() == pytest.approx(p * (1 - p))
    assert forecast.std() == pytest.approx(np.sqrt(p * (1 - p)))
    assert forecast.mode() == (1 if p > 0.5 else 0)
    assert forecast.mass.tolist() == [1.0 - p, p]
    assert forecast.expect(lambda y: 3.0 * y) == pytest.approx(3 * p)
    same = BinaryForecast.trusted(Binary(), np.array([1.0 - p, p]), None)
    assert same.probability() == p
    assert type(float(BinaryForecast.trusted(Binary(), np.float64(p), None))) is float


# --- Labels ---


def test_labels_by_probability() -> None:
    p = LabelForecast(["a", "b", "c", 7], [0.25, 0.25, 0.375, 0.125])
    assert p.to_dict() == {"a": 0.25, "b": 0.25, "c": 0.375, 7: 0.125}
    assert p.top() == [("c", 0.375)]
    assert p.top(3) == [("c", 0.375), ("a", 0.25), ("b", 0.25)]
    assert p.top(99) == [*p.top(3), (7, 0.125)]
    assert repr(p) == "LabelForecast('c': 0.375, 'a': 0.25, 'b': 0.25, ...)"
    assert p.expect({"a": 1.0, "b": 2.0, "c": 4.0, 7: 8.0}.__getitem__) == 3.25
    with pytest.raises((TypeError, ValueError), match=SENTENCE):
        p.probability("d")
    for n in (0, -1, 1.5, True, "2"):
        with pytest.raises((TypeError, ValueError), match=SENTENCE):
            p.top(n)  # type: ignore[arg-type]


# --- Circle ---


def circles(cells: int = 6) -> st.SearchStrategy[CircleForecast]:
    return masses(cells).map(lambda mass: CircleForecast(Circle(360, cells=cells), mass))


def density(p: CircleForecast, y: Vector) -> Vector:
    cells = np.array([p.space.cell(p.space.outcome(v)) for v in np.ravel(y)])
    return (p.mass[cells] * p.space.cells / p.space.period).reshape(np.shape(y))


@given(circles())
def test_circular_moments_are_integrals(p: CircleForecast) -> None:
    y = (np.arange(6000) + 0.5) * 0.06
    mean = (density(p, y) * np.exp(2j * np.pi * y / 360)).sum() * 0.06
    if abs(mean) > 1e-3:
        assert np.exp(2j * np.pi * p.mean() / 360) == pytest.approx(mean / abs(mean), abs=1e-4)
        assert 0.0 <= p.mean() < 360.0
        assert p.std() == pytest.approx(np.sqrt(-2 * np.log(abs(mean))) * 180 / np.pi, rel=1e-3)


# --- Box ---

BOX = Box([(0, 2), (-5, 5)], cells=(3, 4))
boxed = masses(12).map(lambda mass: BoxForecast(BOX, mass))


@given(boxed)
def test_moments_of_vectors_are_those_of_marginals_and_draws(p: BoxForecast) -> None:
    for i in range(2):
        side = p.marginal(i)
        assert p.mean()[i] == pytest.approx(side.mean(), abs=1e-9)
        assert p.std()[i] == pytest.approx(side.std(), abs=1e-9)
        assert p.var()[i] == pytest.approx(side.var(), abs=1e-9)
    assert numbers_of(p.marginal(-1)) == numbers_of(p.marginal(1))
