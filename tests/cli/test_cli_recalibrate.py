"""`orcast recalibrate`: a file in, the same file with more columns out, and the messages."""

import io
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from test_cli import small

import orcast as oc
from orcast import cli
from orcast.frame import recalibrate
from orcast.frame.run import FrameRun

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def forecasts(tmp_path: Path) -> Path:
    path = tmp_path / "cv.csv"
    small().write_csv(path)
    return path


def command(*arguments: object) -> list[str]:
    return ["recalibrate", *map(str, arguments)]


def test_it_writes_beside_the_file_what_the_library_says(forecasts: Path, capsys: Capture) -> None:
    assert cli.main(command(forecasts)) == 0
    told = capsys.readouterr()
    assert told.out == ""
    lines = told.err.splitlines()
    assert lines[0] == f"{forecasts}: 122 rows, 2 series"
    assert lines[5].startswith("Cannot decide without issue times")
    assert lines[5].endswith("issued together (issued_every=).")
    assert lines[6].startswith("The 80% interval covered ")
    assert ", after recalibration " in lines[6]
    assert lines[-1] == f"written: {forecasts.with_name('cv.orcast.csv')}"
    made = pl.read_csv(forecasts.with_name("cv.orcast.csv"), schema_overrides={"unique_id": pl.String})
    assert made.equals(recalibrate(small()))
    assert made["unique_id"][0] == "007"


def test_columns_bounds_and_levels_can_be_named(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    frame = small().rename({"unique_id": "plant", "y": "power", "q0.1": "lower", "q0.9": "upper"})
    frame = frame.with_columns(pl.lit(0.0).alias("least")).drop("q0.5")
    frame.write_csv(path)
    named = ["--y", "power", "--series", "plant", "--model", "tree:0.1=lower,0.9=upper", "--low", "least"]
    assert cli.main(command(path, *named, "--high", "200", "--levels", "0.05,0.5", "--quiet")) == 0
    expected = recalibrate(
        frame,
        y="power",
        series="plant",
        model={"tree": {0.1: "lower", 0.9: "upper"}},
        low="least",
        high=200.0,
        levels=[0.05, 0.5],
    )
    made = pl.read_csv(tmp_path / "a.orcast.csv", schema_overrides={"plant": pl.String, "least": pl.Float64})
    assert made.equals(expected)
    assert {"tree_orcast_q0.05", "tree_orcast_q0.1", "tree_orcast_status"} < set(made.columns)


def test_a_state_goes_on(tmp_path: Path, capsys: Capture) -> None:
    frame = small(40)
    state = tmp_path / "state"
    days = sorted(set(frame["ds"]))
    parts = []
    for first, last in ((0, 25), (25, 40)):
        path = tmp_path / f"{first}.csv"
        frame.filter(pl.col("ds").is_in(days[first:last])).write_csv(path)
        bounds = ["--low", "0", "--high", "100"] if first == 0 else []  # the state knows them
        assert cli.main(command(path, "--state", state, *bounds)) == 0
        assert capsys.readouterr().err.splitlines()[-1].endswith(f", {state}")
        parts.append(pl.read_csv(tmp_path / f"{first}.orcast.csv", schema_overrides={"unique_id": pl.String}))
    both = pl.concat(parts).sort("unique_id", "ds")
    assert both.equals(recalibrate(frame, low=0.0, high=100.0))


def test_what_should_be_looked_at_is_said_with_its_line(forecasts: Path, tmp_path: Path, capsys: Capture) -> None:
    frame = small()
    at = int(frame["y"].arg_max() or 0)
    top = frame["y"].sort()[-2]
    bounds = ["--high", top, "--low", "0"]
    assert cli.main(command(forecasts, "--quiet", *bounds)) == 1
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert said.startswith(f"orcast: ignored outcomes outside the bounds (low 0.0, high {float(top)}) in line {at + 2}")
    assert f"({forecasts}" in said
    assert cli.main(command(forecasts, "--quiet", *bounds, "--outside", "clip")) == 0
    # an outcome that changed since it was used
    state = tmp_path / "state"
    assert cli.main(command(forecasts, "--quiet", "--state", state)) == 0
    text = forecasts.read_text().splitlines()
    cells = text[9].split(",")
    text[9] = ",".join([*cells[:2], "51.5", *cells[3:]])
    forecasts.write_text("\n".join(text))
    capsys.readouterr()
    assert cli.main(command(forecasts, "--quiet", "--state", state)) == 1
    assert "differ from those that were used in line 10: run the whole frame" in capsys.readouterr().err


def test_probabilities_and_several_models(tmp_path: Path, capsys: Capture) -> None:
    rng = np.random.default_rng(0)
    p = rng.random(80).round(3)
    path = tmp_path / "rain.csv"
    pl.DataFrame({"y": (rng.random(80) < p**2).astype(int), "a_p": p, "b_p": p**2}).write_csv(path)
    assert cli.main(command(path)) == 0
    said = capsys.readouterr().err.splitlines()
    assert said[2:4] == ["  a         a probability (a_p)", "  b         a probability (b_p)"]
    assert "a:" in said
    assert "b:" in said
    assert {"a_orcast_p", "b_orcast_p"} < set(pl.read_csv(tmp_path / "rain.orcast.csv").columns)
    y = rng.choice(["home", "away"], 80)
    pl.DataFrame({"y": y, "p_home": p, "p_away": 1 - p}).write_csv(path)
    assert cli.main(command(path, "--quiet")) == 0
    assert {"orcast_p_home", "orcast_p_away"} < set(pl.read_csv(tmp_path / "rain.orcast.csv").columns)


# --- when things go wrong ---


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_result_that_cannot_be_written_leaves_the_state(
    forecasts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    def full(*_: object, **_options: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pl.DataFrame, "write_csv", full)
    assert cli.main(command(forecasts, "--state", tmp_path / "state")) == 2
    assert "No space left" in capsys.readouterr().err
    assert names(tmp_path) == ["cv.csv"]


def test_stopping_it_writes_nothing(
    forecasts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    def stopped(run: Any, workers: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(FrameRun, "run_rounds", stopped)
    assert cli.main(command(forecasts, "--state", tmp_path / "state", "--report", tmp_path / "r.html")) == 130
    assert capsys.readouterr().err == "orcast: stopped\n"
    assert names(tmp_path) == ["cv.csv"]


def test_through_a_pipe(forecasts: Path) -> None:
    orcast_ = [sys.executable, "-m", "orcast"]
    done = subprocess.run([*orcast_, *command("-")], input=forecasts.read_bytes(), capture_output=True, check=True)
    made = pl.read_csv(io.BytesIO(done.stdout), schema_overrides={"unique_id": pl.String})
    assert made.equals(recalibrate(small()))
    assert done.stderr.startswith(b"stdin: 122 rows, 2 series\n")
    assert b"written" not in done.stderr
    # the reader has gone
    with subprocess.Popen(
        [*orcast_, *command("-", "--quiet")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        process.stdin.write(forecasts.read_bytes())
        process.stdin.close()
        assert process.wait() == 0
        assert process.stderr.read() == b""


def test_times_are_those_of_the_library(tmp_path: Path) -> None:
    frame = small(60, ("a",))
    frame.write_csv(tmp_path / "a.csv")
    given = {
        ("--lag", "3D"): {"lag": "3D"},
        ("--issued-every", "7"): {"issued_every": 7},
        ("--issued-every", "weekly"): {"issued_every": "weekly"},
    }
    for options, same in given.items():
        assert cli.main(command(tmp_path / "a.csv", "-o", tmp_path / "b.csv", *options)) == 0
        found, told = pl.read_csv(tmp_path / "b.csv"), oc.recalibrate(pl.read_csv(tmp_path / "a.csv"), **same)
        columns = [name for name in told.columns if "orcast" in name and told[name].dtype == pl.Float64]
        assert columns
        np.testing.assert_array_equal(found.select(columns).to_numpy(), told.select(columns).to_numpy())
