"""The written list of faults fits the code: `make mutate` tries each of them, which takes too long for the gate."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from mutate.faults import FAULTS, Fault

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_the_text_of_a_fault_occurs_once(fault: Fault) -> None:
    text = (ROOT / "src/orcast" / fault.file).read_text()
    assert text.count(fault.text) == 1
    assert fault.text != fault.instead
    ast.parse(text.replace(fault.text, fault.instead))
    assert fault.tests


def test_each_fault_has_a_name_of_its_own() -> None:
    assert (
        len({fault.name for fault in FAULTS}) == len({(fault.file, fault.instead) for fault in FAULTS}) == len(FAULTS)
    )
    assert len(FAULTS) >= 44


@pytest.mark.parametrize("test", sorted({test for fault in FAULTS for test in fault.tests}))
def test_the_tests_of_a_fault_are_there(test: str) -> None:
    path, _, name = test.partition("::")
    tree = ast.parse((ROOT / path).read_text())
    assert not name or name.partition("[")[0] in {each.name for each in tree.body if isinstance(each, ast.FunctionDef)}
