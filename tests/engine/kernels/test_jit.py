"""The cache of compiled kernels: it sees every change of every kernel, and does not grow without end."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import orcast
from orcast import jit

# A kernel that calls one in another file.
PROGRAM = """
import numpy as np
from orcast.engine.kernels.tracker import least_squares
theta, P = np.zeros(1), np.eye(1)
least_squares(theta, P, np.ones(1), 1, 1.0, 1.0, 10.0, np.empty(1))
print(theta[0], sum(least_squares.entry.stats.cache_hits.values()))
"""


def run(package: Path) -> tuple[float, int]:
    """What the kernel says, and how often it was found in the cache."""
    environment = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"} | {"PYTHONPATH": str(package)}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, cwd=package, check=True, capture_output=True, text=True
    )
    value, hits = done.stdout.split()
    return float(value), int(hits)


def test_a_change_in_another_file_is_seen(tmp_path: Path) -> None:
    source = Path(orcast.__file__).parent
    shutil.copytree(source, tmp_path / "orcast", ignore=shutil.ignore_patterns("__pycache__"))
    kept = 0.998
    assert run(tmp_path) == (pytest.approx(1.0 / (kept + 1.0)), 0)
    assert run(tmp_path) == (pytest.approx(1.0 / (kept + 1.0)), 1)
    other = tmp_path / "orcast/engine/kernels/delays.py"
    text = other.read_text()
    assert "return 1.0 - (1.0 - discount) * weight" in text
    other.write_text(text.replace("return 1.0 - (1.0 - discount) * weight", "return 3.0 * discount"))
    assert run(tmp_path) == (pytest.approx(1.0 / (3.0 * kept + 1.0)), 0)
    other.write_text(text)
    assert run(tmp_path) == (pytest.approx(1.0 / (kept + 1.0)), 1)


def test_old_digests_go(tmp_path: Path) -> None:
    for age, name in enumerate(["orcast-a", "orcast-b", "orcast-c", "orcast-d", "other"]):
        (tmp_path / name).mkdir()
        (tmp_path / name / "kernel.nbi").touch()
        os.utime(tmp_path / name, (1000.0 - age, 1000.0 - age))
    today = jit.folder_in(str(tmp_path))
    assert {path.name for path in tmp_path.iterdir()} == {today.name, "orcast-a", "orcast-b", "other"}


def test_without_a_place_for_a_cache_kernels_are_compiled_all_the_same() -> None:
    scope: dict[str, Any] = {}
    exec("def double(x):\n    return 2.0 * x\n", scope)
    for decorator in (jit.kernel, jit.entry_kernel):
        compiled = decorator(scope["double"])
        assert compiled(2.0) == 4.0
        assert jit.python_source(compiled) is scope["double"]
        assert compiled.stats.cache_path is None
