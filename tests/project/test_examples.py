"""Every example runs in its quick mode, prints a table or draws a picture, and leaves nothing else behind."""

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "examples"
EXAMPLES = sorted(path.stem for path in FOLDER.glob("*.py"))
LIMIT = 300  # seconds
# Their libraries write warnings and settings to the error stream.
CHATTY = {"darts_daily", "sktime_airline", "spark_panel"}

NUMBER = re.compile(r"(?<![\w.])[-+]?\d[\d,]*(?:\.\d+)?(?![\w.]*[A-Za-z_])")
PICTURE = re.compile(r"^picture: (.+)$", re.MULTILINE)
STARTS = (b"\x89PNG\r\n\x1a\n", b"<!DOCTYPE html>")


def has_table(text: str) -> bool:
    """Whether two lines that follow each other have two numbers or more, in as many columns."""
    counts = [len(NUMBER.findall(line)) for line in text.splitlines()]
    return any(one == other >= 2 for one, other in pairwise(counts))


MARKS = {
    "spark_panel": pytest.mark.slow,
    "darts_daily": pytest.mark.skipif(find_spec("darts") is None, reason="darts is in no extra"),
}


@pytest.mark.parametrize("name", [pytest.param(name, marks=MARKS.get(name, ())) for name in EXAMPLES])
def test_example_runs(name: str, tmp_path: Path) -> None:
    here, out = tmp_path / "here", tmp_path / "out"
    here.mkdir()
    out.mkdir()
    path = FOLDER / f"{name}.py"
    draws = '"--out"' in path.read_text(encoding="utf-8")
    strict = [] if name in CHATTY else ["-W", "error"]
    command = [sys.executable, *strict, str(path), "--quick", *(["--out", str(out)] if draws else [])]
    environment = {key: value for key, value in os.environ.items() if key != "ORCAST_DATA"} | {"MPLBACKEND": "agg"}
    done = subprocess.run(command, cwd=here, env=environment, capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 0, done.stderr
    assert not done.stderr or name in CHATTY, done.stderr
    assert not list(here.iterdir()), "files were left in the current folder"
    pictures = [Path(each) for each in PICTURE.findall(done.stdout)]
    assert sorted(out.iterdir()) == sorted(pictures)
    assert all(picture.read_bytes().startswith(STARTS) for picture in pictures)
    assert pictures or has_table(done.stdout), done.stdout


def test_page_lists_every_example() -> None:
    listed = re.findall(r"^\| \[(\w+)\.py\]\(\1\.py\) \|", (FOLDER / "README.md").read_text("utf-8"), re.MULTILINE)
    assert sorted(listed) == EXAMPLES
