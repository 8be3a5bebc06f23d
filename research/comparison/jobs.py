"""Run all methods on all streams: longest jobs first, in several processes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from research.comparison.catalogue import Entry
from research.comparison.methods import Method, load
from research.comparison.scores import Score, chance_gap, score
from research.jobs import Progress, WorkerPool, silent
from research.output import Row

ROUNDS = 60_000  # rounds of a job, about: a long stream is several jobs
NOT_SUPPORTED = "not supported"


class Wanted(NamedTuple):
    """Identity of a result."""

    stream: str
    method: str


class Comparison(NamedTuple):
    """Results, in the order of the streams, and methods by name."""

    rows: list[Row]
    methods: dict[str, Method]


def is_failure(row: Row) -> bool:
    """Return True if a method failed on a stream that it supports."""
    return bool(row["error"]) and row["error"] != NOT_SUPPORTED


def wanted(entries: Sequence[Entry], methods: Mapping[str, Method]) -> list[Wanted]:
    """Every result."""
    return [Wanted(entry.name, name) for entry in entries for name in methods]


def run(
    entries: Sequence[Entry], *, methods: str | Path | None = None, workers: int = 1, progress: Progress = silent
) -> Comparison:
    """Run all methods on all streams."""
    by_name, table = {entry.name: entry for entry in entries}, load(methods)
    every = wanted(entries, table)
    jobs = _jobs(every, by_name)
    progress("start", 0.0)
    with WorkerPool(min(workers, max(len(jobs), 1)), len(jobs), progress) as pool:
        given = {i: (by_name[job[0].stream], job, methods) for i, job in enumerate(jobs)}
        found = pool.run(run_job, given, lambda i: jobs[i][0].stream)
    rows = {Wanted(row["stream"], row["method"]): row for part in found.values() for row in part}
    return Comparison([rows[each] for each in every], table)


def _jobs(every: Sequence[Wanted], entries: Mapping[str, Entry]) -> list[list[Wanted]]:
    """Results of one stream each, the longest job first."""
    groups: dict[str, list[Wanted]] = {}
    for each in every:
        groups.setdefault(each.stream, []).append(each)
    jobs = []
    for name, of in groups.items():
        most = max(ROUNDS // max(entries[name].rows, 1), 1)
        jobs += [of[i : i + most] for i in range(0, len(of), most)]
    return sorted(jobs, key=lambda job: -entries[job[0].stream].rows * len(job))


def run_job(entry: Entry, job: Sequence[Wanted], methods: str | Path | None) -> list[Row]:
    """Run some methods on a stream; a method that fails has a row with its error."""
    stream, table = entry.make(), load(methods)
    chance = chance_gap(stream)
    about = {"kind": stream.kind, "rows": stream.rows, "groups": len(stream.groups())}
    rows = []
    for each in job:
        row = {**each._asdict(), **about, "error": "", **dict.fromkeys(Score._fields, float("nan"))}
        try:
            found = table[each.method].run(stream)
            row |= {"error": NOT_SUPPORTED} if found is None else score(stream, found, chance)._asdict()
        except Exception as error:  # a failing method does not end the comparison; it is reported
            row["error"] = f"{type(error).__name__}: {error}"
        rows.append(row)
    return rows
