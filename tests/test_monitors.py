"""Monitors: e-processes and the detector of changes against slow definitions, and as they are used."""

import copy
import itertools
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy.special import ndtr
from scipy.stats import norm, poisson

import orcast as oc
from helpers import SENTENCE
from orcast import monitors, persistence
from orcast.adapters import expert_row
from orcast.kernels import monitor as kernel
from orcast.kernels import records
from orcast.monitors import SPREAD_STARTS, Monitor, bets_for, false_discovery_alarms, late_lanes, pit_of, pit_rows

Array = NDArray[np.float64]
KNOTS = monitors.KNOTS


def densities() -> tuple[Array, Array, Array]:
    """Bets of PITs (a column each), weights, and least values."""
    bets = bets_for("pit", 0.9, (1.0,))
    table, _, prior, least, *_ = bets.kept
    return table.reshape(KNOTS + 1, -1)[:, : bets.count], prior, least


def mean_over(low: float, high: float) -> Array:
    """Mean of each bet over an interval, by the trapezoidal rule on the knots inside and both ends."""
    table, _, _ = densities()
    at = np.unique(np.concatenate(([low, high], np.arange(KNOTS + 1) / KNOTS)).clip(low, high))
    values = np.array([np.interp(at, np.arange(KNOTS + 1) / KNOTS, column) for column in table.T])
    return values[:, 0] if high == low else np.trapezoid(values, at, axis=1) / (high - low)


def least_mean(ends: Array) -> Array:
    """Least mean of each bet over the intervals with these ends, by the corners."""
    corners = [(a, b) for a in ends[:2] for b in ends[2:] if a < b] or [(ends[0], ends[-1])]
    return np.min([mean_over(*corner) for corner in corners], axis=0)


def evidence_by_definition(rows: Array, horizon: int) -> Array:
    """Average over the classes of rounds, and over starts and bets, of products since the start."""
    _, prior, least = densities()
    found = []
    for t in range(1, len(rows) + 1):
        evidence = 0.0
        for lane in range(horizon):
            own = [least_mean(row) for row in rows[lane:t:horizon]]
            starts = np.diff(-np.log(3.0) / np.log(np.arange(3, len(own) + 3.0)))
            weights = np.concatenate(([1.0 - SPREAD_STARTS], SPREAD_STARTS * starts))
            rest = 1.0 - weights.sum() if len(own) else SPREAD_STARTS
            product = sum(w * np.prod(own[j:], axis=0) * prior for j, w in enumerate(weights))
            outstanding = horizon > 1 and lane != (t - 1) % horizon
            evidence += (np.sum(product * (least if outstanding else 1.0)) + rest) / horizon
        found.append(evidence)
    return np.array(found)


def intervals(seed: int, count: int) -> Array:
    """PITs, half of them intervals."""
    rng = np.random.default_rng(seed)
    low, wide = rng.random(count), rng.random(count) * (rng.random(count) < 0.5)
    return np.stack([low, np.minimum(low + wide, 1.0)], axis=1)


def loose_ends(seed: int, count: int) -> Array:
    """PITs, intervals, and intervals whose ends are only known to lie between two levels; some contain a point."""
    rows = np.sort(np.random.default_rng(seed).random((count, 4)), axis=1)
    rows[::4] = intervals(seed, count)[::4, [0, 0, 1, 1]]
    rows[1::4, 1] = rows[1::4, 2]
    rows[2::4, 0] = rows[2::4, 1]
    return rows


@pytest.mark.parametrize("horizon", [1, 3])
def test_evidence_is_the_average_of_all_starts_bets_and_classes(horizon: int) -> None:
    rows = loose_ends(horizon, 25)
    found = Monitor(horizon=horizon).add("pit", rows)[:, 0]
    np.testing.assert_allclose(found, evidence_by_definition(rows, horizon))


def test_bets_on_true_quantiles_of_discrete_forecasts_expect_at_most_one() -> None:
    """Exact expectations over the outcomes, with atoms that several quantiles share or that none has."""
    rng = np.random.default_rng(0)
    worst = []
    for _ in range(300):
        mass = rng.dirichlet(np.full(rng.integers(1, 9), 0.6))
        levels = np.sort(rng.random(rng.integers(1, 8)))
        quantiles = np.searchsorted(np.cumsum(mass)[:-1], levels)
        values = np.arange(mass.size)
        pits = pit_rows("quantiles", np.tile(quantiles, (mass.size, 1)), levels, values.astype(float))
        worst.append(max(mass @ np.array([least_mean(row) for row in pits])))
    assert max(worst) <= 1.0 + 1e-9
    assert max(worst) > 0.999


LEVELS = {
    3: [0.1, 0.5, 0.9],
    5: [0.05, 0.25, 0.5, 0.75, 0.95],
    9: np.arange(1, 10) / 10,
    23: [0.01, 0.025, *(np.arange(1, 20) / 20), 0.975, 0.99],
}
COUNTS = {f"Poisson({mean})": (poisson(mean), poisson(1.5 * mean)) for mean in (0.5, 2, 5, 20)}


@pytest.mark.parametrize("number", LEVELS)
def test_counts_and_censored_outcomes_by_few_quantiles(number: int) -> None:
    """True quantiles raise no more alarms than alpha; a mean that is wrong by half is found."""
    rng, levels, size = np.random.default_rng(number), np.array(LEVELS[number]), (40, 800)
    streams = {name: (forecast.ppf(levels), forecast, other) for name, (forecast, other) in COUNTS.items()}
    streams["censored"] = np.maximum(norm(0.3).ppf(levels), 0.0), norm(0.3), norm(0.9)
    for right in (True, False):
        parts = []
        for name, (q, *sides) in streams.items():
            y = np.maximum(sides[not right].rvs(size, random_state=rng), 0.0)
            columns = {f"m-q-{level}": value for level, value in zip(levels, q, strict=True)}
            at = {
                "unique_id": np.repeat([f"{name}/{k}" for k in range(size[0])], size[1]),
                "ds": [*range(size[1])] * size[0],
            }
            parts.append(pd.DataFrame({**at, "y": y.ravel(), **columns}))
        found = oc.monitor(pd.concat(parts)).set_index("series")
        ever = (found["since"].astype(str) != "").groupby(found.index.str.split("/").str[0]).mean()
        if right:
            assert (ever <= 0.05).all()
        else:
            # five levels nearly fit the larger mean too: only the share of zeros differs, by 0.03
            assert (ever.drop("Poisson(0.5)" if number == 5 else []) > 0.6).all()
            assert set(found.loc[found["kind"] != "", "kind"]) == {"too low"}
        for name, (q, *_) in streams.items():
            monitor, own = Monitor(), parts[list(streams).index(name)]["y"].to_numpy()[: size[1]]
            monitor.update([dict(zip(levels.tolist(), q.tolist(), strict=True))] * size[1], own)
            assert monitor.evidence == pytest.approx(found.loc[f"{name}/0", "evidence"])


def test_forecasts_are_read_as_they_are_given() -> None:
    """Ranks among members, levels that were given, and the jump of a cdf; none is completed by guessed tails."""
    line = oc.Line()
    assert pit_of(oc.Ensemble([3.0, 1.0, 2.0]), 2.0, line).tolist() == [0.25, 0.25, 0.75, 0.75]
    assert pit_of(oc.Quantiles([0.1, 0.5, 0.9], [1, 2, 2]), 2.0, line).tolist() == [0.1, 0.5, 0.9, 1.0]
    assert pit_of(poisson(2.0), 3.0, line) == pytest.approx(poisson(2.0).cdf([2, 2, 3, 3]))
    assert pit_of(oc.Normal(1.0, 2.0), 2.0, line) == pytest.approx(ndtr(np.full(4, 0.5)))
    assert pit_of(oc.Normal(1.0, 0.0), 1.0, line)[[0, -1]].tolist() == [0.0, 1.0]
    with pytest.raises(TypeError, match="an ensemble of numbers"):
        pit_of(oc.Ensemble([[1.0, 2.0]]), 1.0, line)
    rng, alarms = np.random.default_rng(0), 0
    for _ in range(40):
        z, ensembles, quantiles = rng.normal(size=(300, 11)), Monitor(), Monitor()
        ensembles.update([oc.Ensemble(row) for row in z[:, 1:]], z[:, 0])
        quantiles.update([{a: -np.log1p(-a) for a in (0.1, 0.5, 0.9)}] * 300, rng.exponential(size=300))
        alarms += (ensembles.miscalibrated is not None) + (quantiles.miscalibrated is not None)
    assert alarms <= 0.05 * 80


@pytest.mark.parametrize("given", ["pit", "event", "scores"])
def test_evidence_is_a_martingale_under_calibration(given: str) -> None:
    """Exact expectations over all outcomes of three rounds."""
    p = (0.2, 0.7, 0.01)
    ends = [np.array([0.0, 0.003, 0.2, 0.55, 0.9, 1.0]), np.array([0.0, 0.5, 0.999, 1.0]), np.linspace(0, 1, 5)]
    mean = 0.0
    for outcome in itertools.product(*(range(2 if given != "pit" else len(each) - 1) for each in ends)):
        monitor, weight = Monitor(score_range=2.0), 1.0
        for t, k in enumerate(outcome):
            if given == "pit":
                low, high = ends[t][k : k + 2]
                weight *= high - low
                monitor.update(pit=(low, high))
            elif given == "event":
                weight *= p[t] if k else 1.0 - p[t]
                monitor.update(probability=p[t], event=k)
            else:  # a skewed difference of mean 0
                weight *= (0.25, 0.75)[k]
                monitor.update(score_a=(1.2, -0.4)[k], score_b=0.0)
        mean += monitor.evidence * weight
    assert abs(mean - 1.0) < 1e-9


def test_ranks_are_uniform_whatever_the_exchangeable_pits_are() -> None:
    """The detector's mean evidence after n rounds is at most n, however far the PITs are from uniform."""
    rng = np.random.default_rng(0)
    draws = rng.beta(0.3, 2.0, (3_000, 40)).repeat(4).reshape(3_000, 40, 4)
    ends = np.array([Monitor(run_length=1e12, seed=k).add("pit", u)[[7, -1], 1] for k, u in enumerate(draws)])
    assert 2.0 < ends[:, 0].mean() <= 8.0
    assert (ends[:, 1] >= 40.0 / 0.05).mean() < 0.05


def moving_average(rng: np.random.Generator, rounds: int, horizon: int) -> Array:
    """PITs of calibrated forecasts `horizon` steps ahead, whose errors overlap."""
    shocks = rng.standard_normal(rounds + horizon - 1)
    sums = np.convolve(shocks, np.ones(horizon), "valid")
    return np.asarray(ndtr(sums / np.sqrt(horizon)))


@pytest.mark.parametrize("horizon", [1, 12])
def test_false_alarms_are_rare_however_often_one_looks(horizon: int) -> None:
    rng = np.random.default_rng(horizon)
    ever = changed = 0
    for _ in range(300):
        alarmed = Monitor(horizon=horizon, run_length=1e5)
        alarmed.update(pit=moving_average(rng, 2_000, horizon))
        ever += alarmed.miscalibrated is not None
        changed += alarmed.changed is not None
    assert ever <= 0.05 * 300
    assert changed <= 0.02 * 300


FAULTS = {
    "too low": lambda z: z + 0.8,
    "too high": lambda z: z - 0.8,
    "too narrow": lambda z: 1.7 * z,
    "too wide": lambda z: 0.5 * z,
    "upper tail too short": lambda z: -np.log(ndtr(-z)) - 1.0,
    "tails too short": lambda z: np.where(np.abs(z) < 0.9, 0.55 * z, 1.5 * z),
}


@pytest.mark.parametrize("kind", FAULTS)
def test_an_alarm_names_the_kind_the_begin_and_the_size(kind: str) -> None:
    z = np.random.default_rng(5).standard_normal(1_600)
    z[800:] = FAULTS[kind](z[800:])
    monitor = Monitor()
    monitor.update(pit=ndtr(z))
    for alarm in (monitor.miscalibrated, monitor.changed):
        assert alarm is not None
        assert alarm.round > 800
        assert alarm.earliest <= alarm.since <= alarm.latest
        assert alarm.earliest <= 801 + 40
        assert alarm.latest >= 801 - 40
    ever = monitor.miscalibrated
    assert ever is not None
    assert ever.kind == kind
    assert not ever.ended
    assert abs(ever.coverage - np.mean(np.abs(z[800:]) < 1.645)) < 0.03
    assert f"{ever.coverage:.0%}" in ever.text()
    assert "since March" in ever.text(lambda _: "March")


def test_change_is_relative_to_the_past_and_can_come_again() -> None:
    """A wrong spread from the start is no change; its repair is one."""
    z = np.random.default_rng(1).standard_normal(3_000)
    z[:1_000] *= 2.0
    z[2_000:] += 1.5
    monitor = Monitor(run_length=100_000)
    monitor.update(pit=ndtr(z[:1_000]))
    assert monitor.changed is None
    assert monitor.miscalibrated is not None
    for end, kind in ((2_000, "too wide"), (3_000, "too low")):
        monitor.update(pit=ndtr(z[monitor.rounds : end]))
        assert monitor.changed is not None
        assert (monitor.changed.kind, abs(monitor.changed.since - end + 999) < 30) == (kind, True)


def test_one_call_equals_many_and_a_state_continues(tmp_path: Path) -> None:
    rows = intervals(3, 2_500)
    whole, single = Monitor(horizon=2, groups=["a", "b"]), Monitor(horizon=2, groups=["a", "b"])
    whole.update(pit=rows, group="a")
    for i, (low, high) in enumerate(rows.tolist()):
        single.update(pit=(low, high), group="a")
        if i == 700:
            single.save(tmp_path / "monitor.orcast")
            single = Monitor.load(tmp_path / "monitor.orcast")
        if i == 1_900:
            single = pickle.loads(pickle.dumps(single))
    assert repr(whole) == repr(single)
    for a, b in zip(whole._rows, single._rows, strict=True):
        assert a.state.tobytes() == b.state.tobytes()
    points, one = np.random.default_rng(0).random(1_500), Monitor()
    for u in points.tolist():
        one.update(pit=u)
    again = Monitor()
    again.update(pit=points)
    assert one._rows[0].state.tobytes() == again._rows[0].state.tobytes()


def test_state_is_small() -> None:
    monitor = Monitor()
    monitor.update(pit=np.random.default_rng(0).random(10))
    assert monitor._plain()[1].nbytes <= 1024


def test_forecasts_with_outcomes() -> None:
    rng = np.random.default_rng(0)
    y = rng.normal(12.0, 2.0, 80)
    monitor, labels = Monitor(space=oc.HalfLine(0)), Monitor(space=oc.Labels(["a", "b", "c"]))
    monitor.update([oc.Normal(10.0, 2.0)] * 40, y[:40])
    for each in y[40:]:
        monitor.update({0.1: 7.4, 0.5: 10.0, 0.9: 12.6}, each)
    assert monitor.miscalibrated is not None
    assert monitor.miscalibrated.kind == "too low"
    for _ in range(60):
        labels.update({"a": 0.6, "b": 0.3, "c": 0.1}, "c")
    assert labels.miscalibrated is not None


def test_bands_events_scores_and_groups() -> None:
    rng = np.random.default_rng(0)
    band, event, scores = Monitor(), Monitor(groups=["day", "night"]), Monitor(score_range=1.0)
    band.update(covered=rng.random(300) < 0.7)
    assert "covers 6" in band.miscalibrated.text()  # type: ignore[union-attr]
    assert band.miscalibrated.kind == "too narrow"  # type: ignore[union-attr]
    for _ in range(30):
        event.update(probability=np.full(10, 0.3), event=rng.random(10) < 0.3, group="day")
        event.update(probability=np.full(10, 0.3), event=rng.random(10) < 0.55, group="night")
    named = [alarm for alarm in event.alarms if alarm.question == "miscalibrated"]
    assert {"night"} <= {alarm.group for alarm in named} <= {None, "night"}
    assert "percentage points more often" in named[-1].text()
    scores.update(score_a=rng.random(500), score_b=0.7 * rng.random(500))
    assert scores.miscalibrated.kind == "the first is worse"  # type: ignore[union-attr]
    scores.update(score_a=[1.1, 1e6 + 1.0], score_b=[0.1, 1e6])  # rounding


def given(**inputs: Any) -> dict[str, Any]:
    return inputs


@pytest.mark.parametrize(
    "inputs",
    [
        given(),
        given(pit=1.2),
        given(pit=float("nan")),
        given(pit=(0.7, 0.2)),
        given(pit=0.5, probability=0.3),
        given(probability=0.5),
        given(probability=0.5, event=2),
        given(probability=[0.5, 0.2], event=[1]),
        given(forecast=3.0),
        given(score_a=1.0, score_b=0.0),
        given(covered=0.5),
        given(pit=0.5, group="unknown"),
        given(probability=0.2, event=1),
        given(pit=0.5, event=1),
        given(pit=0.5, outcome=1.0),
        given(event=1),
        given(pit=np.full((3, 4), 0.5)),
    ],
)
def test_bad_input_gets_one_sentence_and_changes_nothing(inputs: dict[str, Any]) -> None:
    monitor = Monitor()
    monitor.update(pit=[0.2, 0.4])
    before = monitor._rows[0].state.tobytes()
    with pytest.raises((TypeError, ValueError), match=SENTENCE):
        monitor.update(**inputs)
    assert monitor._rows[0].state.tobytes() == before


@pytest.mark.parametrize("options", [given(alpha=0.0), given(horizon=0), given(groups="ab"), given(run_length=1)])
def test_bad_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises((TypeError, ValueError), match=SENTENCE):
        Monitor(**options)


def test_false_discovery_alarms_follow_the_definition() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        values = np.exp(rng.normal(2.0, 3.0, rng.integers(1, 12)))
        enough = [k for k in range(1, values.size + 1) if k * np.sort(values)[-k] >= values.size / 0.1]
        assert false_discovery_alarms(values, 0.1).sum() == max(enough, default=0)
        if enough:
            assert values[false_discovery_alarms(values, 0.1)].min() >= np.sort(values)[-max(enough)]


def test_late_outcomes_use_lanes_whose_round_was_known_at_the_issue() -> None:
    """Outcomes in any order: a lane's rounds never overlap, and rounds without a free lane are left out."""
    lanes = late_lanes(3)
    assert sum(late_lanes(50)) <= 1.0
    watcher = monitors.watcher_for("pit", lanes=lanes, change=1e4)
    bets = watcher.bets
    clocks = lambda: watcher.state[records.HEAD + bets.starts :: bets.lane_size].tolist()  # noqa: E731
    sizes = []
    for issued, clock in ((0, 4), (1, 4), (2, 4), (3, 4), (4, 5)):
        kernel.watch([watcher], np.full(4, 0.5), issued, clock)
        sizes.append(watcher.state.size)
    assert sizes == [bets.size(k) for k in (1, 2, 3, 3, 3)]
    assert clocks() == [5.0, 4.0, 4.0]
    assert watcher.state[records.SKIPPED] == 1.0


def test_lanes_that_come_with_need_leave_the_evidence_as_it_is() -> None:
    rng = np.random.default_rng(1)
    lazy = monitors.watcher_for("pit", lanes=late_lanes(5), change=1e4)
    row = np.zeros(lazy.bets.size(5))
    kernel.start_lanes(lazy.bets, row, 0)
    whole = kernel.Watcher(lazy.bets, row, 20.0, 1e4, 1.0, lazy.start)
    for t in range(300):
        u, late = rng.beta(2.0, 1.6), float(rng.integers(0, 4) if t > 100 else 0)
        for watcher in (lazy, whole):
            kernel.watch([watcher], np.full(4, u), t, t + 1 + late)
        for place in (records.EVIDENCE, records.CHANGE_EVIDENCE):
            assert lazy.state[place] == pytest.approx(whole.state[place], rel=1e-12)
    assert 1 < lazy.lanes < 5


# --- recalibrators

SPACES = [
    (oc.Line(), lambda rng: (oc.Normal(rng.normal(), 1.0), rng.normal())),
    (oc.Interval(0, 1), lambda rng: (oc.Normal(rng.random(), 0.3), float(rng.integers(0, 3) / 2))),
    (oc.HalfLine(0), lambda rng: ({0.1: 0.0, 0.5: 0.0, 0.9: 2.0}, max(rng.normal(), 0.0))),
    (oc.Binary(), lambda rng: (rng.random(), int(rng.integers(2)))),
    (oc.Labels(["a", "b", "c"]), lambda rng: (rng.dirichlet([1.0] * 3), "abc"[rng.integers(3)])),
]


@pytest.mark.parametrize(("space", "draw"), SPACES, ids=[str(space) for space, _ in SPACES])
@pytest.mark.parametrize("lag", [0, 3])
def test_monitors_of_a_recalibrator_get_the_pits_of_its_forecasts(space: Any, draw: Any, lag: int) -> None:
    """Twin: PITs by definition, put round by round into a kernel of its own, with the clock of the issues."""
    rng, recal = np.random.default_rng(3), oc.Recalibrator(space)
    twins = [monitors.watcher_for(monitors.kind_on(space), side) for side in range(2)]
    asked = []
    for t in range(60):
        base, y = draw(rng)
        asked.append((recal.predict(base, id=t), base, y))
        if t >= lag:
            p, base, y = asked[t - lag]
            at = space.outcome(y)
            pits = recal.engine.pits(recal.rounds.pending[t - lag].record, at).reshape(-1, 4)
            for watcher, pit, forecast in zip(twins, pits, (p, base), strict=True):
                plain = forecast.mass if isinstance(forecast, oc.forecasts.FiniteForecast) else forecast
                if forecast is base and isinstance(space, oc.spaces.OrderedSpace):  # as it is read
                    plain = oc.Quantiles(space.levels, expert_row(base, space)[0])
                assert pit == pytest.approx(monitors.pit_of(plain, at, space), abs=1e-12)
                kernel.watch([watcher], pit, t - lag, t + 1)
            recal.update(y, id=t - lag)
    for row, twin in zip(recal.rounds.monitor_rows(), twins, strict=True):
        assert np.array_equal(row, twin.state)
    assert recal.monitor.rounds == 60 - lag


@pytest.mark.parametrize(("space", "draw"), SPACES, ids=[str(space) for space, _ in SPACES])
def test_monitors_are_the_same_after_a_run_a_copy_and_a_file(space: Any, draw: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    pairs = [draw(rng) for _ in range(40)]
    recal, other = oc.Recalibrator(space), oc.Recalibrator(space)
    other.run([base for base, _ in pairs[:-1]], [y for _, y in pairs[:-1]])
    for base, y in pairs[:-1]:
        recal.predict(base)
        recal.update(y)
    recal.save(tmp_path / "state")
    before = recal.monitor
    for each in (
        recal,
        other,
        copy.deepcopy(recal),
        pickle.loads(pickle.dumps(recal)),
        oc.Recalibrator.load(tmp_path / "state"),
    ):
        each.peek(pairs[-1][0])
        each.predict(pairs[-1][0])
        each.update(pairs[-1][1])
        for mine, theirs in zip(recal.rounds.monitor_rows(), each.rounds.monitor_rows(), strict=True):
            assert np.array_equal(mine, theirs)
    assert (before.rounds, recal.monitor.rounds) == (39, 40)


def test_monitor_tells_the_input_from_the_output() -> None:
    rng, recal = np.random.default_rng(5), oc.Recalibrator(oc.Line())
    truth = rng.normal(size=(3000, 2))
    for t, (level, error) in enumerate(truth.tolist()):
        recal.predict(experts={"good": oc.Normal(level, 1.0), "bad": oc.Normal(level, 0.5) if t % 2 else None})
        recal.update(level + error)
    found = recal.monitor
    assert found.inputs["bad"].miscalibrated.kind == "too narrow"
    assert found.inputs["bad"].rounds == 1500
    assert found.inputs["good"].miscalibrated is found.output.miscalibrated is None
    assert found.input is found.inputs["bad"]
    assert {(alarm.side, alarm.group) for alarm in found.alarms} == {("input", "bad")}
    assert "input miscalibrated: bad: 90% interval covers" in repr(found)


def test_forecasts_without_an_expert_are_monitored_as_output_alone() -> None:
    recal, rng = oc.Forecaster(oc.Line(), oc.QuantileCalibration()), np.random.default_rng(6)
    for y in rng.normal(size=30).tolist():
        recal.predict()
        recal.update(y)
    assert (recal.monitor.output.rounds, recal.monitor.input.rounds) == (30, 0)


@pytest.mark.parametrize("space", [oc.Circle(8.0), oc.Box([(0, 1), (0, 1)])], ids=repr)
def test_spaces_without_pits_have_no_monitor(space: Any) -> None:
    with pytest.raises(TypeError, match="expected a quantity, an event or labels to monitor, got"):
        _ = oc.Recalibrator(space).monitor


@pytest.mark.parametrize(
    "damage",
    [
        lambda arrays: arrays.pop("monitor/1"),
        lambda arrays: arrays.update({"monitor/1": arrays["monitor/1"][:-1]}),
        lambda arrays: arrays["monitor/0"].__setitem__(records.PEAK_KIND, 9.0),
        lambda arrays: arrays["monitor/0"].__setitem__(records.EVIDENCE, np.inf),
        lambda arrays: arrays.update({"monitor/2": arrays["monitor/1"]}),
    ],
)
def test_damaged_monitors_of_a_recalibrator_are_refused(damage: Any) -> None:
    recal = oc.Recalibrator(oc.Line())
    recal.run([oc.Normal(0.0, 1.0)] * 5, [0.1, 0.2, -1.0, 0.5, 2.0])
    header, arrays = persistence.state_of(recal)
    damage(arrays)
    with (
        pytest.raises(ValueError, match="expected a state that this version can use"),
        persistence.reading(persistence.encode(header, arrays), "Recalibrator") as (header, arrays, _),
    ):
        persistence.recal_from(header, arrays, oc.Recalibrator)
