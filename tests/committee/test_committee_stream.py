"""The whole committee against its definition in numpy, and properties of its information."""

from typing import Any

import numpy as np
import pytest
from runs import LEVELS, SCORES, alone, panel, run, run_panel
from twin import Experts, Pool, Series, Stream

from orcast.committee.state import POOL

ROUNDS = 220


def assert_close(found: Any, expected: Any, tolerance: float = 1e-9) -> None:
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


def data(name: str) -> tuple[Any, Any, tuple[float, float]]:
    """Base quantiles (rounds, experts, levels), outcomes, and the bounds."""
    rng = np.random.default_rng(1)
    t = np.arange(ROUNDS)
    level = 30.0 + np.cumsum(rng.normal(0, 0.5, ROUNDS))
    y = level + 4.0 * np.sin(2 * np.pi * t / 7) * ("season" in name) + rng.standard_t(4, ROUNDS)
    base = (level - 1.0 + 0.5 * rng.normal(size=ROUNDS))[:, None] + 0.6 * SCORES
    if "above" in name:
        # it begins with outcomes at the bound
        return np.maximum(base, 28.0)[:, None, :], np.where(t < 5, 28.0, np.maximum(y, 28.0)), (28.0, np.inf)
    if "degenerate" in name:
        # without spread, and right at first
        return np.repeat(y[np.maximum(t - 1, 6)], 19).reshape(-1, 1, 19), np.where(t < 6, y[6], y), (-np.inf, np.inf)
    if "below" in name:
        return np.minimum(base, 32.0)[:, None, :], np.minimum(y, 32.0), (-np.inf, 32.0)
    experts = base[:, None, :]
    if "experts" in name:
        other = level[:, None] + 2.0 + 1.5 * SCORES
        other[rng.random(ROUNDS) < 0.3] = np.nan
        third = level[:, None] + 1.5 * SCORES
        third[:20] = np.nan
        experts = np.stack([base, other, third], axis=1)
    return experts, y, (-np.inf, np.inf)


@pytest.mark.parametrize(
    "name",
    [
        "plain",
        "late",
        "out of order",
        "above",
        "below",
        "degenerate",
        "season",
        "season late",
        "experts",
        "experts out of order",
    ],
)
def test_stream_matches_its_definition(name: str) -> None:
    base, y, bounds = data(name)
    late = np.full(ROUNDS, 4 if "late" in name else 0)
    if "out of order" in name:
        late = np.random.default_rng(2).integers(0, 8, ROUNDS)
    found = run(alone(base.shape[1], *bounds), base, y, late)
    series = Series((0, 0))
    streams = [Stream(LEVELS, series, *bounds) for _ in range(base.shape[1])]
    experts, stream, memos = Experts(streams), streams[0], {}
    for t in range(ROUNDS):
        if len(streams) > 1:
            q, memos[t] = experts.predict(t, base[t])
        else:
            q, memos[t] = stream.predict(stream.known(t, base[t, 0]), base[t, 0])
        # at first the spread of the degenerate one is 1e-9 of its values, where processors round differently
        assert_close(found[t], q, 1e-5 if name == "degenerate" else 1e-9)
        for s in np.flatnonzero(np.arange(ROUNDS) + late == t):
            (experts if len(streams) > 1 else stream).update(memos.pop(s), y[s], t - s)
            if len(streams) == 1:
                series.observe(s, stream.working(y[s]))
    assert ("season" in name) == (series.seasons[0] == 7)


def pooled_data(times: int = 90, count: int = 4) -> tuple[list[tuple[int, int]], Any, Any]:
    """Streams (series, ahead), base quantiles and outcomes of a pool with a common shock."""
    rng = np.random.default_rng(3)
    streams = [(s, h) for s in range(count) for h in (1, 2, 4)]
    y = 20.0 + np.cumsum(rng.normal(0, 1, (times, 1)) + 0.3 * rng.normal(0, 1, (times, count)), axis=0)
    base = np.empty((times, len(streams), len(LEVELS)))
    for i, (s, h) in enumerate(streams):
        base[:, i] = (y[np.maximum(np.arange(times) - h, 0), s] + 0.7)[:, None] + 0.5 * h**0.5 * SCORES
    return streams, base, y


@pytest.mark.parametrize("missing", [False, True])
def test_pool_matches_its_definition(missing: bool) -> None:
    streams, base, y = pooled_data()
    events = panel(streams, len(y))
    if missing:
        events = [e for e in events if not (e[1] % len(streams) in (4, 5) and e[1] // len(streams) % 7 < 3)]
    found, _ = run_panel(streams, base, y, seasons=7, events=events)
    pools = {h: Pool(LEVELS) for h in (1, 2, 4)}
    series = [Series((7, 0)) for _ in range(y.shape[1])]
    made = {(s, h): Stream(LEVELS, series[s], -np.inf, np.inf, pools[h]) for s, h in streams}
    issued: dict[Any, list[float]] = {each: [] for each in made}
    memos = {}
    moments = sorted({event[2] for event in events})
    for moment in moments:
        rows = [row for kind, row, when in events if when == moment]
        if moment % 2:
            for pool in pools.values():
                pool.close()
            for row in rows:
                issued[streams[row % len(streams)]].append(row // len(streams))
        for row in rows:
            time, (s, h) = row // len(streams), streams[row % len(streams)]
            stream, q = made[s, h], base[time, row % len(streams)]
            if moment % 2 == 0:
                stream.update(memos[row][0], y[time, s], len(issued[s, h]) - memos[row][1])
                series[s].observe(time, y[time, s])
                continue

            def median(h: int, back: int, time: int, s: int = s) -> float:
                times = issued.get((s, h), [])
                return base[time, streams.index((s, h)), 9] if times[back : back + 1 or None] == [time] else np.nan

            near = median(h - 1, -1, time - 1), median(h + 1, -1, time + 1), median(h + 1, -2, time)
            expected, memo = stream.predict(stream.known(time, q, near, None if h == 1 else made[s, 1]), q)
            memos[row] = memo, len(issued[s, h])
            assert_close(found[time, row % len(streams)], expected)


@pytest.mark.parametrize("name", ["plain", "late", "out of order", "season late", "experts out of order"])
def test_forecasts_do_not_depend_on_outcomes_that_are_unknown(name: str) -> None:
    base, y, bounds = data(name)
    late = np.random.default_rng(4).integers(0, 9, ROUNDS) if "out of order" in name else 5 * ("late" in name)
    first = run(alone(base.shape[1], *bounds), base, y, late)
    for cut in (0, 17, 120):
        unknown = np.arange(ROUNDS) + late >= cut
        second = run(alone(base.shape[1], *bounds), base, np.where(unknown, y * y - 7.0, y), late)
        assert first[: cut + 1].tobytes() == second[: cut + 1].tobytes()
        assert not np.allclose(first[cut + 12], second[cut + 12])


def test_forecasts_of_a_pool_do_not_depend_on_outcomes_that_are_unknown() -> None:
    streams, base, y = pooled_data()
    first, _ = run_panel(streams, base, y)
    issued = np.arange(len(y))[:, None] - np.array([ahead for _, ahead in streams])
    for cut in (5, 60):
        later = (np.arange(len(y)) > cut)[:, None]
        second, _ = run_panel(streams, base, np.where(later, 50.0 - y, y))
        assert first[issued <= cut].tobytes() == second[issued <= cut].tobytes()
        assert (first[issued > cut] != second[issued > cut]).any(axis=1).all()


def test_a_common_shock_counts_once() -> None:
    """Identical series are one observation of all that a pool learns, however many they are."""
    streams, base, y = pooled_data(80, 1)
    many = {}
    for count in (2, 50):
        copies = [(s, h) for s in range(count) for _, h in streams]
        _, committee = run_panel(copies, np.tile(base, (1, count, 1)), np.tile(y, (1, count)))
        # without the sums of the step that is not closed
        many[count] = committee.pool_rows[:, len(POOL) : committee.plan.pool_sums_at]
    assert np.abs(many[2]).max() > 1.0
    assert_close(many[50], many[2])


@pytest.mark.parametrize("absent", [0, 1, 2])
def test_a_missing_expert_costs_nothing(absent: int) -> None:
    base, y, _ = data("experts")
    kept = [e for e in range(3) if e != absent]
    missing = base.copy()
    missing[:, absent] = np.nan
    empty = np.isnan(missing[:, :, 0]).all(axis=1)
    assert_close(run(alone(3), missing[~empty], y[~empty]), run(alone(2), base[~empty][:, kept], y[~empty]))
    alone_base = np.where(np.arange(3)[:, None] == 0, base[:, :1], np.nan)
    assert run(alone(3), alone_base, y).tobytes() == run(alone(), base[:, :1], y).tobytes()
