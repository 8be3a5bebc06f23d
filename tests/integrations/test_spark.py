"""Spark: tables and streams give the answers of `orcast.recalibrate`, to the last bit."""

import datetime
import decimal
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import orcast as oc
from frames import Plan, panel
from helpers import SENTENCE
from orcast.frame import FrameState
from sparks import same, start, write_batches

pytest.importorskip("pyspark")

from pyspark.errors import PythonException

from orcast.integrations.spark import StreamStep, Task, packed, plan_of, recalibrate

pytestmark = [
    # Spark's own sockets and files
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
    pytest.mark.filterwarnings("ignore:Exception ignored in:pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:pyspark"),
    pytest.mark.filterwarnings("ignore::FutureWarning:pyspark"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]

KEY = ["unique_id", "ds"]
SCHEMA = "unique_id string, ds bigint, y double, mean double, sd double, extra int"
BOUNDS: dict[str, Any] = {"low": 0, "high": 100}


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    session = start("local[2]", tmp_path_factory.mktemp("spark"))
    yield session
    session.stop()


def in_pandas(frame: Any, **options: Any) -> Any:
    return oc.recalibrate(frame, workers=1, **{"pool": False, **options})


def check(df: Any, by: list[str] = KEY, **options: Any) -> pd.DataFrame:
    """Recalibrate a table and compare with the frame in pandas."""
    got = recalibrate(df, **options).toPandas()
    options.pop("partitions", None)
    same(got, in_pandas(df.toPandas(), **options), by)
    return got


# --- tables


@pytest.mark.parametrize(("form", "horizons"), [("normal", 0), ("quantiles", 2), ("binary", 0), ("labels", 0)])
def test_table_equals_the_frame(spark: Any, form: str, horizons: int) -> None:
    frame = panel(Plan(1, form, 5, 6, horizons, 1, 0.2, 0.1, 0.1, models=2))
    options = {"levels": [0.25, 0.75], "replace": True, **BOUNDS} if form in ("normal", "quantiles") else {}
    got = check(spark.createDataFrame(frame), [*KEY, "cutoff"] if horizons else KEY, **options)
    assert {"ok", "pending"} <= set(got["M0_orcast_status"])


def test_options_travel_to_the_tasks(spark: Any) -> None:
    frame = panel(Plan(3, "normal", series=4, steps=5, strays=0.2))
    frame["floor"], frame["roof"], frame["hour"] = -1.0 - frame["ds"], 120, frame["ds"] % 3
    df = spark.createDataFrame(frame)
    check(df, low="floor", high="roof")
    check(df, low=-3, high=100, outside="clip")
    check(df, payoff=oc.QuantileCalibration(context=oc.by("hour", values=range(3))), **BOUNDS)
    # a function of no module travels by itself, as one of a notebook does
    first = eval("lambda x: [float(x['hour'] == 1)]", {"__name__": "nowhere"})
    check(df, payoff=oc.QuantileCalibration(context=oc.by(first, size=1)), **BOUNDS)


def test_types_pass_through(spark: Any) -> None:
    """Series are dates, outcomes decimals; times have a zone; a column of arrays stays as it is."""
    day, noon, y = datetime.date(2024, 10, 20), datetime.datetime(2024, 10, 26, 12), decimal.Decimal("61.25")
    rows = [(day, noon + t * datetime.timedelta(hours=6), None if t == 4 else y, 50.0, 5, [1.0]) for t in range(6)]
    df = spark.createDataFrame(rows, "d date, at timestamp, y decimal(20,8), mean float, sd short, z array<double>")
    out = recalibrate(df, series=["d"], time="at")
    assert out.dtypes[:6] == df.dtypes
    want = in_pandas(df.toPandas().astype({"y": float}), series=["d"], time="at").drop(columns=["y", "z"])
    same(out.toPandas().drop(columns=["y", "z"]), want, ["at"])


def test_pools_equal_those_of_the_frame(spark: Any) -> None:
    frame = panel(Plan(6, "quantiles", series=6, steps=8, horizons=2))
    df, by = spark.createDataFrame(frame), [*KEY, "cutoff"]
    pooled, alone = (
        check(df, by, pool=pool, partitions=3).sort_values(by)["M0_orcast"].to_numpy() for pool in (True, False)
    )
    assert (pooled != alone).any()


def test_bad_options_are_refused_on_the_driver(spark: Any, tmp_path: Path) -> None:
    df = spark.createDataFrame(panel(Plan(7, "normal", series=2, steps=3)))
    for options, part in (
        ({"model": "ETS"}, "ETS"),
        ({"partitions": 0}, "partitions"),
        ({"levels": [2.0]}, "levels"),
        ({"low": 5, "high": 1}, "low < high"),
        ({"payoff": 3}, "payoff"),
        ({"series": "place"}, "expected the name of a column as series=, got 'place'"),
        ({"time": None}, "rows of Spark have no order"),
        ({"pool": "land"}, "expected pool=True or False"),
        ({"state": "here"}, "a stream keeps it in its checkpoint"),
    ):
        with pytest.raises((TypeError, ValueError), match=SENTENCE) as refusal:
            recalibrate(df, **options)
        assert part in str(refusal.value)
    with pytest.raises(TypeError, match="expected a DataFrame of Spark, got DataFrame"):
        recalibrate(df.toPandas())
    stream = spark.readStream.schema(SCHEMA).parquet(str(tmp_path))
    with pytest.raises(ValueError, match="remember"):
        recalibrate(stream, remember=0)


def test_bad_rows_of_a_table_are_named_by_series_and_time(spark: Any) -> None:
    frame = panel(Plan(8, "normal", series=3, steps=4))
    df, at = spark.createDataFrame(frame), frame.index[frame["unique_id"] == "s1"][0]
    task = Task(plan_of(df, "unique_id", "ds", False, {})[0])
    with pytest.raises(ValueError, match="expected one row of series 's1' for each time"):
        list(task(pa.Table.from_pandas(pd.concat((frame, frame.loc[[at]])), preserve_index=False).to_batches()))
    frame.loc[at, "M0_std"] = -1.0
    with pytest.raises(PythonException, match=rf"got -1 \(unique_id 's1', ds {frame.loc[at, 'ds']}\)"):
        recalibrate(spark.createDataFrame(frame)).collect()


# --- streams


def some_batches() -> list[pd.DataFrame]:
    """Forecasts of five series, which come again with their outcomes two steps later."""
    rng = np.random.default_rng(9)
    rows = pd.DataFrame([(f"s{i}", t) for t in range(6) for i in range(5)], columns=KEY)
    rows["y"], rows["mean"], rows["sd"] = rng.uniform(0, 100, 30), rng.uniform(30, 70, 30), 5.0
    rows["extra"] = rows["ds"].astype("Int32").where(rows["ds"] != 3)
    parts = [rows[rows["ds"] // 2 == i] for i in range(3)]
    return [pd.concat((part.assign(y=np.nan), before)) for part, before in zip(parts, [None, *parts], strict=False)]


def in_turn(batches: list[Any], **options: Any) -> list[Any]:
    """Answers of a frame with a state."""
    state = FrameState(remember=20)
    return [in_pandas(batch, state=state, **BOUNDS, **options) for batch in batches]


def run_stream(spark: Any, folder: Path, **options: Any) -> list[pd.DataFrame]:
    """Answers of a query, for each micro-batch that it finds."""
    found: list[pd.DataFrame] = []
    reader = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(folder / "in"))
    writer = recalibrate(reader, **BOUNDS, **options).writeStream.trigger(availableNow=True)
    writer = writer.foreachBatch(lambda batch, _: found.append(batch.toPandas()))
    writer.option("checkpointLocation", str(folder / "checkpoint")).start().awaitTermination()
    return found


def test_stream_equals_a_frame_with_a_state(spark: Any, tmp_path: Path) -> None:
    """A query stops and continues; bad rows are refused alone."""
    batches = some_batches()
    want = in_turn(batches)
    bad = batches[1].head(2).assign(sd=-1.0, ds=[77, 78], unique_id=["s0", None])
    write_batches(tmp_path / "in", [batches[0], pd.concat((batches[1], bad))])
    got = run_stream(spark, tmp_path, partitions=3)
    batches[2].to_parquet(tmp_path / "in" / "last.parquet", index=False)
    got += run_stream(spark, tmp_path, partitions=3)
    refused = got[1]["orcast_status"] == "refused"
    assert sorted(got[1][refused]["orcast_reason"]) == [
        "expected a series in every row of 'unique_id', got none: drop these rows, or fill it in",
        "expected a standard deviation of at least 0 in 'sd', got -1",
    ]
    got[1] = got[1][~refused]
    for ours, theirs in zip(got, want, strict=True):
        assert ours.pop("orcast_reason").isna().all()
        same(ours, theirs, [*KEY, "y"])


@pytest.fixture(scope="module")
def step(spark: Any) -> StreamStep:
    plan, _ = plan_of(spark.createDataFrame([], SCHEMA), "unique_id", "ds", False, BOUNDS)
    return StreamStep(plan, 200, FrameState(remember=20).to_bytes())


def tables() -> list[pa.Table]:
    return [pa.Table.from_pandas(batch, preserve_index=False) for batch in some_batches()]


def test_row_and_its_outcome_may_come_in_one_batch(step: StreamStep) -> None:
    first, second, _ = tables()
    answers, _ = step.answer(pa.concat_tables([second, first]), step.first)
    want = pa.concat_tables(in_turn([pa.concat_tables([first, second.slice(0, 10)]), second.slice(10)]))
    same(answers.drop_columns(["orcast_reason"]).to_pandas(), want.to_pandas(), [*KEY, "y"])
    assert set(want["orcast_status"].to_pylist()) == {"pending", "ok"}


def test_rows_that_only_conflict_are_all_refused(step: StreamStep) -> None:
    first, second, _ = tables()
    text = pa.array(["2024-01-01T00:00Z"] * 5 + ["2024-01-02"] * 5)
    mixed = first.set_column(1, "ds", text)
    answers, state = step.answer(mixed, step.first)
    assert set(answers["orcast_status"].to_pylist()) == {"refused"}
    assert all("zone" in reason for reason in answers["orcast_reason"].to_pylist())
    assert state == step.first
    assert set(step.answer(second, state)[0]["orcast_status"].to_pylist()) == {"pending", "ok"}


def test_other_options_than_at_the_first_start_are_refused(step: StreamStep) -> None:
    frame = pd.DataFrame({"rows": [packed(tables()[0]), b""]})
    state = SimpleNamespace(exists=False)
    state.update = lambda value: vars(state).update(exists=True, get=value)
    (answers,) = step((7,), iter([frame]), state)
    assert len(pa.ipc.open_stream(answers["rows"][0]).read_all()) == 10
    with pytest.raises(ValueError, match="expected partitions=200, with which the query was started, got 9"):
        list(replace(step, partitions=9)((7,), iter([frame]), state))
    other = replace(step, plan=replace(step.plan, options={**step.plan.options, "levels": [0.3]}))
    with pytest.raises(ValueError, match=r"partition 7 of 200: expected .*levels"):
        list(other((7,), iter([frame]), state))


def test_damaged_state_never_changes_answers(step: StreamStep) -> None:
    first, second, _ = tables()
    _, state = step.answer(first, step.first)
    want, _ = step.answer(second, state)
    rng, refused = np.random.default_rng(0), list[str]()
    for bit in rng.integers(0, 8 * len(state), 200).tolist():
        damaged = bytearray(state)
        damaged[bit // 8] ^= 1 << bit % 8
        try:
            answers, _ = step.answer(second, bytes(damaged), 17)
        except ValueError as reason:
            refused.append(str(reason))
        else:
            assert answers.equals(want)
    assert len(refused) > 190
    assert all(re.fullmatch(r"partition 17 of 200: expected [^\n]* got [^\n]*", each) for each in refused)


def test_missing_library_names_the_extra() -> None:
    code = "import sys; sys.modules['pyspark'] = None\nimport orcast.integrations.spark"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "ImportError: expected the extra orcast[spark] to be installed, got no pyspark" in done.stderr
