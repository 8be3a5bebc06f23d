"""What other libraries have instead of data frames: the same forecasts, read from their own objects."""

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import orcast as oc
from orcast.panel import recalibrate
from orcast.panel.columns import find_in
from orcast.panel.frame import Frame

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


def test_columns_of_lists_are_members_and_come_back_as_lists(expected: Any) -> None:
    pytest.importorskip("pyarrow")  # by which polars makes frames of pandas
    table = {"time": DAYS, "y": outcomes(), "net": draws().tolist()}
    for frame in (pl.DataFrame(table), pd.DataFrame(table), pl.DataFrame(table).to_arrow()):
        after = recalibrate(frame)
        lists = after["net_orcast"].to_pylist() if hasattr(after, "to_pylist") else list(after["net_orcast"])
        assert np.array_equal(np.array(lists), expected)
        (evidence,) = oc.evidence.collect(after)
        assert evidence.after is not None
    assert recalibrate(pd.DataFrame(table), replace=True)["net"].tolist() == expected.tolist()


def test_lists_may_lack_members_and_others_are_left_alone() -> None:
    some = [*draws().tolist()[:-2], [0.0, 1.0], None]
    frame = pl.DataFrame({"time": DAYS, "y": outcomes(), "net": some, "words": [["a"]] * N})
    assert [form.model for form in find_in(frame).forms] == ["net"]
    assert recalibrate(frame)["net_orcast_status"].to_list()[-2:] == ["ok", "no forecast"]


def test_time_series_of_darts(expected: Any) -> None:
    darts = pytest.importorskip("darts")
    make = darts.TimeSeries.from_times_and_values
    target = make(DAYS, outcomes()[:, None], columns=["load"])
    after = recalibrate(make(DAYS, draws()[:, None, :], columns=["load"]), target=target)
    assert np.array_equal(answers(after), expected)
    quantiles = make(DAYS, np.sort(draws(members=3)), columns=["load_q0.100", "load_q0.500", "load_q0.900"])
    assert find_in(Frame(quantiles, target)).forms[0].columns == ("load_q0.100", "load_q0.500", "load_q0.900")


def test_forecasts_of_darts_that_were_issued_one_after_another() -> None:
    darts = pytest.importorskip("darts")
    make = darts.TimeSeries.from_times_and_values
    several = [make(DAYS[i : i + 3], draws()[i : i + 3, None, :], columns=["load"]) for i in range(N - 3)]
    frame = Frame(several, make(DAYS, outcomes()[:, None], columns=["load"]))
    layout = find_in(frame)
    assert (layout.time, layout.cutoff, layout.y, frame.rows) == ("time", "cutoff", "load", 3 * (N - 3))
    lead = frame.times("time").values - frame.times("cutoff").values
    assert sorted(np.unique(lead) / 86_400e9) == [1.0, 2.0, 3.0]
