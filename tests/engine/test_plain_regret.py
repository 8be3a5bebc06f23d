"""No regret in plain units, the paper's form of it: bounded scores, adversaries that see the forecast."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import orcast as oc
from helpers import SENTENCE
from orcast.ledger import CREDIT
from orcast.spaces import FiniteSpace
from orcast.testing import worst_outcome

SPACE = oc.Interval(-2, 6, cells=24, tail_cells=3)
LABELS = oc.Labels(["a", "b", "c"])

CASES: dict[str, tuple[Any, oc.scores.Score]] = {
    "crps": (SPACE, oc.CRPS()),
    "mse": (SPACE, oc.MSE()),
    "brier": (LABELS, oc.Brier()),
    "brier of one": (oc.Binary(), oc.Brier()),
    "mse of one": (oc.Binary(), oc.MSE()),
    "energy": (oc.Circle(24, cells=8), oc.CRPS()),
    "box": (oc.Box([(0, 1), (0, 2)], cells=3), oc.CRPS()),
}


# --- the largest score ---


def scores_of(space: Any, score: Any, mass: Any) -> list[float]:
    """The score of masses for every outcome of a finite space, or for many outcomes of an interval in even cells."""
    if isinstance(space, FiniteSpace):
        from orcast.forecasts import forecast_on

        p = forecast_on(space, mass, None)
        return [score(p, space.value(k)) for k in range(space.cells)]
    edges = np.linspace(space.low, space.high, mass.size - 1)
    # an atom at either end
    left = np.concatenate(([space.low], edges[:-1], [space.high]))
    right = np.concatenate(([space.low], edges[1:], [space.high]))
    return [score(oc.Forecast(left, right, mass), y) for y in np.linspace(space.low, space.high, 33)]


@pytest.mark.parametrize("case", CASES)
def test_the_bound_of_a_score_is_reached_and_never_passed(case: str) -> None:
    space, score = CASES[case]
    cells = space.cells if isinstance(space, FiniteSpace) else 9
    rng = np.random.default_rng(0)
    corners = list(np.eye(cells))
    found = [scores_of(space, score, mass) for mass in [*corners, *rng.dirichlet(np.full(cells, 0.2), 200)]]
    assert min(map(min, found)) >= 0.0
    assert max(map(max, found)) == pytest.approx(score.bound(space), rel=1e-12)


@pytest.mark.parametrize("space", [oc.Line(), oc.HalfLine(0), oc.HalfLine(high=3)], ids=repr)
@pytest.mark.parametrize("score", [oc.CRPS(), oc.MSE()], ids=repr)
def test_unit_is_rejected_for_unbounded_scores(space: Any, score: Any) -> None:
    assert score.bound(space) == math.inf
    with pytest.raises(TypeError, match=SENTENCE):
        oc.Recalibrator(space, oc.NoRegret(score, unit="score"))
    oc.Recalibrator(space, oc.NoRegret(score))


@pytest.mark.parametrize("unit", ["b", 1.0, [1]], ids=str)
def test_the_only_unit_is_the_score(unit: Any) -> None:
    with pytest.raises(ValueError, match=SENTENCE):
        oc.NoRegret(oc.CRPS(), unit=unit)


# --- the promise ---


def said(space: Any, t: int) -> dict[str, Any]:
    """Two experts: one that knows, and one that is sure of something else."""
    rng = np.random.default_rng(t)
    if not isinstance(space, FiniteSpace):
        return {"good": oc.Normal(2 + 2 * np.sin(t / 3), 1.0), "sure": oc.Normal(4 - 5 * (t % 2), 0.01)}
    one, other = rng.dirichlet(np.ones(space.cells)), np.eye(space.cells)[t % space.cells]
    if isinstance(space, oc.Binary):
        return {"good": float(one[1]), "sure": float(other[1])}
    return {"good": one, "sure": other}


def rivals_of(recal: Any) -> list[Any]:
    """The experts of the pending round, as forecasts on its cells."""
    record = recal.rounds.find(None).record
    grid = recal.engine.prior.cell_grid(record.round, record.features)
    return [grid.forecast(x) for x in grid.experts]


Nature = Callable[[Any, Any, list[Any], np.ndarray, int], Any]


def outcomes(space: Any) -> list[Any]:
    if isinstance(space, FiniteSpace):
        return [space.value(k) for k in range(space.cells)]
    return np.linspace(space.low, space.high, 65).tolist()


def greedy(recal: Any, p: Any, gaps: list[Any], cumulative: np.ndarray, t: int) -> Any:
    """The outcome after which the regrets are largest: from the public forecast alone."""
    squares = [float((np.maximum(cumulative + gap, 0.0) ** 2).sum()) for gap in gaps]
    return outcomes(recal.space)[int(np.argmax(squares))]


def for_the_sure(recal: Any, p: Any, gaps: list[Any], cumulative: np.ndarray, t: int) -> Any:
    """The outcome that is best for the expert who is sure of itself."""
    return outcomes(recal.space)[int(np.argmax([gap[1] for gap in gaps]))]


NATURE: dict[str, Nature] = {
    "greedy": greedy,
    "certificate": lambda recal, p, gaps, cumulative, t: worst_outcome(recal)[0],
    "for the sure": for_the_sure,
}


def attack(recal: Any, score: Any, unit: float, weight: float, adversary: Nature, rounds: int) -> Any:
    """Play, with books of our own: the plain regrets are within what is stated after every round."""
    regrets = np.zeros(2)
    general = recal.engine.ledger.bound
    for t in range(1, rounds + 1):
        p = recal.predict(experts=said(recal.space, t))
        rivals = rivals_of(recal)
        gaps = [np.array([score(p, y) - score(x, y) for x in rivals]) for y in outcomes(recal.space)]
        assert np.abs(gaps).max() <= score.bound(recal.space) * (1 + 1e-9)
        y = adversary(recal, p, gaps, regrets, t)
        regrets += [score(p, y) - score(x, y) for x in rivals]
        recal.update(y)
        g = recal.guarantee
        names = [f"regret {score.name} against {who}" for who in ("good", "sure")]
        assert [g.parts[name] for name in names] == pytest.approx(list(regrets / t), rel=1e-6, abs=1e-9)
        for name in names:
            assert g.parts[name] <= g.bounds[name] * (1 + 1e-9)
            assert g.bounds[name] == pytest.approx(unit / weight * g.promised, rel=1e-12)
            # B_1 + ... + B_T is at most T B
            if g.held == 1.0:
                assert g.bounds[name] <= unit / weight * math.sqrt(general * (t + CREDIT)) / t * (1 + 1e-9)
        for name, value in g.parts.items():
            assert value <= g.bounds[name] * (1 + 1e-9)
    return recal.guarantee


@pytest.mark.parametrize("adversary", NATURE)
@pytest.mark.parametrize("case", ["crps", "mse", "brier", "brier of one", "energy"])
def test_plain_regret_is_within_the_papers_bound_under_attack(case: str, adversary: str) -> None:
    space, score = CASES[case]
    rounds = 60 if isinstance(space, oc.Interval) else 120
    recal = oc.Forecaster(space, oc.NoRegret(score, unit="score"), oracle=oc.Equilibrium())
    recal.predict(experts=said(space, 0))
    recal.drop()
    g = attack(recal, score, score.bound(space), 1.0, NATURE[adversary], rounds)
    assert g.held == 1.0
    # the paper's form: k experts, B the score's bound, and the credit
    assert max(g.parts.values()) <= math.sqrt(2) * score.bound(space) * math.sqrt(rounds + CREDIT) / rounds


@pytest.mark.parametrize("weight", [1.0, 0.5])
def test_in_a_sum_each_part_has_its_own_bound(weight: float) -> None:
    payoff = oc.LabelCalibration(grid=4) + oc.NoRegret(oc.Brier(), unit="score", weight=weight)
    recal = oc.Recalibrator(LABELS, payoff)
    recal.predict(experts=said(LABELS, 0))
    recal.drop()
    assert recal.engine.ledger.bound == pytest.approx(1.0 + 2 * weight**2)
    attack(recal, oc.Brier(), 2.0, weight, NATURE["certificate"], 60)


# --- where it is said ---


def test_every_part_but_a_weighted_regret_has_a_bound() -> None:
    recal = oc.Recalibrator(oc.Interval(0, 1))
    for t in range(30):
        recal.predict(oc.Normal(0.3, 0.1))
        recal.update(0.8 if t % 3 else 0.1)
    g = recal.guarantee
    assert set(g.bounds) == {"quantile", "moment"}
    assert all(g.parts[name] <= bound for name, bound in g.bounds.items())
    # proposition 3: the root of the part's own bound, times the bound of the whole
    assert g.bounds["moment"] == pytest.approx(math.sqrt(2) * g.promised)


def test_bounds_are_in_the_units_of_the_parts() -> None:
    payoff = oc.payoffs.ThresholdCalibration([0.5], grid=1)
    recal = oc.Recalibrator(oc.Interval(0, 1), payoff)
    for _ in range(40):
        recal.predict(oc.Normal(0.3, 0.2))
        recal.update(worst_outcome(recal)[0])
        g = recal.guarantee
        assert g.parts[payoff.name] <= g.bounds[payoff.name]


@pytest.mark.parametrize(
    "make",
    [
        lambda: oc.Recalibrator(LABELS, oc.NoRegret(oc.Brier())),
        lambda: oc.Recalibrator(LABELS, oc.NoRegret(oc.Brier(), unit="score"), memory=20),
        lambda: oc.Recalibrator(LABELS, oc.NoRegret(oc.Brier(), unit="score", context=oc.by("hour", values=[0, 1]))),
    ],
    ids=["weighted", "memory", "context"],
)
def test_guarantee_states_no_bound_where_none_is_known(make: Callable[[], Any]) -> None:
    recal = make()
    for t in range(5):
        recal.predict([0.2, 0.3, 0.5], x={"hour": t % 2})
        recal.update("a")
    assert recal.guarantee.bounds == {}


def test_in_a_group_the_excess_is_within_the_units_of_its_promise() -> None:
    payoff = oc.NoRegret(oc.Brier(), unit="score", context=oc.by("hour", values=[0, 1]))
    recal = oc.Recalibrator(LABELS, payoff)
    excess = {"hour=0": 0.0, "hour=1": 0.0}
    for t in range(80):
        x = np.eye(3)[t % 3]
        p = recal.predict(x, x={"hour": int(t % 4 == 0)})
        y = worst_outcome(recal)[0]
        rival = oc.forecasts.LabelForecast(LABELS, x)
        excess[f"hour={int(t % 4 == 0)}"] += oc.Brier()(p, y) - oc.Brier()(rival, y)
        recal.update(y)
    groups = recal.guarantee.groups["regret by hour"]
    for label, group in groups.items():
        mean = excess[label] / group.rounds
        assert 2.0 * group.miscalibration == pytest.approx(max(mean, 0.0), abs=1e-9)
        assert mean <= 2.0 * group.promised


def test_an_expert_that_comes_late_is_judged_by_its_own_rounds() -> None:
    recal = oc.Recalibrator(LABELS, oc.NoRegret(oc.Brier(), unit="score"))
    for t in range(60):
        experts: dict[str, Any] = {"a": [0.6, 0.2, 0.2]} | {"late": np.eye(3)[t % 3] if t >= 40 else None}
        recal.predict(experts=experts)
        recal.update("abc"[t % 3])
    g = recal.guarantee
    late, always = g.bounds["regret brier against late"], g.bounds["regret brier against a"]
    assert late == pytest.approx(3 * always)
    assert g.parts["regret brier against late"] <= late


def test_the_unit_is_saved_and_the_default_looks_as_before(tmp_path: Path) -> None:
    recal = oc.Recalibrator(LABELS, oc.NoRegret(oc.Brier(), unit="score"))
    for y in "abca":
        recal.predict([0.2, 0.3, 0.5])
        recal.update(y)
    recal.save(tmp_path / "a.orcast")
    again = oc.Recalibrator.load(tmp_path / "a.orcast")
    assert again.guarantee == recal.guarantee
    assert again.payoff.unit == "score"  # type: ignore[attr-defined]
    assert "unit" not in oc.NoRegret(oc.Brier()).to_plain()
