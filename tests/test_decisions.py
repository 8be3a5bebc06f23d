"""Decisions: against brute force, the value bound by attack, and the slips of the paper's appendix E."""

import math
from collections.abc import Callable
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import assume, given

import orcast as oc
from helpers import SENTENCE, forecasts, units, within
from orcast.decisions import best_action, commitment
from orcast.paper.value_bounds import ValueCheck

UNIT = oc.Forecast([0.0], [1.0], [1.0])
OPEN = oc.Forecast([None, 0.0, 1.0], [0.0, 1.0, None], [0.1, 0.7, 0.2])


# --- the best action ---


def shortfall(action: float, y: float) -> float:
    """A utility that knows one outcome at a time only."""
    return -3.0 * (y - action) if y > action else -1.0 * (action - y)


@given(forecasts(), st.lists(st.floats(-1, 2), min_size=1, max_size=6))
def test_best_action_on_quantities(p: oc.Forecast, actions: list[float]) -> None:
    found = best_action(p, actions, shortfall)
    # kinks inside a cell are where quadratures differ
    exact = [sum(mass * shortfall(a, y) for y, mass in within(p)) for a in actions]
    assert found.expectations == pytest.approx(exact, abs=0.1)
    assert found.expected == pytest.approx(max(found.expectations), rel=1e-9, abs=1e-12)
    assert found.action == actions[found.expectations.index(found.expected)]


def test_expectations_are_exact_for_squares() -> None:
    p = oc.Forecast([0.0, 1.0, 1.0], [1.0, 1.0, 3.0], [0.25, 0.5, 0.25])
    found = best_action(p, [0.0, 1.0, 2.0], lambda a, y: -((y - a) ** 2))
    assert found.expectations == pytest.approx([-(p.var() + (p.mean() - a) ** 2) for a in (0, 1, 2)])
    assert found.action == 1.0
    assert best_action(OPEN, [0, 1], lambda a, y: a * y**2).expected == pytest.approx(OPEN.var() + OPEN.mean() ** 2)


def circle_distance(a: float, y: float) -> float:
    return min(abs(a - y), 360 - abs(a - y))


CIRCLE, BOX = oc.Circle(360, cells=36), oc.Box([(0, 1), (0, 2)], cells=4)
NET, WORDS = oc.Points([[0, 0], [0, 1], [1, 0]]), oc.Points(["a", "bbb"], distance=lambda a, b: abs(len(a) - len(b)))
FINITE: dict[str, tuple[Any, list[Any], Callable[[Any, Any], float]]] = {
    "binary": (oc.forecasts.BinaryForecast(0.3), ["take", "leave"], lambda a, y: -0.2 if a == "take" else -1.0 * y),
    "labels": (
        oc.forecasts.LabelForecast(["home", "draw", "away"], [0.5, 0.2, 0.3]),
        ["home", "draw", "away"],
        lambda a, y: {"home": 1.5, "draw": 4.0, "away": 2.0}[a] if a == y else 0.0,
    ),
    "circle": (
        oc.forecasts.CircleForecast(CIRCLE, np.roll(np.eye(36)[0] * 0.6 + 0.4 / 36, -2)),
        [0.0, 90.0, 350.0],
        lambda a, y: -circle_distance(a, y),
    ),
    "box": (
        oc.forecasts.BoxForecast(BOX, np.arange(16) / 120),
        [(0.0, 0.0), (1.0, 2.0)],
        lambda a, y: -float(np.abs(np.array(a) - y).sum()),
    ),
    "points": (oc.forecasts.PointsForecast(NET, [0.2, 0.5, 0.3]), [0, 1], lambda a, y: float(y[a])),
    "words": (oc.forecasts.PointsForecast(WORDS, [0.75, 0.25]), ["a", "b"], lambda a, y: float(a in y)),
}


@pytest.mark.parametrize("kind", FINITE)
def test_best_action_on_finite_spaces(kind: str) -> None:
    p, actions, utility = FINITE[kind]
    exact = [sum(m * utility(a, p.space.value(k)) for k, m in enumerate(p.mass) if m > 0) for a in actions]
    found = best_action(p, actions, utility)
    assert found.expectations == pytest.approx(exact)
    assert found.action == actions[int(np.argmax(exact))]
    assert found.actions == tuple(actions)
    # not simply the first
    assert best_action(p, actions[::-1], utility).action == found.action


@pytest.mark.parametrize(
    "call",
    [
        lambda: best_action(0.3, ["a"], lambda a, y: 1.0),  # type: ignore[arg-type]
        lambda: best_action(UNIT, 3, lambda a, y: 1.0),  # type: ignore[arg-type]
        lambda: best_action(UNIT, [], lambda a, y: 1.0),
        lambda: best_action(UNIT, ["a"], "profit"),  # type: ignore[arg-type]
        lambda: best_action(UNIT, ["a"], lambda a, y: math.nan),
        lambda: best_action(oc.forecasts.BinaryForecast(0.5), ["a"], lambda a, y: None),
        lambda: commitment(oc.forecasts.BinaryForecast(0.5), 1, 1),  # type: ignore[arg-type]
        lambda: commitment(UNIT, -1, 1),
        lambda: commitment(UNIT, 0, 0),
        lambda: commitment(UNIT, "a", 1),  # type: ignore[arg-type]
        lambda: commitment(OPEN, 1, 0),
    ],
)
def test_bad_decisions(call: Callable[[], Any]) -> None:
    with pytest.raises((TypeError, ValueError), match=SENTENCE):
        call()


# --- commitments ---


def expected_cost(p: oc.Forecast, a: float, under: float, over: float) -> float:
    """Exactly, cell by cell: the mean of a piecewise linear function over an interval."""
    total = 0.0
    for left, right, mass in zip(p.left.tolist(), p.right.tolist(), p.mass.tolist(), strict=True):
        cut = min(max(a, left), right)
        share = (right - cut) / (right - left) if right > left else float(left > a)
        above, below = share * ((right + cut) / 2 - a), (1 - share) * (a - (left + cut) / 2)
        total += mass * (under * above + over * below)
    return total


@given(forecasts(), st.floats(0.01, 10), st.floats(0.01, 10), units)
def test_no_other_commitment_is_better(p: oc.Forecast, under: float, over: float, other: float) -> None:
    a = commitment(p, under, over)
    best = expected_cost(p, a, under, over)
    for b in (other, a - 1e-3, a + 1e-3, p.median(), p.mean()):
        assert best <= expected_cost(p, b, under, over) + 1e-9


# --- the value bound ---


def test_expected_values_and_thresholds() -> None:
    rising, falling = ValueCheck(lambda y: max(y, 0.0), 2), ValueCheck(lambda y: 10 - y, 2)
    assert rising.thresholds(UNIT) == pytest.approx((0.5, 1.0, 1))
    assert falling.thresholds(UNIT) == pytest.approx((9.5, 19.0, -1))
    # the tail beyond 1 begins there, with mean excess d/2 = 1/4
    assert rising.thresholds(OPEN)[0] == pytest.approx(0.7 * 0.5 + 0.2 * 1.25)


def wobbly(y: float) -> float:
    """Constant but for rounding."""
    return (y + 0.1) - y


def test_negative_or_non_monotone_values_are_rejected() -> None:
    check = ValueCheck(lambda y: abs(y - 0.5), 2)
    before = dict(vars(check))
    for call in (
        lambda: ValueCheck(lambda y: math.sin(7 * y) + 1, 2).thresholds(UNIT),
        lambda: check.update(UNIT, 0.3),
    ):
        with pytest.raises(ValueError, match=r"expected a value that never falls or never rises .* got"):
            call()
    assert vars(check) == before
    with pytest.raises(ValueError, match="expected a nonnegative value, got"):
        ValueCheck(lambda y: y - 0.1, 2).thresholds(UNIT)
    turning = ValueCheck(lambda y: 1 - abs(y - 1), 2)  # monotone on each forecast alone
    turning.update(UNIT, 0.5)
    with pytest.raises(ValueError, match=r"expected a value that never falls or never rises .* opposite direction"):
        turning.update(oc.Forecast([1], [2], [1]), 1.5)
    # the outcome, too, may show it
    check = ValueCheck(lambda y: y if y >= 0 else 100.0, 2)
    check.update(UNIT, 0.5)
    before = dict(vars(check))
    with pytest.raises(ValueError, match="expected a value that never falls"):
        check.update(UNIT, -1.0)
    assert vars(check) == before
    # rounding is not a fall
    steps = np.diff([wobbly(y) for y in np.linspace(0, 1, 50).tolist()])
    assert steps.min() < 0 < steps.max()
    assert ValueCheck(wobbly, 2).thresholds(UNIT)[2] == 0


def test_the_inequality_must_be_strict() -> None:
    # the paper counts v(y) >= r E v: with v = 0 that is every round, for calibrated forecasts too
    rng = np.random.default_rng(1)
    check = ValueCheck(lambda y: 0.0, 4)
    empirical_by_the_paper = 0
    for y in rng.random(200):
        empirical_by_the_paper += check.thresholds(UNIT)[1] <= 0.0
        check.update(UNIT, y)
    assert empirical_by_the_paper == 200
    assert check.share == 0.0
    assert check.holds


def test_an_error_of_o_of_t_says_nothing() -> None:
    # the frequency beyond the quantile is 1/r + e_T.  Here e_T = 1 - 1/r in every round: that is o(T), as the paper
    # asks, but not o(1), and the bound fails for ever
    check = ValueCheck(lambda y: y, 1.5)
    for _ in range(500):
        check.update(UNIT, 1.0)
        assert check.calibration_error == pytest.approx(1 - 1 / 1.5)
        assert check.share == 1.0 > check.bound
    assert check.calibration_error / check.rounds < 0.001
    assert not check.holds
    assert check.share <= check.allowed


def step(at: float) -> Callable[[float], float]:
    return lambda y: float(y > at)


def step_down(at: float) -> Callable[[float], float]:
    return lambda y: float(y <= at)


STEPS = [0.0, 0.2, 0.5, 0.78, 0.9, 1.0]
VALUES: dict[str, Callable[[float], float]] = {
    "itself": lambda y: y + 2.0,
    "falling": lambda y: 3.0 - y,
    "constant": lambda y: 1.0,
    "zero": lambda y: 0.0,
    "exponential": lambda y: math.exp(5 * y),
    "fading": lambda y: math.exp(-9 * y),
    **{f"step at {c}": step(c) for c in STEPS},
    **{f"step down at {c}": step_down(c) for c in STEPS},
    "stairs": lambda y: float(math.floor(4 * y)) + 8.0,
}


@given(
    st.sampled_from(sorted(VALUES)),
    st.lists(st.tuples(forecasts(), units | st.floats(-2, 3)), min_size=1, max_size=8),
    st.sampled_from([1.25, 2.0, 3.0, 5.0]) | st.floats(1.01, 50),
)
def test_the_finite_bound_always_holds(name: str, rounds: list[tuple[oc.Forecast, float]], r: float) -> None:
    value = VALUES[name]
    assume(all(value(y) >= 0 for _, y in rounds))
    check = ValueCheck(value, r)
    exceeded = 0
    for p, y in rounds:
        check.update(p, y)
        expected, threshold, _ = ValueCheck(value, r).thresholds(p)
        exceeded += value(y) > threshold * (1 + 1e-12)
        assert threshold == pytest.approx(r * expected)
        assert check.share <= check.allowed
    assert check.rounds == len(rounds)
    assert check.exceeded == exceeded
    assert check.share == exceeded / len(rounds)
    assert check.allowed == pytest.approx(check.bound + check.calibration_error)
    assert check.holds == (check.share <= check.bound)
    above = sum(y > p.quantile(1 - 1 / r) for p, y in rounds)
    below = sum(y < p.quantile(1 / r) for p, y in rounds)
    assert check.allowed * len(rounds) in (pytest.approx(above), pytest.approx(below))


def test_a_quadrature_that_misses_a_step_does_not_break_the_bound() -> None:
    # the expectation is 0.22, the quadrature gives 0.12: by it alone 0.79, below the 80% quantile, would exceed
    value = VALUES["step at 0.78"]
    naive = UNIT.expect(lambda ys: [value(y) for y in ys])
    assert 5 * naive < 1.0 < 5 * 0.22
    assert ValueCheck(value, 5).thresholds(UNIT)[0] == pytest.approx(0.2)
    for value, y in ((step(0.78), 0.79), (step_down(0.22), 0.21)):
        check = ValueCheck(value, 5)
        check.update(UNIT, y)
        assert (check.exceeded, check.allowed) == (0, 0.0)


# --- values that depend on the action and the features ---


def margin(y: float, action: str, x: Any = None) -> float:
    """Falls with the outcome for one of the actions; a price scales it."""
    price = 1.0 if x is None else float(x["price"])
    return price * (y if action == "buy" else 1.0 - y)


def test_the_value_sees_the_action_and_the_features() -> None:
    seen: list[tuple[Any, ...]] = []

    def value(*known: Any) -> float:
        seen.append(known[1:])
        return float(known[0])

    check = ValueCheck(value, 2)
    for given_, wanted in (
        ({}, ()),
        ({"action": "buy"}, ("buy",)),
        ({"x": {"price": 2}}, (None, {"price": 2})),
        ({"action": "buy", "x": {"price": 2}}, ("buy", {"price": 2})),
    ):
        seen.clear()
        check.update(UNIT, 0.4, **given_)
        assert seen
        assert all(known == wanted for known in seen)
    assert check.rounds == 4


@given(
    st.lists(
        st.tuples(forecasts(), st.floats(0, 1), st.sampled_from(["buy", "sell"]), st.sampled_from([0.0, 1.0, 7.0])),
        min_size=1,
        max_size=12,
    ),
    st.sampled_from([1.25, 2.0, 5.0]),
)
def test_each_round_counts_the_tail_that_matters_in_it(rounds: list[Any], r: float) -> None:
    check = ValueCheck(margin, r)
    exceeded = beyond = 0
    for p, y, action, price in rounds:
        found, threshold, _ = check.thresholds(p, 0, action, {"price": price})
        # written out: what v is expected to be, and which tail its proof needs
        mean = p.mean()
        expected = price * (mean if action == "buy" else 1.0 - mean)
        assert found == pytest.approx(expected, rel=1e-9, abs=1e-12)
        assert threshold == pytest.approx(r * expected, rel=1e-9, abs=1e-12)
        exceeded += margin(y, action, {"price": price}) > threshold * (1 + 1e-12)
        # a forecast so narrow that the value differs by rounding alone has no direction: it counts as rising
        low, high = (margin(float(end), action, {"price": price}) for end in (p.right[-1], p.left[0]))
        falls = high - low > 1e-12 * high
        beyond += y < p.quantile(1 / r) if falls else y > p.quantile(1 - 1 / r)
        check.update(p, y, action=action, x={"price": price})
        assert check.share <= check.allowed
    assert check.exceeded == exceeded
    assert check.allowed * len(rounds) == pytest.approx(beyond)


def test_calibration_over_all_rounds_is_not_enough_for_both_directions() -> None:
    """The paper's theorem, where the action decides the direction: every quantile is right, and every round exceeds."""

    def step_of(y: float, action: str) -> float:
        return float(y > 0.5) if action == "up" else float(y < 0.5)

    check = ValueCheck(step_of, 1.9)
    outcomes: dict[str, list[float]] = {"up": [], "down": []}
    halves = (np.arange(200) + 0.5) / 400
    fine = oc.Forecast([0.0, 0.5], [0.5, 1.0], [0.5, 0.5])
    for share in halves:
        for action, y in (("up", 0.5 + share), ("down", share)):
            check.update(fine, y, action=action)
            outcomes[action].append(y)

    def error(came: list[float], levels: list[float]) -> float:
        return oc.metrics.qce(np.tile(fine.quantile(levels), (len(came), 1)), came, levels)

    assert error(outcomes["up"] + outcomes["down"], [k / 20 for k in range(1, 20)]) < 1e-6
    assert check.share == 1.0 > check.bound + 0.4
    assert not check.holds
    # what is missing is calibration in the rounds of either direction, and `allowed` sees it
    assert all(error(came, [0.5]) == pytest.approx(0.25) for came in outcomes.values())
    assert check.share <= check.allowed == 1.0


def test_calibration_given_the_action_is_enough() -> None:
    """Each action has its group: then the share is at most 1/r plus what the groups promise, on the same attack."""
    payoff = oc.QuantileCalibration([0.5], context=oc.by("action", values=["up", "down"]))
    forecaster, check = oc.Recalibrator(oc.Interval(0, 1), payoff), ValueCheck(margin, 2)
    for t in range(300):
        action = ("buy", "sell")[t % 2]
        p = forecaster.predict(UNIT, x={"action": ("up", "down")[t % 2]})
        # Nature sees the forecast, and picks a place that is worth much
        y = min(p.quantile(0.5) * 1.02 + 0.2, 1.0) if action == "buy" else max(p.quantile(0.5) * 0.98 - 0.2, 0.0)
        check.update(p, y, action=action)
        forecaster.update(y)
    assert check.share <= check.allowed
    assert check.allowed <= check.bound + 0.25
