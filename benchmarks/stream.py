"""`orcast stream` through a real pipe: how long a line takes to be answered."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

import numpy as np

from benchmarks.results import Line, Remark

TITLE = "Stream"
LIMIT = 1.0  # milliseconds, in the median
SERIES, WARM_UP = 50, 200


def measure(quick: bool = False) -> Iterator[Line | Remark]:
    count = 2_000 if quick else 20_000
    yield Remark(f"{count} lines, a forecast of 9 quantiles and its outcome in turn, {SERIES} series, one at a time")
    with tempfile.TemporaryDirectory() as folder:
        for case, options in {
            "without state": [],
            "with --state": ["--state", str(Path(folder) / "a")],
            "with --state --sync": ["--state", str(Path(folder) / "b"), "--sync"],
        }.items():
            times = round_trips(count if "--sync" not in options else count // 5, options)
            half, most = np.percentile(times, [50, 99])
            # how long a disk takes is not ours to promise
            yield Line(case, "ms a line, median", half, None if "--sync" in options else LIMIT, form=".3f")
            yield Line(case, "ms a line, 99%", most, form=".3f")


def lines(count: int) -> Iterator[bytes]:
    """Forecasts and outcomes in turn."""
    rng = np.random.default_rng(0)
    levels = np.arange(1, 10) / 10
    shape = np.array([-1.28, -0.84, -0.52, -0.25, 0.0, 0.25, 0.52, 0.84, 1.28])
    for i in range(count // 2):
        mean = float(rng.normal(50, 10))
        name = {"series": f"series {i % SERIES}", "id": i}
        quantiles = {f"{a:g}": round(float(q), 3) for a, q in zip(levels, mean + 4 * shape, strict=True)}
        yield json.dumps({**name, "forecast": quantiles}).encode() + b"\n"
        yield json.dumps({**name, "y": round(float(np.clip(rng.normal(mean, 6), 0, 100)), 3)}).encode() + b"\n"


def round_trips(count: int, options: list[str]) -> list[float]:
    """Milliseconds from writing each line to having its answer."""
    command = [sys.executable, "-m", "orcast", "stream", "--low", "0", "--high", "100", *options]
    times = []
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        answers = open(process.stdout.fileno(), "rb", closefd=False)  # noqa: SIM115 (closed with the process)
        for line in lines(count + WARM_UP):
            start = perf_counter()
            process.stdin.write(line)
            answer = answers.readline()
            times.append(1e3 * (perf_counter() - start))
            if not answer or b'"error"' in answer:
                raise RuntimeError(f"expected an answer to {line!r}, got {answer!r}")
        process.stdin.close()
        process.wait()
    return times[WARM_UP:]


if __name__ == "__main__":
    from benchmarks.results import as_text

    for measured in measure(quick="--quick" in sys.argv):
        print(as_text(measured), flush=True)
