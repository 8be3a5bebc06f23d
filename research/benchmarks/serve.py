"""The HTTP service and its store: speed, memory, restarts, kills, malformed requests, revisions, the log."""

from __future__ import annotations

import os
import random
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np

import orcast as oc
from orcast.store.tables import ADD_ROUND, VALUES
from research.benchmarks.lines import Line, Lines, Remark

TESTS = Path(__file__).parents[2] / "tests"
sys.path[:0] = [str(TESTS / "serve"), str(TESTS / "store")]

TITLE = "HTTP service (loopback)"
SENDERS, SERIES = 2, 1_000
TICK = os.sysconf("SC_CLK_TCK")


@contextmanager
def service(path: Path) -> Iterator[tuple[str, int]]:
    """Run `orcast serve` in a process of its own; yields its address and process id."""
    served = import_module("serving").Served(f"sqlite:///{path}")
    try:
        yield served.url, served.process.pid
    finally:
        served.kill(signal.SIGTERM)


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
    """Measure the service, then its store."""
    yield Remark(f"load of the machine before: {os.getloadavg()[0]:.1f} processes on {os.cpu_count()} cores")
    for part in (requests, kills, database_kills, malformed_requests, revisions, log):
        with tempfile.TemporaryDirectory() as folder:
            yield from part(Path(folder), quick)


def requests(folder: Path, quick: bool) -> Lines:
    """Requests and batches on a new store with many series, and a restart."""
    rounds, many, path = 250 if quick else 1_500, 5_000 if quick else 100_000, folder / "store.db"
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


def kills(folder: Path, quick: bool) -> Lines:
    """Kill the service under load; both senders compare each answer with a recalibrator that is never killed."""
    times = 5 if quick else 100
    yield from _killed(
        f"SQLite, service killed {times} times",
        import_module("kills").killed_service(f"sqlite:///{folder}/s.db", times, 1),
    )


def database_kills(folder: Path, quick: bool) -> Lines:
    """Kill and restart PostgreSQL under two services that share it."""
    postgres = import_module("postgres")
    times = 2 if quick else 20
    with postgres.server() as started:
        address = postgres.database(started)
        counted = import_module("kills").killed_database(address, lambda: postgres.restart(started), times, 1)
    yield from _killed(f"PostgreSQL under 2 killed {times} times", counted)


def _killed(case: str, counted: dict[str, int]) -> Lines:
    yield Line(case, "acknowledged rounds", counted["rounds"], form=".0f")
    yield Line("", "rounds lost", counted["lost"], 0, "<=", ".0f")
    yield Line("", "rounds counted twice", counted["doubled"], 0, "<=", ".0f")
    yield Line("", "repeated calls, answered alike", counted["repeats"], 1, ">=", ".0f")


def malformed_requests(folder: Path, quick: bool) -> Lines:
    """Send requests that are almost right; each has to be answered, by 200 or a clear 4xx."""
    malformed, rng = import_module("malformed").malformed, random.Random(0)
    count, refused, unclear = 500 if quick else 10_000, 0, 0
    with service(folder / "store.db") as (url, pid):
        oc.Client(url).series("wind", low=0, high=100)
        for _ in range(count):
            method, path, body = malformed(rng)
            connection = HTTPConnection(url.removeprefix("http://"), timeout=60)
            connection.request(method, path, body, {"Content-Type": "application/json"})
            response = connection.getresponse()
            told = response.read()
            connection.close()
            refused += 400 <= response.status < 500
            if response.status >= 500 or (response.status >= 400 and b'{"error":"expected ' not in told):
                unclear += 1
                yield Remark(
                    f"unclear: {method} {path[:200]} {(body or b'')[:200]!r}: {response.status} {told[:200]!r}"
                )
        with oc.Client(url) as client:
            series = client.series("after", low=0, high=100)
            goes_on = series.predict(oc.Normal(50, 10), id=1).certificate.holds
        yield Line(f"{count:,} malformed requests", "refused with 4xx", refused, form=".0f")
        yield Line("", "without a clear answer", unclear + (not goes_on), 0, "<=", ".0f")
        yield Line("", "MB of memory, server", megabytes(pid), 1_000, "<=", ".0f")


def revisions(folder: Path, quick: bool) -> Lines:
    """Revise the first and a middle round of a series."""
    rounds = 1_000 if quick else 10_000
    with oc.open(folder / "store.db") as store:
        series = store.series("wind", space=oc.Interval(0, 100))
        store.transact(lambda: play(series, rounds))
        for what, id in (("first", 0), ("middle", rounds // 2)):
            begin, used = perf_counter(), process_time()
            series.revise(77, id=id)
            took, used = perf_counter() - begin, process_time() - used
            yield Line(f"revision, {rounds:,} rounds", f"s, the {what} round", took, 1, "<=", ".2f", f"CPU {used:.2f}")


def play(series: Any, rounds: int) -> None:
    """Run rounds, one an hour, each settled before the next."""
    for t in range(rounds):
        at = datetime(2024, 1, 1, tzinfo=UTC) + timedelta(hours=t)
        series.predict({0.1: 20 + t % 7, 0.5: 50, 0.9: 80}, id=t, issued=at, target=at)
        series.update(40 + t % 13, id=t, known=at + timedelta(minutes=30))


def log(folder: Path, quick: bool) -> Lines:
    """Read the log as of a time, in a store with many rounds: those of one series under many names."""
    count = 20 if quick else 1_000
    with oc.open(folder / "store.db") as store:
        first = store.series(0, space=oc.Interval(0, 100))
        store.transact(lambda: play(first, 1_000))
        store.transact(lambda: [store.series(k, space=oc.Interval(0, 100)) for k in range(1, count)])
        rows = store.tables.since(first.number, 0)
        copies = (VALUES(replace(row, number=first.number + k)) for k in range(1, count) for row in rows)
        store.transact(lambda: store.database._file.executemany(ADD_ROUND, copies))  # type: ignore[attr-defined]
        case, as_of = f"as_of, {count * 1_000:,} rounds", "2024-02-08T12:00"
        store.rounds(1, as_of=as_of)  # imports pandas
        hour, day = (
            {"start": "2024-02-08T10:00", "end": "2024-02-08T10:00"},
            {"start": "2024-02-07", "end": "2024-02-07"},
        )
        for what, names, given in (("one series", (1,), {}), ("one hour", (), hour), ("one day", (), day)):
            begin = perf_counter()
            found = store.rounds(*names, as_of=as_of, **given)
            took = perf_counter() - begin
            yield Line(case, f"s, {what}", took, 1, "<=", ".2f", f"{len(found):,} rows")
            case = ""
