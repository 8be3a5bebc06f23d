"""Lazy frames: the same forecasts, collected."""

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from orcast.frame import recalibrate

N, MEMBERS = 30, 7
DAYS = pd.date_range("2024-01-01", periods=N)


def draws(seed: int = 0, members: int = MEMBERS) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).normal(size=(N, members))


def outcomes(seed: int = 1) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).normal(size=N)


def plain() -> pd.DataFrame:
    """The forecasts as a frame."""
    members = {f"member_{i + 1}": column for i, column in enumerate(draws().T)}
    return pd.DataFrame({"time": DAYS, "y": outcomes(), **members})


def answers(frame: Any, model: str = "") -> np.ndarray[Any, Any]:
    base = f"{model}_orcast" if model else "orcast"
    return np.column_stack([frame[f"{base}_member_{i + 1}"] for i in range(MEMBERS)])


@pytest.fixture(scope="module")
def expected() -> np.ndarray[Any, Any]:
    return answers(recalibrate(plain()))


def test_a_lazy_frame_comes_back_lazy(expected: Any) -> None:
    after = recalibrate(pl.from_pandas(plain()).lazy())
    assert isinstance(after, pl.LazyFrame)
    assert np.array_equal(answers(after.collect()), expected)


def test_a_relation_of_duckdb(expected: Any) -> None:
    duckdb = pytest.importorskip("duckdb")
    frame = plain()  # noqa: F841  duckdb finds it by its name
    after = recalibrate(duckdb.sql("select * from frame"))
    assert np.array_equal(answers(after.to_pandas()), expected)
