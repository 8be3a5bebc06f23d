"""Pools: streams of a frame that learn together."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.panels import Plan, outputs, panel

import orcast as oc

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


@settings(max_examples=15, deadline=None)
@given(plan=plans, seed=st.integers(0, 100))
def test_the_order_of_rows_does_not_matter(plan: Plan, seed: int) -> None:
    frame = panel(plan)
    shuffled = frame.sample(frac=1.0, random_state=seed)
    pd.testing.assert_frame_equal(played(frame), played(shuffled).reindex(played(frame).index), check_exact=True)


def test_the_number_of_workers_does_not_matter() -> None:
    frame = panel(Plan(3, series=6, steps=12, horizons=2))
    pd.testing.assert_frame_equal(played(frame, workers=1), played(frame, workers=2), check_exact=True)


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


def test_what_is_common_is_learnt_sooner() -> None:
    frame = biased()
    errors = {}
    for pool in (True, False):
        out = oc.recalibrate(frame, pool=pool)
        errors[pool] = (out.y - out.M0_orcast_mean).abs()[frame.ds < 8].mean()
    assert errors[True] < 0.95 * errors[False]


def test_a_series_that_comes_late_begins_with_what_the_others_learnt() -> None:
    frame = biased(steps=60)
    frame = frame[(frame.unique_id != "s5") | (frame.ds >= 40)].reset_index(drop=True)
    late = (frame.unique_id == "s5") & (frame.ds < 50)
    errors = {}
    for pool in (True, False):
        out = oc.recalibrate(frame, pool=pool)
        errors[pool] = (out.y - out.M0_orcast_mean).abs()[late].mean()
    assert errors[True] < 0.9 * errors[False]


def test_pools_are_told_apart_by_a_column() -> None:
    frame = biased()
    frame["region"] = np.where(frame.unique_id < "s3", "north", "south")
    apart = pd.concat([played(each) for _, each in frame.groupby("region")])
    pd.testing.assert_frame_equal(played(frame, pool="region"), apart, check_exact=True)
    pd.testing.assert_frame_equal(played(frame, pool=["region"]), apart, check_exact=True)


def test_a_column_of_pools_is_constant_within_a_series() -> None:
    frame = biased().assign(region=np.arange(180) % 2)
    with pytest.raises(ValueError, match="expected one value of region of series 's0', got"):
        oc.recalibrate(frame, pool="region")
    with pytest.raises(ValueError, match="expected pool= as columns of the frame, got 'land'"):
        oc.recalibrate(frame, pool="land")
    with pytest.raises(TypeError, match="expected pool=True, False, or the names of columns, got 3"):
        oc.recalibrate(frame, pool=3)


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
