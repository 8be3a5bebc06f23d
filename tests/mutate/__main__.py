"""Put each fault into a copy of the package, run its tests, and print which of them caught it."""

from __future__ import annotations

import argparse
import os
import queue
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from .faults import FAULTS, Fault

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"
# At a time, each with a copy of its own.
WORKERS = 2
# The longest that the tests of one fault may take; a fault may also make a loop endless.
SECONDS = 300.0


class Verdict(NamedTuple):
    """What came of a run of tests: the first that failed, or that there was no end; empty if all passed."""

    caught: str
    output: str
    seconds: float


def run_tests(copy: Path, tests: Sequence[str], **variables: str) -> Verdict:
    """Run tests against a copy of the package, uncompiled and without data."""
    environment = {name: value for name, value in os.environ.items() if name not in ("ORCAST_DATA", "PYTEST_ADDOPTS")}
    environment |= {"PYTHONPATH": str(copy), "ORCAST_KERNELS": "python", **variables}
    # uncompiled, numpy warns where compiled code divides by zero without a word
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-W", "ignore::RuntimeWarning"]
    began = time.monotonic()
    try:
        done = subprocess.run(
            [*command, "--hypothesis-profile=mutate", *tests],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Verdict(f"no end after {SECONDS:.0f} seconds", "", time.monotonic() - began)
    output = done.stdout + done.stderr
    failed = re.search(r"^FAILED (.+?)(?: - .*)?$", output, re.MULTILINE)
    if done.returncode not in (0, 1) or bool(failed) != bool(done.returncode):
        # nobody learns from tests that could not even begin
        raise SystemExit(f"{output}\nexpected tests that pass or fail, got pytest ending with {done.returncode}")
    return Verdict(failed[1] if failed else "", output, time.monotonic() - began)


@contextmanager
def put_in(fault: Fault, copy: Path) -> Iterator[None]:
    """The copy with a fault; afterwards without it."""
    path = copy / "orcast" / fault.file
    text = path.read_text()
    if text.count(fault.text) != 1:
        raise SystemExit(
            f"expected the text of {fault.name!r} once in {fault.file}, got it {text.count(fault.text)} times"
        )
    path.write_text(text.replace(fault.text, fault.instead))
    try:
        yield
    finally:
        # with its time, so that what Python keeps of the compiled file is that of the file without the fault
        shutil.copy2(SOURCE / "orcast" / fault.file, path)


def new_copy(folder: Path) -> Path:
    """A copy of the package that Python really imports from there."""
    shutil.copytree(SOURCE, folder, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    found = subprocess.run(
        [sys.executable, "-c", "import orcast; print(orcast.__file__)"],
        env={**os.environ, "PYTHONPATH": str(folder), "ORCAST_KERNELS": "python"},
        capture_output=True,
        text=True,
        check=True,
    )
    if not Path(found.stdout.strip()).is_relative_to(folder):
        raise SystemExit(f"expected orcast to be imported from {folder}, got {found.stdout.strip()}")
    return folder


def main() -> int:
    """The table; 1 if a fault survives, or if the tests fail without any."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutate", description=__doc__)
    parser.add_argument("names", nargs="*", help="parts of the names of faults; all of them unless given")
    wanted = parser.parse_args().names
    faults = [fault for fault in FAULTS if not wanted or any(each in fault.name for each in wanted)]
    if not faults:
        raise SystemExit(f"expected parts of the names of faults, got {wanted}")
    with tempfile.TemporaryDirectory() as folder:
        copies: queue.Queue[Path] = queue.Queue()
        for number in range(WORKERS):
            copies.put(new_copy(Path(folder).resolve() / f"copy{number}"))
        return play(faults, copies)


def play(faults: Sequence[Fault], copies: queue.Queue[Path]) -> int:
    """Check that the tests pass, then try fault after fault."""
    began = time.monotonic()
    tests = sorted({test for fault in faults for test in fault.tests})

    def passes(number: int) -> Verdict:
        # a part of the tests in each copy, which so has its compiled files too
        copy = copies.get()
        try:
            return run_tests(copy, tests[number::WORKERS]) if tests[number::WORKERS] else Verdict("", "", 0.0)
        finally:
            copies.put(copy)

    with ThreadPoolExecutor(WORKERS) as pool:
        for without in pool.map(passes, range(WORKERS)):
            if without.caught:
                print(without.output)
                print(f"expected tests that pass without a fault, got a failure: {without.caught}")
                return 1
    print(f"without a fault all tests pass ({time.monotonic() - began:.0f} s)", flush=True)

    def caught_by(fault: Fault) -> Verdict:
        copy = copies.get()
        try:
            with put_in(fault, copy):
                return run_tests(copy, fault.tests, PYTHONDONTWRITEBYTECODE="1")
        finally:
            copies.put(copy)

    survived = 0
    width = max(len(fault.name) for fault in faults)
    with ThreadPoolExecutor(WORKERS) as pool:
        for fault, verdict in zip(faults, pool.map(caught_by, faults), strict=True):
            survived += not verdict.caught
            print(f"{fault.name:{width}}  {verdict.seconds:5.1f} s  {verdict.caught or 'SURVIVED'}", flush=True)
    print(f"{len(faults) - survived} of {len(faults)} faults caught in {time.monotonic() - began:.0f} s")
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main())
