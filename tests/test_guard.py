"""Shadow and guarded recalibration: what is published, and the e-process that switches it."""

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import orcast as oc
from helpers import SENTENCE
from orcast import guard, persistence
from orcast.kernels import records

Array = NDArray[np.float64]

SPACES = {
    "line": (oc.Line(), lambda rng: oc.Normal(rng.normal(), 0.5), lambda rng: rng.normal()),
    "interval": (oc.Interval(0, 1), lambda rng: {0.1: 0.0, 0.5: rng.random(), 0.9: 1.0}, lambda rng: rng.random()),
    "half line": (oc.HalfLine(0), lambda rng: oc.Normal(1.0, 0.3), lambda rng: rng.exponential()),
    "events": (oc.Binary(), lambda rng: rng.random(), lambda rng: int(rng.random() < 0.3)),
    "labels": (oc.Labels(["a", "b", "c"]), lambda rng: rng.dirichlet([1.0] * 3), lambda rng: "abc"[rng.integers(3)]),
    "circle": (oc.Circle(8.0, cells=8), lambda rng: rng.dirichlet([1.0] * 8), lambda rng: float(rng.integers(8))),
}


def numbers(p: Any) -> Array:
    """A forecast as numbers."""
    return np.concatenate((p.left, p.right, p.mass)) if isinstance(p, oc.Forecast) else p.mass


@pytest.mark.parametrize("name", SPACES)
def test_shadow_publishes_the_base_forecast_and_runs_beside_it(name: str) -> None:
    space, base, outcome = SPACES[name]
    rng = np.random.default_rng(1)
    shadow, direct = oc.Recalibrator(space, mode="shadow"), oc.Recalibrator(space)
    for t in range(30):
        given, y = base(rng), outcome(rng)
        p, q = shadow.predict(given, id=t), direct.predict(given, id=t)
        assert p.certificate is None
        assert np.array_equal(numbers(shadow.recalibrated(t)), numbers(q))
        assert shadow.recalibrated(t).certificate == q.certificate
        if isinstance(space, oc.Line):
            levels = np.array([0.01, 0.02, 0.1, 0.5, 0.99])
            assert p.quantile(levels) == pytest.approx(given.mean + given.sd * oc.spaces.normal_scores(levels))
        elif isinstance(given, dict):
            assert p.quantile(list(given)) == pytest.approx(list(given.values()), abs=0.005)
        elif not isinstance(space, oc.HalfLine):
            assert p.mass == pytest.approx(given if np.ndim(given) else [1.0 - given, given])
        shadow.update(y, id=t)
        direct.update(y, id=t)
    assert shadow.guarantee == direct.guarantee
    assert shadow.guard.text().startswith("shadow: publishes the base forecast since round 1; evidence for the recal")
    assert (shadow.guard.publishes, shadow.guard.rounds, direct.guard) == ("base", 30, None)
    if name != "circle":
        assert shadow.monitor.output.evidence == direct.monitor.output.evidence


@pytest.mark.parametrize("name", SPACES)
def test_scores_differ_by_at_most_the_bound_known_before(name: str) -> None:
    space, base, outcome = SPACES[name]
    rng = np.random.default_rng(2)
    recal = oc.Recalibrator(space)
    for _ in range(20):
        recal.predict(base(rng))
        record = recal.rounds.pending[None].record
        found = [guard.scores_of(space, record, space.outcome(outcome(rng))) for _ in range(20)]
        assert len({each.bound for each in found}) == 1
        for each in found:
            assert each.difference == pytest.approx(each.base - each.recalibrated, abs=1e-12)
            assert abs(each.difference) <= each.bound * (1.0 + 1e-12) + 1e-15
        recal.update(outcome(rng))


def test_scores_follow_the_definitions() -> None:
    recal = oc.Recalibrator(oc.Line(), mode="shadow")
    base, levels = recal.predict(oc.Normal(0.0, 1.0)), oc.Line().levels
    ours = recal.recalibrated()
    found = guard.scores_of(recal.space, recal.rounds.pending[None].record, 0.7)
    assert np.allclose(base.quantile([0.1, 0.9]), [-1.2815515, 1.2815515])
    for score, q in ((found.base, oc.Line().scores), (found.recalibrated, ours.quantile(levels))):
        assert score == pytest.approx(np.mean((levels - (q > 0.7)) * (0.7 - q)), abs=1e-12)
    events = oc.Recalibrator(oc.Binary(), mode="shadow")
    for y in (1, 1, 1):
        events.predict(0.2)
        events.update(y)
    assert events.guard.base == pytest.approx(2 * 0.8**2)
    assert events.guard.recalibrated < events.guard.base


def test_guard_never_leaves_a_perfect_base_forecast() -> None:
    switched = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        level, recal = rng.normal(size=200), oc.Recalibrator(oc.Line(), mode="guarded")
        recal.run([oc.Normal(mean, 1.0) for mean in level], level + rng.normal(size=200))
        switched += recal.guard.switches > 0
    assert switched <= 10


def test_guard_switches_to_the_better_forecast_and_back(tmp_path: Path) -> None:
    """The base forecast is too low and too narrow for 600 rounds, then perfect; copies and files go on alike."""
    rng = np.random.default_rng(3)
    y = rng.normal(size=3600)
    y[:600] = 3.0 + 3.0 * y[:600]
    base = [oc.Normal(0.0, 1.0)] * y.size
    recal = oc.Recalibrator(oc.Line(), mode="guarded")
    first = recal.run(base[:600], y[:600], detailed=True)
    assert (recal.guard.publishes, recal.guard.switches) == ("recalibrated", 1)
    assert recal.guard.since < 200
    assert first.base.sum() == recal.guard.since - 1
    recal.save(tmp_path / "state")
    others = [copy.deepcopy(recal), pickle.loads(pickle.dumps(recal)), oc.Recalibrator.load(tmp_path / "state")]
    second = recal.run(base[600:], y[600:], detailed=True)
    assert (recal.guard.publishes, recal.guard.switches) == ("base", 2)
    assert recal.guard.since - 601 == np.flatnonzero(second.base)[0]
    for other in others:
        rows = []
        for value in y[600:1000].tolist():
            rows.append(other.predict(base[0]).quantile(np.arange(1, 100) / 100.0))
            other.update(value)
        assert np.array_equal(rows, second.rows[:400])
    assert np.allclose(second.rows[second.base], oc.spaces.normal_scores(np.arange(1, 100) / 100.0))


def test_rounds_from_before_a_switch_and_rounds_without_a_difference_change_no_evidence() -> None:
    state = guard.GuardState(guarded=True)
    for t in range(100):
        state.put(guard.Scores(1.0, 0.0, 1.0, 1.0), t, t + 1)
        if state.ours:
            break
    first = int(state.numbers[guard.SINCE])
    assert first == t + 2
    assert state.evidence == 1.0
    state.put(guard.Scores(0.0, 1.0, -1.0, 1.0), first - 2, first + 5)  # issued before the switch
    state.put(guard.Scores(1.0, 1.0, 0.0, 0.0), first, first + 6)
    assert state.evidence == 1.0
    state.put(guard.Scores(0.0, 1.0, -1.0, 1.0), first - 1, first + 7)
    assert state.evidence > 1.0
    assert state.watcher.state[records.ROUNDS] == 1.0


def test_evidence_is_at_most_one_on_average_where_ours_is_not_better() -> None:
    """With outcomes in any order, whichever round is looked at: mean of the e-process at the end of 4,000 streams."""
    rng, ends = np.random.default_rng(4), []
    for _ in range(4000):
        state = guard.GuardState(guarded=False)
        lags = rng.integers(0, 4, 12)
        order = np.argsort(np.arange(12) + lags + 0.5, kind="stable")
        for t in order.tolist():
            state.put(guard.Scores(0.0, 0.0, float(rng.choice([-0.9, 0.9])), 1.0), t, t + 1 + int(lags[t]))
        ends.append(state.evidence)
    assert np.mean(ends) <= 1.0 + 3.0 * np.std(ends) / np.sqrt(len(ends))
    assert np.max(ends) > 1.5


@pytest.mark.parametrize(
    "damage",
    [
        lambda row: row.__setitem__(guard.OURS, 0.5),
        lambda row: row.__setitem__(guard.SWITCHES, 1.0),
        lambda row: row.__setitem__(guard.BASE_SUM, np.nan),
        lambda row: row.__setitem__(guard.START + records.EVIDENCE, np.inf),
    ],
)
def test_damaged_guards_are_refused(damage: Any) -> None:
    recal = oc.Recalibrator(oc.Binary(), mode="guarded")
    recal.run([0.3] * 5, [0, 1, 0, 0, 1])
    header, arrays = persistence.state_of(recal)
    damage(arrays["monitor/2"])
    with (
        pytest.raises(ValueError, match="expected a state that this version can use"),
        persistence.reading(persistence.encode(header, arrays), "Recalibrator") as (header, arrays, _),
    ):
        persistence.recal_from(header, arrays, oc.Recalibrator)


def test_other_modes_are_refused() -> None:
    with pytest.raises(ValueError, match=SENTENCE):
        oc.Recalibrator(oc.Binary(), mode="live")
