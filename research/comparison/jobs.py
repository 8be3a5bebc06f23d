"""Run all methods on all streams: longest jobs first, in several processes, continuing where a run was stopped."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

import orcast
import research
from research.comparison import tracked
from research.comparison.catalogue import Entry
from research.comparison.methods import METHODS, ORCAST, TRACKED, Method, load
from research.comparison.scores import Score, chance_gap, score
from research.comparison.stream import Stream
from research.jobs import Progress, WorkerPool, silent
from research.output import ResultsFile, Row

FILE = "results.jsonl"
ROUNDS = 60_000  # rounds of a job, about: a long stream is several jobs
ON = ("base", "tracked")
"""Base forecasts on which methods run: as given by the experts, or tracked."""
NOT_SUPPORTED = "not supported"
DISPLAY = {"tables.py", "command.py", "jobs.py"}  # modules on which no number depends


class Wanted(NamedTuple):
    """Identity of a result."""

    stream: str
    on: str
    method: str


class Comparison(NamedTuple):
    """Results, in the order of the streams, and methods by name."""

    rows: list[Row]
    methods: dict[str, Method]


def is_failure(row: Row) -> bool:
    """Return True if a method failed on a stream that it supports."""
    return bool(row["error"]) and row["error"] != NOT_SUPPORTED


def source_digest(extra: str | Path | None = None) -> str:
    """Digest of everything that the numbers depend on: version, sources, a user's file of methods."""
    found = hashlib.sha256(orcast.__version__.encode())
    here = Path(research.__file__).parent
    paths = [*Path(orcast.__file__).parent.rglob("*.py"), *here.glob("rivals/*.py"), here / "learners.py"]
    paths += [path for path in here.glob("comparison/*.py") if path.name not in DISPLAY]
    for path in sorted(paths):
        found.update(path.read_bytes())
    if extra is not None:
        found.update(Path(extra).read_bytes())
    return found.hexdigest()


def wanted(entries: Sequence[Entry], methods: Mapping[str, Method]) -> list[Wanted]:
    """Every result; methods that are the same on both base forecasts run once."""
    found = []
    for entry in entries:
        found += [Wanted(entry.name, "base", name) for name in methods]
        found.append(Wanted(entry.name, "tracked", TRACKED))
        found += [Wanted(entry.name, "tracked", name) for name, method in methods.items() if not method.own]
    return found


def run(
    entries: Sequence[Entry],
    out: str | Path,
    *,
    methods: str | Path | None = None,
    workers: int = 1,
    progress: Progress = silent,
) -> Comparison:
    """Run what is not yet in the results of the folder `out`."""
    by_name, table = {entry.name: entry for entry in entries}, load(methods)
    sources = {False: source_digest(), True: source_digest(methods)}  # an own method depends on its file too
    every = wanted(entries, table)
    keys = {each: _key(each, by_name[each.stream].rows, sources[each.method not in METHODS]) for each in every}
    results = ResultsFile(Path(out) / FILE, Wanted._fields)
    done = {row["key"] for row in results.select(keys.values())}
    jobs = _jobs([each for each in every if keys[each] not in done], by_name)
    progress("start", 0.0)
    with WorkerPool(min(workers, max(len(jobs), 1)), len(jobs), progress) as pool:
        given = {i: (by_name[job[0].stream], job, methods) for i, job in enumerate(jobs)}

        def add(rows: list[Row]) -> None:
            results.add({**row, "key": keys[Wanted(row["stream"], row["on"], row["method"])]} for row in rows)

        pool.run(run_job, given, lambda i: jobs[i][0].stream, add)
    return Comparison(results.select(keys.values()), table)


def _key(each: Wanted, rows: int, source: str) -> str:
    return hashlib.sha256("\0".join((source, str(rows), *each)).encode()).hexdigest()[:32]


def _jobs(missing: Sequence[Wanted], entries: Mapping[str, Entry]) -> list[list[Wanted]]:
    """Results of one stream each, the longest job first."""
    groups: dict[str, list[Wanted]] = {}
    for each in missing:
        groups.setdefault(each.stream, []).append(each)
    jobs = []
    for name, of in groups.items():
        most = max(ROUNDS // max(entries[name].rows, 1), 1)
        jobs += [of[i : i + most] for i in range(0, len(of), most)]
    return sorted(jobs, key=lambda job: -entries[job[0].stream].rows * len(job))


def run_job(entry: Entry, job: Sequence[Wanted], methods: str | Path | None) -> list[Row]:
    """Run some methods on a stream; a method that fails has a row with its error."""
    stream, table = entry.make(), load(methods)
    chance, on_tracked = chance_gap(stream), None
    _warm_up(stream.binary)
    about = {"key": "", "kind": stream.kind, "source": stream.source, "information": stream.information,
             "rows": stream.rows, "groups": len(stream.groups())}  # fmt: skip
    rows = []
    for each in job:
        row = {**each._asdict(), **about, "error": "", **dict.fromkeys(Score._fields, float("nan"))}
        try:
            if each.on == "base":
                found = table[each.method].run(stream)
            else:
                on_tracked = on_tracked or tracked.tracked(stream)
                own = each.method == TRACKED
                found = on_tracked.run if own else tracked.run_on_tracked(table[each.method], stream, on_tracked)
            row |= {"error": NOT_SUPPORTED} if found is None else score(stream, found, chance)._asdict()
        except Exception as error:  # a failing method does not end the comparison; it is reported
            row["error"] = f"{type(error).__name__}: {error}"
        rows.append(row)
    return rows


@lru_cache(maxsize=2)
def _warm_up(binary: bool) -> None:
    """Load compiled code, so that no timed round includes it."""
    rows = np.arange(8)
    levels = np.empty(0) if binary else np.array([0.25, 0.75])
    given = np.full(8, 0.5) if binary else np.tile([0.0, 1.0], (8, 1))
    small = Stream("", "one-step", "", "", levels, {"": given}, (rows % 2).astype(np.float64), rows // 2, rows // 2 + 1,
                   series=rows % 2)  # fmt: skip
    METHODS[ORCAST].run(small)
    tracked.tracked(small)
