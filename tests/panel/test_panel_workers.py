"""All cores: the same results for any number of processes, one bar, and a clean end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from test_panel_play import quietly
from test_panel_state import contents

from orcast.panel import PanelState, recalibrate, workers
from orcast.panel.stream import play_batch
from panels import Plan, panel


def agree(frame: pd.DataFrame, counts: tuple[int, ...], folder: Path, **options: Any) -> None:
    """Frames and states, first and second call."""
    early = frame[frame.ds < 4]
    told, kept = [], []
    for count in counts:
        state = PanelState()
        first = quietly(early, workers=count, state=state, **options)
        told.append((first, quietly(frame, workers=count, state=state, **options)))
        kept.append(contents(state, folder))
    for first, second in told[1:]:
        pd.testing.assert_frame_equal(first, told[0][0], check_exact=True)
        pd.testing.assert_frame_equal(second, told[0][1], check_exact=True)
    assert all(each == kept[0] for each in kept)


def test_results_are_the_same_here_and_elsewhere(tmp_path: Path) -> None:
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
    agree(frame, (1, 2), tmp_path, low=0, high=100, model=model)


def test_processes_do_play(monkeypatch: pytest.MonkeyPatch) -> None:
    """When others are asked, one batch is played here, while they start, and no more."""
    frame = panel(Plan(1, series=4, steps=5))
    want = recalibrate(frame, workers=1)
    here = []

    def counted(batch: Any, pools: Any) -> Any:
        here.append(batch)
        return play_batch(batch, pools)

    monkeypatch.setattr(workers, "play_batch", counted)
    pd.testing.assert_frame_equal(recalibrate(frame, workers=2), want, check_exact=True)
    assert len(here) == 1
    recalibrate(frame, workers=1)
    assert len(here) > 2


def test_batches_of_any_size_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    from orcast.panel import frame_run

    frame = panel(Plan(2, "normal", series=7, steps=5))
    low = {f"s{i}": -float(i) for i in range(7)}
    want = recalibrate(frame, low=low)
    for most in (1, 7, 1000):
        monkeypatch.setattr(frame_run, "BATCH", most)
        pd.testing.assert_frame_equal(recalibrate(frame, low=low), want, check_exact=True)


def test_many_series_share_few_runners(monkeypatch: pytest.MonkeyPatch) -> None:
    """A game is made once for a space, not for each series; and series with bounds of their own leave no trace."""
    from orcast.panel import runner

    made = []

    class Counted(runner.Runner):
        def __init__(self, *given: Any) -> None:
            made.append(given)
            super().__init__(*given)

    monkeypatch.setattr(runner, "Runner", Counted)
    frame = panel(Plan(3, series=12, steps=4))
    want = recalibrate(frame, low=0, pool=False)
    assert len(made) <= 2
    low = {f"s{i}": 0.0 if i % 2 else -float(i + 1) for i in range(12)}
    out = recalibrate(frame, low=low, pool=False)
    odd = frame["unique_id"].str[1:].astype(int) % 2 == 1
    pd.testing.assert_frame_equal(out[odd], want[odd], check_exact=True)
    monkeypatch.setattr(runner, "MOST_RUNNERS", 2)
    pd.testing.assert_frame_equal(recalibrate(frame, low=low, pool=False), out, check_exact=True)


def test_what_a_worker_refuses_is_refused_here(tmp_path: Path) -> None:
    frame = panel(Plan(1, series=4, steps=5))
    state = PanelState()
    recalibrate(frame[frame.ds < 3], state=state)
    stream = next(iter(state.content.models["M0"].streams.values()))
    stream.game = stream.game._replace(memory=stream.game.memory[:-1])
    before = contents(state, tmp_path)
    for count in (1, 2):
        with pytest.raises(ValueError, match="expected a state that this version can use, got one that it cannot"):
            recalibrate(frame, state=state, workers=count)
    assert contents(state, tmp_path) == before


def test_a_worker_that_dies_is_said_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(workers, "BOOT", "import sys; {path!r}; sys.exit('no memory left')")
    frame = panel(Plan(1, series=4, steps=5))
    path = tmp_path / "state.orcast"
    with pytest.raises(
        RuntimeError, match=r"expected a worker process to go on, got its end \(code 1\): no memory left"
    ):
        recalibrate(frame, workers=2, state=path)
    assert list(tmp_path.iterdir()) == []


SCRIPT = """
import sys
import numpy as np
import pandas as pd
from orcast.panel import recalibrate

print("begun", flush=True)
n, steps = {series}, 50
rng = np.random.default_rng(0)
frame = pd.DataFrame({{
    "unique_id": np.repeat(np.arange(n), steps), "ds": np.tile(np.arange(steps), n), "y": rng.random(n * steps),
    "mean": 0.5, "sd": 0.2,
}})
out = recalibrate(frame, low=0, high=1, workers={workers}, state={state!r}, progress={progress})
print(len(out), "done", flush=True)
"""


def script(folder: Path, **options: Any) -> subprocess.Popen[str]:
    path = folder / "script.py"
    path.write_text(textwrap.dedent(SCRIPT).format(**options), encoding="utf-8")
    return subprocess.Popen(
        [sys.executable, str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )


def test_a_plain_script_needs_no_guard(tmp_path: Path) -> None:
    """Worker processes do not run the user's script again."""
    process = script(tmp_path, series=8, workers=2, state=str(tmp_path / "state"), progress=False)
    out, err = process.communicate(timeout=120)
    assert (out.split(), err) == (["begun", "400", "done"], "")


def children(pid: int) -> list[int]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parts = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(parts[1]) == pid and parts[0] != "Z":
            found.append(int(folder.name))
    return found


def begun(process: subprocess.Popen[str], count: int) -> list[int]:
    """Its workers, once they are busy."""
    until = time.monotonic() + 120.0
    while len(children(process.pid)) < count:
        assert time.monotonic() < until
        time.sleep(0.02)
    time.sleep(1.5)
    found = children(process.pid)
    assert len(found) == count
    assert process.poll() is None
    return found


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are looked up in /proc")
@pytest.mark.parametrize(
    ("count", "whole_group"),
    [
        (2, True),
        pytest.param(2, False, marks=pytest.mark.slow),
        pytest.param(1, True, marks=pytest.mark.slow),
        pytest.param(1, False, marks=pytest.mark.slow),
    ],
)
def test_ctrl_c_stops_cleanly(tmp_path: Path, count: int, whole_group: bool) -> None:
    """No process is left, no file is half written, and there is one trace of it, not one from each process."""
    state = tmp_path / "state.orcast"
    process = script(tmp_path, series=20_000, workers=count, state=str(state), progress=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    workers_then = begun(process, count if count > 1 else 0)
    # in a terminal the signal goes to the whole group
    (os.killpg if whole_group else os.kill)(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=120)
    assert process.returncode in (1, 130, -signal.SIGINT)
    assert err.count("Traceback") == 1
    assert err.rstrip().endswith("KeyboardInterrupt")
    assert not [pid for pid in workers_then if Path(f"/proc/{pid}").exists()]
    assert sorted(each.name for each in tmp_path.iterdir()) == ["script.py"]


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are looked up in /proc")
def test_workers_go_when_their_caller_is_killed(tmp_path: Path) -> None:
    process = script(tmp_path, series=20_000, workers=2, state=None, progress=False)
    assert process.stdout is not None
    process.stdout.readline()
    left = begun(process, 2)
    process.kill()
    process.communicate()
    until = time.monotonic() + 120.0
    while [pid for pid in left if Path(f"/proc/{pid}").exists()]:
        assert time.monotonic() < until
        time.sleep(0.1)
