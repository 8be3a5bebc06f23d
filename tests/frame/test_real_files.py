"""Frames as people have them: several events at one time, clock changes, text for numbers, missing cutoffs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import orcast as oc
from helpers import SENTENCE

DAY = pd.Timedelta(days=1)


def forecasters(days: int = 12, each: int = 3, labels: bool = False, seed: int = 0) -> pd.DataFrame:
    """Several games on each date."""
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.1, 0.9, days * each)
    won = rng.random(days * each) < p
    frame = pd.DataFrame({"date": pd.Timestamp("2024-01-01") + np.repeat(np.arange(days), each) * DAY})
    frame["game"] = np.tile(np.arange(each), days)
    if labels:
        return frame.assign(p_home=p, p_away=1 - p, y=np.where(won, "home", "away"))
    return frame.assign(p=p, y=won.astype(float))


def chances(frame: Any, **options: Any) -> Any:
    out = oc.recalibrate(frame, **options)
    assert len(out) == len(frame)
    return out["orcast_p" if "p" in out else "orcast_p_home"].to_numpy()


# --- several events at one time


@pytest.mark.parametrize("labels", [False, True])
@pytest.mark.parametrize("timing", ["none", "cutoff", "lag"])
def test_events_of_one_time_do_not_know_each_other(labels: bool, timing: str) -> None:
    frame = forecasters(labels=labels)
    options: dict[str, Any] = {"lag": "12h"} if timing == "lag" else {}
    frame = frame.assign(cutoff=frame.date - DAY) if timing == "cutoff" else frame
    before = chances(frame, **options)
    other = {"home": "away", "away": "home"} if labels else {0.0: 1.0, 1.0: 0.0}
    after = chances(frame.assign(y=frame.y.where(frame.index != 4, frame.y.map(other))), **options)
    changed = np.flatnonzero(before != after)
    assert changed.min() == 6
    shuffled = frame.sample(frac=1.0, random_state=1)
    np.testing.assert_array_equal(chances(shuffled, **options), before[shuffled.index])


def test_events_of_one_time_are_the_loop_that_predicts_all_of_them_first() -> None:
    frame = forecasters(each=4).drop(columns="game")
    frame["p"] = frame.groupby("date")["p"].transform("first")  # equal forecasts stay in their order
    recal, expected = oc.Recalibrator(oc.Binary()), []
    for _, day in frame.groupby("date"):
        expected += [recal.predict(p, id=row).mean() for row, p in day.p.items()]
        for row, y in day.y.items():
            recal.update(y, id=row)
    np.testing.assert_allclose(chances(frame), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("cutoffs", [False, True])
@pytest.mark.parametrize("kind", ["dates", "whole numbers"])
def test_events_of_one_time_wait_in_a_state(cutoffs: bool, kind: str) -> None:
    frame = forecasters(days=10)
    if kind != "dates":
        frame["date"] = (frame.date - frame.date[0]).dt.days
        frame["cutoff"] = frame.date - 1
    else:
        frame["cutoff"] = frame.date - DAY
    frame = frame if cutoffs else frame.drop(columns="cutoff")
    whole, state, parts = oc.recalibrate(frame), oc.FrameState(), []
    for day in range(10):
        part = frame[max(3 * day - 3, 0) : 3 * day + 3]
        parts.append(oc.recalibrate(part.assign(y=part.y.where(part.index < 3 * day)), state=state))
    found = pd.concat([part[-3:] for part in parts])
    np.testing.assert_array_equal(found["orcast_p"], whole["orcast_p"])
    assert (parts[-1]["orcast_status"][:3] == "ok").all()
    # rows of a day may come one by one, in any order
    for row in (28, 27, 29):
        again = oc.recalibrate(frame[row : row + 1], state=state)
        assert again["orcast_p"].item() == whole["orcast_p"][row]
        assert again["orcast_status"].item() == "ok"


def test_events_of_a_state_have_a_column_and_quantities_one_row_for_each_time() -> None:
    frame = forecasters().assign(teams=[f"{i}" for i in range(36)])
    with pytest.raises(ValueError, match="expected a column that tells events of one time apart beside a state"):
        oc.recalibrate(forecasters().drop(columns="game"), state=oc.FrameState())
    state = oc.FrameState()
    oc.recalibrate(forecasters(each=1).assign(cutoff=lambda f: f.date - DAY), state=state)
    with pytest.raises(ValueError, match="expected one row for each time and cutoff"):
        oc.recalibrate(forecasters().assign(cutoff=lambda f: f.date - DAY), state=state)
    amounts = frame.drop(columns="p").assign(mean=1.0, sd=1.0)
    with pytest.raises(ValueError, match=r"rows 0 and 1 for 2024-01-01 .*tells them apart by series= or cutoff="):
        oc.recalibrate(amounts)
    assert (oc.recalibrate(amounts, series="teams")["orcast_status"] == "ok").all()


def test_hours_that_clocks_repeat_are_named() -> None:
    hours = pd.date_range("2024-10-26", periods=72, freq="h", tz="Europe/Berlin")
    frame = pd.DataFrame({"ds": hours.tz_localize(None), "y": np.arange(72.0), "mean": 36.0, "sd": 20.0})
    with pytest.raises(ValueError, match="got rows 26 and 27 for 2024-10-27 02:00:00: drop one of them"):
        oc.recalibrate(frame)
    assert len(oc.recalibrate(frame.assign(ds=hours))) == 72
    with pytest.raises(ValueError, match="drop one of them"):
        oc.recalibrate(pd.concat((frame.assign(ds=hours), frame.assign(ds=hours)[5:6]), ignore_index=True))


# --- numbers, models and cutoffs


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize("column", ["y", "q0.9"])
def test_text_among_numbers_is_shown_with_its_row(make: Any, column: str) -> None:
    table: dict[str, Any] = {"y": [1.0, 2.0, 3.0], "q0.1": [0.0, 1.0, 2.0], "q0.9": [2.0, 3.0, 4.0]}
    table[column] = ["1.5", None, "2,5"]
    with pytest.raises(
        (TypeError, ValueError), match=rf"expected numbers .*{column}.* got text '1.5' in row 0"
    ) as caught:
        oc.recalibrate(make(table))
    assert caught.match(SENTENCE)
    if make is pd.DataFrame:
        table[column] = [1.5, None, "2,5"]
        with pytest.raises((TypeError, ValueError), match=r"got text '2,5' in row 2"):
            oc.recalibrate(pd.DataFrame(table))


def test_a_named_column_of_probabilities_is_no_point_forecast() -> None:
    frame = forecasters()
    expected = chances(frame)
    with pytest.raises(ValueError, match=r"expected model='' for probabilities of labels in 'p_home' and 'p_away'"):
        oc.recalibrate(forecasters(labels=True), model="p_home")
    tree = frame.rename(columns={"p": "tree"})
    with pytest.raises(ValueError, match=r"\{'tree': \{'p': 'tree'\}\}, in the command --model tree:p=tree, for"):
        oc.recalibrate(tree, model="tree")
    found = oc.recalibrate(tree, model={"tree": {"p": "tree"}})
    np.testing.assert_array_equal(found["tree_orcast_p"], expected)
    one_each = forecasters(each=1).rename(columns={"p": "tree"})
    assert "tree_orcast-lo-80" in oc.recalibrate(one_each, model={"tree": "tree"})


@pytest.mark.parametrize("make", [pd.DataFrame, pl.from_pandas])
def test_rows_without_a_cutoff_are_refused_together(make: Any) -> None:
    frame = forecasters(each=1).assign(cutoff=lambda f: f.date - DAY)
    frame.loc[[2, 5], "cutoff"] = pd.NaT
    match = "expected a cutoff in every row of 'cutoff', got none in 2 rows: 2, 5: drop these rows, or fill it in"
    with pytest.raises(ValueError, match=match):
        oc.recalibrate(make(frame))


# --- equality of cutoffs and times of knowledge


@pytest.mark.parametrize("hours", [1, 13, 14, 24, 25])
def test_issued_every_and_lag_are_cutoffs_so_much_earlier(hours: int) -> None:
    """An outcome that is known at the very time of issue is used; one that is known later is not."""
    rng = np.random.default_rng(0)
    ds = pd.date_range("2024-01-01", periods=24 * 8, freq="h")
    frame = pd.DataFrame({"ds": ds, "y": rng.normal(size=len(ds)), "mean": 0.0, "sd": 1.0})

    def mean(table: pd.DataFrame, **options: Any) -> Any:
        return oc.recalibrate(table, **options)["orcast_mean"].to_numpy()

    found = mean(frame, issued_every="daily", lag=f"{hours}h")
    cutoff = ds.normalize() - pd.Timedelta(hours=hours)
    np.testing.assert_array_equal(mean(frame.assign(cutoff=cutoff, h=ds.hour + 1)), found)
    known = frame.assign(known=ds + pd.Timedelta(hours=hours))
    np.testing.assert_array_equal(mean(known, known="known", issued_every="daily"), found)
    known["known"] += pd.Timedelta(1, "ns")
    assert not np.array_equal(mean(known, known="known", issued_every="daily"), found)
    each = mean(frame, lag=f"{hours}h")
    np.testing.assert_array_equal(mean(frame.assign(cutoff=ds - pd.Timedelta(hours=hours), h=1)), each)


# --- doubts, and other objects


def noise(**columns: Any) -> pl.DataFrame:
    y = np.random.default_rng(0).normal(size=40)
    return pl.DataFrame({"y": y, "q0.1": -1.3, "q0.5": 0.0, "q0.9": 1.3} | columns)


def test_lazy_frames_and_relations_give_the_same() -> None:
    table = noise()
    expected = oc.recalibrate(table)
    after = oc.recalibrate(table.lazy())
    assert isinstance(after, pl.LazyFrame)
    assert after.collect().equals(expected)
    duckdb = pytest.importorskip("duckdb")
    frame = table.to_pandas()  # noqa: F841  duckdb finds it by its name
    relation = oc.recalibrate(duckdb.sql("select * from frame"))
    assert relation["orcast_q0.5"].to_pylist() == expected["orcast_q0.5"].to_list()


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York"])
def test_days_are_those_of_the_local_clock(zone: str) -> None:
    """Forty days around a clock change: as with cutoffs at local midnight, and as text with offsets."""
    time = pd.date_range("2025-03-20", periods=960, freq="h", tz=zone)
    mean = 50.0 + 10.0 * np.sin(time.hour / 4.0)
    y = mean + np.random.default_rng(0).normal(0, 4, 41).repeat(24)[:960]
    frame = pd.DataFrame({"ds": time, "y": y, "mean": mean, "sd": 4.0})
    daily = oc.recalibrate(frame, issued_every="daily")["orcast_mean"]
    midnight = oc.recalibrate(frame.assign(cutoff=frame.ds.dt.normalize() - pd.Timedelta("1ns")))["orcast_mean"]
    text = frame.assign(ds=[each.isoformat() for each in time])
    assert daily.tolist() == midnight.tolist()
    assert daily.tolist() == oc.recalibrate(text, issued_every="daily")["orcast_mean"].tolist()


@pytest.mark.parametrize("names", [{"game": list("ABCD")}, {"home": list("aabb"), "away": list("cdcd")}])
def test_a_column_tells_events_of_one_time_apart(names: dict[str, list[str]]) -> None:
    """Equal probabilities, last digits that a file changed, and another order of the rows."""
    frame = pd.DataFrame({"date": "2025-01-01", **names, "p": [0.5, 0.5, 0.4, 0.6], "y": np.nan})
    state = oc.FrameState()
    oc.recalibrate(frame, state=state)
    some = oc.recalibrate(frame.assign(y=[0.0, np.nan, np.nan, 1.0]), state=state)
    assert some["orcast_status"].tolist() == ["ok", "pending", "pending", "ok"]
    with pytest.warns(UserWarning, match="old answers were kept although their forecasts changed"):
        rest = oc.recalibrate(frame.assign(y=[0.0, 1.0, 1.0, 1.0], p=frame.p + 1e-12)[::-1], state=state)
    assert rest["orcast_status"].tolist() == ["already answered", "ok", "ok", "already answered"]
    with pytest.raises(ValueError, match="tell events apart"):
        oc.recalibrate(frame.drop(columns=[*names]), state=state)


def test_last_digits_of_probabilities_do_not_change_the_order_of_events() -> None:
    rng = np.random.default_rng(0)
    p = rng.uniform(0.05, 0.95, 400)
    frame = pd.DataFrame({"ds": np.arange(50).repeat(8), "y": 1.0 * (rng.random(400) < 0.3 + 0.4 * p), "p": p})
    moved = oc.recalibrate(frame.assign(p=np.nextafter(p, 1.0)))["orcast_p"]
    assert np.abs(moved - oc.recalibrate(frame)["orcast_p"]).max() < 1e-9


def test_outcomes_of_a_table_settle_pending_rows_beside_columns_that_tell_nothing() -> None:
    time, region = pd.date_range("2025-01-01", periods=2), {"region": "n"}
    frame = pd.DataFrame({"ds": time, "mean": 5.0, "sd": 1.0, **region})
    state, none = oc.FrameState(), pd.DataFrame({"ds": time[:0], "y": np.array([], dtype=float)})
    with pytest.warns(UserWarning, match="no row of target= matches"):
        oc.recalibrate(frame[:1], target=none, state=state)
    oc.recalibrate(frame[1:], target=pd.DataFrame({"ds": time[:1], "y": [5.0], **region}), state=state)
    assert state.pending == 1


@pytest.mark.parametrize("together", ["daily", 4])
def test_few_rows_that_are_issued_together_do_not_tell_another_step(together: str | int) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"ds": pd.date_range("2024-01-01", periods=240, freq="h"), "mean": 0.0, "sd": 1.0})
    frame["y"] = np.cumsum(rng.normal(size=240))
    state = oc.FrameState()
    parts = [oc.recalibrate(part, issued_every=together, state=state) for part in (frame[:4], frame[4:])]
    assert pd.concat(parts)["orcast_mean"].equals(oc.recalibrate(frame, issued_every=together)["orcast_mean"])
