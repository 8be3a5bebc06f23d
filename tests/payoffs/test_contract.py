"""Every payoff on every space: what `orcast.testing` checks, and one message where a payoff makes no sense."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import orcast as oc
from contract import check_all, check_jacobian, check_state, check_table
from helpers import SENTENCE
from orcast.payoffs import Payoff, payoff_from_plain
from orcast.spaces import Space
from orcast.testing import check_guarantee, check_payoff

ORDERED: dict[str, Space] = {
    "interval": oc.Interval(-2, 10, cells=24, tail_cells=3),
    "line": oc.Line(cells=24, tail_cells=3),
    "half line": oc.HalfLine(-1, cells=24, tail_cells=3),
}
FINITE: dict[str, Space] = {
    "binary": oc.Binary(),
    "4 labels": oc.Labels(["a", "b", "c", "d"]),
    "10 labels": oc.Labels(range(10)),
    "circle": oc.Circle(24, cells=12),
    "box": oc.Box([(0, 1), (-5, 5)], cells=(4, 5)),
}
SPACES = {**ORDERED, **FINITE}


def bounded(y: Any) -> float:
    """Something of any outcome, in [0, 1] and continuous where the outcome is a number."""
    if isinstance(y, str):
        return len(y) / 8 if y else 0.0
    return float(0.5 + np.arctan(np.sum(np.asarray(y, dtype=float))) / np.pi)


def utility(action: str, y: Any) -> float:
    return {"go": bounded(y), "stay": 0.3, "half": 0.5 * bounded(y) + 0.2}[action]


ACTIONS = ["go", "stay", "half"]
HOURS = oc.by("hour", values=range(3))


def hour(rng: np.random.Generator) -> dict[str, int]:
    return {"hour": int(rng.integers(3))}


@dataclass
class Entry:
    """A payoff, where it makes sense, and the features it wants."""

    make: Callable[[], Payoff]
    on: set[str]
    x: Any = None
    plain: bool = True  # whether its plain form says it all
    rounds: int = 40


everywhere, ordered, finite = set(SPACES), set(ORDERED), set(FINITE)
labels, numbers = {"4 labels", "10 labels"}, set(SPACES) - {"4 labels", "10 labels"}

PAYOFFS = {
    "quantile": Entry(oc.QuantileCalibration, ordered),
    "one level": Entry(lambda: oc.QuantileCalibration([0.9]), ordered),
    "interval": Entry(lambda: oc.IntervalCalibration([0.5, 0.9]), ordered),
    "moment": Entry(lambda: oc.MomentMatching(2), numbers),
    "third moment": Entry(lambda: oc.MomentMatching(3, weight=2.0), numbers),
    "marginal": Entry(lambda: oc.payoffs.ThresholdCalibration([0.0, 3.0], grid=1), ordered),
    "threshold": Entry(lambda: oc.payoffs.ThresholdCalibration([0.0, 3.0], grid=6), ordered),
    "decision": Entry(
        lambda: oc.payoffs.DecisionCalibration(ACTIONS, utility, utility_range=1.0), everywhere, plain=False, rounds=25
    ),
    "swap regret": Entry(
        lambda: oc.payoffs.SwapRegret(ACTIONS, utility, utility_range=1.0), everywhere, plain=False, rounds=25
    ),
    "binary": Entry(lambda: oc.BinaryCalibration(grid=11), {"binary"}),
    "label": Entry(lambda: oc.LabelCalibration(grid=6), labels),
    "calibeating": Entry(lambda: oc.payoffs.Calibeating(grid=6), labels | {"binary"}),
    "moments given moments": Entry(lambda: oc.payoffs.MomentBasedCalibration(4), {"interval"}, rounds=25),
    "simplex": Entry(lambda: oc.payoffs.SimplexCalibration(2, bins=3), {"binary", "interval"} | labels, rounds=25),
    "recipe": Entry(lambda: oc.Recipe(lambda y: [bounded(y)], bound=1.0), everywhere, plain=False, rounds=20),
    "recipe of p": Entry(
        lambda: oc.Recipe(lambda y: [bounded(y)], lambda x, p: [1.0 - p.mass[0], p.mass[0]], bound=1.0),
        everywhere,
        plain=False,
        rounds=10,
    ),
    "crps": Entry(lambda: oc.NoRegret(oc.CRPS()), everywhere),
    "mse": Entry(lambda: oc.NoRegret(oc.MSE()), ordered | {"binary"}),
    "crps and mse": Entry(lambda: oc.NoRegret(oc.MSE(), oc.CRPS()), ordered | {"binary"}),
    "brier": Entry(lambda: oc.NoRegret(oc.Brier()), finite),
    "regret in plain units": Entry(lambda: oc.NoRegret(oc.CRPS(), unit="score"), finite | {"interval"}),
    "quantile by hour": Entry(lambda: oc.QuantileCalibration([0.2, 0.8], context=HOURS), ordered, hour),
    "moment by hour": Entry(lambda: oc.MomentMatching(1, context=HOURS), numbers, hour),
    "regret by hour": Entry(lambda: oc.NoRegret(oc.CRPS(), context=HOURS), everywhere, hour),
    "default": Entry(lambda: oc.QuantileCalibration() + oc.MomentMatching(2) + oc.NoRegret(oc.CRPS()), ordered),
    "everything binary": Entry(
        lambda: oc.BinaryCalibration() + oc.payoffs.Calibeating(weight=0.5) + oc.NoRegret(oc.Brier()), {"binary"}
    ),
    "everything labelled": Entry(lambda: oc.LabelCalibration() + oc.NoRegret(oc.Brier()), labels),
}

FITS = [(name, space) for name, entry in PAYOFFS.items() for space in SPACES if space in entry.on]
FOREIGN = [(name, space) for name, entry in PAYOFFS.items() for space in SPACES if space not in entry.on]
fits = pytest.mark.parametrize(("name", "where"), FITS, ids=lambda v: v)


@fits
def test_payoff_is_bounded_consistent_and_continuous(name: str, where: str) -> None:
    entry = PAYOFFS[name]
    check_payoff(entry.make(), SPACES[where], x=entry.x, trials=4)


@fits
def test_smoothed_payoff_is_its_definition(name: str, where: str) -> None:
    entry = PAYOFFS[name]
    check_table(entry.make(), SPACES[where], x=entry.x, trials=4)


@fits
def test_derivative_matches_finite_differences(name: str, where: str) -> None:
    entry = PAYOFFS[name]
    check_jacobian(entry.make(), SPACES[where], x=entry.x, trials=4)


@fits
def test_an_adversary_cannot_break_it(name: str, where: str) -> None:
    entry = PAYOFFS[name]
    check_guarantee(entry.make(), SPACES[where], x=entry.x, rounds=entry.rounds)


@fits
def test_loaded_recal_continues_as_the_original(name: str, where: str) -> None:
    entry = PAYOFFS[name]
    check_state(entry.make(), SPACES[where], x=entry.x, rounds=6)


@pytest.mark.parametrize(("name", "where"), FOREIGN, ids=lambda v: v)
def test_payoff_rejects_spaces_it_is_not_defined_on(name: str, where: str) -> None:
    payoff, space = PAYOFFS[name].make(), SPACES[where]
    with pytest.raises(TypeError, match=SENTENCE) as caught:
        payoff.on(space) if not isinstance(payoff, oc.payoffs.Sum) else [part.on(space) for part in payoff]
    assert repr(space) in str(caught.value)
    with pytest.raises(TypeError, match=SENTENCE):
        oc.Recalibrator(space, payoff)


@pytest.mark.parametrize("name", PAYOFFS)
def test_plain_form_is_restored_or_names_missing_functions(name: str) -> None:
    payoff = PAYOFFS[name].make()
    plain = json.loads(json.dumps(payoff.to_plain()))
    if PAYOFFS[name].plain:
        assert payoff_from_plain(plain).to_plain() == payoff.to_plain()
    else:
        with pytest.raises(ValueError, match=SENTENCE):
            payoff_from_plain(plain)


def test_every_payoff_is_in_the_table() -> None:
    """A payoff that is added later cannot be forgotten here."""
    named = {type(part).__name__ for entry in PAYOFFS.values() for part in entry.make()}
    kinds = {kind.__name__ for kind in vars(oc.payoffs).values() if isinstance(kind, type) and issubclass(kind, Payoff)}
    assert named == kinds - {"Payoff", "Sum"}


@pytest.mark.parametrize("where", SPACES)
def test_the_default_payoff_of_every_space_is_kept(where: str) -> None:
    space = SPACES[where]
    check_guarantee(oc.Recalibrator(space).payoff, space, rounds=40)


def test_an_upper_bound_alone_keeps_the_contract() -> None:
    space = oc.HalfLine(high=-1, cells=24, tail_cells=3)
    check_all(oc.Recalibrator(space).payoff, space, rounds=40)
    hourly = oc.QuantileCalibration(context=HOURS) + oc.NoRegret(oc.CRPS())
    check_guarantee(hourly, space, x=hour, rounds=40)


# --- thresholds and ranges that do not fit ---


@pytest.mark.parametrize("z", [-3.0, 10.0, 11.0])
def test_thresholds_lie_within_the_space(z: float) -> None:
    with pytest.raises(ValueError, match=SENTENCE):
        oc.payoffs.ThresholdCalibration([0.0, z] if z > 0 else [z, 0.0]).on(SPACES["interval"])


def test_the_range_of_a_utility_is_measured_or_asked_for() -> None:
    payoff = oc.payoffs.DecisionCalibration(["a"], lambda a, y: 5.0 * y)
    assert payoff.range_on(oc.Interval(0, 2)) == pytest.approx(1.05 * 10.0)  # a kink may reach a little further
    for space in (oc.Line(), oc.HalfLine(0)):
        with pytest.raises(ValueError, match=SENTENCE):
            payoff.on(space)
    with pytest.raises(ValueError, match=SENTENCE):
        oc.payoffs.SwapRegret(["a"], lambda a, y, x: y).on(oc.Interval(0, 1))
