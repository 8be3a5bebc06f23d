"""``make test-cpus``: the tests that depend on numbers, as other processors compute them.

numpy and BLAS choose their loops by the processor, sums are then added up in another order, and a test that rests on
the last bit fails elsewhere. (The kernels of orcast are the same on every processor.) Each setting runs in a process of
its own, one after the other; `--short` is the part for the gate. Unknown arguments are passed to pytest.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import numpy as np

ROOT = Path(__file__).parents[1]
CHOOSERS = (
    "NPY_DISABLE_CPU_FEATURES",
    "NPY_ENABLE_CPU_FEATURES",
    "OPENBLAS_CORETYPE",
    "OPENBLAS_NUM_THREADS",
    "ORCAST_KERNELS",
)
AVX512 = ("AVX512", "X86_V4")
EVERY = ("",)


@dataclass(frozen=True)
class Setting:
    """Kernels to choose: numpy's without those whose names begin so, BLAS's of a processor, and other variables."""

    name: str
    without: tuple[str, ...] = ()
    blas: str | None = None
    others: dict[str, str] = field(default_factory=dict)
    needs: tuple[str, ...] = ()  # one of these must be there, by numpy's names, old or new

    def variables(self, found: Sequence[str], machine: str) -> dict[str, str] | None:
        """The environment's variables, or None if the processor cannot; `found` are the features numpy can do without.

        A name that numpy does not know it would warn of, and one of its baseline it refuses: hence only what it found.
        """
        if self.needs and not set(self.needs) & set(found):
            return None
        variables = dict(self.others)
        if dropped := [name for name in found if name.startswith(self.without)]:
            variables["NPY_DISABLE_CPU_FEATURES"] = " ".join(dropped)
        if self.blas and machine in ("x86_64", "AMD64"):
            variables["OPENBLAS_CORETYPE"] = self.blas
        return variables


SETTINGS = (
    Setting("as shipped"),
    Setting("one BLAS thread", others={"OPENBLAS_NUM_THREADS": "1"}),
    Setting(
        "AVX2, four BLAS threads",
        AVX512,
        "Haswell",
        {"OPENBLAS_NUM_THREADS": "4"},
        needs=("AVX2", "X86_V3"),
    ),
    Setting("baseline, one BLAS thread", EVERY, "Nehalem", {"OPENBLAS_NUM_THREADS": "1"}),
)
SHORT = (
    Setting("AVX2, compiled kernels", AVX512, "Haswell", needs=("AVX2", "X86_V3")),
    Setting("baseline, kernels as Python", EVERY, "Nehalem", {"ORCAST_KERNELS": "python"}),
)
LATE = ("river.py::test_late_outcomes_are_played_as_the_core_plays_them",)
SHORT_TESTS = ("frozen.py", "exact_binary.py", "exact_simplex.py", *LATE)
TESTS = (
    # spaces, forecasts, ledger, game
    *("cells.py", "forecasts.py", "finite_forecasts.py", "metrics.py", "payoffs.py", "ledger.py", "certificate.py"),
    *("guarantee.py", "corrections.py", "forgetting.py", "experts.py", "game.py", "play.py", "unbounded.py"),
    # engines
    *("equilibrium.py", "dense.py", "orca.py", "partition.py", "conformal.py"),
    *(f"exact_{name}.py" for name in ("binary", "decision", "level", "moments", "quantile", "simplex")),
    # what other libraries meet, and states
    *("panel.py", "panel_play.py", "sktime.py", *LATE, "files.py", "frozen.py"),
)


class Outcome(NamedTuple):
    """What came of a setting; a process that did not get to its tests counts as one failure."""

    passed: int
    failed: int
    seconds: float
    output: str


def located(name: str) -> str:
    """Where a file of tests is, given its name without `test_` and, perhaps, one of its tests."""
    file, _, test = name.partition("::")
    (path,) = (ROOT / "tests").rglob(f"test_{file}")
    return f"{path.relative_to(ROOT)}::{test}" if test else str(path.relative_to(ROOT))


def run(variables: dict[str, str], tests: Sequence[str]) -> Outcome:
    """Tests in a process of their own, with these variables."""
    environment = {name: value for name, value in os.environ.items() if name not in CHOOSERS} | variables
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}", *tests]
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        seconds = time.perf_counter() - start
        suites = ElementTree.parse(report).getroot().iter("testsuite") if report.exists() else ()
        counts = [
            {name: int(suite.get(name, 0)) for name in ("tests", "failures", "errors", "skipped")} for suite in suites
        ]
    failed = sum(each["failures"] + each["errors"] for each in counts)
    passed = sum(each["tests"] - each["skipped"] for each in counts) - failed
    return Outcome(passed, max(failed, int(done.returncode != 0)), seconds, done.stdout + done.stderr)


def main(arguments: Sequence[str] | None = None) -> int:
    """The table; 1 if a test fails in any setting."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--short", action="store_true", help="two settings and few tests")
    parser.add_argument("--tests", nargs="+", metavar="FILE", help="these instead of those that depend on numbers")
    chosen, rest = parser.parse_known_args(arguments)
    tests = chosen.tests or [located(name) for name in (SHORT_TESTS if chosen.short else TESTS)]
    found = np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])
    bad: list[tuple[str, Outcome]] = []
    print(f"{'setting':34}{'passed':>8}{'failed':>8}{'seconds':>9}", flush=True)
    for setting in SHORT if chosen.short else SETTINGS:
        variables = setting.variables(found, platform.machine())
        if variables is None:
            print(f"{setting.name:34}{'this processor cannot':>25}", flush=True)
            continue
        outcome = run(variables, [*tests, *rest])
        print(f"{setting.name:34}{outcome.passed:8,}{outcome.failed:8,}{outcome.seconds:9.0f}", flush=True)
        if outcome.failed:
            bad.append((setting.name, outcome))
    for name, outcome in bad:
        print(f"\n--- {name} ---\n{outcome.output}")
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())
