"""Seasons of the calendar: the numbers of a loop that receives them, for any cut; a gain if right, no harm if not."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import orcast as oc
from helpers import SENTENCE
from orcast import persistence
from orcast.committee.state import SERIES
from orcast.evaluate.metrics import pinball

LEVELS = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
SCORES = np.array([-1.6449, -0.6745, 0.0, 0.6745, 1.6449])
NAMES = [f"q{level:g}" for level in LEVELS]


def weekly(rows: int, seed: int = 0, size: float = 2.0) -> tuple[np.ndarray, np.ndarray]:
    """Quantiles of an expert that errs by the day of the week, and outcomes."""
    rng = np.random.default_rng(seed)
    mean = rng.normal(0.0, 5.0, rows)
    errors = size * rng.standard_normal(7)[np.arange(rows) % 7] + rng.standard_normal(rows)
    return mean[:, None] + np.sqrt(1.0 + size**2) * SCORES, mean + errors


def frame(rows: int = 60, freq: str = "D", series: int = 1, **options: Any) -> pd.DataFrame:
    parts = []
    for i in range(series):
        q, y = weekly(rows, seed=i, **options)
        ds = pd.date_range("2026-01-01", periods=rows, freq=freq)
        parts.append(pd.DataFrame({"unique_id": f"s{i}", "ds": ds, "y": y}).join(pd.DataFrame(q, columns=NAMES)))
    return pd.concat(parts, ignore_index=True)


def answers(out: pd.DataFrame) -> np.ndarray:
    return out[[f"orcast_{name}" for name in NAMES]].to_numpy()


@pytest.mark.parametrize(
    ("freq", "seasons"),
    [("h", (24, 168)), ("30min", (48, 336)), ("6h", (4, 28)), ("D", (7,)), ("W", (52,)), ("MS", (12,)), ("QS", (4,)),
     ("YS", ()), ("5h", ()), ("7h", (24,)), ("min", ())],
)  # fmt: skip
def test_a_frame_is_the_loop_that_is_told_the_seasons(freq: str, seasons: tuple[int, ...]) -> None:
    one = frame(60, freq)
    recal = oc.Recalibrator(seasons=seasons)
    assert recal.seasons == seasons
    expected = recal.run(one[NAMES].to_numpy(), one["y"], levels=LEVELS, at=LEVELS)
    np.testing.assert_array_equal(answers(oc.recalibrate(one, pool=False)), expected)
    if freq in ("h", "D", "6h", "QS", "MS"):
        assert not np.array_equal(
            oc.Recalibrator().run(one[NAMES].to_numpy(), one["y"], levels=LEVELS, at=LEVELS), expected
        )


@pytest.fixture(scope="module")
def expected() -> pd.DataFrame:
    """Of three series of fifty days, in one frame."""
    return oc.recalibrate(frame(50, series=3), workers=1)


@pytest.mark.parametrize("remember", [1, 1000])
@pytest.mark.parametrize("cuts", [[1, 2, 3], [1, 9, 30]])
def test_cuts_change_nothing(cuts: list[int], remember: int, expected: pd.DataFrame) -> None:
    whole = frame(50, series=3)
    days = np.arange(len(whole)) % 50
    state = oc.FrameState(remember=remember)
    found = []
    for first, last in zip([0, *cuts], [*cuts, 50], strict=True):
        found.append(oc.recalibrate(whole[(days >= first) & (days < last)], state=state))
    np.testing.assert_array_equal(answers(pd.concat(found).sort_index()), answers(expected))


def test_windows_of_several_steps_have_the_season_of_their_cutoffs() -> None:
    """Each step of daily windows is a stream of days, and outcomes that are not known yet are not looked at."""
    q, y = weekly(70)
    ds = pd.date_range("2026-01-01", periods=70)
    rows = [(ds[t], ds[t - k], y[t], *q[t]) for t in range(3, 70) for k in (1, 2, 3)]
    one = pd.DataFrame(rows, columns=["ds", "cutoff", "y", *NAMES])
    out = oc.recalibrate(one)
    for when in (20, 40):
        moved = one.copy()
        moved.loc[moved["ds"] == ds[when], "y"] += 20.0
        early = one["cutoff"] < ds[when]
        again = oc.recalibrate(moved)
        np.testing.assert_array_equal(answers(again)[early], answers(out)[early])
        assert (answers(again)[one["cutoff"] == ds[when + 6]] != answers(out)[one["cutoff"] == ds[when + 6]]).any()


@pytest.mark.parametrize("cuts", [[2, 20], [1, 2, 3, 30]])
@pytest.mark.parametrize("horizons", [0, 2])
def test_gaps_are_skipped_alike_however_a_frame_is_cut(horizons: int, cuts: list[int], tmp_path: Path) -> None:
    q, y = weekly(60)
    ds = pd.date_range("2026-01-01", periods=60)
    rows = [(ds[t], ds[t - k], y[t], *q[t]) for t in range(2, 60) for k in range(1, max(horizons, 1) + 1) if t - k > 0]
    whole = pd.DataFrame(rows, columns=["ds", "cutoff", "y", *NAMES])
    rng = np.random.default_rng(1)
    whole = whole[(rng.random(len(whole)) > 0.2) | (whole["ds"] < ds[4])]
    whole.loc[rng.random(len(whole)) < 0.1, "y"] = np.nan  # outcomes that never come
    when = whole["cutoff"] if horizons else whole["ds"]
    if not horizons:
        whole = whole.drop(columns="cutoff")
    expected = oc.recalibrate(whole)
    path, found = tmp_path / "state.orcast", []
    for first, last in zip([0, *cuts], [*cuts, 60], strict=True):
        part = whole[(when >= ds[first]) & (when < (ds[last] if last < 60 else pd.Timestamp("2027-01-01")))]
        if len(part):
            found.append(oc.recalibrate(part, state=path))
    np.testing.assert_array_equal(answers(pd.concat(found).sort_index()), answers(expected))


def test_gaps_do_not_shift_the_weekday() -> None:
    """A tenth of the days is missing at random: errors by the weekday are found as well as if none were."""
    ratios = []
    for seed in range(8):
        q, y = weekly(120, seed)
        here = np.random.default_rng(seed).random(120) > 0.1
        here[:2] = True
        ds = pd.date_range("2026-01-01", periods=120)[here]
        gaps = pd.DataFrame({"ds": ds, "y": y[here]}).join(pd.DataFrame(q[here], columns=NAMES))
        by_row = pd.date_range("2026-01-01", periods=len(gaps))
        loss = [
            pinball(answers(oc.recalibrate(each)), y[here], LEVELS).mean() for each in (gaps, gaps.assign(ds=by_row))
        ]
        ratios.append(loss[0] / loss[1])
    assert np.mean(ratios) < 0.95


def test_the_right_season_helps_and_a_wrong_one_does_no_harm() -> None:
    losses: dict[tuple[int, ...], list[float]] = {(): [], (7,): [], (5,): [], (9, 31): []}
    for seed in range(12):
        q, y = weekly(100, seed)
        for seasons, found in losses.items():
            rows = oc.Recalibrator(seasons=seasons).run(q, y, levels=LEVELS, at=LEVELS)
            found.append(float(pinball(rows, y, LEVELS).mean()))
    total = {seasons: float(np.sum(found)) for seasons, found in losses.items()}
    assert total[7,] < 0.93 * total[()]
    assert total[5,] < 1.005 * total[()]
    assert total[9, 31] < 1.005 * total[()]


def test_seasons_stay_with_a_forecaster(tmp_path: Path) -> None:
    q, y = weekly(60)
    path = tmp_path / "game.orcast"
    for begin in (0, 3, 30):
        recal = oc.Recalibrator(seasons=(7,))
        recal.run(q[:begin], y[:begin], levels=LEVELS)
        recal.save(path)
        again = oc.Recalibrator.load(path)
        assert again.seasons == (7,)
        rows = [forecaster.run(q[begin:], y[begin:], levels=LEVELS) for forecaster in (recal, again)]
        np.testing.assert_array_equal(*rows)
    named, alone = oc.Recalibrator(seasons=(7,)), oc.Recalibrator(seasons=(7,))
    named.save(path)
    named = oc.Recalibrator.load(path)
    for row, outcome in zip(q, y, strict=True):
        expert = oc.Quantiles(LEVELS, row)
        assert named.predict(experts={"one": expert}).quantile(0.9) == alone.predict(expert).quantile(0.9)
        named.update(outcome)
        alone.update(outcome)


@pytest.mark.parametrize("wrong", [3, True, "7", (7.0,), (3,), (367,), (7, 14, 28), (True,), (None,)])
def test_wrong_seasons_are_refused(wrong: Any) -> None:
    with pytest.raises((TypeError, ValueError), match=SENTENCE):
        oc.Recalibrator(seasons=wrong)


@pytest.mark.parametrize(
    ("column", "value"),
    [("short_season", 1e9), ("presumed_long", -1.0), ("newest", 1e30), ("outcomes", -1.0)],
)
def test_a_file_whose_seasons_lie_beyond_their_arrays_is_refused(column: str, value: float, tmp_path: Path) -> None:
    recal, path = oc.Recalibrator(seasons=(7,)), tmp_path / "game.orcast"
    recal.save(path)
    header, arrays = persistence.decode(path.read_bytes())
    name = "memory/committee_series"
    arrays[name] = arrays[name].copy()
    arrays[name].reshape(-1)[SERIES.index(column)] = value
    persistence.write(path, persistence.encode(header, arrays))
    with pytest.raises(ValueError, match=SENTENCE):
        oc.Recalibrator.load(path)
