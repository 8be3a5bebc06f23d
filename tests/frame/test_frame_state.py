"""A panel goes on where it stopped: splits, pending rows, repeats, corrections, files."""

from __future__ import annotations

import multiprocessing
import os
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_frame_run import bounds, plans, quietly, same

import orcast as oc
from frames import Plan, outputs, panel
from helpers import SENTENCE
from orcast.frame import FrameState, recalibrate
from orcast.locks import file_lock

# each example plays several frames
few = settings(max_examples=settings.default.max_examples // 2)


def contents(state: FrameState, folder: Path) -> bytes:
    """All that a state holds."""
    path = folder / "contents.orcast"
    state.save(path)
    return path.read_bytes()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("panel")


def pieces(frame: pd.DataFrame, cuts: list[float], *, together: bool = False) -> list[pd.DataFrame]:
    """A frame in parts, cut anywhere in the order of issue; forecasts of a series, or all, that are issued together."""
    issued = "cutoff" if "cutoff" in frame else "ds"
    number = frame.groupby([issued] if together else [issued, "unique_id"]).ngroup()
    ends = [0, *sorted(int(cut * (number.max() + 1)) for cut in cuts), number.max() + 1]
    return [frame[(number >= a) & (number < b)] for a, b in pairwise(ends)]


@few
@given(plans, st.lists(st.floats(0.0, 1.0), min_size=1, max_size=3), st.booleans(), st.booleans())
def test_frames_in_parts_are_the_frame(
    folder: Path, plan: Plan, cuts: list[float], through_a_file: bool, pool: bool
) -> None:
    """Bit for bit, wherever it is cut; with pending rows, delays, series that begin and end, and several models."""
    frame = panel(plan)
    options: dict[str, Any] = {"pool": pool, **bounds(plan)}
    whole = quietly(frame, **options)
    state = FrameState()
    parts = []
    # forecasts of a pool that are issued together come together
    for piece in pieces(frame, cuts, together=pool):
        parts.append(quietly(piece, state=state, **options))
        if through_a_file:
            state.save(folder / "some.orcast")
            state = FrameState.load(folder / "some.orcast")
    same(whole, pd.concat(parts))


@few
@given(plans, st.floats(0.0, 1.0))
def test_rows_that_come_again_are_answered_as_before(folder: Path, plan: Plan, cut: float) -> None:
    frame = panel(plan)
    first = pieces(frame, [cut])[0]
    state = FrameState()
    once = quietly(first, state=state, pool=False, **bounds(plan))
    before = contents(state, folder)
    again = quietly(first, state=state, pool=False, **bounds(plan))
    assert contents(state, folder) == before
    both = quietly(frame, state=state, pool=False, **bounds(plan))
    for m in (f"M{i}" for i in range(plan.models)):
        names = [name for name in outputs(once, m) if not name.endswith("status")]
        same(once[names], again[names])
        same(once[names], both.loc[once.index, names])
        assert set(again[f"{m}_orcast_status"]) <= {"already answered", "pending", "outside", "no forecast"}
    whole = quietly(frame, pool=False, **bounds(plan))
    names = [name for name in outputs(whole) if not name.endswith("status")]
    same(whole[names], both[names])


@few
@given(plans, st.integers(0, 2**32 - 1))
def test_outcomes_that_come_later_settle_what_waits(plan: Plan, seed: int) -> None:
    """As one who makes a forecast each step and learns each outcome when it comes: the same as all at once."""
    plan = Plan(**{**plan.__dict__, "holes": 0.0})
    frame = panel(plan)
    whole = quietly(frame, **bounds(plan))
    state = FrameState()
    made = frame["cutoff"] if plan.horizons else frame["ds"] - 1
    said = []
    for now in sorted(made.unique()):
        # rows that waited come again with their outcome, and new ones without
        part = frame[(made == now) | ((made < now) & (frame["ds"] <= now))]
        part = part.assign(y=part["y"].where(part["ds"] <= now, None)).sample(frac=1.0, random_state=seed % 1000)
        out = quietly(part, state=state, **bounds(plan))
        said.append(out[made[part.index] == now])
        assert set(said[-1]["M0_orcast_status"]) <= {"pending", "no forecast"}
    said = pd.concat(said)
    for m in (f"M{i}" for i in range(plan.models)):
        names = [name for name in outputs(whole, m) if not name.endswith(("miscalibration", "status"))]
        same(whole[names], said[names])
    final = quietly(frame, state=state, **bounds(plan))
    names = [name for name in outputs(whole) if not name.endswith("status")]
    same(whole[names], final[names])
    assert state.pending == 0


def test_adversary_may_answer_where_it_hurts() -> None:
    """It sees each forecast first; outcomes come three steps late.  The promise is kept in every row."""
    state, y = FrameState(), {}
    frames = []
    for c in range(120):
        new = pd.DataFrame({"cutoff": c, "ds": [c + 1, c + 2, c + 3], "y": np.nan, "mean": 50.0, "sd": 10.0})
        old = pd.DataFrame({"cutoff": range(c - 3, c), "ds": c, "y": y.get(c), "mean": 50.0, "sd": 10.0})
        frame = pd.concat((old[old.cutoff >= 0], new)) if c else new
        out = recalibrate(frame, low=0, high=100, state=state, levels=[0.25, 0.75])
        said = out[out.cutoff == c].iloc[0]
        # just outside of what is half of the mass
        hurts = said["orcast_q0.25"] - 1e-3 if c % 3 else said["orcast_q0.75"] + 1e-3
        y[c + 1] = min(max(float(hurts), 0.0), 100.0)
        frames.append(frame[frame.cutoff == c])
    whole = pd.concat(frames, ignore_index=True)
    whole["y"] = whole["ds"].map(y)
    out = recalibrate(whole, low=0, high=100, levels=[0.25, 0.75])
    assert out["orcast_holds"].all()
    used = out.dropna(subset=["orcast_miscalibration"])
    assert len(used) > 350
    assert (used["orcast_miscalibration"] <= used["orcast_promised"]).all()
    assert used["orcast_miscalibration"].max() > 0.2


def test_the_promise_counts_what_waits() -> None:
    """With outcomes on their way it is not the bound of a game without delay."""
    frame = panel(Plan(4, "normal", series=1, steps=40, horizons=4))
    out = recalibrate(frame, low=0, high=100)
    h = frame.groupby("cutoff")["ds"].rank()
    last = out.groupby(h)["M0_orcast_promised"].last()
    assert last.is_monotonic_increasing
    assert last.iloc[-1] > 1.2 * last.iloc[0]
    assert (out["M0_orcast_miscalibration"] <= out["M0_orcast_promised"]).all()
    # after a long history without delay, rows that wait one after the other
    frame = panel(Plan(4, "normal", series=1, steps=160))
    out = recalibrate(frame.assign(y=frame.y.where(frame.ds < 150)), low=0, high=100)["M0_orcast_promised"]
    assert (np.diff(out[30:150]) < 0.0).all()
    assert (np.diff(out[150:]) > 0.0).all()
    assert out[159] > 1.15 * out[149]


# --- corrections


def test_a_corrected_outcome_is_reported_with_its_row() -> None:
    frame = panel(Plan(1, steps=6))
    state = FrameState()
    first = recalibrate(frame, state=state)
    frame.loc[3, "y"] += 1.0
    with pytest.warns(UserWarning, match="outcomes differ from those that were used in row 3: run the whole frame"):
        again = recalibrate(frame, state=state)
    assert again["M0_orcast_status"].tolist().count("corrected") == 1
    assert again["M0_orcast_status"][3] == "corrected"
    assert again["M0_orcast"].equals(first["M0_orcast"])


def test_an_outcome_that_nobody_used_yet_may_change() -> None:
    """It was known, but no forecast could know it: the new one counts."""
    frame = panel(Plan(6, series=1, steps=5, horizons=3))
    state = FrameState()
    first, second = frame[frame.cutoff < 3], frame[frame.cutoff >= 3]
    recalibrate(first, state=state)
    changed = frame.assign(y=frame.y.where(frame.ds != 5, 7.0))
    with pytest.warns(UserWarning, match="outcomes differ"):
        again = recalibrate(changed[frame.cutoff < 3], state=state)
    assert set(again.loc[again.ds == 5, "M0_orcast_status"]) == {"corrected"}
    out = recalibrate(changed[frame.cutoff >= 3], state=state)
    whole = recalibrate(changed)
    same(whole.loc[second.index, outputs(whole)], out[outputs(out)])
    names = [name for name in outputs(whole) if not name.endswith("status")]
    same(whole.loc[first.index, names], again[names])


# --- what is refused changes nothing


def refused(folder: Path, state: FrameState, frame: Any, match: str, **options: Any) -> None:
    path = folder / "refused.orcast"
    state.save(path)
    before = path.read_bytes()
    for given_ in (state, path):
        with pytest.raises((ValueError, TypeError), match=match) as caught:
            recalibrate(frame, state=given_, **options)
        assert re.match(SENTENCE, str(caught.value)), str(caught.value)
    assert path.read_bytes() == before
    assert contents(state, folder) == before


def test_what_is_refused_leaves_the_state_as_it_was(folder: Path) -> None:
    frame = panel(Plan(1, steps=6))
    state = FrameState()
    recalibrate(frame[frame.ds < 4], state=state, low=0, levels=[0.25])
    rest = frame[frame.ds >= 4]
    refused(folder, state, rest, "low= as in the state, 0.0, got 1.0", low=1)
    refused(folder, state, rest, "levels= as in the state", levels=[0.3])
    refused(folder, state, rest, "the default payoff, as in the state", payoff=oc.QuantileCalibration())
    refused(folder, state, rest.assign(cutoff=rest.ds - 1), "as the state has them, no cutoffs, got cutoffs")
    refused(folder, state, rest.assign(ds=rest.ds.astype(str) + "-01-01"), "expected a time")
    refused(folder, state, rest.assign(ds=rest.ds + 0.5), "expected a time as a date or a whole number in 'ds'")
    refused(
        folder,
        state,
        rest.rename(columns={"M0-lo-80": "M0-lo-90", "M0-hi-80": "M0-hi-90"}),
        "of the state, 3 quantiles",
    )
    refused(folder, state, pd.concat((rest, rest)), "expected one row of series 's0' for each time and cutoff")
    assert recalibrate(rest, state=state)["M0_orcast-lo-50"].notna().all()


def test_a_failure_in_the_middle_leaves_the_state_as_it_was(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = panel(Plan(1, steps=6, series=3))
    path = folder / "middle.orcast"
    recalibrate(frame[frame.ds < 4], state=path)
    before = path.read_bytes()
    from orcast.frame import stream as run_rounds

    calls = []

    def breaks(*given_: Any, **options: Any) -> Any:
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return original(*given_, **options)

    original = run_rounds.run_order
    monkeypatch.setattr(run_rounds, "run_order", breaks)
    state = FrameState.load(path)
    for given_ in (path, state):
        calls.clear()
        with pytest.raises(KeyboardInterrupt):
            recalibrate(frame, state=given_, workers=1)
        assert len(calls) == 2
    assert path.read_bytes() == before
    assert contents(state, folder) == before


def test_a_warning_made_an_error_leaves_the_state_as_it_was(folder: Path) -> None:
    frame = panel(Plan(1, steps=6))
    state = FrameState()
    recalibrate(frame[frame.ds < 4], state=state, low=0, high=100)
    before = contents(state, folder)
    with pytest.raises(UserWarning, match="ignored outcomes"):
        recalibrate(frame.assign(y=frame.y.where(frame.ds < 5, 101.0)), state=state)
    assert contents(state, folder) == before


# --- what is kept


def test_old_rows_are_forgotten_but_not_those_that_wait() -> None:
    frame = panel(Plan(1, series=1, steps=30))
    frame.loc[20:, "y"] = np.nan
    state = FrameState(remember=5)
    first = recalibrate(frame, state=state)
    assert state.pending == 10
    frame.loc[20, "y"] = 50.0
    with pytest.warns(UserWarning, match="no answer for rows that precede answered rows of their series in 20 rows"):
        again = recalibrate(frame, state=state)
    assert again["M0_orcast_status"].tolist() == ["late"] * 20 + ["ok"] + ["pending"] * 9
    assert again["M0_orcast"][20] == first["M0_orcast"][20]
    assert again["M0_orcast"][:20].isna().all()
    assert state.pending == 9


def test_an_outcome_that_is_missing_while_later_ones_come_is_given_up() -> None:
    frame = panel(Plan(1, series=1, steps=30))
    frame.loc[5, "y"] = np.nan
    late = frame.assign(y=frame.y.where(frame.index != 5, 50.0))
    state = FrameState()
    first = recalibrate(frame, state=state)
    assert first["M0_orcast_status"].tolist() == ["ok"] * 5 + ["pending"] + ["ok"] * 24
    assert state.pending == 0
    # what comes after that is not used
    with pytest.warns(UserWarning, match="that came long after those of later rows in row 5: run the whole"):
        again = recalibrate(late, state=state)
    assert again["M0_orcast_status"].tolist() == ["already answered"] * 5 + ["expired"] + ["already answered"] * 24


def test_rows_are_given_up_when_too_many_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    from orcast.frame import run, stream

    for module in (run, stream):
        monkeypatch.setattr(module, "MAX_PENDING", 3)
    frame = panel(Plan(1, "normal", series=1, steps=8)).assign(y=np.nan)
    state = FrameState()
    with pytest.warns(UserWarning, match="pending rows of series with more than 3 in 5 rows: 0, 1, 2, 3, 4"):
        out = recalibrate(frame, state=state)
    assert out["M0_orcast_status"].tolist() == ["evicted"] * 5 + ["pending"] * 3
    assert state.pending == 3
    with pytest.warns(UserWarning, match="more than 3"):
        out = recalibrate(frame.assign(y=50.0), state=state)
    assert out["M0_orcast_status"].tolist() == ["evicted"] * 5 + ["ok"] * 3


def test_rows_within_a_cutoff_go_on_from_frame_to_frame() -> None:
    frame = panel(Plan(3, series=1, steps=4, horizons=4))
    state = FrameState()
    h = frame.groupby("cutoff")["ds"].rank()
    recalibrate(frame[(frame.cutoff < 3) | (h < 3)], state=state)
    out = recalibrate(frame[(frame.cutoff == 3) & (h >= 3)], state=state)
    whole = recalibrate(frame)
    same(out, whole.loc[out.index])


def test_what_is_left_out_is_as_the_state_has_it() -> None:
    frame = panel(Plan(1, steps=8))
    given_: Any = {"low": 0, "high": 100, "levels": [0.25, 0.75]}
    whole = recalibrate(frame, **given_)
    state = FrameState()
    recalibrate(frame[frame.ds < 4], state=state, **given_)
    rest = frame[frame.ds >= 4]
    same(recalibrate(rest, state=state), whole.loc[rest.index])


def test_a_frame_of_forecasts_alone_will_do_once_a_state_has_begun() -> None:
    frame = panel(Plan(1, steps=8))
    state = FrameState()
    with pytest.raises(ValueError, match="expected a column of outcomes"):
        recalibrate(frame.drop(columns="y"), state=state)
    recalibrate(frame[frame.ds < 5], state=state)
    out = recalibrate(frame[frame.ds >= 5].drop(columns="y"), state=state)
    assert set(out["M0_orcast_status"]) == {"pending"}
    assert recalibrate(frame, state=state)["M0_orcast_status"].isin(["already answered", "ok"]).all()
    assert state.pending == 0


@pytest.mark.parametrize("horizons", [0, 2])
@pytest.mark.parametrize("named", [True, False])
def test_outcomes_of_a_table_settle_pending_rows(horizons: int, named: bool) -> None:
    """Future forecasts alone, and a table of past outcomes: as if all had come in one frame."""
    frame = panel(Plan(4, "normal", series=2 if named else 1, steps=9, horizons=horizons))
    frame = frame if named else frame.drop(columns="unique_id")
    made = frame["cutoff"] if horizons else frame["ds"] - 1
    keys = [name for name in ("unique_id", "ds") if name in frame]
    outcomes, forecasts = frame[[*keys, "y"]].drop_duplicates(), frame.drop(columns="y")
    state, said = FrameState(), []
    for now in sorted(made.unique()):
        begun = now > made.min()
        known = {"target": outcomes[outcomes.ds <= now]} if begun else {}
        today = forecasts[made == now] if begun else frame[made == now].assign(y=np.nan)
        said.append(recalibrate(today, state=state, **known))
        assert set(said[-1]["M0_orcast_status"]) == {"pending"}
        if horizons == 0:
            assert state.pending == len(today)
    whole, names = recalibrate(frame), ["M0_orcast_mean", "M0_orcast_std", "M0_orcast_promised"]
    same(whole[names], pd.concat(said)[names])
    later = {"ds": 99, **({"cutoff": 98} if horizons else {})}
    with pytest.warns(UserWarning, match="no row of target= matches a row of the frame or a pending row"):
        recalibrate(forecasts.tail(1).assign(**later), state=state, target=outcomes.tail(1).assign(ds=1000))


@pytest.mark.parametrize("by", ["target", "row"])
def test_outcome_outside_the_bounds_of_a_pending_row_of_an_earlier_frame_is_reported(by: str) -> None:
    frame = pd.DataFrame({"unique_id": "A", "ds": [1, 2, 3, 4], "y": [5.0, 6.0, None, None], "mean": 5.0, "sd": 1.0})
    frame["cutoff"], state = frame.ds - 2, FrameState()
    recalibrate(frame, state=state, low=0, high=10)
    more: dict[str, Any] = {"frame": frame.tail(1).drop(columns="y"), "target": frame.loc[[2], ["unique_id", "ds"]]}
    more["target"]["y"] = 99.0
    if by == "row":  # of another cutoff, without a forecast
        more = {"frame": frame.loc[[2]].assign(cutoff=2, y=99.0, mean=np.nan)}
    sentence = r"\(low 0.0, high 10.0\) for 1 pending row of earlier frames, got 99$"
    with pytest.warns(UserWarning, match=f"^ignored outcomes outside the bounds {sentence}"):
        recalibrate(more.pop("frame"), state=state, **more)
    assert state.pending == 1


def test_changed_forecasts_of_answered_rows_are_named() -> None:
    frame = panel(Plan(1, steps=6))
    state = FrameState()
    first = recalibrate(frame, state=state)
    frame.loc[[1, 4], "M0-lo-80"] -= 1.0
    match = "^old answers of model 'M0' were kept although their forecasts changed in 2 rows: 1, 4"
    with pytest.warns(UserWarning, match=match):
        again = recalibrate(frame, state=state)
    names = [name for name in outputs(first) if not name.endswith("status")]
    same(first[names], again[names])


# --- files


def test_a_file_that_is_no_state_of_a_frame_is_refused(folder: Path) -> None:
    frame, path = panel(Plan(1, steps=5)), folder / "other.orcast"
    oc.Recalibrator().save(path)
    with pytest.raises(ValueError, match="expected the state of a FrameState, got that of a Recalibrator"):
        recalibrate(frame, state=path)
    with pytest.raises(FileNotFoundError, match="expected a folder that exists"):
        recalibrate(frame, state=folder / "none" / "state.orcast")
    with pytest.raises(TypeError, match="expected a path, the URL of a store or a FrameState"):
        recalibrate(frame, state=3)  # type: ignore[arg-type]


def write_series(path: Path, name: str, go: Any) -> None:
    frame = pd.DataFrame({"unique_id": name, "ds": range(3), "y": [1.0, 2.0, None], "mean": 1.5, "sd": 1.0})
    go.wait()
    recalibrate(frame, state=path)


forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")


@forks
def test_processes_on_one_state_wait_for_each_other(tmp_path: Path) -> None:
    path, count, context = tmp_path / "state", 12, multiprocessing.get_context("fork")
    go = context.Barrier(count)
    writers = [context.Process(target=write_series, args=(path, f"s{i}", go)) for i in range(count)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(timeout=120)
    assert [writer.exitcode for writer in writers] == [0] * count
    assert len(FrameState.load(path)) == count
    assert [each.name for each in tmp_path.iterdir()] == ["state"]


def test_state_in_use_is_refused_after_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, frame = tmp_path / "state", panel(Plan(1, series=1, steps=4))
    monkeypatch.setattr("orcast.locks.PATIENCE", 0.1)
    with (
        file_lock(path),
        pytest.raises(TimeoutError, match=r"no other process uses, got one in use for 0\.1 s: .*state"),
    ):
        recalibrate(frame, state=path)
    recalibrate(frame, state=path)
    assert len(FrameState.load(path)) == 1


@forks
def test_lock_of_a_state_is_not_held_by_a_forked_child(tmp_path: Path) -> None:
    path = tmp_path / "state"
    parent, child = multiprocessing.get_context("fork").Pipe()
    with file_lock(path):
        process = multiprocessing.get_context("fork").Process(target=child.recv)
        process.start()
    with file_lock(path):  # although the child goes on
        pass
    assert process.is_alive()
    parent.send("end")
    process.join(timeout=60)


@pytest.mark.parametrize("bounded", ["no", "number", "column"])
def test_an_outcome_reaches_horizons_that_have_no_rows_in_its_frame(bounded: str) -> None:
    """Rows of two and three steps ahead wait; a frame of one step ahead alone brings their outcomes."""

    def rows(cutoffs: range, steps: range, known: int) -> pd.DataFrame:
        pairs = [(c, c + h) for c in cutoffs for h in steps]
        y = [10.0 + 5.0 * np.sin(3.0 * t) + t % 3 if t <= known else np.nan for _, t in pairs]
        frame = pd.DataFrame({"unique_id": "a", "ds": [t for _, t in pairs], "cutoff": [c for c, _ in pairs], "y": y})
        return frame.assign(M=10.0, low=0.0, high=30.0, **{"M-lo-80": 8.5, "M-hi-80": 11.5})

    options: dict[str, Any] = {"no": {}, "number": {"low": 0, "high": 30}, "column": {"low": "low", "high": "high"}}
    parts = [
        rows(range(10), range(1, 4), 10),
        rows(range(10, 20), range(1, 2), 20),
        rows(range(20, 24), range(1, 4), 20),
    ]
    whole = recalibrate(pd.concat(parts, ignore_index=True), model="M", **options[bounded])
    state = FrameState()
    result = [recalibrate(part, state=state, model="M", **options[bounded]) for part in parts]
    split = pd.concat(result, ignore_index=True)
    for column in ("M_orcast-lo-80", "M_orcast", "M_orcast-hi-80", "M_orcast_promised"):
        np.testing.assert_array_equal(split[column], whole[column])
    assert state.pending == (whole.M_orcast_status == "pending").sum()
