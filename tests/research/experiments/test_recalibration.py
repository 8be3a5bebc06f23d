"""Experiment 1: measures, runs, tables and claims."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import orcast as oc
from helpers import forecasts
from orcast.datasets import Series
from research.experiments import data, methods
from research.experiments import recalibration as experiment
from research.experiments.recalibration import GRID, Plan, Score, Setting
from research.jobs import WorkerPool
from research.learners import Gaussian, Marginal

Vector = NDArray[np.float64]
ALONE = ("expert", "last outcome", *methods.METHODS)
TINY = Plan(
    learners=("marginal",), steps=12, warmup=20, window=5, rates=(0.01, 0.1), tried=1, runs=2, experts=2, perfect=3
)


def toy(rounds: int = 60) -> Gaussian:
    rng = np.random.default_rng(0)
    mu = rng.uniform(2.0, 8.0, rounds)
    return Gaussian("toy", mu, np.full(rounds, 1.0), np.clip(mu + rng.normal(0.5, 2.0, rounds), 0.0, 10.0), 0.0, 10.0)


# --- measures ---


def slow_score(q: Vector, y: Vector, low: float, high: float, window: int) -> dict[str, float]:
    """Measures round by round and level by level, from the definitions."""
    rounds = len(y)
    hits = np.zeros((rounds, 99))
    for t in range(rounds):
        row = {k: q[t, 2 * k - 1] for k in range(1, 100)}
        ties = [k for k in row if row[k] == y[t]]
        for k in row:
            if not ties:
                hits[t, k - 1] = row[k] >= y[t]
                continue
            start = 0.0 if y[t] == low else (ties[0] - 0.5) / 100 if ties[0] > 1 else 0.005
            stop = 1.0 if y[t] == high else (ties[-1] + 0.5) / 100 if ties[-1] < 99 else 0.995
            hits[t, k - 1] = min(max((k / 100 - start) / (stop - start), 0.0), 1.0)
    gaps = hits - np.arange(1, 100) / 100
    windows = [gaps[s : s + window].mean(axis=0) for s in range(rounds - window + 1)]
    crps, percent = 0.0, 0.0
    for t in range(rounds):
        middles = [(k - 0.5) / 100 for k in range(1, 101)]
        values = [q[t, 2 * k] for k in range(100)]
        losses = [a * (y[t] - v) if y[t] >= v else (1 - a) * (v - y[t]) for a, v in zip(middles, values, strict=True)]
        crps += 2.0 * sum(losses) / 100 / rounds
        size = (abs(sum(values) / 100) + abs(y[t])) / 2
        percent += (abs(sum(values) / 100 - y[t]) / size if size > 0.0 else 0.0) / rounds
    return {
        "qce": float((gaps.mean(axis=0) ** 2).sum()),
        "worst": max(float((gap**2).sum()) for gap in windows),
        "crps": crps,
        "smape": percent,
        "holds": float(np.mean([q[t, 9] <= y[t] <= q[t, 189] for t in range(rounds)])),
        "width": float(np.mean([q[t, 189] - q[t, 9] for t in range(rounds)])),
    }


@given(st.lists(st.tuples(forecasts(0.0, 8.0), st.integers(0, 16).map(lambda i: i / 2)), min_size=3, max_size=6))
def test_measures_follow_their_definitions(rounds: list[tuple[oc.Forecast, float]]) -> None:
    q = np.array([p.quantile(GRID) for p, _ in rounds])
    y = np.array([outcome for _, outcome in rounds])
    fast = experiment.measure(q, y, low=0.0, high=8.0, window=3)
    for name, value in slow_score(q, y, 0.0, 8.0, 3).items():
        assert getattr(fast, name) == pytest.approx(value, abs=1e-9), name
    half = slow_score(q[: len(y) // 2], y[: len(y) // 2], 0.0, 8.0, 1)
    assert fast.half_qce == pytest.approx(half["qce"], abs=1e-9)


def test_perfect_forecasters_have_the_simulated_qce() -> None:
    rng = np.random.default_rng(1)
    perfect = experiment.chance(150, window=40, forecasters=100)
    q = np.tile(GRID, (150, 1))
    scores = [experiment.measure(q, rng.random(150), low=0.0, high=1.0, window=40) for _ in range(300)]
    qces = np.array([score.qce for score in scores])
    assert perfect.mean == pytest.approx(qces.mean(), rel=0.1)
    assert (qces < perfect.low).mean() == pytest.approx(0.05, abs=0.03)
    assert (qces > perfect.high).mean() == pytest.approx(0.05, abs=0.03)
    assert perfect.worst == pytest.approx(np.mean([score.worst for score in scores]), rel=0.1)


# --- runs ---


@pytest.mark.parametrize("name", [*methods.METHODS, "ORCA"])
def test_methods_do_not_look_ahead_and_stay_within_bounds(name: str) -> None:
    def made() -> Any:
        return methods.orca(0.0, 10.0, rate=0.1) if name == "ORCA" else methods.METHODS[name](0.0, 10.0)

    stream = toy(40)
    q = experiment.run_method(stream, made())
    other = replace(stream, y=np.where(np.arange(40) < 25, stream.y, 10.0 - stream.y))
    changed = experiment.run_method(other, made())
    assert np.array_equal(q[:26], changed[:26])
    assert not np.array_equal(q[26:], changed[26:])
    assert q.min() >= 0.0
    assert q.max() <= 10.0
    assert (np.diff(q, axis=1) >= 0.0).all()


def test_orca_has_the_settings_of_the_paper() -> None:
    recal = methods.orca(0.0, 10.0, rate=0.03, seed=4)
    oracle = recal.oracle
    assert isinstance(oracle, oc.Orca)
    assert (oracle.steps, oracle.cells, oracle.rate) == (400, 50, 0.03)
    assert (oracle.jitter, oracle.seed) == (1e-6, 4)
    p = recal.predict(oc.Normal(5, 1))
    assert p.left == pytest.approx(np.arange(50) / 5)


def test_orca_has_more_runs_at_the_rate_that_was_best_in_the_first_half(monkeypatch: pytest.MonkeyPatch) -> None:
    qces = {0.01: [0.3, 0.1, 0.9, 0.9], 0.1: [0.2, 0.3, 0.0, 0.0]}
    calls: list[tuple[Any, ...]] = []

    def run_orca(stream: Any, rate: float, seed: int, window: int) -> Score:
        calls.append((stream, rate, seed))
        half = qces[rate][seed - 7]
        # the second half reverses the order of the rates
        return Score(1.0 - half, 0.5, 1.0, 0.2, 0.9, 3.0, half)

    def prepared(series: Series, learner: str, plan: Plan, seed: int) -> experiment.Prepared:
        stream = Marginal.of(f"{series.name}/{learner}/{seed}", [1.0, 2.0], [3.0], 0.0, 10.0)
        scores = dict.fromkeys(ALONE, Score(seed, 0.5, 1.0, 0.2, 0.9, 3.0, 0.1))
        return experiment.Prepared(stream, scores, 0.25)

    monkeypatch.setattr(experiment, "_orca", run_orca)
    monkeypatch.setattr(experiment, "_prepared", prepared)
    plan = replace(TINY, learners=("network", "marginal"), tried=2, runs=4, experts=3)
    settings = experiment.run_all(plan, [data.stand_in("wind")], seed=7, pool=lambda jobs: WorkerPool(1, jobs))
    for setting, seeds in zip(settings, ([7, 8, 9], [7]), strict=True):
        assert setting.rate == 0.01
        assert [score.half_qce for score in setting.orca[0.01]] == [0.3, 0.1, 0.9, 0.9]
        assert [score.half_qce for score in setting.orca[0.1]] == [0.2, 0.3]
        assert [score.qce for score in setting.scores["ours"]] == seeds
        assert setting.of("ORCA") == setting.orca[0.01]
    # run r of ORCA has seed 7 + r, and goes through the experts in turn
    for stream, _, seed in calls:
        expected = {7: 7, 8: 8, 9: 9, 10: 7}[seed] if "network" in stream.name else 7
        assert stream.name.endswith(f"/{expected}")
    assert {seed for stream, _, seed in calls if "marginal" in stream.name} == {7, 8, 9, 10}


FAIR = Score(0.05, 0.5, 1.0, 0.2, 0.9, 3.0, 0.1)


def setting_of(place: tuple[str, str], **orca: float) -> Setting:
    """Setting where ORCA's QCE is 0.006 at the chosen rate, the expert's 0.1 and all others' 0.05."""
    scores = {name: [FAIR] for name in ALONE}
    scores["expert"] = [replace(FAIR, qce=0.1)]
    scores["ours"] = [replace(FAIR, qce=0.004, crps=0.8)]
    chosen = [replace(FAIR, **{"qce": 0.006, **orca})] * 3
    return Setting(*place, scores, {0.01: chosen, 0.1: [replace(FAIR, qce=q) for q in (0.008, 0.012)]}, 0.01, [0.3])
