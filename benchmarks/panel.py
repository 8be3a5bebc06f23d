"""Frames and files: many series at once on all cores, and a long file through the command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.results import Line, Remark

TITLE = "Frames and files"
LEVELS = np.arange(1, 10) / 10
FORECASTS_A_SECOND, MOST_BYTES = 15_000, 2e9
FILE_ROWS, FILE_SERIES = 1_000_000, 1_000

Frame = dict[str, Any]


def panel(series: int, steps: int, seed: int = 0) -> Frame:
    """Columns of a long frame: an expert whose bias and spread are off, differently for each series."""
    rng = np.random.default_rng(seed)
    rows = series * steps
    which = np.repeat(np.arange(series), steps)
    bias, factor = rng.normal(0.0, 0.5, series), rng.uniform(0.5, 1.6, series)
    t = np.tile(np.arange(steps), series)
    mu = 50.0 + 15.0 * np.sin(t / 8.0 + which)
    y = np.clip(mu + 5.0 * rng.standard_normal(rows), 0.0, 100.0)
    from scipy.special import ndtri

    z = ndtri(LEVELS)
    table = mu[:, None] + 5.0 * (bias[which, None] + factor[which, None] * z)
    columns: Frame = {"unique_id": np.char.add("s", which.astype(str)), "ds": t, "y": y}
    return columns | {f"q{level:.1f}": table[:, i] for i, level in enumerate(LEVELS)}


class Memory:
    """The most memory that a process and those it started had at a time, in bytes; looked at ten times a second.

    What the system calls the maximum of a child would include what its parent had when it was started.
    """

    def __init__(self, pid: int) -> None:
        self.pid, self.most = pid, 0.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Memory:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(0.1):
            self.most = max(self.most, self._now())

    def _now(self) -> float:
        parents, sizes = {}, {}
        for status in Path("/proc").glob("[0-9]*/status"):
            try:
                lines = dict(line.split(":", 1) for line in status.read_text().splitlines() if ":" in line)
            except OSError:
                continue  # it has ended
            pid = int(status.parent.name)
            parents[pid] = int(lines["PPid"])
            sizes[pid] = 1024.0 * float(lines.get("VmRSS", "0 kB").split()[0])
        total = 0.0
        for pid, size in sizes.items():
            above = pid
            while above not in (0, 1, self.pid):
                above = parents.get(above, 0)
            total += size if above == self.pid else 0.0
        return total


def work(series: int, steps: int, workers: int, kind: str, options: Frame) -> dict[str, float]:
    """Recalibrate a panel in this process and its workers, with options; seconds and memory."""
    import orcast as oc

    if kind == "polars":
        import polars as frames
    else:
        import pandas as frames
    oc.recalibrate(frames.DataFrame(panel(2, 5)), low=0, high=100, workers=1, **options)  # compiles
    frame = frames.DataFrame(panel(series, steps))
    with Memory(os.getpid()) as memory:
        begin = perf_counter()
        out = oc.recalibrate(frame, low=0, high=100, workers=workers, **options)
        seconds = perf_counter() - begin
    assert len(out) == series * steps
    return {"seconds": seconds, "bytes": memory.most}


def apart(series: int, steps: int, workers: int, kind: str, **options: Any) -> dict[str, float]:
    """The same in a process of its own, whose memory is nobody else's."""
    asked = f"{series}, {steps}, {workers}, {kind!r}, {options!r}"
    code = f"import json; from benchmarks.panel import work; print(json.dumps(work({asked})))"
    # a file, because workers start by importing the main module
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "work.py"
        script.write_text(f"if __name__ == '__main__':\n    {code}\n", encoding="utf-8")
        # the package that is measured is the one that this process has
        paths = [str(Path(__file__).parent.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
        done = subprocess.run(
            [sys.executable, str(script)], capture_output=True, text=True, check=True, env=environment
        )
    found: dict[str, float] = json.loads(done.stdout)
    return found


def command(rows: int, folder: Path) -> dict[str, float]:
    """A CSV file through ``orcast recalibrate``; seconds, memory, and the size of the frame."""
    import polars as pl

    frame = pl.DataFrame(panel(FILE_SERIES, rows // FILE_SERIES))
    path = folder / "long.csv"
    frame.write_csv(path)
    size = float(frame.estimated_size())
    del frame
    asked = ["recalibrate", str(path), "--out", str(folder / "out.csv"), "--low=0", "--high=100", "--quiet"]
    begin = perf_counter()
    with subprocess.Popen([sys.executable, "-m", "orcast", *asked]) as process, Memory(process.pid) as memory:
        code = process.wait()
    assert code == 0
    return {"seconds": perf_counter() - begin, "bytes": memory.most, "frame": size}


def measure(quick: bool = False) -> Iterator[Line | Remark]:
    series, steps = (200, 200) if quick else (10_000, 200)
    cores = os.cpu_count() or 1
    yield Remark(
        f"{series:,} series x {steps} steps, 9 quantiles in and out, on {cores} cores; start of processes included"
    )
    for kind in ("polars", "pandas"):
        found = apart(series, steps, cores, kind)
        rate = series * steps / found["seconds"]
        target = None if quick else FORECASTS_A_SECOND
        yield Line(f"oc.recalibrate, {kind}", "forecasts a second", rate, target, ">=", form=",.0f")
        limit = None if quick else MOST_BYTES
        yield Line(f"oc.recalibrate, {kind}", "memory of all processes, MB", found["bytes"] / 1e6,
                   None if limit is None else limit / 1e6, form=",.0f")  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        few = command(FILE_ROWS // 50 if quick else FILE_ROWS // 5, Path(folder))
        many = command(FILE_ROWS // 10 if quick else FILE_ROWS, Path(folder))
    yield Line(
        "orcast recalibrate FILE.csv",
        "seconds",
        many["seconds"],
        form=".1f",
        note=f"frame {many['frame'] / 1e6:,.0f} MB, all processes {many['bytes'] / 1e6:,.0f} MB",
    )
    growth = (many["bytes"] - few["bytes"]) / (many["frame"] - few["frame"])
    yield Line("orcast recalibrate FILE.csv", "memory growth / frame's growth", growth, form=".2f")
