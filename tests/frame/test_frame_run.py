"""Panels equal their series recalibrated one by one: forms, order, known outcomes."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from frames import BESIDE, FORMS, Plan, outputs, panel, twin
from orcast.frame import recalibrate

plans = st.builds(
    Plan,
    seed=st.integers(0, 2**32 - 1),
    form=st.sampled_from(FORMS),
    series=st.integers(1, 3),
    steps=st.integers(3, 8),
    horizons=st.sampled_from([0, 0, 1, 3]),
    stride=st.integers(1, 3),
    holes=st.sampled_from([0.0, 0.3]),
    gaps=st.sampled_from([0.0, 0.2]),
    strays=st.sampled_from([0.0, 0.2]),
    models=st.integers(1, 2),
)


def bounds(plan: Plan) -> dict[str, float]:
    return {} if plan.form in ("binary", "labels") else {"low": 0.0, "high": 100.0}


def quietly(frame: Any, **options: Any) -> Any:
    """Without the warnings that some rows deserve."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return recalibrate(frame, **options)


def same(one: pd.DataFrame, other: pd.DataFrame) -> None:
    """To the last bit, nan for nan, whatever the order of rows."""
    pd.testing.assert_frame_equal(one, other.loc[one.index], check_exact=True)


@given(plans)
def test_each_series_is_result_as_by_itself(plan: Plan) -> None:
    if plan.form not in ("binary", "labels"):
        # the horizons of a series share their outcomes
        plan = Plan(**{**plan.__dict__, "horizons": min(plan.horizons, 1)})
    frame = panel(plan)
    out = quietly(frame, pool=False, **bounds(plan))
    for m in (f"M{i}" for i in range(plan.models)):
        told = twin(frame, plan.form, m, **bounds(plan))
        names = [n for n in outputs(out, m) if not n.endswith(BESIDE)]
        for label, row in out.iterrows():
            if label not in told:
                assert row[f"{m}_orcast_status"] == "no forecast"
                assert row[[n for n in outputs(out, m) if not n.endswith(("status", "alarm"))]].isna().all()
                continue
            answers, holds = told[label]
            assert row[names].tolist() == answers
            assert row[f"{m}_orcast_holds"] == holds
            y = row["y"]
            if pd.isna(y):
                assert row[f"{m}_orcast_status"] == "pending"
                assert pd.isna(row[f"{m}_orcast_miscalibration"])
            elif y == 150.0:
                assert row[f"{m}_orcast_status"] == "outside"
            else:
                assert row[f"{m}_orcast_status"] == "ok"
                if not plan.holes:
                    # no later outcome was used before its own
                    assert row[f"{m}_orcast_miscalibration"] <= row[f"{m}_orcast_promised"] * (1.0 + 1e-9)


@pytest.mark.parametrize("form", ["quantiles", "point", "binary"])
@pytest.mark.parametrize("horizons", [0, 1])
def test_many_rows_may_wait(form: str, horizons: int) -> None:
    """Long streams with outcomes that never come: what is outstanding, usual and reserved is as in single games."""
    plan = Plan(11, form, series=1, steps=40, horizons=horizons, holes=0.4, strays=0.1)
    frame = panel(plan)
    out = quietly(frame, pool=False, **bounds(plan))
    told = twin(frame, form, "M0", **bounds(plan))
    names = [n for n in outputs(out) if not n.endswith(BESIDE)]
    assert out[names].to_numpy().tolist() == [told[label][0] for label in out.index]
    assert (out["M0_orcast_status"] == "pending").sum() > 10


def test_one_row_may_tell_the_outcome_of_another() -> None:
    """An outcome belongs to a series and a time, whichever row it stands in."""
    frame = panel(Plan(9, series=2, steps=10, horizons=3))
    whole = recalibrate(frame)
    only_last = frame.assign(y=frame.y.where(frame.ds == frame.cutoff + 1))
    out = recalibrate(only_last)
    told = frame.ds <= frame.groupby("unique_id")["cutoff"].transform("max") + 1
    same(whole.loc[told, outputs(whole)], out.loc[told, outputs(out)])
    assert (out.loc[~told, "M0_orcast_status"] == "pending").all()
    assert only_last.y.isna().sum() > 0.5 * len(frame)


@given(plans, st.integers(0, 2**32 - 1))
def test_the_order_of_rows_does_not_matter(plan: Plan, seed: int) -> None:
    frame = panel(plan)
    out = quietly(frame, **bounds(plan))
    mixed = frame.sample(frac=1.0, random_state=seed % 1000)
    again = quietly(mixed, **bounds(plan))
    assert again.index.equals(mixed.index)
    same(out, again)


@given(plans, st.integers(0, 9), st.integers(0, 2**32 - 1))
def test_no_forecast_knows_what_came_after_it(plan: Plan, now: int, seed: int) -> None:
    """Change every outcome after some time: the forecasts before it are the same to the last bit."""
    frame = panel(plan)
    later = frame.copy()
    other = panel(Plan(**{**plan.__dict__, "seed": seed}))
    pool = other["y"].tolist()
    drawn = np.random.default_rng(seed)
    new = {
        key: pool[int(drawn.integers(len(pool)))]
        for key in {(row.unique_id, row.ds) for row in frame.itertuples() if row.ds > now}
    }
    later["y"] = [new.get((row.unique_id, row.ds), row.y) for row in frame.itertuples()]
    out, changed = quietly(frame, **bounds(plan)), quietly(later, **bounds(plan))
    # made when no changed outcome was known: those of a time are known after it, or at a cutoff of that time
    made = frame["cutoff"] <= now if "cutoff" in frame else frame["ds"] <= now + 1
    for m in (f"M{i}" for i in range(plan.models)):
        names = [name for name in outputs(out, m) if not name.endswith(("miscalibration", "status"))]
        same(out.loc[made, names], changed.loc[made, names])
        settled = made & (frame["ds"] <= now)
        same(out.loc[settled, outputs(out, m)], changed.loc[settled, outputs(out, m)])


def test_status_does_not_depend_on_later_rows() -> None:
    """The outcome of row 5 is missing: whether later outcomes come, or later rows exist, does not change its status."""
    frame = panel(Plan(1, series=1, steps=30))
    frame.loc[5, "y"] = np.nan
    for later in (frame, frame[:9], frame.assign(y=frame.y.where(frame.index < 5))):
        assert recalibrate(later)["M0_orcast_status"][:6].tolist() == ["ok"] * 5 + ["pending"]


def test_an_outcome_is_known_at_its_cutoff_and_not_before() -> None:
    """Of a changed outcome at time 5, the first forecast that may differ is that of the cutoff 5, at every horizon."""
    frame = panel(Plan(5, series=1, steps=12, horizons=3))
    later = frame.assign(y=np.where(frame.ds == 5, 99.0, frame.y))
    out, changed = recalibrate(frame), recalibrate(later)
    differs = out["M0_orcast"] != changed["M0_orcast"]
    assert not differs[frame.cutoff < 5].any()
    first = frame[differs].groupby(frame.groupby("cutoff")["ds"].rank())["cutoff"].min()
    assert first.tolist() == [5, 5, 5]
