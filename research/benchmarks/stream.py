"""Latency of `orcast stream` through a pipe."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

import numpy as np
from scipy.special import ndtri

from research.benchmarks.lines import Line, Lines, Remark

TITLE = "Stream"
LIMIT = 1.0  # milliseconds, median
SERIES, WARM_UP = 50, 200
LEVELS = np.arange(1, 10) / 10


def measure(quick: bool = False) -> Lines:
    """Milliseconds a line without state, with state, and with state on disk before each answer."""
    count = 2_000 if quick else 20_000
    yield Remark(f"{count} lines, a forecast of 9 quantiles and its outcome in turn, {SERIES} series, one at a time")
    with tempfile.TemporaryDirectory() as folder:
        for case, options in {
            "without state": [],
            "with --state": ["--state", str(Path(folder) / "a")],
            "with --state --sync": ["--state", str(Path(folder) / "b"), "--sync"],
        }.items():
            sync = "--sync" in options
            half, most = np.percentile(round_trips(count // 5 if sync else count, options), [50, 99])
            yield Line(case, "ms a line, median", half, None if sync else LIMIT, form=".3f")
            yield Line(case, "ms a line, 99%", most, form=".3f")


def lines(count: int) -> Iterator[bytes]:
    """Forecasts and outcomes in turn."""
    rng = np.random.default_rng(0)
    for i in range(count // 2):
        mean = float(rng.normal(50, 10))
        name = {"series": f"series {i % SERIES}", "id": i}
        quantiles = {f"{a:g}": round(float(q), 3) for a, q in zip(LEVELS, mean + 4 * ndtri(LEVELS), strict=True)}
        yield json.dumps({**name, "forecast": quantiles}).encode() + b"\n"
        yield json.dumps({**name, "y": round(float(np.clip(rng.normal(mean, 6), 0, 100)), 3)}).encode() + b"\n"


def round_trips(count: int, options: list[str]) -> list[float]:
    """Milliseconds from writing each line to reading its answer."""
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
