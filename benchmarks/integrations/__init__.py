"""Integrations: what a wrapper adds to the model and the core that it consists of, over batches of 1,000 rounds."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.integrations import gluonts, nixtla, river, sklearn, sktime
from benchmarks.integrations.case import ROUNDS, timed
from benchmarks.results import Line, Remark

TITLE = "Integrations"
LIBRARIES = (river, nixtla, sktime, gluonts, sklearn)


def measure(quick: bool = False) -> Iterator[Line | Remark]:
    repetitions = 5 if quick else 15
    yield Remark("what the wrapper takes beside its model, over what the core takes in a loop written by hand:")
    yield Remark(
        f"(wrapper - model) / (by hand - model), {ROUNDS:,} rounds each, medians of {repetitions} runs in turn"
    )
    for library in LIBRARIES:
        for case in library.cases():
            yield timed(case, repetitions)
