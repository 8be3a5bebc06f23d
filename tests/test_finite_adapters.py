"""Whatever forecast a user holds, as masses on a finite space or as quantiles on an unbounded one."""

from collections.abc import Callable
from types import SimpleNamespace

import hypothesis.strategies as st
import numpy as np
import pytest
import scipy.stats
from hypothesis import given

from helpers import SENTENCE, shown
from orcast.adapters import Ensemble, Normal, Quantiles, binary_probability, expert_quantiles, expert_row
from orcast.forecasts import BinaryForecast, BoxForecast, CircleForecast, Forecast, LabelForecast
from orcast.spaces import Binary, Box, Circle, HalfLine, Labels, Line, OrderedSpace, Space

LABELS = Labels(["home", "draw", "away"])
CIRCLE = Circle(360, cells=36)
BOX = Box([(0, 1), (-5, 5)], cells=(4, 10))


class Series:
    """What the adapters look for in a pandas Series."""

    def __init__(self, data: dict[object, float]) -> None:
        self.data = data
        self.index = list(data)

    def to_dict(self) -> dict[object, float]:
        return self.data


def masses(forecast: object, space: Space) -> list[float]:
    row, crossed = expert_row(forecast, space)
    assert not crossed
    assert row.dtype == np.float64
    assert row.shape == (space.cells,)
    assert (row >= 0.0).all()
    assert row.sum() == pytest.approx(1.0, abs=1e-12)
    return row.tolist()


# --- Binary ---


@pytest.mark.parametrize(
    "forecast",
    [
        0.75,
        np.float64(0.75),
        [0.25, 0.75],
        np.array([0.25, 0.75]),
        BinaryForecast(0.75),
    ],
    ids=shown,
)
def test_every_way_to_say_a_probability(forecast: object) -> None:
    assert binary_probability(forecast) == 0.75
    assert masses(forecast, Binary()) == [0.25, 0.75]


@pytest.mark.parametrize(
    "forecast",
    [
        1.1,
        float("nan"),
        "0.5",
        None,
        [0.5],
        [-0.5, 1.5],
        {1: 0.75},
        object(),
        LabelForecast(["a", "b"], [0.5, 0.5]),
        Normal(0.5, 0.1),
    ],
    ids=shown,
)
def test_no_probability_of_a_yes(forecast: object) -> None:
    with pytest.raises((TypeError, ValueError), match=SENTENCE):
        expert_row(forecast, Binary())


# --- Labels ---


@pytest.mark.parametrize(
    "forecast",
    [
        [0.5, 0.5, 0.0],
        np.array([0.5, 0.5, 0.0], dtype=np.float32),
        {"draw": 0.5, "home": 0.5},
        {np.str_("draw"): 0.5, "home": 0.5},
        Series({"draw": 0.5, "home": 0.5}),
        LabelForecast(["home", "draw", "away"], [0.5, 0.5, 0.0]),
        LabelForecast(["draw", "home"], [0.5, 0.5]),
    ],
    ids=shown,
)
def test_every_way_to_say_probabilities_of_labels(forecast: object) -> None:
    assert masses(forecast, LABELS) == [0.5, 0.5, 0.0]


@given(st.lists(st.floats(0.01, 1), min_size=3, max_size=3))
def test_rounded_probabilities_are_divided_by_their_sum(weights: list[float]) -> None:
    rounded = np.round(np.array(weights) / np.sum(weights), 7)
    assert masses(rounded, LABELS) == pytest.approx(rounded.tolist(), abs=1e-6)


@pytest.mark.parametrize(
    "forecast",
    [
        [0.5, 0.5],
        [0.5, 0.6, -0.1],
        {"home": 0.5, "lost": 0.5},
        {},
        {"home": "x", "draw": 0.5},
        0.5,
        None,
        LabelForecast(["home", "lost"], [0.5, 0.5]),
        Normal(0, 1),
        "home",
        {"home", "draw"},
    ],
    ids=shown,
)
def test_no_probabilities_of_labels(forecast: object) -> None:
    with pytest.raises((TypeError, ValueError), match=SENTENCE):
        expert_row(forecast, LABELS)


# --- Circle ---


@given(st.floats(-720, 720), st.floats(0.5, 500))
def test_a_direction_and_a_spread_are_a_wrapped_normal(direction: float, spread: float) -> None:
    row = np.array(masses(Normal(direction, spread), CIRCLE))
    edges = np.linspace(0, 360, 37)
    turns = np.arange(-20, 21)[:, None] * 360
    expected = np.diff(scipy.stats.norm.cdf(edges + turns, direction % 360, spread), axis=1).sum(axis=0)
    assert row == pytest.approx(expected, abs=1e-9)


@given(st.lists(st.floats(-720, 720), min_size=1, max_size=9))
def test_directions_are_empirical_with_a_kernel_of_one_cell(members: list[float]) -> None:
    row = np.array(masses(Ensemble(members), CIRCLE))
    expected = np.mean([masses(Normal(member, 10.0), CIRCLE) for member in members], axis=0)
    assert row == pytest.approx(expected, abs=1e-12)


NOT_ON_A_CIRCLE = [
    (10, 1),
    np.full(36, 0.5),
    "north",
    Ensemble([[1, 2], [3, 4]]),
    Quantiles([0.1, 0.9], [1, 2]),
    BinaryForecast(0.5),
    CircleForecast(Circle(360, cells=4), [0.25] * 4),
    SimpleNamespace(pdf=lambda y: np.full_like(y, np.nan)),
    SimpleNamespace(pdf=lambda y: -np.ones_like(y)),
    SimpleNamespace(pdf=lambda y: [1.0, 2.0]),
]


@pytest.mark.parametrize("forecast", NOT_ON_A_CIRCLE, ids=shown)
def test_no_forecast_of_a_direction(forecast: object) -> None:
    with pytest.raises((TypeError, ValueError), match=SENTENCE):
        expert_row(forecast, CIRCLE)


# --- Box ---


def test_masses_of_the_cells() -> None:
    mass = np.arange(40) / np.arange(40).sum()
    for forecast in (mass, mass.tolist(), BoxForecast(BOX, mass)):
        assert masses(forecast, BOX) == pytest.approx(mass.tolist(), abs=1e-15)


@pytest.mark.parametrize(
    "second",
    [
        Normal(1, 2),
        scipy.stats.norm(1, 2),
        SimpleNamespace(ppf=scipy.stats.norm(1, 2).ppf),
        SimpleNamespace(cdf=scipy.stats.norm(1, 2).cdf),
        {a / 100: float(scipy.stats.norm.ppf(a / 100, 1, 2)) for a in range(1, 100)},
        Ensemble(scipy.stats.norm.ppf((np.arange(4000) + 0.5) / 4000, 1, 2)),
    ],
    ids=lambda v: type(v).__name__,
)
@pytest.mark.parametrize("make", [list, tuple])
def test_forecasts_of_the_components_make_a_product(second: object, make: Callable[[list[object]], object]) -> None:
    first = Forecast([0.0, 0.5], [0.5, 1.0], [0.75, 0.25])
    row = np.array(masses(make([first, second]), BOX)).reshape(4, 10)
    edges = BOX.edges[1]
    side = np.diff(np.concatenate(([0.0], scipy.stats.norm.cdf(edges[1:-1], 1, 2), [1.0])))
    assert row == pytest.approx(np.multiply.outer([0.375, 0.375, 0.125, 0.125], side), abs=1e-3)


@given(st.lists(st.tuples(st.floats(-0.5, 1.5), st.floats(-8, 8)), min_size=1, max_size=20))
def test_vectors_are_empirical_and_one_more_is_anywhere(members: list[tuple[float, float]]) -> None:
    row = np.array(masses(Ensemble(members), BOX))
    counts = np.zeros(40)
    for a, b in members:
        counts[BOX.cell([min(max(a, 0), 1), min(max(b, -5), 5)])] += 1
    assert row == pytest.approx((counts + 1 / 40) / (len(members) + 1), abs=1e-12)
    assert row.min() > 0.0


def test_a_density_of_vectors_is_read_at_the_centres() -> None:
    truth = scipy.stats.multivariate_normal([0.4, 1.0], [[0.05, 0.1], [0.1, 4.0]])
    row = np.array(masses(truth, BOX))
    expected = truth.pdf(BOX.points)
    assert row == pytest.approx(expected / expected.sum())
    assert masses(SimpleNamespace(pdf=truth.pdf), BOX) == pytest.approx(row.tolist())
    far = scipy.stats.multivariate_normal([40, 1.0], [[0.05, 0.1], [0.1, 4.0]])
    assert np.isfinite(masses(far, BOX)).all()  # where its density is below any float
    assert masses(scipy.stats.norm(0.5, 0.2), Box([(0, 1)])) == pytest.approx(
        (lambda v: v / v.sum())(scipy.stats.norm(0.5, 0.2).pdf(Box([(0, 1)]).points[:, 0])).tolist()
    )


@pytest.mark.parametrize(
    "forecast",
    [
        np.full(39, 1 / 39),
        [Normal(0, 1)],
        [Normal(0, 1), 3.0],
        [{0.5: 1.0}, Normal(0, 1)],
        [Normal(0, 1), SimpleNamespace(ppf=lambda a: np.full_like(a, np.nan))],
        Ensemble([1, 2, 3]),
        Normal(0, 1),
        LabelForecast(["a", "b"], [0.5, 0.5]),
        BoxForecast(Box([(0, 1), (-5, 5)], cells=2), [0.25] * 4),
        SimpleNamespace(logpdf=lambda y: np.full(len(y), -np.inf)),
        SimpleNamespace(pdf=lambda y: 1.0),
        scipy.stats.multivariate_normal([0, 0, 0]),
    ],
    ids=shown,
)
def test_no_forecast_of_a_vector(forecast: object) -> None:
    with pytest.raises((TypeError, ValueError), match=SENTENCE):
        expert_row(forecast, BOX)


# --- Ensemble of vectors on the wrong space ---


@pytest.mark.parametrize(
    "members",
    [[[]], [[1, 2], [3]], [[1, float("nan")]], [["a", "b"]], np.zeros((2, 2, 2)), np.zeros((0, 2)), [[[1]]], [[1], 2]],
    ids=shown,
)
def test_invalid_ensemble_is_rejected(members: object) -> None:
    with pytest.raises((TypeError, ValueError), match=SENTENCE):
        Ensemble(members)  # type: ignore[arg-type]


# --- unbounded quantities ---

Z = scipy.stats.norm.ppf(Line().levels)
UNBOUNDED = [Line(), HalfLine(), HalfLine(-1e6)]


def quantiles(forecast: object, space: OrderedSpace) -> list[float]:
    row, crossed = expert_row(forecast, space)
    assert not crossed
    assert row.shape == space.levels.shape
    assert np.isfinite(row).all()
    assert (np.diff(row) >= 0.0).all()
    return row.tolist()


@pytest.mark.parametrize("space", UNBOUNDED, ids=repr)
@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6))
def test_nothing_holds_the_quantiles_of_an_unbounded_quantity(space: OrderedSpace, mean: float, sd: float) -> None:
    expected = pytest.approx((mean + sd * Z).tolist(), rel=1e-9, abs=1e-9 * sd)
    truth = scipy.stats.norm(mean, sd)
    assert quantiles(Normal(mean, sd), space) == expected
    assert quantiles({0.1: mean - sd * 1.2815515655446004, 0.5: mean, 0.9: mean + sd * 1.2815515655446004}, space) == (
        pytest.approx((mean + sd * Z).tolist(), rel=1e-6, abs=1e-6 * sd)
    )
    assert quantiles(SimpleNamespace(ppf=truth.ppf), space) == expected


@pytest.mark.parametrize("space", UNBOUNDED, ids=repr)
@pytest.mark.parametrize(
    "truth",
    [
        scipy.stats.norm(3, 5),
        scipy.stats.norm(-1e7, 1e-3),
        scipy.stats.norm(0, 1e-40),
        scipy.stats.norm(1e30, 1e28),
        scipy.stats.cauchy(2, 1),
        scipy.stats.gamma(2, scale=100),
        scipy.stats.poisson(1.5),
        scipy.stats.binom(10, 0.3),
        scipy.stats.uniform(5, 0.25),
    ],
    ids=lambda d: d.dist.name + str(d.args),
)
def test_a_cdf_alone_is_inverted_wherever_it_rises(space: OrderedSpace, truth) -> None:  # type: ignore[no-untyped-def]
    expected = truth.ppf(space.levels)
    got = quantiles(SimpleNamespace(cdf=truth.cdf), space)
    assert got == pytest.approx(expected.tolist(), rel=1e-9, abs=1e-9 * (expected[-1] - expected[0]))
    if truth.dist.name in ("poisson", "binom"):
        assert got == expected.tolist()  # atoms are met exactly


@pytest.mark.parametrize("space", UNBOUNDED, ids=repr)
def test_magnitudes_are_limited(space: OrderedSpace) -> None:
    assert set(quantiles(Normal(1e300, 1), space)) == {1e100}
    assert set(quantiles(Normal(-1e300, 1), space)) in ({-1e100}, {space.low})
    assert set(quantiles(SimpleNamespace(ppf=lambda a: np.full_like(a, np.inf)), space)) == {1e100}
    p = Forecast([-np.inf, 0, 2], [0, 2, np.inf], [0.25, 0.5, 0.25])
    assert quantiles(p, space) == p.quantile(space.levels).tolist()


@pytest.mark.parametrize("space", UNBOUNDED, ids=repr)
def test_crossing_on_an_unbounded_quantity_is_seen_and_rounding_is_not(space: OrderedSpace) -> None:
    wild = SimpleNamespace(ppf=lambda a: np.where(a < 0.5, a, 1.0 - a))
    row, crossed = expert_quantiles(wild, space)
    assert crossed
    assert (np.diff(row) >= 0.0).all()
    shaky = SimpleNamespace(ppf=lambda a: 1e6 * a + 1e-6 * np.sin(1e9 * a))
    assert not expert_quantiles(shaky, space)[1]


@pytest.mark.parametrize(
    "forecast",
    [
        "line",
        [1, 2, 3],
        {0.5: 1.0},
        CircleForecast(CIRCLE, np.full(36, 1 / 36)),
        SimpleNamespace(cdf=lambda y: np.full_like(y, 0.5)),
        SimpleNamespace(cdf=lambda y: np.full_like(y, np.nan)),
        SimpleNamespace(ppf=lambda a: np.full_like(a, np.nan)),
    ],
    ids=shown,
)
def test_no_forecast_of_an_unbounded_quantity(forecast: object) -> None:
    with pytest.raises((TypeError, ValueError), match=SENTENCE):
        expert_row(forecast, Line())
