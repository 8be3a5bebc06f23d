"""Quality on a folder of streams with everything that practitioners use measured on them.

The folder, named by the environment variable ORCAST_YARDSTICK, holds ``streams/*.npz`` (or the files themselves) with
the arrays q (rounds by 99 quantiles), y, lo, hi and perhaps issue and reveal times, and perhaps ``results.csv`` with
other methods' scores.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import orcast as oc
from benchmarks.quality import delayed
from benchmarks.results import Line, Remark, geometric_mean
from benchmarks.streams import Case, play, score
from orcast.metrics import LEVELS

TITLE = "Yardstick: streams with other methods' scores"
VARIABLE = "ORCAST_YARDSTICK"
QCE_LIMIT, WORST_LIMIT, PINBALL_LIMIT, MARGIN = 0.0014, 0.16, 0.830, 0.010
OURS = ("orcast", "ideal")
BINARY = "bin_"


def measure(quick: bool = False) -> Iterator[Line | Remark]:
    place = os.environ.get(VARIABLE)
    if not place:
        yield Remark(f"skipped: {VARIABLE} names no folder")
        return
    folder = Path(place)
    cases = [read(file) for file in stream_files(folder) if not file.name.startswith(BINARY)]
    if not cases:
        yield Remark(f"skipped: no streams in the folder that {VARIABLE} names")
        return
    best = best_of(folder / "results.csv", "reg", "pinball")
    scores = []
    for case in cases:
        before = score(case, case.quantiles)
        quantiles, promise = play(case, case.reveal)
        after = score(case, quantiles)
        scores.append(after)
        method, loss = best.get(case.name, ("", np.nan))
        limit = loss / before.pinball + MARGIN if method else None
        note = f"limit: {method} + {MARGIN:g}; " if method else ""
        note += (
            f"QCE {after.qce:.4f}, expert {before.qce:.4f}; worst rolling {after.worst:.2f}, held {promise.held:.1%}"
        )
        yield Line(case.name, "pinball / expert's", after.relative, limit, form=".3f", note=note)
    mean = "geometric mean"
    yield Line(mean, "QCE", geometric_mean(s.qce for s in scores), QCE_LIMIT)
    yield Line(mean, "worst rolling-200 QCE", geometric_mean(s.worst for s in scores), WORST_LIMIT, form=".3f")
    yield Line(mean, "pinball / expert's", geometric_mean(s.relative for s in scores), PINBALL_LIMIT, form=".3f")
    yield from delayed([case for case in cases if case.reveal is None])


def stream_files(folder: Path) -> list[Path]:
    return sorted((folder / "streams").glob("*.npz")) or sorted(folder.glob("*.npz"))


def read(file: Path) -> Case:
    """A stream; its own feedback times are kept if outcomes are not simply known before the next forecast."""
    with np.load(file, allow_pickle=False) as arrays:
        q, y = np.sort(np.asarray(arrays["q"], dtype=np.float64), axis=1), np.asarray(arrays["y"], dtype=np.float64)
        low, high = float(arrays["lo"]), float(arrays["hi"])
        rounds = np.arange(y.size)
        issue = np.asarray(arrays["issue"]) if "issue" in arrays else rounds
        reveal = np.asarray(arrays["reveal"]) if "reveal" in arrays else issue + 1
    order = np.argsort(issue, kind="stable")
    q, y, issue, reveal = q[order], y[order], issue[order], reveal[order]
    at_once = np.array_equal(reveal, issue + 1) and np.unique(issue).size == issue.size
    # a time of revelation becomes the first round that is issued at or after it
    late = None if at_once else np.maximum(np.searchsorted(issue, reveal), rounds + 1)
    return Case(file.stem, [oc.Quantiles(LEVELS, row) for row in q], q, y, low, high, late)


def best_of(file: Path, kind: str, column: str) -> dict[str, tuple[str, float]]:
    """For each stream of a kind the other method with the least value in a column, and that value."""
    if not file.is_file():
        return {}
    best: dict[str, tuple[str, float]] = {}
    with file.open(newline="", encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            if row.get("kind") != kind or row["method"] in OURS or not row.get(column):
                continue
            value = float(row[column])
            if row["stream"] not in best or value < best[row["stream"]][1]:
                best[row["stream"]] = (row["method"], value)
    return best
