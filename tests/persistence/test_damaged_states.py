"""Any state file is refused with a message or works, and none makes the process grow."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mutations
import orcast as oc
from helpers import SENTENCE
from orcast.limits import LIMITS

TESTS = Path(__file__).parents[1]
SPACE = 4 * 2**30  # of addresses: libraries reserve more than they use


def limited(*arguments: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """A process that may not have more memory.

    A launcher sets the limit: nothing is forked from a process that has threads of other libraries.
    """
    launcher = (
        f"import os, resource, sys; resource.setrlimit(resource.RLIMIT_AS, ({SPACE}, {SPACE})); "
        "os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
    )
    paths = os.pathsep.join([str(TESTS.parent / "src"), str(TESTS), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, "-c", launcher, *arguments],
        input=given,
        capture_output=True,
        env={**os.environ, "PYTHONPATH": paths, "OPENBLAS_NUM_THREADS": "1"},
        check=False,
    )


def test_damage_is_refused_in_a_sentence_or_plays_on() -> None:
    done = limited(str(TESTS / "mutations.py"), "300", "--seed", "11")
    assert done.returncode == 0, done.stderr.decode()[-1000:]
    found = json.loads(done.stdout)
    assert found["bad"] == []
    assert sum(found["outcomes"].values()) == 300
    assert len(found["outcomes"]) == 2  # some are refused, some are not
    assert found["peak"] < 10**9
    assert found["slowest"] < 30.0, found["which"]  # CPU; LogitPath may take all the steps of its path
    assert done.stderr == b""  # nor does LAPACK say anything


def load(change: Any, tmp_path: Path, name: str = "labels") -> Any:
    """A state after a change of its header and arrays, under right checksums."""
    path = tmp_path / "state.orcast"
    space, forecast, y = {
        "labels": (oc.Labels(["a", "b", "c"]), [0.5, 0.3, 0.2], "b"),
        "binary": (oc.Binary(), 0.4, 1),
        "interval": (oc.Interval(0, 100), oc.Normal(50, 10), 52.0),
        "dense": (oc.Labels(["a", "b", "c"]), [0.5, 0.3, 0.2], "b"),
    }[name]
    recal = oc.Recalibrator(space, oc.payoffs.SimplexCalibration() if name == "dense" else None)
    for _ in range(20):
        recal.predict(forecast)
        recal.update(y)
    recal.save(path)
    header, arrays = mutations.split(path.read_bytes())
    change(header, arrays)
    path.write_bytes(mutations.joined(header, arrays))
    return oc.Recalibrator.load(path)


def test_the_state_itself_loads(tmp_path: Path) -> None:
    assert load(lambda header, arrays: None, tmp_path).guarantee.rounds == 20


@pytest.mark.parametrize("sizes", [[45, 10**9], [10**9], [], "x", [0], [-1], [1.5], [True]])
def test_sizes_are_not_believed(sizes: Any, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=SENTENCE):
        load(lambda header, arrays: header.update(sizes=sizes), tmp_path, "dense")


CHANGES = {
    "negative budget": ("interval", "memory/account", (0,), -1.0),
    "half a round": ("interval", "memory/account", (1,), 2.5),
    "more held than rounds": ("interval", "memory/account", (2,), 1e9),
    "payoff above the budget": ("interval", "memory/total", (0,), 1e9),
    "no rounds until an outcome": ("interval", "memory/committee_streams", (0, 3), 0.0),
    "a season longer than a year": ("interval", "memory/committee_series", (0, 8), 1e4),
    "a time beyond all times": ("interval", "memory/committee_series", (0, 4), 1e20),
    "infinite": ("interval", "memory/committee_streams", (0, -1), np.inf),
    "huge": ("interval", "memory/committee_streams", (0, -1), 1e300),
    "negative squares of a binary game": ("binary", "memory/square", (0, 0), -1.0),
    "not positive definite, binary": ("binary", "memory/curvature", (0, 0, 0), -5.0),
    "a coefficient beyond its bounds": ("labels", "memory/theta", (0, 0), 1e9),
    "a coefficient beyond its bounds, dense": ("dense", "memory/prior/theta", (0, 0), 1e9),
}


@pytest.mark.parametrize("which", CHANGES)
def test_numbers_that_no_run_rounds_leads_to_are_refused(which: str, tmp_path: Path) -> None:
    name, array, place, value = CHANGES[which]

    def change(header: Any, arrays: Any) -> None:
        assert arrays[array][place] != value
        arrays[array][place] = value

    with pytest.raises(ValueError, match=SENTENCE):
        load(change, tmp_path, name)


@pytest.mark.parametrize("tilt", [-7.6, 60.0, -5e5])
def test_a_start_far_from_the_prior_is_not_refused(tilt: float, tmp_path: Path) -> None:
    """What the last forecast differed by from its prior has no bound: eight threads got there in 3,000 rounds."""

    def change(header: Any, arrays: Any) -> None:
        arrays["memory/warm"][3] = tilt

    recal = load(change, tmp_path, "interval")
    for _ in range(20):
        assert recal.predict(oc.Normal(50, 10), id="next", reuse=True).certificate.holds
        recal.update(52.0, id="next")


def test_a_number_of_many_digits_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=SENTENCE):
        load(lambda header, arrays: header.update(max_pending=10**4000), tmp_path)


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "state.orcast"
    oc.Recalibrator().save(path)
    monkeypatch.setattr(LIMITS, "file_bytes", 100)
    with pytest.raises(ValueError, match=r"expected at most 100 bytes in a state file, got \d+ .*state.orcast"):
        oc.Recalibrator.load(path)
    monkeypatch.undo()
    monkeypatch.setattr(LIMITS, "header_bytes", 100)
    with pytest.raises(ValueError, match=r"expected at most 100 bytes in the header of a state file, got \d+"):
        oc.Recalibrator.load(path)


def test_a_line_with_50_000_labels_is_answered_and_the_stream_goes_on() -> None:
    good = json.dumps({"series": "a", "id": 1, "forecast": {"mean": 3, "sd": 1}}).encode() + b"\n"
    n = 50_000
    large = (
        json.dumps({"series": "b", "forecast": {"probabilities": {str(i): 1 / n for i in range(n)}}}).encode() + b"\n"
    )
    long = b'{"series": "a", "y": ' + b"9" * 5000 + b"}\n"
    deep = b'{"x": ' * 100_000 + b"\n"
    done = limited("-m", "orcast", "stream", given=good + large + long + deep + good)
    assert done.returncode == 0
    first, *refused, last = map(json.loads, done.stdout.splitlines())
    assert first == last
    assert [answer["line"] for answer in refused] == [2, 3, 4]
    assert "at most 4096 labels" in refused[0]["error"]
    assert "digits" in refused[1]["error"]
    assert all(answer["error"].startswith("expected ") for answer in refused)
