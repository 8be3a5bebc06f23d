"""Frames in, the same frames and more out: types, names, bounds, odd rows, and what is refused."""

from __future__ import annotations

import datetime
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from test_frame_run import bounds, quietly, same

import orcast as oc
from frames import BESIDE, FORMS, Plan, outputs, panel
from helpers import SENTENCE
from orcast.frame import FrameState, recalibrate


def polars(frame: pd.DataFrame) -> pl.DataFrame:
    """The same frame; what is missing is null."""

    def plain(v: Any) -> Any:
        if v is None or v != v:
            return None
        # polars 1.0 forgets the zone of a timestamp of pandas
        return v.to_pydatetime() if isinstance(v, pd.Timestamp) and v.tz is not None else v

    return pl.DataFrame({str(name): [plain(v) for v in frame[name].tolist()] for name in frame.columns})


def rows_of(frame: Any) -> list[tuple[Any, ...]]:
    """All values, None for whatever stands for missing."""
    table = frame.to_dict("list") if isinstance(frame, pd.DataFrame) else frame.to_dict(as_series=False)
    columns = [[None if v is pd.NA or v is None or v != v else v for v in values] for values in table.values()]
    return [(tuple(table), ()), *zip(*columns, strict=True)]


# --- types


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("horizons", [0, 2])
def test_pandas_and_polars_agree_to_the_last_bit(form: str, horizons: int) -> None:
    plan = Plan(1, form, series=2, steps=6, horizons=horizons, holes=0.2, gaps=0.2, strays=0.2, models=2)
    frame = panel(plan)
    one, other = quietly(frame, **bounds(plan)), quietly(polars(frame), **bounds(plan))
    assert isinstance(one, pd.DataFrame)
    assert isinstance(other, pl.DataFrame)
    assert rows_of(one) == rows_of(other)
    # what is missing is null in polars, not nan
    for name in outputs(other):
        assert other[name].null_count() == int(one[name].isna().sum())
    assert other["M0_orcast_miscalibration"].null_count() > 0
    assert other["M0_orcast_holds"].dtype == pl.Boolean
    assert other["M0_orcast_status"].dtype == pl.String


def test_the_frame_that_came_is_as_it_was() -> None:
    for form in FORMS:
        plan = Plan(1, form, gaps=0.2, holes=0.2)
        frame = panel(plan)
        before = frame.copy(deep=True)
        recalibrate(frame, replace=True, state=FrameState())
        pd.testing.assert_frame_equal(frame, before, check_exact=True)
        other = polars(frame)
        kept = other.clone()
        recalibrate(other, replace=True)
        assert other.equals(kept)


@pytest.mark.parametrize("index", ["twice", "several", "dates"])
def test_index_and_order_are_kept(index: str) -> None:
    frame = panel(Plan(2, series=2, steps=6)).sample(frac=1.0, random_state=1)
    plain = recalibrate(frame.reset_index(drop=True))
    if index == "twice":
        frame.index = pd.Index([3] * len(frame))
    elif index == "several":
        frame.index = pd.MultiIndex.from_arrays([range(len(frame)), ["x"] * len(frame)], names=["a", None])
    else:
        frame.index = pd.date_range("2020-01-01", periods=len(frame))[::-1]
    out = recalibrate(frame)
    assert out.index.equals(frame.index)
    pd.testing.assert_frame_equal(out.reset_index(drop=True), plain, check_exact=True)


@pytest.mark.filterwarnings("ignore:missing quantiles")
def test_missing_is_missing_however_it_is_written() -> None:
    frame = panel(Plan(3, "quantiles", series=1, steps=9))
    at = {"M0": 2, "M0-lo-80": 4, "y": 6}
    for name, row in at.items():
        frame.loc[row, name] = np.nan
    want = rows_of(recalibrate(frame))
    nullable = frame.convert_dtypes()
    assert str(nullable["y"].dtype) == "Float64"
    mixed = frame.astype(dict.fromkeys(at, object)).where(frame.notna(), None)
    assert rows_of(recalibrate(nullable)) == want
    assert rows_of(recalibrate(mixed.astype({"M0": float, "M0-lo-80": float}))) == want
    assert rows_of(recalibrate(polars(frame))) == want
    nan = polars(frame).with_columns(pl.col("M0").fill_null(float("nan")), pl.col("y").fill_null(float("nan")))
    assert [row[4:] for row in rows_of(recalibrate(nan))][1:] == [row[4:] for row in want][1:]


TIMES: dict[str, Any] = {
    "dates": lambda t: (
        pd.Timestamp("2024-02-27") + pd.Timedelta(days=2 * t)
    ),  # a step that the calendar has no season for
    "nanoseconds": lambda t: pd.Timestamp("2024-02-27").as_unit("ns") + pd.Timedelta(t, "ns"),
    "zones": lambda t: pd.Timestamp("2024-03-30 20:00", tz="Europe/Berlin") + pd.Timedelta(hours=t),
    "days": lambda t: datetime.date(2024, 2, 27) + datetime.timedelta(days=2 * t),
    "text": lambda t: (datetime.date(2024, 2, 27) + datetime.timedelta(days=2 * t)).isoformat(),
    "text with a zone": lambda t: f"2024-03-30T20:{t:02d}:00+01:00",
    "months": lambda t: pd.Period("2024-01", "M") + t,
    "whole floats": lambda t: t - 2.0,
    "years": lambda t: 1980 + t,
}


@pytest.mark.parametrize("kind", TIMES)
@pytest.mark.parametrize("horizons", [0, 2])
def test_times_of_every_kind_are_put_in_order(kind: str, horizons: int) -> None:
    frame = panel(Plan(4, series=2, steps=11, horizons=horizons)).sample(frac=1.0, random_state=3)
    told = frame.copy()
    for name in ("ds", "cutoff")[: 1 + bool(horizons)]:
        told[name] = [TIMES[kind](t) for t in frame[name]]
    whole, out = recalibrate(frame), recalibrate(told)
    same(whole[outputs(whole)], out[outputs(out)])
    if kind not in ("months", "nanoseconds"):
        # also through a state, from frame to frame
        state, early = FrameState(), frame["cutoff" if horizons else "ds"] < 5
        parts = [recalibrate(told[early], state=state), recalibrate(polars(told[~early]), state=state)]
        pieces = pd.concat(
            (
                parts[0][outputs(out)],
                pd.DataFrame(parts[1].select(outputs(out)).to_dict(as_series=False), index=frame.index[~early]),
            )
        )
        assert rows_of(pieces) == rows_of(whole.loc[pieces.index, outputs(whole)])


@pytest.mark.parametrize("kind", ["numbers", "text", "category", "two columns", "dates", "none"])
def test_series_may_be_named_by_anything(kind: str) -> None:
    frame = panel(Plan(5, series=1 if kind == "none" else 3, steps=5))
    whole = recalibrate(frame, pool=False)
    number = frame["unique_id"].str[1:].astype(int)
    series: Any = "unique_id"
    if kind == "numbers":
        frame["unique_id"] = number * 10 - 7
    elif kind == "category":
        frame["unique_id"] = frame["unique_id"].astype("category")
    elif kind == "dates":
        frame["unique_id"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(number, unit="D")
    elif kind == "two columns":
        frame["shop"], frame["item"] = number // 2, number % 2
        frame, series = frame.drop(columns="unique_id"), ["shop", "item"]
    elif kind == "none":
        frame, series = frame.drop(columns="unique_id"), None
    model = {"M0": {0.1: "M0-lo-80", 0.5: "M0", 0.9: "M0-hi-80"}} if series != "unique_id" else None
    state = FrameState()
    parts = [
        recalibrate(part, series=series, model=model, state=state, pool=False) for part in (frame[frame.ds < 2], frame)
    ]
    out = parts[1].assign(M0_orcast_status="ok")
    columns = dict(zip(outputs(out), outputs(whole), strict=True))
    same(whole[outputs(whole)], out[outputs(out)].rename(columns=columns))


# --- forms


def test_members_keep_their_identity() -> None:
    """The member that was the largest is so afterwards; equal ones stay in their order; what is missing stays so."""
    rng = np.random.default_rng(1)
    members = rng.normal(50.0, 5.0, (30, 5))
    members[3, 1] = members[3, 4]
    members[5, 2] = np.nan
    members[7] = np.nan
    members[8, :4] = np.nan
    members[9, 3] = np.inf
    frame = pd.DataFrame(members, columns=[f"member_{i}" for i in range(5)]).assign(y=rng.normal(50.0, 9.0, 30))
    out = recalibrate(frame, levels=[0.5])
    after = out[[f"orcast_member_{i}" for i in range(5)]].to_numpy()
    assert out["orcast_status"].tolist() == ["no forecast" if t in (7, 8) else "ok" for t in range(30)]
    for t in range(30):
        if t in (7, 8):
            assert np.isnan(after[t]).all()
            continue
        there = np.isfinite(members[t])
        assert (np.isfinite(after[t]) == there).all()
        order = np.argsort(members[t][there], kind="stable")
        assert (np.diff(after[t][there][order]) > 0.0).all()
    # the i-th of n is the quantile at (i - 0.5) / n
    recal = oc.Recalibrator()
    for t in range(30):
        there = np.isfinite(members[t])
        if there.sum() < 2:
            continue
        p = recal.predict(oc.Ensemble(members[t][there]))
        n = int(there.sum())
        assert np.sort(after[t][there]).tolist() == p.quantile((np.arange(n) + 0.5) / n).tolist()
        assert out["orcast_q0.5"][t] == p.quantile(0.5)
        recal.update(frame["y"][t])


def test_the_mean_beside_quantiles_comes_out_too() -> None:
    frame = panel(Plan(1, steps=5)).rename(columns={"M0": "M0-median"}).assign(M0=lambda f: f["M0-median"] + 1.0)
    out = recalibrate(frame, pool=False)
    assert {"M0_orcast", "M0_orcast-median", "M0_orcast-lo-80", "M0_orcast-hi-80"} <= set(out.columns)
    recal = oc.Recalibrator()
    for _, row in out[out.unique_id == "s0"].iterrows():
        p = recal.predict({0.1: row["M0-lo-80"], 0.5: row["M0-median"], 0.9: row["M0-hi-80"]})
        assert (row["M0_orcast"], row["M0_orcast-median"]) == (p.to_normal()[0], p.quantile(0.5))
        recal.update(row["y"])


def test_levels_that_are_asked_for_come_in_the_form_that_was_found() -> None:
    frame = panel(Plan(1, steps=5))
    out = recalibrate(frame, levels=[0.05, 0.95, 0.3])
    assert [n for n in outputs(out) if "lo" in n or "hi" in n or "ql" in n] == [
        "M0_orcast-lo-90",
        "M0_orcast-lo-80",
        "M0_orcast-lo-40",
        "M0_orcast-hi-80",
        "M0_orcast-hi-90",
    ]
    values = out[["M0_orcast-lo-90", "M0_orcast-lo-80", "M0_orcast-lo-40", "M0_orcast", "M0_orcast-hi-80"]].to_numpy()
    assert (np.diff(values, axis=1) > 0.0).all()
    normal = recalibrate(panel(Plan(1, "normal", steps=5)), levels=[0.1])
    assert "M0_orcast_q0.1" in normal.columns


def test_binary_and_labels_take_what_outcomes_people_write() -> None:
    frame = panel(Plan(1, "binary", steps=8))
    whole = recalibrate(frame)
    for told in (frame.y.astype(bool), frame.y.astype(int), frame.y.astype("Int64"), frame.y.astype("boolean")):
        out = recalibrate(frame.assign(y=told))
        assert out["M0_orcast_p"].tolist() == whole["M0_orcast_p"].tolist()
    frame = panel(Plan(1, "labels", steps=8))
    whole = recalibrate(frame)
    numbers = frame.rename(columns={"M0_p_home": "M0_p_0", "M0_p_draw": "M0_p_1", "M0_p_away": "M0_p_2"})
    numbers["y"] = frame["y"].map({"home": 0, "draw": 1, "away": 2})
    out = recalibrate(numbers)
    assert out["M0_orcast_p_1"].tolist() == whole["M0_orcast_p_draw"].tolist()


# --- bounds


def test_bounds_may_be_given_in_every_way() -> None:
    frame = panel(Plan(1, "normal", series=2, steps=8)).assign(cap=100.0, floor=0.0)
    want = recalibrate(frame, low=0, high=100)
    same(want, recalibrate(frame, low=np.int64(0), high=np.float64(100)))
    # a column is recalibrated as the share of the way from one bound to the other, which is the same but for rounding
    names = [n for n in outputs(want) if not n.endswith(("holds", "status", "alarm"))]
    for low, high in [("floor", "cap"), (0, "cap"), ("floor", 100)]:
        out = recalibrate(frame, low=low, high=high)
        np.testing.assert_allclose(out[names].to_numpy(), want[names].to_numpy(), rtol=1e-7, atol=1e-9)


def test_bounds_that_move_are_followed() -> None:
    """A plant that grows: shares of its size are recalibrated, and nothing leaves the bounds of its row."""
    rng = np.random.default_rng(2)
    n = 200
    cap = np.linspace(10.0, 1000.0, n)
    share = rng.beta(2.0, 2.0, n)
    frame = pd.DataFrame({"ds": range(n), "y": cap * share, "mean": 0.5 * cap, "sd": 0.3 * cap, "cap": cap})
    out = recalibrate(frame, low=0, high="cap", levels=[0.001, 0.05, 0.95, 0.999])
    unit = recalibrate(frame.assign(y=share, mean=0.5, sd=0.3), low=0, high=1, levels=[0.001, 0.05, 0.95, 0.999])
    assert out["orcast_q0.95"].to_numpy() == pytest.approx(unit["orcast_q0.95"].to_numpy() * cap)
    assert out["orcast_sd"].to_numpy() == pytest.approx(unit["orcast_sd"].to_numpy() * cap)
    assert (out["orcast_q0.999"] <= cap).all()
    assert (out["orcast_q0.001"] >= 0.0).all()


@pytest.mark.parametrize("form", ["quantiles", "normal", "members", "point"])
def test_an_upper_bound_alone_is_the_mirror_of_a_lower_one(form: str) -> None:
    frame = panel(Plan(8, form, series=2, steps=12, horizons=2))
    names = [n for n in frame.columns if n.startswith("M0")]
    flipped = frame.assign(y=-frame["y"])
    for name in names:
        flipped[name] = frame[name] if name.endswith("_std") else -frame[name]
    if form == "quantiles":
        flipped[["M0-lo-80", "M0-hi-80"]] = flipped[["M0-hi-80", "M0-lo-80"]].to_numpy()
    low, high = recalibrate(frame, low=-20), recalibrate(flipped, high=20)
    other = {"lo": "hi", "hi": "lo"}
    for name in [n for n in outputs(low) if not n.endswith(BESIDE)]:
        mirror = re.sub("lo|hi", lambda m: other[m[0]], name)
        sign = 1.0 if name.endswith("_std") else -1.0
        if form == "members":
            continue
        np.testing.assert_allclose(low[name], sign * high[mirror], rtol=1e-9, atol=1e-9)
    if form == "members":
        columns = [n for n in outputs(low) if "member" in n]
        np.testing.assert_allclose(low[columns].to_numpy(), -high[columns].to_numpy(), rtol=1e-9, atol=1e-9)
    by_row = recalibrate(flipped.assign(cap=20.0), high="cap")
    same(high[outputs(high)], by_row[outputs(high)])


def test_outcomes_beyond_a_bound_are_reported_with_their_rows() -> None:
    frame = panel(Plan(1, series=2, steps=6))
    frame.loc[[2, 7], "y"] = 120.0, np.inf
    match = r"outside the bounds \(low 0, high 100\) in 2 rows: 2, 7"
    with pytest.warns(UserWarning, match=match):
        out = recalibrate(frame, low=0, high=100)
    assert out.index[out["M0_orcast_status"] == "outside"].tolist() == [2, 7]
    assert out.loc[[2, 7], "M0_orcast"].notna().all()
    assert out.loc[[2, 7], "M0_orcast_miscalibration"].isna().all()
    # as if the row had never had an outcome
    without = recalibrate(frame.assign(y=frame.y.where(frame.y <= 100)), low=0, high=100)
    differs = out["M0_orcast"] != without["M0_orcast"]
    assert not differs[:3].any()
    with pytest.warns(UserWarning, match="in row 7"):
        clipped = recalibrate(frame, low=0, high=100, outside="clip", pool=False)
    assert clipped["M0_orcast_status"].tolist().count("outside") == 1
    finite = frame.assign(y=frame.y.clip(0, 100).where(frame.index != 7, 100.0))
    same(
        recalibrate(finite[:6], low=0, high=100)[outputs(out)],
        clipped.loc[:5, outputs(out)],
    )


# --- odd rows


def test_rows_without_a_forecast_pass_through_flagged() -> None:
    frame = panel(Plan(1, series=1, steps=8))
    frame.loc[[2, 5], ["M0-lo-80", "M0", "M0-hi-80"]] = [[np.nan] * 3, [np.nan, -np.inf, np.inf]]
    out = recalibrate(frame)
    assert out.index[out["M0_orcast_status"] == "no forecast"].tolist() == [2, 5]
    assert out.loc[[2, 5], outputs(out)[:6]].isna().all(axis=None)
    same(out.drop([2, 5]), recalibrate(frame.drop([2, 5])))


@pytest.mark.parametrize("bounds", [{}, {"low": 0, "high": 100}, {"high": 200}])
def test_missing_quantiles_are_read_from_the_others(bounds: dict[str, Any]) -> None:
    """As if the columns of a row were those that are there."""
    frame = panel(Plan(1, series=1, steps=8))
    frame.loc[7, "y"] = np.nan
    part = frame.copy()
    part.loc[7, ["M0-lo-80", "M0"]] = [-np.inf, np.nan]
    part.loc[3, "M0"] = np.nan
    with pytest.warns(UserWarning, match="^missing quantiles of model 'M0' were interpolated from the others in"):
        out = recalibrate(part, **bounds)
    assert out["M0_orcast_status"].tolist() == ["ok"] * 7 + ["pending"]
    lows, highs = frame["M0-lo-80"], frame["M0-hi-80"]
    between = lows[3] + (highs[3] - lows[3]) * 0.5  # the score of 0.5 is in the middle
    filled = part.assign(M0=part["M0"].where(part.index != 3, between))
    filled.loc[7, ["M0-lo-80", "M0"]] = highs[7]
    want = recalibrate(filled, **bounds)
    np.testing.assert_allclose(out[outputs(out)[:3]], want[outputs(out)[:3]], rtol=1e-9)


def test_crossing_quantiles_are_sorted_and_said_so() -> None:
    frame = panel(Plan(1, series=1, steps=8))
    crossed = frame.copy()
    crossed.loc[3, ["M0-lo-80", "M0"]] = frame.loc[3, ["M0", "M0-lo-80"]].to_numpy()
    with pytest.warns(UserWarning, match="crossing quantiles of model 'M0' were sorted in row 3"):
        out = recalibrate(crossed)
    same(recalibrate(frame)[outputs(out)], out[outputs(out)])


def test_forecasts_may_be_replaced_in_their_columns() -> None:
    frame = panel(Plan(1, steps=5, gaps=0.3, models=2))
    out = recalibrate(frame, levels=[0.05, 0.95], replace=True)
    beside = recalibrate(frame, levels=[0.05, 0.95])
    assert list(out.columns[:9]) == list(frame.columns)
    for name in ("M0-lo-80", "M0", "M0-hi-80", "M1"):
        new = name.replace("M", "M", 1)[:2] + "_orcast" + name[2:]
        told = beside[new].notna()
        assert out.loc[told, name].tolist() == beside.loc[told, new].tolist()
        # where there is no answer the forecast, or its absence, stays
        assert rows_of(out.loc[~told, [name]]) == rows_of(frame.loc[~told, [name]])
    assert {"M0_orcast-lo-90", "M0_orcast_holds", "M1_orcast_status"} <= set(out.columns)
    assert "M0_orcast" not in out.columns


# --- payoffs


def test_a_payoff_looks_at_columns() -> None:
    frame = panel(Plan(1, "normal", series=1, steps=30)).assign(day=lambda f: f.ds % 3)
    payoff = oc.QuantileCalibration(context=oc.by("day", values=range(3))) + oc.NoRegret(oc.CRPS())
    out = recalibrate(frame, payoff=payoff, low=0, high=100)
    recal = oc.Recalibrator(oc.Interval(0, 100), payoff)
    for _, row in out.iterrows():
        p = recal.predict(oc.Normal(row["M0_mean"], row["M0_std"]), x={"day": row["day"]})
        assert row["M0_orcast_mean"] == p.to_normal()[0]
        recal.update(row["y"])
    state = FrameState()
    recalibrate(frame[:9], payoff=payoff, low=0, high=100, state=state)
    rest = recalibrate(frame[9:], state=state)
    same(rest, out.loc[rest.index])
    with pytest.raises(ValueError, match="expected a column 'day' for the context of the payoff"):
        recalibrate(frame.drop(columns="day"), payoff=payoff)


@pytest.mark.parametrize("horizons", [0, 2])
def test_a_payoff_may_have_functions(horizons: int, tmp_path: Any) -> None:
    frame = panel(Plan(1, "normal", series=2, steps=8, horizons=horizons)).assign(wind=lambda f: np.sin(f.ds))
    peak = oc.Recipe(witness=lambda y: [y > 60], context=lambda x, p: [x["wind"] > 0, x["wind"] <= 0], bound=1.0)
    payoff = peak + oc.NoRegret(oc.CRPS())
    options: Any = {"payoff": payoff, "low": 0, "high": 100}
    whole = recalibrate(frame, workers=2, **options)
    state = tmp_path / "state.orcast"
    parts = [recalibrate(part, state=state, **options) for part in (frame[frame.ds < 4], frame[frame.ds >= 4])]
    same(whole, pd.concat(parts))
    with pytest.raises(ValueError, match="payoff="):
        recalibrate(frame, state=state)
    by_hand = oc.Recalibrator(oc.Interval(0, 100), payoff)
    first = frame[(frame.unique_id == "s0")].iloc[0]
    p = by_hand.predict(oc.Normal(first["M0_mean"], first["M0_std"]), x={"wind": first["wind"]})
    assert whole["M0_orcast_mean"][0] == p.to_normal()[0]


# --- what is refused


def test_what_is_refused_is_said_in_one_sentence() -> None:
    quantiles = panel(Plan(1, steps=4))
    normal = panel(Plan(1, "normal", steps=4))
    binary = panel(Plan(1, "binary", steps=4))
    labels = panel(Plan(1, "labels", steps=4))
    late = panel(Plan(1, steps=4, horizons=2))
    match = panel(Plan(1, "labels", steps=4, horizons=2))
    match["y"] = ["home", "draw", *match["y"][2:]]
    match.loc[2, "y"] = "away"
    wrong: list[tuple[Any, dict[str, Any], str]] = [
        ([1, 2], {}, "expected a data frame"),
        ("panel.csv", {}, "expected a data frame, such as one of pandas or polars, got str"),
        (quantiles, {"outside": "ignore"}, "expected outside='report' or 'clip'"),
        (quantiles, {"workers": 0}, "1 to 1024 workers"),
        (quantiles, {"payoff": 3}, "expected a payoff"),
        (quantiles, {"low": "none"}, "a number or a column of the frame as low, got 'none'"),
        (quantiles, {"low": 5, "high": 5}, "low < high, got 5 and 5"),
        (quantiles, {"low": {"s0": 0}}, "expected a finite number as low bound"),
        (quantiles, {"high": "unique_id"}, "expected numbers in column 'unique_id', got text 's0' in row 0"),
        (
            quantiles.assign(cap=quantiles.ds.where(quantiles.ds > 1)),
            {"high": "cap"},
            "finite bound in every row of 'cap'",
        ),
        (match, {}, "expected one outcome of series 's0' at 2, got 'draw' in row 1 and 'away' in row 2"),
        (quantiles, {"levels": "all"}, "levels strictly between 0 and 1, got 'all'"),
        (quantiles, {"levels": [1.5]}, "levels strictly between 0 and 1"),
        (binary, {"low": 0}, "expected no bounds for probabilities, got 0"),
        (binary.assign(M0_p=1.5), {}, "a probability from 0 to 1 in 'M0_p', got 1.5 in row 0"),
        (labels.assign(M0_p_home=0.9), {}, "probabilities with a sum of 1"),
        (labels.assign(y="unknown"), {}, "got 'unknown' in row 0"),
        (normal.assign(M0_std=[1.0, -2.0, *[1.0] * (len(normal) - 2)]), {}, "at least 0 in 'M0_std', got -2 in row 1"),
        (
            pd.concat((quantiles, quantiles)),
            {},
            "expected one row of series 's0' for each time and cutoff, got rows 0 and",
        ),
        (quantiles.assign(ds="1/2/2024"), {}, "text such as '2024-01-31' in 'ds', got '1/2/2024' in row 0"),
        (quantiles.assign(ds=None), {}, "expected a time in every row of 'ds', got none in 6 rows: 0, 1"),
        (
            quantiles.assign(unique_id=None),
            {},
            "in every row of 'unique_id', got none in 6 rows: 0, 1",
        ),
        (quantiles.assign(ds=quantiles.ds.where(quantiles.ds != 2, np.nan)), {}, "expected a time in every row"),
        (late.drop(columns="ds"), {}, "expected times beside the cutoffs"),
        (late.assign(cutoff="2024-01-01"), {}, "times and cutoffs of one kind, got whole numbers and dates"),
        (
            late.assign(y=range(len(late))),
            {},
            "expected one outcome of series 's0' at 2, got 1 in row 1 and 2 in row 2",
        ),
        (
            late.drop(columns="cutoff").assign(h=2, ds="2024-01-01"),
            {},
            "a column of cutoffs beside the horizons in 'h'",
        ),
        (
            quantiles.assign(ds=["2024-01-01"] + ["2024-01-02T00:00+01:00"] * (len(quantiles) - 1)),
            {},
            "got both, in rows",
        ),
        (quantiles.assign(y="much"), {}, "expected numbers in column 'y', got text 'much' in row 0"),
    ]
    for frame, options, match in wrong:
        with pytest.raises((TypeError, ValueError), match=match) as caught:
            recalibrate(frame, **options)
        assert re.match(SENTENCE, str(caught.value)), str(caught.value)


def test_horizons_may_stand_in_a_column() -> None:
    frame = panel(Plan(1, steps=8, horizons=3, series=2))
    whole = recalibrate(frame, pool=False)
    step = frame.ds - frame.cutoff
    same(whole[outputs(whole)], recalibrate(frame.assign(h=step), pool=False)[outputs(whole)])
    named = frame.assign(h=step.map({1: "day", 2: "day", 3: "week"}))
    out = recalibrate(named, horizon="h", pool=False)
    assert out["M0_orcast"].notna().all()
    assert out[step == 1]["M0_orcast"].tolist() != whole[step == 1]["M0_orcast"].tolist()


def test_three_rows_pass_through_few_functions() -> None:
    frame, seen = panel(Plan(1, series=1, steps=3)), set()
    recalibrate(frame, low=0)

    def note(caller: Any, event: str, _: object) -> None:
        code = caller.f_code
        path = Path(code.co_filename).parts
        if event == "call" and "orcast" in path and not {"kernels", "committee"} & set(path) and code.co_name[0] != "<":
            seen.add((code.co_filename, code.co_firstlineno))

    sys.setprofile(note)
    recalibrate(frame, low=0)
    sys.setprofile(None)
    assert len({file for file, _ in seen}) <= 30
    assert len(seen) <= 200
