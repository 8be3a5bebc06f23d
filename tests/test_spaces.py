"""Interval: its levels, its outcomes, and what it refuses."""

import dataclasses
import json
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import norm

import orcast as oc
from helpers import SENTENCE
from orcast.spaces import TAIL_MASS, space_from_plain


def test_bounds_become_floats() -> None:
    space = oc.Interval(0, np.int64(10))
    assert (space.low, space.high) == (0.0, 10.0)
    assert type(space.low) is type(space.high) is float


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


def test_scores_are_normal_and_antisymmetric() -> None:
    space = oc.Interval(-3, 8)
    assert space.scores == pytest.approx(norm.ppf(space.levels), abs=1e-12)
    assert (space.scores == -space.scores[::-1]).all()


@pytest.mark.parametrize("y", [3, 3.0, np.float32(3), np.array(3.0), Fraction(3), Decimal(3)])
def test_any_number_is_an_outcome(y: object) -> None:
    value = oc.Interval(0, 10).outcome(y)
    assert value == 3.0
    assert type(value) is float


def test_the_bounds_belong_to_the_interval() -> None:
    space = oc.Interval(-1, 2)
    assert (space.outcome(-1), space.outcome(2)) == (-1.0, 2.0)


BAD_OUTCOMES = [
    float("nan"),
    float("inf"),
    -float("inf"),
    "three",
    "3",
    b"3",
    None,
    np.array([3.0]),
    np.array([1.0, 2.0]),
    [3.0],
    3j,
    pytest.param(10**400, id="huge"),
]


@pytest.mark.parametrize("outside", ["raise", "clip"])
@pytest.mark.parametrize("y", BAD_OUTCOMES, ids=lambda y: repr(y)[:20])
def test_what_is_no_outcome_is_refused_in_a_sentence(y: object, outside: str) -> None:
    with pytest.raises((TypeError, ValueError), match=SENTENCE):
        oc.Interval(0, 10).outcome(y, outside)


@pytest.mark.parametrize(("y", "clipped"), [(-0.1, 0.0), (10.5, 10.0), (1e300, 10.0)])
def test_outside_is_refused_or_clipped(y: float, clipped: float) -> None:
    space = oc.Interval(0, 10)
    with pytest.raises(ValueError, match=SENTENCE):
        space.outcome(y)
    assert space.outcome(y, "clip") == clipped


@pytest.mark.parametrize(
    ("low", "high", "options"),
    [
        (1, 1, {}),
        (2, 1, {}),
        (float("nan"), 1, {}),
        (0, float("inf"), {}),
        (-1e308, 1e308, {}),
        (0, 1e-310, {}),
        ("low", "high", {}),
        (None, 1, {}),
        pytest.param(0, 10**400, {}, id="huge"),
        (0, 1, {"cells": 65}),
        (0, 1, {"cells": 20}),
        (0, 1, {"cells": 5000}),
        (0, 1, {"cells": 64.0}),
        (0, 1, {"cells": True}),
        (0, 1, {"tail_cells": 0}),
        (0, 1, {"tail_cells": -3}),
        (0, 1, {"tail_cells": "8"}),
        (0, 1, {"tail_cells": 30}),
    ],
)
def test_unusable_spaces_are_refused_in_a_sentence(low: object, high: object, options: dict[str, object]) -> None:
    with pytest.raises((TypeError, ValueError), match=SENTENCE):
        oc.Interval(low, high, **options)  # type: ignore[arg-type]


def test_a_space_is_a_value() -> None:
    space = oc.Interval(0, 1, cells=32)
    assert space == oc.Interval(0.0, 1.0, cells=32) != oc.Interval(0, 1)
    assert len({space, oc.Interval(0, 1, cells=32)}) == 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        space.low = 3.0  # type: ignore[misc]


def test_plain_data_and_back() -> None:
    space = oc.Interval(-0.1, 1 / 3, cells=np.int64(40), tail_cells=np.int64(4))
    assert space_from_plain(json.loads(json.dumps(space.to_plain()))) == space
    with pytest.raises(ValueError, match=SENTENCE):
        space_from_plain({"kind": "Torus"})
