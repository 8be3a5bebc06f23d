"""Every example runs without warnings, prints a table, and writes only the files that it names."""

import os
import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "examples"
EXAMPLES = sorted(path.stem for path in FOLDER.glob("*.py"))
LIMIT = 300  # seconds
MOST_LINES = 60
NUMBER = re.compile(r"(?<![\w.])[-+]?\d[\d,]*(?:\.\d+)?(?![\w.]*[A-Za-z_])")


def has_table(text: str) -> bool:
    """True if two consecutive lines have the same number of numbers, at least two."""
    counts = [len(NUMBER.findall(line)) for line in text.splitlines()]
    return any(one == other >= 2 for one, other in pairwise(counts))


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_runs(name: str, tmp_path: Path) -> None:
    command = [sys.executable, "-W", "error", str(FOLDER / f"{name}.py")]
    environment = {key: value for key, value in os.environ.items() if key != "ORCAST_DATA"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 0, done.stderr
    assert not done.stderr, done.stderr
    assert has_table(done.stdout), done.stdout
    wrote = re.findall(r"^wrote: (.+)$", done.stdout, re.MULTILINE)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(wrote)


def test_eight_examples_of_at_most_60_lines() -> None:
    lengths = {name: len((FOLDER / f"{name}.py").read_text("utf-8").splitlines()) for name in EXAMPLES}
    assert len(lengths) == 8
    assert max(lengths.values()) <= MOST_LINES, lengths


def test_page_lists_every_example() -> None:
    listed = re.findall(r"^\| \[(\w+)\.py\]\(\1\.py\) \|", (FOLDER / "README.md").read_text("utf-8"), re.MULTILINE)
    assert sorted(listed) == EXAMPLES
