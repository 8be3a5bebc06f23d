"""Experiment 1: what is measured, which runs are made, what the tables say of them."""

import os
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import orcast as oc
from helpers import forecasts
from orcast.datasets import Series as RealSeries
from orcast.paper.experiments import data, learners, methods
from orcast.paper.experiments import recalibration as experiment
from orcast.paper.experiments import recalibration_figures as figures
from orcast.paper.experiments import recalibration_runs as runs
from orcast.paper.experiments import recalibration_tables as tables
from orcast.paper.experiments.learners import Gaussian, Marginal
from orcast.paper.experiments.output import ResultTable
from orcast.paper.experiments.recalibration_runs import (
    FULL,
    GRID,
    PAPER,
    QUICK,
    MethodScore,
    RecalibrationPlan,
    SettingResult,
    SoFar,
)

Vector = NDArray[np.float64]

needs_learners = pytest.mark.skipif(
    any(find_spec(name) is None for name in ("river", "sklearn")), reason="river or scikit-learn is not installed"
)
needs_matplotlib = pytest.mark.skipif(find_spec("matplotlib") is None, reason="matplotlib is not installed")
needs_data = pytest.mark.skipif(data.VARIABLE not in os.environ, reason=f"{data.VARIABLE} names no data folder")

# A learner from this package alone, and as little of everything as makes all tables.
TINY = RecalibrationPlan(
    learners=("marginal",), steps=12, warmup=20, window=5, rates=(0.01, 0.1), tried=1, runs=2, experts=2, perfect=3
)


ALONE = ("expert", "last outcome", *methods.METHODS)


def toy(rounds: int = 60, seed: int = 0) -> Gaussian:
    rng = np.random.default_rng(seed)
    mu = rng.uniform(2.0, 8.0, rounds)
    return Gaussian("toy", mu, np.full(rounds, 1.0), np.clip(mu + rng.normal(0.5, 2.0, rounds), 0.0, 10.0), 0.0, 10.0)


# --- what is measured ---


def slow_score(q: Vector, y: Vector, low: float, high: float, window: int) -> MethodScore:
    """Round by round and level by level, from the definitions."""
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
        mean = sum(values) / 100
        size = (abs(mean) + abs(y[t])) / 2
        percent += (abs(mean - y[t]) / size if size > 0.0 else 0.0) / rounds
    return MethodScore(
        qce=float((gaps.mean(axis=0) ** 2).sum()),
        worst=max(float((gap**2).sum()) for gap in windows),
        crps=crps,
        smape=percent,
        holds=float((hits[:, 94] - hits[:, 4]).mean()),
        width=float(np.mean([q[t, 189] - q[t, 9] for t in range(rounds)])),
    )


@given(st.lists(st.tuples(forecasts(0.0, 8.0), st.integers(0, 16).map(lambda i: i / 2)), min_size=3, max_size=6))
def test_figures_are_those_of_their_definitions(rounds: list[tuple[oc.Forecast, float]]) -> None:
    q = np.array([p.quantile(GRID) for p, _ in rounds])
    y = np.array([outcome for _, outcome in rounds])
    fast = runs.measure(q, y, low=0.0, high=8.0, window=3)
    slow = slow_score(q, y, 0.0, 8.0, 3)
    for name in runs.FIGURES:
        assert getattr(fast, name) == pytest.approx(getattr(slow, name), abs=1e-9), name


def test_crps_and_mean_are_close_to_the_exact_ones() -> None:
    stream = toy(300)
    method = methods.METHODS["ours"](0.0, 10.0)
    exact, means = [], []
    for forecast, y in zip(stream.forecasts(), stream.y.tolist(), strict=True):
        p = method.predict(forecast)
        exact.append(p.crps(y))
        means.append(p.mean())
        method.update(y)
    q, _ = runs.play(stream, methods.METHODS["ours"](0.0, 10.0))
    score = runs.measure(q, stream.y, low=0.0, high=10.0)
    assert score.crps == pytest.approx(np.mean(exact), rel=2e-3)
    assert score.smape == pytest.approx(oc.metrics.smape(means, stream.y).mean(), rel=2e-3)


def test_zeros_that_the_expert_expects_are_no_miscalibration() -> None:
    rng = np.random.default_rng(0)
    draws = np.maximum(rng.normal(-0.2, 1.0, 4000), 0.0)
    stream = Gaussian("toy", np.full(4000, -0.2), np.ones(4000), draws, 0.0, 10.0)
    score = runs.measure(stream.quantile(GRID), draws, low=0.0, high=10.0)
    assert score.qce < runs.chance(4000, forecasters=1).high
    assert score.holds == pytest.approx(0.9, abs=0.02)


def test_a_perfect_forecaster_shows_what_chance_says() -> None:
    rng = np.random.default_rng(1)
    perfect = runs.chance(150, window=40, forecasters=100)
    q = np.tile(GRID, (150, 1))
    scores = [runs.measure(q, rng.random(150), low=0.0, high=1.0, window=40) for _ in range(600)]
    qces = np.array([score.qce for score in scores])
    assert perfect.mean == pytest.approx(qces.mean(), rel=0.1)
    assert (qces < perfect.low).mean() == pytest.approx(0.05, abs=0.03)
    assert (qces > perfect.high).mean() == pytest.approx(0.05, abs=0.03)
    assert perfect.worst == pytest.approx(np.mean([score.worst for score in scores]), rel=0.1)


# --- a run ---


class Spy:
    """Says the expert's forecast, and keeps the order in which it is asked and told."""

    def __init__(self) -> None:
        self.calls: list[Any] = []

    def predict(self, forecast: object) -> oc.Normal:
        assert isinstance(forecast, oc.Normal)
        self.calls.append(forecast.mean)
        return forecast

    def update(self, y: float) -> None:
        self.calls.append(y)


def test_a_method_is_asked_before_it_is_told() -> None:
    stream, spy = toy(5), Spy()
    q, milliseconds = runs.play(stream, spy)
    assert spy.calls == [value for pair in zip(stream.mu, stream.y, strict=True) for value in pair]
    assert q == pytest.approx(np.array([oc.Normal(mu, 1.0).quantile(GRID) for mu in stream.mu]))
    assert milliseconds > 0.0


@pytest.mark.parametrize("name", [*methods.METHODS, "ORCA"])
def test_no_method_looks_ahead_and_all_stay_within_bounds(name: str) -> None:
    def made() -> methods.Method:
        return methods.orca(0.0, 10.0, rate=0.1) if name == "ORCA" else methods.METHODS[name](0.0, 10.0)

    stream = toy(40)
    q, _ = runs.play(stream, made())
    other = replace(stream, y=np.where(np.arange(40) < 25, stream.y, 10.0 - stream.y))
    changed, _ = runs.play(other, made())
    assert np.array_equal(q[:26], changed[:26])
    assert not np.array_equal(q[26:], changed[26:])
    assert q.min() >= 0.0
    assert q.max() <= 10.0
    assert (np.diff(q, axis=1) >= 0.0).all()


def test_orca_is_set_up_as_in_the_paper() -> None:
    game = methods.orca(0.0, 10.0, rate=0.03, seed=4)
    oracle = game.oracle
    assert isinstance(oracle, oc.Orca)
    assert (oracle.steps, oracle.cells, oracle.optimizer.rate, oracle.start) == (400, 50, 0.03, "expert")
    assert (oracle.jitter, oracle.seed) == (1e-6, 4)
    assert set(game.guarantee.parts) == set(oc.Recalibrator(oc.Interval(0, 10), methods.paper_payoff()).guarantee.parts)
    assert str(methods.paper_payoff()).count("+") == 2
    p = game.predict(oc.Normal(5, 1))
    assert p.left == pytest.approx(np.arange(50) / 5)


def test_jitter_makes_runs_of_orca_differ_and_repeat() -> None:
    stream = toy(60)
    played = [runs.play(stream, methods.orca(0.0, 10.0, rate=0.03, seed=seed))[0] for seed in (1, 1, 2)]
    assert np.array_equal(played[0], played[1])
    assert not np.array_equal(played[0], played[2])


@needs_learners
def test_the_experts_that_depend_on_a_seed_are_the_ones_said() -> None:
    for learner in learners.LEARNERS:
        one, other = (
            learners.stream(data.load("humidity"), learner, steps=20, warmup=80, seed=seed) for seed in (0, 1)
        )
        assert np.array_equal(one.mu, other.mu) is (learner not in runs.SEEDED), learner


# --- all runs ---


def made_up(monkeypatch: pytest.MonkeyPatch, qces: dict[float, list[float]]) -> list[tuple[Any, ...]]:
    """Lets ORCA score as told, by rate and run, and keeps what it is asked to play."""
    asked: list[tuple[Any, ...]] = []

    def play(stream: Any, rate: float, seed: int, window: int) -> MethodScore:
        asked.append((stream, rate, seed))
        # what counts for the choice is the first half; afterwards all is the other way round
        halves = (SoFar(6, qces[rate][seed - 7], 1.0), SoFar(12, 1.0 - qces[rate][seed - 7], 1.0))
        return MethodScore(1.0 - qces[rate][seed - 7], 0.5, 1.0, 0.2, 0.9, 3.0, 2.0, halves)

    monkeypatch.setattr(runs, "_orca", play)
    return asked


def prepared(series: RealSeries, learner: str, plan: RecalibrationPlan, seed: int) -> runs.Prepared:
    stream = Marginal.of(f"{series.name}/{learner}/{seed}", [1.0, 2.0], [3.0], 0.0, 10.0)
    scores = dict.fromkeys(ALONE, MethodScore(seed, 0.5, 1.0, 0.2, 0.9, 3.0, 1.0))
    return runs.Prepared(stream, scores, 0.25)


def test_orca_has_more_runs_at_the_rate_that_was_best_in_the_first_half(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = made_up(monkeypatch, {0.01: [0.3, 0.1, 0.9, 0.9], 0.1: [0.2, 0.3, 0.0, 0.0]})
    monkeypatch.setattr(runs, "_prepared", prepared)
    plan = replace(TINY, learners=("network", "marginal"), tried=2, runs=4, experts=3)
    done: list[tuple[str, float]] = []
    outcomes = runs.compare(plan, [data.stand_in("wind")], seed=7, progress=lambda *told: done.append(told))
    for outcome, seeds in zip(outcomes, ([7, 8, 9], [7]), strict=True):
        assert outcome.rate == 0.01
        assert [score.half.qce for score in outcome.orca[0.01]] == [0.3, 0.1, 0.9, 0.9]
        assert [score.half.qce for score in outcome.orca[0.1]] == [0.2, 0.3]
        assert [score.qce for score in outcome.scores["ours"]] == seeds
        assert outcome.of("ORCA") == outcome.orca[0.01]
        assert outcome.of("ORCA, best afterwards") == outcome.orca[outcome.best]
    # run r of ORCA has seed 7 + r, and goes through the experts in turn
    for stream, _, seed in asked:
        expected = {7: 7, 8: 8, 9: 9, 10: 7}[seed] if "network" in stream.name else 7
        assert stream.name.endswith(f"/{expected}")
    assert {seed for stream, _, seed in asked if "marginal" in stream.name} == {7, 8, 9, 10}
    shares = [share for _, share in done]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert len(shares) == 4 + 2 * (2 * 2 + 2)


@pytest.mark.slow
def test_what_comes_out_does_not_depend_on_the_number_of_workers() -> None:
    series = [data.stand_in("wind")]
    assert runs.compare(TINY, series, seed=3) == runs.compare(TINY, series, seed=3, workers=2)


def test_a_failure_in_a_worker_is_told() -> None:
    short = replace(data.stand_in("wind"), values=data.stand_in("wind").values[:40])
    with pytest.raises(ValueError, match=r"\Aexpected a series of at least 56 values, got 40\Z"):
        runs.compare(TINY, [short], workers=2)


# --- tables ---


FAIR = MethodScore(
    0.05, 0.5, 1.0, 0.2, 0.9, 3.0, 1.0, (SoFar(20, 0.8, 2.0), SoFar(500, 0.1, 1.5), SoFar(1000, 0.05, 1.0))
)
TARGETS = ("QCE", "ORCA", "any rate", "paper", "CRPS", "CRPS better", "SMAPE", "SMAPE better")


def setting(
    place: tuple[str, str],
    *,
    ours: float = 0.004,
    orca: float = 0.006,
    crps: float = 0.8,
    smape: float = 0.8,
    expert: float = 0.1,
) -> SettingResult:
    """A setting in which all is well but for what is given; ORCA at 0.1 has 0.008 and 0.012."""
    scores = {name: [FAIR] for name in ALONE}
    scores["expert"] = [replace(FAIR, qce=expert, milliseconds=None)]
    scores["last outcome"] = [replace(FAIR, milliseconds=None)]
    scores["ours"] = [replace(FAIR, qce=ours, crps=crps * FAIR.crps, smape=smape * FAIR.smape)]
    at_best, other = [replace(FAIR, qce=orca)] * 3, [replace(FAIR, qce=qce) for qce in (0.008, 0.012)]
    return SettingResult(*place, scores, {0.01: at_best, 0.1: other}, 0.01, [0.3])


def missed(outcomes: list[SettingResult]) -> list[str]:
    table = tables.target_table(outcomes)
    assert table.columns == ("target", "measured", "met")
    return [name for name, row in zip(TARGETS, table.rows, strict=True) if row[2] == "no"]


@pytest.mark.parametrize(
    ("change", "where", "expected"),
    [
        ({}, 8, []),
        ({"ours": 0.0099, "orca": 0.02}, 8, []),
        ({"ours": 0.0101, "orca": 0.02}, 8, ["QCE", "any rate"]),
        ({"ours": 0.0061}, 8, ["ORCA", "any rate"]),
        ({"ours": 0.006}, 8, []),
        ({"ours": 0.0061}, 1, []),
        ({"ours": 0.0061}, 2, ["ORCA", "any rate"]),
        ({"orca": 0.02, "ours": 0.0129}, 1, ["QCE"]),
        ({"orca": 0.02, "ours": 0.0131}, 1, ["QCE", "paper"]),
        ({"crps": 1.009}, 2, []),
        ({"crps": 1.011}, 1, ["CRPS"]),
        ({"crps": 1.001}, 3, ["CRPS better"]),
        ({"smape": 1.014}, 2, []),
        ({"smape": 1.016}, 1, ["SMAPE"]),
        ({"smape": 1.001}, 3, ["SMAPE better"]),
    ],
)
def test_each_target_is_met_or_missed_where_it_should(
    change: dict[str, float], where: int, expected: list[str]
) -> None:
    outcomes = [setting(place, **(change if i < where else {})) for i, place in enumerate(PAPER)]
    assert missed(outcomes) == expected


def claimed(outcomes: list[SettingResult]) -> list[str]:
    return [claim.reproduces for claim in tables.claims(outcomes)]


def test_claims_are_judged_one_by_one() -> None:
    """Isotonic recalibration has a QCE of 0.05 and the expert's SMAPE and CRPS, as ORCA has but for what is given."""
    fine = [setting(place) for place in PAPER]
    # neither SMAPE nor CRPS falls: the first is claimed in 2 settings, the second may not be above the expert's
    assert claimed(fine) == ["yes", "yes", "yes", "no", "yes", "no", "not tested"]
    for change, expected in (
        ({"qce": 0.099}, ["yes", "no", "yes", "no", "no", "no"]),
        ({"qce": 0.101}, ["no", "no", "yes", "no", "no", "no"]),
        ({"smape": 0.219}, ["yes", "yes", "yes", "no", "yes", "no"]),
        ({"smape": 0.221}, ["yes", "yes", "yes", "no", "yes", "no"]),
    ):
        assert claimed([with_orca(fine[0], **change), *fine[1:]])[:6] == expected, change
    assert claimed([*(with_orca(o, smape=0.221) for o in fine[:2]), *fine[2:]])[2] == "no"
    assert claimed([*(with_orca(o, smape=0.19) for o in fine[:2]), *fine[2:]])[3] == "yes"
    assert claimed([with_orca(o, crps=0.99) for o in fine])[5] == "yes"
    said = tables.claims([with_orca(fine[0], qce=0.101), *fine[1:]])
    assert said[0].here == "7 of 8, not on wind/gradient-tree"
    assert said[1].here == "by -1% to 94%"
    # in that setting the other rate would have been better, which nobody knew
    assert said[0].bound == "8 of 8"


def with_orca(outcome: SettingResult, **change: float) -> SettingResult:
    return replace(outcome, orca={**outcome.orca, 0.01: [replace(score, **change) for score in outcome.orca[0.01]]})


def test_comparisons_are_on_the_same_runs() -> None:
    place = ("wind", "network")
    scores = {name: [FAIR] * 3 for name in ALONE}
    scores["ours"] = [replace(FAIR, qce=qce) for qce in (0.02, 0.02, 0.5)]
    scores["expert"] = [replace(FAIR, crps=crps) for crps in (1.0, 2.0, 4.0)]
    outcome = SettingResult(*place, scores, {0.01: [replace(FAIR, qce=0.03, crps=2.0)] * 2}, 0.01, [0.3] * 3)
    assert outcome.gap("ours", outcome.orca[0.01]) == pytest.approx(-0.01)
    assert outcome.relative(outcome.orca[0.01], "crps") == pytest.approx(1.5)


def by_column(table: ResultTable) -> dict[str, list[Any]]:
    return {name: [row[i] for row in table.rows] for i, name in enumerate(table.columns)}


def test_tables_show_means_and_spread() -> None:
    outcomes = [setting(place) for place in PAPER]
    rates = by_column(tables.rate_table(outcomes))
    assert rates["ORCA 0.1"] == pytest.approx([0.01] * 8)
    assert rates["lowest, known afterwards"] == pytest.approx([0.006] * 8)
    rule = by_column(tables.rule_table(outcomes))
    assert rule["chosen"] == ["yes", ""]
    assert rule["QCE, first half"] == pytest.approx([0.1, 0.1])
    assert rule["QCE, all rounds"] == pytest.approx([0.006, 0.01])
    whole = by_column(tables.full_table(outcomes, FULL))
    assert whole["method"][:8] == [*ALONE[:-1], "ORCA 0.01", "ORCA 0.1", "ours"][:8]
    place = whole["method"].index("ORCA 0.1")
    assert whole["runs"][place] == 2
    assert whole["QCE sd"][place] == pytest.approx(0.004 / np.sqrt(2.0))
    assert whole["QCE sd"][0] is None
    assert whole["CRPS / expert's"][place + 1] == pytest.approx(0.8)
    times = by_column(tables.time_table(outcomes))
    assert times["method"] == [*list(methods.METHODS)[:-1], "ORCA 0.01", "ORCA 0.1", "ours"]


def test_the_paper_stands_beside_ours() -> None:
    table = by_column(tables.paper_table([setting(place) for place in PAPER]))
    assert table["forecaster"][:4] == ["gradient tree", "+ isotonic", "+ ORCA", "+ ours"]
    assert table["paper's wind QCE"][:4] == [0.163, 0.246, 0.013, None]
    assert table["paper's sunspots SMAPE"][-5:] == [0.534, 1.016, 0.576, None, None]
    assert table["wind QCE"][:4] == pytest.approx([0.1, 0.05, 0.006, 0.004])
    assert table["forecaster"][-1] == "last outcome"
    assert [table[f"{name} QCE"][-1] for name in ("wind", "paper's wind")] == [0.05, None]


def test_bold_and_underlined_are_those_of_the_paper() -> None:
    """As its table is printed, three underlines further than 10% from the best among them."""
    shown = tables.paper_table([setting(place) for place in PAPER]).shown({"bold": "B{}", "underline": "U{}"})
    theirs = [[row[2], row[4], row[6], row[8]] for row in shown]
    assert theirs[:3] == [
        ["0.163", "B0.403", "0.100", "B0.505"],
        ["0.246", "0.554", "0.242", "1.081"],
        ["B0.013", "U0.405", "B0.045", "U0.513"],
    ]
    assert theirs[4:7] == [
        ["0.142", "B0.353", "U0.048", "B0.447"],
        ["0.121", "0.567", "0.147", "1.061"],
        ["B0.083", "0.397", "B0.042", "U0.453"],
    ]
    assert theirs[8:11] == [
        ["0.212", "0.545", "0.072", "B0.432"],
        ["0.186", "B0.428", "0.116", "1.061"],
        ["B0.016", "U0.431", "B0.040", "U0.479"],
    ]
    assert theirs[12:15] == [
        ["0.126", "0.545", "U0.046", "B0.534"],
        ["0.094", "B0.359", "0.084", "1.016"],
        ["B0.017", "U0.391", "B0.040", "U0.576"],
    ]
    # ours takes no part, and figures that are alike are all best
    assert [row[1] for row in shown[:4]] == ["0.1000", "0.0500", "B0.0060", "0.0040"]
    assert [row[3] for row in shown[:4]] == ["B0.200", "B0.200", "B0.200", "0.160"]


def test_learning_curves_are_geometric_means_over_the_experts() -> None:
    one, other = setting(("wind", "network")), setting(("wind", "marginal"))
    early = replace(FAIR, so_far=(SoFar(20, 0.2, 1.0), *FAIR.so_far[1:]))
    other = replace(other, scores={**other.scores, "isotonic": [early]})
    error, score = (by_column(table) for table in tables.learning_tables([one, other]))
    assert error["method"][:3] == ["a perfect forecaster", "expert", "last outcome"]
    assert error["T = 20"][0] == pytest.approx(16.665 / 20)
    assert error["T = 20"][error["method"].index("isotonic")] == pytest.approx(0.4)
    assert score["T = 20"][score["method"].index("isotonic")] == pytest.approx(0.5**0.5)
    assert set(error["method"]) == {"a perfect forecaster", *ALONE, "ORCA"}


def test_the_first_rounds_are_scored_as_if_they_were_all() -> None:
    stream = toy(60)
    q = stream.quantile(GRID)
    score = runs.measure(q, stream.y, low=0.0, high=10.0, window=30)
    assert [each.rounds for each in score.so_far] == [20, 30, 50, 60]
    for t, error, crps in score.so_far:
        short = runs.measure(q[:t], stream.y[:t], low=0.0, high=10.0, window=10)
        assert (error, crps) == pytest.approx((short.qce, short.crps))
    assert score.half == score.after(30)


def test_the_last_outcome_knows_nothing_later() -> None:
    series = data.load("humidity")
    one = learners.last_outcome(series, steps=40, warmup=60)
    values = series.values.copy()
    values[100:] = 100.0 - values[100:]
    two = learners.last_outcome(replace(series, values=values), steps=40, warmup=60)
    assert np.array_equal(one.quantile(GRID)[:17], two.quantile(GRID)[:17])
    assert not np.array_equal(one.quantile(GRID)[17], two.quantile(GRID)[17])


def test_figures_of_the_paper_agree_with_what_it_says_of_them() -> None:
    """Section 6.1: QCE falls by 13% to 92%, SMAPE falls in 2 of 8, isotonic recalibration has always more QCE."""
    falls = [1.0 - row["ORCA"][0] / row["expert"][0] for row in PAPER.values()]
    assert (min(falls), max(falls)) == pytest.approx((0.125, 0.925), abs=1e-3)
    # it says that SMAPE rises by less than 10% in 7 of 8; by its table in 6
    assert sum(row["ORCA"][1] < 1.1 * row["expert"][1] for row in PAPER.values()) == 6
    assert sum(row["ORCA"][1] < row["expert"][1] for row in PAPER.values()) == 2
    assert all(row["isotonic"][0] > row["ORCA"][0] for row in PAPER.values())


def test_figures_of_other_lengths_are_not_put_beside() -> None:
    outcomes = [setting(place) for place in PAPER]
    short = [replace(outcome, steps=QUICK.steps) for outcome in outcomes]
    for some, there in ((outcomes, True), (short, False)):
        table = by_column(tables.paper_table(some))
        beside = [value for name, values in table.items() if "paper" in name for value in values]
        assert any(value is not None for value in beside) == there
        assert (tables.target_table(some).rows[3][2] != "") == there


# --- the experiment ---


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(experiment, "QUICK", TINY)
    monkeypatch.delenv(data.VARIABLE, raising=False)
    return


@needs_matplotlib
def test_a_small_run_gives_all_tables_and_figures(small: None, tmp_path: Path) -> None:
    result = experiment.run(quick=True, workers=1)
    assert [table.name for table in result.tables] == [
        "recalibration_targets",
        "recalibration_chance",
        "recalibration_paper",
        "recalibration_rule",
        "recalibration_rates",
        "recalibration",
        "recalibration_learning",
        "recalibration_learning_crps",
        "recalibration_time",
    ]
    assert set(by_column(result.tables[5])["series"]) == {"wind-haute-borne", "sunspots-zurich"}
    # figures of other series are not put beside the paper's
    assert "Stand-ins" in result.notes[0]
    beside = [name for name in result.tables[2].columns if "paper" in name]
    assert all(value is None for name in beside for value in by_column(result.tables[2])[name])
    assert result.tables[0].rows[3][1:] == ("another series or length: not comparable", "")
    assert sum(path.suffix == ".csv" for path in result.write(tmp_path)) == 9
    pictures = {f"recalibration_{name}.png" for name in ("qce", "crps", "learning")}
    assert {path.name for path in tmp_path.glob("*.png")} == pictures
    again = experiment.run(quick=True, workers=1)
    assert result.tables[:-1] == again.tables[:-1]
    assert result.notes == again.notes
    again.write(tmp_path / "again")
    for name in (*sorted(pictures), "recalibration.csv"):
        assert (tmp_path / name).read_bytes() == (tmp_path / "again" / name).read_bytes(), name
    other = experiment.run(quick=True, workers=1, seed=5)
    assert other.tables[4] != result.tables[4]


@needs_matplotlib
def test_figures_hold_every_method_in_every_setting() -> None:
    outcomes, perfect = [setting(place) for place in PAPER], runs.chance(1000, forecasters=1)
    figure = figures.qce_figure(outcomes, perfect)
    for axes, series in zip(figure.axes, ("wind", "sunspots"), strict=True):
        points = [line for line in axes.lines if line.get_marker() not in ("None", None, "x", "")]
        assert len(points) == 4 * len(figures.MARKERS)
        paper = sorted(float(line.get_xdata()[0]) for line in axes.lines if line.get_marker() == "x")  # type: ignore[index, arg-type]
        assert paper == sorted(PAPER[place]["ORCA"][0] for place in PAPER if place[0] == series)
    figure = figures.trade_figure(outcomes, perfect)
    for axes in figure.axes:
        assert len([line for line in axes.lines if line.get_marker() not in ("None", None, "")]) == 4 * len(
            figures.MARKERS
        )


@pytest.mark.slow
@needs_learners
@needs_matplotlib
def test_the_quick_run_does_not_depend_on_the_number_of_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(data.VARIABLE, raising=False)
    one, two = (experiment.run(quick=True, workers=workers) for workers in (1, 2))
    assert one.tables[:-1] == two.tables[:-1]


@pytest.mark.slow
@needs_learners
@needs_data
@pytest.mark.parametrize("learner", learners.LEARNERS)
@pytest.mark.parametrize("name", experiment.SERIES)
def test_ours_reaches_what_it_must_on_the_real_series(name: str, learner: str) -> None:
    stream = learners.stream(data.load(name), learner)
    bounds = {"low": stream.low, "high": stream.high}
    q, _ = runs.play(stream, methods.METHODS["ours"](stream.low, stream.high))
    ours = runs.measure(q, stream.y, **bounds)
    expert = runs.measure(stream.quantile(GRID), stream.y, **bounds)
    assert ours.qce <= tables.MOST_QCE
    assert ours.qce < PAPER[name, learner]["ORCA"][0]
    assert ours.crps < expert.crps
    assert ours.smape < tables.MORE_SMAPE * expert.smape
