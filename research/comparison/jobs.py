"""Run all methods on all streams: longest jobs first, in several processes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from research.comparison.catalogue import Entry
from research.comparison.methods import Method, load
from research.comparison.scores import Score, chance_gap, score
from research.jobs import Progress, WorkerPool, silent
from research.output import Row

NOT_SUPPORTED = "not supported"


class Comparison(NamedTuple):
    """Results, in the order of the streams, and methods by name."""

    rows: list[Row]
    methods: dict[str, Method]


def is_failure(row: Row) -> bool:
    """Return True if a method failed on a stream that it supports."""
    return bool(row["error"]) and row["error"] != NOT_SUPPORTED


def run(
    entries: Sequence[Entry], *, methods: str | Path | None = None, workers: int = 1, progress: Progress = silent
) -> Comparison:
    """Run all methods on all streams."""
    table = load(methods)
    progress("start", 0.0)
    longest_first = sorted(range(len(entries)), key=lambda i: -entries[i].rows)
    with WorkerPool(min(workers, max(len(entries), 1)), len(entries), progress) as pool:
        found = pool.run(run_job, {i: (entries[i], methods) for i in longest_first}, lambda i: entries[i].name)
    return Comparison([row for i in range(len(entries)) for row in found[i]], table)


def run_job(entry: Entry, methods: str | Path | None) -> list[Row]:
    """Run all methods on a stream; a method that fails has a row with its error."""
    stream = entry.make()
    chance = chance_gap(stream)
    about = {"kind": stream.kind, "rows": stream.rows, "groups": len(stream.groups())}
    rows = []
    for name, method in load(methods).items():
        row = {"stream": entry.name, "method": name, **about, "error": ""}
        row |= dict.fromkeys(Score._fields, float("nan"))
        try:
            found = method.run(stream)
            row |= {"error": NOT_SUPPORTED} if found is None else score(stream, found, chance)._asdict()
        except Exception as error:  # a failing method does not end the comparison; it is reported
            row["error"] = f"{type(error).__name__}: {error}"
        rows.append(row)
    return rows
