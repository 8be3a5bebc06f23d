"""Compiled kernels against the same files run as Python: equal results, to the last bit, and equal records."""

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
from orcast.committee import state
from orcast.kernels import pure, records

SOURCE = Path(orcast.__file__).parent
GAMES = dict(kernel_runs.recals())
# Kernels that run only when compiled, those that are there for tests and pickling alone, and the functions of the base
# forecast, which is copied.
ELSEWHERE = re.compile(
    r"rows\.grow|rows\.close_since|_arrays$|\.function_|\.put_|\.open_workspace|\.restored_|committee\.base\.|payoff_finite"
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


def declared_structs() -> dict[str, tuple[str, ...]]:
    """Members of the structs in the .pxd files, by the name of the function that makes a record of a row."""
    found = {}
    for path in sorted(SOURCE.glob("*/*state.pxd")):
        text = path.read_text("utf-8")
        for name, body in re.findall(r"^cdef struct (\w+):\n((?:    .+\n)+)", text, re.MULTILINE):
            kinds, members = zip(*(line.split(None, 1) for line in body.strip().splitlines()), strict=True)
            assert len(set(kinds)) == 1
            assert set(kinds) <= {"double", "int64_t"}
            (maker,) = re.findall(rf"inline {name} \*(as_\w+)\(", text)
            found[maker] = tuple(member.strip() for line in members for member in line.split(","))
    return found


STRUCTS = declared_structs()
COMMITTEE = {
    "as_constants": state.CONSTANT_NAMES,
    "as_known": state.KNOWN,
    "as_stream": state.STREAM,
    "as_series": state.SERIES,
    "as_pool": state.POOL,
}
RECORDS = {value: name for name, value in vars(records).items() if isinstance(value, tuple)}


@pytest.mark.parametrize("maker", STRUCTS)
def test_structs_have_the_members_of_their_records_in_the_same_order(maker: str) -> None:
    if maker in COMMITTEE:
        assert STRUCTS[maker] == COMMITTEE[maker]
        return
    row = memoryview(np.arange(float(len(STRUCTS[maker]))))
    made = getattr(pure, maker)(row)
    record = made[0] if isinstance(made, list) else made
    assert [getattr(record, member) for member in STRUCTS[maker]] == row.tolist()
    assert STRUCTS[maker] in RECORDS


def test_every_record_has_a_struct() -> None:
    assert len(STRUCTS) == len(RECORDS) + len(COMMITTEE)
    assert sorted(name for members, name in RECORDS.items() if members not in STRUCTS.values()) == []
    assert set(COMMITTEE) <= set(STRUCTS)
