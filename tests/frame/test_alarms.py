"""Alarms of a frame: the monitors' words, by what was known when each forecast was issued."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from test_frame_run import bounds, quietly

import orcast as oc
from frames import FORMS, Plan, inputs, panel
from orcast.draws import derived_seed
from orcast.kernels import records
from orcast.kernels.monitor import watch
from orcast.monitors import ALARM_TEXTS, pit_rows, watcher_for

NAMES = ["M0_orcast_alarm", "M0_orcast_base_alarm"]


def broken(form: str = "normal", horizons: int = 0, steps: int = 60) -> pd.DataFrame:
    """Series whose forecasts are too narrow from the start, some of their outcomes missing."""
    frame = panel(Plan(7, form, series=2, steps=steps, horizons=horizons, holes=0.1, gaps=0.05))
    if form in ("binary", "labels"):
        sure = {name: 0.97 if i == 0 else 0.03 / max(len(inputs(form, "M0")) - 1, 1) for i, name in
                enumerate(inputs(form, "M0"))}  # fmt: skip
        return frame.assign(**{name: frame[name].where(frame[name].isna(), p) for name, p in sure.items()})
    if form == "normal":
        return frame.assign(M0_std=frame["M0_std"] / 5.0)
    return frame


def slow_alarms(frame: pd.DataFrame, kind: str, columns: list[str], key: tuple[Any, ...]) -> dict[Any, str]:
    """Alarms of one stream, event by event: the outcomes that are known at a cutoff come before its forecast."""
    watcher = watcher_for("pit", derived_seed(0, "M0", *key))
    pits = pit_rows(kind, frame[columns].to_numpy(float), None, frame["y"].to_numpy(float))
    issued: dict[int, int] = {}
    told, texts = {}, ALARM_TEXTS["pit"]
    for i, (label, cutoff) in enumerate(zip(frame.index, frame["cutoff"], strict=True)):
        for j in [j for j in issued if frame["ds"].iloc[j] <= cutoff and not np.isnan(pits[j, 0])]:
            watch([watcher], pits[j], issued.pop(j), i)
        row = watcher.state
        ever = row[records.ALARM] and row[records.HEAD :][: watcher.bets.count].sum() >= row[records.PEAK] / 1000.0
        change = row[records.CHANGES] and 9 + int(row[records.CHANGE_KIND])
        told[label] = texts[1 + int(row[records.PEAK_KIND]) if ever else int(change)]
        issued[i] = i
    return told


@pytest.mark.parametrize("horizons", [1, 4])
def test_alarms_are_those_of_a_monitor_fed_event_by_event(horizons: int) -> None:
    frame = broken(horizons=horizons).dropna(subset=["M0_mean", "M0_std"])
    out = quietly(frame, pool=False)
    seen = set()
    for key, stream in out.assign(h=out["ds"] - out["cutoff"]).groupby(["unique_id", "h"]):
        for name, columns in zip(NAMES, (["M0_orcast_mean", "M0_orcast_std"], ["M0_mean", "M0_std"]), strict=True):
            told = slow_alarms(stream.sort_values("cutoff"), "normal", columns, (key[0], int(key[1])))
            assert stream[name].to_dict() == told
            seen |= set(told.values())
    assert {"", "too narrow"} <= seen


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("horizons", [0, 3])
def test_alarms_of_calls_with_a_state_are_those_of_one_frame(form: str, horizons: int, tmp_path: Path) -> None:
    """Daily calls that bring outcomes late, on a store, give each row the alarm that it has in one frame."""
    frame, state = broken(form, horizons), f"sqlite:///{tmp_path / 'a.db'}"
    options = {**bounds(Plan(1, form)), "pool": False}
    whole = quietly(frame, **options)
    issue = frame["cutoff"] if horizons else frame["ds"]
    parts = []
    for start in range(0, 60, 12):
        now = frame[(issue >= start - 6) & (issue < start + 12)]
        known = now["ds"] <= (start + 11 if horizons else start + 10)
        part = quietly(now.assign(y=now["y"].where(known, None)), state=state, **options)
        parts.append(part[issue[part.index] >= start])
    names = [name for name in NAMES if name in whole]
    assert len(names) == 1 + (form != "point")
    found = pd.concat(parts).loc[whole.index, names]
    pd.testing.assert_frame_equal(found, whole[names])
    assert form == "point" or (whole[names[-1]] != "").any()


def test_no_alarm_knows_what_came_after_its_forecast() -> None:
    for horizons in (0, 3):
        frame = broken(horizons=horizons)
        later = frame.assign(y=frame["y"].where(frame["ds"] <= 30, 50.0))
        cut = frame[frame["ds"] <= 40]
        made = (frame["cutoff"] if horizons else frame["ds"] - 1) <= 30
        out = quietly(frame)[NAMES][made]
        pd.testing.assert_frame_equal(out, quietly(later)[NAMES][made])
        both = out.index.intersection(cut.index)
        pd.testing.assert_frame_equal(out.loc[both], quietly(cut)[NAMES].loc[both])
        assert (out["M0_orcast_base_alarm"] != "").any()


def test_what_breaks_is_named_and_what_does_not_stays_silent() -> None:
    rng = np.random.default_rng(1)
    y = rng.normal(size=(3, 400))
    y[1] *= 2.5
    y[2, 200:] += 2.0
    frame = pd.DataFrame({"unique_id": np.repeat(["fine", "narrow", "shifted"], 400), "ds": [*range(400)] * 3})
    out = oc.recalibrate(frame.assign(y=y.ravel(), mean=0.0, sd=1.0), pool=False)
    base = {key: set(own) for key, own in out.groupby("unique_id")["orcast_base_alarm"]}
    assert base["fine"] == {""}
    assert base["narrow"] == {"", "too narrow"}
    own = out[out["unique_id"] == "shifted"]
    assert (own["orcast_base_alarm"][:200] == "").all()
    assert own["orcast_base_alarm"].iloc[-1] == "too low"
    assert own["orcast_alarm"].iloc[-1] == ""
    again = oc.recalibrate(out, pool=False)
    pd.testing.assert_frame_equal(again, out)
