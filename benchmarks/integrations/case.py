"""A wrapper beside what it consists of: the model alone, model and core by hand, the wrapper."""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from time import perf_counter

import numpy as np

from benchmarks.results import Line
from orcast import datasets

ROUNDS = 1000
LIMIT = 1.30

Work = Callable[[], None]


@dataclass(frozen=True)
class Case:
    """Three works over the same rounds, each made anew: the model alone, model and core by hand, the wrapper."""

    name: str
    model: Callable[[], Work]
    hand: Callable[[], Work]
    wrapper: Callable[[], Work]
    rounds: int = ROUNDS


def timed(case: Case, repetitions: int) -> Line:
    times: list[tuple[float, ...]] = []
    for repetition in range(repetitions + 1):
        row = []
        for make in (case.model, case.hand, case.wrapper):
            work = make()
            gc.collect()
            gc.disable()
            try:
                begin = perf_counter()
                work()
                row.append(perf_counter() - begin)
            finally:
                gc.enable()
        if repetition:
            times.append(tuple(row))
    model, hand, wrapper = (1e6 * median(column) / case.rounds for column in zip(*times, strict=True))
    note = f"a round: wrapper {wrapper:.0f} us, by hand {hand:.0f}, model alone {model:.0f}"
    return Line(case.name, "times the core", (wrapper - model) / (hand - model), LIMIT, form=".2f", note=note)


def lagged(count: int) -> tuple[np.ndarray, np.ndarray]:
    """The humidity of an hour, and of those that tell of it."""
    values = datasets.load("humidity").values[: count + 24]
    lags = np.column_stack([values[24 - lag : len(values) - lag] for lag in (1, 2, 3, 24)])
    return lags, values[24:]


def nothing(_: object) -> None:
    """What a work returns."""
