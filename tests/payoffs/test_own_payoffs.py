"""Payoffs of your own: broken ones are named, bad functions are refused and change nothing, jumps become edges."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import orcast as oc
from adversaries import Greedy
from contract import check_against
from helpers import SENTENCE, engine_of
from orcast.payoffs import CellGrid, CellPayoff, Part, Payoff
from orcast.payoffs.functions import find_jumps
from orcast.testing import PayoffError, check_payoff

SPACE = oc.Interval(0, 1, cells=16, tail_cells=2)
LABELS = oc.Labels(["a", "b", "c"])


def arrays(recal: Any) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in engine_of(recal).arrays().items()}


class Own(Payoff):
    """A payoff by a function of the forecast and the outcome, which is taken at the middles of cells."""

    name = "own"

    def __init__(self, function: Callable[[Any, Any], float], bound: float = 1.0, one_sided: bool = False) -> None:
        self.function, self.bound, self.one_sided = function, bound, one_sided
        self._settings(None, 1.0)

    def on(self, space: Any, experts: int = 1) -> Part:
        return Part(self, 1, self.bound, lambda grid, state: OwnCells(self.function, grid))


class OwnCells(CellPayoff):
    """Its values on cells."""

    size = 1

    def __init__(self, function: Callable[[Any, Any], float], grid: CellGrid) -> None:
        self.function, self.grid = function, grid
        self.values = 0.5 * (grid.left + grid.right) if grid.ordered else grid.values

    def table(self, p: Any) -> Any:
        forecast = self.grid.forecast(p)
        return np.array([[float(self.function(forecast, y)) for y in self.values]])


# --- what check_payoff says ---

BROKEN: dict[str, tuple[str, Any, Any]] = {
    "a mean that is not zero": ("consistent payoff", SPACE, Own(lambda p, y: y - 0.5)),
    "a median that is not a mean": ("consistent payoff", SPACE, Own(lambda p, y: p.median() - y)),
    "a score that is not proper": (
        "consistent payoff",
        LABELS,
        Own(lambda p, y: p.mass[0] - 0.9 * (y == "a")),
    ),
    "one-sided, but above zero": (
        "at most zero",
        SPACE,
        Own(lambda p, y: abs(y - p.mean()), one_sided=True),
    ),
    "too large": ("bounded payoff", SPACE, Own(lambda p, y: 5.0 * (p.mean() - y))),
    "too large on labels": (
        "bounded payoff",
        LABELS,
        Own(lambda p, y: 2.0 * (p.mass[0] - (y == "a")), bound=0.1),
    ),
    "a hard bin of the mean": (
        "continuous in the forecast",
        SPACE,
        Own(lambda p, y: (p.mean() > 0.5) * (p.mean() - y)),
    ),
    "a hard bin of a probability": (
        "continuous in the forecast",
        LABELS,
        Own(lambda p, y: (p.mass[0] > 0.3) * (p.mass[0] - (y == "a"))),
    ),
    "a recipe with a hard context": (
        "continuous in the forecast",
        SPACE,
        oc.Recipe(lambda y: [y], lambda x, p: [p.mean() > 0.5, p.mean() <= 0.5], bound=1.0),
    ),
    "a recipe that is too large": ("bounded payoff", SPACE, oc.Recipe(lambda y: [9.0 * y], bound=1.0)),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_payoff_is_named(name: str) -> None:
    words, space, payoff = BROKEN[name]
    with pytest.raises(PayoffError, match=SENTENCE) as caught:
        check_payoff(payoff, space)
    assert words in str(caught.value)
    assert type(payoff).__name__ in str(caught.value)


def tent(y: Any) -> Any:
    """A peak of width 0.008."""
    return [np.maximum(0.0, 1.0 - np.abs(np.asarray(y) - 0.3) / 0.004)]


PEAKS: dict[str, tuple[Any, Callable[..., Any]]] = {
    "a point": (SPACE, lambda **k: oc.Recipe(lambda y: [y == 0.37], bound=1.0, **k)),
    "a narrow tent": (SPACE, lambda **k: oc.Recipe(tent, bound=1.0, **k)),
    "a very narrow bell": (
        SPACE,
        lambda **k: oc.Recipe(lambda y: [np.exp(-(((y - 0.31) / 1e-5) ** 2))], bound=1.0, **k),
    ),
    "a point of a line": (oc.Line(), lambda **k: oc.Recipe(lambda y: [y == 0.37], bound=1.0, **k)),
    "a utility": (SPACE, lambda **k: oc.payoffs.DecisionCalibration([0, 1], lambda a, y: a * float(y == 0.37), **k)),
}


@pytest.mark.parametrize("name", PEAKS)
def test_a_peak_between_the_points_is_refused_unless_declared(name: str) -> None:
    space, make = PEAKS[name]
    with pytest.raises(ValueError, match=r"^expected a (witness|utility) without peaks .*jumps=.*lipschitz="):
        oc.Recalibrator(space, make())
    oc.Recalibrator(space, make(jumps=[0.296, 0.3, 0.304, 0.31, 0.37]))


class Fine(Greedy):
    """Tries many points around the tent."""

    def choices(self, recal: Any, id: Any = None) -> list[Any]:
        return [*super().choices(recal, id), *np.linspace(0.295, 0.305, 101).tolist()]


DECLARED: dict[str, Any] = {
    "jumps": oc.Recipe(tent, bound=1.0, jumps=[0.296, 0.3, 0.304]),
    "lipschitz": oc.Recipe(tent, bound=1.0, lipschitz=250.0),
    "both, given the forecast": oc.Recipe(
        tent, lambda x, p: [np.clip(p.mean(), 0, 1)], bound=1.0, jumps=[0.3], lipschitz=250.0
    ),
    "utility": oc.payoffs.DecisionCalibration([0, 1], lambda a, y: a * float(tent(y)[0]), lipschitz=250.0),
    "scanned": oc.Recipe(lambda y: [np.exp(-(((y - 0.3) / 0.004) ** 2))], bound=1.2),
}


@pytest.mark.parametrize("name", DECLARED)
def test_no_outcome_is_worse_than_certified_for_declared_functions(name: str) -> None:
    check_against(Fine(), DECLARED[name], SPACE, rounds=40)


def test_a_slope_above_its_declaration_is_refused() -> None:
    recal = oc.Recalibrator(SPACE, oc.Recipe(tent, bound=1.0, jumps=[0.3], lipschitz=2.0))
    with pytest.raises(ValueError, match=r"^expected a witness with a slope of at most lipschitz=2 "):
        recal.predict(oc.Normal(0.3, 0.01))
    assert recal.pending == ()


def test_mended_they_pass() -> None:
    check_payoff(Own(lambda p, y: p.mean() - y), SPACE)
    check_payoff(Own(lambda p, y: 0.5 * abs(y - p.mean()) - 0.5, one_sided=True), SPACE)
    smooth = oc.Recipe(lambda y: [y], lambda x, p: [np.clip(10 * (p.mean() - 0.5), 0, 1)], bound=1.0)
    check_payoff(smooth, SPACE)


# --- a bound that is exceeded in a round ---


@pytest.mark.parametrize("space", [SPACE, oc.Line(cells=16, tail_cells=2)], ids=str)
@pytest.mark.parametrize(
    "payoff",
    [
        oc.Recipe(lambda y, x: [x["size"] * np.tanh(y)], bound=1.0),
        oc.Recipe(lambda y: [np.tanh(y)], lambda x, p: [x["size"]], bound=1.0),
        oc.QuantileCalibration([0.5]) + oc.Recipe(lambda y, x: [x["size"] * np.tanh(y)], bound=1.0),
    ],
    ids=["witness", "context", "sum"],
)
def test_a_bound_that_is_exceeded_changes_nothing(payoff: Any, space: Any, tmp_path: Path) -> None:
    recal = oc.Forecaster(space, payoff)
    recal.predict(oc.Normal(0.5, 0.1), x={"size": 0.4})
    recal.update(0.7)
    recal.predict(oc.Normal(0.5, 0.1), x={"size": 0.4})
    recal.save(tmp_path / "before")
    for id in (None, "new"):
        with pytest.raises(ValueError, match=SENTENCE) as caught:
            recal.predict(oc.Normal(0.5, 0.1), x={"size": 50.0}, id=id)
        assert "bound=1" in str(caught.value)
        recal.save(tmp_path / "after")
        assert (tmp_path / "after").read_bytes() == (tmp_path / "before").read_bytes()
    recal.update(0.6)
    assert recal.guarantee.rounds == 2


def test_a_plain_recipe_that_exceeds_its_bound_is_refused_at_once() -> None:
    for space in (SPACE, LABELS):
        recal = oc.Recalibrator(space, oc.Recipe(lambda y: [9.0 * (y in ("a", "b") or y == 1.0)], bound=1.0))
        with pytest.raises(ValueError, match=SENTENCE):
            recal.predict(oc.Normal(0.5, 0.1) if space is SPACE else [0.3, 0.3, 0.4])
        assert recal.pending == ()


# --- functions that go wrong in the middle ---


class Fails:
    """A function that is right until `wrong` is set."""

    def __init__(self, right: Callable[..., Any], wrong: Any) -> None:
        self.right, self.wrong, self.now = right, wrong, False

    def __call__(self, *arguments: Any) -> Any:
        return self.wrong if self.now else self.right(*arguments)


WRONG: dict[str, Any] = {
    "nan": [float("nan")],
    "infinite": [float("inf")],
    "text": "much",
    "none": None,
    "nested": [[1.0]],
    "longer": [0.1, 0.1],
}


def broken_context(bad: Fails) -> Any:
    return oc.Recipe(lambda y: [y], lambda x, p: bad(x), bound=1.0)


def broken_witness(bad: Fails) -> Any:
    return oc.Recipe(lambda y: bad(y), bound=1.0)


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("make", [broken_context, broken_witness])
def test_a_function_that_goes_wrong_changes_nothing(make: Callable[[Fails], Any], wrong: str) -> None:
    bad = Fails(lambda *a: [0.5], WRONG[wrong])
    recal = oc.Forecaster(SPACE, make(bad))
    recal.predict(oc.Normal(0.5, 0.1), x={})
    recal.update(0.5)
    before = arrays(recal)
    bad.now = True
    with pytest.raises((TypeError, ValueError), match=SENTENCE):
        recal.predict(oc.Normal(0.5, 0.1), x={}, id="new")
    assert recal.pending == ()
    assert arrays(recal) == before
    bad.now = False
    recal.predict(oc.Normal(0.5, 0.1), x={})
    recal.update(0.5)
    assert recal.guarantee.rounds == 2


@pytest.mark.parametrize("wrong", [[1.0, 2.0], np.zeros(2), "much", None, float("nan"), float("inf")], ids=repr)
@pytest.mark.parametrize("kind", [oc.payoffs.DecisionCalibration, oc.payoffs.SwapRegret])
@pytest.mark.parametrize("space", [SPACE, oc.Binary(), LABELS], ids=str)
def test_a_utility_is_one_number(kind: Any, wrong: Any, space: Any) -> None:
    bad = Fails(lambda a, y: 0.5 if a == "go" else 0.1, wrong)
    forecast = {SPACE: oc.Normal(0.5, 0.1), oc.Binary(): 0.4, LABELS: [0.2, 0.3, 0.5]}[space]
    recal = oc.Recalibrator(space, kind(["go", "stay"], lambda a, y: bad(a, y), utility_range=1.0))
    recal.predict(forecast)
    bad.now = True
    with pytest.raises((TypeError, ValueError), match=SENTENCE):
        recal.predict(forecast, id="new")
    assert recal.pending == (None,)
    bad.now = True
    with pytest.raises((TypeError, ValueError), match=SENTENCE):
        oc.Recalibrator(space, kind(["go", "stay"], lambda a, y: bad(a, y)))


def test_a_utility_beyond_its_range_is_refused() -> None:
    for space, forecast in ((SPACE, oc.Normal(0.5, 0.1)), (LABELS, [0.2, 0.3, 0.5])):
        payoff = oc.payoffs.DecisionCalibration(["go"], lambda a, y: 7.0 * (y in ("a",) or y == 1.0), utility_range=1.0)
        with pytest.raises(ValueError, match=SENTENCE):
            oc.Recalibrator(space, payoff).predict(forecast)


@pytest.mark.parametrize(
    "make",
    [
        lambda: oc.Recipe("text", bound=1.0),
        lambda: oc.Recipe(lambda y: [y], lambda: [1.0], bound=1.0),
        lambda: oc.Recipe(lambda y: [y], "hour", bound=1.0),
        lambda: oc.Recipe(lambda y: [y], bound=-1.0),
        lambda: oc.Recipe(lambda y: [y], bound=1.0, jumps=[2.0, 1.0]),
        lambda: oc.Recipe(lambda y: [y], bound=1.0, jumps="text"),
        lambda: oc.payoffs.DecisionCalibration([], lambda a, y: 0.0),
        lambda: oc.payoffs.DecisionCalibration(range(101), lambda a, y: 0.0),
        lambda: oc.payoffs.DecisionCalibration(7, lambda a, y: 0.0),
        lambda: oc.payoffs.DecisionCalibration(["a"], "text"),
        lambda: oc.payoffs.DecisionCalibration(["a"], lambda a, y: 0.0, utility_range=0.0),
        lambda: oc.payoffs.SwapRegret(["a"], lambda a, y: 0.0, sharpness=0.0),
        lambda: oc.BinaryCalibration(grid=1),
        lambda: oc.LabelCalibration(grid=2.5),
        lambda: oc.IntervalCalibration(1.0),
        lambda: oc.IntervalCalibration([0.9, 0.5]),
        lambda: oc.payoffs.ThresholdCalibration([2.0, 1.0], grid=1),
        lambda: oc.payoffs.ThresholdCalibration([float("inf")], grid=1),
        lambda: oc.payoffs.ThresholdCalibration([]),
    ],
)
def test_bad_arguments_are_refused_in_a_sentence(make: Callable[[], object]) -> None:
    with pytest.raises((TypeError, ValueError), match=SENTENCE):
        make()


# --- outcomes that are not of the space ---

FOREIGN: list[tuple[Any, Any, list[Any]]] = [
    (LABELS, [0.2, 0.3, 0.5], ["d", 0, None, 1.5, ["a"]]),
    (oc.Binary(), 0.4, [2, -1, 0.5, "yes", None, float("nan")]),
    (oc.Circle(24), oc.Normal(3, 1), ["x", None, float("nan"), float("inf"), [1.0, 2.0]]),
    (
        oc.Box([(0, 1), (0, 1)], cells=4),
        oc.Ensemble([[0.2, 0.2], [0.4, 0.8]]),
        [0.5, [0.5], [0.5, 0.5, 0.5], [0.5, 2.0], [0.5, float("nan")], "x", None],
    ),
]


@pytest.mark.parametrize(("space", "forecast", "outcomes"), FOREIGN, ids=lambda v: str(v)[:20])
def test_a_foreign_outcome_changes_nothing(space: Any, forecast: Any, outcomes: list[Any], tmp_path: Path) -> None:
    recal = oc.Recalibrator(space)
    recal.predict(forecast)
    recal.save(tmp_path / "before")
    for y in outcomes:
        with pytest.raises((TypeError, ValueError), match=SENTENCE):
            recal.update(y)
        recal.save(tmp_path / "after")
        assert (tmp_path / "after").read_bytes() == (tmp_path / "before").read_bytes()


# --- jumps ---


def test_jumps_are_found() -> None:
    found = find_jumps(lambda y: np.array([float(y > 0.3) + np.sin(y), float(y >= 0.7)]), 0.0, 1.0)
    assert found == pytest.approx([0.3, 0.7], abs=1e-12)
    # the place itself belongs to the left cell, as a cell does not hold its left end
    assert found[0] == 0.3
    assert find_jumps(lambda y: np.array([np.sin(9 * y), y * y]), 0.0, 1.0).size == 0


def edges_of(recal: Any, forecast: Any, **options: Any) -> list[float]:
    return recal.predict(forecast, **options).right.tolist()


def test_the_jumps_of_a_recipe_become_edges() -> None:
    recal = oc.Recalibrator(SPACE, oc.Recipe(lambda y: [y > 0.3, y > 0.62], bound=2.0))
    for mean in (0.1, 0.45, 0.9):
        edges = edges_of(recal, oc.Normal(mean, 0.1))
        assert min(abs(edge - 0.3) for edge in edges) == 0.0
        assert min(abs(edge - 0.62) for edge in edges) <= 1e-12


@pytest.mark.parametrize("space", [oc.Line(cells=16, tail_cells=2), oc.HalfLine(0)], ids=str)
def test_on_a_line_jumps_are_named(space: Any) -> None:
    recal = oc.Recalibrator(space, oc.Recipe(lambda y: [y > 3.0], bound=1.0, jumps=[3.0]))
    blind = oc.Recalibrator(space, oc.Recipe(lambda y: [y > 3.0], bound=1.0))
    for _ in range(5):
        assert 3.0 in edges_of(recal, oc.Normal(2.9, 0.7))
        assert 3.0 not in edges_of(blind, oc.Normal(2.9, 0.7))
        recal.update(3.05)
        blind.update(3.05)


def test_a_jump_beyond_the_window_does_no_harm() -> None:
    recal = oc.Recalibrator(oc.Line(cells=16, tail_cells=2), oc.Recipe(lambda y: [y > 1e6], bound=1.0, jumps=[1e6]))
    for _ in range(5):
        assert recal.predict(oc.Normal(3, 1)).certificate.holds
        recal.update(4.0)


def test_smoothed_payoff_is_exact_at_a_jump() -> None:
    """The chance of a peak is that of the forecast, to the last bit, not that of a cell that straddles it."""
    payoff = oc.Recipe(lambda y: [y > 0.3], bound=1.0)
    recal = oc.Recalibrator(SPACE, payoff)
    total = 0.0
    for t in range(30):
        p = recal.predict(oc.Normal(0.3 + 0.05 * np.sin(t), 0.1))
        y = [0.3, 0.300001, 0.1, 0.8][t % 4]
        total += (1.0 - p.cdf(0.3)) - (y > 0.3)
        recal.update(y)
        assert engine_of(recal).ledger.part(0)[0, 0] == pytest.approx(total, abs=1e-9)


# --- users' functions see what they should ---


def test_a_recipe_sees_features_and_forecast() -> None:
    seen = []

    def context(x: Any, p: Any) -> list[float]:
        seen.append((x, p))
        return [0.5]

    recal = oc.Recalibrator(SPACE, oc.Recipe(lambda y, x: [x["unit"] * y], context, bound=1.0))
    recal.predict(oc.Normal(0.5, 0.1), x={"unit": 0.5})
    recal.update(0.4)
    assert all(x == {"unit": 0.5} for x, _ in seen)
    assert all(isinstance(p, oc.Forecast) for _, p in seen)


def test_a_refused_first_round_leaves_the_size_open() -> None:
    """Nothing has happened yet, so nothing may be decided."""
    payoff = oc.Recipe(lambda y, x: [x["scale"] * y] * x["size"], bound=1.0)
    recal = oc.Recalibrator(SPACE, payoff)
    with pytest.raises(ValueError, match=SENTENCE):
        recal.predict(oc.Normal(0.5, 0.1), x={"size": 2, "scale": 99.0})
    recal.predict(oc.Normal(0.5, 0.1), x={"size": 3, "scale": 0.1})
    recal.update(0.4)
    assert recal.guarantee.rounds == 1
