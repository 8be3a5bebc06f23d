"""What was known when: no gain that is not there."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks import known_wrappers
from benchmarks.results import Line, Remark

TITLE = "What was known when"


def measure(quick: bool = False) -> Iterator[Line | Remark]:
    yield from known_wrappers.sktime(quick)
