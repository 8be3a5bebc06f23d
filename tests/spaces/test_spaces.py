"""Spaces: their cells, their outcomes, and what they refuse."""

import copy
import dataclasses
import json
import pickle
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

import orcast as oc
from helpers import SENTENCE, units
from orcast.spaces import (
    TAIL_MASS,
    Binary,
    Box,
    Circle,
    FiniteSpace,
    HalfLine,
    Interval,
    Labels,
    Line,
    OrderedSpace,
    Space,
    space_from_plain,
)


def test_levels_are_even_between_the_tails_and_hold_the_median() -> None:
    space = oc.Interval(0, 1)
    assert space.levels[0] == TAIL_MASS
    assert space.levels[-1] == 1 - TAIL_MASS
    assert np.diff(space.levels) == pytest.approx(np.diff(space.levels)[0])
    assert space.levels[space.levels.size // 2] == pytest.approx(0.5, abs=1e-15)


@pytest.mark.parametrize(("cells", "tail_cells"), [(64, 8), (8, 1), (40, 17), (200, 3)])
def test_inner_edges_and_tails_add_up(cells: int, tail_cells: int) -> None:
    space = oc.Interval(0, 1, cells=cells, tail_cells=tail_cells)
    inner, tails, bounds = space.levels.size - 1, 2 * tail_cells, 2
    assert inner + tails + bounds == cells
    assert inner >= 4
    p = oc.Recalibrator(space).predict(oc.Normal(0.5, 0.05))
    assert p.mass.size == cells


@pytest.mark.parametrize("y", [3, 3.0, np.float32(3), np.array(3.0), Fraction(3), Decimal(3)])
def test_any_number_is_an_outcome(y: object) -> None:
    value = oc.Interval(0, 10).outcome(y)
    assert value == 3.0
    assert type(value) is float


BAD_OUTCOMES = [
    float("nan"),
    float("inf"),
    "three",
    None,
    np.array([3.0]),
    3j,
    pytest.param(10**400, id="huge"),
]


@pytest.mark.parametrize("outside", ["raise", "clip"])
@pytest.mark.parametrize("y", BAD_OUTCOMES, ids=lambda y: repr(y)[:20])
def test_invalid_outcome_is_rejected(y: object, outside: str) -> None:
    with pytest.raises((TypeError, ValueError), match=SENTENCE):
        oc.Interval(0, 10).outcome(y, outside)


@pytest.mark.parametrize(("y", "clipped"), [(-0.1, 0.0), (10.5, 10.0), (1e300, 10.0)])
def test_outside_is_refused_or_clipped(y: float, clipped: float) -> None:
    space = oc.Interval(0, 10)
    with pytest.raises(ValueError, match=SENTENCE):
        space.outcome(y)
    assert space.outcome(y, "clip") == clipped


REFUSED: list[Callable[[], object]] = [
    *(
        lambda low=low, high=high: Interval(low, high)
        for low, high in [(2, 1), (0, np.inf), (-1e308, 1e308), ("low", "high"), (0, 10**400)]
    ),
    *(lambda cells=cells: Interval(0, 1, cells=cells) for cells in (65, 5000, True)),
    *(lambda tail=tail: Interval(0, 1, tail_cells=tail) for tail in (0, 30)),
    *(
        lambda side=side, bound=bound: HalfLine(**{side: bound})
        for side in ("low", "high")
        for bound in (np.nan, -np.inf, "zero", None, 1e200, [0])
    ),
    *(
        lambda labels=labels: Labels(labels)
        for labels in (["a"], ["a", "a"], [1, True], "ab", {"a", "b"}, 3, ["a", ["b"]], ["a", np.nan])
    ),
    *(lambda period=period: Circle(period) for period in (0, np.nan, "day")),
    *(lambda cells=cells: Circle(cells=cells) for cells in (1, True, 10**5)),
    *(lambda bounds=bounds: Box(bounds) for bounds in ([], [(0, 1, 2)], [(1, 0)], [(0, np.inf)], None)),
    *(lambda cells=cells: Box([(0, 1), (0, 1)], cells=cells) for cells in (1, [2, 2, 2], [True, 2])),
]


@pytest.mark.parametrize("make", REFUSED)
def test_unusable_spaces_are_refused_in_a_sentence(make: Callable[[], object]) -> None:
    with pytest.raises((TypeError, ValueError), match=SENTENCE):
        make()


# --- every space: a value, plain data and back, read-only tables ---


SPACES: dict[str, Callable[[], Space]] = {
    "interval": lambda: Interval(-1, 2, cells=32),
    "line": lambda: Line(cells=40, tail_cells=5),
    "half-line": lambda: HalfLine(-3, cells=40),
    "upper half-line": lambda: HalfLine(high=3, cells=40),
    "binary": Binary,
    "labels": lambda: Labels(["home", "draw", 3, 2.5, False]),
    "circle": lambda: Circle(24, cells=7),
    "box": lambda: Box([(0, 1), (-5, 5)], cells=(3, 4)),
}
FINITE = {name: make for name, make in SPACES.items() if not make().ordered}


@pytest.mark.parametrize("make", SPACES.values(), ids=SPACES)
def test_every_space_is_a_value(make: Callable[[], Space]) -> None:
    space, twin = make(), make()
    assert space == twin
    assert len({space, twin}) == 1
    assert space != Interval(7, 8)
    assert isinstance(space.cells, int)
    assert space.ordered is isinstance(space, OrderedSpace) is not isinstance(space, FiniteSpace)
    with pytest.raises(dataclasses.FrozenInstanceError):
        space.cells = 3
    for other in (copy.deepcopy(space), pickle.loads(pickle.dumps(space))):
        assert other == space
        assert hash(other) == hash(space)
        if isinstance(other, FiniteSpace) and isinstance(other.points, np.ndarray):
            assert not other.points.flags.writeable


@pytest.mark.parametrize("name", SPACES)
def test_every_space_goes_to_plain_data_and_back(name: str) -> None:
    space = SPACES[name]()
    data = json.loads(json.dumps(space.to_plain(), allow_nan=False))
    twin = space_from_plain(data)
    assert twin == space
    assert repr(twin) == repr(space)
    assert twin.cells == space.cells


@pytest.mark.parametrize(
    "data",
    [
        {"kind": 3},
        {"kind": "Interval"},
        {"kind": "Interval", "low": 0, "high": 1, "colour": 3},
        {"kind": "Labels", "labels": 3},
        {"kind": "Binary", "cells": 3},
        {"kind": "Box", "bounds": [[0, 1, 2]], "cells": [3]},
        {"kind": "Box", "bounds": [[0, 1]] * 9, "cells": [2] * 9 + [10**9]},
        {"kind": "Points", "points": [[0.0], [1.0]]},
    ],
    ids=str,
)
def test_broken_plain_data_is_refused_in_a_sentence(data: dict[str, object]) -> None:
    with pytest.raises((TypeError, ValueError), match=SENTENCE):
        space_from_plain(data)


@pytest.mark.parametrize("make", FINITE.values(), ids=FINITE)
def test_every_cell_has_a_value_that_lies_in_it(make: Callable[[], FiniteSpace]) -> None:
    space = make()
    assert len(space.points) == space.cells
    for k in range(space.cells):
        assert space.cell(space.outcome(space.value(k))) == k
        assert np.all(space.points[k] == space.value(k))


@pytest.mark.parametrize("make", FINITE.values(), ids=FINITE)
def test_distances_are_a_metric_and_read_only(make: Callable[[], FiniteSpace]) -> None:
    space = make()
    d = space.distances
    assert d.shape == (space.cells, space.cells)
    assert (d == d.T).all()
    assert (np.diag(d) == 0.0).all()
    assert (d[~np.eye(space.cells, dtype=bool)] > 0.0).all()
    assert (d[:, :, None] <= d[:, None, :] + d.T[None, :, :] + 1e-12).all()
    assert space.distances is d
    with pytest.raises(ValueError, match="read-only"):
        d[0, 0] = 1.0


# --- Line, HalfLine ---


@given(st.floats(-1e100, 1e100))
def test_any_number_is_an_outcome_of_the_line(y: float) -> None:
    empirical = y if abs(y) >= 1e-100 else 0.0
    assert Line().outcome(y) == empirical
    if y >= -2.0:
        assert HalfLine(-2).outcome(y) == empirical
    else:
        with pytest.raises(ValueError, match=SENTENCE):
            HalfLine(-2).outcome(y)
        assert HalfLine(-2).outcome(y, "clip") == -2.0


def test_numbers_too_large_to_square_are_refused_or_clipped() -> None:
    for space in (Line(), HalfLine()):
        with pytest.raises(ValueError, match=SENTENCE):
            space.outcome(1e101)
        assert space.outcome(1e101, "clip") == 1e100


def test_a_half_line_may_have_an_upper_bound_instead() -> None:
    space = HalfLine(high=10, cells=40)
    assert (space.low, space.high, space.cells) == (-np.inf, 10.0, 40)
    assert space.outcome(-1e99) == -1e99
    assert space.outcome(11, "clip") == 10.0
    with pytest.raises(ValueError, match=r"expected an outcome from -1e\+100 to 10, got 11"):
        space.outcome(11)
    with pytest.raises(ValueError, match="expected one bound"):
        HalfLine(0, high=10)
    assert space != HalfLine(10, cells=40)
    assert repr(space) == "HalfLine(high=10.0, cells=40, tail_cells=8)"
    assert dataclasses.replace(space, cells=24) == HalfLine(high=10, cells=24)
    for copied in (space_from_plain(space.to_plain()), pickle.loads(pickle.dumps(space))):
        assert copied == space
        assert hash(copied) == hash(space)


@pytest.mark.parametrize("y", BAD_OUTCOMES, ids=lambda y: repr(y)[:20])
@pytest.mark.parametrize("space", [Line(), HalfLine(), Circle(), Binary()], ids=lambda space: type(space).__name__)
def test_non_numeric_outcome_is_rejected(space: Space, y: object) -> None:
    with pytest.raises((TypeError, ValueError), match=SENTENCE):
        space.outcome(y)


# --- Binary, Labels ---


@pytest.mark.parametrize("one", [1, 1.0, True, np.True_, np.int8(1), np.float32(1), np.array(1), Fraction(1)])
def test_one_in_every_dress(one: object) -> None:
    value = Binary().outcome(one)
    assert value == 1
    assert type(value) is int


@pytest.mark.parametrize("y", [2, -1, 0.5, "yes", "1", None, [1], np.array([1]), 1j])
def test_neither_0_nor_1(y: object) -> None:
    with pytest.raises((TypeError, ValueError), match=SENTENCE):
        Binary().outcome(y)


# --- Circle ---


@given(st.floats(-1e6, 1e6), st.integers(2, 100), st.sampled_from([1.0, 24.0, 360.0, 2 * np.pi]))
def test_a_circle_comes_round(y: float, cells: int, period: float) -> None:
    space = Circle(period, cells)
    canonical = space.outcome(y)
    assert 0.0 <= canonical < period
    assert abs(np.exp(2j * np.pi * canonical / period) - np.exp(2j * np.pi * y / period)) < 1e-6
    away = abs(space.value(space.cell(canonical)) - canonical)
    assert away <= 0.5 * period / cells * (1 + 1e-9)
    again = space.outcome(y + period)
    assert min(abs(again - canonical), period - abs(again - canonical)) < 1e-6 * period


# --- Box ---


@st.composite
def boxes(draw: st.DrawFn) -> Box:
    d = draw(st.integers(1, 3))
    lows = draw(st.lists(st.floats(-10, 10), min_size=d, max_size=d))
    lengths = draw(st.lists(st.floats(0.1, 10), min_size=d, max_size=d))
    cells = draw(st.lists(st.integers(2, 9), min_size=d, max_size=d))
    return Box([(low, low + length) for low, length in zip(lows, lengths, strict=True)], cells)


@given(boxes(), st.data())
def test_every_vector_is_in_its_cell_and_near_its_centre(space: Box, data: st.DataObject) -> None:
    d = len(space.bounds)
    low, high = np.array(space.bounds).T
    y = np.minimum(low + (high - low) * data.draw(st.lists(units, min_size=d, max_size=d).map(np.array)), high)
    canonical = space.outcome(y.tolist())
    assert (canonical == y).all()
    k = space.cell(canonical)
    places = np.unravel_index(k, space.shape)
    for i, place in enumerate(places):
        edges = space.edges[i]
        assert edges[place] < y[i] <= edges[place + 1] or (y[i] == low[i] and place == 0)
    assert (np.abs(y - space.value(k)) <= 0.5 * (high - low) / space.shape * (1 + 1e-9)).all()


@given(boxes())
def test_distances_of_a_box_are_in_units_of_its_sides(space: Box) -> None:
    low, high = np.array(space.bounds).T
    scaled = (space.points - low) / (high - low)
    i, j = 0, space.cells - 1
    assert space.distances[i, j] == pytest.approx(np.linalg.norm(scaled[i] - scaled[j]))
    assert space.cells == np.prod(space.shape) == len(space.points)
    assert [edges.size - 1 for edges in space.edges] == list(space.shape)


def test_outside_a_box() -> None:
    space = Box([(0, 1), (0, 2)])
    with pytest.raises(ValueError, match=SENTENCE) as caught:
        space.outcome([0.5, 3.0])
    assert "component 1" in str(caught.value)
    assert space.outcome([-1, 3.0], "clip").tolist() == [0.0, 2.0]
    assert Box([(0, 1)]).outcome(0.5).tolist() == [0.5]


@pytest.mark.parametrize(
    "y",
    [[0.5], [0.5, 0.5, 0.5], 0.5, [[0.5, 0.5]], [0.5, float("nan")], ["0.5", "1"], None, "ab", [0.5, None], [1, 1j]],
)
def test_no_vector_of_the_box(y: object) -> None:
    for outside in ("raise", "clip"):
        with pytest.raises((TypeError, ValueError), match=SENTENCE):
            Box([(0, 1), (0, 2)]).outcome(y, outside)  # type: ignore[arg-type]
