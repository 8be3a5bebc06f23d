"""Where the paper must be corrected: a counterexample for each slip, and that what we do instead is right.

Those of the oracles of appendix C and of appendices D and E are beside the tests of what replaces them; docs/theory.md
lists all.
"""

import itertools

import numpy as np
import pytest
from scipy.optimize import linprog

import orcast as oc
from orcast.kernels.state import LedgerState
from orcast.ledger import Ledger


def paper_bound(payoffs: list[float], bound: float) -> float:
    """The right-hand side of proposition 1's last line: B / T + (2 / T) sum <mean_{t-1}, payoff_t>."""
    means = [0.0, *(float(np.mean(payoffs[: t + 1])) for t in range(len(payoffs)))]
    return bound / len(payoffs) + 2.0 / len(payoffs) * sum(m * p for m, p in zip(means, payoffs, strict=False))


def our_bound(payoffs: list[float], bound: float) -> float:
    """The line before it, which is right: the inner products count (t - 1) / T each."""
    total = len(payoffs)
    means = [0.0, *(float(np.mean(payoffs[: t + 1])) for t in range(total))]
    return bound / total + 2.0 / total**2 * sum(t * m * p for t, (m, p) in enumerate(zip(means, payoffs, strict=False)))


def test_proposition_1_is_wrong_where_inner_products_are_negative() -> None:
    assert paper_bound([1.0, -1.0], 1.0) == pytest.approx(-0.5)  # a bound on a square


def test_with_the_weights_of_the_line_before_it_is_right() -> None:
    for payoffs in itertools.product((-1.0, -0.5, 0.5, 1.0), repeat=5):
        assert float(np.mean(payoffs)) ** 2 <= our_bound(list(payoffs), 1.0) + 1e-12


def test_the_running_mean_of_algorithms_1_and_2_does_not_average() -> None:
    """mean_t <- (t - 1) / t mean_t + payoff_t / t, solved for mean_t, is the last payoff."""
    t, payoff = 4, 0.7
    printed = (payoff / t) / (1.0 - (t - 1) / t)
    assert printed == pytest.approx(payoff)
    payoffs = [1.0, -1.0, 1.0, -1.0]
    mean = 0.0
    for t, payoff in enumerate(payoffs, start=1):
        mean = (t - 1) / t * mean + payoff / t
    assert mean == pytest.approx(float(np.mean(payoffs)))


def brier(p: float, y: int) -> float:
    return (p - y) ** 2


def reached(p: float, cumulative: list[float], experts: list[float]) -> float:
    """The largest <cumulative payoff, regrets> over both outcomes."""
    return max(sum(s * (brier(p, y) - brier(x, y)) for s, x in zip(cumulative, experts, strict=True)) for y in (0, 1))


def test_asked_with_negative_regrets_no_forecast_answers() -> None:
    """Two experts, both beaten so far: with the sums themselves instead of their positive parts there is no oracle."""
    grid = np.linspace(0.0, 1.0, 2001)
    least = min(reached(float(p), [-1.0, -1.0], [0.2, 0.8]) for p in grid)
    assert least > 0.1
    assert min(reached(float(p), [0.0, 0.0], [0.2, 0.8]) for p in grid) <= 0.0


def test_with_positive_parts_the_recal_goes_on() -> None:
    recal = oc.Forecaster(oc.Binary(), oc.NoRegret(oc.Brier()))
    rng = np.random.default_rng(0)
    for _ in range(200):
        recal.predict(experts={"low": 0.2, "high": 0.8})
        recal.update(int(rng.random() < 0.5))
    assert recal.guarantee.held == 1.0
    assert all(excess < 0.02 for excess in recal.guarantee.parts.values())


def test_sums_are_divided_by_roots_of_bounds() -> None:
    """The proof of proposition 3 divides by B_i, a bound on the squared norm: a norm of 1/2 then becomes 2."""
    bound = 0.25
    payoff = np.array([0.3, -0.4])
    assert payoff @ payoff == pytest.approx(bound)
    assert np.linalg.norm(payoff / bound) == pytest.approx(2.0)
    assert np.linalg.norm(payoff / np.sqrt(bound)) == pytest.approx(1.0)
    layout = oc_layout()
    assert layout.scales == pytest.approx([1.0 / np.sqrt(0.25), 1.0 / np.sqrt(2.0)])
    assert Ledger(LedgerState(layout), credit=0.0).bound == pytest.approx(2.0)  # two parts of bound one each


def oc_layout():
    from orcast.engine.bound_payoff import BoundPayoff

    bound_payoff = BoundPayoff(
        oc.Interval(0, 1), oc.QuantileCalibration([0.5]) + oc.MomentMatching(2), ("expert",), None
    )
    return bound_payoff.layout([range(part.size) for part in bound_payoff.parts])


def test_the_inner_linear_program_is_a_maximum() -> None:
    """Section 5.1 solves it with an LP solver in O(K^3.5)."""
    rng = np.random.default_rng(3)
    for _ in range(20):
        field = rng.standard_normal(50)
        program = linprog(-field, A_eq=np.ones((1, 50)), b_eq=[1.0], bounds=(0.0, None))
        assert -program.fun == pytest.approx(float(field.max()))


def test_a_adversary_that_picks_the_point_cannot_be_beaten_and_one_scored_on_cells_alone_can_always() -> None:
    """Experiment 2: why the outcome is drawn inside the worst cell."""
    levels = oc.QuantileCalibration().levels

    def hard(share: float) -> float:
        """|1{y <= q_a} - a|^2 summed, if all mass is in one cell and y lies at that share of it."""
        return float((((share <= levels) - levels) ** 2).sum())

    # whatever the density, the point decides: at the left end everything is covered, at the right end nothing
    assert hard(0.0) == pytest.approx(float(((1.0 - levels) ** 2).sum()))
    assert hard(1.0) == pytest.approx(float((levels**2).sum()))
    # on average over the cell the payoff is zero: the game on cell averages is won by all mass in one cell
    averages = np.clip(levels, 0.0, 1.0) - levels
    assert np.abs(averages).max() == 0.0


def test_the_slack_rule_lets_half_space_values_be_positive_and_still_keeps_the_bound() -> None:
    """Why sums of positive half-space values say nothing: most rounds have one, and the promise holds."""
    rng = np.random.default_rng(1)
    recal = oc.Forecaster(oc.Interval(0, 1), oc.QuantileCalibration())
    positive = 0
    for t in range(300):
        before = recal.engine.ledger.total.copy()
        recal.predict(oc.Normal(0.5, 0.05))
        recal.update(float(np.clip(0.5 + 0.1 * rng.standard_normal(), 0.0, 1.0)))
        step = recal.engine.ledger.total - before
        positive += float(before @ step) > 0.0
        assert recal.guarantee.miscalibration <= recal.guarantee.promised
        assert recal.guarantee.rounds == t + 1
    assert positive > 60
    assert recal.guarantee.held == 1.0
