"""Compiling beside: the switch, and everything that can be in its way."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from orcast.jit import background
from orcast.jit.background import ProgressLine

# Calls a small entry until it is compiled, and compares what both speeds say.
SWITCH = """
import sys, time
import numpy as np
from orcast.forecasts import kernels
from orcast.jit import background
from orcast.jit.entry import PATIENCE
entry = kernels.mean_and_variance
n = 400
edges = np.linspace(0.0, 1.0, n + 1)
args = (n, edges[:-1].copy(), edges[1:].copy(), np.full(n, 1.0 / n), False, False)
first, longest, end = entry(*args), 0.0, time.perf_counter() + {seconds}
while entry.code is None and not background._told and time.perf_counter() < end:
    began = time.perf_counter()
    assert entry(*args) == first
    longest = max(longest, time.perf_counter() - began)
    if entry.seconds > 2 * PATIENCE:
        time.sleep(0.02)  # asked for: who compiles may have the processor
{then}
assert entry(*args) == first
print(entry.code is not None, longest < 1.0, flush=True)
"""


def program(seconds: float = 120.0, then: str = "") -> str:
    return SWITCH.format(seconds=seconds, then=then)


def environment(place: Path, **others: str) -> dict[str, str]:
    # the path is in the command line of a process that compiles, so that it can be told from others
    path = os.pathsep.join([str(place / "mark"), os.environ.get("PYTHONPATH", "")])
    return {**os.environ, "NUMBA_CACHE_DIR": str(place), "ORCAST_KERNELS": "auto", "PYTHONPATH": path, **others}


def compilers(place: Path) -> list[int]:
    """Processes that compile into a cache."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes().decode(errors="replace")
        except OSError:
            continue
        if "orcast.jit.worker" in command and f"{place}{os.sep}" in command:
            found.append(int(folder.name))
    return found


def gone(place: Path, seconds: float = 60.0) -> bool:
    end = time.monotonic() + seconds
    while compilers(place):
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def run(text: str, place: Path, **others: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", text], env=environment(place, **others), capture_output=True, text=True, check=True
    )


def switched(text: str, folder: Path, **others: str) -> tuple[subprocess.CompletedProcess[str], Path]:
    """The same, and its cache; with another one if a round took long: a busy machine may stop one, compiling none."""
    for attempt in range(3):
        place = folder / str(attempt)
        done = run(text, place, **others)
        if not done.stdout.endswith("False\n"):
            break
    return done, place


linux = pytest.mark.skipif(not Path("/proc/self").exists(), reason="looks at /proc")


@linux
def test_a_game_goes_on_compiled_and_leaves_nothing_running(tmp_path: Path) -> None:
    done, place = switched(program(), tmp_path)
    assert done.stdout == "True True\n"
    assert done.stderr == ""
    assert gone(tmp_path)
    # the next process finds it: it could not compile
    text = program().replace("import sys, time", "import sys, time\nsys.executable = ''")
    found = run(text, place)
    assert found.stdout.startswith("True ")
    assert found.stderr == ""


@pytest.fixture
def compiling(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A program whose kernels are being compiled."""
    process = subprocess.Popen(
        [sys.executable, "-c", program()], env=environment(tmp_path), stdout=subprocess.PIPE, text=True
    )
    end = time.monotonic() + 180.0
    while not compilers(tmp_path):
        assert time.monotonic() < end
        time.sleep(0.02)
    yield process
    process.kill()
    process.communicate()


@linux
def test_a_program_that_is_killed_takes_the_compiler_with_it(tmp_path: Path, compiling: subprocess.Popen[str]) -> None:
    compiling.send_signal(signal.SIGKILL)
    compiling.wait()
    assert gone(tmp_path)


@linux
def test_a_compiler_that_is_killed_is_started_again(tmp_path: Path, compiling: subprocess.Popen[str]) -> None:
    for number in compilers(tmp_path):
        os.kill(number, signal.SIGKILL)
    assert compiling.communicate(timeout=300)[0].startswith("True ")
    assert not list(tmp_path.rglob("*.partial"))
    assert gone(tmp_path)


@linux
def test_a_program_that_ends_while_it_compiles_ends_at_once(tmp_path: Path) -> None:
    began = time.monotonic()
    done = run(program(seconds=1.0, then="began = time.perf_counter()"), tmp_path)
    assert done.stderr == ""
    assert time.monotonic() - began < 30.0
    assert gone(tmp_path)


@pytest.mark.slow
@linux
def test_several_processes_have_one_compiler(tmp_path: Path) -> None:
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", program()], env=environment(tmp_path), stdout=subprocess.PIPE, text=True
        )
        for _ in range(3)
    ]
    most = 0
    while any(process.poll() is None for process in processes):
        # one that finds the lock taken ends at once, before it imports anything heavy
        busy = [number for number in compilers(tmp_path) if holds_numba(number)]
        most = max(most, len(busy))
        time.sleep(0.05)
    assert all(process.communicate()[0].startswith("True ") for process in processes)
    assert most == 1


def holds_numba(number: int) -> bool:
    try:
        return "llvmlite" in Path(f"/proc/{number}/maps").read_text()
    except OSError:
        return False


WAYS = {
    "no folder": ({"NUMBA_CACHE_DIR": "/dev/null/below"}, "", "there is no folder to keep compiled ones in"),
    "no processes": ({}, "sys.executable = ''", "no process can be started that compiles"),
    "a broken compiler": ({}, "sys.executable = '/bin/false'", "the process that compiles ended 3 times (code 1)"),
}


@pytest.mark.parametrize("name", WAYS)
def test_where_nothing_can_be_compiled_it_is_said_once(tmp_path: Path, name: str) -> None:
    others, first, reason = WAYS[name]
    text = program().replace("import sys, time", f"import sys, time\n{first}")
    done, _ = switched(text, tmp_path, **others)
    assert done.stdout == "False True\n"
    (line,) = done.stderr.splitlines()
    assert line.startswith("orcast: kernels go on in Python")
    assert reason in line


def test_a_full_disk_is_said_once(tmp_path: Path) -> None:
    full = (
        "from orcast.jit import cache\n"
        "def write(key, code): raise OSError(28, 'No space left on device', str(cache.folder() / key))\n"
        "cache.write = write\n"
    )
    text = program(seconds=0.0).replace("import sys, time", f"import sys, time\n{full}")
    done = run(text, tmp_path, ORCAST_KERNELS="compiled")
    assert done.stdout.startswith("True ")
    (line,) = done.stderr.splitlines()
    assert line.startswith("orcast: compiled kernels cannot be kept: [Errno 28] No space left on device: ")


@linux
def test_a_fork_cares_for_itself(tmp_path: Path) -> None:
    # by its number: the process that compiles is a child as well, and may end at the same moment
    then = (
        "import os\nchild = os.fork()\nif child == 0:\n    assert entry(*args) == first\n    os._exit(0)\n"
        "assert os.waitpid(child, 0)[1] == 0\n"
    )
    assert switched(program(then=then), tmp_path)[0].stdout == "True True\n"
    assert gone(tmp_path)


def test_a_long_history_waits_for_its_kernels_where_that_is_faster(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from orcast.forecasts import kernels
    from orcast.jit import EntryKernel

    entry = EntryKernel(kernels.mean_and_variance.source)

    class Slow(background.Background):
        def want(self, wanted: background.Wanted) -> None:
            wanted.sent = True
            self.wanted[wanted.key] = wanted

    monkeypatch.setattr(background, "_background", Slow())
    monkeypatch.setattr(background, "SILENCE", 0.0)
    monkeypatch.setattr(background, "SECONDS_A_KERNEL", 100.0)
    monkeypatch.setattr(background.time, "sleep", lambda seconds: pytest.fail("it waited"))
    background.wait_if_faster(entry, (1.0,), 1_000, 6.0)
    assert capsys.readouterr().err == (
        "orcast: playing 1,000 rounds in Python, about 6 s; compiled ones are faster (orcast warm)\n"
    )
    monkeypatch.setattr(background, "SECONDS_A_KERNEL", 0.5)

    def compiled(_: float) -> None:
        entry.code = "code"

    monkeypatch.setattr(background.time, "sleep", compiled)
    background.wait_if_faster(entry, (1.0,), 1_000, 6.0)
    told = "orcast: compiling kernels, once on this machine (a minute, or some if it is busy): "
    assert capsys.readouterr().err == f"{told}0 s so far\n"
    background._background.progress = background.Progress(time.time(), 3, 40)
    entry.code = None
    background.wait_if_faster(entry, (1.0,), 1_000, 6.0)
    assert capsys.readouterr().err == f"{told}3 of 40, 0 s so far\n"


@pytest.mark.parametrize("stream", [None, object(), open(os.devnull)])  # noqa: SIM115
def test_no_error_stream_is_in_the_way(stream: object, monkeypatch: pytest.MonkeyPatch) -> None:
    if hasattr(stream, "close"):
        stream.close()
    monkeypatch.setattr(sys, "stderr", stream)
    line = ProgressLine()
    line.show("one")
    line.end()


def test_a_line_of_progress_is_told_now_and_then_without_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = [1000.0]
    monkeypatch.setattr(background.time, "monotonic", lambda: now[0])
    line = ProgressLine()
    for text in ("one", "two"):
        line.show(text)
    now[0] += background.PAUSE
    for text in ("three", "four"):
        line.show(text)
    line.end()
    line.end()
    assert capsys.readouterr().err == "orcast: one\norcast: three\n"
