"""The time before kernels are compiled: the first example, rounds in Python, and the switch to compiled ones."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from benchmarks.results import Line, Remark

TITLE = "Start: an empty cache of kernels"
README = Path(__file__).parents[1] / "README.md"
CPU = "import resource as r; u = r.getrusage(r.RUSAGE_SELF); print(u.ru_utime + u.ru_stime)"
# Limits, as ratios but for the last two.
FIRST_LIMIT, ROUND_LIMIT, BINARY_LIMIT, SECONDS_LIMIT, COMPILE_LIMIT = 2.0, 250.0, 25.0, 1.0, 55.0

ROUNDS = """
import json, time, numpy as np, scipy.stats
import orcast as oc
levels, rng = np.linspace(0.01, 0.99, 99), np.random.default_rng(0)

def seconds(work, count):
    work()
    blocks = []
    for _ in range(5):
        began = time.process_time()
        for _ in range(count):
            work()
        blocks.append((time.process_time() - began) / count)
    return sorted(blocks)[2]

recal, rain = oc.Recalibrator(oc.Interval(0, 1)), oc.Recalibrator(oc.Binary())

def quantity():
    recal.predict(oc.Normal(0.5, 0.1))
    recal.update(rng.normal(0.5, 0.2))

def event():
    rain.predict(rng.uniform())
    rain.update(int(rng.uniform() < 0.5))

ppf = seconds(lambda: scipy.stats.norm.ppf(levels, 0.5, 0.1), 200)
print(json.dumps([seconds(quantity, 20) / ppf, seconds(event, 100) / ppf, ppf]))
"""

SWITCH = """
import json, sys, time, numpy as np
import orcast as oc
from orcast.engine.kernels import packing
recal, rng = oc.Recalibrator(oc.Interval(0, 1)), np.random.default_rng(0)
began = last = time.perf_counter()
longest, rounds, at = 0.0, 0, None
while time.perf_counter() - began < float(sys.argv[1]):
    recal.predict(oc.Normal(0.5, 0.1))
    recal.update(rng.uniform())
    now = time.perf_counter()
    longest, last, rounds = max(longest, now - last), now, rounds + 1
    if at is None and packing.predict.code is not None and packing.update.code is not None:
        at, before, rounds, start = now - began, rounds / (now - began), 0, now
    if at is not None and now - start > 3.0:
        break
print(json.dumps([at, before, rounds / (now - start), longest] if at else None))
"""

TEN = """
import time, orcast as oc
recal = oc.Recalibrator(oc.Interval(0, 1))
began = time.perf_counter()
recal.predict(oc.Normal(0.5, 0.1))
print(time.perf_counter() - began, flush=True)
end = time.perf_counter() + float(__import__("sys").argv[1])
while time.perf_counter() < end:
    recal.update(0.4)
    recal.predict(oc.Normal(0.5, 0.1))
from orcast.engine.kernels import packing
print(packing.update.code is not None)
"""


def measure(quick: bool = False) -> Iterator[Line | Remark]:
    """Each target."""
    count = 3 if quick else 7
    example = re.search(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    assert example is not None
    first, imports = [], []
    for _ in range(count):  # in turn, so that a busy moment meets both
        with tempfile.TemporaryDirectory() as empty:
            first.append(cpu(example[1], empty))
            imports.append(cpu("import scipy.stats, numba", empty))
    note = f"{median(first):.2f} and {median(imports):.2f} s; median of {count}"
    ratio = median(first) / median(imports)
    yield Line("README's first example / import scipy.stats, numba", "CPU", ratio, FIRST_LIMIT, form=".2f", note=note)
    with tempfile.TemporaryDirectory() as empty:
        quantity, event, ppf = json.loads(child(ROUNDS, empty, kernels="python"))
    note = f"one norm.ppf of 99 levels: {1e6 * ppf:.0f} us"
    yield Line("round in Python / norm.ppf", "CPU", quantity, ROUND_LIMIT, form=".0f", note=note)
    yield Line("binary round in Python / norm.ppf", "CPU", event, BINARY_LIMIT, form=".1f", note=note)
    if not quick:
        yield from compiling()
        yield from ten_processes()
        yield from kills(20)


def compiling() -> Iterator[Line | Remark]:
    """What compiling costs, and the switch."""
    with tempfile.TemporaryDirectory() as empty:
        program = (
            "import time, orcast as oc\n"
            "recal = oc.Recalibrator(oc.Interval(0, 1))\n"
            "began = time.process_time()\n"
            "recal.predict(oc.Normal(0.5, 0.1)); recal.update(0.4)\n"
            "print(time.process_time() - began)"
        )
        seconds = float(child(program, empty, kernels="compiled"))
    yield Line("compiling the default game", "CPU s", seconds, COMPILE_LIMIT, form=".1f")
    with tempfile.TemporaryDirectory() as empty:
        found = json.loads(child(SWITCH, empty, "240"))
    if found is None:
        yield Remark("the switch: not compiled within 240 s (the machine is busy)")
        return
    at, before, after, longest = found
    yield Remark(f"the switch after {at:.0f} s: {before:.0f} rounds a second before, {after:.0f} after it")
    yield Line("longest round while compiling and switching", "s", longest, SECONDS_LIMIT, form=".2f")


def ten_processes() -> Iterator[Line | Remark]:
    """Ten that start at once: one compiles, all answer."""
    with tempfile.TemporaryDirectory() as empty:
        environment = variables(empty, "auto")
        command = [sys.executable, "-c", TEN, "60"]
        all_of_them = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(10)]
        most = 0
        while all_of_them[0].poll() is None:
            most = max(most, len(compilers(loaded=True)))
            time.sleep(0.5)
        answers = [process.communicate()[0].split() for process in all_of_them]
        left = compilers()
    slowest = max(float(answer[0]) for answer in answers)
    yield Line("ten processes at once: compilers", "most", float(most), 1.0, form=".0f")
    yield Line("ten processes at once: slowest first forecast", "s", slowest, SECONDS_LIMIT, form=".2f")
    yield Line("processes left after them", "count", float(len(left)), 0.0, form=".0f")


def kills(count: int) -> Iterator[Line | Remark]:
    """The process that compiles, killed at random moments; the next one mends what it left."""
    from orcast.forecasts import kernels
    from orcast.jit.background import BOOT

    rng, answer = random.Random(0), {}
    signature = [["<f8", 1, "C", True]] * 3
    request = {
        "module": kernels.__name__,
        "name": "mean_and_variance",
        "signature": ["int", *signature, "bool", "bool"],
    }
    with tempfile.TemporaryDirectory() as empty:
        environment = variables(empty, "python")
        for number in range(count + 1):
            process = subprocess.Popen(
                [sys.executable, "-c", BOOT.format(path=[str(place) for place in sys.path])],
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(json.dumps(request).encode() + b"\n")
            process.stdin.flush()
            if number < count:
                time.sleep(rng.uniform(0.0, 4.0))
                process.send_signal(signal.SIGKILL)
                process.wait()
                continue
            answer = next(json.loads(line) for line in process.stdout if b'"key"' in line)
            process.kill()
            process.wait()
        whole = "reason" not in answer and not list(Path(empty).rglob("*.partial"))
    yield Line(f"cache whole after {count} kills -9", "1 = yes", float(whole), 1.0, sense=">=", form=".0f")


def compilers(*, loaded: bool = False) -> list[str]:
    """Processes of this user that compile kernels; or those alone that have loaded a compiler, if that can be seen."""
    found = subprocess.run(["ps", "-eo", "pid,args"], capture_output=True, text=True, check=True).stdout
    workers = [line.split()[0] for line in found.splitlines() if "orcast.jit.worker" in line]
    return [number for number in workers if not loaded or has_compiler(number)]


def has_compiler(number: str) -> bool:
    """Whether a process has LLVM in its memory: one that finds another at work ends before that."""
    try:
        return "llvmlite" in Path(f"/proc/{number}/maps").read_text()
    except FileNotFoundError:
        return not Path("/proc").is_dir()


def variables(place: str, kernels: str) -> dict[str, str]:
    """The environment of a process with a cache of its own."""
    return {**os.environ, "NUMBA_CACHE_DIR": place, "ORCAST_KERNELS": kernels}


def child(program: str, place: str, *arguments: str, kernels: str = "auto") -> str:
    """What a program prints in a process of its own."""
    command = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(command, env=variables(place, kernels), cwd=place, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[-1]


def cpu(program: str, place: str) -> float:
    """CPU seconds of a process, without those of its children."""
    return float(child(f"{program}\n{CPU}", place))
