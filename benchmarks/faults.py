"""Damaged states, lines and frames: each gets a clear sentence or a right answer, in bounded time and memory.

The states are those of `tests/states.py`; `tests/mutations.py` says how they are damaged and what an answer must be.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.results import Line, Remark

TITLE = "Faults: what a file, a line or a frame may bring"
ROOT = Path(__file__).resolve().parents[1]
# How many of each, and in how many processes: a process that dies takes only its own with it.
COUNTS = {"states": 5000, "lines": 2000, "frames": 500}
PROCESSES = {"states": 5, "lines": 1, "frames": 1}
QUICK = 10
SECONDS, BYTES = 5.0, 10**9


def measure(quick: bool = False) -> Iterator[Line | Remark]:
    """Counts by outcome, the slowest and the largest process."""
    whole = _tried("intact", 20 if quick else 1000, 0)
    played, bad = whole["outcomes"].get("played", 0), whole["bad"]
    yield Line(f"{played} states as they are", "refused, or do not play", len(bad), 0, "=", ".0f")
    for kind, count in COUNTS.items():
        outcomes: Counter[str] = Counter()
        slowest, which, peak, printed, bad = 0.0, "", 0, 0, []
        processes = 1 if quick else PROCESSES[kind]
        for seed in range(processes):
            found = _tried(kind, count // (QUICK if quick else 1) // processes, seed)
            outcomes.update(found["outcomes"])
            slowest, which = max((slowest, which), (found["slowest"], found["which"]))
            peak = max(peak, found["peak"])
            printed += found["printed"]
            bad += found["bad"]
        told = ", ".join(f"{number} {outcome}" for outcome, number in sorted(outcomes.items()))
        yield Remark(f"{sum(outcomes.values())} damaged {kind}: {told}")
        for each in bad[:5]:
            yield Remark(f"  {each}")
        case = f"{sum(outcomes.values()):,} {kind}"
        yield Line(case, "neither sentence nor right answer", outcomes["bad"] + outcomes["died"], 0, "=", ".0f")
        yield Line(case, "the slowest, s", slowest, SECONDS, form=".2f", note=which)
        yield Line(case, "memory of the process, MB", peak / 1e6, BYTES / 1e6, form=".0f")
        yield Line(case, "lines that others printed", printed, 0, "=", ".0f", note="such as LAPACK's")


def _tried(kind: str, count: int, seed: int) -> dict[str, Any]:
    """What became of so many, in a process of their own."""
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT / "tests"), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, ROOT / "tests" / "mutations.py", kind, str(count), "--seed", str(seed)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": paths},
    )
    *_, last = done.stdout.splitlines() or [""]
    if done.returncode:
        reason = done.stderr.strip().splitlines()[-1:] or ["no message"]
        return {"outcomes": {"died": count}, "bad": reason, "slowest": 0.0, "which": "", "peak": 0, "printed": 0}
    found: dict[str, Any] = json.loads(last)
    found["printed"] = len(done.stderr.splitlines()) + len(done.stdout.splitlines()) - 1
    return found
