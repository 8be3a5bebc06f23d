"""Pools: streams of a frame that learn together."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import orcast as oc
from orcast.constants import EVIDENCE_DISCOUNT
from orcast.engine.committee import POOLED
from orcast.panel.columns import find_in
from orcast.panel.frame import Frame
from orcast.panel.frame_run import FrameOptions, FrameRun
from orcast.panel.pools import SignalTable
from orcast.panel.stream import StreamOptions
from panels import Plan, outputs, panel

FORMS = ("quantiles", "normal", "members", "point")
plans = st.builds(
    Plan,
    seed=st.integers(0, 10**6),
    form=st.sampled_from(FORMS),
    series=st.integers(1, 4),
    steps=st.integers(2, 7),
    horizons=st.integers(0, 3),
    stride=st.integers(1, 2),
    holes=st.sampled_from([0.0, 0.3]),
    gaps=st.sampled_from([0.0, 0.3]),
    strays=st.sampled_from([0.0, 0.2]),
)
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def played(frame: pd.DataFrame, **options: Any) -> pd.DataFrame:
    out = oc.recalibrate(frame, low=0, high=100, **options)
    found = out[outputs(out)]
    return found.set_index(pd.MultiIndex.from_frame(frame[[c for c in ("unique_id", "cutoff", "ds") if c in frame]]))


def biased(series: int = 6, steps: int = 30, bias: float = 8.0, seed: int = 0) -> pd.DataFrame:
    """A panel whose expert has the same bias in all series."""
    rng = np.random.default_rng(seed)
    rows = []
    for s in range(series):
        mean = rng.normal(50.0, 5.0, steps)
        y = mean + bias + rng.normal(0.0, 3.0, steps)
        rows.append(pd.DataFrame({"unique_id": f"s{s}", "ds": range(steps), "y": y, "M0_mean": mean}))
    return pd.concat(rows, ignore_index=True).assign(M0_std=3.0)


@settings(max_examples=25, deadline=None)
@given(plan=plans, data=st.data())
def test_nothing_that_is_not_known_yet_is_heard(plan: Plan, data: st.DataObject) -> None:
    frame = panel(plan)
    some = frame.index[~frame.y.isna()]
    if not len(some):
        return
    row = frame.loc[data.draw(st.sampled_from(some.tolist()))]
    here = (frame.unique_id == row.unique_id) & (frame.ds == row.ds)
    other = played(frame.assign(y=frame.y.where(~here, 100.0 - frame.y)))
    names = [name for name in other.columns if "miscalibration" not in name and "status" not in name]
    before = (frame.cutoff < row.ds if "cutoff" in frame else frame.ds <= row.ds).to_numpy()
    pd.testing.assert_frame_equal(played(frame)[names][before], other[names][before], check_exact=True)


def test_without_a_pool_each_series_is_by_itself() -> None:
    frame = biased()
    alone = pd.concat([played(each, pool=True) for _, each in frame.groupby("unique_id")])
    pd.testing.assert_frame_equal(played(frame, pool=False), alone, check_exact=True)
    assert not played(frame).equals(alone)


def test_a_series_that_comes_late_begins_with_what_the_others_learnt() -> None:
    frame = biased(steps=60)
    frame = frame[(frame.unique_id != "s5") | (frame.ds >= 40)].reset_index(drop=True)
    late = (frame.unique_id == "s5") & (frame.ds < 50)
    errors = {}
    for pool in (True, False):
        out = oc.recalibrate(frame, pool=pool)
        errors[pool] = (out.y - out.M0_orcast_mean).abs()[late].mean()
    assert errors[True] < 0.95 * errors[False]


def test_pools_are_told_apart_by_a_column() -> None:
    frame = biased()
    frame["region"] = np.where(frame.unique_id < "s3", "north", "south")
    apart = pd.concat([played(each) for _, each in frame.groupby("region")])
    pd.testing.assert_frame_equal(played(frame, pool="region"), apart, check_exact=True)
    pd.testing.assert_frame_equal(played(frame, pool=["region"]), apart, check_exact=True)


# --- a state


def in_parts(frame: pd.DataFrame, cuts: list[Any], **options: Any) -> pd.DataFrame:
    """The answers of a frame that comes in parts by time of issue, each with the outcomes of all before."""
    when = frame.cutoff if "cutoff" in frame else frame.ds
    state = oc.PanelState()
    found = []
    for a, b in zip([-np.inf, *cuts], [*cuts, np.inf], strict=True):
        part = frame[(when > a) & (when <= b)]
        if len(part):
            found.append(played(part, state=state, **options))
    return pd.concat(found).reindex(played(frame, **options).index)


@settings(max_examples=25, deadline=None)
@given(plan=plans, data=st.data())
def test_a_frame_may_be_cut_in_time_at_any_place(plan: Plan, data: st.DataObject) -> None:
    frame = panel(plan)
    cuts = sorted(data.draw(st.sets(st.integers(0, plan.steps + 1), max_size=3)))
    names = [name for name in played(frame).columns if "miscalibration" not in name and "status" not in name]
    pd.testing.assert_frame_equal(played(frame)[names], in_parts(frame, cuts)[names], check_exact=True)


@settings(max_examples=15, deadline=None)
@given(plan=plans, cut=st.integers(0, 6))
def test_a_state_goes_on_from_its_file(plan: Plan, cut: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Rows without outcomes first, then the same rows with them: as it is from day to day."""
    frame = panel(plan)
    when = frame.cutoff if "cutoff" in frame else frame.ds
    first = frame[when <= cut]
    if not len(first) or len(first) == len(frame):
        return
    known = first.ds <= cut if "cutoff" in frame else first.ds < cut
    path = tmp_path_factory.mktemp("pool") / "state"
    told = played(first.assign(y=first.y.where(known)), state=path)
    again = played(frame, state=path)
    names = [name for name in told.columns if "miscalibration" not in name and "status" not in name]
    pd.testing.assert_frame_equal(again[names], played(frame)[names], check_exact=True)


def test_a_damaged_pool_in_a_state_is_refused(tmp_path: Path) -> None:
    state = oc.PanelState()
    played(panel(Plan(1, horizons=2)), state=state)
    ((name, pool),) = state.content.pools.items()
    for damage in (
        lambda it: it.memory.view("offsets").fill(np.nan),
        lambda it: it.memory.view("members").fill(-1.0),
        lambda it: it.pending.stream.fill(99),
        lambda it: it.store.view("q").fill(np.inf),
        lambda it: it.streams.reverse(),
    ):
        state.content.pools[name] = copy.deepcopy(pool)
        damage(state.content.pools[name])
        state.save(tmp_path / "state")
        with pytest.raises(ValueError, match="expected a state that this version can use, got one that it cannot"):
            oc.PanelState.load(tmp_path / "state")


# --- the slow twin


def pinball(q: Any, y: float, levels: Any) -> float:
    return float(np.mean(np.where(y > q, levels * (y - q), (levels - 1.0) * (y - q))))


def slow_signals(frame: pd.DataFrame, sd: float) -> list[Any]:
    """What a pool of series with one horizon is heard to say, after each time, in a few lines of numpy."""
    space = oc.Line()
    levels, scores = space.levels, space.scores
    count, total = 0, np.zeros((len(POOLED), len(levels)))
    offsets, seen, unit, ledgers = {}, {}, {}, {}
    signals = []
    for _, rows in frame.groupby("ds"):
        known = rows[~rows.y.isna()].sort_values("unique_id")
        gradients = {}
        means = np.mean([offsets[k] / (unit[k][0] / unit[k][1]) for k in sorted(offsets)], axis=0) if offsets else 0.0
        for row in known.itertuples():
            q, k = row.M0_mean + sd * scores, row.unique_id
            if k not in offsets:
                # the expert's expected loss is its unit before there is any other
                expected = np.pi**-0.5 * 0.5 * sd * (np.interp(1.0, scores, scores) - np.interp(-1.0, scores, scores))
                offsets[k] = np.zeros((len(POOLED), len(levels))) + means * expected
                seen[k], unit[k] = (0, np.zeros_like(total)), (0.0, 0.0)
            at = q + offsets[k]
            gradients[k] = np.where(row.y < at, 1.0 - levels, -levels)
        count, total = count + len(gradients), total + sum(gradients.values())
        for row in known.itertuples():
            q, k = row.M0_mean + sd * scores, row.unique_id
            loss, weight = unit[k]
            unit[k] = 0.998 * loss + 2.0 * pinball(q, row.y, levels), 0.998 * weight + 1.0
            usual = unit[k][0] / unit[k][1]
            mean = (total - seen[k][1]) / (count - seen[k][0])
            step = POOLED[:, :1] * 3.0 * usual * (0.5 * gradients[k] + 0.5 * mean)
            offsets[k] = np.clip((1.0 - POOLED[:, 1:2]) * offsets[k] - step, -50.0 * usual, 50.0 * usual)
            seen[k] = count, total
            gradient = np.where(row.y < q, 1.0 - levels, -levels)
            sums, squares = ledgers.get(k, (0.0, 0.0))
            ledgers[k] = EVIDENCE_DISCOUNT * sums + gradient, EVIDENCE_DISCOUNT**2 * squares + gradient @ gradient
        means = np.mean([offsets[k] / (unit[k][0] / unit[k][1]) for k in sorted(offsets)], axis=0)
        usual = slow_excess([(*ledgers[k], unit[k][1]) for k in ledgers], levels, scores)
        signals.append((count, np.concatenate((total.ravel(), means.ravel(), [usual]))))
    return signals


def slow_excess(ledgers: list[Any], levels: Any, scores: Any) -> float:
    """By how much squared scores exceed those of the experts, as sure as streams are that do not all say the same."""
    width = np.diff(scores, prepend=scores[0]) + np.diff(scores, append=scores[-1])
    weights = scores * width
    variance = weights @ (np.minimum.outer(levels, levels) - np.outer(levels, levels)) @ weights
    excess = np.array([-weights @ sums for sums, _, _ in ledgers])
    chance = np.array([squares for _, squares, _ in ledgers]) / (levels @ (1.0 - levels))
    outcomes = sum(count for _, _, count in ledgers)
    errors = excess / np.sqrt(variance * chance)
    n = len(ledgers)
    apart = ((errors - errors.mean()) ** 2).sum() / (n - 1 + 4)
    unsure = max(1.0 - apart, 0.0) + apart / n
    overlap = max(chance.sum() / outcomes, 1.0)
    odds = 0.3 * np.exp(errors.mean() ** 2 / unsure / 2) / np.sqrt(1 + outcomes / (n * overlap * unsure))
    return float(odds / (1 + odds) * excess.sum() / (outcomes + 3 * overlap * unsure * n))


def test_the_pass_is_what_its_slow_twin_says() -> None:
    frame = biased(series=5, steps=12)
    rng = np.random.default_rng(1)
    frame["y"] = frame.y.where(rng.random(len(frame)) > 0.2)
    frame = frame[(frame.unique_id != "s4") | (frame.ds > 5)]
    run = FrameRun(Frame(frame), find_in(Frame(frame)), FrameOptions().checked())
    table = pool_table(run)
    slow = slow_signals(frame, 3.0)
    assert table.stamps.tolist() == sorted(frame.ds[~frame.y.isna()].unique().tolist())
    for row, (count, numbers) in zip(table.rows, slow, strict=True):
        assert row[0] == count
        np.testing.assert_allclose(row[3:], numbers, rtol=1e-9, atol=1e-9)


def pool_table(run: FrameRun) -> SignalTable:
    """What the one pool of a frame is heard to say."""
    times = run.streams.times
    options = StreamOptions(0, run.models[0].shape, None, None, False, times.at_once, 0, False, False, 1000, True)
    ((table, _),) = run.pools.heard(options, 0, 1)
    return table


def test_series_that_keep_no_common_time_share_batches() -> None:
    """Not every outcome is a batch where there are many streams, so that signals do not outgrow the frame."""
    frame = biased(series=200, steps=4)
    frame["ds"] = frame.ds * 1000 + frame.groupby("unique_id").ngroup()
    run = FrameRun(Frame(frame), find_in(Frame(frame)), FrameOptions().checked())
    assert len(pool_table(run).stamps) < 0.5 * len(frame)
