"""Compiled kernels against the same files run as Python: equal results, to the last bit."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import kernel_runs
import numpy as np
import pytest

import orcast.kernels.rows

GAMES = dict(kernel_runs.recals())
# Kernels that run only when compiled, and those that are there for tests and pickling alone.
ELSEWHERE = re.compile(
    r"rows\.grow|rows\.close_since|_arrays$|\.function_|\.put_|\.open_workspace|\.restored_|payoff_finite"
)


@pytest.fixture(scope="module")
def uncompiled(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Results of the runs in a process with uncompiled kernels."""
    if orcast.kernels.rows.__file__.endswith(".py"):
        pytest.skip("the kernels are not compiled here, so there is nothing to compare them with")
    path = tmp_path_factory.mktemp("twins") / "results.npz"
    command = [sys.executable, "-W", "ignore", str(Path(__file__).with_name("kernel_runs.py")), str(path)]
    subprocess.run(command, check=True, env={**os.environ, "ORCAST_KERNELS": "python"})
    with np.load(path) as results:
        return dict(results)


@pytest.mark.parametrize("name", GAMES)
def test_compiled_kernels_equal_uncompiled_ones_to_the_last_bit(name: str, uncompiled: dict[str, Any]) -> None:
    run: Callable[[], kernel_runs.Array] = GAMES[name]
    assert kernel_runs.bits(run()) == kernel_runs.bits(uncompiled[name])


def test_the_runs_use_every_kernel(uncompiled: dict[str, Any]) -> None:
    assert len(uncompiled["functions"]) > 350
    assert [name for name in uncompiled["idle"].tolist() if not ELSEWHERE.search(name)] == []
