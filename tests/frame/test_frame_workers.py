"""Frames in threads: the same results for any number of them, and a clean end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from test_frame_run import quietly
from test_frame_state import contents

from frames import Plan, panel
from orcast.frame import FrameState, recalibrate, run
from orcast.frame.stream import run_streams


def both_calls(frame: pd.DataFrame, folder: Path, **options: Any) -> tuple[bytes, bytes, bytes]:
    """The early rows of a frame, then all of it, and the state after that; all as bytes."""
    state = FrameState()
    outs = [quietly(part, state=state, **options) for part in (frame[frame.ds < 4], frame)]
    bits = [out.select_dtypes("number").to_numpy(float).tobytes() + out.to_csv().encode() for out in outs]
    return bits[0], bits[1], contents(state, folder)


def assert_equal_for_any_count(frame: pd.DataFrame, folder: Path, **options: Any) -> None:
    one, *more = (both_calls(frame, folder, workers=count, **options) for count in (1, 2, 4))
    assert all(each == one for each in more)


@pytest.mark.parametrize("pool", [True, False])
def test_any_number_of_threads_gives_the_same_bits(pool: bool, tmp_path: Path) -> None:
    """Every kind of quantity in one frame, with all that can happen to a row."""
    frames = {
        form: panel(Plan(1, form, series=5, steps=6, horizons=2, holes=0.2, gaps=0.1, strays=0.1))
        for form in ("quantiles", "normal", "members", "point")
    }
    shared = ["unique_id", "ds", "cutoff", "y"]
    own = [each.drop(columns=shared).add_prefix(form) for form, each in frames.items()]
    frame = pd.concat((frames["normal"][shared], *own), axis=1)
    model = {
        "q": {0.1: "quantilesM0-lo-80", 0.5: "quantilesM0", 0.9: "quantilesM0-hi-80"},
        "n": {"mean": "normalM0_mean", "sd": "normalM0_std"},
        "m": [f"membersM0_member_{i}" for i in range(1, 5)],
        "p": "pointM0",
    }
    assert_equal_for_any_count(frame, tmp_path, low=0, high=100, model=model, pool=pool)


@pytest.mark.parametrize("form", ["binary", "labels"])
def test_any_number_of_threads_gives_the_same_bits_on_events(form: str, tmp_path: Path) -> None:
    assert_equal_for_any_count(panel(Plan(2, form, series=5, steps=6, horizons=2, holes=0.2)), tmp_path)


def test_batches_run_in_as_many_threads_as_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    frame, seen = panel(Plan(1, series=40, steps=5)), set()
    barrier = threading.Barrier(3)

    def noted(*given: Any) -> None:
        if threading.current_thread() not in seen:
            seen.add(threading.current_thread())
            barrier.wait(timeout=60.0)
        run_streams(*given)

    monkeypatch.setattr(run, "run_streams", noted)
    recalibrate(frame, workers=3)
    assert len(seen) == 3
    assert threading.main_thread() not in seen


def test_batches_of_any_size_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = panel(Plan(2, "normal", series=7, steps=5))
    want = recalibrate(frame, low=0)
    for most in (1, 7, 1000):
        monkeypatch.setattr(run, "BATCH", most)
        pd.testing.assert_frame_equal(recalibrate(frame, low=0), want, check_exact=True)


def test_many_series_share_few_runners(monkeypatch: pytest.MonkeyPatch) -> None:
    """A runner is made once for a space, not for each series; another space leaves no trace."""
    from orcast.frame import runner

    made = []

    class Noted(runner.Runner):
        def __init__(self, *given: Any, **options: Any) -> None:
            made.append(given)
            super().__init__(*given, **options)

    monkeypatch.setattr(runner, "Runner", Noted)
    monkeypatch.setattr(runner, "_kept", threading.local())
    frame = panel(Plan(3, series=12, steps=4))
    want = recalibrate(frame, low=0, pool=False)
    assert len(made) == 1
    recalibrate(frame, low=0, pool=False)
    assert len(made) == 1
    out = recalibrate(frame, low=-3, pool=False)
    monkeypatch.setattr(runner, "MOST_RUNNERS", 1)
    pd.testing.assert_frame_equal(recalibrate(frame, low=0, pool=False), want, check_exact=True)
    pd.testing.assert_frame_equal(recalibrate(frame, low=-3, pool=False), out, check_exact=True)


def test_errors_in_a_thread_are_raised_in_the_caller(tmp_path: Path) -> None:
    frame = panel(Plan(1, series=4, steps=5))
    state = FrameState()
    recalibrate(frame[frame.ds < 3], state=state)
    stream = next(iter(state.content.models["M0"].streams.values()))
    stream.recal = stream.recal._replace(memory=stream.recal.memory[:-1])
    before, threads = contents(state, tmp_path), threading.active_count()
    for count in (1, 2):
        with pytest.raises(ValueError, match="expected a state that this version can use, got an invalid one"):
            recalibrate(frame, state=state, workers=count)
        assert threading.active_count() == threads
    assert contents(state, tmp_path) == before


SCRIPT = """
import threading
import numpy as np
import pandas as pd
from orcast.frame import pools, recalibrate, stream

where, method = {begins}
run, once = getattr(where, method), threading.Lock()

def noted(*given):
    if once.acquire(blocking=False):
        print("begun", flush=True)
    return run(*given)

setattr(where, method, noted)
n, steps = {series}, {steps}
frame = pd.DataFrame({{
    "unique_id": np.repeat(np.arange(n), steps), "ds": np.tile(np.arange(steps), n), "mean": 0.5, "sd": 0.2,
    "y": np.random.default_rng(0).random(n * steps),
}})
try:
    recalibrate(frame, low=0, high=1, workers={workers}, pool={pool}, state={state!r})
finally:
    print(threading.active_count(), flush=True)
"""


@pytest.mark.parametrize(
    ("series", "steps", "count", "pool"),
    [(4_000, 50, 2, False), (2, 60_000, 2, False), (2, 60_000, 1, False), (2_000, 100, 2, True)],
    ids=["many series", "long series", "one thread", "a pool"],
)
def test_keyboard_interrupt_stops_a_frame_within_a_second(
    series: int, steps: int, count: int, pool: bool, tmp_path: Path
) -> None:
    """Nothing is written, no thread is left, and there is one traceback."""
    path, state = tmp_path / "script.py", str(tmp_path / "state.orcast")
    begins = "pools.GroupPass, '_fill_base'" if pool else "stream.StreamRun, 'run_rounds'"
    script = SCRIPT.format(series=series, steps=steps, workers=count, pool=pool, state=state, begins=begins)
    path.write_text(script, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, str(path)], env=environment, **pipes) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "begun\n"
            time.sleep(0.3)
            begin = time.monotonic()
            process.send_signal(signal.SIGINT)
            assert process.stdout.readline() == "1\n"
            assert time.monotonic() - begin < 1.0
            _, err = process.communicate(timeout=120)
        finally:
            process.kill()
    assert process.returncode in (1, 130, -signal.SIGINT)
    assert err.count("Traceback") == 1
    assert err.rstrip().endswith("KeyboardInterrupt")
    assert [each.name for each in tmp_path.iterdir()] == ["script.py"]
