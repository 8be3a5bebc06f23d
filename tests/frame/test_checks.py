"""What is said against how a frame is read: order, units, swapped columns."""

from typing import Any

import numpy as np
import polars as pl
import pytest

from orcast.frame import recalibrate
from orcast.frame.reader import Frame, doubts, find_in, repeated_rows

N = 40


def frame(**columns: Any) -> pl.DataFrame:
    rng = np.random.default_rng(0)
    return pl.DataFrame({"y": rng.normal(size=N), "q0.1": -1.3, "q0.5": 0.0, "q0.9": 1.3} | columns)


def said(table: pl.DataFrame, **names: Any) -> list[str]:
    read = Frame(table)
    layout = find_in(read, **names)
    return [*doubts(read, layout), *repeated_rows(read, layout)]


def days(order: Any) -> list[str]:
    return [str(np.datetime64("2024-01-01") + int(i)) for i in order]


def test_nothing_is_said_of_a_plain_frame() -> None:
    assert said(frame()) == []
    assert said(frame(day=days(range(N)))) == []
    assert said(frame(word=["b", "a"] * (N // 2), ds=days(range(N)[::-1]))) == []


def test_several_rows_of_a_series_at_one_time() -> None:
    times = days(np.arange(N) // 4)
    (sentence,) = said(frame(ds=times))
    assert sentence.startswith("30 of 40 rows have the series and time of another: a column of issue times is named by")
    assert said(frame(ds=times, cutoff=days(np.arange(N) // 4 - 1 - np.arange(N) % 4))) == []
    assert said(frame(ds=times, unique_id=[f"shop{i % 4}" for i in range(N)])) == []


@pytest.mark.parametrize("columns", [{"y": 1e6 + np.arange(N)}, {"y": -1e5 * np.ones(N), "mean": 0.0, "sd": 1.0}])
def test_other_units(columns: dict[str, Any]) -> None:
    table = frame(**columns)
    table = table.drop("q0.1", "q0.5", "q0.9") if "sd" in columns else table
    (sentence,) = said(table)
    assert "more than 100 spreads away from their forecasts: are they in other units?" in sentence
    # a few that are far away are outliers
    y = np.where(np.arange(N) % 4 == 0, 0.0, columns["y"])
    assert said(table.with_columns(y=pl.Series(y))) == []


def test_swapped_columns() -> None:
    (sentence,) = said(frame().rename({"q0.1": "q0.9", "q0.9": "q0.1"}))
    assert sentence == "the lowest quantile lies above the highest in nearly all rows: are 'q0.1' and 'q0.9' swapped?"


def test_recalibration_warns_of_them() -> None:
    with pytest.warns(UserWarning, match="the default of Prophet"):
        recalibrate(frame().rename({"q0.1": "yhat_lower", "q0.5": "yhat", "q0.9": "yhat_upper"}))
