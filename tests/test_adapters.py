"""Whatever forecast a user holds, as quantiles at the levels of a space."""

import warnings
from collections.abc import Callable
from statistics import NormalDist
from types import SimpleNamespace
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
import scipy.stats
from hypothesis import given

import orcast as oc
from helpers import SENTENCE, cells_around
from orcast.adapters import expert_quantiles, expert_table

SPACE = oc.Interval(0, 100)
Z = scipy.stats.norm.ppf(SPACE.levels)


def quantiles(forecast: object, space: oc.Interval = SPACE) -> list[float]:
    """What the cells are built from; what lies beyond the bounds may be told apart, but is finite."""
    values, crossed = expert_quantiles(forecast, space)
    assert values.shape == space.levels.shape
    assert values.dtype == np.float64
    assert np.isfinite(values).all()
    assert (np.diff(values) >= 0.0).all()
    assert not crossed
    return np.clip(values, space.low, space.high).tolist()


def atom_at(forecast: object, y: float, space: oc.Interval = SPACE) -> float:
    """Mass that the cells around an expert put on a point."""
    left, right, mass = cells_around(space, np.array(quantiles(forecast, space)))
    return float(mass[(left == y) & (right == y)].sum())


# --- quantiles by level ---


@given(st.sets(st.integers(1, 999), min_size=2, max_size=30))
def test_quantiles_of_a_gaussian_give_it_back(thousandths: set[int]) -> None:
    levels = [i / 1000 for i in sorted(thousandths, key=lambda i: (i * 7919) % 1000)]  # in any order
    given_by_level = {a: NormalDist(50, 4).inv_cdf(a) for a in levels}
    assert quantiles(given_by_level) == pytest.approx((50 + 4 * Z).tolist(), abs=1e-8)


@given(
    st.sets(st.integers(1, 99), min_size=2, max_size=9),
    st.data(),
)
def test_given_quantiles_are_met_at_their_levels(percents: set[int], data: st.DataObject) -> None:
    levels = np.array(sorted(percents)) / 100
    values = np.sort(data.draw(st.lists(st.integers(0, 9).map(float), min_size=levels.size, max_size=levels.size)))
    forecast = oc.Quantiles(levels, values)
    assert forecast.quantile(levels) == pytest.approx(values)
    assert not forecast.crossed
    between = forecast.quantile(np.linspace(levels[0], levels[-1], 50))
    assert (np.diff(between) >= -1e-12).all()
    assert between.min() >= values[0] - 1e-12
    assert between.max() <= values[-1] + 1e-12
    quantiles(forecast)


@pytest.mark.parametrize("levels", [(0.5, 0.9), (0.1, 0.5), (0.5, 0.51), (0.2, 0.4), (0.7, 0.9)])
def test_the_levels_need_not_lie_on_both_sides(levels: tuple[float, float]) -> None:
    gauss = NormalDist(50, 4)
    assert quantiles({a: gauss.inv_cdf(a) for a in levels}) == pytest.approx((50 + 4 * Z).tolist(), abs=1e-9)


def test_two_equal_outer_quantiles_are_an_atom_and_stay_one() -> None:
    forecast = oc.Quantiles([0.1, 0.2, 0.5, 0.9], [3.0, 3.0, 5.0, 9.0])
    assert forecast.quantile([0.001, 0.05]).tolist() == [3.0, 3.0]
    assert forecast.quantile([0.99])[0] > 9.0


def test_crossing_quantiles_are_sorted() -> None:
    straight = {0.1: 10.0, 0.5: 20.0, 0.9: 30.0}
    values, crossed = expert_quantiles({0.1: 20.0, 0.5: 10.0, 0.9: 30.0}, SPACE)
    assert crossed
    assert np.clip(values, 0, 100).tolist() == quantiles(straight)


@given(
    st.sets(st.integers(1, 99), min_size=2, max_size=9),
    st.lists(st.floats(0, 100), min_size=9, max_size=9),
)
def test_rounding_is_not_crossing(percents: set[int], values: list[float]) -> None:
    levels = np.sort([percent / 100 for percent in percents])
    for space in (SPACE, oc.Interval(-1e9, 1e9)):
        assert not expert_quantiles(oc.Quantiles(levels, np.sort(values[: levels.size])), space)[1]


def test_crossing_is_said_once_by_each_recalibrator(tmp_path) -> None:  # type: ignore[no-untyped-def]
    crossing = {0.1: 20.0, 0.5: 10.0, 0.9: 30.0}
    for _ in range(2):
        recal = oc.Recalibrator(SPACE)
        with pytest.warns(UserWarning, match="crossing quantiles were sorted"):
            recal.predict(crossing)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            recal.predict(crossing)
            recal.update(12)
            recal.predict(crossing)
            recal.save(tmp_path / "state")
        loaded = oc.Recalibrator.load(tmp_path / "state")
        with pytest.warns(UserWarning, match="crossing quantiles were sorted"):
            loaded.predict(crossing)


# --- Normal ---


def test_values_beyond_a_bound_are_moved_to_it() -> None:
    assert quantiles(oc.Normal(2, 8)) == pytest.approx(np.clip(2 + 8 * Z, 0, 100).tolist())
    assert set(quantiles(oc.Normal(1e9, 1))) == {100.0}
    assert set(quantiles(oc.Normal(-1e300, 0))) == {0.0}


# --- Ensemble ---


@given(st.lists(st.integers(0, 100), min_size=1, max_size=40), st.randoms())
def test_the_order_of_members_does_not_matter(members: list[int], random) -> None:  # type: ignore[no-untyped-def]
    mixed = list(members)
    random.shuffle(mixed)
    values = quantiles(oc.Ensemble(members))
    assert values == quantiles(oc.Ensemble(mixed))
    assert values[SPACE.levels.size // 2] == pytest.approx(np.median(members))


def test_a_heavy_zero_is_an_atom_of_about_its_weight() -> None:
    dry = oc.Ensemble([0.0] * 80 + list(np.linspace(1, 20, 20)))
    assert atom_at(dry, 0.0) == pytest.approx(0.8, abs=0.03)
    p = oc.Recalibrator(SPACE).predict(dry)
    assert p.cdf(0.0) == pytest.approx(0.8, abs=0.05)
    assert p.quantile(0.5) == 0.0


# --- distributions ---


@pytest.mark.parametrize(
    "frozen",
    [
        scipy.stats.norm(50, 5),
        scipy.stats.gamma(9, scale=3),
        scipy.stats.beta(2, 5, scale=100),
        scipy.stats.poisson(3),
        scipy.stats.binom(10, 0.3),
        scipy.stats.bernoulli(0.2),
        scipy.stats.t(3, 40, 5),
        scipy.stats.rv_histogram((np.array([1, 3, 2]), np.array([0, 10, 20, 80])), density=False),
    ],
    ids=lambda d: getattr(getattr(d, "dist", d), "name", None) or "histogram",
)
def test_scipy_distributions(frozen) -> None:  # type: ignore[no-untyped-def]
    expected = np.clip(frozen.ppf(SPACE.levels), 0, 100)
    assert quantiles(frozen) == expected.tolist()
    # with its cdf alone it is the same, but for the step of the bisection
    assert quantiles(SimpleNamespace(cdf=frozen.cdf)) == pytest.approx(expected.tolist(), abs=1e-6)
    assert quantiles(SimpleNamespace(ppf=frozen.ppf)) == expected.tolist()


@pytest.mark.parametrize("high", [10, 36_000, 1e9])
def test_the_jumps_of_a_cdf_are_found_exactly(high: float) -> None:
    """An outcome on an atom must meet the atom, so a hair beside it will not do."""
    space = oc.Interval(-high, high)
    counts = scipy.stats.poisson(1.5)
    assert quantiles(SimpleNamespace(cdf=counts.cdf), space) == counts.ppf(space.levels).tolist()
    assert atom_at(SimpleNamespace(cdf=counts.cdf), 1.0, space) == pytest.approx(counts.pmf(1), abs=0.05)


def test_a_cdf_with_mass_outside_is_cut_at_the_bounds() -> None:
    values = quantiles(SimpleNamespace(cdf=scipy.stats.norm(0, 30).cdf))
    assert values == pytest.approx(np.clip(30 * Z, 0, 100).tolist(), abs=1e-9)
    assert set(quantiles(SimpleNamespace(cdf=scipy.stats.norm(500, 1).cdf))) == {100.0}


# --- tables ---


@given(st.sets(st.integers(1, 99), min_size=2, max_size=6), st.integers(1, 4), st.randoms(use_true_random=False))
def test_a_table_is_its_rows(percents: set[int], rounds: int, random) -> None:  # type: ignore[no-untyped-def]
    levels = [percent / 100 for percent in percents]
    random.shuffle(levels)
    table = [[float(random.randint(-20, 120)) for _ in levels] for _ in range(rounds)]
    rows = [expert_quantiles(oc.Quantiles(levels, row), SPACE) for row in table]
    together, crossed = expert_table(levels, table, SPACE)
    assert together.tolist() == [row.tolist() for row, _ in rows]
    assert crossed == any(crossed for _, crossed in rows)


@pytest.mark.parametrize(
    ("levels", "table"),
    [
        ([0.1, 0.9], [[1.0, 2.0, 3.0]]),
        ([0.1, 0.9], [[1.0, 2.0], [1.0]]),
        ([0.1, 0.9], [[1.0, 2.0], [1.0, float("nan")]]),
        ([0.1, 0.9], [[1.0, 2.0], [1.0, "x"]]),
        ([0.1, 0.1], [[1.0, 2.0]]),
        ([0.5, 1.0], [[1.0, 2.0]]),
        (["a", "b"], [[1.0, 2.0]]),
    ],
)
def test_invalid_quantile_table_is_rejected(levels: object, table: object) -> None:
    with pytest.raises((TypeError, ValueError), match=SENTENCE):
        expert_table(levels, table, SPACE)  # type: ignore[arg-type]


# --- what is refused ---

NOT_FORECASTS: dict[str, Callable[[], object]] = {
    "no levels": dict,
    "one level": lambda: {0.5: 3},
    "text keys": lambda: {"low": 1, "high": 2},
    "text values": lambda: {0.1: "a", 0.9: "b"},
    "nan value": lambda: {0.1: float("nan"), 0.9: 3},
    "huge value": lambda: {0.1: 1, 0.9: 10**400},
    "level 0": lambda: {0: 1, 0.5: 3},
    "percents": lambda: {10: 1, 90: 3},
    "lists as values": lambda: {0.1: [1, 2], 0.9: [3, 4]},
    "uneven": lambda: oc.Quantiles([0.1, 0.9], [1, 2, 3]),
    "repeated level": lambda: oc.Quantiles([0.1, 0.1], [1, 2]),
    "negative spread": lambda: oc.Normal(1, -1),
    "text mean": lambda: oc.Normal("one", 1),  # type: ignore[arg-type]
    "nan mean": lambda: oc.Normal(float("nan"), 1),
    "array mean": lambda: oc.Normal(np.array([1.0, 2.0]), 1),  # type: ignore[arg-type]
    "no members": lambda: oc.Ensemble([]),
    "nan member": lambda: oc.Ensemble([1, float("nan")]),
    "one number as ensemble": lambda: oc.Ensemble(3),
    "pair": lambda: (1, 2),
    "three in a tuple": lambda: (1, 2, 3),
    "text": lambda: "forecast",
    "number": lambda: 3.5,
    "list": lambda: [1, 2, 3],
    "none": lambda: None,
    "nan distribution": lambda: scipy.stats.norm(float("nan"), 1),
    "nan cdf": lambda: SimpleNamespace(cdf=lambda y: np.full_like(y, np.nan)),
    "falling cdf": lambda: SimpleNamespace(cdf=lambda y: 1 - np.clip(np.asarray(y) / 100, 0, 1)),
    "scalar ppf": lambda: SimpleNamespace(ppf=lambda a: 3.0),
    "text ppf": lambda: SimpleNamespace(ppf=lambda a: ["x"] * len(a)),
    "ppf of two": lambda: SimpleNamespace(ppf=lambda a, b: a),
    "cdf that is no function": lambda: SimpleNamespace(cdf=0.5),
}


@pytest.mark.parametrize("make", NOT_FORECASTS.values(), ids=NOT_FORECASTS)
def test_invalid_forecast_is_rejected(make: Callable[[], object]) -> None:
    recal = oc.Recalibrator(SPACE)
    with pytest.raises((TypeError, ValueError), match=SENTENCE) as caught:
        recal.predict(make())
    assert len(str(caught.value)) < 500
    assert recal.pending == ()


def test_an_error_of_the_users_own_function_is_left_as_it_is() -> None:
    recal = oc.Recalibrator(SPACE)
    with pytest.raises(ZeroDivisionError):
        recal.predict(SimpleNamespace(cdf=lambda y: 1 / 0))
    assert recal.pending == ()


@pytest.mark.parametrize(
    "forecast",
    [oc.Quantiles([0.1, 0.9], [1, 2]), oc.Ensemble([1, 2, 4]), oc.Normal(1, 2)],
    ids=lambda f: type(f).__name__,
)
def test_one_level_has_one_quantile(forecast: Any) -> None:
    one = forecast.quantile(0.3)
    assert isinstance(one, float)
    assert np.shape(forecast.quantile([0.3])) == (1,)
    assert np.shape(forecast.quantile([[0.3, 0.5], [0.6, 0.7]])) == (2, 2)
    assert one == forecast.quantile([0.2, 0.3])[1] == forecast.quantile([[0.1, 0.3], [0.6, 0.7]])[0, 1]
