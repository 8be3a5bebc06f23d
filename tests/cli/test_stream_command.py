"""`orcast stream` as a process: through real pipes, with real signals, and killed again and again."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from stream_lines import content


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    running: list[subprocess.Popen[bytes]] = []

    def begin(*options: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "orcast", "stream", *options]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        running.append(subprocess.Popen(command, bufsize=0, cwd=tmp_path, **pipes))  # type: ignore[call-overload]
        return running[-1]

    yield begin
    for process in running:
        process.kill()
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()
        process.wait()


def read_line(process: subprocess.Popen[bytes]) -> bytes:
    line = b""
    while not line.endswith(b"\n"):
        assert process.stdout is not None
        part = process.stdout.read(1)
        assert part, "the output ended"
        line += part
    return line


def tell(process: subprocess.Popen[bytes], line: bytes) -> dict[str, Any]:
    assert process.stdin is not None
    process.stdin.write(line + b"\n")
    answer: dict[str, Any] = json.loads(read_line(process))
    return answer


@pytest.mark.skipif(os.name != "posix", reason="there are no such signals here")
def test_it_answers_each_line_at_once_and_survives_a_kill(start: Any, tmp_path: Path) -> None:
    process = start("--low", "0", "--high", "9", "--state", "wind")
    first = tell(process, b'{"id": 1, "forecast": {"mean": 4, "sd": 1}}')
    assert tell(process, b"what?") == {
        "error": "expected a JSON object in a line, got 'what?' (expecting value at place 1)",
        "line": 2,
    }
    other = start("--state", "wind")  # two processes share a state
    assert tell(other, b'{"id": 1, "forecast": {"mean": 4, "sd": 1}}') == first
    other.stdin.close()
    assert other.wait(30) == 0
    process.send_signal(signal.SIGKILL)
    process.wait()
    process = start("--state", "wind")
    assert tell(process, b'{"id": 1, "forecast": {"mean": 4, "sd": 1}}') == first
    assert tell(process, b'{"id": 1, "y": 10}')["error"].startswith("expected an outcome in [0, 9]")
    assert tell(process, b'\n{"id": 1, "y": 5}')["guarantee"]["rounds"] == 1
    process.send_signal(signal.SIGTERM)
    assert process.wait() == 0
    assert said(process) == ""
    assert len(content(tmp_path / "wind")[2]) == 1


def said(process: subprocess.Popen[bytes]) -> str:
    """Its messages on stderr."""
    assert process.stderr is not None
    return process.stderr.read().decode()


@pytest.mark.skipif(os.name != "posix", reason="there are no such signals here")
def test_it_ends_without_a_word(start: Any) -> None:
    # Ctrl-C; the end of the input, in the middle of a line; the reader has gone
    process = start()
    tell(process, b'{"forecast": {"p": 0.5}}')
    process.send_signal(signal.SIGINT)
    assert process.wait() == 130
    assert said(process) == ""
    process = start()
    process.stdin.write(b'{"forecast": {"p": 0.5}}\n{"y": 1}')
    process.stdin.close()
    assert [set(json.loads(line)) for line in process.stdout] == [{"forecast", "certificate"}, {"y", "guarantee"}]
    assert process.wait() == 0
    process = start()
    process.stdout.close()
    process.stdin.write(b'{"forecast": {"p": 0.5}}\n')
    assert process.wait() == 0
    assert said(process) == ""


def test_it_starts_without_what_it_does_not_need() -> None:
    heavy = ["polars", "pandas", "matplotlib", "rich", "narwhals", "shtab"]
    code = (
        "import os, sys; from orcast.cli import main; code = main(['stream', '--low', '0']); "
        f"print(code, sorted(set({heavy}) & sys.modules.keys()), file=sys.stderr)"
    )
    line = b'{"forecast": {"mean": 4, "sd": 1}}\n{"y": 4}\n'
    done = subprocess.run([sys.executable, "-c", code], input=line, capture_output=True, check=True)
    assert done.stderr.endswith(b"0 []\n")
    assert done.stdout.count(b"\n") == 2


def kills(seed: int, count: int, folder: Path) -> dict[str, Any]:
    script = Path(__file__).parents[1] / "stream_kills.py"
    command = [sys.executable, str(script), str(seed), str(count), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def check_kills(told: dict[str, Any], count: int) -> None:
    assert "repeat" not in told
    assert told["answers"] == [told["lines"]] * 2
    assert told["differ"] == []
    assert told["state"]
    assert told["killed"] >= 0.2 * count
    assert told["left"] == ["calm", "stormy"]
    assert told["status"] == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_kills_at_random_moments(tmp_path: Path) -> None:
    check_kills(kills(1, 20, tmp_path), 20)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize("seed", range(2, 6))
def test_many_kills_at_random_moments(seed: int, tmp_path: Path) -> None:
    check_kills(kills(seed, 300, tmp_path), 300)
