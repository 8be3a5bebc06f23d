"""The HTTP service on SQLite: requests a second, batches, many series, a restart; the sender is another process."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

import orcast as oc
from research.benchmarks.lines import Line, Lines, Remark

TITLE = "HTTP service (SQLite, loopback)"
SENDERS, SERIES = 2, 1_000
TICK = os.sysconf("SC_CLK_TCK")


@contextmanager
def service(path: Path) -> Iterator[tuple[str, int]]:
    """Run `orcast serve` in a process of its own; yields its address and process id."""
    command = [sys.executable, "-m", "orcast", "serve", "--store", f"sqlite:///{path}", "--port", "0"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        found = next(hit for line in process.stderr if (hit := re.search(r"running on (http://[^ ]*)", line)))
        threading.Thread(target=process.stderr.read, daemon=True).start()
        yield found[1], process.pid
    finally:
        process.terminate()
        process.wait()


def cpu(pid: int) -> float:
    """Seconds of CPU that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def megabytes(pid: int) -> float:
    """Largest memory of a process so far."""
    return int(Path(f"/proc/{pid}/status").read_text().split("VmHWM:")[1].split()[0]) / 1e3


def send(url: str, name: str, rounds: int) -> list[float]:
    """Seconds of each request of a series."""
    seconds = []
    with oc.Client(url) as client:
        series = client.series(name, low=0, high=100)
        for t in range(rounds):
            for call in (
                lambda t=t: series.predict({0.1: 20 + t % 7, 0.5: 50, 0.9: 80}, id=t),
                lambda t=t: series.update(40 + t % 13, id=t),
            ):
                begin = perf_counter()
                call()
                seconds.append(perf_counter() - begin)
    return seconds


def send_all(url: str, rounds: int) -> list[float]:
    """Seconds of the requests of several senders in this process."""
    found: list[list[float]] = [[] for _ in range(SENDERS)]
    threads = [
        threading.Thread(target=lambda k=k: found[k].extend(send(url, f"series {k}", rounds))) for k in range(SENDERS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [each for part in found for each in part]


def fill(path: Path, series: int) -> None:
    """Open series in a store, without a service."""
    with oc.open(path) as store:
        store.transact(lambda: [store.series(f"s{k}", space=oc.Interval(0, 100)) for k in range(series)])


def batch(client: oc.Client, first: int, id: int) -> float:
    """Seconds of a batch with a forecast for each of 1,000 series."""
    forecast = {"mean": 50, "sd": 10}
    lines: list[dict[str, Any]] = [
        {"series": f"s{k}", "id": id, "forecast": forecast} for k in range(first, first + SERIES)
    ]
    begin = perf_counter()
    client.batch(lines)
    return perf_counter() - begin


def measure(quick: bool) -> Lines:
    """Measure the service on a new store."""
    rounds, many = (250, 5_000) if quick else (1_500, 100_000)
    yield Remark(f"load of the machine before: {os.getloadavg()[0]:.1f} processes on {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store.db"
        fill(path, many)
        with service(path) as (url, pid), get_context("spawn").Pool(1) as pool:
            pool.apply(send_all, (url, 20))
            used, begin = cpu(pid), perf_counter()
            seconds = pool.apply(send_all, (url, rounds))
            count, took = len(seconds), perf_counter() - begin
            yield Line("forecasts and outcomes", "requests a second", count / took, 500, ">=", ".0f")
            yield Line("", "ms, 99% of the requests", 1e3 * float(np.quantile(seconds, 0.99)), 10, "<=", ".1f")
            yield Line("", "ms of CPU of a request, server", 1e3 * (cpu(pid) - used) / count, form=".2f")
            with oc.Client(url) as client:
                used = cpu(pid)
                fastest = min(batch(client, 0, id) for id in range(5))
                yield Line("batch of 1,000 series", "ms, the fastest of 5", 1e3 * fastest, 100, "<=", ".0f")
                yield Line("", "ms of CPU of a batch, server", 1e3 * (cpu(pid) - used) / 5, form=".0f")
                for first in range(SERIES, many, SERIES):
                    batch(client, first, 0)
            yield Line(f"{many:,} series, each forecast", "MB of memory, server", megabytes(pid), 300, "<=", ".0f")
        begin = perf_counter()
        with service(path) as (url, _), oc.Client(url) as client:
            client.series("s1", low=0, high=100).predict(oc.Normal(50, 10), id="after")
            yield Line("restart", "s until the first answer", perf_counter() - begin, 1, "<=", ".2f")
