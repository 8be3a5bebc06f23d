"""The equilibrium, against the payoffs of outcomes in every cell."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra.numpy import arrays

import orcast as oc
from helpers import NODES, WEIGHTS, Vector, cells_of, engine_of, fast_payoff, full_payoff, positive, record_of
from orcast import ledger
from orcast.constants import EASY
from orcast.engine.ordered import PRIOR
from orcast.kernels.equilibrium import field_tables_arrays
from orcast.kernels.judging import regret_units_arrays
from orcast.payoffs import Payoff

SPACE = oc.Interval(0, 1)
TENTHS = np.arange(1, 10) / 10
# Normal around the middle, and one with atoms.
EXPERTS = [oc.Normal(0.45, 0.15), oc.Ensemble([0.2, 0.2, 0.4, 0.4, 0.6, 1.0])]


def grown(rng: np.random.Generator, levels: Vector, rounds: int) -> Vector:
    """The normalised quantile ledger of a forecaster who is off: outcomes at skewed shares of the forecasts."""
    shares = rng.beta(*rng.uniform(0.7, 1.5, size=2), size=rounds)
    bound = oc.QuantileCalibration(levels).bound
    return np.sum((shares[:, None] <= levels) - levels, axis=0) / np.sqrt(bound)


# --- the field's tables ---

ledgers = arrays(np.float64, 9, elements=st.floats(-50, 50, allow_subnormal=False) | st.integers(-3, 3).map(float))


@given(ledgers)
def test_field_tables_are_the_definition(s: Vector) -> None:
    knots, slopes = np.empty((2, TENTHS.size + 1))
    field_tables_arrays(s, TENTHS, knots, slopes)
    u = np.concatenate(([0.0], TENTHS))
    # H(u) = sum_a s_a (min(u, a) - a u)
    assert knots == pytest.approx((np.minimum(u[:, None], TENTHS) - u[:, None] * TENTHS) @ s, abs=1e-9)
    # its slope right of u: sum_a s_a (1{u < a} - a)
    assert slopes == pytest.approx(((u[:, None] < TENTHS) * 1.0 - TENTHS) @ s, abs=1e-9)
    # and H ends at zero
    assert knots[-1] + slopes[-1] * (1 - TENTHS[-1]) == pytest.approx(0.0, abs=1e-9)


# --- the oracle that uses it ---


def random_recal(seed: int, payoff: Payoff, temperature: float) -> oc.Recalibrator:
    """A game with a random ledger and a budget without end."""
    recal = oc.Recalibrator(SPACE, payoff, oracle=oc.Equilibrium(temperature=temperature))
    rng, engine = np.random.default_rng(seed), engine_of(recal)
    total = engine.ledger.total
    total[:] = rng.normal(size=total.size)
    if engine.levels.size:
        total[: engine.levels.size] = grown(rng, engine.levels, 20)
    engine.ledger.account[ledger.Account.BUDGET] = 1e9
    return recal


def cell_means(recal: oc.Recalibrator) -> tuple[Vector, Vector, Vector]:
    """Log prior and log forecast of the pending round, and <S_+, payoff> averaged over each cell."""
    engine, record = engine_of(recal), record_of(recal)
    total = positive(engine.ledger.total, engine.ledger.layout.side_list)
    left, right, mass = cells_of(record)
    prior = record.view("cells")[PRIOR]
    # the equation is solved in the units of regret that belong to its prior
    regret_units_arrays(engine.rules, engine.memory, record, prior)
    field = np.zeros(mass.size)
    for k in range(mass.size):
        for node, weight in zip(NODES, WEIGHTS, strict=True):
            y = left[k] + node * (right[k] - left[k])
            field[k] += weight * (total @ fast_payoff(engine, record, y, k))
    return np.log(prior[: mass.size]), np.log(mass), field


PARTS = [
    oc.QuantileCalibration(),
    oc.MomentMatching(3),
    oc.QuantileCalibration(TENTHS) + oc.MomentMatching(2),
    oc.QuantileCalibration() + oc.NoRegret(oc.CRPS()),
    oc.QuantileCalibration() + oc.NoRegret(oc.MSE()),
    full_payoff(),
]


@pytest.mark.parametrize("payoff", PARTS, ids=str)
@pytest.mark.parametrize("temperature", [1.0, 3.0, 30.0])
def test_the_forecast_is_the_equilibrium_of_the_whole_payoff(payoff: Payoff, temperature: float) -> None:
    """log p = log prior + <S_+, payoff> / temperature + constant, in every cell with mass."""
    for seed in range(6):
        recal = random_recal(seed, payoff, temperature)
        recal.predict(EXPERTS[seed % 2])
        log_prior, log_result, field = cell_means(recal)
        r = log_result - log_prior - field / temperature
        assert r.max() - r.min() <= 20.0 * EASY
        # so no outcome gains more than the temperature allows
        tilt = log_result - log_prior
        most = temperature * (tilt.max() - np.exp(log_result) @ tilt + (r.max() - r.min()))
        assert field.max() <= most + 1e-9


@pytest.mark.parametrize("payoff", [oc.QuantileCalibration(), full_payoff()], ids=str)
def test_a_high_temperature_leaves_the_expert_alone(payoff: Payoff) -> None:
    distances = []
    for temperature in (1.0, 20.0, 1e9):
        recal = random_recal(1, payoff, temperature)
        recal.predict(oc.Normal(0.45, 0.15))
        log_prior, log_result, _ = cell_means(recal)
        distances.append(np.abs(log_result - log_prior).max())
    assert (np.diff(distances) < 0.0).all()
    assert distances[-1] < 1e-6


def test_an_empty_ledger_leaves_the_expert_alone() -> None:
    recal = oc.Recalibrator(SPACE, oracle=oc.Equilibrium())
    recal.predict(oc.Normal(0.45, 0.15))
    log_prior, log_result, _ = cell_means(recal)
    assert log_result == pytest.approx(log_prior, abs=1e-12)


def test_a_late_outcome_raises_the_temperature() -> None:
    round = engine_of(random_recal(1, oc.QuantileCalibration(), 2.0)).predict(None, pending=3.0)
    assert round.read("info", "temperature") > 2.0
