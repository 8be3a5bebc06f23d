"""Pools: streams of a frame that learn together."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import orcast as oc
from frames import Plan, outputs, panel
from orcast.committee.group import Group, GroupRun
from orcast.committee.members import plan_for
from orcast.committee.state import KNOWN, POOL, STREAM
from orcast.frame.stream import PendingColumn, StreamRun
from orcast.kernels.records import PREDICT, SETTLE

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def result(frame: pd.DataFrame, **options: Any) -> pd.DataFrame:
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


def test_without_a_pool_each_series_is_by_itself() -> None:
    frame = biased()
    alone = pd.concat([result(each, pool=True) for _, each in frame.groupby("unique_id")])
    pd.testing.assert_frame_equal(result(frame, pool=False), alone, check_exact=True)
    assert not result(frame).equals(alone)


# --- a state


@pytest.mark.parametrize("bounds", [{}, {"low": -5}, {"high": 120}, {"low": 0}, {"low": -5, "high": 120}])
def test_a_state_with_any_bounds_is_read_again(bounds: dict[str, Any], tmp_path: Path) -> None:
    frame = panel(Plan(3, series=2, steps=6, horizons=2))
    whole = oc.recalibrate(frame, **bounds)
    parts = [
        oc.recalibrate(frame[each], state=tmp_path / "state", **bounds)
        for each in (frame.cutoff < 3, frame.cutoff >= 3)
    ]
    names = [name for name in outputs(whole) if "miscalibration" not in name and "status" not in name]
    pd.testing.assert_frame_equal(pd.concat(parts)[names].sort_index(), whole[names], check_exact=True)


def test_a_damaged_committee_in_a_state_is_refused(tmp_path: Path) -> None:
    state = oc.FrameState()
    frame = panel(Plan(1, horizons=2))
    result(frame[frame.cutoff < frame.cutoff.max()], state=state)
    content = state.content
    (name,) = content.pools

    def column(rows: Any, names: tuple[str, ...], which: str, value: float) -> None:
        rows[..., names.index(which)] = value

    def of_stream(it: Any) -> Any:
        return next(stream for stream in it.models["M0"].streams.values() if len(stream.memos))

    for damage in (
        lambda it: next(iter(it.pools[name].series.values())).row.fill(np.inf),
        lambda it: column(next(iter(it.pools[name].pools.values())), POOL, "steps", -1.0),
        lambda it: column(of_stream(it).committee, STREAM, "newest", 1e30),
        lambda it: of_stream(it).committee.fill(np.nan),
        lambda it: column(of_stream(it).memos, KNOWN, "serial", 99.0),
        lambda it: of_stream(it).memos.fill(np.inf),
        lambda it: of_stream(it).pending[:, PendingColumn.STEP].fill(0.5),
        lambda it: of_stream(it).pending[:, PendingColumn.SETTLED].fill(1.0),
        lambda it: it.pools.clear(),
        lambda it: it.pools[name].series.popitem(),
        lambda it: it.pools[name].pools.popitem(),
    ):
        state.content = copy.deepcopy(content)
        damage(state.content)
        state.save(tmp_path / "state")
        with pytest.raises(ValueError, match="expected a state that this version can use, got an invalid one"):
            oc.recalibrate(frame, low=0, high=100, state=tmp_path / "state")


# --- the slow twin


def slow_priors(frame: pd.DataFrame, sd: float, *, pooled: bool) -> dict[Any, Any]:
    """Corrected quantiles of a frame with cutoffs or without, moment by moment, by the label of the row."""
    space = oc.Line()
    plan = plan_for(space.levels, space.scores, pooled=pooled)
    rows = frame.sort_values([name for name in ("unique_id", "h", "cutoff", "ds") if name in frame])
    names = sorted(set(rows.unique_id))
    horizons = sorted(set(rows.h))
    keys = [(name, h) for name in names for h in horizons]
    group = Group(
        plan,
        [names.index(name) for name, _ in keys],
        [horizons.index(h) for _, h in keys],
        [h for _, h in keys],
        np.tile([-np.inf, np.inf], (len(keys), 1)),
        np.zeros((len(names), 2)),
    )
    base = rows.M0_mean.to_numpy()[:, None] + sd * space.scores
    prior = np.empty_like(base)
    stream = [keys.index(key) for key in zip(rows.unique_id, rows.h, strict=True)]
    y, time, cutoff = rows.y.to_numpy(), rows.ds.to_numpy(), rows.cutoff.to_numpy()
    run = GroupRun(group, stream, time, y, base, prior, len(rows))
    waiting: set[int] = set()
    for moment in sorted(set(cutoff)):
        known = [i for i in sorted(waiting) if time[i] <= moment and not np.isnan(y[i])]
        new = [i for i in range(len(rows)) if cutoff[i] == moment]
        events = [(SETTLE, i, moment) for i in known] + [(PREDICT, i, moment) for i in new]
        run.run_rounds(np.array(events, dtype=np.int64))
        waiting = (waiting | set(new)) - set(known)
    return dict(zip(rows.index, prior, strict=True))


@pytest.mark.parametrize("pool", [True, False])
@pytest.mark.parametrize("horizons", [1, 3])
def test_the_pass_is_its_slow_twin(pool: bool, horizons: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    parts = [biased(series=4, steps=14, seed=h).assign(h=h) for h in range(1, horizons + 1)]
    frame = pd.concat(parts, ignore_index=True)
    frame["cutoff"] = frame.ds - frame.h
    frame["y"] = frame.groupby(["unique_id", "ds"])["y"].transform("first")
    missing = pd.Series(rng.random(len(frame)) < 0.15).groupby([frame.unique_id, frame.ds]).transform("first")
    frame["y"] = frame.y.where(~missing)
    frame = frame[(frame.unique_id != "s3") | (frame.ds > 5)].sample(frac=1.0, random_state=2).reset_index(drop=True)
    found: dict[Any, Any] = {}
    run_rounds = StreamRun.run_rounds

    def noted(run: StreamRun, *given: Any) -> None:
        found.update(zip(run.new_rows.tolist(), run.priors, strict=True))
        run_rounds(run, *given)

    monkeypatch.setattr(StreamRun, "run_rounds", noted)
    monkeypatch.setattr("orcast.frame.pools.CHUNK", 7)
    oc.recalibrate(frame, horizon="h", pool=pool, workers=1)
    for label, prior in slow_priors(frame, 3.0, pooled=pool).items():
        np.testing.assert_array_equal(found[label], prior)


def test_a_pool_of_one_series_is_none() -> None:
    frame = panel(Plan(5, series=1, steps=20, horizons=3))
    pd.testing.assert_frame_equal(result(frame), result(frame, pool=False), check_exact=True)
