"""The partition of appendix D: its bounds hold after every round against any outcomes, and its lemmas."""

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from numpy.typing import NDArray

import orcast as oc
from definitions import hats
from helpers import SENTENCE
from orcast.adapters import expert_row
from orcast.paper.partition import SCORE, PartitionedRecalibrator
from orcast.payoffs.cell_payoffs import hat_weights
from orcast.testing import worst_outcome

Vector = NDArray[np.float64]
LABELS = ["home", "draw", "away"]

GAMES: dict[str, Callable[..., PartitionedRecalibrator]] = {
    "binary": lambda: PartitionedRecalibrator(oc.Binary(), cells=5, grid=8),
    "labels": lambda: PartitionedRecalibrator(oc.Labels(LABELS), cells=4, grid=6),
}
RESOLUTION = {"binary": 5, "labels": 4}
ROUNDS = {"binary": 250, "labels": 80}
OUTCOMES: dict[str, list[Any]] = {"binary": [0, 1], "labels": LABELS}


def expert_of(name: str, t: int, rng: np.random.Generator) -> Any:
    if name == "binary":
        # often at the very edge of a cell
        return float(rng.integers(0, 6) / 5 if rng.random() < 0.3 else rng.random())
    return rng.dirichlet(np.full(3, 10.0 ** rng.uniform(-1, 1)))


# --- the slow twin: every round as the paper writes it


class Twin:
    """All rounds, and the four quantities by their definitions."""

    def __init__(self, name: str, recal: PartitionedRecalibrator) -> None:
        self.name, self.recal = name, recal
        self.rows: list[tuple[Vector, Vector, int]] = []

    def see(self, forecast: Any, result: Any, y: Any) -> None:
        said = expert_row(forecast, self.recal.space)[0]
        self.rows.append((said, np.array(result.mass), self.recal.space.outcome(y)))

    def events(self, mass: Vector) -> Vector:
        return mass[1:] if self.name == "binary" else mass

    def calibration_error(self, which: int = 1) -> float:
        """C_T of the forecasts, or of the expert (which = 0)."""
        payoffs = [
            hats(self.recal.grid, self.events(row[which])) * self.events(row[which] - np.eye(row[which].size)[k])
            for *row, k in self.rows
        ]
        return float(np.abs(np.mean(payoffs, axis=0)).sum())

    def regret(self) -> float:
        def of(mass: Vector, k: int) -> float:
            p = (
                oc.forecasts.BinaryForecast(float(mass[1]))
                if self.name == "binary"
                else oc.forecasts.LabelForecast(range(mass.size), mass)
            )
            return SCORE(p, k)

        return float(np.mean([of(p, k) - of(said, k) for said, p, k in self.rows]))

    def middle(self, said: Vector) -> tuple[float, ...]:
        """The middle of a cell: of a bin, or the nearest composition by looking at all of them."""
        cells = RESOLUTION[self.name]
        if self.name == "binary":
            p = (min(int(said[1] * cells), cells - 1) + 0.5) / cells
            return (1 - p, p)
        return tuple(np.array(nearest(said, cells)) / cells)

    def by_cell(self) -> dict[tuple[float, ...], list[tuple[Vector, Vector, int]]]:
        found: dict[tuple[float, ...], list[tuple[Vector, Vector, int]]] = {}
        for row in self.rows:
            found.setdefault(self.middle(row[0]), []).append(row)
        return found

    def visits(self) -> list[int]:
        """Rounds of each cell."""
        return sorted(map(len, self.by_cell().values()))

    def bounds(self) -> tuple[float, float]:
        """Both bounds, from the rounds and what the forecasters of the cells promise."""
        grid = self.recal.grid
        g_hat = 2 * (np.arange(grid) + 0.5) / grid
        promises = {tuple(self.recal._middle(key)): cell.recal.guarantee for key, cell in self.recal._cells.items()}
        calibration = regret = 0.0
        for middle, rows in self.by_cell().items():
            promised = promises[middle].promised * len(rows) * (1 if self.name == "binary" else math.sqrt(2))
            q = self.events(np.array(middle))
            square, touched, remainder = 0.0, 0, 0.0
            most_hat = np.max([hats(grid, self.events(p)) for _, p, _ in rows], axis=0)
            for v, k in itertools.product(range(grid), range(q.size)):
                if most_hat[v, k] > 0:
                    touched += 1
                    square += (g_hat[v] - 2 * q[k]) ** 2
            for said, mass, _ in rows:
                p, x = self.events(mass), self.events(said)
                w = hats(grid, p)
                rest = 2 * p - g_hat @ w + 2 * q - 2 * x
                errors = [self.events(mass - e) for e in np.eye(mass.size)]
                remainder += max(float(rest @ error) for error in errors)
            calibration += math.sqrt(touched) * promised
            regret += math.sqrt(square) * promised + remainder
        return calibration / len(self.rows), regret / len(self.rows)

    def rates(self) -> tuple[float, float]:
        """What the docstring says about calibration and Brier regret, given nothing but the rounds of each cell."""
        K = 1 if self.name == "binary" else self.rows[0][0].size
        grid, cells = self.recal.grid, RESOLUTION[self.name]
        roots = sum(math.sqrt((1 if K == 1 else 2) * (n + 64)) for n in self.visits()) / len(self.rows)
        remainder = 1 / grid + 1 / cells if K == 1 else 2 / grid + math.sqrt(2 * K) / cells
        return math.sqrt(K * grid) * roots, 2.1 * math.sqrt(K * grid / 3) * roots + remainder


def compositions(parts: int, total: int) -> Iterator[tuple[int, ...]]:
    for bars in itertools.combinations(range(total + parts - 1), parts - 1):
        ends = (-1, *bars, total + parts - 1)
        yield tuple(b - a - 1 for a, b in itertools.pairwise(ends))


def nearest(x: Vector, total: int) -> tuple[int, ...]:
    return min(compositions(x.size, total), key=lambda c: float(np.sum((np.array(c) / total - x) ** 2)))


def check_bounds(recal: PartitionedRecalibrator) -> None:
    assert recal.calibration_error <= recal.calibration_bound
    assert recal.regret <= recal.regret_bound


# --- Natures


class Nature:
    """Picks each outcome, having seen the forecast."""

    def __init__(self, kind: str, name: str, rng: np.random.Generator) -> None:
        self.kind, self.name, self.rng = kind, name, rng

    def __call__(self, twin: Twin, forecast: Any, result: Any, t: int) -> Any:
        said, p = expert_row(forecast, twin.recal.space)[0], np.array(result.mass)
        options = OUTCOMES[self.name]
        rows = twin.recal._sums
        eye = np.eye(p.size)
        if self.kind == "random":
            k = int(self.rng.choice(p.size, p=said / said.sum()))
        elif self.kind == "drifting":
            k = int(self.rng.random() < 0.5 + 0.45 * math.sin(t / 15)) * (p.size - 1)
        elif self.kind == "regret":
            k = int(np.argmax([BRIER_OF(p, e) - BRIER_OF(said, e) for e in eye]))
        elif self.kind == "calibration":
            after = []
            for e in eye:
                error = twin.events(p - e)
                hat = hats(twin.recal.grid, twin.events(p))
                after.append(np.abs(rows + np.array(hat) * error).sum())
            k = int(np.argmax(after))
        else:  # the forecaster of the cell, by itself
            recal = twin.recal._cells[twin.recal._pending.key].recal
            k = int(recal.space.outcome(worst_outcome(recal)[0]))
        return options[k]


def BRIER_OF(p: Vector, e: Vector) -> float:
    return float(np.sum((p - e) ** 2))


NATURES = ["random", "drifting", "calibration", "cell", "regret"]


@pytest.mark.parametrize("name", GAMES)
@pytest.mark.parametrize("kind", NATURES)
def test_bounds_hold_after_every_round(name: str, kind: str) -> None:
    rng = np.random.default_rng(5)
    recal = GAMES[name]()
    twin, adversary = Twin(name, recal), Nature(kind, name, rng)
    for t in range(ROUNDS[name]):
        forecast = expert_of(name, t, rng)
        p = recal.predict(forecast)
        y = adversary(twin, forecast, p, t)
        twin.see(forecast, p, y)
        recal.update(y)
        check_bounds(recal)
        assert p.certificate.holds
        if t % 20 < 3:
            # the bounds themselves are below what is known without looking at the forecasts
            calibration, regret = twin.rates()
            assert recal.calibration_bound <= calibration * (1 + 1e-9)
            assert recal.regret_bound <= regret * (1 + 1e-9)
    assert recal.calibration_error == pytest.approx(twin.calibration_error(), rel=1e-9, abs=1e-12)
    assert recal.regret == pytest.approx(twin.regret(), rel=1e-9, abs=1e-9)
    calibration, regret = twin.bounds()
    assert recal.calibration_bound == pytest.approx(calibration, rel=1e-6)
    assert recal.regret_bound == pytest.approx(regret, rel=1e-6)
    assert recal.rounds == len(twin.rows)


# --- the lemmas


masses = st.lists(st.floats(0, 1) | st.sampled_from([0.0, 0.25, 1.0]), min_size=2, max_size=5).filter(
    lambda m: sum(m) > 0.1
)


@given(masses, st.data())
def test_regret_is_an_error_of_calibration(m: list[float], data: st.DataObject) -> None:
    """score(p, y) - score(x, y) <= sum_k 2 (p_k - x_k) (p_k - 1{y = k}), of which lemma 2 is the mean."""
    p = np.array(m) / sum(m)
    shares = st.lists(st.floats(0.1, 1), min_size=p.size, max_size=p.size)
    x = np.array(data.draw(st.permutations(m))) * np.array(data.draw(shares))
    x /= x.sum()
    for k in range(p.size):
        mine, theirs = (SCORE(oc.forecasts.LabelForecast(range(p.size), each), k) for each in (p, x))
        error = p - np.eye(p.size)[k]
        assert mine - theirs <= 2 * (p - x) @ error + 1e-9


@given(st.sampled_from(["binary", "labels"]), st.data())
def test_what_is_known_before_the_outcome_covers_every_outcome(name: str, data: st.DataObject) -> None:
    """score(p, y) - score(x, y) <= sum_v,k (g_v - g(q_k)) w_v(p_k) (p_k - 1{y = k}) + remainder, whatever y is."""
    recal = GAMES[name]()
    size = 2 if name == "binary" else 3
    own = masses.map(lambda m: np.resize(m, size) + 1e-3).map(lambda m: m / m.sum())
    p, x = data.draw(own), data.draw(own)
    key = recal._cell(x)
    remainder = recal._remainder(key, x, p)
    pick = slice(1, None) if name == "binary" else slice(None)
    w = hats(recal.grid, p[pick])
    away = recal._heights[:, None] - 2 * recal._middle(key)[pick]
    excess = SCORE.on_cells(recal.space, p) - SCORE.on_cells(recal.space, x)
    for k, e in enumerate(np.eye(size)):
        assert excess[k] <= float((w * away * (p - e)[pick]).sum()) + remainder + 1e-9


@pytest.mark.parametrize("grid", [2, 3, 5, 15, 40])
def test_constants_of_the_brier_score(grid: int) -> None:
    """c_j <= 2.1 sqrt(grid / 3), and what the hats leave is at most 1 / grid, or 2 / grid for labels."""
    heights = PartitionedRecalibrator(oc.Binary(), grid=grid)._heights
    p = np.linspace(0, 1, 2001)
    left, share = hat_weights(grid, p)
    rest = 2 * p - (heights[left] + share * (heights[left + 1] - heights[left]))
    assert np.maximum(rest * p, rest * (p - 1)).max() <= 1 / grid
    assert max(np.linalg.norm(heights - 2 * q) for q in p[::50]) <= 2.1 * math.sqrt(grid / 3)
    rng = np.random.default_rng(grid)
    for K in (3, 6):
        many = rng.dirichlet(np.full(K, 0.4), 4000)
        left, share = hat_weights(grid, many)
        rest = 2 * many - (heights[left] + share * (heights[left + 1] - heights[left]))
        assert ((rest * many).sum(axis=1) - rest.min(axis=1)).max() <= 2 / grid


# --- cells


@given(masses, st.integers(1, 6))
def test_the_cell_of_a_vector_is_its_nearest_composition(m: list[float], resolution: int) -> None:
    x = np.array(m) / sum(m)
    recal = PartitionedRecalibrator(oc.Labels(range(x.size)), cells=resolution)
    key = recal._cell(x)
    middle = recal._middle(key)
    best = np.array(nearest(x, resolution)) / resolution
    assert np.sum((middle - x) ** 2) <= np.sum((best - x) ** 2) + 1e-9
    assert np.linalg.norm(middle - x) <= math.sqrt(x.size) / (2 * resolution) + 1e-9
    assert (recal._start(key) > 0).all()
    assert recal._start(key).sum() == pytest.approx(1)


@given(st.floats(0, 1), st.integers(1, 50))
def test_the_cell_of_a_probability_is_its_bin(x: float, count: int) -> None:
    recal = PartitionedRecalibrator(oc.Binary(), cells=count)
    assert abs(recal._middle(recal._cell(np.array([1 - x, x])))[1] - x) <= 0.5 / count + 1e-12


@pytest.mark.parametrize("name", GAMES)
def test_a_forecast_replaces_the_pending_one(name: str) -> None:
    rng = np.random.default_rng(9)
    recal = GAMES[name]()
    for _ in range(5):
        recal.predict(expert_of(name, 0, rng))  # in whichever cell
    recal.update(OUTCOMES[name][0])
    assert recal.rounds == sum(cell.recal.guarantee.rounds for cell in recal._cells.values()) == 1
    assert not any(cell.recal.pending for cell in recal._cells.values())
    check_bounds(recal)


# --- state


def some_rounds(name: str, recal: PartitionedRecalibrator, seed: int, count: int = 12) -> PartitionedRecalibrator:
    rng = np.random.default_rng(seed)
    for _ in range(count):
        recal.predict(expert_of(name, 0, rng))
        recal.update(OUTCOMES[name][int(rng.integers(len(OUTCOMES[name])))])
    return recal


def state(recal: PartitionedRecalibrator) -> Any:
    """Everything that lasts, in a form that can be compared."""
    cells = {
        key: [each.tobytes() for each in (cell.weights, np.array(cell.remainder), *cell.recal.engine.arrays().values())]
        for key, cell in recal._cells.items()
    }
    return cells, recal._sums.tobytes(), recal._excess, str(recal._pending)


# --- what is refused


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("binary", 1.2),
        ("binary", None),
        ("labels", [0.5, 0.5]),
        ("labels", {"home": 0.5, "unknown": 0.5}),
    ],
)
@pytest.mark.parametrize("begun", [False, True])
def test_a_refused_forecast_leaves_no_cell(name: str, bad: Any, begun: bool) -> None:
    recal = some_rounds(name, GAMES[name](), 15, 3 if begun else 0)
    before = state(recal)
    with pytest.raises((TypeError, ValueError), match=SENTENCE):
        recal.predict(bad)
    assert state(recal) == before


@pytest.mark.parametrize("name", GAMES)
def test_refused_outcomes_change_nothing(name: str) -> None:
    recal = some_rounds(name, GAMES[name](), 17, 3)
    with pytest.raises(ValueError, match=SENTENCE):
        recal.update(OUTCOMES[name][0])
    recal.predict(expert_of(name, 0, np.random.default_rng(16)))
    before = state(recal)
    for bad in ("nonsense", math.nan):
        with pytest.raises((TypeError, ValueError), match=SENTENCE):
            recal.update(bad)
    assert state(recal) == before


@pytest.mark.parametrize(
    ("space", "options"),
    [
        (oc.Interval(0, 1), {}),
        (oc.Binary(), {"cells": 0}),
        (oc.Binary(), {"grid": 1}),
        (oc.Labels(range(4)), {"cells": 99}),
    ],
)
def test_bad_options_are_refused(space: Any, options: dict[str, int]) -> None:
    with pytest.raises((TypeError, ValueError), match=SENTENCE):
        PartitionedRecalibrator(space, **options)
