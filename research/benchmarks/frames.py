"""Frames and files: many series at once, and a long file through the command line."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from scipy.special import ndtri

from research.benchmarks.lines import Line, Lines, Remark
from research.output import optional

pd = optional("pandas")

TITLE = "Frames and files"
LEVELS = np.arange(1, 10) / 10
FORECASTS_A_SECOND, MOST_MEGABYTES = 60_000, 1_700
FILE_SERIES = 1_000
SELF, CHILDREN = resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN


def panel(series: int, steps: int) -> dict[str, Any]:
    """Columns of a long frame: base forecasts with another bias and spread in each series."""
    rng = np.random.default_rng(0)
    which, t = np.repeat(np.arange(series), steps), np.tile(np.arange(steps), series)
    bias, factor = rng.normal(0.0, 0.5, series), rng.uniform(0.5, 1.6, series)
    mu = 50.0 + 15.0 * np.sin(t / 8.0 + which)
    y = np.clip(mu + 5.0 * rng.standard_normal(series * steps), 0.0, 100.0)
    table = mu[:, None] + 5.0 * (bias[which, None] + factor[which, None] * ndtri(LEVELS))
    columns: dict[str, Any] = {"unique_id": np.char.add("s", which.astype(str)), "ds": t, "y": y}
    return columns | {f"q{level:.1f}": table[:, i] for i, level in enumerate(LEVELS)}


def recalibrate(series: int, steps: int, options: dict[str, Any]) -> tuple[float, float]:
    """Seconds and MB of memory of one frame; run it in a process of its own."""
    import orcast as oc

    oc.recalibrate(pd.DataFrame(panel(2, 5)), low=0, high=100, workers=1, **options)
    frame = pd.DataFrame(panel(series, steps))
    begin = perf_counter()
    out = oc.recalibrate(frame, low=0, high=100, **options)
    seconds = perf_counter() - begin
    assert len(out) == series * steps
    return seconds, max(resource.getrusage(who).ru_maxrss for who in (SELF, CHILDREN)) / 1e3


def through_the_command(series: int, rows: int) -> float:
    """Seconds of `orcast recalibrate` on a CSV file."""
    with tempfile.TemporaryDirectory() as folder:
        path, out = Path(folder) / "long.csv", Path(folder) / "out.csv"
        pd.DataFrame(panel(series, rows // series)).to_csv(path, index=False)
        options = ["recalibrate", str(path), "-o", str(out), "--low=0", "--high=100", "--quiet"]
        begin = perf_counter()
        subprocess.run([sys.executable, "-m", "orcast", *options], check=True)
        return perf_counter() - begin


def measure(quick: bool = False) -> Lines:
    """Forecasts a second with and without a pool, memory, and a file."""
    series, steps = (200, 200) if quick else (10_000, 200)
    yield Remark(f"{series:,} series x {steps} steps, 9 quantiles, {os.cpu_count()} cores")
    options: dict[str, dict[str, Any]] = {"oc.recalibrate": {}, "oc.recalibrate, pool=False": {"pool": False}}
    for case, given in options.items():
        # a process of its own, so that the memory is that of the frame alone
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as worker:
            seconds, memory = worker.submit(recalibrate, series, steps, given).result()
        target = None if quick or given else FORECASTS_A_SECOND
        yield Line(case, "forecasts a second", series * steps / seconds, target, ">=", ",.0f")
        yield Line(case, "memory of the largest process, MB", memory, None if quick else MOST_MEGABYTES, "<=", ",.0f")
    rows = 20_000 if quick else 1_000_000
    seconds = through_the_command(FILE_SERIES, rows)
    yield Line(f"orcast recalibrate FILE.csv, {rows:,} rows", "seconds", seconds, form=".1f")
